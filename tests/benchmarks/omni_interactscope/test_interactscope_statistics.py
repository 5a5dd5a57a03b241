"""Declared metrics under resampling, the published tables, and the permutation reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from golden.interactscope_run import SYSTEMS, load, metric_values, scored

from omnijudge import tables
from omnijudge.benchmarks.omni_interactscope import benchmark
from omnijudge.benchmarks.omni_interactscope.options import Options
from omnijudge.benchmarks.omni_interactscope.schemas import SCORE_SCHEMA
from omnijudge.benchmarks.omni_interactscope.sequences import (
    Stratum,
    sequence_reference,
    sequence_strata,
)
from omnijudge.benchmarks.omni_interactscope.windows import (
    FIRST_RESPONSE_TASKS,
    ORDERED_TASKS,
    SIX_TASKS,
)
from omnijudge.statistics.bootstrap import counts_from_indices
from omnijudge.statistics.intervals import metric_intervals
from omnijudge.statistics.metric import Metric, distinct_sums
from omnijudge.statistics.sums import cluster_sums

BOOTSTRAP = load("bootstrap_cases.json")
PAPER = load("paper_tables.json")
GROUPS = {
    "average_six": ("joint_accuracy", "average_six"),
    "t8_overall": ("timely_recall", "T8"),
    "T1": ("joint_accuracy", "T1"),
    "T8-C": ("timely_recall", "T8-C"),
}
METRICS = {(m.name, m.group): m for m in benchmark.metrics(Options())}


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("system", SYSTEMS)
def test_explicit_resamples_of_declared_metrics(name: str, system: str) -> None:
    _, scores = scored(system)
    clusters = {v: i for i, v in enumerate(BOOTSTRAP["video_ids"])}
    metric = METRICS[GROUPS[name]]
    sums = distinct_sums([metric])
    counts = counts_from_indices(BOOTSTRAP["resamples"], len(clusters))
    kept = scores.filter(pa.array([v in clusters for v in scores["video_id"].to_pylist()]))
    table = cluster_sums(kept, sums, clusters, kept["video_id"])
    found = metric_intervals([metric], [table], sums, counts=counts)[0]
    expected = BOOTSTRAP["expected"][name][system]
    assert found.value == pytest.approx(expected["point"], rel=1e-9)
    assert [found.ci_low, found.ci_high] == pytest.approx(expected["ci95"], rel=1e-9)
    assert found.dropped == expected["dropped"]


def test_metric_names_of_the_contract() -> None:
    wanted = {("joint_accuracy", t) for t in (*FIRST_RESPONSE_TASKS, "average_six")}
    wanted |= {("on_time_rate", t) for t in FIRST_RESPONSE_TASKS}
    wanted |= {("timely_recall", t) for t in (*ORDERED_TASKS, "T8")}
    wanted |= {("sequence_coverage", "T8-C"), ("sequence_coverage", "T7")}
    wanted |= {("outputs_per_minute", "T8"), ("unmatched_outputs", "T8")}
    wanted |= {("expected_complete", "T8-C"), ("status_early", "T3"), ("status_matched", "T8-A")}
    assert wanted <= METRICS.keys()


def test_metrics_fit_the_sums_code_of_the_library() -> None:
    _, scores = scored("alpha")
    sums = distinct_sums(list(METRICS.values()))
    names = {v: i for i, v in enumerate(sorted(set(scores["video_id"].to_pylist())))}
    totals = cluster_sums(scores, sums, names, scores["video_id"]).sum(axis=0)
    place = {s: k for k, s in enumerate(sums)}
    for key, value in metric_values(scores).items():
        metric = METRICS[key]
        found = float(metric.function(totals[[place[s] for s in metric.sums]]))
        assert found == pytest.approx(np.nan if value is None else value, nan_ok=True)


def table_of(counts: dict[str, Any], targets: dict[str, int]) -> pa.Table:
    """Score rows with so many successes among so many targets of each task."""
    rows: list[dict[str, Any]] = []
    for task, n in targets.items():
        if counts.get(task) is None:
            continue
        for i in range(n):
            success = int(i < counts[task])
            rows.append({"unit_kind": "target", "task": task, "success": success})
    names = SCORE_SCHEMA.names
    return tables.make(SCORE_SCHEMA, {n: [r.get(n) for r in rows] for n in names})


def value(scores: pa.Table, metric: Metric) -> float | None:
    return metric_values(scores, [metric])[metric.name, metric.group]  # type: ignore[no-any-return]


@pytest.mark.parametrize("model", PAPER["main"])
def test_published_explicit_panel(model: str) -> None:
    row = PAPER["main"][model]
    targets = {t: n for t, n in PAPER["targets"].items() if t in FIRST_RESPONSE_TASKS}
    scores = table_of(row["counts"], targets)
    for task in FIRST_RESPONSE_TASKS:
        found = value(scores, METRICS["joint_accuracy", task])
        printed = row["percent"][task]
        assert (found if found is None else round(found, 1)) == printed
    average = value(scores, METRICS["joint_accuracy", "average_six"])
    assert average == pytest.approx(row["average_six_from_counts"], rel=1e-12)
    # Rounding comes last: the printed average is that of the unrounded scores.
    assert average is not None
    assert round(average, 1) == row["percent"]["average_six"]
    printed_mean = sum(row["percent"][t] for t in SIX_TASKS) / 6
    assert printed_mean == pytest.approx(row["average_of_printed"])


def test_averaging_printed_scores_would_print_another_number() -> None:
    rows = PAPER["main"]
    differ = [
        m
        for m in ("Qwen3.5-Omni-Plus", "LiveCC")
        if rows[m]["average_of_printed"] >= rows[m]["percent"]["average_six"] + 0.0499
    ]
    assert differ == ["Qwen3.5-Omni-Plus", "LiveCC"]


@pytest.mark.parametrize("model", PAPER["assistance"])
def test_published_assistance_panel(model: str) -> None:
    row = PAPER["assistance"][model]
    targets = {t: PAPER["targets"][t] for t in ORDERED_TASKS}
    scores = table_of(row["counts"], targets)
    for task in ORDERED_TASKS:
        found = value(scores, METRICS["timely_recall", task])
        assert found is not None
        assert round(found, 2) == row["percent"][task]
    overall = value(scores, METRICS["timely_recall", "T8"])
    assert overall is not None
    assert round(overall, 2) == row["percent"]["overall"]
    # Pooled over targets, not a mean of the three.
    assert sum(row["counts"][t] for t in ORDERED_TASKS) == row["counts"]["overall"]


def test_published_totals() -> None:
    counts, found = PAPER["targets"], PAPER["identities"]
    assert sum(counts[t] for t in ORDERED_TASKS) == counts["overall"]
    total = sum(counts[t] for t in (*FIRST_RESPONSE_TASKS, *ORDERED_TASKS))
    assert total == found["targets_total"]
    single = sum(counts[t] for t in FIRST_RESPONSE_TASKS if t != "T7")
    assert (
        single + found["T7_interactions"] + found["T8_interactions"] == found["interactions_total"]
    )


@pytest.mark.parametrize("case", load("permutation_cases.json"), ids=lambda c: c["name"])
def test_permutation_reference(case: dict[str, Any]) -> None:
    strata = [Stratum(s["n"], tuple(s["counts"])) for s in case["strata"]]
    found = sequence_reference(strata, case["observed"])
    expected = case["expected"]
    assert found.expected == pytest.approx(expected["expected"], rel=1e-9)
    for x, p in expected["pmf"].items():
        assert found.pmf[int(x)] == pytest.approx(p, rel=1e-9)
    assert found.pmf.sum() == pytest.approx(1.0)
    assert [found.low, found.high] == expected["interval95"]
    assert found.p_at_most == pytest.approx(expected["p_at_most_observed"], rel=1e-9)
    assert found.p_at_least == pytest.approx(expected["p_at_least_observed"], rel=1e-9)


@pytest.mark.parametrize("system", SYSTEMS)
def test_expected_complete_agrees_with_the_reference(system: str) -> None:
    _, scores = scored(system)
    strata, observed = sequence_strata(scores)
    reference = sequence_reference(strata, observed)
    found = value(scores, METRICS["expected_complete", "T8-C"])
    assert found == pytest.approx(reference.expected, rel=1e-12)
    summary = load(f"expected/{system}.json")["primary"]["summary"]["tasks"]["T8-C"]
    assert reference.observed == summary["complete_sequences"]
    assert sum(s.n for s in strata) == summary["interactions"]


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and n"):
        Stratum(3, (1, 4))
