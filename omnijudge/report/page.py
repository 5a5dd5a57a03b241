"""The page of a report, from top to bottom, before it becomes HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omnijudge.report.guidance import reading
from omnijudge.report.losses import answers_by_stage, answers_by_status, findings, losses, stopped
from omnijudge.report.notes import (
    evidence_of,
    import_sentence,
    interval_sentence,
    missing_sentence,
    percent,
    warning_sentence,
)
from omnijudge.report.plots import Plot, delay_plot, ranking_plot, stack_plot, trade_off_plot
from omnijudge.report.published import BLOCKS, DELAYS, MORE, STACKS, TRADE_OFFS, Block, Column
from omnijudge.report.results import SMOKE_NOTE, Results
from omnijudge.report.views import (
    TableView,
    block_view,
    comparison_view,
    every_metric_view,
    plain_view,
    ranking_view,
)
from omnijudge.report.vocabulary import EMPTY, group_name, metric_name, shown

FEW = 12
"""Up to so many systems, every metric stands on the page."""
_MOST_LOST_SYSTEMS = 300


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to know before any number is read."""

    head: str
    text: str


@dataclass(frozen=True, slots=True)
class Fact:
    """One of the figures at the top."""

    label: str
    value: str
    detail: str


@dataclass(frozen=True, slots=True)
class Origin:
    """Names and values of one kind."""

    title: str
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Page:
    """What stands on the page."""

    title: str
    subtitle: str
    version: str
    notices: Sequence[Notice]
    facts: Sequence[Fact]
    lead: str
    lead_meaning: str
    intervals: str
    ranking: TableView
    ranking_plot: Plot | None
    comparison: TableView | None
    groups: Sequence[TableView]
    more: Sequence[TableView]
    plots: Sequence[Plot]
    losses: Sequence[TableView]
    loss_lines: Sequence[str]
    reading: Sequence[str]
    origin: Sequence[Origin]


def build_page(results: Results) -> Page:
    """Everything that the page of a run says."""
    counts = results.manifest.get("counts") or {}
    metric, group = results.lead
    name = metric_name(metric)
    return Page(
        title=f"{results.title} results",
        subtitle=(
            f"{_plural(len(results.tested), 'system')} on "
            f"{_plural(int(counts.get('samples') or 0), 'sample')}, "
            f"{_plural(int(counts.get('units') or 0), 'unit')}. Profile {results.profile}"
            + (f" with {', '.join(results.corrections)}" if results.corrections else "")
            + f". Judge {', '.join(map(str, results.judges)) or 'none'}."
        ),
        version=str(results.manifest.get("omnijudge") or ""),
        notices=_notices(results),
        facts=_facts(results),
        lead=f"{name.label}, {group_name(group)}",
        lead_meaning=name.meaning,
        intervals=interval_sentence(results),
        ranking=ranking_view(results),
        ranking_plot=ranking_plot(results),
        comparison=comparison_view(results),
        groups=_tables(results, BLOCKS.get(results.benchmark) or _own_block(results)),
        more=_more(results),
        plots=_plots(results),
        losses=_loss_tables(results),
        loss_lines=_loss_lines(results),
        reading=reading(results),
        origin=_origin(results),
    )


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


# Top


def _notices(results: Results) -> list[Notice]:
    found = []
    reason = stopped(results.manifest)
    if reason:
        text = f"{reason}. The numbers are about what was done until then."
        found.append(Notice("Not complete:", text))
    if results.smoke:
        found.append(Notice("Smoke judge:", SMOKE_NOTE.partition(": ")[2] + "."))
    for sentence in (missing_sentence(results), import_sentence(results)):
        if sentence:
            head, _, text = sentence.partition(": ")
            found.append(Notice(f"{head}:", text))
    partial = [c for c in results.all_cells() if c.coverage is not None and c.coverage < 1]
    if partial:
        low = min(c.coverage for c in partial if c.coverage is not None)
        text = (
            f"some units have no verdict and are outside all sums; coverage goes down to "
            f"{percent(low)}. Bounds show what they could change."
        )
        found.append(Notice("Not all scored:", text))
    caution = warning_sentence(results.cells(*results.lead))
    if caution:
        found.append(Notice("Intervals:", caution))
    return found


