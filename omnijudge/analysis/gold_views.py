"""How a gold sample and a correction look: tables for a terminal, and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from omnijudge.analysis.gold_sample import CORRELATIONS
from omnijudge.analysis.texts import grid, heading, plain, share_text, signed, signed_span, span
from omnijudge.report.vocabulary import EMPTY, shown

if TYPE_CHECKING:
    from omnijudge.analysis.gold_sample import GoldPlan
    from omnijudge.analysis.rectifying import Corrected, Correction
    from omnijudge.report.grid import Grid
    from omnijudge.statistics.rectify import Rectified

FEWEST = 15


def plan_text(found: GoldPlan, width: int | None = None) -> str:
    """The plan of a sample for a terminal."""
    from omnijudge.report.text_tables import as_table

    metric, d = found.metric, found.draw
    heads: list[str | tuple[str, bool]] = ["Videos", "Questions", "Cost", "Gold alone"]
    heads += [f"corrected, r = {r:g}" for r in CORRELATIONS]
    rows = []
    for r in found.widths:
        mark = "*" if r.n_gold == d.n else ""
        cells = [f"{r.n_gold:,}{mark}", f"{r.n_questions:,.0f}", _money(r.cost)]
        cells += [_half(metric, w) for w in (r.gold_only, *r.rectified)]
        rows.append(cells)
    title = f"Expected half-widths of {heading(metric, found.group)}"
    table = grid("plan", title, heads, rows, ["* the sample drawn. r: see below."])
    how = "simple random" if d.strata == 1 else f"random in {d.strata} strata by size"
    about = [
        f"Drawn: {d.n:,} of {d.n_clusters:,} clusters of {d.cluster}, {how}, seed {d.seed}.",
        f"{found.questions:,} distinct questions for {found.rows:,} answers"
        + (f", about {found.prompt_tokens:,.0f} tokens" if found.prompt_tokens else "")
        + (f", about {_money(found.cost)}." if found.cost is not None else "."),
    ]
    if found.everything:
        about.append(
            "The budget buys gold on every video: nothing is left to correct, and the gold values "
            "are the result."
        )
    elif d.n < FEWEST:
        about.append(f"Fewer than {FEWEST} gold videos: intervals may be too narrow.")
    if found.refused:
        about.append(f"{found.refused:,} questions cannot be asked: their evidence is missing.")
    about += [
        "Half-widths are about the gold judge on exactly these videos, at the median over the "
        "systems, for a simple sample. r: correlation of the two judges over videos, unknown "
        "until there is gold; good judges reach 0.9.",
        f"Questions for {found.model}: {', '.join(str(f) for f in found.files)}",
        f"Then: omnijudge rectify {found.folder.parent} --gold OUTPUT_OF_THE_BATCH",
    ]
    return as_table([table], about, width)


def _money(cost: float | None) -> str:
    return EMPTY if cost is None else f"${cost:,.2f}"


def _half(metric: str, half: float | None) -> str:
    return EMPTY if half is None else f"±{shown(metric, half)}"


def plan_json(found: GoldPlan) -> str:
    """The plan for machines."""
    value = asdict(found)
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False, default=str)


def correction_text(found: Correction, every_metric: bool = False, width: int | None = None) -> str:
    """A correction for a terminal; the leading metric, or all that were asked for."""
    from omnijudge.report.text_tables import as_table

    keys = [k for k, rows in found.metrics.items() if any(c.finite.value is not None for c in rows)]
    grids: list[Grid] = []
    for key in keys if every_metric else keys[:1]:
        title = f"{heading(*key)}, corrected"
        grids.append(_grid(key, title, found.metrics[key]))
        if found.differences[key]:
            title = f"{heading(*key)}: each system less {found.baseline}, corrected"
            grids.append(_grid(key, title, found.differences[key]))
    return as_table(grids, _about(found), width)


def _grid(key: tuple[str, str], title: str, rows: Sequence[Corrected]) -> Grid:
    metric = key[0]
    heads: list[str | tuple[str, bool]] = [
        ("System", False), "Judge", "Gold alone", "Corrected", "Interval", "beyond these videos",
        ("Method", False), "lambda", "Width", "Worth",
    ]  # fmt: skip
    lines = []
    notes: dict[str, list[str]] = {}
    for c in rows:
        r = c.finite
        text, ends = (shown, span) if c.baseline is None else (signed, signed_span)
        lines.append(
            [
                c.system,
                text(metric, r.cheap),
                text(metric, r.gold),
                text(metric, r.value),
                ends(metric, r.low, r.high),
                ends(metric, c.superpopulation.low, c.superpopulation.high),
                r.method,
                plain(r.weight, 2),
                share_text(c.width),
                EMPTY if c.worth is None else f"{c.worth:,.0f}",
            ]
        )
        for said in (_why(r), r.warning):
            if said:
                notes.setdefault(said, []).append(c.system)
    return grid("corrected", title, heads, lines, [_note(t, n) for t, n in notes.items()])


def _why(found: Rectified) -> str | None:
    return None if found.reason is None else f"gold only, because {found.reason}"


def _note(text: str, systems: Sequence[str], most: int = 5) -> str:
    more = f" and {len(systems) - most} more" if len(systems) > most else ""
    return f"{', '.join(systems[:most])}{more}: {text}."


def _about(found: Correction) -> list[str]:
    return [
        f"Gold: {found.gold}; {found.n_gold:,} of {found.n_clusters:,} videos, {found.sampling}.",
        *(f"{n[0].upper()}{n[1:]}." for n in found.notes),
        "Judge: the run's own judge on all videos. Gold alone: the gold judge on the sample. "
        "Corrected: both (regression estimator). Its interval is about the gold judge on exactly "
        "these videos; the next one about the videos they stand for. lambda: weight of the "
        "run's judge. Width: of the interval, against gold alone; Worth: gold videos that would "
        "give it without the run's judge.",
    ]


def correction_json(found: Correction) -> str:
    """Everything that was corrected, for machines."""
    from omnijudge.analysis.rectifying import correction_rows

    value: dict[str, Any] = {
        "gold": found.gold,
        "sampling": found.sampling,
        "n_gold": found.n_gold,
        "n_clusters": found.n_clusters,
        "baseline": found.baseline,
        "notes": list(found.notes),
        "rows": correction_rows(found),
    }
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
