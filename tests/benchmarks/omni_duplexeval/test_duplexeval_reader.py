"""Annotations: files, data-set folders, and everything that can be wrong with a row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.omni_duplexeval.duplex_run import config_of

from omnijudge.benchmarks.base import Annotations
from omnijudge.benchmarks.omni_duplexeval import benchmark
from omnijudge.errors import ConfigError

ROW = {
    "id": "a",
    "split": "RTD_OCR",
    "question_text": "Read the signs aloud.",
    "answer1": "The sign reads OPEN.",
    "answer2": " The sign reads OPEN. ",
    "video_duration": 12.0,
}
REMINDER = {
    "id": "b",
    "split": "PR_event_reminder",
    "question_text": "灯亮的时候告诉我。",
    "reminder1": "4.5",
    "reminder2": 9,
}


def read(folder: Path, source: str = "annotations.jsonl", **data: Any) -> Annotations:
    values = {"data": data or {"annotations": source}, "systems": {"x": "x"}}
    return benchmark.read(config_of(values, folder))


def write(folder: Path, *rows: Any, name: str = "annotations.jsonl") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), "utf-8")
    return path


def codes(found: Annotations) -> dict[str, str]:
    return {p.code: p.level for p in found.problems if p.code != "evidence"}


def test_units_of_both_scenes(tmp_path: Path) -> None:
    write(tmp_path, ROW, REMINDER)
    found = read(tmp_path)
    assert list(found.samples) == ["PR_event_reminder/b", "RTD_OCR/a"]
    rows = found.units.to_pylist()
    assert [(r["sample_id"], r["unit_kind"], r["unit_id"], r["event_time"]) for r in rows] == [
        ("PR_event_reminder/b", "event", "1", 4.5),
        ("PR_event_reminder/b", "event", "2", 9.0),
        ("PR_event_reminder/b", "sample", "sample", None),
        ("RTD_OCR/a", "sample", "sample", None),
    ]
    assert rows[3]["references"] == ["The sign reads OPEN."]
    assert (rows[0]["language"], rows[3]["language"]) == ("zh", "en")
    assert found.listed == 2
    assert codes(found) == {}


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "parquet"])
def test_a_data_set_folder_with_a_file_per_split(tmp_path: Path, ending: str) -> None:
    rows = {
        s: {k: v for k, v in r.items() if k != "split"}
        for s, r in (("RTD_OCR", ROW), ("PR_event_reminder", REMINDER))
    }
    for split, row in rows.items():
        path = tmp_path / "data" / f"{split}-00000-of-00001.{ending}"
        path.parent.mkdir(exist_ok=True)
        if ending == "parquet":
            pq.write_table(pa.Table.from_pylist([row]), path)
        elif ending == "csv":
            path.write_text(
                ",".join(row) + "\n" + ",".join(f'"{v}"' for v in row.values()) + "\n", "utf-8"
            )
        else:
            path.write_text(json.dumps([row] if ending == "json" else row), "utf-8")
    (tmp_path / "README.md").write_text("not a table")
    (tmp_path / "data" / "notes.json").write_text(json.dumps({"id": "not an annotation"}))
    found = read(tmp_path, root=".")
    assert list(found.samples) == ["PR_event_reminder/b", "RTD_OCR/a"]
    times = [r["event_time"] for r in found.units.to_pylist() if r["unit_kind"] == "event"]
    assert times == [4.5, 9.0]
    assert codes(found) == {}


def test_the_folder_names_the_split_too(tmp_path: Path) -> None:
    row = {k: v for k, v in ROW.items() if k != "split"}
    write(tmp_path, row, name="rtd_world_knowledge/test.jsonl")
    assert list(read(tmp_path, root=".").samples) == ["RTD_world_knowledge/a"]


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        ({"id": None}, "no_id", "has no id"),
        ({"split": "RTD_smell"}, "unknown_split", "'RTD_smell' is unknown"),
        ({"split": None}, "unknown_split", "no split is named"),
        ({"question_text": " "}, "no_question", "question_text is empty"),
        ({"video_duration": "long"}, "no_duration", "'long'"),
        ({"video_duration": 0}, "no_duration", "write the seconds"),
    ],
)
def test_a_bad_row_is_named_and_the_others_are_read(
    tmp_path: Path, change: dict[str, Any], code: str, said: str
) -> None:
    write(tmp_path, {**ROW, **change}, REMINDER)
    found = read(tmp_path)
    assert list(found.samples) == ["PR_event_reminder/b"]
    assert codes(found) == {code: "error"}
    (problem,) = (p for p in found.problems if p.code == code)
    assert problem.place == "line 1"
    assert said in problem.message
    assert found.listed == 2


def test_a_row_that_is_no_object_and_an_id_that_stands_twice(tmp_path: Path) -> None:
    write(tmp_path, ROW, "text", {**ROW, "split": "RTD_OCR"})
    found = read(tmp_path)
    assert codes(found) == {"bad_row": "error", "repeated_id": "error"}
    assert "line 1 too" in next(p.message for p in found.problems if p.code == "repeated_id")


def test_all_problems_in_one_pass(tmp_path: Path) -> None:
    write(tmp_path, {**ROW, "id": ""}, {**ROW, "split": "x"}, {**ROW, "question_text": None})
    assert set(codes(read(tmp_path))) == {"no_id", "unknown_split", "no_question"}


def test_nothing_to_read_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no file or folder"):
        read(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="holds no annotations"):
        read(tmp_path, root="empty")
    with pytest.raises(ConfigError, match=r"takes data\.annotations"):
        read(tmp_path, manifest="m.jsonl")


def test_a_broken_file_is_a_problem_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "annotations.jsonl").write_text(
        json.dumps(ROW) + "\n{oops\n" + json.dumps(REMINDER) + "\n"
    )
    found = read(tmp_path)
    assert found.units.num_rows == 0
    (problem,) = (p for p in found.problems if p.level == "error")
    assert "line 2" in problem.place


@pytest.mark.parametrize(
    ("profile", "cells", "times"),
    [
        ("robust", ("nan", True), [None]),
        ("published", ("nan", True), ["nan", 1.0]),
        ("robust", (None, 5), [5.0]),
        ("robust", (9, 3), [9.0, 3.0]),
        ("robust", ("", "x"), [None]),
    ],
)
def test_event_times_by_profile(
    tmp_path: Path, profile: str, cells: tuple[Any, Any], times: list[Any]
) -> None:
    write(tmp_path, {**REMINDER, "reminder1": cells[0], "reminder2": cells[1]})
    values = {
        "data": {"annotations": "annotations.jsonl"},
        "systems": {"x": "x"},
        "scoring": {"profile": profile},
    }
    units = benchmark.read(config_of(values, tmp_path)).units.to_pylist()
    found = [r["event_time"] for r in units if r["unit_kind"] == "event"]
    assert [str(t) if t is not None and t != t else t for t in found] == times


def test_a_correction_ignores_its_reminder_cells(tmp_path: Path) -> None:
    write(tmp_path, {**REMINDER, "split": "PR_correction", "answer1": "It is green."})
    units = read(tmp_path).units.to_pylist()
    assert [(r["unit_id"], r["task"]) for r in units] == [
        ("full", "correction"),
        ("sample", "correction"),
    ]
    assert units[0]["references"] == ["It is green."]


def test_what_a_reminder_lacks_is_said(tmp_path: Path) -> None:
    write(
        tmp_path,
        {**REMINDER, "reminder1": None, "reminder2": "soon"},
        {**REMINDER, "split": "PR_correction"},
    )
    assert codes(read(tmp_path)) == {"no_event_time": "warning", "no_reference": "warning"}


def test_further_columns_are_passed_through(tmp_path: Path) -> None:
    write(tmp_path, {**ROW, "place": "street", "video_id": "v7", "year": 2024})
    (row,) = read(tmp_path).units.to_pylist()
    assert dict(row["attributes"]) == {"place": "street", "year": "2024"}
    assert row["video_id"] == "v7"


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_clips_inside_of_a_saved_data_set(tmp_path: Path, ending: str) -> None:
    """As a data set lies on the hub, and as the library `datasets` saves one split by split."""
    from omnijudge.media.sources import read_source

    folder = tmp_path / "RTD_OCR"
    folder.mkdir()
    rows = [
        {**{k: v for k, v in ROW.items() if k != "split"}, "id": str(i)}
        | {"video": {"bytes": f"clip {i}".encode(), "path": f"{i}.mp4"}}
        for i in range(5)
    ]
    table = pa.Table.from_pylist(rows)
    path = folder / f"data-00000-of-00001.{ending}"
    if ending == "arrow":
        with pa.ipc.new_stream(path, table.schema) as out:
            out.write_table(table, max_chunksize=2)
    else:
        pq.write_table(table, path, row_group_size=2)
    found = benchmark.read(config_of({"data": {"root": "."}, "systems": {"x": "x"}}, tmp_path))
    units = {u["sample_id"]: u for u in found.units.to_pylist()}
    assert sorted(units) == [f"RTD_OCR/{i}" for i in range(5)]
    for i in range(5):
        place = units[f"RTD_OCR/{i}"]["media"]
        assert place == f"RTD_OCR/{path.name}::{i}"
        assert read_source(str(tmp_path / place)) == f"clip {i}".encode()
