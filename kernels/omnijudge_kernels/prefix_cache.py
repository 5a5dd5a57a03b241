"""A language-model engine's prefix cache, as vLLM keeps it: whole blocks of tokens, least recently
used first out.

A block is known by its tokens and all tokens before it. A prompt finds the longest run of its
leading blocks that is there; afterwards all its blocks are there, and of these the last one is
given up first.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omnijudge_kernels.jit import kernel

Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]
Hashes = npt.NDArray[np.uint64]


@kernel
def chain_hashes(tokens: Ints, offsets: Ints, parents: Hashes, block: int) -> tuple[Hashes, Ints]:
    """Hash of every whole block of every sequence, each over the blocks before it, too.

    Args:
        tokens: all sequences, one behind the other.
        offsets: (N + 1,) bounds of the sequences.
        parents: (N,) hash that each sequence's first block follows.
        block: tokens in a block.

    Returns:
        (hashes of all blocks, (N + 1,) bounds of the sequences among them).
    """
    n = len(offsets) - 1
    bounds = np.zeros(n + 1, np.int64)
    for i in range(n):
        bounds[i + 1] = bounds[i] + (offsets[i + 1] - offsets[i]) // block
    hashes = np.empty(bounds[n], np.uint64)
    for i in range(n):
        value = parents[i]
        for b in range(bounds[i + 1] - bounds[i]):
            for t in range(block):
                token = np.uint64(tokens[offsets[i] + b * block + t] + 1)
                value = (value ^ token) * np.uint64(0x9E3779B97F4A7C15)
                value ^= value >> np.uint64(29)
            hashes[bounds[i] + b] = value
    return hashes, bounds


@kernel
def prefix_hits(
    order: Ints,
    head: Ints,
    head_bounds: Ints,
    head_blocks: Ids,
    tail_bounds: Ints,
    tail_blocks: Ids,
    ids: int,
    capacity: int,
) -> Ints:
    """Blocks found in the cache, for prompts asked one after the other.

    A prompt's blocks are those of its head (shared by many prompts) followed by those of its tail.

    Args:
        order: (Q,) prompts as they are asked.
        head: (P,) head of each prompt.
        head_bounds, head_blocks: blocks of the heads, as dense numbers.
        tail_bounds, tail_blocks: blocks of the tails of the prompts.
        ids: number of distinct blocks.
        capacity: blocks that the cache holds.

    Returns:
        (Q,) leading blocks of each prompt that were there.
    """
    # A ring of blocks by time of use; number `ids` stands between the newest and the oldest.
    older = np.full(ids + 1, -1, np.int64)
    newer = np.full(ids + 1, -1, np.int64)
    older[ids] = ids
    newer[ids] = ids
    held = 0
    hits = np.zeros(len(order), np.int64)
    for q in range(len(order)):
        p = order[q]
        first, start = head_bounds[head[p]], tail_bounds[p]
        leading = head_bounds[head[p] + 1] - first
        count = leading + tail_bounds[p + 1] - start
        found = 0
        for i in range(count):
            b = head_blocks[first + i] if i < leading else tail_blocks[start + i - leading]
            if newer[b] < 0:
                break
            found += 1
        hits[q] = found
        for k in range(count):
            i = count - 1 - k
            b = head_blocks[first + i] if i < leading else tail_blocks[start + i - leading]
            if newer[b] >= 0:
                newer[older[b]] = newer[b]
                older[newer[b]] = older[b]
            else:
                held += 1
            last = older[ids]
            newer[last] = b
            older[b] = last
            newer[b] = ids
            older[ids] = b
        while held > capacity:
            oldest = newer[ids]
            newer[ids] = newer[oldest]
            older[newer[oldest]] = ids
            newer[oldest] = -1
            older[oldest] = -1
            held -= 1
    return hits
