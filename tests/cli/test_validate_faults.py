"""Every planted fault is named, with file and place, in one pass of ``validate``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

OMNIJUDGE = Path(sys.executable).with_name("omnijudge")


def omnijudge(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([OMNIJUDGE, *words], cwd=cwd, capture_output=True, text=True, check=False)


def row(question: Any, answer: Any, kind: str = "realtime", **more: Any) -> dict[str, Any]:
    return {
        "question_time": question, "answer_time": answer, "question_text": "水开了吗？",
        "answer_text": "Yes, the water is boiling.", "question_type": kind, **more,
    }  # fmt: skip


def chunk(start: Any, end: Any, text: str, **more: Any) -> dict[str, Any]:
    return {"timestamp": [start, end], "text": text, **more}


GOOD = [row(1, 4), row(10, 14), row(30, 35)]
SPOKEN = {"chunks": [chunk(4.5, 6, "It is boiling now."), chunk(14.2, 16, "水已经开了。")]}

# Sample id -> (scene type, annotation bytes or value, what the line must contain).
ANNOTATIONS: dict[str, tuple[str, Any, list[str]]] = {
    "good": ("multi_turn", GOOD, []),
    "broken-json": ("multi_turn", b'[{"question_time": 1,', ["broken-json.json", "line 1"]),
    "wrong-root": ("multi_turn", {"rows": []}, ["wrong-root.json", "items"]),
    "missing-file": ("multi_turn", None, ["missing-file.json", "no such file"]),
    "empty-file": ("multi_turn", b"", ["empty-file.json", "empty"]),
    "wrong-encoding": ("multi_turn", '[{"question_text": "水开了吗？"}]'.encode("gb18030"), ["wrong-encoding.json", "byte"]),
    "byte-order-mark": ("multi_turn", b"\xef\xbb\xbf" + json.dumps(GOOD).encode(), ["byte-order-mark.json", "byte-order mark"]),
    "unreadable-time": ("multi_turn", [*GOOD, row("at noon", 99)], ["unreadable-time.json", "row 3", "at noon"]),
    "not-a-number": ("multi_turn", b'[{"question_time": NaN, "answer_time": 4}]', ["not-a-number.json", "slot 1", "not finite"]),
    "negative-time": ("multi_turn", [row(-3, 4)], ["negative-time.json", "slot 1", "-3"]),
    "answer-before-question": ("multi_turn", [row(9, 4)], ["answer-before-question.json", "slot 1", "before the question"]),
    "unknown-scene": ("duet", GOOD, ["manifest.jsonl", "'duet'"]),
    "unpaired": ("nested", [row(0, 30, "proactive"), row(5, 10), row(50, 60)], ["unpaired.json", "50 s", "inner"]),
    "dropped-row": ("nested", [row(0, 30), row(20, 40), row(21, 25)], ["dropped-row.json", "20 s", "not scored"]),
    "a/b": ("multi_turn", GOOD, ["manifest.jsonl", "path separator"]),
}  # fmt: skip
TRANSCRIPTS: dict[str, tuple[Any, list[str]]] = {
    "t-broken-json": (b'{"chunks": [', ["t-broken-json.json", "line 1"]),
    "t-empty": (b"", ["t-empty.json", "empty"]),
    "t-encoding": ('{"chunks": "水开了吗？"}'.encode("gb18030"), ["t-encoding.json", "byte"]),
    "t-missing": (None, ["t-missing", "no such file"]),
    "t-not-a-number": (b'{"chunks": [{"timestamp": [NaN, 2], "text": "a"}]}', ["t-not-a-number.json"]),
    "t-negative": ({"chunks": [chunk(-2, 3, "early")]}, ["t-negative.json", "negative"]),
    "t-unreadable-time": ({"chunks": [chunk("soon", 3, "lost")]}, ["t-unreadable-time.json", "readable time"]),
    "t-reversed": ({"chunks": [chunk(6, 4, "backwards")]}, ["t-reversed.json", "swapped"]),
    "t-words-outside": (
        {"chunks": [chunk(4, 6, "now", aligned_words=[{"start": 40, "end": 41, "text": "now"}])]},
        ["t-words-outside.json", "outside"],
    ),
    "t-mark": (b"\xef\xbb\xbf" + json.dumps(SPOKEN).encode(), ["t-mark.json", "byte-order mark"]),
}  # fmt: skip


def write(path: Path, value: Any) -> None:
    if value is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())


@pytest.fixture
def data_set(tmp_path: Path) -> Path:
    manifest = []

    def listed(
        sample: str, annotation: str, transcript: str, scene: str, model: str = "left"
    ) -> None:
        manifest.append(
            {"sample_id": sample, "gt_json": annotation, "model_json": transcript,
             "scene_type": scene, "model": model}
        )  # fmt: skip

    for name, (scene, value, _) in ANNOTATIONS.items():
        file = f"gt/{name.replace('/', '-')}.json"
        write(tmp_path / file, value)
        write(tmp_path / "out" / f"{name.replace('/', '-')}.json", SPOKEN)
        listed(name, file, f"out/{name.replace('/', '-')}.json", scene)
    for name, (value, _) in TRANSCRIPTS.items():
        write(tmp_path / "gt" / f"{name}.json", GOOD)
        write(tmp_path / "out" / f"{name}.json", value)
        listed(name, f"gt/{name}.json", f"out/{name}.json", "multi_turn")
    listed("good", "gt/good.json", "out/good.json", "multi_turn")
    listed("good", "gt/good.json", "out/good.json", "multi_turn", "stranger")
    # The same words under two samples: one of the two transcripts is another's.
    long = {"chunks": [chunk(4 + i, 5 + i, f"Sentence {i} about the kettle.") for i in range(12)]}
    for name in ("twin-1", "twin-2"):
        write(tmp_path / "gt" / f"{name}.json", [row(1, 4, answer_text=f"Answer of {name}.")])
        write(tmp_path / "out" / f"{name}.json", long)
        listed(name, f"gt/{name}.json", f"out/{name}.json", "multi_turn")
    lines = "".join(json.dumps(m) + "\n" for m in manifest)
    (tmp_path / "manifest.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "run.yaml").write_text(
        "benchmark: omniinteract\n"
        "data: {manifest: manifest.jsonl}\n"
        "systems: {left: {format: omniinteract}}\n"
        "judge: {engine: lexical}\n"
        "statistics: {replicates: 100}\n"
        "store: store\n"
        "output: run\n",
        encoding="utf-8",
    )
    return tmp_path


def test_all_faults_are_named_in_one_pass(data_set: Path) -> None:
    text = (data_set / "run.yaml").read_text(encoding="utf-8")
    (data_set / "run.yaml").write_text(
        text.replace("systems: {left:", "systms: 3\nsystems: {left: {}, left:"), encoding="utf-8"
    )
    done = omnijudge("validate", "run.yaml", cwd=data_set)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    lines = done.stdout.splitlines()
    wanted = {n: w for n, (_, _, w) in ANNOTATIONS.items() if w}
    wanted |= {n: w for n, (_, w) in TRANSCRIPTS.items()}
    wanted |= {
        "duplicate": ["manifest.jsonl", "'good'", "listed twice"],
        "unknown system": ["manifest.jsonl", "'stranger'"],
        "another sample": ["twin-", "twin-2"],
        "unknown key": ["run.yaml", "systms", "systems"],
        "two systems of one name": ["run.yaml", "line", "'left'", "twice"],
    }
    unnamed = [
        n for n, words in wanted.items() if not any(all(w in x for w in words) for x in lines)
    ]
    assert not unnamed, done.stdout


def test_run_refuses_and_skips(data_set: Path) -> None:
    refused = omnijudge("run", "run.yaml", cwd=data_set)
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr
    assert not (data_set / "run" / "metrics.parquet").exists()
    skipped = omnijudge("run", "run.yaml", "-o", "data.on_bad_sample=skip", cwd=data_set)
    assert skipped.returncode == 3, skipped.stderr
    listed = json.loads((data_set / "run" / "run.json").read_text(encoding="utf-8"))
    assert listed["counts"]["samples"] > 10
    shown = omnijudge("metrics", "run", "--format", "json", cwd=data_set)
    assert shown.returncode == 0
    assert json.loads(shown.stdout)
