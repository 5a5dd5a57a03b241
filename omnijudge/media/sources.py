"""Where a clip's bytes are: a file, or a cell of a table.

A clip inside a table is written ``FILE.parquet::ROW`` (or ``.arrow``), with the row counted from 0.
"""

from __future__ import annotations

import hashlib
import io
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from omnijudge.errors import EvidenceError, ResourceError
from omnijudge.media.cache import ByteCache

SEPARATOR = "::"
CELL_MEMORY = 128 * 2**20
"""Bytes of clips inside of tables that are kept at most."""

_cells: ByteCache[bytes] = ByteCache(CELL_MEMORY)


class MediaError(EvidenceError):
    """A clip, or the wanted part of it, cannot be decoded."""


def libraries() -> tuple[Any, Any]:
    """PyAV and Pillow's image module.

    Raises:
        ResourceError: they are not installed.
    """
    try:
        import av
        from PIL import Image
    except ImportError as e:
        raise ResourceError(
            f"showing clips to a judge needs PyAV and Pillow ({e}); "
            "install them with: pip install 'omnijudge[media]'"
        ) from e
    return av, Image


def split_source(source: str) -> tuple[Path, int | None]:
    """File and row of a source; row None for a plain file."""
    name, separator, row = source.rpartition(SEPARATOR)
    if separator and row.isdigit():
        return Path(name), int(row)
    return Path(source), None


def file_key(source: str) -> tuple[str, int, int]:
    """Source with modification time and size of its file: changes when the file does.

    Raises:
        MediaError: the file is not there.
    """
    path, _ = split_source(source)
    try:
        stat = path.stat()
    except OSError as e:
        raise MediaError(f"{path}: cannot be read ({e.strerror}); check the path") from e
    return source, stat.st_mtime_ns, stat.st_size


def open_source(source: str) -> str | BinaryIO:
    """What PyAV can open: a path, or the bytes of a cell.

    Raises:
        MediaError: the table or its row is not there.
    """
    path, row = split_source(source)
    return str(path) if row is None else io.BytesIO(_cell(path, row))


def read_source(source: str) -> bytes:
    """All bytes of a clip.

    Raises:
        MediaError: it cannot be read.
    """
    path, row = split_source(source)
    if row is not None:
        return _cell(path, row)
    try:
        return path.read_bytes()
    except OSError as e:
        raise MediaError(f"{path}: cannot be read ({e.strerror}); check the path") from e


def source_digest(source: str) -> str:
    """Hash of all bytes of a clip.

    Raises:
        MediaError: it cannot be read.
    """
    path, row = split_source(source)
    if row is not None:
        return hashlib.blake2b(_cell(path, row), digest_size=16).hexdigest()
    try:
        with path.open("rb") as file:
            new = partial(hashlib.blake2b, digest_size=16)
            return hashlib.file_digest(file, new).hexdigest()
    except OSError as e:
        raise MediaError(f"{path}: cannot be read ({e.strerror}); check the path") from e


def _cell(path: Path, row: int) -> bytes:
    """The clip in a row of a table. Its row group is read at once, so the rows behind it, too."""
    import pyarrow as pa

    from omnijudge.media.tables import open_table

    key, modified, size = file_key(str(path))
    found = _cells.get((key, modified, size, row))
    if found is not None:
        return found
    try:
        table = open_table(path)
        start = 0
        for group in range(table.groups):
            length = table.length(group)
            if row < start + length:
                column = table.read(group, ["video.bytes"])["video"]
                break
            start += length
        else:
            raise MediaError(f"{path}: row {row} holds no clip")
    except (pa.ArrowInvalid, OSError) as e:
        raise MediaError(f"{path}: cannot be read ({e})") from e
    clip = _clip(column[row - start])
    if clip is None:
        raise MediaError(f"{path}: row {row} holds no clip")
    room = CELL_MEMORY
    for i in range(row - start, length):
        cell = clip if i == row - start else _clip(column[i])
        room -= len(cell or b"")
        if room < 0:
            break
        if cell is not None:
            _cells.put((key, modified, size, start + i), cell, len(cell))
    return clip


def _clip(cell: Any) -> bytes | None:
    value = cell.as_py()
    return bytes(value["bytes"]) if value and value.get("bytes") else None
