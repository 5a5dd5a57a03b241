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
