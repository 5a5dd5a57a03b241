"""Engines and executors that misbehave: every fault has its end, and none becomes a verdict."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fakes.questions import (
    asked,
    faults,
    fingerprint,
    parse,
    request,
    run,
    scripted,
    stored,
)
from fakes.scripted_engine import ANSWERS, ScriptedEngine, good_answer

from omnijudge.config import JudgeConfig
from omnijudge.errors import ResourceError
from omnijudge.judging.executors import engine_factory
from omnijudge.judging.executors.local import LocalExecutor
from omnijudge.judging.report import JudgeReport
from omnijudge.judging.store import JudgementStore
from omnijudge.judging.types import Reply, Request

COUNT = 40
STRUCK = 13


@dataclass(frozen=True)
class Fault:
    """A fault strikes one question of forty.

    Attributes:
        script: what the engine does, see ``scripted_engine``.
        status: how the question ends.
        stored: what the store keeps of it, as names of answers; None stands for the good one.
        reason: part of the reason given for the error, if there is one.
        asked: how often the question was handed to the engine; None: not checked.
        counters: counters of the executor that say so.
    """

    script: str
    status: str
    stored: tuple[str | None, ...] = ()
    reason: str = ""
    asked: int | None = 1
    counters: dict[str, float] = field(default_factory=dict)


FAULTS = {
    # The answer is no verdict: kept, asked again, never a number.
    "malformed_for_ever": Fault("malformed", "invalid", ("malformed",) * 3, asked=3),
    "malformed_once": Fault("malformed:1", "ok", ("malformed", None), asked=2),
    "malformed_twice": Fault("malformed:2", "ok", ("malformed", "malformed", None), asked=3),
    "prose_instead_of_json": Fault("prose", "invalid", ("prose",) * 3, asked=3),
    "empty_answer": Fault("empty", "invalid", ("empty",) * 3, asked=3),
    "white_space_until_the_limit": Fault("white", "invalid", ("white",) * 3, asked=3),
    "reasoning_without_a_verdict": Fault("reasoning", "invalid", ("reasoning",) * 3, asked=3),
    "reasoning_once": Fault("reasoning:1", "ok", ("reasoning", None), asked=2),
    "endless_digits_cut_off": Fault("endless", "invalid", asked=3),
    "fenced": Fault("fenced", "repaired", ("fenced",)),
    "a_lone_surrogate": Fault("surrogate", "ok"),
    "a_nul_character": Fault("nul", "ok", ("nul",)),
    # The reply is none: named, never stored.
    "over_long": Fault("long", "error", (), "1048578 characters", 3),
    "over_long_once": Fault("long:1", "ok", (None,), "characters", 2),
    "none_instead_of_a_reply": Fault("none", "error", (), "nothing for this question", 3),
    "neither_answer_nor_reason": Fault("nothing", "error", (), "neither an answer nor", 3),
    "bytes_instead_of_text": Fault("bytes", "error", (), "bytes instead of text", 3),
    "text_instead_of_a_reply": Fault("text", "error", (), "str instead of a reply", 3),
    "answer_and_error_at_once": Fault("both", "error", (), "cut off", 3),
    "counts_that_are_none": Fault("odd_counts", "ok"),
    "transport_error": Fault("error", "error", (), "did not answer", 3),
    "transport_error_once": Fault("error:1", "ok", (None,), "did not answer", 2),
    "transport_error_twice": Fault("error:2", "ok", (None,), "did not answer", 3),
    "error_with_counts_that_are_none": Fault("odd_error", "error", (), "no usage", 3),
    "over_long_prompt": Fault("refused", "error", (), "9000 tokens", 1),
    # The whole batch is hit.
    "late": Fault("late", "ok", (None,)),
    "one_reply_too_few": Fault(
        "short", "error", (), "0 replies for 1 questions", None, {"questions_quarantined": 1}
    ),
    "one_reply_too_few_once": Fault("short:1", "ok", (None,), "", 2, {"batches_split": 1}),
    "every_reply_twice": Fault("twice", "error", (), "2 replies for 1 questions", None),
    "every_reply_twice_once": Fault("twice:1", "ok", (None,), "", 2),
    "no_list": Fault("no_list", "error", (), "NoneType instead of replies", None),
    "raises": Fault(
        "raise",
        "error",
        (),
        "RuntimeError: a kernel failed with a long story",
        None,
        {"questions_quarantined": 1, "engines_reopened": 0},
    ),
    "raises_once": Fault("raise:1", "ok", (None,), "", 2, {"batches_split": 1}),
    "breaks_once": Fault("break:1", "ok", (None,), "", None, {"engines_reopened": 1}),
    "out_of_memory_in_a_batch": Fault("memory", "ok", (None,), "", 4, {"batches_split": 3}),
    "out_of_gpu_memory": Fault("cuda_memory", "ok", (None,), "", 3, {"batches_split": 2}),
    "out_of_memory_alone": Fault(
        "memory_always", "error", (), "too much for the memory", 4, {"questions_quarantined": 1}
    ),
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JudgementStore]:
    with JudgementStore(tmp_path / "store") as opened:
        yield opened


def run_scripted(store: JudgementStore, judge: JudgeConfig, count: int = COUNT) -> JudgeReport:
    executor = LocalExecutor(engine_factory(judge, "omniinteract"))
    try:
        return run(store, executor, count)
    finally:
        executor.close()


@pytest.mark.parametrize("name", FAULTS)
def test_fault(name: str, tmp_path: Path, store: JudgementStore) -> None:
    fault = FAULTS[name]
    judge = scripted(tmp_path, faults(**{fault.script.replace(":", "__"): STRUCK}))
    report = run_scripted(store, judge)
    (stage,) = report.stages
    ends = {s: getattr(stage, s) for s in ("ok", "repaired", "invalid", "error")}
    expected = dict.fromkeys(ends, 0)
    expected["ok"] = COUNT - 1
    expected[fault.status] += 1
    assert ends == expected
    assert report.progress.done == COUNT
    assert report.stop is None

    key = (fingerprint(STRUCK), 0)
    assert set(report.failed) == ({key} if fault.status == "error" else set())
    assert fault.reason in "; ".join(e.reason for e in report.errors)
    if fault.status == "error":
        assert fault.reason in report.failed[key]

    answers = stored(store, COUNT)
    mine = answers.pop(STRUCK, [])
    assert answers == {n: [good_answer(fingerprint(n))] for n in range(COUNT) if n != STRUCK}
    if fault.stored or fault.status == "error":
        good = good_answer(fingerprint(STRUCK))
        assert mine == [good if s is None else ANSWERS[s] for s in fault.stored]

    times = sum(n for (key, _), n in asked(tmp_path).items() if key == fingerprint(STRUCK).hex())
    assert fault.asked in (None, times)
    for counter, value in fault.counters.items():
        assert report.counters[counter] == value

    # What was stored is final; what was not is asked again by the next run, and only that.
    before = asked(tmp_path)
    again = run_scripted(store, scripted(tmp_path))
    new = asked(tmp_path) - before
    assert set(new) == ({(fingerprint(STRUCK).hex(), 1)} if fault.status == "error" else set())
    assert again.stages[0].error == 0
    assert again.stages[0].invalid == (fault.status == "invalid")


def test_there_are_at_least_thirty_faults() -> None:
    assert len(FAULTS) >= 30


def test_surrogates_are_replaced_before_the_parser_sees_them(
    tmp_path: Path, store: JudgementStore
) -> None:
    run_scripted(store, scripted(tmp_path, faults(surrogate=3)))
    assert stored(store, COUNT)[3] == ['{"score": 1, "why": "?"}']


def test_an_endless_answer_keeps_why_it_ended(tmp_path: Path, store: JudgementStore) -> None:
    run_scripted(store, scripted(tmp_path, faults(endless=3)))
    assert [r.finish_reason for r in store.attempts(fingerprint(3))] == ["length"] * 3


def test_several_poisons_in_one_batch(tmp_path: Path, store: JudgementStore) -> None:
    struck = (8, 9, 11, 14)
    report = run_scripted(store, scripted(tmp_path, faults(**{"raise": struck})))
    assert set(report.failed) == {(fingerprint(n), 0) for n in struck}
    assert report.stages[0].ok == COUNT - 4
    assert report.counters["questions_quarantined"] == 4


def test_a_whole_batch_of_poison_does_not_end_the_run(
    tmp_path: Path, store: JudgementStore
) -> None:
    struck = tuple(range(8, 11))
    report = run_scripted(store, scripted(tmp_path, faults(**{"break": struck})))
    assert set(report.failed) == {(fingerprint(n), 0) for n in struck}
    assert report.stop is None


def test_an_engine_that_never_answers_anything_ends_the_run(
    tmp_path: Path, store: JudgementStore
) -> None:
    report = run_scripted(store, scripted(tmp_path, {"*": "raise"}))
    assert report.stop is not None
    assert report.stop.kind == "engine"
    assert "a kernel failed" in report.stop.message
    assert len(store) == 0
    assert report.stages == () or report.stages[0].ok == 0


def test_an_engine_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="max_model_len"):
        LocalExecutor(engine_factory(scripted(tmp_path, open="open_error"), "omniinteract"))


def test_an_engine_that_cannot_be_opened_again_ends_the_run(
    tmp_path: Path, store: JudgementStore
) -> None:
    judges = [
        scripted(tmp_path, faults(**{"break": 20})),
        scripted(tmp_path, open="open_error"),
    ]
    executor = LocalExecutor(lambda: ScriptedEngine(judges.pop(0), "omniinteract"))
    report = run(store, executor, COUNT)
    executor.close()
    assert report.stop is not None
    assert report.stop.kind == "engine"
    assert "cannot be opened again" in report.stop.message
    assert "max_model_len" in report.stop.message
    assert len(store) >= 16, "what was judged before is kept"


def test_an_engine_that_exits_its_thread_ends_the_run(
    tmp_path: Path, store: JudgementStore
) -> None:
    report = run_scripted(store, scripted(tmp_path, faults(sysexit=20)))
    assert report.stop is not None
    assert report.stop.kind == "engine"
    assert "SystemExit" in report.stop.message
    assert len(store) == 16


def test_an_engine_that_never_comes_back_is_left_behind(
    tmp_path: Path, store: JudgementStore
) -> None:
    judge = scripted(tmp_path, faults(hang__1=20))
    executor = LocalExecutor(engine_factory(judge, "omniinteract"), timeout=0.5)
    report = run(store, executor, COUNT)
    executor.close()
    assert report.stages[0].ok == COUNT
    assert report.counters["engines_hung"] == 1
    (error,) = report.errors
    assert "no answer within 0.5 s" in error.reason
    assert error.count == 8


def test_an_engine_that_always_hangs_ends_the_run(tmp_path: Path, store: JudgementStore) -> None:
    executor = LocalExecutor(
        engine_factory(scripted(tmp_path, {"*": "hang"}), "omniinteract"), timeout=0.2
    )
    begin = time.monotonic()
    report = run(store, executor, COUNT)
    executor.close()
    assert report.stop is not None
    assert "hangs" in report.stop.message
    assert time.monotonic() - begin < 30


def test_a_server_that_is_down_is_given_up(tmp_path: Path, store: JudgementStore) -> None:
    judge = scripted(tmp_path, {"*": "error"})
    executor = LocalExecutor(engine_factory(judge, "omniinteract"))
    report = run(store, executor, 10_000, give_up=50)
    executor.close()
    assert report.stop is not None
    assert report.stop.kind == "engine"
    assert "did not answer" in report.stop.message
    assert report.progress.asked < 100


class Immediate:
    """An executor that answers at once, for executors that misbehave."""

    def __init__(self, in_flight: int = 4) -> None:
        self.flying: list[Sequence[Request]] = []
        self.in_flight = in_flight
        self.closed = False

    def room(self) -> bool:
        return len(self.flying) < self.in_flight

    def submit(self, batch: Sequence[Request]) -> None:
        self.flying.append(batch)

    def wait(self) -> list[tuple[Sequence[Request], list[Reply]]]:
        return [self.answer(self.flying.pop(0))] if self.flying else []

    def answer(self, batch: Sequence[Request]) -> tuple[Sequence[Request], list[Reply]]:
        return batch, [Reply(good_answer(r.fingerprint)) for r in batch]

    def counters(self) -> dict[str, float]:
        return {}

    def close(self) -> None:
        self.closed = True


def check_complete(report: JudgeReport, store: JudgementStore, count: int = COUNT) -> None:
    assert report.stages[0].ok == count
    assert stored(store, count) == {n: [good_answer(fingerprint(n))] for n in range(count)}


def test_batches_that_come_back_out_of_order(store: JudgementStore) -> None:
    class Backwards(Immediate):
        def wait(self) -> list[tuple[Sequence[Request], list[Reply]]]:
            return [self.answer(self.flying.pop())]

    check_complete(run(store, Backwards(), COUNT), store)


def test_several_batches_that_come_back_at_once(store: JudgementStore) -> None:
    class Together(Immediate):
        def wait(self) -> list[tuple[Sequence[Request], list[Reply]]]:
            done, self.flying = self.flying, []
            return [self.answer(b) for b in reversed(done)]

    check_complete(run(store, Together(), COUNT), store)


def test_a_batch_that_comes_back_twice_counts_once(store: JudgementStore) -> None:
    class Twice(Immediate):
        def wait(self) -> list[tuple[Sequence[Request], list[Reply]]]:
            batch = self.flying.pop(0)
            wrong = [Reply('{"score": 99}') for _ in batch]
            return [self.answer(batch), (batch, wrong)]

    report = run(store, Twice(), COUNT)
    check_complete(report, store)
    assert "not on its way" in report.errors[0].reason


def test_a_batch_nobody_asked_for_is_not_stored(store: JudgementStore) -> None:
    class Foreign(Immediate):
        def wait(self) -> list[tuple[Sequence[Request], list[Reply]]]:
            foreign = [request(n) for n in range(100, 104)]
            return [self.answer(foreign), self.answer(self.flying.pop(0))]

    check_complete(run(store, Foreign(), COUNT), store)
    assert stored(store, 104).keys() == set(range(COUNT))


def test_a_batch_that_is_lost_becomes_errors(store: JudgementStore) -> None:
    class Losing(Immediate):
        def wait(self) -> list[tuple[Sequence[Request], list[Reply]]]:
            self.flying = [b for b in self.flying if b[0].fingerprint != fingerprint(8)]
            return super().wait()

    report = run(store, Losing(), COUNT)
    assert report.stages[0].error == 8
    assert "lost" in report.errors[0].reason
    assert report.stages[0].ok == COUNT - 8


def test_an_executor_with_too_few_replies(store: JudgementStore) -> None:
    class Few(Immediate):
        def answer(self, batch: Sequence[Request]) -> tuple[Sequence[Request], list[Reply]]:
            return batch, super().answer(batch)[1][:-1]

    report = run(store, Few(), COUNT)
    assert report.stages[0].error == COUNT
    assert len(store) == 0
    assert "7 replies came back for 8 questions" in report.errors[0].reason


def test_an_executor_that_breaks_ends_the_run(store: JudgementStore) -> None:
    class Breaking(Immediate):
        def submit(self, batch: Sequence[Request]) -> None:
            if batch[0].fingerprint == fingerprint(24):
                raise ResourceError("no judge actor is left")
            super().submit(batch)

    report = run(store, Breaking(in_flight=1), COUNT)
    assert report.stop is not None
    assert report.stop.message == "no judge actor is left"
    assert report.progress.in_flight == 0
    assert len(store) == 24


def test_a_parser_that_fails_is_named_and_costs_one_question(store: JudgementStore) -> None:
    def failing(question: Request, reply: Reply) -> object:
        if question.fingerprint == fingerprint(5):
            raise KeyError("score")
        return parse(question, reply)

    report = run(store, Immediate(), COUNT, parse=failing)
    assert report.stages[0].ok == COUNT - 1
    assert report.stages[0].invalid == 1
    assert "the parser failed: KeyError" in report.errors[0].reason
    assert len(store.attempts(fingerprint(5))) == 3
