"""Published results against their inputs as they are now: what is cut short, stale, or odd.

Answers are taken over only where the judge saw the text that the transcript gives now; so an
answer never counts for other words than those it was given for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from omnijudge import tables
from omnijudge.benchmarks.omniinteract import matching, questions, scoring
from omnijudge.benchmarks.omniinteract.answers import parse
from omnijudge.benchmarks.omniinteract.options import Options
from omnijudge.benchmarks.omniinteract.published.files import (
    PARSE_NAMES,
    JudgedStage,
    Spoken,
    StoredResult,
    StoredSlot,
)
from omnijudge.benchmarks.omniinteract.published.settings import (
    TAIL,
    Settings,
    differences,
    most_common,
    oddities,
    settings_of,
    with_tail,
)
from omnijudge.benchmarks.omniinteract.schemas import ANSWER_SCHEMA

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Partition

TRUNCATED, STALE, OTHER_OPTIONS = "truncated", "stale", "other_options"
NOT_LISTED, NO_RESULT, DIFFERS = "not_listed", "no_result", "differs"
NO_TRANSCRIPT, NO_ANNOTATION = "no_transcript", "no_annotation"
SAME_TIME = 1e-6
SAME_VALUE = 1e-9


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about one result.

    Attributes:
        kind: ``truncated``, ``stale``, ``other_options``, ``not_listed``, ``no_result``,
            ``no_transcript``, ``no_annotation`` or ``differs``.
        detail: what was found, in words.
    """

    kind: str
    sample_id: str
    detail: str


