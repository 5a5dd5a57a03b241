"""What a judge could be asked, what it is asked, and what the prompts are rendered from."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnijudge import tables
from omnijudge.benchmarks.base import Prompt
from omnijudge.benchmarks.omni_interactscope.answers import FIELD
from omnijudge.benchmarks.omni_interactscope.assignment import (
    Assignment,
    Pairs,
    assign,
    chunk_owners,
    pairs,
)
from omnijudge.benchmarks.omni_interactscope.responses import response_texts
from omnijudge.benchmarks.omni_interactscope.schemas import STAGE_SCHEMA, VERDICT
from omnijudge.benchmarks.omni_interactscope.windows import Ints
from omnijudge.judging.engines.overlap import overlap

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Partition
    from omnijudge.benchmarks.omni_interactscope.options import Options

SMOKE_THRESHOLD = 0.5
"""Overlap with the reference from which the smoke judge says yes."""


def match(part: Partition, options: Options) -> tuple[pa.Table, pa.Table]:
    """Effective responses and the (target, response) pairs inside windows.

    Returns:
        The chunks with the response each is part of and the target it was given to; and one stage
        row per pair of T2..T8, by target, then response. ``item`` is the response's output index
        in its file, for a group that of its first member.
    """
    assignment = assign(part, options)
    return _chunks(part, assignment), _stages(part, assignment, pairs(assignment))


def _chunks(part: Partition, a: Assignment) -> pa.Table:
    response, target = chunk_owners(a, part.chunks.num_rows)
    chunk_id = part.chunks["chunk_id"].to_numpy()
    first = chunk_id[a.responses.first] if len(a.responses) else np.zeros(0, np.int64)
    columns: dict[str, object] = {n: part.chunks[n] for n in part.chunks.schema.names}
    columns["response"] = _take(pa.array(first), response)
    columns["unit_id"] = _take(part.units["unit_id"].take(pa.array(a.unit_rows)), target)
    return tables.make(part.chunks.schema, columns)


def _take(values: pa.ChunkedArray | pa.Array, places: Ints) -> pa.Array:
    """Values at places, null where the place is negative."""
    taken = values.take(pa.array(places, mask=places < 0))
    return taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken


def _stages(part: Partition, a: Assignment, asked: Pairs) -> pa.Table:
    units = part.units.select(["sample_id", "unit_id", "reference"]).take(
        pa.array(a.unit_rows[asked.target])
    )
    texts = response_texts(part.chunks["text"], a.responses).take(pa.array(asked.response))
    chunk_id = part.chunks["chunk_id"].take(pa.array(a.responses.first[asked.response]))
    n = len(asked.target)
    return tables.make(
        STAGE_SCHEMA,
        {
            "system": pa.repeat(part.system, n),
            "sample_id": units["sample_id"],
            "unit_id": units["unit_id"],
            "item": chunk_id.cast(pa.string()),
            "stage": pa.repeat(VERDICT, n),
            "text": texts,
            "text_hash": [
                text_hash(text, reference)
                for text, reference in zip(
                    texts.to_pylist(), units["reference"].to_pylist(), strict=True
                )
            ],
            "time": a.responses.time[asked.response],
            "needed": asked.needed,
        },
    )


def text_hash(text: str, reference: str) -> str:
    """Hash of judged text and reference: joins judgements made with other prompts or models."""
    return blake2b(f"{text}\0{reference}".encode(), digest_size=8).hexdigest()


def pending(part: Partition) -> Ints:
    """Stage rows whose verdict can change a score and is not there yet (rule 4, lazy calls)."""
    asked = part.stages["needed"]
    if part.verdicts is not None:
        asked = pc.and_(asked, pc.is_null(part.verdicts["status"]))
    return np.flatnonzero(np.asarray(asked.to_numpy(zero_copy_only=False), dtype=np.bool_))


def prompts(part: Partition, rows: Ints) -> list[Prompt]:
    """Request, reference, candidate and rubric, and nothing else: no time, no other response."""
    places = {
        key: i
        for i, key in enumerate(
            zip(part.units["sample_id"].to_pylist(), part.units["unit_id"].to_pylist(), strict=True)
        )
    }
    stages = part.stages.select(["sample_id", "unit_id", "text"]).take(pa.array(rows, pa.int64()))
    samples, units, texts = (stages[n].to_pylist() for n in ("sample_id", "unit_id", "text"))
    at = pa.array([places[key] for key in zip(samples, units, strict=True)], pa.int64())
    shown = part.units.select(["request", "reference", "rubric", "language"]).take(at).to_pylist()
    return [
        Prompt(
            VERDICT,
            unit["language"],
            {
                "request": unit["request"].strip(),
                "reference": unit["reference"].strip(),
                "candidate": text.strip(),
                "rubric": unit["rubric"],
            },
        )
        for unit, text in zip(shown, texts, strict=True)
    ]


def lexical(variables: Mapping[str, Any]) -> Mapping[str, Any]:
    """The smoke judge: enough of the reference's words stand in the response."""
    share = overlap(variables["candidate"], variables["reference"])
    return {FIELD: share >= SMOKE_THRESHOLD, "reason": f"overlap {share:.2f}"}
