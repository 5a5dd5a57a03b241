"""What is asked, and what the prompts are rendered from (OmniInteract rule 9)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnijudge.benchmarks.base import Prompt
from omnijudge.judging.engines.overlap import longest_shared_phrase, overlap

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Partition
    from omnijudge.benchmarks.omniinteract.options import Options

STAGES = ("early", "core", "partial")
LOW_OVERLAP = 0.2
"""Below this the smoke judge calls a partial answer off the mark."""


def pending(part: Partition, options: Options) -> np.ndarray[Any, Any]:
    """Stage rows to ask: core not where interrupted, partial only where it is judged."""
    interrupted = _interrupted(part)
    stage = part.stages["stage"]
    asked = pc.not_equal(stage, "partial")
    if options.interrupted_output_eval:
        asked = pc.or_(asked, pc.equal(stage, "partial"))
    silent_core = pc.and_(pc.equal(stage, "core"), interrupted)
    asked = pc.and_not(asked, silent_core)
    if part.verdicts is not None:
        asked = pc.and_(asked, pc.is_null(part.verdicts["status"]))
    return np.flatnonzero(asked.to_numpy())


def _unit_rows(part: Partition) -> list[int]:
    """Row of the unit table of each stage row."""
    at = {
        key: i
        for i, key in enumerate(
            zip(part.units["sample_id"].to_pylist(), part.units["unit_id"].to_pylist(), strict=True)
        )
    }
    return [
        at[key]
        for key in zip(
            part.stages["sample_id"].to_pylist(), part.stages["unit_id"].to_pylist(), strict=True
        )
    ]


def _interrupted(part: Partition) -> pa.ChunkedArray:
    rows = pa.array(_unit_rows(part), pa.int64())
    return part.units["is_interrupted"].take(rows)


SHOWN = (
    "scene_type", "unit_id", "turn_index", "step_index", "boundary", "is_interrupted",
    "question_text", "target_answer", "language", "sample_id", "unit_kind",
)  # fmt: skip


def prompts(part: Partition, rows: np.ndarray[Any, Any], options: Options) -> list[Prompt]:
    """What the questions of these stage rows are rendered from."""
    units = {n: part.units[n].to_pylist() for n in SHOWN}
    later = _later_answers(units, options)
    unit_of = _unit_rows(part)
    stages = part.stages.select(["stage", "text", "context"]).take(pa.array(rows, pa.int64()))
    found = []
    for row, stage, text, context in zip(
        rows.tolist(), *(stages[n].to_pylist() for n in stages.column_names), strict=True
    ):
        u = unit_of[row]
        variables: dict[str, Any] = {
            "question": units["question_text"][u].strip(),
            "target_answer": units["target_answer"][u].strip(),
            "text": text.strip(),
        }
        if stage != "partial":
            variables |= {
                "scene_type": units["scene_type"][u],
                "slot_id": units["unit_id"][u],
                "turn": units["turn_index"][u],
                "step": units["step_index"][u],
                "boundary": units["boundary"][u],
                "interrupted": units["is_interrupted"][u],
                "context": context.strip(),
            }
        if stage == "core":
            variables["later_answers"] = later[u]
        found.append(Prompt(stage, units["language"][u], variables))
    return found


def _later_answers(units: Mapping[str, list[Any]], options: Options) -> list[list[tuple[str, str]]]:
    """Per unit the (slot id, target answer) of all later slots of its sample."""
    later: list[list[tuple[str, str]]] = [[] for _ in units["sample_id"]]
    tail: list[tuple[str, str]] = []
    sample = None
    for u in range(len(later) - 1, -1, -1):
        if units["sample_id"][u] != sample:
            sample, tail = units["sample_id"][u], []
        if units["unit_kind"][u] != "slot":
            continue
        if options.later_answers == "all" or units["scene_type"][u] == "1QnA":
            later[u] = tail
        tail = [(units["unit_id"][u], units["target_answer"][u].strip()), *tail]
    return later


def lexical(stage: str, variables: Mapping[str, Any]) -> Mapping[str, Any]:
    """The smoke judge: overlap of what was said with the reference answer, no model."""
    text, target = variables["text"], variables["target_answer"]
    share = overlap(text, target)
    if stage == "partial":
        return {"score": share, "hallucination": False}
    if stage == "core":
        ahead = max(
            (overlap(text, answer) for _, answer in variables["later_answers"]), default=0.0
        )
        return {
            "score": share,
            "trigger_phrase": longest_shared_phrase(text, target),
            "spoiler": ahead > share,
        }
    # Before the answer is due, saying much that is not the target is a guess.
    guess = share < LOW_OVERLAP and len(text) > SHORT_REMARK
    if share >= 0.5 or guess:
        return {"flag": "hallucination", "score": 0.0}
    return {"flag": "neutral", "score": 1.0}


SHORT_REMARK = 60
"""Characters that a greeting or a filler hardly exceeds."""
