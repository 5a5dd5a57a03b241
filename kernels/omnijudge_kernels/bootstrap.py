"""Kernel K4: cluster bootstrap.

Streams are SplitMix64 by position: word j of a stream with key k is mix(k + (j + 1) * GOLDEN), and
each word gives two draws, its low half first. So a replicate depends on its key only, whatever
thread makes it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from numba import njit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLY_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLY_2 = np.uint64(0x94D049BB133111EB)


@njit(cache=True, nogil=True, inline="always")
def _mix(word):  # type: ignore[no-untyped-def]
    word = (word ^ (word >> np.uint64(30))) * _MULTIPLY_1
    word = (word ^ (word >> np.uint64(27))) * _MULTIPLY_2
    return word ^ (word >> np.uint64(31))


@njit(cache=True, nogil=True)
def _fill_counts(keys, counts):  # type: ignore[no-untyped-def]
    n_clusters = counts.shape[1]
    size = np.uint64(n_clusters)
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    one = np.uint8(1)
    for b in range(keys.size):
        row = counts[b]
        row[:] = 0
        state = keys[b]
        for _ in range(n_clusters // 2):
            state += _GOLDEN
            word = _mix(state)
            row[((word & low) * size) >> half] += one
            row[((word >> half) * size) >> half] += one
        if n_clusters % 2:
            word = _mix(state + _GOLDEN)
            row[((word & low) * size) >> half] += one


def bootstrap_counts(
    n_clusters: int,
    keys: npt.NDArray[np.uint64],
    threads: int = 1,
    out: npt.NDArray[np.uint8] | None = None,
) -> npt.NDArray[np.uint8]:
    """How often each cluster is drawn in each replicate.

    Args:
        n_clusters: number of clusters V, below 2**32.
        keys: (B,) key of the stream of each replicate.
        threads: threads to use; the result does not depend on it.
        out: (B, V) uint8 to fill.

    Returns:
        (B, V) counts, each row summing to V.
    """
    if out is None:
        out = np.empty((len(keys), n_clusters), np.uint8)
    if threads <= 1:
        _fill_counts(keys, out)
        return out
    cuts = np.linspace(0, len(keys), threads + 1).astype(np.int64)
    with ThreadPoolExecutor(threads) as pool:
        parts = [pool.submit(_fill_counts, keys[a:b], out[a:b]) for a, b in pairwise(cuts)]
        for part in parts:
            part.result()
    return out
