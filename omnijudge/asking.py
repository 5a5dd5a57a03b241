"""The ask step: which questions a run has, in rounds, and which of them are still open."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnijudge import tables
from omnijudge.benchmarks.base import Answer, Benchmark, Partition, Prompt
from omnijudge.errors import EvidenceError
from omnijudge.judging.question import Asker
from omnijudge.judging.types import Reply
from omnijudge.judging.verdicts import (
    Answers,
    Attempt,
    Outcome,
    combine,
    outcomes,
    verdict_table,
)

if TYPE_CHECKING:
    from omnijudge.config import JudgeConfig
    from omnijudge.judging.replay import Key
    from omnijudge.judging.types import Request
    from omnijudge.partitions import Plan

Rows = np.ndarray[Any, np.dtype[np.int64]]


@dataclass
class JudgeSeat:
    """One judge of a run with what it needs to be asked.

    Attributes:
        judge: its configuration.
        asker: renders and fingerprints its questions.
        source: where its answers are.
        mode: how its answers are read, ``strict`` or ``published``.
        most: attempts per question.
        refused: fingerprints of questions that cannot be asked, with the reason: what they have
            to show (a clip, say) cannot be had.
    """

    judge: JudgeConfig
    asker: Asker
    source: Answers
    mode: str
    most: int
    refused: dict[bytes, str] = field(default_factory=dict)

    def fingerprint(self, prompt: Prompt) -> bytes:
        """Fingerprint of a question; one that cannot be rendered is refused."""
        try:
            return self.asker.fingerprint(prompt)
        except EvidenceError as e:
            fingerprint = blake2b(str(e).encode(), digest_size=16).digest()
            self.refused[fingerprint] = str(e)
            return fingerprint

    def outcome(self, fingerprint: bytes, found: Outcome) -> Outcome:
        """What a question came to; an error if it was refused."""
        reason = self.refused.get(fingerprint)
        if reason is None:
            return found
        attempt = Attempt(1, Reply(raw=None, error=reason), Answer("error", {}, reason))
        return Outcome([attempt], "error", {})


@dataclass
class Asked:
    """The questions of one partition so far, in order of their stage rows per round.

    Attributes:
        rows: rows of the stage table.
        prints: per judge the fingerprints of these rows, 16 bytes each, joined.
        place: if the stage table was cut down, the row each of its rows had in the whole one.
    """

    rows: list[int] = field(default_factory=list)
    prints: list[bytearray] = field(default_factory=list)
    place: Rows | None = None

    def at(self, place: Rows) -> Asked:
        """The questions of some rows (ascending) of the stage table, counted among them."""
        known = np.array(self.rows, np.int64)
        mine = np.flatnonzero(np.isin(known, place))
        prints = [
            bytearray(b"".join(joined[16 * i : 16 * i + 16] for i in mine.tolist()))
            for joined in self.prints
        ]
        return Asked(np.searchsorted(place, known[mine]).tolist(), prints, place)

    def fingerprints(self, seat: int) -> list[bytes]:
        """Fingerprints of one judge's questions, aligned with ``rows``."""
        joined = self.prints[seat]
        return [bytes(joined[i : i + 16]) for i in range(0, len(joined), 16)]


