"""K1: chunks to slots, compiled and plain, against the slow twin."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import kernels as naive
from numpy.typing import NDArray

from omnijudge_kernels.slots import PAINT_BLOCK, PAINT_UP_TO, assign_slots
from omnijudge_kernels.small import assign_slots_small

Sample = tuple[list[float], list[tuple[float, float]]]  # chunk starts, slots
both = pytest.mark.parametrize("assign", [assign_slots, assign_slots_small])
Assign = Callable[..., NDArray[np.int64]]


def csr(samples: Sequence[Sample]) -> tuple[NDArray[np.generic], ...]:
    chunks = np.array([t for times, _ in samples for t in times], dtype=np.float64)
    starts = np.array([s for _, slots in samples for s, _ in slots], dtype=np.float64)
    ends = np.array([e for _, slots in samples for _, e in slots], dtype=np.float64)
    chunk_offsets = np.cumsum([0, *(len(times) for times, _ in samples)])
    slot_offsets = np.cumsum([0, *(len(slots) for _, slots in samples)])
    return chunks, chunk_offsets, starts, ends, slot_offsets


def expected(samples: Sequence[Sample]) -> list[int]:
    return [
        position
        for times, slots in samples
        for position in naive.assign_slots(times, [s for s, _ in slots], [e for _, e in slots])
    ]


# A coarse grid makes equal times and touching edges common; the fine times are honest floats.
coarse = st.integers(-3, 12).map(float)
fine = st.floats(-1e6, 1e6, allow_nan=False)
times = st.one_of(coarse, coarse, fine)
samples_of_any_kind = st.lists(
    st.tuples(
        st.lists(times, max_size=12),
        st.lists(st.tuples(times, times), max_size=PAINT_UP_TO + 6),
    ),
    max_size=5,
)


@both
@settings(derandomize=True, deadline=None, max_examples=150)
@given(samples=samples_of_any_kind)
def test_equals_the_slow_twin(assign: Assign, samples: list[Sample]) -> None:
    assert assign(*csr(samples)).tolist() == expected(samples)


@both
@pytest.mark.parametrize("n_slots", [0, 1, 3, 4, 5, PAINT_UP_TO, PAINT_UP_TO + 1, 65, 200])
@pytest.mark.parametrize("order", ["rising", "falling", "shuffled"])
def test_slot_counts_and_chunk_orders(assign: Assign, n_slots: int, order: str) -> None:
    rng = np.random.default_rng([n_slots, len(order)])
    chunk = np.sort(rng.integers(0, 60, PAINT_BLOCK + 37) / 2)
    chunk = {"rising": chunk, "falling": chunk[::-1], "shuffled": rng.permutation(chunk)}[order]
    begin = rng.integers(0, 50, n_slots) / 2
    slots = list(zip(begin.tolist(), (begin + rng.integers(0, 20, n_slots)).tolist(), strict=True))
    samples = [([], slots), (chunk.tolist(), slots), (chunk[:5].tolist(), [])]
    assert assign(*csr(samples)).tolist() == expected(samples)


@both
def test_borders_ties_and_empty_windows(assign: Assign) -> None:
    half_open: Sample = ([0.0, 1.0, 2.0, 3.0], [(1.0, 2.0), (2.0, 3.0)])
    tie: Sample = ([1.5], [(1.0, 2.0), (1.0, 3.0)])
    tie_other_way: Sample = ([1.5], [(1.0, 3.0), (1.0, 2.0)])
    nested: Sample = ([1.0, 5.0, 9.0], [(0.0, 10.0), (4.0, 6.0)])
    unsorted: Sample = ([5.0, 1.0], [(4.0, 6.0), (0.0, 10.0)])
    zero_length: Sample = ([1.0], [(0.0, 2.0), (1.0, 1.0)])
    backwards: Sample = ([1.0], [(2.0, 0.0)])
    signed_zero: Sample = ([-0.0, 0.0], [(0.0, 1.0)])
    samples = [half_open, tie, tie_other_way, nested, unsorted, zero_length, backwards, signed_zero]
    found = assign(*csr(samples)).tolist()
    assert found == [-1, 0, 1, -1, 1, 1, 0, 1, 0, 0, 1, 0, -1, 0, 0]


@both
def test_long_ended_slots_do_not_hide_the_outer_one(assign: Assign) -> None:
    inner = [(float(i), i + 0.5) for i in range(1, 100)]
    sample: Sample = ([0.5, 50.25, 50.75, 99.9, 300.0], [(0.0, 200.0), *inner])
    assert assign(*csr([sample])).tolist() == [0, 50, 0, 0, -1]


@both
def test_a_million_segments_of_which_most_are_empty(assign: Assign) -> None:
    n = 10**6 if assign is assign_slots else 10**4
    rng = np.random.default_rng(5)
    chunks = (np.arange(n) % 1000 == 0).astype(np.int64)
    chunk_offsets = np.concatenate([[0], np.cumsum(chunks)])
    slots = rng.integers(0, 2, n)
    slot_offsets = np.concatenate([[0], np.cumsum(slots)])
    starts = np.zeros(slot_offsets[-1])
    found = assign(
        np.full(chunk_offsets[-1], 0.5), chunk_offsets, starts, starts + 1.0, slot_offsets
    )
    assert found.tolist() == [0 if slots[i] else -1 for i in range(0, n, 1000)]


def random_corpus(seed: int) -> list[Sample]:
    rng = np.random.default_rng(seed)
    corpus: list[Sample] = []
    for _ in range(60):
        begin = rng.random(rng.integers(0, 40)) * 100
        ends = begin + rng.random(begin.size) * 30
        chunks = np.sort(rng.random(rng.integers(0, 50)) * 110)
        corpus.append((chunks.tolist(), list(zip(begin.tolist(), ends.tolist(), strict=True))))
    return corpus


def test_threads_do_not_show() -> None:
    arrays = csr(random_corpus(1))
    one = assign_slots(*arrays, threads=1)
    assert one.tobytes() == assign_slots(*arrays, threads=2).tobytes()
    assert one.tobytes() == assign_slots(*arrays, threads=8).tobytes()


def test_repeated_and_simultaneous_calls_agree() -> None:
    from concurrent.futures import ThreadPoolExecutor

    arrays = csr(random_corpus(2))
    want = assign_slots_small(*arrays).tobytes()
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(assign_slots, *arrays, threads=3) for _ in range(8)]
    assert all(call.result().tobytes() == want for call in calls)


@both
def test_out_is_filled_and_returned(assign: Assign) -> None:
    arrays = csr(random_corpus(3))
    out = np.full(arrays[0].size, 99, dtype=np.int64)
    assert assign(*arrays, out) is out
    assert out.tolist() == expected(random_corpus(3))


@both
def test_read_only_and_strided_inputs(assign: Assign) -> None:
    chunks, chunk_offsets, starts, ends, slot_offsets = csr(random_corpus(4))
    chunks.flags.writeable = False
    strided = np.repeat(starts, 2)[::2]
    found = assign(chunks, chunk_offsets.astype(np.int32), strided, ends, slot_offsets)
    assert found.tolist() == expected(random_corpus(4))


@both
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", [0, 2, 3])
def test_refuses_what_is_not_finite(assign: Assign, bad: float, where: int) -> None:
    arrays = [array.copy() for array in csr(random_corpus(6))]
    arrays[where][7] = bad
    name = {0: "chunk_start", 2: "slot_start", 3: "slot_end"}[where]
    with pytest.raises(ValueError, match=rf"{name}\[7\] is (nan|inf|-inf)"):
        assign(*arrays)


@both
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({0: np.zeros((2, 2))}, "chunk_start has 2 dimensions"),
        ({0: np.zeros(4, dtype=np.float32)}, "float32"),
        ({0: np.array(["a", "b", "c", "d"])}, "dtype"),
        ({1: np.array([0, 2, 3])}, "chunk_offsets runs from 0 to 3"),
        ({1: np.array([1, 2, 4])}, "chunk_offsets runs from 1 to 4"),
        ({1: np.array([], dtype=np.int64)}, "chunk_offsets is empty"),
        ({1: np.array([0.0, 2.0, 4.0])}, "chunk_offsets has dtype float64"),
        ({1: np.array([0, 5, 4])}, "chunk_offsets falls from 5 to 4 at entry 2"),
        ({3: np.zeros(2)}, "Lengths differ: slot_start 3, slot_end 2"),
        ({4: np.array([0, 3])}, "Lengths differ: chunk_offsets 3, slot_offsets 2"),
        ({5: np.zeros(4, dtype=np.int32)}, "out has shape"),
        ({5: np.zeros(3, dtype=np.int64)}, "out has shape"),
        ({5: np.zeros(8, dtype=np.int64)[::2]}, "out must be contiguous"),
    ],
)
def test_refuses_what_does_not_fit(
    assign: Assign, changed: dict[int, NDArray[np.generic]], message: str
) -> None:
    arrays: list[NDArray[np.generic] | None] = [
        np.zeros(4),
        np.array([0, 2, 4]),
        np.zeros(3),
        np.ones(3),
        np.array([0, 1, 3]),
        None,
    ]
    for place, value in changed.items():
        arrays[place] = value
    with pytest.raises(ValueError, match=message):
        assign(*arrays)


def test_refuses_less_than_one_thread() -> None:
    with pytest.raises(ValueError, match="threads is 0"):
        assign_slots(*csr(random_corpus(7)), threads=0)
