"""One sample as one system answered it, beside what was expected: input of the system checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Seconds = NDArray[np.float64]

UTTERANCE_GAP = 1.0
"""Silence in seconds before a chunk that makes it the beginning of an utterance."""


@dataclass(frozen=True, slots=True, eq=False)
class Heard:
    """A system's transcript of one sample.

    Attributes:
        sample_id: the sample.
        file: the transcript, as the user named it.
        starts: chunk starts, shape (chunks,), seconds, any order.
        ends: chunk ends, shape (chunks,), seconds.
        texts: chunk texts.
        with_words: number of chunks that have words.
        unmatched: number of chunks that belong to no slot.
        slot_starts: shape (slots,), seconds.
        answer_times: moment each answer is due, shape (slots,), seconds.
        slot_ends: shape (slots,), seconds.
        answers: target answers of the slots.
        group: kind of sample within which systems behave alike (the scene type).
    """

    sample_id: str
    file: str
    starts: Seconds
    ends: Seconds
    texts: Sequence[str]
    with_words: int
    unmatched: int
    slot_starts: Seconds
    answer_times: Seconds
    slot_ends: Seconds
    answers: Sequence[str] = field(default_factory=tuple)
    group: str = ""

    def utterances(self) -> Seconds:
        """Starts of chunks that follow a second of silence, in order."""
        if len(self.starts) == 0:
            return self.starts
        order = np.argsort(self.starts, kind="stable")
        starts, ends = self.starts[order], np.maximum.accumulate(self.ends[order])
        begins = np.ones(len(starts), bool)
        begins[1:] = starts[1:] - ends[:-1] >= UTTERANCE_GAP
        return np.asarray(starts[begins], np.float64)

    def answered(self) -> NDArray[np.bool_]:
        """Whether any chunk starts in each slot, shape (slots,)."""
        starts = np.sort(self.starts)
        first = np.searchsorted(starts, self.slot_starts, "left")
        behind = np.searchsorted(starts, self.slot_ends, "left")
        return np.asarray(behind > first)
