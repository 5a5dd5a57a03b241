"""Slot, pair and sample scores (OmniInteract rules 11 to 16 and 20)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnijudge import tables
from omnijudge.benchmarks.omniinteract.anchor import find_anchor, find_anchor_normalised
from omnijudge.benchmarks.omniinteract.matching import slot_bounds
from omnijudge.benchmarks.omniinteract.offline import KIND as OFFLINE
from omnijudge.benchmarks.omniinteract.questions import STAGES
from omnijudge.benchmarks.omniinteract.schemas import SCORE_SCHEMA
from omnijudge.benchmarks.omniinteract.speech import MatchedSpeech, SlotSpeech, SpokenChunk
from omnijudge.values import clamp

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Partition
    from omnijudge.benchmarks.omniinteract.options import Options

UTTERANCE_GAP = 1.0
"""Seconds between unmatched chunks that belong to one utterance (a named repair)."""


def decay(t: float, peak: float, end: float, alpha: float, gamma: float) -> float:
    """Time decay (rule 2.6): 1 up to ``peak``, 0 from ``end`` on. Times in seconds."""
    if t <= peak:
        return 1.0
    if end <= peak or t >= end:
        return 0.0
    # Python's float power, not NumPy's: the last bit decides equality with published results.
    return clamp(1.0 - alpha * float(((t - peak) / (end - peak)) ** gamma))


class Verdict(NamedTuple):
    """A judge's verdict on one stage of one slot."""

    score: float
    flag: str | None = None
    trigger_phrase: str = ""
    spoiler: bool | None = None
    hallucination: bool | None = None


class Verdicts:
    """The verdicts of a partition by (sample, unit, stage)."""

    def __init__(self, stages: pa.Table, verdicts: pa.Table | None) -> None:
        self._found: dict[tuple[str, str, str], Verdict] = {}
        if verdicts is None:
            return
        usable = pc.fill_null(pc.is_in(verdicts["status"], pa.array(["ok", "repaired"])), False)
        rows = pc.indices_nonzero(usable)
        keys = stages.select(["sample_id", "unit_id", "stage"]).take(rows)
        taken = verdicts.take(rows)
        names = ("score", "flag", "trigger_phrase", "spoiler", "hallucination")
        columns = [taken[n].to_pylist() for n in names]
        for sample, unit, stage, score, flag, phrase, spoiler, hallucination in zip(
            *(keys[n].to_pylist() for n in keys.column_names), *columns, strict=True
        ):
            self._found[sample, unit, stage] = Verdict(
                score, flag, phrase or "", spoiler, hallucination
            )

    def get(self, sample: str, unit: str, stage: str) -> Verdict | None:
        """The verdict, or None where there is none that counts."""
        return self._found.get((sample, unit, stage))

    def of_unit(self, sample: str, unit: str) -> dict[str, Verdict]:
        """The verdicts of a unit by stage."""
        found = ((stage, self.get(sample, unit, stage)) for stage in STAGES)
        return {stage: verdict for stage, verdict in found if verdict is not None}


class SlotFacts(NamedTuple):
    """What scoring needs to know of a slot, times in seconds."""

    scene_type: str
    t_start: float
    t_a: float
    t_end: float
    boundary: str
    interrupted: bool
    step: int | None


def weights(slot: SlotFacts, options: Options) -> tuple[float, float]:
    """Weights of the early and the core stage (rule 11)."""
    later_step = slot.scene_type == "1QnA" and slot.step is not None and slot.step > 1
    w_ack = 0.0 if later_step else options.w_ack
    return w_ack, 1.0 - w_ack if options.core_weight is None else options.core_weight


def score_early(
    slot: SlotFacts, speech: SlotSpeech, verdict: Verdict | None, options: Options
) -> dict[str, Any]:
    """Early score (rule 11)."""
    if not speech.early:
        return {"early_category": "none", "tp_ack": 0.0, "fp_early": 0}
    w_ack, _ = weights(slot, options)
    t_ack = decay(
        speech.early[0].start, slot.t_start, slot.t_a, options.decay_alpha, options.decay_gamma
    )
    row: dict[str, Any] = {"t_ack": t_ack, "w_ack": w_ack}
    if verdict is None:
        return row
    row |= {"early_category": verdict.flag, "s_ack": verdict.score}
    if verdict.flag == "hallucination":
        return row | {"s_ack": 0.0, "tp_ack": 0.0, "fp_early": 1}
    return row | {"tp_ack": t_ack * verdict.score * w_ack, "fp_early": 0}


