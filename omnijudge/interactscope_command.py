"""``omnijudge interactscope``: the controls of Omni-InteractScope over a finished run."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnijudge.benchmarks.omni_interactscope.controls import CompleteSequences, FixedDelay
    from omnijudge.report.grid import Grid
    from omnijudge.statistics.permutation import PairedControl

DESCRIPTION = """\
Controls of Omni-InteractScope over a finished run. Nothing is asked, and nothing is written.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``omnijudge interactscope``."""
    parser.description = DESCRIPTION
    actions = parser.add_subparsers(dest="action", metavar="CONTROL", required=True)

    def action(name: str, text: str) -> argparse.ArgumentParser:
        sub = actions.add_parser(name, help=text, description=text)
        sub.add_argument("run_folder", metavar="RUN")
        return sub

    sub = action("scene", "The same model with and without the scene: counts, exact McNemar test.")
    sub.add_argument("with_scene", metavar="WITH", help="system that saw and heard the recording")
    sub.add_argument("without_scene", metavar="WITHOUT", help="the same model, requests alone")
    sub.add_argument("--task", default="T1", help="targets of this task (T1)")

    sub = action("delays", "A frozen choice of tools, replayed at fixed delays after the request.")
    sub.add_argument("system", metavar="SYSTEM", nargs="?", help="freeze what it called first")
    sub.add_argument("--tools", metavar="FILE", help='JSON: {"interaction": ["tool", ...], ...}')
    sub.add_argument(
        "--delays",
        type=_seconds,
        metavar="S[,S...]",
        help="seconds after the request (0,1,2,3,4,5)",
    )

    sub = action("sequences", "Complete sequences beside what independent steps would give.")
    sub.add_argument("--task", default="T8-C", help="task with several targets (T8-C)")
    for sub in actions.choices.values():
        sub.add_argument("--format", choices=("table", "json"), default="table")


def _seconds(text: str) -> list[float]:
    from math import isfinite

    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(isfinite(s) and s >= 0 for s in found):
        raise argparse.ArgumentTypeError("seconds, 0 or more, with commas between them")
    return found


def run(args: argparse.Namespace) -> int:
    """Runs ``omnijudge interactscope``."""
    from omnijudge.api import open_run
    from omnijudge.benchmarks.omni_interactscope import controls

    opened = open_run(args.run_folder)
    values: Any
    if args.action == "scene":
        control = controls.scene_control(opened, args.with_scene, args.without_scene, args.task)
        grid, values = _scene(args, control), _plain(control)
    elif args.action == "delays":
        tools = read_tools(args.tools) if args.tools else None
        replayed = controls.delay_replay(opened, args.system, args.delays or controls.DELAYS, tools)
        grid, values = _delays(args, replayed), [_plain(r) for r in replayed]
    else:
        sequences = controls.complete_sequences(opened, args.task)
        grid, values = _sequences(args, sequences), [_sequence_values(s) for s in sequences]
    print(_text(grid, values, args.format))
    return 0


def read_tools(path: str) -> Mapping[str, Sequence[str]]:
    """A frozen choice of tools: a JSON object, interaction id -> list of tool names.

    Raises:
        DataError: the file is missing or holds something else.
    """
    from omnijudge.errors import DataError
    from omnijudge.transcripts.files import UnreadableFile, read_json

    try:
        found = read_json(path)
    except UnreadableFile as e:
        raise DataError(f"{path} cannot be used", [e.problem]) from None
    wanted = 'write {"interaction": ["tool", ...], ...}'
    if not isinstance(found, dict):
        raise DataError(f"{path}: {wanted}")
    for identity, names in found.items():
        if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            raise DataError(f"{path}: {identity!r} has no list of tool names; {wanted}")
    return found


def _text(grid: Grid, values: Any, form: str) -> str:
    if form == "json":
        import json

        return json.dumps(values, indent=1, ensure_ascii=False)
    from omnijudge.report.text_tables import as_table

    return as_table([grid], [])


def _plain(found: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(found)


def _sequence_values(found: CompleteSequences) -> dict[str, Any]:
    reference = found.reference
    return {
        "system": found.system,
        "strata": [_plain(s) for s in found.strata],
        "expected": reference.expected,
        "low": reference.low,
        "high": reference.high,
        "observed": reference.observed,
        "p_at_most": reference.p_at_most,
        "p_at_least": reference.p_at_least,
        "pmf": reference.pmf.tolist(),
    }


def _scene(args: argparse.Namespace, found: PairedControl) -> Grid:
    from omnijudge.analysis.texts import grid, p_text

    heads = ("targets", "with", "without", "both", "neither", "only with", "only without")
    counts = (
        found.items, found.first, found.second, found.both, found.neither,
        found.only_first, found.only_second,
    )  # fmt: skip
    row = [*map(str, counts), f"{found.difference:+.1f}", p_text(found.p_value)]
    return grid(
        "scene",
        f"{args.task}: {args.with_scene} with the scene, {args.without_scene} without",
        [*heads, "difference (points)", "p"],
        [row],
        ["p: exact two-sided McNemar test."],
    )


def _delays(args: argparse.Namespace, found: Sequence[FixedDelay]) -> Grid:
    from omnijudge.analysis.texts import grid

    rows = [[f"{r.delay:g}", str(r.successes), str(r.on_time), str(r.targets)] for r in found]
    return grid(
        "delays",
        f"T1: the tools of {args.tools or args.system}, replayed",
        ["delay (s)", "successes", "on time", "targets"],
        rows,
        ["Not comparable with the main table: the choice was made with more to see."],
    )


def _sequences(args: argparse.Namespace, found: Sequence[CompleteSequences]) -> Grid:
    from omnijudge.analysis.texts import grid

    rows = []
    for one in found:
        r = one.reference
        steps = "; ".join(f"{s.n}: {', '.join(map(str, s.counts))}" for s in one.strata)
        rows.append(
            [
                one.system, steps, str(r.observed), f"{r.expected:.2f}", f"[{r.low}, {r.high}]",
                f"{r.p_at_most:.4f}", f"{r.p_at_least:.4f}",
            ]
        )  # fmt: skip
    return grid(
        "sequences",
        f"{args.task}: complete sequences",
        [
            ("system", False), ("sequences: successes by step", False), "complete", "expected",
            "95 % range", "P(at most)", "P(at least)",
        ],
        rows,
        [
            "Expected if successes at different steps were unrelated; difficulty that the steps of "
            "a sequence share is not modelled."
        ],
    )  # fmt: skip
