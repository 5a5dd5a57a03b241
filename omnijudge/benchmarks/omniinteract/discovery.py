"""Samples and transcripts found through a system's ``batch_summary.json`` (rule 22).

The file lists what an inference run wrote: ``results`` with ``video``, ``output_dir`` and
``status`` per row. Everything but the output folder follows from the video's path.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from omnijudge.transcripts.files import UnreadableFile, read_json
from omnijudge.values import text_of

SUMMARY_FILE = "batch_summary.json"
MAP_FILE = "video_json_map.json"
ONE_TO_MANY = "1qna"
ONE_TO_MANY_MARK = "videos_bench"
# The maths subset first: its name holds the other one.
ONE_TO_ONE = ("1q1a_math", "1q1a")
SUBSETS = (*ONE_TO_ONE, ONE_TO_MANY)
NESTED_MARKS = ("/nested/", "/nested2/", "__nested__", "__nested2__")
TRANSCRIPT_NAMES = (
    "precise_truncation.json",
    "wav_transcript_aligned.json",
    "wav_transcript.json",
    "output.json",
)

SceneMaps = Mapping[str, Mapping[str, str]]
"""Per subset the scene type of each video, from its map file."""


class Files(Protocol):
    """The files of a repository; paths are relative to it, or absolute."""

    def is_file(self, path: str) -> bool:
        """Whether there is such a file."""
        ...

    def is_folder(self, path: str) -> bool:
        """Whether there is such a folder."""
        ...

    def folders_named(self, root: str, name: str) -> list[str]:
        """Folders of that name anywhere below ``root``."""
        ...


class Disk:
    """Files on disk below a folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._below: dict[str, dict[str, list[str]]] = {}

    def is_file(self, path: str) -> bool:
        """Whether there is such a file."""
        return (self._root / path).is_file()

    def is_folder(self, path: str) -> bool:
        """Whether there is such a folder."""
        return (self._root / path).is_dir()

    def folders_named(self, root: str, name: str) -> list[str]:
        """Folders of that name anywhere below ``root``; the tree is listed once."""
        if root not in self._below:
            found: dict[str, list[str]] = {}
            top = self._root / root
            for folder, names, _ in os.walk(top):
                inside = Path(folder).relative_to(top).as_posix()
                for n in names:
                    found.setdefault(n, []).append(posixpath.normpath(f"{root}/{inside}/{n}"))
            self._below[root] = found
        return self._below[root].get(name, [])


@dataclass(frozen=True, slots=True)
class Row:
    """One row of ``results``, looked up.

    Attributes:
        place: where it stands.
        video: as the row names it.
        scene: scene type.
        subset: folder of the release; empty where the path does not tell.
        expected_annotation: where its annotation should be, relative to the repository; empty
            where the path does not tell.
        annotation: the same if it is there, else empty.
        folder: name of its output folder.
        transcript: empty where there is none.
        status: the row's own; ``ok`` where it has none.
    """

    place: str
    video: str
    scene: str
    subset: str
    expected_annotation: str
    annotation: str
    folder: str
    transcript: str
    status: Any

    @property
    def dropped(self) -> bool:
        """The published evaluator passes the row over without a word."""
        return bool(self.status != "ok")

    @property
    def ready(self) -> bool:
        """Annotation and transcript are there."""
        return bool(self.annotation and self.transcript)

    @property
    def sample_id(self) -> str:
        """Subset and output folder; the video's name where there is no folder."""
        return f"{self.subset}__{self.folder}"


