"""However a command ends: one sentence, an exit code, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

OMNIJUDGE = Path(sys.executable).with_name("omnijudge")
SAMPLE = Path(__file__).parents[2] / "omnijudge" / "sample_data" / "omniinteract"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    values = {
        "benchmark": "omniinteract",
        "data": {"root": str(SAMPLE / "data")},
        "systems": {"chatty": str(SAMPLE / "outputs" / "chatty")},
        "judge": {"engine": "lexical"},
        "statistics": {"replicates": 20},
        "store": "store",
        "output": "run",
    }
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    return tmp_path


def call(folder: Path, *words: str, stdout: int | None = subprocess.PIPE) -> tuple[int, str]:
    done = subprocess.run(
        [OMNIJUDGE, *words], cwd=folder, stdout=stdout, stderr=subprocess.PIPE, text=True
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def test_an_output_that_cannot_be_made_is_named(folder: Path) -> None:
    code, said = call(folder, "run", "run.yaml", "-o", "output=run.yaml/x")
    assert code == 1
    assert "run.yaml/x" in said


def test_a_full_disk_behind_the_output_is_said(folder: Path) -> None:
    assert call(folder, "run", "run.yaml")[0] == 0
    with open("/dev/full", "w") as full:
        code, said = call(folder, "metrics", "run", stdout=full.fileno())
    assert code == 1
    assert "No space left" in said


@pytest.mark.parametrize(("words", "expected"), [((), 0), (("-o", "judge.nonsense=1"), 2)])
def test_a_reader_that_has_gone_hides_no_failure(
    folder: Path, words: tuple[str, ...], expected: int
) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        code, _ = call(folder, "validate", "run.yaml", *words, stdout=write)
    finally:
        os.close(write)
    assert code == expected


@pytest.mark.parametrize("value", ["seed=-1", "replicates=10000000000"])
def test_numbers_that_cannot_work_are_refused(folder: Path, value: str) -> None:
    code, said = call(folder, "run", "run.yaml", "-o", f"statistics.{value}")
    assert code == 2
    assert f"statistics.{value.split('=')[0]}" in said


@pytest.mark.parametrize("command", ["run", "validate"])
def test_a_needed_key_that_is_misspelt_is_recognised(folder: Path, command: str) -> None:
    text = (folder / "run.yaml").read_text(encoding="utf-8")
    (folder / "bad.yaml").write_text(text.replace("output:", "outputt:"), encoding="utf-8")
    code, said = call(folder, command, "bad.yaml")
    assert code == 2
    assert "outputt: unknown key; did you mean 'output'?" in said


def test_status_knows_what_would_be_asked_again(folder: Path) -> None:
    (folder / "answers.jsonl").touch()
    replay = ("-o", "judge.engine=replay", "-o", "judge.answers=answers.jsonl")
    call(folder, "run", "run.yaml", *replay)
    config = yaml.safe_load((folder / "run.yaml").read_text(encoding="utf-8"))
    config["judge"] = {"engine": "replay", "answers": "answers.jsonl"}
    (folder / "again.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    done = subprocess.run(
        [OMNIJUDGE, "status", "run", "again.yaml"], cwd=folder, capture_output=True, text=True
    )
    assert "without an answer" in done.stdout, done.stdout + done.stderr
