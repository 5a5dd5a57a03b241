"""What a benchmark may say about itself for comparisons, sensitivity and agreement of judges.

All of it is optional: a benchmark from outside that says nothing gets plain answers made from its
metrics and its answer schema, and no sweeps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np

    from omnijudge.benchmarks.base import Benchmark, Partition
    from omnijudge.statistics.metric import Metric

Key = tuple[str, str]
"""Metric and group."""

MOST_LEADING = 3


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One value of a sweep.

    Attributes:
        label: the value as people read it.
        options: scoring options that differ from those of the run.
        number: the value as a number, for sweeps along a line; None for names.
    """

    label: str
    options: Mapping[str, Any]
    number: float | None = None


@dataclass(frozen=True, slots=True)
class Sweep:
    """An option moved over a range of values.

    Attributes:
        name: the option, or what is varied.
        points: its values, in order.
        unit: unit of the numbers, such as ``s``; empty without one.
    """

    name: str
    points: tuple[SweepPoint, ...]
    unit: str = ""


@dataclass(frozen=True, slots=True)
class JudgedField:
    """Something a judge says, to be compared between judges.

    Attributes:
        stage: stage of the question.
        field: field of the answer; for ``time`` a column of the scores.
        kind: ``category`` (labels, truth values), ``score`` (a number) or ``time`` (seconds).
        bounds: range of a score.
        threshold: a score below it decides against the answer; None where no threshold counts.
    """

    stage: str
    field: str
    kind: Literal["category", "score", "time"]
    bounds: tuple[float, float] | None = None
    threshold: float | None = None


def sweep(name: str, values: Sequence[float], unit: str = "", key: str | None = None) -> Sweep:
    """A sweep of one numeric option.

    Args:
        name: name of the sweep.
        values: its values, ascending.
        unit: unit of the values.
        key: the option, if it has another name.
    """
    points = tuple(SweepPoint(f"{v:g}", {key or name: v}, float(v)) for v in values)
    return Sweep(name, points, unit)


def choices(name: str, options: Mapping[str, Mapping[str, Any]]) -> Sweep:
    """A sweep over named sets of options."""
    return Sweep(name, tuple(SweepPoint(label, o) for label, o in options.items()))


def leading(benchmark: Benchmark, metrics: Sequence[Metric]) -> list[Metric]:
    """The metrics that systems are compared by unless others are asked for, most telling first."""
    comparable = [m for m in metrics if m.quantile is None]
    declared: Sequence[Key] | None = getattr(benchmark, "leading", None)
    if declared is None:
        return [m for m in comparable if m.higher_is_better is not None][:MOST_LEADING]
    by_key = {(m.name, m.group): m for m in comparable}
    return [by_key[key] for key in declared if key in by_key]


def description(benchmark: Benchmark, metrics: Sequence[Metric]) -> dict[str, Any]:
    """What the report has to know of a benchmark, for the manifest of a run."""
    return {
        "title": benchmark.title,
        "leading": [[m.name, m.group] for m in leading(benchmark, metrics)],
        "metrics": {
            m.name: {"higher_is_better": m.higher_is_better, "bounds": list(m.bounds)}
            for m in metrics
        },
    }


def sweeps(benchmark: Benchmark, options: Any) -> list[Sweep]:
    """The sweeps that ``sensitivity`` makes; none if the benchmark declares none."""
    declared = getattr(benchmark, "sweeps", None)
    return [] if declared is None else list(declared(options))


def judged_fields(benchmark: Benchmark, options: Any) -> list[JudgedField]:
    """What judges are compared in: as declared, else every field of the answer schema."""
    declared = getattr(benchmark, "judged_fields", None)
    if declared is not None:
        return list(declared(options))
    import pyarrow as pa

    found = []
    for stage in benchmark.stages:
        for field in benchmark.answer_schema:
            if pa.types.is_floating(field.type) or pa.types.is_integer(field.type):
                found.append(JudgedField(stage, field.name, "score"))
            elif pa.types.is_boolean(field.type):
                found.append(JudgedField(stage, field.name, "category"))
    return found


def every_question(
    benchmark: Benchmark, part: Partition, options: Any
) -> np.ndarray[Any, np.dtype[Any]]:
    """Stage rows that any judge might be asked, whatever it says in earlier rounds."""
    declared = getattr(benchmark, "every_question", None)
    rows: np.ndarray[Any, np.dtype[Any]] = (
        benchmark.pending(part, options) if declared is None else declared(part, options)
    )
    return rows
