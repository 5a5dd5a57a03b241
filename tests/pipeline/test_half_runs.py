"""A run stopped at half of its questions says the same as the whole one, less surely."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.corpus import write_corpus

import omnijudge
from omnijudge.config import RunConfig
from omnijudge.pipeline import RunFlags

SAMPLES = 60
METRICS = {("ia_qtf1", "all"), ("precision", "all"), ("recall", "all")}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tempers = "punctual,late,talkative,silent"
    return write_corpus(tmp_path_factory.mktemp("corpus") / "c", SAMPLES, tempers)


def config(corpus: Path, folder: Path, seed: int, max_cost: float | None) -> RunConfig:
    return RunConfig.model_validate(
        {
            "benchmark": "omniinteract",
            "data": {"manifest": str(corpus)},
            "judge": {
                "engine": "fakes.odd_lexical:OddLexical",
                "engine_options": {"tokens": 1000},
                "price": {"input": 1000.0},
            },
            "execution": {"batch_size": 8, "in_flight": 2},
            "statistics": {"replicates": 1000, "seed": seed},
            "limits": {"max_cost": max_cost, "max_unscored": 100_000},
            "store": str(folder / "store"),
            "output": str(folder / "run"),
        }
    )


def judge(settings: RunConfig) -> omnijudge.Run:
    return omnijudge.run(settings, flags=RunFlags(quiet=True))


def check_seeds(
    seeds: range, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnijudge.report.html.write_report", lambda folder: folder)
    whole = judge(config(corpus, tmp_path / "whole", 0, None))
    total = whole.manifest["cost"]
    truth = values(whole)
    inside = trials = 0
    for seed in seeds:
        half = judge(config(corpus, tmp_path / f"half-{seed}", seed, total / 2))
        assert half.outcome is not None
        assert half.outcome.exit_code == 5
        left_out = half.manifest["counts"]["samples_incomplete"]
        assert SAMPLES - left_out >= 0.45 * SAMPLES
        for row in half.metrics.to_pylist():
            key = row["system"], row["metric"], row["group"]
            if key in truth:
                trials += 1
                inside += row["ci_low"] <= truth[key] <= row["ci_high"]
    assert trials == len(seeds) * 12
    assert inside / trials >= 0.93


def values(run: omnijudge.Run) -> dict[tuple[str, str, str], float]:
    return {
        (r["system"], r["metric"], r["group"]): r["value"]
        for r in run.metrics.to_pylist()
        if (r["metric"], r["group"]) in METRICS
    }


def test_intervals_of_half_runs_cover_the_whole(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_seeds(range(6), corpus, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_intervals_of_two_hundred_half_runs_cover_the_whole(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_seeds(range(1000, 1200), corpus, tmp_path, monkeypatch)
