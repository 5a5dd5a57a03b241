"""Systems compared: differences on the samples scored for both, and ranks.

Controls take no part: they are no members of a family of tests and have no rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnijudge import tables
from omnijudge.errors import ConfigError
from omnijudge.statistics.bootstrap import cluster_counts
from omnijudge.statistics.comparison import (
    Differences,
    compare_all,
    compare_to_baseline,
    differences_on_common,
)
from omnijudge.statistics.intervals import IntervalSettings
from omnijudge.statistics.metric import Array, Metric
from omnijudge.statistics.ranking import Ranks, rank_systems

if TYPE_CHECKING:
    from omnijudge.analysis.sample_sums import SampleSums
    from omnijudge.config import StatisticsConfig
    from omnijudge.statistics.multiple import Adjustment

SIGN_FLIP, TAIL = "sign flip", "jackknife t"


def interval_settings(
    statistics: StatisticsConfig, adjustment: Adjustment = "holm"
) -> IntervalSettings:
    """Settings of a run's configuration."""
    return IntervalSettings(
        statistics.replicates,
        statistics.confidence,
        statistics.interval,
        statistics.seed,
        adjustment,
    )


@dataclass(frozen=True)
class Comparison:
    """Systems ready to be compared.

    Attributes:
        sums: their sums by sample.
        systems: those that are compared, in the order of the configuration.
        settings: replicates, level, kind of interval, seed, adjustment.
    """

    sums: SampleSums
    systems: Sequence[str]
    settings: IntervalSettings

    def check(self, system: str, what: str) -> str:
        """The system, if it is one of those compared.

        Raises:
            ConfigError: it is not.
        """
        if system not in self.systems:
            raise ConfigError(f"{what}: no system {system!r}; there are {', '.join(self.systems)}")
        return system

    def differences(self, baseline: str, metrics: Sequence[Metric]) -> list[Differences]:
        """Every other system against one, in the order of the others."""
        others = [s for s in self.systems if s != baseline]
        if not others:
            return []
        common = self._common()
        if common is not None:
            at = list(self.systems).index(baseline)
            return compare_to_baseline(metrics, common, at, self.sums.sums, self.settings)
        first, second = self.sums.pairs(baseline, others)
        return compare_to_baseline(
            metrics, list(second), list(first), self.sums.sums, self.settings
        )

    def all_differences(
        self, metrics: Sequence[Metric], settings: IntervalSettings | None = None
    ) -> list[Differences]:
        """Every pair of systems, in the order of ``omnijudge.statistics.pairs.all_pairs``."""
        settings = settings or self.settings
        common = self._common()
        if common is not None:
            return compare_all(metrics, common, self.sums.sums, settings)
        position = {s: k for k, s in enumerate(self.sums.sums)}
        counts = None
        if settings.interval != "jackknife":
            counts = cluster_counts(len(self.sums.clusters), settings.replicates, settings.seed)
        found = []
        for metric in metrics:
            columns = [position[s] for s in metric.sums]

            def after(i: int, columns: list[int] = columns) -> tuple[Array, Array]:
                return self.sums.pairs(self.systems[i], self.systems[i + 1 :], columns)

            found.append(differences_on_common(metric, len(self.systems), after, settings, counts))
        return found

    def ranks(self, metrics: Sequence[Metric]) -> list[Ranks]:
        """Ranks by every metric that has a direction."""
        ranked = [m for m in metrics if m.higher_is_better is not None and m.quantile is None]
        if len(self.systems) < 1:
            return []
        common = self._common()
        own = [self.sums.own(s) for s in self.systems]
        differences = None
        if common is None:
            settings = replace(self.settings, interval="jackknife", adjustment="holm")
            differences = self.all_differences(ranked, settings)
        return rank_systems(ranked, own, self.sums.sums, self.settings, differences)

    def _common(self) -> list[Array] | None:
        """Sums of all systems, if the same samples are scored for all of them."""
        if not self.sums.complete(self.systems):
            return None
        samples = self.sums.scored(*self.systems)
        return [self.sums.by_cluster(s, samples) for s in self.systems]

    # Tables

    def baseline_table(self, baseline: str, metrics: Sequence[Metric]) -> pa.Table:
        """Rows of every other system against a baseline (``tables.COMPARISONS``)."""
        others = [s for s in self.systems if s != baseline]
        pairs = [(baseline, s) for s in others]
        return _comparison_table(self, pairs, self.differences(baseline, metrics))

    def pairs_table(self, metrics: Sequence[Metric]) -> pa.Table:
        """Rows of every pair, the system named first as the baseline."""
        names = list(self.systems)
        pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
        return _comparison_table(self, pairs, self.all_differences(metrics))

    def ranks_table(self, metrics: Sequence[Metric]) -> pa.Table:
        """Ranks (``tables.RANKS``)."""
        columns: dict[str, list[Any]] = {n: [] for n in tables.RANKS.names}
        for found in self.ranks(metrics):
            for s, system in enumerate(self.systems):
                is_ranked = bool(found.rank[s])
                best = s == found.winner
                values = {
                    "system": system,
                    "metric": found.metric,
                    "group": found.group,
                    "rank": int(found.rank[s]) if is_ranked else None,
                    "rank_low": int(found.rank_low[s]) if is_ranked else None,
                    "rank_high": int(found.rank_high[s]) if is_ranked else None,
                    "p_best": known(found.p_best[s]),
                    "value": known(found.value[s]),
                    "winner_low": found.winner_low if best else None,
                    "winner_high": found.winner_high if best else None,
                    "n_ranked": int((found.rank > 0).sum()),
                }
                for name, column in columns.items():
                    column.append(values[name])
        return tables.make(tables.RANKS, dict(columns))


def _comparison_table(
    comparison: Comparison, pairs: Sequence[tuple[str, str]], found: Iterable[Differences]
) -> pa.Table:
    sums = comparison.sums
    common = [int(sums.scored(a, b).sum()) for a, b in pairs]
    columns: dict[str, list[Any]] = {n: [] for n in tables.COMPARISONS.names}
    for d in found:
        for i, (baseline, system) in enumerate(pairs):
            values = {
                "baseline": baseline,
                "system": system,
                "metric": d.metric,
                "group": d.group,
                "difference": known(d.difference[i]),
                "ci_low": known(d.ci_low[i]),
                "ci_high": known(d.ci_high[i]),
                "careful_low": known(d.careful_low[i]),
                "careful_high": known(d.careful_high[i]),
                "interval_method": d.interval_method,
                "p_value": known(d.p_value[i]),
                "p_adjusted": known(d.p_adjusted[i]),
                "smallest_p": known(d.smallest_p[i]),
                "n_clusters": int(d.n_clusters[i]),
                "p_method": TAIL if d.by_tail[i] else SIGN_FLIP,
                "adjustment": d.adjustment,
                "detectable": known(d.detectable[i]),
                "n_samples": common[i],
                "n_left_out": sums.n_samples - common[i],
                "dropped_replicates": int(d.dropped[i]),
                "confidence": d.confidence,
            }
            for name, column in columns.items():
                column.append(values[name])
    return tables.make(tables.COMPARISONS, dict(columns))


def known(value: Any) -> float | None:
    """A number, None where it is undefined."""
    return float(value) if np.isfinite(value) else None
