"""What a system said in a partition: its chunks, their words, and the parts stages are made of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from omnijudge import tables
from omnijudge.benchmarks.omniinteract.schemas import PART

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Partition
    from omnijudge.benchmarks.omniinteract.options import Options


SpokenWord = tuple[float, float, str]
"""Start and end of a word in seconds, and its text."""


class SpokenChunk(NamedTuple):
    """A chunk; ``row`` is its row in the chunk table, times are in seconds."""

    row: int
    chunk_id: int
    start: float
    end: float
    text: str


class Part(NamedTuple):
    """A chunk, or the early or core part of one, as a stage sees it (rule 7).

    The fields are those of the column ``parts`` of the stages. ``part`` is ``whole``, ``early`` or
    ``core``.
    """

    chunk_id: int
    part: str
    start: float
    end: float
    spill: bool
    text: str


class Speech:
    """The chunks of a partition. Words become objects only where they are asked for.

    Attributes:
        sample_id: sample of each chunk.
        start: start of each chunk in seconds.
        chunks: the chunks, in the order of the table.
    """

    def __init__(self, chunks: pa.Table) -> None:
        self.sample_id: list[str] = chunks["sample_id"].to_pylist()
        self.start = chunks["start"].to_numpy()
        columns = (chunks[name].to_pylist() for name in ("chunk_id", "start", "end", "text"))
        rows = range(chunks.num_rows)
        self.chunks: list[SpokenChunk] = list(map(SpokenChunk, rows, *columns))
        self._words = _one_array(chunks["words"], tables.WORDS)

    @cached_property
    def _flat(self) -> tuple[list[int], list[float], list[float], list[str]]:
        """Where the words of each chunk begin, and starts, ends and texts of all words."""
        flat = self._words.values
        fields = [flat.field(name).to_pylist() for name in ("start", "end", "text")]
        return self._words.offsets.to_pylist(), fields[0], fields[1], fields[2]

    def words(self, row: int) -> list[SpokenWord]:
        """Words of a chunk."""
        offsets, starts, ends, texts = self._flat
        own = slice(offsets[row], offsets[row + 1])
        return list(zip(starts[own], ends[own], texts[own], strict=True))

    def words_of(self, part: Part, row: int, t_a: float) -> list[SpokenWord]:
        """Words of a part of the chunk in some row, whose slot's answer is due at ``t_a``."""
        words = self.words(row)
        if part.part == "whole":
            return words
        return [w for w in words if (w[0] < t_a) == (part.part == "early")]


class SlotSpeech(NamedTuple):
    """What a system said in one slot, as matched: chunks, early parts and core parts, in order."""

    chunks: Sequence[SpokenChunk]
    early: Sequence[Part]
    core: Sequence[Part]
    t_a: float
    whole: Speech

    def words(self, part: Part) -> list[SpokenWord]:
        """Words of one of the parts."""
        row = next(c.row for c in self.chunks if c.chunk_id == part.chunk_id)
        return self.whole.words_of(part, row, self.t_a)


class MatchedSpeech:
    """The speech of a partition, read off its matched chunks and stages.

    Attributes:
        unmatched: chunks that fit no slot, by sample.
    """

    def __init__(self, part: Partition, options: Options) -> None:
        self._speech = Speech(part.chunks)
        self._chunks: dict[tuple[str, str], list[SpokenChunk]] = {}
        self.unmatched: dict[str, list[SpokenChunk]] = {}
        ignore_blank = options.corrects("blank_chunks_ignored")
        for chunk, sample, unit in zip(
            self._speech.chunks,
            self._speech.sample_id,
            part.chunks["unit_id"].to_pylist(),
            strict=True,
        ):
            if unit is not None:
                self._chunks.setdefault((sample, unit), []).append(chunk)
            elif not ignore_blank or chunk.text.strip():
                self.unmatched.setdefault(sample, []).append(chunk)
        keys = (part.stages[n].to_pylist() for n in ("sample_id", "unit_id", "stage"))
        parts = parts_of_stages(part.stages)
        self._parts = dict(zip(zip(*keys, strict=True), parts, strict=True))

    def chunks(self, sample: str, unit: str) -> Sequence[SpokenChunk]:
        """Chunks given to a unit."""
        return self._chunks.get((sample, unit), ())

    def slot(self, sample: str, unit: str, t_a: float) -> SlotSpeech:
        """What was said in a slot whose answer is due at ``t_a``."""
        early, core = (self._parts.get((sample, unit, stage), ()) for stage in ("early", "core"))
        return SlotSpeech(self.chunks(sample, unit), early, core, t_a, self._speech)


def part_columns(parts: Sequence[Sequence[Part]]) -> pa.Array:
    """The column ``parts`` of the stages, from the parts of each row."""
    offsets = [0]
    for own in parts:
        offsets.append(offsets[-1] + len(own))
    columns: Any = list(zip(*(p for own in parts for p in own), strict=True))
    arrays = [
        pa.array(columns[i] if columns else [], PART.field(i).type) for i in range(PART.num_fields)
    ]
    values = pa.StructArray.from_arrays(arrays, fields=list(PART))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


def parts_of_stages(stages: pa.Table) -> list[list[Part]]:
    """The parts of each stage row."""
    column = _one_array(stages["parts"], pa.list_(PART))
    fields = [column.values.field(name).to_pylist() for name in Part._fields]
    every = list(map(Part, *fields))
    offsets = column.offsets.to_pylist()
    return [every[a:b] for a, b in pairwise(offsets)]


def _one_array(column: pa.ChunkedArray, kind: pa.DataType) -> Any:
    """A column as one array, also where it has no chunk."""
    joined = column.combine_chunks()
    if isinstance(joined, pa.ChunkedArray):
        return joined.chunk(0) if joined.num_chunks else pa.array([], kind)
    return joined
