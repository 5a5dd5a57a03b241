"""Scene control, fixed delays and permutation reference over a run, as a user reaches them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from golden.interactscope_run import load

import omnijudge
from omnijudge import tables
from omnijudge.benchmarks.omni_interactscope.controls import (
    complete_sequences,
    delay_replay,
    frozen_tools,
    paired_scene_control,
    scene_control,
)
from omnijudge.benchmarks.omni_interactscope.schemas import CHUNK_SCHEMA, SCORE_SCHEMA
from omnijudge.config import build_config
from omnijudge.errors import ConfigError, DataError

OMNIJUDGE = Path(sys.executable).with_name("omnijudge")
Row = dict[str, Any]

PAIRED = load("controls_cases.json")["paired"]
SCENE = next(case for case in PAIRED if len(case["with_scene"]) == 20)
LAW = next(c for c in load("permutation_cases.json") if c["name"] == "source worked example")


def interaction(identity: str, task: str, targets: list[Row]) -> Row:
    return {
        "interaction_id": identity, "video_id": identity, "task": task, "language": "en",
        "request": "help", "request_time": 1.0, "clip_start": 0.0, "clip_end": 60.0,
        "targets": [{"reference": "", **t} for t in targets],
    }  # fmt: skip


def steps_done(n: int, counts: list[int], complete: int) -> list[list[bool]]:
    """Which steps succeed in which sequence, so that exactly ``complete`` are complete."""
    done = [[i < complete for _ in counts] for i in range(n)]
    for k, count in enumerate(counts):
        # Each step's other successes go to its own share of the sequences that are not complete.
        others = [i for i in range(complete, n) if i % len(counts) != k]
        for i in others[: count - complete]:
            done[i][k] = True
    return done


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> omnijudge.Run:
    """Two systems whose successes are those of a golden case of each control."""
    folder = tmp_path_factory.mktemp("controls")
    annotations = []
    said: dict[str, list[Row]] = {"seeing": [], "blind": []}
    for i, successes in enumerate(zip(SCENE["with_scene"], SCENE["without_scene"], strict=True)):
        name = f"tool-{i:02d}"
        target = {"target_id": "t", "ref_time": 10.0, "tools": ["set_timer"]}
        annotations.append(interaction(name, "T1", [target]))
        for system, success in zip(said, successes, strict=True):
            called = [{"t": 10.5, "text": "", "tools": ["set_timer" if success else "call"]}]
            said[system].append({"interaction_id": name, "outputs": called})
    [stratum] = LAW["strata"]
    for i, done in enumerate(steps_done(stratum["n"], stratum["counts"], LAW["observed"])):
        name = f"guide-{i:02d}"
        steps = [f"Turn screw number {k} to the right." for k in range(len(done))]
        annotations.append(
            interaction(
                name,
                "T8-C",
                [
                    {"target_id": f"t{k}", "ref_time": 10.0 * (k + 1), "reference": step}
                    for k, step in enumerate(steps)
                ],
            )
        )
        outputs = [{"t": 10.0 * (k + 1), "text": step} for k, step in enumerate(steps) if done[k]]
        said["seeing"].append({"interaction_id": name, "outputs": outputs})
    files = {"annotations": annotations, **said}
    for file, rows in files.items():
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{file}.jsonl").write_text(lines, encoding="utf-8")
    config = {
        "benchmark": "omni_interactscope",
        "data": {"annotations": "annotations.jsonl"},
        "systems": {
            "seeing": "seeing.jsonl",
            "blind": {"path": "blind.jsonl", "not_evaluated": ["T8-C"]},
        },
        "judge": {"engine": "lexical"},
        "statistics": {"replicates": 20},
        "store": "store",
        "output": "run",
    }
    return omnijudge.run(build_config(config, folder, "test"))


def command(run: omnijudge.Run, *words: str) -> subprocess.CompletedProcess[str]:
    whole = [OMNIJUDGE, "interactscope", words[0], run.path, *words[1:]]
    return subprocess.run(whole, capture_output=True, text=True, check=False)


def printed(run: omnijudge.Run, *words: str) -> Any:
    done = command(run, *words, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_scene_control_of_a_run(run: omnijudge.Run) -> None:
    expected = SCENE["expected"]
    found = printed(run, "scene", "seeing", "blind")
    assert found["items"] == 20
    names = {
        "first": "with", "second": "without", "both": "both", "neither": "neither",
        "only_first": "only_with", "only_second": "only_without",
        "difference": "difference_points", "p_value": "mcnemar_exact_p",
    }  # fmt: skip
    for mine, theirs in names.items():
        assert found[mine] == pytest.approx(expected[theirs], rel=1e-9), mine
    text = command(run, "scene", "seeing", "blind").stdout
    assert "-20.0" in text
    assert "0.2188" in text
    assert scene_control(run, "seeing", "blind").p_value == found["p_value"]


@pytest.mark.parametrize("case", PAIRED)
def test_paired_scene_control_of_score_rows(case: Row) -> None:
    def scores(successes: list[int]) -> pa.Table:
        rows = [
            {
                "sample_id": f"s{i}",
                "unit_id": "t",
                "unit_kind": "target",
                "task": "T1",
                "success": s,
            }
            for i, s in enumerate(successes)
        ]
        # Neither an unscored target nor another task counts.
        rows.append({**rows[0], "unit_id": "open", "success": None, "judged": False})
        rows.append({**rows[0], "unit_id": "other", "task": "T2", "success": 1})
        return tables.make(SCORE_SCHEMA, {n: [r.get(n) for r in rows] for n in SCORE_SCHEMA.names})

    found = paired_scene_control(scores(case["with_scene"]), scores(case["without_scene"]))
    expected = case["expected"]
    assert (found.first, found.second) == (expected["with"], expected["without"])
    assert found.p_value == pytest.approx(expected["mcnemar_exact_p"], rel=1e-9)


def test_sequences_of_a_run(run: omnijudge.Run) -> None:
    expected = LAW["expected"]
    [found] = printed(run, "sequences")  # the blind system has no sequences
    assert found["system"] == "seeing"
    assert found["strata"] == LAW["strata"]
    assert found["observed"] == LAW["observed"]
    assert found["expected"] == pytest.approx(expected["expected"], rel=1e-9)
    assert [found["low"], found["high"]] == expected["interval95"]
    assert found["p_at_least"] == pytest.approx(expected["p_at_least_observed"], rel=1e-9)
    for x, p in expected["pmf"].items():
        assert found["pmf"][int(x)] == pytest.approx(p, rel=1e-9)
    text = command(run, "sequences").stdout
    assert "2.40" in text
    assert "[0, 5]" in text
    assert complete_sequences(run)[0].reference.observed == found["observed"]


def test_a_systems_own_choice_is_replayed(run: omnijudge.Run) -> None:
    # Asked at 1 s, due at 10 s: 9 s later is right on time, 5 s too early.
    right = sum(SCENE["with_scene"])
    found = printed(run, "delays", "seeing", "--delays", "5,9")
    assert [(r["successes"], r["on_time"], r["targets"]) for r in found] == [
        (0, 0, 20),
        (right, 20, 20),
    ]
    assert "Not comparable" in command(run, "delays", "seeing").stdout
    assert delay_replay(run, "seeing", [9.0])[0].successes == right


def test_the_first_response_that_calls_a_tool_is_the_choice() -> None:
    rows = [
        {"sample_id": "a", "start": 3.0, "chunk_id": 1, "response": 1, "tools": ["late"]},
        {"sample_id": "a", "start": 1.0, "chunk_id": 0, "response": 0, "tools": []},
        {"sample_id": "a", "start": 2.0, "chunk_id": 2, "response": 2, "tools": ["first"]},
        {"sample_id": "a", "start": 2.5, "chunk_id": 3, "response": 2, "tools": ["same group"]},
        {"sample_id": "b", "start": 0.1, "chunk_id": 0, "response": None, "tools": ["too early"]},
    ]
    chunks = tables.make(CHUNK_SCHEMA, {n: [r.get(n) for r in rows] for n in CHUNK_SCHEMA.names})
    assert frozen_tools(chunks) == {"a": ("first", "same group")}


def test_what_cannot_be_meant_is_said(run: omnijudge.Run, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'seeming' is not in .*; there are seeing, blind"):
        scene_control(run, "seeming", "blind")
    with pytest.raises(ConfigError, match="'T9' is unknown"):
        scene_control(run, "seeing", "blind", "T9")
    with pytest.raises(ConfigError, match="'T9' is unknown"):
        complete_sequences(run, "T9")
    with pytest.raises(DataError, match="no target of T8-C is scored for both"):
        scene_control(run, "seeing", "blind", "T8-C")
    tools = tmp_path / "tools.json"
    for text in ("{", "[]", '{"tool-00": "set_timer"}', '{"tool-00": [1]}'):
        tools.write_text(text, encoding="utf-8")
        done = command(run, "delays", "--tools", str(tools))
        assert done.returncode == 1
        assert str(tools) in done.stderr
        assert "Traceback" not in done.stderr
    for words in (
        ["delays"],
        ["delays", "seeing", "--delays", "-1"],
        ["scene", "seeing", "nobody"],
    ):
        done = command(run, *words)
        assert done.returncode == 2, words
        assert "Traceback" not in done.stderr


def test_runs_of_other_benchmarks_are_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"config": {"benchmark": "omniinteract"}}')
    with pytest.raises(ConfigError, match="a run of omniinteract"):
        complete_sequences(omnijudge.open_run(tmp_path))
    (tmp_path / "run.json").write_text('{"state": "running"}')
    with pytest.raises(DataError, match="has not ended yet"):
        complete_sequences(omnijudge.open_run(tmp_path))
