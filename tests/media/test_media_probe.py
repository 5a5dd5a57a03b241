"""States of clips: whole, odd and broken ones."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("av", reason="needs the extra `media`")

from media.clips import cut, even_times, turned, write_clip

from omnijudge.media import probe


def test_a_whole_clip(tmp_path: Path) -> None:
    info = probe(str(write_clip(tmp_path / "a.mp4", even_times(4, 10), audio_seconds=4)))
    assert (info.state, info.notes, info.has_audio) == ("ok", (), True)
    assert info.duration == pytest.approx(4.0, abs=0.1)
    assert (info.width, info.height) == (64, 32)
    assert info.frame_times.tolist() == pytest.approx(even_times(4, 10), abs=1e-3)


def test_no_clip_is_named() -> None:
    assert probe(None).state == "none"


def test_a_clip_that_is_not_there(tmp_path: Path) -> None:
    info = probe(str(tmp_path / "gone.mp4"))
    assert info.state == "missing"
    assert "gone.mp4" in info.detail


@pytest.mark.parametrize("data", [b"", b"this is a text, not a clip", b"\0" * 4096])
def test_a_file_that_is_no_clip(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(data)
    assert probe(str(path)).state == "unreadable"


def test_a_file_cut_off_before_its_index(tmp_path: Path) -> None:
    # MP4 writes its index last unless told otherwise: without it nothing can be read.
    whole = write_clip(tmp_path / "a.mp4", even_times(4, 10), audio_seconds=4)
    assert probe(str(cut(whole, tmp_path / "b.mp4", 0.6))).state == "unreadable"


@pytest.mark.parametrize(("ending", "options"), [("mp4", {"movflags": "faststart"}), ("mkv", {})])
def test_a_file_cut_off_behind_its_index(
    tmp_path: Path, ending: str, options: dict[str, str]
) -> None:
    whole = write_clip(tmp_path / f"a.{ending}", even_times(6, 10), options=options)
    info = probe(str(cut(whole, tmp_path / f"b.{ending}", 0.6)))
    assert info.state == "truncated"
    assert info.readable is not None
    assert 1.0 < info.readable < 5.5
    assert info.duration == pytest.approx(6.0, abs=0.1)


def write_sound(path: Path, with_empty_video: bool) -> None:
    import av
    import numpy as np

    with av.open(str(path), "w") as out:
        if with_empty_video:
            video = out.add_stream("mpeg4", rate=10)
            video.width, video.height, video.pix_fmt = 64, 32, "yuv420p"
        audio = out.add_stream("aac", rate=16000, layout="mono")
        block = np.zeros((1, 1024), np.int16)
        frame = av.AudioFrame.from_ndarray(block, format="s16", layout="mono")
        frame.sample_rate = 16000
        out.mux(audio.encode(frame))
        out.mux(audio.encode(None))


def test_sound_only(tmp_path: Path) -> None:
    path = tmp_path / "a.m4a"
    write_sound(path, with_empty_video=False)
    assert probe(str(path)).state == "no_video"


def test_a_cover_picture_is_no_video(tmp_path: Path) -> None:
    # A song with its cover: one attached picture and sound.
    import av

    whole = write_clip(tmp_path / "a.mp4", even_times(1, 10), audio_seconds=1)
    with av.open(str(whole)) as container:
        container.streams.video[0].disposition = av.stream.Disposition.attached_pic
        from omnijudge.media.probe import video_stream

        assert video_stream(container) is None


def test_a_clip_without_pictures(tmp_path: Path) -> None:
    path = tmp_path / "a.mkv"
    write_sound(path, with_empty_video=True)
    assert probe(str(path)).state == "zero_duration"


def test_no_sound_is_noted(tmp_path: Path) -> None:
    info = probe(str(write_clip(tmp_path / "a.mp4", even_times(2, 10))))
    assert (info.state, info.has_audio, info.notes) == ("ok", False, ("no_audio",))


def test_variable_frame_rate_is_noted(tmp_path: Path) -> None:
    times = [0.0, 0.1, 0.2, 1.2, 1.3, 2.8, 2.9, 3.0]
    info = probe(str(write_clip(tmp_path / "a.mp4", times, audio_seconds=3)))
    assert (info.state, info.notes) == ("ok", ("variable_frame_rate",))
    assert info.frame_times.tolist() == pytest.approx(times, abs=2e-3)


def test_a_turned_clip_is_described_as_it_is_shown(tmp_path: Path) -> None:
    flat = write_clip(tmp_path / "a.mp4", even_times(1, 10), audio_seconds=1)
    info = probe(str(turned(flat, tmp_path / "b.mp4")))
    assert (info.state, info.notes) == ("ok", ("rotated",))
    assert (info.width, info.height) == (32, 64)


def test_sound_that_outlasts_the_pictures_is_no_loss(tmp_path: Path) -> None:
    info = probe(str(write_clip(tmp_path / "a.mp4", even_times(2, 10), audio_seconds=5)))
    assert info.state == "ok"
    assert info.readable == pytest.approx(2.0, abs=0.1)
