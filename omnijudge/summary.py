"""The last step: score rows become metrics with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnijudge import tables
from omnijudge.errors import ConfigError
from omnijudge.statistics.metric import Array, Metric, Sum, distinct_sums, quantile_groups
from omnijudge.statistics.sums import ScoreRows

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Benchmark
    from omnijudge.config import StatisticsConfig
    from omnijudge.statistics.intervals import UnitValues


class Summary:
    """Collects sums per cluster, partition by partition, in the fixed order of the blocks."""

    def __init__(
        self,
        benchmark: Benchmark,
        options: Any,
        units: pa.Table,
        systems: Sequence[str],
        cluster_column: str,
    ) -> None:
        """Prepares one partition of all units into clusters.

        Raises:
            ConfigError: the cluster column does not exist.
        """
        self.benchmark = benchmark
        self.metrics: list[Metric] = benchmark.metrics(options)
        self.sums: list[Sum] = distinct_sums(self.metrics)
        self.systems = list(systems)
        self._column = cluster_column
        self._cluster_of = unit_clusters(units, cluster_column)
        self._sample_cluster = {s: c for (s, _), c in self._cluster_of.items()}
        self.clusters = {c: i for i, c in enumerate(sorted(set(self._cluster_of.values())))}
        size = (len(self.clusters), len(self.sums))
        self.values = [np.zeros(size) for _ in systems]
        self._worst = [np.zeros(size) for _ in systems]
        self._best = [np.zeros(size) for _ in systems]
        self.counts = np.zeros((len(self.systems), len(self.metrics), 2), np.int64)
        self._quantiles = quantile_groups(self.metrics)
        self._delays: dict[tuple[int, int], list[tuple[Array, Any]]] = {}

    def add(self, system: int, scores: pa.Table) -> None:
        """Adds the scores of one partition."""
        keys = zip(scores["sample_id"].to_pylist(), scores["unit_id"].to_pylist(), strict=True)
        # Units of one system alone (its sentences, say) lie in the cluster of their sample.
        names = (self._cluster_of.get(k) or self._sample_cluster[k[0]] for k in keys)
        cluster = np.array([self.clusters[name] for name in names], np.int64)
        rows = ScoreRows(scores)
        here, found = rows.by_place(self.sums, cluster)
        self.values[system][here] += found
        complete = bool(rows.scored.all())
        for best, sums in ((False, self._worst), (True, self._best)):
            if not complete:
                filled = ScoreRows(self.benchmark.fill_unscored(scores, best))
                here, found = filled.by_place(self.sums, cluster)
            sums[system][here] += found
        self.counts[system] += np.array(rows.unit_counts(self.metrics), np.int64)
        for first, *_ in self._quantiles:
            metric = self.metrics[first]
            assert metric.quantile is not None
            values, present = rows.column(metric.quantile[0])
            mask = rows.of_units(metric.units) & present & rows.scored
            self._delays.setdefault((system, first), []).append((values[mask], cluster[mask]))

    def unit_values(self) -> Mapping[tuple[int, int], UnitValues]:
        """Values behind quantile metrics, by system and first metric of those with the same."""
        from omnijudge.statistics.intervals import UnitValues

        return {
            key: UnitValues(
                np.concatenate([v for v, _ in found]), np.concatenate([c for _, c in found])
            )
            for key, found in self._delays.items()
        }

    def metrics_table(
        self, settings: StatisticsConfig, profile: str, missing: Mapping[str, int]
    ) -> pa.Table:
        """All metrics of all systems with intervals (``tables.METRICS``)."""
        from omnijudge.statistics.intervals import IntervalSettings, metric_intervals

        found = metric_intervals(
            self.metrics,
            self.values,
            self.sums,
            IntervalSettings(
                settings.replicates, settings.confidence, settings.interval, settings.seed
            ),
            unit_values=self.unit_values(),
        )
        position = {s: k for k, s in enumerate(self.sums)}
        columns: dict[str, list[Any]] = {n: [] for n in tables.METRICS.names}
        for i, row in enumerate(found):
            m = i % len(self.metrics)
            metric = self.metrics[m]
            n_units, unscored = (int(x) for x in self.counts[row.system, m])
            low, high = self._bounds(row.system, metric, position, row.value)
            values = {
                "system": self.systems[row.system],
                "metric": row.metric,
                "group": row.group,
                "value": row.value,
                "ci_low": row.ci_low,
                "ci_high": row.ci_high,
                "careful_low": row.careful_low,
                "careful_high": row.careful_high,
                "interval_method": row.interval_method,
                "warning": row.warning,
                "confidence": row.confidence,
                "n_units": n_units,
                "n_clusters": row.n_clusters,
                "n_unscored": unscored,
                "coverage": 1 - unscored / n_units if n_units else None,
                "bound_low": low,
                "bound_high": high,
                "n_missing": missing.get(self.systems[row.system], 0),
                "dropped_replicates": row.dropped,
                "profile": profile,
            }
            for name, column in columns.items():
                column.append(values[name])
        return tables.make(tables.METRICS, dict(columns))

    def _bounds(
        self, system: int, metric: Metric, position: Mapping[Sum, int], value: float | None
    ) -> tuple[float | None, float | None]:
        if metric.quantile is not None:
            return (value, value) if not self.counts[system, :, 1].any() else (None, None)
        ends = []
        for sums in (self._worst[system], self._best[system]):
            total = sums[:, [position[s] for s in metric.sums]].sum(axis=0)
            ends.append(float(metric.function(total)))
        known = [e for e in ends if np.isfinite(e)]
        return (min(known), max(known)) if known else (None, None)


def unit_clusters(units: pa.Table, column: str) -> dict[tuple[str, str], str]:
    """Cluster of every unit: a column of the unit table, or one of its attributes.

    Raises:
        ConfigError: there is no such column.
    """
    keys = list(zip(units["sample_id"].to_pylist(), units["unit_id"].to_pylist(), strict=True))
    values = unit_column(units, column)
    if values is None:
        raise ConfigError(
            f"statistics.cluster: {column!r} is no column of the units; there are "
            f"{', '.join(plain_columns(units))}"
        )
    fallback = units["video_id"].to_pylist()
    return {
        k: str(v if v is not None else f) for k, v, f in zip(keys, values, fallback, strict=True)
    }


def unit_column(units: pa.Table, name: str) -> list[Any] | None:
    """Values of a column or attribute of the units; None if there is none of that name."""
    if name in units.column_names and not pa.types.is_nested(units[name].type):
        return list(units[name].to_pylist())
    if "attributes" in units.column_names:
        attributes = [dict(a or ()) for a in units["attributes"].to_pylist()]
        if any(name in a for a in attributes):
            return [a.get(name) for a in attributes]
    return None


def plain_columns(units: pa.Table) -> list[str]:
    """Names that ``unit_column`` knows."""
    names = [n for n in units.column_names if not pa.types.is_nested(units[n].type)]
    if "attributes" in units.column_names:
        names += sorted({k for a in units["attributes"].to_pylist() for k, _ in (a or ())})
    return names


def count_unscored(scores: pa.Table) -> int:
    """Units whose verdict is missing."""
    return int(pc.sum(pc.equal(scores["judged"], False)).as_py() or 0)
