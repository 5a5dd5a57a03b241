"""A run's results as the report reads them: metrics, ranking, and what the manifest says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnijudge.controls import is_control
from omnijudge.errors import DataError
from omnijudge.report.vocabulary import learn, metric_name, title_of

if TYPE_CHECKING:
    import pyarrow as pa

Key = tuple[str, str]
"""Metric and group."""

LEADING: dict[str, tuple[Key, ...]] = {
    "omniinteract": (("ia_qtf1", "all"),),
    "omni_interactscope": (("joint_accuracy", "average_six"), ("timely_recall", "T8")),
    "omni_duplexeval": (("overall", "all"), ("overall", "rtd"), ("success_rate", "pr_pooled")),
}
"""What a benchmark's systems are ranked by: the first that has a value."""

SMOKE_ENGINE = "lexical"
SMOKE_NOTE = (
    "smoke judge: it compares words with the reference and knows no meaning; "
    "its numbers show that the run works and say nothing about the systems"
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One row of ``metrics.parquet``; null stays None."""

    system: str
    metric: str
    group: str
    value: float | None
    ci_low: float | None
    ci_high: float | None
    careful_low: float | None
    careful_high: float | None
    interval_method: str | None
    warning: str | None
    confidence: float | None
    n_units: int | None
    n_clusters: int | None
    n_unscored: int | None
    coverage: float | None
    bound_low: float | None
    bound_high: float | None
    n_missing: int | None
    profile: str | None


@dataclass(frozen=True, slots=True)
class Ranked:
    """A system in the order of the leading metric.

    Attributes:
        place: from 1, equal values share one; None for a control or without a value.
        low: best rank that the comparisons allow, if they were made.
        high: worst rank that they allow.
        control: a ceiling or floor row, not a system under test.
        cell: its leading metric.
    """

    system: str
    place: int | None
    cell: Cell | None
    low: int | None = None
    high: int | None = None
    control: bool = False


@dataclass(frozen=True, slots=True)
class Judge:
    """A judge as a reader needs to know it.

    Attributes:
        name: as configured.
        engine: engine name.
        model: model identity, or the engine where there is none.
        pack: prompt pack with version.
        smoke: whether it is the smoke judge.
    """

    name: str
    engine: str
    model: str
    pack: str
    smoke: bool

    def __str__(self) -> str:
        model = f"{self.engine}, smoke judge" if self.smoke else self.model
        return f"{self.name} ({model})"


class Results:
    """Metrics and manifest of one run, with look-up by system, metric and group.

    Raises:
        DataError: a system has a metric of a group twice.
    """

    def __init__(
        self,
        metrics: pa.Table,
        manifest: Mapping[str, Any],
        ranks: pa.Table | None = None,
        comparisons: pa.Table | None = None,
    ) -> None:
        self.manifest = manifest
        self.comparisons = comparisons
        learn(self._described.get("metrics") or {})
        names = [n for n in Cell.__dataclass_fields__ if n in metrics.column_names]
        columns = [metrics[n].to_pylist() for n in names]
        missing: dict[str, Any] = {n: None for n in Cell.__dataclass_fields__ if n not in names}
        self._cells: dict[tuple[str, str, str], Cell] = {}
        for row in zip(*columns, strict=True):
            cell = Cell(**dict(zip(names, row, strict=True)), **missing)
            key = (cell.system, cell.metric, cell.group)
            if key in self._cells:
                raise DataError(
                    f"metrics: {' '.join(key)} stands twice; run the configuration again"
                )
            self._cells[key] = cell
        self.systems: list[str] = list(dict.fromkeys(s for s, _, _ in self._cells))
        self.keys: list[Key] = list(dict.fromkeys((m, g) for _, m, g in self._cells))
        self._ranks = ranks

    @classmethod
    def read(cls, run: Path) -> Results:
        """Reads a run directory.

        Raises:
            DataError: there is no run, or its metrics are missing or damaged.
        """
        from omnijudge.partitions import read_table
        from omnijudge.run_directory import RunDirectory

        directory = RunDirectory(run)
        manifest = directory.manifest()
        if manifest is None:
            raise DataError(f"{run}: there is no run here (no run.json); check the path")
        metrics = read_table(directory.table("metrics"))
        made = [directory.table(name) for name in ("ranks", "comparisons")]
        return cls(metrics, manifest, *(read_table(p) if p.exists() else None for p in made))

    def cell(self, system: str, metric: str, group: str) -> Cell | None:
        """One metric of one system."""
        return self._cells.get((system, metric, group))

    def value(self, system: str, metric: str, group: str) -> float | None:
        """Value of one metric of one system; None if it is undefined or not there."""
        cell = self._cells.get((system, metric, group))
        return None if cell is None else cell.value

    def cells(self, metric: str, group: str) -> list[Cell]:
        """One metric of all systems that have it, in the order of the run."""
        found = (self._cells.get((s, metric, group)) for s in self.systems)
        return [c for c in found if c is not None]

    def all_cells(self) -> Sequence[Cell]:
        """Every cell, in the order of the table."""
        return tuple(self._cells.values())

    def missing(self, system: str) -> int:
        """Samples of this system without a usable output."""
        for key in (self.lead, *self.keys):
            cell = self.cell(system, *key)
            if cell is not None and cell.n_missing is not None:
                return cell.n_missing
        return 0

    def has(self, metric: str, group: str) -> bool:
        """Whether any system has a value for it."""
        return any(c.value is not None for c in self.cells(metric, group))

    @property
    def benchmark(self) -> str:
        """Name of the benchmark, as configured."""
        config = self.manifest.get("config") or {}
        inputs = self.manifest.get("inputs") or {}
        return str(config.get("benchmark") or inputs.get("benchmark") or "unknown benchmark")

    @property
    def title(self) -> str:
        """The benchmark as written on tables."""
        return str(self._described.get("title") or title_of(self.benchmark))

    @property
    def _described(self) -> Mapping[str, Any]:
        """What the benchmark says of itself."""
        found = self.manifest.get("benchmark")
        return found if isinstance(found, Mapping) else {}

    @property
    def profile(self) -> str:
        """Scoring profile."""
        found = sorted({c.profile for c in self._cells.values() if c.profile})
        scoring = self.manifest.get("scoring") or {}
        return ", ".join(found) or str(scoring.get("profile") or "unknown")

    @property
    def corrections(self) -> list[str]:
        """Named repairs of the measure that were switched on."""
        scoring = self.manifest.get("scoring") or {}
        return [
            " ".join(f"{k} {v}" for k, v in c.items()) if isinstance(c, Mapping) else str(c)
            for c in scoring.get("corrections") or ()
        ]

    @property
    def confidence(self) -> float:
        """Nominal level of the intervals."""
        return next((c.confidence for c in self._cells.values() if c.confidence), 0.95)

    @property
    def interval_method(self) -> str:
        """How most intervals were made."""
        return next((c.interval_method for c in self._cells.values() if c.interval_method), "")

    @property
    def cluster(self) -> str:
        """Column whose values are the clusters of the intervals."""
        config = self.manifest.get("config") or {}
        return str((config.get("statistics") or {}).get("cluster") or "video_id")

    @cached_property
    def judges(self) -> list[Judge]:
        """The judges, in the order of the configuration."""
        config = self.manifest.get("config") or {}
        judge = config.get("judge") or {}
        known = self.manifest.get("judges") or {}
        found = []
        for j in judge.get("panel") or ([judge] if judge else []):
            name, engine = str(j.get("name", "main")), str(j.get("engine", ""))
            details = known.get(name) or {}
            pack = details.get("prompt_pack") or {}
            said = " ".join(str(pack[k]) for k in ("name", "version") if pack.get(k))
            model = str(details.get("identity") or j.get("model") or engine)
            found.append(Judge(name, engine, model, said, engine == SMOKE_ENGINE))
        return found

    @property
    def smoke(self) -> bool:
        """Whether any verdict came from the smoke judge."""
        return any(j.smoke for j in self.judges)

    @cached_property
    def lead(self) -> Key:
        """Metric and group that the systems are ranked by."""
        said = tuple((str(m), str(g)) for m, g in self._described.get("leading") or ())
        for key in (*(LEADING.get(self.benchmark) or said), *self.keys):
            if self.has(*key):
                return key
        return self.keys[0] if self.keys else ("value", "all")

    @property
    def controls(self) -> set[str]:
        """Rows that are ceilings or floors."""
        return set(filter(is_control, self.systems))

    @property
    def tested(self) -> list[str]:
        """The systems under test."""
        return [s for s in self.systems if not is_control(s)]

    @cached_property
    def ranking(self) -> list[Ranked]:
        """All systems, best first by the leading metric; those without a value last."""
        metric, group = self.lead
        sign = 1 if metric_name(metric).better is False else -1
        cells = {s: self.cell(s, metric, group) for s in self.systems}
        values = {s: c.value for s, c in cells.items() if c is not None and c.value is not None}
        order = sorted(self.systems, key=lambda s: (s not in values, sign * values.get(s, 0.0)))
        bands = self.rank_bands(metric, group)
        tested = [values[s] for s in order if s in values and s not in self.controls]
        found = []
        for s in order:
            control = s in self.controls
            place = None if control or s not in values else 1 + tested.index(values[s])
            low, high = bands.get(s, (None, None))
            found.append(Ranked(s, place, cells[s], low, high, control))
        return found

    @cached_property
    def ranks(self) -> list[dict[str, Any]]:
        """Rows of ``ranks.parquet``; none if no comparison was made."""
        return [] if self._ranks is None else list(self._ranks.to_pylist())

    def rank_bands(self, metric: str, group: str) -> dict[str, tuple[int | None, int | None]]:
        """Best and worst rank of each system that paired comparisons allow, if they were made."""
        return {
            r["system"]: (r["rank_low"], r["rank_high"])
            for r in self.ranks
            if (r["metric"], r["group"]) == (metric, group)
        }
