"""Parts: zstd Parquet files of stored judgements, complete from the moment they have their name."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as pafs

from omnijudge.errors import StoreError
from omnijudge.judging.journal import SCHEMA, VERSION, explain_write

SUFFIX = ".parquet"
TEMPORARY = ".tmp"
KEYS = ("fingerprint", "repeat", "attempt", "written", "writer")
ROW_GROUP = 16_384
_DICTIONARIES = ["judge", "model", "finish_reason"]
# On these a file is not there before it is complete; elsewhere it is renamed when it is.
_ATOMIC = {"s3", "gcs", "abfs"}


def write_part(filesystem: Any, path: str, table: pa.Table) -> None:
    """Writes a part under a temporary name, sees it safely on disk and renames it.

    Raises:
        StoreError: it cannot be written; nothing of it stays behind.
    """
    sink = pa.BufferOutputStream()
    pq.write_table(
        table.cast(SCHEMA),
        sink,
        compression="zstd",
        row_group_size=ROW_GROUP,
        use_dictionary=_DICTIONARIES,
        write_statistics=False,
        write_page_checksum=True,
    )
    data = sink.getvalue()
    if filesystem.type_name in _ATOMIC:
        try:
            with filesystem.open_output_stream(path) as out:
                out.write(data)
        except OSError as e:
            raise explain_write(path, e) from e
        return
    temporary = path + TEMPORARY
    try:
        if filesystem.type_name == "local":
            with open(temporary, "wb") as f:
                f.write(data)
                f.flush()
                os.fsync(f.fileno())
        else:
            with filesystem.open_output_stream(temporary) as out:
                out.write(data)
        filesystem.move(temporary, path)
    except OSError as e:
        remove(filesystem, temporary)
        raise explain_write(path, e) from e


def remove(filesystem: Any, path: str) -> None:
    """Removes a file that may be gone already."""
    try:
        filesystem.delete_file(path)
    except OSError:
        if filesystem.get_file_info(path).type != pafs.FileType.NotFound:
            raise


class DamagedPart(Exception):
    """A part, or one block (row group) of it, that cannot be read."""

    def __init__(self, path: str, reason: str, block: int | None = None) -> None:
        super().__init__(reason)
        self.path = path
        self.block = block


class PartReader:
    """Reads a part.

    Raises:
        DamagedPart: the file is no readable part.
        StoreError: the file was written by another version.
        FileNotFoundError: it is gone.
    """

    def __init__(self, filesystem: Any, path: str) -> None:
        self.path = path
        self._filesystem = filesystem
        meta = self._open(lambda f: f.metadata)
        said = (meta.metadata or {}).get(b"omnijudge.schema_version", VERSION.encode())
        if said != VERSION.encode():
            raise StoreError(
                f"{path}: written in version {said.decode(errors='replace')} of the store's form, "
                f"this omnijudge reads version {VERSION}; update omnijudge"
            )
        sizes = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
        if sum(sizes) != meta.num_rows or min(sizes, default=0) < 0:
            raise DamagedPart(path, "the numbers of rows in its footer do not agree")
        self._ends = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])

    @property
    def rows(self) -> int:
        """Rows of the part."""
        return int(self._ends[-1])

    @property
    def blocks(self) -> int:
        """Row groups of the part."""
        return len(self._ends) - 1

    def _open(self, use: Any, block: int | None = None) -> Any:
        try:
            with (
                self._filesystem.open_input_file(self.path) as raw,
                pq.ParquetFile(raw, page_checksum_verification=True) as file,
            ):
                return use(file)
        except FileNotFoundError:
            raise
        except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as e:
            reason = (str(e).splitlines() or [type(e).__name__])[0]
            raise DamagedPart(self.path, reason, block) from e

    def _read(self, columns: list[str], block: int | None) -> pa.Table:
        def use(file: Any) -> pa.Table:
            if block is None:
                return file.read(columns=columns)
            return file.read_row_group(block, columns=columns)

        table = self._open(use, block)
        expected = self.rows if block is None else int(np.diff(self._ends)[block])
        wanted = pa.schema([SCHEMA.field(c) for c in columns])
        try:
            table = table.select(columns).cast(wanted)
            table.validate(full=True)
        except (pa.ArrowException, KeyError, ValueError, TypeError) as e:
            raise DamagedPart(self.path, str(e), block) from e
        if table.num_rows != expected or any(c.null_count for c in table.columns):
            raise DamagedPart(self.path, "rows are missing", block)
        return table

    def keys(self) -> pa.Table:
        """The key columns of all rows."""
        return self._read(list(KEYS), None)

    def read_block(self, block: int, columns: list[str] | None = None) -> pa.Table:
        """One row group, all columns or some of them."""
        return self._read(columns or SCHEMA.names, block)

    def block_of(self, rows: Any) -> tuple[Any, Any]:
        """Row-group numbers and rows inside them."""
        block = np.searchsorted(self._ends, rows, side="right") - 1
        return block, rows - self._ends[block]
