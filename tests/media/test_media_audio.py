"""Sound of windows."""

from __future__ import annotations

import io
import wave
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("av", reason="needs the extra `media`")

from media.clips import RATE, even_times, write_clip

from omnijudge.media import MediaError, audio_part, image_part, video_part, window_wav


def samples(wav: bytes) -> np.ndarray:
    with wave.open(io.BytesIO(wav)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, RATE)
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(float)


def loudness(part: np.ndarray) -> float:
    return float(np.sqrt(np.mean(part**2)))


def test_a_window_has_its_own_sound(tmp_path: Path) -> None:
    path = str(write_clip(tmp_path / "a.mp4", even_times(4, 10), audio_seconds=4))
    found = samples(window_wav(path, 0.5, 2.5))
    assert len(found) == 2 * RATE
    quiet, loud, after = found[: RATE // 3], found[RATE : RATE * 5 // 4], found[-RATE // 3 :]
    assert loudness(loud) > 20 * max(1.0, loudness(quiet))
    assert loudness(loud) > 20 * max(1.0, loudness(after))


def test_sound_that_ends_early_is_followed_by_silence(tmp_path: Path) -> None:
    path = str(write_clip(tmp_path / "a.mp4", even_times(4, 10), audio_seconds=2))
    found = samples(window_wav(path, 1.2, 3.2))
    assert len(found) == 2 * RATE
    assert loudness(found[: RATE // 2]) > 1000
    assert loudness(found[-RATE // 2 :]) == 0


def test_a_clip_without_sound_is_an_error_with_its_name(tmp_path: Path) -> None:
    path = str(write_clip(tmp_path / "a.mp4", even_times(1, 10)))
    with pytest.raises(MediaError, match=r"a\.mp4: the clip has no sound track"):
        window_wav(path, 0.0, 1.0)


def test_parts_carry_data_that_a_judge_can_open(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "a.mp4", even_times(1, 10))
    assert image_part(b"xyz") == {
        "type": "image_url",
        "image_url": {"url": "data:image/jpeg;base64,eHl6"},
    }
    assert audio_part(b"xyz") == {
        "type": "input_audio",
        "input_audio": {"data": "eHl6", "format": "wav"},
    }
    url = video_part(str(path))["video_url"]["url"]
    assert url.startswith("data:video/mp4;base64,")
    assert len(url) > path.stat().st_size


def test_a_huge_clip_is_not_sent_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    with path.open("wb") as file:
        file.truncate(65 * 2**20)
    with pytest.raises(MediaError, match="too large to be sent whole"):
        video_part(str(path))
