"""The journal: one Arrow IPC stream per writing process, one record batch per engine batch.

Every batch goes to the operating system in one write, so a killed process loses at most the batch
it was writing. Arrow streams carry no checksum; a column of the file holds one per batch.

A journal belongs to the process that holds the lock on it (``flock``). The kernel drops the lock
when the process dies, however it dies; then the next process may fold the journal.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from omnijudge.errors import StoreError

VERSION = "1"
SCHEMA = pa.schema(
    [
        pa.field("fingerprint", pa.binary(16), nullable=False),
        pa.field("repeat", pa.uint16(), nullable=False),
        pa.field("attempt", pa.uint8(), nullable=False),
        pa.field("written", pa.int64(), nullable=False),
        pa.field("writer", pa.uint32(), nullable=False),
        pa.field("judge", pa.string(), nullable=False),
        pa.field("model", pa.string(), nullable=False),
        pa.field("raw", pa.string(), nullable=False),
        pa.field("finish_reason", pa.string(), nullable=False),
        pa.field("prompt_tokens", pa.int32(), nullable=False),
        pa.field("cached_tokens", pa.int32(), nullable=False),
        pa.field("output_tokens", pa.int32(), nullable=False),
    ],
    metadata={"omnijudge.schema_version": VERSION},
)
"""A stored judgement. An absent ``finish_reason`` is empty."""
_CHECK = pa.field("check", pa.uint32(), nullable=False)
_JOURNAL_SCHEMA = SCHEMA.append(_CHECK)
_START = b"\xff\xff\xff\xff"
SUFFIX = ".arrows"
NEW = ".new"


def _check(batch: pa.RecordBatch) -> int:
    """Checksum over the values of a batch without its check column."""
    value = zlib.crc32(struct.pack("<q", batch.num_rows))
    for column in batch.columns[: len(SCHEMA)]:
        n = len(column)
        buffers = column.buffers()
        if pa.types.is_string(column.type):
            offsets = np.frombuffer(buffers[1], np.int32, n + 1, 4 * column.offset)
            value = zlib.crc32((offsets - offsets[0]).tobytes(), value)
            text = memoryview(buffers[2]) if buffers[2] is not None else memoryview(b"")
            value = zlib.crc32(text[offsets[0] : offsets[-1]], value)
        else:
            width = column.type.bit_width // 8
            begin = column.offset * width
            value = zlib.crc32(memoryview(buffers[1])[begin : begin + n * width], value)
    return value


def _message(batch: pa.RecordBatch) -> memoryview:
    check = pa.array(np.full(batch.num_rows, _check(batch), np.uint32))
    full = pa.RecordBatch.from_arrays([*batch.columns, check], schema=_JOURNAL_SCHEMA)
    return memoryview(full.serialize())


def full_disk(error: OSError) -> bool:
    """Whether the error says that no more bytes may be written there."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def explain_write(path: str | os.PathLike[str], error: OSError) -> StoreError:
    """A failed write as a sentence."""
    if full_disk(error):
        return StoreError(
            f"{path}: the disk is full ({error.strerror}); every judgement written before is "
            "kept; free some space and run again"
        )
    return StoreError(f"{path}: cannot be written ({error.strerror or error}); check the folder")


def _lock(fd: int) -> bool | None:
    """Takes the lock; False if another process holds it, None if locks do not work here."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as e:
        if e.errno in (errno.EACCES, errno.EAGAIN):
            return False
        return None
    return True


class JournalWriter:
    """Appends to a journal of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Locked before anybody can see it, or a process that folds abandoned journals might
        # take it for one.
        new = path.with_suffix(NEW)
        try:
            self._fd = os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_APPEND, 0o666)
        except OSError as e:
            raise explain_write(new, e) from e
        try:
            _lock(self._fd)
            header = memoryview(_JOURNAL_SCHEMA.serialize())
            self.size = len(header)
            if os.write(self._fd, header) != len(header):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.rename(new, path)
        except OSError as e:
            os.close(self._fd)
            new.unlink(missing_ok=True)
            raise explain_write(path, e) from e

    def append(self, batch: pa.RecordBatch) -> tuple[int, int]:
        """Hands one batch (``SCHEMA``) to the operating system, whole or not at all.

        Returns:
            Offset and length in the file.

        Raises:
            StoreError: the disk is full, or the journal was removed from outside.
        """
        if os.fstat(self._fd).st_nlink == 0:
            raise StoreError(
                f"{self.path}: the journal was removed while it was being written; "
                "leave the store alone during a run and start again"
            )
        message = _message(batch)
        done = 0
        try:
            while done < len(message):
                done += os.write(self._fd, message[done:])
        except OSError as e:
            os.ftruncate(self._fd, self.size)
            raise explain_write(self.path, e) from e
        place = (self.size, len(message))
        self.size += len(message)
        return place

    def close(self) -> None:
        """Gives the lock back."""
        os.close(self._fd)


