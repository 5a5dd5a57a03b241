from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import statistics as naive

from omnijudge.statistics import sign_flip
from omnijudge.statistics.comparison import Differences, compare_all, compare_to_baseline
from omnijudge.statistics.intervals import IntervalSettings
from omnijudge.statistics.jackknife import jackknife, paired
from omnijudge.statistics.metric import Metric, Sum, ratio
from omnijudge.statistics.multiple import adjust
from omnijudge.statistics.pairs import all_pairs
from omnijudge.statistics.ranking import best_share, rank_systems
from omnijudge.statistics.sign_flip import flips, plan_flips

NEEDED = "needs the dev extra: pip install 'omnijudge[dev]'"
SUMS = [Sum("target", "success"), Sum("target")]
ACCURACY = Metric("accuracy", "all", tuple(SUMS), ratio, ())
FEW = IntervalSettings(replicates=2000)


def systems(levels: list[float], v: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    targets = rng.integers(1, 9, v)
    luck = rng.random(v) - 0.5
    return [
        np.stack(
            [rng.binomial(targets, np.clip(level + 0.4 * luck, 0, 1)), targets], axis=1
        ).astype(float)
        for level in levels
    ]


def compared(data: list[np.ndarray], **options: object) -> Differences:
    chosen = IntervalSettings(**{"replicates": 2000, **options})  # type: ignore[arg-type]
    return compare_to_baseline([ACCURACY], data, 0, SUMS, chosen)[0]


@pytest.mark.parametrize("seed", range(4))
def test_p_value_is_that_of_every_flip(seed: int) -> None:
    data = systems([0.4, 0.6], 9, seed)
    found = compare_to_baseline([ACCURACY], data, 0, SUMS, IntervalSettings(replicates=20_000))[0]
    flipped = np.abs(naive.every_flip(ratio, data[0], data[1]))
    exact = (flipped >= abs(found.difference[0]) - 1e-12).mean()
    error = np.sqrt(exact * (1 - exact) / 20_000)
    assert found.p_value[0] == pytest.approx(exact, abs=5 * error + 1e-4)


def test_p_value_of_a_mean_is_that_of_scipy() -> None:
    from scipy.stats import permutation_test

    rng = np.random.default_rng(0)
    a, b = rng.random(12), rng.random(12) + 0.25
    expected = permutation_test(
        (a, b), lambda x, y: x.mean() - y.mean(), permutation_type="samples", vectorized=False
    ).pvalue
    data = [np.stack([x, np.ones(12)], axis=1) for x in (a, b)]
    found = compare_to_baseline([ACCURACY], data, 0, SUMS, IntervalSettings(replicates=20_000))[0]
    assert found.p_value[0] == pytest.approx(expected, abs=5 * np.sqrt(expected / 20_000))


def test_flips_are_fair_and_reproducible() -> None:
    found = flips(70, 0, 4000, 3)
    assert set(np.unique(found)) == {0, 1}
    assert abs(found.mean() - 0.5) < 0.005
    assert np.abs(np.corrcoef(found.T.astype(float))[np.triu_indices(70, 1)]).max() < 0.08
    assert np.array_equal(flips(70, 100, 130, 3), found[100:130])
    assert not np.array_equal(flips(70, 0, 10, 4), found[:10])


def test_equal_systems() -> None:
    data = systems([0.5], 30)
    found = compared([data[0], data[0].copy()])
    assert found.difference[0] == found.ci_low[0] == found.ci_high[0] == 0
    assert found.p_value[0] == found.p_adjusted[0] == 1


def test_a_system_without_data_is_no_member_of_the_family() -> None:
    data = [*systems([0.3, 0.7], 40), np.zeros((40, 2))]
    found = compared(data)
    assert np.isnan(found.p_value[1])
    assert np.isnan(found.p_adjusted[1])
    assert np.isnan(found.ci_low[1])
    assert found.p_adjusted[0] == found.p_value[0]


def test_rows_of_a_comparison() -> None:
    data = systems([0.4, 0.5, 0.8], 50)
    found = compare_to_baseline([ACCURACY], data, 1, SUMS, FEW)[0]
    assert found.first.tolist() == [1, 1]
    assert found.second.tolist() == [0, 2]
    values = [float(ratio(d.sum(axis=0))) for d in data]
    assert found.difference.tolist() == pytest.approx(
        [values[0] - values[1], values[2] - values[1]]
    )
    for low, high in ((found.ci_low, found.ci_high), (found.careful_low, found.careful_high)):
        assert ((low < found.difference) & (found.difference < high)).all()
    assert (found.smallest_p == 1 / 2001).all()
    assert not found.by_tail.any()
    jacks = [jackknife(ratio, d[None], (1,)) for d in data]
    spread = np.sqrt(paired(jacks[1], jacks[2]).estimate().variance[0])
    assert 2.7 * spread < found.detectable[1] < 3.2 * spread


def test_baseline_on_the_samples_scored_for_both() -> None:
    data = systems([0.4, 0.5, 0.6], 40)
    data[2][:10] = 0
    baselines = [data[0], data[0].copy()]
    baselines[1][:10] = 0
    found = compare_to_baseline([ACCURACY], data[1:], baselines, SUMS, FEW)[0]
    assert found.first.tolist() == [-1, -1]
    expected = ratio(data[2].sum(axis=0)) - ratio(data[0][10:].sum(axis=0))
    assert found.difference[1] == pytest.approx(float(expected))
    whole = compared(data[:2])
    assert found.ci_low[0] == whole.ci_low[0]
    assert found.p_value[0] == whole.p_value[0]


@pytest.mark.parametrize("interval", ["percentile", "bca", "jackknife"])
def test_all_pairs_are_baseline_comparisons(interval: str) -> None:
    data = systems([0.4, 0.5, 0.5, 0.7], 30)
    chosen = IntervalSettings(replicates=3000, interval=interval)  # type: ignore[arg-type]
    (found,) = compare_all([ACCURACY], data, SUMS, chosen)
    first, second = all_pairs(4)
    assert np.array_equal(found.first, first)
    assert np.array_equal(found.second, second)
    (base,) = compare_to_baseline([ACCURACY], data, 0, SUMS, chosen)
    for name in ("difference", "ci_low", "ci_high", "careful_low", "p_value", "n_clusters"):
        assert np.allclose(getattr(found, name)[:3], getattr(base, name), rtol=1e-12), name
    assert np.allclose(found.p_adjusted, naive.holm(found.p_value.tolist()))


@settings(max_examples=80, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_adjustments_are_those_of_another_library(p_values: list[float]) -> None:
    truescore = pytest.importorskip("truescore", reason=NEEDED)
    values = np.array(p_values)
    assert np.allclose(adjust(values), truescore.holm(p_values), atol=1e-12)
    assert np.allclose(adjust(values, "bh"), truescore.benjamini_hochberg(p_values), atol=1e-12)
    assert np.allclose(adjust(values), naive.holm(p_values))


def test_undefined_p_values_stay_out() -> None:
    assert np.array_equal(
        adjust(np.array([0.01, np.nan, 0.03])), [0.02, np.nan, 0.03], equal_nan=True
    )
    assert np.isnan(adjust(np.array([np.nan]))).all()


def test_flips_grow_with_the_family() -> None:
    assert plan_flips(1, 10_000, 0.05) == sign_flip.FlipPlan(10_000, True)
    plan = plan_flips(199, 10_000, 0.05)
    assert plan.enough
    assert 199 / (plan.flips + 1) < 0.05 / 5
    large = plan_flips(19_900, 10_000, 0.05)
    assert not large.enough
    assert large.flips <= 10_000


def test_floor_of_the_flips_gives_way_to_the_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_flip, "AFFORDABLE", 0)
    monkeypatch.setattr("omnijudge.statistics.comparison.plan_flips", few_flips)
    data = systems([0.2, 0.2, 0.8], 60)
    (found,) = compare_all([ACCURACY], data, SUMS, FEW)
    assert found.by_tail.tolist() == [False, True, True]
    assert (found.p_value[1:] < found.smallest_p[1:]).all()
    assert (found.p_value[1:] > 0).all()
    assert found.p_value[0] >= found.smallest_p[0]


def few_flips(family: int, flips: int, error: float) -> sign_flip.FlipPlan:
    return sign_flip.FlipPlan(99, False)


def test_ranks_count_clear_wins_only() -> None:
    data = systems([0.5, 0.5, 0.9, 0.1, 0.5], 60, seed=3)
    (found,) = rank_systems([ACCURACY], data, SUMS, FEW)
    order = np.argsort(-found.value)
    assert found.rank[order].tolist() == [1, 2, 3, 4, 5]
    assert (found.rank_low <= found.rank).all()
    assert (found.rank <= found.rank_high).all()
    assert (found.rank_low[2], found.rank_high[2]) == (1, 1)
    assert (found.rank_low[3], found.rank_high[3]) == (5, 5)
    assert (found.rank_low[0], found.rank_high[0]) == (2, 4)
    assert found.winner == 2
    assert found.winner_low is not None
    assert found.winner_high is not None
    assert found.winner_low < found.value[2] < found.winner_high
    assert found.p_best.sum() == pytest.approx(1)
    assert found.p_best[2] > 0.99


def test_ranks_of_a_cost_and_of_nothing() -> None:
    cost = Metric("cost", "all", tuple(SUMS), ratio, (), higher_is_better=False)
    neutral = Metric("rate", "all", tuple(SUMS), ratio, (), higher_is_better=None)
    data = [*systems([0.2, 0.8], 40), np.zeros((40, 2))]
    (found,) = rank_systems([cost, neutral], data, SUMS, FEW)
    assert found.rank.tolist() == [1, 2, 0]
    assert found.rank_high.tolist() == [1, 2, 0]
    assert np.isnan(found.p_best[2])
    assert rank_systems([cost], [], SUMS) == []


def test_ties_share_the_chance_of_being_best() -> None:
    scores = np.array([[1.0, 2.0, np.nan, 0.5], [1.0, 1.0, 0.1, np.nan], [0.0, 0.5, 0.3, np.nan]])
    assert best_share(scores).tolist() == pytest.approx([2.5 / 4, 0.5 / 4, 1 / 4])
