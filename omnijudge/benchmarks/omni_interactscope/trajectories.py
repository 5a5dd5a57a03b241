"""Finding what a system said: files of trajectories, or one transcript per interaction.

A system is read block by block, so what is kept of it is where each trajectory stands, not its
text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson

from omnijudge.benchmarks.omni_interactscope.checks import UnknownKeys
from omnijudge.benchmarks.omni_interactscope.jsonlines import json_lines, json_value
from omnijudge.errors import Problem
from omnijudge.transcripts.files import UnreadableFile, is_blank, read_bytes

Stamp = tuple[tuple[str, int, int], ...]
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_ROW_KEYS = frozenset(("interaction_id", "granularity", "outputs"))
_OUTPUT_KEYS = frozenset(("t", "text", "tools"))
_PASSED_OVER = {"trajectories": "is passed over"}


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a trajectory stands: a stretch of a file, or (where bytes cannot tell) its value."""

    file: str
    place: str
    offset: int = 0
    length: int = 0
    value: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Source:
    """Everything found for one system.

    Attributes:
        spots: interaction id -> every trajectory that names it (one, unless something is wrong).
        transcripts: name of a file without suffix, and of its folder -> files that hold no
            trajectory.
        faults: such a file -> what keeps it from being one of trajectories.
        problems: what is wrong with whole files, and with rows that name no interaction.
        refused: why nothing of a system's only file can be used; None if something can.
    """

    spots: Mapping[str, Sequence[Spot]]
    transcripts: Mapping[str, Sequence[str]]
    faults: Mapping[str, Sequence[Problem]]
    problems: Sequence[Problem]
    refused: Problem | None = None


@dataclass(frozen=True, slots=True)
class _Row:
    """A trajectory with the interaction it names, if it names one."""

    identity: str | None
    spot: Spot


def find_outputs(path: str) -> Source:
    """Looks through a file of trajectories, or through all files below a folder.

    A file that holds an object with ``outputs`` is a file of trajectories: JSON lines, a JSON
    list, or one object. Any other file of a folder is a transcript, of the interaction it (or its
    folder) is named after.
    """
    return _find(path, _stamp(path))


def load(spot: Spot) -> Mapping[str, Any]:
    """The trajectory at a spot, as written.

    Raises:
        UnreadableFile: the file is gone or has changed since it was looked through.
    """
    if spot.value is not None:
        return spot.value
    row = None
    try:
        with open(spot.file, "rb") as stream:
            stream.seek(spot.offset)
            row = orjson.loads(stream.read(spot.length))
    except (OSError, orjson.JSONDecodeError):
        pass
    if not isinstance(row, dict):
        message = "the file has changed while it was read; run again"
        raise UnreadableFile("unreadable_file", spot.file, spot.place, message)
    return row


