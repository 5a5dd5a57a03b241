"""Whole runs under the published profile against the golden data."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from benchmarks.omni_duplexeval.duplex_run import (
    GOLDEN,
    Result,
    golden_answers,
    golden_config,
    read_replay,
    replaying,
    run,
    values,
)
from benchmarks.omni_duplexeval.test_duplexeval_paper_golden import check_table, close

from omnijudge.benchmarks.omni_duplexeval import benchmark
from omnijudge.benchmarks.omni_duplexeval.answers import explanation, parse_published
from omnijudge.benchmarks.omni_duplexeval.samples import DESCRIPTION_SPLITS, REMINDER_SPLITS
from omnijudge.benchmarks.omni_duplexeval.scoring import (
    PublishedSentence,
    published_temporal,
    published_total,
)
from omnijudge.benchmarks.omni_duplexeval.windows import frame_times

EXPECTED = json.loads((GOLDEN / "expected" / "release.json").read_text("utf-8"))
AGGREGATES = json.loads((GOLDEN / "expected" / "aggregates.json").read_text("utf-8"))
SYSTEMS = ("gamma", "delta")


@cache
def result(system: str) -> Result:
    return run(golden_config("published"), system, replaying(golden_answers()))


@cache
def lists(system: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Stages, verdicts and chunks as rows."""
    part = result(system).part
    assert part.verdicts is not None
    return part.stages.to_pylist(), part.verdicts.to_pylist(), part.chunks.to_pylist()


@cache
def answers_by_key() -> dict[tuple[Any, ...], dict[str, Any]]:
    return golden_answers()


@cache
def rows_of_kind(system: str, kind: str) -> dict[str, dict[str, Any]]:
    return result(system).rows(kind)


@cache
def state_of(system: str) -> dict[str, str]:
    part = result(system).part
    return dict(
        zip(part.outputs["sample_id"].to_pylist(), part.outputs["state"].to_pylist(), strict=True)
    )


def of_kind(system: str, kind: str, sample_id: str) -> list[dict[str, Any]]:
    rows = rows_of_kind(system, kind)
    return [v for k, v in rows.items() if k.partition("#")[0] == sample_id]


def answer_of(system: str, sample_id: str, stage: str, unit: str) -> tuple[str | None, str | None]:
    row = answers_by_key()[system, sample_id, unit, None, stage, 1]
    return read_replay(row, stage, "published")


@pytest.mark.parametrize("system", SYSTEMS)
def test_status_of_every_sample(system: str) -> None:
    wanted = {"success": "ok", "skipped": "missing", "failed": "unreadable"}
    for sample_id, sample in EXPECTED[system].items():
        assert state_of(system)[sample_id] == wanted[sample["status"]]


@pytest.mark.parametrize("system", SYSTEMS)
def test_temporal_part(system: str) -> None:
    checked = 0
    stages = {
        (r["sample_id"], r["unit_id"]): r for r in lists(system)[0] if r["stage"] == "temporal"
    }
    for sample_id, sample in EXPECTED[system].items():
        if sample["status"] != "success" or not sample_id.startswith("RTD"):
            continue
        wanted = sample["result"]["temporal"]
        told, records = [], []
        for row in of_kind(system, "sentence", sample_id):
            unit = row["unit_id"]
            stage = stages.get((sample_id, unit))
            record, sentence = the_record(system, sample_id, row, stage)
            records.append(record)
            told.append(sentence)
        found = published_temporal(told)
        assert [records[i] for i in found.order] == wanted["sentence_results"], sample_id
        summary = wanted["summary"]
        assert {
            "avg_temporal_score": found.mean,
            "total_sentences": len(told),
            "evaluated_sentences": found.valid,
            "error_count": len(told) - found.valid,
            "relevant_sentences_count": len(found.relevant),
            "irrelevant_sentences_count": len(found.irrelevant),
            "score_distribution": dict(
                zip(
                    ("3_points", "2_points", "1_point", "0_points"), found.distribution, strict=True
                )
            ),
            "relevance_stats": {
                "first_relevant_time": found.first_relevant,
                "total_relevant_duration": found.relevant_seconds,
                "total_irrelevant_duration": found.irrelevant_seconds,
                "irrelevant_duration_ratio": found.irrelevant_share,
            },
            "excluded_irrelevant_sentences": [
                {
                    "sentence": records[i]["sentence"],
                    "start": told[i].start,
                    "end": told[i].end,
                    "temporal_score": told[i].score,
                }
                for i in found.irrelevant
            ],
        } == summary, sample_id
        mine = rows_of_kind(system, "sample")[sample_id]
        assert close(mine["temporal"], summary["avg_temporal_score"] / 3 * 100)
        checked += len(told)
    assert checked > 50


