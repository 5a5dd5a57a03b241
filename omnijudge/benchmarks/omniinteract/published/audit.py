"""What an import found, and what each finding is worth: F1 as published beside F1 complete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from omnijudge.benchmarks.omniinteract.published.check import Checked, Finding
from omnijudge.benchmarks.omniinteract.published.files import StoredResults

if TYPE_CHECKING:
    import pyarrow as pa

Totals = tuple[float, float, float]
"""TP, FP, FN."""
NOTHING: Totals = (0.0, 0.0, 0.0)

MEANING = {
    "truncated": "slots or answers are lacking",
    "stale": "made from other annotations or transcripts than those of now",
    "other_options": "made with other options than most results",
    "not_listed": "not among the listed samples",
    "no_result": "listed, without a result",
    "no_transcript": "the transcript is not found; nothing of it can be scored",
    "no_annotation": "the annotation is not found or not usable; nothing of it can be scored",
    "differs": "stored values do not follow from the stored answers",
}
"""Kinds of findings, in the order they are listed."""


def f1(totals: Totals) -> float:
    """IA-QTF1 of summed TP, FP and FN (rule 16)."""
    tp, fp, fn = totals
    return 2 * tp / (2 * tp + fp + fn) if tp > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Worth:
    """A finding with what it does to F1.

    Attributes:
        moved_f1_by: F1 as published, minus F1 with this sample put right.
    """

    kind: str
    sample_id: str
    detail: str
    moved_f1_by: float


@dataclass(frozen=True, slots=True)
class KindOfFinding:
    """All findings of one kind; ``moved_f1_by`` puts all these samples right at once."""

    kind: str
    samples: int
    moved_f1_by: float


@dataclass(frozen=True)
class Audit:
    """What ``run.json`` keeps of an import.

    Attributes:
        results: result files read.
        samples: samples of the run.
        judges: judge models that the results name.
        options: options of most results.
        answers: answers taken over, and those given to other words than those of now.
        parsed: per stage how the published parser read the answers.
        parsed_otherwise: answers that we read in another way than the file says.
        values_compared: stored values that were computed anew.
        f1_summary: F1 of the published summary; None without one.
        f1_as_published: F1 over all result files as they lie there.
        f1_complete: F1 over all samples of the run, with every answer that still holds.
        f1_complete_low: the same if every slot without an answer were worst.
        f1_complete_high: the same if each were best.
        unscored_slots: slots without an answer.
        findings: what is wrong, with what it is worth.
        kinds: the same by kind.
    """

    results: int
    samples: int
    judges: Sequence[str]
    options: Mapping[str, Any]
    answers: int
    answers_outdated: int
    parsed: Mapping[str, Mapping[str, int]]
    parsed_otherwise: int
    values_compared: int
    f1_summary: float | None
    f1_as_published: float
    f1_complete: float | None
    f1_complete_low: float | None
    f1_complete_high: float | None
    unscored_slots: int
    findings: Sequence[Worth]
    kinds: Sequence[KindOfFinding]

    def for_manifest(self) -> dict[str, Any]:
        """As it stands in ``run.json``."""
        return asdict(self)


def make_audit(
    stored: StoredResults,
    checked: Checked,
    findings: Sequence[Finding],
    scores: pa.Table,
    metrics: pa.Table,
    samples: int,
) -> Audit:
    """Puts a price on every finding.

    Args:
        stored: the results.
        checked: how they compare with their inputs.
        findings: all findings, those about samples without a result, too.
        scores: score rows of the run that was made of them.
        metrics: its metrics.
        samples: samples of the run.
    """
    published = {s: r.totals for s, r in stored.results.items()}
    complete = totals_by_sample(scores)
    whole = _sum(published.values())

    def moved(ids: Iterable[str]) -> float:
        """F1 as published minus F1 with these samples put right."""
        right = dict(published)
        for sample_id in ids:
            right[sample_id] = complete.get(sample_id, NOTHING)
        return f1(whole) - f1(_sum(right.values()))

    order = list(MEANING)
    ordered = sorted(findings, key=lambda f: (order.index(f.kind), f.sample_id))
    of_kind = {k: {f.sample_id for f in ordered if f.kind == k} for k in order}
    (row,) = (r for r in metrics.to_pylist() if (r["metric"], r["group"]) == ("ia_qtf1", "all"))
    return Audit(
        results=len(stored.results),
        samples=samples,
        judges=sorted({r.model for r in stored.results.values() if r.model}),
        options=dict(checked.settings),
        answers=len(checked.answers),
        answers_outdated=checked.outdated,
        parsed={s: dict(n) for s, n in checked.parsed.items()},
        parsed_otherwise=checked.parsed_otherwise,
        values_compared=checked.values,
        f1_summary=stored.summary.f1,
        f1_as_published=f1(whole),
        f1_complete=row["value"],
        f1_complete_low=row["bound_low"],
        f1_complete_high=row["bound_high"],
        unscored_slots=row["n_unscored"],
        findings=[Worth(f.kind, f.sample_id, f.detail, moved([f.sample_id])) for f in ordered],
        kinds=[KindOfFinding(k, len(ids), moved(ids)) for k, ids in of_kind.items() if ids],
    )


def _sum(totals: Iterable[Totals]) -> Totals:
    rows = list(totals)
    tp, fp, fn = (float(sum(r[i] for r in rows)) for i in range(3))
    return tp, fp, fn


def totals_by_sample(scores: pa.Table) -> dict[str, Totals]:
    """TP, FP (unmatched chunks included) and FN of the scored units of each sample."""
    known = pc.fill_null(scores["judged"], True)
    counted = pc.is_in(scores["unit_kind"], value_set=_strings("slot", "sample"))
    rows = scores.filter(pc.and_(known, counted))
    found: dict[str, Totals] = dict.fromkeys(scores["sample_id"].to_pylist(), NOTHING)
    for sample_id, *values in zip(
        *(rows[n].to_pylist() for n in ("sample_id", "tp", "fp", "fn")), strict=True
    ):
        tp, fp, fn = (v or 0.0 for v in values)
        before = found[sample_id]
        found[sample_id] = (before[0] + tp, before[1] + fp, before[2] + fn)
    return found


def _strings(*values: str) -> pa.Array:
    import pyarrow as pa

    return pa.array(values, pa.string())


def audit_lines(audit: Audit, system: str, most: int = 10) -> list[str]:
    """The audit for people."""
    judges = ", ".join(audit.judges) or "not named"
    parsed: dict[str, int] = {}
    for counts in audit.parsed.values():
        for name, n in counts.items():
            parsed[name] = parsed.get(name, 0) + n
    read = ", ".join(f"{name} {n}" for name, n in sorted(parsed.items())) or "none"
    lines = [
        f"{system}: {audit.results} results, {audit.samples} samples, judge {judges}",
        f"answers: {audit.answers} taken over, {audit.answers_outdated} given to other words than "
        f"those of now; as parsed there: {read}",
    ]
    if audit.parsed_otherwise:
        lines.append(f"{audit.parsed_otherwise} answers are read in another way here")
    differing = sum(f.kind == "differs" for f in audit.findings)
    verdict = f"{differing} results differ" if differing else "all equal"
    lines.append(f"{audit.values_compared} stored values computed anew: {verdict}")
    summary = "no summary there"
    if audit.f1_summary is not None:
        summary = f"its summary says {audit.f1_summary:.4f}"
    lines.append(f"F1 as published: {audit.f1_as_published:.4f} ({summary})")
    if audit.f1_complete is None:
        lines.append("F1 complete: undefined, nothing can be scored")
    else:
        rest = "every slot is scored"
        if audit.unscored_slots and audit.f1_complete_low is not None:
            rest = (
                f"{audit.unscored_slots} slots have no answer: between "
                f"{audit.f1_complete_low:.4f} and {audit.f1_complete_high or 0.0:.4f}"
            )
        lines.append(f"F1 complete:     {audit.f1_complete:.4f} ({rest})")
    if not audit.findings:
        lines.append("findings: none")
    for kind in audit.kinds:
        lines.append(
            f"{kind.kind} ({MEANING[kind.kind]}): {kind.samples} "
            f"{'sample' if kind.samples == 1 else 'samples'}, F1 moved by {kind.moved_f1_by:+.4f}"
        )
        own = [f for f in audit.findings if f.kind == kind.kind]
        lines += [f"  {f.sample_id}: {f.detail} ({f.moved_f1_by:+.4f})" for f in own[:most]]
        if len(own) > most:
            lines.append(f"  and {len(own) - most} more (run.json lists all)")
    return lines
