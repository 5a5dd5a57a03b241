"""The ceiling row: each target answer, said at the moment it is due."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from omnijudge.benchmarks.omniinteract.matching import slot_bounds
from omnijudge.benchmarks.omniinteract.offline import offline_rows
from omnijudge.benchmarks.omniinteract.reader import ChunkColumns
from omnijudge.transcripts.types import Chunk, Word

if TYPE_CHECKING:
    from omnijudge.benchmarks.omniinteract.options import Options

SECONDS_PER_CHARACTER = 0.08
"""About the pace of speech. It only sets where a chunk ends, which costs nothing in its slot."""


def oracle(units: pa.Table, system: str, options: Options) -> pa.Table:
    """Chunks that earn the whole core weight of every slot that can earn it.

    The answer begins at ``t_a`` (at ``t_start``, where that is later) and ends inside the slot, so
    that it never spills. It is one word to the anchor look-up, so that any trigger phrase in it
    stands at its begin. A slot that a chunk of that moment would not be given to (``t_end`` not
    after ``t_a``, or a later slot has begun) stays silent: the words would harm another slot.

    Args:
        units: units of a block of samples.
        system: name of the row.
        options: resolved options; ``last_slot_tail_sec`` bounds the last slot.
    """
    bounds = slot_bounds(units, options)
    targets = units["target_answer"].take(pa.array(bounds.rows, pa.int64())).to_pylist()
    spoken = ChunkColumns()
    for k, sample in enumerate(bounds.samples):
        slots = range(bounds.offsets[k], bounds.offsets[k + 1])
        windows = [(bounds.t_start[i], bounds.t_end[i]) for i in slots]
        chunks = []
        for number, i in enumerate(slots):
            at = max(bounds.t_a[i], bounds.t_start[i])
            if owner(at, windows) != number:
                continue
            text = targets[i].strip()
            end = min(at + SECONDS_PER_CHARACTER * len(text), bounds.t_end[i])
            chunks.append(Chunk(number, at, end, text, (Word(at, end, text),)))
        spoken.add(system, sample, chunks)
    for row in offline_rows(units):
        answer = units["target_answer"][row].as_py()
        spoken.add(system, units["sample_id"][row].as_py(), [Chunk(0, 0.0, 0.0, answer)])
    return spoken.table()


def owner(time: float, windows: Sequence[tuple[float, float]]) -> int | None:
    """Place of the slot that a chunk is given to (rule 6): the latest start, then the last."""
    inside = [(start, i) for i, (start, end) in enumerate(windows) if start <= time < end]
    return max(inside)[1] if inside else None
