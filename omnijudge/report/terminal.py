"""What ``omnijudge run`` prints at its end: results first, then what they rest on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from omnijudge.report.asking_lines import answer_lines, economy_lines, spread_lines
from omnijudge.report.grid import Entry, Grid, Head, text_entry
from omnijudge.report.losses import findings, losses, stopped
from omnijudge.report.notes import (
    coverage_sentence,
    missing_sentence,
    provenance,
    ranking_sentence,
    warning_sentence,
)
from omnijudge.report.published import BLOCKS, Column
from omnijudge.report.results import Cell, Ranked, Results
from omnijudge.report.text_tables import column_width, open_console, rich_table
from omnijudge.report.vocabulary import EMPTY, group_name, metric_name
from omnijudge.run_directory import REPORT

MOST_ROWS = 40
FIRST_ROWS = 30
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
    counts = results.manifest.get("counts") or {}
    console, out = open_console(width)
    reason = stopped(results.manifest)
    if reason:
        console.print(f"NOT COMPLETE: {reason}. The numbers are about what was done until then.")
    console.print(
        f"{results.title}: {_count(counts, 'samples')} samples, {_count(counts, 'units')} units, "
        f"{len(results.tested):,} systems",
        style="bold",
    )
    console.print()
    grid, columns = _ranking(results, console.width)
    bold = next(i for i, h in enumerate(grid.heads) if h.key == "lead")
    console.print(rich_table(grid, range(len(grid.heads)), bold))
    for note in grid.notes:
        console.print(note)
    console.print()
    cells = [c for column in columns for c in results.cells(column.metric, column.group)]
    for line in _about(results, cells):
        console.print(line)
    console.print()
    for line in [*_loss_lines(results), *_question_lines(results.manifest)]:
        console.print(line)
    report = Path(run) / REPORT
    if report.exists():
        console.print(f"Report: {report}", soft_wrap=True)
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


def _count(counts: Mapping[str, Any], key: str) -> str:
    return f"{int(counts.get(key) or 0):,}"


# The ranking


def leading_columns(results: Results) -> list[Column]:
    """The leading metric first, then its neighbours in the table of the papers it stands in."""
    lead = results.lead
    own = Column(*lead, group_name(lead[1]))
    for block in BLOCKS.get(results.benchmark, ()):
        if any((c.metric, c.group) == lead for c in block.columns):
            others = [c for c in block.columns if c.less is None]
            own = next(c for c in others if (c.metric, c.group) == lead)
            break
    else:
        others = [Column(m, g, f"{m} {g}") for m, g in results.keys]
    found = [own]
    found += [c for c in others if (c.metric, c.group) != lead and results.has(c.metric, c.group)]
    return found[:MOST_COLUMNS]


def _ranking(results: Results, width: int) -> tuple[Grid, list[Column]]:
    """The ranking, with as many columns and intervals as the width takes."""
    columns = leading_columns(results)
    rows = results.ranking if len(results.ranking) <= MOST_ROWS else results.ranking[:FIRST_ROWS]
    for shown, intervals in _plans(len(columns)):
        grid = _grid(results, columns[:shown], rows, intervals)
        if sum(column_width(grid, i) for i in range(len(grid.heads))) <= width:
            break
    return grid, columns[:shown]


def _plans(columns: int) -> Iterator[tuple[int, int]]:
    """How many columns, and how many of them with intervals: from rich to poor."""
    yield columns, columns
    for shown in range(columns, 0, -1):
        yield shown, 1
    yield 1, 0


def _grid(
    results: Results, columns: Sequence[Column], rows: Sequence[Ranked], intervals: int
) -> Grid:
    cells = [[results.cell(r.system, c.metric, c.group) for r in rows] for c in columns]
    # A flag on every value says nothing: then the sentence below is enough.
    flagged = [c for column in cells for c in column if c is not None and c.value is not None]
    flag = not all(c.warning for c in flagged)
    careful = intervals > 0 and any(c is not None and c.warning for c in cells[0])
    missing = any(results.missing(r.system) for r in results.ranking)
    heads = [Head("rank", ("#",)), Head("system", ("System",), number=False)]
    if missing:
        heads.append(Head("missing", ("Missing",)))
    for i, c in enumerate(columns):
        heads.append(Head("lead" if i == 0 else c.header, _label(c, i == 0)))
        if i == 0 and careful:
            heads.append(Head("careful", ("careful",)))
    entries = []
    for n, row in enumerate(rows):
        line = [text_entry(rank_text(row)), text_entry(row.system)]
        if missing:
            line.append(text_entry(str(results.missing(row.system) or "")))
        for i, c in enumerate(columns):
            cell = cells[i][n]
            line.append(_entry(cell, c, i < intervals, flag))
            if i == 0 and careful:
                low, high = (None, None) if cell is None else (cell.careful_low, cell.careful_high)
                line.append(text_entry(_span(c, low, high)))
        entries.append(tuple(line))
    left = len(results.ranking) - len(rows)
    notes = (f"and {left:,} more systems: see the report, or `omnijudge metrics`",) if left else ()
    return Grid("ranking", "", tuple(heads), tuple(entries), notes)


def _label(column: Column, leading: bool) -> tuple[str, ...]:
    name = metric_name(column.metric).label
    if leading:
        return (name if column.header == name else f"{name}, {column.header}",)
    return (column.header,)


def _entry(cell: Cell | None, column: Column, interval: bool, flag: bool) -> Entry:
    if cell is None:
        return text_entry(EMPTY)
    partial = cell.coverage is not None and cell.coverage < 1
    mark = ("!" if partial else "") + ("*" if cell.warning and flag else "")
    span = _span(column, cell.ci_low, cell.ci_high) if interval and cell.ci_low is not None else ""
    return Entry(cell.value, column.text(cell.value), span, mark)


def _span(column: Column, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return EMPTY
    return f"[{column.text(low)}, {column.text(high)}]"


def rank_text(row: Ranked) -> str:
    """A rank, with the range that the comparisons allow where they were made."""
    if row.place is None:
        return EMPTY
    if row.low is None or row.high is None or row.low == row.high:
        return str(row.place)
    return f"{row.place} ({row.low}-{row.high})"


# What it rests on


def _about(results: Results, cells: Sequence[Cell]) -> list[str]:
    lines = provenance(results)
    lines.append(ranking_sentence(results))
    warning = warning_sentence(cells)
    if warning:
        lines.append(warning)
    if any(c.coverage is not None and c.coverage < 1 for c in results.all_cells()):
        lines.append(coverage_sentence(results.all_cells()))
    return lines


def _loss_lines(results: Results) -> list[str]:
    lost = [f"{loss} ({loss.meaning})" for loss in losses(results.manifest) if loss.count]
    lines = ["Lost: " + ("; ".join(lost) if lost else "nothing") + "."]
    missing = missing_sentence(results)
    if missing:
        lines.append(missing)
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
    lines = [
        line + ".",
        *answer_lines(manifest),
        *spread_lines(manifest),
        *economy_lines(manifest),
    ]
    if manifest.get("cost"):
        lines.append(f"Cost: {manifest['cost']:.2f}.")
    return lines
