"""Several runs as one, if their numbers mean the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from omnijudge.analysis.comparing import Comparison, interval_settings
from omnijudge.analysis.sample_sums import NO_OUTPUT, NOT_EVALUATED, SampleSums
from omnijudge.analysis.systems import compared_systems
from omnijudge.errors import ConfigError
from omnijudge.partitions import read_table
from omnijudge.run_directory import changed_keys
from omnijudge.statistics.metric import Metric
from omnijudge.statistics.multiple import Adjustment
from omnijudge.stored_run import StoredRun

PROMPT_KEYS = ("prompts", "rationale", "language")
SHOWN_KEYS = 4


class RunSet:
    """Runs that can be compared: same benchmark, annotations, prompts, judge and scoring.

    Attributes:
        runs: the runs, opened.
        names: per run, its name of each system -> the name here. A name that stands for different
            outputs in two runs is written ``RUN:NAME``.
        systems: all names here, in order.
        notes: what a reader should know about the set.
    """

    def __init__(self, paths: Sequence[str | Path]) -> None:
        """Opens the runs.

        Raises:
            DataError: one of them is no finished run.
            ConfigError: they cannot be compared; every reason is named.
        """
        self.runs = [StoredRun(p) for p in paths]
        first = self.runs[0]
        reasons = [r for other in self.runs[1:] for r in incomparable(first, other)]
        if reasons:
            raise ConfigError("the runs cannot be compared:\n  " + "\n  ".join(reasons))
        self.notes: list[str] = []
        if len(self.runs) > 1 and any(_unknown_judge(r) for r in self.runs):
            self.notes.append(
                "a run replays answers of a judge that it does not name; that it is the same judge "
                "is taken on trust"
            )
        self.names = self._names()
        self.systems = [ours for names in self.names for ours in names.values()]

    @property
    def first(self) -> StoredRun:
        """The run that configuration, options and units are taken from."""
        return self.runs[0]

    @property
    def metrics(self) -> list[Metric]:
        """All metrics of the benchmark."""
        return self.first.benchmark.metrics(self.first.options)

    def _names(self) -> list[dict[str, str]]:
        owners: dict[str, dict[str | None, int]] = {}
        for n, run in enumerate(self.runs):
            for system in run.plan.systems:
                owners.setdefault(system, {}).setdefault(_outputs_digest(run, system), n)
        found: list[dict[str, str]] = []
        for n, run in enumerate(self.runs):
            names = {}
            for system in run.plan.systems:
                digests = owners[system]
                if digests[_outputs_digest(run, system)] != n:
                    self.notes.append(
                        f"{system}: {_label(run)} holds the outputs that "
                        f"{_label(self.runs[digests[_outputs_digest(run, system)]])} holds, too; "
                        "taken once"
                    )
                elif len(digests) > 1:
                    names[system] = f"{_label(run)}:{system}"
                else:
                    names[system] = system
            found.append(names)
        taken = [ours for names in found for ours in names.values()]
        if len(set(taken)) < len(taken):
            twice = next(name for name in taken if taken.count(name) > 1)
            raise ConfigError(
                f"{twice}: stands for different outputs in two folders of one name; "
                "rename one of the folders"
            )
        return found

    def sample_sums(self, metrics: Sequence[Metric]) -> SampleSums:
        """Sums by sample of all systems."""
        cluster = self.first.config.statistics.cluster
        whole = SampleSums(metrics, self.first.units, cluster)
        for run, names in zip(self.runs, self.names, strict=True):
            read_sample_sums(run, whole, names)
        return whole

    def comparison(self, metrics: Sequence[Metric], adjustment: Adjustment = "holm") -> Comparison:
        """All systems, ready to be compared by these metrics."""
        settings = interval_settings(self.first.config.statistics, adjustment)
        return Comparison(self.sample_sums(metrics), compared_systems(self.systems), settings)

    def metric_rows(self) -> dict[tuple[str, str, str], dict[str, Any]]:
        """Rows of the metrics tables by (system, metric, group), under the names here."""
        found = {}
        for run, names in zip(self.runs, self.names, strict=True):
            for row in read_table(run.directory.table("metrics")).to_pylist():
                ours = names.get(row["system"])
                if ours is not None:
                    found[ours, row["metric"], row["group"]] = {**row, "system": ours}
        return found

    def close(self) -> None:
        """Closes the runs' files."""
        for run in self.runs:
            run.close()

    def __enter__(self) -> RunSet:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _label(run: StoredRun) -> str:
    return run.directory.path.resolve().name


def _outputs_digest(run: StoredRun, system: str) -> str | None:
    digest: str | None = run.manifest["inputs"]["systems"].get(system)
    return digest


