"""One OmniInteract sample of one system, read, matched, judged and scored in memory."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnijudge import tables
from omnijudge.benchmarks.base import Partition
from omnijudge.benchmarks.omniinteract import benchmark, reader
from omnijudge.benchmarks.omniinteract.layout import Sample
from omnijudge.benchmarks.omniinteract.options import Options
from omnijudge.benchmarks.omniinteract.schemas import ANSWER_SCHEMA, STAGE_SCHEMA, UNIT_SCHEMA
from omnijudge.benchmarks.omniinteract.slots import build_slots
from omnijudge.statistics.metric import distinct_sums
from omnijudge.statistics.sums import cluster_sums
from omnijudge.transcripts.native import parse_native


def question(q: float, a: float, kind: str = "realtime", **more: Any) -> dict[str, Any]:
    """A 1Q1A row; times in seconds."""
    row = {"question_time": q, "answer_time": a, "question_type": kind}
    return {**row, "question_text": "q", "answer_text": "target", **more}


def said(start: float, end: float, text: str, *words: tuple[float, float, str]) -> dict[str, Any]:
    """A chunk of a transcript."""
    timed = [{"start": s, "end": e, "text": w} for s, e, w in words]
    return {"timestamp": [start, end], "text": text, "aligned_words": timed}


def core(score: float, phrase: str = "", spoiler: bool = False) -> str:
    """A core judge's answer."""
    return json.dumps({"score": score, "trigger_phrase": phrase, "spoiler": spoiler})


def early(score: float = 1.0, flag: str = "neutral") -> str:
    """An early judge's answer."""
    return json.dumps({"flag": flag, "score": score})


def partial(score: float, hallucination: bool = False) -> str:
    """A partial judge's answer."""
    return json.dumps({"score": score, "hallucination": hallucination})


@dataclass
class Scored:
    """A scored sample."""

    part: Partition
    options: Options
    rows: pa.Table

    def kind(self, kind: str) -> list[dict[str, Any]]:
        """Score rows of one kind."""
        found: list[dict[str, Any]] = self.rows.filter(
            pc.equal(self.rows["unit_kind"], kind)
        ).to_pylist()
        return found

    @property
    def slots(self) -> list[dict[str, Any]]:
        """Score rows of the slots."""
        return self.kind("slot")

    @property
    def metrics(self) -> dict[tuple[str, str], float]:
        """Metrics of this sample alone."""
        return metrics_of(self.rows, self.options)


def metrics_of(rows: pa.Table, options: Options) -> dict[tuple[str, str], float]:
    """All metrics but quantiles over score rows."""
    metrics = [m for m in benchmark.metrics(options) if m.quantile is None]
    sums = distinct_sums(metrics)
    clusters = {v: i for i, v in enumerate(sorted(set(rows["video_id"].to_pylist())))}
    total = cluster_sums(rows, sums, clusters, rows["video_id"]).sum(axis=0)
    at = dict(zip(sums, total.tolist(), strict=True))
    return {
        (m.name, m.group): float(m.function(np.array([at[s] for s in m.sums]))) for m in metrics
    }


def partition(
    scene: str,
    root: Any,
    chunks: list[dict[str, Any]] | None,
    options: Options,
    sample_id: str = "x",
) -> Partition:
    """One sample, matched; ``chunks`` None: its transcript is missing."""
    unit_rows: dict[str, list[Any]] = {n: [] for n in UNIT_SCHEMA.names}
    sample = Sample(sample_id, scene, Path("a.json"), "list", "row 0", sample_id)
    reader._unit_rows(sample, build_slots(root, scene, options.last_slot_tail_sec), unit_rows)
    spoken = reader.ChunkColumns()
    spoken.add("s", sample_id, parse_native({"chunks": chunks or []}, "t.json").chunks)
    state = "missing" if chunks is None else "ok"
    outputs = tables.make(
        tables.OUTPUTS, {"system": ["s"], "sample_id": [sample_id], "state": [state]}
    )
    units = tables.make(UNIT_SCHEMA, dict(unit_rows))
    part = Partition("s", units, outputs, spoken.table(), STAGE_SCHEMA.empty_table())
    found, stages = benchmark.match(part, options)
    return Partition("s", units, outputs, found, stages)


def score(
    scene: str,
    root: Any,
    chunks: list[dict[str, Any]] | None,
    answers: dict[tuple[int, str], str] | None = None,
    mode: str = "strict",
    **scoring: Any,
) -> Scored:
    """Scores one sample.

    Args:
        scene: scene type.
        root: its annotation.
        chunks: its transcript; None: it is missing.
        answers: (slot, stage) -> the judge's answer. A question without one is an error.
        mode: how answers are read.
        scoring: scoring options.
    """
    options = Options.model_validate(scoring).resolved()
    part = partition(scene, root, chunks, options)
    rows = benchmark.pending(part, options)
    prompts = benchmark.prompts(part, rows, options)
    status: list[str | None] = [None] * part.stages.num_rows
    columns: dict[str, list[Any]] = {n: [None] * part.stages.num_rows for n in ANSWER_SCHEMA.names}
    keys = part.stages.select(["unit_id", "stage"]).to_pylist()
    for row, prompt in zip(rows.tolist(), prompts, strict=True):
        raw = (answers or {}).get((int(keys[row]["unit_id"]), keys[row]["stage"]))
        if raw is None:
            status[row] = "error"
            continue
        answer = benchmark.parse(keys[row]["stage"], raw, mode, prompt)
        status[row] = answer.status
        for name, value in answer.fields.items():
            columns[name][row] = value
    schema = pa.schema([pa.field("status", pa.string()), *ANSWER_SCHEMA])
    verdicts = tables.make(schema, {"status": status, **columns})
    judged = Partition("s", part.units, part.outputs, part.chunks, part.stages, verdicts)
    return Scored(judged, options, benchmark.score(judged, options))
