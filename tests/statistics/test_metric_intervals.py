from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import statistics as naive

from omnijudge.statistics import intervals
from omnijudge.statistics.bootstrap import bca_interval, cluster_counts, percentile_interval
from omnijudge.statistics.intervals import IntervalSettings, UnitValues, metric_intervals
from omnijudge.statistics.metric import Metric, Sum, ratio, total
from omnijudge.statistics.quantiles import quantile_replicates

SUCCESS, TARGETS, OTHER = Sum("target", "success"), Sum("target"), Sum("other", "x")
SUMS = [OTHER, SUCCESS, TARGETS]
ACCURACY = Metric("accuracy", "all", (SUCCESS, TARGETS), ratio, ())
COUNT = Metric("count", "all", (OTHER,), total, (), bounds=(0.0, None), denominator=(0,))


def systems(n: int, v: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    targets = rng.integers(1, 9, v)
    return [
        np.stack([rng.random(v), rng.binomial(targets, 0.4), targets], axis=1).astype(float)
        for _ in range(n)
    ]


@pytest.mark.parametrize("confidence", [0.95, 0.8])
def test_bca_and_percentile_are_those_of_scipy(confidence: float) -> None:
    from scipy.stats import bootstrap
    from scipy.stats._resampling import BootstrapResult

    rng = np.random.default_rng(0)
    data = rng.gamma(2.0, size=(2, 40))

    def statistic(a: Any, b: Any, axis: int = -1) -> Any:
        return a.sum(axis) / b.sum(axis)

    counts = cluster_counts(40, 3000, 5)
    replicates = (counts @ data[0]) / (counts @ data[1])
    value = data[0].sum() / data[1].sum()
    left = (data[0].sum() - data[0]) / (data[1].sum() - data[1])
    ours = {
        "BCa": bca_interval(replicates, np.asarray(value), left, confidence),
        "percentile": percentile_interval(replicates, confidence),
    }
    for method, found in ours.items():
        # scipy adds no resamples of its own to the ones it is given.
        expected = bootstrap(
            tuple(data),
            statistic,
            n_resamples=0,
            paired=True,
            method=method,
            confidence_level=confidence,
            bootstrap_result=BootstrapResult(None, replicates, replicates.std(ddof=1)),
        ).confidence_interval
        assert float(found.low) == pytest.approx(expected.low, rel=1e-12)
        assert float(found.high) == pytest.approx(expected.high, rel=1e-12)


def test_replicates_on_one_side_keep_an_interval() -> None:
    replicates = np.linspace(1, 2, 100)
    found = bca_interval(replicates, np.asarray(0.5), np.array([0.4, 0.5, 0.6]), 0.95)
    assert np.isfinite(found.low)
    assert found.low < found.high


def test_undefined_replicates_are_dropped_and_counted() -> None:
    found = percentile_interval(np.array([[3.0, np.nan, 1, 2], [np.nan] * 4]), 0.5)
    assert found.dropped.tolist() == [1, 4]
    assert (found.low[0], found.high[0]) == (1.5, 2.5)
    assert np.isnan(found.low[1])


def test_every_system_and_metric_in_order() -> None:
    data = systems(3, 70)
    rows = metric_intervals([ACCURACY, COUNT], data, SUMS, IntervalSettings(replicates=500))
    assert [(r.system, r.metric) for r in rows] == [
        (s, m) for s in range(3) for m in ("accuracy", "count")
    ]
    for row in rows[::2]:
        sums = data[row.system]
        assert row.value == sums[:, 1].sum() / sums[:, 2].sum()
        assert row.ci_low is not None
        assert row.ci_high is not None
        assert row.careful_low is not None
        assert row.careful_high is not None
        assert row.ci_low < row.value < row.ci_high
        assert row.careful_low < row.value < row.careful_high
        assert row.warning is None
        assert row.n_clusters == 70
        assert row.interval_method == "percentile"
    resamples = [np.repeat(np.arange(70), c).tolist() for c in cluster_counts(70, 500, 0)]
    slow = naive.resampled_statistic(ratio, data[1][:, 1:], resamples)
    assert rows[2].ci_low == pytest.approx(naive.percentile(slow, 0.025), rel=1e-12)
    assert rows[2].ci_high == pytest.approx(naive.percentile(slow, 0.975), rel=1e-12)


@pytest.mark.parametrize("interval", ["percentile", "bca", "jackknife"])
def test_blocks_of_systems_change_nothing(
    interval: intervals.IntervalMethod, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = systems(5, 30, seed=1)
    chosen = IntervalSettings(replicates=300, interval=interval)
    whole = metric_intervals([ACCURACY, COUNT], data, SUMS, chosen)
    monkeypatch.setattr(intervals, "_CHUNK_BYTES", 1)
    monkeypatch.setattr(intervals, "_BLOCK_COLUMNS", 1)
    assert metric_intervals([ACCURACY, COUNT], data, SUMS, chosen) == whole
    assert {row.interval_method for row in whole} == {interval}
    if interval == "jackknife":
        assert all(r.ci_low == r.careful_low and r.ci_high == r.careful_high for r in whole)


def test_undefined_metrics_and_empty_inputs() -> None:
    nothing = np.zeros((20, 3))
    (row,) = metric_intervals([ACCURACY], [nothing], SUMS, IntervalSettings(replicates=50))
    assert row.value is row.ci_low is row.ci_high is row.careful_low is row.careful_high is None
    assert (row.n_clusters, row.dropped, row.warning) == (0, 50, None)
    assert metric_intervals([ACCURACY], [], SUMS) == []
    (row,) = metric_intervals([ACCURACY], [np.zeros((0, 3))], SUMS)
    assert row.value is None


def test_few_clusters_warn() -> None:
    data = systems(1, 25)
    data[0][5:, 1] = 0
    (row,) = metric_intervals([ACCURACY], data, SUMS, IntervalSettings(replicates=100))
    assert row.warning is not None
    assert "only 25 clusters" in row.warning
    assert "non-zero in only" in row.warning
    assert row.n_nonzero == np.count_nonzero(data[0][:, 1])


def test_nothing_succeeds() -> None:
    data = systems(1, 25)
    data[0][:, 1] = 0
    (row,) = metric_intervals([ACCURACY], data, SUMS, IntervalSettings(replicates=100))
    assert (row.value, row.ci_low, row.ci_high) == (0.0, 0.0, 0.0)
    assert row.careful_low == 0.0
    assert row.careful_high == pytest.approx(1 - 0.025 ** (1 / 25))


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0, 2.5]), st.integers(0, 5)), max_size=60),
    st.lists(st.sampled_from([0.0, 0.5, 0.9, 1.0]), min_size=1, max_size=3),
)
def test_quantiles_of_resampled_units(
    units: list[tuple[float, int]], probabilities: list[float]
) -> None:
    counts = cluster_counts(6, 12, len(units))
    values = np.array([v for v, _ in units], float)
    clusters = np.array([c for _, c in units], np.int64)
    none = (np.empty(0), np.empty(0, np.int64))
    systems = [(values, clusters), none, (values[::2], clusters[::2])]
    found, nothing, _ = by_numpy = quantile_replicates(systems, counts, probabilities)
    compiled = quantile_replicates(systems, counts, probabilities, compiled=True)
    assert [x.tobytes() for x in by_numpy] == [x.tobytes() for x in compiled]
    assert np.isnan(nothing).all()
    expected = [
        [
            naive.expanded_quantile(values.tolist(), clusters.tolist(), row.tolist(), q)
            for row in counts
        ]
        for q in probabilities
    ]
    assert np.allclose(found, expected, rtol=1e-12, equal_nan=True)


