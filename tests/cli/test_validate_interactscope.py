"""Omni-InteractScope: every planted fault is named, with file and place, in one ``validate``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

OMNIJUDGE = Path(sys.executable).with_name("omnijudge")
Row = dict[str, Any]
GONE = object()
"""Value of a key that is left out."""


def omnijudge(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([OMNIJUDGE, *words], cwd=cwd, capture_output=True, text=True, check=False)


def changed(row: Row, changes: Row) -> Row:
    return {k: v for k, v in (row | changes).items() if v is not GONE}


def target(**changes: Any) -> Row:
    row = {"target_id": "t1", "order": 1, "reference": "水烧开了。", "ref_time": 10.0}
    return changed(row, changes)


def interaction(name: Any, *targets: Any, **changes: Any) -> Row:
    row = {
        "interaction_id": name, "video_id": "kitchen", "task": "T2", "language": "zh",
        "request": "水开了告诉我。", "request_time": 1.0, "clip_start": 0.0, "clip_end": 30.0,
        "targets": list(targets) or [target()],
    }  # fmt: skip
    return changed(row, changes)


def said(name: Any, *outputs: Any, **changes: Any) -> Row:
    row = {"interaction_id": name, "outputs": list(outputs) or [{"t": 9.5, "text": "水烧开了。"}]}
    return changed(row, changes)


NAN, INFINITE = float("nan"), float("inf")

# What stands in a line of annotations.jsonl, and words that one line of the report must hold
# beside the file and the number of the line.
ANNOTATIONS: dict[str, tuple[Any, list[str]]] = {
    "broken JSON": ('{"interaction_id": ', ["error", "not JSON"]),
    "deep nesting": ('{"x": ' + "[" * 5000 + "]" * 5000 + "}", ["error", "nested too deeply"]),
    "no object": ([1, 2], ["error", "must be an object", "a list"]),
    "no id": (interaction(GONE), ["error", "interaction_id is missing"]),
    "blank id": (interaction(" "), ["error", "interaction_id is blank"]),
    "id of a wrong type": (interaction(1.5), ["error", "interaction_id must be text"]),
    "id with a tab": (interaction("a\tb"), ["error", "control characters"]),
    "first of two": (interaction("twice"), []),
    "second of two": (interaction("twice"), ["error", "'twice'", "already"]),
    "unknown task": (interaction("task", task="T9"), ["error", "'T9'", "T8-C"]),
    "task of a wrong type": (interaction("tasks", task=["T1"]), ["error", "['T1']"]),
    "NaN": (interaction("nan", target(ref_time=NAN)), ["error", "targets[0]", "ref_time is nan"]),
    "infinity": (interaction("inf", clip_end=INFINITE), ["error", "clip_end is inf"]),
    "huge number": (interaction("huge", clip_end=10**400), ["error", "clip_end is 1000", "..."]),
    "time since 1970": (interaction("epoch", target(ref_time=1.7e9)), ["error", "ref_time is 1700000000.0"]),
    "time as text": (interaction("text", request_time="1"), ["error", "request_time is '1'"]),
    "time as boolean": (interaction("bool", clip_start=True), ["error", "clip_start is True"]),
    "no time": (interaction("none", target(ref_time=GONE)), ["error", "ref_time is missing"]),
    "half an interval": (interaction("half", target(interval=[1])), ["error", "interval [1]"]),
    "interval backwards": (interaction("back", target(interval=[9, 4])), ["error", "ends before"]),
    "two times": (interaction("both", target(interval=[9, 11])), ["warning", "the interval counts"]),
    "outside": (interaction("late", target(ref_time=1e4)), ["warning", "10000 s lies outside"]),
    "request outside": (interaction("soon", clip_start=5.0), ["warning", "request_time: 1 s"]),
    "clip backwards": (interaction("clip", clip_end=0.5), ["error", "clip_end 0.5 lies before 1"]),
    "targets missing": (interaction("no-t", targets=GONE), ["error", "targets must be a list"]),
    "targets no list": (interaction("obj", targets={}), ["error", "targets must be a list"]),
    "target no object": (interaction("str", "x"), ["error", "targets[0]", "found text"]),
    "target without id": (interaction("t-id", target(target_id=GONE)), ["error", "target_id is mi"]),
    "two targets of one id": (interaction("t-2", target(), target()), ["error", "targets[1]", "'t1'"]),
    "id that is kept": (interaction("kept", target(target_id="interaction")), ["error", "is kept"]),
    "order as text": (interaction("order", target(order="first")), ["error", "order", "'first'"]),
    "no reference": (interaction("ref", target(reference=" ")), ["error", "reference is missing"]),
    "reference a number": (interaction("num", target(reference=3)), ["error", "reference must be"]),
    "unknown rubric": (interaction("rub", target(rubric="poem")), ["error", "'poem'", "assistance"]),
    "rubric of T1": (interaction("tool", target(rubric="tool_set")), ["error", "belongs to T1"]),
    "T1 without tools": (interaction("t1", task="T1"), ["error", "T1 needs tools"]),
    "tools as text": (interaction("t1-s", target(tools="timer"), task="T1"), ["error", "T1 needs tools"]),
    "tools as objects": (interaction("t1-o", target(tools=[{"name": "a"}]), task="T1"), ["error", "T1 needs tools"]),
    "no tool": (interaction("t1-0", target(tools=[" "]), task="T1"), ["warning", "tools is empty"]),
    "T8-A without interval": (interaction("t8", task="T8-A"), ["error", "T8-A needs interval"]),
    "T8-A with request": (interaction("t8-r", target(interval=[9, 11], ref_time=GONE), task="T8-A"), ["warning", "request_time is not used"]),
    "window before request": (interaction("t8-b", task="T8-B", request_time=20), ["warning", "nothing can match"]),
    "valid as text": (interaction("valid", valid="yes"), ["error", "valid must be", "'yes'"]),
    "not valid": (interaction("checked", valid=False), ["info", "left out for every system"]),
    "video a list": (interaction("video", video_id=["a"]), ["error", "video_id must be text"]),
    "no video": (interaction("alone", video_id=GONE), ["warning", "a cluster of its own"]),
    "language a number": (interaction("lang", language=3), ["error", "language must be text"]),
    "request a list": (interaction("req", request=["x"]), ["error", "request must be text"]),
    "no request": (interaction("req-0", request=GONE), ["warning", "request is missing"]),
    "misspelt key": (interaction("near", requset="x"), ["warning", "'requset'", "'request'"]),
    "further key": (interaction("more", scene="dusk"), ["info", "'scene'", "passed on as a column"]),
    "key with a huge number": (interaction("70", frames=2**70), ["info", "'frames'"]),
    "key of a target": (interaction("t-key", target(note="x")), ["warning", "targets", "'note'", "not used"]),
}  # fmt: skip

# The same for a line of a file of trajectories.
TRAJECTORIES: dict[str, tuple[Any, list[str]]] = {
    "broken JSON": ('{"interaction_id": "o-broken", "outp', ["error", "not JSON"]),
    "no object": ("[2]", ["error", "is no trajectory"]),
    "outputs missing": ({"interaction_id": "o-none"}, ["error", "is no trajectory", "outputs"]),
    "no id": (said(GONE), ["error", "needs interaction_id"]),
    "outputs null": (said("o-null", outputs=None), ["error", "outputs must be a list", "null"]),
    "outputs an object": (said("o-object", outputs={}), ["error", "outputs must be a list"]),
    "output no object": (said("o-text", "x"), ["error", "outputs[0] must be an object"]),
    "time NaN": (said("o-nan", {"t": NAN}), ["warning", "t is nan", "dropped"]),
    "time as text": (said("o-time", {"t": "9"}), ["warning", "t is '9'", "dropped"]),
    "time under another key": (said("o-key", {"time": 9}), ["warning", "'time'", "not used"]),
    "time before 0": (said("o-minus", {"t": -3.0}), ["warning", "before 0 s"]),
    "time after the clip": (said("o-after", {"t": 90.0}), ["info", "after the end of the clip"]),
    "milliseconds": (said("o-ms", *[{"t": 9500}] * 3), ["warning", "milliseconds", "time_unit: ms"]),
    "text a number": (said("o-number", {"t": 9, "text": 5}), ["error", "outputs[0].text"]),
    "tools as text": (said("o-tools", {"t": 9, "tools": "timer"}), ["error", "list of names"]),
    "tools as objects": (said("o-calls", {"t": 9, "tools": [{"name": "a"}]}), ["error", "list of names"]),
    "tools under another key": (said("o-other", {"t": 9, "tool_calls": ["a"]}), ["warning", "'tool_calls'", "'tools'"]),
    "unknown granularity": (said("o-word", granularity="word"), ["error", "'word'", "fragment"]),
    "misspelt key": (said("o-near", granularty="fragment"), ["warning", "'granularty'", "'granularity'"]),
    "further key": (said("o-more", model="x"), ["info", "'model'"]),
    "not in order": (said("o-order", {"t": 9, "text": "b"}, {"t": 3, "text": "a"}), ["info", "in order of time"]),
}  # fmt: skip

# What has no line of its own, or is about two of them.
ELSEWHERE: dict[str, list[str]] = {
    "two trajectories": ["error", "said.jsonl", "'o-two'", "2 trajectories", "none is used"],
    "nobody's trajectory": ["warning", "said.jsonl", "not annotated", "nobody", "somebody"],
    "no trajectory": ["error", "said.jsonl", "'o-missing'", "missing trajectory"],
    "broken file of a folder": ["error", "all.jsonl", "line 2", "not JSON"],
    "file of another encoding": ["error", "old.jsonl", "line 1", "not JSON", "utf-8"],
    "files of no use": ["info", "folder", "all.jsonl", "not used"],
    "empty transcript": ["error", "o-missing.srt", "empty"],
    "folder about nothing": ["error", "elsewhere", "nothing here is about"],
    "empty file": ["error", "nothing.jsonl", "empty"],
    "file of something else": ["error", "chat.jsonl", "holds no trajectory"],
}


def lines(rows: list[Any]) -> str:
    return "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows)


@pytest.fixture(scope="module")
def data_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("faults")

    def write(name: str, content: bytes | str) -> None:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    trajectories = [row for row, _ in TRAJECTORIES.values()]
    about = {
        r["interaction_id"] for r in trajectories if isinstance(r, dict) and r.keys() > {"outputs"}
    }
    about |= {"o-two", "o-missing", "o-none", "o-broken"}
    usable = [interaction(name) for name in sorted(about)]
    write("annotations.jsonl", lines([row for row, _ in ANNOTATIONS.values()] + usable))
    more = [said(name) for name in ("o-two", "o-two", "nobody", "somebody")]
    write("said.jsonl", lines(trajectories + more))
    write("folder/all.jsonl", "{broken\n{broken, too\n")
    write("folder/old.jsonl", json.dumps(said("o-two"), ensure_ascii=False).encode("gb18030"))
    write("folder/o-two.json", json.dumps(said("o-two")))
    write("folder/o-missing.srt", "")
    write("elsewhere/other.jsonl", lines([said("nobody")]))
    write("nothing.jsonl", "")
    write("chat.jsonl", lines([{"messages": []}]))
    write(
        "run.yaml",
        "benchmark: omni_interactscope\n"
        "data: {annotations: annotations.jsonl}\n"
        "systems: {s: {path: said.jsonl}, f: folder, e: elsewhere, n: nothing.jsonl, c: chat.jsonl}\n"
        "judge: {engine: lexical}\n"
        "statistics: {replicates: 100}\n"
        "store: store\n"
        "output: run\n",
    )
    return folder


def test_all_faults_are_named_in_one_pass(data_set: Path) -> None:
    done = omnijudge("validate", "run.yaml", cwd=data_set)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    found = done.stdout.splitlines()
    wanted = dict(ELSEWHERE)
    for file, planted in (("annotations.jsonl", ANNOTATIONS), ("said.jsonl", TRAJECTORIES)):
        for number, (name, (_, words)) in enumerate(planted.items(), 1):
            if words:
                wanted[f"{file}: {name}"] = [f"{file}: line {number}: ", *words]
    unnamed = [
        n for n, words in wanted.items() if not any(all(w in x for w in words) for x in found)
    ]
    assert not unnamed, done.stdout


def test_a_clean_line_is_named_nowhere(data_set: Path) -> None:
    """What is said is about planted faults only."""
    done = omnijudge("validate", "run.yaml", cwd=data_set)
    clean = len(ANNOTATIONS) + 1
    assert f"annotations.jsonl: line {clean}:" not in done.stdout


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("scoring.tolerance=nan", "scoring: tolerance"),
        ("scoring.tolerance=-1", "scoring: tolerance"),
        ("scoring.tolerence=1", "did you mean 'tolerance'"),
        ("scoring.grouping_mode=loose", "'anchored' or 'chained'"),
        ("scoring.first_response_variant=best", "'late_released'"),
        ("scoring.profile=published", "no evaluator of Omni-InteractScope was published"),
        ("data.annotations=nowhere.jsonl", "there is no file"),
        ("systems.s=nowhere.jsonl", "systems.s: there is no file or folder"),
        ("systems.s.not_evaluated=[T55]", "'T55' is no task"),
    ],
)
def test_wrong_settings(data_set: Path, override: str, words: str) -> None:
    done = omnijudge("validate", "run.yaml", "-o", override, cwd=data_set)
    assert done.returncode == 2, done.stdout
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_run_refuses_and_skips(data_set: Path) -> None:
    refused = omnijudge("run", "run.yaml", cwd=data_set)
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr
    assert not (data_set / "run" / "metrics.parquet").exists()
    words = ["-o", "data.on_bad_sample=skip", "-o", "systems={s: said.jsonl, f: folder}"]
    skipped = omnijudge("run", "run.yaml", *words, cwd=data_set)
    assert skipped.returncode == 3, skipped.stderr
    shown = omnijudge("metrics", "run", "--layout", "long", "--format", "json", cwd=data_set)
    assert shown.returncode == 0
    rows = {(r["system"], r["metric"], r["group"]): r for r in json.loads(shown.stdout)}
    assert rows["s", "joint_accuracy", "T2"]["n_missing"] > 0
