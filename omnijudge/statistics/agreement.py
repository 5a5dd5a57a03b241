"""How far two judges agree, item by item, with intervals over clusters.

Interval: jackknife t over clusters on Fisher's z scale (holds its level from 25 clusters on), with
the bootstrap percentile interval beside it. What is undefined is None and says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from omnijudge.statistics import agreement_measures as measures
from omnijudge.statistics.bootstrap import cluster_counts, percentile_interval
from omnijudge.statistics.gpu import replicate_sums
from omnijudge.statistics.jackknife import evaluate, jackknife, kurtosis_df, t_interval, t_quantile
from omnijudge.statistics.metric import ratio
from omnijudge_kernels.resampling import Array

_LARGEST_TABLE = 160 * 160  # cells; with more distinct values ranks are made anew
_AFFORDABLE_RANKS = 20_000_000  # items times clusters
_CHUNK_BYTES = 64 << 20

ONE_CATEGORY = "both judges used one category only"
BOTH_CONSTANT = "the scores of both judges are constant"
ONE_CONSTANT = "the scores of a judge are constant"
NO_ITEMS = "no item has a verdict from both judges"
FEW_CLUSTERS = "an interval needs at least two clusters"
PERFECT = "agreement is perfect, so there is no variation to estimate an error from"
TOO_MANY = "too many different scores for an interval of a rank correlation"


@dataclass(frozen=True, slots=True)
class Agreement:
    """One measure of agreement. None means undefined; ``reason`` says why.

    Attributes:
        measure: name of the measure.
        value: the measure.
        low: lower end of the Fisher-z jackknife interval.
        high: upper end.
        percentile_low: lower end of the bootstrap percentile interval.
        percentile_high: upper end.
        undefined_share: share of bootstrap replicates in which the measure is undefined.
        reason: why the value, or else its interval, is undefined.
        n_items: items judged by both.
        n_clusters: clusters they come from.
        confidence: level of the intervals.
    """

    measure: str
    value: float | None
    low: float | None
    high: float | None
    percentile_low: float | None
    percentile_high: float | None
    undefined_share: float | None
    reason: str | None
    n_items: int
    n_clusters: int
    confidence: float


@dataclass(frozen=True, slots=True)
class Bias:
    """Difference of scores, second judge minus first (Bland, Altman 1986).

    Attributes:
        mean: mean difference; None without items.
        low: lower end of its jackknife t interval over clusters.
        high: upper end.
        lower_limit: mean - 1.96 standard deviations: most differences lie above.
        upper_limit: mean + 1.96 standard deviations.
        n_items: items judged by both.
        n_clusters: clusters they come from.
    """

    mean: float | None
    low: float | None
    high: float | None
    lower_limit: float | None
    upper_limit: float | None
    n_items: int
    n_clusters: int


@dataclass(frozen=True, slots=True)
class _Items:
    """Items as sums per cluster: row = cluster."""

    n_items: int
    clusters: npt.NDArray[np.int64]
    n_clusters: int
    confidence: float
    replicates: int
    seed: int


def agree_on_categories(
    first: Sequence[Any] | npt.NDArray[Any],
    second: Sequence[Any] | npt.NDArray[Any],
    clusters: Sequence[Any] | npt.NDArray[Any],
    *,
    confidence: float = 0.95,
    replicates: int = 10_000,
    seed: int = 0,
) -> list[Agreement]:
    """Kappa, AC1 and nominal alpha of two judges' labels.

    Args:
        first: (n,) labels of the first judge.
        second: (n,) labels of the second judge on the same items.
        clusters: (n,) cluster of each item.
        confidence: level of the intervals.
        replicates: bootstrap replicates.
        seed: of the resamples.
    """
    items = _items(clusters, len(first), len(second), confidence, replicates, seed)
    labels, codes = np.unique(
        np.concatenate([np.asarray(first), np.asarray(second)]), return_inverse=True
    )
    size = max(len(labels), 1)
    table = _table(items, codes[: items.n_items], codes[items.n_items :], (size, size))
    return [
        _from_sums("kappa", measures.kappa, table, items, ONE_CATEGORY),
        _from_sums("ac1", measures.gwet_ac1, table, items, ONE_CATEGORY),
        _from_sums("alpha", measures.nominal_alpha, table, items, ONE_CATEGORY),
    ]


def agree_on_scores(
    first: Sequence[float] | Array,
    second: Sequence[float] | Array,
    clusters: Sequence[Any] | npt.NDArray[Any],
    *,
    bounds: tuple[float, float] | None = None,
    bins: int = 5,
    confidence: float = 0.95,
    replicates: int = 10_000,
    seed: int = 0,
) -> list[Agreement]:
    """Correlations, concordance, ICC, interval alpha and quadratic kappa of two judges' scores.

    Args:
        first: (n,) finite scores of the first judge.
        second: (n,) finite scores of the second judge on the same items.
        clusters: (n,) cluster of each item.
        bounds: range of the scores, cut into equal bins for the quadratic kappa; left out if None.
        bins: number of bins.
        confidence: level of the intervals.
        replicates: bootstrap replicates.
        seed: of the resamples.
    """
    x, y = np.asarray(first, np.float64), np.asarray(second, np.float64)
    items = _items(clusters, len(x), len(y), confidence, replicates, seed)
    # One common shift: concordance depends on the distance between the two means.
    shift = (x.mean() + y.mean()) / 2 if items.n_items else 0.0
    u, v = x - shift, y - shift
    moments = _grouped(items, np.stack([np.ones_like(u), u, v, u * u, v * v, u * v], axis=1))
    found = [
        _from_sums("pearson", measures.pearson, moments, items, ONE_CONSTANT),
        _ranked("spearman", x, y, items),
        _ranked("kendall", x, y, items),
        _from_sums("lin", measures.lin_concordance, moments, items, BOTH_CONSTANT),
        _from_sums("icc", measures.intraclass, moments, items, BOTH_CONSTANT),
        _from_sums("alpha", measures.interval_alpha, moments, items, BOTH_CONSTANT),
    ]
    if bounds is not None:
        low, high = bounds
        codes = [
            np.clip(np.floor((s - low) / (high - low) * bins), 0, bins - 1).astype(np.int64)
            for s in (x, y)
        ]
        table = _table(items, codes[0], codes[1], (bins, bins))
        found.append(
            _from_sums("quadratic_kappa", measures.quadratic_kappa, table, items, ONE_CATEGORY)
        )
    return found


def score_bias(
    first: Sequence[float] | Array,
    second: Sequence[float] | Array,
    clusters: Sequence[Any] | npt.NDArray[Any],
    *,
    confidence: float = 0.95,
) -> Bias:
    """Mean difference of scores with its interval, and the limits of agreement."""
    difference = np.asarray(second, np.float64) - np.asarray(first, np.float64)
    items = _items(clusters, len(difference), len(difference), confidence, 0, 0)
    if not items.n_items:
        return Bias(None, None, None, None, None, 0, 0)
    sums = _grouped(items, np.stack([difference, np.ones_like(difference)], axis=1))
    low, high = t_interval(jackknife(ratio, sums, (1,)).estimate(), confidence)
    mean = float(difference.mean())
    spread = 1.96 * float(difference.std(ddof=1)) if items.n_items > 1 else np.nan
    return Bias(
        mean,
        _known(low),
        _known(high),
        _known(mean - spread),
        _known(mean + spread),
        items.n_items,
        items.n_clusters,
    )


def _items(
    clusters: Sequence[Any] | npt.NDArray[Any],
    n_first: int,
    n_second: int,
    confidence: float,
    replicates: int,
    seed: int,
) -> _Items:
    if not len(clusters) == n_first == n_second:
        raise ValueError(
            f"{n_first} and {n_second} verdicts for {len(clusters)} items; pair them up first"
        )
    names, index = np.unique(np.asarray(clusters), return_inverse=True)
    return _Items(n_first, index.astype(np.int64), len(names), confidence, replicates, seed)


def _grouped(items: _Items, values: Array) -> Array:
    """Sums of (n, k) values per cluster, (V, k)."""
    result = np.zeros((items.n_clusters, values.shape[1]))
    np.add.at(result, items.clusters, values)
    return result


def _table(
    items: _Items,
    rows: npt.NDArray[np.integer],
    columns: npt.NDArray[np.integer],
    shape: tuple[int, int],
) -> Array:
    """How often each pair of categories occurs in each cluster, (V, rows * columns)."""
    cells = shape[0] * shape[1]
    flat = items.clusters * cells + rows * shape[1] + columns
    counts = np.bincount(flat, minlength=items.n_clusters * cells)
    return counts.reshape(items.n_clusters, cells).astype(np.float64)


def _from_sums(
    name: str, function: Callable[[Array], Array], sums: Array, items: _Items, why: str
) -> Agreement:
    if not items.n_items:
        return _undefined(name, items, NO_ITEMS)
    totals = sums.sum(axis=0)
    value = float(evaluate(function, totals))
    if np.isnan(value):
        return _undefined(name, items, why)
    counts = cluster_counts(items.n_clusters, items.replicates, items.seed)
    step = max(1, _CHUNK_BYTES // (8 * sums.shape[1]))
    replicates = np.concatenate(
        [np.empty(0)]
        + [
            evaluate(function, replicate_sums(counts[first : first + step], sums).T)
            for first in range(0, len(counts), step)
        ]
    )
    percentile = percentile_interval(replicates, items.confidence)
    undefined = int(percentile.dropped) / len(replicates) if len(replicates) else None
    left = evaluate(function, totals - sums)
    return _result(name, value, left, items, (percentile.low, percentile.high), undefined)


def _ranked(name: str, x: Array, y: Array, items: _Items) -> Agreement:
    """Rank correlation: from a table if the judges use few different scores, else anew."""
    if not items.n_items:
        return _undefined(name, items, NO_ITEMS)
    xs, i = np.unique(x, return_inverse=True)
    ys, j = np.unique(y, return_inverse=True)
    if len(xs) < 2 or len(ys) < 2:
        return _undefined(name, items, ONE_CONSTANT)
    value = _rank_correlation(name, x, y)
    shape = (len(xs), len(ys))
    if shape[0] * shape[1] <= _LARGEST_TABLE:
        table = _table(items, i, j, shape)
        function = partial(
            measures.spearman if name == "spearman" else measures.kendall, shape=shape
        )
        totals = table.sum(axis=0)
        left = np.array([float(evaluate(function, totals - row)) for row in table])
    elif items.n_items * items.n_clusters <= _AFFORDABLE_RANKS:
        order = np.argsort(items.clusters, kind="stable")
        ends = np.cumsum(np.bincount(items.clusters, minlength=items.n_clusters))
        keep = np.ones(items.n_items, np.bool_)
        left = np.empty(items.n_clusters)
        for c, end in enumerate(ends):
            own = order[ends[c - 1] if c else 0 : end]
            keep[own] = False
            left[c] = _rank_correlation(name, x[keep], y[keep])
            keep[own] = True
    else:
        return _undefined(name, items, TOO_MANY, value)
    return _result(name, value, left, items, (np.nan, np.nan), None)


def _rank_correlation(name: str, x: Array, y: Array) -> float:
    from scipy.stats import kendalltau, spearmanr

    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float((spearmanr if name == "spearman" else kendalltau)(x, y).statistic)


def _result(
    name: str,
    value: float,
    left: Array,
    items: _Items,
    percentile: tuple[Any, Any],
    undefined_share: float | None,
) -> Agreement:
    low, high, reason = np.nan, np.nan, None
    if items.n_clusters < 2:
        reason = FEW_CLUSTERS
    elif abs(value) > 1 - 1e-12:
        reason = PERFECT
    else:
        low, high = fisher_interval(value, left, items.confidence)
    return Agreement(
        name,
        value,
        _known(low),
        _known(high),
        _known(percentile[0]),
        _known(percentile[1]),
        undefined_share,
        reason,
        items.n_items,
        items.n_clusters,
        items.confidence,
    )


def fisher_interval(value: float, left: Array, confidence: float) -> tuple[float, float]:
    """Jackknife t interval on Fisher's z scale.

    Args:
        value: the measure, between -1 and 1 exclusive.
        left: (V,) the measure without each cluster; NaN counts as no change.
        confidence: such as 0.95.
    """
    m = len(left)
    filled = np.where(np.isfinite(left), left, value)
    error = np.sqrt((m - 1) / m * ((filled - value) ** 2).sum())
    df = kurtosis_df(filled.mean() - filled, np.asarray(m), 1.0, np.asarray(m - 1.0))
    half = float(t_quantile(confidence, df) * error / (1 - value**2))
    centre = np.arctanh(value)
    return float(np.tanh(centre - half)), float(np.tanh(centre + half))


def _undefined(name: str, items: _Items, reason: str, value: float | None = None) -> Agreement:
    return Agreement(
        name,
        value,
        None,
        None,
        None,
        None,
        None,
        reason,
        items.n_items,
        items.n_clusters,
        items.confidence,
    )


def _known(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
