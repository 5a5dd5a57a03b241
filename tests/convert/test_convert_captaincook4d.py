"""The CaptainCook4D converter, on a small invented file of the same shape."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from omnijudge.benchmarks.omniinteract.layout import read_manifest, read_root
from omnijudge.benchmarks.omniinteract.slots import Dropped, build_slots
from omnijudge.convert import CONVERTERS, add_arguments, load_converter, run
from omnijudge.convert.captaincook4d import convert, instruction_of, read_mistakes
from omnijudge.errors import ConfigError, DataError


def step(number: int, start: Any, end: Any, text: str, wrong: bool = False) -> dict[str, Any]:
    return {
        "step_id": number,
        "start_time": start,
        "end_time": end,
        "description": text,
        "has_errors": wrong,
    }


def recording(name: str, recipe: str, *steps: dict[str, Any]) -> dict[str, Any]:
    return {
        "recording_id": name,
        "activity_id": 3,
        "activity_name": recipe,
        "person_id": 4,
        "environment": 2,
        "steps": list(steps),
    }


TOAST = recording(
    "3_1",
    "Honey Toast",
    step(1, 4.5, 20.25, "Toast-Toast two slices of bread"),
    step(3, 40, 55.5, "spread -spread the butter on the toast", wrong=True),
    step(2, 21.0, 39.0, "Measure and add-1/2 tbsp honey to the cup"),
    step(4, -1.0, -1.0, "Serve-Serve the toast on a plate", wrong=True),
)
TEA = recording(
    "3_12",
    "Mint Tea",
    step(5, 0, 10.0, "boil-Once the kettle is full, boil the water"),
    step(6, 30.0, 42.0, "season-sugar to taste"),
    step(7, 30.0, 50.0, "Cut the mint into small pieces"),
)
NOTHING = recording("3_20", "Mint Tea", step(5, -1.0, -1.0, "boil-boil the water", wrong=True))
STEPS = {r["recording_id"]: r for r in (TOAST, TEA, NOTHING)}
ERRORS = [
    {
        "recording_id": "3_1",
        "activity_id": 3,
        "is_error": True,
        "step_annotations": [
            {
                "step_id": 4,
                "start_time": -1.0,
                "end_time": -1.0,
                "description": "Serve-Serve the toast on a plate",
                "errors": [{"tag": "Missing Step", "description": "Left out"}],
            },
            {
                "step_id": 3,
                "start_time": 40,
                "end_time": 55.5,
                "description": "spread -spread the butter on the toast",
                "errors": [
                    {"tag": "Technique Error", "description": "used a  spoon"},
                    {"tag": "Measurement Error", "description": "far too much butter"},
                ],
                "modified_description": "spread a lot of butter with a spoon",
            },
            {"step_id": 1, "start_time": 4.5, "end_time": 20.25, "description": "Toast-Toast"},
        ],
    }
]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "complete_step_annotations.json").write_text(json.dumps(STEPS))
    (folder / "error_annotations.json").write_text(json.dumps(ERRORS))
    return folder


def command(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return run(parser.parse_args(["captaincook4d", *arguments]))


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_one_answer_per_performed_step(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert command(str(source), "--out", str(out)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == [
        "recordings written: 2 of 3",
        "steps written: 6 of 8",
        "skipped, recording without any performed step: 1",
        "skipped, step with a negative time (not performed): 2",
        "answers due at the same moment as the next one, in slots without length: 1",
    ]
    folder = out / "1qna" / "annotations" / "captaincook4d"
    assert sorted(p.name for p in folder.iterdir()) == ["3_1.json", "3_12.json"]
    assert load(folder / "3_1.json") == {
        "question_time": 0.0,
        "question_text": "Guide me through making Honey Toast, one step at a time.",
        "answers": [
            {"answer_time": 4.5, "answer_text": "Toast two slices of bread.", "label": "step"},
            {
                "answer_time": 21.0,
                "answer_text": "Measure and add 1/2 tbsp honey to the cup.",
                "label": "step",
            },
            {
                "answer_time": 40.0,
                "answer_text": "Spread the butter on the toast.",
                "label": "step",
            },
        ],
    }
    assert [a["answer_text"] for a in load(folder / "3_12.json")["answers"]] == [
        "Once the kettle is full, boil the water.",
        "Season sugar to taste.",
        "Cut the mint into small pieces.",
    ]


def test_both_ways_in_find_the_same_samples(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command(str(source / "complete_step_annotations.json"), "--out", str(out))
    by_manifest = read_manifest(out / "manifest.jsonl", set())
    by_root = read_root(out)
    assert by_manifest.problems == by_root.problems == []
    assert by_manifest.samples.keys() == by_root.samples.keys()
    first = by_manifest.samples["1qna__videos_bench__captaincook4d__3_1"]
    assert first.video_id == "3_1"
    assert first.attributes["recipe"] == "Honey Toast"
    assert first.attributes["person"] == "4"
    for name, sample in by_manifest.samples.items():
        assert sample.annotation == by_root.samples[name].annotation
        dropped: list[Dropped] = []
        slots = build_slots(load(sample.annotation), sample.scene_type, 60.0, dropped)
        assert dropped == []
        assert [s.question_type for s in slots] == ["step"] * 3
        assert not any(s.interrupted for s in slots)


def test_mistakes_become_answers_at_the_end_of_their_step(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    errors = str(source / "error_annotations.json")
    assert command(str(source), "--out", str(out), "--errors", errors) == 0
    shown = capsys.readouterr().out
    assert "steps written: 6 of 8" in shown
    assert "answers about mistakes written: 1" in shown
    assert "skipped, mistake in a step without usable times: 1" in shown
    answers = load(out / "1qna" / "annotations" / "captaincook4d" / "3_1.json")["answers"]
    assert answers[-1] == {
        "answer_time": 55.5,
        "answer_text": "There is a mistake: Used a spoon; far too much butter. "
        "The recipe says: Spread the butter on the toast.",
        "label": "error",
    }


def test_mistakes_of_unknown_steps_are_counted() -> None:
    strangers = json.loads(json.dumps(ERRORS))
    strangers[0]["recording_id"] = "9_9"
    converted = convert(STEPS, "steps.json", read_mistakes(strangers, "errors.json"))
    assert converted.skipped["mistake in a step that the step annotations lack"] == 3
    assert converted.count("error") == 0


def test_the_question_is_ours_to_choose(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command(str(source), "--out", str(out), "--question", "请教我做{recipe}。")
    path = out / "1qna" / "annotations" / "captaincook4d" / "3_12.json"
    assert load(path)["question_text"] == "请教我做Mint Tea。"
    with pytest.raises(ConfigError, match="--question is blank"):
        command(str(source), "--out", str(out), "--question", " ")


@pytest.mark.parametrize(
    ("description", "instruction"),
    [
        ("Peel-Peel the garlic", "Peel the garlic."),
        ("Add-1 egg to the bowl", "Add 1 egg to the bowl."),
        ("stir-then  stir it", "Then stir it."),
        ("Boil -Continue to boil for 15-30 seconds", "Continue to boil for 15-30 seconds."),
        ("Fill a 6-oz. cup", "Fill a 6-oz. cup."),
        ("check-check the water. (It should boil.)", "Check the water. (It should boil.)"),
    ],
)
def test_instructions_read_as_sentences(description: str, instruction: str) -> None:
    assert instruction_of(description) == instruction


@pytest.mark.parametrize("start", [None, "4.5", True, float("nan")])
def test_steps_without_a_start_are_counted(start: Any) -> None:
    steps = {"3_1": recording("3_1", "Toast", step(1, start, 9.0, "a"), step(2, 3.0, None, "b"))}
    converted = convert(steps, "steps.json")
    assert converted.skipped == {"step without a start time": 1}
    assert [a.text for a in converted.recipes[0].answers] == ["B."]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "must be an object from recording id to recording"),
        ('{"a": []}', r"steps\.json: a: needs an object with a list `steps`"),
        ('{"a": {"steps": [], "activity_name": ""}}', "a: activity_name is ''"),
        ('{"a/b": {"steps": [], "activity_name": "x"}}', "path separators"),
        ('{"a": {"steps": [3], "activity_name": "x"}}', r"a, steps\[0\]: must be an object"),
        ('{"a": {"steps": [{}], "activity_name": "x"}}', r"steps\[0\]: description is None"),
        ('{"a": {"steps": [], "activity_name": "x"}}', "no recording with a performed step"),
        ("{", r"steps\.json"),
    ],
)
def test_bad_step_files_get_a_sentence(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "steps.json"
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        command(str(path), "--out", str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "must be a list of recordings"),
        ("[{}]", r"errors\.json: \[0\]: needs the text"),
        (
            '[{"recording_id": "a", "step_annotations": [{"errors": 1}]}]',
            r"a, step_annotations\[0\]: must be an object",
        ),
    ],
)
def test_bad_error_files_get_a_sentence(
    source: Path, tmp_path: Path, content: str, message: str
) -> None:
    path = tmp_path / "errors.json"
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        command(str(source), "--out", str(tmp_path / "out"), "--errors", str(path))


def test_missing_and_unwritable_files(source: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.json"):
        command(str(tmp_path / "nowhere.json"), "--out", str(tmp_path / "out"))
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        command(str(source), "--out", str(blocked / "out"))


def test_many_problems_are_cut_short() -> None:
    with pytest.raises(DataError, match=r"\.\.\. and 5 more") as caught:
        convert({str(n): None for n in range(25)}, "steps.json")
    assert len(caught.value.problems) == 25


def test_registry() -> None:
    for name in CONVERTERS:
        assert callable(load_converter(name))
    with pytest.raises(ConfigError, match="converter 'epic' is unknown"):
        load_converter("epic")


def test_parsers_load_nothing_heavy() -> None:
    program = """
import argparse, sys
import omnijudge.convert, omnijudge.simulate_command
omnijudge.convert.add_arguments(argparse.ArgumentParser())
omnijudge.simulate_command.add_arguments(argparse.ArgumentParser())
heavy = {"numpy", "numba", "pyarrow", "pydantic", "orjson", "yaml"} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
