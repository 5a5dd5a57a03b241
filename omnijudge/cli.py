"""The command line: parse, call, print; no logic."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

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

    sub = command("schema", _schema, "Print the schema of a file that omnijudge reads or writes.")
    sub.add_argument("what", choices=("config", "tables"))

    sub = command("init", _init, "Write a commented configuration and sample data to start from.")
    sub.add_argument("folder", nargs="?", default=".", metavar="DIR")

    from omnijudge import convert, simulate_command

    sub = command("convert", convert.run, "Convert annotations and transcripts of other tools.")
    convert.add_arguments(sub)
    sub = command("simulate", simulate_command.run, "Write transcripts of simulated systems.")
    simulate_command.add_arguments(sub)
    return top


def _config_arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("config", metavar="CONFIG")
    sub.add_argument(
        "-o", dest="overrides", action="append", default=[], metavar="key.path=value",
        help="override a value of the configuration; may be repeated",
    )  # fmt: skip


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError("must be 0 or more")
    return value


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point. Returns the exit code."""
    from omnijudge.errors import DataError, OmnijudgeError

    args = parser().parse_args(arguments)
    try:
        return int(args.run(args))
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
    except BrokenPipeError:
        # The reader of our output has gone (`| head`); that is no failure of ours.
        sys.stderr.close()
        return 0


def _load(args: argparse.Namespace, problems: list[Any] | None = None) -> Any:
    from omnijudge.config import load_config

    overrides = list(args.overrides)
    if getattr(args, "backend", None):
        overrides.append(f"execution.backend={args.backend}")
    return load_config(args.config, overrides, problems)


def _run(args: argparse.Namespace) -> int:
    from omnijudge.pipeline import RunFlags, run

    outcome = run(_load(args), RunFlags(args.limit, args.dry_run, args.fresh, args.no_store))
    for message in outcome.messages:
        print(f"note: {message}", file=sys.stderr)
    if outcome.output is None:
        from omnijudge.report.terminal import dry_run_text

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
    names = args.metrics.split(",") if args.metrics else None
    print(
        render(
            found.metrics, found.manifest, args.layout, args.format,
            metrics_filter=names, digits=args.digits,
        )
    )  # fmt: skip
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
