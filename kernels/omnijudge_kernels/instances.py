"""Responses in time and target windows, by instance: the common input of the timing kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omnijudge_kernels import checks

EPS = 1e-6  # seconds; windows are closed, and honest boundary hits miss by rounding (8.3 - 2)


@dataclass(frozen=True, eq=False)
class Instances:
    """Many interactions: each with responses in order of time and targets in target order.

    Attributes:
        response_time: seconds, float64 (responses,), never falling inside an instance.
        response_offsets: CSR offsets of the responses by instance, int64 (instances + 1,).
        window_low: where each target's window begins, seconds, float64 (targets,), inclusive.
        window_high: where it ends, inclusive; a window that ends before it begins holds nothing.
        target_offsets: CSR offsets of the targets by instance, int64 (instances + 1,).
        eps: slack of every comparison of times, seconds.
    """

    response_time: NDArray[np.float64]
    response_offsets: NDArray[np.int64]
    window_low: NDArray[np.float64]
    window_high: NDArray[np.float64]
    target_offsets: NDArray[np.int64]
    eps: float

    @property
    def n_instances(self) -> int:
        """How many instances there are."""
        return self.target_offsets.size - 1

    @property
    def n_targets(self) -> int:
        """How many targets all instances have together."""
        return self.window_low.size


def instances(
    response_time: ArrayLike,
    response_offsets: ArrayLike,
    window_low: ArrayLike,
    window_high: ArrayLike,
    target_offsets: ArrayLike,
    eps: float,
) -> Instances:
    """Check shapes and offsets; that times are finite and ordered is left to :func:`refuse`.

    Raises:
        ValueError: if shapes and offsets do not fit together.
    """
    time = checks.seconds("response_time", response_time)
    low = checks.seconds("window_low", window_low)
    high = checks.seconds("window_high", window_high)
    n_targets = checks.same_length(window_low=low, window_high=high)
    responses = checks.csr_offsets("response_offsets", response_offsets, time.size)
    targets = checks.csr_offsets("target_offsets", target_offsets, n_targets)
    checks.same_length(response_offsets=responses, target_offsets=targets)
    if not (np.isfinite(eps) and eps >= 0):
        raise ValueError(f"eps is {eps}; it must be finite and not negative.")
    return Instances(time, responses, low, high, targets, float(eps))


def refuse_bad_times(given: Instances) -> None:
    """Raise for the first time that is not finite or out of order; nothing if there is none.

    Raises:
        ValueError: naming the entry.
    """
    checks.require_finite(
        response_time=given.response_time,
        window_low=given.window_low,
        window_high=given.window_high,
    )
    falls = given.response_time[1:] < given.response_time[:-1]
    borders = given.response_offsets[1:-1]
    borders = borders[(borders > 0) & (borders < given.response_time.size)]
    falls[borders - 1] = False
    if falls.any():
        where = int(np.argmax(falls)) + 1
        raise ValueError(
            f"response_time[{where}] is {given.response_time[where]}, earlier than the response "
            f"before it; sort the responses of an instance by time."
        )