def the_record(
    system: str, sample_id: str, row: dict[str, Any], stage: dict[str, Any] | None
) -> tuple[dict[str, Any], PublishedSentence]:
    """The record the published script writes, from our rows; and the sentence as scored."""
    unit = int(row["unit_id"])
    all_stages, verdicts, all_chunks = lists(system)
    chunks = [c for c in all_chunks if c["sample_id"] == sample_id]
    record: dict[str, Any] = {
        "sentence": chunks[unit]["text"],
        "sentence_start": row["start"],
        "sentence_end": row["end"],
        "window_start": stage["window_start"] if stage else None,
        "window_end": stage["window_end"] if stage else None,
        "temporal_score": row["score"] or 0,
        "is_relevant": row["relevant"] or 0,
        "frame_count": 0,
        "error": None,
    }
    length = None
    if stage is None:
        record["error"] = "no_window"
    else:
        record["frame_count"] = len(frame_times(stage["window_start"], stage["window_end"]))
        raw, record["error"] = answer_of(system, sample_id, "temporal", str(unit))
        verdict = verdicts[all_stages.index(stage)]
        if raw is not None and not verdict["without_duration"]:
            length = row["end"] - row["start"]
            record["sentence_duration"] = length
            found = parse_published(raw, ("temporal_score", "is_relevant"))
            record["temporal_reasoning"] = explanation("temporal", found)
            assert verdict["reasoning"] == record["temporal_reasoning"]
    sentence = PublishedSentence(
        row["start"],
        row["end"],
        length,
        record["temporal_score"],
        record["is_relevant"],
        record["error"],
    )
    return record, sentence


@pytest.mark.parametrize("system", SYSTEMS)
def test_content_part(system: str) -> None:
    stages = {r["sample_id"]: r for r in lists(system)[0] if r["stage"] == "content"}
    for sample_id, sample in EXPECTED[system].items():
        if sample["status"] != "success" or not sample_id.startswith("RTD"):
            continue
        wanted = sample["result"]["content"]
        assert stages[sample_id]["text"] == sample["result"]["full_response"]
        unit = next(r for r in result(system).part.units.to_pylist() if r["sample_id"] == sample_id)
        assert unit["references"] == sample["result"]["references"]
        raw, error = answer_of(system, sample_id, "content", "content")
        assert (error is None) is wanted["success"]
        reason = error
        if raw is not None:
            reason = explanation("content", parse_published(raw, ("content_score",)))
        assert reason == wanted["reasoning"]
        mine = rows_of_kind(system, "sample")[sample_id]
        assert close(mine["content"], wanted["score"] / 3 * 100), sample_id
        assert close(mine["overall"], 0.5 * mine["temporal"] + 0.5 * mine["content"])


@pytest.mark.parametrize("system", SYSTEMS)
def test_reminders(system: str) -> None:
    texts = {(r["sample_id"], r["unit_id"]): r["text"] for r in lists(system)[0]}
    checked = 0
    for sample_id, sample in EXPECTED[system].items():
        if sample["status"] != "success" or sample_id.startswith("RTD"):
            continue
        wanted = sample["result"]
        events = of_kind(system, "event", sample_id)
        scores = [e["score"] for e in events]
        assert scores == wanted["event_scores"], sample_id
        timed = events[0]["event_time"] is not None
        assert published_total(scores, timed) == wanted["total_score"]
        mine = rows_of_kind(system, "sample")[sample_id]
        assert mine["success"] == (100 if wanted["all_success"] else 0)
        for event, detail in zip(events, wanted["event_details"], strict=True):
            index = None if event["unit_id"] == "full" else int(event["unit_id"])
            assert index == detail["reminder_index"]
            assert event["event_time"] == detail["start_time"]
            assert texts.get((sample_id, event["unit_id"]), "") == detail["response_segment"]
            checked += 1
    assert checked >= 20


@pytest.mark.parametrize("system", SYSTEMS)
def test_questions_asked_are_those_of_the_golden_data(system: str) -> None:
    (only,) = result(system).rounds
    asked: dict[str, list[tuple[str, int]]] = {}
    for r in only:
        key = f"{system}/{r['sample_id']}/{r['stage']}"
        frames = 0
        if r["stage"] in ("temporal", "event"):
            key += f"/{r['unit_id']}"
        if r["stage"] == "temporal":
            frames = len(frame_times(r["window_start"], r["window_end"]))
        asked.setdefault(r["sample_id"], []).append((key, frames))
    for sample_id, sample in EXPECTED[system].items():
        wanted = [(c["key"], c["parts"].count("image_url")) for c in sample.get("calls", [])]
        assert asked.get(sample_id, []) == wanted, sample_id


@pytest.mark.parametrize("system", SYSTEMS)
def test_tables_leave_missing_responses_out(system: str) -> None:
    options = benchmark.options(profile="published").resolved()
    found = values(result(system).scores, benchmark.metrics(options))
    wanted = AGGREGATES[system]["release_files_only"]
    check_table(found, wanted)
    rows = rows_of_kind(system, "sample").values()
    for split in (*DESCRIPTION_SPLITS, *REMINDER_SPLITS):
        own = [r for r in rows if r["split"] == split]
        cells = wanted["subtasks"][split]
        assert len(own) == cells["samples"]
        assert sum(r["output_state"] == "missing" for r in own) == cells["missing"]
        assert sum(r["judged"] is False for r in own) == cells["unscored"] == 0
        if split in REMINDER_SPLITS:
            told = [r["success"] for r in own if r["success"] is not None]
            assert (sum(told), len(told)) == (100 * cells["successes"], cells["scored"])
