"""Arguments and entry points of the commands about finished runs."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

Command = Callable[[argparse.Namespace], int]
Add = Callable[[str, Command, str], argparse.ArgumentParser]

GATE_HELP = (
    "end with exit code 4 if the expression holds, as in 'ia_qtf1/all < 0.4' (of any system) or "
    "'difference(mine, aura, ia_qtf1/all) < 0'; may be repeated"
)


def add_commands(command: Add) -> None:
    """Adds compare, and the others, to the command line."""
    sub = command("compare", _compare, "Compare systems within and across runs.")
    sub.add_argument("runs", nargs="+", metavar="RUN")
    sub.add_argument("--baseline", metavar="SYSTEM", help="compare every system with this one")
    _metric_arguments(sub)
    sub.add_argument("--all-pairs", action="store_true", help="every pair of systems")
    sub.add_argument(
        "--correction", choices=("holm", "bh"), default="holm",
        help="of p-values, inside one metric and group",
    )  # fmt: skip
    sub.add_argument(
        "--fail-if", action="append", default=[], metavar="EXPR", dest="fail_if", help=GATE_HELP
    )
    _format_argument(sub)
    sub.add_argument("--out", metavar="DIR", help="write comparisons.parquet and ranks.parquet")

    sub = command("sensitivity", _sensitivity, "How numbers and ranks move with the scoring.")
    sub.add_argument("run_folder", metavar="RUN")
    sub.add_argument("--ask", action="store_true", help="ask the judge what points lack")
    sub.add_argument(
        "--sweep", action="append", default=[], metavar="NAME", help="only this; may be repeated"
    )
    _metric_arguments(sub)
    _format_argument(sub)
    sub.add_argument("--out", metavar="DIR", help="instead of the run's folder `sensitivity`")

    sub = command("agree", _agree, "How far judges agree: runs or files of judgements.")
    sub.add_argument("judges", nargs="+", metavar="RUN_OR_FILE")
    sub.add_argument(
        "--margin", type=float, metavar="X",
        help="largest difference of a metric that does not matter, in its own unit",
    )  # fmt: skip
    _metric_arguments(sub)
    sub.add_argument("--baseline", metavar="SYSTEM", help="system that differences are taken to")
    sub.add_argument(
        "--largest", type=int, default=10, metavar="N", help="list so many disagreements"
    )
    _format_argument(sub)

    sub = command("sample", _sample, "Draw videos for a gold judge, and write its questions.")
    sub.add_argument("run_folder", metavar="RUN")
    sub.add_argument("--budget", required=True, metavar="B", help="40videos or 50usd")
    sub.add_argument(
        "--strata", type=int, default=1, metavar="N",
        help="strata by size of the videos (default: a simple random sample)",
    )  # fmt: skip
    sub.add_argument("--seed", type=int, metavar="N", help="of the draw; default: the run's")
    sub.add_argument("--model", metavar="NAME", help="gold model, as its service names it")
    sub.add_argument(
        "--price",
        type=_price,
        metavar="IN,OUT",
        help="dollars per million tokens of the gold judge",
    )
    _metric_arguments(sub)
    _format_argument(sub)
    sub.add_argument("--out", metavar="DIR", help="instead of the run's folder `gold`")

    sub = command("rectify", _rectify, "Correct a run's metrics by gold judgements on a sample.")
    sub.add_argument("run_folder", metavar="RUN")
    sub.add_argument(
        "--gold", required=True, metavar="FILE",
        help="gold judgements: a run, a replay file, a filled sheet, or a batch's output",
    )  # fmt: skip
    sub.add_argument("--sample", metavar="FILE", help="sample.json of the draw")
    sub.add_argument(
        "--declared-random", action="store_true",
        help="vouch that the gold videos are a simple random sample",
    )  # fmt: skip
    sub.add_argument(
        "--guard-rare-errors", action="store_true",
        help="gold alone where the judges differ by much in fewer than 5 sampled videos",
    )  # fmt: skip
    sub.add_argument("--baseline", metavar="SYSTEM", help="system that differences are taken to")
    _metric_arguments(sub)
    _format_argument(sub)


def _price(text: str) -> tuple[float, float]:
    parts = [float(x) for x in text.split(",")]
    if len(parts) != 2 or not all(0 <= p < math.inf for p in parts):
        raise argparse.ArgumentTypeError("write two numbers: 2.5,10")
    return parts[0], parts[1]


def _metric_arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--metric", metavar="M", help="a metric instead of the leading ones")
    sub.add_argument("--group", metavar="G", help="a group of units")


def _format_argument(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--format", choices=("table", "json"), default="table")


def _compare(args: argparse.Namespace) -> int:
    from omnijudge.analysis.compare import compare, compared_json, compared_text
    from omnijudge.errors import GateError

    if args.all_pairs and args.baseline:
        from omnijudge.errors import ConfigError

        raise ConfigError("--all-pairs compares every pair; leave --baseline out")
    found: Any = compare(
        args.runs,
        baseline=args.baseline,
        metric=args.metric,
        group=args.group,
        all_pairs=args.all_pairs,
        correction=args.correction,
        fail_if=args.fail_if,
        out=args.out,
    )
    print(compared_json(found) if args.format == "json" else compared_text(found))
    return GateError.exit_code if found.failed else 0


def _sensitivity(args: argparse.Namespace) -> int:
    from omnijudge.analysis import sensitivity_views as views
    from omnijudge.analysis.sensitivity import sensitivity
    from omnijudge.progress import Progress

    found = sensitivity(
        args.run_folder,
        ask=args.ask,
        metric=args.metric,
        group=args.group,
        only=args.sweep,
        out=args.out,
        progress=Progress(),
    )
    if found.folder is not None:
        for metric, group in found.shown:
            name = f"{metric}-{group}.svg".replace("/", "-")
            views.plot_sensitivity(found, (metric, group), found.folder / name)
    as_json = args.format == "json"
    print(views.sensitivity_json(found) if as_json else views.sensitivity_text(found))
    return 0


def _agree(args: argparse.Namespace) -> int:
    from omnijudge.analysis.agreement import agree
    from omnijudge.analysis.agreement_views import agreement_json, agreement_text
    from omnijudge.progress import Progress

    pairs = agree(
        args.judges,
        margin=args.margin,
        metric=args.metric,
        group=args.group,
        baseline=args.baseline,
        largest=max(args.largest, 0),
        progress=Progress(),
    )
    if args.format == "json":
        print(agreement_json(pairs))
    else:
        print(agreement_text(pairs, every_metric=bool(args.metric or args.group)))
    return 0


def _sample(args: argparse.Namespace) -> int:
    from omnijudge.analysis.gold_sample import MODEL, Price, sample
    from omnijudge.analysis.gold_views import plan_json, plan_text
    from omnijudge.progress import Progress

    found = sample(
        args.run_folder,
        args.budget,
        strata=args.strata,
        seed=args.seed,
        model=args.model or MODEL,
        price=None if args.price is None else Price(*args.price),
        metric=args.metric,
        group=args.group,
        out=args.out,
        progress=Progress(),
    )
    print(plan_json(found) if args.format == "json" else plan_text(found))
    return 0


def _rectify(args: argparse.Namespace) -> int:
    from omnijudge.analysis.gold_views import correction_json, correction_text
    from omnijudge.analysis.rectifying import correct
    from omnijudge.progress import Progress

    found = correct(
        args.run_folder,
        args.gold,
        sample=args.sample,
        declared_random=args.declared_random,
        guard_rare_errors=args.guard_rare_errors,
        baseline=args.baseline,
        metric=args.metric,
        group=args.group,
        progress=Progress(),
    )
    if args.format == "json":
        print(correction_json(found))
    else:
        print(correction_text(found, every_metric=bool(args.metric or args.group)))
    return 0
