"""``omnijudge agree``: how far judges agree, answer by answer and system by system.

Answers are joined by (system, sample, unit, item, stage) where the judged text is the same; what
does not match is counted and left out. Every judge's answers are read and scored under the options
of one run, the reference, so that only the judges differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from omnijudge.analysis.judges import (
    HASH,
    Judge,
    Judged,
    difference_label,
    open_judge,
    open_reference,
    partitions,
    row_keys,
    usable,
)
from omnijudge.analysis.sample_sums import SampleSums, not_counted
from omnijudge.analysis.selecting import select_metrics
from omnijudge.analysis.systems import choose_baseline, compared_systems
from omnijudge.benchmarks.declared import JudgedField, judged_fields
from omnijudge.errors import ConfigError
from omnijudge.progress import Progress
from omnijudge.statistics.agreement import (
    Agreement,
    Bias,
    agree_on_categories,
    agree_on_scores,
    score_bias,
)
from omnijudge.statistics.equivalence import (
    Equivalence,
    RankAgreement,
    difference_equivalence,
    equivalence,
    rank_agreement,
)
from omnijudge.statistics.jackknife import evaluate
from omnijudge.statistics.metric import Array, Metric
from omnijudge.summary import unit_clusters

if TYPE_CHECKING:
    import pyarrow as pa

    from omnijudge.config import StatisticsConfig
    from omnijudge.judging.replay import Key
    from omnijudge.stored_run import StoredRun

LARGEST = 10
REASONS = ("rationale", "reasoning")
"""Answer fields that hold a judge's reason."""
_NO_MARGIN = 1e-300


@dataclass(frozen=True, slots=True)
class Matching:
    """What was joined, and what was not.

    Attributes:
        matched: questions with a usable verdict of both judges about the same text.
        other_text: left out because the judges saw different texts.
        only_first: the second judge has no answer.
        only_second: the first judge has no answer.
        unusable: answers of both, one of them invalid or an error.
        unknown_first: rows of the first judge about no question of the reference.
        unknown_second: the same of the second.
    """

    matched: int
    other_text: int
    only_first: int
    only_second: int
    unusable: int
    unknown_first: int
    unknown_second: int


@dataclass(frozen=True, slots=True)
class TimeDistance:
    """Distance of two judges' times in seconds, second less first.

    Attributes:
        bias: mean difference with its interval.
        median: median of the absolute differences.
        p90: their 90th percentile.
        same_share: share of equal times.
        only_first: units where only the first judge's answer gives a time.
        only_second: units where only the second judge's does.
    """

    bias: Bias
    median: float | None
    p90: float | None
    same_share: float | None
    only_first: int
    only_second: int


@dataclass(frozen=True, slots=True)
class FieldAgreement:
    """Agreement on one field of a stage.

    Attributes:
        field: what is compared.
        items: questions that both judges gave a value for.
        same_share: share of equal values; None without items.
        measures: measures of agreement on labels or scores.
        bias: mean difference of scores and limits of agreement.
        decision: agreement on which side of the threshold a score lies.
        time: distance of times.
    """

    field: JudgedField
    items: int
    same_share: float | None = None
    measures: Sequence[Agreement] = ()
    bias: Bias | None = None
    decision: Sequence[Agreement] = ()
    time: TimeDistance | None = None


@dataclass(frozen=True, slots=True)
class SystemMetric:
    """One metric of one system under two judges, on samples scored under both."""

    system: str
    first: float | None
    second: float | None
    equivalence: Equivalence


