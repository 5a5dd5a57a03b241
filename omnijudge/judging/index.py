"""Where each stored judgement lies: sorted arrays, about 40 bytes per judgement.

New entries come in small sorted runs; runs of similar size are merged, so that adding stays cheap
and a lookup searches a handful of arrays however many judgements there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Entries:
    """Judgements without their texts, column by column, all of one length.

    Attributes:
        high, low: the two halves of the fingerprint (uint64).
        repeat: from 0 (uint16).
        attempt: from 1 (uint8).
        written: when it was written, nanoseconds since 1970 (int64).
        writer: which process wrote it (uint32).
        source: number of the file it lies in (int32).
        row: its row there (int32).
    """

    high: Array
    low: Array
    repeat: Array
    attempt: Array
    written: Array
    writer: Array
    source: Array
    row: Array

    def __len__(self) -> int:
        return len(self.high)

    def take(self, rows: Array) -> Entries:
        """The entries at these positions (or where a mask holds)."""
        return Entries(*(getattr(self, name)[rows] for name in COLUMNS))


COLUMNS = tuple(Entries.__dataclass_fields__)


def halves(fingerprints: Array) -> tuple[Array, Array]:
    """Splits fingerprints (n x 16 bytes, uint8) into two uint64 arrays that sort like them."""
    pairs = np.ascontiguousarray(fingerprints, dtype=np.uint8).view(">u8").reshape(-1, 2)
    return pairs[:, 0].astype(np.uint64), pairs[:, 1].astype(np.uint64)


def _sorted(e: Entries) -> Entries:
    """Sorted by key, one entry per key: of several the first written wins, for every reader."""
    order = np.argsort(e.high, kind="stable")
    high = e.high[order]
    same = high[1:] == high[:-1]
    # Few rows share the first half of a fingerprint (attempts, repeats, double entries): only
    # those need the full comparison.
    shared = np.flatnonzero(np.append(same, False) | np.insert(same, 0, False))
    if len(shared):
        rows = order[shared]
        part = e.take(rows)
        order[shared] = rows[
            np.lexsort(
                (
                    part.row,
                    part.source,
                    part.writer,
                    part.written,
                    part.attempt,
                    part.repeat,
                    part.low,
                    part.high,
                )
            )
        ]
    e = e.take(order)
    if len(shared):
        again = np.zeros(len(e), dtype=bool)
        again[1:] = (
            (e.high[1:] == e.high[:-1])
            & (e.low[1:] == e.low[:-1])
            & (e.repeat[1:] == e.repeat[:-1])
            & (e.attempt[1:] == e.attempt[:-1])
        )
        if again.any():
            e = e.take(~again)
    return e


def _concat(parts: list[Entries]) -> Entries:
    return Entries(*(np.concatenate([getattr(p, name) for p in parts]) for name in COLUMNS))


class Index:
    """All entries known to a store."""

    def __init__(self) -> None:
        self._runs: list[Entries] = []

    def add(self, parts: list[Entries]) -> None:
        """Adds entries."""
        parts = [p for p in parts if len(p)]
        if not parts:
            return
        self._runs.append(_sorted(_concat(parts)))
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            last = self._runs.pop()
            self._runs[-1] = _sorted(_concat([self._runs[-1], last]))

    def all(self) -> Entries:
        """Every key once, sorted by key."""
        if len(self._runs) != 1:
            self._runs = [_sorted(_concat(self._runs or [EMPTY]))]
        return self._runs[0]

    def find(self, fingerprints: Array, repeat: Array) -> tuple[Array, Entries]:
        """Entries of these questions whose attempts run from 1 without a gap.

        Args:
            fingerprints: n x 16 bytes (uint8).
            repeat: n repeats.

        Returns:
            Positions in the arguments (int64, ascending) and the entries, by attempt.
        """
        high, low = halves(fingerprints)
        found = [self._search(run, high, low, repeat) for run in self._runs]
        query = np.concatenate([q for q, _ in found]) if found else np.empty(0, np.int64)
        entries = _concat([e for _, e in found]) if found else EMPTY
        order = np.lexsort(
            (
                entries.row,
                entries.source,
                entries.writer,
                entries.written,
                entries.attempt,
                query,
            )
        )
        query, entries = query[order], entries.take(order)
        keep = np.ones(len(query), dtype=bool)
        keep[1:] = (query[1:] != query[:-1]) | (entries.attempt[1:] != entries.attempt[:-1])
        query, entries = query[keep], entries.take(keep)
        begins = np.searchsorted(query, query, side="left")
        gapless = entries.attempt == np.arange(len(query)) - begins + 1
        return query[gapless], entries.take(gapless)

    @staticmethod
    def _search(run: Entries, high: Array, low: Array, repeat: Array) -> tuple[Array, Entries]:
        left = np.searchsorted(run.high, high, side="left")
        count = np.searchsorted(run.high, high, side="right") - left
        query = np.repeat(np.arange(len(high)), count)
        within = np.arange(len(query)) - np.repeat(np.cumsum(count) - count, count)
        rows = np.repeat(left, count) + within
        hit = (run.low[rows] == low[query]) & (run.repeat[rows] == repeat[query])
        return query[hit], run.take(rows[hit])


_TYPES = (np.uint64, np.uint64, np.uint16, np.uint8, np.int64, np.uint32, np.int32, np.int32)
EMPTY = Entries(*(np.empty(0, t) for t in _TYPES))


def entries(
    fingerprints: Array,
    repeat: Array,
    attempt: Array,
    written: Array,
    writer: Array,
    source: int,
    first_row: int,
) -> Entries:
    """Entries of consecutive rows of one file."""
    high, low = halves(fingerprints)
    n = len(high)
    return Entries(
        high,
        low,
        repeat,
        attempt,
        written,
        writer,
        np.full(n, source, np.int32),
        np.arange(first_row, first_row + n, dtype=np.int32),
    )
