"""What the judge step counts while it runs and says when it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnijudge.judging.limits import Stop


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts so far, of this run.

    Attributes:
        asked: requests handed to an engine, attempts counted singly.
        done: questions with an end: answered, invalid after all attempts, or failed.
        reused: those of them that the store answered.
        invalid: questions invalid after all attempts.
        errors: questions without an answer because of errors.
        in_flight: requests handed out and not back yet.
        prompt_tokens, cached_tokens, output_tokens: sums over replies.
        cost: price of these tokens.
        seconds: since the start.
        rate: replies per second.
    """

    asked: int
    done: int
    reused: int
    invalid: int
    errors: int
    in_flight: int
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    cost: float
    seconds: float
    rate: float


@dataclass(frozen=True, slots=True)
class StageCounts:
    """Questions of one stage by their end."""

    stage: str
    ok: int = 0
    repaired: int = 0
    invalid: int = 0
    error: int = 0


@dataclass(frozen=True, slots=True)
class ErrorCount:
    """One kind of error.

    Attributes:
        reason: in words, as in the first reply that had it.
        count: replies with it.
        stage: of the first.
        fingerprint: of the first, hexadecimal.
    """

    reason: str
    count: int
    stage: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """How judging went.

    Attributes:
        progress: the last counts.
        stages: per stage, sorted by name.
        duplicates: questions that were the same as one already on its way.
        reasked: attempts above the first of a question, errors asked again included.
        transport_retries: retries inside engines.
        errors: error replies by kind, most frequent first, at most 50 kinds.
        failed: questions left without an answer by errors: (fingerprint, repeat) -> reason.
        stop: why it ended early; None if every question has its end.
        counters: the executor's and the engines' own.
    """

    progress: Progress
    stages: tuple[StageCounts, ...] = ()
    duplicates: int = 0
    reasked: int = 0
    transport_retries: int = 0
    errors: tuple[ErrorCount, ...] = ()
    failed: Mapping[tuple[bytes, int], str] = field(default_factory=dict)
    stop: Stop | None = None
    counters: Mapping[str, float] = field(default_factory=dict)
