"""Controls beside the main table (InteractScope rules 9 and 11), from the tables of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnijudge.benchmarks.omni_interactscope.responses import tool_set
from omnijudge.benchmarks.omni_interactscope.schemas import TARGET
from omnijudge.benchmarks.omni_interactscope.sequences import (
    SequenceReference,
    Stratum,
    sequence_reference,
    sequence_strata,
)
from omnijudge.benchmarks.omni_interactscope.windows import (
    TASKS,
    TOOL_TASK,
    is_inside,
    target_windows,
)
from omnijudge.errors import ConfigError, DataError
from omnijudge.statistics.permutation import PairedControl, paired_control

if TYPE_CHECKING:
    from omnijudge.api import Run

TOOLS = TASKS[TOOL_TASK]
DELAYS = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
"""Seconds after the request at which a frozen choice is replayed."""


def scene_control(
    run: Run, with_scene: str, without_scene: str, task: str = TOOLS
) -> PairedControl:
    """One model with and without the scene, both systems of one run, target by target (rule 9).

    Args:
        run: a finished run.
        with_scene: the system that saw and heard the recording.
        without_scene: the same model, given the requests alone.
        task: task whose targets are compared.

    Returns:
        Counts (first: with the scene), difference in points, exact McNemar p-value (the test is
        an addition of ours).

    Raises:
        ConfigError: no such system or task, or a run of another benchmark.
        DataError: the two share no scored target of the task.
    """
    if task not in TASKS:
        raise ConfigError(f"task {task!r} is unknown; there are {', '.join(TASKS)}")
    first, second = (_scores_of(run, name) for name in (with_scene, without_scene))
    return paired_scene_control(first, second, task)


def paired_scene_control(
    with_scene: pa.Table, without_scene: pa.Table, task: str = TOOLS
) -> PairedControl:
    """The same from the score rows of two systems, of one run or two.

    Raises:
        DataError: they share no scored target.
    """
    first, second = _successes(with_scene, task), _successes(without_scene, task)
    shared = sorted(first.keys() & second.keys())
    if not shared:
        raise DataError(f"no target of {task} is scored for both systems")
    return paired_control([first[k] for k in shared], [second[k] for k in shared])


def _successes(scores: pa.Table, task: str) -> dict[tuple[str, str], int]:
    names = ("sample_id", "unit_id", "unit_kind", "task", "success", "judged")
    return {
        (row["sample_id"], row["unit_id"]): row["success"]
        for row in scores.select(names).to_pylist()
        if row["unit_kind"] == TARGET and row["task"] == task and row["judged"] is not False
    }


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


def delay_replay(
    run: Run,
    system: str | None = None,
    delays: Sequence[float] = DELAYS,
    tools: Mapping[str, Sequence[str]] | None = None,
) -> list[FixedDelay]:
    """Replays a frozen choice of tools at fixed delays, under the options of a run (rule 9).

    Args:
        run: a finished run.
        system: whose choice is frozen; not needed if ``tools`` are given.
        delays: seconds after the request.
        tools: interaction id -> names of the tools; None: what the system called first.

    Raises:
        ConfigError: no such system, or a run of another benchmark.
    """
    manifest = _manifest(run)
    if tools is None:
        if system is None:
            raise ConfigError("name a system whose choice of tools is replayed, or give the tools")
        _check_system(run, system)
        chunks = run.table("chunks")
        tools = frozen_tools(chunks.filter(pc.equal(chunks["system"], system)))
    options = manifest["scoring"]
    return fixed_delay_replay(
        run.units, tools, delays, options["tolerance"], options["tool_case_sensitive"]
    )


def frozen_tools(chunks: pa.Table) -> dict[str, tuple[str, ...]]:
    """The tools a system called first in each interaction: those of its first effective response
    that calls any.

    Args:
        chunks: chunks of one system, matched (``chunks.parquet``).
    """
    names = ("sample_id", "start", "chunk_id", "response", "tools")
    rows = [r for r in chunks.select(names).to_pylist() if r["response"] is not None and r["tools"]]
    rows.sort(key=lambda r: (r["start"], r["chunk_id"]))
    first: dict[str, int] = {}
    found: dict[str, list[str]] = {}
    for row in rows:
        sample = row["sample_id"]
        if first.setdefault(sample, row["response"]) == row["response"]:
            found.setdefault(sample, []).extend(row["tools"])
    return {sample: tuple(names) for sample, names in found.items()}


def fixed_delay_replay(
    units: pa.Table,
    tools: Mapping[str, Sequence[str]],
    delays: Iterable[float],
    tolerance: float = 2.0,
    tool_case_sensitive: bool = True,
) -> list[FixedDelay]:
    """Replays a frozen choice of tools at fixed delays after the request (T1).

    Not comparable with the main table: the choice was made with more to see than a system has at
    that moment. The one reply of an interaction counts for its first target.

    Args:
        units: unit table.
        tools: interaction id -> names of the tools called.
        delays: seconds after the request.
        tolerance: seconds.
        tool_case_sensitive: tool names differ by case.
    """
    names = ["sample_id", "position", "tools", "ref_start", "ref_end", "request_time"]
    rows = [
        row
        for row in units.select([*names, "unit_kind", "task"]).to_pylist()
        if row["unit_kind"] == TARGET and row["task"] == TOOLS
    ]
    replies = [r for r in rows if r["position"] == 1 and r["sample_id"] in tools]
    start, end, request = (
        np.array([r[name] for r in replies], dtype=np.float64)
        for name in ("ref_start", "ref_end", "request_time")
    )
    low, high = target_windows(np.full(len(replies), TOOL_TASK), start, end, request, tolerance)

    def names_of(called: Sequence[str]) -> frozenset[str]:
        return tool_set(called, tool_case_sensitive)

    right = np.array(
        [names_of(tools[r["sample_id"]]) == names_of(r["tools"] or ()) for r in replies],
        dtype=np.bool_,
    )
    found = []
    for delay in delays:
        on_time = is_inside(request + delay, low, high)
        successes = int((on_time & right).sum())
        found.append(FixedDelay(float(delay), successes, int(on_time.sum()), len(rows)))
    return found


@dataclass(frozen=True, slots=True)
class CompleteSequences:
    """Complete sequences of one system beside what independent steps would give (rule 11).

    Attributes:
        system: its name.
        strata: the sequences by length, with the successes at each step.
        reference: the law of the number of complete ones.
    """

    system: str
    strata: tuple[Stratum, ...]
    reference: SequenceReference


def complete_sequences(run: Run, task: str = "T8-C") -> list[CompleteSequences]:
    """The permutation reference of every system of a run that has sequences of a task.

    Raises:
        ConfigError: no such task, or a run of another benchmark.
    """
    _manifest(run)
    if task not in TASKS:
        raise ConfigError(f"task {task!r} is unknown; there are {', '.join(TASKS)}")
    scores = run.scores
    found = []
    for system in pc.unique(scores["system"]).to_pylist():
        strata, observed = sequence_strata(scores.filter(pc.equal(scores["system"], system)), task)
        if strata:
            reference = sequence_reference(strata, observed)
            found.append(CompleteSequences(system, tuple(strata), reference))
    return found


def _manifest(run: Run) -> dict[str, Any]:
    manifest = run.manifest
    name = manifest.get("config", {}).get("benchmark")
    if name is None:
        raise DataError(f"{run.path}: the run has not ended yet; run its configuration again")
    if name != "omni_interactscope":
        raise ConfigError(f"{run.path}: a run of {name}; this is about omni_interactscope")
    return manifest


def _check_system(run: Run, system: str) -> None:
    known = pc.unique(run.table("outputs")["system"]).to_pylist()
    if system not in known:
        raise ConfigError(f"system {system!r} is not in {run.path}; there are {', '.join(known)}")


def _scores_of(run: Run, system: str) -> pa.Table:
    _manifest(run)
    _check_system(run, system)
    scores = run.scores
    return scores.filter(pc.equal(scores["system"], system))
