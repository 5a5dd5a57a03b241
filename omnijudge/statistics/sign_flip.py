"""Sign-flip test by cluster: are two systems exchangeable within each video?

If neither system is better, swapping their sums in any set of clusters changes nothing about the
law of the difference. Random sets of clusters give p = (1 + #{|d*| >= |d|}) / (B + 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnijudge.statistics.gpu import replicate_sums
from omnijudge.statistics.jackknife import evaluate
from omnijudge_kernels.resampling import Array
from omnijudge_kernels.streams import stream_keys, stream_words

# Differences computed per family: a second or less of work.
AFFORDABLE = 20_000_000

_PURPOSE = 1  # streams apart from those of the bootstrap
_CHUNK_FLIPS = 1024
_LEAST_FLIPS = 1000


@dataclass(frozen=True, slots=True)
class FlipPlan:
    """How many random sets of clusters a family gets.

    Attributes:
        flips: number B.
        enough: 1 / (B + 1) times the size of the family stays below a fifth of the error level. If
            not, p-values at the floor need a tail.
    """

    flips: int
    enough: bool


def plan_flips(family: int, flips: int, error: float, affordable: int = AFFORDABLE) -> FlipPlan:
    """Enough flips for a family, if they can be afforded.

    Args:
        family: number of comparisons adjusted together.
        flips: number to use if it is enough.
        error: level of the tests, such as 0.05.
        affordable: differences that may be computed for the family.
    """
    needed = int(np.ceil(5 * family / error))
    if needed <= flips:
        return FlipPlan(flips, True)
    if needed * family <= affordable:
        return FlipPlan(needed, True)
    return FlipPlan(min(flips, max(_LEAST_FLIPS, affordable // family)), False)


def flips(n_clusters: int, first: int, last: int, seed: int) -> npt.NDArray[np.uint8]:
    """Random sets of clusters ``first`` to ``last`` (exclusive), as rows of 0 and 1."""
    words = stream_words(stream_keys(seed, first, last, _PURPOSE), -(-n_clusters // 64))
    octets = words.astype("<u8").view(np.uint8)
    return np.unpackbits(octets, axis=1, count=n_clusters, bitorder="little")


def flip_sums(stacks: Sequence[Array], count: int, seed: int) -> Iterator[tuple[Array, ...]]:
    """Sums over random sets of clusters, chunk by chunk.

    Args:
        stacks: arrays (S, V, k), all with the same V.
        count: number of sets.
        seed: of the sets.

    Yields:
        For each stack (k, S, chunk).
    """
    n_clusters = stacks[0].shape[1]
    for first in range(0, count, _CHUNK_FLIPS):
        chosen = flips(n_clusters, first, min(first + _CHUNK_FLIPS, count), seed)
        yield tuple(replicate_sums(chosen, stack.transpose(1, 2, 0)) for stack in stacks)


class FlipTest:
    """Counts, pair by pair, how often a flipped difference reaches the observed one.

    Attributes:
        reached: (P,) flips whose difference is at least the observed one.
        defined: (P,) flips whose difference is defined.
    """

    def __init__(
        self,
        function: Callable[[Array], Array],
        first: Array,
        second: Array,
        first_value: Array,
        second_value: Array,
    ) -> None:
        """Start with no flips.

        Args:
            function: maps (..., k) to (...).
            first: (P or 1, V, k) sums of the first systems.
            second: (P, V, k) sums of the second systems.
            first_value: (P or 1,) the statistic of the first systems.
            second_value: (P,) of the second.
        """
        self._function = function
        self._first = first.sum(axis=1).T[..., None]
        self._second = second.sum(axis=1).T[..., None]
        observed = np.abs(second_value - first_value)
        size = np.maximum(np.abs(first_value), np.abs(second_value))
        # Differences that are equal but for rounding reach the observed one.
        self._goal = observed * (1 - 1e-10) - 1e-13 * size
        self.reached = np.zeros(len(second), np.int64)
        self.defined = np.zeros(len(second), np.int64)

    @property
    def family(self) -> int:
        """Number of pairs with a defined difference."""
        return int(np.isfinite(self._goal).sum())

    def add(self, first: Array, second: Array) -> None:
        """Count some flips, given the sums over each set: (k, P or 1, B) and (k, P, B)."""
        moved = second - first  # what the swapped clusters bring to the first system
        one = evaluate(self._function, np.moveaxis(self._first + moved, 0, -1))
        other = evaluate(self._function, np.moveaxis(self._second - moved, 0, -1))
        difference = np.abs(other - one)
        self.reached += (difference >= self._goal[:, None]).sum(axis=-1)
        self.defined += np.isfinite(difference).sum(axis=-1)

    def p_values(self) -> tuple[Array, Array]:
        """p-values, and the smallest each test could have given, (P,) each."""
        total = self.defined + 1.0
        return (self.reached + 1) / total, 1 / total

    @classmethod
    def joined(cls, tests: Sequence[FlipTest]) -> FlipTest:
        """The counts of several tests one after the other."""
        whole = cls.__new__(cls)
        none = np.zeros(0, np.int64)
        whole.reached = np.concatenate([none, *(test.reached for test in tests)])
        whole.defined = np.concatenate([none, *(test.defined for test in tests)])
        return whole
