"""Sound of a stretch of a clip, as WAV data."""

from __future__ import annotations

import io
import threading
import wave

import numpy as np
import numpy.typing as npt

from omnijudge.media.cache import ByteCache
from omnijudge.media.probe import start_of
from omnijudge.media.sources import MediaError, file_key, libraries, open_source

RATE = 16_000
"""Samples per second, one channel, 16 bits: what speech models take."""
MEMORY = 64 * 2**20
"""Bytes of sound kept at most."""

_tracks: ByteCache[npt.NDArray[np.int16]] = ByteCache(MEMORY)
_lock = threading.Lock()


def window_wav(source: str, start: float, end: float) -> bytes:
    """Sound of ``[start, end]`` as a WAV file: one channel, 16 bits, 16 kHz.

    Where the sound track is shorter than the window, silence fills it up.

    Args:
        source: path of the clip, or ``FILE.parquet::ROW``.
        start: seconds from the start of the clip.
        end: likewise.

    Raises:
        MediaError: the clip has no sound or it cannot be decoded.
    """
    with _lock:
        key = file_key(source)
        track = _tracks.get(key)
        if track is None:
            track = _decode(source)
            _tracks.put(key, track, track.nbytes)
    first, last = round(max(0.0, start) * RATE), round(max(start, end) * RATE)
    samples = np.zeros(max(0, last - first), "<i2")
    heard = track[first:last]
    samples[: len(heard)] = heard
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples.tobytes())
    return out.getvalue()


def _decode(source: str) -> npt.NDArray[np.int16]:
    """The whole sound track from the start of the clip on."""
    av, _ = libraries()
    blocks: list[tuple[int, npt.NDArray[np.int16]]] = []
    try:
        with av.open(open_source(source)) as container:
            stream = next(iter(container.streams.audio), None)
            if stream is None:
                raise MediaError(f"{source}: the clip has no sound track")
            origin = start_of(container)
            resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)
            at: int | None = None
            try:
                for frame in container.decode(stream):
                    if at is None:
                        at = round((float(frame.time or 0.0) - origin) * RATE)
                    for part in resampler.resample(frame):
                        at = _append(blocks, at, part.to_ndarray().reshape(-1))
                for part in resampler.resample(None):
                    at = _append(blocks, at or 0, part.to_ndarray().reshape(-1))
            except av.error.InvalidDataError:
                pass  # the file breaks off here; what came before is sound
    except (av.error.FFmpegError, OSError) as e:
        raise MediaError(f"{source}: the sound cannot be decoded ({e})") from e
    if not blocks:
        raise MediaError(f"{source}: the sound track is empty")
    track = np.zeros(max(0, max(at + len(b) for at, b in blocks)), np.int16)
    for at, block in blocks:
        skipped = max(0, -at)
        track[max(0, at) : at + len(block)] = block[skipped:]
    return track


def _append(
    blocks: list[tuple[int, npt.NDArray[np.int16]]], at: int, block: npt.NDArray[np.int16]
) -> int:
    blocks.append((at, block))
    return at + len(block)
