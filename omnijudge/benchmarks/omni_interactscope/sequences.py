"""How many sequences would be complete if steps succeeded independently (InteractScope rule 11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from omnijudge.benchmarks.omni_interactscope.schemas import INTERACTION, TARGET
from omnijudge.benchmarks.omni_interactscope.windows import Floats
from omnijudge_kernels.permutation import complete_sequence_law

LEVEL = 0.95


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
    law = complete_sequence_law([(s.n, s.counts) for s in strata])
    low, high = law.interval(LEVEL)
    return SequenceReference(
        expected=law.expected,
        pmf=law.pmf,
        low=low,
        high=high,
        observed=observed,
        p_at_most=law.at_most(observed),
        p_at_least=law.at_least(observed),
    )


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
