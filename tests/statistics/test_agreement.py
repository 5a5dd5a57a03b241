"""Agreement figures against two libraries each, on random and on degenerate data."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnijudge.statistics import agreement
from omnijudge.statistics import agreement_measures as measures
from omnijudge.statistics.agreement import (
    Agreement,
    agree_on_categories,
    agree_on_scores,
    fisher_interval,
    score_bias,
)

NEEDED = "needs the dev extra: pip install 'omnijudge[dev]'"


def by_name(found: list[Agreement]) -> dict[str, Agreement]:
    return {a.measure: a for a in found}


def values(found: list[Agreement]) -> dict[str, float | None]:
    return {a.measure: a.value for a in found}


def raters(seed: int, n: int, levels: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, levels, n)
    first = np.where(rng.random(n) < 0.3, rng.integers(0, levels, n), truth)
    second = np.where(rng.random(n) < 0.3, rng.integers(0, levels, n), truth)
    return first, second, rng.integers(0, 9, n)


@pytest.mark.parametrize(("n", "levels"), [(5, 2), (40, 2), (300, 4), (60, 7)])
@pytest.mark.parametrize("seed", range(4))
def test_categories_like_other_libraries(seed: int, n: int, levels: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason=NEEDED)
    krippendorff = pytest.importorskip("krippendorff", reason=NEEDED)
    truescore = pytest.importorskip("truescore", reason=NEEDED)
    first, second, clusters = raters(seed, n, levels)
    found = values(agree_on_categories(first, second, clusters, replicates=10))
    assert found["kappa"] == pytest.approx(metrics.cohen_kappa_score(first, second), abs=1e-12)
    table = np.zeros((levels, levels))
    np.add.at(table, (first, second), 1)
    used = np.flatnonzero(table.sum(axis=0) + table.sum(axis=1))
    if levels == 2:
        kappa = truescore.cohen_kappa((first > 0).tolist(), (second > 0).tolist())
        assert found["kappa"] == pytest.approx(kappa, abs=1e-12)
    data = np.stack([first, second])
    assert found["alpha"] == pytest.approx(
        krippendorff.alpha(data, level_of_measurement="nominal"), abs=1e-12
    )
    assert found["alpha"] == pytest.approx(truescore.krippendorff_alpha(data.tolist()), abs=1e-12)
    if levels == 2:
        ac1 = truescore.gwet_ac1((first > 0).tolist(), (second > 0).tolist())
        assert found["ac1"] == pytest.approx(ac1, abs=1e-12)
    share = table.sum(axis=0) + table.sum(axis=1)
    share = share[used] / (2 * n)
    chance = (share * (1 - share)).sum() / (len(used) - 1)
    agreed = (first == second).mean()
    assert found["ac1"] == pytest.approx((agreed - chance) / (1 - chance), abs=1e-12)


@pytest.mark.parametrize("n", [6, 40, 90])
@pytest.mark.parametrize("kind", ["smooth", "coarse", "shifted"])
@pytest.mark.parametrize("seed", range(3))
def test_scores_like_other_libraries(seed: int, n: int, kind: str) -> None:
    stats = pytest.importorskip("scipy.stats")
    metrics = pytest.importorskip("sklearn.metrics", reason=NEEDED)
    krippendorff = pytest.importorskip("krippendorff", reason=NEEDED)
    pandas = pytest.importorskip("pandas", reason=NEEDED)
    rng = np.random.default_rng(seed)
    truth = rng.normal(0.5, 0.2, n)
    first = np.clip(truth + rng.normal(0, 0.1, n), 0, 1)
    second = np.clip(truth + rng.normal(0.05, 0.1, n), 0, 1)
    if kind == "coarse":
        first, second = np.round(first * 4) / 4, np.round(second * 4) / 4
    if kind == "shifted":
        first, second = first + 1e4, second + 1e4
    bounds = (0.0, 1.0) if kind != "shifted" else (1e4, 1e4 + 1)
    clusters = rng.integers(0, 5, n)
    found = values(agree_on_scores(first, second, clusters, bounds=bounds, replicates=10))
    frame = pandas.DataFrame({"x": first, "y": second})
    close = 1e-9 if kind != "shifted" else 1e-6
    for name in ("pearson", "spearman", "kendall"):
        assert found[name] == pytest.approx(frame["x"].corr(frame["y"], method=name), abs=close), (
            name
        )
    assert found["pearson"] == pytest.approx(stats.pearsonr(first, second)[0], abs=close)
    assert found["spearman"] == pytest.approx(stats.spearmanr(first, second)[0], abs=close)
    assert found["kendall"] == pytest.approx(stats.kendalltau(first, second)[0], abs=close)
    alpha = krippendorff.alpha(
        np.stack([first, second]) - first.mean(), level_of_measurement="interval"
    )
    assert found["alpha"] == pytest.approx(alpha, abs=close)
    gap = (first.mean() - second.mean()) ** 2
    lin = 2 * np.cov(first, second, ddof=0)[0, 1] / (first.var() + second.var() + gap)
    assert found["lin"] == pytest.approx(lin, abs=close)
    bins = [np.clip(((s - bounds[0]) * 5).astype(int), 0, 4) for s in (first, second)]
    kappa = metrics.cohen_kappa_score(*bins, weights="quadratic", labels=list(range(5)))
    assert found["quadratic_kappa"] == pytest.approx(kappa, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_icc_like_other_libraries(seed: int) -> None:
    pandas = pytest.importorskip("pandas", reason=NEEDED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pingouin = pytest.importorskip("pingouin", reason=NEEDED)
        rng = np.random.default_rng(seed)
        n = 30
        first = rng.random(n)
        second = first + rng.normal(0.1, 0.2, n)
        long = pandas.DataFrame(
            {
                "item": np.tile(np.arange(n), 2),
                "judge": np.repeat(["a", "b"], n),
                "score": np.concatenate([first, second]),
            }
        )
        table = pingouin.intraclass_corr(long, targets="item", raters="judge", ratings="score")
    expected = table[table["Type"].isin(["ICC2", "ICC(A,1)"])]["ICC"].iloc[0]
    found = values(agree_on_scores(first, second, np.arange(n), replicates=10))
    assert found["icc"] == pytest.approx(expected, abs=1e-9)


def test_icc_by_analysis_of_variance() -> None:
    rng = np.random.default_rng(5)
    scores = rng.random((25, 2))
    scores[:, 1] += 0.5 * scores[:, 0]
    n, k = scores.shape
    grand, items, raters_ = scores.mean(), scores.mean(axis=1), scores.mean(axis=0)
    between = k * ((items - grand) ** 2).sum() / (n - 1)
    columns = n * ((raters_ - grand) ** 2).sum() / (k - 1)
    rest = ((scores - items[:, None] - raters_ + grand) ** 2).sum() / ((n - 1) * (k - 1))
    expected = (between - rest) / (between + (k - 1) * rest + k / n * (columns - rest))
    found = values(agree_on_scores(scores[:, 0], scores[:, 1], np.arange(n), replicates=10))
    assert found["icc"] == pytest.approx(expected, abs=1e-12)


def test_one_category_only() -> None:
    found = by_name(agree_on_categories(["yes"] * 6, ["yes"] * 6, [0, 0, 1, 1, 2, 2]))
    assert found["kappa"].value is None
    assert found["alpha"].value is None
    assert found["kappa"].reason == found["alpha"].reason == agreement.ONE_CATEGORY
    assert found["ac1"].value == 1.0
    assert found["ac1"].low is None
    assert found["ac1"].reason == agreement.PERFECT


def test_each_judge_its_own_category() -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason=NEEDED)
    first, second = [1] * 6, [0] * 6
    found = values(agree_on_categories(first, second, range(6)))
    assert found["kappa"] == pytest.approx(metrics.cohen_kappa_score(first, second))
    assert found["kappa"] == 0.0


def test_constant_judges() -> None:
    same = by_name(agree_on_scores([0.1] * 5, [0.1] * 5, range(5), bounds=(0, 1)))
    for name in ("icc", "lin", "alpha"):
        assert same[name].value is None
        assert same[name].reason == agreement.BOTH_CONSTANT
    for name in ("pearson", "spearman", "kendall"):
        assert same[name].value is None
        assert same[name].reason == agreement.ONE_CONSTANT
    assert same["quadratic_kappa"].reason == agreement.ONE_CATEGORY
    one = by_name(agree_on_scores([0.1] * 5, [0.1, 0.3, 0.2, 0.9, 0.7], range(5)))
    assert one["pearson"].reason == agreement.ONE_CONSTANT
    assert one["lin"].value == pytest.approx(0, abs=1e-12)
    assert one["icc"].value is not None


def test_no_items_and_one_cluster() -> None:
    for found in (agree_on_categories([], [], []), agree_on_scores([], [], [])):
        assert {a.reason for a in found} == {agreement.NO_ITEMS}
        assert {a.value for a in found} == {None}
    one = by_name(agree_on_categories([0, 1, 1, 0], [0, 1, 0, 0], ["v"] * 4))
    assert one["kappa"].value is not None
    assert one["kappa"].reason == agreement.FEW_CLUSTERS
    assert one["kappa"].low is None


def test_unpaired_verdicts_are_refused() -> None:
    with pytest.raises(ValueError, match="pair them up"):
        agree_on_categories([0, 1], [0], [0, 0])


def test_undefined_replicates_are_counted() -> None:
    # Only cluster 0 has the second category: a resample without it has one category.
    first, second = [1, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]
    found = by_name(agree_on_categories(first, second, [0, 1, 2, 3, 4, 5], replicates=4000))
    share = found["kappa"].undefined_share
    assert share is not None
    assert abs(share - (5 / 6) ** 6) < 0.03


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=3, max_size=25))
def test_rank_tables_are_scipy(rows: list[tuple[int, int, int]]) -> None:
    from scipy.stats import kendalltau, spearmanr

    x, y, _ = (np.array(column) for column in zip(*rows, strict=True))
    table = np.zeros((4, 4))
    np.add.at(table, (x, y), 1)
    for function, peer in ((measures.spearman, spearmanr), (measures.kendall, kendalltau)):
        found = float(function(table.reshape(-1), (4, 4)))
        if np.ptp(x) == 0 or np.ptp(y) == 0:
            assert np.isnan(found)
        else:
            assert found == pytest.approx(float(peer(x, y).statistic), abs=1e-12)


def test_rank_intervals_do_not_depend_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, clusters = raters(3, 80, 6)
    by_table = by_name(agree_on_scores(first, second, clusters, replicates=10))
    monkeypatch.setattr(agreement, "_LARGEST_TABLE", 0)
    anew = by_name(agree_on_scores(first, second, clusters, replicates=10))
    for name in ("spearman", "kendall"):
        assert by_table[name].low == pytest.approx(anew[name].low, abs=1e-12)
        assert by_table[name].high == pytest.approx(anew[name].high, abs=1e-12)
    monkeypatch.setattr(agreement, "_AFFORDABLE_RANKS", 0)
    without = by_name(agree_on_scores(first, second, clusters, replicates=10))
    assert without["kendall"].value == by_table["kendall"].value
    assert without["kendall"].reason == agreement.TOO_MANY


def test_fisher_interval_by_hand() -> None:
    from scipy.stats import t

    rng = np.random.default_rng(0)
    x = rng.random(20)
    y = x + rng.normal(0, 0.3, 20)
    value = np.corrcoef(x, y)[0, 1]
    left = np.array([np.corrcoef(np.delete(x, i), np.delete(y, i))[0, 1] for i in range(20)])
    error = np.sqrt(19 / 20 * sum((v - value) ** 2 for v in left))
    apart = left - left.mean()
    kurtosis = 20 * sum(apart**4) / sum(apart**2) ** 2
    df = min(max(40 / (kurtosis - 1), 1), 19)
    half = t.ppf(0.975, df) * error / (1 - value**2)
    expected = np.tanh([np.arctanh(value) - half, np.arctanh(value) + half])
    assert fisher_interval(value, left, 0.95) == pytest.approx(tuple(expected), rel=1e-9)
    found = by_name(agree_on_scores(x, y, np.arange(20), replicates=10))["pearson"]
    assert (found.low, found.high) == pytest.approx(tuple(expected), rel=1e-9)


def test_bias_and_limits_of_agreement() -> None:
    from scipy.stats import ttest_1samp

    first = np.array([0.2, 0.5, 0.9, 0.4, 0.6, 0.1])
    second = np.array([0.4, 0.5, 1.0, 0.3, 0.9, 0.3])
    found = score_bias(first, second, np.arange(6))
    difference = second - first
    assert found.mean == pytest.approx(difference.mean())
    assert found.lower_limit == pytest.approx(difference.mean() - 1.96 * difference.std(ddof=1))
    assert found.upper_limit == pytest.approx(difference.mean() + 1.96 * difference.std(ddof=1))
    # Wider than the t interval of independent items: the degrees of freedom follow the kurtosis.
    plain: Any = ttest_1samp(difference, 0).confidence_interval()
    assert found.low is not None
    assert found.high is not None
    assert found.low <= plain.low
    assert found.high >= plain.high
    assert score_bias([], [], []).mean is None
