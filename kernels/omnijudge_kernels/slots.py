"""K1: which slot does a chunk belong to? Compiled loops for whole corpora.

Rule (OmniInteract, giving chunks to slots): a chunk belongs to the slot with
``t_start <= chunk.start < t_end``; with several, the one with the greatest ``t_start``, then the
greatest slot id; otherwise to none. Only the chunk's start counts.

Two ways to the same answer, chosen for each sample:

* *paint*, for few slots: go through the slots in (start, position) order and let each overwrite the
  chunks it contains. The inner loop has no branch and runs in vector registers.
* *sweep*, for many: go through the chunks in time with a stack of the slots begun so far. The top
  of the stack has begun last; once it has ended it is over for all later chunks too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omnijudge_kernels import checks
from omnijudge_kernels.blocks import for_blocks
from omnijudge_kernels.jit import kernel

PAINT_UP_TO = 24  # slots; where painting and sweeping cost the same
PAINT_BLOCK = 1024  # chunks painted by all slots before the next: they stay in the fastest cache


def assign_slots(
    chunk_start: ArrayLike,
    chunk_offsets: ArrayLike,
    slot_start: ArrayLike,
    slot_end: ArrayLike,
    slot_offsets: ArrayLike,
    out: NDArray[np.int64] | None = None,
    *,
    threads: int = 1,
) -> NDArray[np.int64]:
    """The slot of each chunk, as a position among its sample's slots in the caller's order.

    Position ``p`` is the slot with id ``p + 1``. Neither chunks nor slots need be sorted.

    Args:
        chunk_start: starts of the chunks in seconds, (chunks,).
        chunk_offsets: CSR offsets of the chunks by sample, (samples + 1,).
        slot_start: starts of the slots in seconds, (slots,).
        slot_end: their ends, exclusive; a slot that ends at or before its start contains nothing.
        slot_offsets: CSR offsets of the slots by sample, (samples + 1,).
        out: where to write, int64 (chunks,); made if None. Undefined if an error is raised.
        threads: blocks of samples run at once; the result does not depend on it.

    Returns:
        int64 (chunks,): a position from 0, or -1 for a chunk in no slot.

    Raises:
        ValueError: if a time is NaN or infinite, or shapes and offsets do not fit together.
    """
    chunk_start = checks.seconds("chunk_start", chunk_start)
    slot_start = checks.seconds("slot_start", slot_start)
    slot_end = checks.seconds("slot_end", slot_end)
    n_slots = checks.same_length(slot_start=slot_start, slot_end=slot_end)
    chunk_offsets = checks.csr_offsets("chunk_offsets", chunk_offsets, chunk_start.size)
    slot_offsets = checks.csr_offsets("slot_offsets", slot_offsets, n_slots)
    checks.same_length(chunk_offsets=chunk_offsets, slot_offsets=slot_offsets)
    out = checks.output("out", out, chunk_start.size, np.int64)

    def work(first: int, last: int) -> bool:
        return _assign(
            chunk_start, chunk_offsets, slot_start, slot_end, slot_offsets, first, last, out
        )

    if not all(for_blocks(work, chunk_offsets, threads)):
        checks.require_finite(chunk_start=chunk_start, slot_start=slot_start, slot_end=slot_end)
    return out


@kernel
def _assign(
    chunk_start: NDArray[np.float64],
    chunk_offsets: NDArray[np.int64],
    slot_start: NDArray[np.float64],
    slot_end: NDArray[np.float64],
    slot_offsets: NDArray[np.int64],
    first: int,
    last: int,
    out: NDArray[np.int64],
) -> bool:
    """Samples ``first`` to ``last``; False as soon as a time is not finite."""
    most = 0
    for sample in range(first, last):
        most = max(most, slot_offsets[sample + 1] - slot_offsets[sample])
    position = np.empty(most, np.int64)
    begin = np.empty(most, np.float64)
    end = np.empty(most, np.float64)
    stack = np.empty(most, np.int64)

    for sample in range(first, last):
        c0, c1 = chunk_offsets[sample], chunk_offsets[sample + 1]
        s0, s1 = slot_offsets[sample], slot_offsets[sample + 1]
        times, found = chunk_start[c0:c1], out[c0:c1]
        if not (_finite(times) and _finite(slot_start[s0:s1]) and _finite(slot_end[s0:s1])):
            return False
        slots = s1 - s0
        _order(slot_start[s0:s1], position[:slots])
        for k in range(slots):
            begin[k] = slot_start[s0 + position[k]]
            end[k] = slot_end[s0 + position[k]]
        if slots <= PAINT_UP_TO:
            _paint(times, begin, end, position, slots, found)
        else:
            _sweep(times, begin, end, position, slots, stack, found)
    return True


@kernel
def _finite(values: NDArray[np.float64]) -> bool:
    bad = 0
    for i in range(values.size):
        bad |= values[i] - values[i] != 0.0  # NaN for NaN and for infinity
    return bad == 0


@kernel
def _rises(values: NDArray[np.float64]) -> bool:
    falls = 0
    for i in range(values.size - 1):
        falls |= values[i] > values[i + 1]
    return falls == 0


@kernel
def _order(values: NDArray[np.float64], position: NDArray[np.int64]) -> None:
    """Positions by (value, position). A merge sort: NumPy's own takes four seconds to compile."""
    n = values.size
    for i in range(n):
        position[i] = i
    if _rises(values):
        return
    merged = np.empty(n, np.int64)
    width = 1
    while width < n:
        for low in range(0, n, 2 * width):
            left, left_end = low, min(low + width, n)
            right, right_end = left_end, min(low + 2 * width, n)
            for i in range(low, right_end):
                take_right = left == left_end or (
                    right < right_end and values[position[right]] < values[position[left]]
                )
                if take_right:
                    merged[i] = position[right]
                    right += 1
                else:
                    merged[i] = position[left]
                    left += 1
        for i in range(n):
            position[i] = merged[i]
        width *= 2


