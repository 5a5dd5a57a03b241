"""How the clusters with gold labels were chosen: at random, or at random inside strata."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnijudge_kernels.resampling import Array

Index = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Design:
    """A random sample of n out of N clusters, each stratum sampled on its own.

    Attributes:
        sample: (n,) sampled clusters, ascending.
        stratum: (n,) stratum of each, from 0.
        taken: (H,) sampled clusters of each stratum.
        there: (H,) all clusters of each stratum.
    """

    sample: Index
    stratum: Index
    taken: Index
    there: Index

    @property
    def n(self) -> int:
        """Sampled clusters."""
        return len(self.sample)

    @property
    def total(self) -> int:
        """All clusters."""
        return int(self.there.sum())

    @property
    def strata(self) -> int:
        """Number of strata."""
        return len(self.taken)

    @property
    def weight(self) -> Array:
        """(n,) how many clusters each sampled one stands for."""
        return np.asarray((self.there / np.maximum(self.taken, 1))[self.stratum])

    @property
    def left(self) -> Array:
        """(n,) share of its stratum that was not sampled."""
        return np.asarray((1 - self.taken / np.maximum(self.there, 1))[self.stratum])

    @property
    def part(self) -> Array:
        """(n,) share of all clusters that lie in its stratum."""
        return np.asarray((self.there / max(self.total, 1))[self.stratum])

    @property
    def peers(self) -> Array:
        """(n,) sampled clusters of its stratum."""
        return np.asarray(self.taken[self.stratum], np.float64)

    def centred(self, values: Array) -> Array:
        """Values (..., n) less the mean of their stratum."""
        member = (self.stratum[:, None] == np.arange(self.strata)).astype(np.float64)
        means = values @ (member / np.maximum(self.taken, 1))
        return np.asarray(values - means @ member.T)

    def stratum_sums(self, rows: Array) -> Array:
        """Sums (S, n, k) of the stratum of each sampled cluster, from rows (S, n, k)."""
        member = (self.stratum[:, None] == np.arange(self.strata)).astype(np.float64)
        return np.asarray(np.einsum("snk,nh->shk", rows, member)[:, self.stratum])


def make_design(sample: Index, total: int, strata: Index | None = None) -> Design:
    """Check a sample.

    Args:
        sample: (n,) sampled clusters.
        total: number N of clusters.
        strata: (N,) stratum of each cluster, any integers; one stratum if None.

    Raises:
        ValueError: clusters out of range or sampled twice, or a stratum with one sampled cluster
            out of several, whose spread is unknown.
    """
    sample = np.sort(np.asarray(sample, np.int64))
    if len(np.unique(sample)) != len(sample):
        raise ValueError("a cluster was sampled twice")
    if len(sample) and not (sample[0] >= 0 and sample[-1] < total):
        raise ValueError(f"sampled clusters must lie in 0..{total - 1}")
    if strata is None:
        codes = np.zeros(total, np.int64)
    else:
        if len(strata) != total:
            raise ValueError(f"{len(strata)} strata for {total} clusters")
        codes = np.unique(strata, return_inverse=True)[1].astype(np.int64)
    there = np.bincount(codes)
    taken = np.bincount(codes[sample], minlength=len(there))
    if strata is not None and ((taken < 2) & (taken < there)).any():
        raise ValueError("every stratum needs two sampled clusters, or all of its clusters")
    return Design(sample, codes[sample], taken, there)
