"""The system checks on matched tables."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from omnijudge.benchmarks.base import Partition
from omnijudge.benchmarks.omniinteract.schemas import CHUNK_SCHEMA, STAGE_SCHEMA, UNIT_SCHEMA
from omnijudge.tables import OUTPUTS
from omnijudge.transcripts.partition_checks import check_partitions, heard_of


def table(schema: pa.Schema, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{n: r.get(n) for n in schema.names} for r in rows], schema)


def partition(system: str, chunks: list[dict[str, Any]], **states: str) -> Partition:
    units = []
    for sample in states:
        for n in range(3):
            units.append(
                {
                    "sample_id": sample,
                    "unit_id": str(n + 1),
                    "unit_kind": "slot",
                    "video_id": sample,
                    "scene_type": "multi_turn",
                    "t_start": 10.0 * n,
                    "t_a": 10.0 * n + 2,
                    "t_end": 10.0 * n + 10,
                    "target_answer": f"answer {n}",
                }
            )
        units.append({"sample_id": sample, "unit_id": "sample", "unit_kind": "sample"})
    outputs = [
        {"system": system, "sample_id": s, "state": state, "file": f"{s}.json"}
        for s, state in states.items()
    ]
    chunks = [{"system": system, "words": [], **c} for c in chunks]
    return Partition(
        system,
        table(UNIT_SCHEMA, units),
        table(OUTPUTS, outputs),
        table(CHUNK_SCHEMA, chunks),
        STAGE_SCHEMA.empty_table(),
    )


def chunk(sample: str, start: float, end: float, unit: str | None, **more: Any) -> dict[str, Any]:
    return {
        "sample_id": sample,
        "chunk_id": 0,
        "start": start,
        "end": end,
        "text": "hi",
        "unit_id": unit,
        **more,
    }


def test_tables_become_samples() -> None:
    word = {"start": 3.0, "end": 4.0, "text": "hi"}
    chunks = [
        chunk("b", 12.5, 13.0, "2"),
        chunk("a", 3.0, 4.0, "1", words=[word]),
        chunk("b", 99.0, 99.5, None, text=None),
    ]
    found = heard_of(partition("x", chunks, a="ok", b="ok", c="ok", d="missing"), None)
    assert [h.sample_id for h in found] == ["a", "b", "c"]
    a, b, c = found
    assert (a.with_words, a.unmatched, list(a.starts)) == (1, 0, [3.0])
    assert (b.with_words, b.unmatched, list(b.texts)) == (0, 1, ["hi", ""])
    assert (len(c.starts), list(c.answer_times)) == (0, [2.0, 12.0, 22.0])
    assert (c.file, c.group, c.answers[2]) == ("c.json", "multi_turn", "answer 2")
    assert list(b.answered()) == [False, True, False]


def test_systems_are_checked_over_all_blocks() -> None:
    times = [1.0 + n for n in range(15)]
    first = partition("x", [chunk("a", t, t + 0.5, None) for t in times], a="ok")
    second = partition("x", [chunk("b", t, t + 0.5, "1") for t in times], b="ok")
    silent = partition("quiet", [], a="ok", b="unreadable")
    problems, notes = check_partitions([first, silent, second], {"x": "out/x", "quiet": None})
    assert [(p.code, p.system, p.file) for p in problems] == [
        ("unmatched_share", "x", "out/x"),
        ("word_coverage", "x", "out/x"),
    ]
    assert problems[0].count == 15
    assert notes == [
        "x: 30 chunks in 2 samples, 50.0% unmatched, median length 0.5 s, 120 per minute of "
        "speech, words on 0%",
        "quiet: no speech",
    ]
