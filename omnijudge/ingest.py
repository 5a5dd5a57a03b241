"""First steps of a run: annotations and outputs become matched tables on disk."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnijudge import tables
from omnijudge.benchmarks.base import Annotations, Benchmark, Partition
from omnijudge.config import SystemConfig
from omnijudge.controls import check_controls, control_name, control_outputs, is_control
from omnijudge.errors import ConfigError, DataError, Problem
from omnijudge.judging.shards import Shard
from omnijudge.partitions import Plan, TableWriter, write_table
from omnijudge.transcripts.findings import SETUP_CODES

if TYPE_CHECKING:
    from omnijudge.config import RunConfig
    from omnijudge.progress import Progress

BLOCK = 64
"""Samples in a block: what bounds memory and fixes the order of sums."""
WHOLE = Shard()


@dataclass
class Ingest:
    """What came in.

    Attributes:
        annotations: as the benchmark read them.
        plan: samples in blocks, and the systems, controls last.
        settings: configuration of each system (controls have none).
        problems: everything found.
        missing: per system the number of samples without a usable output.
        groups: row group of each partition per table, once they are written.
        digests: content hashes of what came in, per system and of the units.
    """

    annotations: Annotations
    plan: Plan
    settings: dict[str, SystemConfig]
    problems: list[Problem]
    missing: dict[str, int] = field(default_factory=dict)
    groups: dict[str, list[int | None]] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)

    @property
    def bad_samples(self) -> set[str]:
        """Samples that are listed and not usable."""
        return {
            p.sample_id
            for p in self.problems
            if p.level == "error" and p.system is None and p.sample_id is not None
        } - set(self.annotations.samples)


def read_annotations(
    config: RunConfig,
    benchmark: Benchmark,
    limit: int | None = None,
    sort: bool = False,
    controls: bool = True,
    shard: Shard = WHOLE,
) -> Ingest:
    """Reads the annotations and plans the partitions.

    Args:
        config: the run.
        benchmark: its benchmark.
        limit: take the first so many samples of the seeded order.
        sort: keep the samples sorted (for ``validate``) instead of the seeded order.
        controls: whether the controls of the configuration stand in the plan.
        shard: take this share of the samples.

    Raises:
        ConfigError: no system to score, or a control that cannot be made.
        DataError: no usable sample.
    """
    check_controls(config.controls, benchmark)
    annotations = benchmark.read(config)
    problems = list(annotations.problems)
    settings: dict[str, SystemConfig] = {}
    for name in (*config.systems, *annotations.systems):
        settings.setdefault(name, config.systems.get(name, SystemConfig()))
    if not settings:
        raise ConfigError("systems: name at least one system to score")
    if taken := next(filter(is_control, settings), None):
        raise ConfigError(f"the system name {taken!r} is kept for a control; rename the system")
    made = map(control_name, config.controls if controls else ())
    ids = sorted(annotations.samples)
    if not ids:
        raise DataError("no sample of the list can be used", problems)
    if not sort:
        order = np.random.default_rng(config.statistics.seed).permutation(len(ids))
        ids = [ids[i] for i in order]
    ids = shard.of(ids[:limit])
    blocks = [ids[i : i + BLOCK] for i in range(0, len(ids), BLOCK)]
    return Ingest(annotations, Plan(blocks, [*settings, *made]), settings, problems)


def refuse_bad(config: RunConfig, ingest: Ingest, outputs: bool) -> None:
    """Stops at unusable inputs unless they are to be skipped.

    Args:
        config: the run.
        ingest: what came in so far.
        outputs: whether outputs of systems count, too.

    Raises:
        DataError: there are some.
    """
    bad = [p for p in ingest.problems if p.level == "error" and (outputs or p.system is None)]
    if bad and config.data.on_bad_sample == "refuse":
        raise DataError(
            f"{len(bad)} problems in the data; mend them, or set data.on_bad_sample: skip",
            ingest.problems,
        )


def block_units(units: pa.Table, sample_ids: Sequence[str]) -> pa.Table:
    """Units of the samples, in the order of the samples."""
    position = {s: i for i, s in enumerate(sample_ids)}
    owners = pc.index_in(units["sample_id"], pa.array(list(position), pa.string()))
    rows = pc.indices_nonzero(pc.is_valid(owners))
    of_block = owners.take(rows).to_numpy()
    order = np.argsort(of_block, kind="stable")
    return units.take(rows.take(pa.array(order))).combine_chunks()


def read_outputs(
    config: RunConfig,
    benchmark: Benchmark,
    ingest: Ingest,
    options: Any,
    folder: Path,
    progress: Progress,
) -> None:
    """Reads and matches every partition; writes units, outputs, chunks and stages.

    Raises:
        ConfigError: all outputs of a system are refused because of its set-up.
    """
    plan = ingest.plan
    units = [block_units(ingest.annotations.units, ids) for ids in plan.blocks]
    write_table(folder / "units.parquet", pa.concat_tables(units))
    refusals: dict[str, Counter[str]] = {s: Counter() for s in plan.systems}
    hashes = {s: hashlib.blake2b(digest_size=16) for s in plan.systems}
    schemas = {
        "outputs": tables.OUTPUTS,
        "chunks": benchmark.chunk_schema,
        "stages": benchmark.stage_schema,
    }
    total = sum(len(ids) for ids in plan.blocks) * len(plan.systems)
    progress.start("reading outputs", total)
    with ExitStack() as stack:
        writers = {
            n: stack.enter_context(TableWriter(folder / f"{n}.parquet", s))
            for n, s in schemas.items()
        }
        for b, ids in enumerate(plan.blocks):
            for system in plan.systems:
                part = read_partition(config, benchmark, ingest, system, ids, units[b])
                hashes[system].update(digest(part.chunks).encode() + digest(part.outputs).encode())
                _count_refusals(part.outputs, refusals[system])
                part = match(benchmark, part, options)
                for name, table in (
                    ("outputs", part.outputs),
                    ("chunks", part.chunks),
                    ("stages", part.stages),
                ):
                    writers[name].add(table)
                progress.advance(len(ids))
    progress.end()
    ingest.groups = {n: w.groups for n, w in writers.items()}
    ingest.digests = {f"systems.{s}": h.hexdigest() for s, h in hashes.items()}
    ingest.digests["annotations"] = digest(pa.concat_tables(units))
    samples = sum(len(ids) for ids in plan.blocks)
    for system, counted in refusals.items():
        ingest.missing[system] = sum(counted.values())
        if is_control(system):
            continue
        setup = sum(n for code, n in counted.items() if code in SETUP_CODES)
        if setup == samples:
            raise ConfigError(_setup_message(system, ingest))


def read_partition(
    config: RunConfig,
    benchmark: Benchmark,
    ingest: Ingest,
    system: str,
    sample_ids: Sequence[str],
    units: pa.Table,
) -> Partition:
    """One system's outputs for one block, not matched yet."""
    if is_control(system):
        outputs = control_outputs(
            config, benchmark, ingest.annotations, ingest.settings, system, sample_ids, units
        )
    else:
        outputs = benchmark.read_outputs(
            config, ingest.annotations, system, ingest.settings[system], sample_ids
        )
    ingest.problems.extend(outputs.problems)
    return Partition(
        system,
        units,
        outputs.outputs,
        outputs.chunks,
        benchmark.stage_schema.empty_table(),
        folder=config.data.folder,
    )


