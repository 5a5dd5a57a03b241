"""The metrics of a run as ``omnijudge metrics`` prints them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal

from omnijudge.errors import ConfigError
from omnijudge.report.grid import Entry, Grid, Head, text_entry
from omnijudge.report.notes import (
    coverage_sentence,
    missing_sentence,
    provenance,
    ranking_sentence,
    warning_sentence,
)
from omnijudge.report.published import BLOCKS, Block, Column
from omnijudge.report.results import Cell, Key, Results
from omnijudge.report.text_tables import as_table
from omnijudge.report.vocabulary import group_name, metric_name, number, shown
from omnijudge.report.writers import Format, as_csv, as_json, as_latex, as_markdown

if TYPE_CHECKING:
    import pyarrow as pa

Layout = Literal["long", "wide", "paper"]

MACHINE_FORMATS = ("json", "csv")
EVERYTHING = "all"
GROUPED = "by"
"""Column of a table whose rows are grouped by something."""
_FIRST = 12


def render(
    metrics: pa.Table,
    manifest: Mapping[str, Any],
    layout: Layout = "wide",
    format: Format = "table",
    *,
    metrics_filter: Sequence[str] | None = None,
    digits: int | None = None,
    by: str | None = None,
    intervals: bool | None = None,
    width: int | None = None,
) -> str:
    """The metrics of a run as text.

    Args:
        metrics: ``metrics.parquet`` (``tables.METRICS``). With a further column named ``by``
            each of its values has its own rows.
        manifest: ``run.json``.
        layout: ``long``: one row per system, metric and group; ``wide``: systems as rows;
            ``paper``: the published tables.
        format: ``json`` and ``csv`` hold full precision and every column; the others are for
            people.
        metrics_filter: names, ``name/group`` or patterns of them; ``all`` is every metric. By
            default people get the metrics of the published tables, machines get every one.
        digits: digits after the point, for people.
        by: a further column of ``metrics`` or a tag of the systems that rows are grouped by;
            heads the values of the column ``by`` where there is that one.
        intervals: whether people see intervals; by default all but the paper layout in a
            terminal or in Markdown.
        width: columns of the terminal, for ``table``.

    Raises:
        ConfigError: no metric has a name asked for, or ``by`` is neither column nor tag.
    """
    results, rows, by = _split(metrics, manifest, by)
    keys = _chosen(results, metrics_filter)
    with_intervals = (layout != "paper" or format == "latex") if intervals is None else intervals
    if layout == "paper":
        grids = _paper(rows, by, results, keys, digits, with_intervals)
    elif layout == "wide":
        if keys is None and format not in MACHINE_FORMATS:
            keys = _published_keys(results)
        grids = [_wide(rows, by, keys or results.keys, digits, with_intervals)]
    else:
        grids = [_long(metrics, results, by, keys, digits)]
    if format == "csv":
        return as_csv(grids[0] if len(grids) == 1 else _joined(grids))
    about = _about(results, rows, grids, keys, layout)
    if format == "json":
        return as_json(grids, about)
    if format == "markdown":
        return as_markdown(grids, about)
    if format == "latex":
        return as_latex(grids, about)
    return as_table(grids, about, width)


Rows = list[tuple[tuple[str, ...], str, Results]]
"""Per row: names of what it is about, system, and where its values are."""


def _split(
    metrics: pa.Table, manifest: Mapping[str, Any], by: str | None
) -> tuple[Results, Rows, str | None]:
    """Rows of the table, best first; grouped in the order of the values of ``by``.

    Also returns what heads the column of these values, None without one.
    """
    import pyarrow.compute as pc

    column = (
        by if by in metrics.column_names else GROUPED if GROUPED in metrics.column_names else None
    )
    if column is not None:
        rows: Rows = []
        values = metrics[column]
        for value in dict.fromkeys(values.to_pylist()):
            mask = pc.is_null(values) if value is None else pc.equal(values, value)
            part = Results(metrics.filter(mask), manifest)
            rows += [((r.system, _said(value)), r.system, part) for r in part.ranking]
        return Results(_first_values(metrics), manifest), rows, by or column
    results = Results(metrics, manifest)
    if by is None:
        return results, [((r.system,), r.system, results) for r in results.ranking], None
    systems = (manifest.get("config") or {}).get("systems") or {}
    tags = {s: (systems.get(s) or {}).get("tags", {}).get(by) for s in results.systems}
    if all(v is None for v in tags.values()):
        known = sorted({t for s in systems.values() for t in (s or {}).get("tags", {})})
        hint = f"; tags are {', '.join(known)}" if known else "; no system has tags"
        raise ConfigError(f"--by {by}: is no column of the metrics and no tag of a system{hint}")
    order = sorted(results.ranking, key=lambda r: (tags[r.system] is None, _said(tags[r.system])))
    return results, [((r.system, _said(tags[r.system])), r.system, results) for r in order], by


def _first_values(metrics: pa.Table) -> pa.Table:
    """One row per system, metric and group: the first with a value."""
    keys = zip(*(metrics[n].to_pylist() for n in ("system", "metric", "group")), strict=True)
    chosen: dict[tuple[Any, ...], tuple[int, bool]] = {}
    for i, (key, value) in enumerate(zip(keys, metrics["value"].to_pylist(), strict=True)):
        if key not in chosen or (value is not None and not chosen[key][1]):
            chosen[key] = (i, value is not None)
    return metrics.take([i for i, _ in chosen.values()])


def _said(value: object) -> str:
    return "" if value is None else str(value)


def _chosen(results: Results, wanted: Sequence[str] | None) -> list[Key] | None:
    """Metrics that the names select, in the order of the table; None without a selection."""
    if not wanted:
        return None
    found: set[Key] = set()
    for name in (w.strip() for w in wanted):
        if name == EVERYTHING:
            return list(results.keys)
        pattern = name if "/" in name else f"{name}/*"
        hits = {k for k in results.keys if fnmatchcase(f"{k[0]}/{k[1]}", pattern)}
        if not hits:
            known = list(
                dict.fromkeys([*(m for m, _ in results.keys), *map("/".join, results.keys)])
            )
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ConfigError(f"--metrics: {name!r} is no metric of this run{hint}")
        found |= hits
    return [k for k in results.keys if k in found]


def _published_keys(results: Results) -> list[Key]:
    """What people see unless they choose: the metrics of the published tables."""
    columns = [c for b in BLOCKS.get(results.benchmark, ()) for c in b.columns]
    wanted = dict.fromkeys((c.metric, c.group) for c in columns if c.less is None)
    return [k for k in wanted if results.has(*k)] or results.keys[:_FIRST]


# Layouts


def _wide(
    rows: Rows, by: str | None, keys: Sequence[Key], digits: int | None, intervals: bool
) -> Grid:
    heads = [*_name_heads(rows, by), *_about_heads(rows)]
    heads += [Head(f"{m}/{g}", (metric_name(m).label, group_name(g))) for m, g in keys]
    entries = []
    for names, system, part in rows:
        row = [*map(text_entry, names), *_about_entries(part, system)]
        for metric, group in keys:
            cell = part.cell(system, metric, group)
            row.append(_entry(cell, Column(metric, group, ""), digits, intervals))
        entries.append(tuple(row))
    return Grid("metrics", "", tuple(heads), tuple(entries))


def _paper(
    rows: Rows,
    by: str | None,
    results: Results,
    keys: list[Key] | None,
    digits: int | None,
    intervals: bool,
) -> list[Grid]:
    blocks = BLOCKS.get(results.benchmark)
    if blocks is None:
        columns = tuple(Column(m, g, f"{m} {g}") for m, g in results.keys)
        blocks = (Block("metrics", results.title, columns),)
    grids = []
    for block in blocks:
        columns = tuple(c for c in block.columns if keys is None or (c.metric, c.group) in keys)
        if not any(results.has(c.metric, c.group) for c in columns):
            continue
        heads = [*_name_heads(rows, by), *_about_heads(rows)]
        heads += [Head(c.header, (c.header,)) for c in columns]
        entries = []
        for names, system, part in rows:
            row = [*map(text_entry, names), *_about_entries(part, system)]
            row += [_published_entry(part, system, c, digits, intervals) for c in columns]
            entries.append(tuple(row))
        notes = (block.note,) if block.note else ()
        grids.append(Grid(block.name, block.title, tuple(heads), tuple(entries), notes))
    return grids


def _long(
    metrics: pa.Table,
    results: Results,
    by: str | None,
    keys: list[Key] | None,
    digits: int | None,
) -> Grid:
    wanted = None if keys is None else set(keys)
    judge = _judges(results)
    grouped = next((n for n in (by, GROUPED) if n in metrics.column_names), None)
    people = [
        Head("system", ("System",), number=False, machines=False),
        *([Head(grouped, (by or grouped,), number=False, machines=False)] if grouped else []),
        Head("metric", ("Metric",), number=False, machines=False),
        Head("group", ("Group",), number=False, machines=False),
        Head("value", ("Value",), machines=False),
        Head("interval", ("Interval",), machines=False),
        Head("careful", ("Careful",), machines=False),
        Head("n_units", ("Units",), machines=False),
        Head("n_clusters", ("Clusters",), machines=False),
        Head("coverage", ("Coverage",), machines=False),
    ]
    machines = [Head(n, (n,), people=False) for n in metrics.column_names]
    heads = (*people, *machines, Head("judge", ("Judge",), people=False))
    rows = []
    for record in metrics.to_pylist():
        if wanted is not None and (record["metric"], record["group"]) not in wanted:
            continue
        metric = record["metric"]
        low, high = record.get("ci_low"), record.get("ci_high")
        careful = _span(metric, record.get("careful_low"), record.get("careful_high"), digits)
        mark = "*" if record.get("warning") else ""
        entries = [
            text_entry(record["system"]),
            *([text_entry(_said(record[grouped]))] if grouped else []),
            text_entry(metric),
            text_entry(record["group"]),
            Entry(record["value"], shown(metric, record["value"], digits)),
            Entry(None, _span(metric, low, high, digits) + mark),
            Entry(None, careful),
            Entry(None, number(record.get("n_units"), 0)),
            Entry(None, number(record.get("n_clusters"), 0)),
            Entry(None, _coverage(record.get("coverage"))),
        ]
        entries += [Entry(record[n], "") for n in metrics.column_names]
        rows.append((*entries, Entry(judge, judge)))
    return Grid("metrics", "", heads, tuple(rows))


def _joined(grids: Sequence[Grid]) -> Grid:
    """Several tables with the same rows side by side, for CSV."""
    first = grids[0].for_machines()
    names = sum(not h.number for h in first.heads)
    heads = list(first.heads[:names])
    rows = [list(row[:names]) for row in first.rows]
    for grid in (g.for_machines() for g in grids):
        heads += [Head(f"{grid.name}: {h.key}", h.label) for h in grid.heads[names:]]
        for row, more in zip(rows, grid.rows, strict=True):
            row += more[names:]
    return Grid("metrics", "", tuple(heads), tuple(map(tuple, rows)))


# Parts


def _name_heads(rows: Rows, by: str | None) -> list[Head]:
    names = [Head("system", ("System",), number=False)]
    if rows and len(rows[0][0]) > 1:
        names.append(Head(by or "by", (by or "by",), number=False))
    return names


def _about_heads(rows: Rows) -> list[Head]:
    """Profile and judge stand in every row that machines read; missing outputs people see, too."""
    missing = any(part.missing(system) for _, system, part in rows)
    return [
        Head("profile", ("Profile",), number=False, people=False),
        Head("judge", ("Judge",), number=False, people=False),
        Head("n_missing", ("Missing",), number=False, people=missing),
    ]


def _about_entries(part: Results, system: str) -> list[Entry]:
    missing = part.missing(system)
    return [
        text_entry(part.profile),
        text_entry(_judges(part)),
        Entry(missing, str(missing) if missing else ""),
    ]


def _judges(results: Results) -> str:
    return ", ".join(map(str, results.judges))


def _entry(cell: Cell | None, column: Column, digits: int | None, intervals: bool) -> Entry:
    if cell is None:
        return Entry(None, column.text(None))
    text = column.text(cell.value, digits)
    mark = ("!" if cell.coverage is not None and cell.coverage < 1 else "") + (
        "*" if cell.warning and intervals else ""
    )
    span = ""
    if intervals and cell.ci_low is not None and cell.ci_high is not None:
        span = f"[{column.text(cell.ci_low, digits)}, {column.text(cell.ci_high, digits)}]"
    value = None if cell.value is None else cell.value * column.factor
    return Entry(value, text, span, mark)


def _published_entry(
    part: Results, system: str, column: Column, digits: int | None, intervals: bool
) -> Entry:
    cell = part.cell(system, column.metric, column.group)
    if column.less is None:
        return _entry(cell, column, digits, intervals)
    other = part.cell(system, column.less, column.group)
    if cell is None or other is None or cell.value is None or other.value is None:
        return Entry(None, column.text(None))
    difference = cell.value - other.value
    return Entry(difference, column.text(difference, digits))


def _span(metric: str, low: float | None, high: float | None, digits: int | None) -> str:
    if low is None or high is None:
        return shown(metric, None)
    return f"[{shown(metric, low, digits)}, {shown(metric, high, digits)}]"


def _coverage(share: float | None) -> str:
    from omnijudge.report.notes import percent

    return number(None, 0) if share is None else percent(share)


def _about(
    results: Results,
    rows: Rows,
    grids: Sequence[Grid],
    keys: list[Key] | None,
    layout: Layout,
) -> list[str]:
    chosen = set(results.keys if keys is None else keys)
    parts = {id(part): part for _, _, part in rows}.values()
    cells = [c for part in parts for c in part.all_cells() if (c.metric, c.group) in chosen]
    lines = provenance(results)
    if layout != "long":
        lines.append(ranking_sentence(results))
    lines.append(coverage_sentence(cells))
    marked = any(e.mark or e.text.endswith("*") for g in grids for row in g.rows for e in row)
    caution = warning_sentence(cells)
    if caution and marked:
        lines.append(caution)
    missing = missing_sentence(results)
    if missing:
        lines.append(missing)
    if layout == "wide" and len(chosen) < len(results.keys):
        lines.append(f"{len(chosen)} of {len(results.keys)} metrics; --metrics all shows the rest.")
    return lines