@dataclass(frozen=True, slots=True)
class MetricAgreement:
    """One metric under two judges.

    Attributes:
        metric: metric name.
        group: group name.
        systems: every system with its difference.
        differences: per other system its difference to the baseline under both judges.
        ranks: whether the judges order the systems alike.
        n_samples: per system the samples scored under both judges.
    """

    metric: str
    group: str
    systems: Sequence[SystemMetric]
    differences: Sequence[tuple[str, Equivalence]]
    ranks: RankAgreement
    n_samples: Sequence[int]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two verdicts that are far apart.

    Attributes:
        key: the row.
        field: field of the answer.
        size: distance as a share of the scale.
        text: the judged text.
        first: what the first judge said.
        second: what the second judge said.
        reasons: the reasons they gave, None where there is none.
    """

    key: Key
    field: str
    size: float
    text: str
    first: Any
    second: Any
    reasons: tuple[str | None, str | None]


@dataclass(frozen=True)
class PairAgreement:
    """Two judges compared.

    Attributes:
        first: the first judge, as the user named it.
        second: the second.
        label: what differs between them: judge, prompt, both, or nothing.
        matching: what was joined.
        fields: agreement per stage and field.
        metrics: agreement per metric.
        disagreements: the largest ones.
        baseline: system that differences are taken to.
        margin: largest difference that does not matter; None if none was named.
    """

    first: str
    second: str
    label: str
    matching: Matching
    fields: Sequence[FieldAgreement]
    metrics: Sequence[MetricAgreement]
    disagreements: Sequence[Disagreement]
    baseline: str
    margin: float | None


@dataclass
class _Pair:
    """What is collected about two judges."""

    counts: dict[str, int] = field(default_factory=dict)
    values: dict[int, list[tuple[Any, Any, str]]] = field(default_factory=dict)
    times: dict[int, list[int]] = field(default_factory=dict)
    largest: list[Disagreement] = field(default_factory=list)

    def count(self, what: str, n: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + n


def agree(
    judges: Sequence[str | Path],
    *,
    margin: float | None = None,
    metric: str | None = None,
    group: str | None = None,
    baseline: str | None = None,
    largest: int = LARGEST,
    progress: Progress | None = None,
) -> list[PairAgreement]:
    """Compares judges in pairs, every one with every other.

    Args:
        judges: runs, replay files, or ``judgements.parquet`` files; the first run is the
            reference.
        margin: largest difference of a metric that does not matter, in the metric's own unit.
        metric: a metric name; None: the leading metrics.
        group: a group name.
        baseline: system that differences are taken to; None: ``statistics.baseline`` or the first.
        largest: how many of the largest disagreements to list.
        progress: shows how far it is.

    Raises:
        ConfigError: fewer than two judges, no run among them, runs of different benchmarks, or a
            wrong name.
        DataError: rows that cannot be used.
    """
    if len(judges) < 2:
        raise ConfigError("agree compares judges: name at least two runs or files")
    if margin is not None and not margin > 0:
        raise ConfigError(f"--margin {margin:g}: must be above 0")
    progress = progress or Progress(False)
    with open_reference(judges) as reference:
        opened = [open_judge(path, reference) for path in judges]
        chosen = select_metrics(
            reference.benchmark, reference.benchmark.metrics(reference.options), metric, group
        )
        statistics = reference.config.statistics
        against = choose_baseline(baseline or statistics.baseline, reference.plan.systems)
        fields = judged_fields(reference.benchmark, reference.options)
        pairs, sums = _collect(reference, opened, fields, chosen, largest, progress)
        progress.start("agreement", len(pairs))
        found = []
        for (i, j), pair in pairs.items():
            found.append(
                PairAgreement(
                    opened[i].name,
                    opened[j].name,
                    difference_label(opened[i], opened[j]),
                    _matching(pair),
                    [_field(f, n, pair, statistics) for n, f in enumerate(fields)],
                    _metrics(chosen, sums[i], sums[j], against, margin, statistics.confidence),
                    pair.largest,
                    against,
                    margin,
                )
            )
            progress.advance()
        progress.end()
        return found


def _collect(
    reference: StoredRun,
    judges: Sequence[Judge],
    fields: Sequence[JudgedField],
    metrics: Sequence[Metric],
    largest: int,
    progress: Progress,
) -> tuple[dict[tuple[int, int], _Pair], list[SampleSums]]:
    """Goes through all partitions once."""
    cluster = reference.config.statistics.cluster
    cluster_of = unit_clusters(reference.units, cluster)
    sample_cluster = {s: c for (s, _), c in cluster_of.items()}
    sums = [SampleSums(metrics, reference.units, cluster) for _ in judges]
    pairs = {ij: _Pair() for ij in combinations(range(len(judges)), 2)}
    asked: set[Key] = set()
    progress.start("reading judgements", len(reference.plan))
    for _, system, judged in partitions(reference, judges):
        part = judged[0].part
        name = reference.plan.systems[system]
        left_out = not_counted(part, reference.options)
        for collected, under in zip(sums, judged, strict=True):
            collected.add(name, under.scores, left_out)
        keys = row_keys(judged[0])
        clusters = [cluster_of.get((k[1], k[2]), sample_cluster[k[1]]) for k in keys]
        hashes = part.stages[HASH].to_pylist()
        rows = sorted({r for under in judged for r in under.rows})
        asked |= {keys[r] for r in rows}
        for (i, j), pair in pairs.items():
            own = judged[i], judged[j]
            _join(pair, rows, keys, hashes, (judges[i], judges[j]), own)
            _compare(pair, keys, clusters, fields, own, largest)
            _compare_times(pair, fields, own, cluster_of, sample_cluster)
        progress.advance()
    progress.end()
    for (i, j), pair in pairs.items():
        pair.counts["unknown_first"] = len(judges[i].keys - asked)
        pair.counts["unknown_second"] = len(judges[j].keys - asked)
    return pairs, sums


def _join(
    pair: _Pair,
    rows: Sequence[int],
    keys: Sequence[Key],
    hashes: Sequence[str | None],
    judges: tuple[Judge, Judge],
    judged: tuple[Judged, Judged],
) -> None:
    status = [dict(zip(u.rows, u.status, strict=True)) for u in judged]
    for row in rows:
        one, two = (s.get(row) for s in status)
        if any(j.text_differs(keys[row], hashes[row]) for j in judges):
            pair.count("other_text")
        elif usable(one) and usable(two):
            pair.count("matched")
        elif one is None and two is None:
            continue
        elif one is None:
            pair.count("only_second")
        elif two is None:
            pair.count("only_first")
        else:
            pair.count("unusable")


def _matching(pair: _Pair) -> Matching:
    return Matching(*(pair.counts.get(n, 0) for n in Matching.__dataclass_fields__))


def _compare(
    pair: _Pair,
    keys: Sequence[Key],
    clusters: Sequence[str],
    fields: Sequence[JudgedField],
    judged: tuple[Judged, Judged],
    largest: int,
) -> None:
    """Adds the values of both judges, field by field."""
    first, second = (u.part.verdicts for u in judged)
    assert first is not None
    assert second is not None
    both = [
        r
        for r, (a, b) in enumerate(
            zip(first["status"].to_pylist(), second["status"].to_pylist(), strict=True)
        )
        if usable(a) and usable(b)
    ]
    texts: list[str] | None = None
    full = len(pair.largest) >= largest
    least = pair.largest[-1].size if full and largest else 0.0
    for number, declared in enumerate(fields):
        if declared.kind == "time":
            continue
        a, b = (v[declared.field].to_pylist() for v in (first, second))
        values = pair.values.setdefault(number, [])
        for r in both:
            if keys[r][4] != declared.stage or a[r] is None or b[r] is None:
                continue
            values.append((a[r], b[r], clusters[r]))
            size = _distance(declared, a[r], b[r])
            if size <= 0 or size < least or not largest:
                continue
            if texts is None:
                texts = judged[0].part.stages["text"].to_pylist()
            reasons = _reason(first, r), _reason(second, r)
            pair.largest.append(
                Disagreement(keys[r], declared.field, size, texts[r] or "", a[r], b[r], reasons)
            )
    pair.largest.sort(key=lambda d: (-d.size, tuple(x or "" for x in d.key), d.field))
    del pair.largest[largest:]


def _reason(verdicts: pa.Table, row: int) -> str | None:
    for name in REASONS:
        if name in verdicts.column_names:
            text: str | None = verdicts[name][row].as_py()
            return text or None
    return None


def _distance(declared: JudgedField, a: Any, b: Any) -> float:
    if declared.kind == "category":
        return float(a != b)
    low, high = declared.bounds or (0.0, 1.0)
    return float(abs(a - b) / (high - low))


def _compare_times(
    pair: _Pair,
    fields: Sequence[JudgedField],
    judged: tuple[Judged, Judged],
    cluster_of: dict[tuple[str, str], str],
    sample_cluster: dict[str, str],
) -> None:
    """Adds the times that both judges' answers lead to."""
    for number, declared in enumerate(fields):
        if declared.kind != "time":
            continue
        values = pair.values.setdefault(number, [])
        lonely = pair.times.setdefault(number, [0, 0])
        columns = [u.scores[declared.field].to_pylist() for u in judged]
        scored = [u.scores["judged"].to_pylist() for u in judged]
        units = zip(
            judged[0].scores["sample_id"].to_pylist(),
            judged[0].scores["unit_id"].to_pylist(),
            strict=True,
        )
        for unit, a, b, one, two in zip(units, *columns, *scored, strict=True):
            if one is False or two is False:
                continue
            if a is not None and b is not None:
                values.append((a, b, cluster_of.get(unit, sample_cluster[unit[0]])))
            elif a is not None or b is not None:
                lonely[0 if b is None else 1] += 1


