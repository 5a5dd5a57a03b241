"""From segments to what has to be judged: sentences, windows, events (rules 2, 3 and 5)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnijudge import tables
from omnijudge.benchmarks.omni_duplexeval.evidence import Clip, plan
from omnijudge.benchmarks.omni_duplexeval.schemas import STAGE_SCHEMA
from omnijudge.benchmarks.omni_duplexeval.segments import Segment
from omnijudge.benchmarks.omni_duplexeval.windows import (
    EPSILON,
    candidate_windows,
    joined,
    published_window,
    reminder_bounds,
    replies_within,
)

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Partition
    from omnijudge.benchmarks.omni_duplexeval.options import Options


@dataclass(frozen=True)
class Sample:
    """One sample of a partition with its events and what the system said.

    Attributes:
        row: its row of the unit table (the sample's own), as values.
        events: (unit id, time) of each event; one ``full`` without time where timing does not
            count; empty for descriptions.
        segments: the system's segments in file order.
        chunk_rows: their rows in the chunk table.
        state: state of the system's output.
    """

    row: dict[str, Any]
    events: tuple[tuple[str, float | None], ...]
    segments: tuple[Segment, ...]
    chunk_rows: tuple[int, ...]
    state: str

    @property
    def sample_id(self) -> str:
        """Id of the sample."""
        return str(self.row["sample_id"])

    @property
    def is_description(self) -> bool:
        """Whether it is a real-time description."""
        return bool(self.row["scene"] == "rtd")

    @property
    def duration(self) -> float:
        """Length of the clip in seconds, 0 if unknown."""
        return float(self.row["video_duration"] or 0.0)

    @property
    def times(self) -> list[float]:
        """Event times in seconds, where timing counts."""
        return [t for _, t in self.events if t is not None]

    @cached_property
    def clip(self) -> Clip:
        """What is known of its clip."""
        r = self.row
        return Clip(
            state=r["media_state"],
            readable=r["media_seconds"],
            has_audio=bool(r["has_audio"]),
            has_captions=bool(r["captions"]),
            has_references=bool(r["references"]),
            windows=r["window_evidence"],
            content=r["content_evidence"],
        )


def samples_of(part: Partition) -> list[Sample]:
    """The samples of a partition, in the order of the units."""
    events: dict[str, list[tuple[str, float | None]]] = {}
    own: dict[str, dict[str, Any]] = {}
    for row in part.units.to_pylist():
        if row["unit_kind"] == "event":
            events.setdefault(row["sample_id"], []).append((row["unit_id"], row["event_time"]))
        else:
            own[row["sample_id"]] = row
    state = dict(
        zip(part.outputs["sample_id"].to_pylist(), part.outputs["state"].to_pylist(), strict=True)
    )
    segments: dict[str, list[Segment]] = {}
    rows: dict[str, list[int]] = {}
    columns = [part.chunks[n].to_pylist() for n in ("text", "start", "end", "event_time")]
    for i, sample_id in enumerate(part.chunks["sample_id"].to_pylist()):
        segments.setdefault(sample_id, []).append(Segment(*(c[i] for c in columns)))
        rows.setdefault(sample_id, []).append(i)
    return [
        Sample(
            row=row,
            events=tuple(events.get(s, ())),
            segments=tuple(segments.get(s, ())),
            chunk_rows=tuple(rows.get(s, ())),
            state=state.get(s, "missing"),
        )
        for s, row in own.items()
    ]


def match(part: Partition, options: Options) -> tuple[pa.Table, pa.Table]:
    """Chunks with the sentence or event they belong to, and all stages of the partition."""
    stages = _Stages(part.system, options)
    unit_ids: list[str | None] = [None] * part.chunks.num_rows
    for sample in samples_of(part):
        if sample.is_description:
            for i, row in enumerate(sample.chunk_rows):
                unit_ids[row] = str(i)
            stages.describe(sample)
        else:
            if sample.times:
                # Windows may overlap; the first event that a reply serves is named.
                for unit_id, replies in reversed(event_windows(sample, options)):
                    for i in replies:
                        unit_ids[sample.chunk_rows[i]] = unit_id
            stages.remind(sample)
    index = part.chunks.schema.get_field_index("unit_id")
    chunks = part.chunks.set_column(
        index, part.chunks.schema.field(index), pa.array(unit_ids, pa.string())
    )
    return chunks, stages.table()


def event_windows(sample: Sample, options: Options) -> list[tuple[str, list[int]]]:
    """Positions of the segments in the window of each event; all where timing does not count."""
    times = sample.times
    if not times:
        return [(unit_id, list(range(len(sample.segments)))) for unit_id, _ in sample.events]
    bounds = reminder_bounds(
        times,
        options.reminder_window_seconds,
        0.0 if options.published else EPSILON,
        options.exclusive_windows,
    )
    return [
        (unit_id, replies_within(sample.segments, low, high))
        for (unit_id, _), (low, high) in zip(sample.events, bounds, strict=True)
    ]


class _Stages:
    """Collects stage rows as columns, in calling order."""

    def __init__(self, system: str, options: Options) -> None:
        self.system = system
        self.options = options
        self.columns: dict[str, list[Any]] = {n: [] for n in STAGE_SCHEMA.names}

    def table(self) -> pa.Table:
        return tables.make(STAGE_SCHEMA, dict(self.columns))

    def describe(self, sample: Sample) -> None:
        """Sentences with their windows, then the content of the whole response."""
        if self.options.published:
            if sample.state != "ok":
                return
            for i, s in enumerate(sample.segments):
                window = published_window(s.start, s.end, sample.duration)
                if window is not None:
                    self._add(sample, "temporal", str(i), s.text, s, (window.start, window.end))
        else:
            for i, s in enumerate(sample.segments):
                self._add(sample, "relevance", str(i), s.text, s)
                for w in candidate_windows(
                    s.start, s.end, sample.duration, self.options.window_shifts
                ):
                    bounds = (w.start, w.end)
                    self._add(sample, "window", str(i), s.text, s, bounds, str(w.shift))
        text = joined(sample.segments)
        if text or self.options.published:
            self._add(sample, "content", "content", text, None, (0.0, sample.duration))

    def remind(self, sample: Sample) -> None:
        """Events with a reply; the whole response where timing does not count."""
        if self.options.published and sample.state != "ok":
            return
        for unit_id, replies in event_windows(sample, self.options):
            text = joined([sample.segments[i] for i in replies])
            stage = "event" if sample.times else "full"
            if text or (stage == "full" and self.options.published):
                self._add(sample, stage, unit_id, text)

    def _add(
        self,
        sample: Sample,
        stage: str,
        unit_id: str,
        text: str,
        segment: Segment | None = None,
        window: tuple[float, float] | None = None,
        item: str | None = None,
    ) -> None:
        found = plan(stage, sample.clip, *(window or (0.0, 0.0)), self.options)
        values = {
            "system": self.system,
            "sample_id": sample.sample_id,
            "unit_id": unit_id,
            "item": item,
            "stage": stage,
            "text": text,
            "text_hash": text_hash(text, sample.row["references"] or ()),
            "start": segment.start if segment else None,
            "end": segment.end if segment else None,
            "window_start": window[0] if window else None,
            "window_end": window[1] if window else None,
            "evidence": found.kind,
            "evidence_note": found.note,
            "frame_count": found.frames,
        }
        for name, column in self.columns.items():
            column.append(values.get(name))


def text_hash(text: str, references: Iterable[str]) -> str:
    """Hash of judged text and references: joins judgements made with other prompts or models."""
    return blake2b("\0".join((text, *references)).encode(), digest_size=8).hexdigest()
