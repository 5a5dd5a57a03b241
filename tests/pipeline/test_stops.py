"""Runs that end early: cost, deadline, signals. What is there is whole samples, and goes on."""

from __future__ import annotations

import signal
import time
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fakes.commands import call, manifest, rows, start, table_bytes
from fakes.corpus import write_corpus

ROOT = Path(__file__).parents[2]
SAMPLES = 40

CONFIG = """
benchmark: omniinteract
data: {{manifest: {manifest}}}
judge:
  engine: "fakes.odd_lexical:OddLexical"
  engine_options: {{log: {log}, delay: {delay}, tokens: 1000}}
  price: {{input: 1000.0}}
execution: {{batch_size: 8, in_flight: 1}}
statistics: {{replicates: 200}}
store: store
output: run
"""
# A question costs 1.00: a thousand tokens at a thousand per million.


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus") / "c", SAMPLES)


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


def complete_samples(run: Path) -> set[str]:
    """Samples all of whose questions, for all systems, have an answer."""
    answered = {j["fingerprint"] for j in rows(run, "judgements")}
    samples = {s["sample_id"] for s in rows(run, "outputs")}
    open_ones = {q["sample_id"] for q in rows(run, "questions") if q["fingerprint"] not in answered}
    return samples - open_ones


def check_partial(run: Path, whole: Path) -> set[str]:
    """Only whole samples are scored, each as in the undisturbed run; returns them."""
    complete = complete_samples(run)
    expected = {(r["system"], r["sample_id"], r["unit_id"]): r for r in rows(whole, "scores")}
    for row in rows(run, "scores"):
        key = row["system"], row["sample_id"], row["unit_id"]
        if row["sample_id"] in complete:
            assert row == expected[key]
        else:
            assert row["judged"] is False
    counts = manifest(run)["counts"]
    assert counts["samples_incomplete"] == SAMPLES - len(complete)
    for row in rows(run, "metrics"):
        if (row["metric"], row["group"]) == ("ia_qtf1", "all"):
            assert 0 < row["coverage"] < 1
            assert row["bound_low"] <= row["value"] <= row["bound_high"]
            assert row["n_clusters"] <= len(complete)
    return complete


def test_a_cost_limit_leaves_whole_samples(corpus: Path, whole: Path, tmp_path: Path) -> None:
    folder = config(tmp_path / "a", corpus)
    total = len(asked(whole))
    half = f"limits.max_cost={total / 2}"
    output, errors = call(folder, "run", "run.yaml", "-o", half, code=5)
    assert "is spent, the limit is" in errors
    assert "NOT COMPLETE" in output
    complete = check_partial(folder / "run", whole / "run")
    assert len(complete) >= 0.45 * SAMPLES
    found = manifest(folder / "run")
    assert (found["state"], found["stopped_by"]) == ("stopped", "cost")
    spent = len(asked(folder))
    assert found["cost"] == pytest.approx(spent)
    assert total / 2 <= spent <= total / 2 + 40, "no more than the samples begun and a batch"

    # Scored anew it is still about whole samples only.
    call(folder, "score", "run", "--out", "again", code=None)
    assert table_bytes(folder / "again", ("scores",)) == table_bytes(folder / "run", ("scores",))
    assert manifest(folder / "again")["state"] == "stopped"

    # The same limit again: nothing is left to spend.
    call(folder, "run", "run.yaml", "-o", half, code=5)
    assert len(asked(folder)) == spent
    assert manifest(folder / "run")["cost"] == pytest.approx(spent)

    # Without the limit it goes on where it stopped.
    call(folder, "run", "run.yaml")
    assert Counter(asked(folder)) == Counter(asked(whole))
    found = manifest(folder / "run")
    assert found["state"] == "done"
    assert found["cost"] == pytest.approx(total)
    assert found["tokens"]["prompt"] == 1000 * total
    assert table_bytes(folder / "run") == table_bytes(whole / "run")


def test_a_deadline_leaves_whole_samples(corpus: Path, whole: Path, tmp_path: Path) -> None:
    folder = config(tmp_path / "a", corpus, delay=0.3)
    process = start(folder, "run", "run.yaml", "-o", f"limits.deadline={_soon(15)}")
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 5, errors
    assert "the deadline" in errors
    assert "NOT COMPLETE" in output
    assert manifest(folder / "run")["stopped_by"] == "deadline"
    check_partial(folder / "run", whole / "run")


def _soon(seconds: float) -> str:
    return (datetime.now() + timedelta(seconds=seconds)).strftime("%H:%M:%S")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_keeps_what_was_judged(
    number: signal.Signals, corpus: Path, whole: Path, tmp_path: Path
) -> None:
    folder = config(tmp_path / "a", corpus, delay=0.2)
    process = start(folder, "run", "run.yaml")
    until = time.monotonic() + 60
    while len(asked(folder)) < 40 and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(number)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert f"interrupted by {number.name}" in errors
    assert "NOT COMPLETE" in output
    assert "Traceback" not in errors
    check_partial(folder / "run", whole / "run")
    before = asked(folder)
    assert len(before) < len(asked(whole))
    call(folder, "run", "run.yaml", "-o", "judge.engine_options.delay=0")
    assert Counter(asked(folder)) == Counter(asked(whole))
    assert table_bytes(folder / "run") == table_bytes(whole / "run")


