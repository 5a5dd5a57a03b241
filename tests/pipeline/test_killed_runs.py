"""A run that is killed anywhere and started again ends as if nothing had happened."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from fakes.logged_lexical import asked

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "omnijudge" / "sample_data" / "omniinteract"
BATCH, IN_FLIGHT = 8, 2
COMPARED = ("units", "scores", "metrics", "judgements", "questions", "stages")

CONFIG = """
benchmark: omniinteract
data: {{root: {sample}/data}}
systems: {{attentive: {sample}/outputs/attentive, chatty: {sample}/outputs/chatty}}
judge:
  engine: "fakes.logged_lexical:LoggedLexical"
  engine_options: {{log: {log}, delay: 0.03, spoil: 9}}
execution: {{batch_size: 8, in_flight: 2}}
statistics: {{replicates: 500}}
store: store
output: run
"""


def write_config(folder: Path) -> Path:
    folder.mkdir()
    path = folder / "run.yaml"
    path.write_text(CONFIG.format(sample=SAMPLE, log=folder / "log.txt"), encoding="utf-8")
    return path


def start(config: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    return subprocess.Popen(
        [sys.executable, "-m", "omnijudge.cli", "run", str(config)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def finish(config: Path) -> None:
    process = start(config)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors.decode()


def tables(folder: Path) -> dict[str, bytes]:
    return {n: (folder / "run" / f"{n}.parquet").read_bytes() for n in COMPARED}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], int]:
    folder = tmp_path_factory.mktemp("whole") / "a"
    finish(write_config(folder))
    questions = asked(folder / "log.txt")
    assert len(questions) == len(set(questions))
    assert any(attempt > 1 for _, attempt in questions)
    return tables(folder), len(questions)


def kill_when(process: subprocess.Popen[bytes], log: Path, count: int, pause: float) -> None:
    """Kills the process once ``count`` questions stand in the log, after a pause."""
    until = time.monotonic() + 60
    while len(asked(log)) < count and process.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
    time.sleep(pause)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.stderr is not None
    process.stderr.close()


@pytest.mark.parametrize("chain", range(2))
def test_ten_kills_change_nothing(
    chain: int, undisturbed: tuple[dict[str, bytes], int], tmp_path: Path
) -> None:
    """Ten kills in a row, from before the first question to after the last."""
    expected, total = undisturbed
    config = write_config(tmp_path / "a")
    log = tmp_path / "a" / "log.txt"
    dice = random.Random(chain)
    for kill in range(10):
        before = len(asked(log))
        count = before + (dice.randint(0, max(1, total // 8)) if kill else 0)
        kill_when(start(config), log, min(count, total), dice.uniform(0, 0.05))
    finish(config)
    assert tables(tmp_path / "a") == expected
    again = Counter(asked(log))
    assert len(again) == total
    lost = sum(n - 1 for n in again.values())
    assert lost <= 10 * BATCH * IN_FLIGHT


def test_second_run_asks_nothing(undisturbed: tuple[dict[str, bytes], int], tmp_path: Path) -> None:
    config = write_config(tmp_path / "a")
    finish(config)
    first, count = tables(tmp_path / "a"), len(asked(tmp_path / "a" / "log.txt"))
    finish(config)
    assert len(asked(tmp_path / "a" / "log.txt")) == count
    assert tables(tmp_path / "a") == first == undisturbed[0]
