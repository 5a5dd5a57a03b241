"""K4 without Numba: counts of resamples in plain NumPy, and sums of resamples by BLAS.

A resample is a row of counts, one per cluster, so all replicates of a sum are one matrix product.
Products are exact: columns are first rounded to a grid on which every sum of a resample has a
float64, so neither the BLAS, its threads nor the chunking can change a bit of a result.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from omnijudge_kernels.streams import Words, stream_words

Array = npt.NDArray[np.float64]
Counts = npt.NDArray[np.unsignedinteger]

_CHUNK_DRAWS = 1 << 20
_CHUNK_REPLICATES = 2500
_CHUNK_WEIGHTS = 16_000_000  # counts turned into floating point at once
# A product of so many multiplications is done before a second thread of the BLAS has woken up;
# on a busy machine waiting for it costs many times the work.
_ONE_THREAD = 1 << 18
_FEWEST_REPLICATES = 16


def bootstrap_counts_small(
    n_clusters: int, keys: Words, out: npt.NDArray[np.uint8] | None = None
) -> npt.NDArray[np.uint8]:
    """`omnijudge_kernels.bootstrap.bootstrap_counts` without Numba."""
    if out is None:
        out = np.empty((len(keys), n_clusters), np.uint8)
    step = max(1, _CHUNK_DRAWS // n_clusters)
    half = np.uint64(32)
    size = np.uint64(n_clusters)
    for first in range(0, len(keys), step):
        words = stream_words(keys[first : first + step], (n_clusters + 1) // 2)
        rows = len(words)
        drawn = np.empty((rows, 2 * words.shape[1]), np.int64)
        drawn[:, 0::2] = ((words & np.uint64(0xFFFFFFFF)) * size) >> half
        drawn[:, 1::2] = ((words >> half) * size) >> half
        drawn += np.arange(rows)[:, None] * n_clusters
        flat = np.bincount(drawn[:, :n_clusters].ravel(), minlength=rows * n_clusters)
        out[first : first + rows] = flat.reshape(rows, n_clusters)
    return out


def exact_columns(columns: Array, most: int) -> Array:
    """Columns rounded so that any sum of up to ``most`` of their values is exact in float64.

    A value moves by at most ``most * 2**-51`` of the largest of its column (or 2**-1000).

    Args:
        columns: (..., V) values, each row with its own grid.
        most: number of values a sum may have.

    Returns:
        Array of the same shape; integers below 2**51 / most come back unchanged.
    """
    largest = np.abs(columns).max(axis=-1, keepdims=True, initial=0.0)
    # frexp: largest < 2**exponent, so a sum stays below 2**(exponent + bits of most).
    exponent = np.frexp(largest)[1] + int(most).bit_length()
    places = np.minimum(52 - exponent, 1000)
    return np.asarray(np.ldexp(np.rint(np.ldexp(columns, places)), -places))


def replicate_sums(counts: Counts, sums: Array, out: Array | None = None) -> Array:
    """Sums of each replicate, exact on the grid of `exact_columns`.

    Args:
        counts: (B, V) how often each cluster is drawn (or any other small whole weights).
        sums: (V, ...) sums per cluster.
        out: (..., B) array to fill.

    Returns:
        (..., B): replicates are the last, contiguous axis.
    """
    n_replicates, n_clusters = counts.shape
    columns, short = _rounded(sums.reshape(n_clusters, -1), counts)
    result = np.empty((*sums.shape[1:], n_replicates)) if out is None else out
    flat = result.reshape(len(columns), n_replicates)
    for rows, kind in ((short, np.float32), (~short, np.float64)):
        if rows.any():
            for chunk, product in _products(columns[rows].astype(kind), counts):
                if rows.all():
                    flat[:, chunk] = product
                else:
                    flat[rows, chunk] = product
    return result


def ratio_replicates(
    counts: Counts, numerators: Array, denominators: Array, out: Array | None = None
) -> Array:
    """Ratios of sums in each replicate.

    Args:
        counts: (B, V) how often each cluster is drawn.
        numerators: (V, S) sums per cluster, one column per system.
        denominators: (V, S).
        out: (S, B) array to fill.

    Returns:
        (S, B) ratios; NaN where the denominator is not positive.
    """
    n_systems = numerators.shape[1]
    columns, short = _rounded(np.concatenate([numerators, denominators], axis=1), counts)
    result = np.empty((n_systems, len(counts))) if out is None else out
    kind = np.float32 if short.all() else np.float64
    for chunk, product in _products(columns.astype(kind), counts):
        top, bottom = product[:n_systems], product[n_systems:]
        with np.errstate(divide="ignore", invalid="ignore"):
            np.divide(top, bottom, out=result[:, chunk], dtype=np.float64)
        if not (bottom > 0).all():
            result[:, chunk][bottom <= 0] = np.nan
    return result


def _rounded(sums: Array, counts: Counts) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Columns (C, V) on their grid, and which of them have exact sums even in float32."""
    columns = np.ascontiguousarray(sums.T, np.float64)
    most = max(1, int(counts.sum(axis=1, dtype=np.uint32).max(initial=0)))
    columns = exact_columns(columns, most)
    # float32 has 24 bits: enough for counts of events, at half the price.
    short = (columns == np.rint(columns)).all(axis=1)
    short &= np.abs(columns).max(axis=1, initial=0.0) * most < 2**24
    return columns, short


def _products(
    columns: npt.NDArray[np.floating], counts: Counts
) -> Iterator[tuple[slice, npt.NDArray[np.floating]]]:
    """Sums of all columns for some replicates at a time; the array is used again."""
    step = min(_CHUNK_REPLICATES, max(len(counts), 1))
    step = max(1, min(step, _CHUNK_WEIGHTS // max(counts.shape[1], 1)))
    few = _ONE_THREAD // max(len(columns) * counts.shape[1], 1)
    if few >= _FEWEST_REPLICATES:
        step = min(step, few)
    weights = np.empty((step, counts.shape[1]), columns.dtype)
    product = np.empty((len(columns), step), columns.dtype)
    for first in range(0, len(counts), step):
        block = counts[first : first + step]
        np.copyto(weights[: len(block)], block, casting="unsafe")
        if len(block) < step:
            product = np.empty((len(columns), len(block)), columns.dtype)
        np.matmul(columns, weights[: len(block)].T, out=product)
        yield slice(first, first + len(block)), product
