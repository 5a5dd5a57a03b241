"""Careful intervals: the jackknife over clusters on the logit scale.

They hold their level from about 20 clusters on, where the bootstrap percentile interval does not.
With m clusters that have data, v = (m - 1) / m * sum (theta_(-c) - theta)**2; degrees of freedom
2m / (kurtosis of the influence values - 1), between 1 and m - 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Function = Callable[[Array], Array]
Bounds = tuple[float | None, float | None]

FEW_CLUSTERS = 60
FEW_NONZERO = 14
FEW_PER_PART = 4


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic with what its careful interval needs; NaN where undefined.

    Attributes:
        value: (...) the statistic.
        variance: (...) its variance; NaN with fewer than two clusters.
        df: (...) degrees of freedom of the variance.
        clusters: (...) clusters with data.
    """

    value: Array
    variance: Array
    df: Array
    clusters: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Jackknife:
    """A statistic with what leaving out each cluster does to it.

    Attributes:
        value: (...) the statistic of all clusters.
        deviation: (..., V) statistic without the cluster minus `value`; NaN where undefined.
        influence: (..., V) linear influence of each cluster; they sum to 0.
        present: (..., V) the cluster has data.
        basis: (..., V) the cluster counts in the variance: where it has data for a ratio, always
            for a total.
    """

    value: Array
    deviation: Array
    influence: Array
    present: npt.NDArray[np.bool_]
    basis: npt.NDArray[np.bool_]

    def __getitem__(self, index: slice) -> Jackknife:
        """The same for some of the systems."""
        return Jackknife(
            self.value[index],
            self.deviation[index],
            self.influence[index],
            self.present[index],
            self.basis[index],
        )

    def estimate(self) -> Estimate:
        """Jackknife variance, and degrees of freedom between 1 and m - 1."""
        m = np.asarray(self.basis.sum(axis=-1))
        used = self.basis & np.isfinite(self.deviation)
        square = (np.where(used, self.deviation, 0.0) ** 2).sum(axis=-1)
        known = (m > 1) & np.isfinite(self.value)
        variance = np.where(known, square * (m - 1) / np.maximum(m, 1), np.nan)
        most = m.astype(np.float64) - 1
        df = kurtosis_df(self.influence, m, 1.0, most)
        return Estimate(self.value, variance, df, np.asarray(self.present.sum(axis=-1)))


def kurtosis_df(influence: Array, count: npt.NDArray[np.int64], least: float, most: Array) -> Array:
    """Degrees of freedom of a variance from the kurtosis of what it averages.

    Args:
        influence: (..., V) values that sum to about 0; those that do not count are 0.
        count: (...) how many count.
        least: lower limit.
        most: (...) upper limit, also used where the values do not vary.
    """
    # Scaled first: fourth powers of small influences would underflow.
    largest = np.abs(influence).max(axis=-1, keepdims=True, initial=0.0)
    scaled = np.divide(influence, largest, out=np.zeros_like(influence), where=largest > 0)
    square = (scaled**2).sum(axis=-1)
    fourth = (scaled**4).sum(axis=-1)
    kurtosis = np.divide(count * fourth, square**2, out=np.ones_like(square), where=square > 0)
    df = np.divide(
        2.0 * count, kurtosis - 1, out=np.full_like(square, np.inf), where=kurtosis > 1 + 1e-12
    )
    return np.asarray(np.maximum(np.minimum(df, most), least))


def evaluate(function: Function, sums: Array) -> Array:
    """The function with infinities as NaN and without floating-point warnings."""
    with np.errstate(all="ignore"):
        value = np.asarray(function(sums), np.float64)
    return np.where(np.isfinite(value), value, np.nan)


