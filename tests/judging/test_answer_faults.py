"""Every answer that goes wrong has a name, and a flag is no refusal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from fakes.odd_lexical import FAULTS

from omnijudge.benchmarks import get_benchmark
from omnijudge.benchmarks.base import Prompt
from omnijudge.judging.answer_faults import (
    FLAGS,
    INVALID,
    fault_name,
    language_flag,
    names_in,
    script_of,
)
from omnijudge.judging.answer_schemas import unbounded
from omnijudge.judging.prompts import PromptPack
from omnijudge.judging.types import Reply
from omnijudge.judging.verdicts import read_reply

NAMES = ("omniinteract", "omni_interactscope", "omni_duplexeval")


@pytest.mark.parametrize(
    ("raw", "finish", "name"),
    [
        ("", "stop", "empty"),
        ("  \n", None, "empty"),
        (" \n" * 300, "length", "white_space"),
        ('{"score": 1' + " " * 300, "length", "white_space"),
        (" " * 300, "stop", "white_space"),
        ('{"score": 0.' + "3" * 60, "length", "endless_digits"),
        ('{"score": 1000000000000000000000', "length", "endless_digits"),
        ('{"score": 0.5, "rationale": "because it', "length", "truncated"),
        ('{"score": 0.5, "rationale": "because it', None, "truncated"),
        ('{"score": 0.5,', "stop", "truncated"),
        ("<think>The answer names the shelf, but", "length", "reasoning_only"),
        ("<think>It does.</think>\n", "stop", "reasoning_only"),
        ("It does.</think>", "stop", "reasoning_only"),
        ("", "reasoning_only", "reasoning_only"),
        ("I'm sorry, but I can't help with that.", "stop", "refused"),
        ("很抱歉，我无法判断这个回答。", "stop", "refused"),
        ("I would rather not.", "refusal", "refused"),
        ("", "content_filter", "withheld"),
        ("The answer is right.", "stop", "no_object"),
        ("0.8", "stop", "no_object"),
        ('{"score": 0.5, oops}', "stop", "broken_json"),
        ("{'score': 0.5}", "stop", "broken_json"),
        ('{"score": "8/10"}', "stop", "wrong_form"),
        ('{"verdict": "good"}', "stop", "wrong_form"),
        ('{"score": 1} {"score": 0}', "stop", "wrong_form"),
    ],
)
def test_unusable_answers_are_named(raw: str, finish: str | None, name: str) -> None:
    assert fault_name(Reply(raw, None, finish)) == name
    assert name in INVALID


def test_depth_that_no_reader_follows_is_broken() -> None:
    assert fault_name(Reply('{"a":' * 100_000)) in ("broken_json", "truncated")


@pytest.mark.parametrize("benchmark_name", NAMES)
def test_a_named_answer_is_never_a_number(benchmark_name: str) -> None:
    """No benchmark's strict reader makes a verdict of any of them."""
    benchmark = get_benchmark(benchmark_name)
    for stage in benchmark.stages:
        for fault, reply in FAULTS.items():
            answer = read_reply(benchmark, "strict", stage, reply, None)
            if reply.raw is None:
                assert (answer.status, answer.reason) == ("error", reply.error)
                continue
            assert (answer.status, dict(answer.fields)) == ("invalid", {})
            expected = "refused" if fault == "declined" else fault
            assert names_in(answer.reason) == [expected]
            assert str(answer.reason).startswith(f"{expected}: ")


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("The kettle stands in the garden.", "latin"),
        ("水壶放在花园里。", "han"),
        ("回答里提到了 Eiffel Tower，所以正确。", "han"),
        ('The answer "水壶" names the right thing.', "latin"),
        ("Чайник стоит в саду.", "cyrillic"),
        ("주전자는 정원에 있다.", "hangul"),
        ("やかんは庭にあります。", "han"),
        ("42", None),
        ("", None),
        ("ok", None),
    ],
)
def test_scripts(text: str, script: str | None) -> None:
    assert script_of(text) == script


def test_a_reason_in_another_script_is_flagged_and_counts() -> None:
    benchmark = get_benchmark("omniinteract")
    prompt = Prompt("core", "zh", {"text": "水壶放在花园里。", "target_answer": "水壶在花园里。"})
    raw = '{"score": 0.9, "trigger_phrase": "花园里", "spoiler": false, "rationale": "%s"}'
    english = read_reply(benchmark, "strict", "core", Reply(raw % "It names the garden."), prompt)
    chinese = read_reply(benchmark, "strict", "core", Reply(raw % "说出了花园。"), prompt)
    assert english.status == chinese.status == "ok"
    assert english.fields["score"] == 0.9
    assert names_in(english.reason) == ["wrong_language"]
    assert chinese.reason is None


