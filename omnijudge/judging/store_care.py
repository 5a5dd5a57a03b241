"""Looking after a judgement store: counting, checking, compacting, exporting."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from omnijudge.errors import Problem, StoreError
from omnijudge.judging import journal, parts
from omnijudge.judging.journal import SCHEMA, explain_write
from omnijudge.judging.parts import PartReader
from omnijudge.judging.store import JudgementStore
from omnijudge.judging.store_files import DAMAGED

COMPACT_ROWS = 2**20
_EXPORT_ROWS = 4 * parts.ROW_GROUP


@dataclass(frozen=True, slots=True)
class StoreStats:
    """What a store holds.

    Attributes:
        judgements: distinct (fingerprint, attempt, repeat).
        rows: rows in all files, double ones included.
        parts: Parquet files.
        journals: journals not folded yet.
        damaged: files set aside.
        size: bytes of all of them.
        judges: (judge, model, number of rows), sorted.
    """

    judgements: int
    rows: int
    parts: int
    journals: int
    damaged: int
    size: int
    judges: tuple[tuple[str, str, int], ...]


def stats(store: JudgementStore) -> StoreStats:
    """Counts what the store holds."""
    store.load()

    def count() -> dict[tuple[str, str], int]:
        judges: dict[tuple[str, str], int] = {}
        for table in _blocks(store, ["judge", "model"]):
            pairs = table.group_by(["judge", "model"]).aggregate([([], "count_all")])
            for row in pairs.to_pylist():
                key = (row["judge"], row["model"])
                judges[key] = judges.get(key, 0) + row["count_all"]
        return judges

    judges: dict[tuple[str, str], int] = store.steadily(count)
    files = store.files.all()
    return StoreStats(
        judgements=len(store),
        rows=sum(judges.values()),
        parts=sum(f.path.endswith(parts.SUFFIX) for f in files),
        journals=sum(f.path.endswith(journal.SUFFIX) for f in files),
        damaged=sum(f.path.endswith(DAMAGED) for f in files),
        size=sum(f.size for f in files),
        judges=tuple((*key, n) for key, n in sorted(judges.items())),
    )


def verify(store: JudgementStore) -> list[Problem]:
    """Reads every byte; returns everything found wrong since the store was opened."""
    store.load()

    def read_all() -> None:
        for _ in _blocks(store):
            pass

    store.steadily(read_all)
    return store.report


def compact(store: JudgementStore) -> None:
    """Rewrites all parts as few large ones, each judgement once.

    Other processes may read and write meanwhile; what they add is left alone.
    """
    if not store.writable:
        raise StoreError(f"{store.path}: opened for reading only")
    store.fold()
    store.files.fold_abandoned()
    verify(store)

    def rewrite() -> list[str]:
        old = [s.path for s in store.sources if isinstance(s, PartReader)]
        in_part = np.array([isinstance(s, PartReader) for s in store.sources], dtype=bool)
        rows = store.index()
        rows = rows.take(in_part[rows.source]) if len(rows) else rows
        # In the order of writing: questions about one unit were asked together.
        rows = rows.take(np.lexsort((rows.row, rows.source, rows.writer, rows.written)))
        for begin in range(0, len(rows), COMPACT_ROWS):
            span = np.arange(begin, min(begin + COMPACT_ROWS, len(rows)))
            table = store.fetch(rows.take(span))
            parts.write_part(store.files.filesystem, store.files.new_part(), table)
        return old

    for path in store.steadily(rewrite):
        parts.remove(store.files.filesystem, path)
    store.load()


def export(store: JudgementStore, path: str | os.PathLike[str]) -> int:
    """Writes every judgement once, sorted by key, to a Parquet or JSONL file.

    Returns:
        Number of judgements written.

    Raises:
        StoreError: the name ends with neither ``.parquet`` nor ``.jsonl``, or the file cannot be
            written.
    """
    target = Path(path)
    if target.suffix not in (".parquet", ".jsonl"):
        raise StoreError(f"{target}: write a name that ends with .parquet or .jsonl")
    verify(store)
    temporary = target.with_name(target.name + parts.TEMPORARY)

    def write() -> int:
        if target.suffix == ".parquet":
            return _write_parquet(store, temporary)
        return _write_jsonl(store, temporary)

    try:
        written: int = store.steadily(write)
        os.replace(temporary, target)
    except OSError as e:
        temporary.unlink(missing_ok=True)
        raise explain_write(target, e) from e
    return written


def _rows(store: JudgementStore) -> Iterator[pa.Table]:
    keys = store.index()
    names = [n for n in SCHEMA.names if n not in ("written", "writer")]
    for begin in range(0, len(keys), _EXPORT_ROWS):
        span = np.arange(begin, min(begin + _EXPORT_ROWS, len(keys)))
        yield store.fetch(keys.take(span)).select(names)


def _write_parquet(store: JudgementStore, path: Path) -> int:
    import pyarrow.parquet as pq

    schema = pa.schema(
        [f for f in SCHEMA if f.name not in ("written", "writer")], metadata=SCHEMA.metadata
    )
    written = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as out:
        for table in _rows(store):
            out.write_table(table.cast(schema))
            written += table.num_rows
    return written


def _write_jsonl(store: JudgementStore, path: Path) -> int:
    import orjson

    written = 0
    with open(path, "wb") as out:
        for table in _rows(store):
            for row in table.to_pylist():
                row["fingerprint"] = row["fingerprint"].hex()
                out.write(orjson.dumps(row) + b"\n")
                written += 1
    return written


def _blocks(store: JudgementStore, columns: list[str] | None = None) -> Iterator[pa.Table]:
    """All rows of all files, block by block, read anew; known damaged blocks are left out."""
    for source in store.sources:
        for block in range(source.blocks):
            if store.is_lost(source.path, block):
                continue
            yield source.read_block(block, columns)
