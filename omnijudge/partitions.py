"""Tables on disk in partitions: one system x one block of samples is one row group.

So a step can be re-run from what is on disk, and memory is bounded by a block, never by the
corpus. Files are written under a temporary name and renamed when they are whole.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import pyarrow as pa
import pyarrow.parquet as pq

from omnijudge.errors import DataError

UNFINISHED = ".unfinished"


@dataclass(frozen=True)
class Plan:
    """Which partitions there are.

    Attributes:
        blocks: sample ids per block, in the seeded order.
        systems: system names, in the order of the configuration.
    """

    blocks: Sequence[Sequence[str]]
    systems: Sequence[str]

    def position(self, block: int, system: int) -> int:
        """Number of a partition: blocks outside, systems inside."""
        return block * len(self.systems) + system

    def __len__(self) -> int:
        return len(self.blocks) * len(self.systems)


class TableWriter:
    """Writes a table partition by partition; the file appears when it is closed without error."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        self.schema = schema
        self.groups: list[int | None] = []
        self._count = 0
        self._partial = path.with_name(path.name + UNFINISHED)
        self._writer = pq.ParquetWriter(self._partial, schema, compression="zstd")

    def add(self, table: pa.Table) -> None:
        """Appends one partition (an empty one takes no row group)."""
        if not table.num_rows:
            self.groups.append(None)
            return
        if table.schema != self.schema:
            table = table.cast(self.schema)
        self._writer.write_table(table, row_group_size=table.num_rows)
        self.groups.append(self._count)
        self._count += 1

    def close(self, keep: bool = True) -> None:
        """Completes the file, or drops it."""
        self._writer.close()
        if keep:
            os.replace(self._partial, self.path)
        else:
            self._partial.unlink(missing_ok=True)

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(keep=error is None)


class TableReader:
    """Reads partitions of a table back."""

    def __init__(self, path: Path, schema: pa.Schema, groups: Sequence[int | None]) -> None:
        self._schema = schema
        self._groups = groups
        self._file = pq.ParquetFile(path)

    def read(self, position: int) -> pa.Table:
        """One partition."""
        group = self._groups[position]
        if group is None:
            return self._schema.empty_table()
        table = self._file.read_row_group(group)
        return table if table.schema == self._schema else table.cast(self._schema)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def write_table(path: Path, table: pa.Table) -> None:
    """Writes a whole table at once, under a temporary name first."""
    partial = path.with_name(path.name + UNFINISHED)
    pq.write_table(table, partial, compression="zstd")
    os.replace(partial, path)


def read_table(path: Path) -> pa.Table:
    """Reads a whole table.

    Raises:
        DataError: the file is missing or damaged.
    """
    try:
        return pq.read_table(path)
    except FileNotFoundError:
        raise DataError(
            f"{path}: is missing; run the same configuration again to make it"
        ) from None
    except (pa.ArrowException, OSError) as e:
        raise DataError(f"{path}: cannot be read ({e}); run the same configuration again") from None


def row_groups(path: Path, plan: Plan) -> list[int | None]:
    """Row group of each partition of a finished file, by the keys of their first rows."""
    block_of = {s: b for b, ids in enumerate(plan.blocks) for s in ids}
    system_of = {s: i for i, s in enumerate(plan.systems)}
    groups: list[int | None] = [None] * len(plan)
    file = pq.ParquetFile(path)
    try:
        keys = file.read(columns=["system", "sample_id"])
        first = 0
        for g in range(file.num_row_groups):
            system, sample = keys["system"][first].as_py(), keys["sample_id"][first].as_py()
            groups[plan.position(block_of[sample], system_of[system])] = g
            first += file.metadata.row_group(g).num_rows
    finally:
        file.close()
    return groups
