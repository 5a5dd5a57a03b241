"""The judgement store through the command: count, verify, compact, export."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from fakes.commands import call

from omnijudge.judging.store import Judgement, JudgementStore
from omnijudge.judging.types import Reply


def fill(folder: Path, first: int, count: int) -> None:
    with JudgementStore(folder / "store") as store:
        store.append(
            [
                Judgement(
                    n.to_bytes(16, "big"), 1, 0, "main" if n % 2 else "second",
                    Reply(f'{{"score": {n % 10 / 10}}}', None, "stop", "some-model", 100, 50, 9),
                )
                for n in range(first, first + count)
            ]
        )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(3):
        fill(tmp_path, 100 * number, 120)
    return tmp_path


def test_stats(folder: Path) -> None:
    output, _ = call(folder, "store", "stats", "store")
    assert "320 judgements (360 rows, double ones included)" in output
    assert "3 parts, 0 journals" in output
    assert "judge main, model some-model: 180" in output
    # Without a name it is the store that runs use.
    named, _ = call(folder, "store", "stats", OMNIJUDGE_STORE=str(folder / "store"))
    assert "320 judgements" in named


def test_compact(folder: Path) -> None:
    output, _ = call(folder, "store", "compact", "store")
    assert "3 files" in output
    assert "1 files" in output
    assert "320 judgements" in output
    output, _ = call(folder, "store", "stats", "store")
    assert "320 judgements (320 rows" in output


def test_export(folder: Path) -> None:
    for name in ("all.jsonl", "all.parquet"):
        output, _ = call(folder, "store", "export", "store", "--out", name)
        assert f"{name}: 320 judgements" in output
    lines = (folder / "all.jsonl").read_text(encoding="utf-8").splitlines()
    values = [json.loads(line) for line in lines]
    assert [int(v["fingerprint"], 16) for v in values] == list(range(320))
    assert pq.read_table(folder / "all.parquet").num_rows == 320
    _, errors = call(folder, "store", "export", "store", "--out", "all.txt", code=1)
    assert ".parquet or .jsonl" in errors


def test_verify_finds_a_flipped_byte_and_changes_nothing(folder: Path) -> None:
    output, _ = call(folder, "store", "verify", "store")
    assert "320 judgements, every byte read, nothing damaged" in output
    part = next((folder / "store" / "parts").iterdir())
    data = bytearray(part.read_bytes())
    data[len(data) // 3] ^= 255
    part.write_bytes(data)
    before = {p: p.read_bytes() for p in (folder / "store").rglob("*") if p.is_file()}
    output, errors = call(folder, "store", "verify", "store", code=3)
    assert part.name in errors
    assert "damaged" in errors
    assert "findings" in output
    assert {p: p.read_bytes() for p in (folder / "store").rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("action", ["stats", "verify", "compact"])
def test_a_store_that_is_not_there_is_not_made(action: str, tmp_path: Path) -> None:
    _, errors = call(tmp_path, "store", action, "nowhere", code=1)
    assert "nowhere: there is no store here" in errors
    assert not (tmp_path / "nowhere").exists()
