"""From a response file to segments: the published readings and the one of the paper profile.

The published scripts read description and reminder files by different rules and let one bad time
spoil a whole file (Omni-DuplexEval rule 1, quirks 6 to 8). The ``robust`` and ``paper`` profiles
read both kinds alike and reject bad segments one by one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

TEXT_KEYS = ("sentence", "text", "content")


class UnreadableResponse(Exception):
    """The published scripts fail on this response; the sample has no result."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of what a system said.

    Attributes:
        text: trimmed, never blank.
        start: start in seconds.
        end: end in seconds, not before ``start``.
        event_time: the time that counts for reminders, in seconds.
    """

    text: str
    start: float
    end: float
    event_time: float


@dataclass(frozen=True, slots=True)
class Reading:
    """A response as read.

    Attributes:
        segments: in file order; None if the file is no transcript at all.
        rejected: segments set aside because of their times or shape.
    """

    segments: tuple[Segment, ...] | None
    rejected: int = 0


def read_published_description(data: Any) -> tuple[Segment, ...]:
    """Segments of a real-time description, as the published script reads them.

    Raises:
        UnreadableResponse: no list of segments, or a time that is no number.
    """
    found = []
    for segment in _published_list(data, ("sentences", "chunks")):
        text = _published_text(segment, TEXT_KEYS)
        if not text:
            continue
        # An empty or zero value counts as absent here, so a null `start` becomes 0 although
        # `current_time` is filled (quirk 6).
        fallback = segment.get("current_time") or segment.get("time")
        start = _number((segment["start"] or 0) if "start" in segment else (fallback or 0))
        end = _number((segment["end"] or start) if "end" in segment else (fallback or start))
        end = start if end < start else end
        found.append(Segment(text, start, end, start))
    return tuple(found)


def read_published_reminder(data: Any) -> tuple[Segment, ...]:
    """Segments of a proactive-reminder response, as the published script reads them.

    Raises:
        UnreadableResponse: no list of segments, or a time that is no number.
    """
    found = []
    for segment in _published_list(data, ("chunks", "sentences")):
        text = _published_text(segment, ("text", "sentence", "content"))
        if not text:
            continue
        key = next((k for k in ("current_time", "start", "time") if k in segment), None)
        time = _number((segment[key] if key else 0) or 0)
        found.append(Segment(text, time, time, time))
    return tuple(found)


def read_segments(data: Any) -> Reading:
    """Segments of either kind of response under the ``robust`` and ``paper`` profiles."""
    elements = _segment_list(data, ("sentences", "chunks"))
    if elements is None:
        return Reading(None)
    found, rejected = [], 0
    for element in elements:
        if not isinstance(element, dict):
            rejected += 1
            continue
        text = next((t for k in TEXT_KEYS if (t := _filled_text(element.get(k)))), None)
        if text is None:
            continue
        start = finite_number(_first_filled(element, ("start", "current_time", "time")))
        event_time = finite_number(_first_filled(element, ("current_time", "start", "time")))
        end = start if element.get("end") is None else finite_number(element["end"])
        if start is None or event_time is None or end is None:
            rejected += 1
            continue
        start = max(0.0, start)
        found.append(Segment(text, start, max(start, end), event_time))
    return Reading(tuple(found), rejected)


def finite_number(value: Any) -> float | None:
    """A finite number or numeric text as float; None for anything else, booleans included."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _segment_list(data: Any, keys: Sequence[str]) -> list[Any] | None:
    if isinstance(data, list):
        return data
    if isinstance(data, dict):
        return next((data[k] for k in keys if isinstance(data.get(k), list)), None)
    return None


def _published_list(data: Any, keys: Sequence[str]) -> list[dict[str, Any]]:
    elements = _segment_list(data, keys)
    if elements is None:
        raise UnreadableResponse("holds neither a list nor a list `sentences` or `chunks`")
    return [e for e in elements if isinstance(e, dict)]


def _published_text(segment: dict[str, Any], keys: Sequence[str]) -> str | None:
    # The first key that is present decides, even if it is null and another one is filled.
    key = next((k for k in keys if k in segment), None)
    return _filled_text(segment[key]) if key else None


def _filled_text(value: Any) -> str | None:
    return (value.strip() or None) if isinstance(value, str) else None


def _first_filled(segment: dict[str, Any], keys: Sequence[str]) -> Any:
    return next((segment[k] for k in keys if segment.get(k) is not None), None)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise UnreadableResponse(f"time {value!r} is no number") from None
