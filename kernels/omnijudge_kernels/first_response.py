"""K5: which response does each target take, and was it in time?

Rule (Omni-InteractScope, first-response assignment, T1 to T7): the targets take responses in order,
the earliest that is still free, whatever its time or content; once taken it is gone. The variants:

* ``default``: so the k-th target takes the k-th response.
* ``late_released``: a response after the window's end is not taken and stays for the next target.
* ``since_previous``: from the second target on, the first response after the last taken one that is
  strictly later than the previous target's reference time; what lies before it is discarded.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omnijudge_kernels import checks
from omnijudge_kernels.blocks import for_blocks
from omnijudge_kernels.instances import EPS, instances, refuse_bad_times
from omnijudge_kernels.jit import kernel
from omnijudge_kernels.responses import (
    FirstResponse,
    Timing,
    checked_reference,
    checked_variant,
)
from omnijudge_kernels.windows import times_are_good, window_is_good

MISSING = np.int8(Timing.MISSING)
# By 2 * (before the window) + (after it); before wins, if a window ends before it begins. Looked up
# rather than branched on: no branch here can be predicted.
TIMING = np.array([Timing.INSIDE, Timing.LATE, Timing.EARLY, Timing.EARLY], dtype=np.int8)


def first_response(
    response_time: ArrayLike,
    response_offsets: ArrayLike,
    window_low: ArrayLike,
    window_high: ArrayLike,
    target_offsets: ArrayLike,
    reference_time: ArrayLike | None = None,
    out: tuple[NDArray[np.int64], NDArray[np.int8]] | None = None,
    *,
    variant: str = "default",
    eps: float = EPS,
    threads: int = 1,
) -> FirstResponse:
    """Assign responses to targets and class their timing.

    Args:
        response_time: seconds, (responses,), never falling inside an instance.
        response_offsets: CSR offsets of the responses by instance, (instances + 1,).
        window_low: begin of each target's window in seconds, inclusive, (targets,).
        window_high: its end, inclusive.
        target_offsets: CSR offsets of the targets by instance, (instances + 1,).
        reference_time: each target's reference time (of an interval: its end) in seconds,
            (targets,); needed by ``since_previous`` only.
        out: ``taken`` and ``timing`` to write to, int64 and int8 (targets,).
        variant: ``default``, ``late_released`` or ``since_previous``.
        eps: slack of the comparisons, seconds.
        threads: blocks of instances computed at once; the result does not depend on it.

    Raises:
        ValueError: if a time is not finite or out of order, or shapes do not fit together.
    """
    given = instances(response_time, response_offsets, window_low, window_high, target_offsets, eps)
    chosen = checked_variant(variant)
    reference = checked_reference(given, reference_time, chosen)
    taken, timing = out if out is not None else (None, None)
    taken = checks.output("out[0]", taken, given.n_targets, np.int64)
    timing = checks.output("out[1]", timing, given.n_targets, np.int8)

    def work(first: int, last: int) -> bool:
        return _assign(
            given.response_time,
            given.response_offsets,
            given.window_low,
            given.window_high,
            given.target_offsets,
            given.eps,
            reference,
            chosen == "late_released",
            chosen == "since_previous",
            first,
            last,
            taken,
            timing,
        )

    if not all(for_blocks(work, given.target_offsets, threads)):
        refuse_bad_times(given)
    return FirstResponse(taken, timing)


@kernel
def _assign(
    response_time: NDArray[np.float64],
    response_offsets: NDArray[np.int64],
    window_low: NDArray[np.float64],
    window_high: NDArray[np.float64],
    target_offsets: NDArray[np.int64],
    eps: float,
    reference: NDArray[np.float64],
    late_released: bool,
    since_previous: bool,
    first: int,
    last: int,
    taken: NDArray[np.int64],
    timing: NDArray[np.int8],
) -> bool:
    for i in range(first, last):
        times = response_time[response_offsets[i] : response_offsets[i + 1]]
        if not times_are_good(times):
            return False
        free = 0  # the first response after the last taken one
        for k in range(target_offsets[i], target_offsets[i + 1]):
            if not window_is_good(window_low[k], window_high[k]):
                return False
            j = free
            if since_previous and k > target_offsets[i]:
                while j < times.size and times[j] <= reference[k - 1] + eps:
                    j += 1
            after = j < times.size and times[j] > window_high[k] + eps
            if j == times.size or (late_released and after):
                taken[k] = -1
                timing[k] = MISSING
                continue
            before = times[j] < window_low[k] - eps
            taken[k] = j
            timing[k] = TIMING[2 * before + after]
            free = j + 1
    return True