def _field(
    declared: JudgedField, number: int, pair: _Pair, statistics: StatisticsConfig
) -> FieldAgreement:
    values = pair.values.get(number, [])
    first, second = [v[0] for v in values], [v[1] for v in values]
    clusters = [v[2] for v in values]
    items, same = len(values), None
    if values:
        same = sum(a == b for a, b in zip(first, second, strict=True)) / items
    how: dict[str, Any] = {
        "confidence": statistics.confidence,
        "replicates": statistics.replicates,
        "seed": statistics.seed,
    }
    if declared.kind == "category":
        one, two = ([str(v) for v in side] for side in (first, second))
        return FieldAgreement(declared, items, same, agree_on_categories(one, two, clusters, **how))
    bias = score_bias(first, second, clusters, confidence=statistics.confidence)
    if declared.kind == "time":
        time = _time_distance(first, second, bias, pair.times[number])
        return FieldAgreement(declared, items, same, time=time)
    decision: Sequence[Agreement] = ()
    if declared.threshold is not None:
        one, two = ([str(v >= declared.threshold) for v in side] for side in (first, second))
        decision = agree_on_categories(one, two, clusters, **how)
    measures = agree_on_scores(first, second, clusters, bounds=declared.bounds, **how)
    return FieldAgreement(declared, items, same, measures, bias, decision)