def score_core(
    slot: SlotFacts, speech: SlotSpeech, verdict: Verdict | None, options: Options
) -> dict[str, Any]:
    """Core score (rule 12)."""
    parts = speech.core
    if slot.interrupted or not parts:
        return {"tp_core": 0.0, "fp_low": 0}
    t_a, t_end = slot.t_a, slot.t_end
    fallback = t_a if parts[0].part != "whole" else max(parts[0].start, t_a)
    _, w_core = weights(slot, options)
    row: dict[str, Any] = {"fallback": fallback, "w_core": w_core}
    if verdict is None:
        return row
    anchor, source = None, None  # nothing is looked for in an answer worth nothing
    if verdict.score > 0:
        anchor, source = _anchor(verdict.trigger_phrase, speech, options)
    t_used = max(fallback if anchor is None else anchor, t_a)
    if t_end <= t_a and options.corrects("degenerate_window_zero"):
        t_core = 0.0
    else:
        t_core = decay(t_used, t_a, t_end, options.decay_alpha, options.decay_gamma)
    low = verdict.score < options.core_quality_threshold
    credited = not (low and options.threshold_zeroes_core)
    tp_core = t_core * verdict.score * w_core if credited else 0.0
    row |= {
        "s_core": verdict.score,
        "t_core": t_core,
        "tp_core": tp_core,
        "fp_low": int(low),
        "anchor": anchor,
        "anchor_source": source,
        "t_used": t_used,
        "spoiler": verdict.spoiler,
    }
    if tp_core > 0:
        row["response_delay"] = t_used - t_a
    return row


def _anchor(phrase: str, speech: SlotSpeech, options: Options) -> tuple[float | None, str]:
    if options.corrects("anchor_normalised"):
        anchor, from_words = find_anchor_normalised(phrase, speech.core, speech.words)
        if anchor is not None:
            return anchor, "phrase" if from_words else "chunk_of_phrase"
        return None, "first_chunk"
    anchor = find_anchor(phrase, speech.core, speech.words)
    return anchor, "first_chunk" if anchor is None else "phrase"


def spill_seconds(slot: SlotFacts, speech: SlotSpeech, options: Options) -> float:
    """Seconds of speech beyond a hard boundary (rule 13)."""
    hard = slot.interrupted or slot.boundary == "hard"
    if not (hard and speech.chunks):
        return 0.0
    overrun = max(0.0, max(c.end for c in speech.chunks) - slot.t_end)
    return overrun if overrun > options.spill_tolerance else 0.0


def score_partial(
    slot: SlotFacts, speech: SlotSpeech, verdict: Verdict | None, options: Options
) -> dict[str, Any]:
    """Interruption diagnosis (rule 14); never changes TP, FP, FN of the slot."""
    if not (slot.interrupted and speech.chunks and options.interrupted_output_eval):
        return {"paq_judged": False} if slot.interrupted else {}
    if verdict is None:
        return {"paq_judged": False}
    return {
        "paq": verdict.score,
        "paq_judged": True,
        "partial_low": verdict.score < options.partial_quality_threshold,
        "partial_hallucination": bool(verdict.hallucination),
    }


def stages_needed(slot: SlotFacts, speech: SlotSpeech, options: Options) -> list[str]:
    """Stages of a slot that call for a verdict, in asking order (rule 9)."""
    needed = []
    if speech.early:
        needed.append("early")
    if speech.core and not slot.interrupted:
        needed.append("core")
    if slot.interrupted and speech.chunks and options.interrupted_output_eval:
        needed.append("partial")
    return needed


UNSCORED = ("tp", "fp", "fn", "tp_ack", "tp_core", "fp_early", "fp_low")
"""Columns that are null in a slot whose verdict is missing."""


