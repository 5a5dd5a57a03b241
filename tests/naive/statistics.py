"""Slow, obvious forms of the statistics, to compare with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

MASK = (1 << 64) - 1


def splitmix_words(state: int, count: int) -> list[int]:
    """Outputs of the published SplitMix64 generator, in Python integers."""
    words = []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        words.append(z ^ (z >> 31))
    return words


def resample_counts(key: int, n_clusters: int) -> list[int]:
    """Counts of one resample from the key of its stream."""
    counts = [0] * n_clusters
    drawn = []
    for word in splitmix_words(key, (n_clusters + 1) // 2):
        drawn += [word & 0xFFFFFFFF, word >> 32]
    for half in drawn[:n_clusters]:
        counts[half * n_clusters >> 32] += 1
    return counts


def resampled_statistic(
    function: Callable[[Any], Any], sums: Any, resamples: Sequence[Sequence[int]]
) -> list[float]:
    """The statistic of each explicit resample; NaN where undefined."""
    return [float(function(np.asarray(sums, float)[list(r)].sum(axis=0))) for r in resamples]


def percentile(values: Sequence[float], q: float) -> float:
    """Linear interpolation at q * (n - 1) among defined values."""
    ordered = sorted(v for v in values if v == v)
    position = q * (len(ordered) - 1)
    index = min(int(position), len(ordered) - 1)
    after = min(index + 1, len(ordered) - 1)
    return ordered[index] + (position - index) * (ordered[after] - ordered[index])


def expanded_quantile(
    values: Sequence[float], clusters: Sequence[int], counts: Sequence[int], q: float
) -> float:
    """Quantile of the units of one resample, written out one by one."""
    units = [v for v, c in zip(values, clusters, strict=True) for _ in range(counts[c])]
    return percentile(units, q) if units else float("nan")


def exact_replicates(sums: Any, counts: Any) -> list[list[Fraction]]:
    """Sums of each resample in exact rationals, (K, B)."""
    rows = [[Fraction(float(x)) for x in column] for column in np.asarray(sums, float).T]
    return [
        [sum((int(c) * x for c, x in zip(row, column, strict=True)), Fraction(0)) for row in counts]
        for column in rows
    ]


def leave_one_out(function: Callable[[Any], Any], sums: Any) -> list[float]:
    """The statistic without each cluster."""
    rows = np.asarray(sums, float)
    return [float(function(np.delete(rows, c, axis=0).sum(axis=0))) for c in range(len(rows))]


def jackknife_variance(function: Callable[[Any], Any], sums: Any, present: Any) -> float:
    """(m - 1) / m * sum of squared changes over the clusters with data."""
    value = float(function(np.asarray(sums, float).sum(axis=0)))
    left = [x for x, p in zip(leave_one_out(function, sums), present, strict=True) if p]
    m = len(left)
    return (m - 1) / m * sum((x - value) ** 2 for x in left if x == x)


def kurtosis_df(influence: Sequence[float], least: float, most: float) -> float:
    """2 m / (kurtosis - 1) within limits."""
    m = len(influence)
    kurtosis = m * sum(z**4 for z in influence) / sum(z**2 for z in influence) ** 2
    if kurtosis - 1 < 1e-9:  # all of one size: no doubt about the variance
        return most
    return min(max(2 * m / (kurtosis - 1), least), most)


def every_flip(function: Callable[[Any], Any], first: Any, second: Any) -> list[float]:
    """The difference for every set of swapped clusters."""
    a, b = np.asarray(first, float), np.asarray(second, float)
    found = []
    for code in range(2 ** len(a)):
        swap = np.array([code >> c & 1 for c in range(len(a))], bool)[:, None]
        one, other = np.where(swap, b, a).sum(axis=0), np.where(swap, a, b).sum(axis=0)
        found.append(float(function(other)) - float(function(one)))
    return found


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjustment, step by step."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, worst = [0.0] * len(p_values), 0.0
    for step, i in enumerate(order):
        worst = max(worst, min(1.0, (len(p_values) - step) * p_values[i]))
        adjusted[i] = worst
    return adjusted


def rectified_ratio(
    gold: Sequence[tuple[float, float]], cheap: Sequence[tuple[float, float]], sample: Sequence[int]
) -> dict[str, float]:
    """The correction of a ratio of sums, step by step, with its gradient in closed form."""
    n, total = len(gold), len(cheap)
    inside = [cheap[i] for i in sample]

    def mean(rows: Sequence[tuple[float, float]], k: int) -> float:
        return sum(row[k] for row in rows) / len(rows)

    def influence(
        rows: Sequence[tuple[float, float]], of: Sequence[tuple[float, float]]
    ) -> list[float]:
        top, bottom = mean(of, 0), mean(of, 1)
        return [x / bottom - top / bottom**2 * d for x, d in rows]

    z, q = influence(gold, gold), influence(inside, cheap)
    middle = sum(q) / n
    q = [x - middle for x in q]
    spread = sum(x * x for x in q)
    weight = min(max(sum(a * b for a, b in zip(z, q, strict=True)) / spread, 0.0), 1.0)
    value = mean(gold, 0) / mean(gold, 1) + weight * (
        mean(cheap, 0) / mean(cheap, 1) - mean(inside, 0) / mean(inside, 1)
    )
    residual = [a - weight * b for a, b in zip(z, q, strict=True)]
    leverage = [min(1 / n + b * b / spread, 0.9) for b in q]
    a = (n - 1) / n**3 * sum((e / (1 - h)) ** 2 for e, h in zip(residual, leverage, strict=True))
    finite = (1 - n / total) * a
    beyond = finite + sum(x * x for x in z) / ((n - 1) * total)
    df = kurtosis_df(residual, 2.0, n - 2.0)
    return {"value": value, "finite": finite, "superpopulation": beyond, "df": df, "weight": weight}
