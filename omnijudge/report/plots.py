"""The plots of a report: ranking, trade-off, parts of a total, delays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnijudge.report.drawing import (
    ACCENT,
    MUTED,
    PAPER,
    PARTS,
    TALL,
    Rows,
    legend,
    new_figure,
    settings,
    svg_text,
    to_svg,
)
from omnijudge.report.published import Delays, Stack, TradeOff
from omnijudge.report.results import Cell, Key, Ranked, Results
from omnijudge.report.vocabulary import group_name, metric_name, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST_NAME = 38
ALL_NAMED = 14
"""Up to so many points are named in the drawing; of more, only the first."""
NAMED = 8
SQUARE_HEIGHT = 440.0


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawing ready for a page.

    Attributes:
        svg: the drawing, with title and description for those who cannot see it.
        title: heading.
        note: what to know when reading it.
        tall: whether it is better put into a frame that scrolls.
        left_out: systems without a value, which are not drawn.
    """

    svg: str
    title: str
    note: str
    tall: bool = False
    left_out: int = 0


def ranking_plot(results: Results) -> Plot | None:
    """Every system's leading metric with both intervals; None if there is no value."""
    metric, group = results.lead
    name = metric_name(metric)
    found = [(r, r.cell, r.cell.value) for r in results.ranking if r.cell is not None]
    points = [(r, c, v) for r, c, v in found if v is not None]
    if not points:
        return None
    title = f"{name.label}, {group_name(group)}"
    ends = [v for _, _, v in points]
    with settings():
        rows = Rows([label(r) for r, _, _ in points], right=62)
        thin = [(y, c.careful_low, c.careful_high) for y, (_, c, _) in enumerate(points)]
        thick = [(y, c.ci_low, c.ci_high) for y, (_, c, _) in enumerate(points)]
        ends += _intervals(rows, thin, max(rows.row * 0.05, 0.9), 1.0)
        ends += _intervals(rows, thick, rows.row * 0.22, 0.45)
        tips = {}
        for gid, marker, fill in (("dots", "o", ACCENT), ("controls", "D", PAPER)):
            own = [(y, p) for y, p in enumerate(points) if p[0].control == (gid == "controls")]
            if own:
                rows.axes.plot(
                    [p[2] for _, p in own], [y for y, _ in own], linestyle="", marker=marker,
                    markersize=rows.mark, color=fill, markeredgecolor=ACCENT, zorder=4, gid=gid,
                )  # fmt: skip
                tips[gid] = [_tip(p[1]) for _, p in own]
        for y, (_, _, value) in enumerate(points):
            rows.value(y, shown(metric, value))
        rows.axes.set_xlim(*_span(ends, name.kind))
        svg = rows.svg(
            "ranking", title,
            f"{len(points)} systems from best to worst, each with a dot for its value, a thick "
            "line for its interval and a thin line for the careful interval. The table below "
            "holds the same numbers.",
            tips,
        )  # fmt: skip
    note = "Dot: value. Thick line: interval. Thin line: careful (jackknife) interval."
    if any(r.control for r, _, _ in points):
        note += " Diamonds are controls, no systems under test."
    left_out = len(results.ranking) - len(points)
    return Plot(svg, title, note, len(points) > TALL, left_out)


def stack_plot(results: Results, stack: Stack) -> Plot | None:
    """What a total is made of, as one bar per system; None if there is nothing to show."""
    table: list[tuple[Ranked, list[float]]] = []
    for r in results.ranking:
        known = [_sum(results, r.system, p.metric, p.groups) for p in stack.parts]
        if any(v is not None for v in known):
            table.append((r, [v or 0.0 for v in known]))
    kept = [k for k in range(len(stack.parts)) if any(values[k] for _, values in table)]
    if not kept:
        return None
    # Success has its own colour; failures take the others.
    colours = PARTS if stack.good else PARTS[1:]
    with settings():
        rows = Rows([label(r) for r, _ in table], right=62, top=36)
        tips = {}
        for k in kept:
            bars = [(y, v) for y, (_, v) in enumerate(table) if v[k] > 0]
            rows.axes.hlines(
                [y for y, _ in bars], [sum(v[:k]) for _, v in bars],
                [sum(v[: k + 1]) for _, v in bars], colors=colours[k],
                linewidth=rows.row * 0.7, zorder=3, gid=f"part-{k}",
            )  # fmt: skip
            tips[f"part-{k}"] = [
                f"{table[y][0].system}: {stack.parts[k].label} {v[k]:g}" for y, v in bars
            ]
        for y, (_, values) in enumerate(table):
            rows.value(y, f"{sum(values):,.0f}")
        rows.axes.set_xlim(0, max(sum(v) for _, v in table) * 1.02)
        rows.axes.set_xlabel(stack.unit)
        legend(rows.figure, [(stack.parts[k].label, colours[k]) for k in kept])
        svg = rows.svg(
            "parts", stack.title,
            f"One bar per system in the order of the ranking, in {stack.unit}, made of: "
            f"{', '.join(stack.parts[k].label for k in kept)}.",
            tips,
        )  # fmt: skip
    left_out = len(results.ranking) - len(table)
    return Plot(svg, stack.title, stack.note, len(table) > TALL, left_out)