def gradient(function: Function, totals: Array, scale: Array) -> Array:
    """Partial derivatives by a five-point rule, good to about 1e-12 of the value.

    Args:
        function: maps (..., k) to (...).
        totals: (..., k) where to differentiate.
        scale: (..., k) size of what the totals are made of; the step where a total is 0.

    Returns:
        (..., k); 0 for a column that is empty throughout.
    """
    result = np.zeros_like(totals)
    size = np.where(totals != 0, np.abs(totals), np.abs(scale))
    for k in range(totals.shape[-1]):
        step = 1e-3 * size[..., k]
        values = []
        for factor in (-2.0, -1.0, 1.0, 2.0):
            moved = totals.copy()
            moved[..., k] += factor * step
            values.append(evaluate(function, moved))
        slope = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / 12
        result[..., k] = np.divide(slope, step, out=np.zeros_like(slope), where=step > 0)
    return result


def jackknife(function: Function, sums: Array, denominator: Sequence[int]) -> Jackknife:
    """Leave out each cluster in turn.

    A statistic that does not change when all sums double (every ratio) varies with the clusters
    that have a denominator. One that does (a count) varies with all of them, and what is left is
    scaled up to the full number, so that its variance is that of a total.

    Args:
        function: maps (..., k) to (...).
        sums: (..., V, k) sums per cluster.
        denominator: columns of which at least one is not 0 where a cluster has data.
    """
    totals = sums.sum(axis=-2)
    value = evaluate(function, totals)
    n_clusters = sums.shape[-2]
    rest = totals[..., None, :] - sums
    doubled = evaluate(function, 2 * totals)
    scale_free = np.isclose(doubled, value, rtol=1e-9, atol=1e-12) | np.isnan(value)
    factor = np.where(scale_free, 1.0, n_clusters / max(n_clusters - 1, 1))
    left = evaluate(function, rest * factor[..., None, None])
    slopes = gradient(function, totals, np.abs(sums).mean(axis=-2))
    influence = np.einsum("...vk,...k->...v", sums, np.nan_to_num(slopes))
    if denominator:
        present = (sums[..., list(denominator)] != 0).any(axis=-1)
    else:
        present = np.ones(sums.shape[:-1], np.bool_)
    basis = present | ~scale_free[..., None]
    centre = np.where(scale_free, 0.0, influence.mean(axis=-1))
    influence = np.where(basis, influence - centre[..., None], 0.0)
    return Jackknife(value, left - value[..., None], influence, present, basis)


def paired(first: Jackknife, second: Jackknife) -> Jackknife:
    """Jackknife of ``second - first`` over the same clusters; shapes broadcast."""
    return Jackknife(
        second.value - first.value,
        second.deviation - first.deviation,
        second.influence - first.influence,
        first.present | second.present,
        first.basis | second.basis,
    )


