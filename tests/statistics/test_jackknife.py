from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from naive import statistics as naive
from scipy import stats
from scipy.special import expit, logit

from omnijudge.statistics.jackknife import (
    careful_interval,
    gradient,
    jackknife,
    paired,
    small_sample_warning,
    smallest_part,
    t_interval,
)
from omnijudge.statistics.metric import Array, ratio, total

Rows = list[tuple[int, int, int]]
CLUSTERS = st.lists(st.tuples(*[st.integers(0, 6)] * 3), min_size=3, max_size=12)


def f1(sums: Array) -> Array:
    twice = 2 * sums[..., 0]
    whole = twice + sums[..., 1] + sums[..., 2]
    return np.divide(twice, whole, out=np.full_like(whole, np.nan), where=whole > 0)


def f1_influence(sums: Array) -> Array:
    """In closed form: (2 tp_c - theta * D_c) / D."""
    weight = 2 * sums[:, 0] + sums[:, 1] + sums[:, 2]
    value = 2 * sums[:, 0].sum() / weight.sum()
    return np.asarray((2 * sums[:, 0] - value * weight) / weight.sum())


@settings(max_examples=80, deadline=None)
@example([(0, 0, 0), (1, 3, 6), (1, 3, 6)])  # no variance: rounding must not move an end
@given(CLUSTERS)
def test_f1_by_the_definition(rows: Rows) -> None:
    sums = np.array(rows, float)
    present = sums.sum(axis=1) > 0
    jack = jackknife(f1, sums[None], (0, 1, 2))
    found = jack.estimate()
    assert found.clusters[0] == present.sum()
    if not present.any():
        assert np.isnan(found.value[0])
        return
    z = f1_influence(sums)
    assert np.allclose(jack.influence[0], z, atol=1e-10)
    assert abs(jack.influence[0].sum()) < 1e-10
    m = int(present.sum())
    if m < 2:
        assert np.isnan(found.variance[0])
        return
    variance = naive.jackknife_variance(f1, sums, present)
    assert found.variance[0] == pytest.approx(variance, rel=1e-9, abs=1e-15)
    if np.abs(z).max() > 1e-9:
        df = naive.kurtosis_df(z[present].tolist(), 1.0, m - 1.0)
        assert found.df[0] == pytest.approx(df, rel=1e-6)
    value = found.value[0]
    low, high = careful_interval(found, (0.0, 1.0), 0.95)
    assert 0 <= low[0] <= value <= high[0] <= 1
    if value == 0:
        assert high[0] == pytest.approx(1 - 0.025 ** (1 / m))
    elif value == 1:
        assert low[0] == pytest.approx(0.025 ** (1 / m))
    else:
        half = stats.t.ppf(0.975, found.df[0]) * np.sqrt(variance) / (value * (1 - value))
        expected = expit([logit(value) - half, logit(value) + half])
        assert (low[0], high[0]) == pytest.approx(tuple(expected), rel=1e-8, abs=1e-12)


def test_mean_of_equal_clusters_has_the_variance_of_a_mean() -> None:
    x = np.random.default_rng(0).random(30)
    found = jackknife(ratio, np.stack([x, np.ones(30)], axis=1)[None], (1,)).estimate()
    assert found.variance[0] == pytest.approx(x.var(ddof=1) / 30, rel=1e-12)
    expected = naive.kurtosis_df((x - x.mean()).tolist(), 1, 29)
    assert found.df[0] == pytest.approx(expected, rel=1e-6)


def test_a_count_has_the_variance_of_a_total() -> None:
    x = np.random.default_rng(1).poisson(2.0, 40).astype(float)
    found = jackknife(total, x[None, :, None], (0,)).estimate()
    assert found.variance[0] == pytest.approx(40 * x.var(ddof=1), rel=1e-12)
    assert found.clusters[0] == (x > 0).sum()
    low, high = careful_interval(found, (0.0, None), 0.95)
    assert 0 <= low[0] < x.sum() < high[0]


