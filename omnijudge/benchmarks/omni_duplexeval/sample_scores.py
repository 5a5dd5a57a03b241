"""Score rows of a partition from its stages and verdicts (rules 2 to 5).

Beside sentences, events and samples there are rows of what a system did, whatever the judge made
of it: ``behaviour`` (one per sample: outcome class, speaking time) and ``reply`` (one per event
that found one: its delay). They never count as unscored, so that a share of outcomes includes the
samples whose judge failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnijudge import tables
from omnijudge.benchmarks.omni_duplexeval import scoring
from omnijudge.benchmarks.omni_duplexeval.matching import Sample, event_windows, samples_of
from omnijudge.benchmarks.omni_duplexeval.questions import HALF, USABLE
from omnijudge.benchmarks.omni_duplexeval.schemas import SCORE_SCHEMA
from omnijudge.benchmarks.omni_duplexeval.scoring import (
    EventVerdict,
    PublishedSentence,
    SentenceVerdicts,
)
from omnijudge.benchmarks.omni_duplexeval.windows import spoken_seconds

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Partition
    from omnijudge.benchmarks.omni_duplexeval.options import Options

STAGE_COLUMNS = ("sample_id", "unit_id", "stage", "evidence", "frame_count")
ANSWER_COLUMNS = ("temporal_score", "is_relevant", "content_score", "success_score")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to one stage row.

    Attributes:
        status: None if it was not asked (or could not be, for want of evidence).
        value: the stage's number; None unless the answer is usable.
        relevant: relevance, where the published question asks for both at once.
        without_duration: the published script recorded no length.
        evidence: kind of evidence; None if what was needed is missing.
        frames: frames shown.
    """

    status: str | None
    value: float | None
    relevant: float | None
    without_duration: bool
    evidence: str | None
    frames: int | None

    @property
    def unasked(self) -> bool:
        """Whether it could still be asked."""
        return self.status is None and self.evidence is not None


class Verdicts:
    """Verdicts of a partition by sample, stage and unit, windows in order."""

    def __init__(self, part: Partition) -> None:
        stages = {n: part.stages[n].to_pylist() for n in STAGE_COLUMNS}
        found = part.verdicts
        blank = [None] * part.stages.num_rows
        status = found["status"].to_pylist() if found is not None else blank
        answers = {
            n: found[n].to_pylist() if found is not None else blank
            for n in (*ANSWER_COLUMNS, "without_duration")
        }
        self._by_key: dict[tuple[str, str, str], list[Verdict]] = {}
        for i, stage in enumerate(stages["stage"]):
            usable = status[i] in USABLE
            verdict = Verdict(
                status[i],
                answers[_VALUE[stage]][i] if usable else None,
                answers["is_relevant"][i] if usable else None,
                bool(answers["without_duration"][i]),
                stages["evidence"][i],
                stages["frame_count"][i],
            )
            key = (stages["sample_id"][i], stage, stages["unit_id"][i])
            self._by_key.setdefault(key, []).append(verdict)

    def all(self, sample_id: str, stage: str, unit_id: str) -> list[Verdict]:
        """Verdicts of a unit in one stage."""
        return self._by_key.get((sample_id, stage, unit_id), [])

    def one(self, sample_id: str, stage: str, unit_id: str) -> Verdict | None:
        """The verdict of a stage that has one row at most."""
        return next(iter(self.all(sample_id, stage, unit_id)), None)


_VALUE = {
    "temporal": "temporal_score",
    "relevance": "is_relevant",
    "window": "temporal_score",
    "content": "content_score",
    "event": "success_score",
    "full": "success_score",
}


def score(part: Partition, options: Options) -> pa.Table:
    """Score rows of a partition, samples in the order of the units."""
    rows = _Rows(part.system)
    verdicts = Verdicts(part)
    for sample in samples_of(part):
        rows.sample = sample
        if not sample.is_description:
            _score_reminder(sample, verdicts, options, rows)
        elif options.published:
            _score_published_description(sample, verdicts, rows)
        else:
            _score_description(sample, verdicts, options, rows)
    return tables.make(SCORE_SCHEMA, dict(rows.columns))


