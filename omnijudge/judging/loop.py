"""The judge step: questions in, stored judgements out.

One loop drives every executor. It keeps no more than the questions in flight: what is done is in
the store. A reply is in the journal before it counts. Retries go ahead of new questions, so that
samples are complete early and a run that stops half way has judged whole samples.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any, Protocol

from omnijudge.config import LimitsConfig, PriceConfig
from omnijudge.errors import ResourceError
from omnijudge.judging.executors.guarded import describe
from omnijudge.judging.limits import Stop, StopFlag, cost, deadline_at, stopped_by_signals
from omnijudge.judging.report import ErrorCount, JudgeReport, Progress, StageCounts
from omnijudge.judging.store import Judgement, JudgementStore, replies
from omnijudge.judging.types import NOT_ASKED, Executor, Message, Reply, Request

__all__ = ["JudgeReport", "Parsed", "Progress", "judge"]

LONGEST_ANSWER = 2**20
"""Characters. No verdict is longer; what is longer is an error of the engine."""
_KINDS = 50
_Key = tuple[bytes, int]


class Parsed(Protocol):
    """What a parser makes of an answer (``omnijudge.benchmarks.base.Answer`` is one)."""

    @property
    def status(self) -> str:
        """``ok``, ``repaired`` or ``invalid``."""
        ...

    @property
    def reason(self) -> str | None:
        """Why, in words."""
        ...


@dataclass(slots=True)
class _Asked:
    """A question on its way.

    Attributes:
        first: the request of attempt 1.
        group: the sample it belongs to.
        attempt: number of the attempt to ask now.
        left: how often it may still be asked in this run.
        tries: how often it was handed to an engine.
    """

    first: Request
    group: Hashable
    attempt: int
    left: int
    tries: int = 0

    @property
    def key(self) -> _Key:
        return self.first.fingerprint, self.first.repeat


def judge(
    questions: Iterable[tuple[Hashable, Request]],
    store: JudgementStore,
    executor: Executor,
    *,
    parse: Callable[[Request, Reply], Parsed],
    retry_turn: Callable[[Request], list[Message]],
    attempts: int = 3,
    judge_name: str = "main",
    batch_size: int = 256,
    limits: LimitsConfig | None = None,
    price: PriceConfig | None = None,
    spent: float = 0.0,
    give_up: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    stop: StopFlag | None = None,
    clock: Callable[[], float] = time.time,
) -> JudgeReport:
    """Asks what the store has no usable answer to.

    Args:
        questions: (sample, request of attempt 1), read lazily; questions of one sample stand
            together. A question whose stored attempts end the matter costs nothing here; one with
            stored invalid attempts goes on with the next.
        store: where answers go before they count. Read it again afterwards (``refresh``) to see
            what counts if another process was faster.
        executor: runs the engines. It is left open.
        parse: reads an answer; anything but ``ok`` and ``repaired`` is asked again.
        retry_turn: messages of the attempts above 1, from the request of attempt 1.
        attempts: how often a question is asked at most, stored invalid attempts included. An
            error uses up one attempt of this run only, and is not stored.
        judge_name: stored with each answer.
        batch_size: questions handed to an engine at once.
        limits: ``deadline`` and ``max_cost`` end the run: no new sample is begun, samples already
            begun are finished.
        price: per million tokens.
        spent: what earlier runs under the same limit have cost.
        give_up: end the run after so many error replies in a row without one answer.
        progress: called with the counts after every batch.
        stop: set from outside to end; SIGINT and SIGTERM set it while this runs in the main
            thread. Nothing more is asked then, what comes back is kept.
        clock: seconds since 1970.

    Raises:
        StoreError: the store cannot be written (a full disk). What was written is kept.
        ConfigError: ``limits.deadline`` is no time of day.
    """
    flag = stop if stop is not None else StopFlag()
    run = _Run(
        iter(questions),
        store,
        executor,
        parse,
        retry_turn,
        attempts,
        judge_name,
        batch_size,
        limits or LimitsConfig(),
        price or PriceConfig(),
        spent,
        give_up,
        progress,
        flag,
        clock,
    )
    stop_asking = getattr(executor, "stop_asking", None)
    if stop_asking is not None:
        flag.listen(stop_asking)
    with stopped_by_signals(flag):
        return run.run()


class _Run:
    """State of one call of ``judge``."""

    def __init__(
        self,
        questions: Iterator[tuple[Hashable, Request]],
        store: JudgementStore,
        executor: Executor,
        parse: Callable[[Request, Reply], Parsed],
        retry_turn: Callable[[Request], list[Message]],
        attempts: int,
        judge_name: str,
        batch_size: int,
        limits: LimitsConfig,
        price: PriceConfig,
        spent: float,
        give_up: int | None,
        progress: Callable[[Progress], None] | None,
        flag: StopFlag,
        clock: Callable[[], float],
    ) -> None:
        self.questions = questions
        self.store = store
        self.executor = executor
        self.parse = parse
        self.retry_turn = retry_turn
        self.attempts = attempts
        self.judge_name = judge_name
        self.batch_size = batch_size
        self.limits = limits
        self.price = price
        self.spent = spent
        self.give_up = give_up
        self.progress = progress
        self.flag = flag
        self.clock = clock
        self.started = clock()
        self.deadline = None
        if limits.deadline is not None:
            now = datetime.fromtimestamp(self.started)
            self.deadline = deadline_at(limits.deadline, now).timestamp()

        self.again: deque[_Asked] = deque()
        self.fresh: deque[_Asked] = deque()
        self.open: dict[_Key, _Asked] = {}  # in again, in fresh, or in flight
        self.batches: dict[int, Sequence[Request]] = {}  # in flight, by identity
        self.begun: Hashable = object()  # the sample asked about last
        self.exhausted = False  # nothing more is read
        self.complete = False  # everything was read
        self.stop: Stop | None = None

        self.ends: Counter[tuple[str, str]] = Counter()
        self.errors: dict[str, ErrorCount] = {}
        self.failed: dict[_Key, str] = {}
        self.asked = self.replied = self.reused = self.duplicates = self.reasked = 0
        self.prompt = self.cached = self.output = self.transport = 0
        self.errors_in_a_row = 0

    def run(self) -> JudgeReport:
        try:
            while True:
                self.check_limits()
                while not self.ended and self.executor.room():
                    batch = self.next_batch()
                    if not batch:
                        break
                    self.submit(batch)
                if not self.batches:
                    self.check_limits()
                    break
                done = self.executor.wait()
                for requests, answers in done:
                    self.take_back(requests, answers)
                if not done:
                    for requests in list(self.batches.values()):
                        lost = Reply(None, error="the executor lost the question")
                        self.take_back(requests, [lost] * len(requests))
                self.tell()
        except ResourceError as e:
            self.stop = Stop("engine", str(e))
            self.batches.clear()
        if self.complete and not (self.open or self.batches):
            self.stop = None  # it came too late to matter
        self.tell()
        return self.report()

    # What may be asked

    @property
    def ended(self) -> bool:
        """Whether nothing at all may be asked any more."""
        return self.stop is not None and self.stop.kind in ("interrupted", "engine")

    def check_limits(self) -> None:
        if self.flag and not self.ended:
            self.stop = Stop("interrupted", self.flag.reason)
        if self.stop is not None:
            return
        if self.give_up is not None and self.errors_in_a_row >= self.give_up:
            last = next(reversed(self.errors.values())).reason if self.errors else "unknown"
            self.stop = Stop(
                "engine",
                f"{self.errors_in_a_row} questions in a row failed, the last one because: {last}",
            )
        elif self.deadline is not None and self.clock() >= self.deadline:
            self.stop = Stop("deadline", f"the deadline {self.limits.deadline} is reached")
        elif self.limits.max_cost is not None and self.cost >= self.limits.max_cost:
            self.stop = Stop(
                "cost", f"{self.cost:.2f} is spent, the limit is {self.limits.max_cost:.2f}"
            )

    @property
    def cost(self) -> float:
        return self.spent + cost(self.price, self.prompt, self.cached, self.output)

    def next_batch(self) -> list[_Asked]:
        batch = [self.again.popleft() for _ in range(min(self.batch_size, len(self.again)))]
        while len(batch) < self.batch_size:
            if not self.fresh and not self.look_ahead():
                break
            if self.stop is not None and self.fresh[0].group != self.begun:
                # No new sample. Those behind it are new, too.
                for left in self.fresh:
                    del self.open[left.key]
                self.fresh.clear()
                self.exhausted = True
                break
            item = self.fresh.popleft()
            self.begun = item.group
            batch.append(item)
        return batch

    def look_ahead(self) -> bool:
        """Reads some questions; passes over what is on its way, stored or failed already."""
        while not self.exhausted and not self.flag:
            some = list(islice(self.questions, self.batch_size))
            if not some:
                self.exhausted = self.complete = True
                break
            new: dict[_Key, _Asked] = {}
            for group, request in some:
                key = (request.fingerprint, request.repeat)
                if key in self.open or key in new or key in self.failed:
                    self.duplicates += 1
                else:
                    new[key] = _Asked(request, group, 1, self.attempts)
            items = list(new.values())
            self.resume(items)
            for item in items:
                if item.left > 0:
                    self.open[item.key] = item
                    self.fresh.append(item)
            if self.fresh:
                return True
        return False

    def resume(self, items: list[_Asked]) -> None:
        """Goes on where the stored attempts end."""
        prints = [i.first.fingerprint for i in items]
        repeats = [i.first.repeat for i in items]
        if not self.store.count(prints, repeats).any():
            return
        for position, reply in replies(self.store.attempts_many(prints, repeats)):
            item = items[position]
            if item.left <= 0:
                continue
            status = self.status_of(item, reply)
            item.attempt += 1
            item.left -= 1
            if status in ("ok", "repaired"):
                item.left = 0
            if item.left == 0:
                self.reused += 1
                self.ends[item.first.stage, status] += 1

    def submit(self, batch: list[_Asked]) -> None:
        requests: list[Request] = []
        for item in batch:
            request = item.first
            if item.attempt > 1:
                messages = self.retry_turn(request)
                request = replace(request, attempt=item.attempt, messages=messages)
            requests.append(request)
            self.reasked += item.tries > 0 or item.attempt > 1
            item.tries += 1
        self.batches[id(requests)] = requests
        self.asked += len(requests)
        self.executor.submit(requests)

    # What came back

    def take_back(self, requests: Sequence[Request], answers: Sequence[Any]) -> None:
        if self.batches.pop(id(requests), None) is None:
            self.count_error("the executor handed back a batch that was not on its way", None)
            return
        if len(answers) != len(requests):
            wrong = f"{len(answers)} replies came back for {len(requests)} questions"
            answers = [Reply(None, error=wrong)] * len(requests)
        checked = [check_reply(a) for a in answers]
        if NOT_ASKED in checked:
            requests, checked = self.put_back(requests, checked)
        self.store.append(
            [
                Judgement(q.fingerprint, q.attempt, q.repeat, self.judge_name, r)
                for q, r in zip(requests, checked, strict=True)
                if r.error is None
            ]
        )
        self.replied += len(checked)
        self.prompt += sum(r.prompt_tokens for r in checked)
        self.cached += sum(r.cached_tokens for r in checked)
        self.output += sum(r.output_tokens for r in checked)
        self.transport += sum(r.retries for r in checked)
        for request, reply in zip(requests, checked, strict=True):
            self.settle(self.open[request.fingerprint, request.repeat], request, reply)

    def put_back(
        self, requests: Sequence[Request], replies: list[Reply]
    ) -> tuple[list[Request], list[Reply]]:
        """Takes out what was not asked in the end; it stays open."""
        kept = []
        for request, reply in zip(requests, replies, strict=True):
            if reply == NOT_ASKED:
                item = self.open[request.fingerprint, request.repeat]
                item.tries -= 1
                self.again.append(item)
                self.asked -= 1
            else:
                kept.append((request, reply))
        return [q for q, _ in kept], [r for _, r in kept]

    def settle(self, item: _Asked, request: Request, reply: Reply) -> None:
        item.left -= 1
        if reply.error is not None:
            self.errors_in_a_row += 1
            self.count_error(reply.error, request)
            if item.left > 0 and not reply.permanent:
                self.again.append(item)
                return
            self.failed[item.key] = self.errors_reason(reply.error)
            status = "error"
        else:
            self.errors_in_a_row = 0
            item.attempt += 1
            status = self.status_of(item, reply)
            if status == "invalid":
                if item.left > 0:
                    self.again.append(item)
                    return
                if item.attempt <= self.attempts:
                    # Errors took the other attempts; the next run may ask again.
                    self.failed[item.key] = "invalid so far; errors used up the other attempts"
                    status = "error"
        del self.open[item.key]
        self.ends[request.stage, status] += 1

    def status_of(self, item: _Asked, reply: Reply) -> str:
        try:
            status = self.parse(item.first, reply).status
        except Exception as e:  # one answer must not cost the night
            self.count_error(f"the parser failed: {describe(e)}", item.first)
            return "invalid"
        if status not in ("ok", "repaired", "invalid"):
            raise ValueError(f"stage {item.first.stage}: the parser said {status!r}")
        return status

    def count_error(self, reason: str, request: Request | None) -> None:
        known = self.errors.pop(reason, None)
        if known is None and len(self.errors) >= _KINDS:
            reason = "other reasons"
            known = self.errors.pop(reason, None)
        stage, fingerprint = (request.stage, request.fingerprint.hex()) if request else ("", "")
        self.errors[reason] = (
            replace(known, count=known.count + 1)
            if known
            else ErrorCount(reason, 1, stage, fingerprint)
        )

    def errors_reason(self, reason: str) -> str:
        """The same text as an object shared by all who have it."""
        known = self.errors.get(reason)
        return known.reason if known else reason

    # What is said about it

    def tell(self) -> None:
        if self.progress is not None:
            self.progress(self.counts())

    def counts(self) -> Progress:
        by_status: Counter[str] = Counter()
        for (_, status), n in self.ends.items():
            by_status[status] += n
        seconds = max(self.clock() - self.started, 0.0)
        return Progress(
            asked=self.asked,
            done=by_status.total(),
            reused=self.reused,
            invalid=by_status["invalid"],
            errors=by_status["error"],
            in_flight=sum(len(b) for b in self.batches.values()),
            prompt_tokens=self.prompt,
            cached_tokens=self.cached,
            output_tokens=self.output,
            cost=cost(self.price, self.prompt, self.cached, self.output),
            seconds=seconds,
            rate=self.replied / seconds if seconds > 0 else 0.0,
        )

    def report(self) -> JudgeReport:
        stages = sorted({stage for stage, _ in self.ends})
        return JudgeReport(
            progress=self.counts(),
            stages=tuple(
                StageCounts(
                    s, *(self.ends[s, status] for status in ("ok", "repaired", "invalid", "error"))
                )
                for s in stages
            ),
            duplicates=self.duplicates,
            reasked=self.reasked,
            transport_retries=self.transport,
            errors=tuple(sorted(self.errors.values(), key=lambda e: -e.count)),
            failed=self.failed,
            stop=self.stop,
            counters=self.executor.counters(),
        )


def check_reply(reply: Any) -> Reply:
    """A reply that may be stored; whatever is wrong with it becomes an error that says so."""
    if not isinstance(reply, Reply):
        return Reply(None, error=f"the engine gave {type(reply).__name__} instead of a reply")
    if reply.error is not None:
        return _error(reply, str(reply.error))
    if reply.raw is None:
        return _error(reply, "the engine gave neither an answer nor a reason")
    if not isinstance(reply.raw, str):
        kind = type(reply.raw).__name__
        return _error(reply, f"the engine answered with {kind} instead of text")
    if len(reply.raw) > LONGEST_ANSWER:
        wrong = f"the answer has {len(reply.raw)} characters; no verdict has over {LONGEST_ANSWER}"
        return _error(reply, wrong)
    if (
        _is_text(reply.raw)
        and _is_text(reply.model)
        and (reply.finish_reason is None or _is_text(reply.finish_reason))
        and _is_count(reply.prompt_tokens)
        and _is_count(reply.cached_tokens)
        and _is_count(reply.output_tokens)
        and _is_count(reply.retries)
    ):
        return reply
    p, c, o, r = _counts(reply)
    texts = (reply.raw, reply.model, reply.finish_reason or "")
    raw, model, finish = (str(t).encode(errors="replace").decode() for t in texts)
    return Reply(raw, None, finish or None, model, p, c, o, r)


def _error(reply: Reply, reason: str) -> Reply:
    prompt, cached, output, retries = _counts(reply)
    return Reply(
        None,
        error=reason,
        model=reply.model,
        prompt_tokens=prompt,
        cached_tokens=cached,
        output_tokens=output,
        retries=retries,
        permanent=bool(reply.permanent),
    )


def _counts(reply: Reply) -> list[int]:
    counts = (reply.prompt_tokens, reply.cached_tokens, reply.output_tokens, reply.retries)
    return [c if _is_count(c) else 0 for c in counts]


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**31


def _is_text(text: Any) -> bool:
    """Whether it is a text that UTF-8 can hold (no lone surrogates)."""
    if not isinstance(text, str):
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
