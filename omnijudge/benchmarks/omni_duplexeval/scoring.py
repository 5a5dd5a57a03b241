"""Scores of single samples from verdicts (Omni-DuplexEval rules 2 to 5).

Scores of the judge run from 0 to 3; None is a verdict that is missing, never a zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

FULL_MARKS = 3.0
FULL_PERCENT = 100.0


def percent(score: float | None) -> float | None:
    """A judge's score of 0..3 on the scale of 0..100."""
    return None if score is None else score / FULL_MARKS * FULL_PERCENT


def overall(temporal: float | None, content: float | None) -> float | None:
    """Mean of temporal and content score; None if either is missing."""
    if temporal is None or content is None:
        return None
    return 0.5 * temporal + 0.5 * content


# ---- real-time description, robust and paper profiles ----


@dataclass(frozen=True, slots=True)
class SentenceVerdicts:
    """What the judge said about one sentence.

    Attributes:
        relevant: 1, 0, or None if there is no usable answer.
        windows: score of each candidate window, None where there is no usable answer. Empty if
            the sentence lies beyond the clip.
    """

    relevant: int | None
    windows: tuple[float | None, ...] = ()

    @property
    def score(self) -> float | None:
        """Best window of a relevant sentence; 0 beyond the clip; None if all windows failed."""
        if self.relevant != 1:
            return None
        if not self.windows:
            return 0
        return max((w for w in self.windows if w is not None), default=None)


@dataclass(frozen=True, slots=True)
class TemporalScore:
    """Temporal sensitivity of one sample.

    Attributes:
        irrelevant_ratio: irrelevant sentences among those with a relevance verdict.
        mean_relevant: mean score of the scored relevant sentences, 0 if there is none.
        value: the score, 0..3; None if it cannot be told.
        failed: sentences without relevance verdict, and relevant ones without any window's.
    """

    irrelevant_ratio: float | None
    mean_relevant: float
    value: float | None
    failed: int


def temporal_score(sentences: Sequence[SentenceVerdicts], penalty: float = 1.0) -> TemporalScore:
    """Mean score of relevant sentences, lowered by the share of irrelevant ones.

    Args:
        sentences: all sentences of the sample.
        penalty: weight lambda of the irrelevant share.
    """
    relevant = [s for s in sentences if s.relevant == 1]
    irrelevant = sum(s.relevant == 0 for s in sentences)
    told = len(relevant) + irrelevant
    ratio = irrelevant / told if told else None
    scores = [s.score for s in relevant]
    scored = [s for s in scores if s is not None]
    failed = len(sentences) - told + len(scores) - len(scored)
    mean = sum(scored) / len(scored) if scored else 0.0
    value: float | None
    if not sentences or (ratio is not None and not relevant):
        value = 0.0
    elif ratio is None or not scored:
        value = None
    else:
        value = mean * (1 - penalty * ratio)
    return TemporalScore(ratio, mean, value, failed)


# ---- real-time description, published profile ----


@dataclass(frozen=True, slots=True)
class PublishedSentence:
    """One sentence as the published script records it.

    Attributes:
        start: start in seconds; None for a record that lost its sentence (quirk 12).
        end: end in seconds, likewise.
        duration: length in seconds, None if the record carries none (quirk 3).
        score: as the lenient parser read it, any whole number.
        relevant: likewise; only exactly 1 and 0 count.
        error: a text that is not empty takes the sentence out of the mean.
    """

    start: float | None
    end: float | None
    duration: float | None
    score: float
    relevant: float
    error: str | None = None


@dataclass(frozen=True, slots=True)
class PublishedTemporal:
    """Summary of the published script over one sample's sentences.

    Attributes:
        mean: mean score of relevant sentences, four decimals, 0 if there is none.
        order: positions of the sentences in the order in which they are listed.
        valid: number of sentences without error.
        relevant: positions of the relevant ones, in listing order.
        irrelevant: positions of the irrelevant ones, in listing order.
        distribution: how many relevant sentences scored 3, 2, 1, 0.
        first_relevant: earliest start of a relevant sentence.
        relevant_seconds: total length of relevant sentences.
        irrelevant_seconds: total length of irrelevant sentences.
        irrelevant_share: irrelevant length as a share of all valid length.
    """

    mean: float
    order: tuple[int, ...]
    valid: int
    relevant: tuple[int, ...]
    irrelevant: tuple[int, ...]
    distribution: tuple[int, int, int, int]
    first_relevant: float | None
    relevant_seconds: float
    irrelevant_seconds: float
    irrelevant_share: float


