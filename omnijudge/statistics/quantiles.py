"""Bootstrap of a quantile of values per unit (response delays), by whole clusters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from omnijudge_kernels.resampling import Array, Counts


def quantile_replicates(
    values: Array,
    clusters: npt.NDArray[np.integer],
    counts: Counts,
    probabilities: Sequence[float],
    weights: npt.NDArray[np.float32] | None = None,
    *,
    compiled: bool = False,
) -> Array:
    """Quantiles of the units of each resample, linear at ``q * (n - 1)``.

    A unit is in a resample as often as its cluster is drawn. Sorted values are cut into blocks; one
    matrix product tells in which block the wanted order statistic of each replicate lies, and only
    that block is counted through.

    Args:
        values: (U,) finite values, one per unit.
        clusters: (U,) cluster of each unit, an index below V.
        counts: (B, V) how often each cluster is drawn.
        probabilities: the Q probabilities, such as 0.5.
        weights: ``counts`` as float32, for callers who ask many times.
        compiled: use the compiled kernel, which is worth it for many values; same result.

    Returns:
        (Q, B) quantiles; NaN where a resample has no unit.
    """
    n_replicates, n_clusters = counts.shape
    result = np.full((len(probabilities), n_replicates), np.nan)
    if not len(values):
        return result
    order = np.argsort(values, kind="stable")
    values = np.asarray(values, np.float64)[order]
    owner = np.asarray(clusters, np.int64)[order]
    size = max(16, round(1.5 * len(values) ** 0.5))
    n_blocks = -(-len(values) // size)
    block = np.arange(len(values)) // size
    table = np.bincount(owner * n_blocks + block, minlength=n_clusters * n_blocks)
    # Whole numbers: exact in float32 below 2**24 units.
    small = len(values) * 255 < 2**24
    if weights is None or not small:
        weights = counts.astype(np.float32 if small else np.float64)
    inside = weights @ table.reshape(n_clusters, n_blocks).astype(weights.dtype)
    wanted = np.asarray(probabilities, np.float64)
    if compiled:
        from omnijudge_kernels.unit_quantiles import unit_quantiles

        return unit_quantiles(values, owner, counts, inside, size, wanted, out=result)
    reached = np.cumsum(inside, axis=1, dtype=np.int64)
    units = reached[:, -1]
    last = np.maximum(units - 1, 0)
    position = np.multiply.outer(wanted, last)
    lower = np.minimum(np.floor(position).astype(np.int64), last)
    upper = np.minimum(lower + 1, last)
    ranked = _ranked(values, owner, counts, reached, np.concatenate([lower, upper]), size)
    low, high = ranked[: len(lower)], ranked[len(lower) :]
    some = units > 0
    result[:, some] = (low + (position - lower) * (high - low))[:, some]
    return result


def _ranked(
    values: Array,
    owner: npt.NDArray[np.int64],
    counts: Counts,
    reached: npt.NDArray[np.int64],
    ranks: npt.NDArray[np.int64],
    size: int,
) -> Array:
    """Values (R, B) of 0-based ranks (R, B) in each replicate; 0 where there is no such unit."""
    found = np.zeros(ranks.shape)
    places = np.stack([(reached <= rank[:, None]).sum(axis=1) for rank in ranks])
    n_blocks = reached.shape[1]
    for block in np.unique(places):
        if block == n_blocks:
            continue
        wanted = places == block
        rows = np.flatnonzero(wanted.any(axis=0))
        first = block * size
        passed = counts[np.ix_(rows, owner[first : first + size])].cumsum(axis=1, dtype=np.int32)
        before = reached[rows, block - 1] if block else np.zeros(len(rows), np.int64)
        for values_of, rank, here in zip(found, ranks, wanted, strict=True):
            mine = here[rows]
            if mine.any():
                left = (rank[rows] - before)[mine]
                index = (passed[mine] <= left[:, None]).sum(axis=1)
                values_of[rows[mine]] = values[first + index]
    return found
