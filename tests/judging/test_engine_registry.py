"""Engines are found by name, by entry point and by import path."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import orjson
import pytest

from omnijudge import benchmarks
from omnijudge.config import JudgeConfig
from omnijudge.errors import ConfigError
from omnijudge.judging.engines import (
    available,
    engine_identity,
    open_engine,
    relevant_options,
)
from omnijudge.judging.types import Identity, Reply, Request


class ParrotEngine:
    """Answers with the last message; stands for an engine from outside."""

    def __init__(self, judge: JudgeConfig, benchmark_name: str) -> None:
        self.benchmark_name = benchmark_name

    @classmethod
    def identity(cls, judge: JudgeConfig) -> Identity:
        return Identity(text="parrot")

    def answer(self, batch: Sequence[Request]) -> list[Reply]:
        return [Reply(raw=request.messages[-1]["content"]) for request in batch]

    def counters(self) -> dict[str, float]:
        return {}

    def close(self) -> None:
        pass


class ColourBenchmark:
    """A benchmark as far as the smoke judge sees one."""

    def lexical(self, stage: str, variables: Any) -> dict[str, Any]:
        return {"stage": stage, "score": 1.0 if "红" in variables["text"] else 0.0}


benchmark = ColourBenchmark()


def request(text: str) -> Request:
    messages = [{"role": "user", "content": text}]
    return Request(bytes(16), 1, 0, "core", messages, None, {"text": text})


def test_lexical_answers_come_from_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(benchmarks.BUILT_IN, "colours", f"{__name__}:benchmark")
    engine = open_engine(JudgeConfig(engine="lexical"), "colours")
    replies = engine.answer([request("红色"), request("blue")])
    assert [orjson.loads(r.raw or "") for r in replies] == [
        {"stage": "core", "score": 1.0},
        {"stage": "core", "score": 0.0},
    ]
    assert replies[0].raw == '{"stage":"core","score":1.0}'
    assert {(r.prompt_tokens, r.cached_tokens, r.output_tokens) for r in replies} == {(0, 0, 0)}
    assert engine.answer([]) == []
    assert engine.counters() == {}
    engine.close()


def test_identity_of_the_lexical_engine_is_fixed() -> None:
    assert engine_identity(JudgeConfig(), "omniinteract").text == "lexical-1"
    assert relevant_options(JudgeConfig(engine_options={"speed": 3})) == {}


def test_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"judge main: engine: 'vlm' is unknown.*'vllm'"):
        open_engine(JudgeConfig(engine="vlm", model="m"), "omniinteract")
    with pytest.raises(ConfigError, match=r"there are lexical, openai, replay, vllm"):
        engine_identity(JudgeConfig(engine="zzzz"), "omniinteract")


def test_replay_is_not_opened_as_an_engine() -> None:
    judge = JudgeConfig(engine="replay", answers="answers.jsonl")
    with pytest.raises(ConfigError, match="reads its answers from a file"):
        open_engine(judge, "omniinteract")
    assert engine_identity(judge, "omniinteract").text == "replay"


def test_import_path_opens_a_class_from_outside() -> None:
    judge = JudgeConfig(engine=f"{__name__}:ParrotEngine", engine_options={"b": 1, "a": 2})
    engine = open_engine(judge, "omniinteract")
    assert engine.answer([request("hello")])[0].raw == "hello"
    assert engine_identity(judge, "omniinteract").text == "parrot"
    assert list(relevant_options(judge)) == ["a", "b"]  # every option of a strange engine counts


def test_entry_point_brings_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("parrot", f"{__name__}:ParrotEngine", "omnijudge.engines")
    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda group: EntryPoints([point]).select(group=group)
    )
    assert "parrot" in available()
    assert open_engine(JudgeConfig(engine="parrot"), "x").answer([request("hi")])[0].raw == "hi"


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("no_such_module:Engine", "cannot be imported"),
        ("json:NoSuchClass", "cannot be imported"),
        ("json:JSONDecoder", "is no engine; it lacks identity, answer, counters, close"),
    ],
)
def test_bad_import_path_is_told_in_words(path: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        open_engine(JudgeConfig(engine=path), "omniinteract")
