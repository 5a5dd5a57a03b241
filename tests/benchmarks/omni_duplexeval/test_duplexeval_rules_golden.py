"""The pure rules against the golden unit files, published and strict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omnijudge.benchmarks.omni_duplexeval import answers, samples, segments, windows

GOLDEN = Path(__file__).parents[2] / "golden" / "omni_duplexeval"
PUBLISHED = json.loads((GOLDEN / "expected" / "unit_release.json").read_text("utf-8"))
STRICT = json.loads((GOLDEN / "expected" / "unit_strict.json").read_text("utf-8"))
DEFAULT = tuple(windows.DEFAULT_SHIFTS)


def with_texts(value: Any) -> Any:
    """Non-finite numbers as the golden files write them."""
    if isinstance(value, float) and value not in (0, 1) and not abs(value) < float("inf"):
        return str(value)
    if isinstance(value, dict):
        return {k: with_texts(v) for k, v in value.items()}
    return value


@pytest.mark.parametrize("case", PUBLISHED["temporal_content_parser"], ids=lambda c: c["raw"][:40])
def test_published_parser_reads_descriptions_as_the_golden_data(case: dict[str, Any]) -> None:
    fields = ("temporal_score", "is_relevant", "content_score")
    found = answers.parse_published(case["raw"], fields)
    assert with_texts(found) == case["release"]["value"]


@pytest.mark.parametrize("case", PUBLISHED["success_parser"], ids=lambda c: c["raw"][:40])
def test_published_parser_reads_reminders_as_the_golden_data(case: dict[str, Any]) -> None:
    found = answers.parse_published(case["raw"], ("success_score",))
    assert with_texts(found) == case["release"]["value"]


@pytest.mark.parametrize(
    "field", ["temporal_score", "is_relevant", "content_score", "success_score"]
)
def test_strict_parser(field: str) -> None:
    cases = STRICT[field]
    assert len(cases) == 41
    for case in cases:
        found = answers.parse_strict(case["raw"], field)
        assert found == case["value"], case["raw"]
        assert type(found) is type(case["value"]), case["raw"]


@pytest.mark.parametrize("case", PUBLISHED["normalise"], ids=lambda c: json.dumps(c["raw"])[:50])
def test_published_readings(case: dict[str, Any]) -> None:
    for key, read in (
        ("release_rtd", segments.read_published_description),
        ("release_pr", segments.read_published_reminder),
    ):
        if "raises" in case[key]:
            with pytest.raises(segments.UnreadableResponse):
                read(case["raw"])
            continue
        found = read(case["raw"])
        if key == "release_rtd":
            told = [{"sentence": s.text, "start": s.start, "end": s.end} for s in found]
        else:
            told = [{"text": s.text, "current_time": s.event_time} for s in found]
        assert told == case[key]["value"]


@pytest.mark.parametrize("case", STRICT["segments"], ids=lambda c: json.dumps(c["raw"])[:50])
def test_one_reading_for_both_scenes(case: dict[str, Any]) -> None:
    reading = segments.read_segments(case["raw"])
    found = None
    if reading.segments is not None:
        found = [
            {"text": s.text, "start": s.start, "end": s.end, "event_time": s.event_time}
            for s in reading.segments
        ]
    assert (found, reading.rejected) == (case["segments"], case["rejected"])


def test_candidate_windows() -> None:
    for case in STRICT["candidate_windows"]:
        found = windows.candidate_windows(case["start"], case["end"], case["duration"], DEFAULT)
        told = [{"shift_index": w.shift, "start": w.start, "end": w.end} for w in found]
        assert told == case["windows"], case


def test_published_window() -> None:
    for case in PUBLISHED["single_window"]:
        found = windows.published_window(case["start"], case["end"], case["duration"])
        told = None if found is None else [found.start, found.end]
        assert told == case["release"], case


def test_frame_times() -> None:
    for case in PUBLISHED["frame_times"]:
        assert windows.frame_times(case["start"], case["end"], case["fps"]) == case["times"], case


def test_published_reminders() -> None:
    for case in PUBLISHED["reminders"]:
        found = samples.published_reminders(case["gt"])
        told = [{"index": r.cell, "start": r.start, "end": r.end} for r in found]
        assert told == case["release"]["value"], case


def test_reminder_window() -> None:
    for case in PUBLISHED["reminder_window"]:
        said = [
            segments.Segment(c["text"], c["current_time"], c["current_time"], c["current_time"])
            for c in case["chunks"]
        ]
        ((low, high),) = windows.reminder_bounds([case["start"]], case["size"])
        found = windows.joined([said[i] for i in windows.replies_within(said, low, high)])
        assert found == case["release"], case


def test_references() -> None:
    for case in PUBLISHED["references"]:
        assert samples.references(case["texts"]) == case["release"]


def test_task_names() -> None:
    for case in PUBLISHED["task_alias"]:
        if "raises" in case["release"]:
            with pytest.raises(ValueError, match="no reminder task"):
                samples.task_of_name(case["name"])
        else:
            assert samples.task_of_name(case["name"]) == case["release"]["value"]


def test_reminder_cells() -> None:
    for case in PUBLISHED["reminder_cell"]:
        found = samples.published_cell(case["cell"])
        assert (None if found is None else str(found)) == case["release"], case


def test_nothing_of_the_unit_files_is_left_out() -> None:
    assert set(PUBLISHED) == {
        "temporal_content_parser", "success_parser", "normalise", "single_window", "frame_times",
        "reminders", "reminder_window", "references", "task_alias", "reminder_cell",
    }  # fmt: skip
    assert set(STRICT) == {
        "temporal_score", "is_relevant", "content_score", "success_score", "segments",
        "candidate_windows",
    }  # fmt: skip
