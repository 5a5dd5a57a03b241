"""Pairs of systems on common samples, against the plain definition and the complete case."""

from __future__ import annotations

import numpy as np
import pytest

from omnijudge.statistics.bootstrap import cluster_counts
from omnijudge.statistics.comparison import all_differences, compare_all, differences_on_common
from omnijudge.statistics.intervals import IntervalSettings
from omnijudge.statistics.metric import Metric, Sum, ratio
from omnijudge.statistics.ranking import best_share, rank_systems

SUMS = [Sum("target", "success"), Sum("target")]
ACCURACY = Metric("accuracy", "all", tuple(SUMS), ratio, ())


def systems(n: int, v: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    targets = rng.integers(1, 9, v)
    skill = np.linspace(0.3, 0.8, n)[:, None]
    met = rng.binomial(targets, np.clip(skill + 0.2 * rng.standard_normal(v), 0, 1))
    return np.stack([met, np.broadcast_to(targets, met.shape)], axis=-1).astype(float)


@pytest.mark.parametrize("interval", ["percentile", "bca", "jackknife"])
def test_complete_systems_need_no_special_way(interval: str) -> None:
    stack = systems(4, 30, 1)
    chosen = IntervalSettings(replicates=1500, interval=interval)  # type: ignore[arg-type]
    counts = cluster_counts(30, 1500, 0) if interval != "jackknife" else None
    (plain,) = compare_all([ACCURACY], list(stack), SUMS, chosen)

    def after(i: int) -> tuple[np.ndarray, np.ndarray]:
        return np.repeat(stack[i : i + 1], 3 - i, axis=0), stack[i + 1 :]

    found = differences_on_common(ACCURACY, 4, after, chosen, counts)
    for name in ("difference", "ci_low", "ci_high", "careful_low", "p_value", "p_adjusted"):
        assert np.allclose(getattr(found, name), getattr(plain, name), rtol=1e-12), name
    assert np.array_equal(found.first, plain.first)
    assert found.interval_method == plain.interval_method


def test_ranks_take_given_differences() -> None:
    stack = systems(5, 40, 2)
    chosen = IntervalSettings(replicates=1500)
    (plain,) = rank_systems([ACCURACY], list(stack), SUMS, chosen)
    given = all_differences(ACCURACY, stack, chosen)
    (found,) = rank_systems([ACCURACY], list(stack), SUMS, chosen, [given])
    assert found.rank_low.tolist() == plain.rank_low.tolist()
    assert found.rank_high.tolist() == plain.rank_high.tolist()
    given.p_adjusted[:] = 1.0
    (open_ranks,) = rank_systems([ACCURACY], list(stack), SUMS, chosen, [given])
    assert set(open_ranks.rank_low.tolist()) == {1}
    assert set(open_ranks.rank_high.tolist()) == {5}


def test_replicates_without_any_value_are_left_out() -> None:
    scores = np.array([[1.0, np.nan, 0.2], [0.5, np.nan, 0.4]])
    assert best_share(scores).tolist() == [0.5, 0.5]


def test_one_system_has_no_pairs() -> None:
    chosen = IntervalSettings(replicates=100)
    found = differences_on_common(ACCURACY, 1, lambda i: (_none(), _none()), chosen)
    assert not len(found.difference)


def _none() -> np.ndarray:
    return np.zeros((0, 3, 2))
