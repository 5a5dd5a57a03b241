"""The judgement store: every answer of every judge, kept once, for all runs.

A store is a folder (or any pyarrow filesystem path) with

* ``parts/*.parquet``: complete files, see ``parts.py``;
* ``journals/*.arrows``: what running processes have added since, see ``journal.py``. Only on local
  paths (shared ones included); on object stores every batch is a small part at once, and the
  writer's small parts become one when it folds them.

Any number of processes read and write at the same time. A journal is folded into the part of the
same name by its owner, or by anybody once the owner is dead. Whatever is read twice (a folding
process was killed between its two last steps) has the same writer and time and counts once. Of two
answers to one question the one written first counts, for every reader, before and after folding.
"""

from __future__ import annotations

import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from omnijudge.errors import Problem, StoreError
from omnijudge.judging import parts
from omnijudge.judging.index import Entries, Index, entries
from omnijudge.judging.journal import SCHEMA, JournalReader, JournalWriter
from omnijudge.judging.parts import DamagedPart, PartReader
from omnijudge.judging.store_files import StoreFiles
from omnijudge.judging.types import Reply

if TYPE_CHECKING:
    from omnijudge.judging.store_care import StoreStats

__all__ = ["FOUND", "Judgement", "JudgementStore", "replies"]

FOLD_BYTES = 64 * 2**20
FOLD_SMALL_PARTS = 64
_CACHED_BLOCKS = 16

