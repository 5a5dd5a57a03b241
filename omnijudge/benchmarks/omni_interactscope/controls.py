"""Controls beside the main table (InteractScope rule 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
import pyarrow as pa

from omnijudge.benchmarks.omni_interactscope.responses import tool_set
from omnijudge.benchmarks.omni_interactscope.schemas import TARGET
from omnijudge.benchmarks.omni_interactscope.windows import (
    TASKS,
    TOOL_TASK,
    is_inside,
    target_windows,
)


@dataclass(frozen=True, slots=True)
class PairedControl:
    """Successes of one system on the same targets with and without the scene.

    Attributes:
        with_scene: successes with it.
        without_scene: successes without it.
        both: targets that succeed either way.
        neither: targets that fail either way.
        only_with: targets that succeed only with it.
        only_without: targets that succeed only without it.
        difference_points: with minus without, in percentage points.
        p_value: exact two-sided McNemar test (an addition of ours).
    """

    with_scene: int
    without_scene: int
    both: int
    neither: int
    only_with: int
    only_without: int
    difference_points: float
    p_value: float


def paired_control(with_scene: Sequence[int], without_scene: Sequence[int]) -> PairedControl:
    """Compares successes (1) and failures (0) of the same targets in the same order.

    Raises:
        ValueError: the two differ in length or are empty.
    """
    if len(with_scene) != len(without_scene) or not len(with_scene):
        raise ValueError(
            f"a paired control needs the same targets twice; found {len(with_scene)} and "
            f"{len(without_scene)}"
        )
    a = np.asarray(with_scene, dtype=np.bool_)
    b = np.asarray(without_scene, dtype=np.bool_)
    only_with, only_without = int((a & ~b).sum()), int((b & ~a).sum())
    return PairedControl(
        with_scene=int(a.sum()),
        without_scene=int(b.sum()),
        both=int((a & b).sum()),
        neither=int((~a & ~b).sum()),
        only_with=only_with,
        only_without=only_without,
        difference_points=100.0 * (int(a.sum()) - int(b.sum())) / len(a),
        p_value=mcnemar_exact(only_with, only_without),
    )


def paired_scene_control(
    with_scene: pa.Table, without_scene: pa.Table, task: str = "T1"
) -> PairedControl:
    """The same from two score tables, on the targets of a task that are scored in both.

    Raises:
        ValueError: they share no scored target.
    """
    first, second = _successes(with_scene, task), _successes(without_scene, task)
    shared = sorted(first.keys() & second.keys())
    return paired_control([first[k] for k in shared], [second[k] for k in shared])


def _successes(scores: pa.Table, task: str) -> dict[tuple[str, str], int]:
    names = ("sample_id", "unit_id", "unit_kind", "task", "success", "judged")
    return {
        (row["sample_id"], row["unit_id"]): row["success"]
        for row in scores.select(names).to_pylist()
        if row["unit_kind"] == TARGET and row["task"] == task and row["judged"] is not False
    }


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """Exact two-sided McNemar p-value from the two counts of discordant pairs."""
    n = only_first + only_second
    if n == 0:
        return 1.0
    tail = sum(comb(n, i) for i in range(min(only_first, only_second) + 1))
    return float(min(1.0, 2 * tail / 2**n))


@dataclass(frozen=True, slots=True)
class FixedDelay:
    """What a fixed delay after the request would have earned with a frozen choice of tools.

    Attributes:
        delay: seconds after the request.
        successes: right tools inside the window.
        on_time: replies inside the window.
        targets: all T1 targets, those without a frozen choice included.
    """

    delay: float
    successes: int
    on_time: int
    targets: int


def fixed_delay_replay(
    units: pa.Table,
    frozen_tools: Mapping[str, Sequence[str]],
    delays: Sequence[float],
    tolerance: float = 2.0,
) -> list[FixedDelay]:
    """Replays a frozen choice of tools at fixed delays after the request (T1).

    Not comparable with the main table: the choice was made with more to see than a system has at
    that moment. The one reply of an interaction counts for its first target.

    Args:
        units: unit table.
        frozen_tools: interaction id -> names of the tools called.
        delays: seconds after the request.
        tolerance: seconds.
    """
    names = ["sample_id", "position", "tools", "ref_start", "ref_end", "request_time"]
    rows = [
        row
        for row in units.select([*names, "unit_kind", "task"]).to_pylist()
        if row["unit_kind"] == TARGET and row["task"] == TASKS[TOOL_TASK]
    ]
    replies = [r for r in rows if r["position"] == 1 and r["sample_id"] in frozen_tools]
    start, end, request = (
        np.array([r[name] for r in replies], dtype=np.float64)
        for name in ("ref_start", "ref_end", "request_time")
    )
    low, high = target_windows(np.full(len(replies), TOOL_TASK), start, end, request, tolerance)
    right = np.array(
        [tool_set(frozen_tools[r["sample_id"]]) == tool_set(r["tools"] or ()) for r in replies],
        dtype=np.bool_,
    )
    found = []
    for delay in delays:
        on_time = is_inside(request + delay, low, high)
        successes = int((on_time & right).sum())
        found.append(FixedDelay(float(delay), successes, int(on_time.sum()), len(rows)))
    return found
