"""The judge step: what is asked, in which order, and when it stops."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from fakes.questions import (
    asked,
    correct,
    faults,
    fingerprint,
    parse,
    questions,
    request,
    run,
    scripted,
    stored,
)
from fakes.scripted_engine import good_answer

from omnijudge.config import ExecutionConfig, LimitsConfig, PriceConfig
from omnijudge.errors import ConfigError, StoreError
from omnijudge.judging.executors import open_executor
from omnijudge.judging.executors.local import LocalExecutor
from omnijudge.judging.limits import StopFlag, cost, deadline_at
from omnijudge.judging.loop import judge
from omnijudge.judging.shards import Shard, parse_shard
from omnijudge.judging.store import Judgement, JudgementStore
from omnijudge.judging.types import Reply, Request


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JudgementStore]:
    with JudgementStore(tmp_path / "store") as opened:
        yield opened


class Recorder:
    """Executor that answers at once and remembers every batch.

    Args:
        invalid: numbers of questions whose attempt 1 is no verdict.
        then: called before the n-th batch is answered.
    """

    def __init__(
        self, invalid: Sequence[int] = (), then: Any = None, in_flight: int = 1, tokens: int = 0
    ) -> None:
        self.invalid = {fingerprint(n) for n in invalid}
        self.then = then
        self.batches: list[Sequence[Request]] = []
        self.flying: list[Sequence[Request]] = []
        self.in_flight = in_flight
        self.tokens = tokens

    def room(self) -> bool:
        return len(self.flying) < self.in_flight

    def submit(self, batch: Sequence[Request]) -> None:
        self.batches.append(batch)
        self.flying.append(batch)

    def wait(self) -> list[tuple[Sequence[Request], list[Reply]]]:
        if self.then:
            self.then(len(self.batches))
        batch = self.flying.pop(0)
        return [(batch, [self.reply(r) for r in batch])]

    def reply(self, r: Request) -> Reply:
        bad = r.attempt == 1 and r.fingerprint in self.invalid
        text = "bad" if bad else good_answer(r.fingerprint)
        return Reply(text, prompt_tokens=self.tokens, output_tokens=self.tokens)

    def counters(self) -> dict[str, float]:
        return {}

    def close(self) -> None:
        pass

    @property
    def numbers(self) -> list[list[int]]:
        by_print = {fingerprint(n): n for n in range(1000)}
        return [[by_print[r.fingerprint] for r in b] for b in self.batches]


def test_everything_is_asked_once_in_order(store: JudgementStore) -> None:
    executor = Recorder()
    report = run(store, executor, 20)
    assert executor.numbers == [list(range(8)), list(range(8, 16)), list(range(16, 20))]
    assert report.progress.asked == report.progress.done == report.stages[0].ok == 20
    assert report.stop is None
    assert stored(store, 20) == {n: [good_answer(fingerprint(n))] for n in range(20)}


def test_nothing_is_asked_twice_by_the_next_run(store: JudgementStore) -> None:
    run(store, Recorder(), 20)
    executor = Recorder()
    report = run(store, executor, 30)
    assert executor.numbers == [list(range(20, 28)), [28, 29]]
    assert (report.progress.reused, report.progress.asked, report.progress.done) == (20, 10, 30)


def test_retries_go_ahead_of_new_questions(store: JudgementStore) -> None:
    executor = Recorder(invalid=(1, 6))
    run(store, executor, 24)
    assert executor.numbers[1] == [1, 6, 8, 9, 10, 11, 12, 13]
    retry = executor.batches[1][0]
    assert retry.attempt == 2
    assert retry.messages == correct(request(1))
    assert retry.fingerprint == fingerprint(1)
    assert executor.batches[1][2].messages == request(8).messages


def test_an_interrupted_question_goes_on_with_its_next_attempt(store: JudgementStore) -> None:
    store.append(
        [Judgement(fingerprint(n), a, 0, "main", Reply("bad")) for n, a in ((0, 1), (1, 1), (1, 2))]
    )
    store.append([Judgement(fingerprint(2), a, 0, "main", Reply("bad")) for a in (1, 2, 3)])
    executor = Recorder()
    report = run(store, executor, 4)
    sent = [(n, r.attempt) for n, r in zip(executor.numbers[0], executor.batches[0], strict=True)]
    assert sent == [(0, 2), (1, 3), (3, 1)]
    assert report.stages[0].invalid == 1
    assert report.stages[0].ok == 3
    assert report.reasked == 2


def test_one_attempt_only(store: JudgementStore) -> None:
    executor = Recorder(invalid=(1,))
    report = run(store, executor, 8, attempts=1)
    assert len(executor.batches) == 1
    assert report.stages[0].invalid == 1
    assert store.attempts(fingerprint(1)) == [Reply("bad")]


def test_duplicates_are_asked_once(store: JudgementStore) -> None:
    twice = [(0, request(n)) for n in (1, 2, 1, 3, 2, 1)]
    executor = Recorder()
    report = run(store, executor, questions=twice)
    assert executor.numbers == [[1, 2, 3]]
    assert report.duplicates == 3
    late = [(0, request(n)) for n in range(30)] + [(6, request(0)), (6, request(29))]
    executor = Recorder(in_flight=2)
    report = run(store, executor, questions=late)
    assert sum(len(b) for b in executor.batches) == 27


def test_a_question_that_failed_is_not_asked_again_in_the_same_run(store: JudgementStore) -> None:
    class Failing(Recorder):
        def reply(self, r: Request) -> Reply:
            return Reply(None, error="refused", permanent=True)

    executor = Failing()
    report = run(store, executor, questions=[(0, request(1))] * 3 + list(questions(20)))
    assert executor.numbers[0][0] == 1
    assert sum(b.count(1) for b in executor.numbers) == 1
    assert report.stages[0].error == 20


def test_repeats_are_questions_of_their_own(store: JudgementStore) -> None:
    source = [(0, request(1, repeat)) for repeat in range(3)]
    report = run(store, Recorder(), questions=source)
    assert report.progress.asked == 3
    assert [len(store.attempts(fingerprint(1), r)) for r in range(4)] == [1, 1, 1, 0]


def test_questions_are_read_lazily(store: JudgementStore) -> None:
    read = 0

    def counted() -> Iterator[tuple[int, Request]]:
        nonlocal read
        for item in questions(1000):
            read += 1
            yield item

    def look(batches: int) -> None:
        assert read <= 8 * (batches + 1)

    run(store, Recorder(then=look, in_flight=2), questions=counted())
    assert read == 1000


def test_no_questions(store: JudgementStore) -> None:
    report = run(store, Recorder(), questions=iter(()))
    assert (report.progress.done, report.stages, report.stop) == (0, (), None)


def test_a_reply_is_journaled_before_it_counts(tmp_path: Path, store: JudgementStore) -> None:
    def look(question: Request, reply: Reply) -> Any:
        with JudgementStore(tmp_path / "store", writable=False) as reader:
            assert reader.attempts(question.fingerprint)
        return parse(question, reply)

    report = run(store, Recorder(), 16, parse=look)
    assert report.errors == ()


def test_progress_counts(store: JudgementStore) -> None:
    seen: list[Any] = []
    report = run(
        store,
        Recorder(invalid=(1,), tokens=10),
        16,
        progress=seen.append,
        price=PriceConfig(input=2.0, output=8.0),
    )
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert seen[-1].done == 16
    assert seen[-1].prompt_tokens == seen[-1].output_tokens == 170
    assert report.progress.cost == pytest.approx(170 * 10 / 1e6)
    assert report.progress.in_flight == 0


def test_errors_are_counted_by_reason(store: JudgementStore) -> None:
    class Failing(Recorder):
        def reply(self, r: Request) -> Reply:
            reason = "slow" if r.fingerprint[0] % 2 else "gone"
            return Reply(None, error=reason, retries=1)

    report = run(store, Failing(), 20, attempts=2)
    assert {e.reason for e in report.errors} == {"slow", "gone"}
    assert sum(e.count for e in report.errors) == report.transport_retries == 40
    assert report.errors[0].count >= report.errors[1].count
    assert len(report.failed) == 20


def test_the_kinds_of_errors_are_bounded(store: JudgementStore) -> None:
    class Failing(Recorder):
        def reply(self, r: Request) -> Reply:
            return Reply(None, error=f"request {r.fingerprint.hex()} failed")

    report = run(store, Failing(), 200, attempts=1)
    assert len(report.errors) == 51
    assert report.errors[0].reason == "other reasons"
    assert report.errors[0].count == 150


# Limits


def test_the_deadline_begins_no_new_sample(store: JudgementStore) -> None:
    now = [datetime(2026, 3, 1, 7, 0).timestamp()]

    def tick(batches: int) -> None:
        if batches == 2:
            now[0] = datetime(2026, 3, 1, 7, 45).timestamp()

    executor = Recorder(then=tick)
    report = run(store, executor, 50, limits=LimitsConfig(deadline="07:45"), clock=lambda: now[0])
    assert report.stop is not None
    assert (report.stop.kind, "07:45" in report.stop.message) == ("deadline", True)
    # Samples have five questions; batches of eight began the samples 0 to 3.
    assert sorted(itertools.chain(*executor.numbers)) == list(range(20))


def test_samples_begun_get_their_retries_after_the_deadline(store: JudgementStore) -> None:
    now = [datetime(2026, 3, 1, 7, 0).timestamp()]

    def tick(batches: int) -> None:
        now[0] = datetime(2026, 3, 1, 8, 0).timestamp()

    executor = Recorder(invalid=(2,), then=tick)
    report = run(store, executor, 50, limits=LimitsConfig(deadline="7:45"), clock=lambda: now[0])
    assert executor.numbers == [list(range(8)), [2, 8, 9]]
    assert report.stages[0].ok == 10


def test_the_cost_limit_begins_no_new_sample(store: JudgementStore) -> None:
    executor = Recorder(tokens=1000)
    report = run(
        store,
        executor,
        1000,
        limits=LimitsConfig(max_cost=0.5),
        price=PriceConfig(input=1.0, output=9.0),
        spent=0.2,
    )
    # A question costs 0.01: thirty of them reach the limit, the sample begun is finished.
    assert report.stop is not None
    assert report.stop.kind == "cost"
    assert 30 <= report.progress.asked <= 45
    assert report.progress.asked % 5 == 0
    assert len(stored(store, 1000)) == report.progress.asked


def test_a_limit_reached_at_the_very_end_is_no_stop(store: JudgementStore) -> None:
    limits, price = LimitsConfig(max_cost=0.001), PriceConfig(input=1.0)
    report = run(store, Recorder(tokens=1000), 8, limits=limits, price=price)
    assert report.progress.cost > 0.001
    assert report.stages[0].ok == 8
    assert report.stop is None


@pytest.mark.parametrize(
    ("text", "now", "expected"),
    [
        ("07:45", (2026, 3, 1, 22, 0), (2026, 3, 2, 7, 45)),
        ("07:45", (2026, 3, 1, 7, 44), (2026, 3, 1, 7, 45)),
        ("07:45", (2026, 3, 1, 7, 45), (2026, 3, 2, 7, 45)),
        ("7:45", (2026, 12, 31, 8, 0), (2027, 1, 1, 7, 45)),
        ("23:59:30", (2026, 3, 1, 0, 0), (2026, 3, 1, 23, 59, 30)),
    ],
)
def test_the_deadline_is_its_next_occurrence(text: str, now: Any, expected: Any) -> None:
    assert deadline_at(text, datetime(*now)) == datetime(*expected)


@pytest.mark.parametrize("text", ["24:00", "7", "07:60", "tomorrow", "07:45 pm", ""])
def test_a_deadline_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="deadline"):
        deadline_at(text, datetime(2026, 3, 1))


def test_cached_tokens_have_their_own_price() -> None:
    full = PriceConfig(input=2.0, output=8.0)
    assert cost(full, 1_000_000, 400_000, 500_000) == pytest.approx(2.0 + 4.0)
    reduced = PriceConfig(input=2.0, cached_input=0.5, output=8.0)
    assert cost(reduced, 1_000_000, 400_000, 500_000) == pytest.approx(1.2 + 0.2 + 4.0)
    assert cost(PriceConfig(), 10, 0, 10) == 0.0


# Stopping from outside


def test_a_stop_flag_keeps_what_is_in_flight(store: JudgementStore) -> None:
    flag = StopFlag()

    def stop(batches: int) -> None:
        if batches >= 3:
            flag.set("stopped by the server")

    executor = Recorder(then=stop, in_flight=3)
    report = run(store, executor, 100, stop=flag)
    assert report.stop is not None
    assert (report.stop.kind, report.stop.message) == ("interrupted", "stopped by the server")
    assert len(executor.batches) == 3
    assert len(stored(store, 100)) == 24


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_keep_what_is_in_flight(
    number: signal.Signals, tmp_path: Path, store: JudgementStore
) -> None:
    before = signal.getsignal(number)
    executor = open_executor(ExecutionConfig(), scripted(tmp_path, delay=0.05), "omniinteract")
    threading.Timer(0.4, os.kill, (os.getpid(), number)).start()
    report = run(store, executor, 10_000)
    executor.close()
    assert report.stop is not None
    assert report.stop.kind == "interrupted"
    assert number.name in report.stop.message
    assert len(store) == report.progress.asked == sum(asked(tmp_path).values()) > 0
    assert signal.getsignal(number) is before


def test_a_second_interrupt_ends_at_once(tmp_path: Path, store: JudgementStore) -> None:
    executor = open_executor(ExecutionConfig(), scripted(tmp_path, delay=4.0), "omniinteract")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt_twice() -> None:
        # The second one goes off when the first has been taken, else the two may be one.
        for waits_for_ours in (True, False):
            while (signal.getsignal(signal.SIGINT) is signal.default_int_handler) == waits_for_ours:
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt_twice, daemon=True).start()
    begin = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            run(store, executor, 10_000)
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - begin < 3.9
    executor.close()


def test_outside_the_main_thread_signals_are_left_alone(store: JudgementStore) -> None:
    reports = []
    thread = threading.Thread(target=lambda: reports.append(run(store, Recorder(), 8)))
    thread.start()
    thread.join()
    assert reports[0].stages[0].ok == 8


def test_a_store_that_cannot_be_written_ends_the_run_by_name(
    store: JudgementStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(store, Recorder(), 8)

    def full(fd: int, data: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("omnijudge.judging.journal.os.write", full)
    with pytest.raises(StoreError, match="the disk is full"):
        run(store, Recorder(), 16)
    monkeypatch.undo()
    assert len(stored(store, 16)) == 8
    run(store, Recorder(), 16)
    assert len(stored(store, 16)) == 16


# The local executor


def test_the_local_executor_has_room_for_so_many_batches(tmp_path: Path) -> None:
    from omnijudge.judging.executors import engine_factory

    factory = engine_factory(scripted(tmp_path, delay=0.05), "omniinteract")
    executor = LocalExecutor(factory, in_flight=2)
    first, second = [request(1)], [request(2), request(3)]
    assert executor.wait() == []
    executor.submit(first)
    assert executor.room()
    executor.submit(second)
    assert not executor.room()
    (done,) = executor.wait()
    assert done[0] is first
    assert executor.room()
    (done,) = executor.wait()
    assert done[0] is second
    assert [r.raw for r in done[1]] == [good_answer(fingerprint(n)) for n in (2, 3)]
    assert executor.counters()["answered"] == 3
    executor.close()


def test_closing_drops_what_the_engine_has_not_begun(tmp_path: Path) -> None:
    executor = open_executor(
        ExecutionConfig(in_flight=20), scripted(tmp_path, delay=0.3), "omniinteract"
    )
    for n in range(20):
        executor.submit([request(n)])
    begin = time.monotonic()
    executor.close()
    assert time.monotonic() - begin < 2
    assert len(asked(tmp_path)) <= 2


def test_the_judge_name_is_stored(store: JudgementStore) -> None:
    judge(questions(3), store, Recorder(), parse=parse, retry_turn=correct, judge_name="second")
    assert store.stats().judges == (("second", "", 3),)


def test_faults_of_two_kinds_in_one_run(tmp_path: Path, store: JudgementStore) -> None:
    script = faults(malformed=2, error__1=4, fenced=6, refused=9)
    executor = open_executor(ExecutionConfig(), scripted(tmp_path, script), "omniinteract")
    report = run(store, executor, 16)
    executor.close()
    (stage,) = report.stages
    assert (stage.ok, stage.repaired, stage.invalid, stage.error) == (13, 1, 1, 1)


# Shards


def test_shards_are_disjoint_complete_and_even() -> None:
    samples = [f"s{n}" for n in range(23)]
    shards = [Shard(k, 5).of(samples) for k in range(1, 6)]
    assert sorted(itertools.chain(*shards)) == sorted(samples)
    assert {len(s) for s in shards} == {4, 5}
    assert Shard().of(samples) == samples


def test_a_limit_moves_no_sample_to_another_shard() -> None:
    samples = list(range(50))
    assert Shard(2, 3).of(samples[:20]) == [s for s in Shard(2, 3).of(samples) if s < 20]


def test_shards_are_read() -> None:
    assert parse_shard("2/8") == Shard(2, 8)
    for wrong in ("0/8", "9/8", "2", "a/b", "1/0", "-1/2", ""):
        with pytest.raises(ConfigError, match="K/N"):
            parse_shard(wrong)
