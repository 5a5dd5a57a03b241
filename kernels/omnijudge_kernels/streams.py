"""Random numbers that depend on a seed and a position only, never on threads or chunks.

Word j of the stream with key k is the SplitMix64 output ``mix(k + (j + 1) * GOLDEN)``, so any part
of any stream can be made on its own. Plain NumPy; the compiled loops compute the same integers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MULTIPLY_1 = np.uint64(0xBF58476D1CE4E5B9)
MULTIPLY_2 = np.uint64(0x94D049BB133111EB)


def mix(words: Words) -> Words:
    """Finaliser of SplitMix64 (Steele, Lea, Flood 2014); uint64 arithmetic wraps."""
    words = (words ^ (words >> np.uint64(30))) * MULTIPLY_1
    words = (words ^ (words >> np.uint64(27))) * MULTIPLY_2
    return words ^ (words >> np.uint64(31))


def stream_keys(seed: int, first: int, last: int, purpose: int = 0) -> Words:
    """Keys of the streams ``first`` to ``last`` (exclusive).

    Args:
        seed: any integer; its lowest 64 bits count.
        first: first stream.
        last: one past the last stream.
        purpose: separates streams of one seed that serve different ends.
    """
    base = np.array([seed & 0xFFFFFFFFFFFFFFFF, purpose], np.uint64)
    start = mix(mix(base[:1] + GOLDEN) + base[1:] * GOLDEN)
    return mix(start + np.arange(first + 1, last + 1, dtype=np.uint64) * GOLDEN)


def stream_words(keys: Words, count: int) -> Words:
    """The first ``count`` words of each stream, shape (len(keys), count)."""
    steps = np.arange(1, count + 1, dtype=np.uint64) * GOLDEN
    return mix(keys[:, None] + steps)
