"""Reading annotations and transcripts into tables; every problem in one pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnijudge import tables
from omnijudge.benchmarks.base import Annotations, Outputs
from omnijudge.benchmarks.omniinteract.batch_summary import is_batch_summary, read_batch_summary
from omnijudge.benchmarks.omniinteract.layout import Listing, Sample, read_manifest, read_root
from omnijudge.benchmarks.omniinteract.offline import Clip, read_clips
from omnijudge.benchmarks.omniinteract.schemas import CHUNK_SCHEMA, UNIT_SCHEMA
from omnijudge.benchmarks.omniinteract.slots import (
    SCENE_TYPES,
    Dropped,
    Slot,
    UnusableAnnotation,
    build_slots,
)
from omnijudge.benchmarks.omniinteract.system_folder import SystemFolder
from omnijudge.errors import ConfigError, Problem
from omnijudge.transcripts.files import UnreadableFile, load_json, read_bytes
from omnijudge.transcripts.reader import read_transcript
from omnijudge.transcripts.types import Chunk
from omnijudge.values import has_cjk, parse_time

if TYPE_CHECKING:
    from omnijudge.benchmarks.omniinteract.options import Options
    from omnijudge.config import RunConfig, SystemConfig

UTF8_MARK = b"\xef\xbb\xbf"


def read_annotations(config: RunConfig, options: Options) -> Annotations:
    """Reads all annotations that the configuration lists.

    Raises:
        ConfigError: the list itself is not there, or a system has no outputs at all.
    """
    listing = _listing(config, options)
    problems = list(listing.problems)
    files = list(listing.files)
    rows: dict[str, list[Any]] = {name: [] for name in UNIT_SCHEMA.names}
    samples: dict[str, Sample] = {}
    slots_of: dict[str, list[Slot]] = {}
    for sample_id, sample in listing.samples.items():
        files.append(sample.annotation)
        slots = _read_annotation(sample, options, problems)
        if slots is not None:
            samples[sample_id], slots_of[sample_id] = sample, slots
    clips: dict[str, Clip] = {}
    if config.data.offline is not None:
        systems = list(dict.fromkeys((*config.systems, *listing.systems)))
        clips = read_clips(Path(config.data.offline), systems, samples, problems)
        files.append(Path(config.data.offline))
    for sample_id in sorted((*samples, *clips)):
        if sample_id in clips:
            unit = clips[sample_id].unit()
            for name, column in rows.items():
                column.append(unit.get(name))
        else:
            _unit_rows(samples[sample_id], slots_of[sample_id], rows)
    return Annotations(
        units=tables.make(UNIT_SCHEMA, dict(rows)),
        samples={**samples, **clips},
        problems=problems,
        listed=listing.listed + len(clips),
        systems=dict.fromkeys(listing.systems),
        files=files,
    )


def _listing(config: RunConfig, options: Options) -> Listing:
    data = config.data
    if data.annotations is not None:
        raise ConfigError("data.annotations: omniinteract takes data.root or data.manifest")
    if data.manifest is not None:
        if not Path(data.manifest).is_file():
            raise ConfigError(f"data.manifest: there is no file {data.manifest}")
        path, known = Path(data.manifest), set(config.systems)
        if is_batch_summary(path):
            return read_batch_summary(path, known, options.profile == "published")
        return read_manifest(path, known)
    assert data.root is not None
    if not Path(data.root).is_dir():
        raise ConfigError(f"data.root: there is no folder {data.root}")
    return read_root(Path(data.root))


def _read_annotation(
    sample: Sample, options: Options, problems: list[Problem]
) -> list[Slot] | None:
    """Slots of a sample, or None where it cannot be used; says why."""
    file = str(sample.annotation)

    def problem(code: str, message: str, place: str = "", level: Any = "error") -> None:
        problems.append(Problem(code, level, file, place, message, sample.sample_id))

    if sample.scene_type not in SCENE_TYPES:
        problems.append(
            Problem(
                "unknown_scene_type",
                "error",
                sample.source,
                sample.place,
                f"scene_type {sample.scene_type!r} is unknown; write {', '.join(SCENE_TYPES)}",
                sample.sample_id,
            )
        )
        return None
    try:
        data = read_bytes(sample.annotation)
        document = load_json(data, file)
    except UnreadableFile as e:
        found = e.problem
        problem(found.code, found.message, found.place)
        return None
    if data.startswith(UTF8_MARK):
        problem(
            "byte_order_mark", "starts with a byte-order mark; it was passed over", "", "warning"
        )
    root = document.value
    if sample.scene_type != "1QnA" and not isinstance(
        root.get("items") if isinstance(root, dict) else root, list
    ):
        problem("wrong_root", "must be a list of rows, or an object whose `items` is one")
        return None
    dropped: list[Dropped] = []
    try:
        slots = build_slots(root, sample.scene_type, options.last_slot_tail_sec, dropped)
    except UnusableAnnotation as e:
        problem(_code(e, root), str(e))
        return None
    finally:
        for d in dropped:
            problem("dropped_row", f"{d.reason}; it is not scored", d.place, "warning")
    if not _times_are_usable(slots, problem):
        return None
    if not slots:
        problem(
            "no_slots",
            "holds no usable row; everything a system says there counts as unmatched",
            "",
            "warning",
        )
    if sample.scene_type == "1QnA":
        _check_question_time(root, problem)
    return slots


def _code(error: UnusableAnnotation, root: Any) -> str:
    text = str(error)
    if "nested" in text:
        return "unpaired_nested_row"
    return "wrong_root" if not isinstance(root, dict) else "no_answers"


def _times_are_usable(slots: list[Slot], problem: Any) -> bool:
    usable = True
    for s in slots:
        place = f"slot {s.slot_id}"
        if not (math.isfinite(s.t_start) and math.isfinite(s.t_a)):
            problem("not_finite", f"times {s.t_start}, {s.t_a} are not finite; correct them", place)
            usable = False
            continue
        if s.t_start < 0 or s.t_a < 0:
            problem(
                "negative_time", f"times {s.t_start:g}, {s.t_a:g} lie before 0", place, "warning"
            )
        if s.t_a < s.t_start:
            problem(
                "answer_before_question",
                f"the answer is due at {s.t_a:g} s, before the question at {s.t_start:g} s; "
                "scored as it stands",
                place,
                "warning",
            )
    return usable


def _check_question_time(root: dict[str, Any], problem: Any) -> None:
    conversations = root.get("conversations")
    given, key = root.get("question_time"), "question_time"
    if isinstance(conversations, list):
        for number, e in enumerate(conversations):
            if isinstance(e, dict) and e.get("from") == "user":
                given, key = e.get("timestamp"), f"conversations[{number}].timestamp"
                break
    if parse_time(given) is None:
        problem(
            "unreadable_time",
            f"{given!r} is no time; the question counts as asked at 0 s",
            key,
            "warning",
        )


def _unit_rows(sample: Sample, slots: list[Slot], rows: dict[str, list[Any]]) -> None:
    language = sample.language or _language(slots)
    attributes = list(sample.attributes.items())
    math_subset = sample.is_math

    def add(unit_id: str, kind: str, **values: Any) -> None:
        values.update(
            sample_id=sample.sample_id,
            unit_id=unit_id,
            unit_kind=kind,
            video_id=sample.video_id,
            scene_type=sample.scene_type,
            language=language,
            is_math=math_subset,
            attributes=attributes,
        )
        for name, column in rows.items():
            column.append(values.get(name))

    for s in slots:
        add(
            str(s.slot_id),
            "slot",
            question_type=s.question_type,
            label=s.label,
            t_start=s.t_start,
            t_a=s.t_a,
            t_end=s.t_end,
            open_ended=s.open_ended,
            boundary=s.boundary,
            is_interrupted=s.interrupted,
            step_index=s.step,
            turn_index=s.turn,
            pair_index=s.pair,
            role=s.role,
            question_text=s.question,
            target_answer=s.answer,
        )
    for pair in sorted({s.pair for s in slots if s.pair is not None}):
        add(f"pair{pair}", "pair", pair_index=pair)
    add("sample", "sample")


def _language(slots: list[Slot]) -> str:
    return "zh" if any(has_cjk(s.question) or has_cjk(s.answer) for s in slots) else "en"


def read_outputs(
    config: RunConfig,
    annotations: Annotations,
    system: str,
    settings: SystemConfig,
    sample_ids: Sequence[str],
    folder: SystemFolder | None,
) -> Outputs:
    """Reads the transcripts of one system for a block of samples."""
    problems: list[Problem] = []
    states: dict[str, list[Any]] = {n: [] for n in tables.OUTPUTS.names}
    chunks = ChunkColumns()
    profile = str(config.scoring.get("profile", "robust"))
    for sample_id in sample_ids:
        sample: Sample | Clip = annotations.samples[sample_id]
        path, state, detail = None, "missing", "no transcript found"
        if isinstance(sample, Clip):
            state, detail = sample.output(system)
            if state == "ok":
                # The answer is about the clip as a whole: it has no time of its own.
                answer = sample.records[system].answer
                chunks.add(system, sample_id, [Chunk(0, 0.0, 0.0, answer)])
        elif system in sample.outputs:
            path = sample.outputs[system]
            detail = sample.reasons.get(system, "the manifest names no transcript")
        elif folder is not None:
            path = folder.find(sample)
            detail = "" if path else folder.reason(sample)
        if path is None:
            if state == "missing":
                file = sample.source if isinstance(sample, Clip) else settings.path
                end = "left out, as published" if profile == "published" else "counts as silence"
                message = f"{detail}; {end}"
                problems.append(
                    Problem(
                        "missing_output", "error", str(file or sample.source), sample_id,
                        message, sample_id, system,
                    )
                )  # fmt: skip
        else:
            transcript = read_transcript(
                path,
                format=settings.format,
                benchmark="omniinteract",
                profile=profile,
                time_unit=settings.time_unit,
                time_offset=settings.time_offset,
                speaker=settings.speaker,
            )
            for p in transcript.problems:
                problems.append(_attributed(p, sample_id, system))
            if transcript.refused is None:
                state, detail = "ok", ""
                chunks.add(system, sample_id, transcript.chunks)
            else:
                problems.append(_attributed(transcript.refused, sample_id, system))
                code = transcript.refused.code
                state = "missing" if code == "missing_file" else "unreadable"
                detail = f"{code}: {transcript.refused.message}"
        for name, value in zip(
            states, (system, sample_id, state, _shown(path, settings), detail), strict=True
        ):
            states[name].append(value)
    return Outputs(tables.make(tables.OUTPUTS, dict(states)), chunks.table(), problems)


def _attributed(p: Problem, sample_id: str, system: str) -> Problem:
    return Problem(p.code, p.level, p.file, p.place, p.message, sample_id, system, p.count)


def _shown(path: Path | None, settings: SystemConfig) -> str | None:
    """The file without the part that differs from machine to machine."""
    if path is None:
        return None
    if settings.path is not None and path.is_relative_to(settings.path):
        return path.relative_to(settings.path).as_posix()
    return path.name


class ChunkColumns:
    """Collects chunks as columns; sorts those of a sample by (start, end, id) (rule 5)."""

    def __init__(self) -> None:
        self.system: list[str] = []
        self.sample_id: list[str] = []
        self.chunk_id: list[int] = []
        self.start: list[float] = []
        self.end: list[float] = []
        self.text: list[str] = []
        self.word_offsets: list[int] = [0]
        self.word_start: list[float] = []
        self.word_end: list[float] = []
        self.word_text: list[str] = []

    def add(self, system: str, sample_id: str, chunks: list[Any]) -> None:
        """Adds the chunks of one sample."""
        for c in sorted(chunks, key=lambda c: (c.start, c.end, c.id)):
            self.system.append(system)
            self.sample_id.append(sample_id)
            self.chunk_id.append(c.id)
            self.start.append(c.start)
            self.end.append(c.end)
            self.text.append(c.text)
            if c.words:
                starts, ends, texts = zip(*c.words, strict=True)
                self.word_start += starts
                self.word_end += ends
                self.word_text += texts
            self.word_offsets.append(len(self.word_start))

    def table(self) -> pa.Table:
        """The chunk table, ``unit_id`` null."""
        words = pa.ListArray.from_arrays(
            pa.array(self.word_offsets, pa.int32()),
            pa.StructArray.from_arrays(
                [
                    pa.array(self.word_start, pa.float64()),
                    pa.array(self.word_end, pa.float64()),
                    pa.array(self.word_text, pa.string()),
                ],
                names=["start", "end", "text"],
            ),
        )
        return tables.make(
            CHUNK_SCHEMA,
            {
                "system": self.system,
                "sample_id": self.sample_id,
                "chunk_id": self.chunk_id,
                "start": self.start,
                "end": self.end,
                "text": self.text,
                "words": words,
            },
        )