def delay_plot(results: Results, delays: Delays) -> Plot | None:
    """Median and 90th percentile of the waiting time; None if there is no value."""
    table = _pairs(results, delays.p50, delays.p90)
    if not table:
        return None
    title = "How long answers take"
    with settings():
        rows = Rows([label(r) for r, _, _ in table], right=96, top=36)
        ys = range(len(table))
        medians, tails = [a for _, a, _ in table], [b for _, _, b in table]
        rows.axes.hlines(
            ys, medians, tails, colors=ACCENT, linewidth=rows.row * 0.12, alpha=0.5, zorder=2
        )
        for gid, values, fill in (("p90", tails, PAPER), ("p50", medians, ACCENT)):
            rows.axes.plot(
                values, ys, linestyle="", marker="o", markersize=rows.mark, color=fill,
                markeredgecolor=ACCENT, zorder=4, gid=gid,
            )  # fmt: skip
        for y, (_, p50, p90) in enumerate(table):
            rows.value(y, f"{p50:.2f} / {p90:.2f}")
        low = min(0.0, *medians, *tails)
        high = max(*medians, *tails, 0.1)
        rows.axes.set_xlim(low - 0.03 * (high - low), high + 0.04 * (high - low))
        rows.axes.set_xlabel("seconds")
        legend(rows.figure, [("median", ACCENT), ("90th percentile", PAPER)], dots=True)
        svg = rows.svg(
            "delays", title,
            f"Median and 90th percentile in seconds of {len(table)} systems, in the order of the "
            "ranking.",
            {
                "p50": [f"{r.system}: median {p50:.2f} s" for r, p50, _ in table],
                "p90": [f"{r.system}: 90th percentile {p90:.2f} s" for r, _, p90 in table],
            },
        )  # fmt: skip
    left_out = len(results.ranking) - len(table)
    return Plot(svg, title, delays.note, len(table) > TALL, left_out)


def trade_off_plot(results: Results, trade: TradeOff) -> Plot | None:
    """Two metrics against each other; None if no system has both."""
    points = _pairs(results, trade.x, trade.y)
    if not points:
        return None
    xs, ys = [x for _, x, _ in points], [y for _, _, y in points]
    names = [metric_name(m).label for m, _ in (trade.x, trade.y)]
    axis_names = [
        f"{n}, {group_name(k[1])}" for n, k in zip(names, (trade.x, trade.y), strict=True)
    ]
    with settings():
        figure, axes = new_figure(640.0, SQUARE_HEIGHT)
        axes.set_position((0.1, 0.12, 0.86, 0.85))
        axes.set_xlim(*_span(xs, metric_name(trade.x[0]).kind))
        axes.set_ylim(*_span(ys, metric_name(trade.y[0]).kind))
        if trade.curves:
            _equal_f1(axes)
        axes.plot(
            xs, ys, linestyle="", marker="o", markersize=7.5, color=ACCENT,
            markeredgecolor=PAPER, markeredgewidth=1.0, zorder=4, gid="points",
        )  # fmt: skip
        texts = _name_points(axes, points)
        axes.set_xlabel(axis_names[0])
        axes.set_ylabel(axis_names[1])
        svg = to_svg(
            figure, "trade-off", trade.title,
            f"One dot for each of {len(points)} systems: {axis_names[0]} to the right, "
            f"{axis_names[1]} upwards.",
            {
                "points": [
                    f"{r.system}: {names[0]} {shown(trade.x[0], x)}, "
                    f"{names[1]} {shown(trade.y[0], y)}"
                    for r, x, y in points
                ]
            },
            texts,
        )  # fmt: skip
    note = trade.note
    if len(points) > ALL_NAMED:
        note += " The best systems are named; the others name themselves under the pointer."
    return Plot(svg, trade.title, note, left_out=len(results.ranking) - len(points))


