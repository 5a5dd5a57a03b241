"""The model of a prefix cache against its slow twin."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import kernels as naive

from omnijudge_kernels.prefix_cache import chain_hashes, prefix_hits

BLOCK = 4


def blocks_of(
    heads: list[list[int]], prompts: list[tuple[int, list[int]]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]:
    """Heads and tails as block numbers; a tail begins with what its head leaves over."""
    head_hash, head_bounds = chain_hashes(*flat(heads), np.zeros(len(heads), np.uint64), BLOCK)
    parents = []
    tails = []
    for head, tail in prompts:
        last = head_bounds[head + 1]
        parents.append(head_hash[last - 1] if last > head_bounds[head] else 0)
        rest = heads[head][len(heads[head]) // BLOCK * BLOCK :]
        tails.append([*rest, *tail])
    tail_hash, tail_bounds = chain_hashes(*flat(tails), np.array(parents, np.uint64), BLOCK)
    _, numbers = np.unique(np.concatenate([head_hash, tail_hash]), return_inverse=True)
    numbers = numbers.astype(np.int32)
    cut = len(head_hash)
    ids = int(numbers.max()) + 1 if len(numbers) else 0
    head_of = np.array([h for h, _ in prompts], np.int64)
    return head_of, head_bounds, numbers[:cut], tail_bounds, numbers[cut:], ids


def flat(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    offsets = [0, *accumulate(map(len, rows))]
    return np.array([t for r in rows for t in r], np.int64), np.array(offsets, np.int64)


def hits(
    heads: list[list[int]], prompts: list[tuple[int, list[int]]], order: list[int], capacity: int
) -> list[int]:
    *arrays, ids = blocks_of(heads, prompts)
    return list(prefix_hits(np.array(order, np.int64), *arrays, ids, capacity))


tokens = st.lists(st.integers(0, 1), max_size=3 * BLOCK + 2)


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_same_as_the_slow_twin(data: st.DataObject) -> None:
    heads = data.draw(st.lists(tokens, min_size=1, max_size=4))
    number = st.integers(0, len(heads) - 1)
    prompts = data.draw(st.lists(st.tuples(number, tokens), min_size=1, max_size=8))
    order = data.draw(st.lists(st.integers(0, len(prompts) - 1), max_size=20))
    capacity = data.draw(st.integers(0, 12))
    whole = [[*heads[h], *t] for h, t in prompts]
    expected = naive.prefix_hits([whole[i] for i in order], BLOCK, capacity)
    assert hits(heads, prompts, order, capacity) == expected


def test_what_is_used_again_stays() -> None:
    head = list(range(8))
    prompts = [(0, [9] * 4), (0, [7] * 4), (0, [5] * 4)]
    # Two blocks of the head and one tail fit: the tails push each other out, never the head.
    assert hits([head], prompts, [0, 1, 2, 0], 3) == [0, 2, 2, 2]
    # Where all of it fits, the first prompt is there a second time.
    assert hits([head], prompts, [0, 1, 2, 0], 5) == [0, 2, 2, 3]


@pytest.mark.parametrize("capacity", [0, 1])
def test_a_cache_that_holds_next_to_nothing(capacity: int) -> None:
    assert hits([[1] * 8], [(0, [])], [0, 0, 0], capacity) == [0, capacity, capacity]
