"""The command line: parse, call, print; no logic."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO, cast

from omnijudge import __version__

Command = Callable[[argparse.Namespace], int]


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="omnijudge",
        description="Batch judging and scoring of real-time omnimodal assistants.",
        epilog="Exit codes: 0 done; 1 could not run; 2 wrong usage or configuration; 3 done, but "
        "judgements invalid, samples unscored or skipped; 4 a gate failed; 5 stopped by a limit; "
        "130 interrupted.",
    )
    top.add_argument("--version", action="version", version=f"omnijudge {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, run: Command, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(run=run)
        return sub

    sub = command("run", _run, "Match, ask the judge, score, and write tables and report.")
    _config_arguments(sub)
    sub.add_argument(
        "--limit", type=_count, metavar="N", help="first N samples of the seeded order"
    )
    sub.add_argument("--dry-run", action="store_true", help="count the questions; write nothing")
    sub.add_argument("--fresh", action="store_true", help="discard the run (not the store)")
    sub.add_argument(
        "--no-store", action="store_true", help="keep answers in the run's folder only"
    )
    sub.add_argument("--backend", choices=("local", "ray"), help="execution.backend")
    sub.add_argument(
        "--shard",
        metavar="K/N",
        help="judge the K-th of N shares; run without it when all are done",
    )
    sub.add_argument(
        "--lock", metavar="FILE", help="models as resolved: read, or written if it is not there"
    )

    sub = command("validate", _validate, "List every problem of configuration and data.")
    _config_arguments(sub)

    sub = command("metrics", _metrics, "Print the metrics of a run.")
    sub.add_argument("run_folder", metavar="RUN")
    sub.add_argument("--layout", choices=("long", "wide", "paper"), default="wide")
    sub.add_argument(
        "--format", choices=("table", "json", "csv", "markdown", "latex"), default="table"
    )
    sub.add_argument("--metrics", metavar="NAME[,NAME...]", help="only these metrics")
    sub.add_argument("--digits", type=_count, metavar="N", help="digits after the point")

    sub.add_argument("--by", metavar="COLUMN", help="group by an annotation column or a system tag")

    sub = command("score", _score, "New scores and metrics from the judgements of a run.")
    sub.add_argument("run_folder", metavar="RUN")
    _overrides_argument(sub)
    sub.add_argument("--out", metavar="DIR", help="write there instead of into the run")

    sub = command("show", _show, "One unit: timeline, texts, question, raw answer, score.")
    sub.add_argument("run_folder", metavar="RUN")
    sub.add_argument("unit", metavar="SYSTEM/SAMPLE/UNIT", help="percent-encode slashes in names")
    sub.add_argument("--prompt", action="store_true", help="also the question as rendered")

    sub = command("status", _status, "What is done, missing, and redone by a changed config.")
    sub.add_argument("run_folder", metavar="RUN")
    sub.add_argument("config", nargs="?", metavar="CONFIG")
    _overrides_argument(sub)

    sub = command("exam", _exam, "Ask the judge about 100 bundled questions with plain verdicts.")
    _config_arguments(sub)
    sub.add_argument("--min-pass", type=_share, metavar="SHARE", help="exit 4 below it (0.9)")
    sub.add_argument("--engine", metavar="NAME", help="judge.engine")
    sub.add_argument("--lock", metavar="FILE", help="models as resolved, read if it is there")

    sub = command("report", _report, "Write the HTML report of a run.")
    sub.add_argument("run_folder", metavar="RUN")
    sub.add_argument("--out", metavar="FILE")

    sub = command("prompts", _prompts, "Export, check or look at a prompt pack.")
    actions = sub.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, text in (
        ("export", "copy the default pack of a benchmark to a folder"),
        ("check", "render every template on the sample data"),
        ("preview", "print the first question of each stage"),
    ):
        action = actions.add_parser(name, help=text, description=text)
        action.add_argument(
            "folder",
            metavar="DIR",
            help="pack folder" if name != "preview" else "pack folder, or default",
        )
        action.add_argument("--benchmark", default="omniinteract")
        if name == "preview":
            action.add_argument("--stage")
            action.add_argument("--language")
            action.add_argument("--no-rationale", action="store_true")

    sub = command("schema", _schema, "Print the schema of a file that omnijudge reads or writes.")
    sub.add_argument("what", choices=("config", "tables"))

    sub = command("init", _init, "Write a commented configuration and sample data to start from.")
    sub.add_argument("folder", nargs="?", default=".", metavar="DIR")

    from omnijudge import (
        batch_command,
        convert,
        import_command,
        interactscope_command,
        simulate_command,
        store_command,
    )
    from omnijudge.analysis import commands as analysis

    sub = command("convert", convert.run, "Convert annotations and transcripts of other tools.")
    convert.add_arguments(sub)
    sub = command("import", import_command.run, "Make a run of another evaluator's results.")
    import_command.add_arguments(sub)
    sub = command("batch", batch_command.run, "Questions to a batch service, and answers back.")
    batch_command.add_arguments(sub)
    sub = command("store", store_command.run, "Look after the judgement store.")
    store_command.add_arguments(sub)
    sub = command("simulate", simulate_command.run, "Write transcripts of simulated systems.")
    simulate_command.add_arguments(sub)
    sub = command("interactscope", interactscope_command.run, "Controls of Omni-InteractScope.")
    interactscope_command.add_arguments(sub)
    analysis.add_commands(command)
    return top


def _config_arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("config", metavar="CONFIG")
    _overrides_argument(sub)


def _overrides_argument(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "-o", dest="overrides", action="append", default=[], metavar="key.path=value",
        help="override a value of the configuration; may be repeated",
    )  # fmt: skip


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError("must be 0 or more")
    return value


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError("must lie in 0 to 1")
    return value


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point. Returns the exit code."""
    from omnijudge.errors import DataError, OmnijudgeError

    args = parser().parse_args(arguments)
    try:
        with contextlib.redirect_stdout(cast("TextIO", _Patient(sys.stdout))):
            code = int(args.run(args))
            sys.stdout.flush()
        return code
    except DataError as e:
        for problem in e.problems:
            print(f"{problem.level}: {problem}", file=sys.stderr)
        print(f"omnijudge: {e}", file=sys.stderr)
        return e.exit_code
    except OmnijudgeError as e:
        print(f"omnijudge: {e}", file=sys.stderr)
        return e.exit_code
    except KeyboardInterrupt:
        print("omnijudge: interrupted; what was judged is kept", file=sys.stderr)
        return 130
    except OSError as e:
        where = f"{e.filename}: " if e.filename else ""
        print(
            f"omnijudge: {where}{e.strerror or e}; check the path and its rights", file=sys.stderr
        )
        return 1


