"""Which responses lie in which target's window.

Rule (Omni-InteractScope, windows): ``lo - eps <= t <= hi + eps``, closed at both ends. The
responses of an instance are in order of time, so a window holds one run of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omnijudge_kernels import checks
from omnijudge_kernels.bits import lowest_bits
from omnijudge_kernels.instances import EPS, Instances, instances, refuse_bad_times
from omnijudge_kernels.jit import kernel
from omnijudge_kernels.masks import WORD, Masks

STEPS_BEFORE_BISECTION = 8  # windows mostly follow each other: the next one begins nearby


def window_ranges(
    response_time: ArrayLike,
    response_offsets: ArrayLike,
    window_low: ArrayLike,
    window_high: ArrayLike,
    target_offsets: ArrayLike,
    *,
    eps: float = EPS,
    out: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The run of responses inside each target's window.

    Args:
        response_time: seconds, (responses,), never falling inside an instance.
        response_offsets: CSR offsets of the responses by instance, (instances + 1,).
        window_low: begin of each target's window in seconds, inclusive, (targets,).
        window_high: its end, inclusive; a window that ends before it begins holds nothing.
        target_offsets: CSR offsets of the targets by instance, (instances + 1,).
        eps: slack of the comparisons, seconds.
        out: two int64 arrays (targets,) to write to; made if None.

    Returns:
        ``first`` and ``end``, int64 (targets,): target ``k`` has the responses ``first[k] <= j <
        end[k]``, counted within its instance; none if the two are equal.

    Raises:
        ValueError: if a time is not finite or out of order, or shapes do not fit together.
    """
    given = instances(response_time, response_offsets, window_low, window_high, target_offsets, eps)
    first, end = out if out is not None else (None, None)
    first = checks.output("out[0]", first, given.n_targets, np.int64)
    end = checks.output("out[1]", end, given.n_targets, np.int64)
    if not _ranges(
        given.response_time,
        given.response_offsets,
        given.window_low,
        given.window_high,
        given.target_offsets,
        given.eps,
        first,
        end,
    ):
        refuse_bad_times(given)
    return first, end


