"""The kernels' rules in plain NumPy, for inputs too small to be worth compiling for.

Same arguments, same checks, same answers as the compiled twins.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omnijudge_kernels import checks


def assign_slots_small(
    chunk_start: ArrayLike,
    chunk_offsets: ArrayLike,
    slot_start: ArrayLike,
    slot_end: ArrayLike,
    slot_offsets: ArrayLike,
    out: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """:func:`omnijudge_kernels.slots.assign_slots` without Numba.

    In time order a slot's chunks are one run, found by binary search; the slots overwrite each
    other's runs in (start, position) order.
    """
    chunk_start = checks.seconds("chunk_start", chunk_start)
    slot_start = checks.seconds("slot_start", slot_start)
    slot_end = checks.seconds("slot_end", slot_end)
    n_slots = checks.same_length(slot_start=slot_start, slot_end=slot_end)
    chunk_offsets = checks.csr_offsets("chunk_offsets", chunk_offsets, chunk_start.size)
    slot_offsets = checks.csr_offsets("slot_offsets", slot_offsets, n_slots)
    samples = checks.same_length(chunk_offsets=chunk_offsets, slot_offsets=slot_offsets) - 1
    checks.require_finite(chunk_start=chunk_start, slot_start=slot_start, slot_end=slot_end)
    out = checks.output("out", out, chunk_start.size, np.int64)
    out[:] = -1

    chunk_bounds, slot_bounds = chunk_offsets.tolist(), slot_offsets.tolist()
    for sample in range(samples):
        c0, c1 = chunk_bounds[sample], chunk_bounds[sample + 1]
        s0, s1 = slot_bounds[sample], slot_bounds[sample + 1]
        if c0 == c1 or s0 == s1:
            continue
        times = chunk_start[c0:c1]
        in_time = None
        if (times[1:] < times[:-1]).any():
            in_time = np.argsort(times, kind="stable")
            times = times[in_time]
        run_first = np.searchsorted(times, slot_start[s0:s1], side="left").tolist()
        run_last = np.searchsorted(times, slot_end[s0:s1], side="left").tolist()
        found = out[c0:c1] if in_time is None else np.full(c1 - c0, -1, dtype=np.int64)
        for position in np.argsort(slot_start[s0:s1], kind="stable").tolist():
            found[run_first[position] : run_last[position]] = position
        if in_time is not None:
            out[c0:c1][in_time] = found
    return out
