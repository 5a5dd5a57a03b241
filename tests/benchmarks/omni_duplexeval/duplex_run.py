"""A whole Omni-DuplexEval run through the benchmark's protocol, with scripted answers."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from omnijudge.benchmarks.base import Annotations, Partition
from omnijudge.benchmarks.omni_duplexeval import benchmark
from omnijudge.benchmarks.omni_duplexeval.schemas import ANSWER_SCHEMA
from omnijudge.config import RunConfig, build_config
from omnijudge.statistics.metric import Metric, distinct_sums
from omnijudge.statistics.sums import ScoreRows

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "omni_duplexeval"

Reply = Callable[[dict[str, Any], int], dict[str, Any]]
"""(stage row, attempt) -> a replay row: raw, body or error."""


@dataclass
class Result:
    """What a run left: the partition with its verdicts, scores, and who was asked in what round."""

    annotations: Annotations
    part: Partition
    scores: pa.Table
    rounds: list[list[dict[str, Any]]] = field(default_factory=list)
    problems: list[Any] = field(default_factory=list)

    def rows(self, kind: str) -> dict[str, dict[str, Any]]:
        """Score rows of a kind by sample, or sample#unit where there are several."""
        found = {}
        for row in self.scores.to_pylist():
            if row["unit_kind"] == kind:
                sample_only = kind in ("sample", "behaviour")
                key = row["sample_id"] if sample_only else f"{row['sample_id']}#{row['unit_id']}"
                found[key] = row
        return found


def config_of(values: Mapping[str, Any], base: Path) -> RunConfig:
    """A configuration with the rest filled in."""
    complete = {"benchmark": "omni_duplexeval", "output": "run", **values}
    return build_config(dict(complete), base, "test")


def golden_config(profile: str, **scoring: Any) -> RunConfig:
    """The golden data with replayed answers."""
    return config_of(
        {
            "data": {"annotations": "annotations.jsonl"},
            "systems": {"gamma": "responses/gamma", "delta": "responses/delta"},
            "judge": {"engine": "replay", "answers": "judge_answers.json"},
            "scoring": {"profile": profile, **scoring},
        },
        GOLDEN,
    )


def golden_answers() -> dict[tuple[Any, ...], dict[str, Any]]:
    """Replay rows of the golden answers by their key."""
    script = ROOT / "scripts" / "golden_answers_duplexeval.py"
    spec = importlib.util.spec_from_file_location("golden_answers_duplexeval", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    answers = json.loads((GOLDEN / "judge_answers.json").read_text("utf-8"))
    keys = ("system", "sample_id", "unit_id", "item", "stage", "attempt")
    return {tuple(r[k] for k in keys): r for r in module.replay_rows(answers)}


def replaying(rows: Mapping[tuple[Any, ...], dict[str, Any]]) -> Reply:
    """Answers from replay rows; one that is missing is a failed attempt."""

    def reply(stage: dict[str, Any], attempt: int) -> dict[str, Any]:
        keys = ("system", "sample_id", "unit_id", "item", "stage")
        return rows.get((*(stage[k] for k in keys), attempt), {"error": "missing"})

    return reply


def read_replay(row: Mapping[str, Any], stage: str, mode: str) -> tuple[str | None, str | None]:
    """Answer text and error of a replay row."""
    if row.get("body") is not None:
        return benchmark.read_body(stage, row["body"], mode)
    if row.get("error") is not None:
        return None, row["error"]
    return row["raw"], None


def run(
    config: RunConfig,
    system: str,
    reply: Reply,
    attempts: int | None = None,
    mode: str | None = None,
    prompts: bool = False,
) -> Result:
    """Runs one system over all samples, all rounds."""
    options = benchmark.options.model_validate(config.scoring).resolved()
    mode = mode or ("published" if options.published else "strict")
    attempts = attempts or (1 if options.published else 3)
    annotations = benchmark.read(config)
    ids = list(annotations.samples)
    outputs = benchmark.read_outputs(config, annotations, system, config.systems[system], ids)
    part = Partition(
        system,
        annotations.units,
        outputs.outputs,
        outputs.chunks,
        benchmark.stage_schema.empty_table(),
        folder=config.data.folder,
    )
    chunks, stages = benchmark.match(part, options)
    part = replace(part, chunks=chunks, stages=stages)
    verdicts: list[dict[str, Any]] = [{} for _ in range(stages.num_rows)]
    part = replace(part, verdicts=verdict_table(verdicts))
    rounds = []
    while len(rows := benchmark.pending(part, options)):
        asked = []
        questions = benchmark.prompts(part, rows, options) if prompts else [None] * len(rows)
        for i, prompt in zip(rows.tolist(), questions, strict=True):
            stage = {n: stages[n][i].as_py() for n in stages.column_names}
            stage["prompt"] = prompt
            asked.append(stage)
            verdicts[i] = ask(stage, reply, attempts, mode)
        rounds.append(asked)
        part = replace(part, verdicts=verdict_table(verdicts))
    scores = benchmark.score(part, options)
    problems = [*annotations.problems, *outputs.problems]
    return Result(annotations, part, scores, rounds, problems)


def ask(stage: dict[str, Any], reply: Reply, attempts: int, mode: str) -> dict[str, Any]:
    """One question with its attempts, as the judge step asks it."""
    verdict: dict[str, Any] = {}
    for attempt in range(1, attempts + 1):
        raw, error = read_replay(reply(stage, attempt), stage["stage"], mode)
        if raw is None:
            verdict = {"status": "error", "error": error}
            continue
        answer = benchmark.parse(stage["stage"], raw, mode)
        verdict = {"status": answer.status, **answer.fields}
        if answer.status != "invalid":
            break
    return verdict


def verdict_table(verdicts: list[dict[str, Any]]) -> pa.Table:
    """Verdicts as the pipeline hands them over."""
    schema = pa.schema([pa.field("status", pa.string()), *ANSWER_SCHEMA])
    return pa.table(
        [pa.array([v.get(f.name) for v in verdicts], f.type) for f in schema], schema=schema
    )


def values(scores: pa.Table, metrics: list[Metric]) -> dict[tuple[str, str], float]:
    """Values of the metrics that are functions of sums."""
    rows = ScoreRows(scores)
    sums = {s: float(rows.per_row(s).sum()) for s in distinct_sums(metrics)}
    import numpy as np

    return {
        (m.name, m.group): float(m.function(np.array([sums[s] for s in m.sums])))
        for m in metrics
        if m.quantile is None
    }
