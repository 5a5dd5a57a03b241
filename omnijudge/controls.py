"""Controls: rows made by the benchmark itself, beside the systems, as ceiling and floor.

``oracle`` says each reference answer at the moment it is due, ``silent`` says nothing, and
``shuffled`` says what the first system said about another recording. They are read, judged, scored
and summed up like a system, and never take a rank. ``control:oracle`` is the oracle's name in every
table; no system may be named like that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnijudge import tables
from omnijudge.benchmarks.base import Annotations, Benchmark, Outputs
from omnijudge.config import CONTROL_PREFIX
from omnijudge.errors import ConfigError

if TYPE_CHECKING:
    from omnijudge.config import RunConfig, SystemConfig

ORACLE, SILENT, SHUFFLED = "oracle", "silent", "shuffled"
KINDS = (ORACLE, SILENT, SHUFFLED)


def control_name(kind: str) -> str:
    """Name of a control in the column ``system``."""
    return CONTROL_PREFIX + kind


def is_control(system: str) -> bool:
    """Whether a row of that name is a control and no system under test."""
    return system.startswith(CONTROL_PREFIX)


def check_controls(kinds: Sequence[str], benchmark: Benchmark) -> None:
    """Refuses controls that a benchmark cannot make.

    Raises:
        ConfigError: an oracle is wanted of a benchmark without one.
    """
    if ORACLE in kinds and getattr(benchmark, "oracle", None) is None:
        raise ConfigError(
            f"controls: {benchmark.name} has no oracle; take it out (silent and shuffled work "
            "with every benchmark)"
        )


def control_outputs(
    config: RunConfig,
    benchmark: Benchmark,
    annotations: Annotations,
    settings: Mapping[str, SystemConfig],
    control: str,
    sample_ids: Sequence[str],
    units: pa.Table,
) -> Outputs:
    """What a control "said" in a block of samples.

    Args:
        config: the run.
        benchmark: its benchmark.
        annotations: as the benchmark read them.
        settings: every system under test; ``shuffled`` takes its words from the first.
        control: its name, ``control_name(kind)``.
        sample_ids: the block.
        units: the units of the block.
    """
    kind = control.removeprefix(CONTROL_PREFIX)
    if kind == SHUFFLED:
        first = next(iter(settings))
        return _shuffled(config, benchmark, annotations, first, settings[first], sample_ids)
    chunks = benchmark.chunk_schema.empty_table()
    if kind == ORACLE:
        from omnijudge.seats import resolve_options

        oracle = benchmark.oracle  # type: ignore[attr-defined]  # an optional part: checked above
        chunks = oracle(units, control, resolve_options(benchmark, config.scoring))
    states: dict[str, object] = {
        "system": [control] * len(sample_ids),
        "sample_id": list(sample_ids),
        "state": ["ok"] * len(sample_ids),
        "detail": [kind] * len(sample_ids),
    }
    return Outputs(tables.make(tables.OUTPUTS, states), chunks, ())


def _shuffled(
    config: RunConfig,
    benchmark: Benchmark,
    annotations: Annotations,
    first: str,
    settings: SystemConfig,
    sample_ids: Sequence[str],
) -> Outputs:
    """The first system's words about a partner of each sample, at the times they were said."""
    within = getattr(benchmark, "shuffle_within", None)
    groups = _groups(annotations.units, within)
    partner_of = partners(groups, config.statistics.seed)
    sample_of = {partner_of[s]: s for s in sample_ids}
    said = benchmark.read_outputs(config, annotations, first, settings, list(sample_of))
    name = control_name(SHUFFLED)
    outputs = _relabelled(said.outputs, name, sample_of)
    partner_ids = said.outputs["sample_id"].to_pylist()
    details = [f"{first} about {p}" for p in partner_ids]
    # A state other than ok keeps its reason: it is counted by it.
    for i, (state, old) in enumerate(
        zip(said.outputs["state"].to_pylist(), said.outputs["detail"].to_pylist(), strict=True)
    ):
        if state != "ok":
            details[i] = old
    outputs = _with(outputs, "detail", details)
    # What is wrong with these files is said where the first system itself is read.
    return Outputs(outputs, _relabelled(said.chunks, name, sample_of), ())


def partners(groups: Mapping[str, str], seed: int) -> dict[str, str]:
    """Another sample for every sample: of its own group, each taken once, by a seeded order.

    Samples that are alone in their groups are partners of each other; a single one of that kind
    joins another group. A sample that is alone in the run keeps its own words: there are no
    others.

    Args:
        groups: sample id -> group (scene type, task or split).
        seed: seed of the order.
    """
    ids = sorted(groups)
    order = [ids[i] for i in np.random.default_rng(seed).permutation(len(ids))]
    members: dict[str, list[str]] = {}
    for sample in order:
        members.setdefault(groups[sample], []).append(sample)
    circles = [m for m in members.values() if len(m) > 1]
    alone = [m[0] for m in members.values() if len(m) == 1]
    if len(alone) == 1 and circles:
        circles[0].append(alone[0])
    else:
        circles.append(alone)
    found: dict[str, str] = {}
    for circle in circles:
        found |= dict(zip(circle, [*circle[1:], *circle[:1]], strict=True))
    return found


def _groups(units: pa.Table, column: str | None) -> dict[str, str]:
    ids = units["sample_id"].to_pylist()
    values: list[Any] = [""] * len(ids) if column is None else units[column].to_pylist()
    found: dict[str, str] = {}
    for sample, value in zip(ids, values, strict=True):
        if value is not None:
            found.setdefault(sample, str(value))
    return {sample: found.get(sample, "") for sample in ids}


def _relabelled(table: pa.Table, system: str, sample_of: Mapping[str, str]) -> pa.Table:
    samples = [sample_of[p] for p in table["sample_id"].to_pylist()]
    table = _with(table, "sample_id", samples)
    return _with(table, "system", [system] * len(samples))


def _with(table: pa.Table, name: str, values: list[Any]) -> pa.Table:
    index = table.schema.get_field_index(name)
    field = table.schema.field(index)
    return table.set_column(index, field, pa.array(values, field.type))
