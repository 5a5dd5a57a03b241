"""Many simulated transcripts on disk, and the command that writes them."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from omnijudge.benchmarks.omniinteract.layout import read_manifest
from omnijudge.errors import ConfigError, DataError
from omnijudge.simulate import TEMPERS, Recording, simulate_outputs
from omnijudge.simulate_command import add_arguments, run

SAMPLE = Path(__file__).parents[2] / "omnijudge" / "sample_data" / "omniinteract"


def recordings() -> list[Recording]:
    rows = [
        {
            "question_time": 5.0 + 20 * n,
            "question_text": "What is on the table?",
            "answer_time": 9.0 + 20 * n,
            "answer_text": "Two green plates and a glass of water are on the table.",
            "question_type": "realtime",
            "is_interrupted": n == 1,
        }
        for n in range(4)
    ]
    return [Recording(f"clip {n}", rows[: n + 1], "multi_turn") for n in range(4)]


def files(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*.json*"))
    }


def command(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return run(parser.parse_args(arguments))


def test_a_file_does_not_depend_on_the_others(tmp_path: Path) -> None:
    everything = simulate_outputs(recordings(), tmp_path / "a", TEMPERS, 3)
    assert everything.transcripts == 4 * len(TEMPERS)
    assert everything.problems == ()
    some = {name: TEMPERS[name] for name in ("spilling", "late")}
    simulate_outputs(reversed(recordings()[1:3]), tmp_path / "b", some, 3)
    whole, part = files(tmp_path / "a"), files(tmp_path / "b")
    assert len(part) == 4
    assert part.items() <= whole.items()
    chunks = sum(len(json.loads(data)["chunks"]) for data in whole.values())
    assert chunks == everything.chunks


def test_systems_of_one_temper_differ(tmp_path: Path) -> None:
    twins = {"one": TEMPERS["talkative"], "two": TEMPERS["talkative"]}
    simulate_outputs(recordings(), tmp_path, twins)
    assert files(tmp_path / "one") != files(tmp_path / "two")


def test_unusable_annotations_are_named_and_left_out(tmp_path: Path) -> None:
    bad = [Recording("single", [], "nested", "single.json"), Recording("odd", [], "solo")]
    done = simulate_outputs([*bad, *recordings()], tmp_path, {"late": TEMPERS["late"]})
    assert [p.sample_id for p in done.problems] == ["single", "odd"]
    assert "single.json" in str(done.problems[0])
    assert done.sample_ids == tuple(r.sample_id for r in recordings())
    assert len(files(tmp_path)) == 4


PROGRAM = """
import argparse, sys
from omnijudge.simulate_command import add_arguments, run
parser = argparse.ArgumentParser()
add_arguments(parser)
sys.exit(run(parser.parse_args(sys.argv[1:])))
"""


def test_processes_agree_whatever_the_hash_seed(tmp_path: Path) -> None:
    arguments = ["--root", str(SAMPLE / "data"), "--tempers", "talkative,spilling", "--words"]
    found: list[dict[str, Any]] = []
    for number in (1, 2):
        out = tmp_path / str(number)
        environment = {**os.environ, "PYTHONHASHSEED": str(number)}
        program = [sys.executable, "-c", PROGRAM, *arguments, "--seed", "5", "--out", str(out)]
        subprocess.run(program, check=True, env=environment, capture_output=True)
        found.append(files(out))
    assert found[0] == found[1]
    assert command(*arguments, "--seed", "5", "--out", str(tmp_path / "3")) == 0
    assert files(tmp_path / "3") == found[0]
    assert command(*arguments, "--seed", "6", "--out", str(tmp_path / "3")) == 0
    assert files(tmp_path / "3") != found[0]


def test_command_writes_a_manifest_that_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "made"
    assert command("--root", str(SAMPLE / "data"), "--out", str(out), "--copies", "2") == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "17 samples, 204 transcripts" in shown.out
    listing = read_manifest(out / "manifest.jsonl", set())
    assert listing.problems == []
    assert len(listing.samples) == 17
    assert listing.systems[:2] == ["punctual-001", "punctual-002"]
    assert len(listing.systems) == 2 * len(TEMPERS)
    for sample in listing.samples.values():
        assert sample.annotation.is_file()
        assert all(path is not None and path.is_file() for path in sample.outputs.values())
    maths = [s for s in listing.samples.values() if s.is_math]
    assert len(maths) == 3
    # The manifest that was written can be simulated again.
    again = tmp_path / "again"
    manifest = str(out / "manifest.jsonl")
    assert command("--manifest", manifest, "--out", str(again), "--tempers", "late") == 0
    assert len(files(again / "late")) == 17


def test_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, out = str(SAMPLE / "data"), str(tmp_path / "out")
    with pytest.raises(ConfigError, match="temper 'rude' is unknown"):
        command("--root", root, "--out", out, "--tempers", "late,rude")
    with pytest.raises(ConfigError, match="--copies 0"):
        command("--root", root, "--out", out, "--copies", "0")
    with pytest.raises(ConfigError, match="no such folder"):
        command("--root", str(tmp_path / "nowhere"), "--out", out)
    good = tmp_path / "good.json"
    good.write_text(json.dumps(recordings()[2].annotation))
    manifest = tmp_path / "manifest.jsonl"
    rows = [
        {"sample_id": "good", "gt_json": "good.json", "scene_type": "multi_turn"},
        {"sample_id": "gone", "gt_json": "gone.json", "scene_type": "multi_turn"},
        {"sample_id": "nest", "gt_json": "good.json", "scene_type": "nested"},
    ]
    manifest.write_text("\n".join(map(json.dumps, rows)))
    assert command("--manifest", str(manifest), "--out", out, "--tempers", "late") == 3
    shown = capsys.readouterr()
    assert "gone.json" in shown.err
    assert "has no inner row" in shown.err
    assert "2 problems" in shown.out
    manifest.write_text(json.dumps(rows[1]))
    with pytest.raises(DataError, match=r"no sample can be simulated:\n.*gone\.json"):
        command("--manifest", str(manifest), "--out", out)
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        command("--root", root, "--out", str(blocked / "out"))
