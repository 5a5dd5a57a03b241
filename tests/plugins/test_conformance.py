"""The conformance checks: ours pass, and every planted fault is named in a sentence."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from fakes.http_judge import HttpJudge
from fakes.scripted_engine import ScriptedEngine

from omnijudge import tables
from omnijudge.benchmarks import get_benchmark
from omnijudge.benchmarks.base import Answer, Outputs, Prompt
from omnijudge.config import JudgeConfig, load_config
from omnijudge.judging.engines.lexical import LexicalEngine
from omnijudge.judging.engines.openai import OpenAIEngine
from omnijudge.judging.types import Identity, Reply, Request
from omnijudge.prompt_commands import sample_config
from omnijudge.statistics.metric import Metric, Sum, ratio, total
from omnijudge.testing import check_benchmark, check_engine

# The toy is a distribution of its own; here its modules are enough.
sys.path.append(str(Path(__file__).parents[1] / "toy_plugin"))

from omnijudge_toy.benchmark import Options, Toy
from omnijudge_toy.engine import ToyEngine

CONFIG = load_config(Toy.sample_config, ["judge.engine=lexical"])
JUDGE = JudgeConfig(engine="toy")


@pytest.mark.parametrize("name", ["omniinteract", "omni_interactscope", "omni_duplexeval"])
def test_our_benchmarks_conform(name: str) -> None:
    benchmark = get_benchmark(name)
    check_benchmark(benchmark, sample_config(benchmark))


def test_the_toy_benchmark_conforms() -> None:
    check_benchmark(Toy(), CONFIG)


def test_our_smoke_engine_conforms() -> None:
    check_engine(LexicalEngine, JudgeConfig())


def test_the_toy_engine_conforms() -> None:
    check_engine(ToyEngine, JUDGE, Toy())


# Faults of a benchmark: what is broken, and a part of the sentence that says so


class OpenOptions(Options):
    model_config = Options.model_config | {"extra": "ignore"}


def _wrapped(name: str, change: Callable[..., Any]) -> type[Toy]:
    """The toy with the result of one method changed: ``change(result, self, *arguments)``."""
    old = getattr(Toy, name)

    def new(self: Toy, *arguments: Any) -> Any:
        return change(old(self, *arguments), self, *arguments)

    return type("Broken", (Toy,), {name: new})


def _with(**members: Any) -> type[Toy]:
    return type("Broken", (Toy,), members)


def _column(table: pa.Table, name: str, values: Sequence[Any]) -> pa.Table:
    index = table.schema.get_field_index(name)
    field = table.schema.field(index)
    return table.set_column(index, field, pa.array(values, field.type))


def _swap_units(found: Any, *_: Any) -> Any:
    order = list(range(found.units.num_rows))[::-1]
    return replace(found, units=found.units.take(pa.array(order)))


def _drop_row(found: Outputs, *_: Any) -> Outputs:
    return replace(found, outputs=found.outputs.slice(1))


def _number_over_block(found: Outputs, *_: Any) -> Outputs:
    ids = list(range(found.chunks.num_rows))
    return replace(found, chunks=_column(found.chunks, "chunk_id", ids))


def _unknown_state(found: Outputs, *_: Any) -> Outputs:
    states = ["fine"] * found.outputs.num_rows
    return replace(found, outputs=_column(found.outputs, "state", states))


def _raise(*_: Any) -> Any:
    raise KeyError("due")


def _score_as_zero(scores: pa.Table, self: Toy, part: Any, options: Any) -> pa.Table:
    """What this project exists to prevent: a missing verdict counted as a miss."""
    judged = [None if j is None else True for j in scores["judged"].to_pylist()]
    hits = [h or 0.0 for h in scores["hit"].to_pylist()]
    return _column(_column(scores, "judged", judged), "hit", hits)


def _half(answer: Answer, self: Toy, stage: str, raw: str, *_: Any) -> Answer:
    return Answer("invalid", {"right": False}, "?") if answer.status == "invalid" else answer


def _metrics_of(*metrics: Metric) -> type[Toy]:
    return _with(metrics=lambda self, options: list(metrics))


HITS = Metric("hits", "all", (Sum("moment", "hit"), Sum("moment")), ratio, (Sum("moment"),))

BROKEN: dict[str, tuple[Any, str]] = {
    "a class": (Toy, "is a class"),
    "no method": (_with(pending=None), "no method pending"),
    "no title": (_with(title=None), "title is NoneType"),
    "name with a blank": (_with(name="my toy"), "no plain word"),
    "no stages": (_with(stages=()), "stages is empty"),
    "stage without prompt": (_with(stages=("say", "ask")), "stages ask"),
    "schema lacks a column": (
        _with(score_schema=pa.schema([f for f in Toy.score_schema if f.name != "judged"])),
        "score_schema lacks the common column judged",
    ),
    "column of another type": (
        _with(chunk_schema=pa.schema([
            pa.field(f.name, pa.float32() if f.name == "start" else f.type) for f in tables.CHUNKS
        ])),
        "column start is float",
    ),
    "answer named like a common column": (
        _with(answer_schema=pa.schema([("right", pa.bool_()), ("raw", pa.string())])),
        "['raw'] are names of common columns",
    ),
    "answer that is not kept": (
        _with(answer_schema=pa.schema([("wrong", pa.bool_())])), "asks for ['right']",
    ),
    "open options": (_with(options=OpenOptions), "takes an unknown key"),
    "unknown profile": (_with(profiles=("robust", "paper")), "profile 'paper'"),
    "pack not there": (_with(pack=Path("nowhere")), "loading the prompt pack raised"),
    "read raises": (_wrapped("read", _raise), "read raised KeyError"),
    "units backwards": (_wrapped("read", _swap_units), "do not stand in sorted order"),
    "samples unknown": (
        _wrapped("read", lambda r, *_: replace(r, samples={**r.samples, "x": 1})),
        "different samples",
    ),
    "outputs lack a row": (_wrapped("read_outputs", _drop_row), "one row per sample"),
    "chunk ids of the block": (_wrapped("read_outputs", _number_over_block), "other samples"),
    "unknown state": (_wrapped("read_outputs", _unknown_state), "unknown states ['fine']"),
    "match loses chunks": (
        _wrapped("match", lambda r, *_: (r[0].slice(1), r[1])), "chunks were lost or changed",
    ),
    "stage twice": (
        _wrapped("match", lambda r, *_: (r[0], pa.concat_tables([r[1], r[1]]))), "stand twice",
    ),
    "stage unknown": (
        _wrapped("match", lambda r, *_: (
            r[0], _column(r[1], "stage", ["sing"] * r[1].num_rows),
        )),
        "['sing'] are not declared",
    ),
    "pending of another type": (
        _wrapped("pending", lambda r, *_: r.astype(np.int32)), "int64 array",
    ),
    "pending never ends": (
        _with(pending=lambda self, part, options: np.arange(part.stages.num_rows)),
        "still pending",
    ),
    "prompts lack one": (_wrapped("prompts", lambda r, *_: r[:-1] or r), "prompts"),
    "prompt without variable": (
        _wrapped("prompts", lambda r, *_: [Prompt(p.stage, p.language, {}) for p in r]),
        "rendering stage say in en raised",
    ),
    "parse raises": (
        _with(parse=lambda self, stage, raw, mode, prompt=None: Answer(
            "ok", {"right": __import__("json").loads(raw)["right"]}
        )),
        "parse of '' (strict) raised JSONDecodeError",
    ),
    "invalid with a number": (_wrapped("parse", _half), "a failure is never a number"),
    "smoke judge off the contract": (
        _with(lexical=lambda self, stage, variables: {"right": "perhaps"}), "own answer",
    ),
    "missing verdict as zero": (_wrapped("score", _score_as_zero), "is never a score"),
    "score row twice": (
        _wrapped("score", lambda r, *_: pa.concat_tables([r, r])), "stands twice",
    ),
    "fill leaves holes": (_with(fill_unscored=lambda self, scores, best: scores), "judged false"),
    "metric twice": (_metrics_of(HITS, HITS), "is declared twice"),
    "metric of an unknown column": (
        _metrics_of(replace(HITS, sums=(Sum("moment", "hits"), Sum("moment")))),
        "no column 'hits'",
    ),
    "metric not vectorised": (
        _metrics_of(replace(HITS, function=lambda s: s[0] / s[1])), "along the last axis",
    ),
    "metric infinite": (
        _metrics_of(replace(HITS, function=lambda s: s[..., 0] + np.inf)), "infinite",
    ),
    "metric out of its range": (
        _metrics_of(replace(HITS, function=total)), "above 1",
    ),
    "denominator beyond the sums": (
        _metrics_of(replace(HITS, denominator=(2,))), "places in its 2 sums",
    ),
    "oracle of another schema": (
        _with(oracle=lambda self, units, system, options: units), "chunk table of oracle",
    ),
    "shuffled within nothing": (_with(shuffle_within="room"), "no column 'room'"),
    "exam not there": (_with(exam=Path("nowhere.yaml")), "loading the exam raised"),
}  # fmt: skip


@pytest.mark.parametrize("fault", BROKEN)
def test_a_fault_of_a_benchmark_is_named(fault: str) -> None:
    made, said = BROKEN[fault]
    benchmark = made if fault == "a class" else made()
    with np.errstate(all="ignore"), pytest.raises(AssertionError) as caught:
        check_benchmark(benchmark, CONFIG)
    assert said in str(caught.value)
    assert len(str(caught.value)) > 20


# Faults of an engine


class Unnamed(ToyEngine):
    @classmethod
    def identity(cls, judge: JudgeConfig) -> Identity:
        return Identity(" ")


class Moody(ToyEngine):
    count = 0

    @classmethod
    def identity(cls, judge: JudgeConfig) -> Identity:
        cls.count += 1
        return Identity(f"toy-{cls.count}")


class Forgetful(ToyEngine):
    def answer(self, batch: Sequence[Request]) -> list[Reply]:
        return super().answer(batch)[:-1]


class Both(ToyEngine):
    def answer(self, batch: Sequence[Request]) -> list[Reply]:
        return [replace(r, error="cut off") for r in super().answer(batch)]


class Raw(ToyEngine):
    def answer(self, batch: Sequence[Request]) -> list[Any]:
        return [r.raw for r in super().answer(batch)]


class Fractions(ToyEngine):
    def answer(self, batch: Sequence[Request]) -> list[Reply]:
        return [replace(r, prompt_tokens=1.5) for r in super().answer(batch)]  # type: ignore[arg-type]


class Fragile(ToyEngine):
    def answer(self, batch: Sequence[Request]) -> list[Reply]:
        if any(len(str(r.messages)) > 100_000 for r in batch):
            return [Reply(None, error="out of memory") for _ in batch]
        return super().answer(batch)


class Raising(ToyEngine):
    def answer(self, batch: Sequence[Request]) -> list[Reply]:
        if any(len(str(r.messages)) > 100_000 for r in batch):
            raise ValueError("the prompt is too long")
        return super().answer(batch)


class Chatty(ToyEngine):
    def counters(self) -> dict[str, Any]:
        return {"answered": "many"}


class Once(ToyEngine):
    closed = False

    def close(self) -> None:
        if self.closed:
            raise RuntimeError("closed already")
        self.closed = True


class Secretive(ToyEngine):
    counters = None


class Half(ToyEngine):
    def answer_soon(self, batch: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(self.answer(batch[1:]))
        return future


ENGINES: dict[Any, str] = {
    Half: "answer_soon: the future gives",
    Unnamed: "text is blank",
    Moody: "two names",
    Forgetful: "questions, ",
    Both: "either an answer text or an error",
    Raw: "not a Reply",
    Fractions: "prompt_tokens is 1.5",
    Fragile: "harms its neighbours",
    Raising: "raised ValueError: the prompt is too long",
    Chatty: "names with numbers",
    Once: "close, a second time, raised",
    Secretive: "no method counters",
}


def test_the_engine_for_servers_conforms() -> None:
    with HttpJudge() as server:
        judge = JudgeConfig(engine="openai", model="judge-2026-01-01", base_url=server.url)
        check_engine(OpenAIEngine, judge)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_fault_of_an_engine_is_named(engine: Any) -> None:
    with pytest.raises(AssertionError) as caught:
        check_engine(engine, JUDGE, Toy())
    assert ENGINES[engine] in str(caught.value)


def test_an_engine_that_is_no_module_member_is_named() -> None:
    class Local(ToyEngine):
        pass

    with pytest.raises(AssertionError, match=r"pickling|module and name"):
        check_engine(Local, JUDGE, Toy())


@pytest.mark.parametrize(
    ("fault", "said"), [("short", "replies"), ("none", "not a Reply"), ("no_list", "a list")]
)
def test_scripted_faults_are_named(fault: str, said: str) -> None:
    judge = JudgeConfig(
        engine="fakes.scripted_engine:ScriptedEngine", engine_options={"faults": {"*": fault}}
    )
    with pytest.raises(AssertionError, match=said):
        check_engine(ScriptedEngine, judge, overlong=False)
