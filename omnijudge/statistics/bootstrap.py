"""Cluster bootstrap: whole clusters are drawn with replacement, as many as there are.

A resample is a row of counts, one per cluster, so all replicates of a sum are one matrix product
(Omni-InteractScope, uncertainty). Products are exact: columns are first rounded to a grid on which
every sum of a resample is representable, so neither the BLAS, its threads nor the chunking can
change a bit of a result. The rounding moves a value by less than 2**-52 times the number of
clusters, relative to the largest value of the column.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnijudge.statistics.streams import stream_keys, stream_words

Array = npt.NDArray[np.float64]
Counts = npt.NDArray[np.unsignedinteger]

# Below this many draws the import of Numba costs more than it saves.
_DRAWS_WORTH_NUMBA = 16_000_000
_CHUNK_DRAWS = 1 << 20
_CHUNK_REPLICATES = 2500


def cluster_counts(n_clusters: int, replicates: int, seed: int) -> npt.NDArray[np.uint8]:
    """How often each cluster is drawn in each replicate.

    Each replicate has its own stream, so the result depends on the arguments only.

    Args:
        n_clusters: number of clusters V, at least 1.
        replicates: number of replicates B.
        seed: any integer.

    Returns:
        (B, V) counts; each row sums to V. A count above 255 would need the same cluster 256 times
        in one resample (probability below 1e-500 for any V above 255).
    """
    if n_clusters < 1 or replicates < 0:
        raise ValueError(f"need at least one cluster, got {n_clusters} and {replicates} replicates")
    if "numba" in sys.modules or replicates * n_clusters >= _DRAWS_WORTH_NUMBA:
        from omnijudge_kernels.bootstrap import bootstrap_counts

        return bootstrap_counts(n_clusters, stream_keys(seed, 0, replicates))
    counts = np.empty((replicates, n_clusters), np.uint8)
    step = max(1, _CHUNK_DRAWS // n_clusters)
    half = np.uint64(32)
    size = np.uint64(n_clusters)
    for first in range(0, replicates, step):
        last = min(first + step, replicates)
        words = stream_words(stream_keys(seed, first, last), (n_clusters + 1) // 2)
        drawn = np.empty((last - first, 2 * words.shape[1]), np.int64)
        drawn[:, 0::2] = ((words & np.uint64(0xFFFFFFFF)) * size) >> half
        drawn[:, 1::2] = ((words >> half) * size) >> half
        drawn += np.arange(last - first)[:, None] * n_clusters
        flat = np.bincount(drawn[:, :n_clusters].ravel(), minlength=(last - first) * n_clusters)
        counts[first:last] = flat.reshape(last - first, n_clusters)
    return counts


def counts_from_indices(resamples: Sequence[Sequence[int]], n_clusters: int) -> Counts:
    """Counts of explicit resamples, each a list of cluster indices (any length)."""
    counts = np.zeros((len(resamples), n_clusters), np.int64)
    for row, indices in zip(counts, resamples, strict=True):
        row += np.bincount(np.asarray(indices, np.int64), minlength=n_clusters)
    largest = int(counts.max(initial=0))
    return counts.astype(np.uint8 if largest < 256 else np.uint32)


def exact_columns(columns: Array, most: int) -> Array:
    """Columns rounded so that any sum of up to ``most`` of their values is exact in float64.

    Args:
        columns: (..., V) values, each row with its own grid.
        most: number of values a sum may have.

    Returns:
        Array of the same shape; integers below 2**52 / most come back unchanged.
    """
    largest = np.abs(columns).max(axis=-1, keepdims=True, initial=0.0)
    # frexp: largest < 2**exponent, so a sum stays below 2**(exponent + bits of most).
    exponent = np.frexp(largest)[1] + int(most).bit_length()
    places = np.minimum(52 - exponent, 1000)
    return np.asarray(np.ldexp(np.rint(np.ldexp(columns, places)), -places))


def replicate_sums(counts: Counts, sums: Array) -> Array:
    """Sums of each replicate.

    Args:
        counts: (B, V) how often each cluster is drawn.
        sums: (V, ...) sums per cluster.

    Returns:
        (..., B): replicates are the last, contiguous axis.
    """
    n_replicates, n_clusters = counts.shape
    columns = np.ascontiguousarray(sums.reshape(n_clusters, -1).T)
    most = int(counts.sum(axis=1, dtype=np.int64).max(initial=0)) if n_replicates else 0
    columns = exact_columns(columns, max(most, 1))
    # float32 has 24 bits: enough for counts of events, at half the price.
    integers = (columns == np.rint(columns)).all(axis=1)
    integers &= np.abs(columns).max(axis=1, initial=0.0) * most < 2**24
    result = np.empty((columns.shape[0], n_replicates))
    for rows, kind in ((integers, np.float32), (~integers, np.float64)):
        if rows.any():
            _multiply(columns[rows].astype(kind), counts, rows, result)
    return result.reshape(*sums.shape[1:], n_replicates)


def _multiply(
    columns: npt.NDArray[np.floating],
    counts: Counts,
    rows: npt.NDArray[np.bool_],
    result: Array,
) -> None:
    step = _CHUNK_REPLICATES
    buffer = np.empty((min(step, counts.shape[0]), counts.shape[1]), columns.dtype)
    for first in range(0, counts.shape[0], step):
        block = counts[first : first + step]
        weights = buffer[: len(block)]
        np.copyto(weights, block, casting="unsafe")
        product = columns @ weights.T
        if rows.all():
            result[:, first : first + step] = product
        else:
            result[rows, first : first + step] = product


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


def percentile_interval(replicates: Array, confidence: float) -> Interval:
    """Percentile interval, linear between order statistics at ``q * (n - 1)``.

    Args:
        replicates: (..., B) values of the statistic; NaN where it is undefined.
        confidence: such as 0.95.
    """
    ordered = np.sort(replicates, axis=-1)  # NaN goes last
    valid = _valid(ordered)
    tail = (1 - confidence) / 2
    low, high = (order_statistic(ordered, valid, np.full(valid.shape, q)) for q in (tail, 1 - tail))
    return Interval(low, high, replicates.shape[-1] - valid)


def bca_interval(
    replicates: Array, value: Array, leave_one_out: Array, confidence: float
) -> Interval:
    """Bias-corrected and accelerated interval (Efron 1987).

    Args:
        replicates: (..., B) values of the statistic; NaN where it is undefined.
        value: (...) the statistic itself, computed from the same rounded columns.
        leave_one_out: (..., V) the statistic without each cluster; NaN entries are left out.
        confidence: such as 0.95.
    """
    return bca_from_acceleration(replicates, value, acceleration(leave_one_out), confidence)


def acceleration(leave_one_out: Array) -> Array:
    """Acceleration from jackknife values (..., V); 0 where they do not vary."""
    defined = np.isfinite(leave_one_out)
    count = defined.sum(axis=-1)
    total = np.where(defined, leave_one_out, 0.0).sum(axis=-1)
    mean = np.divide(total, count, out=np.zeros_like(total), where=count > 0)
    deviation = np.where(defined, mean[..., None] - leave_one_out, 0.0)
    square = (deviation**2).sum(axis=-1)
    cube = (deviation**3).sum(axis=-1)
    # Values that differ by rounding only do not vary.
    varies = square > (1e-14 * np.abs(mean)) ** 2 * np.maximum(count, 1)
    return np.asarray(np.divide(cube, 6 * square**1.5, out=np.zeros_like(square), where=varies))


def bca_from_acceleration(
    replicates: Array, value: Array, accelerations: Array, confidence: float
) -> Interval:
    """As `bca_interval`, with the acceleration given."""
    from scipy.special import ndtr, ndtri

    ordered = np.sort(replicates, axis=-1)
    valid = _valid(ordered)
    point = np.asarray(value)[..., None]
    below = (ordered < point).sum(axis=-1)
    upto = (ordered <= point).sum(axis=-1)
    share = (below + upto) / (2 * np.maximum(valid, 1))
    # All replicates on one side would give an infinite correction: the interval would be a point.
    edge = 1 / (valid + 1)
    bias = ndtri(np.clip(share, edge, 1 - edge))
    tail = (1 - confidence) / 2
    ends = []
    for q in (tail, 1 - tail):
        shifted = bias + ndtri(q)
        denominator = 1 - accelerations * shifted
        # Beyond the pole of the transformation the end is the extreme replicate.
        inside = bias + np.divide(
            shifted,
            denominator,
            out=np.where(shifted > 0, np.inf, -np.inf),
            where=denominator > 0,
        )
        ends.append(order_statistic(ordered, valid, ndtr(inside)))
    return Interval(ends[0], ends[1], replicates.shape[-1] - valid)


def _valid(ordered: Array) -> npt.NDArray[np.int64]:
    count: npt.NDArray[np.int64] = ordered.shape[-1] - np.isnan(ordered).sum(axis=-1)
    return count


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
    with np.errstate(all="ignore"):
        values = function(np.moveaxis(replicate[list(indices)], 0, -1))
    return np.where(np.isfinite(values), values, np.nan)