def published_temporal(sentences: Sequence[PublishedSentence]) -> PublishedTemporal:
    """The published summary: no penalty, failures leave the mean."""

    def start(i: int) -> float:
        found = sentences[i].start
        return math.inf if found is None else found

    def seconds(positions: Sequence[int]) -> float:
        return math.fsum(sentences[i].duration or 0.0 for i in positions)

    order = sorted(range(len(sentences)), key=start)
    valid = [i for i in order if not sentences[i].error]
    relevant = [i for i in valid if sentences[i].relevant == 1]
    irrelevant = [i for i in valid if sentences[i].relevant == 0]
    scores = [sentences[i].score for i in relevant]
    starts = [s for i in relevant if (s := sentences[i].start) is not None]
    whole = seconds(valid)
    return PublishedTemporal(
        mean=round(sum(scores) / len(scores), 4) if scores else 0.0,
        order=tuple(order),
        valid=len(valid),
        relevant=tuple(relevant),
        irrelevant=tuple(irrelevant),
        distribution=(scores.count(3), scores.count(2), scores.count(1), scores.count(0)),
        first_relevant=min(starts, default=None),
        relevant_seconds=round(seconds(relevant), 4),
        irrelevant_seconds=round(seconds(irrelevant), 4),
        irrelevant_share=round(seconds(irrelevant) / whole, 4) if whole > 0 else 0.0,
    )


def published_total(scores: Sequence[float], timed: bool) -> float:
    """Total of a reminder sample as published: events all or nothing, a lone call as it is."""
    return float(all(s == 1 for s in scores)) if timed else scores[0]


# ---- proactive reminder ----


@dataclass(frozen=True, slots=True)
class EventVerdict:
    """One event, or the whole transcript where timing does not count.

    Attributes:
        empty: nothing was said in its window, so that it scores 0 without a call.
        score: 1, 0 (published: any whole number), or None if there is no usable answer.
    """

    empty: bool
    score: float | None


@dataclass(frozen=True, slots=True)
class ReminderScore:
    """Success and outcome class of one reminder sample.

    Attributes:
        success: 1 if every event scored 1, 0 if some event did not, None if it cannot be told.
        outcome: ``success``, ``partial``, ``no_answer``, ``wrong_answer`` or ``judge_error``.
        detail: for ``no_answer``: ``silent``, ``only_before_first_event`` or
            ``outside_every_window``.
    """

    success: int | None
    outcome: str
    detail: str | None = None


def reminder_score(
    verdicts: Sequence[EventVerdict], events: Sequence[float], reply_times: Sequence[float]
) -> ReminderScore:
    """Success only if every event succeeded; the class says what went wrong otherwise.

    Args:
        verdicts: one per event, or one for the whole transcript.
        events: event times; empty where timing does not count.
        reply_times: event time of every segment of the response.
    """
    scores = [0 if v.empty else v.score for v in verdicts]
    if all(s == 1 for s in scores):
        return ReminderScore(1, "success")
    if all(s is None or s == 1 for s in scores):
        return ReminderScore(None, "judge_error")
    if 1 in scores:
        return ReminderScore(0, "partial")
    if not all(v.empty for v in verdicts):
        return ReminderScore(0, "wrong_answer")
    return ReminderScore(0, "no_answer", silence(events, reply_times))


def silence(events: Sequence[float], reply_times: Sequence[float]) -> str:
    """Why no event found a reply in its window."""
    if not reply_times:
        return "silent"
    if events and all(t < min(events) for t in reply_times):
        return "only_before_first_event"
    return "outside_every_window"
