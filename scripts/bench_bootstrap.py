"""How fast is the cluster bootstrap, beside what else one could use? Prints ratios, writes JSON.

Every rival runs in the same process, interleaved with ours, on the same data, with the same number
of replicates and of threads. Best of several rounds. A ratio above 1 means ours is faster.

    python scripts/bench_bootstrap.py [--quick] [--threads N] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a small case, some seconds")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    # The BLAS reads these once, when NumPy is imported.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(options.threads)
    clusters, systems, replicates = (250, 40, 2000) if options.quick else (1112, 200, 10_000)
    rounds = min(options.rounds, 2) if options.quick else options.rounds
    figures = measure(clusters, systems, replicates, options.threads, rounds)
    figures |= all_intervals(250, systems, replicates)
    for name, value in figures.items():
        print(f"{name:42s} {value:12.4f}" if isinstance(value, float) else f"{name:42s} {value}")
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0


def measure(
    clusters: int, systems: int, replicates: int, threads: int, rounds: int
) -> dict[str, Any]:
    """Seconds and ratios for one size of problem."""
    import numpy as np
    from scipy.stats import bootstrap

    from omnijudge.statistics.bootstrap import Ordered, bca_interval, percentile_interval
    from omnijudge.statistics.pairs import pair_intervals
    from omnijudge_kernels.bootstrap import bootstrap_counts, pairwise_intervals
    from omnijudge_kernels.resampling import exact_columns, ratio_replicates
    from omnijudge_kernels.streams import stream_keys

    rng = np.random.default_rng(0)
    units = rng.poisson(4, clusters)[:, None]
    skill = np.linspace(0.3, 0.8, systems)
    tp = rng.binomial(units, skill)
    fp, fn = rng.poisson(1.5 * (1.1 - skill), (clusters, systems)), units - tp
    numerators = (2 * tp).astype(np.float64)
    denominators = (2 * tp + fp + fn).astype(np.float64)
    keys = stream_keys(0, 0, replicates)
    seconds: dict[str, list[float]] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = work()
        seconds.setdefault(name, []).append(time.perf_counter() - start)
        return result

    def ours() -> Any:
        counts = timed("part: counts", lambda: bootstrap_counts(clusters, keys, threads=threads))
        found = timed(
            "part: products and ratios", lambda: ratio_replicates(counts, numerators, denominators)
        )
        top, bottom = numerators.sum(axis=0), denominators.sum(axis=0)
        left = ((top - numerators) / (bottom - denominators)).T

        def intervals() -> Any:
            ordered = Ordered.of(found)
            return (
                percentile_interval(ordered, 0.95),
                bca_interval(ordered, top / bottom, left, 0.95),
            )

        return found, top / bottom, left, timed("part: percentile and BCa", intervals)

    def f1(tp: Any, fp: Any, fn: Any, axis: int = -1) -> Any:
        twice = 2 * tp.sum(axis)
        return twice / (twice + fp.sum(axis) + fn.sum(axis))

    middle = systems // 2
    columns = tuple(x[:, middle].astype(float) for x in (tp, fp, fn))

    def by_scipy(method: str) -> Any:
        return bootstrap(
            columns,
            f1,
            paired=True,
            vectorized=True,
            n_resamples=replicates,
            method=method,
            batch=1000,
            rng=np.random.default_rng(1),
        )

    both = exact_columns(np.concatenate([numerators, denominators], axis=1).T, clusters)
    short = both.astype(np.float32)
    weights = rng.integers(0, 3, (min(2500, replicates), clusters)).astype(np.float32)
    product = np.empty((len(short), len(weights)), np.float32)

    def product_alone() -> None:
        for _ in range(0, replicates, len(weights)):
            np.matmul(short, weights.T, out=product)

    found, value, left, _ = ours()  # compiles
    pairwise_intervals(found[:3], 0.025, 0.975)
    pair_intervals(found, 0.95, "bca", value=value, leave_one_out=left, threads=threads)
    seconds.clear()
    some = min(systems - 1, 199)
    work: dict[str, Callable[[], Any]] = {
        "ours: all systems": ours,
        "floor: the product alone": product_alone,
        "scipy BCa: one system": lambda: by_scipy("BCa"),
        "scipy percentile: one system": lambda: by_scipy("percentile"),
        "ours: all pairs": lambda: pairwise_intervals(found, 0.025, 0.975, threads=threads),
        "ours: all pairs, BCa": lambda: pair_intervals(
            found, 0.95, "bca", value=value, leave_one_out=left, threads=threads
        ),
        "numpy sort: pairs of one system": lambda: np.sort(found[1 : some + 1] - found[0], axis=1)[
            :, [0, 1, -2, -1]
        ],
    }
    for _ in range(rounds):
        for name, run in work.items():
            timed(name, run)
    if find_spec("arch"):
        from arch.bootstrap import IIDBootstrap

        def by_arch() -> Any:
            resampler = IIDBootstrap(*columns, seed=1)
            return resampler.conf_int(
                lambda a, b, c: np.atleast_1d(f1(a, b, c)), replicates, method="bca"
            )

        timed("arch BCa: one system", by_arch)

    best = {name: min(values) for name, values in seconds.items()}
    pairs = systems * (systems - 1) // 2
    own = best["ours: all systems"]
    result: dict[str, Any] = {
        "clusters": clusters,
        "systems": systems,
        "replicates": replicates,
        "threads": threads,
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        **{f"seconds, {name}": value for name, value in best.items()},
        "ratio, scipy BCa to ours": systems * best["scipy BCa: one system"] / own,
        "ratio, scipy percentile to ours": systems * best["scipy percentile: one system"] / own,
        "ratio, ours to the product alone": own / best["floor: the product alone"],
        "ratio, numpy sort to ours, all pairs": (
            best["numpy sort: pairs of one system"] * pairs / some / best["ours: all pairs"]
        ),
    }
    if "arch BCa: one system" in best:
        result["ratio, arch BCa to ours"] = systems * best["arch BCa: one system"] / own
    return result


def all_intervals(clusters: int, systems: int, replicates: int) -> dict[str, Any]:
    """What all intervals of a run cost, as a multiple of K4 for each metric of each group.

    The metrics are those of OmniInteract, delays included; six units to a cluster. K4 is counts,
    products, percentile and BCa of one metric of all systems. Processor seconds.
    """
    import numpy as np

    from omnijudge.benchmarks.omniinteract import benchmark
    from omnijudge.benchmarks.omniinteract.options import Options
    from omnijudge.statistics.bootstrap import (
        Ordered,
        bca_interval,
        cluster_counts,
        percentile_interval,
    )
    from omnijudge.statistics.comparison import all_differences
    from omnijudge.statistics.intervals import IntervalSettings, UnitValues, metric_intervals
    from omnijudge.statistics.metric import distinct_sums
    from omnijudge_kernels.resampling import ratio_replicates

    rng = np.random.default_rng(1)
    metrics = benchmark.metrics(Options())
    sums = distinct_sums(metrics)
    data = [rng.integers(0, 9, (clusters, len(sums))).astype(float) for _ in range(systems)]
    delays = {}
    for m, metric in enumerate(metrics):
        if metric.quantile is not None:
            units = 6 * clusters if metric.group == "all" else 6 * clusters // 4
            for s in range(systems):
                delays[s, m] = UnitValues(rng.gamma(2, 1, units), rng.integers(0, clusters, units))
    settings = IntervalSettings(replicates=replicates)
    seconds: dict[str, list[float]] = {}

    def timed(name: str, work: Callable[[], Any]) -> None:
        start = time.process_time()
        work()
        seconds.setdefault(name, []).append(time.process_time() - start)

    def k4() -> None:
        counts = cluster_counts(clusters, replicates, 0)
        top = np.stack([d[:, 0] for d in data], axis=1)
        bottom = top + np.stack([d[:, 1] for d in data], axis=1)
        value = top.sum(axis=0) / bottom.sum(axis=0)
        left = ((top.sum(axis=0) - top) / (bottom.sum(axis=0) - bottom)).T
        ordered = Ordered.of(ratio_replicates(counts, top, bottom))
        percentile_interval(ordered, 0.95)
        bca_interval(ordered, value, left, 0.95)

    first = next(m for m in metrics if m.quantile is None and len(m.sums) == 2)
    stack = np.stack(data)[:, :, [sums.index(x) for x in first.sums]]
    work = {
        "all intervals: K4, one metric": k4,
        "all intervals: every metric": lambda: metric_intervals(
            metrics, data, sums, settings, unit_values=delays
        ),
    }
    k4()  # compiles
    for _ in range(3):
        for name, run in work.items():
            timed(name, run)
    timed("all intervals: sign flips of all pairs, one metric", lambda: all_differences(
        first, stack, settings
    ))  # fmt: skip
    best = {name: min(values) for name, values in seconds.items()}
    every, one = best["all intervals: every metric"], best["all intervals: K4, one metric"]
    return {
        "all intervals: metrics of groups": len(metrics),
        **{f"seconds, {name}": value for name, value in best.items()},
        "ratio, all intervals to K4 for each": every / (one * len(metrics)),
    }


if __name__ == "__main__":
    raise SystemExit(main())