@dataclass(frozen=True, slots=True)
class Found:
    """What a stretch of journal holds.

    Attributes:
        batches: sound batches (``SCHEMA``).
        places: offset and length of each in the file, bytes.
        end: offset behind the last sound batch.
        damaged: stretches that are not readable though something sound follows, bytes each.
        torn: bytes behind the last sound batch.
    """

    batches: list[pa.RecordBatch]
    places: list[tuple[int, int]]
    end: int
    damaged: list[int]
    torn: int


class JournalReader:
    """Reads a journal, which may still be growing."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._places: list[tuple[int, int]] = []
        self._ends = [0]  # rows before each batch, and all of them
        self._offset = 0

    @property
    def rows(self) -> int:
        """Rows known so far."""
        return self._ends[-1]

    def scan(self) -> Found:
        """Reads what was added since the last scan.

        Raises:
            OSError: the file is gone or unreadable.
        """
        found = scan(self.path, self._offset)
        for place, batch in zip(found.places, found.batches, strict=True):
            self.add(place, batch.num_rows)
        return found

    def add(self, place: tuple[int, int], rows: int) -> None:
        """Takes notice of the next batch without reading it."""
        self._places.append(place)
        self._offset = sum(place)
        self._ends.append(self._ends[-1] + rows)

    @property
    def blocks(self) -> int:
        """Batches known so far."""
        return len(self._places)

    def block_of(self, rows: Any) -> tuple[Any, Any]:
        """Block numbers and rows inside them."""
        ends = np.array(self._ends)
        block = np.searchsorted(ends, rows, side="right") - 1
        return block, rows - ends[block]

    def read_block(self, block: int, columns: list[str] | None = None) -> pa.Table:
        """One batch again, all columns or some of them.

        Raises:
            FileNotFoundError: the file is gone, or not what it was at the last scan.
        """
        offset, length = self._places[block]
        with open(self.path, "rb") as f:
            data = os.pread(f.fileno(), length, offset)
        batch, _ = _parse(pa.py_buffer(data))
        if batch is None:
            raise FileNotFoundError(self.path)
        return pa.Table.from_batches([batch]).select(columns or SCHEMA.names)


def _parse(buffer: pa.Buffer, first: bool = False) -> tuple[pa.RecordBatch | None, int]:
    """The batch at the start of the buffer and the length of its message (0: nothing sound).

    The first message of a file is its schema, without a batch.
    """
    reader = pa.BufferReader(buffer)
    try:
        message = pa.ipc.read_message(reader)
        length = reader.tell()
        if message.type == "schema":
            return None, length if first else 0
        batch = pa.ipc.read_record_batch(message, _JOURNAL_SCHEMA)
        batch.validate(full=True)
        if batch.num_rows == 0 or any(c.null_count for c in batch.columns):
            return None, 0
        said = batch.column(len(SCHEMA)).to_numpy()
        sound = bool((said == _check(batch)).all())
    except (pa.ArrowException, OSError, ValueError, EOFError, IndexError, TypeError):
        return None, 0
    if not sound:
        return None, 0
    return pa.RecordBatch.from_arrays(batch.columns[: len(SCHEMA)], schema=SCHEMA), length


def scan(path: str | Path, offset: int = 0) -> Found:
    """Reads a journal from a byte offset on, stepping over damage.

    Raises:
        OSError: the file is gone or unreadable.
    """
    with open(path, "rb") as f:
        f.seek(offset)
        data = f.read()
    buffer = pa.py_buffer(data)
    batches: list[pa.RecordBatch] = []
    places: list[tuple[int, int]] = []
    damaged: list[int] = []
    end = at = 0  # end of the last sound message; where to try next
    while at + 8 <= len(data):
        batch, length = _parse(buffer.slice(at), offset + at == 0)
        if length:
            if at > end:
                damaged.append(at - end)
            if batch is not None:
                batches.append(batch)
                places.append((offset + at, length))
            at = end = at + length
            continue
        # Messages begin at multiples of eight bytes with four bytes of ones.
        at = data.find(_START, at + 1)
        while at >= 0 and at % 8:
            at = data.find(_START, at + 1)
        if at < 0:
            break
    return Found(batches, places, offset + end, damaged, len(data) - end)


def take_over(path: Path) -> int | None:
    """Locks an abandoned journal for folding.

    Returns:
        A file descriptor that holds the lock until closed, or None if the journal belongs to a
        living process, is gone, or cannot be locked here.
    """
    try:
        fd = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        # It may have been folded and removed between the opening and the lock.
        if _lock(fd) and os.fstat(fd).st_nlink > 0:
            return fd
    except OSError:
        pass
    os.close(fd)
    return None
