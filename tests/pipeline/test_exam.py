"""The exam of a judge: bundled questions, the command, and the gate before a run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from omnijudge.benchmarks import get_benchmark
from omnijudge.benchmarks.omniinteract import benchmark
from omnijudge.config import JudgeConfig
from omnijudge.errors import ConfigError
from omnijudge.exam import faults, load_exam
from omnijudge.judging.prompts import load_pack
from omnijudge.values import has_cjk

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "omnijudge" / "sample_data" / "omniinteract"
COMMAND = Path(sys.executable).with_name("omnijudge")

EXAM = load_exam(benchmark)


def write_config(folder: Path, judge: dict[str, Any]) -> Path:
    values = {
        "benchmark": "omniinteract",
        "data": {"root": str(SAMPLE / "data")},
        "systems": {"sleepy": str(SAMPLE / "outputs" / "sleepy")},
        "judge": judge,
        "statistics": {"replicates": 100},
        "store": "store",
        "output": "run",
    }
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return path


def examinee(**options: Any) -> dict[str, Any]:
    return {"engine": "fakes.exam_engine:ExamEngine", "engine_options": options}


def omnijudge(*words: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    return subprocess.run(
        [COMMAND, *words], capture_output=True, text=True, env=environment, timeout=120
    )


def asked(folder: Path) -> list[str]:
    log = folder / "log.txt"
    return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


# The questions


def test_there_are_a_hundred_questions_half_in_each_language() -> None:
    counted = Counter((q.prompt.stage, q.prompt.language) for q in EXAM.questions)
    assert len(EXAM.questions) == 100
    for stage in benchmark.stages:
        assert counted[stage, "en"] == counted[stage, "zh"] >= 14


def test_every_question_stands_once_and_in_its_language() -> None:
    texts = [(q.prompt.stage, q.prompt.variables["question"], q.prompt.variables["text"])
             for q in EXAM.questions]  # fmt: skip
    assert len(set(texts)) == len(texts)
    for q in EXAM.questions:
        chinese = q.prompt.language == "zh"
        assert has_cjk(q.prompt.variables["question"]) == chinese, q.id
        assert has_cjk(q.prompt.variables["text"]) == chinese, q.id


def test_every_kind_of_verdict_is_expected() -> None:
    for language in ("en", "zh"):
        own = [q for q in EXAM.questions if q.prompt.language == language]
        flags = Counter(q.expect["flag"] for q in own if q.prompt.stage == "early")
        assert flags["neutral"] == flags["hallucination"] == 8
        core = [q.expect for q in own if q.prompt.stage == "core"]
        assert sum(e.get("spoiler") is True for e in core) == 3
        assert sum(e.get("score", [0])[0] >= 0.7 for e in core) >= 7
        assert sum("score" in e and e["score"][1] <= 0.3 for e in core) >= 7
        assert sum("score" in e and 0.3 < e["score"][1] <= 0.8 for e in core) == 4
        partial = [q.expect for q in own if q.prompt.stage == "partial"]
        assert sum(e["hallucination"] for e in partial) == 4
        assert sum(e["score"][0] >= 0.4 for e in partial) == 6


def test_a_phrase_that_is_expected_stands_in_the_text() -> None:
    for q in EXAM.questions:
        if "trigger_phrase" in q.expect:
            assert q.expect["trigger_phrase"]["contains"] in q.prompt.variables["text"], q.id


@pytest.mark.parametrize("rationale", [True, False])
def test_every_question_renders_with_the_default_pack(rationale: bool) -> None:
    pack = load_pack("default", benchmark)
    for q in EXAM.questions:
        assert set(q.prompt.variables) == set(pack.stages[q.prompt.stage].variables), q.id
        assert pack.render(q.prompt, rationale)[1]["content"].endswith(q.prompt.variables["text"])


@pytest.mark.parametrize(
    ("expect", "fields", "found"),
    [
        ({"score": [0.5, 1]}, {"score": 0.5}, []),
        ({"score": [0.5, 1]}, {"score": 1}, []),
        ({"score": [0.5, 1]}, {"score": 0.49}, ["score is 0.49, expected 0.5 to 1"]),
        ({"score": [0.5, 1]}, {"score": None}, ["score is None, expected 0.5 to 1"]),
        ({"spoiler": True}, {"spoiler": True}, []),
        ({"spoiler": True}, {"spoiler": False}, ["spoiler is false, expected true"]),
        ({"flag": "neutral"}, {"flag": "hallucination"},
         ["flag is hallucination, expected neutral"]),
        ({"trigger_phrase": {"contains": "Red"}}, {"trigger_phrase": "a red mug"}, []),
        ({"trigger_phrase": {"contains": "red"}}, {"trigger_phrase": ""},
         ["trigger_phrase is '' and does not hold 'red'"]),
        ({"score": [0, 1], "flag": "neutral"}, {},
         ["score is None, expected 0 to 1", "flag is None, expected neutral"]),
    ],
)  # fmt: skip
def test_grading(expect: Any, fields: Any, found: list[str]) -> None:
    assert faults(expect, fields) == found


# The command


def test_a_judge_that_knows_everything_passes(tmp_path: Path) -> None:
    config = write_config(tmp_path, examinee())
    done = omnijudge("exam", config)
    assert done.returncode == 0, done.stderr
    assert "100/100 100 %" in done.stdout
    assert "failed" not in done.stdout
    assert "Traceback" not in done.stderr


def test_a_judge_that_fails_a_tenth_and_one_is_stopped(tmp_path: Path) -> None:
    wrong = [f"core-zh-{n:02}" for n in range(1, 12)]
    config = write_config(tmp_path, examinee(wrong=wrong, log=str(tmp_path / "log.txt")))
    done = omnijudge("exam", config)
    assert done.returncode == 4
    assert "89 of 100" in done.stderr
    assert "9/20 45 %" in done.stdout
    assert done.stdout.count("failed core-zh-") == 11
    assert "answer: {" in done.stdout
    assert "我刚才把什么放进书包里了" in done.stdout
    # Nothing is asked twice, and a lower bar lets it pass.
    count = len(asked(tmp_path))
    assert count == 100
    done = omnijudge("exam", config, "--min-pass", "0.85")
    assert done.returncode == 0
    assert len(asked(tmp_path)) == count


def test_answers_that_cannot_be_read_are_failures(tmp_path: Path) -> None:
    config = write_config(tmp_path, examinee(broken=["early-en"], log=str(tmp_path / "log.txt")))
    done = omnijudge("exam", config)
    assert done.returncode == 4
    assert "84 of 100" in done.stderr
    assert done.stdout.count("no usable answer") == 16
    assert "answer: I would rather not say." in done.stdout
    assert len(asked(tmp_path)) == 100 + 2 * 16


def test_a_judge_that_is_down_fails(tmp_path: Path) -> None:
    done = omnijudge("exam", write_config(tmp_path, examinee(down=True)))
    assert done.returncode == 4
    assert "0 of 100" in done.stderr
    assert "the server did not answer" in done.stdout


def test_the_smoke_judge_fails_honestly(tmp_path: Path) -> None:
    config = write_config(tmp_path, examinee())
    done = omnijudge("exam", config, "--engine", "lexical")
    assert done.returncode == 4
    assert "lexical-1" in done.stdout


def test_a_panel_sits_one_by_one(tmp_path: Path) -> None:
    good = {"name": "good", **examinee(), "exam": 1.0}
    poor = {"name": "poor", **examinee(wrong=["early"]), "exam": 0.5}
    config = write_config(tmp_path, {"panel": [good, poor]})
    done = omnijudge("exam", config)
    assert done.returncode == 0, done.stderr
    assert "judge good" in done.stdout
    assert "judge poor" in done.stdout
    assert omnijudge("exam", config, "--min-pass", "0.9").returncode == 4


@pytest.mark.parametrize(
    ("judge", "words", "said"),
    [
        ({"engine": "replay", "answers": "a.jsonl"}, (), "asks nobody"),
        ({"engine": "replay", "answers": "a.jsonl", "exam": 0.9}, (), "judge: engine replay"),
        ({"engine": "lexical", "exam": 1.5}, (), "judge.exam"),
        ({"engine": "lexical"}, ("--min-pass", "2"), "0 to 1"),
    ],
)
def test_what_cannot_be_examined_is_refused(
    judge: dict[str, Any], words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text("", encoding="utf-8")
    done = omnijudge("exam", write_config(tmp_path, judge), *words)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_benchmark_without_exam_says_so() -> None:
    with pytest.raises(ConfigError, match="has no exam"):
        load_exam(get_benchmark("omni_interactscope"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: x", "is not written as an exam"),
        ("{name: x, version: '1', stages: {}, questions: []}", "no questions"),
        (
            "{name: x, version: '1', stages: {core: {variables: {}}}, "
            "questions: [{id: a, stage: core, language: en, expect: {}}, "
            "{id: a, stage: core, language: en, expect: {}}]}",
            "'a' stands twice",
        ),
        (
            "{name: x, version: '1', stages: {}, "
            "questions: [{id: a, stage: core, language: en, expect: {}}]}",
            "core",
        ),
    ],
)
def test_a_broken_exam_file_is_named(text: str, said: str, tmp_path: Path) -> None:
    class Broken:
        name = "broken"
        exam = tmp_path / "exam.yaml"

    Broken.exam.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=said):
        load_exam(Broken())  # type: ignore[arg-type]


# Before a run


def test_a_run_stops_at_a_failed_exam_before_anything_else_is_asked(tmp_path: Path) -> None:
    options = examinee(wrong=["partial"], log=str(tmp_path / "log.txt"))
    config = write_config(tmp_path, {**options, "exam": 0.9})
    done = omnijudge("run", config)
    assert done.returncode == 4
    assert "72 of 100" in done.stderr
    assert len(asked(tmp_path)) == 100
    assert not (tmp_path / "run" / "scores.parquet").exists()
    # Under a lower bar the same output goes on.
    done = omnijudge("run", config, "-o", "judge.exam=0.7")
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    exam = manifest["exam"]["main"]
    assert (exam["passed"], exam["questions"]) == (72, 100)
    assert len(exam["failed"]) == 28
    assert "exam: judge main passed 72 of 100" in omnijudge("status", tmp_path / "run").stdout
    count = len(asked(tmp_path))
    assert count > 100
    assert omnijudge("run", config, "-o", "judge.exam=0.7").returncode == 0
    assert len(asked(tmp_path)) == count


def test_no_exam_unless_it_is_asked_for(tmp_path: Path) -> None:
    config = write_config(tmp_path, examinee(wrong=["early", "core", "partial"]))
    assert omnijudge("run", config).returncode == 0
    assert JudgeConfig().exam is None


def test_a_dry_run_sits_no_exam(tmp_path: Path) -> None:
    options = examinee(wrong=["core"], log=str(tmp_path / "log.txt"))
    config = write_config(tmp_path, {**options, "exam": 1.0})
    assert omnijudge("run", config, "--dry-run").returncode == 0
    assert asked(tmp_path) == []
