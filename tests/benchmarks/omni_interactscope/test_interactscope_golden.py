"""Every value of the golden InteractScope set, through the library's own steps."""

from __future__ import annotations

from typing import Any

import pytest
from golden.interactscope_run import SYSTEMS, interactions, load, metric_values, scored

from omnijudge.benchmarks.omni_interactscope.options import Options
from omnijudge.benchmarks.omni_interactscope.windows import (
    FIRST_RESPONSE_TASKS,
    ORDERED_TASKS,
    TASKS,
)

Settings = tuple[tuple[str, Any], ...]


def close(expected: Any) -> Any:
    return None if expected is None else pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_interaction_and_target(system: str) -> None:
    part, scores = scored(system)
    found = interactions(part, scores, Options())
    expected = load(f"expected/{system}.json")["primary"]["interactions"]
    assert [i["interaction_id"] for i in found] == [i["interaction_id"] for i in expected]
    for mine, theirs in zip(found, expected, strict=True):
        assert mine == theirs | {"observed_seconds": close(theirs["observed_seconds"])}


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ((), ("primary", "summary")),
        ((("tolerance", 1.0),), ("tolerance_sweep", "1")),
        ((("tolerance", 2.0),), ("tolerance_sweep", "2")),
        ((("tolerance", 4.0),), ("tolerance_sweep", "4")),
        (
            (("first_response_variant", "late_released"),),
            ("first_response_variants", "late_released"),
        ),
        (
            (("first_response_variant", "since_previous"),),
            ("first_response_variants", "since_previous"),
        ),
        ((("grouping_mode", "chained"),), ("chained_grouping",)),
    ],
    ids=lambda x: "-".join(map(str, x)) if x and isinstance(x[0], str) else "",
)
def test_every_summary_value(system: str, settings: Settings, where: tuple[str, ...]) -> None:
    _, scores = scored(system, settings)
    expected = load(f"expected/{system}.json")
    for key in where:
        expected = expected[key]
    check_summary(metric_values(scores), expected, scores)


def check_summary(values: dict[Any, Any], expected: dict[str, Any], scores: Any) -> None:
    assert values["joint_accuracy", "average_six"] == close(expected["average_six"])
    assert values["timely_recall", "T8"] == close(expected["t8_overall"]["score"])
    assert values["outputs_per_minute", "T8"] == close(expected["t8_outputs_per_minute"])
    assert values["outputs_per_minute", "all"] == close(expected["all_outputs_per_minute"])
    assert values["unmatched_outputs", "T8"] == expected["t8_unmatched_outputs"]
    for task in TASKS:
        check_task(task, values, expected["tasks"][task], scores)


def check_task(
    task: str, values: dict[Any, Any], expected: dict[str, Any] | None, scores: Any
) -> None:
    name = "joint_accuracy" if task in FIRST_RESPONSE_TASKS else "timely_recall"
    counts = {m[7:]: v for (m, group), v in values.items() if m[:7] == "status_" and group == task}
    rows = [
        r for r in scores.select(["task", "unit_kind", "success"]).to_pylist() if r["task"] == task
    ]
    if expected is None:  # not evaluated: nothing is zero, everything is null
        assert values[name, task] is None
        assert set(counts.values()) == {None}
        assert rows == []
        return
    assert values[name, task] == close(expected["score"])
    assert {k: v for k, v in counts.items() if v} == expected["statuses"]
    assert sum(counts.values()) == expected["targets"]
    assert sum(r["unit_kind"] == "interaction" for r in rows) == expected["interactions"]
    assert sum(r["success"] or 0 for r in rows) == expected["successes"]
    assert values["missing_trajectories", task] == expected["missing_trajectories"]
    if task in FIRST_RESPONSE_TASKS:
        assert values["on_time_rate", task] == close(expected["on_time_first_response_rate"])
    if task in ("T7", "T8-C"):
        assert values["sequence_coverage", task] == close(expected["complete_sequence_rate"])
    assert set(ORDERED_TASKS) < set(TASKS)


@pytest.mark.parametrize("system", SYSTEMS)
def test_success_count_grows_with_the_tolerance_under_the_literal_rule(system: str) -> None:
    counts = []
    for tolerance in (1.0, 2.0, 4.0):
        _, scores = scored(system, (("tolerance", tolerance),))
        rows = scores.select(["task", "success"]).to_pylist()
        counts.append(sum(r["success"] or 0 for r in rows if r["task"] in FIRST_RESPONSE_TASKS))
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
