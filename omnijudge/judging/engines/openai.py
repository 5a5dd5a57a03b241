"""A judge behind an HTTP address: any server that speaks OpenAI's chat completions."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import re
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from omnijudge.errors import ConfigError
from omnijudge.judging.engines.reasoning import REASONING_ONLY, Marks, split_reasoning
from omnijudge.judging.engines.retry import with_retries
from omnijudge.judging.engines.seeds import request_seed
from omnijudge.judging.types import NOT_ASKED, Identity, Reply, Request

if TYPE_CHECKING:
    from omnijudge.config import JudgeConfig

REFUSAL = "refusal"
"""Finish reason of a reply in which the model declines to answer; its words are kept."""

CONTENT_FILTER = "content_filter"
"""Finish reason of a reply that the server's content filter cut."""

FIRST_WAIT = 0.5
"""Seconds before a request is tried again for the first time."""

_DATED = re.compile(r"[-@](\d{4}-\d{2}-\d{2}|20\d{6}|(0[1-9]|1[0-2])([0-2]\d|3[01]))$")
_TRANSIENT = {408, 409, 425, 429}
_OFF_WORDS = ("response_format", "json_schema", "schema", "structured", "guided", "grammar")


class _Stopped(Exception):
    """Nothing is asked any more."""


class OpenAIEngine:
    """Asks a server: all requests of a batch at once, ``concurrency`` of them in flight."""

    def __init__(self, judge: JudgeConfig, benchmark_name: str) -> None:
        from openai import AsyncOpenAI

        self._judge = judge
        self._url = judge.base_url or os.environ.get("OPENAI_BASE_URL") or None
        self._key = os.environ.get(judge.api_key_env, "")
        if not self._key and not is_local(self._url):
            raise ConfigError(
                f"judge {judge.name}: the environment variable {judge.api_key_env} holds no key; "
                "set it, or name the one that does in api_key_env"
            )
        self._thinks = not isinstance(judge.thinking, str)
        self._no_schema = False  # the server was seen to refuse answer schemas
        self._schema_taken = False
        self._stopped = False
        self._no_template_kwargs = False
        self._counts = dict.fromkeys(
            ("requests", "transport_retries", "prompt_tokens", "prompt_tokens_cached"), 0.0
        ) | {"generation_tokens": 0.0}
        # A loop of our own in a thread of its own: the caller may sit inside a running one.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="omnijudge-openai", daemon=True
        )
        self._thread.start()
        self._client: Any = AsyncOpenAI(
            api_key=self._key or "none",
            base_url=self._url,
            timeout=judge.timeout,
            max_retries=0,
        )
        self._room = asyncio.Semaphore(judge.concurrency)

    @classmethod
    def identity(cls, judge: JudgeConfig) -> Identity:
        """The dated name of the model, or what the configuration states. Never the address."""
        remarks: list[str] = []
        text = judge.identity or str(judge.model)
        if judge.identity is None and judge.revision is not None:
            text += f"@{judge.revision}"
        elif judge.identity is None and not _DATED.search(text):
            remarks.append(
                f"judge {judge.name}: model {text} can come to mean another model; name a dated "
                "one (such as gpt-4o-2024-08-06), or state its `revision` or `identity`"
            )
        options = cls.relevant_options(judge)
        details = {
            "model": judge.model,
            "stated": judge.identity,
            "options": options,
            "versions": {"openai": version("openai")},
        }
        if options:
            text += " " + json.dumps(options, sort_keys=True, ensure_ascii=False, default=str)
        return Identity(text, details, tuple(remarks))

    @classmethod
    def relevant_options(cls, judge: JudgeConfig) -> dict[str, Any]:
        """All engine options: they are sent with every question."""
        return {k: judge.engine_options[k] for k in sorted(judge.engine_options)}

    def answer(self, batch: Sequence[Request]) -> list[Reply]:
        """Answers a batch; what cannot be answered becomes an error reply of its own."""
        if not batch:
            return []
        future = self.answer_soon(batch)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def answer_soon(self, batch: Sequence[Request]) -> Future[list[Reply]]:
        """Begins a batch beside those that are under way: all share the room in flight."""
        return asyncio.run_coroutine_threadsafe(self._answer_all(batch), self._loop)

    def stop_asking(self) -> None:
        """Hands back unasked what waits for its turn; what is under way is waited for."""
        self._stopped = True

    def counters(self) -> dict[str, float]:
        """Requests sent, transport retries among them, and tokens as the server counts them."""
        return dict(self._counts)

    def close(self) -> None:
        """Closes connections and ends the loop's thread."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(timeout=10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)
        self._loop.close()

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._client.close()

    async def _answer_all(self, batch: Sequence[Request]) -> list[Reply]:
        return list(await asyncio.gather(*(self._answer(request) for request in batch)))

    async def _answer(self, request: Request) -> Reply:
        from openai import APIStatusError

        retries = 0

        def count() -> None:
            nonlocal retries
            retries += 1
            self._counts["transport_retries"] += 1

        async with self._room:
            if self._stopped:
                return NOT_ASKED
            try:
                completion = await with_retries(
                    lambda: self._ask(request),
                    _is_transient,
                    self._judge.transport_retries,
                    FIRST_WAIT,
                    on_retry=count,
                )
            except _Stopped:
                return NOT_ASKED
            except Exception as e:  # everything the SDK, the network and the server come up with
                permanent = isinstance(e, APIStatusError) and not _is_transient(e)
                return Reply(None, self._words(e), retries=retries, permanent=permanent)
        return self._reply(request, completion, retries)

    async def _ask(self, request: Request) -> Any:
        """Asks once; a part of the question that the server does not know is left out."""
        from openai import BadRequestError, UnprocessableEntityError

        if self._stopped:
            raise _Stopped
        body = self._body(request)
        while True:
            self._counts["requests"] += 1
            try:
                completion = await self._client.chat.completions.create(
                    model=self._judge.model, messages=request.messages, extra_body=body
                )
            except (BadRequestError, UnprocessableEntityError) as e:
                words = str(e).casefold()
                if "chat_template_kwargs" in body and "chat_template_kwargs" in words:
                    del body["chat_template_kwargs"]
                    self._no_template_kwargs = True
                elif "response_format" in body and any(w in words for w in _OFF_WORDS):
                    del body["response_format"]
                    self._no_schema = True
                elif "response_format" in body and not self._schema_taken:
                    # Some servers only say that the request is bad. Whether the schema was the
                    # reason shows when the same question passes without it.
                    completion = await self._without_schema(request, body, e)
                    self._no_schema = True
                    return completion
                else:
                    raise
            else:
                self._schema_taken |= "response_format" in body
                return completion

    async def _without_schema(
        self, request: Request, body: dict[str, Any], refused: Exception
    ) -> Any:
        plain = {k: v for k, v in body.items() if k != "response_format"}
        self._counts["requests"] += 1
        try:
            return await self._client.chat.completions.create(
                model=self._judge.model, messages=request.messages, extra_body=plain
            )
        except Exception as e:
            if _is_transient(e):
                raise
            raise refused from None  # the schema was not the reason

    def _body(self, request: Request) -> dict[str, Any]:
        return request_body(
            self._judge,
            request,
            with_schema=not self._no_schema,
            with_template_kwargs=not self._no_template_kwargs,
            # Open models think unless told not to; OpenAI's own servers do not know the switch.
            thinking_switch=not is_openai(self._url),
        )

    def _reply(self, request: Request, completion: Any, retries: int) -> Reply:
        reply = read_completion(completion, self._thinks or request.schema is None)
        self._counts["prompt_tokens"] += reply.prompt_tokens
        self._counts["prompt_tokens_cached"] += reply.cached_tokens
        self._counts["generation_tokens"] += reply.output_tokens
        if reply.error is not None:
            return Reply(None, self._redact(reply.error), retries=retries)
        return replace(reply, retries=retries)

    def _words(self, error: Exception) -> str:
        """The server's words about an error, in one line, without the key."""
        status = getattr(error, "status_code", None)
        body = getattr(error, "body", None)
        message = body.get("message") if isinstance(body, Mapping) else None
        text = str(message or error) or type(error).__name__
        if status is not None:
            text = f"the server answers {status}: {text}"
        elif isinstance(error, ValueError):
            text = f"the server's reply is no JSON ({text}); is base_url the address of a judge?"
        elif error.__cause__ is not None:
            text = f"the server cannot be reached: {text} ({error.__cause__})"
        return self._redact(" ".join(text.split())[:500])

    def _redact(self, text: str) -> str:
        # A key of a letter or two is none, and masking it would spoil the words.
        return text.replace(self._key, "***") if len(self._key) > 3 else text


