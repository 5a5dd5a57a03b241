"""Data and rival implementations of K1, chunks to slots, for ``bench_kernels.py``."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PACKAGES = ("ncls", "polars", "duckdb")
os.environ.setdefault("POLARS_MAX_THREADS", "1")  # before its first import


def _have(name: str) -> bool:
    return find_spec(name) is not None


@dataclass(frozen=True)
class SlotCorpus:
    """Chunks and slots by sample, on a grid of milliseconds so that integer rivals are exact."""

    chunk_start: Floats
    chunk_offsets: Ints
    slot_start: Floats
    slot_end: Floats
    slot_offsets: Ints

    @property
    def arrays(self) -> tuple[Floats, Ints, Floats, Floats, Ints]:
        return (
            self.chunk_start,
            self.chunk_offsets,
            self.slot_start,
            self.slot_end,
            self.slot_offsets,
        )

    @property
    def chunk_sample(self) -> Ints:
        return np.repeat(np.arange(self.chunk_offsets.size - 1), np.diff(self.chunk_offsets))

    @property
    def slot_sample(self) -> Ints:
        return np.repeat(np.arange(self.slot_offsets.size - 1), np.diff(self.slot_offsets))

    def first(self, samples: int) -> SlotCorpus:
        chunks, slots = self.chunk_offsets[samples], self.slot_offsets[samples]
        return SlotCorpus(
            self.chunk_start[:chunks],
            self.chunk_offsets[: samples + 1],
            self.slot_start[:slots],
            self.slot_end[:slots],
            self.slot_offsets[: samples + 1],
        )


def corpus(samples: int, chunks: int = 100, slots: int = 10) -> SlotCorpus:
    """Chunks in time; slots by start, most after each other, three in ten around others."""
    rng = np.random.default_rng(1)
    chunk_start = np.sort(rng.integers(0, 600_000, (samples, chunks)), axis=1) / 1000
    start = np.sort(rng.integers(0, 600_000, (samples, slots)), axis=1)
    length = np.diff(start, axis=1, append=600_000)
    length = np.maximum(1, (length * rng.uniform(0.5, 1.0, length.shape)).astype(np.int64))
    around = rng.random(length.shape) < 0.3
    length[around] += rng.integers(0, 300_000, int(around.sum()))
    return SlotCorpus(
        chunk_start.ravel(),
        np.arange(samples + 1) * chunks,
        start.ravel() / 1000,
        (start + length).ravel() / 1000,
        np.arange(samples + 1) * slots,
    )


def python_loop(data: SlotCorpus) -> Ints:
    found = []
    chunks, begins, ends = (
        column.tolist() for column in (data.chunk_start, data.slot_start, data.slot_end)
    )
    chunk_bounds, slot_bounds = data.chunk_offsets.tolist(), data.slot_offsets.tolist()
    for sample in range(len(chunk_bounds) - 1):
        first, last = slot_bounds[sample], slot_bounds[sample + 1]
        for time in chunks[chunk_bounds[sample] : chunk_bounds[sample + 1]]:
            best, best_start = -1, float("-inf")
            for slot in range(first, last):
                if begins[slot] <= time < ends[slot] and begins[slot] >= best_start:
                    best, best_start = slot - first, begins[slot]
            found.append(best)
    return np.array(found)


def broadcast(data: SlotCorpus) -> Ints:
    out = np.empty(data.chunk_start.size, dtype=np.int64)
    chunk_bounds, slot_bounds = data.chunk_offsets.tolist(), data.slot_offsets.tolist()
    for sample in range(len(chunk_bounds) - 1):
        chunks = slice(chunk_bounds[sample], chunk_bounds[sample + 1])
        mine = slice(slot_bounds[sample], slot_bounds[sample + 1])
        time = data.chunk_start[chunks, np.newaxis]
        inside = (data.slot_start[mine] <= time) & (time < data.slot_end[mine])
        n = inside.shape[1]
        latest = n - 1 - inside[:, ::-1].argmax(axis=1)
        out[chunks] = np.where(inside.any(axis=1), latest, -1)
    return out


def right() -> dict[str, Callable[[SlotCorpus], Ints]]:
    """Rivals that answer rightly, as far as installed."""
    found: dict[str, Callable[[SlotCorpus], Ints]] = {}
    if _have("ncls"):
        found["ncls"] = _ncls
    if _have("polars"):
        found["polars join + filter"] = _polars_join
        found["polars join_where"] = _polars_where
    if _have("duckdb"):
        found["DuckDB range join"] = _duckdb
    return found


def as_of() -> dict[str, Callable[[SlotCorpus], Ints]]:
    """As-of joins: they see only the slot that began last, even if it has ended."""
    found: dict[str, Callable[[SlotCorpus], Ints]] = {"searchsorted as-of": _asof_searchsorted}
    if _have("polars"):
        found["polars join_asof"] = _asof_polars
    if _have("duckdb"):
        found["DuckDB ASOF join"] = _asof_duckdb
    return found


def _ncls(data: SlotCorpus) -> Ints:
    ncls = import_module("ncls")
    day = 10_000_000  # milliseconds between samples
    begin = np.rint(data.slot_start * 1000).astype(np.int64) + data.slot_sample * day
    end = np.rint(data.slot_end * 1000).astype(np.int64) + data.slot_sample * day
    time = np.rint(data.chunk_start * 1000).astype(np.int64) + data.chunk_sample * day
    tree = ncls.NCLS(begin, end, np.arange(begin.size))
    chunk, slot = tree.all_overlaps_both(time, time + 1, np.arange(time.size))
    latest = np.full(time.size, -1, dtype=np.int64)
    np.maximum.at(latest, chunk, slot)
    return np.where(latest >= 0, latest - data.slot_offsets[data.chunk_sample], -1)


def _frames(data: SlotCorpus) -> tuple[Any, Any]:
    polars = import_module("polars")
    chunks = polars.DataFrame(
        {
            "chunk": np.arange(data.chunk_start.size),
            "sample": data.chunk_sample,
            "time": data.chunk_start,
        }
    )
    position = np.arange(data.slot_start.size) - data.slot_offsets[data.slot_sample]
    slots = polars.DataFrame(
        {
            "slot_sample": data.slot_sample,
            "position": position,
            "begin": data.slot_start,
            "end": data.slot_end,
        }
    )
    return chunks, slots


def _latest(data: SlotCorpus, hits: Any) -> Ints:
    polars = import_module("polars")
    best = hits.group_by("chunk").agg(polars.col("position").max())
    out = np.full(data.chunk_start.size, -1, dtype=np.int64)
    out[best["chunk"].to_numpy()] = best["position"].to_numpy()
    return out


def _polars_join(data: SlotCorpus) -> Ints:
    polars = import_module("polars")
    chunks, slots = _frames(data)
    inside = (polars.col("begin") <= polars.col("time")) & (polars.col("time") < polars.col("end"))
    joined = chunks.lazy().join(slots.lazy(), left_on="sample", right_on="slot_sample")
    return _latest(data, joined.filter(inside).collect())


def _polars_where(data: SlotCorpus) -> Ints:
    polars = import_module("polars")
    chunks, slots = _frames(data)
    hits = chunks.join_where(
        slots,
        polars.col("sample") == polars.col("slot_sample"),
        polars.col("begin") <= polars.col("time"),
        polars.col("time") < polars.col("end"),
    )
    return _latest(data, hits)


def _ask_duckdb(data: SlotCorpus, query: str) -> Ints:
    duckdb = import_module("duckdb")
    position = np.arange(data.slot_start.size) - data.slot_offsets[data.slot_sample]
    with duckdb.connect() as database:
        database.execute("SET threads = 1")
        chunks = {
            "chunk": np.arange(data.chunk_start.size),
            "sample": data.chunk_sample,
            "time": data.chunk_start,
        }
        slots = {
            "sample": data.slot_sample,
            "position": position,
            "begin": data.slot_start,
            "end": data.slot_end,
        }
        database.register("chunks", chunks)
        database.register("slots", slots)
        found = database.execute(query).fetchnumpy()
    out = np.full(data.chunk_start.size, -1, dtype=np.int64)
    out[found["chunk"]] = found["position"]
    return out


def _duckdb(data: SlotCorpus) -> Ints:
    return _ask_duckdb(
        data,
        """SELECT chunk, max(position) AS position FROM chunks JOIN slots
           ON chunks.sample = slots.sample AND slots."begin" <= chunks.time
           AND chunks.time < slots."end" GROUP BY chunk""",
    )


def _asof_searchsorted(data: SlotCorpus) -> Ints:
    day = 10_000.0
    begin = data.slot_start + data.slot_sample * day
    last = np.searchsorted(begin, data.chunk_start + data.chunk_sample * day, side="right") - 1
    position = last - data.slot_offsets[data.chunk_sample]
    inside = (position >= 0) & (data.chunk_start < data.slot_end[np.maximum(last, 0)])
    return np.where(inside, position, -1)


def _asof_polars(data: SlotCorpus) -> Ints:
    chunks, slots = _frames(data)
    joined = chunks.join_asof(
        slots,
        left_on="time",
        right_on="begin",
        by_left="sample",
        by_right="slot_sample",
        check_sortedness=False,
    )
    end, position = (
        joined["end"].fill_null(-1.0).to_numpy(),
        joined["position"].fill_null(-1).to_numpy(),
    )
    return np.where(data.chunk_start < end, position, -1)


def _asof_duckdb(data: SlotCorpus) -> Ints:
    return _ask_duckdb(
        data,
        """SELECT chunk, position FROM chunks ASOF JOIN slots
           ON chunks.sample = slots.sample AND chunks.time >= slots."begin"
           WHERE chunks.time < slots."end" """,
    )


@numba.njit(nogil=True)  # type: ignore[untyped-decorator]
def traffic(values: Floats, out: Ints) -> None:
    """Read every chunk, write every answer: no kernel can be faster."""
    for i in range(values.size):
        out[i] = np.int64(values[i])