def match(benchmark: Benchmark, part: Partition, options: Any) -> Partition:
    """The partition with its chunks given to units and its stages written down."""
    chunks, stages = benchmark.match(part, options)
    return replace(part, chunks=chunks, stages=stages)


def digest(table: pa.Table) -> str:
    """Hash of a table's content."""
    hasher = hashlib.blake2b(digest_size=16)

    class Sink:
        closed = False

        def write(self, data: Any) -> int:
            hasher.update(data)
            return len(data)

        def flush(self) -> None:
            return

    plain = table.combine_chunks().replace_schema_metadata(None)
    sink = pa.PythonFile(Sink(), mode="w")
    with pa.ipc.new_stream(sink, plain.schema) as stream:
        for batch in plain.to_batches():
            stream.write_batch(batch)
    return hasher.hexdigest()


def _count_refusals(outputs: pa.Table, counted: Counter[str]) -> None:
    for state, detail in zip(
        outputs["state"].to_pylist(), outputs["detail"].to_pylist(), strict=True
    ):
        if state in ("missing", "unreadable"):
            counted[(detail or "").partition(":")[0] if state == "unreadable" else state] += 1


def _setup_message(system: str, ingest: Ingest) -> str:
    first = next(p for p in ingest.problems if p.system == system and p.code in SETUP_CODES)
    return f"systems.{system}: none of its outputs can be read as configured; the first: {first}"
