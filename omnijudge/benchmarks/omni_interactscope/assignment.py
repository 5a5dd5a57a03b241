"""From a partition's tables to arrays: who may answer which target, before any verdict.

Everything here follows from times, so it is the same whatever the judge says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnijudge.benchmarks.omni_interactscope.matching import (
    MISSING,
    ON_TIME,
    Codes,
    first_response,
    responses_inside,
)
from omnijudge.benchmarks.omni_interactscope.responses import (
    Responses,
    effective_responses,
    is_silence,
)
from omnijudge.benchmarks.omni_interactscope.schemas import TARGET
from omnijudge.benchmarks.omni_interactscope.windows import (
    FIRST_ORDERED_TASK,
    TASKS,
    TOOL_TASK,
    UNPROMPTED_TASK,
    Bools,
    Floats,
    Ints,
    target_windows,
)

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Partition
    from omnijudge.benchmarks.omni_interactscope.options import Options


@dataclass(frozen=True, eq=False)
class Samples:
    """The interactions of a block that count for the system (rule 1, not evaluated ones left out).

    Attributes:
        unit_rows: row of the interaction's own unit, (samples,).
        task: places in ``TASKS``, (samples,).
        request_time: seconds; NaN for T8-A.
        observed_seconds: from the request (T8-A: the clip's start) to the clip's end; 0 where the
            trajectory is missing.
        missing: the system's output is missing or unreadable.
    """

    unit_rows: Ints
    task: Ints
    request_time: Floats
    observed_seconds: Floats
    missing: Bools

    def __len__(self) -> int:
        return len(self.unit_rows)


@dataclass(frozen=True, eq=False)
class Assignment:
    """Targets and responses of a block, and what times decide about them.

    Attributes:
        samples: the interactions.
        unit_rows: row of each target in the unit table, in target order, (targets,).
        offsets: CSR offsets of the targets by sample, (samples + 1,).
        sample: sample of each target, (targets,).
        task: place in ``TASKS`` of each target.
        low: lower ends of the windows in seconds.
        high: upper ends.
        responses: effective responses.
        first: first response inside each window, a place among all responses.
        inside: number of responses inside each window.
        taken: response a T1..T7 target takes, -1 for none and for T8.
        timing: ``MISSING``, ``EARLY``, ``LATE`` or ``ON_TIME`` of what it takes.
    """

    samples: Samples
    unit_rows: Ints
    offsets: Ints
    sample: Ints
    task: Ints
    low: Floats
    high: Floats
    responses: Responses
    first: Ints
    inside: Ints
    taken: Ints
    timing: Codes

    @property
    def ordered(self) -> Bools:
        """Targets matched in order (T8)."""
        return self.task >= FIRST_ORDERED_TASK

    def __len__(self) -> int:
        return len(self.unit_rows)


@dataclass(frozen=True, eq=False)
class Pairs:
    """(target, response) pairs a judge could be asked about: those inside a window, T1 left out.

    Attributes:
        offsets: CSR offsets by target, (targets + 1,).
        target: place of the target, (pairs,).
        response: place of the response, (pairs,).
        needed: the verdict can change a score: the pair of the response taken on time (T2..T7),
            every pair of T8 (rule 4, lazy calls).
    """

    offsets: Ints
    target: Ints
    response: Ints
    needed: Bools


def assign(part: Partition, options: Options) -> Assignment:
    """Windows, effective responses, and first-response assignment of a partition."""
    samples, place = _samples(part)
    unit_rows, sample = _targets(part.units, place)
    offsets = _offsets(sample, len(samples))
    task = samples.task[sample]
    start = _floats(part.units["ref_start"])[unit_rows]
    end = _floats(part.units["ref_end"])[unit_rows]
    low, high = target_windows(task, start, end, samples.request_time[sample], options.tolerance)
    responses = _responses(part.chunks, place, samples, options)
    first, last = responses_inside(responses.time, responses.offsets, low, high, offsets)
    taken = np.full(len(unit_rows), -1, dtype=np.int64)
    timing = np.full(len(unit_rows), MISSING, dtype=np.int8)
    walked = np.flatnonzero(task < FIRST_ORDERED_TASK)
    taken[walked], timing[walked] = first_response(
        responses.time,
        responses.offsets,
        low[walked],
        high[walked],
        end[walked],
        _offsets(sample[walked], len(samples)),
        options.first_response_variant,
    )
    return Assignment(
        samples,
        unit_rows,
        offsets,
        sample,
        task,
        low,
        high,
        responses,
        first,
        last - first,
        taken,
        timing,
    )


def pairs(assignment: Assignment) -> Pairs:
    """The pairs a judge could be asked about, by target, then response."""
    a = assignment
    counts = np.where(a.task == TOOL_TASK, 0, a.inside)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    target = np.repeat(np.arange(len(a)), counts)
    response = a.first[target] + np.arange(len(target)) - offsets[target]
    on_time = (a.timing[target] == ON_TIME) & (response == a.taken[target])
    return Pairs(offsets, target, response, a.ordered[target] | on_time)


def chunk_owners(assignment: Assignment, n_chunks: int) -> tuple[Ints, Ints]:
    """Per chunk row the response it is part of and the target it was given to; -1 for none.

    A T8 response is given to the first target whose window holds it: which one it is matched
    with is known only after the verdicts.
    """
    a = assignment
    of_response = np.full(len(a.responses), -1, dtype=np.int64)
    inside = pairs(a)
    early = inside.target[a.ordered[inside.target]][::-1]
    of_response[inside.response[a.ordered[inside.target]][::-1]] = early
    has = np.flatnonzero(a.taken >= 0)
    of_response[a.taken[has]] = has
    response = np.full(n_chunks, -1, dtype=np.int64)
    counts = np.diff(a.responses.member_offsets)
    response[a.responses.members] = np.repeat(np.arange(len(a.responses)), counts)
    target = np.where(response >= 0, of_response[response] if len(of_response) else -1, -1)
    return response, target


def _samples(part: Partition) -> tuple[Samples, pa.Array]:
    """Evaluated samples in the order of the block, and their ids."""
    outputs = part.outputs.filter(pc.not_equal(part.outputs["state"], "not_evaluated"))
    ids = _one(outputs["sample_id"])
    rows = np.flatnonzero(~_equal(part.units["unit_kind"], TARGET))
    own = part.units.take(pa.array(rows))
    where = _places(ids, own["sample_id"])
    if (where < 0).any():
        missing = ids[int(np.argmax(where < 0))].as_py()
        raise ValueError(f"interaction {missing!r} has outputs but no units")
    own, rows = own.take(pa.array(where)), rows[where]
    task = _task_codes(own["task"])
    missing = ~_equal(outputs["state"], "ok")
    request_time = np.where(task == UNPROMPTED_TASK, np.nan, _floats(own["request_time"]))
    begin = np.where(np.isnan(request_time), _floats(own["clip_start"]), request_time)
    observed = np.where(missing, 0.0, _floats(own["clip_end"]) - begin)
    return Samples(rows, task, request_time, observed, missing), ids


def _targets(units: pa.Table, ids: pa.Array) -> tuple[Ints, Ints]:
    """Unit rows of the samples' targets, by sample and position; and their samples."""
    rows = np.flatnonzero(_equal(units["unit_kind"], TARGET))
    sample = _places(units["sample_id"].take(pa.array(rows)), ids)
    position = units["position"].take(pa.array(rows)).to_numpy()
    kept = np.flatnonzero(sample >= 0)
    if (
        (np.diff(sample[kept]) < 0) | ((np.diff(sample[kept]) == 0) & (np.diff(position[kept]) < 0))
    ).any():
        kept = kept[np.lexsort((position[kept], sample[kept]))]
    return rows[kept], sample[kept]


def _responses(chunks: pa.Table, ids: pa.Array, samples: Samples, options: Options) -> Responses:
    sample = _places(chunks["sample_id"], ids)
    # Chunks of interactions outside the block (or not evaluated) are silence here.
    outside = sample < 0
    has_tools = np.asarray(
        pc.fill_null(pc.list_value_length(chunks["tools"]), 0).to_numpy(), dtype=np.int64
    )
    silent = is_silence(_one(chunks["text"]), has_tools > 0) | outside
    return effective_responses(
        np.where(outside, 0, sample) if len(samples) else sample,
        _floats(chunks["start"]),
        chunks["chunk_id"].to_numpy(),
        silent,
        _equal(chunks["granularity"], "fragment"),
        samples.request_time,
        options,
    )


def _offsets(sample: Ints, samples: int) -> Ints:
    return np.concatenate([[0], np.cumsum(np.bincount(sample, minlength=samples))]).astype(np.int64)


def _task_codes(task: pa.ChunkedArray) -> Ints:
    return np.asarray(pc.index_in(task, value_set=pa.array(TASKS)).to_numpy(), dtype=np.int64)


def _places(values: pa.ChunkedArray, among: pa.ChunkedArray) -> Ints:
    """Place of each value among others; -1 where it is not there."""
    found = pc.fill_null(pc.index_in(values, value_set=_one(among)), -1)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)


def _equal(column: pa.ChunkedArray, value: str) -> Bools:
    found = pc.fill_null(pc.equal(column, value), False)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _floats(column: pa.ChunkedArray) -> Floats:
    """A column of seconds, NaN for null."""
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
