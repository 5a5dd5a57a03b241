"""``omnijudge sensitivity``: how numbers and ranks move with the options of scoring.

Every point of a declared sweep is scored anew from the judgements that are there. Where a point
raises questions that nobody was asked, its value is null and the questions are counted; they can
be asked (``ask``), and only they.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnijudge.analysis.points import Points, PointSums, asking_everywhere, scoring_with
from omnijudge.analysis.selecting import select_metrics
from omnijudge.analysis.systems import compared_systems
from omnijudge.benchmarks.declared import Key, Sweep, SweepPoint, sweeps
from omnijudge.errors import ConfigError, StoreError
from omnijudge.partitions import write_table
from omnijudge.progress import Progress
from omnijudge.seats import default_store, resolve_options
from omnijudge.statistics.jackknife import jackknife, paired, t_interval
from omnijudge.statistics.metric import Array, Metric
from omnijudge.stored_run import StoredRun
from omnijudge.tables import BOOL, FLOAT, INT, STRING, col, extend, make

if TYPE_CHECKING:
    from omnijudge.judging.store import JudgementStore

FOLDER = "sensitivity"

POINTS = extend(
    pa.schema(
        [
            col("sweep", STRING, "What is varied."),
            col("point", STRING, "Its value, as people read it."),
            col("number", FLOAT, "The value as a number; null for names."),
            col("is_run", BOOL, "The point is the run as it is."),
            col("system", STRING, "Name of the system under test."),
            col("metric", STRING, "Metric name."),
            col("group", STRING, "Group of units it is about."),
            col("value", FLOAT, "The value; null where undefined or lacking judgements."),
            col("rank", INT, "Rank by value among the systems, 1 is best."),
            col("n_missing", INT, "Units that lack a judgement at this point."),
            col("missing_questions", INT, "Questions of this point that nobody was asked."),
        ]
    )
)

SWAPS = extend(
    pa.schema(
        [
            col("sweep", STRING, "What is varied."),
            col("metric", STRING, "Metric name."),
            col("group", STRING, "Group of units it is about."),
            col("ahead", STRING, "System that is ahead at the first point."),
            col("behind", STRING, "System that is ahead at the second point."),
            col("from_point", STRING, "First point."),
            col("to_point", STRING, "Second point."),
            col("at", FLOAT, "Where they meet, by a straight line; null for names."),
            col("clear", BOOL, "Both differences are clear of 0 (jackknife t, unadjusted)."),
        ]
    )
)


@dataclass(frozen=True)
class Point:
    """A point of a sweep with the options that the run is scored with there."""

    declared: SweepPoint
    options: Any
    is_run: bool


@dataclass(frozen=True)
class Sensitivity:
    """What came of all sweeps.

    Attributes:
        points: values at every point (``POINTS``).
        swaps: where two systems change places (``SWAPS``).
        shown: the metrics that a terminal and the plots show.
        units: sweep -> unit of its numbers.
        notes: what a reader should know.
        asked: questions that were asked for this.
        folder: where the tables lie.
    """

    points: pa.Table
    swaps: pa.Table
    shown: Sequence[Key]
    units: dict[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    asked: int = 0
    folder: Path | None = None


def sensitivity(
    run: str | Path,
    *,
    ask: bool = False,
    metric: str | None = None,
    group: str | None = None,
    only: Sequence[str] = (),
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> Sensitivity:
    """Scores a run at every point of its benchmark's sweeps.

    Args:
        run: folder of the run.
        ask: ask the judge what points lack; only those questions.
        metric: a metric name; None: the leading metrics.
        group: a group name.
        only: names of sweeps; empty: all of them.
        out: folder for tables and plots; None: ``sensitivity`` in the run.
        progress: shows how far it is.

    Raises:
        ConfigError: no sweeps are declared, a name is wrong, or a replay is to be asked.
        DataError: there is no finished run.
    """
    progress = progress or Progress(False)
    with StoredRun(run) as stored:
        metrics = select_metrics(
            stored.benchmark, stored.benchmark.metrics(stored.options), metric, group
        )
        planned, notes = plan_points(stored, only)
        distinct = {_key(stored.options): stored.options}
        for points in planned.values():
            distinct |= {_key(p.options): p.options for p in points}
        with _stores(stored, ask) as store:
            scored = Points(stored, metrics, store)
            found = _score(scored, distinct, progress)
            asked = 0
            if ask:
                asked = _ask(stored, scored, found, store, progress, notes)
                if asked:
                    found = _score(scored, distinct, progress)
        result = _tables(stored, scored, planned, found)
        folder = Path(out) if out is not None else stored.directory.path / FOLDER
        shown = [k for k in _shown(metrics, result[0]) if metric or group] or _shown(
            metrics, result[0]
        )[:1]
        declared = {s.name: s.unit for s in sweeps(stored.benchmark, stored.options)}
    folder.mkdir(parents=True, exist_ok=True)
    write_table(folder / "sensitivity.parquet", result[0])
    write_table(folder / "swaps.parquet", result[1])
    return Sensitivity(result[0], result[1], shown, declared, tuple(notes), asked, folder)


def plan_points(stored: StoredRun, only: Sequence[str]) -> tuple[dict[str, list[Point]], list[str]]:
    """Per sweep its points with their options, the run's own value among them.

    Raises:
        ConfigError: the benchmark declares no sweeps, or none of that name.
    """
    declared = sweeps(stored.benchmark, stored.options)
    if not declared:
        raise ConfigError(f"{stored.benchmark.title} declares no sweeps")
    names = [s.name for s in declared]
    for name in only:
        if name not in names:
            raise ConfigError(f"--sweep {name}: there is no such sweep; there are {_list(names)}")
    planned: dict[str, list[Point]] = {}
    notes: list[str] = []
    for sweep in declared:
        if only and sweep.name not in only:
            continue
        points = _points(stored, sweep)
        if len({_key(p.options) for p in points}) < 2:
            notes.append(f"{sweep.name}: makes no difference under these options")
            continue
        planned[sweep.name] = points
    return planned, notes


def _points(stored: StoredRun, sweep: Sweep) -> list[Point]:
    own = _key(stored.options)
    found = []
    for point in sweep.points:
        scoring = scoring_with(stored.config.scoring, point.options, stored.benchmark.options)
        try:
            options = resolve_options(stored.benchmark, scoring)
        except ConfigError:  # a profile that this benchmark does not have under these options
            continue
        found.append(Point(point, options, _key(options) == own))
    if not any(p.is_run for p in found):
        found = _with_own(stored, sweep, found)
    return found


def _with_own(stored: StoredRun, sweep: Sweep, found: list[Point]) -> list[Point]:
    keys = {k for p in sweep.points for k in p.options}
    fields = stored.benchmark.options.model_fields
    names = [n for n, f in fields.items() if n in keys or f.alias in keys]
    value = getattr(stored.options, names[0]) if names else None
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    if numeric and all(p.number is not None for p in sweep.points):
        label, number = f"{value:g}", float(value)  # type: ignore[arg-type]
    else:
        label, number = "as run", None
    point = Point(SweepPoint(label, {}, number), stored.options, True)
    if number is None:
        return [point, *found]
    return sorted([*found, point], key=lambda p: p.declared.number or 0.0)


def _key(options: Any) -> str:
    text: str = options.model_dump_json()
    return text


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)


def _shown(metrics: Sequence[Metric], points: pa.Table) -> list[Key]:
    """Metrics that have a value somewhere."""
    known = {
        (r["metric"], r["group"])
        for r in points.select(["metric", "group", "value"]).to_pylist()
        if r["value"] is not None
    }
    keys = [(m.name, m.group) for m in metrics]
    return [k for k in keys if k in known] or keys[:1]


class _stores:
    """The judgement store of a run: to be written if questions are asked, else read if there."""

    def __init__(self, stored: StoredRun, ask: bool) -> None:
        self._stored = stored
        self._ask = ask
        self._open: JudgementStore | None = None

    def __enter__(self) -> JudgementStore | None:
        if all(j.engine == "replay" for j in self._stored.config.judges):
            if self._ask:
                raise ConfigError("--ask: the run's judge is a replay, and nobody can be asked")
            return None
        from omnijudge.judging.store import JudgementStore

        path = self._stored.config.store or default_store()
        try:
            self._open = JudgementStore(path, writable=self._ask)
        except StoreError:
            if self._ask:
                raise
        return self._open

    def __exit__(self, *exc: object) -> None:
        if self._open is not None:
            self._open.close()


def _score(scored: Points, distinct: dict[str, Any], progress: Progress) -> dict[str, PointSums]:
    progress.start(f"scoring {len(distinct)} points", len(scored.run.plan))
    found = scored.at(list(distinct.values()), progress.advance)
    progress.end()
    return dict(zip(distinct, found, strict=True))


def _ask(
    stored: StoredRun,
    scored: Points,
    found: dict[str, PointSums],
    store: JudgementStore | None,
    progress: Progress,
    notes: list[str],
) -> int:
    """Asks what points lack; returns how many questions that were."""
    from omnijudge.judge_step import JudgeStep, LimitSet

    lacking = [p.options for p in found.values() if p.questions]
    if not lacking or store is None:
        return 0
    asking = asking_everywhere(scored, lacking)
    limits = LimitSet(stored.config.limits, 0.0)
    step = JudgeStep(stored.config, asking, store, limits, progress, notes.append)
    step.run()
    return step.total().requests


def _tables(
    stored: StoredRun,
    scored: Points,
    planned: dict[str, list[Point]],
    found: dict[str, PointSums],
) -> tuple[pa.Table, pa.Table]:
    systems = list(stored.plan.systems)
    tested = set(compared_systems(systems))
    ranked = np.array([s in tested for s in systems])
    values = {key: scored.values(point) for key, point in found.items()}
    ranks = {
        key: _ranks(scored.metrics, v, ranked, found[key].missing) for key, v in values.items()
    }
    columns: dict[str, list[Any]] = {n: [] for n in POINTS.names}
    swaps: dict[str, list[Any]] = {n: [] for n in SWAPS.names}
    for name, points in planned.items():
        for point in points:
            key = _key(point.options)
            for s, system in enumerate(systems):
                for m, metric in enumerate(scored.metrics):
                    value, rank = values[key][s, m], int(ranks[key][s, m])
                    row = {
                        "sweep": name,
                        "point": point.declared.label,
                        "number": point.declared.number,
                        "is_run": point.is_run,
                        "system": system,
                        "metric": metric.name,
                        "group": metric.group,
                        "value": float(value) if np.isfinite(value) else None,
                        "rank": rank or None,
                        "n_missing": int(found[key].missing[s, m]),
                        "missing_questions": found[key].questions,
                    }
                    for column, entries in columns.items():
                        entries.append(row[column])
        for first, second in _steps(points):
            ends = [_key(p.options) for p in (first, second)]
            sides = [(values[e], found[e]) for e in ends]
            for swap in _swaps(scored, systems, ranked, sides):
                swap |= {
                    "sweep": name,
                    "from_point": first.declared.label,
                    "to_point": second.declared.label,
                }
                share = float(swap.pop("share"))
                a, b = first.declared.number, second.declared.number
                swap["at"] = None if a is None or b is None else a + share * (b - a)
                for column, entries in swaps.items():
                    entries.append(swap[column])
    return make(POINTS, dict(columns)), make(SWAPS, dict(swaps))


def _steps(points: Sequence[Point]) -> list[tuple[Point, Point]]:
    """Neighbours along a line of numbers; among names, each against the run as it is."""
    if all(p.declared.number is not None for p in points):
        return list(pairwise(points))
    own = next((p for p in points if p.is_run), points[0])
    return [(own, p) for p in points if p is not own]


def _ranks(metrics: Sequence[Metric], values: Array, ranked: Any, missing: Any) -> Any:
    """(S, M) ranks among the systems under test; 0 without one, or where a system's is open."""
    found = np.zeros(values.shape, np.int64)
    for m, metric in enumerate(metrics):
        if metric.higher_is_better is None or missing[ranked, m].any():
            continue
        score = values[:, m] * (1 if metric.higher_is_better else -1)
        own = ranked & np.isfinite(score)
        with np.errstate(invalid="ignore"):
            better = (score[None, own] > score[:, None] + 1e-12).sum(axis=1)
        found[:, m] = np.where(own, 1 + better, 0)
    return found


