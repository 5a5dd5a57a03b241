"""Shards share one run: they fill one store, and a plain run puts everything together."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from fakes.commands import call, manifest, start, table_bytes
from fakes.corpus import write_corpus

SHARDS = 4
BATCH, IN_FLIGHT = 8, 1

CONFIG = """
benchmark: omniinteract
data: {{manifest: {manifest}}}
judge:
  engine: "fakes.odd_lexical:OddLexical"
  engine_options: {{log: {log}, delay: {delay}, tokens: 50, faults: {{broken_json: [23, 5]}}}}
execution: {{batch_size: 8, in_flight: 1}}
limits: {{max_invalid: 1.0, max_unscored: 100000}}
statistics: {{replicates: 200}}
store: store
output: run
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus") / "c", 30, tempers="punctual,talkative")


def config(folder: Path, corpus: Path, delay: float = 0.0) -> Path:
    folder.mkdir()
    text = CONFIG.format(manifest=corpus, log=folder / "log.txt", delay=delay)
    (folder / "run.yaml").write_text(text, encoding="utf-8")
    return folder


def asked(folder: Path) -> list[str]:
    log = folder / "log.txt"
    return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


@pytest.fixture(scope="module")
def whole(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = config(tmp_path_factory.mktemp("whole") / "a", corpus)
    call(folder, "run", "run.yaml")
    return folder


def test_shards_share_the_questions_and_a_plain_run_puts_them_together(
    corpus: Path, whole: Path, tmp_path: Path
) -> None:
    folder = config(tmp_path / "a", corpus)
    expected = asked(whole)
    samples = 0
    for number in range(1, SHARDS + 1):
        _, errors = call(folder, "run", "run.yaml", "--shard", f"{number}/{SHARDS}")
        own = manifest(folder / "run" / "shards" / f"{number}-of-{SHARDS}")
        assert own["shard"] == f"{number}/{SHARDS}"
        samples += own["counts"]["samples"]
        assert "share" in errors
    assert samples == 30
    output, _ = call(folder, "status", "run")
    assert "shard 4/4: done, 7 samples" in output
    assert "run without --shard" in output
    assert not (folder / "run" / "run.json").exists()
    # A question that two samples share may be asked by two shards at once, never in a row.
    assert Counter(asked(folder)) == Counter(expected)
    call(folder, "run", "run.yaml")
    assert len(asked(folder)) == len(expected)
    done = manifest(folder / "run")
    assert done["counts"]["asked"] == 0
    assert done["tokens"] == manifest(whole / "run")["tokens"]
    assert table_bytes(folder / "run") == table_bytes(whole / "run")


def test_four_shards_killed_at_random_equal_one_run(
    corpus: Path, whole: Path, tmp_path: Path
) -> None:
    folder = config(tmp_path / "a", corpus, delay=0.05)
    dice = random.Random(3)
    words = [("run", "run.yaml", "--shard", f"{k}/{SHARDS}") for k in range(1, SHARDS + 1)]
    kills = 0
    for _ in range(2):
        processes = [start(folder, *w) for w in words]
        begun = time.monotonic()
        before = len(asked(folder))
        while len(asked(folder)) == before and time.monotonic() - begun < 60:
            time.sleep(0.02)
        for process in processes:
            time.sleep(dice.uniform(0.0, 0.4))
            process.send_signal(signal.SIGKILL)
            kills += 1
        for process in processes:
            process.communicate()
    for process in [start(folder, *w) for w in words]:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    count = len(asked(folder))
    call(folder, "run", "run.yaml")
    assert len(asked(folder)) == count, "all was judged by the shards"
    assert table_bytes(folder / "run") == table_bytes(whole / "run")
    twice = sum(Counter(asked(folder)).values()) - len(set(asked(whole)))
    assert twice <= kills * BATCH * IN_FLIGHT, "only what was in flight is asked again"


def test_more_shards_than_samples(corpus: Path, tmp_path: Path) -> None:
    folder = config(tmp_path / "a", corpus)
    _, errors = call(folder, "run", "run.yaml", "--limit", "2", "--shard", "3/3")
    assert "fewer samples than shards" in errors
    assert not asked(folder)


@pytest.mark.parametrize("text", ["0/4", "5/4"])
def test_what_is_no_shard(text: str, corpus: Path, tmp_path: Path) -> None:
    folder = config(tmp_path / "a", corpus)
    _, errors = call(folder, "run", "run.yaml", "--shard", text, code=2)
    assert "--shard" in errors
    assert "K/N" in errors


def test_a_run_killed_while_it_was_reading_begins_again(corpus: Path, tmp_path: Path) -> None:
    folder = config(tmp_path / "a", corpus)
    left = folder / "run" / ".ingestx7"
    left.mkdir(parents=True)
    (left / "units.parquet.unfinished").write_bytes(b"half")
    call(folder, "run", "run.yaml", "--limit", "2")
    assert not left.exists()