FOUND = pa.schema([pa.field("question", pa.int64(), nullable=False), *SCHEMA])
"""Columns of a lookup: position of the question, then the stored columns."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """One answer on its way into the store.

    Attributes:
        fingerprint: 16 bytes.
        attempt: from 1.
        repeat: from 0.
        judge: name of the judge in the configuration.
        reply: the answer. Errors are no judgements: ``raw`` is text.
    """

    fingerprint: bytes
    attempt: int
    repeat: int
    judge: str
    reply: Reply


class JudgementStore:
    """An open store.

    Args:
        path: folder or filesystem URI (``s3://bucket/folder``). Made if it is not there.
        writable: False never changes a file, not even to set a damaged one aside.
        filesystem: a pyarrow filesystem in which ``path`` is meant.
        fold_bytes: size at which this process folds its journal.

    Raises:
        StoreError: the path cannot be used. Damaged files are reported, never fatal.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        writable: bool = True,
        *,
        filesystem: Any = None,
        fold_bytes: int = FOLD_BYTES,
    ) -> None:
        self.path = os.fspath(path)
        self.writable = writable
        self.files = StoreFiles(self.path, filesystem)
        self._fold_bytes = fold_bytes
        self._writer = secrets.randbits(32)
        self._last_written = 0
        self._journal: JournalWriter | None = None
        self._journal_source = -1
        self._small: list[str] = []  # own small parts, where there are no journals
        self._fold_failed = False
        self._lost: set[tuple[str, int | None]] = set()  # damaged (part, block) left where it is
        if writable:
            self.files.make()
            self.files.fold_abandoned()
        elif not self.files.exists():
            raise StoreError(f"{self.path}: there is no store here; check the path")
        self.load()

    @property
    def report(self) -> list[Problem]:
        """What was found damaged or lost."""
        return self.files.report

    # Reading

    def attempts_many(
        self,
        fingerprints: Sequence[bytes] | NDArray[np.uint8],
        repeat: int | Sequence[int] | NDArray[Any] = 0,
    ) -> pa.Table:
        """All stored answers to these questions, from attempt 1 up to the first gap.

        Args:
            fingerprints: n fingerprints, or an array n x 16 of bytes.
            repeat: one for all of them, or one each.

        Returns:
            Table with the columns ``FOUND``, sorted by ``question`` (position in the argument)
            and attempt.
        """
        keys = _bytes_array(fingerprints)
        repeats = np.broadcast_to(np.asarray(repeat, np.uint16), len(keys))

        def find() -> pa.Table:
            question, hits = self._index.find(keys, repeats)
            table = self.fetch(hits)
            return table.add_column(0, FOUND.field(0), pa.array(question, pa.int64()))

        return self.steadily(find)

    def attempts(self, fingerprint: bytes, repeat: int = 0) -> list[Reply]:
        """The stored answers to one question, from attempt 1 up to the first gap."""
        return [reply for _, reply in replies(self.attempts_many([fingerprint], repeat))]

    def count(
        self,
        fingerprints: Sequence[bytes] | NDArray[np.uint8],
        repeat: int | Sequence[int] | NDArray[Any] = 0,
    ) -> NDArray[np.int64]:
        """Number of stored attempts of each question, without reading any text."""
        keys = _bytes_array(fingerprints)
        repeats = np.broadcast_to(np.asarray(repeat, np.uint16), len(keys))
        question, _ = self._index.find(keys, repeats)
        return np.bincount(question, minlength=len(keys)).astype(np.int64)

    def __len__(self) -> int:
        return len(self._index.all())

    def refresh(self) -> None:
        """Takes notice of what other processes have written since."""
        journals, part_names = self.files.readable()
        known = {s.path for s in self.sources}
        if known - set(journals) - set(part_names):
            self.load()  # something was folded or compacted
            return
        try:
            self._add_sources(journals, part_names, known)
        except FileNotFoundError:
            self.load()

    # Writing

    def append(self, judgements: Sequence[Judgement]) -> None:
        """Adds answers; they are with the operating system when this returns.

        Raises:
            StoreError: the disk is full, or the store cannot be written. Nothing earlier is lost.
        """
        if not judgements:
            return
        if not self.writable:
            raise StoreError(f"{self.path}: opened for reading only")
        self._last_written = max(time.time_ns(), self._last_written + 1)
        batch = _batch(judgements, self._last_written, self._writer)
        if self.files.local:
            if self._journal is None:
                self._journal = JournalWriter(self.files.new_journal())
                self.sources.append(JournalReader(self._journal.path))
                self._journal_source = len(self.sources) - 1
            place = self._journal.append(batch)
            number = self._journal_source
            first = self.sources[number].rows
            self.sources[number].add(place, batch.num_rows)
        else:
            path = self.files.new_part()
            parts.write_part(self.files.filesystem, path, pa.Table.from_batches([batch]))
            self._small.append(path)
            self.sources.append(PartReader(self.files.filesystem, path))
            number, first = len(self.sources) - 1, 0
        self._index.add([_entries(batch, number, first)])
        full = self._journal is not None and self._journal.size >= self._fold_bytes
        if (full or len(self._small) >= FOLD_SMALL_PARTS) and not self._fold_failed:
            self.fold()

    def fold(self) -> None:
        """Moves what this process has written from its journal to a part.

        A fold that fails (a full disk) is reported; the judgements stay in the journal.
        """
        try:
            if self._small:
                self._fold_small()
            if self._journal is not None:
                self._fold_own()
        except (StoreError, OSError) as e:
            self._fold_failed = True
            self.files.note("fold_failed", self.path, str(e), "warning")

    def close(self) -> None:
        """Folds and lets go of everything. May be called twice."""
        if self.writable:
            self.fold()
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        self._cache.clear()

    def __enter__(self) -> JudgementStore:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # Care

    def stats(self) -> StoreStats:
        """Counts what the store holds."""
        from omnijudge.judging.store_care import stats

        return stats(self)

    def verify(self) -> list[Problem]:
        """Reads every byte; returns everything found wrong since the store was opened."""
        from omnijudge.judging.store_care import verify

        return verify(self)

    def compact(self) -> None:
        """Rewrites all parts as few large ones, each judgement once."""
        from omnijudge.judging.store_care import compact

        compact(self)

    def export(self, path: str | os.PathLike[str]) -> int:
        """Writes every judgement once to a Parquet or JSONL file; returns their number."""
        from omnijudge.judging.store_care import export

        return export(self, path)

    # Inside: the index over the sources (journals and parts)

    def index(self) -> Entries:
        """Every stored key once, sorted."""
        return self._index.all()

    def load(self) -> None:
        """Builds the index from the files that are there."""
        for _ in range(5):
            self._index = Index()
            self.sources: list[Any] = []
            self._cache: OrderedDict[tuple[int, int], pa.Table] = OrderedDict()
            try:
                self._add_sources(*self.files.readable(), known=set())
            except FileNotFoundError:
                continue  # folded by another process between listing and reading
            break
        else:
            raise self._unsteady()
        if self._journal is not None:
            own = str(self._journal.path)
            if own not in (paths := [s.path for s in self.sources]):
                raise StoreError(f"{own}: the journal was removed while it was being written")
            self._journal_source = paths.index(own)

    def steadily(self, read: Any) -> Any:
        """Calls ``read``; looks again at what is there whenever files vanish or are damaged."""
        for _ in range(20):
            try:
                return read()
            except FileNotFoundError:
                pass
            except DamagedPart as e:
                self.set_aside(e)
            self.load()
        raise self._unsteady()

    def set_aside(self, error: DamagedPart) -> None:
        """Deals with a damaged part; the index is to be loaded afterwards."""
        if (error.path, error.block) in self._lost:
            return
        self._lost.add((error.path, error.block))
        self.files.set_aside(error, self.writable)

    def is_lost(self, path: str, block: int) -> bool:
        """Whether a block of a part was found damaged and left where it is."""
        return (path, block) in self._lost

    def fetch(self, hits: Entries) -> pa.Table:
        """Reads whole rows (``SCHEMA``), in the order of the entries.

        Raises:
            FileNotFoundError: a file was folded or compacted away.
            DamagedPart: a block is damaged.
        """
        tables: list[pa.Table] = []
        positions: list[NDArray[Any]] = []
        for number in np.unique(hits.source):
            mine = np.flatnonzero(hits.source == number)
            block, row = self.sources[number].block_of(hits.row[mine])
            for b in np.unique(block):
                here = block == b
                tables.append(self._block(int(number), int(b)).take(pa.array(row[here])))
                positions.append(mine[here])
        if not tables:
            return SCHEMA.empty_table()
        back = np.empty(len(hits), np.int64)
        back[np.concatenate(positions)] = np.arange(len(hits))
        return pa.concat_tables(tables).take(pa.array(back))

    def _block(self, source: int, block: int) -> pa.Table:
        reader = self.sources[source]
        if isinstance(reader, JournalReader):
            return reader.read_block(block)  # small, and in the system's file cache
        key = (source, block)
        if key not in self._cache:
            self._cache[key] = reader.read_block(block)
        self._cache.move_to_end(key)
        if len(self._cache) > _CACHED_BLOCKS:
            self._cache.popitem(last=False)
        return self._cache[key]

    def _add_sources(self, journals: list[str], part_names: list[str], known: set[str]) -> None:
        added: list[Entries] = []
        for path in journals:
            if path not in known:
                self.sources.append(JournalReader(path))
        for number, source in enumerate(self.sources):
            if isinstance(source, JournalReader):
                added += self._scan(number, source)
        for name in part_names:
            if name in known or (name, None) in self._lost:
                continue
            try:
                part = PartReader(self.files.filesystem, name)
                keys = part.keys()
            except DamagedPart as e:
                self.set_aside(e)
                continue
            except StoreError as e:
                self.files.note("foreign_part", name, str(e))
                continue
            found = _entries(keys, len(self.sources), 0)
            lost = [b for path, b in self._lost if path == name and b is not None]
            if lost:
                found = found.take(~np.isin(part.block_of(found.row)[0], lost))
            self.sources.append(part)
            added.append(found)
        self._index.add(added)

    def _scan(self, number: int, source: JournalReader) -> list[Entries]:
        first = source.rows
        found = source.scan()
        self.files.note_journal(source.path, found)
        added = []
        for batch in found.batches:
            added.append(_entries(batch, number, first))
            first += batch.num_rows
        return added

    def _fold_own(self) -> None:
        assert self._journal is not None
        part = self.files.fold_journal(self._journal.path)
        self._journal.close()
        self._journal = None
        if part is not None and part.rows == self.sources[self._journal_source].rows:
            # Same rows in the same order: every entry of the index stays true.
            self.sources[self._journal_source] = part
        else:
            self.load()

    def _fold_small(self) -> None:
        """Merges this process's small parts into one, then removes them."""
        mine = [s for s in self.sources if s.path in set(self._small)]
        tables = [s.read_block(b) for s in mine for b in range(s.blocks)]
        parts.write_part(self.files.filesystem, self.files.new_part(), pa.concat_tables(tables))
        for name in self._small:
            parts.remove(self.files.filesystem, name)
        self._small = []
        self.load()

    def _unsteady(self) -> StoreError:
        return StoreError(f"{self.path}: its files change faster than they can be read; try again")


