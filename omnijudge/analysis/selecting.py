"""Which metrics a command is about."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from omnijudge.benchmarks.declared import leading
from omnijudge.errors import ConfigError

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Benchmark
    from omnijudge.statistics.metric import Metric


def select_metrics(
    benchmark: Benchmark, metrics: Sequence[Metric], metric: str | None, group: str | None
) -> list[Metric]:
    """The metrics that are named, or the leading ones.

    Args:
        benchmark: the benchmark.
        metrics: all its metrics.
        metric: a metric name (all its groups, unless one is named); None: the leading metrics.
        group: a group name (all its metrics, if no metric is named).

    Raises:
        ConfigError: there is no such metric or group, or it is a quantile.
    """
    if metric is None and group is None:
        return leading(benchmark, metrics)
    named = [m for m in metrics if metric in (None, m.name)]
    if not named:
        raise ConfigError(f"--metric {metric}: {_unknown(str(metric), [m.name for m in metrics])}")
    found = [m for m in named if group in (None, m.group)]
    if not found:
        raise ConfigError(f"--group {group}: {_unknown(str(group), [m.group for m in named])}")
    sums = [m for m in found if m.quantile is None]
    if not sums:
        raise ConfigError(
            f"--metric {metric}: a quantile is no function of sums, so there is no paired test of "
            "it; compare the mean"
        )
    return sums


def metric_named(metrics: Sequence[Metric], metric: str, group: str, what: str) -> Metric:
    """One metric by its names.

    Raises:
        ConfigError: there is none.
    """
    for m in metrics:
        if (m.name, m.group) == (metric, group):
            return m
    known = [f"{m.name}/{m.group}" for m in metrics]
    raise ConfigError(f"{what}: {_unknown(f'{metric}/{group}', known)}")


def _unknown(name: str, known: Sequence[str]) -> str:
    names = list(dict.fromkeys(known))
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f"there is no {name!r}; did you mean {near[0]!r}?"
    more = ", ..." if len(names) > 12 else ""
    return f"there is no {name!r}; there are {', '.join(names[:12])}{more}"
