"""A metric is a function of sums over score rows.

A benchmark declares its metrics; intervals, differences, ranks and corrections are then written
once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Where:
    """A condition on a column of the score table: ``column`` is one of ``values``.

    A null never satisfies a condition, unless None is among the values.
    """

    column: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Sum:
    """Sum of a column over the score rows of one kind that satisfy all conditions.

    Boolean columns count as 0 and 1. Nulls add nothing. Rows that are unscored (``judged`` false)
    are never part of a sum.

    Attributes:
        kind: ``unit_kind`` of the rows.
        column: what is summed; None counts the rows.
        where: conditions that a row has to satisfy, all of them.
        count: count the rows in which ``column`` is not null instead of summing it.
        less: if given, the same sum over the rows that satisfy these conditions (and not
            necessarily ``where``) is subtracted: categories defined by differences of sums.
    """

    kind: str
    column: str | None = None
    where: tuple[Where, ...] = ()
    count: bool = False
    less: tuple[Where, ...] = ()


@dataclass(frozen=True)
class Metric:
    """A published number.

    Attributes:
        name: metric name, such as ``ia_qtf1``.
        group: group name, such as ``realtime``.
        sums: the sums it depends on.
        function: maps an array (..., len(sums)) to (...); vectorised over leading axes; NaN where
            the metric is undefined.
        bounds: range of the values, None for no bound on that side.
        units: the rows it is about (for n_units, n_unscored and coverage).
        numerator: indices of ``sums`` that make up the numerator (for the count of clusters with
            a non-zero numerator).
        denominator: indices of ``sums`` that make up the denominator (clusters with a positive
            denominator are the ones counted in ``n_clusters``).
        quantile: not a function of sums but a quantile of a column over ``units`` (response
            delays): (column, probability). Bootstrap only, no careful interval.
        higher_is_better: direction for ranks; None where no direction is meant.
        percent: show as a percentage of 0..100.
    """

    name: str
    group: str
    sums: tuple[Sum, ...]
    function: Callable[[Array], Array]
    units: tuple[Sum, ...]
    bounds: tuple[float | None, float | None] = (0.0, 1.0)
    numerator: tuple[int, ...] = (0,)
    denominator: tuple[int, ...] = (1,)
    quantile: tuple[str, float] | None = None
    higher_is_better: Literal[True, False, None] = True


def ratio(sums: Array) -> Array:
    """Ratio of two sums, NaN where the denominator is not positive."""
    num, den = sums[..., 0], sums[..., 1]
    return np.divide(num, den, out=np.full_like(num, np.nan), where=den > 0)


def ratio_or_zero(sums: Array) -> Array:
    """Ratio of two sums, 0 where the denominator is not positive."""
    num, den = sums[..., 0], sums[..., 1]
    return np.divide(num, den, out=np.zeros_like(num), where=den > 0)


def total(sums: Array) -> Array:
    """The sum itself."""
    return sums[..., 0]


def quantile_groups(metrics: Sequence[Metric]) -> list[list[int]]:
    """Positions of quantile metrics; those of the same values stand together."""
    groups: dict[tuple[str, tuple[Sum, ...]], list[int]] = {}
    for m, metric in enumerate(metrics):
        if metric.quantile is not None:
            groups.setdefault((metric.quantile[0], metric.units), []).append(m)
    return list(groups.values())


def distinct_sums(metrics: Sequence[Metric]) -> list[Sum]:
    """The distinct sums of the metrics, in order of first use."""
    return list(dict.fromkeys(s for m in metrics for s in m.sums))
