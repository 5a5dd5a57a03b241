"""What ``omnijudge run`` prints at its end: results first, then what they rest on."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnijudge.report.losses import findings, losses, stopped
from omnijudge.report.published import BLOCKS, Column
from omnijudge.report.results import SMOKE_NOTE, Cell, Ranked, Results
from omnijudge.report.vocabulary import EMPTY, group_name, metric_name
from omnijudge.run_directory import REPORT

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PIPED_WIDTH = 110
MOST_ROWS = 40
MOST_COLUMNS = 8


def summary_text(run: Path, width: int | None = None) -> str:
    """The end of a run in words: ranking, losses, questions, where the report lies.

    Args:
        run: run directory.
        width: columns of the terminal; None asks the terminal, or takes 110 off one.

    Raises:
        DataError: there is no readable run.
    """
    results = Results.read(run)
    console, out = open_console(width)
    for line in _head(results):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print(_ranking(results, console.width))
    for line in _notes(results):
        console.print(line, markup=False, highlight=False)
    console.print()
    for line in [*_loss_lines(results), *_question_lines(results.manifest)]:
        console.print(line, markup=False, highlight=False)
    report = Path(run) / REPORT
    if report.exists():
        console.print(f"Report: {report}", markup=False, highlight=False, soft_wrap=True)
    return out.getvalue().rstrip()


def dry_run_text(counts: Mapping[str, Any]) -> str:
    """What a dry run found: nothing was asked, nothing was written."""
    lines = [
        f"{_count(counts, 'samples')} samples, {_count(counts, 'units')} units, "
        f"{_count(counts, 'systems')} systems",
        f"{_count(counts, 'questions')} questions in the first round",
    ]
    for judge, n in (counts.get("distinct_questions") or {}).items():
        lines.append(f"  judge {judge}: {n:,} distinct questions")
    missing = {s: n for s, n in (counts.get("missing_outputs") or {}).items() if n}
    if missing:
        said = ", ".join(f"{s} {n}" for s, n in missing.items())
        lines.append(f"outputs missing or unreadable: {said}")
    for level, key in (("errors", "problems"), ("warnings", "warnings")):
        if counts.get(key):
            said = ", ".join(f"{c} {n}" for c, n in sorted(counts[key].items()))
            lines.append(f"{level} in the data: {said}")
    lines.append("Dry run: nothing was asked and nothing was written.")
    return "\n".join(lines)


def open_console(width: int | None = None) -> tuple[Console, io.StringIO]:
    """A console that collects text: styled on a terminal that wants it, plain elsewhere."""
    from rich.console import Console

    out = io.StringIO()
    terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    if width is None:
        width = shutil.get_terminal_size((PIPED_WIDTH, 24)).columns if terminal else PIPED_WIDTH
    plain = not terminal or "NO_COLOR" in os.environ
    console = Console(
        file=out, width=max(width, 40), force_terminal=not plain, no_color=plain,
        color_system=None if plain else "auto", emoji=False, markup=False, highlight=False,
    )  # fmt: skip
    return console, out


def _count(counts: Mapping[str, Any], key: str) -> str:
    return f"{int(counts.get(key) or 0):,}"


def _head(results: Results) -> list[str]:
    counts = results.manifest.get("counts") or {}
    lines = []
    reason = stopped(results.manifest)
    if reason:
        lines.append(f"STOPPED EARLY: {reason}. The numbers are about what was done until then.")
    judges = ", ".join(map(str, results.judges)) or "none"
    packs = ", ".join(dict.fromkeys(f"prompts {j.pack}" for j in results.judges if j.pack))
    corrections = f" + {', '.join(results.corrections)}" if results.corrections else ""
    parts = [results.title, f"profile {results.profile}{corrections}", f"judge {judges}", packs]
    lines.append("  ".join(p for p in parts if p))
    lines.append(
        f"{_count(counts, 'samples')} samples, {_count(counts, 'units')} units, "
        f"{len(results.systems)} systems"
    )
    if results.smoke:
        lines.append(f"Note: {SMOKE_NOTE}.")
    return [*lines, ""]


def leading_columns(results: Results) -> list[Column]:
    """The leading metric first, then its neighbours in the papers' main table."""
    lead = results.lead
    blocks = BLOCKS.get(results.benchmark, ())
    block = next((b for b in blocks if any((c.metric, c.group) == lead for c in b.columns)), None)
    if block is None:
        others = [Column(m, g, group_name(g)) for m, g in results.keys]
    else:
        others = [c for c in block.columns if c.less is None]
    found = [c for c in others if (c.metric, c.group) == lead] or [
        Column(*lead, group_name(lead[1]))
    ]
    found += [c for c in others if (c.metric, c.group) != lead and results.has(c.metric, c.group)]
    return found[:MOST_COLUMNS]


