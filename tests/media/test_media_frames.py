"""Pictures at given times, from every kind of clip, within a bound of memory."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("av", reason="needs the extra `media`")

from media.clips import brightness, cut, even_times, grey, turned, write_clip
from PIL import Image

from omnijudge.media import MediaError
from omnijudge.media.frames import FrameStore


def shown(jpegs: list[bytes]) -> list[int]:
    """Numbers of the pictures, by their brightness."""
    return [round((grey(j) - 20) / 10) for j in jpegs]


def test_the_picture_shown_at_a_time_is_the_last_one_that_has_begun(tmp_path: Path) -> None:
    path = str(write_clip(tmp_path / "a.mp4", even_times(2, 10)))
    found = FrameStore().frames(path, [0.0, 0.09, 0.1, 0.55, 1.94, 5.0, -1.0], 64)
    assert shown(found) == [0, 0, 1, 5, 19, 19, 0]


def test_variable_frame_rate_goes_by_times_not_by_numbers(tmp_path: Path) -> None:
    path = str(write_clip(tmp_path / "a.mp4", [0.0, 0.1, 1.5, 1.6, 4.0]))
    found = FrameStore().frames(path, [0.05, 1.0, 1.55, 3.9, 4.0], 64)
    assert shown(found) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("ending", "codec"), [("mkv", "mpeg4"), ("webm", "libvpx-vp9"), ("avi", "mpeg4")]
)
def test_other_containers(tmp_path: Path, ending: str, codec: str) -> None:
    path = str(write_clip(tmp_path / f"a.{ending}", even_times(1, 10), codec=codec))
    assert shown(FrameStore().frames(path, [0.0, 0.5, 0.9], 64)) == [0, 5, 9]


def test_a_clip_is_decoded_once_while_it_fits(tmp_path: Path) -> None:
    path = str(write_clip(tmp_path / "a.mp4", even_times(2, 10)))
    store = FrameStore()
    for start in np.arange(0, 1.5, 0.1):
        store.frames(path, [start, start + 0.25, start + 0.5], 64)
    assert store.decoded == 1


def test_memory_is_bounded(tmp_path: Path) -> None:
    paths = [str(write_clip(tmp_path / f"{i}.mp4", even_times(2, 10))) for i in range(4)]
    whole_clip = 20 * 64 * 32 * 3 // 2
    store = FrameStore(memory=3 * whole_clip)
    for path in paths * 2:
        store.frames(path, [0.3, 1.2], 64)
        assert store.used <= 3 * whole_clip
    assert store.decoded >= 4


def test_a_clip_too_large_to_keep_gives_the_same_pictures(tmp_path: Path) -> None:
    path = str(write_clip(tmp_path / "a.mp4", even_times(2, 10), keyframes=4))
    times = [0.0, 0.7, 1.3, 1.9]
    small = FrameStore(memory=20_000)
    assert shown(small.frames(path, times, 64)) == [0, 7, 13, 19]
    assert shown(small.frames(path, [1.1], 64)) == [11]
    assert small.frames(path, times, 64) == FrameStore().frames(path, times, 64)
    assert small.used <= 20_000


def test_a_turned_clip_is_shown_upright(tmp_path: Path) -> None:
    flat = write_clip(tmp_path / "a.mp4", even_times(1, 10), corner=True)
    (jpeg,) = FrameStore().frames(str(turned(flat, tmp_path / "b.mp4")), [0.5], 64)
    picture = np.asarray(Image.open(io.BytesIO(jpeg)).convert("L"))
    assert picture.shape == (64, 32)
    # Turned by 90 degrees to the right, the white corner goes from upper left to upper right.
    assert picture[5, -5] > 200
    assert picture[5, 5] < 150
    assert picture[-5, -5] < 150


def test_pictures_are_made_smaller_but_never_larger(tmp_path: Path) -> None:
    path = str(write_clip(tmp_path / "a.mp4", even_times(1, 10), size=(320, 180)))
    sizes = [
        Image.open(io.BytesIO(FrameStore().frames(path, [0.0], side)[0])).size
        for side in (64, 160, 4096)
    ]
    assert sizes == [(64, 36), (160, 90), (320, 180)]


def test_a_cut_clip_gives_what_is_there_and_names_what_is_not(tmp_path: Path) -> None:
    whole = write_clip(tmp_path / "a.mp4", even_times(6, 10), options={"movflags": "faststart"})
    path = str(cut(whole, tmp_path / "b.mp4", 0.6))
    assert shown(FrameStore().frames(path, [0.0, 1.0], 64)) == [0, 10]


def test_a_clip_that_cannot_be_read_is_an_error_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(b"no clip")
    with pytest.raises(MediaError, match=r"a\.mp4: unreadable"):
        FrameStore().frames(str(path), [0.0], 64)
    with pytest.raises(MediaError, match="check the path"):
        FrameStore().frames(str(tmp_path / "gone.mp4"), [0.0], 64)


def test_a_changed_file_is_decoded_anew(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "a.mp4", even_times(1, 10))
    store = FrameStore()
    assert shown(store.frames(str(path), [0.5], 64)) == [5]
    write_clip(path, even_times(1.5, 5))
    assert shown(store.frames(str(path), [0.5], 64)) == [2]


def test_a_clip_inside_a_parquet_table(tmp_path: Path) -> None:
    first = write_clip(tmp_path / "a.mp4", even_times(1, 10)).read_bytes()
    second = write_clip(tmp_path / "b.mp4", even_times(1, 5)).read_bytes()
    table = pa.table({"video": [{"bytes": b, "path": "x.mp4"} for b in (first, second)]})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=1)
    store = FrameStore()
    assert shown(store.frames(f"{tmp_path}/t.parquet::0", [0.5], 64)) == [5]
    assert shown(store.frames(f"{tmp_path}/t.parquet::1", [0.5], 64)) == [2]
    with pytest.raises(MediaError, match="row 2 holds no clip"):
        store.frames(f"{tmp_path}/t.parquet::2", [0.5], 64)


def test_brightness_tells_twenty_two_pictures_apart() -> None:
    assert len({brightness(i) for i in range(22)}) == 22
