"""What asking came to, in a few lines: how answers ended, what was wrong with them, what it cost
and what was saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnijudge.judging.answer_faults import FLAGS, INVALID
from omnijudge.report.losses import answers_by_stage

MOST_SYSTEMS = 20
ENDS = ("ok", "repaired", "invalid", "error", "not asked")


def answer_lines(manifest: Mapping[str, Any]) -> list[str]:
    """Shares of answers by end, per stage and system; then the names of what was wrong."""
    counts = manifest.get("counts") or {}
    answers: Mapping[str, Mapping[str, Mapping[str, int]]] = counts.get("answers") or {}
    stages = answers_by_stage(manifest)
    if not stages:
        return []
    if not any(n for by in stages.values() for end, n in by.items() if end != "ok"):
        said = ", ".join(f"{stage} {by['ok']:,}" for stage, by in stages.items())
        return [f"Answers: all ok ({said})."]
    lines = ["Answers by stage, % ok / repaired / invalid / error or not asked:"]
    order = sorted(answers, key=lambda s: (-_lost(answers[s]), s))
    width = max(len(s) for s in ("all systems", *order[:MOST_SYSTEMS]))
    rows = [("all systems", stages), *((s, answers[s]) for s in order[:MOST_SYSTEMS])]
    heads = ["", *stages]
    cells = [
        [name.ljust(width), *(_shares(by.get(stage, {})) for stage in stages)] for name, by in rows
    ]
    widths = [max(len(r[i]) for r in (heads, *cells)) for i in range(len(heads))]
    for row in (heads, *cells):
        cells_of_row = [c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)]
        lines.append("  " + "  ".join([row[0].ljust(widths[0]), *cells_of_row]))
    if len(order) > MOST_SYSTEMS:
        lines.append(f"  and {len(order) - MOST_SYSTEMS:,} more systems, with smaller losses")
    return lines + fault_lines(counts.get("faults") or {})


def _lost(stages: Mapping[str, Mapping[str, int]]) -> float:
    worst = 0.0
    for by in stages.values():
        total = sum(by.values())
        if total:
            worst = max(worst, 1 - (by.get("ok", 0) + by.get("repaired", 0) / 2) / total)
    return worst


def _shares(by: Mapping[str, int]) -> str:
    total = sum(by.values())
    if not total:
        return "-"
    lost = by.get("error", 0) + by.get("not asked", 0)
    found = (by.get("ok", 0), by.get("repaired", 0), by.get("invalid", 0), lost)
    return " / ".join(_percent(n, total) for n in found)


def _percent(part: int, whole: int) -> str:
    """Whole percents, except that neither a loss nor a rest is rounded away."""
    share = 100 * part / whole
    if part in (0, whole):
        return f"{share:.0f}"
    return f"{min(max(share, 0.1), 99.9):.1f}"


def fault_lines(faults: Mapping[str, int]) -> list[str]:
    """Names of faults and flags with their counts."""
    lines = []
    for what, names in (("Unusable answers", INVALID), ("Flagged answers", FLAGS)):
        said = [f"{n} {faults[n]:,} ({names[n]})" for n in names if faults.get(n)]
        if said:
            lines.append(f"{what}, attempts counted singly: {'; '.join(said)}.")
    return lines


def spread_lines(manifest: Mapping[str, Any]) -> list[str]:
    """How far several judges, or repeats of one, lie apart; nothing without them."""
    spreads = (manifest.get("counts") or {}).get("spreads") or {}
    said = [
        f"{stage} {s['mean']:.3f} on average, {s['largest']:.3f} at most, "
        f"{s['differing']:,} of {s['verdicts']:,} differ"
        for stage, s in spreads.items()
    ]
    return [f"Judges apart (0 to 1): {'; '.join(said)}."] if said else []


def economy_lines(manifest: Mapping[str, Any]) -> list[str]:
    """Prompt tokens asked and saved, per judge; nothing where no tokens are counted."""
    economy = (manifest.get("counts") or {}).get("economy") or {}
    lines = []
    for judge, e in economy.items():
        whole = e.get("prompt_tokens") or 0
        if not whole:
            continue
        asked = e["asked"]
        line = (
            f"Judge {judge}: {whole:,} prompt tokens for {e['questions']:,} questions asked one "
            f"by one; saved {_share(e['saved_by_deduplication'], whole)} by asking identical ones "
            f"once, {_share(e['saved_by_store'], whole)} by the store; asked {asked:,}"
        )
        if asked:
            line += f", {_share(e['saved_by_prefix_cache'], asked)} of them from the prefix cache"
        if e.get("output_tokens_per_verdict"):
            line += f"; {e['output_tokens_per_verdict']:.1f} output tokens per verdict"
        lines.append(line + ".")
    return lines


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %"
