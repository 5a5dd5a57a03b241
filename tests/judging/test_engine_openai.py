"""The engine for OpenAI-compatible servers, against a server on this machine."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from fakes.http_judge import Fault, HttpJudge

from omnijudge.config import JudgeConfig, SamplingConfig, ThinkingConfig
from omnijudge.errors import ConfigError
from omnijudge.judging.engines import engine_identity, open_engine, openai
from omnijudge.judging.engines.reasoning import REASONING_ONLY
from omnijudge.judging.engines.retry import retry_after
from omnijudge.judging.executors.local import LocalExecutor
from omnijudge.judging.types import NOT_ASKED, Engine, Reply, Request

KEY = "sk-secret-of-the-test"
SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "number"}},
    "required": ["score"],
    "additionalProperties": False,
}
Open = Callable[..., Engine]


@pytest.fixture
def server() -> Iterator[HttpJudge]:
    with HttpJudge() as running:
        yield running


@pytest.fixture
def connect(server: HttpJudge, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens engines on the server and closes them in the end."""
    monkeypatch.setattr(openai, "FIRST_WAIT", 0.01)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    opened: list[Engine] = []

    def connect(**settings: Any) -> Engine:
        settings = {"base_url": server.url, "model": "judge-1", "timeout": 5.0, **settings}
        opened.append(open_engine(JudgeConfig(engine="openai", **settings), "omniinteract"))
        return opened[-1]

    yield connect
    for engine in opened:
        engine.close()
        engine.close()  # twice is harmless


def request(number: int = 1, text: str = "red?", schema: Any = SCHEMA) -> Request:
    messages = [{"role": "user", "content": text}]
    return Request(number.to_bytes(16, "big"), 1, 0, "core", messages, schema)


def ask(engine: Engine, **settings: Any) -> Reply:
    [reply] = engine.answer([request(**settings)])
    return reply


def test_an_answer_with_its_tokens(server: HttpJudge, connect: Open) -> None:
    engine = connect()
    assert ask(engine) == Reply(
        raw='{"score": 1}',
        finish_reason="stop",
        model="judge-1-served",
        prompt_tokens=12,
        cached_tokens=8,
        output_tokens=5,
    )
    assert engine.counters() == {
        "requests": 1,
        "transport_retries": 0,
        "prompt_tokens": 12,
        "prompt_tokens_cached": 8,
        "generation_tokens": 5,
    }


def test_what_is_sent(server: HttpJudge, connect: Open) -> None:
    sampling = SamplingConfig(temperature=0.5, max_tokens=99, top_p=0.9)
    options = {"max_tokens": None, "max_completion_tokens": 77, "top_k": 5}
    ask(connect(sampling=sampling, engine_options=options))
    [body] = server.bodies
    assert body["messages"] == [{"role": "user", "content": "red?"}]
    assert (body["model"], body["temperature"], body["top_p"]) == ("judge-1", 0.5, 0.9)
    assert (body["max_completion_tokens"], body["top_k"]) == (77, 5)
    assert "max_tokens" not in body
    assert body["response_format"]["json_schema"] == {
        "name": "core",
        "strict": True,
        "schema": SCHEMA,
    }
    assert body["chat_template_kwargs"] == {"enable_thinking": False}


def test_every_question_has_a_seed_of_its_own(server: HttpJudge, connect: Open) -> None:
    engine = connect()
    engine.answer([request(1), request(2)])
    engine.answer([request(1)])
    seeds = {b["seed"] for b in server.bodies}
    assert len(seeds) == 2


def test_empty_batch(server: HttpJudge, connect: Open) -> None:
    assert connect().answer([]) == []
    assert server.bodies == []


def test_replies_come_in_order_with_bounded_requests_in_flight(
    server: HttpJudge, connect: Open
) -> None:
    server.latency = 0.02
    server.answer = lambda body: body["messages"][0]["content"]
    engine = connect(concurrency=4)
    replies = engine.answer([request(i, f"question {i}", None) for i in range(20)])
    assert [r.raw for r in replies] == [f"question {i}" for i in range(20)]
    assert 2 <= server.most_in_flight <= 4


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503])
def test_passing_trouble_is_retried_and_counted(
    server: HttpJudge, connect: Open, status: int
) -> None:
    server.faults.extend([Fault(status), Fault(status)])
    engine = connect()
    reply = ask(engine)
    assert (reply.raw, reply.retries) == ('{"score": 1}', 2)
    assert engine.counters()["transport_retries"] == 2


def test_a_lost_connection_and_a_time_out_are_retried(server: HttpJudge, connect: Open) -> None:
    server.faults.extend([Fault(status=0), Fault(delay=1.0)])
    reply = ask(connect(timeout=0.3))
    assert (reply.raw, reply.retries) == ('{"score": 1}', 2)


