"""The system checks on matched tables: what ``validate`` calls."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from omnijudge.errors import Problem
from omnijudge.transcripts.checks import (
    ChunkStatistics,
    check_system,
    check_systems,
    chunk_statistics,
)
from omnijudge.transcripts.heard import Heard

if TYPE_CHECKING:
    import pyarrow as pa

    from omnijudge.benchmarks.base import Partition


def check_partitions(
    parts: Iterable[Partition], paths: Mapping[str, str | None]
) -> tuple[list[Problem], list[str]]:
    """Checks every system and all of them side by side.

    Args:
        parts: matched partitions whose units have slots (``t_start``, ``t_a``, ``t_end``,
            ``target_answer``, ``scene_type``); all blocks of all systems.
        paths: folder or file of each system, for messages.

    Returns:
        Findings, and one line about each system.
    """
    systems: dict[str, list[Heard]] = {}
    for part in parts:
        systems.setdefault(part.system, []).extend(heard_of(part, paths.get(part.system)))
    files = {name: paths.get(name) or name for name in systems}
    problems: list[Problem] = []
    notes = []
    for name, outputs in systems.items():
        problems += check_system(name, files[name], outputs)
        notes.append(describe(name, chunk_statistics(outputs)))
    problems += check_systems(systems, files)
    return problems, notes


def describe(system: str, statistics: ChunkStatistics) -> str:
    """One line about a system's transcripts."""
    if statistics.chunks == 0:
        return f"{system}: no speech"
    return (
        f"{system}: {statistics.chunks} chunks in {statistics.samples} samples, "
        f"{statistics.unmatched:.1%} unmatched, median length {statistics.median_length:.1f} s, "
        f"{statistics.per_minute:.0f} per minute of speech, words on {statistics.with_words:.0%}"
    )


def heard_of(part: Partition, path: str | None) -> list[Heard]:
    """The samples of a partition whose transcript was read."""
    units = part.units.filter(_equals(part.units["unit_kind"], "slot"))
    slots = {n: units[n].to_numpy() for n in ("t_start", "t_a", "t_end")}
    answers = units["target_answer"].to_pylist()
    scenes = units["scene_type"].to_pylist()
    rows_of = _rows(units["sample_id"])
    chunks = part.chunks
    starts, ends = chunks["start"].to_numpy(), chunks["end"].to_numpy()
    texts = chunks["text"].to_pylist()
    unmatched = chunks["unit_id"].is_null().to_numpy()
    worded = _lengths(chunks["words"]) > 0
    chunks_of = _rows(chunks["sample_id"])
    nothing = np.empty(0, np.int64)
    found = []
    for sample_id, state, file in zip(
        *(part.outputs[n].to_pylist() for n in ("sample_id", "state", "file")), strict=True
    ):
        if state != "ok":
            continue
        own, said = rows_of.get(sample_id, nothing), chunks_of.get(sample_id, nothing)
        found.append(
            Heard(
                sample_id,
                _file(path, file),
                starts[said],
                ends[said],
                [texts[n] or "" for n in said],
                int(worded[said].sum()),
                int(unmatched[said].sum()),
                slots["t_start"][own],
                slots["t_a"][own],
                slots["t_end"][own],
                [answers[n] or "" for n in own],
                scenes[own[0]] if len(own) else "",
            )
        )
    return found


def _equals(column: pa.ChunkedArray, value: str) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    return pc.equal(column, value)


def _lengths(words: pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    import pyarrow.compute as pc

    return np.asarray(pc.fill_null(pc.list_value_length(words), 0).to_numpy(), np.int64)


def _rows(column: pa.ChunkedArray) -> dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Row numbers per value."""
    numbers: dict[str, list[int]] = {}
    for row, value in enumerate(column.to_pylist()):
        numbers.setdefault(value, []).append(row)
    return {value: np.array(rows, np.int64) for value, rows in numbers.items()}


def _file(path: str | None, file: str | None) -> str:
    if not file:
        return path or ""
    return os.path.join(path, file) if path and os.path.isdir(path) else file
