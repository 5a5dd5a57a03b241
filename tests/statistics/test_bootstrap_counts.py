from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import statistics as naive

from omnijudge.statistics.bootstrap import cluster_counts, counts_from_indices
from omnijudge_kernels.bootstrap import bootstrap_counts
from omnijudge_kernels.resampling import exact_columns, replicate_sums
from omnijudge_kernels.streams import stream_keys, stream_words


def test_words_are_splitmix64() -> None:
    # First outputs of the reference implementation for seed 1234567.
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert naive.splitmix_words(1234567, 3) == published
    assert stream_words(np.array([1234567], np.uint64), 3)[0].tolist() == published


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 64, 251])
def test_kernel_counts_are_those_of_the_definition(n_clusters: int) -> None:
    keys = stream_keys(5, 0, 40)
    expected = [naive.resample_counts(int(k), n_clusters) for k in keys]
    assert bootstrap_counts(n_clusters, keys).tolist() == expected


def test_streams_of_different_seeds_and_purposes_differ() -> None:
    keys = np.concatenate(
        [stream_keys(seed, 0, 1000, purpose) for seed in (0, 1, -1) for purpose in (0, 1)]
    )
    assert len(np.unique(keys)) == len(keys)


def test_counts_without_numba_are_the_same() -> None:
    script = (
        "import hashlib, sys\n"
        "from omnijudge.statistics.bootstrap import cluster_counts\n"
        "made = [cluster_counts(v, b, s) for v, b, s in ((1, 3, 0), (20, 60, 7), (251, 900, -3))]\n"
        "assert 'numba' not in sys.modules\n"
        "print(hashlib.sha256(b''.join(m.tobytes() for m in made)).hexdigest())\n"
    )
    plain = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.strip()
    made = [cluster_counts(v, b, s) for v, b, s in ((1, 3, 0), (20, 60, 7), (251, 900, -3))]
    assert plain == hashlib.sha256(b"".join(m.tobytes() for m in made)).hexdigest()


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_kernel_counts_do_not_depend_on_threads(threads: int) -> None:
    keys = stream_keys(11, 0, 1001)
    assert np.array_equal(bootstrap_counts(60, keys, threads=threads), bootstrap_counts(60, keys))


def test_more_replicates_only_add_rows() -> None:
    assert np.array_equal(cluster_counts(30, 500, 2)[:100], cluster_counts(30, 100, 2))


def test_counts_look_multinomial() -> None:
    from scipy.stats import chi2

    n_clusters, replicates = 50, 20_000
    counts = cluster_counts(n_clusters, replicates, 1)
    assert (counts.sum(axis=1) == n_clusters).all()
    totals = counts.sum(axis=0, dtype=np.int64)
    statistic = ((totals - replicates) ** 2 / replicates).sum()
    assert 1e-4 < chi2.sf(statistic, n_clusters - 1) < 1 - 1e-4
    seen = np.bincount(counts.ravel(), minlength=6)[:6] / counts.size
    share = [1.0]
    for k in range(1, 6):
        share.append(share[-1] * (n_clusters - k + 1) / k / (n_clusters - 1))
    expected = np.array(share) * (1 - 1 / n_clusters) ** n_clusters
    assert np.allclose(seen, expected, atol=5 * np.sqrt(expected / counts.size))
    correlation = np.corrcoef(counts.T.astype(float))[np.triu_indices(n_clusters, 1)]
    assert abs(correlation.mean() + 1 / (n_clusters - 1)) < 1e-3
    assert np.abs(correlation).max() < 0.05


def test_explicit_resamples() -> None:
    assert counts_from_indices([[0, 0, 2], [1, 1, 1]], 3).tolist() == [[2, 0, 1], [0, 3, 0]]
    many = counts_from_indices([[0] * 300], 2)
    assert many.tolist() == [[300, 0]]


def test_no_clusters_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one cluster"):
        cluster_counts(0, 10, 0)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.floats(-1e6, 1e6, allow_subnormal=False), st.integers(-50, 50), st.floats(0, 1)
        ),
        min_size=1,
        max_size=12,
    ),
    st.integers(0, 2**32),
)
def test_sums_of_rounded_columns_are_exact(rows: list[tuple[float, int, float]], seed: int) -> None:
    sums = np.array(rows, float)
    n_clusters = len(sums)
    counts = cluster_counts(n_clusters, 9, seed)
    rounded = exact_columns(sums.T, n_clusters).T
    assert np.array_equal(rounded[:, 1], sums[:, 1])
    largest = np.abs(sums).max(axis=0)
    finest = 2.0**-1000  # no grid is finer
    assert (np.abs(rounded - sums) <= largest * n_clusters * 2.0**-50 + finest).all()
    exact = naive.exact_replicates(rounded, counts)
    assert replicate_sums(counts, sums).tolist() == [[float(x) for x in row] for row in exact]


def test_sums_keep_the_shape_of_the_columns() -> None:
    counts = cluster_counts(5, 7, 0)
    sums = np.arange(5 * 2 * 3, dtype=float).reshape(5, 2, 3)
    assert np.array_equal(
        replicate_sums(counts, sums), np.einsum("bv,vij->ijb", counts.astype(float), sums)
    )


@pytest.mark.parametrize("threads", ["1", "2", "8"])
def test_sums_do_not_depend_on_blas_threads(threads: str) -> None:
    script = (
        "import hashlib, numpy as np\n"
        "from omnijudge.statistics.bootstrap import cluster_counts\n"
        "from omnijudge_kernels.resampling import replicate_sums\n"
        "sums = np.random.default_rng(0).random((401, 90))\n"
        "made = replicate_sums(cluster_counts(401, 3001, 1), sums)\n"
        "print(hashlib.sha256(made.tobytes()).hexdigest())\n"
    )
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    seen = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **dict.fromkeys(names, threads)},
    ).stdout.strip()
    sums = np.random.default_rng(0).random((401, 90))
    here = replicate_sums(cluster_counts(401, 3001, 1), sums)
    assert seen == hashlib.sha256(here.tobytes()).hexdigest()
