"""Pictures of a clip at given times; every clip is decoded once while it is in use."""

from __future__ import annotations

import io
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from omnijudge.media.cache import ByteCache
from omnijudge.media.probe import MediaInfo, probe, start_of, video_stream
from omnijudge.media.sources import MediaError, file_key, libraries, open_source

MEMORY = 512 * 2**20
"""Bytes of pictures kept at most, unless :func:`set_memory` says otherwise."""
JPEG_QUALITY = 85


@dataclass(frozen=True)
class _Clip:
    """A decoded clip: small YUV pictures by the time they are first shown."""

    times: npt.NDArray[np.float64]
    pictures: list[npt.NDArray[np.uint8]]
    rotation: int

    @property
    def size(self) -> int:
        return sum(p.nbytes for p in self.pictures)


class FrameStore:
    """Decodes clips and keeps small pictures of them within a bound of memory.

    A clip whose pictures take at most half of the bound is decoded once and kept whole; of a
    longer one only the wanted pictures are kept.

    Attributes:
        decoded: clips decoded so far, for tests and benchmarks.
    """

    def __init__(self, memory: int = MEMORY) -> None:
        self._clips: ByteCache[_Clip] = ByteCache(memory * 3 // 4)
        self._jpegs: ByteCache[bytes] = ByteCache(memory // 4)
        self._infos: ByteCache[MediaInfo] = ByteCache(64 * 2**20)
        self._whole = memory // 2
        self._lock = threading.Lock()
        self.decoded = 0

    @property
    def used(self) -> int:
        """Bytes of pictures held now."""
        return self._clips.used + self._jpegs.used

    def frames(self, source: str, times: Sequence[float], side: int) -> list[bytes]:
        """JPEG pictures shown at the given times.

        Args:
            source: path of the clip, or ``FILE.parquet::ROW``.
            times: seconds from the start of the clip.
            side: longer side of the pictures in pixels; smaller clips are not enlarged.

        Raises:
            MediaError: the clip cannot be read, or a wanted picture cannot be decoded.
        """
        with self._lock:
            key = file_key(source)
            info = self._info(source, key)
            index = shown_index(info.frame_times, times)
            missing = {i for i in index if self._jpegs.get((key, side, i)) is None}
            fresh = self._encode(source, key, info, sorted(missing), side) if missing else {}
            found = []
            for i in index:
                jpeg = fresh.get(i) or self._jpegs.get((key, side, i))
                if jpeg is None:  # pushed out by the fresh ones
                    jpeg = self._encode(source, key, info, [i], side)[i]
                found.append(jpeg)
            return found

    def _info(self, source: str, key: tuple[str, int, int]) -> MediaInfo:
        info = self._infos.get(key)
        if info is None:
            info = probe(source)
            self._infos.put(key, info, info.frame_times.nbytes + 200)
        if not len(info.frame_times):
            raise MediaError(f"{source}: {info.state}: {info.detail}")
        return info

    def _encode(
        self,
        source: str,
        key: tuple[str, int, int],
        info: MediaInfo,
        index: Sequence[int],
        side: int,
    ) -> dict[int, bytes]:
        clip = self._clips.get((key, side))
        if clip is None:
            width, height = scaled(info, side)
            fits = len(info.frame_times) * width * height * 3 // 2 <= self._whole
            wanted = info.frame_times[list(index)]
            clip = decode(source, info, side, None if fits else wanted)
            self.decoded += 1
            if fits:
                self._clips.put((key, side), clip, clip.size)
        fresh = {}
        for i in index:
            picture = _at(clip, info, i, source)
            fresh[i] = to_jpeg(picture, clip.rotation)
            self._jpegs.put((key, side, i), fresh[i], len(fresh[i]))
        return fresh

    def clear(self) -> None:
        """Forgets all clips."""
        with self._lock:
            self._clips.clear()
            self._jpegs.clear()
            self._infos.clear()


def shown_index(frame_times: npt.NDArray[np.float64], times: Sequence[float]) -> list[int]:
    """Position of the picture shown at each time: the last one that has begun."""
    # Container clocks round to microseconds or coarser.
    found = np.searchsorted(frame_times, np.asarray(times) + 1e-6, side="right") - 1
    return [int(i) for i in np.maximum(found, 0)]


def scaled(info: MediaInfo, side: int) -> tuple[int, int]:
    """Stored width and height (before rotation) of small pictures; even numbers."""
    width, height = info.width, info.height
    if info.rotation % 180:
        width, height = height, width
    factor = min(1.0, side / max(width, height, 1))
    return max(2, round(width * factor / 2) * 2), max(2, round(height * factor / 2) * 2)


def decode(
    source: str, info: MediaInfo, side: int, wanted: npt.NDArray[np.float64] | None
) -> _Clip:
    """Decodes a clip in one pass, or only as far as the wanted pictures reach.

    A packet that cannot be decoded costs its own pictures, not the clip.
    """
    av, _ = libraries()
    width, height = scaled(info, side)
    found: list[tuple[float, npt.NDArray[np.uint8]]] = []
    slack = _slack(info)
    try:
        with av.open(open_source(source)) as container:
            stream = video_stream(container)
            if stream is None:
                raise MediaError(f"{source}: holds no moving pictures")
            stream.thread_type = "AUTO"
            origin = start_of(container)
            if wanted is not None and len(wanted):
                first = float(wanted.min()) + origin
                container.seek(int(first / stream.time_base), stream=stream)
            for picture in _pictures(av, container, stream):
                time = picture.time if picture.time is not None else picture.dts
                if time is None:
                    continue
                at = float(time) - origin
                if wanted is not None:
                    if at > float(wanted.max()) + slack:
                        break
                    if np.min(np.abs(wanted - at)) > slack:
                        continue
                small = picture.reformat(width=width, height=height, format="yuv420p")
                found.append((at, small.to_ndarray()))
    except (av.error.FFmpegError, OSError) as e:
        raise MediaError(f"{source}: cannot be decoded ({e})") from e
    found.sort(key=lambda f: f[0])
    return _Clip(np.array([t for t, _ in found], np.float64), [p for _, p in found], info.rotation)


def _pictures(av: Any, container: Any, stream: Any) -> Any:
    try:
        for packet in container.demux(stream):
            try:
                yield from packet.decode()
            except av.error.InvalidDataError:
                continue
    except av.error.InvalidDataError:
        return  # the file breaks off here


def _slack(info: MediaInfo) -> float:
    gaps = np.diff(info.frame_times)
    return 0.5 * float(np.median(gaps)) if len(gaps) else 0.02


def _at(clip: _Clip, info: MediaInfo, i: int, source: str) -> npt.NDArray[np.uint8]:
    wanted = float(info.frame_times[i])
    if len(clip.times):
        nearest = int(np.argmin(np.abs(clip.times - wanted)))
        if abs(float(clip.times[nearest]) - wanted) <= _slack(info):
            return clip.pictures[nearest]
    raise MediaError(f"{source}: the picture at {wanted:.2f} s cannot be decoded")


def to_jpeg(picture: npt.NDArray[np.uint8], rotation: int) -> bytes:
    """A small YUV picture as JPEG, turned upright."""
    av, image = libraries()
    pixels = av.VideoFrame.from_ndarray(picture, format="yuv420p").to_ndarray(format="rgb24")
    upright = np.ascontiguousarray(np.rot90(pixels, rotation // 90))
    out = io.BytesIO()
    image.fromarray(upright).save(out, "JPEG", quality=JPEG_QUALITY)
    return out.getvalue()


_store = FrameStore()


def clip_frames(source: str, times: Sequence[float], side: int = 512) -> list[bytes]:
    """JPEG pictures of a clip at given times, from this process's store.

    See :meth:`FrameStore.frames`.
    """
    return _store.frames(source, times, side)


def set_memory(limit: int) -> None:
    """Bounds the bytes of pictures that this process keeps; forgets what it has."""
    global _store
    _store = FrameStore(limit)