@dataclass
class Checked:
    """What came of the comparison.

    Attributes:
        settings: options of most results.
        answers: rows for a replay: the answers that can be taken over.
        findings: everything worth knowing, by sample.
        parsed: per stage how the published parser read the answers.
        parsed_otherwise: answers that our published parser reads in another way.
        values: scored values that were computed anew and compared.
        outdated: answers that were given to other words than those of now.
    """

    settings: Settings
    answers: list[dict[str, Any]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    parsed: dict[str, Counter[str]] = field(default_factory=dict)
    parsed_otherwise: int = 0
    values: int = 0
    outdated: int = 0

    @property
    def scoring(self) -> dict[str, Any]:
        """Options for a run."""
        return {"profile": "published", **dict(self.settings)}


def check(results: Mapping[str, StoredResult], part: Partition) -> Checked:
    """Compares results with a partition that holds all samples of the system, not matched yet."""
    usable = _usable(part)
    known = {s: r for s, r in results.items() if s in usable}
    open_slots = _open_ended(part.units)
    checked = Checked(())
    settings: dict[str, Settings] = {}
    for sample_id, result in known.items():
        try:
            settings[sample_id] = settings_of(result, open_slots.get(sample_id, ()))
        except ValueError:
            message = "its config block holds values that cannot be; it is read as the others"
            checked.findings.append(Finding(OTHER_OPTIONS, sample_id, message))
    checked.settings = most_common(settings)
    tail = dict(checked.settings)[TAIL]
    groups: dict[Settings, list[str]] = {}
    for sample_id, result in known.items():
        own = with_tail(settings.get(sample_id, checked.settings), tail)
        groups.setdefault(own, []).append(sample_id)
        said = [*differences(own, checked.settings), *oddities(result.config)]
        if said:
            checked.findings.append(Finding(OTHER_OPTIONS, sample_id, "; ".join(said)))
    for own, samples in groups.items():
        inputs = _Matched(part, samples, own)
        for sample_id in samples:
            checked.findings += inputs.compare(results[sample_id])
        _recompute(inputs, results, checked)
    usual = _Matched(part, sorted(known), checked.settings)
    for key, stage in usual.asked.items():
        answer = _answer_to(results[key[0]], key, usual)
        if answer is not None:
            checked.answers.append(_row(part.system, key, stage, results[key[0]].model, answer))
    _count_parsing(results.values(), checked)
    return checked


def _usable(part: Partition) -> set[str]:
    states = part.outputs.select(["sample_id", "state"]).to_pylist()
    return {s["sample_id"] for s in states if s["state"] == "ok"}


def _open_ended(units: pa.Table) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for u in units.filter(pc.fill_null(units["open_ended"], False)).to_pylist():
        found.setdefault(u["sample_id"], []).append(u["unit_id"])
    return found


Key = tuple[str, str, str]
"""(sample_id, unit_id, stage)."""


class _Matched:
    """Some samples, matched under some options."""

    def __init__(self, part: Partition, samples: Sequence[str], settings: Settings) -> None:
        values = {"profile": "published", **dict(settings)}
        self.options = Options.model_validate(values).resolved()
        wanted = pa.array(samples, pa.string())

        def own(table: pa.Table) -> pa.Table:
            return table.filter(pc.is_in(table["sample_id"], wanted))

        part = replace(
            part, units=own(part.units), outputs=own(part.outputs), chunks=own(part.chunks)
        )
        chunks, stages = matching.match(part, self.options)
        self.part = replace(part, chunks=chunks, stages=stages)
        self.rows = questions.pending(self.part, self.options)
        self.keys = _keys(stages)
        texts = stages["text"].to_pylist()
        hashes = stages["text_hash"].to_pylist()
        self.asked = {
            self.keys[r]: {"text": texts[r], "text_hash": hashes[r]} for r in self.rows.tolist()
        }
        self.bounds: dict[tuple[str, str], tuple[float, float, float]] = {}
        self.units: dict[tuple[str, str], dict[str, Any]] = {}
        found = matching.slot_bounds(part.units, self.options)
        units = part.units.select(["sample_id", "unit_id", "question_text", "target_answer"])
        for i, unit in enumerate(units.take(pa.array(found.rows, pa.int64())).to_pylist()):
            key = (unit["sample_id"], unit["unit_id"])
            self.bounds[key] = (found.t_start[i], found.t_a[i], found.t_end[i])
            self.units[key] = unit
        self.slots: dict[str, list[str]] = {}
        for sample_id, unit_id in self.units:
            self.slots.setdefault(sample_id, []).append(unit_id)
        self.chunks: dict[tuple[str, str | None], list[Spoken]] = {}
        for c in chunks.select(["sample_id", "unit_id", "start", "end", "text"]).to_pylist():
            spoken = (c["start"], c["end"], c["text"])
            self.chunks.setdefault((c["sample_id"], c["unit_id"]), []).append(spoken)

    def compare(self, result: StoredResult) -> list[Finding]:
        """What is cut short or stale about a result."""
        sample_id = result.sample_id
        short, stale = [], []
        stored = {s.slot_id: s for s in result.slots}
        now = self.slots.get(sample_id, [])
        if lacking := [s for s in now if s not in stored]:
            cause = f" ({result.error})" if result.error else ""
            short.append(f"{len(now) - len(lacking)} of {len(now)} slots{cause}")
        if gone := [s for s in stored if s not in now]:
            stale.append(f"the annotation has no slot {', '.join(gone)} now")
        for slot_id in now:
            if slot_id in stored:
                stale += self._changed(sample_id, stored[slot_id])
        for key in self.asked:
            if key[0] == sample_id and key[1] in stored:
                stage = stored[key[1]].stages.get(key[2])
                if stage is None or stage.raw is None:
                    short.append(f"slot {key[1]} has no answer of the {key[2]} judge")
        unmatched = self.chunks.get((sample_id, None), [])
        if result.unmatched is not None and not short and not _same(result.unmatched, unmatched):
            stale.append("other chunks fit no slot now")
        found = []
        if short:
            found.append(Finding(TRUNCATED, sample_id, _said(short)))
        if stale:
            found.append(Finding(STALE, sample_id, _said(stale)))
        return found

    def _changed(self, sample_id: str, slot: StoredSlot) -> list[str]:
        key = (sample_id, slot.slot_id)
        times = zip(self.bounds[key], (slot.t_start, slot.t_a, slot.t_end), strict=True)
        if any(abs(a - b) > SAME_TIME for a, b in times):
            return [f"slot {slot.slot_id} has other times now"]
        if not self.same_question(key, slot):
            return [f"slot {slot.slot_id} has another question or target answer now"]
        if slot.chunks is not None and not _same(slot.chunks, self.chunks.get(key, [])):
            return [f"slot {slot.slot_id}: the transcript says something else now"]
        for name, stage in slot.stages.items():
            text = self.asked.get((*key, name), {}).get("text")
            if stage.raw is not None and text != stage.text:
                return [f"slot {slot.slot_id}: the {name} judge read another text"]
        return []

    def same_question(self, key: tuple[str, str], slot: StoredSlot) -> bool:
        """Whether a slot is about the same question and answer now."""
        unit = self.units[key]
        return (slot.question.strip(), slot.target_answer.strip()) == (
            unit["question_text"].strip(),
            unit["target_answer"].strip(),
        )


def _keys(stages: pa.Table) -> list[Key]:
    names = ("sample_id", "unit_id", "stage")
    return list(zip(*(stages[n].to_pylist() for n in names), strict=True))


def _same(stored: Sequence[Spoken], now: Sequence[Spoken]) -> bool:
    if len(stored) != len(now):
        return False
    return all(
        abs(a[0] - b[0]) <= SAME_TIME and abs(a[1] - b[1]) <= SAME_TIME and a[2] == b[2]
        for a, b in zip(sorted(stored), sorted(now), strict=True)
    )


def _said(reasons: Sequence[str], most: int = 3) -> str:
    more = f"; and {len(reasons) - most} more" if len(reasons) > most else ""
    return "; ".join(reasons[:most]) + more


def _answer_to(result: StoredResult, key: Key, inputs: _Matched) -> JudgedStage | None:
    """The answer that was given to just this text, if there is one."""
    slot = next((s for s in result.slots if s.slot_id == key[1]), None)
    stage = None if slot is None else slot.stages.get(key[2])
    if slot is None or stage is None or stage.raw is None:
        return None
    same = stage.text == inputs.asked[key]["text"] and inputs.same_question(key[:2], slot)
    return stage if same else None


def _row(
    system: str, key: Key, stage: Mapping[str, str], model: str, answer: JudgedStage
) -> dict[str, Any]:
    row = {
        "system": system,
        "sample_id": key[0],
        "unit_id": key[1],
        "item": None,
        "stage": key[2],
        "attempt": 1,
        "raw": answer.raw,
        "text_hash": stage["text_hash"],
    }
    return {**row, "model": model} if model else row


def _recompute(inputs: _Matched, results: Mapping[str, StoredResult], checked: Checked) -> None:
    """Scores the stored answers under the options they were scored with, and compares."""
    stages = inputs.part.stages
    columns: dict[str, list[Any]] = {n: [None] * stages.num_rows for n in ANSWER_SCHEMA.names}
    status: list[str | None] = [None] * stages.num_rows
    phrases: dict[tuple[str, str], str] = {}
    for row in inputs.rows.tolist():
        key = inputs.keys[row]
        answer = _answer_to(results[key[0]], key, inputs)
        if answer is None or answer.raw is None:
            checked.outdated += _has_answer(results[key[0]], key)
            continue
        read = parse(key[2], answer.raw, "published")
        status[row] = read.status
        for name, value in read.fields.items():
            columns[name][row] = value
        if key[2] == "core":
            phrases[key[:2]] = read.fields["trigger_phrase"]
        if answer.parse is not None and PARSE_NAMES.get(answer.parse) != read.fields["parse"]:
            checked.parsed_otherwise += 1
    schema = pa.schema([pa.field("status", pa.string()), *ANSWER_SCHEMA])
    verdicts = tables.make(schema, {"status": status, **columns})
    scores = scoring.score(replace(inputs.part, verdicts=verdicts), inputs.options)
    slots = scores.filter(pc.equal(scores["unit_kind"], "slot")).to_pylist()
    stale = {f.sample_id for f in checked.findings if f.kind == STALE}
    differing: dict[str, list[str]] = {}
    for score in slots:
        key = (score["sample_id"], score["unit_id"])
        if score["judged"] is False or key[0] in stale:
            continue
        slot = next((s for s in results[key[0]].slots if s.slot_id == key[1]), None)
        if slot is None:
            continue
        computed = {**score, "trigger_phrase": phrases.get(key)}
        for name, value in slot.values.items():
            if value is None and name != "anchor":
                continue
            checked.values += 1
            if not _equal(value, computed[name]):
                said = f"slot {key[1]}: {name} is {value}, its answers give {computed[name]}"
                differing.setdefault(key[0], []).append(said)
    for sample_id, reasons in differing.items():
        checked.findings.append(Finding(DIFFERS, sample_id, _said(reasons)))


def _has_answer(result: StoredResult, key: Key) -> bool:
    slot = next((s for s in result.slots if s.slot_id == key[1]), None)
    stage = None if slot is None else slot.stages.get(key[2])
    return stage is not None and stage.raw is not None


def _equal(stored: Any, computed: Any) -> bool:
    if isinstance(stored, str) or isinstance(computed, str) or None in (stored, computed):
        return bool(stored == computed)
    return abs(float(stored) - float(computed)) <= SAME_VALUE


def _count_parsing(results: Iterable[StoredResult], checked: Checked) -> None:
    for result in results:
        for slot in result.slots:
            for name, stage in slot.stages.items():
                if stage.raw is not None:
                    said = PARSE_NAMES.get(stage.parse or "", stage.parse or "unknown")
                    checked.parsed.setdefault(name, Counter())[said] += 1
