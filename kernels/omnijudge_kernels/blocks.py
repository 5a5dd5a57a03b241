"""Samples shared out to threads in contiguous blocks.

Every sample is computed alone and written to its own place, so the result is the same, byte for
byte, for any number of threads. Scratch memory belongs to a block, never to the whole call.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Result = TypeVar("Result")


def for_blocks(
    work: Callable[[int, int], Result], offsets: NDArray[np.int64], threads: int
) -> list[Result]:
    """Run ``work(first, last)`` over all samples, in blocks of about equally many values.

    Args:
        work: computes the samples ``first <= i < last``; must release the lock to gain anything.
        offsets: CSR offsets of the values that cost the time, (samples + 1,).
        threads: how many blocks, each in its own thread; 1 stays in the calling thread.

    Returns:
        What the blocks returned, in the order of the samples.

    Raises:
        ValueError: if ``threads`` is less than 1.
    """
    if threads < 1:
        raise ValueError(f"threads is {threads}; it must be at least 1.")
    samples = offsets.size - 1
    if threads == 1 or samples < 2:
        return [work(0, samples)]
    goals = np.linspace(0, offsets[-1], threads + 1)[1:-1]
    cuts = np.unique(np.concatenate([[0], np.searchsorted(offsets, goals), [samples]]))
    bounds = [(int(first), int(last)) for first, last in pairwise(cuts)]
    with ThreadPoolExecutor(max_workers=len(bounds)) as pool:
        return list(pool.map(lambda bound: work(*bound), bounds))
