"""Cluster bootstrap: whole clusters are drawn with replacement, as many as there are.

All replicates of all sums are one product of a matrix of counts with the sums per cluster
(Omni-InteractScope, uncertainty). The product is exact on a fine grid, so results are the same,
byte for byte, whatever the threads and chunks (:mod:`omnijudge_kernels.resampling`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnijudge_kernels.resampling import Array, Counts, bootstrap_counts_small
from omnijudge_kernels.streams import stream_keys

# Below this many draws importing Numba and compiling cost more than they save.
_DRAWS_WORTH_NUMBA = 32_000_000


def cluster_counts(n_clusters: int, replicates: int, seed: int) -> npt.NDArray[np.uint8]:
    """How often each cluster is drawn in each replicate.

    Each replicate has its own stream, so the result depends on the arguments only, and more
    replicates only add rows.

    Args:
        n_clusters: number of clusters V, at least 1.
        replicates: number of replicates B.
        seed: any integer.

    Returns:
        (B, V) counts; each row sums to V.
    """
    if n_clusters < 1 or replicates < 0:
        raise ValueError(f"need at least one cluster, got {n_clusters} and {replicates} replicates")
    keys = stream_keys(seed, 0, replicates)
    compiled = "omnijudge_kernels.bootstrap" in sys.modules
    if not compiled and replicates * n_clusters < _DRAWS_WORTH_NUMBA:
        return bootstrap_counts_small(n_clusters, keys)
    from omnijudge_kernels.bootstrap import bootstrap_counts

    return bootstrap_counts(n_clusters, keys)


def counts_from_indices(resamples: Sequence[Sequence[int]], n_clusters: int) -> Counts:
    """Counts of explicit resamples, each a list of cluster indices (any length)."""
    counts = np.zeros((len(resamples), n_clusters), np.int64)
    for row, indices in zip(counts, resamples, strict=True):
        row += np.bincount(np.asarray(indices, np.int64), minlength=n_clusters)
    largest = int(counts.max(initial=0))
    return counts.astype(np.uint8 if largest < 256 else np.uint32)


@dataclass(frozen=True, slots=True)
class Interval:
    """Bootstrap intervals.

    Attributes:
        low: (...) lower ends; NaN where no replicate is defined.
        high: (...) upper ends.
        dropped: (...) replicates in which the statistic was undefined.
    """

    low: Array
    high: Array
    dropped: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Ordered:
    """Replicates in ascending order.

    Attributes:
        values: (..., B), undefined ones (NaN) last.
        valid: (...) number of defined ones.
    """

    values: Array
    valid: npt.NDArray[np.int64]

    @classmethod
    def of(cls, replicates: Array) -> Ordered:
        """Sort replicates (..., B)."""
        values = np.sort(replicates, axis=-1)
        undefined = np.zeros(values.shape[:-1], np.int64)
        if np.isnan(values[..., -1:]).any():
            undefined = np.isnan(values).sum(axis=-1)
        return cls(values, np.asarray(values.shape[-1] - undefined))

    def interval(self, q_low: Array, q_high: Array) -> Interval:
        """Two quantiles, one pair of probabilities (...) for each statistic."""
        return Interval(
            order_statistic(self.values, self.valid, q_low),
            order_statistic(self.values, self.valid, q_high),
            self.values.shape[-1] - self.valid,
        )


def percentile_interval(replicates: Array | Ordered, confidence: float) -> Interval:
    """Percentile interval, linear between order statistics at ``q * (n - 1)``.

    Args:
        replicates: (..., B) values of the statistic; NaN where it is undefined.
        confidence: such as 0.95.
    """
    ordered = replicates if isinstance(replicates, Ordered) else Ordered.of(replicates)
    tail = np.full(ordered.valid.shape, (1 - confidence) / 2)
    return ordered.interval(tail, 1 - tail)


def bca_interval(
    replicates: Array | Ordered, value: Array, leave_one_out: Array, confidence: float
) -> Interval:
    """Bias-corrected and accelerated interval (Efron 1987).

    Args:
        replicates: (..., B) values of the statistic; NaN where it is undefined.
        value: (...) the statistic itself, computed from the same rounded columns.
        leave_one_out: (..., V) the statistic without each cluster; NaN counts as no change.
        confidence: such as 0.95.
    """
    centred = centred_jackknife(leave_one_out, value)
    return bca_from_centred(replicates, value, centred, np.abs(value), confidence)


def bca_from_centred(
    replicates: Array | Ordered, value: Array, centred: Array, size: Array, confidence: float
) -> Interval:
    """`bca_interval` from centred jackknife values (..., V) of a statistic of some size."""
    ordered = replicates if isinstance(replicates, Ordered) else Ordered.of(replicates)
    point = np.asarray(value)[..., None]
    ties = (ordered.values < point).sum(axis=-1) + (ordered.values <= point).sum(axis=-1)
    share = ties / (2 * np.maximum(ordered.valid, 1))
    factor = acceleration((centred**2).sum(axis=-1), (centred**3).sum(axis=-1), size)
    return ordered.interval(*bca_probabilities(share, ordered.valid, factor, confidence))


def centred_jackknife(leave_one_out: Array, value: Array) -> Array:
    """Mean of the jackknife values minus each, (..., V); NaN counts as the value itself."""
    filled = np.where(np.isfinite(leave_one_out), leave_one_out, np.asarray(value)[..., None])
    return np.asarray(filled.mean(axis=-1, keepdims=True) - filled)


def acceleration(squares: Array, cubes: Array, size: Array) -> Array:
    """Acceleration from sums of squares and cubes of centred jackknife values.

    It is 0 where they vary by no more than the rounding of values of the given size.
    """
    varies = squares > (1e-13 * size) ** 2
    return np.asarray(np.divide(cubes, 6 * squares**1.5, out=np.zeros_like(squares), where=varies))


def bca_probabilities(
    share: Array, valid: npt.NDArray[np.int64], acceleration: Array, confidence: float
) -> tuple[Array, Array]:
    """Which quantiles of the replicates are the ends of a BCa interval.

    Args:
        share: (...) share of replicates below the statistic, ties by half.
        valid: (...) number of defined replicates.
        acceleration: (...).
        confidence: such as 0.95.
    """
    from scipy.special import ndtr, ndtri

    # All replicates on one side would give an infinite correction and a point as the interval.
    edge = 1 / (np.maximum(valid, 1) + 1)
    bias = ndtri(np.clip(share, edge, 1 - edge))
    tail = (1 - confidence) / 2
    ends = []
    for q in (tail, 1 - tail):
        shifted = bias + ndtri(q)
        denominator = 1 - acceleration * shifted
        # Beyond the pole of the transformation the end is the extreme replicate.
        moved = np.divide(
            shifted,
            denominator,
            out=np.where(shifted > 0, np.inf, -np.inf),
            where=denominator > 0,
        )
        ends.append(ndtr(bias + moved))
    return ends[0], ends[1]


def order_statistic(ordered: Array, valid: npt.NDArray[np.int64], q: Array) -> Array:
    """Quantile ``q`` of the first ``valid`` entries of sorted rows, linear at ``q * (n - 1)``.

    Args:
        ordered: (..., B) ascending.
        valid: (...) number of entries that count.
        q: (...) probabilities.

    Returns:
        (...) quantiles; NaN where nothing is valid.
    """
    if ordered.shape[-1] == 0:
        return np.full(valid.shape, np.nan)
    last = np.maximum(valid - 1, 0)
    position = q * last
    index = np.minimum(np.floor(position).astype(np.int64), last)
    weight = position - index
    after = np.minimum(index + 1, last)
    low = np.take_along_axis(ordered, index[..., None], axis=-1)[..., 0]
    high = np.take_along_axis(ordered, after[..., None], axis=-1)[..., 0]
    return np.where(valid > 0, low + weight * (high - low), np.nan)


def metric_replicates(
    function: Callable[[Array], Array], replicate: Array, indices: Sequence[int]
) -> Array:
    """A function of sums in every replicate.

    Args:
        function: maps (..., k) to (...).
        replicate: (K, ..., B) as `replicate_sums` gives them, columns first.
        indices: the k columns the function takes.

    Returns:
        (..., B); infinities count as undefined and become NaN.
    """
    first, last = min(indices), max(indices)
    neighbours = list(indices) == list(range(first, last + 1))
    columns = replicate[first : last + 1] if neighbours else replicate[list(indices)]
    with np.errstate(all="ignore"):
        values = function(np.moveaxis(columns, 0, -1))
    finite = np.isfinite(values)
    return values if finite.all() else np.where(finite, values, np.nan)