def request_body(
    judge: JudgeConfig,
    request: Request,
    *,
    with_schema: bool = True,
    with_template_kwargs: bool = True,
    thinking_switch: bool = True,
) -> dict[str, Any]:
    """A chat-completions request but for model and messages.

    Args:
        judge: whose settings count. Its engine options win where the engine is ``openai``; null
            leaves a field out.
        request: the question.
        with_schema: ask for an answer of the question's schema.
        with_template_kwargs: hand settings to the model's chat template.
        thinking_switch: say there whether the model is to think.
    """
    sampling = judge.sampling
    body: dict[str, Any] = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "seed": request_seed(request, sampling.seed),
    }
    if not isinstance(judge.thinking, str):
        body["max_tokens"] += judge.thinking.budget
    if request.schema is not None and with_schema:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {
                "name": re.sub(r"[^A-Za-z0-9_-]", "_", request.stage)[:64] or "answer",
                "strict": _is_strict(request.schema),
                "schema": dict(request.schema),
            },
        }
    if with_template_kwargs:
        thinks = not isinstance(judge.thinking, str)
        kwargs = {"enable_thinking": thinks} if thinking_switch else {}
        kwargs |= judge.chat_template_kwargs
        if kwargs:
            body["chat_template_kwargs"] = kwargs
    if judge.engine == "openai":
        body |= judge.engine_options
    return {k: v for k, v in body.items() if v is not None}