class _Patient:
    """Standard output whose reader may go (`| head`) without hiding how a command ends."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with self._forgiving():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._forgiving():
            self._stream.flush()

    @contextlib.contextmanager
    def _forgiving(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _load(args: argparse.Namespace, problems: list[Any] | None = None) -> Any:
    from omnijudge.config import load_config

    overrides = list(args.overrides)
    if getattr(args, "backend", None):
        overrides.append(f"execution.backend={args.backend}")
    if getattr(args, "engine", None):
        overrides.append(f"judge.engine={args.engine}")
    return load_config(args.config, overrides, problems)


def _run(args: argparse.Namespace) -> int:
    from omnijudge.judging.limits import terminated_as_interrupted
    from omnijudge.judging.shards import Shard, parse_shard
    from omnijudge.pipeline import RunFlags, run

    flags = RunFlags(
        limit=args.limit,
        dry_run=args.dry_run,
        fresh=args.fresh,
        no_store=args.no_store,
        shard=parse_shard(args.shard) if args.shard else Shard(),
        lock=args.lock,
    )
    with terminated_as_interrupted():
        outcome = run(_load(args), flags)
    for message in outcome.messages:
        print(f"note: {message}", file=sys.stderr)
    if outcome.output is None:
        from omnijudge.report.terminal import dry_run_text

        if outcome.counts:
            print(dry_run_text(outcome.counts))
    else:
        from omnijudge.report.terminal import summary_text

        print(summary_text(outcome.output))
    return outcome.exit_code


def _validate(args: argparse.Namespace) -> int:
    from omnijudge.progress import Progress
    from omnijudge.validate import report, validate

    problems: list[Any] = []
    config = _load(args, problems)
    wrong_config = bool(problems)
    found = validate(config, Progress())
    problems += found.problems
    for line in report(args.config, problems, found):
        print(line)
    if any(p.level == "error" for p in found.problems):
        return 1
    return 2 if wrong_config else 0


def _metrics(args: argparse.Namespace) -> int:
    from omnijudge.api import open_run
    from omnijudge.report.layouts import render

    found = open_run(args.run_folder)
    table = found.metrics
    if args.by:
        from omnijudge.grouping import metrics_by

        table = metrics_by(args.run_folder, args.by)
    names = args.metrics.split(",") if args.metrics else None
    print(
        render(
            table, found.manifest, args.layout, args.format,
            metrics_filter=names, digits=args.digits, by=args.by,
        )
    )  # fmt: skip
    return 0


def _score(args: argparse.Namespace) -> int:
    from omnijudge.progress import Progress
    from omnijudge.report.terminal import summary_text
    from omnijudge.rescore import rescore

    folder, counts = rescore(args.run_folder, args.overrides, args.out, Progress())
    print(summary_text(folder))
    return 3 if counts.unscored_units else 0


def _show(args: argparse.Namespace) -> int:
    from omnijudge.show import show

    print(show(args.run_folder, args.unit, args.prompt))
    return 0


def _status(args: argparse.Namespace) -> int:
    from omnijudge.status import status_lines

    config = _load(args) if args.config else None
    print("\n".join(status_lines(args.run_folder, config)))
    return 0


def _exam(args: argparse.Namespace) -> int:
    from omnijudge.exam import MIN_PASS, check_passed, examine, report_lines
    from omnijudge.model_lock import read_lock
    from omnijudge.progress import Progress

    config = _load(args)
    lock = read_lock(args.lock)
    config = config if lock is None else lock.applied_to(config)
    results = examine(config, Progress())
    for line in report_lines(results):
        print(line)
    asked = [MIN_PASS if j.exam is None else j.exam for j in config.judges]
    if args.min_pass is not None:
        asked = [args.min_pass] * len(results)
    check_passed(list(zip(results, asked, strict=True)))
    return 0


def _report(args: argparse.Namespace) -> int:
    from pathlib import Path

    from omnijudge.api import open_run
    from omnijudge.report.html import write_report

    run = open_run(args.run_folder)
    print(write_report(run.path, Path(args.out) if args.out else None))
    return 0


def _prompts(args: argparse.Namespace) -> int:
    from omnijudge import prompt_commands

    if args.action == "export":
        lines = prompt_commands.export(args.benchmark, args.folder)
    elif args.action == "check":
        lines = prompt_commands.check(args.folder, args.benchmark)
    else:
        lines = prompt_commands.preview(
            args.folder, args.benchmark, args.stage, args.language, not args.no_rationale
        )
    print("\n".join(lines))
    return 0


def _schema(args: argparse.Namespace) -> int:
    from omnijudge.schemas import schema_text

    print(schema_text(args.what))
    return 0


def _init(args: argparse.Namespace) -> int:
    from omnijudge.starter import write_starter

    for line in write_starter(args.folder):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
