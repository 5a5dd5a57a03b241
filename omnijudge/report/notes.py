"""What stands below every table and plot: what was measured, by whom, how surely."""

from __future__ import annotations

from collections.abc import Iterable

from omnijudge.report.results import SMOKE_NOTE, Cell, Results
from omnijudge.report.vocabulary import group_name, metric_name

_METHODS = {
    "percentile": "cluster bootstrap, percentile",
    "bca": "cluster bootstrap, BCa",
    "jackknife": "cluster jackknife",
}


def provenance(results: Results) -> list[str]:
    """Profile, judge, prompt pack and how intervals were made, one sentence each."""
    corrections = f" with {', '.join(results.corrections)}" if results.corrections else ""
    lines = [f"{results.title}, profile {results.profile}{corrections}."]
    for judge in results.judges:
        # Replayed answers were given to questions that this run did not ask.
        pack = f", prompts {judge.pack}" if judge.pack and judge.engine != "replay" else ""
        lines.append(f"Judge {judge}{pack}.")
    if evidence := evidence_of(results):
        lines.append(f"Evidence: {evidence}.")
    if results.smoke:
        lines.append(SMOKE_NOTE[0].upper() + SMOKE_NOTE[1:] + ".")
    if imported := import_sentence(results):
        lines.append(imported)
    lines.append(interval_sentence(results))
    return lines


def evidence_of(results: Results) -> str | None:
    """What judges were shown of clips (kinds do not compare), for benchmarks with clips."""
    for problem in results.manifest.get("problems") or ():
        if problem.get("code") == "evidence":
            return str(problem["message"]).removeprefix("evidence: ")
    return None


def import_sentence(results: Results) -> str | None:
    """What the audit of imported results came to; None for a run of our own."""
    audit = results.manifest.get("import")
    if not audit:
        return None
    complete = audit.get("f1_complete")
    kinds = ", ".join(f"{k['samples']} {k['kind'].replace('_', ' ')}" for k in audit["kinds"])
    return (
        f"Imported results: F1 as published {audit['f1_as_published']:.4f}, complete "
        f"{'undefined' if complete is None else f'{complete:.4f}'}; findings: {kinds or 'none'}."
    )


def interval_sentence(results: Results) -> str:
    """How the intervals were made."""
    statistics = (results.manifest.get("config") or {}).get("statistics") or {}
    method = _METHODS.get(results.interval_method, results.interval_method or "none")
    detail = ""
    if results.interval_method in ("percentile", "bca") and "replicates" in statistics:
        detail = f", {statistics['replicates']:,} replicates, seed {statistics.get('seed', 0)}"
    return (
        f"Intervals: {100 * results.confidence:g} %, {method} over clusters of "
        f"{results.cluster}{detail}."
    )


def ranking_sentence(results: Results) -> str:
    """What the systems are ordered by."""
    metric, group = results.lead
    name = metric_name(metric)
    way = ", lowest first" if name.better is False else ""
    return f"Ordered by {name.label}, {group_name(group)}{way}."


def coverage_sentence(cells: Iterable[Cell]) -> str:
    """Whether all units behind the cells are scored."""
    known = [c for c in cells if c.coverage is not None]
    low = min(known, key=lambda c: c.coverage or 0.0, default=None)
    if low is None:
        return "Coverage: no units."
    if low.coverage == 1:
        return "Coverage: every unit is scored."
    where = f"{low.system}, {metric_name(low.metric).label}, {group_name(low.group)}"
    return (
        f"Coverage below 1 (marked !): units without a verdict are outside all sums; "
        f"lowest {percent(low.coverage or 0.0)} ({where})."
    )


def warning_sentence(cells: Iterable[Cell]) -> str | None:
    """The most frequent caution about intervals, and how many more there are."""
    known = [c for c in cells if c.value is not None]
    counted: dict[str, int] = {}
    for c in known:
        if c.warning:
            counted[c.warning] = counted.get(c.warning, 0) + 1
    if not counted:
        return None
    text = max(counted, key=lambda t: counted[t])
    others = len(counted) - 1
    more = f"; {others} other caution{'s' if others > 1 else ''} on other values" if others else ""
    every = all(c.warning for c in known)
    which = "all intervals" if every else "intervals marked *"
    return f"Read {which} with care: {text}{more}."


def missing_sentence(results: Results, most: int = 10) -> str | None:
    """Which systems lack outputs, and how many."""
    missing = {s: n for s in results.systems if (n := results.missing(s))}
    if not missing:
        return None
    named = [f"{s} ({n:,})" for s, n in list(missing.items())[:most]]
    more = f" and {len(missing) - most} more systems" if len(missing) > most else ""
    treated = "not counted" if results.profile == "published" else "scored as silence"
    return f"Missing outputs ({treated}): {', '.join(named)}{more}."


def percent(share: float) -> str:
    """A share as a percentage that never rounds up to 100."""
    return "100 %" if share == 1 else f"{min(100 * share, 99.9):.1f} %"
