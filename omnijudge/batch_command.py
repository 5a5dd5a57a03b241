"""``omnijudge batch``: questions out to a batch service, answers back into the store."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnijudge.asking import Asking, JudgeSeat
    from omnijudge.config import RunConfig
    from omnijudge.judging.types import Request

DESCRIPTION = """\
Questions as a file in the OpenAI Batch format, for OpenAI's Batch API or for vLLM's run-batch, and
the answers back into the judgement store. custom_id is the question's fingerprint. After the import
`omnijudge run` finds every answer in the store and asks only what is still open.
"""

NAMED = 10
"""So many unknown names are printed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds ``export`` and ``import``."""
    parser.description = DESCRIPTION
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    text = "write the open questions of a configuration (or of a run) to a file"
    out = actions.add_parser("export", help=text, description=text)
    _source(out)
    out.add_argument("--out", metavar="FILE", required=True, help="JSON lines; replaced if there")
    out.add_argument("--judge", metavar="NAME", help="which judge of a panel")
    out.add_argument("--model", metavar="NAME", help="model as the service names it")
    out.add_argument(
        "--max-lines", metavar="N", type=int, help="questions a file; default: what OpenAI takes"
    )
    text = "put the answers of a batch into the judgement store"
    back = actions.add_parser("import", help=text, description=text)
    _source(back)
    back.add_argument("files", metavar="FILE", nargs="+", help="output and error files of batches")


def _source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="CONFIG", help="configuration, or folder of a run")
    parser.add_argument(
        "-o", dest="overrides", action="append", default=[], metavar="key.path=value",
        help="override a value of the configuration; may be repeated",
    )  # fmt: skip
    parser.add_argument("--limit", type=int, metavar="N", help="first N samples of the order")


def run(args: argparse.Namespace) -> int:
    """Runs ``omnijudge batch``; returns the exit code (3: some lines brought no answer)."""
    config, limit = read_source(args.source, args.overrides, args.limit)
    return _export(args, config, limit) if args.action == "export" else _import(args, config, limit)


def read_source(
    source: str, overrides: list[str], limit: int | None
) -> tuple[RunConfig, int | None]:
    """The configuration of a file, or of a run on disk, and its limit of samples.

    Raises:
        ConfigError: it cannot be read.
    """
    from pathlib import Path

    from omnijudge.config import RunConfig, apply_overrides, load_config
    from omnijudge.errors import ConfigError
    from omnijudge.run_directory import RunDirectory

    if not Path(source).is_dir():
        return load_config(source, overrides), limit
    manifest = RunDirectory(source).manifest()
    if manifest is None or "config" not in manifest:
        raise ConfigError(f"{source}: holds no finished run; name the configuration instead")
    values = apply_overrides(manifest["config"], overrides)
    kept = manifest["inputs"].get("limit")
    return RunConfig.model_validate(values), limit if limit is not None else kept


def _export(args: argparse.Namespace, config: RunConfig, limit: int | None) -> int:
    from pathlib import Path

    from omnijudge.errors import ConfigError
    from omnijudge.judging.batch_files import OPENAI_BYTES, OPENAI_LINES, BatchWriter, line_of
    from omnijudge.progress import Progress
    from omnijudge.run_questions import questions_of

    if args.max_lines is not None and args.max_lines < 1:
        raise ConfigError("--max-lines: write 1 or more")
    with questions_of(config, Progress(), limit) as questions:
        _notes(questions.notes)
        number, seat = _choose(questions.asking.seats, args.judge)
        model = args.model or seat.judge.model
        if not model:
            raise ConfigError(
                f"judge {seat.judge.name}: has no model; say with --model how the service names it"
            )
        lines, size = args.max_lines, None
        if seat.judge.engine == "openai":
            lines, size = lines or OPENAI_LINES, OPENAI_BYTES
        with BatchWriter(Path(args.out), lines, size) as writer:
            for request in open_requests(questions.asking, number):
                writer.add(line_of(seat.judge, request, model))
        if not writer.lines:
            print(f"judge {seat.judge.name}: nothing is open; no file was written")
        for file in writer.files:
            print(file)
        if writer.lines:
            print(f"judge {seat.judge.name}: {writer.lines} open questions for model {model}")
    return 0


def _choose(seats: list[JudgeSeat], name: str | None) -> tuple[int, JudgeSeat]:
    from omnijudge.errors import ConfigError

    known = {s.judge.name: n for n, s in enumerate(seats) if s.judge.engine != "replay"}
    if not known:
        raise ConfigError("judge: engine replay asks nobody; there is nothing to export")
    if name is None and len(known) > 1:
        raise ConfigError(f"several judges ask: say with --judge which ({', '.join(known)})")
    name = name or next(iter(known))
    if name not in known:
        raise ConfigError(f"--judge {name}: there is no such judge; there are {', '.join(known)}")
    return known[name], seats[known[name]]


def open_requests(asking: Asking, number: int) -> Iterator[Request]:
    """The next attempt of every question of a judge that is still open, repeats one by one."""
    from itertools import islice

    source = iter(asking.open_questions(number))
    while some := [request for _, request in islice(source, 512)]:
        yield from _next_attempts(asking, number, some)


def _next_attempts(asking: Asking, number: int, requests: list[Request]) -> Iterator[Request]:
    from omnijudge.benchmarks.base import Prompt
    from omnijudge.judging.question import corrected
    from omnijudge.judging.verdicts import outcomes

    seat = asking.seats[number]
    for repeat in range(seat.judge.repeats):
        mine = [r for r in requests if r.repeat == repeat]
        # Stored answers are found by fingerprint; of the key only the stage is read.
        found = outcomes(
            asking.benchmark, seat.source, seat.mode, seat.most,
            [("", "", "", None, r.stage) for r in mine],
            [r.fingerprint for r in mine],
            [Prompt(r.stage, "", r.variables) for r in mine],
            repeat,
        )  # fmt: skip
        for request, outcome in zip(mine, found, strict=True):
            if outcome.status is not None:
                continue
            attempt = len(outcome.attempts) + 1
            messages = corrected(request.messages) if attempt > 1 else request.messages
            yield replace(request, attempt=attempt, messages=messages)


def _import(args: argparse.Namespace, config: RunConfig, limit: int | None) -> int:
    from omnijudge.judging.batch_files import import_answers
    from omnijudge.progress import Progress
    from omnijudge.run_questions import questions_of

    with questions_of(config, Progress(), limit) as questions:
        _notes(questions.notes)
        asking = questions.asking
        judge_of = {
            fingerprint: seat.judge
            for number, seat in enumerate(asking.seats)
            if seat.judge.engine != "replay"
            for asked in asking.asked
            for fingerprint in asked.fingerprints(number)
        }
        found = import_answers(args.files, judge_of, questions.store)
    for problem in found.problems:
        print(f"{problem.level}: {problem}", file=sys.stderr)
    for reason, n in found.errors.most_common():
        print(f"failed, to be asked again: {n}: {reason}", file=sys.stderr)
    if found.unknown:
        named = ", ".join(found.unknown[:NAMED])
        more = f" and {len(found.unknown) - NAMED} more" if len(found.unknown) > NAMED else ""
        print(
            f"unknown custom_id (of no question of this configuration): {named}{more}",
            file=sys.stderr,
        )
    print(
        f"{found.lines} lines: {found.stored} answers stored, {found.known} known already, "
        f"{found.errors.total()} failed, {len(found.unknown)} unknown, "
        f"{len(found.problems)} unreadable"
    )
    return 0 if found.whole else 3


def _notes(notes: Any) -> None:
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
