"""Statuses and score rows (InteractScope rules 4 to 8)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnijudge import tables
from omnijudge.benchmarks.omni_interactscope.answers import FIELD
from omnijudge.benchmarks.omni_interactscope.assignment import Assignment, Pairs, assign, pairs
from omnijudge.benchmarks.omni_interactscope.matching import (
    EARLY,
    LATE,
    ON_TIME,
    Codes,
    match_in_order,
)
from omnijudge.benchmarks.omni_interactscope.responses import tool_set
from omnijudge.benchmarks.omni_interactscope.schemas import INTERACTION, SCORE_SCHEMA, TARGET
from omnijudge.benchmarks.omni_interactscope.windows import TASKS, TOOL_TASK, Bools, Ints

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Partition
    from omnijudge.benchmarks.omni_interactscope.options import Options

YES, NO, UNUSABLE, UNASKED = 1, 0, -1, -2
"""Verdicts: equivalent or not; no usable answer; not asked or not answered yet."""

FIRST_RESPONSE_STATUSES = ("success", "early", "late", "wrong_content", "missing", "judge_error")
ORDERED_STATUSES = (
    "matched",
    "order_conflict",
    "wrong_content",
    "no_timely_response",
    "missing_trajectory",
    "judge_error",
)
STATUSES = tuple(dict.fromkeys(FIRST_RESPONSE_STATUSES + ORDERED_STATUSES))
SUCCESSES = ("success", "matched")
UNDECIDED = -1
"""Code of a status that still waits for a verdict; the others are places in ``STATUSES``."""

LONGEST_SEQUENCE = 10
"""Sequences with more targets leave ``expected_complete`` undefined."""

_CODE = {name: np.int8(code) for code, name in enumerate(STATUSES)}


def score(part: Partition, options: Options) -> pa.Table:
    """Score rows of a partition: its units in their order, interactions not evaluated left out."""
    assignment = assign(part, options)
    asked = pairs(assignment)
    verdict = pair_verdicts(part, assignment, asked)
    status, response = statuses(part, assignment, asked, verdict, options)
    return _table(part, assignment, asked, verdict, status, response, options)


def statuses(
    part: Partition,
    assignment: Assignment,
    asked: Pairs,
    verdict: Codes,
    options: Options,
) -> tuple[Codes, Ints]:
    """Status of every target, and the response it was scored with.

    Args:
        part: the partition (tool names of T1 are looked up in it).
        assignment: what times decide.
        asked: the pairs inside windows.
        verdict: ``YES``, ``NO``, ``UNUSABLE`` or ``UNASKED`` by pair.
        options: ``tool_case_sensitive`` counts.

    Returns:
        (status, response): places in ``STATUSES`` or ``UNDECIDED``; places among the responses,
        -1 for none.
    """
    a = assignment
    status = np.full(len(a), _CODE["missing"], dtype=np.int8)
    status[a.timing == EARLY] = _CODE["early"]
    status[a.timing == LATE] = _CODE["late"]
    of_verdict = np.empty(4, dtype=np.int8)
    of_verdict[[YES, NO, UNUSABLE, UNASKED]] = (
        _CODE["success"],
        _CODE["wrong_content"],
        _CODE["judge_error"],
        UNDECIDED,
    )
    assigned = asked.needed & ~a.ordered[asked.target]
    status[asked.target[assigned]] = of_verdict[verdict[assigned]]
    tools = np.flatnonzero((a.task == TOOL_TASK) & (a.timing == ON_TIME))
    status[tools] = np.where(
        same_tools(part, a, tools, options), _CODE["success"], _CODE["wrong_content"]
    )
    matched = match_in_order(
        asked.target,
        asked.response,
        (verdict == YES) & a.ordered[asked.target],
        a.responses.offsets,
        a.offsets,
    )
    ordered = np.flatnonzero(a.ordered)
    status[ordered] = _ordered_statuses(a, asked, verdict, matched)[ordered]
    return status, np.where(a.ordered, matched, a.taken)


def _ordered_statuses(a: Assignment, asked: Pairs, verdict: Codes, matched: Ints) -> Codes:
    """Statuses of T8: the first that applies (rule 7)."""

    def any_pair(condition: Bools) -> Bools:
        return np.bincount(asked.target[condition], minlength=len(a)) > 0

    unasked = np.zeros(len(a.samples), dtype=np.bool_)
    unasked[a.sample[asked.target[(verdict == UNASKED) & a.ordered[asked.target]]]] = True
    status = np.full(len(a), _CODE["no_timely_response"], dtype=np.int8)
    # From the last rule to the first, each overwriting what comes after it.
    status[a.inside > 0] = _CODE["wrong_content"]
    status[any_pair(verdict == UNUSABLE)] = _CODE["judge_error"]
    status[any_pair(verdict == YES)] = _CODE["order_conflict"]
    status[a.samples.missing[a.sample]] = _CODE["missing_trajectory"]
    status[matched >= 0] = _CODE["matched"]
    # One verdict to come can move every match of the interaction.
    status[unasked[a.sample] & (a.inside > 0)] = UNDECIDED
    return status


def same_tools(part: Partition, a: Assignment, targets: Ints, options: Options) -> Bools:
    """Whether the tools called are exactly those wanted, by target (rule 4, T1)."""
    wanted = part.units["tools"].take(pa.array(a.unit_rows[targets])).to_pylist()
    bounds = a.responses.member_offsets
    begin, end = bounds[a.taken[targets]], bounds[a.taken[targets] + 1]
    rows = np.repeat(begin, end - begin) + _within(end - begin)
    called = part.chunks["tools"].take(pa.array(a.responses.members[rows])).to_pylist()
    same = np.zeros(len(targets), dtype=np.bool_)
    at = 0
    for i, (want, members) in enumerate(zip(wanted, (end - begin).tolist(), strict=True)):
        got = [name for names in called[at : at + members] for name in names or ()]
        at += members
        same[i] = _same_names(tuple(got), tuple(want or ()), options.tool_case_sensitive)
    return same


@lru_cache(maxsize=4096)
def _same_names(got: tuple[str, ...], want: tuple[str, ...], case_sensitive: bool) -> bool:
    return tool_set(got, case_sensitive) == tool_set(want, case_sensitive)


def _within(counts: Ints) -> Ints:
    """0, 1, ... within each of several runs."""
    total = np.cumsum(counts)
    return np.arange(total[-1] if len(total) else 0) - np.repeat(total - counts, counts)


def pair_verdicts(part: Partition, a: Assignment, asked: Pairs) -> Codes:
    """Verdict of each pair, looked up by (interaction, target, output index)."""
    verdict = np.full(len(asked.target), UNASKED, dtype=np.int8)
    if part.verdicts is None or not len(verdict):
        return verdict
    wanted = _keys(
        part.units["sample_id"].take(pa.array(a.unit_rows[asked.target])),
        part.units["unit_id"].take(pa.array(a.unit_rows[asked.target])),
        part.chunks["chunk_id"].take(pa.array(a.responses.first[asked.response])),
    )
    stages = part.stages
    there = _keys(stages["sample_id"], stages["unit_id"], stages["item"])
    if wanted.equals(there):
        rows = np.arange(len(verdict))
    else:
        found = pc.fill_null(pc.index_in(wanted, value_set=there), -1)
        rows = np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)
    state = part.verdicts["status"]
    usable = _bools(pc.is_in(state, value_set=pa.array(["ok", "repaired"])))
    said = _bools(part.verdicts[FIELD].cast(pa.bool_()))
    codes = np.where(usable, np.where(said, YES, NO), UNUSABLE).astype(np.int8)
    codes[_bools(pc.is_null(state))] = UNASKED
    known = rows >= 0
    verdict[known] = codes[rows[known]]
    return verdict


def _keys(sample: pa.ChunkedArray, unit: pa.ChunkedArray, item: pa.ChunkedArray) -> pa.Array:
    joined = pc.binary_join_element_wise(sample, unit, item.cast(pa.string()), "\0")
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def _bools(column: Any) -> Bools:
    return np.asarray(pc.fill_null(column, False).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _table(
    part: Partition,
    a: Assignment,
    asked: Pairs,
    verdict: Codes,
    status: Codes,
    response: Ints,
    options: Options,
) -> pa.Table:
    rows = np.sort(np.concatenate([a.unit_rows, a.samples.unit_rows]))
    units = part.units.take(pa.array(rows))
    at = np.searchsorted(rows, a.unit_rows)
    own = np.searchsorted(rows, a.samples.unit_rows)
    success = np.isin(status, [_CODE[name] for name in SUCCESSES]).astype(np.int64)
    excluded = (status == _CODE["judge_error"]) & (options.judge_error == "exclude")
    unscored = (status == UNDECIDED) | excluded
    # T1 and targets without a timely response need no verdict.
    needs = np.bincount(asked.target[asked.needed], minlength=len(a)) > 0
    judged = np.where(unscored, -1, needs.astype(np.int64))

    def per_sample(values: Any) -> Ints:
        return np.bincount(a.sample, weights=values, minlength=len(a.samples)).astype(np.int64)

    incomplete = per_sample(unscored) > 0
    successes = per_sample(success * ~unscored)
    targets = np.diff(a.offsets)
    n_outputs = np.diff(a.responses.offsets)
    columns: dict[str, object] = {
        name: units[name] for name in SCORE_SCHEMA.names if name in units.schema.names
    }
    build = _Columns(len(rows))
    build.text("system", np.arange(len(rows)), np.zeros(len(rows), np.int64), (part.system,))
    build.text("status", at, status, STATUSES, null=status == UNDECIDED)
    build.number("success", at, success, null=unscored)
    build.number("sequence_success", at, success, null=unscored | incomplete[a.sample])
    has = np.flatnonzero(response >= 0)
    chunk_id = part.chunks["chunk_id"].to_numpy()
    build.number("output_index", at[has], chunk_id[a.responses.first[response[has]]])
    build.number("time", at[has], a.responses.time[response[has]])
    all_judged = np.where(incomplete, -1, per_sample(needs) > 0)
    build.flag(
        "judged", np.concatenate([at, own]), np.concatenate([judged, all_judged]).astype(np.int64)
    )
    build.number("complete", own, (successes == targets).astype(np.int64), null=incomplete)
    build.number("successes", own, successes, null=incomplete)
    build.number("unmatched", own, n_outputs - successes, null=incomplete)
    build.number("long_sequence", own, (targets > LONGEST_SEQUENCE).astype(np.int64))
    build.number("n_outputs", own, n_outputs)
    build.number("n_pre_query", own, a.responses.before_request)
    build.number("observed_seconds", own, a.samples.observed_seconds)
    build.number("missing_trajectory", own, a.samples.missing.astype(np.int64))
    return tables.make(SCORE_SCHEMA, columns | build.columns)


class _Columns:
    """Columns of a table of a known length, filled at some rows, null elsewhere."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.columns: dict[str, object] = {}

    def _mask(self, at: Ints, null: Bools | None) -> Bools:
        empty = np.ones(self.length, dtype=np.bool_)
        empty[at] = False if null is None else null
        return empty

    def number(self, name: str, at: Ints, values: Any, null: Bools | None = None) -> None:
        spread = np.zeros(self.length, dtype=np.asarray(values).dtype)
        spread[at] = values
        self.columns[name] = pa.array(spread, mask=self._mask(at, null))

    def text(
        self, name: str, at: Ints, codes: Any, names: tuple[str, ...], null: Bools | None = None
    ) -> None:
        spread = np.zeros(self.length, dtype=np.int64)
        spread[at] = np.where(codes >= 0, codes, 0)
        places = pa.array(spread, mask=self._mask(at, null))
        self.columns[name] = pa.array(names).take(places)

    def flag(self, name: str, at: Ints, states: Ints) -> None:
        """True for 1, false for -1, null for 0."""
        spread = np.zeros(self.length, dtype=np.int64)
        spread[at] = states
        self.columns[name] = pa.array(spread > 0, mask=spread == 0)


