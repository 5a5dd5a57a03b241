"""``omnijudge rectify``: a run's metrics, corrected by gold judgements on a random sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from omnijudge.analysis.gold_answers import open_gold
from omnijudge.analysis.gold_draw import SAMPLE_FILE, Draw, Frame, check_draw, frame_of, read_draw
from omnijudge.analysis.gold_sample import FOLDER
from omnijudge.analysis.judges import Judge, open_judge, partitions, row_keys, usable
from omnijudge.analysis.sample_sums import SampleSums
from omnijudge.analysis.selecting import select_metrics
from omnijudge.analysis.systems import choose_baseline, compared_systems
from omnijudge.errors import ConfigError
from omnijudge.progress import Progress
from omnijudge.statistics.gold_sample import size_strata
from omnijudge.statistics.metric import Array, Metric
from omnijudge.statistics.rectify import Rectified, Target, rectify, rectify_differences
from omnijudge.stored_run import StoredRun
from omnijudge.summary import unit_clusters

TARGETS: tuple[Target, ...] = ("finite", "superpopulation")
Index = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Corrected:
    """A metric of one system (or its difference to the baseline), corrected.

    Attributes:
        system: the system.
        baseline: what it is compared with; None for the metric itself.
        finite: the gold judge on exactly the videos of the run.
        superpopulation: the gold judge on the videos that they stand for.
        width: width of the finite interval as a share of that of the sample alone.
        worth: so many gold videos alone would give the finite interval.
    """

    system: str
    baseline: str | None
    finite: Rectified
    superpopulation: Rectified
    width: float | None
    worth: float | None


@dataclass(frozen=True)
class Correction:
    """What came of a correction.

    Attributes:
        metrics: per (metric, group) every system, best first.
        differences: per (metric, group) every other system less the baseline.
        baseline: the system that differences are taken to.
        n_gold: gold videos that count.
        n_clusters: videos of the run.
        sampling: how they came to be chosen, in words.
        gold: the gold judge, as the user named it.
        notes: what a reader should know.
    """

    metrics: dict[tuple[str, str], list[Corrected]]
    differences: dict[tuple[str, str], list[Corrected]]
    baseline: str
    n_gold: int
    n_clusters: int
    sampling: str
    gold: str
    notes: Sequence[str]


@dataclass
class _Gold:
    """Which videos the gold judge has judged, system by system.

    Attributes:
        asked: (S, N) questions that each system raises about each cluster.
        answered: (S, N) those with an answer, usable or not.
        good: (S, N) those with a usable answer.
    """

    asked: Index
    answered: Index
    good: Index


@dataclass(frozen=True)
class _Chosen:
    """The sample that is used.

    Attributes:
        sample: positions of its clusters.
        strata: (N,) stratum of each cluster; None for a simple sample.
        words: how it was chosen.
        notes: what was left out.
    """

    sample: Index
    strata: Index | None
    words: str
    notes: tuple[str, ...] = ()


def correct(
    run: str | Path,
    gold: str | Path,
    *,
    sample: str | Path | None = None,
    declared_random: bool = False,
    baseline: str | None = None,
    metric: str | None = None,
    group: str | None = None,
    guard_rare_errors: bool = False,
    progress: Progress | None = None,
) -> Correction:
    """Corrects the metrics of a run by gold judgements on a random sample of its videos.

    Args:
        run: the run whose judge is cheap.
        gold: gold judgements: a run, a replay file, a filled sheet or a batch's output.
        sample: ``sample.json`` of the draw, or its folder; None: ``gold`` in the run.
        declared_random: the user vouches that the gold videos are a simple random sample.
        baseline: system that differences are taken to.
        metric: a metric name; None: the leading metrics.
        group: a group name.
        guard_rare_errors: gold alone where the judges differ by much in fewer than 5 sampled
            videos, instead of a warning.
        progress: shows how far it is.

    Raises:
        ConfigError: the sample was not drawn here and is not declared random, or a wrong name.
        DataError: files that cannot be used.
    """
    progress = progress or Progress(False)
    with StoredRun(run) as reference:
        folder, file = _sample_place(reference, sample)
        judges = [
            open_judge(reference.directory.path, reference),
            open_gold(gold, reference, folder),
        ]
        metrics = select_metrics(
            reference.benchmark, reference.benchmark.metrics(reference.options), metric, group
        )
        frame = frame_of(reference.units, reference.config.statistics.cluster)
        sums, judged = _collect(reference, judges, frame, metrics, progress)
        every = list(reference.plan.systems)
        systems = [s for s in compared_systems(every) if judged.answered[every.index(s)].any()]
        if not systems:
            raise ConfigError(f"--gold {gold}: answers no question of {run}")
        rows = [every.index(s) for s in systems]
        chosen = _choose(judged, rows, frame, reference.benchmark.name, file, declared_random)
        notes = [*chosen.notes]
        left = [s for s in compared_systems(every) if s not in systems]
        if left:
            notes.append(f"without gold judgements, and left out: {', '.join(left)}")
        named = baseline or reference.config.statistics.baseline
        against = choose_baseline(named if named in systems or baseline else None, systems)
        settings: dict[str, Any] = {
            "confidence": reference.config.statistics.confidence,
            "guard_rare_errors": guard_rare_errors,
        }
        values, differences = {}, {}
        for m in metrics:
            key = (m.name, m.group)
            values[key] = _values(m, sums, systems, chosen, settings)
            differences[key] = _differences(m, sums, systems, against, chosen, settings)
        return Correction(
            values, differences, against, len(chosen.sample), frame.total, chosen.words,
            str(gold), tuple(notes),
        )  # fmt: skip


def _sample_place(reference: StoredRun, sample: str | Path | None) -> tuple[Path, Path | None]:
    """Folder of the sample, and its file if there is one."""
    if sample is None:
        folder = reference.directory.path / FOLDER
        file = folder / SAMPLE_FILE
        return folder, file if file.is_file() else None
    path = Path(sample)
    if path.is_dir():
        path = path / SAMPLE_FILE
    if not path.is_file():
        raise ConfigError(f"--sample {sample}: there is no {SAMPLE_FILE}")
    return path.parent, path


def _collect(
    reference: StoredRun,
    judges: Sequence[Judge],
    frame: Frame,
    metrics: Sequence[Metric],
    progress: Progress,
) -> tuple[list[SampleSums], _Gold]:
    """Sums under the cheap and the gold judge, and what the gold judge has judged."""
    cluster_of = unit_clusters(reference.units, frame.column)
    sample_cluster = {s: c for (s, _), c in cluster_of.items()}
    at = {name: i for i, name in enumerate(frame.names)}
    sums = [SampleSums(metrics, reference.units, frame.column) for _ in judges]
    size = (len(reference.plan.systems), frame.total)
    gold = _Gold(*(np.zeros(size, np.int64) for _ in range(3)))
    progress.start("reading judgements", len(reference.plan))
    for _, system, judged in partitions(reference, judges):
        for collected, under in zip(sums, judged, strict=True):
            collected.add(reference.plan.systems[system], under.scores)
        keys = row_keys(judged[1])
        for row, status in zip(judged[1].rows, judged[1].status, strict=True):
            key = keys[row]
            place = at[cluster_of.get((key[1], key[2]), sample_cluster[key[1]])]
            gold.asked[system, place] += 1
            gold.answered[system, place] += status is not None
            gold.good[system, place] += usable(status)
        progress.advance()
    progress.end()
    return sums, gold


# Which videos count


def _choose(
    judged: _Gold,
    rows: Sequence[int],
    frame: Frame,
    benchmark: str,
    file: Path | None,
    declared: bool,
) -> _Chosen:
    asked, answered, good = (x[rows] for x in (judged.asked, judged.answered, judged.good))
    complete = (good == asked).all(axis=0)
    touched = answered.any(axis=0)
    silent = ~asked.any(axis=0)
    if complete.all():
        return _Chosen(np.arange(frame.total), None, "gold on every video")
    if declared:
        return _declared(complete, touched, silent)
    if file is None:
        raise ConfigError(
            f"the gold judgements cover {int(touched.sum())} of {frame.total} videos, and there is "
            "no sample file of `omnijudge sample` that says how these were chosen. A correction "
            "is honest for a random sample only: draw one with `omnijudge sample`, or say "
            "--declared-random if you know it to be a simple random sample"
        )
    draw = read_draw(file)
    check_draw(draw, benchmark, frame, file)
    return _drawn(draw, frame, complete, touched)


def _declared(complete: Any, touched: Any, silent: Any) -> _Chosen:
    """A sample that the user vouches for.

    Videos about which no question arises need no gold judge. Whether they were among those chosen
    nobody can see, so they are a stratum of their own, of which all is known.
    """
    lost = int((touched & ~complete).sum())
    _enough(int((complete & ~silent).sum()), lost)
    sample = np.flatnonzero(complete)
    strata = silent.astype(np.int64) if silent.any() else None
    return _Chosen(sample, strata, "declared a simple random sample", _lost(lost, len(sample)))


def _drawn(draw: Draw, frame: Frame, complete: Any, touched: Any) -> _Chosen:
    drawn = frame.positions(draw.clusters)
    beside = int(touched.sum() - touched[drawn].sum())
    notes: list[str] = []
    if beside:
        notes.append(f"{beside} videos with gold judgements were not drawn and do not count")
    if draw.method == "simple":
        # Those drawn first are a random sample of their own, wherever the night ended.
        last = max((i + 1 for i in np.flatnonzero(touched[drawn]).tolist()), default=0)
        begun = drawn[:last]
        if last < draw.n:
            notes.append(f"gold judgements for the first {last} of {draw.n} drawn videos")
        strata = None
    else:
        begun = drawn
        strata = size_strata(frame.sizes, draw.seed, draw.strata)
    kept = begun[complete[begun]]
    lost = len(begun) - len(kept)
    _enough(len(kept), lost)
    notes += _lost(lost, len(kept))
    words = f"drawn by omnijudge sample, seed {draw.seed}"
    if strata is not None:
        words += f", {draw.strata} strata by size"
    return _Chosen(np.sort(kept), strata, words, tuple(notes))


def _enough(kept: int, lost: int) -> None:
    if kept < 2:
        more = f" ({lost} more are incomplete)" if lost else ""
        raise ConfigError(
            f"gold judgements are complete for {kept} sampled videos{more}; at least 2 are needed"
        )


def _lost(lost: int, kept: int) -> tuple[str, ...]:
    if not lost:
        return ()
    note = f"{lost} sampled videos lack gold answers (or have unusable ones) and do not count"
    if lost > 0.05 * (lost + kept):
        note += "; if those are the difficult ones, the correction is biased: ask them again"
    return (note,)


# Numbers


def _stacks(
    metric: Metric, sums: Sequence[SampleSums], systems: Sequence[str], sample: Index
) -> tuple[Array, Array]:
    """Sums under the gold judge on the sample (S, n, k), and under the cheap one (S, N, k)."""
    position = {s: k for k, s in enumerate(sums[0].sums)}
    columns = [position[s] for s in metric.sums]
    cheap, gold = (np.stack([side.own(s)[:, columns] for s in systems]) for side in sums)
    return gold[:, sample], cheap


def _values(
    metric: Metric,
    sums: Sequence[SampleSums],
    systems: Sequence[str],
    chosen: _Chosen,
    settings: Mapping[str, Any],
) -> list[Corrected]:
    gold, cheap = _stacks(metric, sums, systems, chosen.sample)
    both = [
        rectify(
            metric, gold, cheap, chosen.sample,
            strata=chosen.strata, target=target, **settings,
        )
        for target in TARGETS
    ]  # fmt: skip
    found = [
        _corrected(s, None, *pair) for s, pair in zip(systems, zip(*both, strict=True), strict=True)
    ]
    sign = 1 if metric.higher_is_better is False else -1
    return sorted(found, key=lambda c: (c.finite.value is None, sign * (c.finite.value or 0.0)))


def _differences(
    metric: Metric,
    sums: Sequence[SampleSums],
    systems: Sequence[str],
    baseline: str,
    chosen: _Chosen,
    settings: Mapping[str, Any],
) -> list[Corrected]:
    others = [s for s in systems if s != baseline]
    if not others:
        return []
    gold, cheap = _stacks(metric, sums, systems, chosen.sample)
    both = [
        rectify_differences(
            metric, gold, cheap, chosen.sample, systems.index(baseline),
            strata=chosen.strata, target=target, **settings,
        )
        for target in TARGETS
    ]  # fmt: skip
    return [
        _corrected(s, baseline, *pair)
        for s, pair in zip(others, zip(*both, strict=True), strict=True)
    ]


def _corrected(system: str, baseline: str | None, finite: Rectified, wide: Rectified) -> Corrected:
    own, alone = _width(finite.low, finite.high), _width(finite.gold_low, finite.gold_high)
    width = own / alone if own is not None and alone else None
    worth = None
    if width is not None and width > 0:
        # The gold videos n* whose own interval is as narrow: (1/n* - 1/N) = width^2 (1/n - 1/N).
        n, total = finite.n_gold, finite.n_clusters
        worth = 1 / (1 / total + (1 / n - 1 / total) * width**2)
    return Corrected(system, baseline, finite, wide, width, worth)


def _width(low: float | None, high: float | None) -> float | None:
    return None if low is None or high is None else high - low


def correction_rows(found: Correction) -> list[dict[str, Any]]:
    """Every corrected number as a plain row."""
    rows = []
    for kind, tables in (("value", found.metrics), ("difference", found.differences)):
        for corrected in (c for entries in tables.values() for c in entries):
            wide = asdict(corrected.superpopulation)
            row: dict[str, Any] = {"kind": kind}
            row |= {"system": corrected.system, "baseline": corrected.baseline}
            row |= asdict(corrected.finite)
            row.pop("target")
            row |= {f"superpopulation_{n}": wide[n] for n in ("low", "high", "method", "reason")}
            row |= {"width_of_gold_only": corrected.width, "worth_gold_videos": corrected.worth}
            rows.append(row)
    return rows
