"""What travels between the judge step, an executor and an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Message = dict[str, Any]
"""A chat message: ``role`` and ``content`` (text, or a list of parts for multimodal judges)."""


@dataclass(frozen=True, slots=True)
class Request:
    """One question on its way to an engine.

    Attributes:
        fingerprint: 16 bytes, hash of all that can change the answer of attempt 1.
        attempt: from 1. Attempts above 1 carry a fixed corrective turn in ``messages``.
        repeat: from 0.
        stage: name of the stage in its benchmark.
        messages: chat messages as sent.
        schema: JSON schema the answer has to satisfy, or None for free text.
        variables: what the template was rendered with. Only engines without a model read it.
    """

    fingerprint: bytes
    attempt: int
    repeat: int
    stage: str
    messages: list[Message]
    schema: Mapping[str, Any] | None = None
    variables: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back for one request.

    ``raw`` is the answer text; if there is none, ``error`` says why. Errors are never stored.

    Attributes:
        raw: answer text, None on an error.
        error: reason in words, None if there is an answer.
        finish_reason: ``stop``, ``length``, ... as the engine names it.
        model: the model that answered, as the engine names it.
        prompt_tokens: tokens of the prompt.
        cached_tokens: those of them served from a prefix cache.
        output_tokens: tokens generated.
        retries: transport retries that were needed.
        permanent: an error that asking again cannot mend (an over-long prompt, a refusal of the
            request itself); such a question is not asked again in this run.
    """

    raw: str | None
    error: str | None = None
    finish_reason: str | None = None
    model: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    retries: int = 0
    permanent: bool = False


NOT_ASKED = Reply(None, "not asked: judging was stopped before")
"""Of an executor that was told to stop: the question stays open."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Which model answers.

    Attributes:
        text: enters every fingerprint (hub id and revision, digests of a folder, dated name).
        details: for the manifest (revision, file digests, versions).
        warnings: sentences for the user, such as an unpinned revision.
    """

    text: str
    details: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class Engine(Protocol):
    """Answers questions. One engine lives in one process (or actor) and is called from one thread.

    An engine that only waits for others may also offer ``answer_soon(batch)``, which gives a
    ``concurrent.futures.Future`` of what ``answer`` returns; it then gets batches side by side.
    ``stop_asking()``, too, is optional: questions not begun then come back as ``NOT_ASKED``.

    An engine class is built as ``EngineClass(judge_config, benchmark_name)`` and offers a class
    method ``identity(judge_config) -> Identity`` that loads no model.
    """

    def answer(self, batch: Sequence[Request]) -> list[Reply]:
        """Answers a batch: as many replies as requests, in the same order.

        One bad request (an over-long prompt, say) becomes an error reply of its own and never
        harms its neighbours. Raises only if the engine itself cannot go on.
        """
        ...

    def counters(self) -> dict[str, float]:
        """The engine's own running counters, such as prefix-cache queries and hits."""
        ...

    def close(self) -> None:
        """Frees what the engine holds."""
        ...


class Executor(Protocol):
    """Runs engines: bounded work in flight, results as they come.

    The judge step submits while there is room, then waits. A batch is handed back exactly once.
    """

    def room(self) -> bool:
        """Whether another batch may be submitted now."""
        ...

    def submit(self, batch: Sequence[Request]) -> None:
        """Hands a batch to an engine."""
        ...

    def wait(self) -> list[tuple[Sequence[Request], list[Reply]]]:
        """Blocks until at least one batch is done; empty list if nothing is in flight."""
        ...

    def counters(self) -> dict[str, float]:
        """Sums of the engines' counters and of the executor's own (``actors_lost``, ...)."""
        ...

    def close(self) -> None:
        """Ends all engines, dropping what is still in flight."""
        ...
