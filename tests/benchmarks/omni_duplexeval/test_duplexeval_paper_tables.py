"""The printed tables of the paper: what follows from what (rule 9)."""

from __future__ import annotations

import json
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest
from benchmarks.omni_duplexeval.duplex_run import GOLDEN

from omnijudge.benchmarks.omni_duplexeval import benchmark
from omnijudge.benchmarks.omni_duplexeval.samples import DESCRIPTION_SPLITS, REMINDER_SPLITS
from omnijudge.statistics.metric import Metric

PAPER = json.loads((GOLDEN / "paper_tables.json").read_text("utf-8"))
METRICS = {(m.name, m.group): m for m in benchmark.metrics(benchmark.options().resolved())}


def printed(value: float) -> float:
    """One decimal, ties up, as the paper prints."""
    return float(Decimal(str(round(value, 9))).quantize(Decimal("0.1"), ROUND_HALF_UP))


def successes(counts: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """(successes, samples) as sums of a score of 0 or 100."""
    return [(100 * won, size) for won, size in counts]


def from_counts(metric: Metric, pairs: list[tuple[float, float]]) -> float:
    return float(metric.function(np.array([x for pair in pairs for x in pair], float)))


@pytest.mark.parametrize("model", sorted(PAPER["scene_scores"]))
def test_overall_is_the_mean_of_both_scenes(model: str) -> None:
    scores = PAPER["scene_scores"][model]
    pairs = [(scores["rtd"], 1.0)] * 6 + [(scores["pr"], 1.0)] * 3
    assert printed(from_counts(METRICS["overall", "all"], pairs)) == scores["overall"]


def test_description_score_is_the_plain_mean_of_the_subtasks() -> None:
    pairs = [(PAPER["minicpm_rtd_subtasks"][s], 1.0) for s in DESCRIPTION_SPLITS]
    assert printed(from_counts(METRICS["overall", "rtd"], pairs)) == 59.1


@pytest.mark.parametrize("model", sorted(PAPER["temporal_content"]))
def test_overall_of_a_description_is_the_mean_of_both_parts(model: str) -> None:
    from omnijudge.benchmarks.omni_duplexeval.scoring import overall

    temporal, content, wanted = PAPER["temporal_content"][model]
    found = overall(temporal, content)
    assert found is not None
    assert printed(found) == wanted


def test_reminders_are_pooled_not_averaged() -> None:
    """The printed 20.0 cannot be the mean of the printed parts; pooled counts give it."""
    parts = PAPER["minicpm_pr_subtasks"]
    macro = sum(parts[s] for s in REMINDER_SPLITS) / 3
    assert macro == pytest.approx(PAPER["inference"]["pr_macro_from_printed"])
    assert printed(macro) != PAPER["scene_scores"]["MiniCPM-o 4.5"]["pr"]
    pairs = successes([(27.0, 144.0), (35.0, 126.0), (10.0, 90.0)])
    for split, pair in zip(REMINDER_SPLITS, pairs, strict=True):
        assert printed(from_counts(METRICS["success_rate", split], [pair])) == parts[split]
    assert printed(from_counts(METRICS["success_rate", "pr_pooled"], pairs)) == 20.0
    assert printed(from_counts(METRICS["success_rate", "pr_macro"], pairs)) == 19.2


def test_all_printed_reminder_figures_fit_360_samples() -> None:
    counts = PAPER["inference"]["counts_if_360"]
    wanted = {
        "minicpm": 20.0, "mmduet2": 11.9, "livecc_inst": 4.7, "livecc_base": 1.9,
        "streamingvlm": 1.7, "human_duplex": 92.8, "minicpm_no_answer": 49.2,
        "minicpm_wrong": 27.2, "mmduet2_no_answer": 75.8, "livecc_base_wrong": 91.1,
        "streamingvlm_wrong": 96.7,
    }  # fmt: skip
    share = METRICS["outcome_no_answer", "pr"]
    for name, (count,) in counts.items():
        assert printed(from_counts(share, [(count, 360.0)])) == wanted[name], name


def test_every_split_of_the_four_size_options_gives_the_printed_parts() -> None:
    for option in PAPER["inference"]["er_per_cr_size_and_success_options"]:
        pairs = successes([(float(won), float(size)) for size, won in option])
        for split, pair in zip(REMINDER_SPLITS, pairs, strict=True):
            found = from_counts(METRICS["success_rate", split], [pair])
            assert printed(found) == PAPER["minicpm_pr_subtasks"][split]
        assert printed(from_counts(METRICS["success_rate", "pr_pooled"], pairs)) == 20.0
