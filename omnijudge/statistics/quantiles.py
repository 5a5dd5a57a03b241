"""Bootstrap of a quantile of values per unit (response delays), by whole clusters."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omnijudge_kernels.resampling import Array, Counts


def quantile_replicates(
    values: Array, clusters: npt.NDArray[np.integer], counts: Counts, q: float
) -> Array:
    """The quantile of the units of each resample, linear at ``q * (n - 1)``.

    A unit is in a resample as often as its cluster is drawn. Sorted values are cut into blocks; one
    matrix product tells in which block the wanted order statistic of each replicate lies, and only
    that block is counted through.

    Args:
        values: (U,) finite values, one per unit.
        clusters: (U,) cluster of each unit, an index below V.
        counts: (B, V) how often each cluster is drawn.
        q: probability, such as 0.5.

    Returns:
        (B,) quantiles; NaN where a resample has no unit.
    """
    n_replicates, n_clusters = counts.shape
    result = np.full(n_replicates, np.nan)
    order = np.argsort(values, kind="stable")
    values = np.asarray(values, np.float64)[order]
    owner = np.asarray(clusters, np.int64)[order]
    if not len(values):
        return result
    size = max(16, round(len(values) ** 0.5))
    n_blocks = -(-len(values) // size)
    block = np.arange(len(values)) // size
    table = np.zeros((n_clusters, n_blocks))
    np.add.at(table, (owner, block), 1.0)
    reached = np.cumsum(counts.astype(np.float64) @ table, axis=1).astype(np.int64)
    units = reached[:, -1]
    some = units > 0
    position = q * np.maximum(units - 1, 0)
    lower = np.floor(position).astype(np.int64)
    upper = np.minimum(lower + 1, np.maximum(units - 1, 0))
    low = _ranked(values, owner, counts, reached, lower, size, some)
    high = _ranked(values, owner, counts, reached, upper, size, some)
    result[some] = (low + (position - lower) * (high - low))[some]
    return result


def _ranked(
    values: Array,
    owner: npt.NDArray[np.int64],
    counts: Counts,
    reached: npt.NDArray[np.int64],
    rank: npt.NDArray[np.int64],
    size: int,
    some: npt.NDArray[np.bool_],
) -> Array:
    """Value of 0-based ``rank`` in each replicate."""
    result = np.zeros(len(rank))
    where = (reached <= rank[:, None]).sum(axis=1)
    for block in np.unique(where[some]):
        rows = np.flatnonzero(some & (where == block))
        first = block * size
        inside = counts[np.ix_(rows, owner[first : first + size])].cumsum(axis=1, dtype=np.int64)
        before = reached[rows, block - 1] if block else np.zeros(len(rows), np.int64)
        passed = (inside + before[:, None] <= rank[rows, None]).sum(axis=1)
        result[rows] = values[first + passed]
    return result