def t_quantile(confidence: float, df: Array) -> Array:
    """Two-sided quantile of Student's t."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(df, (1 + confidence) / 2))


def t_interval(estimate: Estimate, confidence: float) -> tuple[Array, Array]:
    """Plain jackknife t interval, NaN with fewer than two clusters."""
    half = t_quantile(confidence, estimate.df) * np.sqrt(estimate.variance)
    return estimate.value - half, estimate.value + half


def careful_interval(estimate: Estimate, bounds: Bounds, confidence: float) -> tuple[Array, Array]:
    """Jackknife-logit interval for a statistic between two bounds, plain t for any other.

    A value outside its bounds (a lenient parser lets some pass) gets the plain interval, too.

    Args:
        estimate: the statistic.
        bounds: its range; it is mapped to 0..1 first. With one bound missing the plain interval
            is cut at the other.
        confidence: such as 0.95.

    Returns:
        Lower and upper ends, NaN with fewer than two clusters, or for an unbounded statistic that
        no cluster moves.
    """
    low, high = bounds
    if low is None or high is None:
        ends = t_interval(estimate, confidence)
        fixed = ~(estimate.variance > 0)
        return (
            np.where(fixed, np.nan, ends[0] if low is None else np.maximum(ends[0], low)),
            np.where(fixed, np.nan, ends[1] if high is None else np.minimum(ends[1], high)),
        )
    span = high - low
    share = Estimate(
        (estimate.value - low) / span,
        estimate.variance / span**2,
        estimate.df,
        estimate.clusters,
    )
    lower, upper = logit_interval(share, confidence)
    outside = (share.value < -1e-9) | (share.value > 1 + 1e-9)
    plain = t_interval(estimate, confidence)
    return (
        np.where(outside, plain[0], low + span * lower),
        np.where(outside, plain[1], low + span * upper),
    )


def logit_interval(estimate: Estimate, confidence: float) -> tuple[Array, Array]:
    """Interval for a value in 0..1: t on the logit scale, binomial at 0 and at 1.

    At 0 the upper end is ``1 - alpha ** (1 / m)`` with alpha the error of one tail: what m
    clusters without a single success still allow. At 1 it is mirrored.
    """
    from scipy.special import expit, logit

    share = estimate.value
    empty, full = share <= 1e-12, share >= 1 - 1e-12
    inner = np.where(empty | full | np.isnan(share), 0.5, share)
    half = t_quantile(confidence, estimate.df) * np.sqrt(estimate.variance)
    half = half / (inner * (1 - inner))
    centre = logit(inner)
    # Rounding must not push an end past the value itself.
    lower = np.minimum(expit(centre - half), inner)
    upper = np.maximum(expit(centre + half), inner)
    reach = 1 - ((1 - confidence) / 2) ** (1 / np.maximum(estimate.clusters, 1))
    lower = np.where(empty, 0.0, np.where(full, 1 - reach, lower))
    upper = np.where(full, 1.0, np.where(empty, reach, upper))
    known = np.isfinite(share) & np.isfinite(estimate.variance)
    return np.where(known, lower, np.nan), np.where(known, upper, np.nan)


def smallest_part(
    function: Function, sums: Array, denominator: Sequence[int]
) -> npt.NDArray[np.int64] | None:
    """For an average over parts, clusters of the part that has fewest; None for anything else.

    A denominator is one of several parts if the statistic is undefined without it.

    Args:
        function: maps (..., k) to (...).
        sums: (S, V, k) sums per system and cluster.
        denominator: columns of the denominators.

    Returns:
        (S,) numbers of clusters.
    """
    if len(denominator) < 2:
        return None
    totals = sums.sum(axis=-2)
    defined = np.isfinite(evaluate(function, totals))
    counts = []
    for column in denominator:
        without = totals.copy()
        without[..., column] = 0.0
        if (defined & np.isnan(evaluate(function, without))).any():
            counts.append((sums[..., column] > 0).sum(axis=-1))
    return np.min(counts, axis=0) if len(counts) > 1 else None


def small_sample_warning(
    clusters: int,
    nonzero: int,
    smallest_part: int | None,
    dropped_share: float = 0.0,
    *,
    careful: bool = True,
) -> str | None:
    """What a reader must know before trusting the bootstrap interval, or None.

    Args:
        clusters: clusters with data.
        nonzero: clusters with a non-zero numerator.
        smallest_part: for an average over parts, clusters of the part that has fewest.
        dropped_share: share of replicates in which the statistic was undefined.
        careful: there is a careful interval to prefer.
    """
    notes = []
    if clusters < FEW_CLUSTERS:
        notes.append(f"only {clusters} clusters")
    if nonzero < FEW_NONZERO:
        notes.append(f"non-zero in only {nonzero} clusters")
    advice = "; prefer the careful interval" if notes and careful else ""
    if smallest_part is not None and smallest_part < FEW_PER_PART:
        notes.append(f"a part rests on {smallest_part} clusters, too few for any interval")
        advice = ""
    if dropped_share > 0.05:
        notes.append(f"undefined in {dropped_share:.0%} of the replicates")
    return "; ".join(notes) + advice if notes else None
