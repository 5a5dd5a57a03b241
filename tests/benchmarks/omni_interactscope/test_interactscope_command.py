"""The golden set once through the installed command, canned answers replayed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from golden.interactscope_run import GOLDEN, SETTINGS, SYSTEMS, check_summary, golden_summary

import omnijudge

ROOT = Path(__file__).parents[3]


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
        "output": "out",
    }
    (folder / "config.yaml").write_text(json.dumps(values), encoding="utf-8")
    return folder


def overrides(name: str) -> list[str]:
    return [f"scoring.{key}={value}" for key, value in SETTINGS[name].items()]


def check(run: Any, name: str) -> None:
    rows = run.metrics.to_pylist()
    for system in SYSTEMS:
        values = {(r["metric"], r["group"]): r["value"] for r in rows if r["system"] == system}
        scores = run.scores.filter(pc.equal(run.scores["system"], system))
        check_summary(values, golden_summary(system, name), scores)


def test_primary_run_by_the_command_itself(folder: Path) -> None:
    command = Path(sys.executable).with_name("omnijudge")
    done = subprocess.run(
        [command, "run", folder / "config.yaml", "--no-store", "-o", "output=primary"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    check(omnijudge.open_run(folder / "primary"), "primary summary")


@pytest.mark.parametrize("name", [n for n in SETTINGS if n != "primary summary"])
def test_sweep_and_variants_by_the_library(folder: Path, name: str) -> None:
    output = f"output={name.replace(' ', '_')}"
    run = omnijudge.run(folder / "config.yaml", [output, *overrides(name)])
    check(run, name)
