"""Clips for tests, made on the spot: every picture tells its own number by its brightness."""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from PIL import Image

WIDTH, HEIGHT, RATE = 64, 32, 16_000


def brightness(i: int) -> int:
    """Brightness of the i-th picture."""
    return 20 + 10 * (i % 22)


def write_clip(
    path: Path,
    times: Sequence[float],
    *,
    audio_seconds: float = 0.0,
    size: tuple[int, int] = (WIDTH, HEIGHT),
    corner: bool = False,
    codec: str = "libx264",
    keyframes: int = 5,
    options: dict[str, str] | None = None,
) -> Path:
    """A clip with a grey picture at each time and, if wanted, a tone that rises over time.

    Args:
        path: file to write; its ending decides the container.
        times: when each picture is first shown, in seconds.
        audio_seconds: length of the sound track; 0: none.
        size: width and height.
        corner: paint the upper left corner white.
        codec: of the pictures.
        keyframes: distance of key pictures.
        options: of the container.
    """
    width, height = size
    with av.open(str(path), "w", options=options or {}) as out:
        video = out.add_stream(codec, rate=30, options={"crf": "10", "preset": "ultrafast"})
        video.width, video.height, video.pix_fmt = width, height, "yuv420p"
        video.gop_size = keyframes
        video.codec_context.time_base = Fraction(1, 1000)
        audio = None
        if audio_seconds:
            audio = out.add_stream("aac", rate=RATE, layout="mono")
        for i, time in enumerate(times):
            pixels = np.full((height, width, 3), brightness(i), np.uint8)
            if corner:
                pixels[: height // 2, : width // 2] = 255
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            frame.pts, frame.time_base = round(time * 1000), Fraction(1, 1000)
            out.mux(video.encode(frame))
        out.mux(video.encode(None))
        if audio is not None:
            samples = (tone(audio_seconds) * 32767).astype(np.int16)
            for first in range(0, len(samples), 1024):
                block = np.ascontiguousarray(samples[first : first + 1024].reshape(1, -1))
                frame = av.AudioFrame.from_ndarray(block, format="s16", layout="mono")
                frame.sample_rate, frame.pts = RATE, first
                frame.time_base = Fraction(1, RATE)
                out.mux(audio.encode(frame))
            out.mux(audio.encode(None))
    return path


def tone(seconds: float) -> np.ndarray:
    """Silence in even seconds, a tone of 440 Hz in odd ones."""
    t = np.arange(round(seconds * RATE)) / RATE
    return np.where(t.astype(int) % 2 == 1, 0.5 * np.sin(2 * np.pi * 440 * t), 0.0)


def even_times(seconds: float, fps: float) -> list[float]:
    """Times of evenly spaced pictures."""
    return [i / fps for i in range(round(seconds * fps))]


def turned(path: Path, out: Path) -> Path:
    """The same MP4 with the note that it has to be turned by 90 degrees, as phones write it."""
    data = bytearray(path.read_bytes())
    at = data.index(b"tkhd") + 4  # version and flags follow
    matrix = at + 4 + 4 * 4 + 4 + 8 + 8
    one = 1 << 16
    data[matrix : matrix + 36] = struct.pack(">9i", 0, one, 0, -one, 0, 0, HEIGHT * one, 0, 1 << 30)
    out.write_bytes(data)
    return out


def cut(path: Path, out: Path, share: float) -> Path:
    """The first part of a file."""
    data = path.read_bytes()
    out.write_bytes(data[: int(len(data) * share)])
    return out


def grey(jpeg: bytes) -> float:
    """Mean brightness of a picture."""
    return float(np.asarray(Image.open(io.BytesIO(jpeg)).convert("L")).mean())
