"""What a ``batch_summary.json`` is used for: a list of samples, or the way to transcripts.

Rows whose status is not ``ok`` are no samples for the published evaluator, which passes over them
without a word. Profiles ``robust`` and ``paper`` count them as silence, like any missing output.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from omnijudge.benchmarks.omniinteract.discovery import (
    SUMMARY_FILE,
    Disk,
    Row,
    discover,
    read_scene_maps,
    repository_of,
)
from omnijudge.benchmarks.omniinteract.layout import Listing, Sample, bad_id
from omnijudge.errors import ConfigError, Problem
from omnijudge.transcripts.files import UnreadableFile, read_json


def is_batch_summary(path: Path) -> bool:
    """Whether a list of samples is a batch summary: an object with ``results``."""
    try:
        value = read_json(path)
    except UnreadableFile:
        return False
    return isinstance(value, dict) and "results" in value and "items" not in value


def read_batch_summary(path: Path, known_systems: set[str], published: bool) -> Listing:
    """Samples of a batch summary and the one system they belong to.

    The repository is the nearest folder above the file that holds ``data/``; output folders that
    are not where their rows say are looked for beside the file.

    Args:
        path: the file.
        known_systems: systems of the configuration.
        published: leave rows out whose status is not ``ok``.

    Raises:
        ConfigError: no repository around it, or it belongs to a system that is not configured.
    """
    value = read_json(path)
    repository = repository_of(path)
    if repository is None:
        raise ConfigError(
            f"data.manifest: no folder above {path} holds data/ with the annotations; "
            "put the outputs below the benchmark's folder, or use data.root"
        )
    if not isinstance(value["results"], list):
        problem = Problem("wrong_root", "error", str(path), "results", "must be a list of rows")
        return Listing({}, [problem], 0, [], [path])
    system = _system_of(path, value, known_systems)
    rows = discover(
        value["results"],
        read_scene_maps(repository),
        Disk(repository),
        str(path.resolve().parent),
    )
    listing = Listing({}, [], 0, [system], [path])
    listed: set[str] = set()
    for number, given in enumerate(value["results"]):
        if not isinstance(given, dict):
            listing.problems.append(
                Problem(
                    "wrong_root", "error", str(path), f"results[{number}]",
                    "a row must be an object",
                )
            )  # fmt: skip
    for row in rows:
        if row.dropped and published:
            listing.problems.append(
                Problem(
                    "failed_row", "warning", str(path), row.place,
                    f"{row.video!r} has the status {row.status!r}; left out, as published",
                )
            )  # fmt: skip
            continue
        listed.add(row.sample_id)
        _add(row, path, repository, system, listing)
    return Listing(listing.samples, listing.problems, len(listed), [system], [path])


def _system_of(path: Path, value: Mapping[str, Any], known: set[str]) -> str:
    """The ``model`` of the file, else the only configured system, else the folder's name."""
    named = value.get("model")
    if isinstance(named, str) and named:
        system = named
    else:
        system = next(iter(known)) if len(known) == 1 else path.resolve().parent.name
    if known and system not in known:
        raise ConfigError(
            f"data.manifest: {path} belongs to the system {system!r}, which the configuration "
            "does not list; add it to `systems`"
        )
    return system


def _add(row: Row, path: Path, repository: Path, system: str, listing: Listing) -> None:
    def problem(code: str, message: str) -> None:
        listing.problems.append(
            Problem(code, "error", str(path), row.place, message, row.sample_id)
        )

    if not row.annotation:
        where = f"; there is no {row.expected_annotation}" if row.expected_annotation else ""
        problem("missing_annotation", f"the annotation of {row.video!r} is not found{where}")
        return
    if bad := bad_id(row.sample_id):
        problem("bad_id", bad)
        return
    if row.sample_id in listing.samples:
        first = listing.samples[row.sample_id].place
        problem("duplicate_id", f"stands twice (first in {first}); remove one of the rows")
        return
    transcript = repository / row.transcript if row.transcript else None
    reason = "the folder of its row holds no transcript, or is not found"
    if row.dropped:
        transcript, reason = None, f"{path.name} gives it the status {row.status!r}"
    listing.samples[row.sample_id] = Sample(
        sample_id=row.sample_id,
        scene_type=row.scene,
        annotation=repository / row.annotation,
        source=str(path),
        place=row.place,
        video_id=row.sample_id,
        subset=row.subset,
        folder=row.folder,
        outputs={system: transcript},
        reasons={} if transcript else {system: reason},
        paths=(row.video,),
        attributes={"subset": row.subset},
    )


class SummaryOfSystem:
    """The batch summary in a system's folder: where the output of an annotation is."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / SUMMARY_FILE
        self._root = repository_of(self._file) or folder

    @cached_property
    def _rows(self) -> dict[str, Row] | str:
        """Rows by annotation, or what is wrong with the file."""
        try:
            value = read_json(self._file)
        except UnreadableFile as e:
            return str(e.problem)
        results = value.get("results") if isinstance(value, dict) else None
        if not isinstance(results, list):
            return f"{self._file}: needs a list `results`"
        outputs = str(self._file.resolve().parent)
        rows = discover(results, {}, Disk(self._root), outputs)
        found: dict[str, Row] = {}
        for row in rows:
            found.setdefault(row.expected_annotation, row)
        return found

    def find(self, annotation: str) -> Path | None:
        """The transcript for ``data/<subset>/annotations/...``; None if there is none."""
        rows = self._rows
        row = None if isinstance(rows, str) else rows.get(annotation)
        if row is None or row.dropped or not row.transcript:
            return None
        return self._root / row.transcript

    def reason(self, annotation: str) -> str:
        """Why there is none."""
        rows = self._rows
        if isinstance(rows, str):
            return rows
        row = rows.get(annotation)
        if row is None:
            return f"no transcript found, and {SUMMARY_FILE} does not list its video"
        if row.dropped:
            return f"{SUMMARY_FILE} gives it the status {row.status!r}"
        return f"no transcript in the folder that {SUMMARY_FILE} names"