@kernel
def _paint(
    times: NDArray[np.float64],
    begin: NDArray[np.float64],
    end: NDArray[np.float64],
    position: NDArray[np.int64],
    slots: int,
    found: NDArray[np.int64],
) -> None:
    for low in range(0, times.size, PAINT_BLOCK):
        t = times[low : low + PAINT_BLOCK]
        f = found[low : low + PAINT_BLOCK]
        for i in range(f.size):
            f[i] = -1
        k = 0
        while k + 4 <= slots:  # four slots at a time: a quarter of the loads and stores
            b0, e0, p0 = begin[k], end[k], position[k]
            b1, e1, p1 = begin[k + 1], end[k + 1], position[k + 1]
            b2, e2, p2 = begin[k + 2], end[k + 2], position[k + 2]
            b3, e3, p3 = begin[k + 3], end[k + 3], position[k + 3]
            for i in range(t.size):
                p = f[i]
                p = p0 if (b0 <= t[i]) & (t[i] < e0) else p
                p = p1 if (b1 <= t[i]) & (t[i] < e1) else p
                p = p2 if (b2 <= t[i]) & (t[i] < e2) else p
                p = p3 if (b3 <= t[i]) & (t[i] < e3) else p
                f[i] = p
            k += 4
        while k < slots:
            b0, e0, p0 = begin[k], end[k], position[k]
            for i in range(t.size):
                f[i] = p0 if (b0 <= t[i]) & (t[i] < e0) else f[i]
            k += 1


@kernel
def _sweep(
    times: NDArray[np.float64],
    begin: NDArray[np.float64],
    end: NDArray[np.float64],
    position: NDArray[np.int64],
    slots: int,
    stack: NDArray[np.int64],
    found: NDArray[np.int64],
) -> None:
    in_time = np.empty(times.size, np.int64)
    _order(times, in_time)
    depth = 0
    begun = 0
    for i in in_time:
        while begun < slots and begin[begun] <= times[i]:
            stack[depth] = begun
            depth += 1
            begun += 1
        while depth > 0 and end[stack[depth - 1]] <= times[i]:
            depth -= 1
        found[i] = position[stack[depth - 1]] if depth > 0 else -1
