"""A cheap judge that is nearly right everywhere and far off in a few videos."""

from __future__ import annotations

import numpy as np
import pytest

from omnijudge.statistics.gold_sample import random_order
from omnijudge.statistics.metric import Metric, Sum, ratio
from omnijudge.statistics.rectify import rectify

SUMS = (Sum("unit", "score"), Sum("unit"))
MEAN = Metric("mean", "all", SUMS, ratio, ())
CLUSTERS, TAKEN, DRAWS = 70, 25, 400


def judges() -> tuple[np.ndarray, np.ndarray]:
    """A system near the top: small differences in every video, three that are large."""
    rng = np.random.default_rng(5)
    units = np.clip(1 + np.floor(rng.gamma(1.0, 6.0, CLUSTERS)), 1, 12)
    level = np.clip(0.93 + 0.06 * rng.standard_normal(CLUSTERS), 0.5, 1.0)
    cheap_level = level + 0.004 * rng.standard_normal(CLUSTERS)
    cheap_level[[3, 30, 60]] += 0.5
    return tuple(np.stack([x * units, units], axis=1) for x in (level, cheap_level))  # type: ignore[return-value]


def coverage(guard: bool) -> float:
    gold, cheap = judges()
    truth = float(ratio(gold.sum(axis=0)))
    hits = 0
    for seed in range(DRAWS):
        sample = random_order(CLUSTERS, seed)[:TAKEN]
        (found,) = rectify(MEAN, gold[None, sample], cheap[None], sample, guard_rare_errors=guard)
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= truth <= found.high
    return hits / DRAWS


def test_rare_large_errors_make_the_interval_too_sure() -> None:
    assert coverage(guard=False) < 0.85


def test_guarded_they_do_not() -> None:
    assert coverage(guard=True) > 0.93


@pytest.mark.parametrize("guard", [False, True])
def test_it_is_said(guard: bool) -> None:
    gold, cheap = judges()
    sample = np.array([k for k in range(CLUSTERS) if k not in (3, 30, 60)][:TAKEN])
    (found,) = rectify(MEAN, gold[None, sample], cheap[None], sample, guard_rare_errors=guard)
    assert found.method == ("gold only" if guard else "rectified")
    said = found.reason if guard else found.warning
    assert said is not None
    assert "differ by much in only 0 of the sampled clusters" in said
    assert (found.warning is None) == guard