def _facts(results: Results) -> list[Fact]:
    counts = results.manifest.get("counts") or {}
    answers = answers_by_status(results.manifest)
    asked = sum(answers.values())
    lost = answers["invalid"] + answers["error"] + answers["not asked"]
    facts = []
    best = next((r for r in results.ranking if r.place == 1 and r.cell is not None), None)
    if best is not None and best.cell is not None:
        c = best.cell
        span = (
            f" [{shown(c.metric, c.ci_low)}, {shown(c.metric, c.ci_high)}]"
            if c.ci_low is not None and c.ci_high is not None
            else ""
        )
        label = f"Highest {metric_name(c.metric).label}"
        if metric_name(c.metric).better is False:
            label = f"Lowest {metric_name(c.metric).label}"
        open_first = sum(1 for r in results.ranking if r.low == 1)
        detail = f"{shown(c.metric, c.value)}{span}"
        if open_first > 1:
            detail += f"; {open_first - 1} more cannot be told from the first"
        facts.append(Fact(label, best.system, detail))
    judge = results.judges[0] if results.judges else None
    if judge is not None:
        names = judge.engine if judge.smoke else judge.model
        if len(results.judges) > 1:
            names = f"{len(results.judges)} judges"
        detail = "smoke judge" if judge.smoke else judge.engine
        detail += f", prompts {judge.pack}" if judge.pack else ""
        facts.append(Fact("Judge", names, detail))
    if evidence := evidence_of(results):
        kinds, _, because = evidence.partition(", because ")
        facts.append(Fact("Evidence", kinds, because))
    listed = counts.get("samples_listed")
    unusable = int(counts.get("samples_unusable") or 0)
    facts.append(
        Fact(
            "Samples",
            f"{int(counts.get('samples') or 0):,}",
            f"{unusable:,} of {listed:,} listed are unusable" if unusable else "all usable",
        )
    )
    facts.append(
        Fact(
            "Questions",
            f"{int(counts.get('questions') or 0):,}",
            f"{int(counts.get('asked') or 0):,} requests, {int(counts.get('reused') or 0):,} "
            "answers reused",
        )
    )
    share = percent(1 - lost / asked) if asked else EMPTY
    facts.append(Fact("Usable answers", share, f"{lost:,} of {asked:,} lost"))
    return facts


# Middle


def _own_block(results: Results) -> tuple[Block, ...]:
    """For a benchmark without a table of its own: its metrics in their order."""
    columns = tuple(Column(m, g, f"{metric_name(m).label} {g}") for m, g in results.keys)
    return (Block("metrics", "Metrics", columns),)


def _tables(results: Results, blocks: Sequence[Block]) -> list[TableView]:
    views = (block_view(results, b) for b in blocks)
    return [v for v in views if v is not None]


def _more(results: Results) -> list[TableView]:
    found = _tables(results, MORE.get(results.benchmark, ()))
    if len(results.systems) <= FEW:
        found.append(every_metric_view(results))
    return found


def _plots(results: Results) -> list[Plot]:
    found = []
    if results.benchmark in TRADE_OFFS:
        found.append(trade_off_plot(results, TRADE_OFFS[results.benchmark]))
    if results.benchmark in STACKS:
        found.append(stack_plot(results, STACKS[results.benchmark]))
    if results.benchmark in DELAYS:
        found.append(delay_plot(results, DELAYS[results.benchmark]))
    return [p for p in found if p is not None]


# Bottom


