"""Sums of resamples where they are fastest: by BLAS, or on a GPU if there is one and it pays.

The columns are on the grid on which float64 sums are exact, so both give the same bytes.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from omnijudge_kernels import resampling
from omnijudge_kernels.resampling import Array, Counts, exact_columns

# Multiplications below which importing torch costs more than it saves.
_PRODUCTS_WORTH_A_GPU = 500_000_000_000
_CHUNK_REPLICATES = 4096


def replicate_sums(counts: Counts, sums: Array) -> Array:
    """Sums of each replicate, (..., B), from counts (B, V) and sums per cluster (V, ...)."""
    if counts.size * (sums.size // max(len(sums), 1)) >= _PRODUCTS_WORTH_A_GPU and _has_gpu():
        return replicate_sums_torch(counts, sums, "cuda")
    return resampling.replicate_sums(counts, sums)


@cache
def _has_gpu() -> bool:
    if find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def replicate_sums_torch(counts: Counts, sums: Array, device: str) -> Array:
    """`omnijudge_kernels.resampling.replicate_sums` in float64 on a torch device."""
    import torch

    n_replicates, n_clusters = counts.shape
    most = max(1, int(counts.sum(axis=1, dtype=np.int64).max(initial=0)))
    columns = exact_columns(np.ascontiguousarray(sums.reshape(n_clusters, -1).T), most)
    held: Any = torch.from_numpy(columns).to(device)
    result = np.empty((len(columns), n_replicates))
    for first in range(0, n_replicates, _CHUNK_REPLICATES):
        block = np.ascontiguousarray(counts[first : first + _CHUNK_REPLICATES])
        weights = torch.from_numpy(block.astype(np.int32)).to(device).to(torch.float64)
        result[:, first : first + len(block)] = (held @ weights.T).cpu().numpy()
    return result.reshape(*sums.shape[1:], n_replicates)
