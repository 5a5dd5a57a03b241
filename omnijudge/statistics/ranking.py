"""Ranks with intervals that hold for all systems at once.

Percentile intervals of ranks fail when systems are tied, and the chance of being best says little:
with two equal systems it exceeds 95 % in one data set of eight. So a rank interval counts the
systems that are significantly better or worse (pairwise sign flips, Holm), and the best system's
own value gets a Bonferroni interval, because it was chosen for being high.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from omnijudge.statistics.bootstrap import cluster_counts, metric_replicates
from omnijudge.statistics.comparison import Differences, all_differences
from omnijudge.statistics.gpu import replicate_sums
from omnijudge.statistics.intervals import IntervalSettings
from omnijudge.statistics.jackknife import careful_interval, jackknife
from omnijudge.statistics.metric import Metric, Sum
from omnijudge_kernels.resampling import Array, Counts

_SAME = 1e-12  # values closer than this share a rank


@dataclass(frozen=True, slots=True)
class Ranks:
    """Ranks of all systems by one metric; arrays are (S,), rank 1 is best.

    Attributes:
        metric: metric name.
        group: group name.
        value: the metric, NaN where undefined.
        rank: 1 + number of systems with a better value; 0 where the value is undefined.
        rank_low: best rank that is possible: 1 + number of systems significantly better.
        rank_high: worst rank: number of ranked systems less those significantly worse.
        p_best: share of bootstrap replicates in which the system is best (ties are shared).
            Descriptive: no test.
        winner: system with the best value (the first, if tied); None if nothing is ranked.
        winner_low: lower end of the winner's interval, corrected for the choice.
        winner_high: upper end.
    """

    metric: str
    group: str
    value: Array
    rank: npt.NDArray[np.int64]
    rank_low: npt.NDArray[np.int64]
    rank_high: npt.NDArray[np.int64]
    p_best: Array
    winner: int | None
    winner_low: float | None
    winner_high: float | None


def rank_systems(
    metrics: Sequence[Metric],
    sums_by_system: Sequence[Array],
    sums: Sequence[Sum],
    settings: IntervalSettings | None = None,
    differences: Sequence[Differences] | None = None,
) -> list[Ranks]:
    """Ranks by every metric that has a direction.

    Args:
        metrics: what to rank by. Metrics without direction and quantile metrics are left out.
        sums_by_system: per system a (V, K) matrix, row = cluster.
        sums: the K sums.
        settings: replicates, level, seed.
        differences: all pairs by each metric that is ranked, where the systems were not scored on
            the same samples; by default they are made from the sums, adjusted by Holm.
    """
    settings = replace(settings or IntervalSettings(), interval="jackknife", adjustment="holm")
    if not sums_by_system:
        return []
    everything = np.stack(list(sums_by_system)).astype(np.float64)
    position = {name: k for k, name in enumerate(sums)}
    counts = cluster_counts(everything.shape[1], settings.replicates, settings.seed)
    ranked = [m for m in metrics if m.higher_is_better is not None and m.quantile is None]
    found = []
    for i, metric in enumerate(ranked):
        stack = everything[..., [position[s] for s in metric.sums]]
        pairs = differences[i] if differences else all_differences(metric, stack, settings)
        found.append(_ranks(metric, stack, pairs, counts, settings))
    return found


def _ranks(
    metric: Metric,
    stack: Array,
    differences: Differences,
    counts: Counts,
    settings: IntervalSettings,
) -> Ranks:
    jack = jackknife(metric.function, stack, metric.denominator)
    sign = 1.0 if metric.higher_is_better else -1.0
    score = sign * jack.value
    ranked = np.isfinite(score)
    with np.errstate(invalid="ignore"):
        rank = 1 + (score[None, :] > score[:, None] + _SAME).sum(axis=1)
    better, worse = significant(differences, sign, len(stack), 1 - settings.confidence)
    best = best_share(sign * _replicates(metric, stack, counts))
    winner, low, high = None, None, None
    if ranked.any():
        winner = int(np.nanargmax(score))
        chosen_from = int(ranked.sum())
        ends = careful_interval(
            jack[winner : winner + 1].estimate(),
            metric.bounds,
            1 - (1 - settings.confidence) / chosen_from,
        )
        low, high = (float(end[0]) if np.isfinite(end[0]) else None for end in ends)
    return Ranks(
        metric=metric.name,
        group=metric.group,
        value=jack.value,
        rank=np.where(ranked, rank, 0),
        rank_low=np.where(ranked, 1 + better, 0),
        rank_high=np.where(ranked, ranked.sum() - worse, 0),
        p_best=np.where(ranked, best, np.nan),
        winner=winner,
        winner_low=low,
        winner_high=high,
    )


def _replicates(metric: Metric, stack: Array, counts: Counts) -> Array:
    replicate = replicate_sums(counts, stack.transpose(1, 2, 0))
    return metric_replicates(metric.function, replicate, range(stack.shape[2]))


def significant(
    differences: Differences, sign: float, n_systems: int, error: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """How many systems are significantly better, and worse, than each, (S,) each.

    Args:
        differences: all pairs of one metric.
        sign: 1 if higher is better, -1 if lower is.
        n_systems: number of systems S.
        error: level, such as 0.05.
    """
    with np.errstate(invalid="ignore"):
        clear = differences.p_adjusted <= error
        up = clear & (sign * differences.difference > 0)
        down = clear & (sign * differences.difference < 0)
    upper = np.where(up, differences.second, differences.first)[up | down]
    lower = np.where(up, differences.first, differences.second)[up | down]
    better = np.bincount(lower, minlength=n_systems)
    worse = np.bincount(upper, minlength=n_systems)
    return better.astype(np.int64), worse.astype(np.int64)


def best_share(scores: Array) -> Array:
    """Share of replicates in which each system is best, ties shared, undefined ones last.

    Replicates in which no system has a value are left out.

    Args:
        scores: (S, B), higher is better; NaN where undefined.
    """
    filled = np.where(np.isnan(scores), -np.inf, scores)
    top = filled.max(axis=0)
    won = (filled >= top - _SAME) & np.isfinite(filled)
    winners = won.sum(axis=0)
    counted = max(int((winners > 0).sum()), 1)
    return np.asarray((won / np.maximum(winners, 1)).sum(axis=1) / counted)
