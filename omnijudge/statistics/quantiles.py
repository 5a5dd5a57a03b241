"""Bootstrap of a quantile of values per unit (response delays), by whole clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnijudge_kernels.resampling import Array, Counts


def quantile_replicates(
    units: Sequence[tuple[Array, npt.NDArray[np.integer]]],
    counts: Counts,
    probabilities: Sequence[float],
    weights: npt.NDArray[np.float32] | None = None,
    *,
    compiled: bool = False,
) -> list[Array]:
    """Quantiles of the units of each resample, linear at ``q * (n - 1)``.

    A unit is in a resample as often as its cluster is drawn. Sorted values are cut into blocks; one
    matrix product tells in which block the wanted order statistic of each replicate lies, and only
    that block is counted through.

    Args:
        units: per system finite values (U,), one per unit, and the cluster (U,) of each unit, an
            index below V. Systems together share the product.
        counts: (B, V) how often each cluster is drawn.
        probabilities: the Q probabilities, such as 0.5.
        weights: ``counts`` as float32, for callers who ask many times.
        compiled: use the compiled kernel, which is worth it for many values; same result.

    Returns:
        Per system (Q, B) quantiles; NaN where a resample has no unit.
    """
    wanted = np.asarray(probabilities, np.float64)
    ordered = [_Ordered.of(values, clusters) for values, clusters in units]
    # Whole numbers: exact in float32 below 2**24 units.
    small = max((len(o.values) for o in ordered), default=0) * 255 < 2**24
    if weights is None or not small:
        weights = counts.astype(np.float32 if small else np.float64)
    tables = [o.table(counts.shape[1]) for o in ordered]
    ends = np.cumsum([0, *(table.shape[1] for table in tables)])
    inside = weights @ np.concatenate([*tables, np.empty((counts.shape[1], 0))], axis=1).astype(
        weights.dtype
    )
    found = []
    for o, first, last in zip(ordered, ends[:-1], ends[1:], strict=True):
        if compiled:
            from omnijudge_kernels.unit_quantiles import unit_quantiles

            found.append(
                unit_quantiles(o.values, o.owner, counts, inside[:, first:last], o.size, wanted)
            )
        else:
            found.append(_quantiles(o, counts, inside[:, first:last], wanted))
    return found


@dataclass(frozen=True, slots=True)
class _Ordered:
    """Units of a system in ascending order of their values, in blocks.

    Attributes:
        values: (U,) ascending.
        owner: (U,) cluster of each.
        size: units in a block; the last may have fewer.
    """

    values: Array
    owner: npt.NDArray[np.int64]
    size: int

    @classmethod
    def of(cls, values: Array, clusters: npt.NDArray[np.integer]) -> _Ordered:
        order = np.argsort(values, kind="stable")
        return cls(
            np.asarray(values, np.float64)[order],
            np.asarray(clusters, np.int64)[order],
            max(16, round(2 * len(values) ** 0.5)),
        )

    def table(self, n_clusters: int) -> npt.NDArray[np.int64]:
        """Units of each cluster in each block, (V, K)."""
        n_blocks = -(-len(self.values) // self.size)
        place = self.owner * n_blocks + np.arange(len(self.values)) // self.size
        return np.bincount(place, minlength=n_clusters * n_blocks).reshape(n_clusters, n_blocks)


def _quantiles(
    ordered: _Ordered, counts: Counts, inside: npt.NDArray[np.floating], wanted: Array
) -> Array:
    """What `omnijudge_kernels.unit_quantiles.unit_quantiles` finds, by NumPy alone."""
    result = np.full((len(wanted), len(counts)), np.nan)
    if not len(ordered.values):
        return result
    reached = np.cumsum(inside, axis=1, dtype=np.int64)
    units = reached[:, -1]
    last = np.maximum(units - 1, 0)
    position = np.multiply.outer(wanted, last)
    lower = np.minimum(np.floor(position).astype(np.int64), last)
    upper = np.minimum(lower + 1, last)
    ranks = np.concatenate([lower, upper])
    ranked = _ranked(ordered.values, ordered.owner, counts, reached, ranks, ordered.size)
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
