"""Chunks to slots, and what each stage gets to read (OmniInteract rules 6 to 8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnijudge import tables
from omnijudge.benchmarks.omniinteract.offline import offline_rows
from omnijudge.benchmarks.omniinteract.schemas import STAGE_SCHEMA
from omnijudge.benchmarks.omniinteract.slots import end_of_last
from omnijudge.benchmarks.omniinteract.speech import Part, Speech, SpokenChunk, part_columns
from omnijudge.values import has_cjk
from omnijudge_kernels.choose import assign

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Partition
    from omnijudge.benchmarks.omniinteract.options import Options


@dataclass(frozen=True, slots=True)
class SlotBounds:
    """What matching and scoring need of the slots of a partition, sample by sample.

    ``rows`` are rows of the unit table; ``offsets`` bounds the slots of each sample.
    """

    samples: list[str]
    offsets: np.ndarray[Any, np.dtype[np.int64]]
    rows: list[int]
    t_start: list[float]
    t_a: list[float]
    t_end: list[float]


def slot_bounds(units: pa.Table, options: Options) -> SlotBounds:
    """Bounds of all slots; ends that nothing follows are made anew from the tail."""
    kinds = units["unit_kind"].to_pylist()
    ids = units["sample_id"].to_pylist()
    rows = [i for i, kind in enumerate(kinds) if kind == "slot"]
    taken = units.take(pa.array(rows, pa.int64()))
    t_start, t_a = taken["t_start"].to_pylist(), taken["t_a"].to_pylist()
    t_end = [
        end_of_last(s, a, options.last_slot_tail_sec) if last else e
        for s, a, e, last in zip(
            t_start, t_a, taken["t_end"].to_pylist(), taken["open_ended"].to_pylist(), strict=True
        )
    ]
    # A sample may have no slot at all; its chunks are unmatched then.
    samples = list(dict.fromkeys(ids))
    counts = Counter(ids[i] for i in rows)
    offsets = np.cumsum([0, *(counts[s] for s in samples)], dtype=np.int64)
    return SlotBounds(samples, offsets, rows, t_start, t_a, t_end)


@dataclass(frozen=True, slots=True)
class Assignment:
    """Chunk rows per slot, and those that fit none, per sample.

    ``of_slot[i]`` belongs to the i-th slot of the bounds.
    """

    of_slot: list[list[int]]
    unmatched: dict[str, list[int]]
    slot_of_chunk: np.ndarray[Any, np.dtype[np.int64]]


def assign_chunks(bounds: SlotBounds, speech: Speech, options: Options) -> Assignment:
    """Rule 6: half-open windows; the latest start wins, then the larger slot id."""
    number = {s: i for i, s in enumerate(bounds.samples)}
    owners = np.array([number[s] for s in speech.sample_id], np.int64)
    counts = np.bincount(owners, minlength=len(bounds.samples))
    chunk_offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    # Chunks stand in block order of the samples; units in their own: bring them together.
    order = np.argsort(owners, kind="stable")
    found = assign(
        speech.start[order],
        chunk_offsets,
        np.array(bounds.t_start, np.float64),
        np.array(bounds.t_end, np.float64),
        bounds.offsets,
    )
    slot = np.full(len(owners), -1, np.int64)
    slot[order] = np.where(found >= 0, found + bounds.offsets[owners[order]], -1)
    ignore_blank = options.corrects("blank_chunks_ignored")
    of_slot: list[list[int]] = [[] for _ in bounds.rows]
    unmatched: dict[str, list[int]] = {}
    for row, s in enumerate(slot.tolist()):
        if ignore_blank and not speech.chunks[row].text.strip():
            slot[row] = -1
        elif s >= 0:
            of_slot[s].append(row)
        else:
            unmatched.setdefault(speech.sample_id[row], []).append(row)
    return Assignment(of_slot, unmatched, slot)


def join_words(words: Sequence[str]) -> str:
    """Words to text: without blanks where the text holds Chinese characters."""
    joined = "".join(words)
    return joined if has_cjk(joined) else " ".join(words)


def split(
    chunk: SpokenChunk, t_a: float, t_end: float, speech: Speech, by_time: bool
) -> tuple[Part | None, Part | None]:
    """Early and core part of a chunk (rule 7)."""
    whole = Part(chunk.chunk_id, "whole", chunk.start, chunk.end, chunk.end > t_end, chunk.text)
    if not chunk.start < t_a:
        return None, whole
    if not t_a < chunk.end:
        return whole, None
    spoken = speech.words(chunk.row)
    if by_time and chunk.text.strip() and not any(word for *_, word in spoken):
        return _split_by_time(chunk, t_a, t_end)
    if not spoken:
        return whole, None
    parts: list[Part | None] = []
    for name in ("early", "core"):
        words = [w for w in spoken if (w[0] < t_a) == (name == "early")]
        text = join_words([word for *_, word in words if word]).strip()
        if not text:
            parts.append(None)
            continue
        start, end = words[0][0], words[-1][1]
        parts.append(Part(chunk.chunk_id, name, start, end, end > t_end, text))
    if parts[0] is None and parts[1] is None:
        return whole, None
    return parts[0], parts[1]


def _split_by_time(chunk: SpokenChunk, t_a: float, t_end: float) -> tuple[Part | None, Part | None]:
    """Repair ``crossing_without_words_split``: the text is cut in proportion to time."""
    cut = round(len(chunk.text) * (t_a - chunk.start) / (chunk.end - chunk.start))
    if not has_cjk(chunk.text):
        # Never through a word: back to the blank before it.
        cut = chunk.text.rfind(" ", 0, cut + 1) if 0 < cut < len(chunk.text) else cut
        cut = max(cut, 0)
    early, core = chunk.text[:cut].strip(), chunk.text[cut:].strip()
    return (
        Part(chunk.chunk_id, "early", chunk.start, t_a, t_a > t_end, early) if early else None,
        Part(chunk.chunk_id, "core", t_a, chunk.end, chunk.end > t_end, core) if core else None,
    )


def early_and_core(
    chunks: Sequence[SpokenChunk], t_a: float, t_end: float, speech: Speech, by_time: bool
) -> tuple[list[Part], list[Part]]:
    """Early and core parts of the chunks of one slot, each in order of time."""
    early: list[Part] = []
    core: list[Part] = []
    for chunk in chunks:
        before, after = split(chunk, t_a, t_end, speech, by_time)
        if before is not None:
            early.append(before)
        if after is not None:
            core.append(after)
    early.sort(key=_times)
    core.sort(key=_times)
    return early, core


def _times(part: Part) -> tuple[float, float]:
    return part.start, part.end


def stage_text(parts: Sequence[Part]) -> str:
    """Texts of the parts joined (rule 8)."""
    return "".join(p.text for p in parts).strip()


def stage_context(chunks: Sequence[SpokenChunk], parts: Sequence[Part]) -> str:
    """Whole texts of the chunks that contribute to a stage (rule 8)."""
    ids = {p.chunk_id for p in parts}
    context = "".join(c.text.strip() for c in chunks if c.chunk_id in ids).strip()
    if context:
        return context
    whole = {c.chunk_id: c.text for c in chunks}
    return "".join(whole[p.chunk_id] or p.text for p in parts).strip()


def match(part: Partition, options: Options) -> tuple[pa.Table, pa.Table]:
    """Gives the chunks of a partition to slots and writes down every stage.

    Returns:
        (chunks with ``unit_id``, stages).
    """
    bounds = slot_bounds(part.units, options)
    speech = Speech(part.chunks)
    assignment = assign_chunks(bounds, speech, options)
    by_time = options.corrects("crossing_without_words_split")
    unit_ids = part.units["unit_id"].to_pylist()
    sample_ids = part.units["sample_id"].to_pylist()
    interrupted = part.units["is_interrupted"].to_pylist()
    stages: list[tuple[int, str, str, str]] = []  # row of the unit, stage, text, context
    parts_of: list[Sequence[Part]] = []

    def add(row: int, stage: str, text: str, context: str, parts: Sequence[Part] = ()) -> None:
        stages.append((row, stage, text, context))
        parts_of.append(parts)

    for i, row in enumerate(bounds.rows):
        if not assignment.of_slot[i]:
            continue
        chunks = [speech.chunks[r] for r in assignment.of_slot[i]]
        early, core = early_and_core(chunks, bounds.t_a[i], bounds.t_end[i], speech, by_time)
        for stage, parts in (("early", early), ("core", core)):
            if parts:
                add(row, stage, stage_text(parts), stage_context(chunks, parts), parts)
        if interrupted[row]:
            said = "".join(c.text for c in chunks).strip()
            add(row, "partial", said, said)
    own_answers: dict[str, str] = {}
    for row in offline_rows(part.units):
        sample_id = sample_ids[row]
        rows = assignment.unmatched.get(sample_id, ())
        said = "".join(speech.chunks[r].text for r in rows).strip()
        own_answers[sample_id] = unit_ids[row]
        if said:
            add(row, "core", said, said)
    units_of_chunks = [
        unit_ids[bounds.rows[s]] if s >= 0 else own_answers.get(sample_id)
        for s, sample_id in zip(assignment.slot_of_chunk.tolist(), speech.sample_id, strict=True)
    ]
    index = part.chunks.schema.get_field_index("unit_id")
    matched = part.chunks.set_column(
        index, part.chunks.schema.field(index), pa.array(units_of_chunks, pa.string())
    )
    return matched, _stage_table(part, stages, parts_of)


def _stage_table(
    part: Partition, stages: Sequence[tuple[int, str, str, str]], parts_of: Sequence[Sequence[Part]]
) -> pa.Table:
    rows, names, texts, contexts = zip(*stages, strict=True) if stages else ((), (), (), ())
    units = part.units.select(["sample_id", "unit_id", "target_answer"]).take(
        pa.array(rows, pa.int64())
    )
    answers = units["target_answer"].to_pylist()
    return tables.make(
        STAGE_SCHEMA,
        {
            "system": pa.repeat(part.system, len(rows)),
            "sample_id": units["sample_id"],
            "unit_id": units["unit_id"],
            "stage": names,
            "text": texts,
            "context": contexts,
            "text_hash": [text_hash(t, a) for t, a in zip(texts, answers, strict=True)],
            "parts": part_columns(parts_of),
        },
    )


def text_hash(text: str, reference: str) -> str:
    """Hash of judged text and reference: joins judgements made with other prompts or models."""
    return blake2b(f"{text}\0{reference}".encode(), digest_size=8).hexdigest()