def fill_unscored(scores: pa.Table, best: bool) -> pa.Table:
    """The scores with every unscored target succeeding (or not), and their interactions."""
    unscored = _bools(pc.equal(scores["judged"], False))
    if not unscored.any():
        return scores
    target = _bools(pc.equal(scores["unit_kind"], TARGET))
    ordered = _bools(pc.is_in(scores["task"], value_set=pa.array(TASKS[-3:])))
    open_targets, open_interactions = unscored & target, unscored & ~target
    if best:
        name = np.where(ordered, "matched", "success")
    else:
        name = np.full(len(unscored), "wrong_content")
    success = _numbers(scores["success"])
    success[open_targets] = int(best)
    group = _groups(scores)
    successes = np.bincount(group[target], weights=success[target], minlength=group.max() + 1)
    successes = successes.astype(np.int64)[group]
    length, n_outputs = _numbers(scores["sequence_length"]), _numbers(scores["n_outputs"])
    in_open = np.zeros(group.max() + 1, dtype=np.bool_)
    in_open[group[unscored]] = True
    values = {
        "status": (open_targets, name),
        "success": (open_targets, success),
        "sequence_success": (in_open[group] & target, success),
        "complete": (open_interactions, (successes == length).astype(np.int64)),
        "successes": (open_interactions, successes),
        "unmatched": (open_interactions, n_outputs - successes),
        "judged": (unscored, np.ones(len(unscored), dtype=np.bool_)),
    }
    for column, (where, filled) in values.items():
        index = scores.schema.get_field_index(column)
        field = scores.schema.field(index)
        merged = pc.if_else(pa.array(where), pa.array(filled, field.type), scores[column])
        scores = scores.set_column(index, field, merged)
    return scores


def _numbers(column: pa.ChunkedArray) -> Ints:
    return np.array(pc.fill_null(column, 0).to_numpy(zero_copy_only=False), dtype=np.int64)


def _groups(scores: pa.Table) -> Ints:
    """A number for each row's (system, interaction)."""
    joined = pc.binary_join_element_wise(scores["system"], scores["sample_id"], "\0")
    coded = joined.combine_chunks().dictionary_encode()
    return np.asarray(coded.indices.to_numpy(), dtype=np.int64)


__all__ = ["INTERACTION", "STATUSES", "fill_unscored", "score", "statuses"]
