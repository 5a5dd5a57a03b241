"""Run directories written by hand: literal metrics and a manifest, without a pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from omnijudge import tables
from omnijudge.partitions import write_table
from omnijudge.run_directory import RunDirectory

Row = dict[str, Any]


def row(system: str, metric: str, group: str, value: float | None, **others: Any) -> Row:
    """One row of ``metrics.parquet``; what is not given is as in an ordinary run."""
    span = (None, None) if value is None else (value - 0.05, value + 0.04)
    wide = (None, None) if value is None else (value - 0.06, value + 0.05)
    usual = {
        "ci_low": span[0], "ci_high": span[1], "careful_low": wide[0], "careful_high": wide[1],
        "interval_method": "percentile", "confidence": 0.95, "n_units": 500, "n_clusters": 120,
        "n_unscored": 0, "coverage": 1.0, "bound_low": value, "bound_high": value,
        "n_missing": 0, "dropped_replicates": 0, "profile": "robust",
    }  # fmt: skip
    return {**usual, **others, "system": system, "metric": metric, "group": group, "value": value}


def grid(
    metric_groups: Sequence[tuple[str, str]], values: Mapping[str, Sequence[Any]]
) -> list[Row]:
    """Rows for systems that all have the same metrics: system -> values in that order."""
    return [
        row(s, m, g, v)
        for s, line in values.items()
        for (m, g), v in zip(metric_groups, line, strict=True)
    ]


def metrics_table(rows: Iterable[Row]) -> pa.Table:
    """Rows as ``metrics.parquet`` holds them."""
    rows = list(rows)
    return tables.make(tables.METRICS, {n: [r.get(n) for r in rows] for n in tables.METRICS.names})


def manifest(
    benchmark: str = "omniinteract", engine: str = "vllm", **changes: Any
) -> dict[str, Any]:
    """A manifest with the keys of ``run.json``; ``counts`` and ``config`` are merged."""
    model = "Qwen/Qwen3-14B"
    identity = "lexical-1" if engine == "lexical" else f"{model}@8268fe3"
    judge = {"name": "main", "engine": engine, "model": model, "prompts": "default"}
    usual: dict[str, Any] = {
        "state": "done",
        "stopped": None,
        "omnijudge": "0.1.0",
        "config": {
            "benchmark": benchmark, "systems": {}, "controls": [], "judge": judge,
            "statistics": {
                "replicates": 10_000, "confidence": 0.95, "interval": "percentile",
                "cluster": "video_id", "seed": 7, "baseline": None,
            },
            **changes.pop("config", {}),
        },
        "scoring": {"profile": "robust", "corrections": []},
        "inputs": {"benchmark": benchmark, "data": {"annotations": "0a1b"}, "systems": {}},
        "judges": {
            "main": {
                "identity": identity,
                "prompt_pack": {"name": "pack", "version": "3", "digest": "77aa"},
                "parsing": "strict", "attempts": 3,
            }
        },
        "seeds": {"statistics": 7},
        "counts": {
            "questions": 282, "samples_listed": 17, "samples": 17, "samples_unusable": 0,
            "units": 98, "systems": 3, "missing_outputs": {}, "problems": {}, "warnings": {},
            "answers": {}, "unscored_units": 0, "asked": 280, "reused": 2,
            **changes.pop("counts", {}),
        },
        "tokens": {"prompt": 93_000, "cached": 60_000, "output": 12_000},
        "cost": 0, "errors": [], "problems": [], "messages": [],
        "seconds": {"scoring": 0.2}, "hardware": {"cpus": 2}, "versions": {"python": "3.12.1"},
    }  # fmt: skip
    return {**usual, **changes}


def make_run(
    folder: Path,
    rows: Iterable[Row],
    values: Mapping[str, Any] | None = None,
    **others: pa.Table,
) -> Path:
    """Writes a run directory; ``others`` are further tables by name."""
    folder.mkdir(parents=True, exist_ok=True)
    directory = RunDirectory(folder)
    write_table(directory.table("metrics"), metrics_table(rows))
    for name, table in others.items():
        write_table(directory.table(name), table)
    directory.write_manifest(manifest() if values is None else values)
    return folder