def read_sample_sums(run: StoredRun, sums: SampleSums, names: Mapping[str, str]) -> None:
    """Adds the stored scores of a run, system by system.

    Args:
        run: the run.
        sums: what they are added to.
        names: its systems -> names to add them under; others are left out.
    """
    leaves = (NOT_EVALUATED, *(NO_OUTPUT if run.options.profile == "published" else ()))
    outputs = read_table(run.directory.table("outputs"))
    outputs = outputs.filter(pc.is_in(outputs["state"], pa.array(leaves)))
    not_scored: dict[str, list[str]] = {}
    for system, sample in zip(
        outputs["system"].to_pylist(), outputs["sample_id"].to_pylist(), strict=True
    ):
        not_scored.setdefault(system, []).append(sample)
    empty = run.benchmark.score_schema.empty_table()
    for name in names.values():
        sums.add(name, empty)
    file = pq.ParquetFile(run.directory.table("scores"))
    try:
        for group in range(file.num_row_groups):
            scores = file.read_row_group(group)
            system = scores["system"][0].as_py()
            if system in names:
                own = set(scores["sample_id"].to_pylist())
                lost = [s for s in not_scored.get(system, ()) if s in own]
                sums.add(names[system], scores, lost)
    finally:
        file.close()


def incomparable(first: StoredRun, other: StoredRun) -> list[str]:
    """Why numbers of two runs do not mean the same; empty if they do."""
    a, b = first.manifest, other.manifest
    names = f"{first.directory.path} and {other.directory.path}"
    if a["inputs"]["benchmark"] != b["inputs"]["benchmark"]:
        return [
            f"benchmark: {first.directory.path} is {a['inputs']['benchmark']}, "
            f"{other.directory.path} is {b['inputs']['benchmark']}"
        ]
    reasons = []
    data_a, data_b = dict(a["inputs"]["data"]), dict(b["inputs"]["data"])
    same_units = data_a.pop("annotations", None) == data_b.pop("annotations", None)
    if not same_units and not _sorted_units(first).equals(_sorted_units(other)):
        reasons.append(
            f"annotations: {names} differ ({_size(first)} against {_size(other)}, or their content)"
        )
    elif data_a != data_b:
        reasons.append(f"annotations: {names} differ in {_named(changed_keys(data_a, data_b))}")
    reasons += _judges(a["inputs"]["judge"], b["inputs"]["judge"], names)
    reasons += _models(first, other)
    scoring = changed_keys(a["scoring"], b["scoring"])
    if scoring:
        said = [f"{k} {_value(a['scoring'], k)} against {_value(b['scoring'], k)}" for k in scoring]
        reasons.append(f"scoring: {names} differ in {_named(said)}")
    return reasons


def _sorted_units(run: StoredRun) -> pa.Table:
    order = [("sample_id", "ascending"), ("unit_id", "ascending"), ("unit_kind", "ascending")]
    return run.units.sort_by(order).replace_schema_metadata(None).combine_chunks()


def _size(run: StoredRun) -> str:
    samples = pc.count_distinct(run.units["sample_id"]).as_py()
    return f"{samples} samples, {run.units.num_rows} units"


def _named(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - SHOWN_KEYS} more" if len(keys) > SHOWN_KEYS else ""
    return ", ".join(keys[:SHOWN_KEYS]) + more


def _value(scoring: Mapping[str, Any], key: str) -> Any:
    value: Any = scoring
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _judges(a: Mapping[str, Any], b: Mapping[str, Any], names: str) -> list[str]:
    """Differences between judges; what a judge is called does not matter, only what it is."""
    ours, theirs = _by_content(a), _by_content(b)
    if len(ours) != len(theirs):
        return [f"judge: {names} differ ({len(ours)} against {len(theirs)} judges)"]
    reasons = []
    if a.get("combine") != b.get("combine"):
        reasons.append(f"judge: {names} differ (combine)")
    for (name, one), (_, other) in zip(ours, theirs, strict=True):
        keys = changed_keys(one, other)
        prompts = [k for k in keys if k.partition(".")[0] in PROMPT_KEYS]
        rest = [k for k in keys if k not in prompts]
        if prompts:
            reasons.append(f"prompts: {names} differ (judge {name}: {_named(prompts)})")
        if rest:
            said = [f"{k} {_value(one, k)} against {_value(other, k)}" for k in rest]
            reasons.append(f"judge: {names} differ (judge {name}: {_named(said)})")
    return reasons


def _by_content(judges: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    found = [(n, dict(j)) for n, j in judges.items() if isinstance(j, Mapping)]
    return sorted(found, key=lambda pair: (str(sorted(map(str, pair[1].items()))), pair[0]))


def _unknown_judge(run: StoredRun) -> bool:
    replayed = any(j.engine == "replay" for j in run.config.judges)
    return replayed and not models_answered(run)


def _models(first: StoredRun, other: StoredRun) -> list[str]:
    """Models that answered, where both runs know their names (an endpoint can change its own)."""
    one, two = (models_answered(r) for r in (first, other))
    if not one or not two or one == two:
        return []
    return [
        f"judge: {first.directory.path} was answered by {', '.join(sorted(one))}, "
        f"{other.directory.path} by {', '.join(sorted(two))}"
    ]


def models_answered(run: StoredRun) -> set[str]:
    """Names of the models behind the answers of a run, as they name themselves."""
    column = pq.read_table(run.directory.table("judgements"), columns=["model"])["model"]
    return {m for m in pc.unique(column).to_pylist() if m}
