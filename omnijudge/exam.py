"""The exam: bundled questions whose right verdict is beyond doubt, put to a judge beforehand.

They go the way of every other question: the judge's prompt pack, engine, attempts, parser and
store. A judge that fails many of them has not understood its task, its prompts or a language.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnijudge.benchmarks.base import Prompt
from omnijudge.errors import ConfigError, GateError

if TYPE_CHECKING:
    from omnijudge.asking import JudgeSeat
    from omnijudge.benchmarks.base import Benchmark
    from omnijudge.config import RunConfig
    from omnijudge.judging.limits import Stop
    from omnijudge.judging.store import JudgementStore
    from omnijudge.judging.types import Request
    from omnijudge.judging.verdicts import Outcome
    from omnijudge.progress import Progress

MIN_PASS = 0.9
OWN_KEYS = ("id", "stage", "language", "about", "expect")


@dataclass(frozen=True)
class Question:
    """One question of an exam.

    Attributes:
        id: its name.
        about: what makes its verdict plain.
        prompt: what it is rendered from.
        expect: answer field -> what it has to be: ``[low, high]``, a value, or
            ``{contains: text}``.
    """

    id: str
    about: str
    prompt: Prompt
    expect: Mapping[str, Any]


@dataclass(frozen=True)
class Exam:
    """The exam of a benchmark."""

    name: str
    version: str
    questions: Sequence[Question]


@dataclass(frozen=True)
class Graded:
    """A question with the judge's answer.

    Attributes:
        faults: what is wrong with the answer, in words; empty if it passed.
        raw: the answer text, None if there is none.
    """

    question: Question
    faults: Sequence[str]
    raw: str | None

    @property
    def passed(self) -> bool:
        """Whether the answer is as expected."""
        return not self.faults


@dataclass(frozen=True)
class ExamResult:
    """How a judge did.

    Attributes:
        judge: its name.
        identity: which model answered.
        pack: prompt pack with version.
        graded: all questions.
        stop: the limit or the user that ended it early; None if all could be asked.
        cost: of what was asked now.
    """

    judge: str
    identity: str
    pack: str
    graded: Sequence[Graded]
    stop: Stop | None = None
    cost: float = 0.0

    @property
    def passed(self) -> int:
        """Questions passed."""
        return sum(g.passed for g in self.graded)

    @property
    def rate(self) -> float:
        """Share of all questions that passed."""
        return self.passed / len(self.graded)

    def manifest(self) -> dict[str, Any]:
        """What the manifest of a run keeps of it."""
        return {
            "passed": self.passed,
            "questions": len(self.graded),
            "failed": [g.question.id for g in self.graded if not g.passed],
            "cost": self.cost,
        }


def load_exam(benchmark: Benchmark) -> Exam:
    """The exam of a benchmark.

    Raises:
        ConfigError: it has none, or the file is not written as an exam.
    """
    path: Path | None = getattr(benchmark, "exam", None)
    if path is None:
        raise ConfigError(f"benchmark {benchmark.name} has no exam, so there is nothing to ask")
    from omnijudge.config import read_yaml

    values = read_yaml(path)
    try:
        stages = {s: (dict(v["variables"]), dict(v.get("copies", {}))) for s, v in
                  values["stages"].items()}  # fmt: skip
        questions = [_question(q, *stages[q["stage"]]) for q in values["questions"]]
        found = Exam(str(values["name"]), str(values["version"]), questions)
    except (KeyError, TypeError, AttributeError) as e:
        raise ConfigError(
            f"{path}: is not written as an exam ({type(e).__name__}: {e}); it needs name, version, "
            "stages with variables, and questions with id, stage, language and expect"
        ) from e
    twice = [i for i, n in Counter(q.id for q in questions).items() if n > 1]
    if twice or not questions:
        raise ConfigError(f"{path}: {f'id {twice[0]!r} stands twice' if twice else 'no questions'}")
    return found


def _question(
    values: Mapping[str, Any], defaults: Mapping[str, Any], copies: Mapping[str, str]
) -> Question:
    variables = {**defaults, **{k: v for k, v in values.items() if k not in OWN_KEYS}}
    for name, source in copies.items():
        variables.setdefault(name, variables[source])
    prompt = Prompt(str(values["stage"]), str(values["language"]), variables)
    return Question(str(values["id"]), str(values.get("about", "")), prompt, values["expect"])


def faults(expect: Mapping[str, Any], fields: Mapping[str, Any]) -> list[str]:
    """What of an answer is not as expected, in words."""
    found = []
    for name, wanted in expect.items():
        value = fields.get(name)
        if isinstance(wanted, Mapping):
            text = str(wanted["contains"])
            if text.casefold() not in str(value or "").casefold():
                found.append(f"{name} is {value!r} and does not hold {text!r}")
        elif isinstance(wanted, list):
            low, high = wanted
            if not isinstance(value, int | float) or not low <= value <= high:
                found.append(f"{name} is {_said(value)}, expected {low:g} to {high:g}")
        elif value != wanted:
            found.append(f"{name} is {_said(value)}, expected {_said(wanted)}")
    return found


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def sit_exam(
    exam: Exam,
    benchmark: Benchmark,
    seat: JudgeSeat,
    config: RunConfig,
    store: JudgementStore,
    progress: Progress,
) -> ExamResult:
    """Asks a judge every question that the store has no answer to, and grades all answers.

    Raises:
        ConfigError: the judge's engine asks nobody.
        ResourceError: the engine cannot be opened.
    """
    if seat.judge.engine == "replay":
        raise ConfigError(
            f"judge {seat.judge.name}: engine replay reads its answers from a file and asks "
            "nobody; an exam needs an engine that answers"
        )
    prompts = [q.prompt for q in exam.questions]
    rendered = [seat.asker.question(p) for p in prompts]
    prints = [r.fingerprint for r in rendered]
    requests = [seat.asker.request(p, r) for p, r in zip(prompts, rendered, strict=True)]
    found = _outcomes(benchmark, seat, store, exam, prints, {})
    wanted = [
        (q.id, r)
        for q, r, o in zip(exam.questions, requests, found, strict=True)
        if o.status is None
    ]
    stop, cost = None, 0.0
    if wanted:
        report = _ask(wanted, benchmark, seat, config, store, progress)
        store.refresh()
        found = _outcomes(benchmark, seat, store, exam, prints, report.failed)
        stop, cost = report.stop, report.progress.cost
    pack = f"{seat.asker.pack.name} {seat.asker.pack.version}"
    graded = [_grade(q, o) for q, o in zip(exam.questions, found, strict=True)]
    return ExamResult(seat.judge.name, seat.asker.identity.text, pack, graded, stop, cost)


def _outcomes(
    benchmark: Benchmark,
    seat: JudgeSeat,
    store: JudgementStore,
    exam: Exam,
    prints: Sequence[bytes],
    failed: Mapping[tuple[bytes, int], str],
) -> list[Outcome]:
    from omnijudge.judging.verdicts import StoredAnswers, outcomes

    keys = [(exam.name, q.id, "", None, q.prompt.stage) for q in exam.questions]
    source = StoredAnswers(store, failed)
    prompts = [q.prompt for q in exam.questions]
    return outcomes(benchmark, source, seat.mode, seat.most, keys, prints, prompts)


def _ask(
    wanted: Sequence[tuple[str, Request]],
    benchmark: Benchmark,
    seat: JudgeSeat,
    config: RunConfig,
    store: JudgementStore,
    progress: Progress,
) -> Any:
    from omnijudge.judging.executors import open_executor
    from omnijudge.judging.loop import judge as judge_loop
    from omnijudge.judging.question import corrected
    from omnijudge.judging.verdicts import read_reply

    def parse(request: Request, reply: Any) -> Any:
        prompt = Prompt(request.stage, "", request.variables)
        return read_reply(benchmark, seat.mode, request.stage, reply, prompt)

    progress.start(f"exam ({seat.judge.name})", len(wanted))
    executor = open_executor(config.execution, seat.judge, benchmark.name)
    try:
        return judge_loop(
            wanted,
            store,
            executor,
            parse=parse,
            retry_turn=lambda request: corrected(request.messages),
            attempts=seat.most,
            judge_name=seat.judge.name,
            batch_size=min(config.execution.batch_size, 32),
            limits=config.limits,
            price=seat.judge.price,
            progress=lambda p: progress.reach(p.done),
        )
    finally:
        executor.close()
        progress.end()


def _grade(question: Question, outcome: Outcome) -> Graded:
    from omnijudge.judging.verdicts import USABLE

    last = outcome.attempts[-1] if outcome.attempts else None
    raw = None if last is None else last.reply.raw
    if outcome.status in USABLE:
        return Graded(question, faults(question.expect, outcome.fields), raw)
    reason = "it was not asked" if last is None else (last.answer.reason or last.answer.status)
    return Graded(question, [f"no usable answer: {reason}"], raw)


def examine(config: RunConfig, progress: Progress) -> list[ExamResult]:
    """The exam of every judge of a configuration; answers come from and go to its store.

    Args:
        config: the run that the judges are meant for; its data are not read.
        progress: shows how far it is.

    Raises:
        ConfigError: the benchmark has no exam, or a judge's engine asks nobody.
        ResourceError: an engine cannot be opened.
    """
    from omnijudge.benchmarks import get_benchmark
    from omnijudge.judging.store import JudgementStore
    from omnijudge.seats import default_store, open_seats, resolve_options

    benchmark = get_benchmark(config.benchmark)
    exam = load_exam(benchmark)
    options = resolve_options(benchmark, config.scoring)
    seats = open_seats(benchmark, config, options, [])
    with JudgementStore(config.store or default_store()) as store:
        return [sit_exam(exam, benchmark, s, config, store, progress) for s in seats]


def check_passed(results: Sequence[tuple[ExamResult, float]]) -> None:
    """Stops where a judge is below the pass rate asked of it.

    Args:
        results: every result with the share that has to pass.

    Raises:
        GateError: at least one is, or could not be asked everything.
        KeyboardInterrupt: the user ended it.
    """
    for result, _ in results:
        if result.stop is not None and result.stop.kind == "interrupted":
            raise KeyboardInterrupt
    low = [
        f"judge {r.judge} passed {r.passed} of {len(r.graded)} exam questions "
        f"({percent(r.rate)}), {percent(least)} are asked for"
        + (f" (not all were asked: {r.stop.message})" if r.stop is not None else "")
        for r, least in results
        if r.rate < least
    ]
    if low:
        raise GateError("; ".join(low))


def percent(share: float) -> str:
    """A share as a percentage."""
    return f"{100 * share:.3g} %"


def report_lines(results: Sequence[ExamResult]) -> Iterator[str]:
    """What the judges passed and failed, for the terminal."""
    for number, result in enumerate(results):
        if number:
            yield ""
        yield f"judge {result.judge} ({result.identity}), prompts {result.pack}"
        if result.stop is not None:
            yield f"stopped early: {result.stop.message}"
        yield from _table(result)
        for g in result.graded:
            if not g.passed:
                yield from _failure(g)


def _table(result: ExamResult) -> Iterator[str]:
    languages = list(dict.fromkeys(g.question.prompt.language for g in result.graded))
    stages = list(dict.fromkeys(g.question.prompt.stage for g in result.graded))
    rows = [["stage", *languages, "all"]]
    for stage in [*stages, None]:
        cells = [stage or "all"]
        for language in [*languages, None]:
            own = [
                g
                for g in result.graded
                if stage in (None, g.question.prompt.stage)
                and language in (None, g.question.prompt.language)
            ]
            passed = sum(g.passed for g in own)
            cells.append(f"{passed}/{len(own)} {percent(passed / len(own))}" if own else "-")
        rows.append(cells)
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    for row in rows:
        first, *rest = (
            c.ljust(w) if i == 0 else c.rjust(w)
            for i, (c, w) in enumerate(zip(row, widths, strict=True))
        )
        yield "  " + "   ".join([first, *rest]).rstrip()


def _failure(g: Graded) -> Iterator[str]:
    variables = g.question.prompt.variables
    about = f": {g.question.about}" if g.question.about else ""
    yield f"failed {g.question.id}{about}"
    for name in ("question", "target_answer", "text"):
        if name in variables:
            yield f"  {name.replace('_', ' ')}: {variables[name]}"
    yield f"  answer: {g.raw}"
    for fault in g.faults:
        yield f"  {fault}"