def test_a_trigger_phrase_is_looked_for_and_flagged() -> None:
    benchmark = get_benchmark("omniinteract")
    prompt = Prompt("core", "en", {"text": "It stands, I think, in the Garden."})
    found = {}
    for phrase in ("in the garden", "I think in the garden", "in the kitchen"):
        raw = f'{{"score": 1, "trigger_phrase": "{phrase}", "spoiler": false}}'
        answer = read_reply(benchmark, "strict", "core", Reply(raw), prompt)
        assert answer.status == "ok"
        assert answer.fields["trigger_phrase"] == phrase
        found[phrase] = names_in(answer.reason)
    assert found == {
        "in the garden": [],
        "I think in the garden": ["phrase_respelled"],
        "in the kitchen": ["phrase_not_found"],
    }


def test_no_flag_without_words_on_both_sides() -> None:
    assert language_flag({"rationale": "It is right."}, {"text": "42"}) is None
    assert language_flag({"rationale": None}, {"text": "水壶放在花园里。"}) is None
    assert language_flag({"score": 1.0}, {"text": "水壶放在花园里。"}) is None
    assert language_flag({"rationale": "It is right."}, {}) is None


def test_several_names_in_one_reason() -> None:
    reason = "taken out of a code fence; phrase_not_found: words; wrong_language: words"
    assert names_in(reason) == ["phrase_not_found", "wrong_language"]
    assert names_in("the server answers 500: oops") == []
    assert names_in(None) == []
    assert not INVALID.keys() & FLAGS.keys()


# The schemas that keep answers short.


def stage_schemas() -> list[tuple[str, str, bool, Mapping[str, Any]]]:
    found = []
    for name in NAMES:
        pack = PromptPack(get_benchmark(name).pack)
        for stage in pack.stages:
            for rationale in (True, False):
                found.append((name, stage, rationale, pack.schema(stage, rationale)))
    return found


@pytest.mark.parametrize(("benchmark_name", "stage", "rationale", "schema"), stage_schemas())
def test_answer_schemas_are_bounded_in_every_field(
    benchmark_name: str, stage: str, rationale: bool, schema: Mapping[str, Any]
) -> None:
    assert schema["type"] == "object"
    assert set(schema["required"]) == set(schema["properties"])
    assert unbounded(schema) == []


@pytest.mark.parametrize(
    ("field", "lacking"),
    [
        ({"type": "string"}, "x: maxLength"),
        ({"type": "string", "enum": ["a"]}, None),
        ({"type": "number", "minimum": 0, "maximum": 1}, "x: multipleOf"),
        ({"type": "number"}, "x: minimum, maximum, multipleOf"),
        ({"type": "integer", "minimum": 0, "maximum": 3}, None),
        ({"type": "array", "items": {"type": "string", "maxLength": 9}}, "x: maxItems"),
        ({"type": "array", "maxItems": 3, "items": {"type": "string"}}, "x[]: maxLength"),
        ({"type": "object", "properties": {}}, "x: additionalProperties: false"),
        ({}, "x: type"),
        ({"type": "boolean"}, None),
    ],
)
def test_what_has_no_bound_is_found(field: Mapping[str, Any], lacking: str | None) -> None:
    schema = {"type": "object", "additionalProperties": False, "properties": {"x": field}}
    assert unbounded(schema) == ([] if lacking is None else [lacking])


def longest(field: Mapping[str, Any]) -> int:
    """Characters that the longest value of a field takes, escapes not counted."""
    if "enum" in field:
        return max(len(str(v)) + 2 for v in field["enum"])
    if field["type"] == "string":
        return int(field["maxLength"]) + 2
    return 5  # true, false, 0.05


@pytest.mark.parametrize(("benchmark_name", "stage", "rationale", "schema"), stage_schemas())
def test_the_default_max_tokens_holds_the_longest_answer(
    benchmark_name: str, stage: str, rationale: bool, schema: Mapping[str, Any]
) -> None:
    """At two characters a token, which is less than English text has with any tokeniser."""
    from omnijudge.config import SamplingConfig

    characters = sum(len(n) + 5 + longest(f) for n, f in schema["properties"].items())
    assert characters / 2 <= SamplingConfig().max_tokens


def test_without_a_rationale_answers_are_a_few_tokens() -> None:
    for _, stage, rationale, schema in stage_schemas():
        if not rationale:
            texts = [n for n, f in schema["properties"].items() if f.get("maxLength", 0) > 120]
            assert texts == [], stage
