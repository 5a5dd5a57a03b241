"""Scores the golden set with the library's own steps, answers replayed."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from omnijudge import tables
from omnijudge.benchmarks.base import Partition
from omnijudge.benchmarks.omniinteract import benchmark
from omnijudge.benchmarks.omniinteract.options import Options
from omnijudge.benchmarks.omniinteract.schemas import ANSWER_SCHEMA, STAGE_SCHEMA
from omnijudge.config import RunConfig, SystemConfig, build_config

GOLDEN = Path(__file__).parent / "omniinteract"
SYSTEMS = ("alpha", "beta")


@cache
def judge_answers(
    name: str = "judge_answers.jsonl",
) -> dict[tuple[str, str, str, str], dict[str, Any]]:
    """Golden answers by (system, sample, slot, stage)."""
    lines = (GOLDEN / name).read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return {(r["model"], r["sample_id"], str(r["slot_id"]), r["stage"]): r for r in rows}


def config(**scoring: Any) -> RunConfig:
    return build_config(
        {
            "benchmark": "omniinteract",
            "data": {"manifest": "manifest.jsonl", "on_bad_sample": "skip"},
            "judge": {"engine": "lexical"},
            "scoring": {"profile": "published", **scoring},
            "output": "unused",
        },
        GOLDEN,
        "golden",
    )


def matched(system: str, run: RunConfig) -> tuple[Partition, Options]:
    """Ingest and match of one system over all samples."""
    options = Options.model_validate(run.scoring).resolved()
    annotations = benchmark.read(run)
    ids = list(annotations.samples)
    settings = run.systems.get(system, SystemConfig())
    outputs = benchmark.read_outputs(run, annotations, system, settings, ids)
    part = Partition(
        system, annotations.units, outputs.outputs, outputs.chunks, STAGE_SCHEMA.empty_table()
    )
    chunks, stages = benchmark.match(part, options)
    return Partition(system, annotations.units, outputs.outputs, chunks, stages), options


def judged(
    part: Partition, options: Options, answers: dict[tuple[str, str, str, str], dict[str, Any]],
    mode: str = "published",
) -> Partition:  # fmt: skip
    """The partition with golden verdicts; every asked question must have an answer."""
    rows = benchmark.pending(part, options)
    prompts = benchmark.prompts(part, rows, options)
    columns: dict[str, list[Any]] = {n: [None] * part.stages.num_rows for n in ANSWER_SCHEMA.names}
    status: list[str | None] = [None] * part.stages.num_rows
    keys = part.stages.select(["sample_id", "unit_id", "stage"]).to_pylist()
    for row, prompt in zip(rows.tolist(), prompts, strict=True):
        k = keys[row]
        raw = answers[part.system, k["sample_id"], k["unit_id"], k["stage"]]["raw"]
        answer = benchmark.parse(k["stage"], raw, mode, prompt)
        status[row] = answer.status
        for name, value in answer.fields.items():
            columns[name][row] = value
    schema = pa.schema([pa.field("status", pa.string()), *ANSWER_SCHEMA])
    verdicts = tables.make(schema, {"status": status, **columns})
    return Partition(part.system, part.units, part.outputs, part.chunks, part.stages, verdicts)
