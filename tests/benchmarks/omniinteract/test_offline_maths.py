"""Offline maths: records, what is asked, the average, and how it stands beside the rest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from golden.omniinteract_run import GOLDEN

import omnijudge
from omnijudge.benchmarks.omniinteract import benchmark
from omnijudge.config import RunConfig, build_config
from omnijudge.errors import ConfigError

OMNIJUDGE = Path(sys.executable).with_name("omnijudge")
OFFLINE = GOLDEN / "offline_math"
WANT = json.loads((OFFLINE / "expected.json").read_text(encoding="utf-8"))


def golden_rows(system: str) -> list[dict[str, Any]]:
    lines = (OFFLINE / "judge_answers.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        {
            "system": system,
            "sample_id": row["clip_name"],
            "unit_id": "1",
            "stage": row["stage"],
            "raw": row["raw"],
        }
        for row in map(json.loads, lines)
    ]


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One recording of the maths subset, and the golden records of one system."""
    folder = tmp_path_factory.mktemp("offline")
    annotations = folder / "data" / "1q1a_math" / "annotations"
    annotations.mkdir(parents=True)
    row = {"question_time": "0:05", "answer_time": "0:10", "question_text": "How many edges?"}
    (annotations / "0001.json").write_text(json.dumps([row]), encoding="utf-8")
    (folder / "outputs").mkdir()
    (folder / "outputs" / "1q1a_math__videos__0001.json").write_text(
        '{"chunks": []}', encoding="utf-8"
    )
    write_lines(folder / "answers.jsonl", golden_rows("m"))
    return folder


def config(workspace: Path, records: Path, **changes: Any) -> dict[str, Any]:
    return {
        "benchmark": "omniinteract",
        "data": {"root": str(workspace / "data"), "offline": str(records), "on_bad_sample": "skip"},
        "systems": {"m": str(workspace / "outputs")},
        "judge": {"engine": "replay", "answers": str(workspace / "answers.jsonl")},
        "scoring": {"profile": "published"},
        "statistics": {"replicates": 50},
        "limits": {"max_invalid": 1, "max_unscored": 10},
        "output": "out",
        **changes,
    }


def run(workspace: Path, folder: Path, records: Path, **changes: Any) -> Any:
    path = folder / "config.json"
    path.write_text(json.dumps(config(workspace, records, **changes)), encoding="utf-8")
    return omnijudge.run(path)


def quality(metrics: Any, system: str = "m") -> dict[str, Any]:
    rows = metrics.to_pylist()
    (row,) = [r for r in rows if (r["system"], r["metric"]) == (system, "offline_quality")]
    assert row["group"] == "math"
    return row  # type: ignore[no-any-return]


