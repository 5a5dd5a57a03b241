"""How many sequences would be complete if steps succeeded independently (InteractScope rule 11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, prod

import numpy as np
import pyarrow as pa

from omnijudge.benchmarks.omni_interactscope.schemas import INTERACTION, TARGET
from omnijudge.benchmarks.omni_interactscope.windows import Floats

TAIL = 0.025
"""Probability left out at either end of the 95 % range."""


@dataclass(frozen=True, slots=True)
class Stratum:
    """Sequences of one length.

    Attributes:
        n: number of sequences.
        counts: successes at each step position, among the n.
    """

    n: int
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.n < 1 or not self.counts or not all(0 <= c <= self.n for c in self.counts):
            raise ValueError(f"{self}: counts must lie between 0 and n, and n be at least 1")


@dataclass(frozen=True, eq=False)
class SequenceReference:
    """Law of the number of complete sequences when the steps are shuffled independently.

    Shared difficulty of a sequence is not modelled: the reference takes the sequences to be
    exchangeable at every step position.

    Attributes:
        expected: expectation.
        pmf: probability of 0, 1, ... complete sequences.
        low: lower end of the 95 % range.
        high: its upper end.
        observed: what was observed.
        p_at_most: probability of at most the observed number.
        p_at_least: probability of at least the observed number.
    """

    expected: float
    pmf: Floats
    low: int
    high: int
    observed: int
    p_at_most: float
    p_at_least: float


def sequence_reference(strata: Sequence[Stratum], observed: int) -> SequenceReference:
    """The exact law, strata being independent of each other.

    Args:
        strata: sequences by their length.
        observed: complete sequences seen.
    """
    pmf = np.ones(1)
    for stratum in strata:
        pmf = np.convolve(pmf, stratum_law(stratum))
    cdf = np.cumsum(pmf)
    # Rounding may keep the last sum just below the limit.
    low, high = (int(min(np.searchsorted(cdf, q), len(pmf) - 1)) for q in (TAIL, 1 - TAIL))
    return SequenceReference(
        expected=float(sum(s.n * prod(c / s.n for c in s.counts) for s in strata)),
        pmf=pmf,
        low=low,
        high=high,
        observed=observed,
        p_at_most=float(pmf[: max(observed + 1, 0)].sum()),
        p_at_least=float(pmf[max(observed, 0) :].sum()),
    )


def stratum_law(stratum: Stratum) -> Floats:
    """Probability of 0, 1, ..., n complete sequences among n of one length.

    S_1 = c_1; given S_k = s, S_(k+1) is hypergeometric: of the c successes at the next position,
    x fall on the s sequences that are complete so far.
    """
    n = stratum.n
    law = np.zeros(n + 1)
    law[stratum.counts[0]] = 1.0
    for c in stratum.counts[1:]:
        following = np.zeros(n + 1)
        ways = comb(n, c)
        for s in np.flatnonzero(law).tolist():
            for x in range(max(0, c - (n - s)), min(s, c) + 1):
                following[x] += law[s] * (comb(s, x) * comb(n - s, c - x) / ways)
        law = following
    return law


def sequence_strata(scores: pa.Table, task: str = "T8-C") -> tuple[list[Stratum], int]:
    """Strata by length, and complete sequences, of one system's score rows.

    Interactions with an unscored target are left out.
    """
    names = ["sample_id", "unit_kind", "task", "position", "sequence_length", "success"]
    rows = [
        r for r in scores.select([*names, "complete", "judged"]).to_pylist() if r["task"] == task
    ]
    scored = {
        r["sample_id"]: r
        for r in rows
        if r["unit_kind"] == INTERACTION and r["judged"] is not False
    }
    counts: dict[int, list[int]] = {}
    for r in rows:
        if r["unit_kind"] == TARGET and r["sample_id"] in scored:
            mine = counts.setdefault(r["sequence_length"], [0] * r["sequence_length"])
            mine[r["position"] - 1] += r["success"]
    sizes: dict[int, int] = {}
    for r in scored.values():
        sizes[r["sequence_length"]] = sizes.get(r["sequence_length"], 0) + 1
    strata = [Stratum(sizes[length], tuple(counts[length])) for length in sorted(counts)]
    return strata, sum(r["complete"] for r in scored.values())
