"""K4: cluster bootstrap, and intervals for the differences of all pairs of systems.

Draws: each word of a stream (:mod:`omnijudge_kernels.streams`) gives two clusters, its low half
first, as ``half * V >> 32``. A replicate depends on its key only, whatever thread makes it.

Pairs: an interval needs two neighbouring order statistics near each end of B differences. One pass
keeps what lies outside two guessed cuts (from means and covariances), and the wanted ones are
selected among those few. A wrong guess costs time, never the result: then all B are searched.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omnijudge_kernels.blocks import for_blocks
from omnijudge_kernels.jit import kernel
from omnijudge_kernels.streams import GOLDEN, MULTIPLY_1, MULTIPLY_2, Words

Array = npt.NDArray[np.float64]


@kernel
def _mix(word: np.uint64) -> np.uint64:
    word = (word ^ (word >> np.uint64(30))) * MULTIPLY_1
    word = (word ^ (word >> np.uint64(27))) * MULTIPLY_2
    return word ^ (word >> np.uint64(31))


@kernel
def _fill_counts(keys: Words, counts: npt.NDArray[np.uint8]) -> None:
    n_clusters = counts.shape[1]
    size = np.uint64(n_clusters)
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    one = np.uint8(1)
    for b in range(keys.size):
        row = counts[b]
        row[:] = 0
        state = keys[b]
        for _ in range(n_clusters // 2):
            state += GOLDEN
            word = _mix(state)
            row[((word & low) * size) >> half] += one
            row[((word >> half) * size) >> half] += one
        if n_clusters % 2:
            word = _mix(state + GOLDEN)
            row[((word & low) * size) >> half] += one


def bootstrap_counts(
    n_clusters: int,
    keys: npt.NDArray[np.uint64],
    out: npt.NDArray[np.uint8] | None = None,
    *,
    threads: int = 1,
) -> npt.NDArray[np.uint8]:
    """How often each cluster is drawn in each replicate.

    Args:
        n_clusters: number of clusters V, below 2**32.
        keys: (B,) key of the stream of each replicate.
        out: (B, V) uint8 to fill.
        threads: threads to use; the result does not depend on it.

    Returns:
        (B, V) counts, each row summing to V. A count above 255 would need the same cluster 256
        times in one resample (probability below 1e-500 for any V above 255).
    """
    if out is None:
        out = np.empty((len(keys), n_clusters), np.uint8)
    made = out
    for_blocks(
        lambda first, last: _fill_counts(keys[first:last], made[first:last]),
        np.arange(len(keys) + 1),
        threads,
    )
    return out


@kernel
def _select(values: Array, n: int, k: int) -> None:
    """Order the first n values so far that place k holds what sorting would put there."""
    left, right = 0, n - 1
    while left < right:
        a, b, c = values[left], values[(left + right) // 2], values[right]
        pivot = max(min(a, b), min(max(a, b), c))
        # Swapping without a branch: the comparison is a coin toss that no processor can predict.
        split = left
        for r in range(left, right + 1):
            value = values[r]
            values[r] = values[split]
            values[split] = value
            split += value < pivot
        if k < split:
            right = split - 1
            continue
        left = split
        for r in range(left, right + 1):
            value = values[r]
            values[r] = values[split]
            values[split] = value
            split += value <= pivot
        if k < split:
            return
        left = split


@kernel
def _between(values: Array, n: int, place: float) -> np.float64:
    """Linear interpolation at a fractional place among the first n values, were they sorted."""
    k = int(place)
    _select(values, n, k)
    low: np.float64 = values[k]
    if k == place:
        return low
    high: np.float64 = values[k + 1]
    for i in range(k + 2, n):
        high = min(high, values[i])
    return low + (place - k) * (high - low)


@kernel
def _collect(a: Array, b: Array, kept: Array) -> int:
    """All defined differences b - a; returns their number."""
    m = 0
    for r in range(a.size):
        d = b[r] - a[r]
        kept[m] = d
        m += d == d
    return m


@kernel
def _pair_quantiles(
    rows: Array,
    gaps: npt.NDArray[np.bool_],
    first: int,
    last: int,
    q_low: Array,
    q_high: Array,
    cut_low: Array,
    cut_high: Array,
    low: Array,
    high: Array,
    valid: npt.NDArray[np.int64],
) -> None:
    n_systems, n = rows.shape
    outside, below, above = np.empty(n + 1), np.empty(n + 1), np.empty(n + 1)
    for i in range(first, last):
        pair = i * n_systems - i * (i + 1) // 2
        for j in range(i + 1, n_systems):
            a, b = rows[i], rows[j]
            n_valid = _collect(a, b, below) if gaps[i] or gaps[j] else n
            valid[pair] = n_valid
            if n_valid == 0:
                low[pair] = high[pair] = np.nan
                pair += 1
                continue
            cut_a, cut_b = cut_low[pair], cut_high[pair]
            m = 0
            for r in range(n):
                d = b[r] - a[r]
                outside[m] = d
                m += (d <= cut_a) | (d >= cut_b)
            n_below = n_above = 0
            for r in range(m):
                d = outside[r]
                below[n_below] = d
                above[n_above] = d
                under = d <= cut_a
                n_below += under
                n_above += not under
            place = q_low[pair] * (n_valid - 1)
            if place + 1 >= n_below:
                n_below = _collect(a, b, below)
            low[pair] = _between(below, n_below, place)
            place = q_high[pair] * (n_valid - 1)
            if place < n_valid - n_above:
                n_above = _collect(a, b, above)
            high[pair] = _between(above, n_above, place - (n_valid - n_above))
            pair += 1


@kernel
def _pair_shares(rows: Array, value: Array, first: int, last: int, share: Array) -> None:
    n_systems, n = rows.shape
    for i in range(first, last):
        pair = i * n_systems - i * (i + 1) // 2
        for j in range(i + 1, n_systems):
            a, b = rows[i], rows[j]
            point = value[j] - value[i]
            less = upto = n_valid = 0
            for r in range(n):
                d = b[r] - a[r]
                less += d < point
                upto += d <= point
                n_valid += d == d
            share[pair] = (less + upto) / (2 * n_valid) if n_valid else np.nan
            pair += 1


@kernel
def _pair_moments(rows: Array, first: int, last: int, squares: Array, cubes: Array) -> None:
    n_systems, n = rows.shape
    for i in range(first, last):
        pair = i * n_systems - i * (i + 1) // 2
        for j in range(i + 1, n_systems):
            a, b = rows[i], rows[j]
            # Four independent chains keep the adders busy; the order of adding is fixed.
            s0 = s1 = s2 = s3 = c0 = c1 = c2 = c3 = 0.0
            whole = n - n % 4
            for v in range(0, whole, 4):
                d0, d1 = b[v] - a[v], b[v + 1] - a[v + 1]
                d2, d3 = b[v + 2] - a[v + 2], b[v + 3] - a[v + 3]
                t0, t1, t2, t3 = d0 * d0, d1 * d1, d2 * d2, d3 * d3
                s0 += t0
                s1 += t1
                s2 += t2
                s3 += t3
                c0 += t0 * d0
                c1 += t1 * d1
                c2 += t2 * d2
                c3 += t3 * d3
            for v in range(whole, n):
                d0 = b[v] - a[v]
                s0 += d0 * d0
                c0 += d0 * d0 * d0
            squares[pair] = (s0 + s1) + (s2 + s3)
            cubes[pair] = (c0 + c1) + (c2 + c3)
            pair += 1


def _row_offsets(n_systems: int) -> npt.NDArray[np.int64]:
    """Number of the first pair of each system, (S,): pairs are (0, 1), (0, 2), ..., (1, 2), ..."""
    i = np.arange(n_systems, dtype=np.int64)
    return i * n_systems - i * (i + 1) // 2


def pairwise_intervals(
    replicates: Array,
    q_low: Array | float,
    q_high: Array | float,
    out: Array | None = None,
    *,
    threads: int = 1,
) -> tuple[Array, Array, npt.NDArray[np.int64]]:
    """Two quantiles of the paired difference of every pair of systems.

    Pairs stand in the order (0, 1), (0, 2), ..., (1, 2), ...; a difference is the second minus the
    first. Quantiles are linear at ``q * (n - 1)`` among the n replicates in which both are defined.

    Args:
        replicates: (S, B) the statistic of each system in the same resamples; NaN where undefined.
        q_low: lower probability, one or one per pair.
        q_high: upper probability, not below the lower.
        out: (2, P) where to write the quantiles; made if None.
        threads: threads to use; the result does not depend on it.

    Returns:
        Lower and upper quantiles (P,), NaN where no replicate is defined, and the number of defined
        replicates (P,).
    """
    rows = np.ascontiguousarray(replicates, np.float64)
    offsets = _row_offsets(len(rows))
    n_pairs = int(offsets[-1]) if len(rows) else 0
    low, high = np.empty((2, n_pairs)) if out is None else out
    valid = np.empty(n_pairs, np.int64)
    if not n_pairs:
        return low, high, valid
    q_a, q_b = (
        np.ascontiguousarray(np.broadcast_to(q, n_pairs), np.float64) for q in (q_low, q_high)
    )
    cut_a, cut_b = _guess_cuts(rows, q_a, q_b)
    gaps = np.asarray(np.isnan(rows).any(axis=1))
    for_blocks(
        lambda first, last: _pair_quantiles(
            rows, gaps, first, last, q_a, q_b, cut_a, cut_b, low, high, valid
        ),
        offsets,
        threads,
    )
    return low, high, valid


def _guess_cuts(rows: Array, q_low: Array, q_high: Array) -> tuple[Array, Array]:
    """Values a little inside the wanted quantiles, were the differences normal."""
    from scipy.special import ndtri

    defined = np.isfinite(rows)
    count = np.maximum(defined.sum(axis=1), 1)
    mean = np.where(defined, rows, 0.0).sum(axis=1) / count
    centred = np.where(defined, rows - mean[:, None], 0.0)
    covariance = centred @ centred.T / rows.shape[1]
    first, second = np.triu_indices(len(rows), 1)
    spread = covariance[first, first] + covariance[second, second] - 2 * covariance[first, second]
    spread = np.sqrt(np.maximum(spread, 0.0))
    middle = mean[second] - mean[first]
    tail = 3 / rows.shape[1]
    low = middle + spread * ndtri(np.minimum(1.35 * q_low + tail, 0.5))
    high = middle - spread * ndtri(np.minimum(1.35 * (1 - q_high) + tail, 0.5))
    return low, high


def pairwise_shares(replicates: Array, value: Array, *, threads: int = 1) -> Array:
    """Share of replicates below the difference of each pair, ties by half (for BCa).

    Args:
        replicates: (S, B) as for `pairwise_intervals`.
        value: (S,) the statistic itself.
        threads: threads to use; the result does not depend on it.

    Returns:
        (P,) shares; NaN where no replicate is defined.
    """
    rows = np.ascontiguousarray(replicates, np.float64)
    offsets = _row_offsets(len(rows))
    share = np.empty(int(offsets[-1]) if len(rows) else 0)
    for_blocks(lambda first, last: _pair_shares(rows, value, first, last, share), offsets, threads)
    return share


def pairwise_moments(deviations: Array, *, threads: int = 1) -> tuple[Array, Array]:
    """Sums of squares and of cubes of the differences of two rows, for every pair.

    From centred jackknife values these give the acceleration of BCa. Three matrix products give
    the same sums (squares expand into inner products of rows, cubes into those of rows and their
    squares), but lose digits where two systems are nearly equal.

    Args:
        deviations: (S, V) finite values.
        threads: threads to use; the result does not depend on it.

    Returns:
        Two arrays (P,).
    """
    rows = np.ascontiguousarray(deviations, np.float64)
    offsets = _row_offsets(len(rows))
    n_pairs = int(offsets[-1]) if len(rows) else 0
    squares, cubes = np.empty(n_pairs), np.empty(n_pairs)
    for_blocks(
        lambda first, last: _pair_moments(rows, first, last, squares, cubes), offsets, threads
    )
    return squares, cubes
