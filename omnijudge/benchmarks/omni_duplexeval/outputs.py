"""Reading a system's responses into tables (rule 1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnijudge import tables
from omnijudge.benchmarks.base import Annotations, Outputs
from omnijudge.benchmarks.omni_duplexeval.reader import SampleKey
from omnijudge.benchmarks.omni_duplexeval.samples import is_description
from omnijudge.benchmarks.omni_duplexeval.schemas import CHUNK_SCHEMA
from omnijudge.benchmarks.omni_duplexeval.segments import (
    Segment,
    UnreadableResponse,
    read_published_description,
    read_published_reminder,
    read_segments,
)
from omnijudge.errors import ConfigError, Problem
from omnijudge.transcripts.files import UnreadableFile, load_json, read_bytes

if TYPE_CHECKING:
    from omnijudge.config import SystemConfig

ENDINGS = (".json", ".jsonl", ".srt", ".vtt")
OWN_FORMATS = ("auto", "omni_duplexeval", "sentences")
FEWEST_WITHOUT_CLOCK = 3
"""From this many segments on, all of them at 0 means that the tool had no clock."""


@dataclass(frozen=True, slots=True)
class Response:
    """One response as read: its segments, or why there are none (``refused``)."""

    segments: tuple[Segment, ...] = ()
    problems: tuple[Problem, ...] = ()
    refused: Problem | None = None
    detail: str | None = None


def response_path(root: str, split: str, sample: str) -> Path | None:
    """The response file of a sample.

    Args:
        root: folder of the system, or a path with ``{split}`` and ``{id}`` in it, which is looked
            for first (its fixed part is then the folder).
        split: split of the sample.
        sample: id of the sample inside its split.
    """
    candidates = []
    folder = root
    if "{id}" in root:
        candidates.append(root.replace("{split}", split).replace("{id}", sample))
        folder = root[: root.index("{")].rpartition("/")[0]
    for stem in (f"{split}/{sample}", sample, f"{split.lower()}/{sample}"):
        candidates += [f"{folder}/{stem}{ending}" for ending in ENDINGS]
    return next((Path(c) for c in candidates if Path(c).is_file()), None)


def read_outputs(
    annotations: Annotations,
    system: str,
    settings: SystemConfig,
    sample_ids: Sequence[str],
    published: bool,
) -> Outputs:
    """Reads the responses of one system for a block of samples.

    Raises:
        ConfigError: the system has no folder.
    """
    root = settings.path
    if root is None or not ("{id}" in root or Path(root).is_dir()):
        raise ConfigError(f"systems.{system}: there is no folder {root}")
    problems: list[Problem] = []

    def found(problem: Problem, sample_id: str) -> None:
        problems.append(replace(problem, sample_id=sample_id, system=system))

    states: dict[str, list[Any]] = {n: [] for n in tables.OUTPUTS.names}
    chunks: dict[str, list[Any]] = {n: [] for n in CHUNK_SCHEMA.names}
    for sample_id in sample_ids:
        key: SampleKey = annotations.samples[sample_id]
        path = response_path(root, key.split, key.id)
        state, detail = "missing", "no response found"
        if path is None:
            worth = "the sample is left out" if published else "counts as silence"
            message = f"{detail}; {worth}"
            found(Problem("missing_output", "error", root, sample_id, message), sample_id)
        else:
            response = read_response(path, key.split, settings, published)
            for problem in response.problems:
                found(problem, sample_id)
            if response.refused is None:
                state, detail = "ok", response.detail or ""
                _add_chunks(chunks, system, sample_id, response.segments)
            else:
                found(response.refused, sample_id)
                state = "unreadable"
                detail = f"{response.refused.code}: {response.refused.message}"
        row = (system, sample_id, state, _shown(path, root), detail)
        for name, value in zip(states, row, strict=True):
            states[name].append(value)
    return Outputs(
        tables.make(tables.OUTPUTS, dict(states)), tables.make(CHUNK_SCHEMA, dict(chunks)), problems
    )


def read_response(path: Path, split: str, settings: SystemConfig, published: bool) -> Response:
    """Reads one response file. Never raises for what is in the file."""
    response: Response | None = None
    if settings.format in OWN_FORMATS:
        response = _read_own(path, split, published)
    if response is None:
        response = _read_foreign(path, settings)
    elif not published:
        factor = 0.001 if settings.time_unit == "ms" else 1.0
        response = _moved(response, factor, settings.time_offset)
    cleaned = tuple(replace(s, text=_storable(s.text)) for s in response.segments)
    return replace(response, segments=cleaned)


def _read_own(path: Path, split: str, published: bool) -> Response | None:
    """The benchmark's own readings; None if the file is better read as another tool's."""
    file = str(path)
    try:
        data = load_json(read_bytes(path), file).value
    except UnreadableFile as e:
        if not published and e.problem.code == "bad_json":
            return None
        return Response(refused=e.problem)
    if published:
        read = read_published_description if is_description(split) else read_published_reminder
        try:
            return Response(read(data))
        except UnreadableResponse as e:
            return Response(refused=Problem("bad_response", "error", file, "", str(e)))
    reading = read_segments(data)
    if reading.segments is None or (reading.rejected and not reading.segments):
        return None
    clock = _clock_problem(path, reading.segments)
    if clock is not None and clock.level == "error":
        return Response(refused=clock)
    problems = [clock] if clock else []
    detail = None
    if reading.rejected:
        total = reading.rejected + len(reading.segments)
        detail = f"{reading.rejected} of {total} segments rejected"
        problems.append(
            Problem(
                "rejected_segment",
                "warning",
                file,
                "",
                f"{detail}: a segment needs a finite time in seconds under start, current_time or "
                "time",
                count=reading.rejected,
            )
        )
    return Response(reading.segments, tuple(problems), detail=detail)


def _read_foreign(path: Path, settings: SystemConfig) -> Response:
    """Transcripts of other tools: every chunk is a segment."""
    from omnijudge.transcripts.reader import read_transcript

    transcript = read_transcript(
        path,
        format=settings.format,
        benchmark="omni_duplexeval",
        time_unit=settings.time_unit,
        time_offset=settings.time_offset,
        speaker=settings.speaker,
    )
    segments = []
    for c in transcript.chunks:
        text = c.text.strip()
        if text and math.isfinite(c.start) and math.isfinite(c.end):
            start = max(0.0, c.start)
            segments.append(Segment(text, start, max(start, c.end), c.start))
    return Response(tuple(segments), tuple(transcript.problems), transcript.refused)


def _clock_problem(path: Path, segments: Sequence[Segment]) -> Problem | None:
    """Whether the times mean anything: a note beside the file, or every segment at 0."""
    beside = path.with_name(f"{path.stem}.meta.json")
    if beside.is_file():
        try:
            meta = load_json(read_bytes(beside), str(beside)).value
        except UnreadableFile as e:
            return replace(e.problem, level="warning")
        if isinstance(meta, dict) and meta.get("clock") == "invalid":
            message = "clock is invalid: the input was not paced in real time; record it again"
            return Problem("no_media_clock", "error", str(beside), "clock", message)
        if isinstance(meta, dict) and meta.get("response_done") is False:
            message = "response_done is false: the recording stopped early; scored as it stands"
            return Problem("ineligible", "warning", str(beside), "response_done", message)
    if len(segments) >= FEWEST_WITHOUT_CLOCK and all(s.start == s.end == 0 for s in segments):
        message = f"all {len(segments)} segments start and end at 0; record the times of the input"
        return Problem("no_media_clock", "error", str(path), "", message)
    return None


def _moved(response: Response, factor: float, offset: float) -> Response:
    if factor == 1.0 and offset == 0.0:
        return response

    def moved(s: Segment) -> Segment:
        start = max(0.0, s.start * factor + offset)
        return Segment(
            s.text, start, max(start, s.end * factor + offset), s.event_time * factor + offset
        )

    return replace(response, segments=tuple(moved(s) for s in response.segments))


def _add_chunks(
    columns: dict[str, list[Any]], system: str, sample_id: str, segments: Sequence[Segment]
) -> None:
    for i, s in enumerate(segments):
        row = {
            "system": system,
            "sample_id": sample_id,
            "chunk_id": i,
            "start": s.start,
            "end": s.end,
            "text": s.text,
            "words": [],
            "event_time": s.event_time,
        }
        for name, column in columns.items():
            column.append(row.get(name))


def _shown(path: Path | None, root: str) -> str | None:
    """The file without the part that differs from machine to machine."""
    if path is None:
        return None
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


def _storable(text: str) -> str:
    """Half surrogate pairs, which JSON can hold and Arrow cannot, become U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
