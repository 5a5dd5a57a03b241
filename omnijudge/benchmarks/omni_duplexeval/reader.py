"""Reading annotations: local files or a data-set folder; every problem in one pass (rule 1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnijudge import tables
from omnijudge.benchmarks.base import Annotations
from omnijudge.benchmarks.omni_duplexeval.evidence import (
    HEARD,
    SEEN,
    USABLE,
    RunEvidence,
    run_evidence,
)
from omnijudge.benchmarks.omni_duplexeval.rows import Row, list_rows
from omnijudge.benchmarks.omni_duplexeval.samples import (
    CORRECTION,
    event_times,
    is_description,
    references,
    task_of_split,
)
from omnijudge.benchmarks.omni_duplexeval.schemas import UNIT_SCHEMA
from omnijudge.benchmarks.omni_duplexeval.segments import finite_number
from omnijudge.errors import Problem
from omnijudge.values import has_cjk

if TYPE_CHECKING:
    from omnijudge.benchmarks.omni_duplexeval.options import Options
    from omnijudge.config import RunConfig
    from omnijudge.media import Caption, MediaInfo

OWN_COLUMNS = frozenset(
    [
        "id",
        "split",
        "subset",
        "question_text",
        "answer1",
        "answer2",
        "reminder1",
        "reminder2",
        "video_type",
        "video_duration",
        "video",
        "question_audio",
        "captions",
        "language",
        "video_id",
    ]
)
ODD = {
    "no_audio": "it has no sound",
    "variable_frame_rate": "its pictures come at uneven distances; they are found by their times",
    "rotated": "its pictures lie on their side in the file; they are shown upright",
}
"""What is unusual about a clip, and what is done about it."""
LACKING = "it has no sound, its evidence is frames"
LARGEST_DURATION_GAP = 0.5
"""Seconds by which the annotated and the real length of a clip may differ without a word."""


@dataclass(frozen=True, slots=True)
class SampleKey:
    """What finds a sample's response."""

    split: str
    id: str


def read_annotations(config: RunConfig, options: Options) -> Annotations:
    """Reads all annotations and looks at every clip that the run will show.

    Raises:
        ConfigError: the annotations are not there or of no known kind.
    """
    listing = list_rows(config)
    problems: list[Problem] = []
    captions = {r.sample_id: _captions(r, problems) for r in listing.rows.values()}
    found = run_evidence(options, config.judges, any(captions.values()))
    columns: dict[str, list[Any]] = {name: [] for name in UNIT_SCHEMA.names}
    samples: dict[str, SampleKey] = {}
    for sample_id in sorted(listing.rows):
        row = listing.rows[sample_id]
        values = _sample_values(row, captions[sample_id], found, options, problems)
        if values is not None:
            samples[sample_id] = SampleKey(row.split, row.id)
            _add_units(row, values, options, columns, problems)
    problems = [*listing.problems, *problems]
    if any(is_description(k.split) for k in samples.values()):
        # First, so that however long the list is, it stays in the manifest.
        problems = [*_evidence_problems(found, _clips(columns), listing.source), *problems]
    return Annotations(
        units=tables.make(UNIT_SCHEMA, dict(columns)),
        samples=samples,
        problems=problems,
        listed=listing.listed,
        files=listing.files,
    )


def _clips(columns: Mapping[str, list[Any]]) -> str:
    """How many clips of each state there are, and what is unusual about them; empty if unseen."""
    states: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    named = zip(columns["unit_kind"], columns["media_state"], columns["media_notes"], strict=True)
    for kind, state, noted in named:
        if kind == "sample" and state is not None:
            states[state] += 1
            notes.update(noted.split(",") if noted else ())
    said = [f"{n} {name}" for name, n in sorted(states.items())]
    odd = [f"{name} {n}" for name, n in sorted(notes.items())]
    return ", ".join(said) + (f" ({', '.join(odd)})" if odd else "")


def _evidence_problems(found: RunEvidence, clips: str, source: str) -> Iterable[Problem]:
    kinds = found.content
    if found.windows != found.content:
        kinds = f"windows {found.windows or 'none'}, content {found.content}"
    shown = f"; clips: {clips}" if clips else ""
    message = f"evidence: {kinds}, because {found.because}{shown}"
    yield Problem("evidence", "info", source, "", message)
    if found.windows is None:
        yield Problem(
            "no_evidence_for_windows",
            "warning",
            source,
            "",
            "temporal scores stay empty: a judge that only reads needs captions; add them, set "
            "scoring.evidence: references to judge by the references all the same, or tell what "
            "the judge takes in (engine_options.limit_mm_per_prompt, scoring.evidence: frames)",
        )


