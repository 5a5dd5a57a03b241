"""200 systems: the one that is better is found, and nobody is found among equals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from omnijudge.statistics.comparison import all_differences, compare_to_baseline
from omnijudge.statistics.intervals import IntervalSettings
from omnijudge.statistics.metric import Array, Metric, Sum, ratio
from omnijudge.statistics.ranking import rank_systems

SUMS = [Sum("target", "success"), Sum("target")]
ACCURACY = Metric("accuracy", "all", tuple(SUMS), ratio, ())
SYSTEMS, VIDEOS, BEST = 200, 250, 17
STANDARD_ERROR, SLOPE = 0.0202, 0.200  # of a paired difference; accuracy per unit of ability
LEVEL = 0.5  # success is as likely as failure
QUICK = IntervalSettings(interval="jackknife")


def nightly(seed: int, better_by: float) -> Array:
    """Sums (S, V, 2); one system is better than the rest by so many standard errors."""
    rng = np.random.default_rng([7, seed])
    targets = np.clip(1 + np.floor(rng.gamma(1, 6, VIDEOS)), 1, 25).astype(int)
    difficulty = 0.9 * rng.standard_normal(VIDEOS)
    ability = np.zeros((SYSTEMS, 1))
    ability[BEST] = better_by * STANDARD_ERROR / SLOPE
    chance = expit(ability + difficulty + 0.5 * rng.standard_normal((SYSTEMS, VIDEOS)))
    success = rng.binomial(targets, chance)
    return np.stack([success, np.broadcast_to(targets, success.shape)], -1).astype(float)


def found_among_all_pairs(seed: int, better_by: float) -> tuple[bool, bool]:
    """Is the best system clearly better than some other; is any other pair apart?"""
    pairs = all_differences(ACCURACY, nightly(seed, better_by), QUICK)
    clear = pairs.p_adjusted <= 0.05
    best = (pairs.first == BEST) | (pairs.second == BEST)
    return bool((clear & best).any()), bool((clear & ~best).any())


def found_against_a_baseline(seed: int, better_by: float) -> tuple[bool, bool]:
    (found,) = compare_to_baseline([ACCURACY], list(nightly(seed, better_by)), 0, SUMS, QUICK)
    clear = found.p_adjusted <= 0.05
    best = found.second == BEST
    return bool(clear[best].any()), bool(clear[~best].any())


def test_the_standard_error_is_what_it_is_said_to_be() -> None:
    values = [ratio(nightly(1000 + s, 0.0).sum(axis=1)) for s in range(20)]
    differences = np.concatenate([v[1::2] - v[::2] for v in values])
    assert differences.std() == pytest.approx(STANDARD_ERROR, rel=0.05)
    gain = [
        ratio(nightly(2000 + s, 4.0).sum(axis=1))[BEST]
        - ratio(nightly(2000 + s, 0.0).sum(axis=1))[BEST]
        for s in range(40)
    ]
    assert np.mean(gain) == pytest.approx(4 * STANDARD_ERROR, rel=0.07)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_one_better_by_four_standard_errors_is_found() -> None:
    found = [found_among_all_pairs(seed, 4.0) for seed in range(100)]
    assert sum(best for best, _ in found) >= 90
    assert sum(other for _, other in found) <= 7


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_nobody_is_found_among_equals() -> None:
    found = [found_against_a_baseline(seed, 0.0) for seed in range(500)]
    assert sum(a or b for a, b in found) <= 0.07 * 500


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_no_pair_is_found_among_equals() -> None:
    found = [found_among_all_pairs(seed, 0.0) for seed in range(500)]
    assert sum(a or b for a, b in found) <= 0.07 * 500


def test_found_and_not_found_in_short() -> None:
    assert found_among_all_pairs(0, 6.0) == (True, False)
    assert found_against_a_baseline(0, 7.0) == (True, False)
    equals = [found_against_a_baseline(seed, 0.0) for seed in range(3)]
    assert sum(a or b for a, b in equals) <= 1


def eight_tied(seed: int, videos: int = 60) -> tuple[bool, bool]:
    """Eight equal systems: does every rank interval say so; does the winner's cover the truth?"""
    data = [nightly(seed, 0.0)[s, :videos] for s in range(8)]
    (found,) = rank_systems([ACCURACY], data, SUMS, IntervalSettings(replicates=999))
    assert found.winner_low is not None
    assert found.winner_high is not None
    # Any rank is right, so only the whole range is.
    ranks = bool(((found.rank_low == 1) & (found.rank_high == 8)).all())
    return ranks, found.winner_low <= LEVEL <= found.winner_high


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_ranks_and_winner_of_tied_systems() -> None:
    held = [eight_tied(seed) for seed in range(300)]
    assert sum(ranks for ranks, _ in held) >= 0.93 * 300
    assert sum(winner for _, winner in held) >= 0.94 * 300


def test_ranks_and_winner_of_tied_systems_in_short() -> None:
    held = [eight_tied(seed) for seed in range(6)]
    assert sum(ranks for ranks, _ in held) >= 5
    assert sum(winner for _, winner in held) >= 5
