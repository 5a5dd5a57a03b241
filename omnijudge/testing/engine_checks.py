"""Whether an engine keeps what the judge step relies on."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from omnijudge.judging.types import Identity, Reply, Request
from omnijudge.testing.expectations import expect, working

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Benchmark
    from omnijudge.config import JudgeConfig

METHODS = ("identity", "answer", "counters", "close")
MOST_QUESTIONS = 12
LONG = 200_000
"""Words of a question that hardly any model can take."""
PATIENCE = 600
"""Seconds that batches side by side may take."""


def check_engine(
    engine_class: Any,
    judge: JudgeConfig,
    benchmark: str | Benchmark = "omniinteract",
    overlong: bool = True,
) -> None:
    """Opens an engine and asks it a few questions of a benchmark's sample data.

    Args:
        engine_class: the class that an entry point names.
        judge: a configuration that it can be opened with.
        benchmark: the benchmark whose questions it gets, or its name.
        overlong: also ask a question of a million characters, to see that it harms no other.

    Raises:
        AssertionError: with a sentence that says what is not as the judge step expects it.
    """
    for name in METHODS:
        expect(callable(getattr(engine_class, name, None)), f"the engine has no method {name}")
    check_identity(engine_class, judge)
    from omnijudge.benchmarks import get_benchmark

    asking = get_benchmark(benchmark) if isinstance(benchmark, str) else benchmark
    requests = _requests(engine_class, judge, asking)
    with working("opening the engine"):
        engine = engine_class(judge, asking.name)
    try:
        _check_answers(engine, requests)
        if overlong:
            _check_overlong(engine, requests)
        with working("counters"):
            counted = engine.counters()
        expect(
            isinstance(counted, Mapping)
            and all(isinstance(k, str) and _is_number(v) for k, v in counted.items()),
            f"counters: returns names with numbers, found {counted!r}",
        )
    finally:
        with working("close"):
            engine.close()
    with working("close, a second time,"):
        engine.close()


def check_identity(engine_class: Any, judge: JudgeConfig) -> None:
    """The part of the checks that opens nothing.

    Raises:
        AssertionError: the engine does not say, or not twice the same, who answers.
    """
    with working("identity"):
        found, again = engine_class.identity(judge), engine_class.identity(judge)
    expect(isinstance(found, Identity), f"identity: returns an Identity, found {found!r}")
    expect(
        isinstance(found.text, str) and found.text.strip(),
        "identity: text is blank; it has to name the model that answers",
    )
    expect(
        found.text == again.text, "identity: asked twice, two names; answers would be paid twice"
    )
    choose = getattr(engine_class, "relevant_options", None)
    if choose is not None:
        import json

        with working("relevant_options"):
            options = choose(judge)
            json.dumps(dict(options))
    with working("pickling the engine class"):
        same = pickle.loads(pickle.dumps(engine_class))
    expect(
        same is engine_class,
        "the engine class cannot be found by its module and name; workers open it that way",
    )


def _requests(engine_class: Any, judge: JudgeConfig, benchmark: Benchmark) -> list[Request]:
    from omnijudge.judging.prompts import load_pack
    from omnijudge.judging.question import Asker
    from omnijudge.prompt_commands import sample_prompts

    choose = getattr(engine_class, "relevant_options", None)
    options = dict(judge.engine_options if choose is None else choose(judge))
    pack = load_pack(judge.prompts, benchmark)
    asker = Asker(judge, pack, engine_class.identity(judge), options)
    requests: dict[bytes, Request] = {}
    for prompt in sample_prompts(benchmark):
        question = asker.question(prompt)
        requests.setdefault(question.fingerprint, asker.request(prompt, question))
        if len(requests) == MOST_QUESTIONS:
            break
    return list(requests.values())


def _check_answers(engine: Any, requests: Sequence[Request]) -> None:
    with working("answer with an empty batch"):
        expect(engine.answer([]) == [], "answer: an empty batch gets an empty list")
    replies = _answer(engine, requests)
    for request, reply in zip(requests, replies, strict=True):
        what = f"the reply to a question of stage {request.stage}"
        check_reply(reply, what)
        expect(reply.raw is not None, f"{what} is an error: {reply.error}")
    if hasattr(engine, "answer_soon"):
        _check_side_by_side(engine, requests)
    single = _answer(engine, requests[:1])
    check_reply(single[0], "the reply to a single question")
    again = [
        Request(
            r.fingerprint, 2, 1, r.stage, [*r.messages[:-1], _longer(r.messages[-1])], None,
            r.variables,
        )
        for r in requests[:2]
    ]  # fmt: skip
    for reply in _answer(engine, again):
        check_reply(reply, "the reply to a second attempt without an answer schema")


def _check_side_by_side(engine: Any, requests: Sequence[Request]) -> None:
    halves = (requests[: len(requests) // 2], requests[len(requests) // 2 :])
    with working("answer_soon"):
        futures = [engine.answer_soon(half) for half in halves]
        replies = [future.result(PATIENCE) for future in futures]
    for half, found in zip(halves, replies, strict=True):
        expect(
            isinstance(found, list) and len(found) == len(half),
            "answer_soon: the future gives what answer returns, one reply for each question",
        )
        for reply in found:
            check_reply(reply, "a reply of answer_soon")


def _check_overlong(engine: Any, requests: Sequence[Request]) -> None:
    first = requests[0]
    text = "word " * LONG
    messages = [*first.messages[:-1], {"role": "user", "content": text}]
    bad = Request(b"\1" * 16, 1, 0, first.stage, messages, first.schema, first.variables)
    replies = _answer(engine, [requests[0], bad, requests[-1]])
    for reply in replies:
        check_reply(reply, "a reply beside an over-long question")
    expect(
        replies[0].raw is not None and replies[2].raw is not None,
        "an over-long question harms its neighbours in the batch; give it an error reply",
    )


def _answer(engine: Any, batch: Sequence[Request]) -> list[Reply]:
    with working(f"answer with {len(batch)} questions"):
        replies = engine.answer(batch)
    expect(isinstance(replies, list), f"answer: returns a list, found {type(replies).__name__}")
    expect(
        len(replies) == len(batch),
        f"answer: {len(batch)} questions, {len(replies)} replies; there is one for each, in order",
    )
    return list(replies)


def check_reply(reply: Any, what: str) -> None:
    """A reply is an answer or an error, and never both.

    Raises:
        AssertionError: it is neither, both, or its counts are no numbers.
    """
    expect(isinstance(reply, Reply), f"{what} is {type(reply).__name__}, not a Reply")
    expect(
        (reply.raw is None) != (reply.error is None),
        f"{what} needs either an answer text or an error; raw is {reply.raw!r}, error is "
        f"{reply.error!r}",
    )
    for name in ("raw", "error", "finish_reason"):
        value = getattr(reply, name)
        expect(value is None or isinstance(value, str), f"{what}: {name} is {type(value).__name__}")
    expect(isinstance(reply.model, str), f"{what}: model is {type(reply.model).__name__}, not text")
    for name in ("prompt_tokens", "cached_tokens", "output_tokens", "retries"):
        value = getattr(reply, name)
        expect(
            isinstance(value, int) and not isinstance(value, bool) and value >= 0,
            f"{what}: {name} is {value!r}, not a number from 0",
        )


def _longer(message: Mapping[str, Any]) -> dict[str, Any]:
    content = message["content"]
    if isinstance(content, list):
        return {**message, "content": [*content, {"type": "text", "text": "Again, please."}]}
    return {**message, "content": f"{content}\n\nAgain, please."}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
