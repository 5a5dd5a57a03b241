"""K6: how many sequences would be complete if the successes at their positions were unrelated?

Rule (Omni-InteractScope, permutation reference for complete sequences): the sequences of one length
form a stratum of ``n`` members with success counts ``c_1 .. c_K``; each position's successes are
shuffled among the members. The number that are still complete after position ``k + 1``, given that
``s`` were after position ``k``, is hypergeometric. Strata are independent.

The law is computed, not sampled, and so small that plain NumPy beats importing a compiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lgamma, prod

import numpy as np
from numpy.typing import NDArray

ROW_BLOCK = 1 << 20  # entries of a transition matrix held at once


@dataclass(frozen=True, eq=False)
class CompleteSequenceLaw:
    """The law of the number of complete sequences.

    Attributes:
        expected: its expectation.
        pmf: ``pmf[x]`` is the probability of exactly ``x``, float64 (most possible + 1,).
    """

    expected: float
    pmf: NDArray[np.float64]

    def at_most(self, x: int) -> float:
        """P(X <= x)."""
        return float(self.pmf[: max(0, x + 1)].sum())

    def at_least(self, x: int) -> float:
        """P(X >= x)."""
        return float(self.pmf[max(0, x) :].sum())

    def interval(self, level: float = 0.95) -> tuple[int, int]:
        """The smallest values whose distribution function reaches (1 -+ level) / 2.

        Raises:
            ValueError: unless ``level`` lies between 0 and 1.
        """
        if not 0 < level < 1:
            raise ValueError(f"level is {level}; it must lie between 0 and 1.")
        # Rounding may leave the sum just short of a value that it reaches exactly.
        below = np.cumsum(self.pmf) + 1e-12
        tails = ((1 - level) / 2, (1 + level) / 2)
        low, high = (int(np.searchsorted(below, tail)) for tail in tails)
        return low, high


def complete_sequence_law(strata: Sequence[tuple[int, Sequence[int]]]) -> CompleteSequenceLaw:
    """The exact law, in float64.

    Args:
        strata: for each length of sequence the number of sequences ``n`` and, for each position,
            how many of them succeed there.

    Raises:
        ValueError: if ``n`` is negative, a stratum has no position, or a count is not in 0..n.
    """
    pmf: NDArray[np.float64] = np.ones(1)
    expected = 0.0
    for number, (n, counts) in enumerate(strata):
        if n < 0 or not counts:
            raise ValueError(f"Stratum {number} has n = {n} and {len(counts)} positions.")
        wrong = [count for count in counts if not 0 <= count <= n]
        if wrong:
            raise ValueError(f"Stratum {number} has a count of {wrong[0]} among {n} sequences.")
        if n > 0:
            expected += n * prod(count / n for count in counts)
            pmf = np.asarray(np.convolve(pmf, _stratum(n, counts)), dtype=np.float64)
    return CompleteSequenceLaw(expected, pmf)


def _stratum(n: int, counts: Sequence[int]) -> NDArray[np.float64]:
    log_factorial = np.array([lgamma(i + 1.0) for i in range(n + 1)])
    pmf = np.zeros(counts[0] + 1)
    pmf[-1] = 1.0
    for count in counts[1:]:
        after = np.zeros(min(pmf.size - 1, count) + 1)
        rows = max(1, ROW_BLOCK // after.size)
        for low in range(0, pmf.size, rows):
            before = np.arange(low, min(low + rows, pmf.size))
            after += pmf[before] @ _transition(n, count, before, after.size, log_factorial)
        pmf = after
    return pmf


def _transition(
    n: int, count: int, before: NDArray[np.int64], size: int, log_factorial: NDArray[np.float64]
) -> NDArray[np.float64]:
    """P(x) = C(s, x) C(n - s, c - x) / C(n, c), a row for each ``s`` in ``before``, x < size."""
    s, x = before[:, np.newaxis], np.arange(size)
    possible = (x <= s) & (count - x <= n - s)
    lost, elsewhere, failed = s - x, count - x, n - s - count + x
    log_p = -(
        log_factorial[x]
        + log_factorial[np.where(possible, lost, 0)]
        + log_factorial[elsewhere]
        + log_factorial[np.where(possible, failed, 0)]
    )
    log_p += log_factorial[s] + log_factorial[n - s]
    log_p -= log_factorial[n] - log_factorial[count] - log_factorial[n - count]
    p = np.exp(np.where(possible, log_p, -np.inf))
    # Rows sum to one but for the rounding of large logarithms, which is common to the row.
    scaled: NDArray[np.float64] = p / p.sum(axis=1, keepdims=True)
    return scaled
