"""The last steps: questions, judgements, scores, metrics and comparisons onto disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from omnijudge import tables
from omnijudge.analysis.sample_sums import SampleSums, not_counted
from omnijudge.analysis.systems import choose_baseline, compared_systems
from omnijudge.asking import Asking, judgement_table, question_table
from omnijudge.benchmarks.declared import leading
from omnijudge.partitions import TableWriter, write_table
from omnijudge.summary import Summary, count_unscored
from omnijudge.tally import Tally

if TYPE_CHECKING:
    from omnijudge.asking import Asked
    from omnijudge.config import StatisticsConfig
    from omnijudge.progress import Progress
    from omnijudge.statistics.metric import Metric
    from omnijudge.usage import Usage


@dataclass(frozen=True)
class ResultCounts:
    """What came of the questions.

    Attributes:
        answers: system -> stage -> status -> questions.
        unscored_units: units whose verdict is missing.
        incomplete: samples left out because the run ended before all their questions.
        faults: what was wrong or odd -> attempts (names of ``judging.answer_faults``).
        spreads: how far judges lie apart, per stage.
        economy: what asking has cost and saved, per judge.
    """

    answers: Mapping[str, Mapping[str, Mapping[str, int]]]
    unscored_units: int
    incomplete: int = 0
    faults: Mapping[str, int] = field(default_factory=dict)
    spreads: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    economy: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)

    def for_manifest(self) -> dict[str, Any]:
        """As it stands among the counts of ``run.json``."""
        return {
            "answers": self.answers,
            "unscored_units": self.unscored_units,
            "samples_incomplete": self.incomplete,
            "faults": self.faults,
            "spreads": self.spreads,
            "economy": self.economy,
        }

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
    usage: Mapping[str, Usage] | None = None,
    stopped: bool = False,
) -> ResultCounts:
    """Scores every partition with the verdicts that are there, and sums up.

    Args:
        asking: the questions of the run.
        units: units of all samples, in the order of the plan.
        missing: per system the samples without a usable output.
        statistics: how intervals are made.
        folder: where the tables go.
        progress: shows how far it is.
        usage: what was asked under this output, per judge.
        stopped: the run ended before all was asked. Samples with a question nobody was asked are
            unscored then, with all their units and for all systems: of a sample half judged, the
            units that need no verdict (silence) would count and the others would not.
    """
    plan, benchmark, options = asking.plan, asking.benchmark, asking.options
    summary = Summary(benchmark, options, units, plan.systems, statistics.cluster)
    compared = leading(benchmark, summary.metrics)
    samples = SampleSums(compared, units, statistics.cluster)
    tally = Tally(asking.seats, asking.how)
    unscored = 0
    incomplete = pa.array(sorted(incomplete_samples(asking)) if stopped else [], pa.string())
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
                prompts = asking.prompts(part, b, s)
                results = asking.results(part, b, s, prompts)
                part = asking.with_verdicts(part, b, s, results)
                asked = asking.asked[plan.position(b, s)]
                spreads = tally.add(system, part.stages["stage"].to_pylist(), asked, results)
                scores = with_spread(benchmark.score(part, options), part.stages, asked, spreads)
                scores = without_samples(scores, incomplete)
                writers["questions"].add(question_table(asking, part, b, s, prompts))
                writers["judgements"].add(judgement_table(asking, part, b, s, results))
                writers["scores"].add(scores)
                summary.add(s, scores)
                samples.add(system, scores, not_counted(part, options))
                unscored += count_unscored(scores)
                progress.advance()
    progress.start("intervals")
    metrics = summary.metrics_table(statistics, options.profile, missing)
    write_table(folder / "metrics.parquet", metrics)
    progress.start("comparisons")
    write_comparisons(samples, compared, plan.systems, statistics, folder)
    progress.end()
    return ResultCounts(
        tally.answers(),
        unscored,
        len(incomplete),
        dict(tally.faults.most_common()),
        tally.spreads(),
        tally.economy(usage or {}),
    )


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


def invalid_beyond(
    answers: Mapping[str, Mapping[str, Mapping[str, int]]], most: float
) -> list[str]:
    """Sentences about unusable answers beyond a share, over all and per system and stage."""
    lost_of: dict[tuple[str, str], tuple[int, int]] = {}
    for system, stages in answers.items():
        for stage, by_status in stages.items():
            lost = sum(by_status.get(s, 0) for s in ("invalid", "error", "not asked"))
            lost_of[system, stage] = lost, sum(by_status.values())
    lost, asked = (sum(v[i] for v in lost_of.values()) for i in (0, 1))
    found = []
    if asked and lost / asked > most:
        found.append(f"{lost} of {asked} answers are unusable, more than limits.max_invalid")
    shares = {k: v for k, v in lost_of.items() if v[1] and v[0] / v[1] > most}
    worst = sorted(shares, key=lambda k: -shares[k][0] / shares[k][1])
    for system, stage in worst[:5]:
        lost, asked = shares[system, stage]
        found.append(
            f"{system}, stage {stage}: {lost} of {asked} answers are unusable, more than "
            "limits.max_invalid"
        )
    if len(worst) > 5:
        found.append(f"and {len(worst) - 5} more stages of systems")
    return found


def incomplete_samples(asking: Asking) -> set[str]:
    """Samples with a question that has not come to an end, for any system and judge."""
    found: set[str] = set()
    for b in range(len(asking.plan.blocks)):
        for s in range(len(asking.plan.systems)):
            rows = asking.asked[asking.plan.position(b, s)].rows
            part = asking.load(b, s)
            samples = part.stages["sample_id"].take(pa.array(rows, pa.int64())).to_pylist()
            for sample, panel in zip(samples, asking.results(part, b, s), strict=True):
                if any(outcome.status is None for outcome in panel):
                    found.add(sample)
    return found


def without_samples(scores: pa.Table, samples: pa.Array) -> pa.Table:
    """The same table with all units of some samples unscored."""
    if not len(samples):
        return scores
    out = pc.is_in(scores["sample_id"], samples)
    judged = pc.if_else(out, pa.scalar(False), scores["judged"])
    return _replaced(scores, "judged", judged)


def with_spread(
    scores: pa.Table, stages: pa.Table, asked: Asked, spreads: Sequence[float | None]
) -> pa.Table:
    """Fills ``judge_spread``: the largest spread among the verdicts a row rests on.

    Those are the verdicts about its unit; for rows that sum up a sample, all of the sample.
    """
    if all(spread is None for spread in spreads):
        return scores
    keys = stages.select(["sample_id", "unit_id"]).take(pa.array(asked.rows, pa.int64()))
    of_unit: dict[tuple[str, str | None], float] = {}
    for sample, unit, spread in zip(
        keys["sample_id"].to_pylist(), keys["unit_id"].to_pylist(), spreads, strict=True
    ):
        for key in ((sample, unit), (sample, None)):
            if spread is not None:
                of_unit[key] = max(spread, of_unit.get(key, 0.0))
    units = set(zip(keys["sample_id"].to_pylist(), keys["unit_id"].to_pylist(), strict=True))
    found: list[float | None] = []
    for sample, unit, judged in zip(
        *(scores[n].to_pylist() for n in ("sample_id", "unit_id", "judged")), strict=True
    ):
        own = (sample, unit) if (sample, unit) in units else (sample, None)
        found.append(of_unit.get(own) if judged is not None else None)
    return _replaced(scores, "judge_spread", pa.array(found, pa.float64()))


def _replaced(table: pa.Table, name: str, values: Any) -> pa.Table:
    at = table.schema.get_field_index(name)
    return table.set_column(at, table.schema.field(at), values)
