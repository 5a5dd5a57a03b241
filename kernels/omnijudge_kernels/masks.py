"""Which response may serve which target, as bits: the input of ordered matching.

A row of bits belongs to each target: bit ``j % 64`` of word ``j // 64`` says whether response ``j``
of the same instance is eligible. A row stores only a run of words, the *band* that its window
touches; all words outside the band are zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omnijudge_kernels import checks

WORD = 64  # bits


@dataclass(frozen=True, eq=False)
class Masks:
    """Rows of eligibility bits for the targets of many instances.

    The arrays are checked here, once, and held as read-only views; the kernels rely on that.

    Attributes:
        words: the stored words of all rows, uint64, row after row.
        target_offsets: CSR offsets of the targets by instance, int64 (instances + 1,).
        word_offsets: CSR offsets of ``words`` by target, int64 (targets + 1,). None if no instance
            has more than 64 responses: then there is exactly one word per target.
        first_word: which word of the full row is stored first, int64 (targets,); None likewise.
        width: how many words the widest full row needs.

    Raises:
        ValueError: if the arrays do not fit together.
    """

    words: NDArray[np.uint64]
    target_offsets: NDArray[np.int64]
    word_offsets: NDArray[np.int64] | None = None
    first_word: NDArray[np.int64] | None = None
    width: int = field(init=False, default=1)

    def __post_init__(self) -> None:
        words = checks.vector("words", self.words, np.uint64)
        n_targets = words.size
        if (self.word_offsets is None) != (self.first_word is None):
            raise ValueError("Give word_offsets and first_word together, or neither.")
        if self.word_offsets is not None and self.first_word is not None:
            first_word = checks.vector("first_word", self.first_word, np.int64)
            word_offsets = checks.csr_offsets("word_offsets", self.word_offsets, words.size)
            n_targets = first_word.size
            if word_offsets.size != n_targets + 1:
                raise ValueError(
                    f"word_offsets has {word_offsets.size} entries for {n_targets} targets; "
                    f"it needs one more than there are targets."
                )
            if n_targets and first_word.min() < 0:
                raise ValueError(f"first_word[{int(np.argmin(first_word))}] is negative.")
            width = int((first_word + np.diff(word_offsets)).max(initial=1))
            object.__setattr__(self, "width", width)
            object.__setattr__(self, "first_word", first_word)
            object.__setattr__(self, "word_offsets", word_offsets)
        target_offsets = checks.csr_offsets("target_offsets", self.target_offsets, n_targets)
        object.__setattr__(self, "target_offsets", target_offsets)
        object.__setattr__(self, "words", words)

    @property
    def n_instances(self) -> int:
        """How many instances there are."""
        return self.target_offsets.size - 1

    @property
    def n_targets(self) -> int:
        """How many targets all instances have together."""
        return self.words.size if self.word_offsets is None else self.word_offsets.size - 1


def pack_pairs(target: ArrayLike, response: ArrayLike, target_offsets: ArrayLike) -> Masks:
    """Eligibility bits from a list of eligible pairs, in any order; repeats do no harm.

    Args:
        target: the pairs' targets, counted over all instances, (pairs,).
        response: the pairs' responses, counted within the instance, (pairs,).
        target_offsets: CSR offsets of the targets by instance, (instances + 1,).

    Raises:
        ValueError: if a target or response number is out of range.
    """
    targets = checks.vector("target", target, np.int64)
    responses = checks.vector("response", response, np.int64)
    checks.same_length(target=targets, response=responses)
    offsets = checks.vector("target_offsets", target_offsets, np.int64)
    n_targets = int(offsets[-1]) if offsets.size else 0
    offsets = checks.csr_offsets("target_offsets", offsets, n_targets)
    if targets.size and not (targets.min() >= 0 and targets.max() < n_targets):
        raise ValueError(
            f"target runs from {targets.min()} to {targets.max()}; there are {n_targets} targets."
        )
    if responses.size and responses.min() < 0:
        raise ValueError(f"response[{int(np.argmin(responses))}] is negative.")

    word = responses // WORD
    bit = np.uint64(1) << (responses % WORD).astype(np.uint64)
    if not responses.size or responses.max() < WORD:
        words = np.zeros(n_targets, dtype=np.uint64)
        np.bitwise_or.at(words, targets, bit)
        return Masks(words, offsets)
    beyond = int(word.max()) + 1
    first_word = np.full(n_targets, beyond, dtype=np.int64)
    end_word = np.zeros(n_targets, dtype=np.int64)
    np.minimum.at(first_word, targets, word)
    np.maximum.at(end_word, targets, word + 1)
    first_word[end_word == 0] = 0  # no pair at all
    word_offsets = np.concatenate([[0], np.cumsum(end_word - first_word)])
    words = np.zeros(word_offsets[-1], dtype=np.uint64)
    np.bitwise_or.at(words, word_offsets[targets] + word - first_word[targets], bit)
    return Masks(words, offsets, word_offsets, first_word)


@dataclass(frozen=True, eq=False)
class Matching:
    """A largest ordered matching of every instance.

    Attributes:
        score: how many pairs, int64 (instances,).
        taken: the response of each target, counted within the instance, -1 if none, int64
            (targets,). Of all largest matchings, the lexicographically first pair list.
    """

    score: NDArray[np.int64]
    taken: NDArray[np.int64]
