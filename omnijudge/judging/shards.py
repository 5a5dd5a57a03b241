"""Shards: several processes share one run without knowing of each other (``--shard K/N``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from omnijudge.errors import ConfigError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Shard:
    """Part ``number`` (from 1) of ``count``."""

    number: int = 1
    count: int = 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def of(self, samples: Sequence[T]) -> list[T]:
        """This shard's samples.

        Args:
            samples: all samples in the seeded order of the run. Each shard takes every
                ``count``-th: the shards are disjoint, together complete, equal in size to one
                sample, and every prefix of each is again a random set. Cutting the list behind
                (``--limit``) moves no sample to another shard.
        """
        return list(samples[self.number - 1 :: self.count])


def parse_shard(text: str) -> Shard:
    """Reads ``K/N``.

    Raises:
        ConfigError: not of this form, or K is not in 1..N.
    """
    m = re.fullmatch(r"\s*(\d+)\s*/\s*(\d+)\s*", text)
    if not m or not 1 <= int(m[1]) <= int(m[2]):
        raise ConfigError(f"--shard {text}: write K/N with K from 1 to N, for example 2/8")
    return Shard(int(m[1]), int(m[2]))
