"""Tables that hold clips: Parquet files, and Arrow files as the library ``datasets`` saves them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


class GroupedTable(Protocol):
    """A table that is read group by group.

    Attributes:
        schema: of the whole table.
        groups: number of groups.
    """

    schema: pa.Schema
    groups: int

    def length(self, group: int) -> int:
        """Rows of a group."""
        ...

    def read(self, group: int, columns: Sequence[str]) -> pa.Table:
        """Some columns of a group; ``a.b`` names a field of a struct column."""
        ...


def open_table(path: Path) -> GroupedTable:
    """Opens a table by the ending of its name.

    Raises:
        pyarrow.ArrowInvalid: it is no such table.
        OSError: it cannot be read.
    """
    return _ArrowTable(path) if path.suffix.lower() == ".arrow" else _ParquetTable(path)


class _ParquetTable:
    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self._file = pq.ParquetFile(path)
        self.schema = self._file.schema_arrow
        self.groups = self._file.num_row_groups

    def length(self, group: int) -> int:
        return int(self._file.metadata.row_group(group).num_rows)

    def read(self, group: int, columns: Sequence[str]) -> pa.Table:
        return self._file.read_row_group(group, columns=list(columns))


class _ArrowTable:
    """Record batches of a file in the stream format, mapped into memory."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        with pa.memory_map(str(path)) as mapped:
            try:
                reader = pa.ipc.open_stream(mapped)
                self._batches = list(reader)
            except pa.ArrowInvalid:
                mapped.seek(0)
                reader = pa.ipc.open_file(mapped)
                self._batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
        self.schema = reader.schema
        self.groups = len(self._batches)

    def length(self, group: int) -> int:
        return int(self._batches[group].num_rows)

    def read(self, group: int, columns: Sequence[str]) -> pa.Table:
        import pyarrow as pa
        import pyarrow.compute as pc

        found: dict[str, pa.Array] = {}
        for name in columns:
            column, _, field = name.partition(".")
            array = self._batches[group].column(column)
            if field and pa.types.is_struct(array.type):
                inside = pc.struct_field(array, field)
                array = pa.StructArray.from_arrays([inside], [field])
            found[column] = array
        return pa.table(found)
