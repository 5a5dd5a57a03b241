"""Ordered matching of one long instance: rows of several words, of which only a band is touched.

The loops of :mod:`omnijudge_kernels.matching` for instances with more than 64 responses. A row's
addition may carry beyond its band, through words that earlier rows have changed, up to the
*high-water* word. Words above it are still all ones; a carry runs through them without a trace.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from omnijudge_kernels.bits import ALL, NONE, ONE, count_bits, lowest_bits, lowest_set, reverse_bits
from omnijudge_kernels.jit import kernel


@kernel
def band_width(
    word_offsets: NDArray[np.int64], first_word: NDArray[np.int64], begin: int, end: int
) -> int:
    """How many words the full rows ``begin`` to ``end`` need."""
    width = 0
    for k in range(begin, end):
        width = max(width, first_word[k] + word_offsets[k + 1] - word_offsets[k])
    return width


@kernel
def banded_score(
    words: NDArray[np.uint64],
    word_offsets: NDArray[np.int64],
    first_word: NDArray[np.int64],
    begin: int,
    end: int,
    left: NDArray[np.uint64],
) -> int:
    """The size of the largest ordered matching of targets ``begin`` to ``end``.

    ``left`` is scratch for the widest row. Bit ``j`` of it is cleared where the best score of the
    responses up to ``j`` exceeds that of the responses before ``j``.
    """
    high_water = 0
    stored = word_offsets[begin]
    for k in range(begin, end):
        stop = word_offsets[k + 1]
        w = first_word[k]
        while high_water < w + stop - stored:
            left[high_water] = ALL
            high_water += 1
        carry = NONE
        for i in range(stored, stop):
            before = left[np.uint64(w)]  # unsigned: no test for an index from the end
            hit = before & words[np.uint64(i)]
            total = before + hit
            overflow = np.uint64(total < before)
            with_carry = total + carry
            carry = overflow | np.uint64(with_carry < total)
            left[np.uint64(w)] = with_carry | (before - hit)
            w += 1
        while carry != NONE and w < high_water:
            before = left[np.uint64(w)]
            left[np.uint64(w)] = (before + ONE) | before
            carry = np.uint64(before == ALL)
            w += 1
        stored = stop
    score = 0
    for w in range(high_water):
        score += count_bits(~left[w])
    return score


@kernel
def banded_pairs(
    words: NDArray[np.uint64],
    word_offsets: NDArray[np.int64],
    first_word: NDArray[np.int64],
    begin: int,
    end: int,
    width: int,
    taken: NDArray[np.int64],
) -> int:
    """The canonical largest matching; ``taken[k]`` is the response of target ``k`` or -1.

    First backwards over the targets, with each row mirrored (response ``j`` at bit
    ``64 * width - 1 - j``), keeping every state: the bits of state ``k`` below the mirrored place
    of ``j`` number ``g[k][j + 1]``, the best score of the targets from ``k`` on with the responses
    after ``j``. Then forwards: a target takes its earliest eligible response if the rest can still
    reach what is needed. No later response could do so if the earliest cannot.
    """
    n = end - begin
    gains = np.zeros((n + 1, width), np.uint64)  # the complements of ``left`` above
    for k in range(n - 1, -1, -1):
        row = begin + k
        for w in range(width):
            gains[k, w] = gains[k + 1, w]
        carry = NONE
        w = width - (first_word[row] + word_offsets[row + 1] - word_offsets[row])
        for i in range(word_offsets[row + 1] - 1, word_offsets[row] - 1, -1):
            before = ~gains[k, w]
            hit = before & reverse_bits(words[i])
            total = before + hit
            overflow = np.uint64(total < before)
            with_carry = total + carry
            carry = overflow | np.uint64(with_carry < total)
            gains[k, w] = ~(with_carry | (before - hit))
            w += 1
        while carry != NONE and w < width:
            before = ~gains[k, w]
            gains[k, w] = ~((before + ONE) | before)
            carry = np.uint64(before == ALL)
            w += 1

    score = 0
    for w in range(width):
        score += count_bits(gains[0, w])
    needed = score
    next_response = 0
    for k in range(n):
        row = begin + k
        taken[row] = -1
        j = _first_eligible(words, word_offsets, first_word, row, next_response)
        if j < 0:
            continue
        mirrored = 64 * width - 1 - j
        rest = count_bits(gains[k + 1, mirrored >> 6] & lowest_bits(mirrored & 63))
        for w in range(mirrored >> 6):
            rest += count_bits(gains[k + 1, w])
        if rest + 1 == needed:
            taken[row] = j
            next_response = j + 1
            needed = rest
    return score


@kernel
def _first_eligible(
    words: NDArray[np.uint64],
    word_offsets: NDArray[np.int64],
    first_word: NDArray[np.int64],
    row: int,
    start: int,
) -> int:
    """The first response from ``start`` on that is eligible in ``row``, or -1."""
    first = first_word[row]
    stored = word_offsets[row + 1] - word_offsets[row]
    for w in range(max(first, start >> 6), first + stored):
        word = words[word_offsets[row] + w - first]
        if w == start >> 6:
            word &= ~lowest_bits(start & 63)
        if word != NONE:
            return 64 * w + lowest_set(word)
    return -1