class Asking:
    """All questions of a run: found in rounds, rendered again when they are asked."""

    def __init__(
        self,
        benchmark: Benchmark,
        options: Any,
        plan: Plan,
        seats: list[JudgeSeat],
        combine_how: str,
        load: Callable[..., Partition],
    ) -> None:
        """``load(block, system, with_chunks=False)`` gives a matched partition; questions need
        no chunks."""
        self.benchmark = benchmark
        self.options = options
        self.plan = plan
        self.seats = seats
        self.how = combine_how
        self.load = load
        self.asked = [Asked(prints=[bytearray() for _ in seats]) for _ in range(len(plan))]

    def find(self, advance: Callable[[], None] = lambda: None) -> int:
        """One round over all partitions; returns how many new questions (rows) it found."""
        found = 0
        for block in range(len(self.plan.blocks)):
            for system in range(len(self.plan.systems)):
                found += self.find_in(block, system)
                advance()
        return found

    def find_in(self, block: int, system: int, samples: Sequence[str] | None = None) -> int:
        """The same for one partition, or for some samples of it."""
        asked = self.asked[self.plan.position(block, system)]
        part, own = self.part_of(block, system, samples)
        if own.rows:
            part = self._with_verdicts(part, own, self._results(part, own))
        rows = self.benchmark.pending(part, self.options)
        # A question that is known already and has no verdict yet is no new question.
        known = set(own.rows)
        new = np.array([r for r in rows.tolist() if r not in known], np.int64)
        prompts = self.benchmark.prompts(part, new, self.options)
        asked.rows.extend((new if own.place is None else own.place[new]).tolist())
        for number, seat in enumerate(self.seats):
            for prompt in prompts:
                asked.prints[number] += seat.fingerprint(prompt)
        return len(new)

    @property
    def count(self) -> int:
        """Questions known so far: rows that need a verdict, times judges and their repeats."""
        times = sum(seat.judge.repeats for seat in self.seats)
        return times * sum(len(a.rows) for a in self.asked)

    def part_of(
        self, block: int, system: int, samples: Sequence[str] | None = None
    ) -> tuple[Partition, Asked]:
        """A partition and its questions, or both cut down to some samples."""
        asked = self.asked[self.plan.position(block, system)]
        part = self.load(block, system)
        if samples is None:
            return part, asked
        ids = pa.array(samples, pa.string())

        def own(table: pa.Table) -> pa.Table:
            return table.filter(pc.is_in(table["sample_id"], ids))

        place = pc.indices_nonzero(pc.is_in(part.stages["sample_id"], ids)).to_numpy()
        part = replace(
            part,
            units=own(part.units),
            outputs=own(part.outputs),
            chunks=own(part.chunks),
            stages=part.stages.take(pa.array(place)),
        )
        return part, asked.at(place.astype(np.int64))

    def prompts(self, part: Partition, block: int, system: int) -> list[Prompt]:
        """What the questions of a partition are rendered from, aligned with the rows."""
        return self._prompts(part, self.asked[self.plan.position(block, system)])

    def _prompts(self, part: Partition, asked: Asked) -> list[Prompt]:
        return self.benchmark.prompts(part, np.array(asked.rows, np.int64), self.options)

    def results(
        self, part: Partition, block: int, system: int, prompts: Sequence[Prompt] | None = None
    ) -> list[list[Outcome]]:
        """Per question its outcomes: judges outside, repeats inside, aligned with the rows.

        Args:
            part: the partition.
            block: its block.
            system: its system.
            prompts: its prompts, if they are there already.
        """
        return self._results(part, self.asked[self.plan.position(block, system)], prompts)

    def _results(
        self, part: Partition, asked: Asked, prompts: Sequence[Prompt] | None = None
    ) -> list[list[Outcome]]:
        rows = np.array(asked.rows, np.int64)
        prompts = self._prompts(part, asked) if prompts is None else prompts
        keys = stage_keys(part, rows)
        columns = []
        for number, seat in enumerate(self.seats):
            prints = asked.fingerprints(number)
            for repeat in range(seat.judge.repeats):
                found = outcomes(
                    self.benchmark, seat.source, seat.mode, seat.most,
                    keys, prints, prompts, repeat,
                )  # fmt: skip
                if seat.refused:
                    found = [seat.outcome(p, o) for p, o in zip(prints, found, strict=True)]
                columns.append(found)
        return [list(question) for question in zip(*columns, strict=True)]

    def with_verdicts(
        self, part: Partition, block: int, system: int, results: list[list[Outcome]] | None = None
    ) -> Partition:
        """The partition with the verdicts its questions have come to so far."""
        asked = self.asked[self.plan.position(block, system)]
        if results is None:
            results = self._results(part, asked)
        return self._with_verdicts(part, asked, results)

    def _with_verdicts(
        self, part: Partition, asked: Asked, results: list[list[Outcome]]
    ) -> Partition:
        verdicts = []
        for panel in results:
            status, fields, _ = combine(panel, self.how)
            verdicts.append((status, fields))
        table = verdict_table(
            part.stages.num_rows, asked.rows, verdicts, self.benchmark.answer_schema
        )
        return replace(part, verdicts=table)

    def open_questions(
        self, seat_number: int, group_size: int = 512, samples: Collection[str] | None = None
    ) -> Iterator[tuple[str, Request]]:
        """(sample, request) of every question of a judge that needs asking, each one once."""
        from omnijudge.open_questions import OpenQuestions

        return iter(OpenQuestions(self, seat_number, group_size, samples))

    def parse(self, seat_number: int) -> Callable[[Request, Any], Any]:
        """How the judge loop reads a reply."""
        from omnijudge.judging.verdicts import read_reply

        seat = self.seats[seat_number]

        def read(request: Request, reply: Any) -> Any:
            prompt = Prompt(request.stage, "", request.variables)
            return read_reply(self.benchmark, seat.mode, request.stage, reply, prompt)

        return read


