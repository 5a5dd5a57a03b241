"""The kernels' rules in plain NumPy and Python, for inputs too small to be worth compiling for.

Same arguments, same checks, same answers as the compiled twins.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omnijudge_kernels import checks
from omnijudge_kernels.instances import EPS, instances, refuse_bad_times
from omnijudge_kernels.masks import WORD, Masks, Matching
from omnijudge_kernels.responses import (
    FirstResponse,
    Timing,
    checked_reference,
    checked_variant,
)


def assign_slots_small(
    chunk_start: ArrayLike,
    chunk_offsets: ArrayLike,
    slot_start: ArrayLike,
    slot_end: ArrayLike,
    slot_offsets: ArrayLike,
    out: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """:func:`omnijudge_kernels.slots.assign_slots` without Numba.

    In time order a slot's chunks are one run, found by binary search; the slots overwrite each
    other's runs in (start, position) order.
    """
    chunk_start = checks.seconds("chunk_start", chunk_start)
    slot_start = checks.seconds("slot_start", slot_start)
    slot_end = checks.seconds("slot_end", slot_end)
    n_slots = checks.same_length(slot_start=slot_start, slot_end=slot_end)
    chunk_offsets = checks.csr_offsets("chunk_offsets", chunk_offsets, chunk_start.size)
    slot_offsets = checks.csr_offsets("slot_offsets", slot_offsets, n_slots)
    samples = checks.same_length(chunk_offsets=chunk_offsets, slot_offsets=slot_offsets) - 1
    checks.require_finite(chunk_start=chunk_start, slot_start=slot_start, slot_end=slot_end)
    out = checks.output("out", out, chunk_start.size, np.int64)
    out[:] = -1

    chunk_bounds, slot_bounds = chunk_offsets.tolist(), slot_offsets.tolist()
    for sample in range(samples):
        c0, c1 = chunk_bounds[sample], chunk_bounds[sample + 1]
        s0, s1 = slot_bounds[sample], slot_bounds[sample + 1]
        if c0 == c1 or s0 == s1:
            continue
        times = chunk_start[c0:c1]
        in_time = None
        if (times[1:] < times[:-1]).any():
            in_time = np.argsort(times, kind="stable")
            times = times[in_time]
        run_first = np.searchsorted(times, slot_start[s0:s1], side="left").tolist()
        run_last = np.searchsorted(times, slot_end[s0:s1], side="left").tolist()
        found = out[c0:c1] if in_time is None else np.full(c1 - c0, -1, dtype=np.int64)
        for position in np.argsort(slot_start[s0:s1], kind="stable").tolist():
            found[run_first[position] : run_last[position]] = position
        if in_time is not None:
            out[c0:c1][in_time] = found
    return out


def window_ranges_small(
    response_time: ArrayLike,
    response_offsets: ArrayLike,
    window_low: ArrayLike,
    window_high: ArrayLike,
    target_offsets: ArrayLike,
    *,
    eps: float = EPS,
    out: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """:func:`omnijudge_kernels.windows.window_ranges` without Numba."""
    given = instances(response_time, response_offsets, window_low, window_high, target_offsets, eps)
    refuse_bad_times(given)
    first, end = out if out is not None else (None, None)
    first = checks.output("out[0]", first, given.n_targets, np.int64)
    end = checks.output("out[1]", end, given.n_targets, np.int64)
    low, high = given.window_low - eps, given.window_high + eps
    response_bounds, target_bounds = given.response_offsets.tolist(), given.target_offsets.tolist()
    for i in range(given.n_instances):
        times = given.response_time[response_bounds[i] : response_bounds[i + 1]]
        mine = slice(target_bounds[i], target_bounds[i + 1])
        first[mine] = np.searchsorted(times, low[mine], side="left")
        end[mine] = np.searchsorted(times, high[mine], side="right")
    np.maximum(first, end, out=end)
    return first, end


def match_ordered_pairs_small(
    masks: Masks, out: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
) -> Matching:
    """:func:`omnijudge_kernels.matching.match_ordered_pairs` without Numba.

    The same bit-parallel steps, on Python's integers, which are as long as they need be. There is
    no reversal of bits: the targets are walked backwards with responses mirrored by position.
    """
    score, taken = out if out is not None else (None, None)
    score = checks.output("out[0]", score, masks.n_instances, np.int64)
    taken = checks.output("out[1]", taken, masks.n_targets, np.int64)
    taken[:] = -1
    rows = _rows(masks)
    bounds = masks.target_offsets.tolist()
    for i in range(masks.n_instances):
        mine = rows[bounds[i] : bounds[i + 1]]
        width = max((row.bit_length() for row in mine), default=0)
        every = (1 << width) - 1
        # gains[-1 - k] tells of targets k and later: bit width - 1 - j is set where response j adds
        # to what the responses after it can reach.
        gains = [0]
        for row in reversed(mine):
            left = gains[-1] ^ every
            hit = left & int(f"{row:0{width}b}"[::-1], 2) if row else 0
            gains.append((((left + hit) | (left - hit)) & every) ^ every)
        needed = gains.pop().bit_count()
        score[i] = needed
        next_response = 0
        for k, row in enumerate(mine):
            later = gains.pop()
            eligible = row >> next_response << next_response
            if not eligible:
                continue
            j = (eligible & -eligible).bit_length() - 1
            rest = (later & ((1 << (width - 1 - j)) - 1)).bit_count()
            if rest + 1 == needed:
                taken[bounds[i] + k] = j
                needed, next_response = rest, j + 1
    return Matching(score, taken)


def _rows(masks: Masks) -> list[int]:
    """Each target's eligibility bits as one integer."""
    if masks.word_offsets is None or masks.first_word is None:
        single: list[int] = masks.words.tolist()
        return single
    bounds = masks.word_offsets.tolist()
    rows = []
    for k, first in enumerate(masks.first_word.tolist()):
        stored = masks.words[bounds[k] : bounds[k + 1]].astype("<u8").tobytes()
        rows.append(int.from_bytes(stored, "little") << (WORD * first))
    return rows