def replies(table: pa.Table) -> list[tuple[int, Reply]]:
    """The rows of a lookup as (position of the question, reply)."""
    columns = (
        "question",
        "raw",
        "finish_reason",
        "model",
        "prompt_tokens",
        "cached_tokens",
        "output_tokens",
    )
    rows = zip(*(table.column(c).to_pylist() for c in columns), strict=True)
    return [
        (q, Reply(raw, None, finish or None, model, prompt, cached, output))
        for q, raw, finish, model, prompt, cached, output in rows
    ]


def _bytes_array(fingerprints: Any) -> NDArray[np.uint8]:
    if isinstance(fingerprints, np.ndarray):
        return fingerprints.reshape(-1, 16)
    if any(len(f) != 16 for f in fingerprints):
        raise ValueError("a fingerprint has 16 bytes")
    return np.frombuffer(b"".join(fingerprints), np.uint8).reshape(-1, 16)


def _entries(rows: pa.RecordBatch | pa.Table, source: int, first: int) -> Entries:
    if isinstance(rows, pa.Table):
        rows = rows.combine_chunks().to_batches()
        rows = rows[0] if rows else SCHEMA.empty_table().to_batches()[0]
    prints = rows.column("fingerprint")
    data = memoryview(prints.buffers()[1] or b"")[16 * prints.offset :][: 16 * len(prints)]
    repeat, attempt, written, writer = (rows.column(c).to_numpy() for c in parts.KEYS[1:])
    prints = np.frombuffer(data, np.uint8).reshape(-1, 16)
    return entries(prints, repeat, attempt, written, writer, source, first)


def _batch(judgements: Sequence[Judgement], written: int, writer: int) -> pa.RecordBatch:
    n = len(judgements)
    answers = [j.reply for j in judgements]
    if any(r.error is not None or r.raw is None for r in answers):
        raise ValueError("an error is no judgement and cannot be stored")
    columns = [
        pa.array([j.fingerprint for j in judgements], pa.binary(16)),
        pa.array([j.repeat for j in judgements], pa.uint16()),
        pa.array([j.attempt for j in judgements], pa.uint8()),
        pa.array(np.full(n, written, np.int64)),
        pa.array(np.full(n, writer, np.uint32)),
        pa.array([j.judge for j in judgements], pa.string()),
        pa.array([r.model for r in answers], pa.string()),
        pa.array([r.raw for r in answers], pa.string()),
        pa.array([r.finish_reason or "" for r in answers], pa.string()),
        pa.array([r.prompt_tokens for r in answers], pa.int32()),
        pa.array([r.cached_tokens for r in answers], pa.int32()),
        pa.array([r.output_tokens for r in answers], pa.int32()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
