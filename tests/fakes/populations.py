"""Invented populations of videos to check intervals on: does a 95 % interval cover 95 %?

Units sit in videos of unequal size; size says something about difficulty; units of a video, and
systems on the same unit, are correlated. The base population has sizes of about 1 + Gamma(1, 6),
capped at 25, and design effects of 1.2 to 2.7; the stress population has 60 % of videos with one
or two units, 10 % with 25, and stronger clustering.

Arrays: R data sets, V videos, M = 25 places for units, k sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import expit

from omnijudge.statistics.metric import Array, Metric, Sum, ratio

PLACES = 25
TASK_SHARES = np.array([0.30, 0.22, 0.18, 0.14, 0.10, 0.06])
TASK_LEVELS = np.array([0.3, -0.4, 0.8, 0.0, -1.0, 0.2])
CORRELATION = 0.6
Generator = np.random.Generator


@dataclass(frozen=True)
class Setting:
    """A population of videos."""

    stress: bool = False

    def sizes(self, rng: Generator, shape: tuple[int, int]) -> Array:
        if not self.stress:
            return np.clip(1 + np.floor(rng.gamma(1.0, 6.0, shape)), 1, PLACES)
        kind = rng.random(shape)
        few, some = rng.integers(1, 3, shape), rng.integers(3, 9, shape)
        return np.where(kind < 0.6, few, np.where(kind < 0.9, some, PLACES)).astype(float)

    def latents(
        self,
        rng: Generator,
        sizes: Array,
        n_systems: int,
        video_sd: float,
        unit_sd: float,
        informative: float = -0.3,
        correlation: float = CORRELATION,
    ) -> list[Array]:
        """Ability of each system on each unit, (R, V, M): shared and own, by video and unit."""
        if self.stress:
            video_sd *= 1.6
        r, v = sizes.shape
        standard = (np.log(sizes) - 1.55) / 0.9
        shared_video = informative * standard + np.sqrt(1 - informative**2) * rng.standard_normal(
            (r, v)
        )
        shared_unit = rng.standard_normal((r, v, PLACES))
        found = []
        for _ in range(n_systems):
            video = np.sqrt(correlation) * shared_video
            video += np.sqrt(1 - correlation) * rng.standard_normal((r, v))
            unit = np.sqrt(correlation) * shared_unit
            unit += np.sqrt(1 - correlation) * rng.standard_normal((r, v, PLACES))
            found.append(video_sd * video[..., None] + unit_sd * unit)
        return found


def _inside(sizes: Array) -> Array:
    return (np.arange(PLACES) < sizes[..., None]).astype(float)


def _f1_units(
    rng: Generator, r: int, v: int, level: float, n: int, delta: float, setting: Setting
) -> list[Array]:
    sizes = setting.sizes(rng, (r, v))
    found = []
    for i, ability in enumerate(setting.latents(rng, sizes, n, 0.9, 1.2)):
        ability = ability + level + (delta if i == 0 else 0.0)
        hit = rng.random(ability.shape) < expit(ability)
        tp = hit * (0.4 + 0.6 * np.sqrt(rng.random(ability.shape)))
        fp = np.minimum(rng.poisson(0.45 * np.exp(np.clip(-0.4 * ability, -3, 1.5))), 6)
        found.append(np.stack([tp, fp, 1.0 - hit], -1) * _inside(sizes)[..., None])
    return found


def _joint_units(
    rng: Generator, r: int, v: int, level: float, n: int, delta: float, setting: Setting
) -> list[Array]:
    sizes = setting.sizes(rng, (r, v))
    abilities = setting.latents(rng, sizes, n, 0.9, 1.0)
    targets = 1 + rng.binomial(3, 0.4, (r, v, PLACES))
    found = []
    for i, ability in enumerate(abilities):
        met = rng.binomial(targets, expit(ability + level + (delta if i == 0 else 0.0)))
        found.append(np.stack([met, targets], -1) * _inside(sizes)[..., None])
    return found


def _paq_units(
    rng: Generator, r: int, v: int, level: float, n: int, delta: float, setting: Setting
) -> list[Array]:
    """A score in quarters over a rare subset that differs between systems."""
    sizes = setting.sizes(rng, (r, v))
    abilities = setting.latents(rng, sizes, n, 0.9, 1.0)
    chances = setting.latents(rng, sizes, n, 1.0, 0.8, 0.0, 0.8)
    found = []
    for i, (ability, chance) in enumerate(zip(abilities, chances, strict=True)):
        asked = rng.random(chance.shape) < expit(chance - 2.35)
        score = np.round(4 * expit(ability + level + (delta if i == 0 else 0.0))) / 4
        found.append(np.stack([score * asked, asked], -1) * _inside(sizes)[..., None])
    return found


def _nccs_units(
    rng: Generator, r: int, v: int, level: float, n: int, delta: float, setting: Setting
) -> list[Array]:
    """Two pairs in 24 % of the videos, most of them worth 0."""
    some = round(0.24 * v)
    mask = np.zeros((r, v, PLACES))
    mask[:, :some, :2] = 1
    found = []
    for i, ability in enumerate(
        setting.latents(rng, np.full((r, v), 5.0), n, 0.7, 0.6, informative=0.0)
    ):
        ability = ability + level + (delta if i == 0 else 0.0)
        a, b = (
            np.clip(ability + 0.35 * rng.standard_normal(ability.shape), 0, 1) for _ in range(2)
        )
        found.append(np.stack([np.sqrt(a * b), np.ones_like(a)], -1) * mask[..., None])
    return found


def videos_per_task(v: int) -> list[int]:
    counts = np.maximum(np.floor(TASK_SHARES * v).astype(int), 1)
    while counts.sum() < v:
        counts[np.argmax(TASK_SHARES * v - counts)] += 1
    while counts.sum() > v:
        counts[np.argmax(counts)] -= 1
    return [int(c) for c in counts]


def _six_units(
    rng: Generator, r: int, v: int, level: float, n: int, delta: float, setting: Setting
) -> list[Array]:
    """Six tasks of unequal size; a tenth of the videos carry units of a second one."""
    task = np.repeat(np.arange(6), videos_per_task(v))
    sizes = setting.sizes(rng, (r, v))
    rare = np.clip(rng.poisson(1.5, (r, v)) + 1, 1, PLACES)
    sizes = np.where(task == 5, rare, sizes)
    abilities = setting.latents(rng, sizes, n, 0.9, 1.0)
    mixed = (rng.random((r, v)) < 0.1)[..., None] & (rng.random((r, v, PLACES)) < 0.4)
    other = np.broadcast_to(rng.integers(0, 5, (r, v))[..., None], (r, v, PLACES))
    tasks = np.where(mixed, other, task[None, :, None])
    member = (tasks[..., None] == np.arange(6)) * _inside(sizes)[..., None]
    found = []
    for i, ability in enumerate(abilities):
        chance = expit(ability + level + TASK_LEVELS[tasks] + (delta if i == 0 else 0.0))
        success = rng.random((r, v, PLACES)) < chance
        found.append(np.concatenate([member * success[..., None], member], -1))
    return found


def f1(sums: Array) -> Array:
    twice = 2 * sums[..., 0]
    whole = twice + sums[..., 1] + sums[..., 2]
    return np.divide(twice, whole, out=np.full_like(whole, np.nan), where=whole > 0)


def average_of_six(sums: Array) -> Array:
    with np.errstate(all="ignore"):
        return (sums[..., :6] / sums[..., 6:]).mean(axis=-1)


def _metric(name: str, k: int, **options: object) -> Metric:
    functions = {"F1": f1, "SIX": average_of_six}
    sums = tuple(Sum("unit", f"{name}_{i}") for i in range(k))
    function = functions.get(name, ratio)
    return Metric(name, "", sums, function, (), **options)  # type: ignore[arg-type]


Units = Callable[[Generator, int, int, float, int, float, Setting], list[Array]]
METRICS = {
    "F1": _metric("F1", 3, denominator=(0, 1, 2)),
    "JOINT": _metric("JOINT", 2),
    "PAQ": _metric("PAQ", 2),
    "NCCS": _metric("NCCS", 2),
    "SIX": _metric("SIX", 12, numerator=tuple(range(6)), denominator=tuple(range(6, 12))),
}
_UNITS: dict[str, Units] = {
    "F1": _f1_units,
    "JOINT": _joint_units,
    "PAQ": _paq_units,
    "NCCS": _nccs_units,
    "SIX": _six_units,
}
LEVELS = {
    "F1_mid": 0.0,
    "F1_low": -4.2,
    "F1_high": 4.0,
    "JOINT_mid": 0.1,
    "JOINT_low": -3.9,
    "PAQ_mid": 0.2,
    "PAQ_high": 2.2,
    "NCCS": -1.05,
    "SIX": 0.0,
}
CORE = ("F1_mid", "F1_low", "F1_high", "JOINT_mid", "JOINT_low", "PAQ_mid", "PAQ_high")


def metric_of(name: str) -> Metric:
    return METRICS[name.split("_")[0]]


def units(
    name: str,
    rng: Generator,
    r: int,
    v: int,
    n_systems: int = 1,
    delta: float = 0.0,
    setting: Setting | None = None,
) -> list[Array]:
    """Per system (R, V, M, k): sums of every unit, 0 where there is none."""
    make = _UNITS[name.split("_")[0]]
    return make(rng, r, v, LEVELS[name], n_systems, delta, setting or Setting())


@cache
def truth(name: str, stress: bool = False) -> float:
    """The metric of 100,000 videos: as good as known, beside the error of 250."""
    rng = np.random.default_rng(99)
    setting = Setting(stress)
    total = sum(
        units(name, rng, 5, 1000, setting=setting)[0].sum(axis=(0, 1, 2)) for _ in range(20)
    )
    return float(metric_of(name).function(np.asarray(total)))


def bent(base: str, u: Array, rng: Generator, up: float, down: float) -> Array:
    """What a judge sees who turns failures into successes, and the other way round."""
    shape = u.shape[:3]
    if base == "JOINT":
        met, targets = u[..., 0].astype(int), u[..., 1].astype(int)
        met = met - rng.binomial(met, down) + rng.binomial(targets - met, up)
        return np.stack([met.astype(float), u[..., 1]], -1)
    if base == "F1":
        tp, fp, fn = (u[..., i].copy() for i in range(3))
        given, taken = (fn > 0) & (rng.random(shape) < up), (tp > 0) & (rng.random(shape) < down)
        fp = rng.binomial(fp.astype(int), 1 - 0.8 * up) + 1.0 * taken
        tp = np.where(given, 0.7, np.where(taken, 0, tp))
        fn = np.where(given, 0, np.where(taken, 1, fn))
        here = (u.sum(axis=-1) > 0)[..., None]
        return np.stack([tp, fp, fn], -1) * here
    score = np.where(u[..., 1] > 0, u[..., 0], 0)
    moved = score + rng.binomial(4, up, shape) / 4 - rng.binomial(4, down, shape) / 4
    return np.stack([np.clip(moved, 0, 1) * u[..., 1], u[..., 1]], -1)


def judged(kind: str, name: str, u: Array, rng: Generator) -> Array:
    """The same units under a cheap judge: good, lenient, harsh, noisy or useless."""
    base = name.split("_")[0]
    bends = {"lenient": (0.35, 0.0), "harsh": (0.0, 0.35), "noisy": (0.2, 0.2)}
    if kind in bends:
        return bent(base, u, rng, *bends[kind])
    keep = {"good": 0.9, "useless": 0.0}[kind]
    kept = rng.random(u.shape[:3]) < keep
    if base == "JOINT":
        level = u[..., 0].sum() / u[..., 1].sum()
        guess = rng.binomial(u[..., 1].astype(int), level)
        return np.stack([np.where(kept, u[..., 0], guess), u[..., 1]], -1)
    if base == "PAQ":
        seen = u[..., 0][u[..., 1] > 0]
        guess = rng.choice(seen, u.shape[:3]) * u[..., 1]
        return np.stack([np.where(kept, u[..., 0], guess), u[..., 1]], -1)
    # Verdicts of another unit of the same data set.
    shuffled = np.zeros_like(u)
    for r in range(len(u)):
        here = u[r].sum(axis=-1) > 0
        rows = u[r][here]
        shuffled[r][here] = rows[rng.permutation(len(rows))]
    return np.where(kept[..., None], u, shuffled)
