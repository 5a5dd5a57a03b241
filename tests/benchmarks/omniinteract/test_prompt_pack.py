"""The judge prompts in both languages, with and without a rationale."""

from __future__ import annotations

import re
from typing import Any

import pytest
from jinja2 import Environment, meta

from omnijudge.benchmarks.base import Prompt
from omnijudge.benchmarks.omniinteract import benchmark
from omnijudge.judging.prompts import load_pack

PACK = load_pack("default", benchmark)
LANGUAGES = ("en", "zh")
BOTH = [(s, lang) for s in benchmark.stages for lang in LANGUAGES]
BASE: dict[str, Any] = {
    "question": "Q-question", "target_answer": "T-target", "text": "S-said",
    "scene_type": "multi_turn", "slot_id": "3", "turn": 3, "step": None, "boundary": "hard",
    "interrupted": False, "context": "C-context", "later_answers": [("4", "L-later")],
}  # fmt: skip
SCENES = ("multi_turn", "nested", "1QnA", "offline_math")


def rendered(stage: str, language: str, rationale: bool = True, **changes: Any) -> tuple[str, str]:
    wanted = PACK.stages[stage].variables
    variables = {n: {**BASE, **changes}[n] for n in wanted}
    system, user = PACK.render(Prompt(stage, language, variables), rationale, language)
    return system["content"], user["content"]


@pytest.mark.parametrize(("stage", "language"), BOTH)
def test_templates_use_what_the_pack_names(stage: str, language: str) -> None:
    source = (benchmark.pack / f"{stage}.{language}.jinja").read_text(encoding="utf-8")
    used = meta.find_undeclared_variables(Environment().parse(source))
    assert used == {*PACK.stages[stage].variables, "rationale"}


@pytest.mark.parametrize(("stage", "language"), BOTH)
def test_every_field_of_the_answer_is_explained(stage: str, language: str) -> None:
    for rationale in (True, False):
        system, user = rendered(stage, language, rationale)
        fields = PACK.schema(stage, rationale)["properties"]
        for name in fields:
            assert re.search(rf"\b{name}\b", system), name
        assert ("rationale" in system) == rationale == ("rationale" in fields)
        assert "rationale" not in user
        assert "rationale" not in PACK.schema(stage, False)["required"]


@pytest.mark.parametrize(("stage", "language"), BOTH)
def test_what_was_said_comes_last_and_once(stage: str, language: str) -> None:
    system, user = rendered(stage, language)
    assert user.endswith("S-said")
    assert user.count("S-said") == 1
    assert "S-said" not in system
    assert user.index("Q-question") < user.index("T-target") < user.index("S-said")


@pytest.mark.parametrize(("stage", "language"), BOTH)
def test_the_rubric_is_the_same_for_every_question(stage: str, language: str) -> None:
    """The system message is the shared prefix of all questions of a stage."""
    other = {"question": "?", "target_answer": "!", "text": "…", "turn": 9, "step": 2}
    first, _ = rendered(stage, language)
    second, _ = rendered(stage, language, **other, scene_type="1QnA", boundary="soft")
    assert first == second


@pytest.mark.parametrize(("stage", "language"), BOTH)
def test_paragraphs_stay_apart(stage: str, language: str) -> None:
    for changes in ({}, {"interrupted": True}, {"step": 2}, {"later_answers": []}):
        system, user = rendered(stage, language, **changes)
        assert "\n\n\n" not in system + user
        question = {"en": "Question:", "zh": "问题："}[language]
        assert user.startswith(question) or f"\n\n{question}\nQ-question\n\n" in user


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("scene", SCENES)
def test_scenes_are_told_in_words(scene: str, language: str) -> None:
    for stage in ("early", "core"):
        if (stage, scene) == ("early", "offline_math"):
            continue
        for boundary in ("hard", "soft"):
            _, user = rendered(stage, language, scene_type=scene, boundary=boundary)
            assert scene not in re.findall(r"\w+", user)
            if language == "zh":
                assert boundary not in user


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_does_not_apply_is_not_named(language: str) -> None:
    for stage in ("early", "core"):
        _, user = rendered(stage, language, turn=None, boundary=None, interrupted=None)
        assert "None" not in user
        _, user = rendered(stage, language, scene_type="my_scene")
        assert "my_scene" in user


@pytest.mark.parametrize("language", LANGUAGES)
def test_later_answers_stand_in_the_core_prompt_only(language: str) -> None:
    _, user = rendered("core", language)
    assert "L-later" in user
    _, none = rendered("core", language, later_answers=[])
    assert {"en": "(none)", "zh": "（无）"}[language] in none
    assert "later_answers" not in PACK.stages["early"].variables


def test_chinese_prompts_hold_no_english_prose() -> None:
    for stage in benchmark.stages:
        system, user = rendered(stage, "zh")
        words = set(re.findall(r"[A-Za-z_]{2,}", system))
        fields = set(PACK.schema(stage, True)["properties"])
        assert words <= {*fields, "neutral", "hallucination", "true", "false", "JSON"}, words
        assert not set(re.findall(r"[a-z]{4,}", user)) - {"question", "target", "said", "context",
                                                          "later"}  # fmt: skip
