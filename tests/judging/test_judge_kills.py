"""The judging process is killed at random points: nothing stored is lost or asked again."""

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
from fakes.questions import asked, fingerprint, stored
from fakes.scripted_engine import good_answer

from omnijudge.judging.store import JudgementStore

BATCH, IN_FLIGHT = 8, 2
Key = tuple[str, int]


def start(
    folder: Path, count: int, backend: str = "local", delay: float = 0.01
) -> subprocess.Popen[str]:
    """The driver, when it has begun to ask."""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    process = subprocess.Popen(
        [sys.executable, "-m", "fakes.judge_driver", str(folder), str(count), backend, str(delay)],
        env=env,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "asking\n"
    return process


def finish(process: subprocess.Popen[str]) -> str:
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return out.strip()


def in_flight(folder: Path, count: int, before: Counter[Key] | None = None) -> set[Key]:
    """What was handed to an engine since ``before`` and is in no journal."""
    with JudgementStore(folder / "store", writable=False) as store:
        assert store.report == []
        kept = {(fingerprint(n).hex(), 1) for n in stored(store, count)}
    return (asked(folder) - (before or Counter())).keys() - kept


def kill_often(folder: Path, kills: int, seed: int, per_kill: int = 120) -> None:
    rng = random.Random(seed)
    count = per_kill * kills
    allowed: Counter[Key] = Counter()
    progress = set()
    for _ in range(kills):
        before = asked(folder)
        process = start(folder, count)
        # By what was asked, not by the clock: a busy machine must not bring all kills together.
        goal = before.total() + rng.randint(0, per_kill)
        while asked(folder).total() < goal and process.poll() is None:
            time.sleep(0.002)
        time.sleep(rng.uniform(0.0, 0.01))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        lost = in_flight(folder, count, before)
        assert len(lost) <= BATCH * IN_FLIGHT
        allowed.update(lost)
        progress.add(len(asked(folder)))
    assert len(progress) > kills / 3, "the kills met the run at different places"
    assert finish(start(folder, count)) == "done"

    times = asked(folder)
    assert len(times) == count
    twice = Counter({key: n - 1 for key, n in times.items() if n > 1})
    assert twice == allowed, "only what was in flight is asked again"
    with JudgementStore(folder / "store") as store:
        assert store.report == []
        assert stored(store, count) == {n: [good_answer(fingerprint(n))] for n in range(count)}
        assert store.stats().rows == count
        assert not list((folder / "store").rglob("*.damaged"))


def test_ten_kills(tmp_path: Path) -> None:
    kill_often(tmp_path, 10, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_two_hundred_kills(tmp_path: Path, seed: int) -> None:
    kill_often(tmp_path, 25, seed=100 + seed)


def test_sigterm_ends_in_order(tmp_path: Path) -> None:
    process = start(tmp_path, 5000)
    time.sleep(0.3)
    process.terminate()
    assert finish(process) == "stopped interrupted"
    assert in_flight(tmp_path, 5000) == set()
    assert not list((tmp_path / "store" / "journals").iterdir())


def test_two_processes_with_halves_and_overlap_fill_one_store(tmp_path: Path) -> None:
    both = [start(tmp_path, count) for count in (150, 300)]
    assert [finish(p) for p in both] == ["done", "done"]
    with JudgementStore(tmp_path / "store") as store:
        assert stored(store, 300) == {n: [good_answer(fingerprint(n))] for n in range(300)}
        assert store.report == []
