"""Whole runs under the robust and paper profiles against the golden data."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import pytest
from benchmarks.omni_duplexeval.duplex_run import (
    GOLDEN,
    Result,
    golden_answers,
    golden_config,
    replaying,
    run,
    values,
)

from omnijudge.benchmarks.omni_duplexeval import benchmark
from omnijudge.benchmarks.omni_duplexeval.matching import event_windows, samples_of
from omnijudge.benchmarks.omni_duplexeval.samples import DESCRIPTION_SPLITS, REMINDER_SPLITS
from omnijudge.benchmarks.omni_duplexeval.windows import joined

EXPECTED = json.loads((GOLDEN / "expected" / "paper.json").read_text("utf-8"))
AGGREGATES = json.loads((GOLDEN / "expected" / "aggregates.json").read_text("utf-8"))
SYSTEMS = ("gamma", "delta")


@cache
def result(system: str, profile: str = "robust") -> Result:
    return run(golden_config(profile), system, replaying(golden_answers()))


def close(found: Any, wanted: Any) -> bool:
    if wanted is None or found is None:
        return found is wanted
    return math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("profile", ["robust", "paper"])
def test_every_sentence_window_and_score(system: str, profile: str) -> None:
    found = result(system, profile)
    samples, sentences = found.rows("sample"), found.rows("sentence")
    windows: dict[str, list[dict[str, Any]]] = {}
    for row, verdict in zip(
        found.part.stages.to_pylist(), found.part.verdicts.to_pylist(), strict=True
    ):
        if row["stage"] == "window":
            windows.setdefault(f"{row['sample_id']}#{row['unit_id']}", []).append(
                {
                    "shift_index": int(row["item"]),
                    "start": row["window_start"],
                    "end": row["window_end"],
                    "score": verdict["temporal_score"],
                }
            )
    checked = 0
    for sample_id, wanted in EXPECTED[system].items():
        if wanted.get("missing") or "sentences" not in wanted:
            continue
        mine = samples[sample_id]
        for name, key in (
            ("irrelevant_ratio", "irrelevant_ratio"),
            ("mean_relevant_score", "mean_relevant_score"),
            ("temporal", "temporal_100"),
            ("content", "content_100"),
            ("overall", "overall_100"),
        ):
            assert close(mine[name], wanted[key]), (sample_id, name)
        assert close(
            None if mine["temporal"] is None else mine["temporal"] * 3 / 100, wanted["temporal_raw"]
        )
        assert mine["judge_errors"] == wanted["judge_errors"], sample_id
        assert mine["judged"] is (wanted["overall_100"] is not None)
        own = [k for k in sentences if k.startswith(sample_id + "#")]
        assert len(own) == len(wanted["sentences"])
        for s in wanted["sentences"]:
            key = f"{sample_id}#{s['index']}"
            row = sentences[key]
            assert (row["start"], row["end"], row["relevant"]) == (
                s["start"],
                s["end"],
                s["relevant"],
            )
            if s["relevant"] == 1:
                assert windows.get(key, []) == s["windows"], key
                assert row["score"] == s["score"], key
                assert row["judged"] is (s["score"] is not None)
            else:
                assert row["judged"] is (s["relevant"] is not None)
            checked += 1
    assert checked > 50


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_event_and_outcome(system: str) -> None:
    found = result(system)
    options = benchmark.options().resolved()
    rows, events = found.rows("sample"), found.rows("event")
    texts = {
        f"{s.sample_id}#{unit}": joined([s.segments[i] for i in replies])
        for s in samples_of(found.part)
        if not s.is_description
        for unit, replies in event_windows(s, options)
    }
    checked = 0
    for sample_id, wanted in EXPECTED[system].items():
        if "events" not in wanted:
            continue
        mine = rows[sample_id]
        assert (mine["success"], mine["outcome"], mine["no_answer_detail"]) == (
            None if wanted["score"] is None else 100 * wanted["score"],
            wanted["outcome"],
            wanted["no_answer_detail"],
        ), sample_id
        for event in wanted["events"]:
            key = f"{sample_id}#{event['event'] or 'full'}"
            assert events[key]["score"] == event["score"], key
            assert events[key]["event_time"] == event.get("time"), key
            assert texts[key] == event["text"], key
            checked += 1
    assert checked >= 20


@pytest.mark.parametrize("system", SYSTEMS)
def test_questions_asked_are_those_of_the_golden_data(system: str) -> None:
    found = result(system)
    asked: dict[str, list[str]] = {}
    first, second = found.rounds
    assert {r["stage"] for r in first} == {"relevance", "content", "event", "full"}
    assert {r["stage"] for r in second} == {"window"}
    position = {
        tuple(r[k] for k in ("sample_id", "stage", "unit_id", "item")): i
        for i, r in enumerate(found.part.stages.to_pylist())
    }
    everyone = sorted(
        (*first, *second),
        key=lambda r: position[tuple(r[k] for k in ("sample_id", "stage", "unit_id", "item"))],
    )
    for row in everyone:
        key = f"{system}/{row['sample_id']}/{row['stage']}"
        if row["stage"] not in ("content", "full"):
            key += f"/{row['unit_id']}"
        if row["item"] is not None:
            key += f"/{row['item']}"
        asked.setdefault(row["sample_id"], []).append(key)
    for sample_id, wanted in EXPECTED[system].items():
        assert asked.get(sample_id, []) == wanted.get("calls", []), sample_id


@pytest.mark.parametrize("system", SYSTEMS)
def test_tables_count_a_missing_response_as_silence(system: str) -> None:
    found = values(result(system).scores, benchmark.metrics(benchmark.options().resolved()))
    wanted = AGGREGATES[system]["paper_missing_as_zero"]
    check_table(found, wanted)
    counts = result(system).rows("sample")
    for split, cells in wanted["subtasks"].items():
        own = [r for r in counts.values() if r["split"] == split]
        assert len(own) == cells["samples"]
        assert sum(r["output_state"] == "missing" for r in own) == cells["missing"]
        assert sum(r["judged"] is False for r in own) == cells["unscored"]


def check_table(found: dict[tuple[str, str], float], wanted: dict[str, Any]) -> None:
    for split in DESCRIPTION_SPLITS:
        for name in ("temporal", "content", "overall"):
            assert close(found[name, split], wanted["subtasks"][split][name]), (split, name)
    for split in REMINDER_SPLITS:
        assert close(found["success_rate", split], wanted["subtasks"][split]["overall"]), split
    for name in ("temporal", "content", "overall"):
        assert close(found[name, "rtd"], wanted["rtd"][name])
    assert close(found["success_rate", "pr_pooled"], wanted["pr_pooled"])
    assert close(found["success_rate", "pr_macro"], wanted["pr_macro"])
    assert close(found["overall", "all"], wanted["overall_with_pr_pooled"])
    macro = 0.5 * found["overall", "rtd"] + 0.5 * found["success_rate", "pr_macro"]
    assert close(macro, wanted["overall_with_pr_macro"])


@pytest.mark.parametrize("system", SYSTEMS)
def test_tables_without_missing_responses(system: str) -> None:
    from omnijudge.benchmarks.omni_duplexeval.metrics import metrics

    # The golden table of skipped samples: the same scores, missing ones left out.
    published = benchmark.options(profile="published")
    check_table(
        values(result(system).scores, metrics(published)),
        AGGREGATES[system]["paper_missing_skipped"],
    )


@pytest.mark.parametrize("system", SYSTEMS)
def test_outcome_shares(system: str) -> None:
    found = values(result(system).scores, benchmark.metrics(benchmark.options().resolved()))
    wanted = AGGREGATES[system]["outcomes"]
    classes = ("success", "partial", "no_answer", "wrong_answer", "judge_error")
    for name in classes:
        assert close(found[f"outcome_{name}", "pr"], wanted["share_of_all_percent"].get(name, 0.0))
        for split in REMINDER_SPLITS:
            counts = wanted["by_subtask"][split]
            share = 100 * counts.get(name, 0) / sum(counts.values())
            assert close(found[f"outcome_{name}", split], share)
    for name in classes[1:]:
        assert close(
            found[f"failure_{name}", "pr"], wanted["share_of_failures_percent"].get(name, 0.0)
        )
    rows = result(system).rows("sample").values()
    pooled: dict[str, int] = {}
    for row in rows:
        if row["outcome"]:
            pooled[row["outcome"]] = pooled.get(row["outcome"], 0) + 1
    assert pooled == wanted["pooled"]
