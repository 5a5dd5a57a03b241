"""The drawing of a gold sample: reproducible from its seed, and written down so that it shows.

A correction by gold judgements is honest for a random sample only. So the draw is recorded before
any gold judgement is made, and ``rectify`` draws it again to see that nothing was changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from omnijudge.errors import ConfigError, DataError
from omnijudge.ingest import digest
from omnijudge.statistics.gold_sample import random_order, stratified_sample
from omnijudge.summary import unit_clusters

SAMPLE_FILE = "sample.json"
KIND = "omnijudge gold sample"
Index = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Frame:
    """What is sampled: the clusters of a run's annotations.

    Attributes:
        column: column they come from.
        names: their names, sorted.
        sizes: units of each.
        units: hash of the annotations.
    """

    column: str
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    units: str

    @property
    def total(self) -> int:
        """Number of clusters."""
        return len(self.names)

    def positions(self, names: Sequence[str]) -> Index:
        """Places of clusters among the names."""
        at = {name: i for i, name in enumerate(self.names)}
        return np.array([at[n] for n in names], np.int64)


def frame_of(units: pa.Table, column: str) -> Frame:
    """The clusters of all units.

    Raises:
        ConfigError: there is no such column.
    """
    cluster_of = unit_clusters(units, column)
    sizes: dict[str, int] = {}
    for cluster in cluster_of.values():
        sizes[cluster] = sizes.get(cluster, 0) + 1
    names = tuple(sorted(sizes))
    order = [("sample_id", "ascending"), ("unit_id", "ascending"), ("unit_kind", "ascending")]
    return Frame(column, names, tuple(sizes[n] for n in names), digest(units.sort_by(order)))


@dataclass(frozen=True)
class Draw:
    """A recorded sample.

    Attributes:
        benchmark: name of the benchmark.
        cluster: column of the clusters.
        units: hash of the annotations it was drawn from.
        method: ``simple`` or ``stratified`` (by the number of units of a cluster).
        strata: number of strata; 1 for a simple sample.
        seed: of the order of drawing.
        n_clusters: clusters there are, N.
        n: clusters sampled.
        clusters: the sampled ones: in the order of drawing if simple, else sorted.
        hash: hash of all of the above.
    """

    benchmark: str
    cluster: str
    units: str
    method: Literal["simple", "stratified"]
    strata: int
    seed: int
    n_clusters: int
    n: int
    clusters: tuple[str, ...]
    hash: str = ""

    def hashed(self) -> Draw:
        """The same with its hash."""
        values = {k: v for k, v in asdict(self).items() if k != "hash"}
        text = orjson.dumps(values, option=orjson.OPT_SORT_KEYS)
        return replace(self, hash=hashlib.blake2b(text, digest_size=16).hexdigest())


def draw_sample(benchmark: str, frame: Frame, n: int, seed: int, strata: int = 1) -> Draw:
    """Draws clusters at random.

    Args:
        benchmark: name of the benchmark.
        frame: what is sampled.
        n: clusters to draw.
        seed: of the order of drawing.
        strata: strata by size; 1 for a simple sample.

    Raises:
        ConfigError: the sample is too small for the strata.
    """
    if strata > 1:
        try:
            sample, _ = stratified_sample(frame.sizes, n, seed, strata)
        except ValueError as e:
            raise ConfigError(f"--strata {strata}: {e}") from None
        names = tuple(frame.names[i] for i in sample.tolist())
    else:
        names = tuple(frame.names[i] for i in random_order(frame.total, seed)[:n].tolist())
    method: Literal["simple", "stratified"] = "stratified" if strata > 1 else "simple"
    return Draw(
        benchmark, frame.column, frame.units, method, strata, seed, frame.total, len(names), names
    ).hashed()


def write_draw(path: Path, draw: Draw, about: dict[str, Any]) -> None:
    """Writes a draw with what else is known about it."""
    values = {"kind": KIND, "version": 1, "draw": asdict(draw), **about}
    path.write_bytes(orjson.dumps(values, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def read_draw(path: Path) -> Draw:
    """Reads a draw.

    Raises:
        DataError: it is no sample file, or was changed.
    """
    try:
        values = orjson.loads(path.read_bytes())
        if values["kind"] != KIND:
            raise KeyError("kind")
        given = {**values["draw"], "clusters": tuple(values["draw"]["clusters"])}
        draw = Draw(**given)
    except OSError as e:
        raise DataError(f"{path}: cannot be read ({e.strerror})") from e
    except (orjson.JSONDecodeError, KeyError, TypeError) as e:
        raise DataError(f"{path}: is no sample file of `omnijudge sample` ({e})") from None
    if draw.hashed().hash != draw.hash:
        raise DataError(
            f"{path}: was changed after the draw (its hash does not fit); draw anew, or say "
            "--declared-random if you know the sample to be random"
        )
    return draw


def check_draw(draw: Draw, benchmark: str, frame: Frame, path: Path) -> None:
    """Draws again and compares.

    Raises:
        ConfigError: the sample was drawn from other annotations, or not by this drawing.
    """
    if draw.benchmark != benchmark or draw.cluster != frame.column or draw.units != frame.units:
        raise ConfigError(
            f"{path}: was drawn from other annotations or by another cluster column than this "
            "run's; draw from this run"
        )
    again = draw_sample(benchmark, frame, draw.n, draw.seed, draw.strata)
    if again.clusters != draw.clusters:
        raise ConfigError(
            f"{path}: these clusters are not what seed {draw.seed} draws; the sample was chosen "
            "otherwise. Draw anew, or say --declared-random if you know it to be random"
        )
