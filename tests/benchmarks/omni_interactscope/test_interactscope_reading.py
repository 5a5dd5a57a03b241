"""Annotations and trajectories: what is read, what is refused, and what is said about it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from omnijudge.benchmarks.base import Annotations, Outputs
from omnijudge.benchmarks.omni_interactscope import benchmark
from omnijudge.config import RunConfig, build_config
from omnijudge.errors import ConfigError

Row = dict[str, Any]


def target(**changes: Any) -> Row:
    row = {"target_id": "t1", "order": 1, "reference": "the gate opens", "ref_time": 10.0}
    return {k: v for k, v in (row | changes).items() if v is not None}


def interaction(**changes: Any) -> Row:
    row: Row = {
        "interaction_id": "a",
        "video_id": "v1",
        "task": "T2",
        "language": "en",
        "request": "tell me",
        "request_time": 1.0,
        "clip_start": 0.0,
        "clip_end": 30.0,
        "valid": True,
        "targets": [target()],
    }
    return {k: v for k, v in (row | changes).items() if v is not None}


def write(path: Path, rows: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [r if isinstance(r, str) else json.dumps(r, ensure_ascii=False) for r in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def config(folder: Path, systems: dict[str, Any] | None = None, **scoring: Any) -> RunConfig:
    values = {
        "benchmark": "omni_interactscope",
        "data": {"annotations": "annotations.jsonl"},
        "systems": systems or {},
        "scoring": {"profile": "robust", **scoring},
        "output": "out",
    }
    return build_config(values, folder, "test")


def read(tmp_path: Path, *rows: Any, **scoring: Any) -> Annotations:
    write(tmp_path / "annotations.jsonl", list(rows))
    return benchmark.read(config(tmp_path, **scoring))


def codes(problems: Any, level: str = "error") -> list[str]:
    return [p.code for p in problems if p.level == level]


def test_every_problem_in_one_pass(tmp_path: Path) -> None:
    rows = [
        interaction(interaction_id="good"),
        "{not json",
        "[1, 2]",
        interaction(interaction_id=None),
        interaction(interaction_id="dup"),
        interaction(interaction_id="dup"),
        interaction(interaction_id="task", task="T9"),
        interaction(interaction_id="rubric", targets=[target(rubric="poetry")]),
        interaction(interaction_id="tool", targets=[target(rubric="tool_set")]),
        interaction(interaction_id="time", request_time="soon"),
        interaction(interaction_id="notime", targets=[target(ref_time=None)]),
        interaction(interaction_id="nan", targets=[target(ref_time=float("nan"))]),
        interaction(interaction_id="order", targets=[target(interval=[9, 4])]),
        interaction(interaction_id="empty", targets=[]),
        interaction(interaction_id="twice", targets=[target(), target()]),
        interaction(interaction_id="noref", targets=[target(reference=" ")]),
        interaction(interaction_id="t8a", task="T8-A"),
        interaction(interaction_id="tools", task="T1"),
        interaction(interaction_id="clip", clip_end=0.5),
        interaction(interaction_id="text", request=7),
        interaction(interaction_id="both", clip_start=None, targets=[target(ref_time=None)]),
    ]
    found = read(tmp_path, *rows)
    assert list(found.samples) == ["good"]
    assert found.listed == len(rows) - 1  # the line that is no JSON names nobody
    assert codes(found.problems) == [
        "bad_json",
        "wrong_root",
        "missing_key",
        "duplicate_id",
        "unknown_task",
        "unknown_rubric",
        "unknown_rubric",
        "bad_time",
        "missing_time",
        "bad_time",
        "bad_time",
        "missing_key",
        "duplicate_id",
        "missing_key",
        "missing_time",
        "missing_key",
        "bad_time",
        "bad_text",
        "missing_time",
        "missing_time",
    ]
    by_id = {p.sample_id: p for p in found.problems}
    assert "line 6" in str(by_id["dup"])
    assert "line 5 already" in by_id["dup"].message
    assert "T1, T2" in by_id["task"].message


def test_interactions_of_the_media_check_vanish(tmp_path: Path) -> None:
    found = read(tmp_path, interaction(), interaction(interaction_id="b", valid=False))
    assert list(found.samples) == ["a"]
    assert found.listed == 2
    assert codes(found.problems, "info") == ["invalid_interaction"]
    assert not codes(found.problems)


def test_units_come_in_target_order_with_the_interaction_last(tmp_path: Path) -> None:
    late, early = target(target_id="x", ref_time=20.0), target(target_id="y", ref_time=5.0)
    tie = target(target_id="z", ref_time=5.0, order=0)
    span = target(target_id="w", ref_time=None, interval=[5.0, 6.0], order=0)
    rows = [
        interaction(interaction_id="b"),
        interaction(interaction_id="a", scene="dusk", targets=[late, early, tie, span]),
    ]
    units = read(tmp_path, *rows).units.to_pylist()
    assert [u["sample_id"] for u in units] == ["a"] * 5 + ["b"] * 2
    assert [u["unit_id"] for u in units[:5]] == ["z", "w", "y", "x", "interaction"]
    assert [u["position"] for u in units[:5]] == [1, 2, 3, 4, None]
    assert units[0]["attributes"] == [("scene", "dusk")]
    assert (units[1]["ref_start"], units[1]["ref_end"]) == (5.0, 6.0)


def test_rubrics_follow_the_task_unless_the_target_says_otherwise(tmp_path: Path) -> None:
    spans = [target(ref_time=None, interval=[3.0, 4.0])]
    rows = [
        interaction(interaction_id="t2"),
        interaction(interaction_id="t7", task="T7", targets=[target(rubric="translation")]),
        interaction(interaction_id="t8", task="T8-A", request_time=None, targets=spans),
        interaction(
            interaction_id="t1", task="T1", targets=[target(tools=["timer"], rubric="event")]
        ),
    ]
    found = read(tmp_path, *rows)
    rubrics = {u["sample_id"]: u["rubric"] for u in found.units.to_pylist() if u["rubric"]}
    assert rubrics == {"t1": "tool_set", "t2": "event", "t7": "translation", "t8": "assistance"}
    assert codes(found.problems, "warning") == ["rubric_ignored"]


def test_windows_that_the_request_closes_are_warned_about(tmp_path: Path) -> None:
    row = interaction(task="T8-B", request_time=13.0, targets=[target(ref_time=10.0)])
    assert codes(read(tmp_path, row).problems, "warning") == ["window_before_request"]
    assert not read(tmp_path, row, tolerance=3.0).problems


def test_language_is_told_from_the_texts_where_it_is_not_given(tmp_path: Path) -> None:
    rows = [
        interaction(interaction_id="x", language=None, request="门开了告诉我"),
        interaction(interaction_id="y", language=None),
    ]
    units = read(tmp_path, *rows).units.to_pylist()
    assert [u["language"] for u in units] == ["zh", "zh", "en", "en"]


def test_a_list_a_byte_order_mark_and_half_characters_are_read(tmp_path: Path) -> None:
    text = json.dumps([interaction(request="x\ud83d")])
    (tmp_path / "annotations.jsonl").write_bytes(b"\xef\xbb\xbf" + text.encode())
    found = benchmark.read(config(tmp_path))
    assert found.units["request"][0].as_py() == "x\ufffd"


def test_empty_and_foreign_files_are_named(tmp_path: Path) -> None:
    assert codes(read(tmp_path).problems) == ["empty_file"]
    (tmp_path / "annotations.jsonl").write_bytes("{“".encode("cp936"))
    assert codes(benchmark.read(config(tmp_path)).problems) == ["bad_encoding"]


def test_configuration_faults(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no file"):
        benchmark.read(config(tmp_path))
    write(tmp_path / "annotations.jsonl", [interaction()])
    with pytest.raises(ConfigError, match=r"systems\.x: there is no file or folder"):
        benchmark.read(config(tmp_path, {"x": "nowhere"}))
    write(tmp_path / "x.jsonl", [{"interaction_id": "a", "outputs": []}])
    wrong = {"x": {"path": "x.jsonl", "not_evaluated": ["T55"]}}
    with pytest.raises(ConfigError, match="'T55' is no task"):
        benchmark.read(config(tmp_path, wrong))
    values = {"benchmark": "omni_interactscope", "data": {"manifest": "m"}, "output": "o"}
    with pytest.raises(ConfigError, match=r"takes data\.annotations"):
        benchmark.read(build_config(values, tmp_path, "test"))
    values["data"] = {"root": "."}
    assert list(benchmark.read(build_config(values, tmp_path, "test")).samples) == ["a"]


# ---------- trajectories ----------


def outputs(tmp_path: Path, system: Any, *ids: str, **changes: Any) -> Outputs:
    rows = [interaction(interaction_id=i, **changes) for i in ids or ("a",)]
    write(tmp_path / "annotations.jsonl", rows)
    run = config(tmp_path, {"x": system})
    annotations = benchmark.read(run)
    found = benchmark.read_outputs(run, annotations, "x", run.systems["x"], list(ids or ("a",)))
    # What concerns a system's files as a whole is found when they are looked through.
    assert {p.system for p in annotations.problems} <= {"x"}
    return dataclasses.replace(found, problems=[*annotations.problems, *found.problems])


def states(found: Outputs) -> dict[str, str]:
    return dict(
        zip(found.outputs["sample_id"].to_pylist(), found.outputs["state"].to_pylist(), strict=True)
    )


def said(**changes: Any) -> Row:
    return {"interaction_id": "a", "outputs": [{"t": 1.5, "text": "hello"}]} | changes


def test_missing_and_empty_trajectories_are_two_things(tmp_path: Path) -> None:
    write(tmp_path / "x.jsonl", [said(outputs=[])])
    found = outputs(tmp_path, "x.jsonl", "a", "b")
    assert states(found) == {"a": "ok", "b": "missing"}
    assert found.chunks.num_rows == 0
    assert codes(found.problems) == ["missing_output"]
    assert found.problems[0].sample_id == "b"
    assert found.problems[0].system == "x"


def test_tasks_not_evaluated_are_neither_missing_nor_read(tmp_path: Path) -> None:
    write(tmp_path / "x.jsonl", [said(), said(interaction_id="b")])
    found = outputs(tmp_path, {"path": "x.jsonl", "not_evaluated": ["T2"]}, "a", "b")
    assert states(found) == {"a": "not_evaluated", "b": "not_evaluated"}
    assert found.chunks.num_rows == 0
    assert not found.problems


def test_an_output_keeps_its_place_and_loses_nothing(tmp_path: Path) -> None:
    rows = [
        {"t": 4, "text": None, "tools": ["timer", " "]},
        {"t": None, "text": "when?"},
        {"t": 2.25, "text": "  spaced  "},
    ]
    write(tmp_path / "x.jsonl", [said(outputs=rows, granularity="fragment")])
    found = outputs(tmp_path, "x.jsonl")
    chunks = found.chunks.to_pylist()
    assert [(c["chunk_id"], c["start"], c["text"], c["tools"]) for c in chunks] == [
        (0, 4.0, "", ["timer", " "]),
        (2, 2.25, "  spaced  ", []),
    ]
    assert {c["granularity"] for c in chunks} == {"fragment"}
    assert codes(found.problems, "warning") == ["dropped_bad_time"]
    assert found.outputs["file"].to_pylist() == ["x.jsonl"]


@pytest.mark.parametrize(
    ("row", "said_of_it"),
    [
        (said(outputs={"t": 1}), "outputs must be a list"),
        (said(granularity="word"), "granularity 'word'"),
        (said(outputs=["hello"]), "must be an object"),
        (said(outputs=[{"t": 1, "text": 5}]), "text must be text"),
        (said(outputs=[{"t": 1, "tools": "timer"}]), "list of names"),
        (said(outputs=[{"t": 1, "tools": [{"name": "timer"}]}] * 5), "and 2 more"),
    ],
)
def test_trajectories_of_another_shape_are_refused(
    row: Row, said_of_it: str, tmp_path: Path
) -> None:
    write(tmp_path / "x.jsonl", [row, said(interaction_id="b")])
    found = outputs(tmp_path, "x.jsonl", "a", "b")
    assert states(found) == {"a": "unreadable", "b": "ok"}
    problem = next(p for p in found.problems if p.level == "error")
    assert said_of_it in problem.message
    assert problem.place == "line 1"
    assert found.outputs["detail"][0].as_py() == f"wrong_format: {problem.message}"


def test_two_trajectories_of_one_interaction_are_both_refused(tmp_path: Path) -> None:
    write(tmp_path / "x.jsonl", [said(), said(outputs=[])])
    found = outputs(tmp_path, "x.jsonl")
    assert states(found) == {"a": "unreadable"}
    assert "2 trajectories" in found.problems[0].message
    assert "line 2" in found.problems[0].message


def test_strangers_and_broken_lines_are_said(tmp_path: Path) -> None:
    rows = [said(), said(interaction_id="zz"), '{"interaction_id": "b", "outp', {"outputs": []}]
    write(tmp_path / "x.jsonl", rows)
    found = outputs(tmp_path, "x.jsonl", "a", "b")
    assert states(found) == {"a": "ok", "b": "missing"}
    assert codes(found.problems) == ["bad_json", "missing_key", "missing_output"]
    assert codes(found.problems, "warning") == ["not_listed"]


def test_dropped_interactions_are_no_strangers(tmp_path: Path) -> None:
    write(tmp_path / "x.jsonl", [said(), said(interaction_id="b")])
    write(
        tmp_path / "annotations.jsonl",
        [interaction(), interaction(interaction_id="b", valid=False)],
    )
    run = config(tmp_path, {"x": "x.jsonl"})
    found = benchmark.read_outputs(run, benchmark.read(run), "x", run.systems["x"], ["a"])
    assert not found.problems


def test_folders_lists_and_single_objects(tmp_path: Path) -> None:
    write(tmp_path / "x" / "first.jsonl", [said()])
    write(
        tmp_path / "x" / "more" / "second.json", [json.dumps([said(interaction_id="b")], indent=1)]
    )
    write(tmp_path / "x" / "c.json", [json.dumps({"outputs": []}, indent=1)])
    (tmp_path / "x" / ".hidden").write_text("no")
    found = outputs(tmp_path, "x", "a", "b", "c")
    assert states(found) == {"a": "ok", "b": "ok", "c": "ok"}
    assert found.outputs["file"].to_pylist() == ["first.jsonl", "more/second.json", "c.json"]
    assert not found.problems


def test_odd_bytes_are_read_as_they_should(tmp_path: Path) -> None:
    mark = b"\xef\xbb\xbf"
    lines = [json.dumps(said(interaction_id=i)).encode() for i in "ab"]
    (tmp_path / "x.jsonl").write_bytes(mark + b"\r\n".join(lines))
    assert states(outputs(tmp_path, "x.jsonl", "a", "b")) == {"a": "ok", "b": "ok"}
    (tmp_path / "x.jsonl").write_bytes(b"\r".join(lines))
    assert states(outputs(tmp_path, "x.jsonl", "a", "b")) == {"a": "ok", "b": "ok"}
    (tmp_path / "x.jsonl").write_bytes(b"\n".join(lines).decode().encode("utf-16"))
    assert states(outputs(tmp_path, "x.jsonl", "a", "b")) == {"a": "ok", "b": "ok"}
    half = json.dumps(said(outputs=[{"t": 1, "text": "\ude00"}, {"t": float("nan")}]))
    (tmp_path / "x.jsonl").write_text(half)
    found = outputs(tmp_path, "x.jsonl")
    assert found.chunks["text"].to_pylist() == ["\ufffd"]
    assert codes(found.problems, "warning") == ["dropped_bad_time"]


def test_times_in_milliseconds_and_an_offset(tmp_path: Path) -> None:
    write(tmp_path / "x.jsonl", [said(outputs=[{"t": t} for t in (9500, 12_000, 14_000)])])
    assert codes(outputs(tmp_path, "x.jsonl").problems, "warning") == ["suspect_ms"]
    settings = {"path": "x.jsonl", "time_unit": "ms", "time_offset": 0.5}
    found = outputs(tmp_path, settings)
    assert found.chunks["start"].to_pylist() == [10.0, 12.5, 14.5]
    assert not found.problems


def test_transcripts_of_other_tools(tmp_path: Path) -> None:
    cue = "1\n00:00:09,500 --> 00:00:11,000\nthe gate opens\n"
    write(tmp_path / "x" / "a.srt", [cue])
    write(tmp_path / "x" / "b" / "out.srt", [cue])
    found = outputs(tmp_path, "x", "a", "b")
    assert states(found) == {"a": "ok", "b": "ok"}
    chunks = found.chunks.to_pylist()
    assert [(c["start"], c["end"], c["text"]) for c in chunks] == [
        (9.5, 11.0, "the gate opens")
    ] * 2
    assert {c["granularity"] for c in chunks} == {"response"}


def test_a_transcript_cannot_answer_a_tool_task(tmp_path: Path) -> None:
    write(tmp_path / "x" / "a.srt", ["1\n00:00:09,500 --> 00:00:11,000\nthe gate opens\n"])
    found = outputs(tmp_path, "x", "a", task="T1", targets=[target(tools=["timer"])])
    assert "not_evaluated: [T1]" in next(p for p in found.problems if p.code == "no_tools").message


def test_a_file_without_trajectories_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "x.jsonl", [{"chunks": []}])
    found = outputs(tmp_path, "x.jsonl", "a", "b")
    assert codes(found.problems) == ["wrong_format", "wrong_format"]
    assert "is no trajectory" in found.problems[0].message
    assert "one file per interaction" in found.problems[1].message
    assert states(found) == {"a": "unreadable", "b": "unreadable"}
    assert set(found.outputs["detail"].to_pylist()) == {
        f"wrong_format: {found.problems[1].message}"
    }
    write(tmp_path / "x.jsonl", ["{not json", "nor this"])
    found = outputs(tmp_path, "x.jsonl")
    assert codes(found.problems) == ["bad_json", "bad_json", "wrong_format"]
    write(tmp_path / "x.jsonl", [""])
    found = outputs(tmp_path, "x.jsonl")
    assert codes(found.problems) == ["empty_file"]
    assert states(found) == {"a": "unreadable"}
