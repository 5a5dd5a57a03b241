from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from omnijudge.statistics.equivalence import (
    difference_equivalence,
    equivalence,
    rank_agreement,
    shift,
)
from omnijudge.statistics.metric import Metric, Sum, ratio

SHARE = Metric("share", "all", (Sum("unit", "x"), Sum("unit")), ratio, ())


def verdicts(seed: int, shares: list[float], clusters: int = 150) -> list[np.ndarray]:
    """Sums (1, V, 2) under judges who say yes at different rates to the same units."""
    rng = np.random.default_rng(seed)
    units = rng.integers(2, 10, clusters)
    draws = [rng.random(u) for u in units]
    found = []
    for share in shares:
        noisy = [d + rng.normal(0, 0.02, len(d)) for d in draws]
        found.append(np.array([[(d < share).sum(), len(d)] for d in noisy], float)[None])
    return found


def test_two_one_sided_tests_by_hand() -> None:
    x = np.random.default_rng(0).normal(0.02, 0.1, 40)
    first = np.stack([np.zeros(40), np.ones(40)], axis=1)[None]
    second = np.stack([x, np.ones(40)], axis=1)[None]
    (found,) = equivalence(SHARE, first, second, 0.05)
    assert found.difference == pytest.approx(x.mean())
    apart = x - x.mean()
    df = min(max(80 / (40 * (apart**4).sum() / (apart**2).sum() ** 2 - 1), 1), 39)
    error = x.std(ddof=1) / np.sqrt(40)
    upper = stats.t.cdf((x.mean() - 0.05) / error, df)
    lower = stats.t.sf((x.mean() + 0.05) / error, df)
    assert found.p_equivalent == pytest.approx(max(upper, lower), rel=1e-6)
    assert found.p_different == pytest.approx(2 * stats.t.sf(abs(x.mean()) / error, df), rel=1e-6)


def test_verdicts() -> None:
    one, same, other = verdicts(1, [0.5, 0.5, 0.7])
    assert equivalence(SHARE, one, same, 0.03)[0].verdict == "equivalent"
    assert equivalence(SHARE, one, other, 0.03)[0].verdict == "different"
    assert equivalence(SHARE, one[:, :20], same[:, :20], 0.001)[0].verdict == "undecided"
    # Judges who never differ: four clusters show nothing, 150 show that a 50th would be seen.
    assert equivalence(SHARE, one[:, :4], one[:, :4], 0.02)[0].verdict == "undecided"
    (never,) = equivalence(SHARE, one, one, 0.02)
    assert never.verdict == "equivalent"
    assert never.p_equivalent == pytest.approx(0.98**150)
    nothing = np.zeros_like(one)
    (found,) = equivalence(SHARE, nothing, one, 0.1)
    assert (found.verdict, found.difference, found.p_equivalent) == ("undecided", None, None)
    with pytest.raises(ValueError, match="above 0"):
        equivalence(SHARE, one, same, 0.0)


def test_a_shift_common_to_all_systems_leaves_differences_alone() -> None:
    weak, weak_lenient, strong, strong_lenient = verdicts(2, [0.4, 0.5, 0.6, 0.7])
    first, second = np.concatenate([weak, strong]), np.concatenate([weak_lenient, strong_lenient])
    assert {e.verdict for e in equivalence(SHARE, first, second, 0.05)} == {"different"}
    (found,) = difference_equivalence(SHARE, first, second, 0, 0.05)
    assert found.verdict == "equivalent"


@pytest.mark.parametrize("seed", range(5))
def test_prompt_and_model_are_told_apart(seed: int) -> None:
    # The published prompts say yes to 50 %; with our prompts the gold model says yes to 62 %.
    published, ours, judge = verdicts(seed, [0.5, 0.62, 0.62])
    (by_prompt,) = shift(SHARE, published, ours, judge, 0.05)
    assert by_prompt.prompt.verdict == "different"
    assert by_prompt.model.verdict == "equivalent"
    assert by_prompt.together.verdict == "different"
    published, ours, judge = verdicts(seed + 100, [0.5, 0.5, 0.62])
    (by_model,) = shift(SHARE, published, ours, judge, 0.05)
    assert by_model.prompt.verdict == "equivalent"
    assert by_model.model.verdict == "different"
    # Two shifts that cancel are seen only apart.
    published, ours, judge = verdicts(seed + 200, [0.5, 0.62, 0.5])
    (both,) = shift(SHARE, published, ours, judge, 0.05)
    assert both.together.verdict == "equivalent"
    assert both.prompt.verdict == both.model.verdict == "different"
    assert both.prompt.difference == pytest.approx(0.12, abs=0.05)


def test_few_systems_say_little_about_ranks() -> None:
    found = rank_agreement([1, 2, 3, float("nan")], [1, 3, 2, 9])
    assert (found.n_systems, found.note) == (3, "uninformative")
    assert found.kendall == pytest.approx(1 / 3)
    many = rank_agreement(range(9), range(9))
    assert (many.kendall, many.spearman, many.note) == (1.0, 1.0, None)
    assert rank_agreement([1, 1], [1, 2]).kendall is None