def stage_keys(part: Partition, rows: Rows) -> list[Key]:
    """Keys of stage rows."""
    taken = part.stages.select(["sample_id", "unit_id", "item", "stage"]).take(pa.array(rows))
    columns = [taken[n].to_pylist() for n in taken.column_names]
    return [(part.system, *key) for key in zip(*columns, strict=True)]


KEY_NAMES = ("system", "sample_id", "unit_id", "item", "stage")


def question_table(
    asking: Asking, part: Partition, block: int, system: int, prompts: Sequence[Prompt]
) -> pa.Table:
    """The questions of a partition, in stage order, judges inside."""
    asked = asking.asked[asking.plan.position(block, system)]
    rows = np.array(asked.rows, np.int64)
    order = np.argsort(rows, kind="stable")
    seats = [(seat, asked.fingerprints(n)) for n, seat in enumerate(asking.seats)]
    places = order.tolist()
    columns = _keys_of(part, np.repeat(rows[order], len(seats)))
    columns["judge"] = [seat.judge.name for _ in places for seat, _ in seats]
    columns["prompt_id"] = [s.asker.prompt_id(prompts[i]) for i in places for s, _ in seats]
    columns["fingerprint"] = [prints[i].hex() for i in places for _, prints in seats]
    return tables.make(tables.QUESTIONS, columns)


def judgement_table(
    asking: Asking, part: Partition, block: int, system: int, results: list[list[Outcome]]
) -> pa.Table:
    """Every attempt of every question of a partition, in stage order."""
    asked = asking.asked[asking.plan.position(block, system)]
    rows = np.array(asked.rows, np.int64)
    names = [seat.judge.name for seat in asking.seats]
    prints = [asked.fingerprints(n) for n in range(len(names))]
    seats = [(n, r) for n, s in enumerate(asking.seats) for r in range(s.judge.repeats)]
    made = [
        (i, number, repeat, attempt)
        for i in np.argsort(rows, kind="stable").tolist()
        for (number, repeat), outcome in zip(seats, results[i], strict=True)
        for attempt in outcome.attempts
    ]
    replies = [attempt.reply for *_, attempt in made]
    answers = [attempt.answer for *_, attempt in made]
    columns = _keys_of(part, rows[[i for i, *_ in made]])
    columns |= {
        "judge": [names[number] for _, number, _, _ in made],
        "attempt": [attempt.number for *_, attempt in made],
        "repeat": [repeat for _, _, repeat, _ in made],
        "fingerprint": [prints[number][i].hex() for i, number, _, _ in made],
        "status": [a.status for a in answers],
        "reason": [a.reason for a in answers],
        "raw": [r.raw for r in replies],
        "model": [r.model or None for r in replies],
        "prompt_tokens": [r.prompt_tokens for r in replies],
        "cached_tokens": [r.cached_tokens for r in replies],
        "output_tokens": [r.output_tokens for r in replies],
    }
    fields = asking.benchmark.answer_schema
    columns |= {n: [a.fields.get(n) for a in answers] for n in fields.names}
    return tables.make(tables.extend(tables.JUDGEMENTS, fields), columns)


def _keys_of(part: Partition, rows: Rows) -> dict[str, object]:
    """Key columns of stage rows."""
    taken = part.stages.select(KEY_NAMES).take(pa.array(rows, pa.int64()))
    return {name: taken[name] for name in KEY_NAMES}
