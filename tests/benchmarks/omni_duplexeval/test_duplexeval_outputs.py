"""Responses: where they are looked for, how they are read, what is said about bad ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.omni_duplexeval.duplex_run import config_of
from benchmarks.omni_duplexeval.test_duplexeval_reader import REMINDER, ROW, write

from omnijudge.benchmarks.base import Outputs
from omnijudge.benchmarks.omni_duplexeval import benchmark
from omnijudge.benchmarks.omni_duplexeval.outputs import response_path
from omnijudge.errors import ConfigError

SAID = [{"sentence": "The sign reads OPEN.", "start": 1.5, "end": 3.0}]


def outputs(folder: Path, profile: str = "robust", **system: Any) -> Outputs:
    write(folder, ROW)
    values = {
        "data": {"annotations": "annotations.jsonl"},
        "systems": {"x": {"path": "x", **system}},
        "scoring": {"profile": profile},
    }
    config = config_of(values, folder)
    annotations = benchmark.read(config)
    return benchmark.read_outputs(config, annotations, "x", config.systems["x"], ["RTD_OCR/a"])


def respond(folder: Path, value: Any, name: str = "x/RTD_OCR/a.json") -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")


def test_order_of_look_up(tmp_path: Path) -> None:
    root = str(tmp_path)
    assert response_path(root, "RTD_OCR", "a") is None
    for name in ("rtd_ocr/a.json", "a.json", "RTD_OCR/a.json"):
        respond(tmp_path, [], name)
        found = response_path(root, "RTD_OCR", "a")
        assert found is not None
        assert found.relative_to(tmp_path).as_posix() == name
    respond(tmp_path, [], "runs/RTD_OCR/a-final.json")
    template = f"{root}/runs/{{split}}/{{id}}-final.json"
    found = response_path(template, "RTD_OCR", "a")
    assert found == tmp_path / "runs/RTD_OCR/a-final.json"
    assert (
        response_path(f"{root}/{{split}}-{{id}}.json", "RTD_OCR", "a")
        == tmp_path / "RTD_OCR/a.json"
    )


def test_a_response_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    for profile, said in (("robust", "counts as silence"), ("published", "left out")):
        found = outputs(tmp_path, profile)
        assert found.outputs["state"].to_pylist() == ["missing"]
        (problem,) = found.problems
        assert (problem.system, problem.sample_id) == ("x", "RTD_OCR/a")
        assert said in problem.message


def test_a_system_without_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"systems\.x: there is no folder"):
        outputs(tmp_path)


@pytest.mark.parametrize("text", ["", "{oops", '[{"sentence": "x", "sta', '"text"', '{"other": 1}'])
def test_an_unreadable_response_is_named(tmp_path: Path, text: str) -> None:
    respond(tmp_path, text)
    found = outputs(tmp_path)
    assert found.outputs["state"].to_pylist() == ["unreadable"]
    assert found.chunks.num_rows == 0
    assert [p.level for p in found.problems] == ["error"]
    assert found.problems[0].file.endswith("a.json")


def test_rejected_segments_are_counted(tmp_path: Path) -> None:
    respond(tmp_path, [*SAID, {"text": "x", "start": "two"}, "bare", {"text": "y"}])
    found = outputs(tmp_path)
    assert found.outputs["state"].to_pylist() == ["ok"]
    assert found.outputs["detail"].to_pylist() == ["3 of 4 segments rejected"]
    (problem,) = found.problems
    assert (problem.code, problem.count) == ("rejected_segment", 3)
    assert found.chunks["text"].to_pylist() == ["The sign reads OPEN."]


def test_one_bad_time_loses_the_sample_as_published_only(tmp_path: Path) -> None:
    respond(tmp_path, [*SAID, {"text": "x", "start": "two"}])
    assert outputs(tmp_path).outputs["state"].to_pylist() == ["ok"]
    found = outputs(tmp_path, "published")
    assert found.outputs["state"].to_pylist() == ["unreadable"]
    assert "'two' is no number" in found.problems[0].message


def test_a_recording_without_a_media_clock(tmp_path: Path) -> None:
    respond(tmp_path, [{"sentence": t, "start": 0.0, "end": 0.0} for t in "abc"])
    found = outputs(tmp_path)
    assert found.outputs["state"].to_pylist() == ["unreadable"]
    assert found.outputs["detail"].to_pylist()[0].startswith("no_media_clock: ")


def test_the_note_beside_a_response(tmp_path: Path) -> None:
    respond(tmp_path, SAID)
    respond(tmp_path, {"clock": "invalid"}, "x/RTD_OCR/a.meta.json")
    assert outputs(tmp_path).outputs["state"].to_pylist() == ["unreadable"]
    respond(tmp_path, {"clock": "ok", "response_done": False}, "x/RTD_OCR/a.meta.json")
    found = outputs(tmp_path)
    assert found.outputs["state"].to_pylist() == ["ok"]
    assert [p.code for p in found.problems] == ["ineligible"]


def test_times_in_other_units_and_with_an_offset(tmp_path: Path) -> None:
    respond(tmp_path, [{"sentence": "x", "start": 1500, "end": 3000}])
    found = outputs(tmp_path, time_unit="ms", time_offset=-2.0).chunks.to_pylist()
    assert [(c["start"], c["end"], c["event_time"]) for c in found] == [(0.0, 1.0, -0.5)]


def test_half_surrogates_can_be_stored(tmp_path: Path) -> None:
    respond(tmp_path, '[{"sentence": "x \\ud83d y", "start": 1}]')
    assert outputs(tmp_path).chunks["text"].to_pylist() == ["x \ufffd y"]


def test_reminder_segments_keep_their_own_time(tmp_path: Path) -> None:
    write(tmp_path, REMINDER)
    respond(
        tmp_path, [{"text": "灯亮了", "start": 1, "current_time": 5}], "x/PR_event_reminder/b.json"
    )
    values = {"data": {"annotations": "annotations.jsonl"}, "systems": {"x": "x"}}
    config = config_of(values, tmp_path)
    annotations = benchmark.read(config)
    found = benchmark.read_outputs(
        config, annotations, "x", config.systems["x"], ["PR_event_reminder/b"]
    )
    assert found.chunks["event_time"].to_pylist() == [5.0]
