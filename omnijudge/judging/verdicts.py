"""From stored answers to verdicts: which attempt counts, and what it says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from omnijudge import tables
from omnijudge.benchmarks.base import Answer, Prompt
from omnijudge.judging.answer_faults import language_flag, named
from omnijudge.judging.replay import Key
from omnijudge.judging.store import JudgementStore, replies
from omnijudge.judging.types import Reply

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Benchmark

STATUS = pa.field("status", pa.string())
USABLE = ("ok", "repaired")


class Answers(Protocol):
    """Where answers come from: the store or a replay file."""

    def attempts(
        self, keys: Sequence[Key], fingerprints: Sequence[bytes], repeat: int, most: int
    ) -> list[list[tuple[int, Reply]]]:
        """Per question its attempts so far, at most ``most``, in order."""
        ...


class StoredAnswers:
    """Answers from the store, with the errors of this run where there is no answer."""

    def __init__(
        self, store: JudgementStore, failed: Mapping[tuple[bytes, int], str] | None = None
    ) -> None:
        self._store = store
        self.failed: dict[tuple[bytes, int], str] = dict(failed or {})

    def has_all(self, fingerprints: Sequence[bytes]) -> bool:
        """Whether every one of these questions has an answer by now, usable or not."""
        return bool(self._store.count(list(fingerprints)).all()) if fingerprints else True

    def attempts(
        self, keys: Sequence[Key], fingerprints: Sequence[bytes], repeat: int, most: int
    ) -> list[list[tuple[int, Reply]]]:
        """Stored attempts; a last one with the error if this run could not get an answer."""
        found: list[list[tuple[int, Reply]]] = [[] for _ in fingerprints]
        if fingerprints:
            at = [0] * len(fingerprints)
            for position, reply in replies(self._store.attempts_many(fingerprints, repeat)):
                at[position] += 1
                if at[position] <= most:
                    found[position].append((at[position], reply))
        for position, fingerprint in enumerate(fingerprints):
            reason = self.failed.get((fingerprint, repeat))
            if reason is not None and len(found[position]) < most:
                found[position].append((len(found[position]) + 1, Reply(raw=None, error=reason)))
        return found


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt, read."""

    number: int
    reply: Reply
    answer: Answer


@dataclass(frozen=True, slots=True)
class Outcome:
    """All attempts of one question of one judge.

    Attributes:
        attempts: in order, up to the first that is usable.
        status: ``ok``, ``repaired``, ``invalid`` or ``error``; None if it was never asked, or
            may still be asked again.
        fields: answer fields, empty unless usable.
    """

    attempts: list[Attempt]
    status: str | None
    fields: Mapping[str, Any]


def read_reply(
    benchmark: Benchmark, mode: str, stage: str, reply: Reply, prompt: Prompt | None
) -> Answer:
    """Reads a reply; what is unusable or odd about it has a name (``answer_faults``)."""
    if reply.raw is None:
        return Answer("error", {}, reply.error)
    answer = benchmark.parse(stage, reply.raw, mode, prompt)
    if answer.status == "invalid":
        return Answer("invalid", {}, named(reply, answer.reason))
    flag = language_flag(answer.fields, prompt.variables) if prompt is not None else None
    if flag is None:
        return answer
    reason = flag if answer.reason is None else f"{answer.reason}; {flag}"
    return Answer(answer.status, answer.fields, reason)


def outcomes(
    benchmark: Benchmark,
    source: Answers,
    mode: str,
    most: int,
    keys: Sequence[Key],
    fingerprints: Sequence[bytes],
    prompts: Sequence[Prompt | None],
    repeat: int = 0,
) -> list[Outcome]:
    """What the stored attempts of these questions come to."""
    found = []
    for key, prompt, attempts in zip(
        keys, prompts, source.attempts(keys, fingerprints, repeat, most), strict=True
    ):
        read: list[Attempt] = []
        for number, reply in attempts:
            read.append(Attempt(number, reply, read_reply(benchmark, mode, key[4], reply, prompt)))
            if read[-1].answer.status in USABLE:
                break
        found.append(_outcome(read, most))
    return found