def test_retries_end(server: HttpJudge, connect: Open) -> None:
    server.always = Fault(503, {"error": {"message": "overloaded"}})
    reply = ask(connect(transport_retries=3))
    assert (reply.raw, reply.retries, reply.permanent) == (None, 3, False)
    assert reply.error == "the server answers 503: overloaded"
    assert len(server.bodies) == 4


def test_no_retries_when_none_are_allowed(server: HttpJudge, connect: Open) -> None:
    server.always = Fault(500)
    assert ask(connect(transport_retries=0)).retries == 0
    assert len(server.bodies) == 1


def test_retry_after_is_waited_for(server: HttpJudge, connect: Open) -> None:
    server.faults.append(Fault(429, headers={"Retry-After": "0.4"}))
    start = time.monotonic()
    assert ask(connect()).retries == 1
    assert time.monotonic() - start >= 0.4


def test_rate_limit_loses_no_question(server: HttpJudge, connect: Open) -> None:
    server.rate_limit, server.rate_window = 5, 0.1
    replies = connect(transport_retries=50).answer([request(i) for i in range(20)])
    assert all(r.raw == '{"score": 1}' for r in replies)
    assert sum(r.retries for r in replies) > 0


def test_retry_after_as_written_by_servers() -> None:
    assert retry_after({"retry-after": "3"}) == 3
    assert retry_after({"retry-after-ms": "250"}) == 0.25
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({"retry-after": "-1"}) == 0
    assert retry_after({}) is None
    moment = datetime.now(UTC) + timedelta(seconds=30)
    assert 25 < (retry_after({"retry-after": format_datetime(moment, usegmt=True)}) or 0) <= 30


@pytest.mark.parametrize("status", [400, 403, 404, 413, 422])
def test_a_refused_request_is_permanent_and_harms_no_neighbour(
    server: HttpJudge, connect: Open, status: int
) -> None:
    engine = connect()
    ask(engine)  # the schema is known to be welcome
    server.faults.append(Fault(status, {"error": {"message": "prompt is too long"}}))
    replies = engine.answer([request(i) for i in range(4)])
    [refused] = [r for r in replies if r.error]
    assert refused.permanent
    assert refused.error == f"the server answers {status}: prompt is too long"
    assert refused.retries == 0


def test_wrong_key_is_told_without_the_key(server: HttpJudge, connect: Open) -> None:
    server.key = "another"
    reply = ask(connect())
    assert reply.permanent
    assert "401" in str(reply.error)
    assert "there is no such key" in str(reply.error)
    assert KEY not in str(reply.error)


def test_empty_account_is_not_retried(server: HttpJudge, connect: Open) -> None:
    body = {"error": {"message": "pay first", "code": "insufficient_quota"}}
    server.always = Fault(429, body)
    reply = ask(connect())
    assert (reply.retries, reply.permanent) == (0, True)


@pytest.mark.parametrize("field", ["response_format", "chat_template_kwargs"])
def test_what_the_server_does_not_know_is_left_out_from_then_on(
    server: HttpJudge, connect: Open, field: str
) -> None:
    server.forbidden = {field}
    engine = connect()
    assert ask(engine).raw == '{"score": 1}'
    assert ask(engine).raw == '{"score": 1}'
    assert [field in body for body in server.bodies] == [True, False, False]


def test_a_wordless_refusal_of_the_schema_is_found_out(server: HttpJudge, connect: Open) -> None:
    server.faults.append(Fault(400, {"error": {"message": "bad request"}}))
    engine = connect()
    assert ask(engine).raw == '{"score": 1}'
    ask(engine)
    assert ["response_format" in body for body in server.bodies] == [True, False, False]


def test_a_refusal_that_was_not_about_the_schema_keeps_it(server: HttpJudge, connect: Open) -> None:
    server.faults.extend([Fault(400, {"error": {"message": "bad request"}})] * 2)
    engine = connect()
    assert ask(engine).error == "the server answers 400: bad request"
    assert ask(engine).raw == '{"score": 1}'
    assert ["response_format" in body for body in server.bodies] == [True, False, True]


def test_refusal_keeps_its_words(server: HttpJudge, connect: Open) -> None:
    server.message = {"content": None, "refusal": "I would rather not."}
    reply = ask(connect())
    assert (reply.raw, reply.finish_reason) == ("I would rather not.", "refusal")


def test_content_filter_is_named(server: HttpJudge, connect: Open) -> None:
    server.message, server.finish_reason = {"content": None}, "content_filter"
    reply = ask(connect())
    assert (reply.raw, reply.finish_reason, reply.error) == ("", "content_filter", None)


