"""Tables of the report as plain values: what stands in which cell, and how it looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from omnijudge.report.notes import percent, warning_sentence
from omnijudge.report.published import BESIDE, Block, Column
from omnijudge.report.results import Cell, Ranked, Results
from omnijudge.report.vocabulary import EMPTY, group_name, metric_name, number, shown

MANY = 20
"""From so many systems on, intervals move from the cells to what the pointer shows."""


@dataclass(frozen=True, slots=True)
class HeadView:
    """Head of a column.

    Attributes:
        label: its text.
        number: whether its values are numbers.
        name: whether it heads the names of the rows.
        low_first: whether sorting starts with the lowest value.
        tip: what the pointer shows.
    """

    label: str
    number: bool = True
    name: bool = False
    low_first: bool = False
    tip: str = ""


@dataclass(frozen=True, slots=True)
class CellView:
    """A cell.

    Attributes:
        text: its text.
        interval: an interval behind or below it.
        mark: flags behind the text.
        tip: what the pointer shows.
        value: what it is sorted by.
        level: length of the bar behind it, in percent.
        name: whether it names the row.
        number: whether it is set as a number.
        stacked: whether the interval stands below.
    """

    text: str
    interval: str = ""
    mark: str = ""
    tip: str = ""
    value: float | None = None
    level: str | None = None
    name: bool = False
    number: bool = True
    stacked: bool = False

    @property
    def classes(self) -> str:
        """Its classes in the style sheet."""
        names = (("number", self.number), ("level", self.level), ("stacked", self.stacked))
        return " ".join(n for n, on in names if on)


@dataclass(frozen=True, slots=True)
class RowView:
    """A row; that of a control looks different."""

    cells: tuple[CellView, ...]
    control: bool = False


@dataclass(frozen=True, slots=True)
class TableView:
    """A table with its title above and a note below."""

    id: str
    title: str
    heads: tuple[HeadView, ...]
    rows: tuple[RowView, ...]
    note: str = ""
    sortable: bool = True


# Metrics


def ranking_view(results: Results) -> TableView:
    """The ranking with both intervals, missing outputs, coverage and what stands beside."""
    lead = Column(*results.lead, metric_name(results.lead[0]).label)
    rows = results.ranking
    beside = [
        c
        for c in BESIDE.get(results.benchmark, ())
        if (c.metric, c.group) != results.lead and results.has(c.metric, c.group)
    ]
    missing = any(results.missing(r.system) for r in rows)
    partial = any(_partial(r.cell) for r in rows)
    ranged = any(r.low is not None for r in rows)
    heads = [HeadView("#", low_first=True), HeadView("System", number=False, name=True)]
    if ranged:
        tip = "Ranks that paired comparisons leave open"
        heads.insert(1, HeadView("Possible", low_first=True, tip=tip))
    if missing:
        heads.append(HeadView("Missing outputs"))
    heads += [
        _head(lead),
        HeadView("Interval", tip="As configured: see below"),
        HeadView("Careful", tip="Jackknife interval: to be preferred with few clusters"),
    ]
    if partial:
        heads += [HeadView("Coverage"), HeadView("Bounds")]
    heads += [_head(c) for c in beside]
    level = _levels(results, lead)
    star = _stars(results, [lead])
    views = []
    for r in rows:
        cells = [_rank(r), CellView(r.system, name=True)]
        if ranged:
            cells.insert(1, _possible(r))
        if missing:
            cells.append(_count(results.missing(r.system)))
        cells += _lead_cells(r.cell, lead, level, star)
        if partial:
            cells += _partial_cells(r.cell, lead)
        cells += [_metric(results, r.system, c, None, False, False) for c in beside]
        views.append(RowView(tuple(cells), r.control))
    return TableView(
        "ranking-table", "Ranking", tuple(heads), tuple(views), _marks(results, [lead])
    )


def block_view(results: Results, block: Block) -> TableView | None:
    """A table of the papers; None if it would be empty."""
    columns = [c for c in block.columns if any(_value(results, s, c) for s in results.systems)]
    columns = columns or [
        c for c in block.columns if results.has(c.metric, c.group) and c.less is None
    ]
    if not columns:
        return None
    levels = [_levels(results, c) for c in columns]
    intervals = len(results.systems) < MANY
    star = _stars(results, columns)
    heads = (HeadView("System", number=False, name=True), *map(_head, columns))
    rows = []
    for r in results.ranking:
        cells = [CellView(r.system, name=True)]
        for c, level in zip(columns, levels, strict=True):
            cells.append(_metric(results, r.system, c, level, intervals, star))
        rows.append(RowView(tuple(cells), r.control))
    note = " ".join(filter(None, (block.note, _marks(results, columns))))
    return TableView(f"table-{block.name}", block.title, heads, tuple(rows), note)


def every_metric_view(results: Results) -> TableView:
    """All metrics, one a row, with the systems as columns."""
    systems = [r.system for r in results.ranking]
    heads = (
        HeadView("Metric", number=False, name=True),
        HeadView("Group", number=False),
        HeadView("Units"),
        *(HeadView(s) for s in systems),
    )
    rows = []
    for metric, group in results.keys:
        column = Column(metric, group, "")
        known = results.cells(metric, group)
        units = max((c.n_units or 0 for c in known), default=0)
        cells = [
            CellView(metric_name(metric).label, name=True),
            CellView(group_name(group), number=False),
            _count(units),
            *(_metric(results, s, column, None, True, False) for s in systems),
        ]
        rows.append(RowView(tuple(cells)))
    return TableView(
        "table-every-metric", "Every metric", heads, tuple(rows), "The same, with all columns, is "
        "in metrics.parquet.",
    )  # fmt: skip


def comparison_view(results: Results) -> TableView | None:
    """Differences to the baseline in the leading metric; None if no comparison was made."""
    if results.comparisons is None:
        return None
    metric, group = results.lead
    found = [
        r for r in results.comparisons.to_pylist() if (r["metric"], r["group"]) == (metric, group)
    ]
    if not found:
        return None
    baselines = list(dict.fromkeys(r["baseline"] for r in found))
    heads = (
        HeadView("System", number=False, name=True),
        HeadView("Baseline", number=False),
        HeadView("Difference"),
        HeadView("Interval"),
        HeadView("Careful"),
        HeadView("p"),
        HeadView("p, adjusted", low_first=True),
        HeadView("Detectable", tip="True difference that would be found with 80 % probability"),
        HeadView("Clusters"),
    )
    order = {r.system: k for k, r in enumerate(results.ranking)}
    found.sort(key=lambda r: (baselines.index(r["baseline"]), order.get(r["system"], len(order))))
    rows = []
    for r in found:
        cells = (
            CellView(r["system"], name=True),
            CellView(r["baseline"], number=False),
            CellView(_signed(metric, r["difference"]), value=r["difference"]),
            CellView(_signed_span(metric, r["ci_low"], r["ci_high"])),
            CellView(_signed_span(metric, r["careful_low"], r["careful_high"])),
            CellView(_p(r["p_value"], r["smallest_p"]), value=r["p_value"]),
            CellView(_p(r["p_adjusted"], None), value=r["p_adjusted"]),
            CellView(shown(metric, r.get("detectable")), value=r.get("detectable")),
            _count(r["n_clusters"]),
        )
        rows.append(RowView(cells))
    return TableView(
        "table-differences",
        f"Differences in {metric_name(metric).label}, {group_name(group)}",
        heads,
        tuple(rows),
        " ".join(["System minus baseline on samples scored for both; p by sign flips of whole "
                  "clusters, adjusted over all systems compared.", *_winner(results)]),
    )  # fmt: skip


def _winner(results: Results) -> list[str]:
    """What is left of the best value if one remembers that it was chosen for being best."""
    metric, group = results.lead
    for r in results.ranks:
        if (r["metric"], r["group"]) == (metric, group) and r.get("winner_low") is not None:
            low, high = shown(metric, r["winner_low"]), shown(metric, r["winner_high"])
            return [
                f"{r['system']} was chosen as the best of {r['n_ranked']}; corrected for that, its "
                f"interval is [{low}, {high}]."
            ]
    return []


def plain_view(
    id: str, title: str, heads: Sequence[str], rows: Iterable[Sequence[str | int]], note: str = ""
) -> TableView:
    """A table of texts and counts; the first column names the rows."""
    made = [
        RowView(
            tuple(
                CellView(str(v), name=True)
                if i == 0
                else _count(v)
                if isinstance(v, int)
                else CellView(v, number=False)
                for i, v in enumerate(row)
            )
        )
        for row in rows
    ]
    numbers = [bool(made) and all(r.cells[i].number for r in made) for i in range(len(heads))]
    views = tuple(
        HeadView(h, number=i > 0 and numbers[i], name=i == 0) for i, h in enumerate(heads)
    )
    return TableView(id, title, views, tuple(made), note, sortable=len(made) > 3)


# Cells


def _head(column: Column) -> HeadView:
    name = metric_name(column.metric)
    return HeadView(column.header, low_first=name.better is False, tip=name.meaning)


def _rank(row: Ranked) -> CellView:
    return CellView(number(row.place, 0), value=row.place)


def _possible(row: Ranked) -> CellView:
    if row.low is None or row.high is None:
        return CellView(EMPTY)
    text = str(row.low) if row.low == row.high else f"{row.low}-{row.high}"
    return CellView(text, value=row.low)


def _count(count: int | None) -> CellView:
    return CellView(EMPTY) if count is None else CellView(f"{count:,}", value=count)


def _lead_cells(
    cell: Cell | None, column: Column, level: Callable[[float | None], str | None], star: bool
) -> list[CellView]:
    if cell is None:
        return [CellView(EMPTY)] * 3
    interval = _span(column, cell.ci_low, cell.ci_high)
    caution = "*" if star and cell.warning else ""
    return [
        CellView(
            column.text(cell.value), mark=_flags(cell), tip=_tip(cell), value=cell.value,
            level=level(cell.value),
        ),
        CellView(interval or EMPTY, mark=caution, tip=cell.warning or ""),
        CellView(_span(column, cell.careful_low, cell.careful_high) or EMPTY),
    ]  # fmt: skip


def _partial_cells(cell: Cell | None, column: Column) -> list[CellView]:
    if cell is None or cell.coverage is None:
        return [CellView(EMPTY)] * 2
    bounds = _span(column, cell.bound_low, cell.bound_high) if cell.coverage < 1 else ""
    return [CellView(percent(cell.coverage), value=cell.coverage), CellView(bounds or EMPTY)]


def _metric(
    results: Results,
    system: str,
    column: Column,
    level: Callable[[float | None], str | None] | None,
    intervals: bool,
    star: bool,
) -> CellView:
    value = _value(results, system, column)
    if value is None or column.less is not None:
        return CellView(column.text(value), value=value, level=level(value) if level else None)
    cell = results.cell(system, column.metric, column.group)
    assert cell is not None
    span = _span(column, cell.ci_low, cell.ci_high)
    return CellView(
        column.text(value),
        interval=span if intervals else "",
        mark=_flags(cell) + ("*" if star and cell.warning else ""),
        tip=_tip(cell) if intervals else f"{span} {_tip(cell)}".strip(),
        value=value,
        level=level(value) if level else None,
        stacked=intervals,
    )


def _value(results: Results, system: str, column: Column) -> float | None:
    value = results.value(system, column.metric, column.group)
    if column.less is None or value is None:
        return value
    other = results.value(system, column.less, column.group)
    return None if other is None else value - other


def _levels(results: Results, column: Column) -> Callable[[float | None], str | None]:
    """Bars for values of a known range; none for counts, times and metrics without direction."""
    name = metric_name(column.metric)
    top = {"share": 1.0, "percent": 100.0}.get(name.kind)
    if top is None or column.less is not None:
        return lambda value: None
    return lambda value: None if value is None else f"{100 * min(max(value / top, 0), 1):.1f}"


def _span(column: Column, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ""
    return f"[{column.text(low)}, {column.text(high)}]"


def _flags(cell: Cell) -> str:
    return "!" if _partial(cell) else ""


def _partial(cell: Cell | None) -> bool:
    return cell is not None and cell.coverage is not None and cell.coverage < 1


def _tip(cell: Cell) -> str:
    parts = []
    if cell.n_units is not None and cell.n_clusters is not None:
        parts.append(f"{cell.n_units:,} units in {cell.n_clusters:,} clusters")
    if _partial(cell):
        parts.append(f"coverage {percent(cell.coverage or 0.0)}, {cell.n_unscored} unscored")
    if cell.warning:
        parts.append(cell.warning)
    return "; ".join(parts)


def _stars(results: Results, columns: Iterable[Column]) -> bool:
    """Whether to mark warned intervals: a mark on every one would say nothing."""
    cells = [c for col in columns for c in results.cells(col.metric, col.group)]
    warned = [bool(c.warning) for c in cells if c.value is not None]
    return any(warned) and not all(warned)


def _marks(results: Results, columns: Sequence[Column]) -> str:
    """What the marks mean, and a caution that is about every value."""
    cells = [c for col in columns for c in results.cells(col.metric, col.group)]
    parts = []
    if any(map(_partial, cells)):
        parts.append("! Some units have no verdict: they are outside all sums.")
    caution = warning_sentence(cells)
    if caution:
        parts.append(caution)
    return " ".join(parts)


def _signed(metric: str, value: float | None) -> str:
    text = shown(metric, value)
    return f"+{text}" if value is not None and not text.startswith("-") else text


def _signed_span(metric: str, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return EMPTY
    return f"[{_signed(metric, low)}, {_signed(metric, high)}]"


def _p(p: float | None, smallest: float | None) -> str:
    if p is None:
        return EMPTY
    if smallest is not None and p <= smallest:
        return f"≤ {smallest:.2g}"
    return f"{p:.4f}" if p >= 0.0001 else f"{p:.1e}"
