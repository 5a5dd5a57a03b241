"""Plain NumPy or compiled? Decided by size, so that small runs never import Numba.

Importing Numba and compiling a kernel takes one to two seconds, once in a process. Below the work
that the plain form does in that time, the plain form is the faster kernel. Both give the same
answers, and a kernel that is already compiled is used at any size.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omnijudge_kernels.instances import EPS
from omnijudge_kernels.masks import Masks, Matching
from omnijudge_kernels.responses import FirstResponse
from omnijudge_kernels.small import (
    assign_slots_small,
    first_response_small,
    match_ordered_pairs_small,
    window_ranges_small,
)

SMALL_WORK = 1.0  # seconds of the plain form that equal importing Numba and compiling

# What the plain forms take, in seconds; measured with scripts/bench_kernels.py.
ASSIGN_PER_SAMPLE, ASSIGN_PER_SLOT, ASSIGN_PER_CHUNK = 12e-6, 0.4e-6, 12e-9
RANGES_PER_INSTANCE, RANGES_PER_TARGET = 5e-6, 0.1e-6
PAIRS_PER_TARGET, PAIRS_PER_WORD = 3e-6, 0.1e-6
FIRST_PER_TARGET = 0.8e-6


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
        np.size(chunk_offsets) * ASSIGN_PER_SAMPLE
        + np.size(slot_start) * ASSIGN_PER_SLOT
        + np.size(chunk_start) * ASSIGN_PER_CHUNK
    )
    if _plain(work, "omnijudge_kernels.slots"):
        return assign_slots_small(
            chunk_start, chunk_offsets, slot_start, slot_end, slot_offsets, out
        )
    from omnijudge_kernels.slots import assign_slots

    return assign_slots(chunk_start, chunk_offsets, slot_start, slot_end, slot_offsets, out)


def window_ranges(
    response_time: ArrayLike,
    response_offsets: ArrayLike,
    window_low: ArrayLike,
    window_high: ArrayLike,
    target_offsets: ArrayLike,
    *,
    eps: float = EPS,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The run of responses in each window, by whichever way is faster at this size.

    Arguments, result and errors are those of :func:`omnijudge_kernels.windows.window_ranges`.
    """
    work = np.size(target_offsets) * RANGES_PER_INSTANCE + np.size(window_low) * RANGES_PER_TARGET
    arrays = (response_time, response_offsets, window_low, window_high, target_offsets)
    if _plain(work, "omnijudge_kernels.windows"):
        return window_ranges_small(*arrays, eps=eps)
    from omnijudge_kernels.windows import window_ranges as compiled

    return compiled(*arrays, eps=eps)


def match_ordered_pairs(masks: Masks) -> Matching:
    """The largest ordered matching, by whichever way is faster at this size.

    Arguments, result and errors are those of
    :func:`omnijudge_kernels.matching.match_ordered_pairs`.
    """
    work = masks.n_targets * PAIRS_PER_TARGET + np.size(masks.words) * PAIRS_PER_WORD
    if _plain(work, "omnijudge_kernels.matching"):
        return match_ordered_pairs_small(masks)
    from omnijudge_kernels.matching import match_ordered_pairs as compiled

    return compiled(masks)


def first_response(
    response_time: ArrayLike,
    response_offsets: ArrayLike,
    window_low: ArrayLike,
    window_high: ArrayLike,
    target_offsets: ArrayLike,
    reference_time: ArrayLike | None = None,
    *,
    variant: str = "default",
    eps: float = EPS,
) -> FirstResponse:
    """First responses by whichever way is faster at this size.

    Arguments, result and errors are those of
    :func:`omnijudge_kernels.first_response.first_response`.
    """
    arrays = (response_time, response_offsets, window_low, window_high, target_offsets)
    if _plain(np.size(window_low) * FIRST_PER_TARGET, "omnijudge_kernels.first_response"):
        return first_response_small(*arrays, reference_time, variant=variant, eps=eps)
    from omnijudge_kernels.first_response import first_response as compiled

    return compiled(*arrays, reference_time, variant=variant, eps=eps)


def _plain(work: float, module: str) -> bool:
    return work < SMALL_WORK and module not in sys.modules
