"""Finding annotation rows: JSON, JSON lines, CSV, Parquet, Arrow; a file or a folder (rule 1)."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnijudge.benchmarks.omni_duplexeval.samples import SPLITS
from omnijudge.errors import ConfigError, Level, Problem
from omnijudge.transcripts.files import (
    UnreadableFile,
    load_json_or_lines,
    read_bytes,
    read_text,
)

if TYPE_CHECKING:
    from omnijudge.config import RunConfig

ENDINGS = (".jsonl", ".json", ".parquet", ".arrow", ".csv", ".tsv")
CANONICAL = {s.lower(): s for s in SPLITS}
MEDIA_FOLDERS = ("", "videos", "video", "media")


@dataclass(frozen=True)
class Row:
    """An annotation row.

    Attributes:
        split: split of the benchmark it belongs to.
        id: its id inside the split.
        values: cells by column.
        file: the file it stands in.
        place: where in the file, for messages.
        folder: folder of the file, which relative paths are meant from.
        root: folder of the data.
        media: where the clip is, if a cell names one or holds it.
    """

    split: str
    id: str
    values: Mapping[str, Any]
    file: str
    place: str
    folder: Path
    root: Path
    media: str | None = None

    @property
    def sample_id(self) -> str:
        """Id of the sample in all tables."""
        return f"{self.split}/{self.id}"

    @property
    def media_place(self) -> str | None:
        """The clip from the folder of the data, so that tables name no machine's folders."""
        return (
            None if self.media is None else Path(os.path.relpath(self.media, self.root)).as_posix()
        )

    def problem(self, code: str, level: Level, message: str) -> Problem:
        """A finding about this row."""
        return Problem(code, level, self.file, self.place, message, self.sample_id)


@dataclass(frozen=True)
class Listing:
    """All rows of a source; ``listed`` counts unusable ones, too."""

    rows: Mapping[str, Row]
    problems: list[Problem]
    listed: int
    files: list[Path]
    source: str


def list_rows(config: RunConfig) -> Listing:
    """Lists the rows that ``data.annotations`` (a file or folder) or ``data.root`` holds.

    Raises:
        ConfigError: there is nothing to read.
    """
    data = config.data
    if data.manifest is not None:
        raise ConfigError(
            "data.manifest: omni_duplexeval takes data.annotations (a file or a data-set folder) "
            "or data.root"
        )
    if data.offline is not None:
        raise ConfigError("data.offline: only omniinteract has offline records; take it out")
    key = "annotations" if data.annotations is not None else "root"
    source = Path(str(getattr(data, key)))
    if source.is_file():
        files = [source]
    elif source.is_dir():
        files = sorted(p for p in source.rglob("*") if _is_table(p, source))
    else:
        raise ConfigError(f"data.{key}: there is no file or folder {source}")
    rows: dict[str, Row] = {}
    problems: list[Problem] = []
    used: list[Path] = []
    listed = 0
    for file in files:
        try:
            cells = list(_read_table(file))
        except UnreadableFile as e:
            problems.append(e.problem)
            used.append(file)
            continue
        # A folder holds other files too: only those with rows of our kind are annotations.
        if source.is_dir() and not any(_is_annotation(v) for _, v, _ in cells):
            continue
        used.append(file)
        root = source if source.is_dir() else file.parent
        for place, values, embedded in cells:
            listed += 1
            row = _row(file, place, values, embedded, root, problems)
            if row is None:
                continue
            if row.sample_id in rows:
                first = rows[row.sample_id]
                message = f"id {row.id!r} of {row.split} stands in {first.file}, {first.place} too"
                problems.append(row.problem("repeated_id", "error", f"{message}; rename one"))
                continue
            rows[row.sample_id] = row
    if not used:
        raise ConfigError(
            f"data.{key}: {source} holds no annotations; rows need id, question_text and a split "
            f"(a column, or a file or folder named like {SPLITS[0]})"
        )
    return Listing(rows, problems, listed, used, str(source))


def _is_table(path: Path, root: Path) -> bool:
    hidden = any(p.startswith(".") for p in path.relative_to(root).parts)
    return path.suffix.lower() in ENDINGS and path.is_file() and not hidden