def test_scales_other_than_one() -> None:
    rng = np.random.default_rng(2)
    n = rng.integers(1, 5, 25)
    sums = np.stack([rng.binomial(n, 0.3), n], axis=1).astype(float)[None]
    share = careful_interval(jackknife(ratio, sums, (1,)).estimate(), (0, 1), 0.9)
    percent = jackknife(lambda s: 100 * ratio(s), sums, (1,)).estimate()
    for part, whole in zip(share, careful_interval(percent, (0, 100), 0.9), strict=True):
        assert 100 * part[0] == pytest.approx(whole[0], rel=1e-9)


def test_unbounded_is_plain_t_and_nothing_varies_is_unknown() -> None:
    x = np.array([1.0, 3.0, 2.0, 6.0])
    found = jackknife(ratio, np.stack([x, np.ones(4)], axis=1)[None], (1,)).estimate()
    half = stats.t.ppf(0.975, found.df[0]) * np.sqrt(x.var(ddof=1) / 4)
    low, high = careful_interval(found, (None, None), 0.95)
    assert (low[0], high[0]) == pytest.approx((3 - half, 3 + half))
    same = jackknife(ratio, np.ones((1, 4, 2)), (1,)).estimate()
    assert np.isnan(careful_interval(same, (None, None), 0.95)[0][0])
    one = jackknife(ratio, np.array([[[1.0, 2.0], [0.0, 0.0]]]), (1,)).estimate()
    assert one.clusters[0] == 1
    assert np.isnan(careful_interval(one, (0, 1), 0.95)[0][0])


def test_a_value_outside_its_bounds_gets_the_plain_interval() -> None:
    sums = np.array([[3.0, 1], [1, 1], [2, 1], [4, 2]])[None]
    found = jackknife(ratio, sums, (1,)).estimate()
    assert found.value[0] == 2
    assert careful_interval(found, (0, 1), 0.95) == t_interval(found, 0.95)


def test_paired_difference_by_the_definition() -> None:
    rng = np.random.default_rng(3)
    n = rng.integers(0, 6, (2, 15))
    sums = np.stack([rng.binomial(n, 0.5), n], axis=-1).astype(float)

    def difference(s: Array) -> Array:
        return ratio(s[..., 2:]) - ratio(s[..., :2])

    both = np.concatenate([sums[0], sums[1]], axis=1)
    jacks = [jackknife(ratio, sums[i][None], (1,)) for i in range(2)]
    found = paired(*jacks).estimate()
    present = (n > 0).any(axis=0)
    assert found.clusters[0] == present.sum()
    variance = naive.jackknife_variance(difference, both, present)
    assert found.variance[0] == pytest.approx(variance, rel=1e-9)
    low, high = t_interval(found, 0.95)
    half = stats.t.ppf(0.975, found.df[0]) * np.sqrt(variance)
    assert high[0] - low[0] == pytest.approx(2 * half)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.01, 1e6), min_size=2, max_size=2))
def test_gradient_of_a_ratio(totals: list[float]) -> None:
    a, b = totals
    found = gradient(ratio, np.array([totals]), np.zeros((1, 2)))[0]
    assert found[0] == pytest.approx(1 / b, rel=1e-9)
    assert found[1] == pytest.approx(-a / b**2, rel=1e-9)


def test_parts_of_an_average_are_found() -> None:
    def average(s: Array) -> Array:
        return (ratio(s[..., :2]) + ratio(s[..., 2:])) / 2

    sums = np.array([[1.0, 2, 0, 0], [0, 1, 0, 0], [1, 1, 1, 3], [0, 2, 0, 0]])[None]
    found = smallest_part(average, sums, (1, 3))
    assert found is not None
    assert found.tolist() == [1]
    assert smallest_part(f1, sums[..., :3], (0, 1, 2)) is None
    assert smallest_part(ratio, sums, (1,)) is None


def test_warnings_say_what_is_thin() -> None:
    assert small_sample_warning(60, 14, None) is None
    assert small_sample_warning(59, 14, None) == "only 59 clusters; prefer the careful interval"
    assert "non-zero in only 13 clusters" in str(small_sample_warning(200, 13, 9))
    part = str(small_sample_warning(200, 100, 3))
    assert "3 clusters, too few for any interval" in part
    assert "undefined in 10% of the replicates" in str(small_sample_warning(99, 99, None, 0.1))
