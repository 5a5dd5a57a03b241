"""Whether what a benchmark reads and matches is what the pipeline expects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from omnijudge import tables
from omnijudge.benchmarks.base import Annotations, Benchmark, Outputs, Partition
from omnijudge.testing.expectations import (
    expect,
    expect_no_null,
    expect_schema,
    keys_of,
    working,
)

if TYPE_CHECKING:
    from omnijudge.config import RunConfig

STATES = ("ok", "missing", "unreadable", "not_evaluated")
STAGE_KEYS = ("sample_id", "unit_id", "item", "stage")


def check_reading(benchmark: Benchmark, config: RunConfig) -> Annotations:
    """Checks the unit table; returns what was read."""
    with working("read"):
        found, again = benchmark.read(config), benchmark.read(config)
    expect_schema(found.units, benchmark.unit_schema, "the unit table")
    expect_no_null(found.units, ("sample_id", "unit_id", "unit_kind", "video_id"), "units")
    expect(found.units.equals(again.units), "read twice, the units differ")
    errors = [p for p in found.problems if p.level == "error" and p.system is None]
    expect(not errors, f"the data of the configuration are not in order: {errors and errors[0]}")
    keys = keys_of(found.units, ("sample_id", "unit_id"))
    expect(len(set(keys)) == len(keys), "units: a (sample_id, unit_id) stands twice")
    order = list(dict.fromkeys(s for s, _ in keys))
    blocks = 1 + sum(a[0] != b[0] for a, b in pairwise(keys)) if keys else 0
    expect(blocks == len(order), "units: the rows of one sample do not stand together")
    expect(order == sorted(order), "units: samples do not stand in sorted order")
    expect(
        set(order) == set(found.samples),
        "samples and units are about different samples: "
        f"{sorted(set(order) ^ set(found.samples))[:3]}",
    )
    expect(found.listed >= len(order), f"listed is {found.listed}, fewer than the usable samples")
    return found


def check_outputs(
    benchmark: Benchmark,
    config: RunConfig,
    annotations: Annotations,
    system: str,
    settings: Any,
    ids: Sequence[str],
) -> Outputs:
    """Checks what is read of a system, in one block and sample by sample."""

    def read(block: Sequence[str]) -> Outputs:
        with working(f"read_outputs of system {system!r}"):
            return benchmark.read_outputs(config, annotations, system, settings, block)

    found = read(ids)
    expect_schema(found.outputs, tables.OUTPUTS, "the output table")
    expect_schema(found.chunks, benchmark.chunk_schema, "the chunk table")
    expect(
        keys_of(found.outputs, ("system", "sample_id")) == [(system, s) for s in ids],
        "read_outputs: the output table has one row per sample of the block, in its order",
    )
    states = set(found.outputs["state"].to_pylist())
    expect(states <= set(STATES), f"read_outputs: unknown states {sorted(states - set(STATES))}")
    expect_no_null(found.chunks, ("system", "sample_id", "chunk_id", "start"), "chunks")
    owners = found.chunks["sample_id"].to_pylist()
    at = {s: i for i, s in enumerate(ids)}
    expect(set(owners) <= set(ids), "read_outputs: chunks of samples that were not asked for")
    places = [at[s] for s in owners]
    expect(places == sorted(places), "read_outputs: chunks do not stand in the order of the block")
    expect(
        found.chunks["unit_id"].null_count == found.chunks.num_rows,
        "read_outputs: unit_id of the chunks is null until they are matched",
    )
    backward = list(reversed(ids))
    single = [read([s]) for s in backward]
    other = pa.concat_tables([s.chunks for s in single])
    expect(
        other.equals(read(backward).chunks),
        "read_outputs: what is read of a sample depends on the other samples of its block",
    )
    for p in found.problems:
        expect(p.system == system, f"read_outputs: a finding does not name the system: {p}")
    return found


def check_match(
    benchmark: Benchmark, part: Partition, options: Any, ids: Sequence[str]
) -> Partition:
    """Checks chunks and stages after matching; returns the matched partition."""
    with working("match"):
        chunks, stages = benchmark.match(part, options)
        again = benchmark.match(part, options)
    expect_schema(chunks, benchmark.chunk_schema, "the chunk table after match")
    expect_schema(stages, benchmark.stage_schema, "the stage table")
    expect(
        again[0].equals(chunks) and again[1].equals(stages), "match: twice the same, two results"
    )
    kept = ("system", "sample_id", "chunk_id", "start", "end", "text")
    expect(
        keys_of(chunks, kept) == keys_of(part.chunks, kept), "match: chunks were lost or changed"
    )
    expect_no_null(stages, ("system", "sample_id", "unit_id", "stage", "text_hash"), "stages")
    expect(set(stages["system"].to_pylist()) <= {part.system}, "stages name another system")
    keys = keys_of(stages, STAGE_KEYS)
    expect(len(set(keys)) == len(keys), f"stages: keys {STAGE_KEYS} stand twice")
    known = set(stages["stage"].to_pylist())
    expect(
        known <= set(benchmark.stages),
        f"stages {sorted(known - set(benchmark.stages))} are not declared",
    )
    found = replace(part, chunks=chunks, stages=stages)
    for sample in ids:
        own = of_samples(part, [sample])
        with working(f"match of sample {sample!r} alone"):
            _, alone = benchmark.match(own, options)
        expect(
            keys_of(alone, (*STAGE_KEYS, "text"))
            == keys_of(of_samples(found, [sample]).stages, (*STAGE_KEYS, "text")),
            f"match: the stages of sample {sample!r} depend on the other samples of its block",
        )
    return found


def of_samples(part: Partition, ids: Sequence[str]) -> Partition:
    """The part of a partition that is about some samples."""

    def own(table: pa.Table) -> pa.Table:
        wanted = pa.array(list(ids), pa.string())
        return table.filter(pc.is_in(table["sample_id"], wanted)).combine_chunks()

    return replace(
        part,
        units=own(part.units),
        outputs=own(part.outputs),
        chunks=own(part.chunks),
        stages=own(part.stages),
    )
