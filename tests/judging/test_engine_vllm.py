"""The vLLM engine on a CPU, with a model of random weights: real mechanics, meaningless answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from omnijudge.config import JudgeConfig, SamplingConfig, ThinkingConfig
from omnijudge.errors import ConfigError, ResourceError
from omnijudge.judging.engines import open_engine
from omnijudge.judging.engines.reasoning import REASONING_ONLY
from omnijudge.judging.types import Engine, Reply, Request

pytestmark = pytest.mark.engine

SCHEMA = {
    "type": "object",
    "properties": {
        "flag": {"enum": ["neutral", "hallucination"]},
        "score": {"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.01},
        "reason": {"type": "string", "maxLength": 30},
    },
    "required": ["flag", "score", "reason"],
    "additionalProperties": False,
}
RUBRIC = "The judge gives a score between 0 and 1 and says in a few words why. " * 8


def request(
    number: int, text: str, schema: Any = SCHEMA, attempt: int = 1, repeat: int = 0
) -> Request:
    messages = [{"role": "system", "content": RUBRIC}, {"role": "user", "content": text}]
    return Request(number.to_bytes(16, "big"), attempt, repeat, "core", messages, schema)


def assert_valid(reply: Reply) -> None:
    assert reply.error is None
    answer = json.loads(reply.raw or "")
    assert list(answer) == ["flag", "score", "reason"]
    assert answer["flag"] in ("neutral", "hallucination")
    assert 0 <= answer["score"] <= 1
    assert len(answer["reason"]) <= 30


def test_answers_follow_the_schema(tiny_engine: Engine) -> None:
    replies = tiny_engine.answer([request(i, f"数一数红杯子 {i}") for i in range(8)])
    assert len(replies) == 8
    for reply in replies:
        assert_valid(reply)
        assert reply.finish_reason == "stop"
        assert reply.model == "tiny"
        assert reply.prompt_tokens > 100
        assert 0 < reply.output_tokens <= 256


def test_empty_batch(tiny_engine: Engine) -> None:
    assert tiny_engine.answer([]) == []


def test_one_long_prompt_harms_no_neighbour(tiny_engine: Engine) -> None:
    batch = [request(1, "red"), request(2, "红" * 4000), request(3, "green")]
    before, long, after = tiny_engine.answer(batch)
    assert_valid(before)
    assert_valid(after)
    assert long.raw is None
    assert long.permanent
    assert "the model takes 2048" in str(long.error)
    assert str(long.error).startswith("prompt has ")


def test_one_bad_schema_harms_no_neighbour(tiny_engine: Engine) -> None:
    batch = [request(i, "red") for i in range(5)]
    batch[3] = request(3, "red", {"type": "no such type"})
    replies = tiny_engine.answer(batch)
    for i in (0, 1, 2, 4):
        assert_valid(replies[i])
    assert replies[3].permanent
    assert "vLLM refuses the request" in str(replies[3].error)


def test_messages_a_template_cannot_take_are_told(tiny_engine: Engine) -> None:
    odd = Request(bytes(16), 1, 0, "core", [{"role": "oracle", "content": "red"}], SCHEMA)
    replies = tiny_engine.answer([odd, request(1, "red")])
    assert replies[0].permanent
    assert "there is no role oracle" in str(replies[0].error)
    assert_valid(replies[1])


def test_message_parts_of_text_are_answered(tiny_engine: Engine) -> None:
    parts = [{"type": "text", "text": "How many"}, {"type": "text", "text": "cups?"}]
    [reply] = tiny_engine.answer(
        [Request(bytes(16), 1, 0, "core", [{"role": "user", "content": parts}], SCHEMA)]
    )
    assert_valid(reply)


def test_picture_for_a_model_without_eyes_is_refused_alone(tiny_engine: Engine) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    seen = Request(bytes(16), 1, 0, "core", [{"role": "user", "content": [picture]}], SCHEMA)
    replies = tiny_engine.answer([seen, request(1, "red")])
    assert replies[0].permanent
    assert_valid(replies[1])


def test_free_text_ends_at_the_token_limit(tiny_engine: Engine) -> None:
    [reply] = tiny_engine.answer([request(1, "red", schema=None)])
    assert reply.finish_reason == "length"
    assert reply.output_tokens == 256


def test_shared_prefix_is_cached_and_counted(tiny_engine: Engine) -> None:
    batch = [request(i, f"blue {i}") for i in range(4)]
    tiny_engine.answer(batch)
    before = tiny_engine.counters()
    replies = tiny_engine.answer(batch)
    after = tiny_engine.counters()
    assert all(r.cached_tokens > 0 for r in replies)
    assert after["prefix_cache_hits"] - before["prefix_cache_hits"] == sum(
        r.cached_tokens for r in replies
    )
    assert after["prompt_tokens"] - before["prompt_tokens"] == sum(r.prompt_tokens for r in replies)
    assert after["generation_tokens"] - before["generation_tokens"] == sum(
        r.output_tokens for r in replies
    )


def test_order_and_company_do_not_show(tiny_engine: Engine) -> None:
    batch = [request(i, f"step {i}") for i in range(4)]
    together = [r.raw for r in tiny_engine.answer(batch)]
    reversed_ = [r.raw for r in tiny_engine.answer(batch[::-1])][::-1]
    alone = [tiny_engine.answer([one])[0].raw for one in batch]
    assert together == reversed_ == alone


def test_warm_judge_repeats_differ_and_can_be_repeated(tiny_judge: JudgeConfig) -> None:
    warm = tiny_judge.model_copy(update={"sampling": SamplingConfig(temperature=1.0)})
    engine = open_engine(warm, "omniinteract")
    batch = [request(1, "red", repeat=r) for r in range(4)] + [request(1, "red", attempt=2)]
    first = [r.raw for r in engine.answer(batch)]
    assert len(set(first)) == 5
    assert [r.raw for r in engine.answer(batch)] == first
    engine.close()
    engine.close()  # closing twice is harmless


def test_thinking_stays_within_its_budget(tiny_judge: JudgeConfig, tiny_engine: Engine) -> None:
    thinking = tiny_judge.model_copy(update={"thinking": ThinkingConfig(budget=20)})
    engine = open_engine(thinking, "omniinteract")
    for reply in engine.answer([request(i, "red") for i in range(3)]):
        assert_valid(reply)  # without the reasoning
        assert 20 < reply.output_tokens < 256  # but with its tokens
    engine.close()
    assert_valid(tiny_engine.answer([request(1, "red")])[0])  # a neighbour's end does no harm


def test_reasoning_without_an_answer_is_named(tiny_judge: JudgeConfig) -> None:
    update = {
        "thinking": ThinkingConfig(budget=400),
        "sampling": SamplingConfig(max_tokens=1),
        # Nothing closes the reasoning before the model's last position.
        "engine_options": {"dtype": "float32", "max_model_len": 512},
    }
    engine = open_engine(tiny_judge.model_copy(update=update), "omniinteract")
    [reply] = engine.answer([request(1, "red")])
    assert reply.raw == ""
    assert reply.finish_reason == REASONING_ONLY
    assert reply.error is None
    engine.close()


def test_reasoning_parser_has_to_fit_the_model(tiny_judge: JudgeConfig) -> None:
    options = {"dtype": "float32", "reasoning_parser": "no_such_parser"}
    judge = tiny_judge.model_copy(
        update={"thinking": ThinkingConfig(budget=5), "engine_options": options}
    )
    with pytest.raises(ResourceError, match="no_such_parser"):
        open_engine(judge, "omniinteract")


def test_unknown_engine_option_is_refused_with_the_nearest(tiny_judge: JudgeConfig) -> None:
    judge = tiny_judge.model_copy(update={"engine_options": {"max_model_length": 512}})
    with pytest.raises(ConfigError, match=r"no option 'max_model_length'.*'max_model_len'"):
        open_engine(judge, "omniinteract")