def first_response_small(
    response_time: ArrayLike,
    response_offsets: ArrayLike,
    window_low: ArrayLike,
    window_high: ArrayLike,
    target_offsets: ArrayLike,
    reference_time: ArrayLike | None = None,
    out: tuple[NDArray[np.int64], NDArray[np.int8]] | None = None,
    *,
    variant: str = "default",
    eps: float = EPS,
) -> FirstResponse:
    """:func:`omnijudge_kernels.first_response.first_response` without Numba."""
    given = instances(response_time, response_offsets, window_low, window_high, target_offsets, eps)
    chosen = checked_variant(variant)
    reference = checked_reference(given, reference_time, chosen).tolist()
    refuse_bad_times(given)
    taken, timing = out if out is not None else (None, None)
    taken = checks.output("out[0]", taken, given.n_targets, np.int64)
    timing = checks.output("out[1]", timing, given.n_targets, np.int8)
    taken[:] = -1
    timing[:] = Timing.MISSING

    times, low, high = (
        column.tolist() for column in (given.response_time, given.window_low, given.window_high)
    )
    response_bounds, target_bounds = (
        column.tolist() for column in (given.response_offsets, given.target_offsets)
    )
    for i in range(given.n_instances):
        begin, end = response_bounds[i], response_bounds[i + 1]
        free = begin
        for k in range(target_bounds[i], target_bounds[i + 1]):
            j = free
            if chosen == "since_previous" and k > target_bounds[i]:
                while j < end and times[j] <= reference[k - 1] + eps:
                    j += 1
            if j == end:
                continue
            late = times[j] > high[k] + eps
            if late and chosen == "late_released":
                continue
            early = times[j] < low[k] - eps
            taken[k] = j - begin
            timing[k] = Timing.EARLY if early else Timing.LATE if late else Timing.INSIDE
            free = j + 1
    return FirstResponse(taken, timing)
