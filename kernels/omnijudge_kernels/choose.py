"""Plain NumPy or compiled? Decided by size, so that small runs never import Numba.

Importing Numba and compiling a kernel takes about a second, once in a process. Below the work
that plain NumPy does in that second, plain NumPy is the faster kernel. Both give the same answers.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omnijudge_kernels.small import assign_slots_small

SMALL_WORK = 1.0  # seconds of plain NumPy that equal importing Numba and compiling
SECONDS_PER_SAMPLE = 12e-6  # measured for assign_slots_small
SECONDS_PER_SLOT = 0.4e-6
SECONDS_PER_CHUNK = 12e-9


def assign(
    chunk_start: ArrayLike,
    chunk_offsets: ArrayLike,
    slot_start: ArrayLike,
    slot_end: ArrayLike,
    slot_offsets: ArrayLike,
    out: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Give chunks to slots by whichever way is faster at this size.

    Arguments, result and errors are those of :func:`omnijudge_kernels.slots.assign_slots`.
    """
    work = (
        len(np.asarray(chunk_offsets)) * SECONDS_PER_SAMPLE
        + len(np.asarray(slot_start)) * SECONDS_PER_SLOT
        + len(np.asarray(chunk_start)) * SECONDS_PER_CHUNK
    )
    if work < SMALL_WORK and "omnijudge_kernels.slots" not in sys.modules:
        return assign_slots_small(
            chunk_start, chunk_offsets, slot_start, slot_end, slot_offsets, out
        )
    from omnijudge_kernels.slots import assign_slots

    return assign_slots(chunk_start, chunk_offsets, slot_start, slot_end, slot_offsets, out)