def discover(
    results: Sequence[Any],
    scenes: SceneMaps,
    files: Files,
    outputs: str,
    transcript_name: str | None = None,
) -> list[Row]:
    """Looks up every row of ``results``, in order; rows that are no objects are left out.

    Args:
        results: list of the batch summary.
        scenes: what the map files say.
        files: the repository.
        outputs: folder below which output folders are looked for.
        transcript_name: the only transcript name to accept; None: the usual ones, in order.
    """
    found = []
    names = TRANSCRIPT_NAMES if transcript_name is None else (transcript_name,)
    for number, row in enumerate(results):
        if not isinstance(row, dict):
            continue
        video = text_of(row.get("video"))
        subset, expected = annotation_path(video)
        given = text_of(row.get("output_dir"))
        folder = output_folder(given, files, outputs)
        transcript = ""
        if folder is not None:
            paths = (posixpath.join(folder, n) for n in names)
            transcript = next((p for p in paths if files.is_file(p)), "")
        name = posixpath.basename(_slashes(folder or given).rstrip("/"))
        found.append(
            Row(
                place=f"results[{number}]",
                video=video,
                scene=scene_type(video, scenes),
                subset=subset,
                expected_annotation=expected,
                annotation=expected if expected and files.is_file(expected) else "",
                folder=name or _stem(_slashes(video)).replace("/", "__"),
                transcript=transcript,
                status=row.get("status", "ok"),
            )
        )
    return found


def _slashes(path: str) -> str:
    return path.replace("\\", "/")


def _stem(path: str) -> str:
    return posixpath.splitext(path)[0]


def is_one_to_many(video: str) -> bool:
    """Whether a video belongs to the 1QnA subset."""
    path = _slashes(video)
    return f"/{ONE_TO_MANY}/" in path.lower() or ONE_TO_MANY_MARK in path


def scene_type(video: str, scenes: SceneMaps) -> str:
    """Scene type of a video: 1QnA by its path, else by the map file, else by its folders."""
    if is_one_to_many(video):
        return "1QnA"
    path = _slashes(video)
    for subset in ONE_TO_ONE:
        at = path.rfind(f"{subset}/")
        if at >= 0:
            listed = scenes.get(subset, {}).get(path[at + len(subset) + 1 :])
            if listed:
                return listed
            break
    return "nested" if any(mark in path for mark in NESTED_MARKS) else "multi_turn"


def annotation_path(video: str) -> tuple[str, str]:
    """(subset, path of the annotation below the repository); empty where the path says neither."""
    parts = _slashes(video).split("/")
    if is_one_to_many(video):
        if ONE_TO_MANY_MARK not in parts:
            return ONE_TO_MANY, ""
        return ONE_TO_MANY, _annotation(ONE_TO_MANY, _after(parts, ONE_TO_MANY_MARK))
    for subset in ONE_TO_ONE:
        if subset in parts:
            rest = _after(parts, subset)
            return subset, _annotation(subset, rest[1:] if rest[:1] == ["videos"] else rest)
    return "", ""


def _after(parts: list[str], name: str) -> list[str]:
    return [p for p in parts[parts.index(name) + 1 :] if p]


def _annotation(subset: str, inside: list[str]) -> str:
    return f"data/{subset}/annotations/{_stem('/'.join(inside))}.json" if inside else ""


def output_folder(given: str, files: Files, outputs: str) -> str | None:
    """The folder a row's output is in: as given, else by its name below ``outputs``."""
    if given and files.is_folder(given):
        return given
    path = _slashes(given).rstrip("/")
    name = posixpath.basename(path)
    if not name:
        return None
    named = [s for s in SUBSETS if s in path.split("/")]
    candidates = [name, *(f"{s}/{name}" for s in dict.fromkeys([*named, *SUBSETS]))]
    for candidate in candidates:
        folder = posixpath.normpath(posixpath.join(outputs, candidate))
        if files.is_folder(folder):
            return folder
    hits = files.folders_named(outputs, name)
    return hits[0] if len(hits) == 1 else None


def read_scene_maps(repository: Path) -> SceneMaps:
    """The map files of a repository; one that is missing or unreadable says nothing."""
    maps: dict[str, dict[str, str]] = {}
    for subset in ONE_TO_ONE:
        try:
            value = read_json(repository / "data" / subset / MAP_FILE)
        except UnreadableFile:
            continue
        entries = value.get("entries") if isinstance(value, dict) else None
        maps[subset] = {
            e["video"]: e["scene_type"]
            for e in (entries if isinstance(entries, list) else [])
            if isinstance(e, dict)
            and isinstance(e.get("video"), str)
            and isinstance(e.get("scene_type"), str)
        }
    return maps


def repository_of(path: Path) -> Path | None:
    """The nearest folder above ``path`` that holds ``data/``; None if there is none."""
    return next((p for p in path.resolve().parents if (p / "data").is_dir()), None)
