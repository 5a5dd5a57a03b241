"""K2: ordered matching of targets and responses.

Rule (Omni-InteractScope, T8): the largest set of pairs (target, response) that are eligible, use
each target and each response once, and rise in both. This is a longest common subsequence with an
arbitrary equality, and is computed for up to 64 responses at once with one word per target::

    left = all ones;  for each row:  hit = left & row;  left = (left + hit) | (left - hit)

The score is the number of zeros in ``left`` at the end. A row of zeros changes nothing. Longer
instances take the same step over several words (:mod:`omnijudge_kernels.banded`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omnijudge_kernels import checks
from omnijudge_kernels.banded import band_width, banded_pairs, banded_score
from omnijudge_kernels.bits import ALL, NONE, count_bits, lowest_bits, lowest_set, reverse_bits
from omnijudge_kernels.blocks import for_blocks
from omnijudge_kernels.instances import EPS, instances, refuse_bad_times
from omnijudge_kernels.jit import kernel
from omnijudge_kernels.masks import Masks, Matching
from omnijudge_kernels.windows import (
    content_for,
    has_long,
    short_range,
    times_are_good,
    window_is_good,
    window_masks,
)

STRIDE = 8  # rows taken without asking whether there are so many


def match_ordered(
    masks: Masks, out: NDArray[np.int64] | None = None, *, threads: int = 1
) -> NDArray[np.int64]:
    """How many targets of each instance can be served in order.

    Args:
        masks: which responses are eligible for which targets.
        out: where to write, int64 (instances,); made if None.
        threads: blocks of instances computed at once; the result does not depend on it.

    Returns:
        The size of the largest ordered matching, int64 (instances,).

    """
    words, offsets = masks.words, masks.target_offsets
    word_offsets, first_word = masks.word_offsets, masks.first_word
    score = checks.output("out", out, masks.n_instances, np.int64)

    def work(first: int, last: int) -> None:
        if word_offsets is None or first_word is None:
            _scores(words, offsets, first, last, score)
        else:
            left = np.empty(masks.width, dtype=np.uint64)
            _banded_scores(words, word_offsets, first_word, offsets, first, last, left, score)

    for_blocks(work, offsets, threads)
    return score


def match_ordered_pairs(
    masks: Masks,
    out: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
    *,
    threads: int = 1,
) -> Matching:
    """:func:`match_ordered` with the pairs of the lexicographically first optimum.

    Args:
        masks: which responses are eligible for which targets.
        out: ``score`` and ``taken`` to write to, int64 (instances,) and (targets,).
        threads: blocks of instances computed at once; the result does not depend on it.

    """
    words, offsets = masks.words, masks.target_offsets
    word_offsets, first_word = masks.word_offsets, masks.first_word
    score, taken = _outputs(out, masks.n_instances, masks.n_targets)

    def work(first: int, last: int) -> None:
        if word_offsets is None or first_word is None:
            _pairs(words, offsets, first, last, score, taken)
        else:
            _banded_pairs(words, word_offsets, first_word, offsets, first, last, score, taken)

    for_blocks(work, offsets, threads)
    return Matching(score, taken)


def match_windows(
    response_time: ArrayLike,
    response_offsets: ArrayLike,
    window_low: ArrayLike,
    window_high: ArrayLike,
    target_offsets: ArrayLike,
    content: Masks | None = None,
    out: NDArray[np.int64] | None = None,
    *,
    eps: float = EPS,
    threads: int = 1,
) -> NDArray[np.int64]:
    """:func:`match_ordered` straight from times: a response is eligible inside the window.

    Args:
        response_time: seconds, (responses,), never falling inside an instance.
        response_offsets: CSR offsets of the responses by instance, (instances + 1,).
        window_low: begin of each target's window in seconds, inclusive, (targets,).
        window_high: its end, inclusive; a window that ends before it begins holds nothing.
        target_offsets: CSR offsets of the targets by instance, (instances + 1,).
        content: which pairs are right in content, for the same targets; all if None.
        out: where to write, int64 (instances,); made if None.
        eps: slack of the comparisons, seconds.
        threads: blocks of instances computed at once; the result does not depend on it.

    Returns:
        The size of the largest ordered matching, int64 (instances,).

    Raises:
        ValueError: if a time is not finite or out of order, or shapes do not fit together.
    """
    given = instances(response_time, response_offsets, window_low, window_high, target_offsets, eps)
    content = None if content is None else content_for(given, content)
    score = checks.output("out", out, given.n_instances, np.int64)
    if has_long(given) or (content is not None and content.word_offsets is not None):
        masks = window_masks(
            given.response_time,
            given.response_offsets,
            given.window_low,
            given.window_high,
            given.target_offsets,
            content,
            eps=eps,
        )
        return match_ordered(masks, score, threads=threads)
    right = checks.frozen(np.empty(0, dtype=np.uint64) if content is None else content.words)
    has_content = content is not None

    def work(first: int, last: int) -> bool:
        return _window_scores(
            given.response_time,
            given.response_offsets,
            given.window_low,
            given.window_high,
            given.target_offsets,
            given.eps,
            right,
            has_content,
            first,
            last,
            score,
        )

    if not all(for_blocks(work, given.target_offsets, threads)):
        refuse_bad_times(given)
    return score


def match_windows_pairs(
    response_time: ArrayLike,
    response_offsets: ArrayLike,
    window_low: ArrayLike,
    window_high: ArrayLike,
    target_offsets: ArrayLike,
    content: Masks | None = None,
    out: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
    *,
    eps: float = EPS,
    threads: int = 1,
) -> Matching:
    """:func:`match_windows` with the pairs of the lexicographically first optimum.

    Arguments and errors are those of :func:`match_windows`; ``out`` is ``score`` and ``taken``,
    int64 (instances,) and (targets,).
    """
    masks = window_masks(
        response_time,
        response_offsets,
        window_low,
        window_high,
        target_offsets,
        content,
        eps=eps,
    )
    return match_ordered_pairs(masks, out, threads=threads)


def _outputs(
    out: tuple[NDArray[np.int64], NDArray[np.int64]] | None, n_instances: int, n_targets: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    score, taken = out if out is not None else (None, None)
    return (
        checks.output("out[0]", score, n_instances, np.int64),
        checks.output("out[1]", taken, n_targets, np.int64),
    )


@kernel
def _score(words: NDArray[np.uint64], begin: int, end: int) -> int:
    left = ALL
    for k in range(begin, end):
        hit = left & words[k]
        left = (left + hit) | (left - hit)
    return count_bits(~left)


@kernel
def _scores(
    words: NDArray[np.uint64],
    target_offsets: NDArray[np.int64],
    first: int,
    last: int,
    score: NDArray[np.int64],
) -> None:
    """Four instances at a time.

    A plain loop over an instance's few targets mispredicts its end nearly every time. So the
    longest of four instances, rounded up to whole strides, decides for all four, and rows beyond
    an instance's end count as zeros. Four independent chains also keep the processor busy.
    """
    i = first
    while i + 4 <= last:
        a, b = target_offsets[i], target_offsets[i + 1]
        c, d, e = target_offsets[i + 2], target_offsets[i + 3], target_offsets[i + 4]
        longest = max(max(b - a, c - b), max(d - c, e - d))
        if d + longest + STRIDE > words.size:
            break  # a stride would read beyond the last word
        left_a = left_b = left_c = left_d = ALL
        for low in range(0, longest, STRIDE):
            for r in range(low, low + STRIDE):
                # The masks are all ones or none; in this order LLVM does not branch on them.
                hit = left_a & words[np.uint64(a + r)] & (NONE - np.uint64(a + r < b))
                left_a = (left_a + hit) | (left_a - hit)
                hit = left_b & words[np.uint64(b + r)] & (NONE - np.uint64(b + r < c))
                left_b = (left_b + hit) | (left_b - hit)
                hit = left_c & words[np.uint64(c + r)] & (NONE - np.uint64(c + r < d))
                left_c = (left_c + hit) | (left_c - hit)
                hit = left_d & words[np.uint64(d + r)] & (NONE - np.uint64(d + r < e))
                left_d = (left_d + hit) | (left_d - hit)
        score[i] = count_bits(~left_a)
        score[i + 1] = count_bits(~left_b)
        score[i + 2] = count_bits(~left_c)
        score[i + 3] = count_bits(~left_d)
        i += 4
    while i < last:
        score[i] = _score(words, target_offsets[i], target_offsets[i + 1])
        i += 1


@kernel
def _banded_scores(
    words: NDArray[np.uint64],
    word_offsets: NDArray[np.int64],
    first_word: NDArray[np.int64],
    target_offsets: NDArray[np.int64],
    first: int,
    last: int,
    left: NDArray[np.uint64],
    score: NDArray[np.int64],
) -> None:
    for i in range(first, last):
        begin, end = target_offsets[i], target_offsets[i + 1]
        score[i] = banded_score(words, word_offsets, first_word, begin, end, left)


@kernel
def _most_targets(target_offsets: NDArray[np.int64], first: int, last: int) -> int:
    most = 0
    for i in range(first, last):
        most = max(most, target_offsets[i + 1] - target_offsets[i])
    return most


@kernel
def _pairs(
    words: NDArray[np.uint64],
    target_offsets: NDArray[np.int64],
    first: int,
    last: int,
    score: NDArray[np.int64],
    taken: NDArray[np.int64],
) -> None:
    """As :func:`omnijudge_kernels.banded.banded_pairs`, with one word per row."""
    gains = np.empty(_most_targets(target_offsets, first, last) + 1, np.uint64)
    for i in range(first, last):
        begin, end = target_offsets[i], target_offsets[i + 1]
        left = ALL
        for k in range(end - 1, begin - 1, -1):
            gains[k + 1 - begin] = ~left
            hit = left & reverse_bits(words[k])
            left = (left + hit) | (left - hit)
        needed = count_bits(~left)
        score[i] = needed
        open_responses = ALL
        for k in range(begin, end):
            eligible = words[k] & open_responses
            j = lowest_set(eligible)  # 64 if none
            rest = count_bits(gains[k + 1 - begin] & lowest_bits(63 - j))
            if eligible != NONE and rest + 1 == needed:
                taken[k] = j
                needed = rest
                open_responses = ~lowest_bits(j + 1)
            else:
                taken[k] = -1


@kernel
def _banded_pairs(
    words: NDArray[np.uint64],
    word_offsets: NDArray[np.int64],
    first_word: NDArray[np.int64],
    target_offsets: NDArray[np.int64],
    first: int,
    last: int,
    score: NDArray[np.int64],
    taken: NDArray[np.int64],
) -> None:
    for i in range(first, last):
        begin, end = target_offsets[i], target_offsets[i + 1]
        width = band_width(word_offsets, first_word, begin, end)
        score[i] = banded_pairs(words, word_offsets, first_word, begin, end, width, taken)


@kernel
def _window_scores(
    response_time: NDArray[np.float64],
    response_offsets: NDArray[np.int64],
    window_low: NDArray[np.float64],
    window_high: NDArray[np.float64],
    target_offsets: NDArray[np.int64],
    eps: float,
    content: NDArray[np.uint64],
    has_content: bool,
    first: int,
    last: int,
    score: NDArray[np.int64],
) -> bool:
    for i in range(first, last):
        times = response_time[response_offsets[i] : response_offsets[i + 1]]
        if not times_are_good(times):
            return False
        left = ALL
        for k in range(target_offsets[i], target_offsets[i + 1]):
            if not window_is_good(window_low[k], window_high[k]):
                return False
            begin, end = short_range(times, window_low[k] - eps, window_high[k] + eps)
            row = lowest_bits(end) & ~lowest_bits(begin)
            if has_content:
                row &= content[k]
            hit = left & row
            left = (left + hit) | (left - hit)
        score[i] = count_bits(~left)
    return True
