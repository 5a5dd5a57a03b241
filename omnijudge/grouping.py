"""Metrics of a run by a column of its annotations or a tag of its systems (``metrics --by``)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnijudge import tables
from omnijudge.errors import ConfigError
from omnijudge.partitions import read_table
from omnijudge.stored_run import StoredRun
from omnijudge.summary import Summary, plain_columns, unit_column


def metrics_by(run: str, column: str) -> pa.Table:
    """The metrics table with a first column ``by``.

    A column of the units (or one passed through from the annotation list) gives the metrics of
    the units with each of its values; a tag gives the metrics of the systems with each value.

    Raises:
        ConfigError: there is no such column or tag.
    """
    with StoredRun(run) as stored:
        tags = {n: s.tags for n, s in stored.config.systems.items()}
        values = unit_column(stored.units, column)
        if values is None and any(column in t for t in tags.values()):
            return _by_tag(read_table(stored.directory.table("metrics")), column, tags)
        if values is None:
            known = sorted({*plain_columns(stored.units), *(k for t in tags.values() for k in t)})
            raise ConfigError(f"--by {column}: no such column or tag; there are {', '.join(known)}")
        return _by_unit(stored, values)


def _with_column(table: pa.Table, values: list[Any]) -> pa.Table:
    field = tables.col("by", pa.string(), "Value that the rows are grouped by.")
    return table.add_column(0, field, pa.array([None if v is None else str(v) for v in values]))


def _by_tag(metrics: pa.Table, column: str, tags: dict[str, Any]) -> pa.Table:
    systems = metrics["system"].to_pylist()
    found = _with_column(metrics, [tags.get(s, {}).get(column) for s in systems])
    return found.sort_by([("by", "ascending")])


def _by_unit(stored: StoredRun, values: list[Any]) -> pa.Table:
    scores = read_table(stored.directory.table("scores"))
    keys = zip(
        stored.units["sample_id"].to_pylist(), stored.units["unit_id"].to_pylist(), strict=True
    )
    value_of = {k: None if v is None else str(v) for k, v in zip(keys, values, strict=True)}
    # Units without a value (pairs, samples) take that of their sample, if it has just one.
    of_sample: dict[str, set[Any]] = {}
    for (sample, _), v in value_of.items():
        if v is not None:
            of_sample.setdefault(sample, set()).add(v)
    row_values = []
    for sample, unit in zip(
        scores["sample_id"].to_pylist(), scores["unit_id"].to_pylist(), strict=True
    ):
        # What one system alone has (its sentences, say) is no row of the unit table.
        v = value_of.get((sample, unit))
        if v is None and len(of_sample.get(sample, ())) == 1:
            v = next(iter(of_sample[sample]))
        row_values.append(v)
    column = pa.array(row_values, pa.string())
    found = []
    for value in sorted({v for v in row_values if v is not None}):
        own = scores.filter(pc.fill_null(pc.equal(column, value), False))
        summary = Summary(
            stored.benchmark,
            stored.options,
            stored.units,
            stored.plan.systems,
            stored.config.statistics.cluster,
        )
        for s, system in enumerate(stored.plan.systems):
            summary.add(s, own.filter(pc.equal(own["system"], system)))
        table = summary.metrics_table(
            stored.config.statistics, stored.options.profile, stored.missing
        )
        table = table.filter(pc.greater(table["n_units"], 0))
        found.append(_with_column(table, [value] * table.num_rows))
    return pa.concat_tables(found)