def _is_annotation(values: Any) -> bool:
    return isinstance(values, Mapping) and "id" in values and "question_text" in values


def _read_table(file: Path) -> Iterator[tuple[str, Any, str | None]]:
    """Place, cells, and where an embedded clip is, of every row of a file."""
    kind = file.suffix.lower()
    if kind in (".parquet", ".arrow"):
        yield from _read_columns(file)
        return
    if kind in (".csv", ".tsv"):
        dialect = "excel-tab" if kind == ".tsv" else "excel"
        for number, cells in enumerate(
            csv.DictReader(io.StringIO(read_text(file)), dialect=dialect), 2
        ):
            filled = {k: v for k, v in cells.items() if k is not None and v not in (None, "")}
            yield f"line {number}", filled, None
        return
    document = load_json_or_lines(read_bytes(file), str(file))
    elements = document.value if isinstance(document.value, list) else [document.value]
    for i, element in enumerate(elements):
        place = f"line {document.lines[i]}" if document.lines else f"[{i}]"
        yield place, element, None


def _read_columns(file: Path) -> Iterator[tuple[str, Any, str | None]]:
    """Rows of a Parquet file, or of an Arrow file as the library ``datasets`` saves them."""
    import pyarrow as pa

    from omnijudge.media.tables import open_table

    try:
        table = open_table(file)
    except (pa.ArrowInvalid, OSError) as e:
        kind = file.suffix[1:].title()
        raise UnreadableFile("bad_table", str(file), "", f"not {kind} ({e})") from None
    # Clips may lie inside the table; they are not loaded here, only their place is kept.
    heavy = [f.name for f in table.schema if f.name in ("video", "question_audio")]
    structs = [n for n in heavy if pa.types.is_struct(table.schema.field(n).type)]
    columns = [n for n in table.schema.names if n not in structs]
    fields = {f.name for f in table.schema.field("video").type} if "video" in structs else set()
    if "path" in fields:
        columns.append("video.path")
    embedded = "bytes" in fields
    number = 0
    for group in range(table.groups):
        for values in table.read(group, columns).to_pylist():
            video = values.get("video")
            if isinstance(video, Mapping):
                values["video"] = video.get("path")
            yield f"row {number}", values, f"{file}::{number}" if embedded else None
            number += 1


def _row(
    file: Path,
    place: str,
    values: Any,
    embedded: str | None,
    root: Path,
    problems: list[Problem],
) -> Row | None:
    def note(code: str, message: str) -> None:
        problems.append(Problem(code, "error", str(file), place, message))

    if not isinstance(values, Mapping):
        note("bad_row", f"is {type(values).__name__}, not an object")
        return None
    if values.get("id") in (None, ""):
        note("no_id", "has no id; write one")
        return None
    split = _split(values, file)
    if split is None:
        stated = values.get("split", values.get("subset"))
        said = "no split is named" if stated is None else f"split {stated!r} is unknown"
        note("unknown_split", f"{said}; write one of {', '.join(SPLITS)}")
        return None
    media = _find_media(values.get("video"), split, file.parent, root) or embedded
    if media is None and isinstance(values.get("video"), str):
        media = str(root / values["video"])
    return Row(split, str(values["id"]), values, str(file), place, file.parent, root, media)


def _split(values: Mapping[str, Any], file: Path) -> str | None:
    for key in ("split", "subset"):
        stated = values.get(key)
        if isinstance(stated, str) and stated.lower() in CANONICAL:
            return CANONICAL[stated.lower()]
    for part in (file.name, *reversed(file.parent.parts)):
        # Data-set folders name files like RTD_OCR-00000-of-00001.parquet.
        for stem in (part, part.partition(".")[0], part.partition("-")[0]):
            if stem.lower() in CANONICAL:
                return CANONICAL[stem.lower()]
    return None


def _find_media(cell: Any, split: str, folder: Path, root: Path) -> str | None:
    if not isinstance(cell, str) or not cell:
        return None
    if Path(cell).is_absolute():
        return cell if Path(cell).is_file() else None
    for base in dict.fromkeys((folder, root, root.parent)):
        for sub in (*MEDIA_FOLDERS, split):
            candidate = base / sub / cell
            if candidate.is_file():
                return str(candidate)
    return None
