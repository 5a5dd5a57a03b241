from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import statistics as naive

from omnijudge.statistics import pairs
from omnijudge.statistics.bootstrap import cluster_counts
from omnijudge_kernels.bootstrap import pairwise_intervals, pairwise_moments, pairwise_shares
from omnijudge_kernels.resampling import ratio_replicates, replicate_sums

Rows = list[list[float]]
FEW = st.sampled_from([0.0, 0.25, 0.5, 1.0, float("nan")])
ANY = st.floats(-1, 1, allow_subnormal=False)


@settings(max_examples=120, deadline=None)
@given(st.data(), st.integers(2, 5), st.integers(1, 60), st.sampled_from([FEW, ANY]))
def test_quantiles_of_all_pairs(
    data: st.DataObject, n_systems: int, n: int, kind: st.SearchStrategy[float]
) -> None:
    row = st.lists(kind, min_size=n, max_size=n)
    rows = np.array(data.draw(st.lists(row, min_size=n_systems, max_size=n_systems)))
    q_low = data.draw(st.sampled_from([0.0, 0.025, 0.3, 0.5]))
    q_high = data.draw(st.sampled_from([0.5, 0.7, 0.975, 1.0]))
    low, high, valid = pairwise_intervals(rows, q_low, q_high)
    for p, (i, j) in enumerate(zip(*pairs.all_pairs(n_systems), strict=True)):
        difference = rows[j] - rows[i]
        defined = difference[~np.isnan(difference)]
        assert valid[p] == len(defined)
        if not len(defined):
            assert np.isnan(low[p])
            assert np.isnan(high[p])
            continue
        assert low[p] == pytest.approx(naive.percentile(difference.tolist(), q_low), abs=1e-15)
        assert high[p] == pytest.approx(naive.percentile(difference.tolist(), q_high), abs=1e-15)


def correlated(n_systems: int, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return 0.5 + 0.1 * (rng.standard_normal(n) + rng.standard_normal((n_systems, n)))


@pytest.mark.parametrize("threads", [2, 8])
def test_pairs_do_not_depend_on_threads(threads: int) -> None:
    rows = correlated(17, 801, 1)
    rows[3, 5:90] = np.nan
    for one, more in zip(
        pairwise_intervals(rows, 0.025, 0.975),
        pairwise_intervals(rows, 0.025, 0.975, threads=threads),
        strict=True,
    ):
        assert one.tobytes() == more.tobytes()
    value = np.nanmean(rows, axis=1)
    share = pairwise_shares(rows, value)
    assert share.tobytes() == pairwise_shares(rows, value, threads=threads).tobytes()
    moments = pairwise_moments(rows[:3])
    for one, more in zip(moments, pairwise_moments(rows[:3], threads=threads), strict=True):
        assert one.tobytes() == more.tobytes()


def test_moments_are_those_of_three_matrix_products() -> None:
    rows = correlated(9, 203, 2) - 0.5
    first, second = pairs.all_pairs(9)
    inner, mixed = rows @ rows.T, (rows * rows) @ rows.T
    square = np.diag(inner)[first] + np.diag(inner)[second] - 2 * inner[first, second]
    cube = (
        np.diag(mixed)[second]
        - 3 * mixed[second, first]
        + 3 * mixed[first, second]
        - np.diag(mixed)[first]
    )
    squares, cubes = pairwise_moments(rows)
    assert np.allclose(squares, square, rtol=1e-9)
    assert np.allclose(cubes, cube, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_both_ways_to_all_pairs_agree(
    method: pairs.PairMethod, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    denominators = rng.integers(1, 9, (40, 6)).astype(float)
    numerators = rng.binomial(denominators.astype(int), 0.4).astype(float)
    numerators[:, 5] = numerators[:, 4]
    denominators[:, 5] = denominators[:, 4]
    denominators[1:, 0] = numerators[1:, 0] = 0
    replicates = ratio_replicates(cluster_counts(40, 700, 0), numerators, denominators)
    assert np.isnan(replicates[0]).any()
    value = numerators.sum(axis=0) / denominators.sum(axis=0)
    with np.errstate(invalid="ignore"):
        left = (numerators.sum(axis=0) - numerators) / (denominators.sum(axis=0) - denominators)
    found = []
    for limit in (0, 10**9):
        monkeypatch.setattr(pairs, "_DIFFERENCES_WORTH_NUMBA", limit)
        found.append(
            pairs.pair_intervals(replicates, 0.95, method, value=value, leave_one_out=left.T)
        )
    assert np.array_equal(found[0].dropped, found[1].dropped)
    assert np.allclose(found[0].low, found[1].low, rtol=0, atol=1e-14)
    assert np.allclose(found[0].high, found[1].high, rtol=0, atol=1e-14)
    assert (found[0].low[-1], found[0].high[-1]) == (0.0, 0.0)


def test_pair_bca_is_that_of_scipy() -> None:
    from scipy.stats import bootstrap

    rng = np.random.default_rng(4)
    x = rng.gamma(2.0, size=(30, 2))
    counts = cluster_counts(30, 20_000, 1)
    replicates = replicate_sums(counts, x) / 30
    left = (x.sum(axis=0) - x) / 29
    found = pairs.pair_intervals(
        replicates, 0.95, "bca", value=x.mean(axis=0), leave_one_out=left.T
    )
    expected = bootstrap(
        (x[:, 1] - x[:, 0],),
        np.mean,
        n_resamples=20_000,
        method="BCa",
        rng=np.random.default_rng(0),
    ).confidence_interval
    assert found.low[0] == pytest.approx(expected.low, abs=0.03)
    assert found.high[0] == pytest.approx(expected.high, abs=0.03)


def test_ratios_are_undefined_without_a_denominator() -> None:
    counts = np.array([[2, 0], [1, 1], [0, 2]], np.uint8)
    found = ratio_replicates(counts, np.array([[1.0], [0.0]]), np.array([[2.0], [0.0]]))
    assert np.array_equal(found, [[0.5, 0.5, np.nan]], equal_nan=True)
