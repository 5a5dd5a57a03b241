"""The judge step of a run: every judge is asked what is open, until nothing is left or a limit
ends it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from omnijudge.errors import ConfigError
from omnijudge.judging.limits import Stop, StopFlag, deadline_at
from omnijudge.judging.question import corrected
from omnijudge.judging.verdicts import StoredAnswers
from omnijudge.usage import Usage, added, of_counters, of_progress, of_report, total

if TYPE_CHECKING:
    from omnijudge.asking import Asking
    from omnijudge.config import LimitsConfig, RunConfig
    from omnijudge.judging.report import ErrorCount, JudgeReport, Progress
    from omnijudge.judging.store import JudgementStore
    from omnijudge.judging.types import Executor
    from omnijudge.progress import Progress as Shown

MODEL_ENGINES = ("vllm",)
"""Engines that fill a machine: two of them are not open at one time."""
PORTION = 4
"""A portion of a panel's samples has questions for so many times what is in flight."""
ERRORS_IN_A_ROW = 1000
"""So many errors without one answer in between end a run: nobody is there."""


class LimitSet:
    """The limits of a run, over all its rounds and judges, fixed when it begins."""

    def __init__(
        self,
        limits: LimitsConfig,
        spent: float,
        share: float = 1.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Fixes the moment of the deadline.

        Args:
            limits: as configured.
            spent: what the run has cost before.
            share: part of the allowed cost that is this process's (a shard of several).
            clock: seconds since 1970.

        Raises:
            ConfigError: the deadline is no time of day.
        """
        self.limits = limits
        if limits.max_cost is not None:
            self.limits = limits.model_copy(update={"max_cost": limits.max_cost * share})
        self.spent = spent
        self._clock = clock
        self._until: float | None = None
        if limits.deadline is not None:
            now = datetime.fromtimestamp(clock())
            self._until = deadline_at(limits.deadline, now).timestamp()

    def reached(self) -> Stop | None:
        """The limit that is reached already, if one is.

        The judge loop looks for the next time the clock shows the deadline; once that has passed,
        it would be tomorrow's.
        """
        if self._until is not None and self._clock() >= self._until:
            return Stop("deadline", f"the deadline {self.limits.deadline} is reached")
        if self.limits.max_cost is not None and self.spent >= self.limits.max_cost:
            return Stop(
                "cost", f"{self.spent:.2f} is spent, the limit is {self.limits.max_cost:.2f}"
            )
        return None


def check_price(config: RunConfig) -> None:
    """Refuses a cost limit that nothing could ever reach.

    Raises:
        ConfigError: ``limits.max_cost`` without any price.
    """
    priced = any(p is not None for j in config.judges for p in (j.price.input, j.price.output))
    if config.limits.max_cost is not None and not priced:
        raise ConfigError(
            "limits.max_cost: no judge has a price, so that nothing would ever cost anything; "
            "write judge.price: {input: ..., output: ...} per million tokens"
        )


@dataclass
class JudgeStep:
    """Asks the judges of a run.

    Attributes:
        config: the run.
        asking: its questions.
        store: where answers go.
        limits: when to end early.
        shown: progress for the user.
        say: takes sentences for the user.
        keep: takes the usage so far, now and then, to be kept in case of a kill.
        stop: why it ended early.
        usage: per judge what was asked.
        errors: by judge and reason.
        counters: per judge the executor's and engine's own counters.
    """

    config: RunConfig
    asking: Asking
    store: JudgementStore | None
    limits: LimitSet
    shown: Shown
    say: Callable[[str], None]
    keep: Callable[[Mapping[str, Usage]], None] = lambda usage: None
    stop: Stop | None = None
    usage: dict[str, Usage] = field(default_factory=dict)
    errors: dict[tuple[str, str], ErrorCount] = field(default_factory=dict)
    counters: dict[str, Mapping[str, float]] = field(default_factory=dict)
    _flag: StopFlag = field(default_factory=StopFlag)
    _executors: dict[int, Executor] = field(default_factory=dict)

    def run(self, dry: bool = False) -> None:
        """Finds questions and asks them, in rounds.

        Args:
            dry: only find those of the first round.
        """
        try:
            known = 0
            for _ in range(self.asking.benchmark.rounds):
                # One judge's answers may have raised questions that the others were not asked.
                raised = self.asking.count > known and len(self.asking.seats) > 1
                if not (self._find() or raised) or dry:
                    break
                known = self.asking.count
                self._round()
                if self.stop is not None:
                    if self.asking.benchmark.rounds > 1:
                        self._find()  # what the answers so far raise is not asked, but counted
                    break
        finally:
            self._close_all()
        for (name, _), error in self.errors.items():
            self.say(
                f"judge {name}: {error.count} errors: {error.reason} "
                f"(first: stage {error.stage}, fingerprint {error.fingerprint})"
            )
        if self.stop is not None:
            self.say(f"stopped early: {self.stop.message}")

    def _find(self) -> int:
        self.shown.start("finding questions", len(self.asking.plan))
        found = self.asking.find(self.shown.advance)
        self.shown.end()
        return found

    def _round(self) -> None:
        asked = [n for n, s in enumerate(self.asking.seats) if s.judge.engine != "replay"]
        together = self._can_be_open_together(asked)
        # Where a panel goes through the samples together, it does so for all rounds.
        times = self.asking.benchmark.rounds if together and len(asked) > 1 else 1
        for samples in self._portions(len(asked) if together else 1):
            for number in asked * times:
                if self.stop is None:
                    self._ask(number, samples)
                if not together:
                    self._close_all()
            if self.stop is not None:
                break

    def _can_be_open_together(self, seats: list[int]) -> bool:
        engines = [self.asking.seats[n].judge.engine for n in seats]
        return sum(e in MODEL_ENGINES for e in engines) < 2

    def _portions(self, judges: int) -> Iterator[set[str] | None]:
        """Samples that all judges of a panel are asked about before the next ones are begun."""
        plan = self.asking.plan
        ids = [s for block in plan.blocks for s in block]
        questions = max(sum(len(a.rows) for a in self.asking.asked), 1)
        size = PORTION * self._in_flight * len(ids) // questions + 1
        if judges < 2 or size >= len(ids):
            yield None
            return
        for begin in range(0, len(ids), size):
            yield set(ids[begin : begin + size])

    @property
    def _in_flight(self) -> int:
        """Questions handed out at one time, about."""
        execution = self.config.execution
        actors = execution.actors if isinstance(execution.actors, int) else 1
        return execution.batch_size * execution.in_flight * actors

    def _ask(self, number: int, samples: set[str] | None) -> None:
        """Asks one judge what is open."""
        from omnijudge.judging.loop import judge as judge_loop

        seat = self.asking.seats[number]
        name = seat.judge.name
        questions = iter(self.asking.open_questions(number, self._in_flight, samples))
        first = next(questions, None)
        if first is None:
            return
        self.stop = self.limits.reached()
        if self.stop is not None:
            return
        assert self.store is not None
        executor = self._executor(number)
        self.shown.start(f"judging ({name})", self.asking.count // len(self.asking.seats))
        before = self.usage.get(name, Usage())

        def tell(progress: Progress) -> None:
            self.usage[name] = before + of_progress(progress)
            self.keep(self.usage)
            note = f"{progress.rate:.0f}/s, {progress.invalid} invalid, {progress.errors} errors"
            self.shown.reach(progress.done, note)

        try:
            report = judge_loop(
                _chain(first, questions),
                self.store,
                executor,
                parse=self.asking.parse(number),
                retry_turn=lambda request: corrected(request.messages),
                attempts=seat.most,
                judge_name=name,
                batch_size=self.config.execution.batch_size,
                limits=self.limits.limits,
                price=seat.judge.price,
                spent=self.limits.spent,
                give_up=max(ERRORS_IN_A_ROW, 4 * self.config.execution.batch_size),
                progress=tell,
                stop=self._flag,
            )
        finally:
            self.shown.end()
        self._take(number, before, report)

    def _take(self, number: int, before: Usage, report: JudgeReport) -> None:
        assert self.store is not None
        seat = self.asking.seats[number]
        name = seat.judge.name
        self.usage[name] = before + of_report(report)
        self.limits.spent += report.progress.cost
        self.counters[name] = report.counters  # running ones of an executor that stays open
        self.store.refresh()
        if isinstance(seat.source, StoredAnswers):
            seat.source.failed |= report.failed
        for error in report.errors:
            known = self.errors.get((name, error.reason))
            count = error.count + (known.count if known else 0)
            self.errors[name, error.reason] = replace(known or error, count=count)
        self.stop = report.stop

    def _executor(self, number: int) -> Executor:
        from omnijudge.judging.executors import open_executor

        if number not in self._executors:
            judge = self.asking.seats[number].judge
            benchmark = self.asking.benchmark.name
            self._executors[number] = open_executor(self.config.execution, judge, benchmark)
        return self._executors[number]

    def _close_all(self) -> None:
        while self._executors:
            number, executor = self._executors.popitem()
            name = self.asking.seats[number].judge.name
            counters = self.counters.get(name, {})
            self.usage = added(self.usage, {name: of_counters(counters)})
            executor.close()

    def total(self) -> Usage:
        """Usage of all judges."""
        return total(self.usage.values())


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest
