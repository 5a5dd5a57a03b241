"""The ceiling row: references and captions, said when they are due."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import TYPE_CHECKING, Any

from omnijudge import tables
from omnijudge.benchmarks.omni_duplexeval.schemas import CHUNK_SCHEMA
from omnijudge.benchmarks.omni_duplexeval.windows import PUBLISHED_SHIFT

if TYPE_CHECKING:
    import pyarrow as pa

    from omnijudge.benchmarks.omni_duplexeval.options import Options

Spoken = tuple[float, float, str]
"""(start, end, text), in seconds."""


def oracle(units: pa.Table, system: str, options: Options) -> pa.Table:
    """What a system that knows everything would say.

    Descriptions: each caption, as much later as the windows of evidence look back (all shifts in
    the middle); without captions the first reference, through the whole clip. Reminders: at each
    event its reference (else the words of the instruction); a correction at the end of the clip.

    Args:
        units: units of a block of samples.
        system: name of the row.
        options: resolved options.
    """
    columns: dict[str, list[Any]] = {name: [] for name in CHUNK_SCHEMA.names}
    rows = units.to_pylist()
    events: dict[str, list[float | None]] = {}
    for unit in rows:
        if unit["unit_kind"] == "event":
            events.setdefault(unit["sample_id"], []).append(unit["event_time"])
    shift = PUBLISHED_SHIFT if options.published else -fmean(options.window_shifts)
    for unit in rows:
        if unit["unit_kind"] != "sample":
            continue
        if unit["scene"] == "rtd":
            spoken = _description(unit, shift)
        else:
            spoken = _reminders(unit, events.get(unit["sample_id"], []))
        for number, (start, end, text) in enumerate(s for s in spoken if s[2].strip()):
            row = {
                "system": system,
                "sample_id": unit["sample_id"],
                "chunk_id": number,
                "start": start,
                "end": end,
                "text": text.strip(),
                "words": [],
                "event_time": start,
            }
            for name, values in columns.items():
                values.append(row.get(name))
    return tables.make(CHUNK_SCHEMA, dict(columns))


def _description(unit: Mapping[str, Any], shift: float) -> list[Spoken]:
    duration = float(unit["video_duration"] or 0.0)
    if unit["captions"]:
        return [
            (max(0.0, c["start"] + shift), max(0.0, c["end"] + shift), c["text"])
            for c in unit["captions"]
        ]
    return [(0.0, duration, text) for text in (unit["references"] or [])[:1]]


def _reminders(unit: Mapping[str, Any], times: list[float | None]) -> list[Spoken]:
    references = unit["references"] or [unit["question_text"]]
    found = []
    for number, time in enumerate(times):
        at = float(unit["video_duration"] or 0.0) if time is None else time
        found.append((at, at, references[min(number, len(references) - 1)]))
    return found
