"""Everything wrong with a data set, in one pass, without asking a judge."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from omnijudge.benchmarks import get_benchmark
from omnijudge.errors import DataError, Problem
from omnijudge.ingest import Ingest, block_units, match, read_annotations, read_partition

if TYPE_CHECKING:
    from omnijudge.config import RunConfig
    from omnijudge.progress import Progress


def validate(config: RunConfig, progress: Progress) -> tuple[Ingest | None, list[Problem]]:
    """Reads annotations and all outputs and lists every problem.

    Raises:
        ConfigError: the configuration itself is wrong.
    """
    from omnijudge.pipeline import open_seats, resolve_options

    benchmark = get_benchmark(config.benchmark)
    options = resolve_options(benchmark, config)
    open_seats(benchmark, config, options, [])
    try:
        ingest = read_annotations(config, benchmark, sort=True)
    except DataError as e:
        return None, list(e.problems)
    plan = ingest.plan
    progress.start("reading outputs", sum(len(ids) for ids in plan.blocks) * len(plan.systems))
    parts = []
    for ids in plan.blocks:
        units = block_units(ingest.annotations.units, ids)
        for system in plan.systems:
            part = read_partition(config, benchmark, ingest, system, ids, units)
            parts.append(match(benchmark, part, options))
            progress.advance(len(ids))
    progress.end()
    check = getattr(benchmark, "check_outputs", None)
    if check is not None:
        ingest.problems.extend(check(parts, ingest.settings))
    return ingest, ingest.problems


def counted(problems: list[Problem]) -> dict[str, int]:
    """Number of problems by level."""
    return dict(Counter(p.level for p in problems))