def test_a_signal_before_anything_is_asked(corpus: Path, tmp_path: Path) -> None:
    folder = config(tmp_path / "a", corpus)
    process = start(folder, "run", "run.yaml")
    until = time.monotonic() + 60
    while not (folder / "run").exists() and time.monotonic() < until:
        time.sleep(0.005)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=120)
    assert process.returncode in (130, 0), errors  # 0: it was done already
    assert "Traceback" not in errors


def test_a_cost_limit_without_a_price_is_refused(corpus: Path, tmp_path: Path) -> None:
    folder = config(tmp_path / "a", corpus)
    words = ("-o", "judge.price=null", "-o", "judge.price={}", "-o", "limits.max_cost=5")
    _, errors = call(folder, "run", "run.yaml", *words, code=2)
    assert "limits.max_cost: no judge has a price" in errors


def test_a_kill_forgets_no_cost(corpus: Path, tmp_path: Path) -> None:
    """What was spent before a kill counts against the limit of the next beginning."""
    folder = config(tmp_path / "a", corpus, delay=0.2)
    process = start(folder, "run", "run.yaml")
    until = time.monotonic() + 90
    while _noted(folder) == 0 and time.monotonic() < until:
        time.sleep(0.05)
    process.kill()
    process.communicate()
    noted = _noted(folder)
    assert noted > 0
    call(folder, "run", "run.yaml", "-o", f"limits.max_cost={noted}", code=5)
    assert manifest(folder / "run")["cost"] == pytest.approx(noted)


def _noted(folder: Path) -> float:
    path = folder / "run" / "run.json"
    usage: dict[str, Any] = manifest(folder / "run").get("usage", {}) if path.exists() else {}
    return float(usage.get("main", {}).get("cost", 0.0))


DUPLEX = """
benchmark: omni_duplexeval
data: {{annotations: {sample}/annotations.jsonl}}
systems: {{attentive: {sample}/outputs/attentive, chatty: {sample}/outputs/chatty}}
judge:
  engine: "fakes.odd_lexical:OddLexical"
  engine_options: {{log: {log}, tokens: 1000}}
  price: {{input: 1000.0}}
scoring: {{evidence: captions}}
execution: {{batch_size: 4, in_flight: 1}}
statistics: {{replicates: 200}}
store: store
output: run
"""


def test_a_second_round_does_not_wait_for_the_end_of_the_night(tmp_path: Path) -> None:
    """Half of the questions finish half of the samples where answers raise further questions."""
    sample = ROOT / "omnijudge" / "sample_data" / "omni_duplexeval"
    text = DUPLEX.format(sample=sample, log=tmp_path / "log.txt")
    (tmp_path / "run.yaml").write_text(text, encoding="utf-8")
    call(tmp_path, "run", "run.yaml", "--no-store", "-o", "output=whole")
    total = len(asked(tmp_path))
    stages = {q["fingerprint"]: q["stage"] for q in rows(tmp_path / "whole", "questions")}
    order = [stages[line.split()[1]] for line in asked(tmp_path)]
    assert order.index("window") < len(order) - 1 - order[::-1].index("relevance")
    (tmp_path / "log.txt").unlink()
    call(tmp_path, "run", "run.yaml", "-o", f"limits.max_cost={total / 2}", code=5)
    counts = manifest(tmp_path / "run")["counts"]
    assert counts["samples"] - counts["samples_incomplete"] >= 0.45 * counts["samples"]
    assert complete_samples(tmp_path / "run")
    call(tmp_path, "run", "run.yaml")
    assert len(asked(tmp_path)) == len(set(asked(tmp_path))) == total
    assert table_bytes(tmp_path / "run") == table_bytes(tmp_path / "whole")


def test_a_server_that_is_gone_ends_the_run(corpus: Path, tmp_path: Path) -> None:
    """Not every question is tried when nobody answers; what is there is scored."""
    folder = config(tmp_path / "a", corpus)
    words = ("-o", "judge.engine=openai", "-o", "judge.model=small-2025-01-01",
             "-o", "judge.base_url=http://127.0.0.1:9/v1", "-o", "judge.transport_retries=0",
             "-o", "judge.engine_options={}")  # fmt: skip
    output, errors = call(folder, "run", "run.yaml", *words, code=1)
    assert "questions in a row failed" in errors
    assert "the server cannot be reached" in errors
    assert "NOT COMPLETE" in output
    found = manifest(folder / "run")
    assert (found["state"], found["stopped_by"]) == ("stopped", "engine")
    assert 1000 <= found["counts"]["asked"] < 1100