def test_empty_content_is_an_empty_answer(server: HttpJudge, connect: Open) -> None:
    server.message = {"content": None}
    reply = ask(connect())
    assert (reply.raw, reply.error) == ("", None)


def test_cut_answer_says_so(server: HttpJudge, connect: Open) -> None:
    server.answer, server.finish_reason = lambda body: '{"sco', "length"
    assert ask(connect()).finish_reason == "length"


def test_content_in_parts_is_joined(server: HttpJudge, connect: Open) -> None:
    server.message = {"content": [{"type": "text", "text": '{"score"'}, {"text": ": 1}"}]}
    assert ask(connect()).raw == '{"score": 1}'


def test_reasoning_is_parsed_off(server: HttpJudge, connect: Open) -> None:
    engine = connect(thinking=ThinkingConfig(budget=50), sampling=SamplingConfig(max_tokens=10))
    server.answer = lambda body: '<think>hm</think>{"score": 0}'
    assert ask(engine).raw == '{"score": 0}'
    assert server.bodies[0]["max_tokens"] == 60
    assert server.bodies[0]["chat_template_kwargs"] == {"enable_thinking": True}
    server.answer, server.finish_reason = lambda body: "<think>hm", "length"
    assert (ask(engine).raw, ask(engine).finish_reason) == ("", REASONING_ONLY)


def test_reasoning_in_a_field_of_its_own_is_no_answer(server: HttpJudge, connect: Open) -> None:
    server.message = {"content": None, "reasoning_content": "hm"}
    reply = ask(connect())
    assert (reply.raw, reply.finish_reason) == ("", REASONING_ONLY)


@pytest.mark.parametrize(
    "body", [{"error": {"message": "no upstream"}}, {"choices": []}, {"choices": None}, b"<html>"]
)
def test_a_reply_without_choices_is_an_error(server: HttpJudge, connect: Open, body: Any) -> None:
    server.faults.append(Fault(200, body))
    reply = ask(connect())
    assert reply.raw is None
    assert reply.error
    assert not reply.permanent


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (None, (0, 0, 0)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}, (9, 0, 2)),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": None},
            (9, 0, 2),
        ),
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}, (9, 4, 2)),
    ],
)
def test_tokens_as_servers_count_them(
    server: HttpJudge, connect: Open, usage: Any, tokens: tuple[int, int, int]
) -> None:
    server.usage = usage
    reply = ask(connect())
    assert (reply.prompt_tokens, reply.cached_tokens, reply.output_tokens) == tokens


def test_it_answers_inside_a_running_loop(server: HttpJudge, connect: Open) -> None:
    engine = connect()

    async def notebook() -> str | None:
        return ask(engine).raw

    assert asyncio.run(notebook()) == '{"score": 1}'


def test_media_parts_are_sent_as_they_are(server: HttpJudge, connect: Open) -> None:
    parts = [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
    ]
    connect().answer(
        [Request(bytes(16), 1, 0, "core", [{"role": "user", "content": parts}], SCHEMA)]
    )
    assert server.bodies[0]["messages"][0]["content"] == parts


def test_two_judges_keep_their_own_servers(connect: Open) -> None:
    with HttpJudge(lambda body: "other") as other:
        first, second = connect(), connect(base_url=other.url)
        assert (ask(first).raw, ask(second).raw) == ('{"score": 1}', "other")


def test_base_url_from_the_environment(
    server: HttpJudge, connect: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    assert ask(connect(base_url=None)).raw == '{"score": 1}'


def test_missing_key_is_told_unless_the_server_is_local(
    connect: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    assert ask(connect()).raw == '{"score": 1}'
    with pytest.raises(ConfigError, match="judge main: the environment variable OPENAI_API_KEY"):
        connect(base_url=None)
    with pytest.raises(ConfigError, match="MY_KEY"):
        connect(base_url="https://judge.example.com/v1", api_key_env="MY_KEY")


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://localhost:8000/v1", True),
        ("http://127.0.0.1:8000", True),
        ("http://[::1]:8000", True),
        ("http://10.1.2.3/v1", True),
        ("http://node17:8000/v1", True),
        ("https://api.example.com/v1", False),
        ("https://8.8.8.8/v1", False),
        (None, False),
    ],
)
def test_what_counts_as_local(url: str | None, local: bool) -> None:
    assert openai.is_local(url) is local


def identity(**settings: Any) -> Any:
    return engine_identity(JudgeConfig(engine="openai", **settings), "omniinteract")


