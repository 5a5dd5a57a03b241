"""Random numbers that depend on names only, never on process, order or hash seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """A stream of random numbers for one key.

    Only ``random.Random.random`` is used: of all its methods, its values alone are promised to
    stay the same from one Python version to the next.
    """

    def __init__(self, seed: int, *names: str) -> None:
        digest = blake2b(digest_size=16)
        for part in (str(seed), *names):
            data = part.encode("utf-8", "surrogatepass")
            # With the length before each part, ("ab", "c") and ("a", "bc") are two streams.
            digest.update(len(data).to_bytes(8, "little") + data)
        self.roll = random.Random(int.from_bytes(digest.digest(), "little")).random

    def chance(self, probability: float) -> bool:
        """True with this probability; always draws, so that the stream does not shift."""
        return self.roll() < probability

    def between(self, low: float, high: float) -> float:
        """A number from ``low`` to ``high``."""
        return low + (high - low) * self.roll()

    def below(self, count: int) -> int:
        """A whole number from 0 to ``count - 1``."""
        return int(self.roll() * count)

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]
