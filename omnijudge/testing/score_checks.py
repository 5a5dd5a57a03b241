"""Whether scores keep failures apart from numbers, and metrics stay in their range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from omnijudge import tables
from omnijudge.benchmarks.base import Annotations, Benchmark, Partition
from omnijudge.testing.expectations import (
    expect,
    expect_no_null,
    expect_schema,
    keys_of,
    working,
)


def check_scores(benchmark: Benchmark, part: Partition, options: Any) -> None:
    """Checks the scores with all verdicts, with none, and filled at their best and worst."""
    scores = _scored(benchmark, part, options)
    judged = scores["judged"].to_pylist()
    expect(False not in judged, "score: all questions are answered, and a row is judged false")
    unanswered = replace(part, verdicts=None)
    asked = len(benchmark.pending(unanswered, options))
    open_scores = _scored(benchmark, unanswered, options)
    expect(
        not asked or False in open_scores["judged"].to_pylist(),
        "score: no verdict is there and no row is judged false; a missing verdict is never a score",
    )
    _check_values(benchmark, scores, options, "with all verdicts")
    for best in (True, False):
        with working("fill_unscored"):
            filled = benchmark.fill_unscored(open_scores, best)
        expect_schema(filled, benchmark.score_schema, "the scores of fill_unscored")
        expect(
            filled.num_rows == open_scores.num_rows and False not in filled["judged"].to_pylist(),
            "fill_unscored: keeps all rows, and none of them is judged false",
        )
        _check_values(benchmark, filled, options, f"filled with the {'best' if best else 'worst'}")


def _scored(benchmark: Benchmark, part: Partition, options: Any) -> pa.Table:
    with working("score"):
        scores = benchmark.score(part, options)
        again = benchmark.score(part, options)
    expect_schema(scores, benchmark.score_schema, "the score table")
    expect(scores.equals(again), "score: twice the same, two results")
    expect_no_null(scores, ("system", "sample_id", "unit_id", "unit_kind", "video_id"), "scores")
    expect(set(scores["system"].to_pylist()) <= {part.system}, "scores name another system")
    keys = keys_of(scores, ("sample_id", "unit_kind", "unit_id"))
    expect(len(set(keys)) == len(keys), "scores: a (sample_id, unit_kind, unit_id) stands twice")
    samples = set(part.units["sample_id"].to_pylist())
    strangers = {s for s, _, _ in keys} - samples
    expect(not strangers, f"scores: unknown samples {sorted(strangers)[:3]}")
    return scores


def _check_values(benchmark: Benchmark, scores: pa.Table, options: Any, what: str) -> None:
    from omnijudge.statistics.metric import distinct_sums
    from omnijudge.statistics.sums import cluster_sums

    metrics = [m for m in benchmark.metrics(options) if m.quantile is None]
    sums = distinct_sums(metrics)
    clusters = {c: i for i, c in enumerate(sorted(set(scores["video_id"].to_pylist())))}
    with working(f"sums {what}"):
        found = cluster_sums(scores, sums, clusters, scores["video_id"]).sum(axis=0)
    at = dict(zip(sums, found.tolist(), strict=True))
    for m in metrics:
        value = float(m.function(np.array([at[s] for s in m.sums])))
        low, high = m.bounds
        name = f"{m.name}/{m.group}"
        if np.isnan(value):
            continue
        expect(low is None or value >= low - 1e-9, f"{name} is {value:g} {what}, below {low}")
        expect(high is None or value <= high + 1e-9, f"{name} is {value:g} {what}, above {high}")


def check_silence(
    benchmark: Benchmark, annotations: Annotations, options: Any, ids: Sequence[str]
) -> None:
    """A system without any output is scored, be it silent or missing."""
    for state in ("ok", "missing", "unreadable"):
        columns: dict[str, object] = {
            "system": ["silent"] * len(ids),
            "sample_id": list(ids),
            "state": [state] * len(ids),
            "detail": [f"{state}: for the check"] * len(ids),
        }
        part = Partition(
            "silent", annotations.units, tables.make(tables.OUTPUTS, columns),
            benchmark.chunk_schema.empty_table(), benchmark.stage_schema.empty_table(),
        )  # fmt: skip
        with working(f"a system whose outputs are all {state}"):
            chunks, stages = benchmark.match(part, options)
            part = replace(part, chunks=chunks, stages=stages)
            _check_values(
                benchmark, benchmark.score(part, options), options, f"with all outputs {state}"
            )