@pytest.mark.parametrize(
    "model", ["gpt-4o-2024-08-06", "claude-20241022", "gpt-4-0613", "org/model@2025-01-31"]
)
def test_dated_models_need_no_more(model: str) -> None:
    assert (identity(model=model).text, identity(model=model).warnings) == (model, ())


def test_other_names_are_warned_about_or_stated() -> None:
    [warning] = identity(model="gpt-4o").warnings
    assert "gpt-4o can come to mean another model" in warning
    stated = identity(model="judge", identity="Qwen3-14B of May, fp8")
    assert (stated.text, stated.warnings) == ("Qwen3-14B of May, fp8", ())
    pinned = identity(model="Qwen/Qwen3-14B", revision="abc")
    assert (pinned.text, pinned.warnings) == ("Qwen/Qwen3-14B@abc", ())


def test_identity_knows_options_but_no_address() -> None:
    one = identity(model="m-2024-08-06", base_url="http://node1:8000/v1")
    other = identity(model="m-2024-08-06", base_url="https://example.com:9/v1", concurrency=1)
    assert one == other
    assert "node1" not in json.dumps([one.text, dict(one.details)])
    assert identity(model="m-2024-08-06", engine_options={"top_k": 5}).text != one.text


def test_a_batch_does_not_wait_for_the_last_answer_of_another(
    server: HttpJudge, connect: Open
) -> None:
    second_is_here = threading.Event()
    waited: list[bool] = []

    def answer(body: dict[str, Any]) -> str:
        text = body["messages"][0]["content"]
        if text == "slow":
            waited.append(second_is_here.wait(20))
        elif text == "second":
            second_is_here.set()
        return '{"score": 1}'

    server.answer = answer
    executor = LocalExecutor(lambda: connect(concurrency=2, timeout=30.0))
    first = [request(1, "slow"), request(2), request(3)]
    second = [request(4, "second"), request(5)]
    executor.submit(first)
    executor.submit(second)
    assert not executor.room()
    done = executor.wait() + executor.wait()
    executor.close()
    assert waited == [True]
    assert sorted(len(batch) for batch, _ in done) == [2, 3]
    assert all(r.raw == '{"score": 1}' for _, replies in done for r in replies)


def test_what_is_under_way_ends_with_the_executor(server: HttpJudge, connect: Open) -> None:
    over = threading.Event()
    server.answer = lambda body: str(over.wait(20))
    executor = LocalExecutor(lambda: connect(concurrency=1, timeout=30.0))
    executor.submit([request(1), request(2)])
    while not server.bodies:
        time.sleep(0.01)
    begin = time.monotonic()
    executor.close()
    over.set()
    assert time.monotonic() - begin < 10
    assert len(server.bodies) == 1  # the second was never asked


def test_a_stop_leaves_what_is_not_under_way_unasked(server: HttpJudge, connect: Open) -> None:
    over = threading.Event()
    server.answer = lambda body: '{"score": 1}' if over.wait(20) else ""
    executor = LocalExecutor(lambda: connect(concurrency=1, timeout=30.0))
    executor.submit([request(1), request(2)])
    executor.submit([request(3)])
    while not server.bodies:
        time.sleep(0.01)
    executor.stop_asking()
    over.set()
    done = dict(enumerate(replies for _, replies in [*executor.wait(), *executor.wait()]))
    executor.close()
    first = next(r for r in done.values() if len(r) == 2)
    assert [r.raw for r in first] == ['{"score": 1}', None]
    assert first[1] == NOT_ASKED
    assert [NOT_ASKED] in done.values()
    assert len(server.bodies) == 1


class Poisoned:
    """Begins batches side by side; one question makes the batch fail as a whole."""

    def answer(self, batch: Sequence[Request]) -> list[Reply]:
        if any(r.messages[0]["content"] == "poison" for r in batch):
            raise RuntimeError("cannot swallow this")
        return [Reply('{"score": 1}') for _ in batch]

    def answer_soon(self, batch: Sequence[Request]) -> Future[list[Reply]]:
        future: Future[list[Reply]] = Future()
        try:
            future.set_result(self.answer(batch))
        except RuntimeError as e:
            future.set_exception(e)
        return future

    def counters(self) -> dict[str, float]:
        return {}

    def close(self) -> None:
        pass


def test_a_batch_that_fails_as_a_whole_is_halved() -> None:
    executor = LocalExecutor(Poisoned)
    executor.submit([request(1), request(2, "poison"), request(3)])
    [(_, replies)] = executor.wait()
    executor.close()
    assert [r.raw for r in replies] == ['{"score": 1}', None, '{"score": 1}']
    assert replies[1].permanent
    assert "cannot swallow this" in str(replies[1].error)
    assert executor.counters()["questions_quarantined"] == 1
