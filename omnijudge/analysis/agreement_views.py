"""How agreement looks: tables for a terminal, and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from omnijudge.analysis.texts import (
    grid,
    heading,
    interval,
    p_text,
    plain,
    share_text,
    signed,
    signed_span,
)
from omnijudge.report.vocabulary import EMPTY, shown

if TYPE_CHECKING:
    from omnijudge.analysis.agreement import (
        Disagreement,
        FieldAgreement,
        Matching,
        MetricAgreement,
        PairAgreement,
    )
    from omnijudge.report.grid import Grid
    from omnijudge.statistics.agreement import Agreement

MEASURES = {
    "kappa": "Kappa",
    "ac1": "AC1",
    "alpha": "Alpha",
    "pearson": "Pearson",
    "spearman": "Spearman",
    "kendall": "Kendall",
    "lin": "Lin",
    "icc": "ICC",
    "quadratic_kappa": "Kappa, squared",
}
LONGEST_TEXT = 160
MOST_SYSTEMS = 40


def agreement_text(
    pairs: Sequence[PairAgreement], every_metric: bool = False, width: int | None = None
) -> str:
    """All pairs of judges as tables for a terminal.

    Args:
        pairs: what ``agree`` found.
        every_metric: show every metric, not only the leading one.
        width: columns; None asks the terminal.
    """
    from omnijudge.report.text_tables import as_table

    return "\n\n".join(as_table(_grids(p, every_metric), _about(p), width) for p in pairs)


def _grids(pair: PairAgreement, every_metric: bool) -> list[Grid]:
    title = f"{pair.second} against {pair.first}: {pair.label}"
    joined = grid("joined", title, [("Questions", False), "Count"], _joined(pair.matching))
    grids = [joined]
    for made in (_labels(pair.fields), _scores(pair.fields), _bias(pair.fields)):
        if made is not None:
            grids.append(made)
    grids += [_times(f) for f in pair.fields if f.time is not None and f.items]
    known = [m for m in pair.metrics if any(s.first is not None for s in m.systems)]
    for metric in known if every_metric else known[:1]:
        grids += [_systems(pair, metric), _differences(pair, metric)]
    return [g for g in grids if g.rows]


def _joined(m: Matching) -> list[list[str]]:
    rows = [
        ("with a usable verdict of both", m.matched),
        ("left out: another text was judged", m.other_text),
        ("left out: only the first has an answer", m.only_first),
        ("left out: only the second has an answer", m.only_second),
        ("left out: an answer is unusable", m.unusable),
        ("left out: rows of the first about no question here", m.unknown_first),
        ("left out: rows of the second about no question here", m.unknown_second),
    ]
    return [[name, f"{n:,}"] for i, (name, n) in enumerate(rows) if n or not i]


def _measure(found: Agreement | None) -> str:
    if found is None or found.value is None:
        return EMPTY
    return f"{plain(found.value)} {interval(found.low, found.high)}".replace(f" {EMPTY}", "")


def _row(names: Iterable[str], measures: Sequence[Agreement]) -> list[str]:
    by_name = {m.measure: m for m in measures}
    return [_measure(by_name.get(n)) for n in names]


def _labels(fields: Sequence[FieldAgreement]) -> Grid | None:
    names = ("kappa", "ac1", "alpha")
    rows = []
    for f in fields:
        if not f.items:
            continue
        if f.field.kind == "category":
            same = share_text(f.same_share)
            rows.append([f.field.stage, f.field.field, f"{f.items:,}", same,
                         *_row(names, f.measures)])  # fmt: skip
        elif f.decision:
            what = f"{f.field.field} from {f.field.threshold:g} on"
            rows.append([f.field.stage, what, f"{f.items:,}", "", *_row(names, f.decision)])
    heads: list[str | tuple[str, bool]] = [("Stage", False), ("Label", False), "n", "Same"]
    heads += [MEASURES[n] for n in names]
    return grid("labels", "Agreement on labels", heads, rows) if rows else None


def _scores(fields: Sequence[FieldAgreement]) -> Grid | None:
    names = ("pearson", "spearman", "kendall", "lin", "icc", "alpha", "quadratic_kappa")
    rows = [
        [f.field.stage, f.field.field, f"{f.items:,}", *_row(names, f.measures)]
        for f in fields
        if f.field.kind == "score" and f.items
    ]
    heads: list[str | tuple[str, bool]] = [("Stage", False), ("Score", False), "n"]
    heads += [MEASURES[n] for n in names]
    return grid("scores", "Agreement on scores", heads, rows) if rows else None


def _bias(fields: Sequence[FieldAgreement]) -> Grid | None:
    rows = []
    for f in fields:
        if f.field.kind != "score" or f.bias is None or f.bias.mean is None:
            continue
        limits = interval(f.bias.lower_limit, f.bias.upper_limit)
        mean = f"{f.bias.mean:+.3f}"
        rows.append([f.field.stage, f.field.field, mean, interval(f.bias.low, f.bias.high), limits])
    heads: list[str | tuple[str, bool]] = [
        ("Stage", False), ("Score", False), "Mean difference", "Interval", "Limits of agreement",
    ]  # fmt: skip
    return grid("bias", "Second judge less first", heads, rows) if rows else None


def _times(f: FieldAgreement) -> Grid:
    assert f.time is not None
    t = f.time
    mean = EMPTY if t.bias.mean is None else f"{t.bias.mean:+.2f}"
    row = [
        f.field.stage, f"{f.items:,}", mean, interval(t.bias.low, t.bias.high, 2),
        plain(t.median, 2), plain(t.p90, 2), share_text(t.same_share), f"{t.only_first:,}",
        f"{t.only_second:,}",
    ]  # fmt: skip
    heads: list[str | tuple[str, bool]] = [
        ("Stage", False), "n", "Mean difference", "Interval", "Median distance", "p90", "Same",
        "only first", "only second",
    ]  # fmt: skip
    return grid("times", f"Times in seconds ({f.field.field})", heads, [row])


def _systems(pair: PairAgreement, found: MetricAgreement) -> Grid:
    heads: list[str | tuple[str, bool]] = [
        ("System", False), "first", "second", "Difference", "Interval", "Samples",
    ]  # fmt: skip
    if pair.margin is not None:
        heads += [("Verdict", False), "p equivalent"]
    rows = []
    for s, samples in zip(found.systems, found.n_samples, strict=True):
        e = s.equivalence
        row = [
            s.system,
            shown(found.metric, s.first),
            shown(found.metric, s.second),
            signed(found.metric, e.difference),
            signed_span(found.metric, e.low, e.high),
            f"{samples:,}",
        ]
        if pair.margin is not None:
            row += [e.verdict, p_text(e.p_equivalent)]
        rows.append(row)
    notes = []
    if len(rows) > MOST_SYSTEMS:
        notes.append(f"and {len(rows) - MOST_SYSTEMS:,} more systems, in the JSON output")
    ranks = found.ranks
    order = f"Kendall {plain(ranks.kendall)}, Spearman {plain(ranks.spearman)}"
    few = f" ({ranks.note}: only {ranks.n_systems} systems)" if ranks.note else ""
    notes.append(f"Order of the systems under the two judges: {order}{few}.")
    title = f"{heading(found.metric, found.group)} under the two judges"
    return grid("systems", title, heads, rows[:MOST_SYSTEMS], notes)


def _differences(pair: PairAgreement, found: MetricAgreement) -> Grid:
    heads: list[str | tuple[str, bool]] = [("System", False), "Change", "Interval"]
    if pair.margin is not None:
        heads += [("Verdict", False), "p equivalent"]
    rows = []
    for system, e in found.differences[:MOST_SYSTEMS]:
        row = [
            system,
            signed(found.metric, e.difference),
            signed_span(found.metric, e.low, e.high),
        ]
        if pair.margin is not None:
            row += [e.verdict, p_text(e.p_equivalent)]
        rows.append(row)
    title = (
        f"{heading(found.metric, found.group)}: how much the difference to {pair.baseline} changes"
    )
    return grid("differences", title, heads, rows)


def _about(pair: PairAgreement) -> list[str]:
    lines = list(dict.fromkeys(_reasons(pair.fields)))
    if pair.margin is not None:
        lines.append(
            f"Equivalent: shown to differ by less than {pair.margin:g} (two one-sided tests, "
            "jackknife over clusters); different: shown to differ, and not by less."
        )
    lines.append("Intervals: jackknife over clusters, Fisher's z for measures of agreement.")
    if pair.disagreements:
        lines += ["", "Largest disagreements:"]
        for d in pair.disagreements:
            lines += _disagreement(d)
    return lines


def _reasons(fields: Sequence[FieldAgreement]) -> Iterable[str]:
    for f in fields:
        if not f.items:
            continue
        for measured in (*f.measures, *f.decision):
            if measured.value is None and measured.reason:
                name = MEASURES.get(measured.measure, measured.measure)
                yield f"{f.field.stage} {f.field.field}, {name}: {measured.reason}."


def _disagreement(d: Disagreement) -> list[str]:
    system, sample, unit, item, stage = d.key
    place = f"{system} / {sample} / {unit}" + (f" / {item}" if item is not None else "")
    text = d.text.strip().replace("\n", " ")
    text = text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
    said = [_said(value) for value in (d.first, d.second)]
    lines = [f"  {place}, {stage} {d.field}: {said[0]} against {said[1]}", f"    {text}"]
    names = ("first", "second")
    lines += [f"    {n}: {r}" for n, r in zip(names, d.reasons, strict=True) if r]
    return lines


def _said(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def agreement_json(pairs: Sequence[PairAgreement]) -> str:
    """Everything that was found, for machines."""
    return json.dumps(
        [_plain(p) for p in pairs], ensure_ascii=False, indent=2, allow_nan=False, default=str
    )


def _plain(pair: PairAgreement) -> dict[str, Any]:
    found = asdict(pair)
    for entry in found["metrics"]:
        entry["differences"] = [{"system": s, **e} for s, e in entry["differences"]]
    for entry in found["disagreements"]:
        names = ("system", "sample_id", "unit_id", "item", "stage")
        key = dict(zip(names, entry.pop("key"), strict=True))
        entry |= {**key, "reasons": list(entry["reasons"])}
    return found