def label(row: Ranked) -> str:
    """Rank and name, the middle of a long name left out."""
    name = row.system
    if len(name) > LONGEST_NAME:
        half = LONGEST_NAME // 2
        name = f"{name[:half]}…{name[-half:]}"
    return f"{row.place}. {name}" if row.place is not None else name


def _tip(cell: Cell) -> str:
    text = f"{cell.system}: {shown(cell.metric, cell.value)}"
    if cell.ci_low is not None and cell.ci_high is not None:
        text += f" [{shown(cell.metric, cell.ci_low)}, {shown(cell.metric, cell.ci_high)}]"
    return text


def _pairs(results: Results, first: Key, second: Key) -> list[tuple[Ranked, float, float]]:
    """Systems that have both values, in the order of the ranking."""
    found = []
    for r in results.ranking:
        a, b = results.value(r.system, *first), results.value(r.system, *second)
        if a is not None and b is not None:
            found.append((r, a, b))
    return found


def _sum(results: Results, system: str, metric: str, groups: Iterable[str]) -> float | None:
    values = [v for g in groups if (v := results.value(system, metric, g)) is not None]
    return sum(values) if values else None


def _intervals(
    rows: Rows,
    intervals: Iterable[tuple[int, float | None, float | None]],
    width: float,
    alpha: float,
) -> list[float]:
    """Draws intervals as lines; returns their ends."""
    known = [(y, a, b) for y, a, b in intervals if a is not None and b is not None]
    if known:
        rows.axes.hlines(
            [y for y, _, _ in known], [a for _, a, _ in known], [b for _, _, b in known],
            colors=ACCENT, linewidth=width, alpha=alpha, zorder=3,
        )  # fmt: skip
    return [end for _, a, b in known for end in (a, b)]


def _span(values: Sequence[float], kind: str) -> tuple[float, float]:
    """What an axis shows: all values with some air, from 0 where that is near enough."""
    low, high = min(values), max(values)
    top = {"share": 1.0, "percent": 100.0}.get(kind)
    air = 0.05 * (high - low or abs(high) or 1.0)
    low = -air / 3 if 0 <= low < 0.45 * high or low == high == 0 else low - air
    high += air
    if top is not None:
        high = min(high, top + air / 2)
    return low, high


def _equal_f1(axes: Axes) -> None:
    """Lines on which precision and recall give the same F1."""
    (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
    for tenths in range(1, 10):
        f1 = tenths / 10
        # P = F R / (2 R - F), for R above F / 2; points close together where the line is steep.
        xs = [f1 / 2 + (1.0 - f1 / 2) * (k / 80) ** 2 for k in range(1, 81)]
        line = [(x, f1 * x / (2 * x - f1)) for x in xs]
        inside = [(x, y) for x, y in line if x0 <= x <= x1 and y0 <= y <= y1]
        if len(inside) < 3:
            continue
        axes.plot(*zip(*inside, strict=True), color=MUTED, linewidth=0.8, alpha=0.5, zorder=1)
        axes.annotate(
            f"{f1:g}", inside[-1], xytext=(-2, 2), textcoords="offset points", fontsize=9.5,
            color=MUTED, ha="right", va="bottom", annotation_clip=False,
        )  # fmt: skip


def _name_points(axes: Axes, points: Sequence[tuple[Ranked, float, float]]) -> str:
    """Names beside the dots, as far as they find room; the best are served first."""
    from rich.cells import cell_len

    frame = axes.get_window_extent()
    dots = [axes.transData.transform((x, y)) for _, x, y in points]
    taken = [(px - 4, py - 4, px + 4, py + 4) for px, py in dots]
    most = len(points) if len(points) <= ALL_NAMED else NAMED
    places = ((8, 0, "start"), (-8, 0, "end"), (0, 13, "middle"), (0, -13, "middle"))
    texts = []
    for (r, _, _), (px, py) in list(zip(points, dots, strict=True))[:most]:
        text = label(r)
        width, height = cell_len(text) * 6.6, 12.0
        for dx, dy, side in places:
            left = px + dx - {"start": 0.0, "end": width, "middle": width / 2}[side]
            area = (left, py + dy - height / 2, left + width, py + dy + height / 2)
            inside = area[0] >= frame.x0 and area[2] <= frame.x1
            inside = inside and area[1] >= frame.y0 and area[3] <= frame.y1
            if inside and not any(_overlap(area, t) for t in taken):
                taken.append(area)
                texts.append(svg_text(px + dx, SQUARE_HEIGHT - py - dy, text, side, 11.5))
                break
    return "\n".join(texts)


def _overlap(a: Sequence[float], b: Sequence[float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
