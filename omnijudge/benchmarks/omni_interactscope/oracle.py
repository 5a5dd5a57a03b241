"""The ceiling row: each reference (and its tools), put out at its reference time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnijudge import tables
from omnijudge.benchmarks.omni_interactscope.schemas import CHUNK_SCHEMA, TARGET

if TYPE_CHECKING:
    import pyarrow as pa


def oracle(units: pa.Table, system: str) -> pa.Table:
    """One response per target, in target order, never before the request.

    Args:
        units: units of a block of interactions, targets in target order.
        system: name of the row.
    """
    names = ("sample_id", "unit_kind", "reference", "tools", "ref_start", "request_time")
    columns: dict[str, list[Any]] = {name: [] for name in CHUNK_SCHEMA.names}
    counted: dict[str, int] = {}
    for sample, kind, reference, tools, start, asked in zip(
        *(units[n].to_pylist() for n in names), strict=True
    ):
        if kind != TARGET:
            continue
        time = start if asked is None else max(start, asked)
        row = {
            "system": system,
            "sample_id": sample,
            "chunk_id": counted.get(sample, 0),
            "start": time,
            "text": reference,
            "words": [],
            "tools": tools or [],
            "granularity": "response",
        }
        counted[sample] = row["chunk_id"] + 1
        for name, values in columns.items():
            values.append(row.get(name))
    return tables.make(CHUNK_SCHEMA, dict(columns))