def window_masks(
    response_time: ArrayLike,
    response_offsets: ArrayLike,
    window_low: ArrayLike,
    window_high: ArrayLike,
    target_offsets: ArrayLike,
    content: Masks | None = None,
    *,
    eps: float = EPS,
    out: NDArray[np.uint64] | None = None,
) -> Masks:
    """Eligibility bits from times: inside the window and, if given, right in content.

    Args:
        response_time: seconds, (responses,), never falling inside an instance.
        response_offsets: CSR offsets of the responses by instance, (instances + 1,).
        window_low: begin of each target's window in seconds, inclusive, (targets,).
        window_high: its end, inclusive.
        target_offsets: CSR offsets of the targets by instance, (instances + 1,).
        content: which pairs are right in content, for the same targets; all if None.
        eps: slack of the comparisons, seconds.
        out: uint64 array for the words. Without long instances it needs one word per target.

    Returns:
        One word per target if no instance has more than 64 responses, otherwise bands.

    Raises:
        ValueError: if a time is not finite or out of order, or shapes do not fit together.
    """
    given = instances(response_time, response_offsets, window_low, window_high, target_offsets, eps)
    content = None if content is None else content_for(given, content)
    first, end = window_ranges(
        given.response_time,
        given.response_offsets,
        given.window_low,
        given.window_high,
        given.target_offsets,
        eps=eps,
    )
    if not has_long(given) and (content is None or content.word_offsets is None):
        words = checks.output("out", out, given.n_targets, np.uint64)
        _fill_single(first, end, _words_or_nothing(content), content is not None, words)
        return Masks(words, given.target_offsets)

    first_word = first // WORD
    end_word = np.where(end > first, (end - 1) // WORD + 1, first_word)
    shift = first_word  # place of a row's first stored word among the content's stored words
    if content is not None:
        stored = _stored_words(content)
        content_first = _first_words(content)
        first_word = np.maximum(first_word, content_first)
        end_word = np.maximum(np.minimum(end_word, content_first + stored), first_word)
        shift = first_word - content_first
    word_offsets = np.concatenate([[0], np.cumsum(end_word - first_word)])
    words = checks.output("out", out, int(word_offsets[-1]), np.uint64)
    content_begin = shift if content is None else _word_begins(content) + shift
    _fill_bands(
        first,
        end,
        word_offsets,
        first_word,
        _words_or_nothing(content),
        content_begin,
        content is not None,
        words,
    )
    return Masks(words, given.target_offsets, word_offsets, first_word)


def has_long(given: Instances) -> bool:
    """Whether any instance has more responses than a word has bits."""
    return bool((np.diff(given.response_offsets) > WORD).any())


def content_for(given: Instances, content: Masks) -> Masks:
    """``content``, if it describes the same targets.

    Raises:
        ValueError: if it does not.
    """
    if not np.array_equal(content.target_offsets, given.target_offsets):
        raise ValueError("content has other target_offsets than the windows.")
    return content


def _words_or_nothing(content: Masks | None) -> NDArray[np.uint64]:
    return checks.frozen(np.empty(0, dtype=np.uint64) if content is None else content.words)


def _word_begins(masks: Masks) -> NDArray[np.int64]:
    return np.arange(masks.n_targets) if masks.word_offsets is None else masks.word_offsets[:-1]


def _stored_words(masks: Masks) -> NDArray[np.int64]:
    if masks.word_offsets is None:
        return np.ones(masks.n_targets, dtype=np.int64)
    return np.diff(masks.word_offsets)


def _first_words(masks: Masks) -> NDArray[np.int64]:
    return np.zeros(masks.n_targets, np.int64) if masks.first_word is None else masks.first_word


@kernel
def times_are_good(times: NDArray[np.float64]) -> bool:
    """Never falling and finite. NaN fails every comparison; infinity can only stand at an end."""
    n = times.size
    if n == 0:
        return True
    bad = (times[0] - times[0] != 0.0) | (times[n - 1] - times[n - 1] != 0.0)
    for j in range(n - 1):
        bad |= not (times[j] <= times[j + 1])
    return not bad


@kernel
def window_is_good(low: float, high: float) -> bool:
    """Both ends finite."""
    return (low - low == 0.0) & (high - high == 0.0)


@kernel
def short_range(times: NDArray[np.float64], low: float, high: float) -> tuple[int, int]:
    """The run of ``times`` with ``low <= t <= high``, by counting: no branch, a few registers."""
    first = 0
    end = 0
    for j in range(times.size):
        first += times[j] < low
        end += times[j] <= high
    return first, max(first, end)


@kernel
def _long_range(times: NDArray[np.float64], low: float, high: float, near: int) -> tuple[int, int]:
    """The same by search; ``near`` is where the previous window began."""
    if near > 0 and times[near - 1] >= low:
        near = 0
    first = _search(times, low, False, near)
    return first, _search(times, high, True, first)


@kernel
def _search(times: NDArray[np.float64], value: float, inclusive: bool, start: int) -> int:
    """The first place from ``start`` on whose time is not below (up to, if inclusive) ``value``."""
    place = start
    for _ in range(STEPS_BEFORE_BISECTION):
        if place == times.size or not _before(times[place], value, inclusive):
            return place
        place += 1
    beyond = times.size
    while place < beyond:
        middle = (place + beyond) >> 1
        if _before(times[middle], value, inclusive):
            place = middle + 1
        else:
            beyond = middle
    return place


@kernel
def _before(time: float, value: float, inclusive: bool) -> bool:
    return time <= value if inclusive else time < value


@kernel
def _ranges(
    response_time: NDArray[np.float64],
    response_offsets: NDArray[np.int64],
    window_low: NDArray[np.float64],
    window_high: NDArray[np.float64],
    target_offsets: NDArray[np.int64],
    eps: float,
    first: NDArray[np.int64],
    end: NDArray[np.int64],
) -> bool:
    for i in range(target_offsets.size - 1):
        times = response_time[response_offsets[i] : response_offsets[i + 1]]
        if not times_are_good(times):
            return False
        near = 0
        for k in range(target_offsets[i], target_offsets[i + 1]):
            if not window_is_good(window_low[k], window_high[k]):
                return False
            low, high = window_low[k] - eps, window_high[k] + eps
            if times.size <= WORD:
                first[k], end[k] = short_range(times, low, high)
            else:
                first[k], end[k] = _long_range(times, low, high, near)
                near = first[k]
    return True


@kernel
def _fill_single(
    first: NDArray[np.int64],
    end: NDArray[np.int64],
    content: NDArray[np.uint64],
    has_content: bool,
    words: NDArray[np.uint64],
) -> None:
    for k in range(words.size):
        inside = lowest_bits(end[k]) & ~lowest_bits(first[k])
        words[k] = inside & content[k] if has_content else inside


@kernel
def _fill_bands(
    first: NDArray[np.int64],
    end: NDArray[np.int64],
    word_offsets: NDArray[np.int64],
    first_word: NDArray[np.int64],
    content: NDArray[np.uint64],
    content_begin: NDArray[np.int64],
    has_content: bool,
    words: NDArray[np.uint64],
) -> None:
    for k in range(first.size):
        for i in range(word_offsets[k + 1] - word_offsets[k]):
            bit = 64 * (first_word[k] + i)
            inside = lowest_bits(end[k] - bit) & ~lowest_bits(first[k] - bit)
            if has_content:
                inside &= content[content_begin[k] + i]
            words[word_offsets[k] + i] = inside