def score_slot(
    slot: SlotFacts, speech: SlotSpeech, verdicts: dict[str, Verdict], options: Options
) -> dict[str, Any]:
    """One slot's row without its keys (rules 11 to 15)."""
    needed = stages_needed(slot, speech, options)
    row: dict[str, Any] = {
        "judged": all(s in verdicts for s in needed) if needed else None,
        "has_output": bool(speech.chunks),
    }
    row |= score_early(slot, speech, verdicts.get("early"), options)
    row |= score_core(slot, speech, verdicts.get("core"), options)
    row |= score_partial(slot, speech, verdicts.get("partial"), options)
    spill = spill_seconds(slot, speech, options)
    row |= {"spill_seconds": spill, "fp_spill": int(spill > 0)}
    if row["judged"] is False:
        return row | dict.fromkeys(UNSCORED)
    row["tp"] = clamp(row["tp_ack"] + row["tp_core"])
    row["fp"] = float(row["fp_early"] + row["fp_low"] + row["fp_spill"])
    row["fn"] = 0.0 if slot.interrupted else float(row["tp_core"] <= 0)
    return row


def score_pair(outer: dict[str, Any], inner: dict[str, Any], options: Options) -> dict[str, Any]:
    """One nested pair (rule 20); unscored where one of its slots is."""
    states = (outer["judged"], inner["judged"])
    judged = False if False in states else (True if True in states else None)
    if judged is False:
        return {"judged": False}
    a, b = _pair_value(outer, options), _pair_value(inner, options)
    row = {"judged": judged, "missed_outer": int(a <= 0), "missed_inner": int(b <= 0)}
    if a > 0 and b > 0:
        late, early = (r["t_used"] if r["anchor"] is None else r["anchor"] for r in (outer, inner))
        in_order = early <= late
        return row | {
            "nccs": math.sqrt(a * b) if in_order else 0.0,
            "order_error": int(not in_order),
        }
    return row | {"nccs": 0.0, "order_error": 0}


def _pair_value(row: dict[str, Any], options: Options) -> float:
    if options.nccs_from == "tp_core":
        return float(row["tp_core"])
    return float((row.get("s_core") or 0.0) * (row.get("t_core") or 0.0))


def unmatched_count(chunks: Sequence[SpokenChunk], options: Options) -> int:
    """Chunks that fit no slot (rule 16); with the repair, utterances."""
    if not options.corrects("unmatched_per_utterance"):
        return len(chunks)
    utterances, last_end = 0, -math.inf
    for chunk in chunks:
        if chunk.start - last_end >= UTTERANCE_GAP:
            utterances += 1
        last_end = max(last_end, chunk.end)
    return utterances


def category(scene_type: str, question_type: str | None) -> str:
    """Category of a slot by its own type (rule 18 takes differences of sums instead)."""
    if scene_type == "nested":
        return "nested"
    if scene_type == "1QnA":
        return "1qna"
    return question_type if question_type in ("realtime", "proactive") else "other"


def score_offline(answer: str, verdict: Verdict | None) -> dict[str, Any]:
    """An offline answer (rule 21): the judge's score alone; a blank one earns 0 unasked."""
    row: dict[str, Any] = {"has_output": bool(answer)}
    if not answer:
        return row | {"judged": None, "s_core": 0.0}
    return row | {"judged": verdict is not None, "s_core": verdict.score if verdict else None}


CARRIED = (
    "sample_id", "unit_id", "unit_kind", "video_id", "scene_type", "question_type", "role",
    "is_interrupted", "is_math",
)  # fmt: skip
"""Columns of the units that stand in the scores as they are."""
OWN = tuple(n for n in SCORE_SCHEMA.names if n not in (*CARRIED, "system", "missing_output"))


