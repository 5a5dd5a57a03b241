"""The golden set through the installed command, canned answers replayed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from golden.interactscope_run import GOLDEN, SETTINGS, SYSTEMS, check_summary, golden_summary, load

ROOT = Path(__file__).parents[3]
OMNIJUDGE = Path(sys.executable).with_name("omnijudge")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a configuration and the golden answers as replay rows."""
    folder = tmp_path_factory.mktemp("command")
    script = ROOT / "scripts" / "golden_answers_interactscope.py"
    files = sorted(map(str, (GOLDEN / "judge").glob("*.jsonl")))
    subprocess.run([sys.executable, script, *files, folder / "answers.jsonl"], check=True)
    values = {
        "benchmark": "omni_interactscope",
        "data": {"annotations": str(GOLDEN / "annotations.jsonl")},
        "systems": {
            "alpha": str(GOLDEN / "responses" / "alpha.jsonl"),
            "beta": {"path": str(GOLDEN / "responses" / "beta.jsonl"), "not_evaluated": ["T5"]},
        },
        "judge": {"engine": "replay", "answers": "answers.jsonl"},
        "statistics": {"replicates": 20},
        "limits": {"max_invalid": 1},
    }
    (folder / "config.yaml").write_text(json.dumps(values), encoding="utf-8")
    return folder


Runs = Callable[[str], Path]


@pytest.fixture(scope="module")
def runs(folder: Path) -> Runs:
    """Makes the run of a setting (a key of ``SETTINGS``), once."""

    @cache
    def made(name: str) -> Path:
        output = name.replace(" ", "_")
        options = [f"scoring.{key}={value}" for key, value in SETTINGS[name].items()]
        words = [w for o in (f"output={output}", *options) for w in ("-o", o)]
        command(folder, "run", "config.yaml", *words)
        return folder / output

    return made


def command(folder: Path, *words: str) -> str:
    """What the installed command prints."""
    done = subprocess.run(
        [OMNIJUDGE, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", SETTINGS)
def test_primary_sweep_and_variants(runs: Runs, name: str) -> None:
    run = runs(name)
    metrics = pq.read_table(run / "metrics.parquet").to_pylist()
    scores = pq.read_table(run / "scores.parquet")
    for system in SYSTEMS:
        values: dict[Any, Any] = {
            (r["metric"], r["group"]): r["value"] for r in metrics if r["system"] == system
        }
        own = scores.filter(pc.equal(scores["system"], system))
        check_summary(values, golden_summary(system, name), own)


def test_questions_are_the_lazy_ones(runs: Runs) -> None:
    """What is asked is exactly what a lazy scorer needs (``judge_calls``)."""
    asked = pq.read_table(runs("primary summary") / "questions.parquet").to_pylist()
    for system in SYSTEMS:
        wanted = [
            (i["interaction_id"], target, str(output))
            for i in load(f"expected/{system}.json")["primary"]["interactions"]
            for target, output in i["judge_calls"]
        ]
        own = [r for r in asked if r["system"] == system]
        assert sorted((r["sample_id"], r["unit_id"], r["item"]) for r in own) == sorted(wanted)


def test_fixed_delay_replay(runs: Runs) -> None:
    case = load("controls_cases.json")["fixed_delay"]
    run = runs("primary summary")
    (run.parent / "tools.json").write_text(json.dumps(case["frozen_tools"]), encoding="utf-8")
    delays = ",".join(str(row["delay"]) for row in case["expected"])
    words = ["delays", run.name, "--tools", "tools.json", "--delays", delays, "--format", "json"]
    assert json.loads(command(run.parent, "interactscope", *words)) == case["expected"]


def test_sequences_of_the_golden_systems(runs: Runs) -> None:
    run = runs("primary summary")
    found = command(run.parent, "interactscope", "sequences", run.name, "--format", "json")
    rows = pq.read_table(run / "metrics.parquet").to_pylist()
    expected = {r["system"]: r["value"] for r in rows if r["metric"] == "expected_complete"}
    for row in json.loads(found):
        summary = load(f"expected/{row['system']}.json")["primary"]["summary"]["tasks"]["T8-C"]
        assert row["observed"] == summary["complete_sequences"]
        assert row["expected"] == pytest.approx(expected.pop(row["system"]))
        assert sum(s["n"] for s in row["strata"]) == summary["interactions"]
    assert not expected