def test_golden_records_through_the_command(workspace: Path, tmp_path: Path) -> None:
    values = config(workspace, OFFLINE / "records.json")
    (tmp_path / "config.yaml").write_text(json.dumps(values), encoding="utf-8")
    done = subprocess.run(
        [OMNIJUDGE, "run", "config.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done.stderr  # two records failed
    found = quality(pq.read_table(tmp_path / "out" / "metrics.parquet"))
    assert found["value"] == pytest.approx(WANT["average"], abs=1e-9)
    assert (found["n_units"], found["n_unscored"]) == (WANT["ok_records"], WANT["judge_errors"])
    assert found["coverage"] == pytest.approx(11 / 12)
    # The unscored one at 0 and at 1: 11 scored ones add up to 6.93.
    assert found["bound_low"] == pytest.approx(6.93 / 12)
    assert found["bound_high"] == pytest.approx(7.93 / 12)
    assert found["n_clusters"] == 7  # clips of one video stand together
    scores = pq.read_table(tmp_path / "out" / "scores.parquet")
    clips = scores.filter(pc.equal(scores["unit_kind"], "offline")).to_pylist()
    for item in WANT["items"]:
        own = [c for c in clips if c["sample_id"] == item["clip_name"]]
        if item["status"] == "error":
            assert own == []
        elif item["status"] == "judge_error":
            assert [(c["judged"], c["s_core"]) for c in own] == [(False, None)]
        else:
            assert [c["s_core"] for c in own] == [pytest.approx(item["score"], abs=1e-9)]
    blank = next(c for c in clips if c["sample_id"] == "0003__q2.mp4")
    assert (blank["judged"], blank["s_core"]) == (None, 0.0)  # a blank answer is not asked about
    shown = subprocess.run(
        [OMNIJUDGE, "show", "out", "m/0001__q1.mp4/1"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "slope" in shown.stdout, shown.stderr


def test_what_the_judge_is_shown(workspace: Path) -> None:
    values = config(workspace, OFFLINE / "records.json")
    run_config = build_config(values, workspace, "c")
    part, options = partition(run_config)
    rows = benchmark.pending(part, options)
    asked = part.stages.take(rows)["sample_id"].to_pylist()
    records = json.loads((OFFLINE / "records.json").read_text(encoding="utf-8"))
    answered = [
        r["clip_name"] for r in records if r["status"] == "ok" and r["model_answer"].strip()
    ]
    assert sorted(asked) == sorted(answered)
    known = {r["clip_name"]: r for r in records}
    for sample, prompt in zip(asked, benchmark.prompts(part, rows, options), strict=True):
        record = known[sample]
        assert prompt.stage == "core"
        shown = prompt.variables
        assert shown["text"] == shown["context"] == record["model_answer"].strip()
        assert shown["question"] == record["question_text"]
        assert shown["target_answer"] == record["ground_truth"]
        assert (shown["scene_type"], shown["later_answers"]) == ("offline_math", [])


def partition(run_config: RunConfig) -> tuple[Any, Any]:
    from omnijudge.benchmarks.base import Partition

    options = benchmark.options.model_validate(run_config.scoring).resolved()
    annotations = benchmark.read(run_config)
    ids = list(annotations.samples)
    outputs = benchmark.read_outputs(
        run_config, annotations, "m", run_config.systems["m"], sorted(ids)
    )
    empty = benchmark.stage_schema.empty_table()
    part = Partition("m", annotations.units, outputs.outputs, outputs.chunks, empty)
    chunks, stages = benchmark.match(part, options)
    assert chunks.filter(pc.is_valid(chunks["unit_id"])).num_rows == 12
    return Partition("m", part.units, part.outputs, chunks, stages), options


@pytest.mark.parametrize(
    ("profile", "value", "units"), [("published", 0.75, 2), ("robust", 0.5, 3), ("paper", 0.5, 3)]
)
def test_a_failed_inference(
    workspace: Path, tmp_path: Path, profile: str, value: float, units: int
) -> None:
    """It leaves the published average; elsewhere it is worth silence, like online."""
    records = [
        {"clip_name": f"c{i}", "ground_truth": "g", "model_answer": "a", "status": status}
        for i, status in enumerate(("ok", "ok", "error"))
    ]
    raws = ['{"score": 1, "trigger_phrase": "", "spoiler": false}']
    raws += ['{"score": 0.5, "trigger_phrase": "", "spoiler": false}']
    answers = [
        {"system": "m", "sample_id": f"c{i}", "unit_id": "1", "stage": "core", "raw": raw}
        for i, raw in enumerate(raws)
    ]
    path = write_lines(tmp_path / "records.jsonl", records)
    judge = {"engine": "replay", "answers": str(write_lines(tmp_path / "a.jsonl", answers))}
    done = run(workspace, tmp_path, path, judge=judge, scoring={"profile": profile})
    found = quality(done.metrics)
    assert (found["value"], found["n_units"], found["n_missing"]) == (value, units, 1)


def test_several_systems(workspace: Path, tmp_path: Path) -> None:
    """Records say whose they are; a system without records has no offline quality."""
    base = {"clip_name": "c", "question_text": "q", "ground_truth": "g", "status": "ok"}
    records = [{**base, "model": "m", "model_answer": "  "}, {**base, "model": "n"}]
    records += [{**base, "clip_name": "d", "model": "n", "model_answer": ""}]
    path = write_lines(tmp_path / "records.jsonl", records)
    outputs = str(workspace / "outputs")
    systems = {"m": outputs, "n": outputs, "without": outputs}
    found = run(workspace, tmp_path, path, systems=systems)
    values = [quality(found.metrics, s) for s in ("m", "n", "without")]
    assert [v["value"] for v in values] == [0.0, 0.0, None]
    assert [v["n_units"] for v in values] == [1, 2, 0]  # m has no record of d
    assert [v["n_missing"] for v in values] == [1, 0, 0]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"status": "ok"}, "clip_name is missing"),
        ({"clip_name": "a/b"}, "path separator"),
        ({"clip_name": "1q1a_math__videos__0001"}, "is the id of a recording"),
        ({"clip_name": "c", "model": "other"}, "'other', which the run does not have"),
        ("text", "a record must be an object"),
    ],
)
def test_unusable_records(workspace: Path, tmp_path: Path, record: Any, message: str) -> None:
    path = tmp_path / "records.json"
    path.write_text(json.dumps([record, {"clip_name": "fine"}]), encoding="utf-8")
    found = benchmark.read(build_config(config(workspace, path), tmp_path, "c"))
    assert [message in str(p) for p in found.problems if p.level == "error"] == [True]


