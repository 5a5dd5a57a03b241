"""From score rows to sums per cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnijudge.statistics.metric import Array, Metric, Sum, Where

Mask = npt.NDArray[np.bool_]


class ScoreRows:
    """Score rows of one system, with conditions evaluated once each."""

    def __init__(self, scores: pa.Table) -> None:
        self._scores = scores
        self._masks: dict[Where, Mask] = {}
        self._wheres: dict[tuple[str, tuple[Where, ...]], Mask] = {}
        self._values: dict[str, tuple[Array, Mask]] = {}
        unscored = pc.fill_null(pc.equal(scores["judged"], False), False)
        self.scored: Mask = ~_mask(unscored)

    def __len__(self) -> int:
        return int(self._scores.num_rows)

    def where(self, kind: str, conditions: Sequence[Where]) -> Mask:
        """Rows of a kind that satisfy all conditions, scored or not."""
        key = kind, tuple(conditions)
        if key not in self._wheres:
            mask = self._condition(Where("unit_kind", (kind,)))
            for condition in conditions:
                mask = mask & self._condition(condition)
            self._wheres[key] = mask
        return self._wheres[key]

    def _condition(self, condition: Where) -> Mask:
        if condition not in self._masks:
            column = self._scores[condition.column]
            known = [v for v in condition.values if v is not None]
            found = pc.is_in(column, pa.array(known, column.type))
            if None in condition.values:
                found = pc.or_kleene(found, pc.is_null(column))
            self._masks[condition] = _mask(pc.fill_null(found, False))
        return self._masks[condition]

    def column(self, name: str) -> tuple[Array, Mask]:
        """Values of a column as float64 (0 where null), and where it is not null."""
        if name not in self._values:
            column = self._scores[name]
            present = _mask(pc.is_valid(column))
            filled = pc.fill_null(column.cast(pa.float64()), 0.0)
            self._values[name] = (np.asarray(filled.to_numpy(), np.float64), present)
        return self._values[name]

    def per_row(self, s: Sum) -> Array:
        """What each row adds to a sum."""
        if s.column is None:
            amount = np.ones(len(self))
        else:
            values, present = self.column(s.column)
            amount = present.astype(np.float64) if s.count else values
        weight = (self.where(s.kind, s.where) & self.scored).astype(np.float64)
        if s.less:
            weight -= self.where(s.kind, s.less) & self.scored
        return amount * weight

    def of_units(self, sums: Sequence[Sum]) -> Mask:
        """Rows that any of the sums is about, scored or not."""
        mask = np.zeros(len(self), np.bool_)
        for s in sums:
            mask |= self.where(s.kind, s.where)
        return mask

    def by_place(
        self, sums: Sequence[Sum], place: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], Array]:
        """Sums of the rows of each place (a cluster, say), rows added in table order.

        Args:
            sums: the K sums.
            place: (rows,) place of each row.

        Returns:
            (P,) the places that occur, ascending, and their sums (P, K).
        """
        places, local = np.unique(place, return_inverse=True)
        out = np.empty((len(places), len(sums)))
        for k, s in enumerate(sums):
            out[:, k] = np.bincount(local, self.per_row(s), minlength=len(places))
        return places, out

    def unit_counts(self, metrics: Sequence[Metric]) -> list[tuple[int, int]]:
        """(units, unscored units) of each metric."""
        masks = (self.of_units(metric.units) for metric in metrics)
        return [(int(mask.sum()), int((mask & ~self.scored).sum())) for mask in masks]


def _mask(column: pa.ChunkedArray) -> Mask:
    return np.asarray(column.to_numpy(), np.bool_)


def cluster_sums(
    scores: pa.Table, sums: Sequence[Sum], clusters: Mapping[str, int], cluster_of: pa.ChunkedArray
) -> Array:
    """Sums per cluster, rows added in table order.

    Args:
        scores: score rows of one system.
        sums: the K sums.
        clusters: cluster name -> row of the result.
        cluster_of: cluster name of each score row.

    Returns:
        (V, K) float64.
    """
    out = np.zeros((len(clusters), len(sums)))
    places, found = ScoreRows(scores).by_place(sums, cluster_index(clusters, cluster_of))
    out[places] = found
    return out


def cluster_index(
    clusters: Mapping[str, int], cluster_of: pa.ChunkedArray
) -> npt.NDArray[np.int64]:
    """Row of the cluster of each score row."""
    names = pa.array(list(clusters), pa.string())
    found = pc.index_in(cluster_of, names).to_numpy()
    return np.asarray(found, np.int64)


def unit_counts(scores: pa.Table, metrics: Sequence[Metric]) -> list[tuple[int, int]]:
    """(units, unscored units) of each metric."""
    return ScoreRows(scores).unit_counts(metrics)
