"""Measures of agreement between two raters, as functions of sums over items.

Each maps (..., k) sums to (...), NaN where undefined, so that leaving out a cluster or resampling
clusters is a subtraction or a matrix product. Two kinds of sums:

* a table (..., c * c): how often the first rater chose category i and the second j;
* moments (..., 6): n, sum x, sum y, sum x^2, sum y^2, sum x*y of scores shifted by one constant.
"""

from __future__ import annotations

import numpy as np

from omnijudge_kernels.resampling import Array

_ZERO = 1e-12  # relative: a variance this small is rounding


def _divide(top: Array, bottom: Array, size: Array) -> Array:
    """Ratio; NaN where the denominator is nothing but the rounding of numbers of some size."""
    known = np.abs(bottom) > _ZERO * size
    return np.asarray(np.divide(top, bottom, out=np.full(np.shape(bottom), np.nan), where=known))


def _square(table: Array) -> Array:
    size = round(table.shape[-1] ** 0.5)
    return table.reshape(*table.shape[:-1], size, size)


def weighted_kappa(table: Array, disagreement: Array) -> Array:
    """Cohen's kappa, 1 - observed / expected disagreement (Cohen 1968).

    Args:
        table: (..., c * c) counts.
        disagreement: (c, c) cost of each pair of categories, 0 on the diagonal.
    """
    cells = _square(table)
    n = cells.sum(axis=(-2, -1))
    observed = (cells * disagreement).sum(axis=(-2, -1)) * n
    rows, columns = cells.sum(axis=-1), cells.sum(axis=-2)
    expected = np.einsum("...i,ij,...j->...", rows, disagreement, columns)
    return 1 - _divide(observed, expected, n * n)


def kappa(table: Array) -> Array:
    """Cohen's kappa (1960); undefined if both raters use one and the same category only."""
    size = round(table.shape[-1] ** 0.5)
    return weighted_kappa(table, 1 - np.eye(size))


def quadratic_kappa(table: Array) -> Array:
    """Kappa with squared distances between ordered categories."""
    place = np.arange(round(table.shape[-1] ** 0.5), dtype=np.float64)
    return weighted_kappa(table, (place[:, None] - place) ** 2)


def gwet_ac1(table: Array) -> Array:
    """Gwet's AC1 (2008); 1 if only one category is ever used."""
    cells = _square(table)
    categories = cells.shape[-1]
    n = cells.sum(axis=(-2, -1))
    agreed = _divide(np.trace(cells, axis1=-2, axis2=-1), n, np.ones_like(n))
    share = (cells.sum(axis=-1) + cells.sum(axis=-2)) / (2 * np.maximum(n, 1))[..., None]
    chance = (share * (1 - share)).sum(axis=-1) / max(categories - 1, 1)
    return _divide(agreed - chance, 1 - chance, np.ones_like(n))


def nominal_alpha(table: Array) -> Array:
    """Krippendorff's alpha for two raters and unordered categories."""
    cells = _square(table)
    n = cells.sum(axis=(-2, -1))
    uses = cells.sum(axis=-1) + cells.sum(axis=-2)
    apart = n - np.trace(cells, axis1=-2, axis2=-1)
    expected = 4 * n * n - (uses**2).sum(axis=-1)
    return 1 - _divide((2 * n - 1) * 2 * apart, expected, n * n)


def _variances(moments: Array) -> tuple[Array, Array, Array, Array]:
    """n times the variances of x and y and their covariance, and the size of the numbers."""
    n, x, y, xx, yy, xy = (moments[..., i] for i in range(6))
    count = np.maximum(n, 1)
    size = xx + yy + np.abs(xy)
    return xx - x * x / count, yy - y * y / count, xy - x * y / count, size


def pearson(moments: Array) -> Array:
    """Correlation; undefined if a rater is constant."""
    sx, sy, sxy, size = _variances(moments)
    constant = (sx <= _ZERO * size) | (sy <= _ZERO * size)
    scale = np.sqrt(np.where(constant, np.nan, sx) * np.where(constant, np.nan, sy))
    return np.asarray(np.clip(sxy / scale, -1, 1))


def lin_concordance(moments: Array) -> Array:
    """Lin's concordance correlation (1989); undefined if both raters are constant and equal."""
    n, x, y = (moments[..., i] for i in range(3))
    sx, sy, sxy, size = _variances(moments)
    shift = (x - y) ** 2 / np.maximum(n, 1)
    return _divide(2 * sxy, sx + sy + shift, size)


def intraclass(moments: Array) -> Array:
    """ICC(A,1): two-way random effects, absolute agreement, single rater (McGraw, Wong 1996)."""
    n, x, y = (moments[..., i] for i in range(3))
    sx, sy, sxy, size = _variances(moments)
    items = np.maximum(n - 1, 1)
    between = (sx + sy + 2 * sxy) / 2 / items  # mean square of the items
    residual = (sx + sy - 2 * sxy) / 2 / items
    raters = (x - y) ** 2 / (2 * np.maximum(n, 1))  # mean square of the raters
    bottom = between + residual + 2 * (raters - residual) / np.maximum(n, 1)
    found = _divide(between - residual, bottom, size / items)
    return np.where(n > 1, found, np.nan)


def interval_alpha(moments: Array) -> Array:
    """Krippendorff's alpha for two raters and scores with squared distances."""
    n, x, y, xx, yy, xy = (moments[..., i] for i in range(6))
    values = 2 * n
    apart = xx + yy - 2 * xy
    expected = values * (xx + yy) - (x + y) ** 2
    return 1 - _divide((values - 1) * apart, expected, values * (xx + yy))


def spearman(table: Array, shape: tuple[int, int]) -> Array:
    """Spearman's rho from a table (..., rows * columns) of ordered values, ties at mid-ranks."""
    cells = table.reshape(*table.shape[:-1], *shape)
    n = np.maximum(cells.sum(axis=(-2, -1)), 1)
    rows, columns = cells.sum(axis=-1), cells.sum(axis=-2)
    middle = (n / 2)[..., None]
    a = np.cumsum(rows, axis=-1) - rows / 2 - middle
    b = np.cumsum(columns, axis=-1) - columns / 2 - middle
    sab = np.einsum("...ij,...i,...j->...", cells, a, b)
    saa, sbb = (rows * a * a).sum(axis=-1), (columns * b * b).sum(axis=-1)
    return _divide(sab, np.sqrt(saa * sbb), n)


def kendall(table: Array, shape: tuple[int, int]) -> Array:
    """Kendall's tau-b from a table (..., rows * columns) of ordered values."""
    cells = table.reshape(*table.shape[:-1], *shape)
    n = cells.sum(axis=(-2, -1))
    # Cells strictly after in both orders, and strictly after in one and before in the other.
    below = np.cumsum(cells[..., ::-1, :], axis=-2)[..., ::-1, :] - cells
    right = np.cumsum(below[..., ::-1], axis=-1)[..., ::-1] - below
    left = np.cumsum(below, axis=-1) - below
    score = (cells * (right - left)).sum(axis=(-2, -1))
    pairs = n * (n - 1) / 2
    rows, columns = cells.sum(axis=-1), cells.sum(axis=-2)
    untied_rows = pairs - (rows * (rows - 1) / 2).sum(axis=-1)
    untied_columns = pairs - (columns * (columns - 1) / 2).sum(axis=-1)
    return _divide(score, np.sqrt(untied_rows * untied_columns), np.ones_like(n))