def _files(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders.sort()
        yield from (os.path.join(folder, name) for name in sorted(names) if name[0] != ".")


def _stamp(path: str) -> Stamp:
    """Size and time of every file, so that a change is noticed."""
    found = []
    for file in _files(path):
        try:
            status = os.stat(file)
        except OSError:
            continue
        found.append((file, status.st_size, status.st_mtime_ns))
    return tuple(found)


@lru_cache(maxsize=64)
def _find(path: str, stamp: Stamp) -> Source:
    problems: list[Problem] = []
    alone = not os.path.isdir(path)
    spots: dict[str, list[Spot]] = {}
    transcripts: dict[str, list[str]] = {}
    faults: dict[str, Sequence[Problem]] = {}
    refused: Problem | None = None
    for file, _, _ in stamp:
        found: list[Problem] = []
        try:
            rows = _rows(file, read_bytes(file), alone, found)
        except UnreadableFile as e:
            problems += [*found, e.problem]
            refused = e.problem if alone else None
            continue
        if rows is None:
            faults[file] = found
            # A set, because folder and file may bear the same name.
            for name in sorted({Path(file).stem, Path(file).parent.name}):
                transcripts.setdefault(name, []).append(file)
            continue
        problems += found
        for row in rows:
            identity = row.identity
            if identity is None and len(rows) == 1 and not alone:
                identity = Path(file).stem
            if identity is None:
                message = "a trajectory needs interaction_id; the row is not used"
                problems.append(Problem("missing_key", "error", file, row.spot.place, message))
            else:
                spots.setdefault(identity, []).append(row.spot)
    return Source(spots, transcripts, faults, tuple(problems), refused)


def _rows(file: str, data: bytes, alone: bool, faults: list[Problem]) -> list[_Row] | None:
    """Trajectories of a file; None if it holds none and may be a transcript.

    Args:
        file: its path.
        data: its bytes.
        alone: it is all there is of a system, so that it must hold trajectories.
        faults: where findings go.

    Raises:
        UnreadableFile: it is in another encoding, or holds no trajectory and must.
    """
    if alone and is_blank(data):
        message = f"the file is empty ({len(data)} bytes); write it again"
        raise UnreadableFile("empty_file", file, "", message)
    body = data.lstrip(_UTF8_MARK + b" \t\r\n")
    unknown = UnknownKeys()
    rows: list[_Row] = []
    if body.startswith((b"{", b"[")) or data.startswith(_UTF16_MARKS):
        for spot, value in _values(file, data, faults):
            if isinstance(value, dict) and "outputs" in value:
                rows.append(_Row(_identity(value), spot))
                _note_keys(value, spot.place, unknown)
            else:
                message = (
                    "is no trajectory; write an object with interaction_id and the list outputs"
                )
                faults.append(Problem("wrong_format", "error", file, spot.place, message))
    if rows:
        faults += unknown.problems(file, _PASSED_OVER)
        return rows
    if alone:
        message = (
            "holds no trajectory (an object with interaction_id and the list outputs); "
            "transcripts of other tools go into a folder, one file per interaction, named after it"
        )
        raise UnreadableFile("wrong_format", file, "", message)
    return None


def _note_keys(row: Mapping[str, Any], place: str, unknown: UnknownKeys) -> None:
    unknown.add("trajectories", row.keys(), _ROW_KEYS, place)
    outputs = row["outputs"]
    for entry in outputs if isinstance(outputs, list) else ():
        if isinstance(entry, dict) and not entry.keys() <= _OUTPUT_KEYS:
            unknown.add("outputs", entry.keys(), _OUTPUT_KEYS, place)


def _values(file: str, data: bytes, faults: list[Problem]) -> Iterator[tuple[Spot, Any]]:
    try:
        whole = orjson.loads(data)
    except orjson.JSONDecodeError:
        whole = None
    if isinstance(whole, dict):
        yield Spot(file, "", value=whole), whole
        return
    stretched = b"\r" in data.replace(b"\r\n", b"\n") or data.startswith(_UTF16_MARKS)
    if isinstance(whole, list) or stretched or data.lstrip(_UTF8_MARK + b" \t\r\n")[:1] == b"[":
        for line in json_lines(data, file, faults):
            yield Spot(file, line.place, value=line.value), line.value
        return
    offset = len(_UTF8_MARK) if data.startswith(_UTF8_MARK) else 0
    for count, raw in enumerate(data[offset:].split(b"\n"), 1):
        spot = Spot(file, f"line {count}", offset, len(raw))
        offset += len(raw) + 1
        if not raw.strip():
            continue
        try:
            yield spot, orjson.loads(raw)
            continue
        except orjson.JSONDecodeError:
            pass
        try:  # half a surrogate pair, NaN: readable, but not by orjson
            value = json_value(raw.decode("utf-8"))
        except ValueError as e:
            message = f"not JSON: {e}; correct the line or write the file again"
            faults.append(Problem("bad_json", "error", file, spot.place, message))
            continue
        yield Spot(file, spot.place, value=value), value


def _identity(row: Mapping[str, Any]) -> str | None:
    value = row.get("interaction_id")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value.strip() else None