def _swaps(
    scored: Points, systems: Sequence[str], ranked: Any, sides: Sequence[tuple[Array, PointSums]]
) -> list[dict[str, Any]]:
    """Pairs of systems that change places between two points."""
    rows = []
    for m, metric in enumerate(scored.metrics):
        if metric.higher_is_better is None:
            continue
        own = np.flatnonzero(ranked)
        sign = 1 if metric.higher_is_better else -1
        before, after = (sign * v[own, m] for v, _ in sides)
        gap = before[:, None] - before[None, :], after[:, None] - after[None, :]
        with np.errstate(invalid="ignore"):
            swapped = (gap[0] > 1e-12) & (gap[1] < -1e-12)
        pairs = np.argwhere(swapped)
        if not len(pairs):
            continue
        clear = np.ones(len(pairs), np.bool_)
        for _, point in sides:
            clear &= _clear(metric, scored.stack(point, metric)[own], pairs)
        for (i, j), sure in zip(pairs.tolist(), clear.tolist(), strict=True):
            first, second = float(gap[0][i, j]), float(gap[1][i, j])
            rows.append(
                {
                    "metric": metric.name,
                    "group": metric.group,
                    "ahead": systems[own[i]],
                    "behind": systems[own[j]],
                    "share": first / (first - second),
                    "clear": sure,
                }
            )
    return rows


def _clear(metric: Metric, stack: Array, pairs: Any) -> Any:
    """Whether the difference of each pair is clear of 0."""
    first = jackknife(metric.function, stack[pairs[:, 0]], metric.denominator)
    second = jackknife(metric.function, stack[pairs[:, 1]], metric.denominator)
    low, high = t_interval(paired(first, second).estimate(), 0.95)
    with np.errstate(invalid="ignore"):
        return (low > 0) | (high < 0)
