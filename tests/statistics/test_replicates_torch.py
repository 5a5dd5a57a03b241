from __future__ import annotations

import numpy as np
import pytest

from omnijudge.statistics.bootstrap import cluster_counts
from omnijudge.statistics.gpu import replicate_sums_torch
from omnijudge_kernels.resampling import replicate_sums


def devices() -> list[str]:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def test_torch_gives_the_same_sums() -> None:
    rng = np.random.default_rng(0)
    sums = np.stack([rng.random((61, 5)) * 1e3, rng.poisson(4.0, (61, 5))], axis=1)
    counts = cluster_counts(61, 5000, 3)
    expected = replicate_sums(counts, sums)
    for device in devices():
        found = replicate_sums_torch(counts, sums, device)
        assert found.shape == expected.shape == (2, 5, 5000)
        assert np.array_equal(found, expected)
