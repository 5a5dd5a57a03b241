"""Windows of time and what falls into them (Omni-DuplexEval rules 2 and 5). Times in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from omnijudge.benchmarks.omni_duplexeval.segments import Segment

DEFAULT_SHIFTS = (-1.0, -4 / 3, -5 / 3, -2.0)
SHORTEST_WINDOW = 0.5
PUBLISHED_SHIFT = 2.0
EPSILON = 1e-6
"""Tolerance at both ends of a reminder window under the robust and paper profiles."""


@dataclass(frozen=True, slots=True)
class Window:
    """A candidate window; ``shift`` is the position of its offset in the list of offsets."""

    shift: int
    start: float
    end: float


def candidate_windows(
    start: float, end: float, duration: float, shifts: Sequence[float] = DEFAULT_SHIFTS
) -> list[Window]:
    """Windows in which what a sentence describes may have happened (paper, section on scoring).

    Args:
        start: start of the sentence.
        end: end of the sentence.
        duration: length of the clip.
        shifts: offsets by which the sentence's interval is moved.

    Returns:
        One window per offset, without those beyond the clip and without repeats.
    """
    found: dict[tuple[float, float], Window] = {}
    for position, shift in enumerate(shifts):
        a = max(0.0, start + shift)
        b = min(max(0.0, end + shift), duration)
        if duration <= 0 or a >= duration:
            continue
        if b - a < SHORTEST_WINDOW:
            b = min(duration, a + SHORTEST_WINDOW)
            a = max(0.0, min(a, b - SHORTEST_WINDOW))
        a, b = round(a, 6), round(b, 6)
        found.setdefault((a, b), Window(position, a, b))
    return list(found.values())


def published_window(start: float, end: float, duration: float) -> Window | None:
    """The one window of the published script; None if it leaves the clip (quirk 1)."""
    # `max` with NaN depends on the order of its arguments; this is the published order.
    a = max(0, start - PUBLISHED_SHIFT)
    b = max(a + SHORTEST_WINDOW, end - PUBLISHED_SHIFT)
    if b <= duration and b - a >= SHORTEST_WINDOW:
        return Window(0, float(a), float(b))
    return None


def frame_times(start: float, end: float, fps: float = 2.0) -> list[float]:
    """Times of the frames shown of a window; the spacing is only about ``1 / fps``."""
    length = end - start
    if length <= 0:
        return []
    count = max(1, int(length * fps))
    if count == 1:
        times = [(start + end) / 2]
    else:
        times = [start + i * length / (count - 1) for i in range(count)]
    last = max(start, end - 0.01)
    return [min(t, last) for t in times]


def thin_out(times: Sequence[float], limit: int) -> list[float]:
    """At most ``limit`` of the times, evenly spread, both ends kept."""
    if len(times) <= limit:
        return list(times)
    if limit == 1:
        return [times[len(times) // 2]]
    step = (len(times) - 1) / (limit - 1)
    return [times[round(i * step)] for i in range(limit)]


def reminder_bounds(
    events: Sequence[float], size: float, tolerance: float = 0.0, exclusive: bool = False
) -> list[tuple[float, float]]:
    """Time range in which a reply to each event counts, both ends included.

    Args:
        events: event times in annotation order.
        size: length of the window after the event.
        tolerance: added at both ends.
        exclusive: end a window just before the next later event, so that no reply serves both.
    """
    bounds = []
    for event in events:
        low, high = event - tolerance, event + size + tolerance
        later = [e for e in events if e > event]
        if exclusive and later:
            high = min(high, min(later) - 2 * tolerance)
        bounds.append((low, high))
    return bounds


def replies_within(segments: Sequence[Segment], low: float, high: float) -> list[int]:
    """Positions of the segments whose event time lies in the range, in file order."""
    return [i for i, s in enumerate(segments) if low <= s.event_time <= high]


def joined(segments: Sequence[Segment]) -> str:
    """Their texts, joined by blanks."""
    return " ".join(s.text for s in segments)


def spoken_seconds(segments: Sequence[Segment], duration: float) -> float:
    """Length of the union of the segments' intervals inside the clip."""
    total, covered = 0.0, 0.0
    for segment in sorted(segments, key=lambda s: (s.start, s.end)):
        a, b = max(segment.start, covered), min(segment.end, duration)
        if b > a:
            total += b - a
            covered = b
    return total
