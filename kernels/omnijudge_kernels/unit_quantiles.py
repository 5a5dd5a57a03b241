"""K4, units: quantiles of values per unit (delays) when whole clusters are drawn."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omnijudge_kernels.jit import kernel

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Counts = npt.NDArray[np.uint8] | npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float32] | npt.NDArray[np.float64]


@kernel
def _fill(
    values: Array,
    owner: Index,
    counts: Counts,
    inside: Floats,
    size: int,
    probabilities: Array,
    out: Array,
) -> None:
    n_blocks = inside.shape[1]
    reached = np.empty(n_blocks + 1, np.int64)
    reached[0] = 0
    for b in range(counts.shape[0]):
        for k in range(n_blocks):
            reached[k + 1] = reached[k] + np.int64(inside[b, k])
        drawn = reached[n_blocks]
        for q in range(probabilities.size):
            if drawn == 0:
                out[q, b] = np.nan
                continue
            position = probabilities[q] * (drawn - 1)
            rank = int(position)
            block = 0
            while reached[block + 1] <= rank:
                block += 1
            left = rank - reached[block]
            unit = block * size
            while left >= counts[b, owner[unit]]:
                left -= counts[b, owner[unit]]
                unit += 1
            low = values[unit]
            if rank + 1 < drawn and left + 1 >= counts[b, owner[unit]]:
                unit += 1
                while counts[b, owner[unit]] == 0:
                    unit += 1
            out[q, b] = low + (position - rank) * (values[unit] - low)


def unit_quantiles(
    values: Array,
    owner: Index,
    counts: Counts,
    inside: Floats,
    size: int,
    probabilities: Array,
    out: Array | None = None,
) -> Array:
    """Quantiles of the units of each resample, linear at ``q * (n - 1)``.

    Args:
        values: (U,) ascending values of the units.
        owner: (U,) cluster of each unit.
        counts: (B, V) how often each cluster is drawn.
        inside: (B, K) whole numbers: units drawn in each block of ``size`` units.
        size: units in a block; the last may have fewer.
        probabilities: (Q,) from 0 to 1.
        out: (Q, B) to fill.

    Returns:
        (Q, B) quantiles; NaN where a resample has no unit.
    """
    if out is None:
        out = np.empty((len(probabilities), len(counts)))
    _fill(values, owner, counts, inside, size, probabilities, out)
    return out