def _outcome(read: list[Attempt], most: int) -> Outcome:
    if not read:
        return Outcome(read, None, {})
    last = read[-1]
    if last.answer.status in USABLE:
        return Outcome(read, last.answer.status, last.answer.fields)
    # An answer that is unusable is worse known than none: it stays what the question came to.
    invalid = any(a.answer.status == "invalid" for a in read)
    ended = len(read) >= most or last.answer.status == "error"
    if not ended:
        return Outcome(read, None, {})
    return Outcome(read, "invalid" if invalid else "error", {})


def combine(panel: Sequence[Outcome], how: str) -> tuple[str | None, dict[str, Any], float | None]:
    """One verdict of several judges or repeats: (status, fields, spread).

    Numbers by mean, median or majority (the value most judges gave; the median where no value has
    most), truth values and categories by majority always (a tie goes to the judge named first),
    texts from the judge whose score is nearest the combined one. Judges without a usable answer
    are left out; while one has not been asked yet there is no verdict.

    The spread is the largest difference between two judges as a share of the scale: 0 where they
    agree, 1 where they are as far apart as can be; None where fewer than two have a usable answer.
    """
    if len(panel) == 1:
        return panel[0].status, dict(panel[0].fields), None
    states = [o.status for o in panel]
    usable = [o for o in panel if o.status in USABLE]
    if not usable or None in states:
        status = next((s for s in ("invalid", "error") if s in states), None)
        return None if None in states else status, {}, None
    fields: dict[str, Any] = {}
    texts = []
    for name in dict.fromkeys(n for o in usable for n in o.fields):
        known = [v for o in usable if (v := o.fields.get(name)) is not None]
        if name in TEXTS:
            texts.append(name)
        elif not known:
            fields[name] = None
        elif all(_is_number(v) for v in known):
            fields[name] = _middle([float(v) for v in known], how)
        else:
            fields[name] = max(known, key=known.count)
    if texts:
        nearest = min(usable, key=lambda o: _distance(o.fields, fields))
        fields |= {name: nearest.fields.get(name) for name in texts}
    repaired = any(o.status == "repaired" for o in usable)
    return "repaired" if repaired else "ok", fields, _spread(usable)


TEXTS = ("trigger_phrase", "rationale", "reason", "reasoning")

SCALES = {
    "score": 1.0,
    "equivalent": 1.0,
    "is_relevant": 1.0,
    "success_score": 1.0,
    "temporal_score": 3.0,
    "content_score": 3.0,
}
"""Answer fields that carry the verdict, and how far apart two of their values can be."""


def _middle(values: list[float], how: str) -> float:
    if how == "mean":
        return float(mean(values))
    if how == "majority":
        (value, times), *rest = Counter(values).most_common(2)
        if times > 1 and (not rest or rest[0][1] < times):
            return value
    return float(median(values))


def _distance(fields: Mapping[str, Any], combined: Mapping[str, Any]) -> float:
    """How far a judge's verdict lies from the combined one."""
    return sum(
        abs(float(fields[n]) - float(combined[n])) / scale
        for n, scale in SCALES.items()
        if fields.get(n) is not None and combined.get(n) is not None
    )


def _spread(usable: Sequence[Outcome]) -> float | None:
    spreads = []
    for name, scale in SCALES.items():
        values = [float(v) for o in usable if (v := o.fields.get(name)) is not None]
        if len(values) > 1:
            spreads.append((max(values) - min(values)) / scale)
    return max(spreads, default=None)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def verdict_table(
    length: int,
    rows: Sequence[int],
    verdicts: Sequence[tuple[str | None, Mapping[str, Any]]],
    schema: pa.Schema,
) -> pa.Table:
    """Verdicts aligned with the stage rows; null where nothing was asked."""
    status: list[str | None] = [None] * length
    columns: dict[str, list[Any]] = {n: [None] * length for n in schema.names}
    for row, (said, fields) in zip(rows, verdicts, strict=True):
        status[row] = said
        for name, value in fields.items():
            if name in columns:
                columns[name][row] = value
    return tables.make(pa.schema([STATUS, *schema]), {"status": status, **columns})
