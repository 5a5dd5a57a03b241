"""Every metric of every system with its intervals, from sums per cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from omnijudge.statistics.bootstrap import (
    Interval,
    bca_interval,
    cluster_counts,
    metric_replicates,
    percentile_interval,
)
from omnijudge.statistics.gpu import replicate_sums
from omnijudge.statistics.jackknife import (
    Jackknife,
    careful_interval,
    evaluate,
    jackknife,
    small_sample_warning,
    smallest_part,
)
from omnijudge.statistics.metric import Metric, Sum, quantile_groups
from omnijudge.statistics.multiple import Adjustment
from omnijudge.statistics.quantiles import quantile_replicates
from omnijudge_kernels.resampling import Array, Counts, exact_columns

IntervalMethod = Literal["percentile", "bca", "jackknife"]

_CHUNK_BYTES = 256 << 20
_BLOCK_COLUMNS = 400
_SYSTEMS_AT_ONCE = 16
# Below this many drawn units importing Numba and compiling cost more than they save.
_UNITS_WORTH_NUMBA = 500_000_000


@dataclass(frozen=True, slots=True)
class IntervalSettings:
    """How intervals are made.

    Attributes:
        replicates: bootstrap replicates.
        confidence: level of all intervals.
        interval: the kind reported as ``ci_low``, ``ci_high``.
        seed: of the resamples and sign flips.
        adjustment: of the p-values of a family of comparisons.
    """

    replicates: int = 10_000
    confidence: float = 0.95
    interval: IntervalMethod = "percentile"
    seed: int = 0
    adjustment: Adjustment = "holm"


@dataclass(frozen=True, slots=True)
class UnitValues:
    """Values per unit behind a quantile metric of one system.

    Attributes:
        values: (U,) finite values.
        clusters: (U,) index of the cluster of each unit.
    """

    values: Array
    clusters: npt.NDArray[np.int64]


_NO_UNITS = UnitValues(np.empty(0), np.empty(0, np.int64))


@dataclass(frozen=True, slots=True)
class MetricInterval:
    """One metric of one system. None means undefined.

    Attributes:
        system: position of the system in the input.
        metric: metric name.
        group: group name.
        value: the published number.
        ci_low: lower end of the interval.
        ci_high: upper end.
        careful_low: lower end of the jackknife-logit interval (plain t for unbounded metrics).
        careful_high: upper end.
        interval_method: kind of ``ci_low``, ``ci_high``.
        warning: why the bootstrap interval may mislead, if it may.
        n_clusters: clusters with data (positive denominator).
        n_nonzero: clusters with a non-zero numerator.
        dropped: replicates in which the metric was undefined.
        confidence: level of the intervals.
    """

    system: int
    metric: str
    group: str
    value: float | None
    ci_low: float | None
    ci_high: float | None
    careful_low: float | None
    careful_high: float | None
    interval_method: IntervalMethod
    warning: str | None
    n_clusters: int
    n_nonzero: int
    dropped: int
    confidence: float


def metric_intervals(
    metrics: Sequence[Metric],
    sums_by_system: Sequence[Array],
    sums: Sequence[Sum],
    settings: IntervalSettings | None = None,
    *,
    unit_values: Mapping[tuple[int, int], UnitValues] | None = None,
    counts: Counts | None = None,
) -> list[MetricInterval]:
    """Values and intervals of all metrics of all systems.

    All systems share one matrix of resamples, so differences between them are paired.

    Args:
        metrics: what to report.
        sums_by_system: per system a (V, K) matrix, row = cluster, the same clusters in the same
            order for all systems (zeros where a system has nothing), column = entry of ``sums``.
        sums: the K sums.
        settings: replicates, level, kind, seed.
        unit_values: for quantile metrics, by (system position, metric position); metrics of the
            same column and units share those of the first of them.
        counts: (B, V) explicit resamples instead of seeded ones.

    Returns:
        One entry per system and metric, systems outside, metrics inside.
    """
    settings = settings or IntervalSettings()
    if not sums_by_system:
        return []
    n_clusters = len(sums_by_system[0])
    if n_clusters == 0:
        return [
            _row(s, m, settings, np.nan, (np.nan,) * 4, 0, 0, 0, None)
            for s in range(len(sums_by_system))
            for m in metrics
        ]
    if counts is None:
        counts = cluster_counts(n_clusters, settings.replicates, settings.seed)
    n_systems = len(sums_by_system)
    found: dict[tuple[int, int], MetricInterval] = {}
    place = {name: k for k, name in enumerate(sums)}
    needed = [[place[s] for s in m.sums] if m.quantile is None else [] for m in metrics]
    for block, columns in _blocks(needed):
        for first, stack in _chunks(sums_by_system, columns, len(counts)):
            replicate = replicate_sums(counts, stack.transpose(1, 2, 0))
            exact = exact_columns(stack.transpose(2, 0, 1), n_clusters).transpose(1, 2, 0)
            for m in block:
                own = [columns.index(k) for k in needed[m]]
                made = _metric_rows(first, metrics[m], settings, stack, exact, replicate, own)
                found.update({(row.system, m): row for row in made})
    values = unit_values or {}
    weights = counts.astype(np.float32) if values else None
    drawn = len(counts) * sum(len(units.values) for units in values.values())
    compiled = drawn > _UNITS_WORTH_NUMBA
    for group in quantile_groups(metrics):
        of_group = [metrics[m] for m in group]
        for first in range(0, n_systems, _SYSTEMS_AT_ONCE):
            systems = range(first, min(first + _SYSTEMS_AT_ONCE, n_systems))
            units = [values.get((s, group[0]), _NO_UNITS) for s in systems]
            replicates = quantile_replicates(
                [(u.values, u.clusters) for u in units],
                counts,
                [m.quantile[1] for m in of_group if m.quantile is not None],
                weights,
                compiled=compiled,
            )
            for s, of_system, replicate in zip(systems, units, replicates, strict=True):
                made = _quantile_rows(s, of_group, settings, of_system, replicate)
                found.update({(s, m): row for m, row in zip(group, made, strict=True)})
    return [found[s, m] for s in range(n_systems) for m in range(len(metrics))]


def _blocks(needed: Sequence[list[int]]) -> Iterator[tuple[list[int], list[int]]]:
    """Metrics that share a product, and the columns they need; quantile metrics need none."""
    block: list[int] = []
    columns: dict[int, None] = {}
    for m, own in enumerate(needed):
        if not own:
            continue
        if block and len(columns.keys() | set(own)) > _BLOCK_COLUMNS:
            yield block, list(columns)
            block, columns = [], {}
        block.append(m)
        columns.update(dict.fromkeys(own))
    if block:
        yield block, list(columns)


def _chunks(
    sums_by_system: Sequence[Array], columns: list[int], replicates: int
) -> Iterator[tuple[int, Array]]:
    """Blocks of systems (S, V, k) whose replicates fit into a bounded buffer."""
    step = max(1, _CHUNK_BYTES // (8 * max(len(columns), 1) * max(replicates, 1)))
    for first in range(0, len(sums_by_system), step):
        block = [sums[:, columns] for sums in sums_by_system[first : first + step]]
        yield first, np.stack(block).astype(np.float64)


def _metric_rows(
    first: int,
    metric: Metric,
    settings: IntervalSettings,
    stack: Array,
    exact: Array,
    replicate: Array,
    indices: list[int],
) -> list[MetricInterval]:
    own = stack[:, :, indices]
    jack = jackknife(metric.function, own, metric.denominator)
    estimate = jack.estimate()
    careful = careful_interval(estimate, metric.bounds, settings.confidence)
    values = metric_replicates(metric.function, replicate, indices)
    if settings.interval == "jackknife":
        (low, high), dropped = careful, np.isnan(values).sum(axis=-1)
    else:
        if settings.interval == "bca":
            found = _bca(metric, exact[:, :, indices], jack, values, settings.confidence)
        else:
            found = percentile_interval(values, settings.confidence)
        low, high, dropped = found.low, found.high, found.dropped
    parts = smallest_part(metric.function, own, metric.denominator)
    nonzero = (own[:, :, list(metric.numerator)] != 0).any(axis=-1).sum(axis=-1)
    rows = []
    for s in range(len(stack)):
        warning = None
        if np.isfinite(jack.value[s]):
            warning = small_sample_warning(
                int(estimate.clusters[s]),
                int(nonzero[s]),
                None if parts is None else int(parts[s]),
                dropped[s] / max(values.shape[-1], 1),
            )
        ends = (low[s], high[s], careful[0][s], careful[1][s])
        if np.isnan(jack.value[s]):
            ends = (np.nan,) * 4
        rows.append(
            _row(
                first + s,
                metric,
                settings,
                jack.value[s],
                ends,
                int(estimate.clusters[s]),
                int(nonzero[s]),
                int(dropped[s]),
                warning,
            )
        )
    return rows


def _bca(
    metric: Metric, exact: Array, jack: Jackknife, values: Array, confidence: float
) -> Interval:
    # The point must come from the same rounded columns as the replicates, or ties would be missed.
    point = evaluate(metric.function, exact.sum(axis=1))
    left = jack.deviation + jack.value[:, None]
    return bca_interval(values, point, left, confidence)


def _quantile_rows(
    system: int,
    metrics: Sequence[Metric],
    settings: IntervalSettings,
    units: UnitValues,
    replicates: Array,
) -> list[MetricInterval]:
    """Quantile metrics of the same values of one system, from their replicates (Q, B)."""
    settings = replace(settings, interval="percentile")
    n_replicates = replicates.shape[1]
    if not len(units.values):
        nothing = (np.nan,) * 4
        return [
            _row(system, m, settings, np.nan, nothing, 0, 0, n_replicates, None) for m in metrics
        ]
    probabilities = [m.quantile[1] for m in metrics if m.quantile is not None]
    interval = percentile_interval(replicates, settings.confidence)
    clusters = len(np.unique(units.clusters))
    rows = []
    for i, (metric, q) in enumerate(zip(metrics, probabilities, strict=True)):
        dropped = int(interval.dropped[i])
        warning = small_sample_warning(
            clusters, clusters, None, dropped / max(n_replicates, 1), careful=False
        )
        value = float(np.quantile(units.values, q))
        ends = (float(interval.low[i]), float(interval.high[i]), np.nan, np.nan)
        rows.append(
            _row(system, metric, settings, value, ends, clusters, clusters, dropped, warning)
        )
    return rows


def _row(
    system: int,
    metric: Metric,
    settings: IntervalSettings,
    value: float,
    ends: tuple[float, ...],
    clusters: int,
    nonzero: int,
    dropped: int,
    warning: str | None,
) -> MetricInterval:
    low, high, careful_low, careful_high = (_known(end) for end in ends)
    return MetricInterval(
        system=system,
        metric=metric.name,
        group=metric.group,
        value=_known(value),
        ci_low=low,
        ci_high=high,
        careful_low=careful_low,
        careful_high=careful_high,
        interval_method=settings.interval,
        warning=warning,
        n_clusters=clusters,
        n_nonzero=nonzero,
        dropped=dropped,
        confidence=settings.confidence,
    )


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
