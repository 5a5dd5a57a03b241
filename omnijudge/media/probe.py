"""What a clip is, found without decoding it: length, tracks, and what is odd about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from omnijudge.media.sources import MediaError, file_key, libraries, open_source

Times = npt.NDArray[np.float64]
SHORTEST_LOSS = 0.5
"""Seconds that a track may lack of the stated length without counting as cut off."""
UNEVEN = 0.2
"""Spread of frame distances, as a share of their median, from which the rate is variable."""


@dataclass(frozen=True)
class MediaInfo:
    """A clip as its file describes it. Times in seconds from the start of the clip.

    Attributes:
        state: ``ok``; ``truncated`` (readable up to ``readable``); or not usable: ``none`` (no
            clip is named), ``missing``, ``unreadable``, ``no_video``, ``zero_duration``.
        detail: the state in words, empty for ``ok``.
        duration: length of the clip as the file states it.
        readable: how far pictures can be read.
        has_audio: there is a sound track with something in it.
        width: of the shown picture, in pixels (after rotation).
        height: likewise.
        rotation: degrees by which stored pictures have to be turned counterclockwise.
        notes: ``no_audio``, ``variable_frame_rate``, ``rotated``.
        frame_times: when each picture is first shown, ascending.
    """

    state: str
    detail: str = ""
    duration: float | None = None
    readable: float | None = None
    has_audio: bool = False
    width: int = 0
    height: int = 0
    rotation: int = 0
    notes: tuple[str, ...] = ()
    frame_times: Times = field(default_factory=lambda: np.empty(0), repr=False, compare=False)


def probe(source: str | None) -> MediaInfo:
    """Looks at a clip: reads its packets and decodes one picture. Never raises for a bad clip.

    Args:
        source: path of the file, or ``FILE.parquet::ROW``; None if no clip is named.

    Raises:
        ResourceError: PyAV is not installed.
    """
    if not source:
        return MediaInfo("none", "no clip is named")
    av, _ = libraries()
    try:
        file_key(source)
        opened = open_source(source)
    except MediaError as e:
        return MediaInfo("missing", str(e))
    try:
        with av.open(opened) as container:
            return _describe(av, container)
    except (av.error.FFmpegError, OSError, ValueError) as e:
        return MediaInfo("unreadable", f"no video file that can be read ({_reason(e)})")


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)


def video_stream(container: Any) -> Any | None:
    """The first stream of moving pictures; a cover picture is none."""
    av, _ = libraries()
    cover = av.stream.Disposition.attached_pic
    return next((s for s in container.streams.video if not s.disposition & cover), None)


def start_of(container: Any) -> float:
    """Start of the clip on the file's own clock, in seconds."""
    return 0.0 if container.start_time is None else container.start_time / 1_000_000


def _describe(av: Any, container: Any) -> MediaInfo:
    video = video_stream(container)
    if video is None:
        return MediaInfo("no_video", "the file holds no moving pictures")
    audio = next(iter(container.streams.audio), None)
    origin = start_of(container)
    shown, last = _packets(av, container, video, audio)
    has_audio = last.get("audio", 0) > 0
    if not shown:
        return MediaInfo("zero_duration", "the video track holds no picture", has_audio=has_audio)
    times = np.sort(np.array(shown, np.float64)) - origin
    readable = last["video"] - origin
    stated = (container.duration or 0) / 1_000_000
    if max(readable, stated) <= 0 or (len(times) < 2 and readable <= 0):
        return MediaInfo("zero_duration", "the clip has no length", has_audio=has_audio)
    picture = _first_picture(av, container, video)
    if picture is None:
        return MediaInfo("unreadable", "not one picture can be decoded", has_audio=has_audio)
    rotation = rotation_of(picture)
    width, height = picture.width, picture.height
    if rotation % 180:
        width, height = height, width
    notes = []
    if not has_audio:
        notes.append("no_audio")
    if _is_uneven(times):
        notes.append("variable_frame_rate")
    if rotation % 360:
        notes.append("rotated")
    state, detail = "ok", ""
    lost = stated - max(readable, last.get("audio_end", 0.0) - origin)
    if lost > max(SHORTEST_LOSS, 0.02 * stated):
        state = "truncated"
        detail = f"the file states {stated:.2f} s and ends after {readable:.2f} s"
    return MediaInfo(
        state,
        detail,
        duration=stated if state == "truncated" else max(readable, 0.0),
        readable=readable,
        has_audio=has_audio,
        width=width,
        height=height,
        rotation=rotation,
        notes=tuple(notes),
        frame_times=times,
    )


def _packets(
    av: Any, container: Any, video: Any, audio: Any
) -> tuple[list[float], dict[str, float]]:
    """Times of all pictures, and where the tracks end; stops where the file breaks off."""
    shown: list[float] = []
    last: dict[str, float] = {"video": 0.0, "audio": 0.0, "audio_end": 0.0}
    streams = [video] if audio is None else [video, audio]
    try:
        for packet in container.demux(streams):
            time = packet.pts if packet.pts is not None else packet.dts
            if time is None or not packet.size:
                continue
            at = float(time * packet.time_base)
            until = at + float((packet.duration or 0) * packet.time_base)
            if packet.stream.type == "video":
                shown.append(at)
                last["video"] = max(last["video"], until)
            else:
                last["audio"] += 1
                last["audio_end"] = max(last["audio_end"], until)
    except av.error.FFmpegError:
        pass
    return shown, last


def _first_picture(av: Any, container: Any, video: Any) -> Any | None:
    try:
        container.seek(0)
        return next(container.decode(video), None)
    except av.error.FFmpegError:
        return None


def rotation_of(picture: Any) -> int:
    """Degrees to turn a decoded picture counterclockwise, a multiple of 90."""
    return round(getattr(picture, "rotation", 0) / 90) * 90 % 360


def _is_uneven(times: Times) -> bool:
    gaps = np.diff(times)
    if len(gaps) < 2:
        return False
    middle = float(np.median(gaps))
    return bool(np.max(np.abs(gaps - middle)) > UNEVEN * middle + 0.002)