def read_completion(completion: Any, split: bool) -> Reply:
    """What a chat completion says.

    Args:
        completion: as the SDK gives it, or anything with the same attributes.
        split: whether reasoning may stand before the answer in its text.
    """
    choices = getattr(completion, "choices", None)
    if not choices or getattr(choices[0], "message", None) is None:
        shown = completion.to_json() if hasattr(completion, "to_json") else str(completion)
        return Reply(None, f"the server's reply has no choices: {' '.join(shown.split())[:300]}")
    message, finish = choices[0].message, choices[0].finish_reason
    raw = _text(message.content)
    if getattr(message, "refusal", None):
        raw, finish = raw or message.refusal, REFUSAL
    elif not raw and finish != CONTENT_FILTER and _reasoned(message):
        finish = REASONING_ONLY
    elif split:
        answer = split_reasoning(raw, Marks())
        raw, finish = ("", REASONING_ONLY) if answer is None else (answer, finish)
    prompt, cached, output = _usage(getattr(completion, "usage", None))
    return Reply(
        raw=raw,
        finish_reason=finish,
        model=str(getattr(completion, "model", None) or ""),
        prompt_tokens=prompt,
        cached_tokens=cached,
        output_tokens=output,
    )


def is_local(url: str | None) -> bool:
    """Whether an address lies on this machine or its own network, where servers ask no key."""
    host = urlsplit(url or "").hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return bool(host) and ("." not in host or host.endswith((".local", ".internal")))
    return address.is_loopback or address.is_private


def is_openai(url: str | None) -> bool:
    """Whether an address is one of OpenAI's own; so is none at all."""
    host = urlsplit(url or "https://api.openai.com").hostname or ""
    return host.endswith((".openai.com", ".azure.com"))


def _is_transient(error: BaseException) -> bool:
    from openai import APIConnectionError, APIStatusError

    if isinstance(error, APIConnectionError):  # time-outs are a kind of it
        return True
    if not isinstance(error, APIStatusError):
        return False
    if error.code == "insufficient_quota":  # the account is empty; waiting fills no account
        return False
    return error.status_code in _TRANSIENT or error.status_code >= 500


def _is_strict(schema: Mapping[str, Any]) -> bool:
    """Whether a schema has the closed form that strict servers insist on."""
    properties = schema.get("properties", {})
    closed = schema.get("type") == "object" and schema.get("additionalProperties") is False
    inner = [p for p in properties.values() if p.get("type") == "object"]
    return closed and set(schema.get("required", ())) == set(properties) and not inner


def _text(content: Any) -> str:
    if isinstance(content, list):  # some servers answer in parts
        parts = [p.get("text") if isinstance(p, Mapping) else None for p in content]
        return "".join(p for p in parts if isinstance(p, str))
    return content if isinstance(content, str) else ""


def _reasoned(message: Any) -> bool:
    return any(getattr(message, name, None) for name in ("reasoning_content", "reasoning"))


def _usage(usage: Any) -> tuple[int, int, int]:
    """Prompt, cached and output tokens; 0 where the server does not say."""
    details = getattr(usage, "prompt_tokens_details", None)
    cached = getattr(details, "cached_tokens", None)
    if cached is None:
        cached = getattr(usage, "prompt_cache_hit_tokens", None)
    prompt = getattr(usage, "prompt_tokens", None)
    output = getattr(usage, "completion_tokens", None)
    return int(prompt or 0), int(cached or 0), int(output or 0)
