"""Every value of the golden InteractScope set, through the library's own steps."""

from __future__ import annotations

import pytest
from golden.interactscope_run import (
    SETTINGS,
    SYSTEMS,
    check_summary,
    close,
    golden_summary,
    interactions,
    load,
    metric_values,
    scored,
)

from omnijudge.benchmarks.omni_interactscope.options import Options
from omnijudge.benchmarks.omni_interactscope.windows import FIRST_RESPONSE_TASKS


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_interaction_and_target(system: str) -> None:
    part, scores = scored(system)
    found = interactions(part, scores, Options())
    expected = load(f"expected/{system}.json")["primary"]["interactions"]
    assert [i["interaction_id"] for i in found] == [i["interaction_id"] for i in expected]
    for mine, theirs in zip(found, expected, strict=True):
        assert mine == theirs | {"observed_seconds": close(theirs["observed_seconds"])}


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("name", SETTINGS)
def test_every_summary_value(system: str, name: str) -> None:
    _, scores = scored(system, tuple(SETTINGS[name].items()))
    check_summary(metric_values(scores), golden_summary(system, name), scores)


@pytest.mark.parametrize("system", SYSTEMS)
def test_success_count_grows_with_the_tolerance_under_the_literal_rule(system: str) -> None:
    counts = []
    for tolerance in (1.0, 2.0, 4.0):
        _, scores = scored(system, (("tolerance", tolerance),))
        rows = scores.select(["task", "success"]).to_pylist()
        counts.append(sum(r["success"] or 0 for r in rows if r["task"] in FIRST_RESPONSE_TASKS))
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
