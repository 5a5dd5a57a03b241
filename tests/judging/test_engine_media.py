"""Pictures and sound on their way through the vLLM engine, with models of random weights."""

from __future__ import annotations

import base64
import io
import json
import math
import struct
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from requirements import need

from omnijudge.config import JudgeConfig
from omnijudge.judging.engines import open_engine
from omnijudge.judging.types import Engine, Reply, Request

pytestmark = pytest.mark.engine

SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.01}},
    "required": ["score"],
    "additionalProperties": False,
}
CLIP = Path(__file__).parents[2] / "omnijudge/sample_data/omni_duplexeval/videos/bell.mp4"
QUESTION = {"type": "text", "text": "红色的杯子在桌上吗？"}


def picture(colour: str) -> dict[str, Any]:
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (64, 48), colour).save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}


def tone(hertz: int, rate: int = 16_000) -> dict[str, Any]:
    """Half a second of a tone."""
    samples = (int(2e4 * math.sin(2 * math.pi * hertz * i / rate)) for i in range(rate // 2))
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(rate)
        sound.writeframes(b"".join(struct.pack("<h", s) for s in samples))
    data = base64.b64encode(file.getvalue()).decode()
    return {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}


def request(number: int, *parts: dict[str, Any]) -> Request:
    messages = [{"role": "user", "content": list(parts)}]
    return Request(number.to_bytes(16, "big"), 1, 0, "core", messages, SCHEMA)


def assert_valid(reply: Reply) -> None:
    assert reply.error is None
    assert 0 <= json.loads(reply.raw or "")["score"] <= 1


def opened(make: Callable[..., Path], folder: Path, **options: Any) -> Engine:
    model = make(folder)
    judge = JudgeConfig(
        engine="vllm", model=str(model), engine_options={"dtype": "float32", **options}
    )
    return open_engine(judge, "omniinteract")


def test_pictures(tmp_path: Path) -> None:
    need("engine")
    from omnijudge.testing.tiny_media_models import make_tiny_vision_model

    engine = opened(make_tiny_vision_model, tmp_path / "m", limit_mm_per_prompt={"image": 2})
    broken = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    replies = engine.answer(
        [
            request(0, QUESTION),
            request(1, picture("red"), QUESTION),
            request(2, broken, QUESTION),
            request(3, picture("red"), picture("blue"), QUESTION),
            request(4, *[picture("red")] * 3, QUESTION),
        ]
    )
    engine.close()
    words, one, unreadable, two, too_many = replies
    for reply in (words, one, two):
        assert_valid(reply)
    pixels = one.prompt_tokens - words.prompt_tokens
    assert pixels > 0
    assert two.prompt_tokens == words.prompt_tokens + 2 * pixels
    assert unreadable.permanent
    assert "image" in str(unreadable.error)
    assert too_many.permanent
    assert "At most 2" in str(too_many.error)


def test_sound(tmp_path: Path) -> None:
    need("engine")
    pytest.importorskip("av", reason="the package av is missing; it comes with omnijudge[media]")
    from omnijudge.media import audio_part, window_wav
    from omnijudge.testing.tiny_media_models import make_tiny_audio_model

    engine = opened(make_tiny_audio_model, tmp_path / "m")
    broken = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    window = audio_part(window_wav(str(CLIP), 4.0, 7.0))
    words, heard, clip, unreadable = engine.answer(
        [
            request(0, QUESTION),
            request(1, tone(440), QUESTION),
            request(2, window, QUESTION),
            request(3, broken, QUESTION),
        ]
    )
    engine.close()
    for reply in (words, heard, clip):
        assert_valid(reply)
    # Three seconds of a clip take more tokens than half a second of a tone.
    assert clip.prompt_tokens > heard.prompt_tokens > words.prompt_tokens
    assert unreadable.permanent
    assert "audio" in str(unreadable.error)