class _Rows:
    """Collects score rows as columns."""

    def __init__(self, system: str) -> None:
        self.system = system
        self.sample: Sample
        self.columns: dict[str, list[Any]] = {n: [] for n in SCORE_SCHEMA.names}

    def add(self, unit_id: str, kind: str, judged: bool | None, **values: Any) -> None:
        row = self.sample.row
        values |= {
            "system": self.system,
            "sample_id": self.sample.sample_id,
            "unit_id": unit_id,
            "unit_kind": kind,
            "video_id": row["video_id"],
            "judged": judged,
            "split": row["split"],
            "scene": row["scene"],
            "output_state": self.sample.state,
        }
        for name, column in self.columns.items():
            column.append(values.get(name))


@dataclass
class _Evidence:
    """Kind of evidence and number of frames behind a score, over several questions."""

    kind: str | None = None
    frames: int | None = None

    def add(self, verdict: Verdict) -> None:
        self.kind = self.kind or verdict.evidence
        if verdict.frames is not None:
            self.frames = (self.frames or 0) + verdict.frames


def _score_description(sample: Sample, verdicts: Verdicts, options: Options, rows: _Rows) -> None:
    told, whole, unasked = [], _Evidence(), False
    for i, segment in enumerate(sample.segments):
        unit_id = str(i)
        relevance = verdicts.one(sample.sample_id, "relevance", unit_id)
        windows = verdicts.all(sample.sample_id, "window", unit_id)
        value = None
        if relevance is not None and relevance.value is not None:
            value = int(relevance.value > HALF)
        sentence = SentenceVerdicts(value, tuple(w.value for w in windows))
        pending = relevance is None or relevance.unasked
        shown = _Evidence()
        if value == 1:
            pending = pending or any(w.unasked for w in windows)
            for w in windows:
                shown.add(w)
                whole.add(w)
        told.append(sentence)
        unasked = unasked or pending
        rows.add(
            unit_id,
            "sentence",
            not pending and (value == 0 or sentence.score is not None),
            relevant=value,
            score=None if pending else sentence.score,
            start=segment.start,
            end=segment.end,
            windows=len(windows),
            evidence=shown.kind,
            frame_count=shown.frames,
        )
    found = scoring.temporal_score(told, options.penalty)
    temporal = None if unasked else scoring.percent(found.value)
    asked = verdicts.one(sample.sample_id, "content", "content")
    content = 0.0 if asked is None else scoring.percent(asked.value)
    overall = scoring.overall(temporal, content)
    _add_description(
        sample,
        rows,
        judged=overall is not None if sample.segments else None,
        whole=whole,
        asked=asked,
        temporal=temporal,
        content=content,
        overall=overall,
        irrelevant_ratio=found.irrelevant_ratio,
        mean_relevant_score=found.mean_relevant,
        judge_errors=found.failed + (content is None),
    )


def _score_published_description(sample: Sample, verdicts: Verdicts, rows: _Rows) -> None:
    if sample.state != "ok":
        rows.add("sample", "sample", None)
        return
    told, whole, unscored = [], _Evidence(), False
    for i, segment in enumerate(sample.segments):
        unit_id = str(i)
        verdict = verdicts.one(sample.sample_id, "temporal", unit_id)
        score, relevant, error = 0.0, 0.0, None
        missing = False
        if verdict is None:
            error = "no_window"
        elif verdict.value is None or verdict.relevant is None:
            error = verdict.status or "unasked"
            # A call that failed is part of the published sums; one never made is not.
            missing = verdict.status is None
        else:
            score, relevant = verdict.value, verdict.relevant
        timed = verdict is not None and not error and not verdict.without_duration
        length = segment.end - segment.start if timed else None
        told.append(PublishedSentence(segment.start, segment.end, length, score, relevant, error))
        unscored = unscored or missing
        if verdict is not None:
            whole.add(verdict)
        judged = None if verdict is None else not error
        rows.add(
            unit_id,
            "sentence",
            judged,
            relevant=int(relevant) if judged else None,
            score=score if judged else None,
            start=segment.start,
            end=segment.end,
            windows=0 if verdict is None else 1,
            evidence=verdict.evidence if verdict else None,
            frame_count=verdict.frames if verdict else None,
        )
    found = scoring.published_temporal(told)
    temporal = None if unscored else scoring.percent(found.mean)
    asked = verdicts.one(sample.sample_id, "content", "content")
    content = None if asked is None else scoring.percent(asked.value)
    if asked is not None and asked.status == "error":
        content = 0.0  # quirk 2
    overall = scoring.overall(temporal, content)
    _add_description(
        sample,
        rows,
        judged=overall is not None,
        whole=whole,
        asked=asked,
        temporal=temporal,
        content=content,
        overall=overall,
        irrelevant_ratio=found.irrelevant_share,
        mean_relevant_score=found.mean,
        judge_errors=len(told) - found.valid,
    )


