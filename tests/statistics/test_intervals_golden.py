"""Explicit resamples with replicates and intervals worked out by an independent program."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnijudge.statistics.bootstrap import (
    counts_from_indices,
    metric_replicates,
    percentile_interval,
)
from omnijudge.statistics.intervals import IntervalSettings, metric_intervals
from omnijudge.statistics.metric import Metric, Sum
from omnijudge_kernels.resampling import Array, replicate_sums

CASES: dict[str, Any] = json.loads(
    (
        Path(__file__).parents[1] / "golden" / "omni_interactscope" / "bootstrap_cases.json"
    ).read_text(encoding="utf-8")
)
TASKS = {
    "average_six": ["T1", "T2", "T3", "T4", "T6", "T7"],
    "t8_overall": ["T8-A", "T8-B", "T8-C"],
    "T1": ["T1"],
    "T8-C": ["T8-C"],
}


def mean_of_shares(sums: Array) -> Array:
    half = sums.shape[-1] // 2
    with np.errstate(all="ignore"):
        return 100 * (sums[..., :half] / sums[..., half:]).mean(axis=-1)


def pooled(sums: Array) -> Array:
    half = sums.shape[-1] // 2
    with np.errstate(all="ignore"):
        return 100 * sums[..., :half].sum(axis=-1) / sums[..., half:].sum(axis=-1)


def cluster_sums(clusters: list[dict[str, Any]], tasks: list[str]) -> Array:
    rows = [
        [sum(c["m"].get(t, [])) for t in tasks] + [len(c["m"].get(t, [])) for t in tasks]
        for c in clusters
    ]
    return np.array(rows, float)


def metric(name: str) -> Metric:
    tasks = TASKS[name]
    n = len(tasks)
    sums = tuple(Sum("target", f"{kind}_{t}") for kind in ("success", "targets") for t in tasks)
    return Metric(
        name,
        "",
        sums,
        pooled if name == "t8_overall" else mean_of_shares,
        (),
        bounds=(0, 100),
        numerator=tuple(range(n)),
        denominator=tuple(range(n, 2 * n)),
    )


def close(found: Any, expected: Any) -> bool:
    wanted = np.array([np.nan if x is None else x for x in np.atleast_1d(expected)], float)
    return np.allclose(found, wanted, rtol=1e-9, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize("name", list(TASKS))
def test_replicates_intervals_and_paired_difference(name: str) -> None:
    the_metric = metric(name)
    counts = counts_from_indices(CASES["resamples"], len(CASES["video_ids"]))
    replicates = {}
    for system in ("alpha", "beta"):
        sums = cluster_sums(CASES["clusters"][system], TASKS[name])
        expected = CASES["expected"][name][system]
        columns = range(sums.shape[1])
        found = metric_replicates(the_metric.function, replicate_sums(counts, sums), columns)
        assert close(found, expected["replicates"])
        replicates[system] = found
        (row,) = metric_intervals([the_metric], [sums], the_metric.sums, counts=counts)
        assert row.value == pytest.approx(expected["point"], rel=1e-9)
        assert [row.ci_low, row.ci_high] == pytest.approx(expected["ci95"], rel=1e-9)
        assert row.dropped == expected["dropped"]
    expected = CASES["expected"][name]["beta_minus_alpha"]
    difference = percentile_interval(replicates["beta"] - replicates["alpha"], 0.95)
    assert [difference.low, difference.high] == pytest.approx(expected["ci95"], rel=1e-9)
    assert difference.dropped == expected["dropped"]


def test_all_resamples_of_four_clusters() -> None:
    case = CASES["exhaustive"]
    the_metric = metric("T8-C")
    sums = cluster_sums(case["clusters"], case["tasks"])
    resamples = list(itertools.product(range(4), repeat=4))
    assert len(resamples) == case["all_resamples"]
    counts = counts_from_indices(resamples, 4)
    found = metric_replicates(the_metric.function, replicate_sums(counts, sums), range(2))
    assert found.mean() == pytest.approx(case["mean"], rel=1e-9)
    (row,) = metric_intervals(
        [the_metric], [sums], the_metric.sums, IntervalSettings(), counts=counts
    )
    assert row.value == pytest.approx(case["point"], rel=1e-9)
    assert [row.ci_low, row.ci_high] == pytest.approx(case["ci95"], rel=1e-9)
