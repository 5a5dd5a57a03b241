"""Scores the golden InteractScope set with the library's own steps, canned answers replayed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnijudge import tables
from omnijudge.benchmarks.base import Partition
from omnijudge.benchmarks.omni_interactscope import benchmark
from omnijudge.benchmarks.omni_interactscope.options import Options
from omnijudge.benchmarks.omni_interactscope.schemas import ANSWER_SCHEMA, STAGE_SCHEMA
from omnijudge.benchmarks.omni_interactscope.windows import FIRST_RESPONSE_TASKS, TASKS
from omnijudge.config import RunConfig, build_config
from omnijudge.statistics.metric import Metric, Sum

GOLDEN = Path(__file__).parent / "omni_interactscope"
SYSTEMS = ("alpha", "beta")
ATTEMPTS = 3

SETTINGS: dict[str, dict[str, Any]] = {
    "primary summary": {},
    "tolerance_sweep 1": {"tolerance": 1.0},
    "tolerance_sweep 2": {"tolerance": 2.0},
    "tolerance_sweep 4": {"tolerance": 4.0},
    "first_response_variants late_released": {"first_response_variant": "late_released"},
    "first_response_variants since_previous": {"first_response_variant": "since_previous"},
    "chained_grouping": {"grouping_mode": "chained"},
}
"""Place of a summary in the expected files -> options it was made with."""

Key = tuple[str, str, int]
Verdict = bool | None


def load(name: str) -> Any:
    """A golden file, JSON or JSON lines."""
    text = (GOLDEN / name).read_text(encoding="utf-8")
    return [json.loads(x) for x in text.splitlines()] if name.endswith("l") else json.loads(text)


def golden_summary(system: str, name: str) -> dict[str, Any]:
    """An expected summary by its place (see ``SETTINGS``)."""
    found = load(f"expected/{system}.json")
    for key in name.split(" "):
        found = found[key]
    return found  # type: ignore[no-any-return]


def config(
    folder: Path = GOLDEN,
    responses: str = "responses",
    systems: Iterable[str] = SYSTEMS,
    **scoring: Any,
) -> RunConfig:
    manifest = load("run_manifest.json")["models"]
    return build_config(
        {
            "benchmark": "omni_interactscope",
            "data": {"annotations": "annotations.jsonl"},
            "systems": {
                name: {
                    "path": f"{responses}/{name}.jsonl",
                    "not_evaluated": manifest.get(name, {}).get("not_evaluated", []),
                }
                for name in systems
            },
            "judge": {"engine": "lexical"},
            "scoring": {"profile": "robust", **scoring},
            "output": "unused",
        },
        folder,
        "golden",
    )


@cache
def canned(system: str) -> Callable[[Key], list[str]]:
    """Raw answers of the golden judge by (interaction, target, output index)."""
    rows = load(f"judge/{system}.jsonl")
    found = {(r["interaction_id"], r["target_id"], r["output_index"]): r["attempts"] for r in rows}
    return lambda key: found[key][:ATTEMPTS]


def matched(system: str, run: RunConfig) -> tuple[Partition, Options]:
    """Ingest and match of one system over all interactions."""
    options = Options.model_validate(run.scoring).resolved()
    annotations = benchmark.read(run)
    found = benchmark.read_outputs(
        run, annotations, system, run.systems[system], list(annotations.samples)
    )
    empty = STAGE_SCHEMA.empty_table()
    part = Partition(system, annotations.units, found.outputs, found.chunks, empty)
    chunks, stages = benchmark.match(part, options)
    return Partition(system, annotations.units, found.outputs, chunks, stages), options


def stage_keys(part: Partition) -> list[Key]:
    """(interaction, target, output index) of each stage row."""
    columns = (part.stages[name].to_pylist() for name in ("sample_id", "unit_id", "item"))
    return [(s, u, int(i)) for s, u, i in zip(*columns, strict=True)]


def with_verdicts(part: Partition, known: Mapping[int, tuple[str, Verdict]]) -> Partition:
    """The partition with (status, verdict) at some stage rows."""
    n = part.stages.num_rows
    status = [known[i][0] if i in known else None for i in range(n)]
    said = [known[i][1] if i in known else None for i in range(n)]
    schema = pa.schema([pa.field("status", pa.string()), *ANSWER_SCHEMA])
    verdicts = tables.make(schema, {"status": status, "equivalent": said})
    return Partition(part.system, part.units, part.outputs, part.chunks, part.stages, verdicts)


def judged(part: Partition, options: Options, answers: Callable[[Key], list[str]]) -> Partition:
    """The partition after one round of asking; each question must have an answer."""
    keys = stage_keys(part)
    known: dict[int, tuple[str, Verdict]] = {}
    for row in benchmark.pending(part, options).tolist():
        known[row] = ("invalid", None)
        for raw in answers(keys[row]):
            answer = benchmark.parse("verdict", raw, "strict")
            if answer.status != "invalid":
                known[row] = (answer.status, answer.fields["equivalent"])
                break
    return with_verdicts(part, known)


@cache
def scored(system: str, settings: tuple[tuple[str, Any], ...] = ()) -> tuple[Partition, pa.Table]:
    """Partition and score rows of a golden system under some options."""
    part, options = matched(system, config(**dict(settings)))
    part = judged(part, options, canned(system))
    return part, benchmark.score(part, options)


def effective_outputs(part: Partition) -> dict[str, list[dict[str, Any]]]:
    """Effective responses by interaction, read off the chunk table."""
    found: dict[str, dict[int, dict[str, Any]]] = {}
    rows = part.chunks.select(["sample_id", "chunk_id", "start", "response"]).to_pylist()
    for row in sorted(rows, key=lambda r: (r["start"], r["chunk_id"])):
        if row["response"] is None:
            continue
        mine = found.setdefault(row["sample_id"], {})
        group = mine.setdefault(
            row["response"], {"t": row["start"], "output_index": row["response"], "members": []}
        )
        group["members"].append(row["chunk_id"])
    return {sample: list(groups.values()) for sample, groups in found.items()}


def interactions(part: Partition, scores: pa.Table, options: Options) -> list[dict[str, Any]]:
    """Score rows in the shape of the golden expectations, in the order of ids."""
    responses = effective_outputs(part)
    asked: dict[str, list[list[Any]]] = {}
    keys = stage_keys(part)
    unjudged = Partition(part.system, part.units, part.outputs, part.chunks, part.stages)
    for row in benchmark.pending(unjudged, options).tolist():
        asked.setdefault(keys[row][0], []).append([keys[row][1], keys[row][2]])
    found: dict[str, dict[str, Any]] = {}
    targets: dict[str, list[dict[str, Any]]] = {}
    for row in scores.to_pylist():
        sample = row["sample_id"]
        if row["unit_kind"] == "target":
            names = {"target_id": "unit_id", "status": "status", "output_index": "output_index"}
            own = {k: row[v] for k, v in names.items()} | {"m": row["success"]}
            targets.setdefault(sample, []).append(own)
        else:
            found[sample] = {
                "interaction_id": sample,
                "task": row["task"],
                "video_id": row["video_id"],
                "missing_trajectory": bool(row["missing_trajectory"]),
                "n_outputs": row["n_outputs"],
                "n_pre_query": row["n_pre_query"],
                "observed_seconds": row["observed_seconds"],
                "effective_outputs": responses.get(sample, []),
                "targets": targets[sample],
                "complete": bool(row["complete"]),
                "judge_calls": sorted(asked.get(sample, [])),
            }
    return [found[sample] for sample in sorted(found)]


def total(rows: list[dict[str, Any]], wanted: Sum) -> float:
    """A declared sum, taken row by row."""
    result = 0.0
    for row in rows:
        if row["unit_kind"] != wanted.kind or row["judged"] is False:
            continue
        if all(row[w.column] in w.values for w in wanted.where):
            value = 1 if wanted.column is None else row[wanted.column]
            result += value or 0
    return result


def metric_values(scores: pa.Table, metrics: Iterable[Metric] | None = None) -> dict[Any, Any]:
    """(metric, group) -> value, None where it is undefined."""
    rows = scores.to_pylist()
    cache: dict[Sum, float] = {}
    values: dict[Any, Any] = {}
    for metric in metrics or benchmark.metrics(Options()):
        for s in metric.sums:
            if s not in cache:
                cache[s] = total(rows, s)
        value = float(metric.function(np.array([cache[s] for s in metric.sums])))
        values[metric.name, metric.group] = None if np.isnan(value) else value
    return values


def close(expected: Any) -> Any:
    return None if expected is None else pytest.approx(expected, rel=1e-9)


def check_summary(values: dict[Any, Any], expected: dict[str, Any], scores: Any) -> None:
    assert values["joint_accuracy", "average_six"] == close(expected["average_six"])
    assert values["timely_recall", "T8"] == close(expected["t8_overall"]["score"])
    assert values["outputs_per_minute", "T8"] == close(expected["t8_outputs_per_minute"])
    assert values["outputs_per_minute", "all"] == close(expected["all_outputs_per_minute"])
    assert values["unmatched_outputs", "T8"] == expected["t8_unmatched_outputs"]
    for task in TASKS:
        check_task(task, values, expected["tasks"][task], scores)


def check_task(
    task: str, values: dict[Any, Any], expected: dict[str, Any] | None, scores: Any
) -> None:
    name = "joint_accuracy" if task in FIRST_RESPONSE_TASKS else "timely_recall"
    counts = {m[7:]: v for (m, group), v in values.items() if m[:7] == "status_" and group == task}
    rows = [
        r for r in scores.select(["task", "unit_kind", "success"]).to_pylist() if r["task"] == task
    ]
    if expected is None:  # not evaluated: nothing is zero, everything is null
        assert values[name, task] is None
        assert set(counts.values()) == {None}
        assert rows == []
        return
    assert values[name, task] == close(expected["score"])
    assert {k: v for k, v in counts.items() if v} == expected["statuses"]
    assert sum(counts.values()) == expected["targets"]
    assert sum(r["unit_kind"] == "interaction" for r in rows) == expected["interactions"]
    assert sum(r["success"] or 0 for r in rows) == expected["successes"]
    assert values["missing_trajectories", task] == expected["missing_trajectories"]
    if task in FIRST_RESPONSE_TASKS:
        assert values["on_time_rate", task] == close(expected["on_time_first_response_rate"])
    if task in ("T7", "T8-C"):
        assert values["sequence_coverage", task] == close(expected["complete_sequence_rate"])