def score(part: Partition, options: Options) -> pa.Table:
    """Score rows of a partition, one per unit of the samples that count for the system."""
    units = part.units
    state = dict(
        zip(part.outputs["sample_id"].to_pylist(), part.outputs["state"].to_pylist(), strict=True)
    )
    absent = {s for s, found in state.items() if found in ("missing", "unreadable")}
    left_out = {s for s, found in state.items() if found == "not_evaluated"}
    if options.profile == "published":
        left_out |= absent
    said = MatchedSpeech(part, options)
    verdicts = Verdicts(part.stages, part.verdicts)
    names = ("sample_id", "unit_id", "unit_kind", "question_type", "role", "pair_index")
    columns = [units[n].to_pylist() for n in names]
    slots = _slot_facts(units, options)
    kept: list[int] = []
    rows: list[dict[str, Any]] = []
    pairs: dict[tuple[str, int], dict[str, dict[str, Any]]] = {}
    for row, (sample, unit, kind, question_type, role, pair) in enumerate(
        zip(*columns, strict=True)
    ):
        if sample in left_out:
            continue
        if kind == "slot":
            slot = slots[row]
            speech = said.slot(sample, unit, slot.t_a)
            scored = score_slot(slot, speech, verdicts.of_unit(sample, unit), options)
            scored["category"] = category(slot.scene_type, question_type)
            if role is not None:
                pairs.setdefault((sample, pair), {})[role] = scored
        elif kind == "pair":
            outer, inner = pairs[sample, pair]["outer"], pairs[sample, pair]["inner"]
            scored = score_pair({"anchor": None, **outer}, {"anchor": None, **inner}, options)
        elif kind == OFFLINE:
            answer = "".join(c.text for c in said.chunks(sample, unit)).strip()
            scored = score_offline(answer, verdicts.get(sample, unit, "core"))
        else:
            unmatched = unmatched_count(said.unmatched.get(sample, ()), options)
            fp = float(unmatched) if options.unmatched_fp else 0.0
            scored = {"unmatched": unmatched, "fp": fp}
        kept.append(row)
        rows.append(scored)
    carried = units.select(CARRIED).take(pa.array(kept, pa.int64()))
    found: dict[str, object] = {n: carried[n] for n in CARRIED}
    found["system"] = pa.repeat(part.system, len(rows))
    found["missing_output"] = [s in absent for s in carried["sample_id"].to_pylist()]
    found |= {n: [r.get(n) for r in rows] for n in OWN}
    return tables.make(SCORE_SCHEMA, found)


def _slot_facts(units: pa.Table, options: Options) -> dict[int, SlotFacts]:
    """Slots by their row of the unit table."""
    bounds = slot_bounds(units, options)
    names = ("scene_type", "boundary", "is_interrupted", "step_index")
    taken = units.select(names).take(pa.array(bounds.rows, pa.int64()))
    scene, boundary, interrupted, step = (taken[n].to_pylist() for n in names)
    facts = map(
        SlotFacts, scene, bounds.t_start, bounds.t_a, bounds.t_end, boundary, interrupted, step
    )
    return dict(zip(bounds.rows, facts, strict=True))


def fill_unscored(scores: pa.Table, best: bool) -> pa.Table:
    """The scores with every unscored unit at its best or its worst (for bounds)."""
    unscored = pc.fill_null(pc.equal(scores["judged"], False), False)
    if not pc.any(unscored).as_py():
        return scores
    mask = np.asarray(unscored.to_numpy(zero_copy_only=False), bool)
    slots, pairs, offline = (
        mask & np.asarray(pc.equal(scores["unit_kind"], kind).to_numpy(zero_copy_only=False))
        for kind in ("slot", "pair", OFFLINE)
    )
    interrupted = np.asarray(
        pc.fill_null(scores["is_interrupted"], False).to_numpy(zero_copy_only=False), bool
    )
    values: list[tuple[str, np.ndarray[Any, Any], float]] = [
        ("tp", slots, float(best)),
        ("tp_core", slots, float(best)),
        ("fp", slots, float(not best)),
        ("fn", slots & ~interrupted, float(not best)),
        ("fn", slots & interrupted, 0.0),
        ("s_core", slots | offline, float(best)),
        ("t_core", slots, float(best)),
        ("paq", slots & interrupted, float(best)),
        ("paq_judged", slots & interrupted, 1.0),
        ("nccs", pairs, float(best)),
        ("missed_outer", pairs, float(not best)),
        ("missed_inner", pairs, float(not best)),
        ("order_error", pairs, 0.0),
        ("judged", mask, 1.0),
    ]
    table = scores
    for name, where, value in values:
        index = table.schema.get_field_index(name)
        kind = table.schema.field(index).type
        filled = pc.if_else(pa.array(where), pa.scalar(value).cast(kind), table[name])
        table = table.set_column(index, table.schema.field(index), filled)
    return table
