"""May one judge replace another? Two one-sided tests by the jackknife over clusters.

A metric under two judges is *equivalent* if its difference is shown to lie within a margin,
*different* if it is shown not to be 0 and not shown to lie within the margin, else *undecided*.
Judges who never differ are equivalent only if there are enough clusters to have shown it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from omnijudge.statistics.jackknife import Jackknife, jackknife, paired, t_interval
from omnijudge.statistics.metric import Metric
from omnijudge_kernels.resampling import Array

Verdict = Literal["equivalent", "different", "undecided"]

FEWEST_SYSTEMS = 8


@dataclass(frozen=True, slots=True)
class Equivalence:
    """One number under two judges. None means undefined.

    Attributes:
        metric: metric name.
        group: group name.
        difference: second judge minus first.
        low: lower end of the jackknife t interval of the difference.
        high: upper end.
        margin: largest difference that does not matter.
        p_equivalent: larger p-value of the two one-sided tests against the margin.
        p_different: two-sided p-value against 0.
        verdict: ``equivalent``, ``different`` or ``undecided``.
        n_clusters: clusters with data.
    """

    metric: str
    group: str
    difference: float | None
    low: float | None
    high: float | None
    margin: float
    p_equivalent: float | None
    p_different: float | None
    verdict: Verdict
    n_clusters: int


@dataclass(frozen=True, slots=True)
class Shift:
    """What a change of prompts and a change of model each do to a metric.

    Attributes:
        prompt: same model, published prompts -> other prompts.
        model: same prompts, gold model -> other model.
        together: both at once.
    """

    prompt: Equivalence
    model: Equivalence
    together: Equivalence


@dataclass(frozen=True, slots=True)
class RankAgreement:
    """Do two judges order the systems alike?

    Attributes:
        kendall: tau-b; None if undefined.
        spearman: rho; None if undefined.
        n_systems: systems compared.
        note: ``uninformative`` with fewer than 8 systems: chance alone often orders them alike.
    """

    kendall: float | None
    spearman: float | None
    n_systems: int
    note: str | None


def equivalence(
    metric: Metric, first: Array, second: Array, margin: float, confidence: float = 0.95
) -> list[Equivalence]:
    """A metric under two judges, system by system.

    Args:
        metric: the metric.
        first: (S, V, k) its sums under the first judge.
        second: (S, V, k) under the second, on the same items.
        margin: largest difference that does not matter, above 0.
        confidence: 1 less the error of each test.
    """
    one, other = _under_both(metric, first, second)
    return _decide(metric, paired(one, other), margin, confidence)


def difference_equivalence(
    metric: Metric,
    first: Array,
    second: Array,
    baseline: int,
    margin: float,
    confidence: float = 0.95,
) -> list[Equivalence]:
    """The differences between each other system and a baseline, under two judges.

    Arguments as for `equivalence`; the baseline is a position among the systems.
    """
    one, other = _under_both(metric, first, second)
    base = slice(baseline, baseline + 1)
    change = paired(paired(one[base], one), paired(other[base], other))
    found = _decide(metric, change, margin, confidence)
    return found[:baseline] + found[baseline + 1 :]


def shift(
    metric: Metric,
    gold_published: Array,
    gold: Array,
    judge: Array,
    margin: float,
    confidence: float = 0.95,
) -> list[Shift]:
    """Tell a change of prompts from a change of model, system by system.

    Args:
        metric: the metric.
        gold_published: (S, V, k) sums under the gold model with the published prompts.
        gold: under the gold model with the prompts of the judge.
        judge: under the judge.
        margin: largest difference that does not matter.
        confidence: 1 less the error of each test.
    """
    parts = (
        equivalence(metric, gold_published, gold, margin, confidence),
        equivalence(metric, gold, judge, margin, confidence),
        equivalence(metric, gold_published, judge, margin, confidence),
    )
    return [Shift(*three) for three in zip(*parts, strict=True)]


def rank_agreement(first: Sequence[float], second: Sequence[float]) -> RankAgreement:
    """Rank correlations of one value per system under two judges; NaN pairs are left out."""
    from scipy.stats import kendalltau, spearmanr

    x, y = np.asarray(first, np.float64), np.asarray(second, np.float64)
    both = np.isfinite(x) & np.isfinite(y)
    x, y = x[both], y[both]
    note = "uninformative" if len(x) < FEWEST_SYSTEMS else None
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return RankAgreement(None, None, len(x), note)
    return RankAgreement(
        float(kendalltau(x, y).statistic), float(spearmanr(x, y).statistic), len(x), note
    )


def _under_both(metric: Metric, first: Array, second: Array) -> tuple[Jackknife, Jackknife]:
    return (
        jackknife(metric.function, first, metric.denominator),
        jackknife(metric.function, second, metric.denominator),
    )


def _decide(
    metric: Metric, change: Jackknife, margin: float, confidence: float
) -> list[Equivalence]:
    from scipy.special import stdtr

    if not margin > 0:
        raise ValueError(f"the margin is {margin}; it must be above 0")
    estimate = change.estimate()
    low, high = t_interval(estimate, confidence)
    error = np.sqrt(estimate.variance)
    bottom, top = metric.bounds
    span = None if bottom is None or top is None else top - bottom
    found = []
    for s in range(len(estimate.value)):
        value, df = float(estimate.value[s]), float(estimate.df[s])
        p_equivalent = p_different = None
        verdict: Verdict = "undecided"
        if error[s] > 1e-12 * margin:
            p_equivalent = float(stdtr(df, (abs(value) - margin) / error[s]))
            p_different = float(2 * stdtr(df, -abs(value) / error[s]))
        elif abs(value) <= 1e-12 * margin and span is not None:
            # No cluster differs. If a share margin / span of all clusters did, by as much as can
            # be, that would happen with this probability.
            p_equivalent = max(0.0, 1 - margin / span) ** int(estimate.clusters[s])
            p_different = 1.0
        if p_equivalent is not None and p_equivalent <= 1 - confidence:
            verdict = "equivalent"
        elif p_different is not None and p_different <= 1 - confidence:
            verdict = "different"
        found.append(
            Equivalence(
                metric.name,
                metric.group,
                _known(value),
                _known(low[s]),
                _known(high[s]),
                margin,
                p_equivalent,
                p_different,
                verdict,
                int(estimate.clusters[s]),
            )
        )
    return found


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