def _time_distance(
    first: Sequence[float], second: Sequence[float], bias: Bias, lonely: Sequence[int]
) -> TimeDistance:
    if not first:
        return TimeDistance(bias, None, None, None, lonely[0], lonely[1])
    apart = np.abs(np.asarray(second) - np.asarray(first))
    return TimeDistance(
        bias,
        float(np.median(apart)),
        float(np.quantile(apart, 0.9)),
        float((apart < 1e-9).mean()),
        lonely[0],
        lonely[1],
    )


def _metrics(
    metrics: Sequence[Metric],
    first: SampleSums,
    second: SampleSums,
    baseline: str,
    margin: float | None,
    confidence: float,
) -> list[MetricAgreement]:
    systems = compared_systems(first.systems)
    both = [first.scored(s) & second.scored(s) for s in systems]
    sides = [
        np.stack([side.by_cluster(s, mask) for s, mask in zip(systems, both, strict=True)])
        for side in (first, second)
    ]
    position = {s: k for k, s in enumerate(first.sums)}
    at = systems.index(baseline)
    others = [s for s in systems if s != baseline]
    found = []
    for metric in metrics:
        columns = [position[s] for s in metric.sums]
        one, two = (side[..., columns] for side in sides)
        level = margin or _NO_MARGIN
        single = equivalence(metric, one, two, level, confidence)
        values: list[Array] = [evaluate(metric.function, s.sum(axis=1)) for s in (one, two)]
        paired = difference_equivalence(metric, one, two, at, level, confidence)
        found.append(
            MetricAgreement(
                metric.name,
                metric.group,
                [
                    SystemMetric(s, _known(values[0][i]), _known(values[1][i]), single[i])
                    for i, s in enumerate(systems)
                ],
                list(zip(others, paired, strict=True)),
                rank_agreement(values[0].tolist(), values[1].tolist()),
                [int(mask.sum()) for mask in both],
            )
        )
    return found


def _known(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
