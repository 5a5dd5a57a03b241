"""One annotation row: splits, tasks, references, event times (Omni-DuplexEval rules 1, 3, 5)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

DESCRIPTION_SPLITS = (
    "RTD_counting",
    "RTD_interaction_relation",
    "RTD_Omni",
    "RTD_world_knowledge",
    "RTD_OCR",
    "RTD_fine_grained_movement",
)
REMINDER_SPLITS = ("PR_event_reminder", "PR_post_event_reminder", "PR_correction")
SPLITS = DESCRIPTION_SPLITS + REMINDER_SPLITS

EVENT, POST_EVENT, CORRECTION = "proactive_reminder", "post_event_reminder", "correction"
TASK_NAMES = {
    EVENT: EVENT,
    "event_reminder": EVENT,
    "pr_event_reminder": EVENT,
    POST_EVENT: POST_EVENT,
    "pr_post_event_reminder": POST_EVENT,
    CORRECTION: CORRECTION,
    "pr_correction": CORRECTION,
}


def task_of_name(name: str) -> str:
    """Canonical name of a reminder task; case, hyphens and blanks do not count.

    Raises:
        ValueError: no task of that name.
    """
    key = name.strip().lower().replace("-", "_").replace(" ", "_")
    if key not in TASK_NAMES:
        raise ValueError(f"{name!r} is no reminder task; there are {', '.join(TASK_NAMES)}")
    return TASK_NAMES[key]


def task_of_split(split: str) -> str:
    """Reminder task that the name of a split stands for."""
    name = split.lower()
    if "correction" in name:
        return CORRECTION
    return POST_EVENT if "post_event" in name else EVENT


def is_description(split: str) -> bool:
    """Whether a split belongs to the scene real-time description."""
    return split.startswith("RTD")


def references(texts: Iterable[Any]) -> list[str]:
    """Reference answers: trimmed, blanks and exact repeats dropped, order kept."""
    trimmed = (t.strip() for t in texts if isinstance(t, str))
    return list(dict.fromkeys(t for t in trimmed if t))


def published_cell(value: Any) -> float | None:
    """A reminder cell as the published script reads it: NaN passes, true is 1 (quirk 13)."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class Reminder:
    """An event time as the published reader keeps it; ``cell`` is the number of its column."""

    cell: int
    start: float
    end: float


def published_reminders(row: Mapping[str, Any]) -> list[Reminder]:
    """Event times of a row in its three possible cells, unsorted, as published."""
    found = []
    for cell in (1, 2, 3):
        value = row.get(f"reminder_{cell}")
        if value is None:
            value = row.get(f"reminder{cell}")
        span = value if isinstance(value, Mapping) else {"start": value}
        start, end = published_cell(span.get("start")), published_cell(span.get("end"))
        if start is not None:
            found.append(Reminder(cell, start, start if end is None else end))
    return found


def event_times(row: Mapping[str, Any], published: bool) -> list[float]:
    """Usable event times in seconds, in annotation order; the first two cells only.

    Under the robust and paper profiles a time has to be a finite number.
    """
    times = []
    for name in ("reminder1", "reminder2"):
        value = row.get(name)
        time = published_cell(value)
        if time is None:
            continue
        if published or (math.isfinite(time) and not isinstance(value, bool)):
            times.append(time)
    return times
