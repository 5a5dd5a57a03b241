"""Paired differences between systems on the same clusters.

Interval: bootstrap percentile by default, with the jackknife t interval always beside it.
p-value: sign flip by cluster, adjusted in a family of one metric in one group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

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
from omnijudge.statistics.intervals import IntervalMethod, IntervalSettings
from omnijudge.statistics.jackknife import (
    Estimate,
    Jackknife,
    evaluate,
    jackknife,
    paired,
    t_interval,
    t_quantile,
)
from omnijudge.statistics.metric import Metric, Sum
from omnijudge.statistics.multiple import Adjustment, adjust
from omnijudge.statistics.pairs import all_pairs, pair_intervals
from omnijudge.statistics.sign_flip import FlipTest, flip_sums, plan_flips
from omnijudge_kernels.resampling import Array, Counts, exact_columns

POWER = 0.8


@dataclass(frozen=True, slots=True)
class Differences:
    """One metric compared over a family of pairs; arrays are (P,), NaN where undefined.

    Attributes:
        metric: metric name.
        group: group name.
        first: system that is subtracted (the baseline), as a position in the input; -1 where the
            baseline was given apart.
        second: system it is subtracted from.
        difference: second minus first.
        ci_low: lower end of the interval.
        ci_high: upper end.
        careful_low: lower end of the jackknife t interval.
        careful_high: upper end.
        interval_method: kind of ``ci_low``, ``ci_high``.
        p_value: sign flip by cluster, or the jackknife t tail where ``by_tail``.
        p_adjusted: adjusted inside this family.
        smallest_p: the smallest p the flips could give.
        by_tail: no flip reached the difference and the family needs more flips than can be
            afforded, so p is that of the jackknife t.
        detectable: true difference that would be found with 80 % probability, unadjusted.
        n_clusters: clusters in which either system has data.
        dropped: bootstrap replicates in which the difference was undefined.
        confidence: level of the intervals.
        adjustment: ``holm`` or ``bh``.
    """

    metric: str
    group: str
    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    difference: Array
    ci_low: Array
    ci_high: Array
    careful_low: Array
    careful_high: Array
    interval_method: IntervalMethod
    p_value: Array
    p_adjusted: Array
    smallest_p: Array
    by_tail: npt.NDArray[np.bool_]
    detectable: Array
    n_clusters: npt.NDArray[np.int64]
    dropped: npt.NDArray[np.int64]
    confidence: float
    adjustment: Adjustment


def compare_to_baseline(
    metrics: Sequence[Metric],
    sums_by_system: Sequence[Array],
    baseline: int | Sequence[Array],
    sums: Sequence[Sum],
    settings: IntervalSettings | None = None,
) -> list[Differences]:
    """Every other system against one; one family of comparisons per metric.

    Args:
        metrics: what to compare. Quantile metrics are left out.
        sums_by_system: per system a (V, K) matrix, row = cluster.
        baseline: position of the baseline; or, where the systems were not scored on the same
            samples, per system the baseline's own (V, K) matrix over the samples scored for both.
        sums: the K sums.
        settings: replicates, level, kind, seed, adjustment.
    """
    settings = settings or IntervalSettings()
    everything = np.stack(list(sums_by_system)).astype(np.float64)
    if isinstance(baseline, int):
        second = np.array([s for s in range(len(everything)) if s != baseline], np.int64)
        first_stack = everything[baseline : baseline + 1]
        first = np.full(len(second), baseline, np.int64)
    else:
        second = np.arange(len(everything), dtype=np.int64)
        first_stack = np.stack(list(baseline)).astype(np.float64)
        first = np.full(len(second), -1, np.int64)
    counts = cluster_counts(everything.shape[1], settings.replicates, settings.seed)
    found = []
    for metric, columns in _with_columns(metrics, sums):
        sides = first_stack[..., columns], everything[second][..., columns]
        jacks = [jackknife(metric.function, side, metric.denominator) for side in sides]
        difference = paired(jacks[0], jacks[1])
        test = FlipTest(metric.function, *sides, jacks[0].value, jacks[1].value)
        plan = plan_flips(test.family, settings.replicates, 1 - settings.confidence)
        for flipped in flip_sums(sides, plan.flips, settings.seed):
            test.add(*flipped)
        interval = _interval(metric, sides, difference, counts, settings)
        found.append(
            _assemble(
                metric,
                settings,
                (first, second),
                difference.estimate(),
                interval,
                test,
                plan.enough,
            )
        )
    return found


def compare_all(
    metrics: Sequence[Metric],
    sums_by_system: Sequence[Array],
    sums: Sequence[Sum],
    settings: IntervalSettings | None = None,
) -> list[Differences]:
    """Every pair of systems, in the order of `omnijudge.statistics.pairs.all_pairs`."""
    settings = settings or IntervalSettings()
    everything = np.stack(list(sums_by_system)).astype(np.float64)
    counts = cluster_counts(everything.shape[1], settings.replicates, settings.seed)
    return [
        all_differences(metric, everything[..., columns], settings, counts)
        for metric, columns in _with_columns(metrics, sums)
    ]


def all_differences(
    metric: Metric, stack: Array, settings: IntervalSettings, counts: Counts | None = None
) -> Differences:
    """One metric over all pairs.

    Args:
        metric: the metric.
        stack: (S, V, k) its sums.
        settings: level, kind, seed, adjustment.
        counts: (B, V) resamples; without them ``ci_low``, ``ci_high`` are the jackknife's.
    """
    jack = jackknife(metric.function, stack, metric.denominator)
    pairs = all_pairs(len(stack))
    estimate = _joined(
        [paired(jack[i : i + 1], jack[i + 1 :]).estimate() for i in range(max(len(stack) - 1, 0))]
    )
    tests = [
        FlipTest(
            metric.function,
            stack[i : i + 1],
            stack[i + 1 :],
            jack.value[i : i + 1],
            jack.value[i + 1 :],
        )
        for i in range(max(len(stack) - 1, 0))
    ]
    plan = plan_flips(
        sum(test.family for test in tests), settings.replicates, 1 - settings.confidence
    )
    for (flipped,) in flip_sums((stack,), plan.flips, settings.seed):
        for i, test in enumerate(tests):
            test.add(flipped[:, i : i + 1], flipped[:, i + 1 :])
    interval = None
    if counts is not None and settings.interval != "jackknife":
        interval = pair_intervals(
            _replicates(metric, stack, counts),
            settings.confidence,
            settings.interval,
            value=_exact_value(metric, stack),
            leave_one_out=jack.deviation + jack.value[:, None],
        )
    return _assemble(
        metric, settings, pairs, estimate, interval, FlipTest.joined(tests), plan.enough
    )


def differences_on_common(
    metric: Metric,
    n_systems: int,
    pair_sums: Callable[[int], tuple[Array, Array]],
    settings: IntervalSettings,
    counts: Counts | None = None,
) -> Differences:
    """One metric over all pairs of systems that were not scored on the same samples.

    Args:
        metric: the metric.
        n_systems: number of systems S.
        pair_sums: for system i the sums (S - i - 1, V, k) of i itself and of each system after it,
            both over the samples scored for the two.
        settings: level, kind, seed, adjustment.
        counts: (B, V) resamples; without them ``ci_low``, ``ci_high`` are the jackknife's.
    """
    tests: list[FlipTest] = []
    estimates: list[Estimate] = []
    intervals: list[Interval] = []
    for i in range(max(n_systems - 1, 0)):
        sides = pair_sums(i)
        jacks = [jackknife(metric.function, side, metric.denominator) for side in sides]
        difference = paired(jacks[0], jacks[1])
        estimates.append(difference.estimate())
        tests.append(FlipTest(metric.function, *sides, jacks[0].value, jacks[1].value))
        if counts is not None:
            found = _interval(metric, sides, difference, counts, settings)
            if found is not None:
                intervals.append(found)
    plan = plan_flips(
        sum(test.family for test in tests), settings.replicates, 1 - settings.confidence
    )
    for i, test in enumerate(tests):
        for flipped in flip_sums(pair_sums(i), plan.flips, settings.seed):
            test.add(*flipped)
    interval = None
    if intervals:
        names = ("low", "high", "dropped")
        interval = Interval(*(np.concatenate([getattr(x, n) for x in intervals]) for n in names))
    return _assemble(
        metric,
        settings,
        all_pairs(n_systems),
        _joined(estimates),
        interval,
        FlipTest.joined(tests),
        plan.enough,
    )


def _joined(estimates: Sequence[Estimate]) -> Estimate:
    return Estimate(
        *(
            np.concatenate([getattr(part, name) for part in estimates] or [np.empty(0)])
            for name in ("value", "variance", "df", "clusters")
        )
    )


def _with_columns(
    metrics: Sequence[Metric], sums: Sequence[Sum]
) -> Iterator[tuple[Metric, list[int]]]:
    position = {name: k for k, name in enumerate(sums)}
    for metric in metrics:
        if metric.quantile is None:
            yield metric, [position[s] for s in metric.sums]


def _replicates(metric: Metric, stack: Array, counts: Counts) -> Array:
    replicate = replicate_sums(counts, stack.transpose(1, 2, 0))
    return metric_replicates(metric.function, replicate, range(stack.shape[2]))


def _exact_value(metric: Metric, stack: Array) -> Array:
    """The metric of the rounded columns that replicates are made of."""
    columns = exact_columns(stack.transpose(0, 2, 1), stack.shape[1])
    return evaluate(metric.function, columns.sum(axis=-1))


def _interval(
    metric: Metric,
    sides: tuple[Array, Array],
    difference: Jackknife,
    counts: Counts,
    settings: IntervalSettings,
) -> Interval | None:
    if settings.interval == "jackknife":
        return None
    moved = _replicates(metric, sides[1], counts) - _replicates(metric, sides[0], counts)
    if settings.interval == "percentile":
        return percentile_interval(moved, settings.confidence)
    point = _exact_value(metric, sides[1]) - _exact_value(metric, sides[0])
    left = difference.deviation + difference.value[:, None]
    return bca_interval(moved, point, left, settings.confidence)


def _assemble(
    metric: Metric,
    settings: IntervalSettings,
    pairs: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
    estimate: Estimate,
    interval: Interval | None,
    test: FlipTest,
    enough: bool,
) -> Differences:
    from scipy.special import stdtr

    careful_low, careful_high = t_interval(estimate, settings.confidence)
    if interval is None:
        dropped = np.zeros(len(careful_low), np.int64)
        interval = Interval(careful_low, careful_high, dropped)
        method: IntervalMethod = "jackknife"
    else:
        method = settings.interval
    error = np.sqrt(estimate.variance)
    p_value, smallest = test.p_values()
    by_tail = np.zeros(len(p_value), np.bool_)
    if not enough:
        with np.errstate(divide="ignore", invalid="ignore"):
            tail = 2 * stdtr(estimate.df, -np.abs(estimate.value) / error)
        by_tail = (test.reached == 0) & (error > 0) & (tail < p_value)
        p_value = np.where(by_tail, tail, p_value)
    known = np.isfinite(estimate.value)
    p_value = np.where(known, p_value, np.nan)
    reach = t_quantile(settings.confidence, estimate.df) + t_quantile(2 * POWER - 1, estimate.df)
    return Differences(
        metric=metric.name,
        group=metric.group,
        first=pairs[0],
        second=pairs[1],
        difference=estimate.value,
        ci_low=np.where(known, interval.low, np.nan),
        ci_high=np.where(known, interval.high, np.nan),
        careful_low=careful_low,
        careful_high=careful_high,
        interval_method=method,
        p_value=p_value,
        p_adjusted=adjust(p_value, settings.adjustment),
        smallest_p=np.where(known, smallest, np.nan),
        by_tail=by_tail & known,
        detectable=reach * error,
        n_clusters=estimate.clusters,
        dropped=interval.dropped,
        confidence=settings.confidence,
        adjustment=settings.adjustment,
    )
