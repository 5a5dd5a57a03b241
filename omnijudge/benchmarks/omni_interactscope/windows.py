"""When a response is on time: tasks and their windows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

EPSILON = 1e-6
"""Seconds by which a window is wider than written: 8.3 - 2 is not 6.3 in floating point."""

FIRST_RESPONSE_TASKS = ("T1", "T2", "T3", "T4", "T5", "T6", "T7")
ORDERED_TASKS = ("T8-A", "T8-B", "T8-C")
TASKS = FIRST_RESPONSE_TASKS + ORDERED_TASKS
SIX_TASKS = ("T1", "T2", "T3", "T4", "T6", "T7")
"""The tasks of the explicit panel's average; T5 is diagnostic only."""

TOOL_TASK = TASKS.index("T1")
UNPROMPTED_TASK = TASKS.index("T8-A")
FIRST_ORDERED_TASK = len(FIRST_RESPONSE_TASKS)
"""Task codes (places in ``TASKS``) from here on are matched in order, below by first response."""


def target_windows(
    task: npt.NDArray[np.integer],
    start: Floats,
    end: Floats,
    request_time: Floats,
    tolerance: float,
) -> tuple[Floats, Floats]:
    """Closed windows of targets (InteractScope rule 3).

    Args:
        task: places in ``TASKS``, (targets,).
        start: reference time, or start of the annotated interval, in seconds.
        end: reference time, or end of the annotated interval.
        request_time: when the request was made; NaN where there is none.
        tolerance: seconds.

    Returns:
        Lower and upper ends in seconds. A lower end above the upper one (the request came after
        the window) means that nothing can match.
    """
    widen = np.where(task == UNPROMPTED_TASK, 0.0, tolerance)
    low, high = start - widen, end + widen
    # NaN compares false: without a request nothing is clipped.
    clipped = (task > UNPROMPTED_TASK) & (request_time > low)
    return np.where(clipped, request_time, low), high


def is_inside(time: Floats, low: Floats, high: Floats) -> Bools:
    """Whether times lie in closed windows, by ``EPSILON`` more at both ends."""
    inside: Bools = (low - EPSILON <= time) & (time <= high + EPSILON)
    return inside
