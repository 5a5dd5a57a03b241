"""The last steps: questions, judgements, scores, metrics and comparisons onto disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnijudge import tables
from omnijudge.analysis.sample_sums import SampleSums, not_counted
from omnijudge.analysis.systems import choose_baseline, compared_systems
from omnijudge.asking import Asking, judgement_table, question_table
from omnijudge.benchmarks.declared import leading
from omnijudge.partitions import TableWriter, write_table
from omnijudge.summary import Summary, count_unscored

if TYPE_CHECKING:
    from omnijudge.config import StatisticsConfig
    from omnijudge.progress import Progress
    from omnijudge.statistics.metric import Metric


@dataclass(frozen=True)
class ResultCounts:
    """What came of the questions.

    Attributes:
        answers: system -> stage -> status -> questions.
        unscored_units: units whose verdict is missing.
    """

    answers: Mapping[str, Mapping[str, Mapping[str, int]]]
    unscored_units: int

    def by_status(self) -> Counter[str]:
        """Questions by status over all systems and stages."""
        found: Counter[str] = Counter()
        for stages in self.answers.values():
            for counted in stages.values():
                found.update(counted)
        return found


def write_results(
    asking: Asking,
    units: pa.Table,
    missing: Mapping[str, int],
    statistics: StatisticsConfig,
    folder: Path,
    progress: Progress,
) -> ResultCounts:
    """Scores every partition with the verdicts that are there, and sums up.

    Args:
        asking: the questions of the run.
        units: units of all samples, in the order of the plan.
        missing: per system the samples without a usable output.
        statistics: how intervals are made.
        folder: where the tables go.
        progress: shows how far it is.
    """
    plan, benchmark, options = asking.plan, asking.benchmark, asking.options
    summary = Summary(benchmark, options, units, plan.systems, statistics.cluster)
    compared = leading(benchmark, summary.metrics)
    samples = SampleSums(compared, units, statistics.cluster)
    status: Counter[tuple[str, str, str]] = Counter()
    unscored = 0
    schemas = {
        "questions": tables.QUESTIONS,
        "judgements": tables.extend(tables.JUDGEMENTS, benchmark.answer_schema),
        "scores": benchmark.score_schema,
    }
    progress.start("scoring", len(plan))
    with ExitStack() as stack:
        writers = {
            n: stack.enter_context(TableWriter(folder / f"{n}.parquet", s))
            for n, s in schemas.items()
        }
        for b in range(len(plan.blocks)):
            for s, system in enumerate(plan.systems):
                part = asking.load(b, s, True)
                results = asking.results(part, b, s)
                part = asking.with_verdicts(part, b, s, results)
                scores = benchmark.score(part, options)
                writers["questions"].add(question_table(asking, part, b, s))
                writers["judgements"].add(judgement_table(asking, part, b, s, results))
                writers["scores"].add(scores)
                summary.add(s, scores)
                samples.add(system, scores, not_counted(part, options))
                unscored += count_unscored(scores)
                stages = part.stages["stage"].to_pylist()
                rows = asking.asked[plan.position(b, s)].rows
                for row, panel in zip(rows, results, strict=True):
                    for outcome in panel:
                        status[system, stages[row], outcome.status or "not asked"] += 1
                progress.advance()
    progress.start("intervals")
    metrics = summary.metrics_table(statistics, options.profile, missing)
    write_table(folder / "metrics.parquet", metrics)
    progress.start("comparisons")
    write_comparisons(samples, compared, plan.systems, statistics, folder)
    progress.end()
    return ResultCounts(_nested(status), unscored)


def write_comparisons(
    samples: SampleSums,
    metrics: Sequence[Metric],
    systems: Sequence[str],
    statistics: StatisticsConfig,
    folder: Path,
) -> None:
    """Writes differences to the baseline, and ranks, by the leading metrics.

    The other metrics are left to ``omnijudge compare``: a table of everything against everything
    would take longer than all intervals, and nobody could read it.
    """
    from omnijudge.analysis.comparing import Comparison, interval_settings

    compared = Comparison(samples, compared_systems(systems), interval_settings(statistics))
    baseline = choose_baseline(statistics.baseline, systems)
    write_table(folder / "comparisons.parquet", compared.baseline_table(baseline, metrics))
    write_table(folder / "ranks.parquet", compared.ranks_table(metrics))


def _nested(counted: Counter[tuple[str, str, str]]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for (system, stage, status), n in sorted(counted.items()):
        nested.setdefault(system, {}).setdefault(stage, {})[status] = n
    return nested
