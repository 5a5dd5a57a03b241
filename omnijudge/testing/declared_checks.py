"""What a benchmark says of itself: names, options, schemas, prompt pack, metrics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnijudge import tables
from omnijudge.testing.expectations import expect, expect_base, working

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Benchmark
    from omnijudge.judging.prompts import PromptPack

METHODS = (
    "read", "read_outputs", "match", "pending", "prompts", "parse", "score", "fill_unscored",
    "metrics", "lexical",
)  # fmt: skip
OWN_TABLES = {
    "unit_schema": tables.UNITS,
    "chunk_schema": tables.CHUNKS,
    "stage_schema": tables.STAGES,
    "score_schema": tables.SCORES,
}


def check_declared(benchmark: Benchmark) -> PromptPack:
    """Checks everything that can be seen without data; returns the prompt pack.

    Raises:
        AssertionError: something is missing or cannot be meant.
    """
    from omnijudge.judging.prompts import load_pack

    expect(
        not isinstance(benchmark, type),
        "the benchmark is a class; an entry point names an object made of it",
    )
    for name in METHODS:
        expect(callable(getattr(benchmark, name, None)), f"the benchmark has no method {name}")
    for name, kind in (
        ("name", str), ("title", str), ("profiles", tuple), ("stages", tuple), ("pack", Path),
        ("options", type), ("rounds", int), ("questions_need_chunks", bool),
        ("answer_schema", pa.Schema), *((n, pa.Schema) for n in OWN_TABLES),
    ):  # fmt: skip
        value = getattr(benchmark, name, None)
        expect(
            isinstance(value, kind),
            f"{name} is {type(value).__name__}; a benchmark declares a {kind.__name__}",
        )
    expect(benchmark.name.isidentifier(), f"name {benchmark.name!r} is no plain word")
    expect(benchmark.title.strip(), "title is blank")
    expect(benchmark.profiles, "profiles is empty; name at least one, such as 'robust'")
    expect(benchmark.stages, "stages is empty: there would be nothing to judge")
    expect(benchmark.rounds >= 1, f"rounds is {benchmark.rounds}; there is at least one")
    for name, base in OWN_TABLES.items():
        expect_base(getattr(benchmark, name), base, name)
    clash = set(benchmark.answer_schema.names) & {*tables.JUDGEMENTS.names, "status"}
    expect(not clash, f"answer_schema: {sorted(clash)} are names of common columns")
    _check_options(benchmark)
    with working("loading the prompt pack"):
        pack = load_pack("default", benchmark)
    for stage in benchmark.stages:
        lacking = set(pack.schema(stage, True).get("properties", {})) - {
            *benchmark.answer_schema.names,
            *pack.stages[stage].rationale_fields,
        }
        expect(
            not lacking,
            f"the answer schema of stage {stage} asks for {sorted(lacking)}, which "
            "benchmark.answer_schema does not keep",
        )
    return pack


def _check_options(benchmark: Benchmark) -> None:
    from omnijudge.errors import ConfigError
    from omnijudge.seats import resolve_options

    for profile in benchmark.profiles:
        with working(f"options with profile {profile!r}"):
            options: Any = resolve_options(benchmark, {"profile": profile})
        expect(
            getattr(options, "profile", None) == profile,
            f"options.resolved() turns profile {profile!r} into "
            f"{getattr(options, 'profile', None)!r}",
        )
    try:
        resolve_options(benchmark, {"profile": benchmark.profiles[0], "no_such_option": 1})
    except ConfigError:
        return
    raise AssertionError(
        "options takes an unknown key; write model_config = ConfigDict(extra='forbid'), so that a "
        "slip in a configuration is named"
    )


def check_metrics(benchmark: Benchmark, options: Any) -> None:
    """Checks the declaration of the metrics.

    Raises:
        AssertionError: a metric names what is not there, or its function is no function of sums.
    """
    import numpy as np

    with working("metrics"):
        metrics = benchmark.metrics(options)
    expect(metrics, "metrics() is empty")
    keys = [(m.name, m.group) for m in metrics]
    twice = [k for k in keys if keys.count(k) > 1]
    expect(not twice, f"metric {twice[0] if twice else ''} is declared twice")
    columns = set(benchmark.score_schema.names)
    for m in metrics:
        what = f"metric {m.name}/{m.group}"
        for s in (*m.sums, *m.units):
            named = [s.column] if s.column else []
            named += [w.column for w in (*s.where, *s.less)]
            lacking = [c for c in named if c not in columns]
            expect(not lacking, f"{what}: the scores have no column {lacking and lacking[0]!r}")
        expect(m.units, f"{what}: units is empty; say which rows it is about")
        if m.quantile is not None:
            column, share = m.quantile
            expect(column in columns, f"{what}: the scores have no column {column!r}")
            expect(0 <= share <= 1, f"{what}: {share} is no probability")
            continue
        many = (*m.numerator, *m.denominator)
        expect(
            all(0 <= i < len(m.sums) for i in many),
            f"{what}: numerator {m.numerator} and denominator {m.denominator} have to be places in "
            f"its {len(m.sums)} sums",
        )
        dice = np.random.default_rng(0)
        sums = dice.integers(1, 9, (3, 4, len(m.sums))).astype(np.float64)
        with working(f"the function of {what}"):
            whole = np.asarray(m.function(sums))
            alone = np.array([[m.function(row) for row in block] for block in sums])
            nothing = np.asarray(m.function(np.zeros(len(m.sums))))
        expect(
            whole.shape == (3, 4) and np.allclose(whole, alone, equal_nan=True),
            f"the function of {what} maps (3, 4, {len(m.sums)}) to {whole.shape}; it has to work "
            "along the last axis, whatever stands before it",
        )
        expect(
            not np.isinf(nothing).any(), f"the function of {what} is infinite where all sums are 0"
        )
