from __future__ import annotations

import numpy as np
import pytest
from naive import statistics as naive
from scipy import stats
from scipy.special import expit, logit

from omnijudge.statistics.gold_sample import (
    Budget,
    parse_budget,
    plan,
    random_order,
    sample_size,
    size_strata,
    stratified_sample,
)
from omnijudge.statistics.jackknife import careful_interval, jackknife
from omnijudge.statistics.metric import Metric, Sum, ratio, total
from omnijudge.statistics.rectify import Target, rectify, rectify_differences

NEEDED = "needs the dev extra: pip install 'omnijudge[dev]'"
SUMS = (Sum("unit", "x"), Sum("unit"))
SHARE = Metric("share", "all", SUMS, ratio, ())
MEAN = Metric("mean", "all", SUMS, ratio, (), bounds=(None, None))
COUNT = Metric("count", "all", SUMS[:1], total, (), bounds=(0.0, None), denominator=(0,))


def judges(
    seed: int, clusters: int = 120, error: float = 0.1, systems: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Sums (S, N, 2) under a gold judge, and under one that errs now and then."""
    rng = np.random.default_rng(seed)
    units = rng.integers(1, 12, clusters)
    gold, cheap = [], []
    for _ in range(systems):
        hits = rng.binomial(units, rng.beta(2, 2, clusters))
        wrong = rng.binomial(hits, error), rng.binomial(units - hits, 2 * error)
        gold.append(np.stack([hits, units], axis=1))
        cheap.append(np.stack([hits - wrong[0] + wrong[1], units], axis=1))
    return np.array(gold, float), np.array(cheap, float)


@pytest.mark.parametrize("target", ["finite", "superpopulation"])
@pytest.mark.parametrize("n", [15, 40, 100])
def test_a_ratio_by_the_definition(n: int, target: Target) -> None:
    gold, cheap = judges(n)
    sample = np.random.default_rng(n).permutation(120)[:n]
    (found,) = rectify(SHARE, gold[:, sample], cheap, sample, target=target)
    wanted = naive.rectified_ratio(gold[0][sample].tolist(), cheap[0].tolist(), sample.tolist())
    assert found.method == "rectified"
    assert found.target == target
    assert found.value == pytest.approx(wanted["value"], rel=1e-9)
    assert found.weight == pytest.approx(wanted["weight"], rel=1e-9)
    assert found.df == pytest.approx(wanted["df"], rel=1e-8)
    value = wanted["value"]
    half = stats.t.ppf(0.975, wanted["df"]) * np.sqrt(wanted[target]) / (value * (1 - value))
    expected = expit([logit(value) - half, logit(value) + half])
    assert (found.low, found.high) == pytest.approx(tuple(expected), rel=1e-8)


@pytest.mark.parametrize("metric", [SHARE, MEAN])
def test_gold_on_every_cluster_is_the_gold_metric(metric: Metric) -> None:
    gold, cheap = judges(1)
    sample = np.random.default_rng(0).permutation(120)
    (found,) = rectify(metric, gold[:, sample], cheap, sample)
    exact = float(ratio(gold[0].sum(axis=0)))
    assert found.value == found.low == found.high == exact
    assert found.reason == "every cluster has gold"
    (beyond,) = rectify(metric, gold[:, sample], cheap, sample, target="superpopulation")
    assert beyond.value == pytest.approx(exact, rel=1e-12)
    assert beyond.low is not None
    assert beyond.low < exact


@pytest.mark.parametrize("target", ["finite", "superpopulation"])
def test_gold_only_is_the_jackknife(target: Target) -> None:
    gold, cheap = judges(2)
    sample = np.arange(0, 120, 3)
    opposite = cheap.copy()
    opposite[..., 0] = cheap[..., 1] - cheap[..., 0]
    (found,) = rectify(SHARE, gold[:, sample], opposite, sample, target=target)
    assert found.method == "gold only"
    assert found.reason == "the cheap judge does not follow the gold judge"
    assert found.weight == 0
    estimate = jackknife(ratio, gold[:, sample], (1,)).estimate()
    assert found.value == pytest.approx(float(estimate.value[0]), rel=1e-12)
    if target == "superpopulation":
        low, high = careful_interval(estimate, (0, 1), 0.95)
        assert (found.low, found.high) == pytest.approx((low[0], high[0]), rel=1e-6)
    else:
        half = stats.t.ppf(0.975, found.df) * np.sqrt(estimate.variance[0] * 2 / 3)
        value = float(estimate.value[0])
        wide = logit(value) + half / (value * (1 - value))
        assert found.high == pytest.approx(expit(wide), rel=1e-6)


def test_one_stratum_is_a_simple_sample() -> None:
    gold, cheap = judges(9)
    sample = np.random.default_rng(3).permutation(120)[:30]
    for target in ("finite", "superpopulation"):
        plain = rectify(SHARE, gold[:, sample], cheap, sample, target=target)  # type: ignore[arg-type]
        one = rectify(
            SHARE,
            gold[:, sample],
            cheap,
            sample,
            strata=np.full(120, 7),
            target=target,  # type: ignore[arg-type]
        )
        assert plain == one


def test_gold_only_in_strata_is_the_stratified_mean() -> None:
    rng = np.random.default_rng(4)
    strata = np.repeat([0, 1, 2], [60, 40, 20])
    y = strata + rng.normal(0, 0.5, 120)
    sample = np.sort(
        np.concatenate([rng.permutation(60)[:6], 60 + rng.permutation(40)[:8], 100 + np.arange(9)])
    )
    one = np.ones(120)
    (found,) = rectify(
        MEAN,
        np.stack([y, one], axis=1)[None, sample],
        np.stack([-y, one], axis=1)[None],
        sample,
        strata=strata,
    )
    assert found.method == "gold only"
    value, variance = 0.0, 0.0
    for h in range(3):
        inside = y[sample[strata[sample] == h]]
        there = int((strata == h).sum())
        value += there / 120 * inside.mean()
        spread = (1 - len(inside) / there) * inside.var(ddof=1) / len(inside)
        variance += (there / 120) ** 2 * spread
    assert found.value == pytest.approx(value, rel=1e-9)
    assert found.high is not None
    half = stats.t.ppf(0.975, found.df) * np.sqrt(variance)
    assert found.high - value == pytest.approx(half, rel=1e-9)


def test_a_stratum_with_one_sampled_cluster_is_refused() -> None:
    gold, cheap = judges(10)
    strata = np.repeat([0, 1], 60)
    with pytest.raises(ValueError, match="two sampled clusters"):
        rectify(SHARE, gold[:, [0, 1, 60]], cheap, np.array([0, 1, 60]), strata=strata)
    with pytest.raises(ValueError, match="strata for"):
        rectify(SHARE, gold[:, :3], cheap, np.arange(3), strata=strata[:5])


def test_stratified_samples() -> None:
    sizes = np.random.default_rng(0).integers(1, 26, 200)
    strata = size_strata(sizes, 1)
    assert np.bincount(strata).tolist() == [67, 67, 66]
    assert sizes[strata == 0].max() <= sizes[strata == 2].min()
    sample, same = stratified_sample(sizes, 40, 1)
    assert np.array_equal(strata, same)
    assert len(np.unique(sample)) == 40
    taken = np.bincount(strata[sample])
    assert taken[0] < taken[1] < taken[2]
    shares = np.bincount(strata, weights=sizes) / sizes.sum()
    assert np.abs(taken / 40 - shares).max() < 0.05
    larger, _ = stratified_sample(sizes, 60, 1)
    assert set(sample) <= set(larger)
    everything, _ = stratified_sample(sizes, 500, 1)
    assert everything.tolist() == list(range(200))
    with pytest.raises(ValueError, match="too few"):
        stratified_sample(sizes, 11, 1)


def test_few_disagreements_are_no_basis() -> None:
    gold, cheap = judges(3)
    cheap = gold.copy()
    cheap[0, :4, 0] = 0
    gold[0, :4, 0] = 1
    sample = np.arange(40)
    (found,) = rectify(SHARE, gold[:, sample], cheap, sample)
    assert found.n_changed == 4
    assert found.method == "gold only"
    assert "differ in only 4" in str(found.reason)


def test_never_much_wider_than_gold_only() -> None:
    gold, cheap = judges(4, error=0.45, systems=200)
    sample = np.random.default_rng(0).permutation(120)[:25]
    for found in rectify(MEAN, gold[:, sample], cheap, sample):
        assert found.high is not None
        assert found.low is not None
        assert found.gold_high is not None
        assert found.gold_low is not None
        assert found.high - found.low <= 1.05 * (found.gold_high - found.gold_low) + 1e-12


def test_differences_use_both_systems_of_a_cluster() -> None:
    gold, cheap = judges(5, systems=3)
    sample = np.random.default_rng(1).permutation(120)[:50]
    found = rectify_differences(SHARE, gold[:, sample], cheap, sample, baseline=1)
    assert len(found) == 2
    values = ratio(gold[:, sample].sum(axis=1))
    for row, system in zip(found, (0, 2), strict=True):
        assert row.gold == pytest.approx(values[system] - values[1])
        assert row.low is not None
        assert row.high is not None
        assert row.value is not None
        assert row.low < row.value < row.high
        assert row.value - row.low == pytest.approx(row.high - row.value)
    same = rectify_differences(SHARE, gold[[0, 0]][:, sample], cheap[[0, 0]], sample, baseline=0)
    assert same[0].value == pytest.approx(0, abs=1e-12)


def test_a_count_is_scaled_up() -> None:
    gold, cheap = judges(6)
    sample = np.random.default_rng(2).permutation(120)[:60]
    (found,) = rectify(COUNT, gold[:, sample, :1], cheap[..., :1], sample)
    assert found.gold == pytest.approx(2 * gold[0, sample, 0].sum())
    assert found.cheap == cheap[0, :, 0].sum()
    assert found.low is not None
    assert found.high is not None
    assert found.low < gold[0, :, 0].sum() < found.high


def test_undefined_and_tiny_samples() -> None:
    gold, cheap = judges(7)
    (found,) = rectify(SHARE, np.zeros((1, 5, 2)), cheap, np.arange(5))
    assert found.value is found.low is found.high is None
    (found,) = rectify(SHARE, gold[:, :1], cheap, np.arange(1))
    assert found.value is not None
    assert found.low is None
    (found,) = rectify(SHARE, gold[:, :8], cheap, np.arange(8))
    assert "only 8 gold clusters" in str(found.warning)
    for sample, why in ((([0, 1, 1]), "twice"), ([0, 1, 120], "0..119"), ([0, 1], "3 rows")):
        with pytest.raises(ValueError, match=why):
            rectify(SHARE, gold[:, :3], cheap, np.array(sample))


@pytest.mark.parametrize("hits", [1, 0, 2])
def test_a_sample_that_does_not_differ_gives_no_point_for_an_interval(hits: int) -> None:
    _, cheap = judges(7)
    same = np.tile([hits, 2.0], (1, 20, 1))
    (found,) = rectify(SHARE, same, cheap, np.arange(20))
    assert found.value == hits / 2
    if hits == 1:
        assert found.low is found.high is found.gold_low is found.gold_high is None
    else:  # at a bound the binomial says what 20 clusters still allow
        assert found.low is not None
        assert found.high is not None
        assert found.high - found.low == pytest.approx(1 - 0.025 ** (1 / 20))


def test_budgets() -> None:
    assert parse_budget("40videos") == Budget(40, "videos")
    assert parse_budget(" 12.5 USD ") == Budget(12.5, "usd")
    for text in ("40", "0videos", "usd", "-3usd"):
        with pytest.raises(ValueError, match="40videos or 50usd"):
            parse_budget(text)
    order = random_order(100, 0)
    assert sorted(order) == list(range(100))
    assert not np.array_equal(order, random_order(100, 1))
    assert sample_size(Budget(40, "videos"), order, None) == 40
    assert sample_size(Budget(400, "videos"), order, None) == 100
    assert sample_size(Budget(10, "usd"), order, np.full(100, 0.3)) == 33
    with pytest.raises(ValueError, match="price"):
        sample_size(Budget(10, "usd"), order, None)


def test_plan_foresees_the_width_of_the_gold_sample() -> None:
    gold, cheap = judges(8, clusters=300)
    rows = plan(MEAN, gold[0], [20, 60, 300], np.full(300, 7.0), price=0.01)
    assert [r.n_questions for r in rows] == [140, 420, 2100]
    assert rows[1].cost == pytest.approx(4.2)
    assert rows[2].gold_only == 0
    seen = []
    for seed in range(40):
        sample = random_order(300, seed)[:60]
        (found,) = rectify(MEAN, gold[:, sample], cheap, sample)
        assert found.gold_high is not None
        assert found.gold_low is not None
        seen.append((found.gold_high - found.gold_low) / 2)
    assert rows[1].gold_only == pytest.approx(np.mean(seen), rel=0.15)
    widths = [w for w in rows[1].rectified if w is not None]
    assert widths == sorted(widths)
    assert rows[1].gold_only is not None
    assert max(widths) < rows[1].gold_only
