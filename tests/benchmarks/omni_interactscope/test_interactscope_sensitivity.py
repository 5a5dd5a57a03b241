"""A finished run of the sample set: what sweeps ask, and the example of the documentation."""

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
ROOT = Path(__file__).parents[3]
CONFIG = "configs/interactscope.yaml"
RUN = "runs/interactscope"
SAMPLE = ROOT / "omnijudge" / "sample_data" / "omni_interactscope"
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
    # The name the documentation uses.
    (folder / "configs").mkdir()
    (folder / CONFIG).write_text(
        f"benchmark: omni_interactscope\ndata: {{root: {SAMPLE}}}\nsystems:\n{systems}"
        f"judge: {{engine: lexical}}\nstatistics: {{replicates: 20}}\nstore: {folder}/store\n"
        f"output: {folder / RUN}\n",
        encoding="utf-8",
    )
    return folder


def command(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [OMNIJUDGE, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def ran(folder: Path) -> str:
    """What the run has printed."""
    return command(folder, "run", CONFIG)


def test_sweeps_ask_for_new_pairs_only(folder: Path, ran: str) -> None:
    asked = questions()
    assert requests(ran) == len(asked)
    wanted = set().union(
        *(
            questions(**point.options)
            for sweep in benchmark.sweeps(Options())
            for point in sweep.points
        )
    )
    new = wanted - asked
    assert new
    assert requests(command(folder, "sensitivity", RUN, "--ask")) == len(new)
    again = command(folder, "sensitivity", RUN, "--ask")
    assert "requests to the judge" not in again or requests(again) == 0
    assert "Questions without a judgement" not in again


def test_the_example_of_the_documentation(
    folder: Path, ran: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "benchmarks" / "omni_interactscope.md").read_text(encoding="utf-8")
    monkeypatch.chdir(folder)
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, {})
    shown = capsys.readouterr().out.splitlines()
    assert "15.0 1 1 2" in shown  # the oven's timer, 15 s after the request
    assert [line.split()[0] for line in shown[-3:]] == list(SYSTEMS)
