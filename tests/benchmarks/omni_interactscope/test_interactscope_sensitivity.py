"""Sweeps over a finished run cost only the pairs that no point before them has asked about."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from golden.interactscope_run import matched

from omnijudge.benchmarks.omni_interactscope import benchmark
from omnijudge.benchmarks.omni_interactscope.options import Options
from omnijudge.config import build_config

OMNIJUDGE = Path(sys.executable).with_name("omnijudge")
SAMPLE = Path(__file__).parents[3] / "omnijudge" / "sample_data" / "omni_interactscope"
SYSTEMS = ("steady", "eager", "drowsy")

Question = tuple[tuple[str, Any], ...]


def questions(**scoring: Any) -> set[Question]:
    """What a lazy judge has to be asked under some options, each question once."""
    config = build_config(
        {
            "benchmark": "omni_interactscope",
            "data": {"root": "."},
            "systems": {s: f"responses/{s}.jsonl" for s in SYSTEMS},
            "scoring": scoring,
            "output": "unused",
        },
        SAMPLE,
        "test",
    )
    found: set[Question] = set()
    for system in SYSTEMS:
        part, options = matched(system, config)
        rows = benchmark.pending(part, options)
        found |= {tuple(p.variables.items()) for p in benchmark.prompts(part, rows, options)}
    return found


def requests(text: str) -> int:
    found = re.search(r"(\d+) requests to the judge|requests to the judge (\d+)", text)
    assert found, text
    return int(found[1] or found[2])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sensitivity")
    systems = "".join(f"  {s}: {SAMPLE}/responses/{s}.jsonl\n" for s in SYSTEMS)
    (folder / "run.yaml").write_text(
        f"benchmark: omni_interactscope\ndata: {{root: {SAMPLE}}}\nsystems:\n{systems}"
        "judge: {engine: lexical}\nstatistics: {replicates: 20}\nstore: store\noutput: run\n",
        encoding="utf-8",
    )
    return folder


def command(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [OMNIJUDGE, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_only_new_pairs_are_asked(folder: Path) -> None:
    asked = questions()
    assert requests(command(folder, "run", "run.yaml")) == len(asked)
    wanted = set().union(
        *(
            questions(**point.options)
            for sweep in benchmark.sweeps(Options())
            for point in sweep.points
        )
    )
    new = wanted - asked
    assert new
    assert requests(command(folder, "sensitivity", "run", "--ask")) == len(new)
    again = command(folder, "sensitivity", "run", "--ask")
    assert "requests to the judge" not in again or requests(again) == 0
    assert "Questions without a judgement" not in again
