"""Exact McNemar test of a paired control (the same questions with and without the scene)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class PairedControl:
    """Successes of the same items under two conditions.

    Attributes:
        items: number of items.
        first: successes under the first condition.
        second: successes under the second.
        both: successes under both.
        neither: successes under neither.
        only_first: successes under the first alone.
        only_second: successes under the second alone.
        difference: first minus second in percentage points; None without items.
        p_value: exact two-sided McNemar p-value.
    """

    items: int
    first: int
    second: int
    both: int
    neither: int
    only_first: int
    only_second: int
    difference: float | None
    p_value: float


def mcnemar_p(only_first: int, only_second: int) -> float:
    """Exact two-sided p: twice the smaller binomial tail of the discordant items, at most 1."""
    from scipy.special import bdtr

    discordant = only_first + only_second
    if discordant == 0:
        return 1.0
    return min(1.0, 2.0 * float(bdtr(min(only_first, only_second), discordant, 0.5)))


def paired_control(first: Sequence[object], second: Sequence[object]) -> PairedControl:
    """Compare two conditions item by item (Omni-InteractScope, paired evidence control).

    Args:
        first: success of each item under the first condition (with the scene).
        second: the same items in the same order under the second.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} items under one condition, {len(second)} under the other")
    one, other = np.asarray(first, bool), np.asarray(second, bool)
    only_first, only_second = int((one & ~other).sum()), int((other & ~one).sum())
    return PairedControl(
        items=len(one),
        first=int(one.sum()),
        second=int(other.sum()),
        both=int((one & other).sum()),
        neither=int((~one & ~other).sum()),
        only_first=only_first,
        only_second=only_second,
        difference=100 * (only_first - only_second) / len(one) if len(one) else None,
        p_value=mcnemar_p(only_first, only_second),
    )
