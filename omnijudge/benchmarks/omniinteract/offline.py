"""Offline maths (rule 21): short clips answered with the whole clip in view, no time to keep.

Each clip is a sample of its own with one unit of kind ``offline``; the core judge rates the answer.
So sums, intervals and comparisons of ``offline_quality`` are made like all others. Clips of one
video lie in one cluster with that video.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnijudge.benchmarks.omniinteract.layout import MATHS_SUBSET, Sample, bad_id
from omnijudge.errors import ConfigError, Problem
from omnijudge.transcripts.files import UnreadableFile, load_json_or_lines, read_bytes
from omnijudge.values import has_cjk, text_of

if TYPE_CHECKING:
    import pyarrow as pa

    from omnijudge.benchmarks.base import Partition

KIND = "offline"
SCENE = "offline_math"
UNIT_ID = "1"


@dataclass(frozen=True, slots=True)
class Record:
    """One system's answer to a clip.

    Attributes:
        status: ``ok`` where the system answered.
        answer: its words.
        place: where the record stands.
    """

    status: Any
    answer: str
    place: str


@dataclass(frozen=True)
class Clip:
    """One clip with its question.

    Attributes:
        sample_id: name of the clip.
        records: system -> its record.
        systems: systems that have a record of any clip.
    """

    sample_id: str
    question: str
    target_answer: str
    video_id: str
    source: str
    records: dict[str, Record] = field(default_factory=dict)
    systems: frozenset[str] = frozenset()

    @property
    def language(self) -> str:
        """Language of question and answer."""
        return "zh" if has_cjk(self.question) or has_cjk(self.target_answer) else "en"

    def output(self, system: str) -> tuple[str, str]:
        """(state, detail) of a system's answer, as in ``tables.OUTPUTS``."""
        record = self.records.get(system)
        if record is not None:
            if record.status == "ok":
                return "ok", ""
            return "missing", f"its offline record has the status {record.status!r}"
        if system in self.systems:
            return "missing", "there is no offline record of this clip"
        return "not_evaluated", "there are no offline records of this system"

    def unit(self) -> dict[str, Any]:
        """Its row of the unit table."""
        return {
            "sample_id": self.sample_id,
            "unit_id": UNIT_ID,
            "unit_kind": KIND,
            "video_id": self.video_id,
            "scene_type": SCENE,
            "turn_index": 1,
            "boundary": "soft",
            "is_interrupted": False,
            "is_math": True,
            "question_text": self.question,
            "target_answer": self.target_answer,
            "language": self.language,
            "attributes": [],
        }


def read_clips(
    path: Path, systems: Sequence[str], samples: Mapping[str, Sample], problems: list[Problem]
) -> dict[str, Clip]:
    """Reads the records: a JSON list, JSON lines, or an object with ``items``.

    A record has ``clip_name``, ``question_text``, ``ground_truth``, ``model_answer``, ``status``
    and perhaps ``source_video``; where the run has several systems also ``model``.

    Args:
        path: the file.
        systems: systems of the run.
        samples: its other samples, for the clusters.
        problems: everything found is added to it.

    Raises:
        ConfigError: there is no file, or records do not say whose they are.
    """
    if not path.is_file():
        raise ConfigError(f"data.offline: there is no file {path}")
    try:
        document = load_json_or_lines(read_bytes(path), str(path))
    except UnreadableFile as e:
        problems.append(e.problem)
        return {}
    rows = document.value
    if document.lines is None and isinstance(rows, dict):
        rows = rows.get("items", [rows])
    if not isinstance(rows, list):
        message = "must be a list of records, or an object whose `items` is one"
        problems.append(Problem("wrong_root", "error", str(path), "", message))
        return {}
    reading = _Reading(path, list(systems), samples, problems)
    for number, row in enumerate(rows):
        lines = document.lines
        reading.add(row, f"line {lines[number]}" if lines else f"record {number}")
    return reading.clips()


class _Reading:
    def __init__(
        self,
        path: Path,
        systems: list[str],
        samples: Mapping[str, Sample],
        problems: list[Problem],
    ) -> None:
        self.path = path
        self.systems = systems
        self.samples = samples
        self.problems = problems
        self.found: dict[str, Clip] = {}

    def add(self, row: Any, place: str) -> None:
        def problem(code: str, message: str, clip: str | None = None) -> None:
            self.problems.append(Problem(code, "error", str(self.path), place, message, clip))

        if not isinstance(row, dict):
            problem("wrong_root", "a record must be an object")
            return
        name = text_of(row.get("clip_name"))
        if not name:
            problem("missing_key", "clip_name is missing: name the clip")
            return
        if bad := bad_id(name):
            problem("bad_id", bad, name)
            return
        if name in self.samples:
            problem("duplicate_id", f"{name!r} is the id of a recording; rename the clip", name)
            return
        system = self._system_of(row)
        if system not in self.systems:
            problem(
                "unknown_system",
                f"is about the system {system!r}, which the run does not have; "
                "add it to `systems` or take the record out",
            )
            return
        clip = Clip(
            sample_id=name,
            question=text_of(row.get("question_text")),
            target_answer=text_of(row.get("ground_truth")),
            video_id=cluster_of(text_of(row.get("source_video")), self.samples) or name,
            source=str(self.path),
        )
        known = self.found.setdefault(name, clip)
        if (known.question, known.target_answer) != (clip.question, clip.target_answer):
            problem("duplicate_id", f"clip {name!r} stands for another question already", name)
        elif system in known.records:
            first = known.records[system].place
            problem("duplicate_id", f"clip {name!r} stands twice (first in {first})", name)
        else:
            answer = text_of(row.get("model_answer"))
            known.records[system] = Record(row.get("status"), answer, place)

    def _system_of(self, row: Mapping[str, Any]) -> str:
        named = row.get("model", row.get("system"))
        if named is not None:
            return str(named)
        if len(self.systems) != 1:
            raise ConfigError(
                f"data.offline: {self.path} does not say which system answered, and the run has "
                f"{len(self.systems)}; give each record the key `model`"
            )
        return self.systems[0]

    def clips(self) -> dict[str, Clip]:
        systems = frozenset(s for c in self.found.values() for s in c.records)
        return {name: replace(clip, systems=systems) for name, clip in self.found.items()}


def cluster_of(video: str, samples: Mapping[str, Sample]) -> str:
    """Cluster of a clip: the video it was cut from, as the run names it."""
    if not video:
        return ""
    parts = [p for p in video.replace("\\", "/").split("/") if p]
    if MATHS_SUBSET in parts:
        parts = parts[parts.index(MATHS_SUBSET) + 1 :]
    name = f"{MATHS_SUBSET}__" + "__".join(parts).rpartition(".")[0]
    return samples[name].video_id if name in samples else name


def offline_rows(units: pa.Table) -> list[int]:
    """Rows of the units that are offline clips."""
    return [i for i, kind in enumerate(units["unit_kind"].to_pylist()) if kind == KIND]


def recordings(part: Partition) -> Partition:
    """The partition without offline clips: what has a time line."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = offline_rows(part.units)
    if not rows:
        return part
    clips = pa.array([part.units["sample_id"][r].as_py() for r in rows], pa.string())

    def rest(table: pa.Table) -> pa.Table:
        return table.filter(pc.invert(pc.is_in(table["sample_id"], clips)))

    return replace(part, outputs=rest(part.outputs), chunks=rest(part.chunks))