def test_quantile_metrics() -> None:
    rng = np.random.default_rng(0)
    delays = Metric(
        "delay_p50",
        "all",
        (SUCCESS, TARGETS),
        ratio,
        (),
        quantile=("delay", 0.5),
        bounds=(None, None),
    )
    values = rng.gamma(2, size=400)
    units = UnitValues(values, rng.integers(0, 70, 400))
    rows = metric_intervals(
        [ACCURACY, delays],
        systems(2, 70),
        SUMS,
        IntervalSettings(replicates=400, interval="bca"),
        unit_values={(0, 1): units},
    )
    row = rows[1]
    assert row.value == pytest.approx(np.median(values))
    assert row.ci_low is not None
    assert row.ci_high is not None
    assert row.ci_low < row.value < row.ci_high
    assert row.careful_low is None
    assert row.interval_method == "percentile"
    assert rows[0].interval_method == "bca"
    assert rows[3].value is None


@pytest.mark.parametrize("threads", ["2", "8"])
def test_everything_is_the_same_for_any_number_of_threads(threads: str) -> None:
    script = (
        "import hashlib, numpy as np\n"
        "from omnijudge.statistics.comparison import compare_all\n"
        "from omnijudge.statistics.intervals import IntervalSettings, metric_intervals\n"
        "from omnijudge.statistics.metric import Metric, Sum, ratio\n"
        "rng = np.random.default_rng(0)\n"
        "data = [rng.random((120, 2)) for _ in range(6)]\n"
        "sums = [Sum('a'), Sum('b')]\n"
        "metric = Metric('m', '', tuple(sums), ratio, (), bounds=(None, None))\n"
        "found = []\n"
        "for kind in ('percentile', 'bca'):\n"
        "    chosen = IntervalSettings(replicates=2000, interval=kind)\n"
        "    found.append(repr(metric_intervals([metric], data, sums, chosen)))\n"
        "    (pairs,) = compare_all([metric], data, sums, chosen)\n"
        "    found += [getattr(pairs, n).tobytes().hex() for n in\n"
        "              ('ci_low', 'ci_high', 'p_value', 'careful_low')]\n"
        "print(hashlib.sha256(''.join(found).encode()).hexdigest())\n"
    )
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    seen = [
        subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, **dict.fromkeys(names, n)},
        ).stdout
        for n in ("1", threads)
    ]
    assert seen[0] == seen[1]