def _ranking(results: Results, width: int) -> Table:
    """The ranking table: as many columns and intervals as the width takes."""
    from rich.cells import cell_len

    columns = leading_columns(results)
    rows = results.ranking
    shown = rows if len(rows) <= MOST_ROWS else rows[: MOST_ROWS - 10]
    missing = any(_missing(r) for r in rows)
    fixed = 8 + max((cell_len(r.system) for r in shown), default=6)
    fixed += 10 if missing else 0
    plans = [(len(columns), len(columns)), (len(columns), 1)]
    plans += [(n, 1) for n in range(len(columns) - 1, 0, -1)] + [(1, 0)]
    for number, with_interval in plans:
        texts = [
            [_value(results, r.system, c, i < with_interval) for r in shown]
            for i, c in enumerate(columns[:number])
        ]
        widths = [
            max(map(cell_len, (_header(c), *column)), default=0) + 2
            for c, column in zip(columns, texts, strict=False)
        ]
        if fixed + sum(widths) <= width:
            break
    return _table(results, columns[: len(texts)], texts, shown, missing)


def _table(
    results: Results,
    columns: Sequence[Column],
    texts: Sequence[Sequence[str]],
    rows: Sequence[Ranked],
    missing: bool,
) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("System", overflow="fold")
    if missing:
        table.add_column("Missing", justify="right", no_wrap=True)
    for i, c in enumerate(columns):
        style = "bold" if i == 0 else ""
        table.add_column(_header(c), justify="right", no_wrap=True, style=style)
    for n, row in enumerate(rows):
        cells = [rank_text(row), row.system]
        if missing:
            cells.append(str(_missing(row) or ""))
        table.add_row(*cells, *(column[n] for column in texts))
    if len(rows) < len(results.ranking):
        left = len(results.ranking) - len(rows)
        table.add_row("", f"and {left} more: omnijudge metrics RUN, or the report")
    return table


def rank_text(row: Ranked) -> str:
    """A rank, with the range that the comparisons allow where they were made."""
    if row.control:
        return "control"
    if row.place is None:
        return EMPTY
    if row.low is None or row.high is None or row.low == row.high:
        return str(row.place)
    return f"{row.place} ({row.low}-{row.high})"


def _missing(row: Ranked) -> int:
    return (row.cell.n_missing or 0) if row.cell is not None else 0


def _header(column: Column) -> str:
    name = metric_name(column.metric)
    if column.header == name.label:
        return name.label
    return f"{name.label}\n{column.header}"


def _value(results: Results, system: str, column: Column, interval: bool) -> str:
    cell = results.cell(system, column.metric, column.group)
    if cell is None:
        return EMPTY
    return value_text(cell, column, interval) + flags(cell)


def value_text(cell: Cell, column: Column, interval: bool) -> str:
    """A value with its interval, such as ``0.412 [0.350, 0.471]``."""
    text = column.text(cell.value)
    if not interval or cell.ci_low is None or cell.ci_high is None:
        return text
    return f"{text} [{column.text(cell.ci_low)}, {column.text(cell.ci_high)}]"


def flags(cell: Cell) -> str:
    """``!`` for coverage below 1, ``*`` for an interval to be read with care."""
    partial = cell.coverage is not None and cell.coverage < 1
    return ("!" if partial else "") + ("*" if cell.warning else "")


def _notes(results: Results) -> list[str]:
    metric, group = results.lead
    name = metric_name(metric)
    lines = [
        f"Ranked by {name.label}, {group_name(group)}. "
        f"Intervals: {100 * results.confidence:g} %, {results.interval_method} over clusters of "
        f"{results.cluster}."
    ]
    cells = [
        c for column in leading_columns(results) for c in results.cells(column.metric, column.group)
    ]
    warnings = list(dict.fromkeys(c.warning for c in cells if c.warning))
    if warnings:
        more = f" (and {len(warnings) - 1} similar)" if len(warnings) > 1 else ""
        lines.append(f"* {warnings[0]}{more}")
    partial = [c for c in cells if c.coverage is not None and c.coverage < 1]
    if partial:
        low = min(c.coverage for c in partial if c.coverage is not None)
        lines.append(f"! some units are unscored: coverage down to {100 * low:.1f} %")
    return lines


def _loss_lines(results: Results) -> list[str]:
    lost = [f"{loss} ({loss.meaning})" for loss in losses(results.manifest) if loss.count]
    lines = ["Lost: " + ("; ".join(lost) if lost else "nothing") + "."]
    missing = {r.system: _missing(r) for r in results.ranking if _missing(r)}
    if missing:
        named = [f"{s} {n}" for s, n in list(missing.items())[:10]]
        more = f" and {len(missing) - 10} more systems" if len(missing) > 10 else ""
        lines.append(f"Missing outputs: {', '.join(named)}{more}.")
    found = findings(results.manifest)
    for level in ("error", "warning"):
        said = [f"{f.code} {f.count:,}" for f in found if f.level == level]
        if said:
            lines.append(f"{level.capitalize()}s in the data: {', '.join(said)}.")
    return lines


def _question_lines(manifest: Mapping[str, Any]) -> list[str]:
    counts = manifest.get("counts") or {}
    tokens = manifest.get("tokens") or {}
    line = (
        f"Questions: {_count(counts, 'questions')}; requests to the judge "
        f"{_count(counts, 'asked')}, answers reused {_count(counts, 'reused')}"
    )
    if tokens.get("prompt") or tokens.get("output"):
        line += (
            f"; tokens: {_count(tokens, 'prompt')} in ({_count(tokens, 'cached')} cached), "
            f"{_count(tokens, 'output')} out"
        )
    lines = [line + "."]
    if manifest.get("cost"):
        lines.append(f"Cost: {manifest['cost']:.2f}.")
    return lines
