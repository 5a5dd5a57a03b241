"""Chunks to slots, and what each stage gets to read (OmniInteract rules 6 to 8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from omnijudge import tables
from omnijudge.benchmarks.omniinteract.offline import offline_rows
from omnijudge.benchmarks.omniinteract.schemas import STAGE_SCHEMA
from omnijudge.benchmarks.omniinteract.slots import end_of_last
from omnijudge.values import has_cjk
from omnijudge_kernels.choose import assign

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Partition
    from omnijudge.benchmarks.omniinteract.options import Options


class SpokenWord(NamedTuple):
    """A word with its times in seconds."""

    start: float
    end: float
    text: str


class Part(NamedTuple):
    """A chunk, or the early or core part of one, as a stage sees it."""

    chunk_id: int
    part: str
    start: float
    end: float
    spill: bool
    text: str
    words: Sequence[SpokenWord]
    full_text: str


@dataclass(frozen=True, slots=True)
class SpokenChunk:
    """A chunk of a partition."""

    chunk_id: int
    start: float
    end: float
    text: str
    words: Sequence[SpokenWord]


class ChunkReader:
    """Random access to the chunk table of a partition, words only where they are asked for."""

    def __init__(self, chunks: pa.Table) -> None:
        self.sample_id: list[str] = chunks["sample_id"].to_pylist()
        self.chunk_id: list[int] = chunks["chunk_id"].to_pylist()
        self.start = chunks["start"].to_numpy()
        self._start: list[float] = self.start.tolist()
        self._end: list[float] = chunks["end"].to_pylist()
        self.text: list[str] = chunks["text"].to_pylist()
        words = chunks["words"].combine_chunks()
        if isinstance(words, pa.ChunkedArray):
            words = words.chunk(0) if words.num_chunks else pa.array([], tables.WORDS)
        self._offsets: list[int] = words.offsets.to_pylist()
        flat = words.values
        self._word_start: list[float] = flat.field("start").to_pylist()
        self._word_end: list[float] = flat.field("end").to_pylist()
        self._word_text: list[str] = flat.field("text").to_pylist()

    def __getitem__(self, row: int) -> SpokenChunk:
        words = [
            SpokenWord(self._word_start[i], self._word_end[i], self._word_text[i])
            for i in range(self._offsets[row], self._offsets[row + 1])
        ]
        return SpokenChunk(
            self.chunk_id[row], self._start[row], self._end[row], self.text[row], words
        )


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


def assign_chunks(bounds: SlotBounds, reader: ChunkReader, options: Options) -> Assignment:
    """Rule 6: half-open windows; the latest start wins, then the larger slot id."""
    number = {s: i for i, s in enumerate(bounds.samples)}
    owners = np.array([number[s] for s in reader.sample_id], np.int64)
    counts = np.bincount(owners, minlength=len(bounds.samples))
    chunk_offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    # Chunks stand in block order of the samples; units in their own: bring them together.
    order = np.argsort(owners, kind="stable")
    found = assign(
        reader.start[order],
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
        if ignore_blank and not reader.text[row].strip():
            slot[row] = -1
        elif s >= 0:
            of_slot[s].append(row)
        else:
            unmatched.setdefault(reader.sample_id[row], []).append(row)
    return Assignment(of_slot, unmatched, slot)


def join_words(words: Sequence[str]) -> str:
    """Words to text: without blanks where the text holds Chinese characters."""
    joined = "".join(words)
    return joined if has_cjk(joined) else " ".join(words)


def split(
    chunk: SpokenChunk, t_a: float, t_end: float, by_time: bool
) -> tuple[Part | None, Part | None]:
    """Early and core part of a chunk (rule 7)."""

    def whole() -> Part:
        return Part(
            chunk.chunk_id, "whole", chunk.start, chunk.end, chunk.end > t_end,
            chunk.text, chunk.words, chunk.text,
        )  # fmt: skip

    if not chunk.start < t_a:
        return None, whole()
    if not t_a < chunk.end:
        return whole(), None
    if by_time and chunk.text.strip() and not any(w.text for w in chunk.words):
        return _split_by_time(chunk, t_a, t_end)
    if not chunk.words:
        return whole(), None
    parts: list[Part | None] = []
    for name in ("early", "core"):
        words = [w for w in chunk.words if (w.start < t_a) == (name == "early")]
        text = join_words([w.text for w in words if w.text]).strip()
        if not text:
            parts.append(None)
            continue
        end = words[-1].end
        parts.append(
            Part(chunk.chunk_id, name, words[0].start, end, end > t_end, text, words, chunk.text)
        )
    if parts[0] is None and parts[1] is None:
        return whole(), None
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
        Part(chunk.chunk_id, "early", chunk.start, t_a, t_a > t_end, early, (), chunk.text)
        if early
        else None,
        Part(chunk.chunk_id, "core", t_a, chunk.end, chunk.end > t_end, core, (), chunk.text)
        if core
        else None,
    )


@dataclass(frozen=True, slots=True)
class SlotSpeech:
    """What a system said in one slot: chunks, early parts and core parts, each in order."""

    chunks: list[SpokenChunk]
    early: list[Part]
    core: list[Part]


def slot_speech(
    reader: ChunkReader, rows: list[int], t_a: float, t_end: float, options: Options
) -> SlotSpeech:
    """Splits the chunks of one slot."""
    by_time = options.corrects("crossing_without_words_split")
    chunks = [reader[r] for r in rows]
    early: list[Part] = []
    core: list[Part] = []
    for chunk in chunks:
        before, after = split(chunk, t_a, t_end, by_time)
        if before is not None:
            early.append(before)
        if after is not None:
            core.append(after)
    early.sort(key=_times)
    core.sort(key=_times)
    return SlotSpeech(chunks, early, core)


def _times(part: Part) -> tuple[float, float]:
    return part.start, part.end


def stage_text(parts: Sequence[Part]) -> str:
    """Texts of the parts joined (rule 8)."""
    return "".join(p.text for p in parts).strip()


def stage_context(chunks: Sequence[SpokenChunk], parts: Sequence[Part]) -> str:
    """Whole texts of the chunks that contribute to a stage (rule 8)."""
    ids = {p.chunk_id for p in parts}
    context = "".join(c.text.strip() for c in chunks if c.chunk_id in ids).strip()
    return context or "".join(p.full_text or p.text for p in parts).strip()


def match(part: Partition, options: Options) -> tuple[pa.Table, pa.Table]:
    """Gives the chunks of a partition to slots and writes down every stage.

    Returns:
        (chunks with ``unit_id``, stages).
    """
    bounds = slot_bounds(part.units, options)
    reader = ChunkReader(part.chunks)
    assignment = assign_chunks(bounds, reader, options)
    unit_ids = part.units["unit_id"].to_pylist()
    sample_ids = part.units["sample_id"].to_pylist()
    interrupted = part.units["is_interrupted"].to_pylist()
    targets = part.units["target_answer"].to_pylist()
    columns: dict[str, list[Any]] = {n: [] for n in STAGE_SCHEMA.names}

    def add(row: int, stage: str, text: str, context: str, parts: Sequence[Part]) -> None:
        columns["system"].append(part.system)
        columns["sample_id"].append(sample_ids[row])
        columns["unit_id"].append(unit_ids[row])
        columns["item"].append(None)
        columns["stage"].append(stage)
        columns["text"].append(text)
        columns["context"].append(context)
        columns["text_hash"].append(text_hash(text, targets[row]))
        columns["parts"].append([p[:6] for p in parts])

    for i, row in enumerate(bounds.rows):
        chunk_rows = assignment.of_slot[i]
        if not chunk_rows:
            continue
        speech = slot_speech(reader, chunk_rows, bounds.t_a[i], bounds.t_end[i], options)
        for stage, parts in (("early", speech.early), ("core", speech.core)):
            if parts:
                add(row, stage, stage_text(parts), stage_context(speech.chunks, parts), parts)
        if interrupted[row]:
            said = "".join(c.text for c in speech.chunks).strip()
            add(row, "partial", said, said, [])
    own_answers: dict[str, str] = {}
    for row in offline_rows(part.units):
        sample_id = sample_ids[row]
        said = "".join(reader.text[r] for r in assignment.unmatched.get(sample_id, ())).strip()
        own_answers[sample_id] = unit_ids[row]
        if said:
            add(row, "core", said, said, [])
    units_of_chunks = [
        unit_ids[bounds.rows[s]] if s >= 0 else own_answers.get(sample_id)
        for s, sample_id in zip(assignment.slot_of_chunk.tolist(), reader.sample_id, strict=True)
    ]
    index = part.chunks.schema.get_field_index("unit_id")
    chunks = part.chunks.set_column(
        index, part.chunks.schema.field(index), pa.array(units_of_chunks, pa.string())
    )
    columns["parts"] = [
        [dict(zip(PART_NAMES, p, strict=True)) for p in parts] for parts in columns["parts"]
    ]
    return chunks, tables.make(STAGE_SCHEMA, dict(columns))


PART_NAMES = ("chunk_id", "part", "start", "end", "spill", "text")


def text_hash(text: str, reference: str) -> str:
    """Hash of judged text and reference: joins judgements made with other prompts or models."""
    return blake2b(f"{text}\0{reference}".encode(), digest_size=8).hexdigest()