def _loss_tables(results: Results) -> list[TableView]:
    manifest = results.manifest
    rows = [
        (x.what, x.count, "" if x.of is None else f"{x.of:,}", x.meaning) for x in losses(manifest)
    ]
    found = [plain_view("table-losses", "Lost", ("What", "Count", "Of", "Treated as"), rows)]
    stages = answers_by_stage(manifest)
    if stages:
        used = [s for s in next(iter(stages.values())) if any(c.get(s) for c in stages.values())]
        lines: list[tuple[str | int, ...]] = [
            (stage, *(counts.get(s, 0) for s in used)) for stage, counts in stages.items()
        ]
        found.append(plain_view("table-answers", "Answers by stage", ("Stage", *used), lines))
    lossy = _lossy_systems(results)
    if lossy:
        heads = ("System", "Missing outputs", "Invalid answers", "Errors", "Not asked")
        found.append(plain_view("table-systems", "Losses by system", heads, lossy))
    said = findings(manifest)
    if said:
        data = [
            (f.code, f.level, f.count, _some(f.systems) or "annotations", f.example) for f in said
        ]
        heads = ("Code", "Level", "Count", "Systems", "For example")
        found.append(plain_view("table-data", "What the data said", heads, data))
    return found


def _lossy_systems(results: Results) -> list[tuple[str | int, ...]]:
    answers = (results.manifest.get("counts") or {}).get("answers") or {}
    rows: list[tuple[str | int, ...]] = []
    for r in results.ranking:
        lost = dict.fromkeys(("invalid", "error", "not asked"), 0)
        for by_status in (answers.get(r.system) or {}).values():
            for status in lost:
                lost[status] += int(by_status.get(status, 0))
        row = (results.missing(r.system), *lost.values())
        if any(row):
            rows.append((r.system, *row))
    return rows


def _some(names: Sequence[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _loss_lines(results: Results) -> list[str]:
    errors = results.manifest.get("errors") or ()
    lines = [
        f"{e.get('count', 1):,} errors of the judge at stage {e.get('stage', '?')}: {e['reason']}"
        for e in errors
    ]
    if not findings(results.manifest):
        lines.append("Nothing was found wrong with annotations and outputs.")
    return lines


def _origin(results: Results) -> list[Origin]:
    manifest = results.manifest
    config = manifest.get("config") or {}
    found = []
    judges = manifest.get("judges") or {}
    settings = (manifest.get("inputs") or {}).get("judge") or {}
    for judge in results.judges:
        details = judges.get(judge.name) or {}
        pack = details.get("prompt_pack") or {}
        own = settings.get(judge.name) or {}
        pairs = [
            ("Engine", judge.engine + (" (smoke judge)" if judge.smoke else "")),
            ("Model", judge.model),
            ("Prompts", judge.pack),
            ("Prompts, digest", pack.get("digest")),
            ("Parsing", details.get("parsing")),
            ("Attempts", details.get("attempts")),
            ("Repeats", own.get("repeats")),
            ("Rationale", own.get("rationale")),
            ("Thinking", own.get("thinking")),
            ("Sampling", _flat(own.get("sampling"))),
            ("Engine options", _flat(own.get("engine_options"))),
        ]
        found.append(Origin(f"Judge {judge.name}", _pairs(pairs)))
    found.append(Origin("Scoring", _pairs((manifest.get("scoring") or {}).items())))
    statistics = config.get("statistics") or {}
    found.append(Origin("Statistics", _pairs(statistics.items())))
    tokens = manifest.get("tokens") or {}
    spent = [
        *((f"Tokens, {k}", f"{v:,}") for k, v in tokens.items() if v),
        ("Cost", manifest.get("cost") or None),
        *((f"Seconds, {k}", f"{v:.1f}") for k, v in (manifest.get("seconds") or {}).items()),
        *(manifest.get("hardware") or {}).items(),
    ]
    found.append(Origin("Effort", _pairs(spent)))
    versions = [("omnijudge", manifest.get("omnijudge")), *(manifest.get("versions") or {}).items()]
    found.append(Origin("Versions", _pairs(versions)))
    inputs = manifest.get("inputs") or {}
    digests = [*(inputs.get("data") or {}).items()]
    if len(results.systems) <= FEW:
        digests += list((inputs.get("systems") or {}).items())
    found.append(Origin("Inputs, digests", _pairs(digests)))
    return [o for o in found if o.pairs]


def _pairs(items: Any) -> tuple[tuple[str, str], ...]:
    return tuple((str(k).replace("_", " "), _said(v)) for k, v in items if v not in (None, "", []))


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return _flat(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(_said, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def _flat(value: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{k} {_said(v)}" for k, v in (value or {}).items())
