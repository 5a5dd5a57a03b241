"""Bootstrap intervals for the paired differences of all pairs of systems."""

from __future__ import annotations

import os
from typing import Literal

import numpy as np
import numpy.typing as npt

from omnijudge.statistics.bootstrap import (
    Interval,
    acceleration,
    bca_from_centred,
    bca_probabilities,
    centred_jackknife,
    percentile_interval,
)
from omnijudge_kernels.resampling import Array

PairMethod = Literal["percentile", "bca"]

# Below this many differences, sorting them all is over before the kernels are compiled.
_DIFFERENCES_WORTH_NUMBA = 40_000_000


def all_pairs(n_systems: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """First and second system of every pair: (0, 1), (0, 2), ..., (1, 2), ..."""
    first, second = np.triu_indices(n_systems, 1)
    return first.astype(np.int64), second.astype(np.int64)


def pair_intervals(
    replicates: Array,
    confidence: float,
    method: PairMethod = "percentile",
    *,
    value: Array | None = None,
    leave_one_out: Array | None = None,
    threads: int | None = None,
) -> Interval:
    """Intervals for second minus first, pairs in the order of `all_pairs`.

    Args:
        replicates: (S, B) the statistic of each system in the same resamples; NaN where undefined.
        confidence: such as 0.95.
        method: kind of interval.
        value: (S,) the statistic, for BCa.
        leave_one_out: (S, V) the statistic without each cluster, for BCa.
        threads: threads to use (all cores if None); the result does not depend on it.
    """
    n_systems, n_replicates = replicates.shape
    first, second = all_pairs(n_systems)
    bca = method == "bca"
    if bca and (value is None or leave_one_out is None):
        raise ValueError("BCa needs the statistic and its jackknife values")
    if len(first) * n_replicates < _DIFFERENCES_WORTH_NUMBA:
        return _by_sorting(replicates, confidence, value if bca else None, leave_one_out)
    from omnijudge_kernels.bootstrap import (
        pairwise_intervals,
        pairwise_moments,
        pairwise_shares,
    )

    threads = threads or len(os.sched_getaffinity(0))
    tail = (1 - confidence) / 2
    q_low: Array | float = tail
    q_high: Array | float = 1 - tail
    if bca:
        assert value is not None
        assert leave_one_out is not None
        share = pairwise_shares(replicates, value, threads=threads)
        squares, cubes = pairwise_moments(centred_jackknife(leave_one_out, value), threads=threads)
        size = np.maximum(np.abs(value[first]), np.abs(value[second]))
        defined = _defined(replicates)
        q_low, q_high = bca_probabilities(
            share, defined, acceleration(squares, cubes, size), confidence
        )
        unknown = np.isnan(q_low) | np.isnan(q_high)
        q_low, q_high = np.where(unknown, 0.0, q_low), np.where(unknown, 1.0, q_high)
    low, high, valid = pairwise_intervals(replicates, q_low, q_high, threads=threads)
    return Interval(low, high, n_replicates - valid)


def _defined(replicates: Array) -> npt.NDArray[np.int64]:
    """Replicates in which both systems of a pair are defined."""
    known = np.isfinite(replicates)
    first, second = all_pairs(len(replicates))
    if known.all():
        return np.full(len(first), replicates.shape[1])
    both = known.astype(np.float32)
    return np.asarray((both @ both.T)[first, second], np.int64)


def _by_sorting(
    replicates: Array, confidence: float, value: Array | None, leave_one_out: Array | None
) -> Interval:
    parts = []
    for i in range(len(replicates) - 1):
        difference = replicates[i + 1 :] - replicates[i]
        if value is None or leave_one_out is None:
            parts.append(percentile_interval(difference, confidence))
            continue
        centred = centred_jackknife(leave_one_out[i:], value[i:])
        parts.append(
            bca_from_centred(
                difference,
                value[i + 1 :] - value[i],
                centred[1:] - centred[0],
                np.maximum(np.abs(value[i]), np.abs(value[i + 1 :])),
                confidence,
            )
        )
    if not parts:
        empty = np.empty(0)
        return Interval(empty, empty, np.empty(0, np.int64))
    return Interval(
        np.concatenate([p.low for p in parts]),
        np.concatenate([p.high for p in parts]),
        np.concatenate([p.dropped for p in parts]),
    )
