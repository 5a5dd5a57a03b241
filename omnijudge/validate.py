"""Everything wrong with a data set, in one pass, without asking a judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnijudge.benchmarks import get_benchmark
from omnijudge.errors import DataError, Level, Problem
from omnijudge.ingest import block_units, match, read_annotations, read_partition

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Partition
    from omnijudge.config import RunConfig
    from omnijudge.progress import Progress


@dataclass(frozen=True)
class Validation:
    """What was found.

    Attributes:
        problems: errors first, then warnings, then remarks; each in reading order.
        notes: lines about each system (share of unmatched chunks, chunk length, word coverage).
        samples: usable samples.
        systems: systems.
    """

    problems: list[Problem]
    notes: list[str]
    samples: int
    systems: int


def validate(config: RunConfig, progress: Progress) -> Validation:
    """Reads annotations and all outputs and lists every problem.

    Raises:
        ConfigError: the configuration is wrong in a way that leaves nothing to read.
    """
    from omnijudge.seats import open_seats, resolve_options

    benchmark = get_benchmark(config.benchmark)
    options = resolve_options(benchmark, config.scoring)
    open_seats(benchmark, config, options, [])
    try:
        ingest = read_annotations(config, benchmark, sort=True, controls=False)
    except DataError as e:
        return Validation(_sorted(e.problems), [], 0, len(config.systems))
    plan = ingest.plan
    samples = sum(len(ids) for ids in plan.blocks)
    progress.start("reading outputs", samples * len(plan.systems))
    parts: list[Partition] = []
    for ids in plan.blocks:
        units = block_units(ingest.annotations.units, ids)
        for system in plan.systems:
            part = read_partition(config, benchmark, ingest, system, ids, units)
            parts.append(match(benchmark, part, options))
            progress.advance(len(ids))
    progress.end()
    notes: list[str] = []
    check = getattr(benchmark, "check_outputs", None)
    if check is not None:
        found, notes = check(parts, ingest.settings)
        ingest.problems.extend(found)
    return Validation(_sorted(ingest.problems), notes, samples, len(plan.systems))


ORDER: tuple[Level, ...] = ("error", "warning", "info")


def _sorted(problems: Sequence[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda p: ORDER.index(p.level))


def report(source: str, problems: Sequence[Problem], found: Validation) -> list[str]:
    """Lines for the user."""
    lines = [f"{p.level}: {p}" for p in problems]
    lines += found.notes
    counts = Counter(p.level for p in problems)
    said = ", ".join(f"{counts[k]} {k}{'' if counts[k] == 1 else 's'}" for k in ORDER[:2])
    lines.append(f"{source}: {found.samples} usable samples, {found.systems} systems; {said}")
    return lines
