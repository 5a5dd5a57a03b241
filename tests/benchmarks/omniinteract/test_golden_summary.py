"""Every summary value of the golden set and of its option variants, to 1e-9."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from golden.omniinteract_run import GOLDEN, SYSTEMS, config, judge_answers, judged, matched

from omnijudge.benchmarks.omniinteract import benchmark
from omnijudge.statistics.metric import distinct_sums
from omnijudge.statistics.sums import cluster_sums, unit_counts

TOLERANCE = 1e-9
VARIANTS = json.loads((GOLDEN / "expected" / "variants.json").read_text(encoding="utf-8"))
OPTION_NAMES = {
    "--no_unmatched_fp": ("unmatched_fp", False),
    "--no_interrupted_output_eval": ("interrupted_output_eval", False),
}


@cache
def scores(system: str, answers: str, options: tuple[tuple[str, Any], ...]) -> pa.Table:
    run = config(**dict(options))
    part, resolved = matched(system, run)
    return benchmark.score(judged(part, resolved, judge_answers(answers)), resolved)


def metric_values(table: pa.Table, **options: Any) -> dict[tuple[str, str], float]:
    resolved = benchmark.options.model_validate({"profile": "published", **options}).resolved()
    metrics = benchmark.metrics(resolved)
    sums = distinct_sums(metrics)
    clusters = {v: i for i, v in enumerate(sorted(set(table["video_id"].to_pylist())))}
    matrix = cluster_sums(table, sums, clusters, table["video_id"])
    totals = dict(zip(sums, matrix.sum(axis=0).tolist(), strict=True))
    return {
        (m.name, m.group): float(m.function(np.array([totals[s] for s in m.sums])))
        for m in metrics
        if m.quantile is None
    }


def summary(system: str) -> dict[str, Any]:
    path = GOLDEN / "expected" / system / "summary.json"
    return json.loads(path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def check_rows(values: dict[tuple[str, str], float], group: str, want: dict[str, Any]) -> None:
    names = {"ia_qtf1": "f1", "precision": "precision", "recall": "recall"}
    names |= {"tp": "TP", "fp": "FP", "fn": "FN"}
    for ours, theirs in names.items():
        assert values[ours, group] == pytest.approx(want[theirs], abs=TOLERANCE), (ours, group)


def check_suites(values: dict[tuple[str, str], float], want: dict[str, Any]) -> None:
    ids, nccs = want["ids"], want["nccs"]
    for ours, theirs in (
        ("nor", "NOR"),
        ("paq", "PAQ"),
        ("csm_sr", "CSM_SR"),
        ("csm_as", "CSM_AS"),
    ):
        assert values[ours, "interrupted"] == pytest.approx(ids[theirs], abs=TOLERANCE), ours
    pairs = {"nccs": "NCCS", "missed_outer": "missed_outer", "missed_inner": "missed_inner"}
    for ours, theirs in (pairs | {"order_errors": "order_errors"}).items():
        assert values[ours, "nested"] == pytest.approx(nccs[theirs], abs=TOLERANCE), ours


@pytest.mark.parametrize("system", SYSTEMS)
def test_summary(system: str) -> None:
    table, want = scores(system, "judge_answers.jsonl", ()), summary(system)
    values = metric_values(table)
    for group, row in want["categories"].items():
        check_rows(values, group, row)
    for role, row in want["nested_by_role"].items():
        check_rows(values, f"nested_{role}", row)
    check_rows(values, "interrupted", want["interrupted"])
    if want["math"] is None:
        assert np.isnan(values["ia_qtf1", "math"])
    else:
        check_rows(values, "math", want["math"])
        assert values["quality", "math"] == pytest.approx(
            want["math_quality"]["S_mean"], abs=TOLERANCE
        )
        assert values["timeliness", "math"] == pytest.approx(
            want["math_quality"]["T_mean"], abs=TOLERANCE
        )
    check_suites(values, want)
    overall = want["quality"]["overall"]
    assert values["quality", "all"] == pytest.approx(overall["S_mean"], abs=TOLERANCE)
    assert values["timeliness", "all"] == pytest.approx(overall["T_mean"], abs=TOLERANCE)
    parts = sum(values[f"fp_{p}", "all"] for p in ("unmatched", "early", "low", "spill"))
    assert parts == values["fp", "all"]
    assert values["fp_unmatched", "all"] == want["unmatched_chunks"]


@pytest.mark.parametrize("system", SYSTEMS)
def test_groups_and_counts(system: str) -> None:
    """Groups that are no metric of their own follow from the score rows."""
    table, want = scores(system, "judge_answers.jsonl", ()), summary(system)
    slots = table.filter(pc.equal(table["unit_kind"], "slot"))
    for column, key in (("scene_type", "by_scene"), ("question_type", "by_question_type")):
        for name, row in want[key].items():
            group = slots.filter(pc.equal(slots[column], name))
            assert group.num_rows == row["slots"]
            for ours, theirs in (("tp", "TP"), ("fp", "FP"), ("fn", "FN")):
                assert pc.sum(group[ours]).as_py() == pytest.approx(row[theirs], abs=TOLERANCE)
    for name, row in want["quality_by_scene"].items():
        group = slots.filter(pc.equal(slots["scene_type"], name))
        for ours, theirs in (("s_core", "S_mean"), ("t_core", "T_mean")):
            mean = (pc.sum(group[ours]).as_py() or 0.0) / group.num_rows
            assert mean == pytest.approx(row[theirs], abs=TOLERANCE)
    inside = slots.filter(slots["is_interrupted"])
    ids = want["ids"]
    spoke = inside.filter(inside["has_output"])
    assert (inside.num_rows, spoke.num_rows) == (ids["slots"], ids["with_output"])
    assert pc.sum(inside["paq_judged"]).as_py() == ids["judged"]
    assert pc.sum(inside["partial_low"]).as_py() == ids["low_quality"]
    assert pc.sum(inside["partial_hallucination"]).as_py() == ids["hallucination"]
    assert pc.sum(spoke["fp_spill"]).as_py() == ids["spill_count"]
    assert pc.sum(spoke["spill_seconds"]).as_py() == pytest.approx(
        ids["spill_total_s"], abs=TOLERANCE
    )
    judged_rows = inside.filter(inside["paq_judged"]).to_pylist()
    diagnostic = want["interrupted_diagnostic"]
    assert sum(0 if r["partial_low"] else r["paq"] for r in judged_rows) == pytest.approx(
        diagnostic["TP"], abs=TOLERANCE
    )
    fp = sum(r["partial_low"] + r["fp_spill"] + r["partial_hallucination"] for r in judged_rows)
    assert (fp, sum(r["partial_low"] for r in judged_rows)) == (diagnostic["FP"], diagnostic["FN"])
    pairs = table.filter(pc.equal(table["unit_kind"], "pair"))
    assert pairs.num_rows == want["nccs"]["pairs"]
    assert pc.sum(pairs["nccs"]).as_py() == pytest.approx(want["nccs"]["sum"], abs=TOLERANCE)
    good = pairs.filter(pc.greater(pairs["nccs"], 0)).num_rows
    assert good == want["nccs"]["success"]


@pytest.mark.parametrize("system", SYSTEMS)
def test_samples_that_are_not_scored(system: str) -> None:
    want = summary(system)["samples"]
    table = scores(system, "judge_answers.jsonl", ())
    assert len(set(table["sample_id"].to_pylist())) == want["scored"]
    annotations = benchmark.read(config())
    assert annotations.listed == want["listed"]
    bad = {p.sample_id for p in annotations.problems if p.level == "error"}
    reasons = {(n["sample_id"], n["reason"]) for n in want["not_scored"]}
    assert bad == {sample for sample, reason in reasons if reason == "bad_annotation"}


def options_of(words: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    words = list(words)
    while words:
        name = words.pop(0)
        if name in OPTION_NAMES:
            key, value = OPTION_NAMES[name]
            found[key] = value
        else:
            found[name.removeprefix("--")] = float(words.pop(0))
    return found


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_variant(variant: str, system: str) -> None:
    options = options_of(VARIANTS[variant]["options"])
    want = VARIANTS[variant]["models"][system]
    answers = "judge_answers_tail15.jsonl" if variant == "tail15" else "judge_answers.jsonl"
    table = scores(system, answers, tuple(options.items()))
    values = metric_values(table, **options)
    for group, row in want["categories"].items():
        check_rows(values, group, row)
    check_suites(values, want)
    slots = table.filter(pc.equal(table["unit_kind"], "slot")).to_pylist()
    found: dict[str, list[list[float]]] = {}
    for s in slots:
        found.setdefault(s["sample_id"], []).append([s["tp"], s["fp"], s["fn"]])
    assert found.keys() == want["slots"].keys()
    for sample, rows in want["slots"].items():
        assert np.allclose(found[sample], rows, rtol=0, atol=TOLERANCE), sample


def test_units_are_counted_once() -> None:
    table = scores("alpha", "judge_answers.jsonl", ())
    metrics = benchmark.metrics(benchmark.options().resolved())
    counts = dict(
        zip(((m.name, m.group) for m in metrics), unit_counts(table, metrics), strict=True)
    )
    assert counts["ia_qtf1", "all"] == (summary("alpha")["categories"]["all"]["slots"], 0)
    assert counts["nor", "interrupted"] == (summary("alpha")["ids"]["slots"], 0)
