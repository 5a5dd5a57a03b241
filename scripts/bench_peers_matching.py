"""Data and rival implementations of K2, K5 and K6 for ``bench_kernels.py``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from omnijudge_kernels.masks import Masks, pack_pairs
from omnijudge_kernels.windows import window_masks, window_ranges

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PACKAGES = ("networkx",)


@dataclass(frozen=True)
class MatchingCorpus:
    """Responses and targets by instance, the eligible pairs as bits, and the right ones."""

    response_time: Floats
    response_offsets: Ints
    window_low: Floats
    window_high: Floats
    target_offsets: Ints
    content: NDArray[np.uint64]

    @property
    def arrays(self) -> tuple[Floats, Ints, Floats, Floats, Ints]:
        return (
            self.response_time,
            self.response_offsets,
            self.window_low,
            self.window_high,
            self.target_offsets,
        )

    @property
    def masks(self) -> Masks:
        return window_masks(*self.arrays, Masks(self.content, self.target_offsets))

    def first(self, instances: int) -> Masks:
        masks, targets = self.masks, self.target_offsets[instances]
        return Masks(masks.words[:targets], self.target_offsets[: instances + 1])


def _sorted_by_instance(rng: np.random.Generator, offsets: Ints, length: float) -> Floats:
    instance = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    return np.sort(np.floor(rng.random(offsets[-1]) * length * 10) / 10 + instance * 1024.0) - (
        instance * 1024.0
    )


def matching_corpus(instances: int) -> MatchingCorpus:
    """3 to 8 targets with windows of 16 s and 5 to 40 responses in a minute; half are right."""
    rng = np.random.default_rng(2)
    targets = np.concatenate([[0], np.cumsum(rng.integers(3, 9, instances))])
    replies = np.concatenate([[0], np.cumsum(rng.integers(5, 41, instances))])
    low = _sorted_by_instance(rng, targets, 60.0) - 8
    content = rng.integers(0, 2**63, targets[-1]).astype(np.uint64)
    return MatchingCorpus(
        _sorted_by_instance(rng, replies, 60.0), replies, low, low + 16, targets, content
    )


@dataclass(frozen=True)
class LongInstance:
    """One instance, its content as bits, and its eligibility as bits and as a table of bytes."""

    arrays: tuple[Floats, Ints, Floats, Floats, Ints]
    content: Masks
    masks: Masks
    table: NDArray[np.uint8]


def _pack(table: NDArray[np.bool_], offsets: Ints) -> Masks:
    target, response = np.nonzero(table)
    return pack_pairs(target, response, offsets)


def long_instance(targets: int, responses: int) -> LongInstance:
    """Windows of 20 s in two hours; targets and responses are of three kinds, equal kinds fit."""
    rng = np.random.default_rng(3)
    hours = 7200.0 * targets / 2000
    time = np.sort(rng.random(responses) * hours)
    low = np.sort(rng.random(targets) * hours)
    offsets = np.array([0, targets])
    fits = rng.integers(0, 3, targets)[:, np.newaxis] == rng.integers(0, 3, responses)
    content = _pack(fits, offsets)
    arrays = (time, np.array([0, responses]), low, low + 20, offsets)
    first, end = window_ranges(*arrays)
    place = np.arange(responses)
    inside = (first[:, np.newaxis] <= place) & (place < end[:, np.newaxis])
    masks = _pack(fits & inside, offsets)
    return LongInstance(arrays, content, masks, (fits & inside).astype(np.uint8))


Block = tuple[slice, list[NDArray[np.uint64]]]


def padded_rows(masks: Masks) -> list[Block]:
    """What NumPy needs: blocks of instances that fit the cache; in each the first rows of all
    instances, then the second, with zeros where an instance has no more."""
    counts = np.diff(masks.target_offsets)
    blocks = []
    for low in range(0, counts.size, 1 << 14):
        block = slice(low, low + (1 << 14))
        begin, count = masks.target_offsets[:-1][block], counts[block]
        rows = []
        for r in range(int(count.max())):
            place = np.minimum(begin + r, masks.words.size - 1)
            rows.append(np.where(r < count, masks.words[place], np.uint64(0)))
        blocks.append((block, rows))
    return blocks


def match_padded(blocks: list[Block], instances: int) -> Ints:
    out = np.empty(instances, dtype=np.int64)
    for block, rows in blocks:
        left = np.full(rows[0].size, 0xFFFFFFFFFFFFFFFF, dtype=np.uint64)
        hit, total = np.empty_like(left), np.empty_like(left)
        for row in rows:
            np.bitwise_and(left, row, out=hit)
            np.add(left, hit, out=total)
            np.subtract(left, hit, out=left)
            np.bitwise_or(left, total, out=left)
        np.invert(left, out=left)
        out[block] = np.bitwise_count(left)
    return out


def match_numpy(masks: Masks) -> Ints:
    """From the same packed masks as the kernel."""
    return match_padded(padded_rows(masks), masks.n_instances)


@numba.njit(nogil=True)  # type: ignore[untyped-decorator]
def _numba_dp(words: NDArray[np.uint64], target_offsets: Ints, out: Ints) -> None:
    previous, current = np.zeros(65, np.int64), np.zeros(65, np.int64)
    for i in range(target_offsets.size - 1):
        previous[:] = 0
        for k in range(target_offsets[i], target_offsets[i + 1]):
            for j in range(64):
                best = max(previous[j + 1], current[j])
                if (words[k] >> np.uint64(j)) & np.uint64(1):
                    best = max(best, previous[j] + 1)
                current[j + 1] = best
            previous, current = current, previous
        out[i] = previous[64]


def match_numba_dp(masks: Masks) -> Ints:
    out = np.empty(masks.n_instances, dtype=np.int64)
    _numba_dp(masks.words, masks.target_offsets, out)
    return out


@numba.njit(nogil=True)  # type: ignore[untyped-decorator]
def dense_dp(table: NDArray[np.uint8]) -> Ints:
    targets, responses = table.shape
    previous, current = np.zeros(responses + 1, np.int32), np.zeros(responses + 1, np.int32)
    for k in range(targets):
        for j in range(responses):
            current[j + 1] = max(previous[j + 1], current[j], previous[j] + table[k, j])
        previous, current = current, previous
    return np.array([np.int64(previous[responses])])


def match_python_dp(masks: Masks) -> Ints:
    words, bounds = masks.words.tolist(), masks.target_offsets.tolist()
    out = []
    for i in range(masks.n_instances):
        rows = words[bounds[i] : bounds[i + 1]]
        width = max(row.bit_length() for row in rows)
        previous = [0] * (width + 1)
        for row in rows:
            current = [0]
            for j in range(width):
                best = max(previous[j + 1], current[j])
                if row >> j & 1:
                    best = max(best, previous[j] + 1)
                current.append(best)
            previous = current
        out.append(previous[width])
    return np.array(out)


def unordered_peers() -> dict[str, Callable[[Masks], Ints]]:
    """Bipartite matching, which does not know the order rule."""
    found: dict[str, Callable[[Masks], Ints]] = {"scipy bipartite matching": _scipy_matching}
    if find_spec("networkx"):
        found["networkx bipartite matching"] = _networkx_matching
    return found


def _pairs(masks: Masks, i: int) -> list[tuple[int, int]]:
    rows = masks.words[masks.target_offsets[i] : masks.target_offsets[i + 1]].tolist()
    return [(k, j) for k, row in enumerate(rows) for j in range(64) if row >> j & 1]


def _scipy_matching(masks: Masks) -> Ints:
    sparse, graphs = import_module("scipy.sparse"), import_module("scipy.sparse.csgraph")
    out = []
    for i in range(masks.n_instances):
        table = np.zeros((masks.target_offsets[i + 1] - masks.target_offsets[i], 64), np.int8)
        for k, j in _pairs(masks, i):
            table[k, j] = 1
        match = graphs.maximum_bipartite_matching(sparse.csr_matrix(table), perm_type="column")
        out.append(int((match >= 0).sum()))
    return np.array(out)


def _networkx_matching(masks: Masks) -> Ints:
    networkx = import_module("networkx")
    out = []
    for i in range(masks.n_instances):
        pairs = _pairs(masks, i)
        graph = networkx.Graph([(k, 1000 + j) for k, j in pairs])
        tops = {k for k, _ in pairs}
        match = networkx.bipartite.maximum_matching(graph, top_nodes=tops)
        out.append(len(match) // 2)
    return np.array(out)


@numba.njit(nogil=True)  # type: ignore[untyped-decorator]
def _stream(words: NDArray[np.uint64], target_offsets: Ints, out: Ints) -> np.uint64:
    mixed = np.uint64(0)
    for k in range(words.size):
        mixed ^= words[k]
    for i in range(target_offsets.size - 1):
        out[i] = target_offsets[i]
    return mixed


def mask_stream(masks: Masks, out: Ints) -> Any:
    """Read every mask and offset, write every score: no kernel can be faster."""
    return _stream(masks.words, masks.target_offsets, out)


def first_python(data: MatchingCorpus, variant: str) -> list[int]:
    """A direct transcription of the rule on lists, with the timing classes."""
    times, low, high = (
        column.tolist() for column in (data.response_time, data.window_low, data.window_high)
    )
    response_bounds, target_bounds = data.response_offsets.tolist(), data.target_offsets.tolist()
    taken: list[int] = []
    timing: list[str] = []
    for i in range(len(target_bounds) - 1):
        mine = times[response_bounds[i] : response_bounds[i + 1]]
        free = 0
        for k in range(target_bounds[i], target_bounds[i + 1]):
            j = free
            if variant == "since_previous" and k > target_bounds[i]:
                while j < len(mine) and mine[j] <= high[k - 1] + 1e-6:
                    j += 1
            if j == len(mine) or (variant == "late_released" and mine[j] > high[k] + 1e-6):
                taken.append(-1)
                timing.append("missing")
                continue
            taken.append(j)
            if mine[j] < low[k] - 1e-6:
                timing.append("early")
            elif mine[j] > high[k] + 1e-6:
                timing.append("late")
            else:
                timing.append("inside")
            free = j + 1
    return taken


def shuffled_complete(n: int, counts: Sequence[int], shuffles: int) -> Ints:
    rng = np.random.default_rng(4)
    complete = np.ones((shuffles, n), dtype=bool)
    for count in counts:
        successes = np.arange(n) < count
        complete &= rng.permuted(np.broadcast_to(successes, (shuffles, n)), axis=1)
    number: Ints = complete.sum(axis=1)
    return number
