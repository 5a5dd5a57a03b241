"""Sums per sample and system: what paired comparisons are made of.

Two systems are compared on the samples scored for both. So sums are kept by sample, together with
which samples are scored, and added up to clusters for each pair.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnijudge.statistics.metric import Array, Metric, Sum, distinct_sums
from omnijudge.statistics.sums import ScoreRows
from omnijudge.summary import unit_clusters

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Partition

Mask = npt.NDArray[np.bool_]

NO_OUTPUT = ("missing", "unreadable")
NOT_EVALUATED = "not_evaluated"


def not_counted(part: Partition, options: Any) -> list[str]:
    """Samples of a partition that do not count for its system.

    Those it is not evaluated on; and under the published profile, where a missing output leaves
    the denominators, those without an output.
    """
    leaves = (NOT_EVALUATED, *(NO_OUTPUT if options.profile == "published" else ()))
    out = part.outputs
    found = out.filter(pc.is_in(out["state"], pa.array(leaves)))
    return list(found["sample_id"].to_pylist())


class SampleSums:
    """Collects the sums of some metrics, partition by partition, in the order of the blocks.

    A sample whose units fall into several clusters counts as one place per cluster; it is scored
    or not as a whole.

    Attributes:
        metrics: the metrics.
        sums: their distinct sums, K of them.
        systems: names, in the order in which they were first added.
        clusters: names of the V clusters, sorted.
    """

    def __init__(self, metrics: Sequence[Metric], units: pa.Table, cluster_column: str) -> None:
        """Prepares the places of all samples.

        Args:
            metrics: metrics that are functions of sums.
            units: units of all samples.
            cluster_column: column or attribute of the units that names the cluster.

        Raises:
            ConfigError: there is no such column.
        """
        self.metrics = [m for m in metrics if m.quantile is None]
        self.sums: list[Sum] = distinct_sums(self.metrics)
        cluster_of = unit_clusters(units, cluster_column)
        self.clusters = sorted(set(cluster_of.values()))
        number = {c: i for i, c in enumerate(self.clusters)}
        places = dict.fromkeys((sample, c) for (sample, _), c in cluster_of.items())
        self._place = {key: i for i, key in enumerate(places)}
        samples = {s: i for i, s in enumerate(dict.fromkeys(s for s, _ in places))}
        self._sample_number = samples
        self._sample = np.array([samples[s] for s, _ in places], np.int64)
        self._cluster = np.array([number[c] for _, c in places], np.int64)
        # Places of one cluster side by side; every cluster has one.
        self._order = np.argsort(self._cluster, kind="stable")
        self._starts = np.searchsorted(self._cluster[self._order], np.arange(len(self.clusters)))
        self._unit_place = {key: self._place[key[0], c] for key, c in cluster_of.items()}
        # Units of one system alone (its sentences, say) lie where their sample lies.
        self._sample_place = {s: self._place[s, c] for (s, _), c in cluster_of.items()}
        self._values: dict[str, Array] = {}
        self._scored: dict[str, Mask] = {}

    def add(self, system: str, scores: pa.Table, not_scored: Collection[str] = ()) -> None:
        """Adds the scores of some samples of a system.

        Args:
            system: its name.
            scores: their score rows.
            not_scored: samples that do not count for this system although nothing is wrong with
                their rows (outputs that are missing, where those leave the denominators).
        """
        values = self._values.setdefault(system, np.zeros((len(self._place), len(self.sums))))
        scored = self._scored.setdefault(system, np.zeros(len(self._sample_number), np.bool_))
        owners = scores["sample_id"].to_pylist()
        for sample in dict.fromkeys(owners):
            scored[self._sample_number[sample]] = True
        lost = scores.filter(pc.fill_null(pc.equal(scores["judged"], False), False))
        for sample in {*lost["sample_id"].to_pylist(), *not_scored}:
            scored[self._sample_number[sample]] = False
        if not scores.num_rows:
            return
        keys = zip(owners, scores["unit_id"].to_pylist(), strict=True)
        place = np.array([self._unit_place.get(k, self._sample_place[k[0]]) for k in keys])
        here, found = ScoreRows(scores).by_place(self.sums, place)
        values[here] += found

    @property
    def systems(self) -> list[str]:
        """Names, in the order in which they were first added."""
        return list(self._values)

    @property
    def n_samples(self) -> int:
        """Samples there are."""
        return len(self._sample_number)

    def scored(self, *systems: str) -> Mask:
        """Samples (n_samples,) that are scored for all of these systems."""
        mask = np.ones(self.n_samples, np.bool_)
        for system in systems:
            mask &= self._scored[system]
        return mask

    def complete(self, systems: Sequence[str]) -> bool:
        """Whether the same samples are scored for all of these systems."""
        first = self._scored[systems[0]] if systems else None
        return all(np.array_equal(first, self._scored[s]) for s in systems)  # type: ignore[arg-type]

    def by_cluster(self, system: str, samples: Mask) -> Array:
        """Sums (V, K) of a system over some samples."""
        return self._added(self._values[system] * samples[self._sample][:, None])

    def _added(self, values: Array) -> Array:
        """Sums (..., V, k) of values (..., places, k)."""
        return np.add.reduceat(values[..., self._order, :], self._starts, axis=-2)

    def pair(self, first: str, second: str) -> tuple[Array, Array]:
        """Sums (V, K) of two systems over the samples scored for both."""
        both = self.scored(first, second)
        return self.by_cluster(first, both), self.by_cluster(second, both)

    def pairs(
        self, first: str, others: Sequence[str], columns: Sequence[int] | None = None
    ) -> tuple[Array, Array]:
        """Sums (P, V, k) of one system and of each of P others, over the samples scored for both.

        Args:
            first: the one.
            others: the others.
            columns: k of the sums; None: all.
        """
        chosen = list(range(len(self.sums))) if columns is None else list(columns)
        masks = np.stack([self.scored(first, o)[self._sample] for o in others])[..., None]
        one = self._values[first][None][..., chosen]
        rest = np.stack([self._values[o][:, chosen] for o in others])
        return self._added(one * masks), self._added(rest * masks)

    def own(self, system: str) -> Array:
        """Sums (V, K) of a system over all its scored units, as its metrics are made of."""
        return self.by_cluster(system, np.ones(self.n_samples, np.bool_))

    def merged(self, names: Mapping[str, str], other: SampleSums) -> None:
        """Takes over systems of another collection over the same units: its name -> name here."""
        order = np.array([other._place[key] for key in self._place], np.int64)
        samples = np.array([other._sample_number[s] for s in self._sample_number], np.int64)
        for theirs, ours in names.items():
            self._values[ours] = other._values[theirs][order]
            self._scored[ours] = other._scored[theirs][samples]
