"""How sensitivity looks: tables for a terminal, JSON, and a plot."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnijudge.analysis.pictures import colour, common_legend, drawing, panels, save_svg
from omnijudge.analysis.texts import grid, heading
from omnijudge.report.vocabulary import EMPTY, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from omnijudge.analysis.sensitivity import Sensitivity
    from omnijudge.benchmarks.declared import Key
    from omnijudge.report.grid import Grid

Row = dict[str, Any]
MOST_SYSTEMS = 30
MOST_SWAPS = 12
MOST_LINES = 10


def sensitivity_text(found: Sensitivity, width: int | None = None) -> str:
    """A table per sweep for a terminal: systems down, points across."""
    from omnijudge.report.text_tables import as_table

    grids = [_grid(found, key, sweep) for key in found.shown for sweep in _sweeps(found)]
    about = [
        "* the run as it is; in brackets the rank, where it differs from the run's.",
        *found.notes,
    ]
    if found.asked:
        about.append(f"{found.asked:,} requests to the judge; the answers are in the store.")
    if found.folder is not None:
        about.append(f"Tables and plot: {found.folder}")
    return as_table(grids, about, width)


def _sweeps(found: Sensitivity) -> list[str]:
    return list(dict.fromkeys(found.points["sweep"].to_pylist()))


def _rows(found: Sensitivity, key: Key, sweep: str) -> list[Row]:
    return [
        r
        for r in found.points.to_pylist()
        if (r["metric"], r["group"]) == key and r["sweep"] == sweep
    ]


def _order(rows: Sequence[Row]) -> list[str]:
    """Systems by their rank in the run."""
    own = {r["system"]: r for r in rows if r["is_run"]}
    return sorted(own, key=lambda s: (own[s]["rank"] is None, own[s]["rank"] or 0))


def _grid(found: Sensitivity, key: Key, sweep: str) -> Grid:
    rows = _rows(found, key, sweep)
    points = list(dict.fromkeys(r["point"] for r in rows))
    cell = {(r["system"], r["point"]): r for r in rows}
    order = _order(rows)
    own_rank = {r["system"]: r["rank"] for r in rows if r["is_run"]}
    unit = found.units.get(sweep, "")
    heads: list[str | tuple[str, bool]] = [("System", False)]
    for point in points:
        mark = "*" if cell[order[0], point]["is_run"] else ""
        heads.append(f"{point}{' ' + unit if unit else ''}{mark}")
    lines = []
    for system in order[:MOST_SYSTEMS]:
        line = [system]
        for point in points:
            r = cell[system, point]
            text = shown(key[0], r["value"])
            if r["rank"] is not None and r["rank"] != own_rank[system]:
                text += f" ({r['rank']})"
            line.append(text)
        lines.append(line)
    notes = []
    if len(order) > MOST_SYSTEMS:
        notes.append(f"and {len(order) - MOST_SYSTEMS:,} more systems, in sensitivity.parquet")
    lacking = {
        r["point"]: r["missing_questions"]
        for r in rows
        if r["missing_questions"] and not r["is_run"]
    }
    if lacking:
        said = ", ".join(f"{p} {n:,}" for p, n in lacking.items())
        notes.append(
            f"Questions without a judgement: {said}; values that rest on them are {EMPTY} "
            "(--ask asks them)."
        )
    notes += _swap_lines(found, key, sweep)
    return grid(sweep, f"{sweep}: {heading(*key)}", heads, lines, notes)


def _swap_lines(found: Sensitivity, key: Key, sweep: str) -> list[str]:
    rows = [
        r
        for r in found.swaps.to_pylist()
        if (r["metric"], r["group"]) == key and r["sweep"] == sweep
    ]
    lines = []
    for r in rows[:MOST_SWAPS]:
        place = f"between {r['from_point']} and {r['to_point']}"
        if r["at"] is not None:
            place += f", at about {r['at']:.3g}"
        sure = "clear at both ends" if r["clear"] else "within the noise at one end or both"
        lines.append(f"{r['ahead']} and {r['behind']} change places {place} ({sure}).")
    if len(rows) > MOST_SWAPS:
        lines.append(f"and {len(rows) - MOST_SWAPS:,} more pairs, in swaps.parquet")
    return lines


def sensitivity_json(found: Sensitivity) -> str:
    """All points and swaps for machines."""
    value = {
        "points": found.points.to_pylist(),
        "swaps": found.swaps.to_pylist(),
        "notes": list(found.notes),
        "requests": found.asked,
    }
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)


def plot_sensitivity(found: Sensitivity, key: Key, path: Path) -> Path:
    """One panel per sweep, one line per system (of many, the first of the run)."""
    sweeps = _sweeps(found)
    with drawing():
        figure, axes = panels(len(sweeps), 3, 3.6, 2.6)
        for ax, sweep in zip(axes, sweeps, strict=True):
            rows = _rows(found, key, sweep)
            _panel(ax, rows, _order(rows)[:MOST_LINES])
            unit = found.units.get(sweep, "")
            ax.set_title(f"{sweep} ({unit})" if unit else sweep)
        common_legend(figure, axes[0])
        return save_svg(figure, path, f"{heading(*key)} under other options of scoring")


def _panel(ax: Axes, rows: Sequence[Row], systems: Sequence[str]) -> None:
    points = list(dict.fromkeys(r["point"] for r in rows))
    number = {r["point"]: r["number"] for r in rows}
    line = all(n is not None for n in number.values())
    place = {p: number[p] if line else i for i, p in enumerate(points)}
    cell = {(r["system"], r["point"]): r["value"] for r in rows}
    own = next(r["point"] for r in rows if r["is_run"])
    ax.axvline(place[own], color="#8a94a3", linewidth=1.0, linestyle="--")
    for i, system in enumerate(systems):
        known = [p for p in points if cell[system, p] is not None]
        ax.plot(
            [place[p] for p in known], [cell[system, p] for p in known], marker="o",
            linestyle="-" if line else "", color=colour(i), label=system,
        )  # fmt: skip
    if not line:
        ax.set_xticks(range(len(points)), points, rotation=35, ha="right")