def _add_description(
    sample: Sample,
    rows: _Rows,
    judged: bool | None,
    whole: _Evidence,
    asked: Verdict | None,
    **values: Any,
) -> None:
    times = {
        "speaking_seconds": spoken_seconds(sample.segments, sample.duration),
        "video_duration": sample.duration,
    }
    rows.add(
        "sample",
        "sample",
        judged,
        evidence=whole.kind,
        frame_count=whole.frames,
        content_evidence=asked.evidence if asked else None,
        content_frame_count=asked.frames if asked else None,
        **times,
        **values,
    )
    rows.add("sample", "behaviour", None, **times)


def _score_reminder(sample: Sample, verdicts: Verdicts, options: Options, rows: _Rows) -> None:
    if options.published and sample.state != "ok":
        rows.add("sample", "sample", None)
        return
    told, unasked, delays = [], False, []
    stage = "event" if sample.times else "full"
    windows = event_windows(sample, options)
    for (unit_id, time), (_, replies) in zip(sample.events, windows, strict=True):
        verdict = verdicts.one(sample.sample_id, stage, unit_id)
        value = verdict.value if verdict else None
        if options.published:
            if verdict is not None and verdict.status == "error":
                value = 0.0  # quirk 2
        elif value is not None:
            value = float(value > HALF)
        told.append(EventVerdict(verdict is None, value))
        unasked = unasked or (verdict is not None and verdict.status is None)
        counted = 0.0 if verdict is None else value
        delay = None
        if time is not None and replies:
            delay = min(sample.segments[i].event_time for i in replies) - time
            delays.append((unit_id, time, delay))
        rows.add(
            unit_id,
            "event",
            None if verdict is None else value is not None,
            success=None if counted is None else scoring.FULL_PERCENT * (counted == 1),
            score=counted,
            event_time=time,
            reply_delay=delay,
            evidence=verdict.evidence if verdict else None,
            frame_count=verdict.frames if verdict else None,
        )
    spoken = [s.event_time for s in sample.segments]
    found = scoring.reminder_score(told, sample.times, spoken)
    outcome = None if unasked and found.success is None else found.outcome
    early = None
    if sample.times:
        early = bool(spoken) and scoring.silence(sample.times, spoken) == "only_before_first_event"
    values = {"outcome": outcome, "no_answer_detail": found.detail, "early_only": early}
    judged = None if all(v.empty for v in told) else found.success is not None
    success = None if found.success is None else scoring.FULL_PERCENT * found.success
    rows.add("sample", "sample", judged, success=success, **values)
    for unit_id, time, delay in delays:
        rows.add(unit_id, "reply", None, event_time=time, reply_delay=delay)
    rows.add("sample", "behaviour", None, **values)


def fill_unscored(scores: pa.Table, best: bool) -> pa.Table:
    """Every unscored row at its best or at its worst.

    A sample without an overall score counts in none of its means, so a part of it that is known
    is not used here either: the value lies between the two.
    """
    columns = {n: scores[n].to_pylist() for n in scores.column_names}
    for i, judged in enumerate(columns["judged"]):
        if judged is not False:
            continue
        columns["judged"][i] = True
        kind, scene = columns["unit_kind"][i], columns["scene"][i]
        if scene == "pr":
            columns["success"][i] = scoring.FULL_PERCENT * best
            columns["outcome"][i] = "success" if best else "wrong_answer"
            if kind == "event":
                columns["score"][i] = float(best)
        elif kind == "sentence":
            columns["relevant"][i] = int(best)
            columns["score"][i] = scoring.FULL_MARKS if best else 0.0
        else:
            for name in ("temporal", "content", "overall"):
                columns[name][i] = scoring.FULL_PERCENT * best
    return tables.make(scores.schema, dict(columns))
