"""Special cases that other libraries know: a mean, a ratio, two systems.

statsmodels: the estimator is a regression of gold on cheap influence values, read off at the mean
of all clusters; its variance is HC3 with n - 1 in place of n and the finite correction.

truescore: prediction-powered inference. There the unlabelled units stand beside the labelled ones,
here the sample lies inside all clusters, so its lambda is ours times the share of units outside.
Its variance takes both parts for independent draws and has no finite correction: not compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from omnijudge.statistics.metric import Array, Metric, Sum, ratio
from omnijudge.statistics.rectify import Rectified, rectify, rectify_differences

NEEDED = "needs the dev extra: pip install 'omnijudge[dev]'"
SUMS = (Sum("unit", "score"), Sum("unit"))
# Without bounds the interval is linear, so that its half-width shows the variance.
RATIO = Metric("share", "all", SUMS, ratio, (), bounds=(None, None))
N, SAMPLED = 90, 30


@dataclass(frozen=True)
class Units:
    """Scores of two systems on the units of N clusters, under both judges."""

    cluster: np.ndarray
    gold: np.ndarray
    cheap: np.ndarray
    sample: np.ndarray

    @property
    def labelled(self) -> np.ndarray:
        return np.flatnonzero(np.isin(self.cluster, self.sample))

    def sums(self, scores: Array) -> Array:
        """(2, N, 2): sum of scores and number of units of every cluster."""
        sizes = np.bincount(self.cluster, minlength=N)
        return np.stack(
            [np.stack([np.bincount(self.cluster, s, minlength=N), sizes], axis=1) for s in scores]
        )


def made(seed: int, largest: int) -> Units:
    rng = np.random.default_rng([11, seed])
    cluster = np.repeat(np.arange(N), rng.integers(1, largest + 1, N))
    video = rng.normal(0, 0.15, (2, N))
    gold = 0.5 + video[:, cluster] + rng.normal(0, 0.1, (2, len(cluster)))
    cheap = 1.3 * gold - 0.1 + rng.normal(0, 0.15, gold.shape)
    return Units(cluster, gold, cheap, np.sort(rng.permutation(N)[:SAMPLED]))


def value(found: Rectified) -> tuple[float, float]:
    """Value and half-width of a result that is really rectified, with lambda not clipped."""
    assert found.method == "rectified"
    assert 0 < found.weight < 1
    assert found.value is not None
    assert found.high is not None
    return found.value, found.high - found.value


def regression(
    z: Array, q: Array, middle: float, found: Rectified, finite: bool = True
) -> tuple[float, float]:
    """By statsmodels: fit at the mean cheap influence of all clusters, and its half-width."""
    models = pytest.importorskip("statsmodels.api", reason=NEEDED)
    n = len(z)
    fit = models.OLS(z, models.add_constant(q - q.mean())).fit(cov_type="HC3")
    assert fit.params[1] == pytest.approx(found.weight, rel=1e-9)
    (at,) = fit.predict([[1.0, middle - q.mean()]])
    variance = fit.cov_params()[0, 0] * (n - 1) / n * (1 - n / N)
    assert found.df is not None
    return float(at), float(stats.t.ppf(0.975, found.df) * np.sqrt(variance))


@pytest.mark.parametrize("seed", range(5))
def test_a_mean_is_a_regression_estimate(seed: int) -> None:
    units = made(seed, largest=1)
    gold, cheap, sample = units.sums(units.gold), units.sums(units.cheap), units.sample
    (found,) = rectify(RATIO, gold[:1, sample], cheap[:1], sample)
    y, x = units.gold[0], units.cheap[0]
    assert value(found) == pytest.approx(regression(y[sample], x[sample], x.mean(), found))


def influence(sums: Array, of: Array) -> Array:
    """Of a ratio of sums, at the sums given."""
    top, size = sums.sum(axis=0)
    return (of[:, 0] - top / size * of[:, 1]) / (size / len(sums))


@pytest.mark.parametrize("seed", range(5))
def test_a_ratio_is_a_regression_of_influence_values(seed: int) -> None:
    units = made(seed, largest=9)
    sample = units.sample
    gold, cheap = units.sums(units.gold)[:1, sample], units.sums(units.cheap)[:1]
    (found,) = rectify(RATIO, gold, cheap, sample)
    z, q = influence(gold[0], gold[0]), influence(cheap[0], cheap[0])
    _, half = regression(z, q[sample], 0.0, found)
    assert value(found)[1] == pytest.approx(half, rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_two_systems_are_a_regression_of_differences(seed: int) -> None:
    units = made(seed, largest=1)
    sample = units.sample
    gold, cheap = units.sums(units.gold)[:, sample], units.sums(units.cheap)
    (found,) = rectify_differences(RATIO, gold, cheap, sample, 0)
    y, x = (s[1] - s[0] for s in (units.gold, units.cheap))
    assert value(found) == pytest.approx(regression(y[sample], x[sample], x.mean(), found))


def powered(units: Units, gold: Array, cheap: Array, weight: float) -> float:
    """By truescore, on units whose clusters are declared."""
    truescore = pytest.importorskip("truescore", reason=NEEDED)
    labelled = units.labelled
    outside = 1 - len(labelled) / len(units.cluster)
    found = truescore.ppi_estimate(
        cheap, gold[labelled], labelled, lambda_=weight * outside, clusters=units.cluster
    )
    return float(found.point)


@pytest.mark.parametrize("largest", [1, 9])
@pytest.mark.parametrize("seed", range(5))
def test_means_and_ratios_are_prediction_powered(seed: int, largest: int) -> None:
    units = made(seed, largest)
    gold, cheap, sample = units.sums(units.gold), units.sums(units.cheap), units.sample
    for system, found in enumerate(rectify(RATIO, gold[:, sample], cheap, sample)):
        point = powered(units, units.gold[system], units.cheap[system], found.weight)
        assert value(found)[0] == pytest.approx(point, rel=1e-9)


@pytest.mark.parametrize("largest", [1, 9])
@pytest.mark.parametrize("seed", range(5))
def test_two_systems_are_prediction_powered(seed: int, largest: int) -> None:
    units = made(seed, largest)
    gold, cheap, sample = units.sums(units.gold), units.sums(units.cheap), units.sample
    (found,) = rectify_differences(RATIO, gold[:, sample], cheap, sample, 0)
    point = powered(
        units, units.gold[1] - units.gold[0], units.cheap[1] - units.cheap[0], found.weight
    )
    assert value(found)[0] == pytest.approx(point, rel=1e-9, abs=1e-12)
