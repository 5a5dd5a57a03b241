"""The single-rule cases of the golden set: matching, edge cases, windows, verdicts, groups."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from golden.interactscope_run import config, interactions, load, matched, stage_keys, with_verdicts

from omnijudge.benchmarks.omni_interactscope import benchmark
from omnijudge.benchmarks.omni_interactscope.answers import parse_verdict
from omnijudge.benchmarks.omni_interactscope.controls import fixed_delay_replay
from omnijudge.benchmarks.omni_interactscope.matching import (
    EARLY,
    LATE,
    ON_TIME,
    first_response,
    match_in_order,
    responses_inside,
)
from omnijudge.benchmarks.omni_interactscope.options import Options
from omnijudge.benchmarks.omni_interactscope.responses import (
    effective_responses,
    is_silence,
    response_texts,
    tool_set,
)
from omnijudge.benchmarks.omni_interactscope.windows import (
    TASKS,
    is_inside,
    target_windows,
)

INSTANCES = load("matching_instances.jsonl")
EDGES = load("edge_cases.json")
UNITS = load("unit_cases.json")
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "late_released": {"first_response_variant": "late_released"},
    "since_previous": {"first_response_variant": "since_previous"},
    "chained": {"grouping_mode": "chained"},
}


def offsets(lengths: list[int]) -> np.ndarray[Any, Any]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def flat(name: str) -> np.ndarray[Any, Any]:
    return np.array([x for case in INSTANCES for x in case[name]], dtype=np.float64)


class Corpus:
    """All instances as one corpus in CSR form."""

    low = np.array([w[0] for case in INSTANCES for w in case["windows"]])
    high = np.array([w[1] for case in INSTANCES for w in case["windows"]])
    end = flat("anchors")
    times = flat("times")
    targets = offsets([len(c["windows"]) for c in INSTANCES])
    responses = offsets([len(c["times"]) for c in INSTANCES])


def test_windows_of_all_matching_instances() -> None:
    first, last = responses_inside(
        Corpus.times, Corpus.responses, Corpus.low, Corpus.high, Corpus.targets
    )
    for s, case in enumerate(INSTANCES):
        for k in range(len(case["windows"])):
            target, base = Corpus.targets[s] + k, Corpus.responses[s]
            held = set(range(first[target] - base, last[target] - base))
            right = {j for j, c in enumerate(case["correct"][k]) if c}
            assert held & right == {j for j, e in enumerate(case["eligible"][k]) if e}


def test_ordered_optimum_and_canonical_pairs_of_all_instances() -> None:
    base = np.repeat(Corpus.responses[:-1], np.diff(Corpus.targets))
    rows = [row for case in INSTANCES for row in case["eligible"]]
    eligible = np.array([e for row in rows for e in row], dtype=bool)
    target = np.repeat(np.arange(len(rows)), [len(r) for r in rows])
    response = base[target] + np.array([j for r in rows for j in range(len(r))])
    found = match_in_order(target, response, eligible, Corpus.responses, Corpus.targets)
    for s, case in enumerate(INSTANCES):
        mine = found[Corpus.targets[s] : Corpus.targets[s + 1]]
        pairs = [[k, int(j - Corpus.responses[s])] for k, j in enumerate(mine) if j >= 0]
        assert pairs == case["ordered_pairs"]
        assert len(pairs) == case["ordered_max"]
        assert (len(pairs) == len(case["windows"])) == case["sequence_complete"]


def test_the_instances_hold_the_traps() -> None:
    assert any(c["trap_unordered_max"] > c["ordered_max"] for c in INSTANCES)
    assert any(c["trap_greedy"] < c["ordered_max"] for c in INSTANCES)


@pytest.mark.parametrize("variant", ["default", "late_released", "since_previous"])
def test_first_response_of_all_instances(variant: str) -> None:
    taken, timing = first_response(
        Corpus.times, Corpus.responses, Corpus.low, Corpus.high, Corpus.end, Corpus.targets, variant
    )
    for s, case in enumerate(INSTANCES):
        rows = []
        for k in range(len(case["windows"])):
            j = int(taken[Corpus.targets[s] + k])
            j = -1 if j < 0 else j - int(Corpus.responses[s])
            when = timing[Corpus.targets[s] + k]
            if when == ON_TIME:
                status = "success" if case["correct"][k][j] else "wrong_content"
            else:
                status = {EARLY: "early", LATE: "late"}.get(int(when), "missing")
            rows.append([status, None if j < 0 else j])
        expected = case[f"first_response_{variant}"]
        assert rows == expected["rows"]
        assert sum(r[0] == "success" for r in rows) == expected["successes"]


def scored_case(
    tmp_path: Path,
    interaction: dict[str, Any],
    trajectory: dict[str, Any] | None,
    verdicts: dict[tuple[str, int], bool | None],
    **scoring: Any,
) -> list[dict[str, Any]]:
    """One interaction with ready verdicts (None: an unusable judge), through all steps."""
    (tmp_path / "annotations.jsonl").write_text(json.dumps(interaction), encoding="utf-8")
    rows = (
        []
        if trajectory is None
        else [{"interaction_id": interaction["interaction_id"]} | trajectory]
    )
    # A second trajectory, of nobody, so that the file is one of trajectories in any case.
    rows.append({"interaction_id": "nobody", "outputs": []})
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    part, options = matched("x", config(tmp_path, ".", ["x"], **scoring))
    keys = stage_keys(part)
    known = {}
    for row in benchmark.pending(part, options).tolist():
        said = verdicts[keys[row][1], keys[row][2]]
        known[row] = ("invalid", None) if said is None else ("ok", said)
    return interactions(part, benchmark.score(with_verdicts(part, known), options), options)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("case", EDGES, ids=lambda c: c["name"])
def test_edge_case(case: dict[str, Any], setting: str, tmp_path: Path) -> None:
    verdicts = {(t, j): v for t, j, v in case["verdicts"]}
    found = scored_case(
        tmp_path, case["interaction"], case["trajectory"], verdicts, **SETTINGS[setting]
    )
    assert found == [case["expected"][setting]]


@pytest.mark.parametrize("case", load("worked_examples.json"), ids=lambda c: c["name"])
def test_worked_example(case: dict[str, Any], tmp_path: Path) -> None:
    rubric = {"rubric": "tool_set"} if case["task"] == "T1" else {"rubric": "assistance"}
    interaction = {
        "interaction_id": "w",
        "video_id": "w",
        "task": case["task"],
        "request": "q",
        "request_time": case["request_time"],
        "clip_start": 0.0,
        "clip_end": 40.0,
        "targets": [{"reference": "r"} | rubric | t for t in case["targets"]],
    }
    right = {(t, j) for t, j in case.get("correct_pairs", [])}
    verdicts: dict[tuple[str, int], bool | None] = {
        (t["target_id"], j): (t["target_id"], j) in right
        for t in case["targets"]
        for j in range(len(case["outputs"]))
    }
    trajectory = {"outputs": case["outputs"]}
    found = scored_case(tmp_path, interaction, trajectory, verdicts, tolerance=case["tau"])[0]
    expected = case["expected"]
    assert found["targets"] == expected["targets"]
    if "matched" in expected:
        assert sum(t["m"] for t in found["targets"]) == expected["matched"]
        assert found["complete"] is expected["complete"]
        plain = interaction | {
            "task": "T7",
            "targets": [t | {"rubric": "event"} for t in interaction["targets"]],
        }  # type: ignore[attr-defined]
        again = scored_case(tmp_path, plain, trajectory, verdicts)[0]
        assert again["targets"] == expected["same_outputs_under_first_response"]


@pytest.mark.parametrize("case", UNITS["tool_sets"], ids=str)
def test_tool_sets(case: dict[str, Any]) -> None:
    assert (tool_set(case["got"]) == tool_set(case["want"])) is case["match"]


def test_tool_names_by_letter_only_where_asked() -> None:
    assert tool_set(["Set_Timer"], case_sensitive=False) == tool_set(["set_timer "], False)


@pytest.mark.parametrize("case", UNITS["boundaries"], ids=str)
def test_window_boundaries(case: dict[str, Any]) -> None:
    at = np.array([float(case["ref_time"])])
    low, high = target_windows(np.array([0]), at, at, np.array([0.0]), case["tau"])
    t = float(case["t"])
    assert bool(is_inside(np.array([t]), low, high)[0]) is case["inside"]
    one = np.array([0, 1])
    first, last = responses_inside(np.array([t]), one, low, high, one)
    assert (last[0] > first[0]) == case["inside"]
    assert (low[0] <= t <= high[0]) == case["naive_float_inside"]


@pytest.mark.parametrize("case", UNITS["window_clipping"], ids=str)
def test_window_clipping(case: dict[str, Any]) -> None:
    start, end = case.get("interval", [case.get("ref_time")] * 2)
    request = np.nan if case["request_time"] is None else case["request_time"]
    task = np.array([TASKS.index(case["task"])])
    low, high = target_windows(task, np.array([start]), np.array([end]), np.array([request]), 2.0)
    assert [low[0], high[0]] == case["window"]


@pytest.mark.parametrize("case", UNITS["verdict_parsing"], ids=lambda c: c["raw"])
def test_verdict_parsing(case: dict[str, Any]) -> None:
    answer = parse_verdict(case["raw"])
    assert answer.fields.get("equivalent") is case["verdict"]
    assert (answer.status == "invalid") == (case["verdict"] is None)


@pytest.mark.parametrize("mode", ["anchored", "chained"])
@pytest.mark.parametrize("number", range(len(load("grouping_cases.json"))))
def test_grouping(number: int, mode: str) -> None:
    case = load("grouping_cases.json")[number]
    rows = case["outputs"]
    texts = pa.array([o["text"] for o in rows], pa.string())
    request = case["request_time"]
    found = effective_responses(
        np.zeros(len(rows), dtype=np.int64),
        np.array([o["t"] for o in rows], dtype=np.float64),
        np.arange(len(rows)),
        is_silence(texts, np.array([bool(o["tools"]) for o in rows], dtype=bool)),
        np.ones(len(rows), dtype=bool),
        np.array([np.nan if request is None else request]),
        Options(grouping_mode=mode),  # type: ignore[arg-type]
    )
    groups = [
        {
            "t": float(found.time[i]),
            "members": found.members[
                found.member_offsets[i] : found.member_offsets[i + 1]
            ].tolist(),
            "text": text,
        }
        for i, text in enumerate(response_texts(texts, found).to_pylist())
    ]
    for group in groups:
        names = [n for m in group["members"] for n in rows[m]["tools"]]
        group["tools"] = sorted(tool_set(names))
    expected = case[mode]["groups"]
    assert groups == [g | {"tools": sorted(g["tools"])} for g in expected]
    assert found.before_request.tolist() == [case[mode]["pre_query"]]


def test_fixed_delay_replay() -> None:
    case = load("controls_cases.json")["fixed_delay"]
    units = benchmark.read(config()).units
    delays = [row["delay"] for row in case["expected"]]
    found = fixed_delay_replay(units, case["frozen_tools"], delays)
    assert [
        {"delay": f.delay, "successes": f.successes, "on_time": f.on_time, "targets": f.targets}
        for f in found
    ] == case["expected"]
