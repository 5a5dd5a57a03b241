"""Which clusters to give to the gold judge, what that costs, and what it will be worth.

A sample is simple random, or random inside three strata by size with more from the strata of large
clusters, which say more. The order of drawing is fixed by the seed: a larger simple sample contains
a smaller one, and a night that ends early leaves a valid sample.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from omnijudge.statistics.jackknife import jackknife, t_quantile
from omnijudge.statistics.metric import Metric
from omnijudge_kernels.resampling import Array
from omnijudge_kernels.streams import stream_keys

Index = npt.NDArray[np.int64]

# With fewer the spread inside a stratum is unknown, and intervals become too narrow.
FEWEST_IN_STRATUM = 4

_PURPOSE = 2  # streams apart from resamples and flips
_BUDGET = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(videos?|usd|\$)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Budget:
    """What the gold judge may cost: a number of clusters, or of dollars."""

    amount: float
    unit: Literal["videos", "usd"]


@dataclass(frozen=True, slots=True)
class PlanRow:
    """What a sample of a certain size costs and promises.

    Attributes:
        n_gold: sampled clusters.
        n_questions: gold questions, on average over samples of this size.
        cost: price of them; None without a price.
        gold_only: expected half-width of the interval of the metric from the sample alone.
        rectified: expected half-width after correction, by the assumed correlation between the
            influence of a cluster under the two judges.
    """

    n_gold: int
    n_questions: float
    cost: float | None
    gold_only: float | None
    rectified: tuple[float | None, ...]


def parse_budget(text: str) -> Budget:
    """Read a budget such as ``40videos`` or ``50usd``.

    Raises:
        ValueError: it is neither.
    """
    found = _BUDGET.fullmatch(text)
    if not found or float(found[1]) <= 0:
        raise ValueError(f"budget {text!r}: write a number of videos or dollars, 40videos or 50usd")
    unit: Literal["videos", "usd"] = "videos" if found[2].lower().startswith("v") else "usd"
    return Budget(float(found[1]), unit)


def random_order(n_clusters: int, seed: int) -> Index:
    """All clusters in random order: the first n are a simple random sample of n."""
    return np.argsort(stream_keys(seed, 0, n_clusters, _PURPOSE), kind="stable")


def size_strata(sizes: Sequence[float] | Array, seed: int, strata: int = 3) -> Index:
    """Strata (N,) of about equally many clusters, from small to large; ties at random."""
    n_clusters = len(sizes)
    place = np.empty(n_clusters, np.int64)
    place[random_order(n_clusters, seed)] = np.arange(n_clusters)
    order = np.lexsort((place, np.asarray(sizes)))
    codes = np.empty(n_clusters, np.int64)
    codes[order] = np.arange(n_clusters) * strata // max(n_clusters, 1)
    return codes


def stratified_sample(
    sizes: Sequence[float] | Array, n: int, seed: int, strata: int = 3
) -> tuple[Index, Index]:
    """A sample of n clusters, strata of large ones in proportion to their total size.

    Args:
        sizes: (N,) size of each cluster, such as its number of units.
        n: clusters to sample, at least 4 for each stratum.
        seed: of the order of drawing.
        strata: number of strata.

    Returns:
        The sampled clusters (n,) and the stratum of every cluster (N,), for the correction.

    Raises:
        ValueError: the sample is too small for the strata.
    """
    amounts = np.asarray(sizes, np.float64)
    codes = size_strata(amounts, seed, strata)
    there = np.bincount(codes, minlength=strata)
    least = np.minimum(FEWEST_IN_STRATUM, there)
    n = min(n, len(amounts))
    if n < least.sum():
        raise ValueError(f"{n} clusters are too few for {strata} strata; sample {least.sum()}")
    wanted = np.bincount(codes, weights=amounts, minlength=strata)
    taken = least.copy()
    while taken.sum() < n:
        # The next cluster goes where it is most overdue.
        overdue = np.where(taken < there, wanted / (taken + 0.5), -1.0)
        taken[int(np.argmax(overdue))] += 1
    order = random_order(len(amounts), seed)
    chosen = [order[codes[order] == h][: taken[h]] for h in range(strata)]
    return np.sort(np.concatenate(chosen)), codes


def sample_size(budget: Budget, order: Index, cost: Sequence[float] | Array | None) -> int:
    """How many clusters of the random order the budget pays for.

    The mean cost of all clusters decides, not the running total: stopping where the money is gone
    would favour samples of short videos.

    Args:
        budget: what may be spent.
        order: clusters in random order.
        cost: dollars for each cluster; needed for a budget in dollars.

    Raises:
        ValueError: a budget in dollars without prices.
    """
    if budget.unit == "videos":
        return min(int(budget.amount), len(order))
    if cost is None:
        raise ValueError("a budget in dollars needs the price of the gold judge")
    mean = float(np.mean(cost))
    return len(order) if mean <= 0 else min(int(budget.amount / mean), len(order))


def plan(
    metric: Metric,
    cheap: Array,
    sizes: Sequence[int],
    questions: Sequence[float] | Array,
    *,
    price: float | None = None,
    correlations: Sequence[float] = (0.9, 0.7, 0.5),
    confidence: float = 0.95,
) -> list[PlanRow]:
    """Expected half-widths (finite target) for several sample sizes.

    The spread of clusters is taken from the cheap judge. How well it follows the gold judge is not
    known before there is gold, so widths are given for some correlations.

    Args:
        metric: the metric.
        cheap: (N, k) its sums under the cheap judge.
        sizes: numbers of sampled clusters to compare.
        questions: (N,) gold questions each cluster takes.
        price: dollars for a question.
        correlations: assumed correlations.
        confidence: level of the intervals.
    """
    total = len(cheap)
    influence = jackknife(metric.function, cheap[None], metric.denominator).influence[0] * total
    variance = float((influence**2).sum() / max(total - 1, 1))
    rows = []
    for n in sizes:
        asked = float(np.mean(questions)) * n
        base = variance * max(1 - n / total, 0.0) / max(n, 1)
        halves = [
            float(t_quantile(confidence, np.asarray(n - 1.0 - used))) * np.sqrt(base * (1 - r * r))
            if n - 1 - used >= 1
            else None
            for used, r in [(0, 0.0), *((1, r) for r in correlations)]
        ]
        rows.append(
            PlanRow(
                int(n),
                asked,
                None if price is None else asked * price,
                halves[0],
                tuple(halves[1:]),
            )
        )
    return rows
