"""Metrics of a cheap judge on all clusters, corrected by a gold judge on a random sample of them.

The gold sample alone gives an unbiased but wide interval, the cheap judge alone a narrow but biased
one. The regression estimator takes from the cheap judge only what it explains of the gold judge:

    theta = g(S_n) + lambda * (g(F_N) - g(F_n))

with S the gold sums, F the cheap ones, n the sampled clusters out of N. Variance from residuals
with leverage (HC3), degrees of freedom from their kurtosis. Where the cheap judge does not help,
the gold sample alone is reported, so the interval is never more than 5 % wider than that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from omnijudge.statistics.gold_design import Design, make_design
from omnijudge.statistics.jackknife import (
    Bounds,
    Estimate,
    Function,
    evaluate,
    gradient,
    kurtosis_df,
    logit_interval,
    t_quantile,
)
from omnijudge.statistics.metric import Metric
from omnijudge_kernels.resampling import Array

Target = Literal["finite", "superpopulation"]

FEWEST_CHANGED = 5
_MUCH = 0.2
"""The judges differ by much in a cluster if what it adds to the metric differs by more than this
share of the spread of all clusters. A few such clusters can carry the whole error while small
differences are everywhere; a sample that misses them looks too sure. Not part of the method as
published: a warning, and a fall-back only if asked for."""
FEWEST_GOLD = 15
_WIDEST = 1.05
_LARGEST_LEVERAGE = 0.9
_AT_THE_END = 1e-4


@dataclass(frozen=True, slots=True)
class Rectified:
    """One metric of one system, or one difference of two. None means undefined.

    Attributes:
        metric: metric name.
        group: group name.
        value: the corrected metric.
        low: lower end of its interval.
        high: upper end.
        target: ``finite``: the gold judge on exactly these N clusters; ``superpopulation``: on the
            videos they stand for.
        method: ``rectified``, or ``gold only`` where the cheap judge does not help.
        reason: why gold only.
        weight: lambda, the weight of the cheap judge; 0 for gold only.
        df: degrees of freedom.
        cheap: the metric under the cheap judge on all clusters.
        gold: the metric under the gold judge on the sample.
        gold_low: lower end of the interval from the sample alone.
        gold_high: upper end.
        n_gold: sampled clusters n.
        n_clusters: all clusters N.
        n_changed: sampled clusters in which the two judges differ.
        warning: why the interval may be off, if it may.
        confidence: level of the intervals.
    """

    metric: str
    group: str
    value: float | None
    low: float | None
    high: float | None
    target: Target
    method: Literal["rectified", "gold only"]
    reason: str | None
    weight: float
    df: float | None
    cheap: float | None
    gold: float | None
    gold_low: float | None
    gold_high: float | None
    n_gold: int
    n_clusters: int
    n_changed: int
    warning: str | None
    confidence: float


@dataclass(frozen=True, slots=True)
class _Parts:
    """Both estimators of S statistics; all arrays are (S,)."""

    gold: Array
    gold_variance: Array
    gold_df: Array
    value: Array
    variance: Array
    df: Array
    weight: Array
    cheap: Array
    changed: npt.NDArray[np.int64]
    moved: npt.NDArray[np.int64]
    gold_clusters: npt.NDArray[np.int64]


def rectify(
    metric: Metric,
    gold: Array,
    cheap: Array,
    sample: npt.NDArray[np.int64],
    *,
    strata: npt.NDArray[np.int64] | None = None,
    target: Target = "finite",
    confidence: float = 0.95,
    guard_rare_errors: bool = False,
) -> list[Rectified]:
    """Correct a metric, system by system.

    Args:
        metric: the metric.
        gold: (S, n, k) its sums under the gold judge on the sampled clusters.
        cheap: (S, N, k) its sums under the cheap judge on all clusters.
        sample: (n,) which clusters were sampled, at random and without replacement.
        strata: (N,) stratum of each cluster, if the sample was drawn stratum by stratum.
        target: what the interval is about.
        confidence: level of the intervals.
        guard_rare_errors: gold only, too, where the judges differ by much in fewer than 5 sampled
            clusters. Otherwise that is a warning.
    """
    return _rectify(
        metric,
        metric.function,
        metric.bounds,
        gold,
        cheap,
        sample,
        strata,
        target,
        confidence,
        guard_rare_errors,
    )


def rectify_differences(
    metric: Metric,
    gold: Array,
    cheap: Array,
    sample: npt.NDArray[np.int64],
    baseline: int,
    *,
    strata: npt.NDArray[np.int64] | None = None,
    target: Target = "finite",
    confidence: float = 0.95,
    guard_rare_errors: bool = False,
) -> list[Rectified]:
    """Correct the paired differences to a baseline, in the order of the other systems.

    Arguments as for `rectify`; ``baseline`` is a position among the systems. The scale is linear.
    """
    k = gold.shape[2]
    others = [s for s in range(len(gold)) if s != baseline]

    def side_by_side(sums: Array) -> Array:
        base = np.broadcast_to(sums[baseline], (len(others), *sums.shape[1:]))
        return np.concatenate([base, sums[others]], axis=2)

    def difference(sums: Array) -> Array:
        return metric.function(sums[..., k:]) - metric.function(sums[..., :k])

    return _rectify(
        metric,
        difference,
        (None, None),
        side_by_side(gold),
        side_by_side(cheap),
        sample,
        strata,
        target,
        confidence,
        guard_rare_errors,
    )


def _rectify(
    metric: Metric,
    function: Function,
    bounds: Bounds,
    gold: Array,
    cheap: Array,
    sample: npt.NDArray[np.int64],
    strata: npt.NDArray[np.int64] | None,
    target: Target,
    confidence: float,
    guard: bool,
) -> list[Rectified]:
    n, total = gold.shape[1], cheap.shape[1]
    if len(sample) != n:
        raise ValueError(f"{len(sample)} sampled clusters for {n} rows of gold sums")
    design = make_design(sample, total, strata)
    k = len(metric.sums)
    columns = [c + side for side in range(0, gold.shape[2], k) for c in metric.denominator]
    gold = gold[:, np.argsort(sample)]
    parts = _estimate(function, gold, cheap, design, columns, target)
    quantile = t_quantile(confidence, parts.df)
    gold_half = t_quantile(confidence, parts.gold_df) * np.sqrt(parts.gold_variance)
    half = quantile * np.sqrt(parts.variance)
    exact = target == "finite" and n == total
    found = []
    for s in range(len(gold)):
        reason = _why_gold_only(parts, s, float(half[s]), float(gold_half[s]), exact, guard)
        gold_estimate = _pick(parts, s, "gold")
        estimate = gold_estimate if reason else _pick(parts, s, "rectified")
        gold_ends = _ends(gold_estimate, bounds, confidence, exact)
        ends = gold_ends if reason else _ends(estimate, bounds, confidence, exact)
        value = float(_inside(estimate.value[0], bounds))
        found.append(
            Rectified(
                metric=metric.name,
                group=metric.group,
                value=_known(value),
                low=_known(ends[0]),
                high=_known(ends[1]),
                target=target,
                method="gold only" if reason else "rectified",
                reason=reason,
                weight=0.0 if reason else float(parts.weight[s]),
                df=_known(estimate.df[0]),
                cheap=_known(parts.cheap[s]),
                gold=_known(parts.gold[s]),
                gold_low=_known(gold_ends[0]),
                gold_high=_known(gold_ends[1]),
                n_gold=n,
                n_clusters=total,
                n_changed=int(parts.changed[s]),
                warning=None if exact else _warning(parts, s, n, rectified=reason is None),
                confidence=confidence,
            )
        )
    return found


def _estimate(
    function: Function,
    gold: Array,
    cheap: Array,
    design: Design,
    denominator: list[int],
    target: Target,
) -> _Parts:
    n, total, peers = design.n, design.total, design.peers
    inside = cheap[:, design.sample]
    # Scaled up to N clusters: no change for a ratio, and the right size for a count.
    gold_sums = np.einsum("snk,n->sk", gold, design.weight)
    inside_sums = np.einsum("snk,n->sk", inside, design.weight)
    cheap_sums = cheap.sum(axis=1)
    value, everywhere = evaluate(function, gold_sums), evaluate(function, cheap_sums)

    raw = _influence(function, gold_sums, gold, total)
    apart = raw - _influence(function, gold_sums, inside, total)
    linear = _influence(function, cheap_sums, cheap, total)
    z, q = design.centred(raw), design.centred(linear[:, design.sample])
    spread_of = design.part**2 / (peers * np.maximum(peers - 1, 1))
    unsampled = design.left if (design.left > 0).any() else np.ones(n)
    importance = spread_of * unsampled
    spread = (importance * q**2).sum(axis=1)
    size = np.maximum(np.abs(everywhere), 1e-300)
    explains = spread > importance.sum() * (1e-12 * size) ** 2
    slope = np.divide(
        (importance * z * q).sum(axis=1), spread, out=np.zeros_like(spread), where=explains
    )
    weight = np.clip(slope, 0.0, 1.0)
    adjustment = everywhere - evaluate(function, inside_sums)
    # Where the cheap metric is undefined on the sample, its linear form still is defined.
    inside_mean = (linear[:, design.sample] * design.weight).sum(axis=1) / total
    adjustment = np.where(np.isfinite(adjustment), adjustment, linear.mean(axis=1) - inside_mean)

    residual = z - weight[:, None] * q
    leverage = 1 / peers + np.divide(
        importance * q**2, spread[:, None], out=np.zeros_like(q), where=explains[:, None]
    )
    leverage = np.minimum(leverage, _LARGEST_LEVERAGE)
    coefficient = design.part**2 * (peers - 1) / peers**3 * design.left
    variance = (coefficient * (residual / (1 - leverage)) ** 2).sum(axis=1)

    removed = design.weight[:, None] * design.stratum_sums(gold)
    kept = (design.stratum_sums(gold) - gold) * (design.part * total / np.maximum(peers - 1, 1))[
        :, None
    ]
    left = evaluate(function, gold_sums[:, None] - removed + kept)
    moved = np.where(np.isfinite(left), left - value[:, None], 0.0)
    gold_left = design.left if target == "finite" else np.ones(n)
    gold_variance = (gold_left * (peers - 1) / peers * moved**2).sum(axis=1)
    if target == "superpopulation":
        middle = (raw * design.weight).sum(axis=1, keepdims=True) / total
        between = (design.weight * (raw - middle) ** 2).sum(axis=1) / total
        variance = variance + between * n / max(n - 1, 1) / total
        if design.strata > 1:
            # The strata are part of the chance, so the sample alone is judged in the same way.
            gold_variance = (coefficient * (z / (1 - 1 / peers)) ** 2).sum(axis=1)
            gold_variance = gold_variance + between * n / max(n - 1, 1) / total
    share = np.sqrt(spread_of * unsampled)
    least = 1.0 if n < 4 else 2.0
    count, systems = np.full(len(gold), n), len(gold)
    unknown = np.full(systems, np.nan)
    return _Parts(
        gold=value,
        gold_variance=gold_variance if n > 1 else unknown,
        gold_df=kurtosis_df(
            share * z, count, least, np.full(systems, max(float(n - design.strata), 1.0))
        ),
        value=value + weight * adjustment,
        variance=variance if n > 1 else unknown,
        df=kurtosis_df(
            share * residual,
            count,
            least,
            np.full(systems, max(float(n - design.strata - 1), 1.0)),
        ),
        weight=weight,
        cheap=everywhere,
        changed=(np.abs(gold - inside).max(axis=2) > 1e-9).sum(axis=1),
        moved=(np.abs(apart) > _MUCH * z.std(axis=1, keepdims=True)).sum(axis=1),
        gold_clusters=(gold[..., denominator] != 0).any(axis=-1).sum(axis=1),
    )


def _influence(function: Function, sums: Array, rows: Array, total: int) -> Array:
    """Gradient at the sums of all N clusters, times N times each row, (S, n)."""
    slopes = np.nan_to_num(gradient(function, sums, np.abs(rows).mean(axis=1) * total))
    return np.asarray(np.einsum("snk,sk->sn", rows * float(total), slopes))


def _why_gold_only(
    parts: _Parts, s: int, half: float, gold_half: float, exact: bool, guard: bool
) -> str | None:
    if exact:
        return "every cluster has gold"
    if not np.isfinite(parts.value[s]):
        return "the cheap judge gives no value"
    if parts.weight[s] <= 0:
        return "the cheap judge does not follow the gold judge"
    if parts.changed[s] < FEWEST_CHANGED:
        return (
            f"the judges differ in only {int(parts.changed[s])} of the sampled clusters, "
            "too few to learn the error from"
        )
    if guard and parts.moved[s] < FEWEST_CHANGED:
        return f"{_rare(parts, s)}, too few to learn the error from"
    if half > _WIDEST * gold_half:
        return "the cheap judge would widen the interval"
    return None


def _pick(parts: _Parts, s: int, which: Literal["gold", "rectified"]) -> Estimate:
    rows = slice(s, s + 1)
    if which == "gold":
        value, variance, df = parts.gold, parts.gold_variance, parts.gold_df
    else:
        value, variance, df = parts.value, parts.variance, parts.df
    return Estimate(value[rows], variance[rows], df[rows], parts.gold_clusters[rows])


def _inside(value: float, bounds: Bounds) -> float:
    low, high = bounds
    if np.isnan(value):
        return value
    value = value if low is None else max(value, low)
    return value if high is None else min(value, high)


def _ends(
    estimate: Estimate, bounds: Bounds, confidence: float, exact: bool
) -> tuple[float, float]:
    """Interval on the logit scale between two bounds, else linear and cut at a bound.

    NaN where all that was sampled agrees, unless that is at a bound: it would be a point.
    """
    value = _inside(float(estimate.value[0]), bounds)
    if exact:
        return value, value
    low, high = bounds
    if estimate.variance[0] == 0 and value not in bounds:
        return np.nan, np.nan
    if low is not None and high is not None:
        span = high - low
        share_of_span = (value - low) / span
        # So close to an end the logit scale would cover everything.
        for end in (0.0, 1.0):
            if abs(share_of_span - end) < _AT_THE_END:
                share_of_span = end
        share = Estimate(
            np.array([share_of_span]),
            estimate.variance / span**2,
            estimate.df,
            estimate.clusters,
        )
        lower, upper = logit_interval(share, confidence)
        return low + span * float(lower[0]), low + span * float(upper[0])
    half = float(t_quantile(confidence, estimate.df)[0] * np.sqrt(estimate.variance[0]))
    return _inside(value - half, bounds), _inside(value + half, bounds)


def _rare(parts: _Parts, s: int) -> str:
    return f"the judges differ by much in only {int(parts.moved[s])} of the sampled clusters"


def _warning(parts: _Parts, s: int, n: int, *, rectified: bool) -> str | None:
    said = []
    with_data = int(parts.gold_clusters[s])
    if n < FEWEST_GOLD:
        said.append(f"only {n} gold clusters")
    elif with_data < FEWEST_GOLD:
        said.append(f"only {with_data} gold clusters have data")
    if rectified and parts.moved[s] < FEWEST_CHANGED:
        said.append(f"{_rare(parts, s)}, and rare large errors may lie in the others")
    return f"{'; '.join(said)}: the interval may be too narrow" if said else None


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