def test_clips_that_stand_twice(workspace: Path, tmp_path: Path) -> None:
    records = [{"clip_name": "c", "status": "ok"}] * 2
    records += [{"clip_name": "c", "status": "ok", "question_text": "another"}]
    path = write_lines(tmp_path / "records.jsonl", records)
    found = benchmark.read(build_config(config(workspace, path), tmp_path, "c"))
    messages = [str(p) for p in found.problems if p.level == "error"]
    assert ["stands twice" in m or "another question" in m for m in messages] == [True, True]


def test_records_that_do_not_say_whose_they_are(workspace: Path, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "records.jsonl", [{"clip_name": "c", "status": "ok"}])
    values = config(workspace, path, systems={"m": "x", "n": "y"})
    with pytest.raises(ConfigError, match="does not say which system answered"):
        benchmark.read(build_config(values, tmp_path, "c"))


def test_validate_passes_over_clips(workspace: Path, tmp_path: Path) -> None:
    """Clips have no time line: the checks of transcripts are about recordings alone."""
    (tmp_path / "config.yaml").write_text(
        json.dumps(config(workspace, OFFLINE / "records.json")), encoding="utf-8"
    )
    done = subprocess.run(
        [OMNIJUDGE, "validate", "config.yaml"], cwd=tmp_path, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert "m: no speech" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("other", ["omni_interactscope", "omni_duplexeval"])
def test_other_benchmarks_have_no_offline_records(tmp_path: Path, other: str) -> None:
    from omnijudge.benchmarks import get_benchmark

    (tmp_path / "x").touch()
    values = {
        "benchmark": other,
        "data": {"annotations": "a.jsonl", "offline": "records.json"},
        "systems": {"m": "x"},
        "output": "out",
    }
    with pytest.raises(ConfigError, match="only omniinteract has offline records"):
        get_benchmark(other).read(build_config(values, tmp_path, "c"))


def test_controls_answer_clips_too(workspace: Path, tmp_path: Path) -> None:
    """The oracle says the target answer, the silent row nothing, the shuffled one another's."""
    base = {"status": "ok", "question_text": "q"}
    targets = ("a square", "two circles", "seven lines")
    records = [
        {**base, "clip_name": f"c{i}", "ground_truth": t, "model_answer": t}
        for i, t in enumerate(targets)
    ]
    path = write_lines(tmp_path / "records.jsonl", records)
    controls = ["oracle", "silent", "shuffled"]
    done = run(
        workspace, tmp_path, path, controls=controls, judge={"engine": "lexical"},
        store=str(tmp_path / "store"),
    )  # fmt: skip
    values = {
        s: quality(done.metrics, s)["value"] for s in ("m", *map("control:{}".format, controls))
    }
    assert (values["m"], values["control:oracle"], values["control:silent"]) == (1.0, 1.0, 0.0)
    assert values["control:shuffled"] < 0.5
