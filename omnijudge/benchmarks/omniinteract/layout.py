"""Finding samples: the manifest and the folders of the benchmark's release (rule 22)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omnijudge.benchmarks.omniinteract.discovery import MAP_FILE
from omnijudge.errors import ConfigError, Problem
from omnijudge.transcripts.files import UnreadableFile, load_json_or_lines, read_bytes, read_json
from omnijudge.values import attribute_text

SUBSETS = ("1q1a", "1q1a_math", "1qna")
MANIFEST_KEYS = {"sample_id", "gt_json", "model_json", "scene_type", "model", "system", "video_id"}
MANIFEST_KEYS |= {"language", "status", "video"}
MATHS_SUBSET = "1q1a_math"


@dataclass(frozen=True)
class Sample:
    """Where one sample is.

    Attributes:
        annotation: path of the annotation.
        place: where the list names it, for messages.
        subset: folder of the release (empty when listed by a manifest).
        folder: name of the output folder (``videos__0001``).
        outputs: system -> transcript path named by the manifest; None where the manifest says
            that it is missing.
        reasons: system -> why its transcript is None, where the list says it.
        paths: further paths the list names (the maths subset is told by them).
        attributes: further columns of the list.
    """

    sample_id: str
    scene_type: str
    annotation: Path
    source: str
    place: str
    video_id: str
    language: str | None = None
    subset: str = ""
    folder: str = ""
    outputs: dict[str, Path | None] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    paths: tuple[str, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_math(self) -> bool:
        """Whether one of its paths lies in the maths subset (rule 21)."""
        marks = (f"/{MATHS_SUBSET}/", f"\\{MATHS_SUBSET}\\")
        own = (str(self.annotation), *(str(p) for p in self.outputs.values() if p))
        return any(m in p for p in (*own, *self.paths) for m in marks)

    @property
    def released_as(self) -> str | None:
        """Path of the annotation in the release, ``data/<subset>/annotations/...``."""
        parts = self.annotation.parts
        if not self.subset or self.subset not in parts:
            return None
        last = len(parts) - 1 - parts[::-1].index(self.subset)
        return "/".join(("data", *parts[last:]))


@dataclass(frozen=True)
class Listing:
    """What a list of samples names."""

    samples: dict[str, Sample]
    problems: list[Problem]
    listed: int
    systems: list[str]
    files: list[Path]


def read_manifest(path: Path, known_systems: set[str]) -> Listing:
    """Reads a manifest: JSON lines, a JSON list, or an object with ``items``.

    Paths are relative to the manifest. Rows that name a ``model`` (or ``system``) bring their
    systems along; ``known_systems`` are those of the configuration (empty: any is welcome).
    """
    file = str(path)
    problems: list[Problem] = []
    try:
        document = load_json_or_lines(read_bytes(path), file)
    except UnreadableFile as e:
        return Listing({}, [e.problem], 0, [], [path])
    value, lines = document.value, document.lines
    if lines is None and isinstance(value, dict):
        value = value["items"] if isinstance(value.get("items"), list) else [value]
    if not isinstance(value, list):
        problem = Problem(
            "wrong_root", "error", file, "", "must be a list of samples or JSON lines"
        )
        return Listing({}, [problem], 0, [], [path])
    samples: dict[str, Sample] = {}
    systems: dict[str, None] = {}
    listed: set[str] = set()
    for number, row in enumerate(value):
        place = f"line {lines[number]}" if lines else f"row {number}"
        _manifest_row(row, place, path, known_systems, samples, systems, listed, problems)
    return Listing(samples, problems, len(listed), list(systems), [path])


def _manifest_row(
    row: Any,
    place: str,
    path: Path,
    known_systems: set[str],
    samples: dict[str, Sample],
    systems: dict[str, None],
    listed: set[str],
    problems: list[Problem],
) -> None:
    def problem(code: str, message: str, sample_id: str | None = None) -> None:
        problems.append(Problem(code, "error", str(path), place, message, sample_id))

    if not isinstance(row, dict):
        problem("wrong_root", "a row must be an object")
        return
    gt = row.get("gt_json")
    if not isinstance(gt, str) or not gt:
        problem("missing_key", "gt_json is missing: name the annotation file")
        return
    sample_id = row.get("sample_id")
    if sample_id is None or sample_id == "":
        sample_id = Path(gt).stem
    sample_id = str(sample_id)
    listed.add(sample_id)
    if bad := bad_id(sample_id):
        problem("bad_id", bad, sample_id)
        return
    system = row.get("model", row.get("system"))
    if system is not None:
        system = str(system)
        if known_systems and system not in known_systems:
            problem(
                "unknown_system",
                f"names the system {system!r}, which the configuration does not list; "
                "add it to `systems` or take the row out",
            )
            return
        systems.setdefault(system)
    annotation = Path(os.path.normpath(path.parent / gt))
    transcript = row.get("model_json")
    missing = row.get("status") == "missing_input" or not isinstance(transcript, str)
    output = None if missing or not transcript else Path(os.path.normpath(path.parent / transcript))
    known = samples.get(sample_id)
    if known is None:
        attributes = {
            k: attribute_text(v) for k, v in row.items() if k not in MANIFEST_KEYS and v is not None
        }
        video = row.get("video")
        samples[sample_id] = Sample(
            sample_id=sample_id,
            scene_type=str(row.get("scene_type")),
            annotation=annotation,
            source=str(path),
            place=place,
            video_id=str(row.get("video_id") or sample_id),
            language=str(row["language"]) if row.get("language") else None,
            outputs={} if system is None else {system: output},
            paths=tuple(str(p) for p in (gt, transcript, video) if isinstance(p, str)),
            attributes=attributes,
        )
        if system is None and output is not None:
            samples[sample_id].outputs[""] = output
        return
    if known.annotation != annotation or known.scene_type != str(row.get("scene_type")):
        problem(
            "duplicate_id",
            f"sample id {sample_id!r} stands for another annotation already ({known.place}); "
            "give each sample an id of its own",
            sample_id,
        )
        return
    if system is None or system in known.outputs:
        who = "" if system is None else f" for system {system!r}"
        problem(
            "duplicate_id",
            f"sample id {sample_id!r} is listed twice{who} (first in {known.place}); "
            "remove one of the rows",
            sample_id,
        )
        return
    known.outputs[system] = output


def bad_id(sample_id: str) -> str | None:
    """Why an id cannot be used; None if it can."""
    if "/" in sample_id or "\\" in sample_id:
        return f"sample id {sample_id!r} has a path separator; use another character"
    if not sample_id.strip() or any(ord(c) < 32 for c in sample_id):
        return f"sample id {sample_id!r} is blank or has control characters"
    return None


def read_root(root: Path) -> Listing:
    """Reads the release layout: ``<root>/<subset>/annotations`` with its map files.

    Raises:
        ConfigError: no subset folder there.
    """
    base = root if _subset_folders(root) else root / "data"
    subsets = _subset_folders(base)
    if not subsets:
        raise ConfigError(
            f"data.root: {root} holds none of the folders {', '.join(SUBSETS)}; "
            "point it at the folder that does, or use data.manifest"
        )
    samples: dict[str, Sample] = {}
    problems: list[Problem] = []
    files: list[Path] = []
    listed = 0
    for subset in subsets:
        rows = (
            _one_to_many(base / subset)
            if subset == "1qna"
            else _mapped(base / subset, problems, files)
        )
        for place, source, annotation, video, scene in rows:
            listed += 1
            folder = os.path.splitext(video)[0].replace("/", "__")
            sample_id = f"{subset}__{folder}"
            if sample_id in samples:
                problems.append(
                    Problem(
                        "duplicate_id",
                        "error",
                        source,
                        place,
                        f"video {video!r} is listed twice; remove one of the rows",
                        sample_id,
                    )
                )
                continue
            samples[sample_id] = Sample(
                sample_id=sample_id,
                scene_type=scene,
                annotation=annotation,
                source=source,
                place=place,
                video_id=sample_id,
                subset=subset,
                folder=folder,
                attributes={"subset": subset},
            )
    return Listing(samples, problems, listed, [], files)


def _subset_folders(base: Path) -> list[str]:
    return [s for s in SUBSETS if (base / s).is_dir()]


Row = tuple[str, str, Path, str, str]
"""(place, list file, annotation, video path inside the subset, scene type)."""


def _one_to_many(subset: Path) -> Iterator[Row]:
    annotations = subset / "annotations"
    for file in sorted(annotations.rglob("*.json")):
        inside = file.relative_to(annotations).with_suffix("").as_posix()
        yield "", str(file), file, f"videos_bench/{inside}.mp4", "1QnA"


def _mapped(subset: Path, problems: list[Problem], files: list[Path]) -> Iterator[Row]:
    map_file = subset / MAP_FILE
    annotated = sorted((subset / "annotations").rglob("*.json"))
    if not map_file.is_file():
        if annotated:
            problems.append(
                Problem(
                    "missing_map",
                    "warning",
                    str(map_file),
                    "",
                    "is missing; scene types are guessed from the paths (nested or multi_turn)",
                )
            )
        for file in annotated:
            inside = file.relative_to(subset / "annotations").with_suffix("").as_posix()
            nested = "nested" in Path(inside).parts[:-1] or "nested2" in Path(inside).parts[:-1]
            yield "", str(file), file, f"videos/{inside}.mp4", "nested" if nested else "multi_turn"
        return
    files.append(map_file)
    try:
        value = read_json(map_file)
    except UnreadableFile as e:
        problems.append(e.problem)
        return
    entries = value.get("entries") if isinstance(value, dict) else None
    if not isinstance(entries, list):
        problems.append(Problem("wrong_root", "error", str(map_file), "", "needs a list `entries`"))
        return
    seen: set[Path] = set()
    for number, entry in enumerate(entries):
        place = f"entries[{number}]"
        keys = ("video", "annotation", "scene_type")
        if not isinstance(entry, dict) or not all(isinstance(entry.get(k), str) for k in keys):
            problems.append(
                Problem(
                    "missing_key",
                    "error",
                    str(map_file),
                    place,
                    "needs the texts video, annotation and scene_type",
                )
            )
            continue
        annotation = subset / entry["annotation"]
        seen.add(annotation)
        yield place, str(map_file), annotation, entry["video"], entry["scene_type"]
    for file in annotated:
        if file not in seen:
            problems.append(
                Problem(
                    "not_listed",
                    "warning",
                    str(file),
                    "",
                    f"is not in {MAP_FILE} and is not scored; add it there or remove it",
                )
            )
