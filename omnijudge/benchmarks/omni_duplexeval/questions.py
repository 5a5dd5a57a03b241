"""What is asked in which round, and what the prompts are rendered from (rules 2, 3, 5 and 7)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from omnijudge.benchmarks.base import Prompt
from omnijudge.benchmarks.omni_duplexeval.evidence import SEEN, MediaParts, shown_times
from omnijudge.benchmarks.omni_duplexeval.samples import POST_EVENT
from omnijudge.judging.engines.overlap import overlap

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Partition
    from omnijudge.benchmarks.omni_duplexeval.options import Options

STAGES = ("temporal", "relevance", "window", "content", "event", "full")
USABLE = ("ok", "repaired")

HALF = 0.5
"""Above this a mean of several judges' 0 and 1 counts as 1."""
SENTENCE_END = re.compile(r"(?<=[.!?。！？；;])\s*")
SAME_SUBJECT = 0.15
"""From this overlap on the smoke judge takes a text to be about the instruction."""


def pending(part: Partition, options: Options) -> npt.NDArray[np.int64]:
    """Stage rows to ask now: everything but windows at once, windows of relevant sentences after.

    Rows without the evidence they need are never asked.
    """
    stage = part.stages["stage"].to_numpy(zero_copy_only=False).astype(object)
    if not len(stage):
        return np.empty(0, np.int64)
    asked = np.asarray(part.stages["evidence"].is_valid().to_numpy(), np.bool_)
    window = stage == "window"
    if part.verdicts is None:
        return np.flatnonzero(asked & ~window)
    status = part.verdicts["status"].to_numpy(zero_copy_only=False).astype(object)
    answer = np.asarray(part.verdicts["is_relevant"].cast("float64").to_numpy(), np.float64)
    relevant = (
        (stage == "relevance")
        & np.isin(status, USABLE)
        & (answer == 1 if options.published else answer > HALF)
    )
    # Windows stand right behind the relevance row of their sentence.
    sentence = np.cumsum(~window)
    asked &= np.asarray(part.verdicts["status"].is_null().to_numpy(), np.bool_)
    asked &= ~window | np.isin(sentence, sentence[relevant])
    return np.flatnonzero(asked)


def prompts(part: Partition, rows: npt.NDArray[np.int64], options: Options) -> list[Prompt]:
    """What the questions of these stage rows are rendered from."""
    import pyarrow as pa

    chosen = part.stages.take(pa.array(rows, pa.int64())).to_pylist()
    wanted = {r["sample_id"] for r in chosen}
    samples: dict[str, dict[str, Any]] = {}
    events: dict[tuple[str, str], float | None] = {}
    for unit in part.units.to_pylist():
        if unit["sample_id"] not in wanted:
            continue
        if unit["unit_kind"] == "event":
            events[unit["sample_id"], unit["unit_id"]] = unit["event_time"]
        else:
            samples[unit["sample_id"]] = unit
    return [
        _prompt(
            row,
            samples[row["sample_id"]],
            events.get((row["sample_id"], row["unit_id"])),
            part.folder,
            options,
        )
        for row in chosen
    ]


def _prompt(
    row: Mapping[str, Any],
    unit: Mapping[str, Any],
    event_time: float | None,
    folder: str,
    options: Options,
) -> Prompt:
    stage = row["stage"]
    variables: dict[str, Any] = {"question": unit["question_text"].strip(), "text": row["text"]}
    if stage in ("event", "full"):
        variables["task"] = unit["task"]
        variables["past"] = unit["task"] == POST_EVENT
        variables["reference"] = (unit["references"] or [""])[0] if stage == "full" else ""
        return Prompt(stage, unit["language"], variables)
    variables["references"] = unit["references"] or []
    variables["captions"] = _cut(unit["captions"] or [], row)
    if stage == "relevance":
        return Prompt(stage, unit["language"], variables)
    start, end = row["window_start"], row["window_end"]
    notes = (row["evidence_note"] or "").split(", ")
    variables |= {
        "evidence": row["evidence"],
        "duration": unit["video_duration"],
        "window_start": start,
        "window_end": end,
        "frame_times": [],
        "silent": "no_audio" in notes,
        "limited": next((n for n in notes if " of " in n), ""),
    }
    if row["evidence"] in SEEN:
        if row["evidence"] != "video":
            variables["frame_times"] = shown_times(start, end, options)
        variables["media"] = MediaParts(
            folder, unit["media"], unit["media_digest"], row["evidence"], start, end, options
        )
    return Prompt(stage, unit["language"], variables)


def _cut(captions: list[dict[str, Any]], row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Captions that overlap the window (relevance: the sentence with the seconds before it)."""
    if row["stage"] == "content":
        return captions
    start, end = row["window_start"], row["window_end"]
    if start is None:
        start, end = row["start"] - CONTEXT_SECONDS, row["end"]
    return [c for c in captions if c["end"] >= start and c["start"] <= end]


CONTEXT_SECONDS = 5.0
"""How far before a sentence captions are shown to the judge of relevance."""


def lexical(stage: str, variables: Mapping[str, Any]) -> Mapping[str, Any]:
    """The smoke judge: overlap with references, captions or the instruction, no model."""
    text = variables["text"]
    if stage == "full" and variables["reference"]:
        share = overlap(text, variables["reference"])
        return {"success_score": int(share >= 2 * SAME_SUBJECT), "reasoning": ""}
    if stage in ("event", "full"):
        share = overlap(text, variables["question"])
        return {"success_score": int(share >= SAME_SUBJECT), "reasoning": ""}
    known = [c["text"] for c in variables["captions"]]
    if stage == "content":
        share = max((overlap(text, r) for r in variables["references"]), default=0.0)
        share = max(share, overlap(text, " ".join(known)))
        return {"content_score": round(3 * share, 2), "content_reasoning": ""}
    told = [s for r in (*variables["references"], *known) for s in SENTENCE_END.split(r) if s]
    share = max((overlap(text, s) for s in told), default=0.0)
    answers: dict[str, Any] = {}
    if stage != "relevance":
        answers["temporal_score"] = round(3 * share)
    if stage != "window":
        answers["is_relevant"] = int(share >= SAME_SUBJECT)
    return {**answers, "reasoning": ""}
