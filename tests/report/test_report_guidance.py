"""The advice fits the benchmark and the profile."""

from __future__ import annotations

from typing import Any

from fakes.runs import manifest, metrics_table, row

from omnijudge.report.guidance import reading
from omnijudge.report.results import Results


def advice(benchmark: str, profile: str = "robust", **scoring: Any) -> str:
    values = manifest(benchmark, scoring={"profile": profile, "corrections": [], **scoring})
    table = metrics_table([row("a", "m", "g", 0.5, profile=profile)])
    return " ".join(reading(Results(table, values)))


def test_a_bad_answer_costs_twice_unless_the_threshold_spares_its_credit() -> None:
    assert "a bad answer the miss and a false positive" in advice("omniinteract")
    paper = advice("omniinteract", "paper", threshold_zeroes_core=False)
    assert "a bad answer one false positive (and the miss, if it earns nothing)" in paper


def test_weights_are_those_of_the_run() -> None:
    found = advice("omniinteract", w_ack=0.3, core_weight=None)
    assert "earns at most 0.7; the acknowledgement itself up to 0.3" in found
    assert "earns at most" not in advice("omniinteract", "paper", w_ack=0.3, core_weight=1.0)


def test_the_published_profile_lets_systems_gain_by_failing() -> None:
    assert "can gain" in advice("omniinteract", "published")
    assert "can gain" not in advice("omniinteract")


def test_irrelevant_descriptions_lower_the_others_but_not_as_published() -> None:
    assert "lowers the temporal score" in advice("omni_duplexeval", "paper")
    assert "lowers the temporal score" not in advice("omni_duplexeval", "published")


def test_every_benchmark_is_told_about_judge_and_luck() -> None:
    for benchmark in ("omniinteract", "omni_interactscope", "omni_duplexeval", "from_outside"):
        found = advice(benchmark)
        assert "Judge, prompts and profile are part of every number" in found
        assert "owes something to luck" in found