def _captions(row: Row, problems: list[Problem]) -> list[Caption] | None:
    from omnijudge.media import find_captions

    try:
        return find_captions(row.values.get("captions"), row.folder, row.media)
    except ValueError as e:
        problems.append(row.problem("bad_captions", "warning", f"captions: {e}"))
        return None


def _sample_values(
    row: Row,
    captions: list[Caption] | None,
    found: RunEvidence,
    options: Options,
    problems: list[Problem],
) -> dict[str, Any] | None:
    """Columns that all units of a sample share; None where it cannot be scored."""
    from omnijudge.media import source_digest

    description = is_description(row.split)
    question = row.values.get("question_text")
    if not isinstance(question, str) or not question.strip():
        problems.append(
            row.problem("no_question", "error", "question_text is empty; write the instruction")
        )
        return None
    kinds = (found.windows, found.content)
    shown = description and any(k in SEEN for k in kinds)
    media = _media(row, HEARD in kinds, problems) if shown else None
    digest = source_digest(row.media) if media and row.media and media.state in USABLE else None
    duration = _duration(row, media, problems)
    if description and duration is None:
        problems.append(
            row.problem(
                "no_duration",
                "error",
                f"video_duration is {row.values.get('video_duration')!r} and no clip tells the "
                "length; write the seconds",
            )
        )
        return None
    language = row.values.get("language")
    return {
        "sample_id": row.sample_id,
        "video_id": _text(row.values.get("video_id")) or row.sample_id,
        "split": row.split,
        "scene": "rtd" if description else "pr",
        "task": None if description else task_of_split(row.split),
        "question_text": question,
        "references": _references(row),
        "language": _text(language) or ("zh" if has_cjk(question) else "en"),
        "video_duration": duration,
        "video_type": _text(row.values.get("video_type")),
        "media": row.media_place,
        "media_digest": digest,
        "media_state": media.state if media else None,
        "media_notes": ",".join(media.notes) if media else None,
        "media_seconds": media.readable if media else None,
        "has_audio": media.has_audio if media else None,
        "captions": [c._asdict() for c in captions] if captions is not None else None,
        "window_evidence": found.windows,
        "content_evidence": found.content,
        "attributes": [
            (k, str(v))
            for k, v in row.values.items()
            if k not in OWN_COLUMNS and isinstance(v, str | int | float | bool)
        ],
    }


def _references(row: Row) -> list[str]:
    names = ("answer1",) if task_of_split(row.split) == CORRECTION else ("answer1", "answer2")
    return references(row.values.get(n) for n in names)


def _media(row: Row, heard: bool, problems: list[Problem]) -> MediaInfo:
    from omnijudge.media import probe

    info = probe(row.media)
    if info.state not in USABLE:
        message = f"clip {info.state}: {info.detail}; it cannot be shown, scores stay empty"
        problems.append(row.problem(f"media_{info.state}", "warning", message))
    elif info.state != "ok":
        message = f"clip {info.state}: {info.detail}; questions beyond that stay empty"
        problems.append(row.problem(f"media_{info.state}", "warning", message))
    for note in info.notes:
        lacking = note == "no_audio" and heard
        message = f"clip {note}: {LACKING if lacking else ODD[note]}"
        problems.append(row.problem(f"media_{note}", "warning" if lacking else "info", message))
    return info


def _duration(row: Row, media: MediaInfo | None, problems: list[Problem]) -> float | None:
    """Length of the clip: probed where the run looks at it, else as annotated."""
    stated = finite_number(row.values.get("video_duration"))
    stated = stated if stated is not None and stated > 0 else None
    if media is None or media.state != "ok" or media.duration is None:
        return stated or (media.duration if media else None)
    if stated is not None and abs(stated - media.duration) > LARGEST_DURATION_GAP:
        message = f"video_duration is {stated:g} s, the clip lasts {media.duration:.2f} s; taken"
        problems.append(row.problem("other_duration", "warning", message))
    return media.duration


def _add_units(
    row: Row,
    values: Mapping[str, Any],
    options: Options,
    columns: dict[str, list[Any]],
    problems: list[Problem],
) -> None:
    def add(unit_id: str, kind: str, event_time: float | None = None) -> None:
        own = {**values, "unit_id": unit_id, "unit_kind": kind, "event_time": event_time}
        for name, column in columns.items():
            column.append(own.get(name))

    if values["scene"] == "pr":
        times = []
        if values["task"] != CORRECTION:
            times = event_times(row.values, options.published)
            if not times:
                message = "no usable time in reminder1 or reminder2: the whole response is judged"
                problems.append(row.problem("no_event_time", "warning", message))
        elif not values["references"]:
            message = "answer1 is empty: the correction is judged without the right version"
            problems.append(row.problem("no_reference", "warning", message))
        for number, time in enumerate(times, 1):
            add(str(number), "event", time)
        if not times:
            add("full", "event")
    add("sample", "sample")


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
