"""Reading a run: look-up, ranking, what it says about judge and profile."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.runs import grid, make_run, manifest, metrics_table, row

from omnijudge import tables
from omnijudge.errors import DataError
from omnijudge.report.results import Results

ALL = ("ia_qtf1", "all")


def results(rows, **changes):
    return Results(metrics_table(rows), manifest(**changes))


def places(found: Results) -> list[tuple[str, int | None]]:
    return [(r.system, r.place) for r in found.ranking]


def test_ranking_has_ties_and_puts_systems_without_a_value_last() -> None:
    found = results(grid([ALL], {"a": [0.2], "b": [None], "c": [0.5], "d": [0.2], "e": [0.1]}))
    assert places(found) == [("c", 1), ("a", 2), ("d", 2), ("e", 4), ("b", None)]


def test_lower_is_better_turns_the_order_round() -> None:
    rows = grid([("response_delay_mean", "all")], {"slow": [4.0], "fast": [0.5]})
    assert places(results(rows)) == [("fast", 1), ("slow", 2)]


def test_controls_stand_in_the_order_without_a_place() -> None:
    floor, ceiling = "control:silent", "control:oracle"
    rows = grid([ALL], {"a": [0.2], floor: [0.0], ceiling: [0.9], "b": [0.4]})
    found = results(rows)
    assert places(found) == [(ceiling, None), ("b", 1), ("a", 2), (floor, None)]
    assert found.tested == ["a", "b"]
    assert [r.control for r in found.ranking] == [True, False, False, True]


def test_a_system_that_is_named_like_a_control_is_a_system() -> None:
    rows = grid([ALL], {"silent": [0.3], "b": [0.4]})
    assert places(results(rows)) == [("b", 1), ("silent", 2)]


@pytest.mark.parametrize(
    ("benchmark", "keys", "values", "lead"),
    [
        ("omniinteract", [("nor", "interrupted"), ALL], [0.1, 0.2], ALL),
        (
            "omni_interactscope",
            [("joint_accuracy", "average_six"), ("timely_recall", "T8")],
            [None, 40.0],
            ("timely_recall", "T8"),
        ),
        (
            "omni_duplexeval",
            [("temporal", "rtd"), ("overall", "all")],
            [1.0, 2.0],
            ("overall", "all"),
        ),
        ("from_outside", [("x", "g"), ("y", "g")], [None, 2.0], ("y", "g")),
    ],
)
def test_leading_metric(benchmark, keys, values, lead) -> None:
    found = results(grid(keys, {"a": values}), benchmark=benchmark)
    assert found.lead == lead


def test_rank_ranges_come_from_the_comparisons() -> None:
    ranks = tables.make(
        tables.RANKS,
        {
            "system": ["a", "b", "a"],
            "metric": ["ia_qtf1", "ia_qtf1", "nor"],
            "group": ["all", "all", "interrupted"],
            "rank": [1, 2, 2],
            "rank_low": [1, 1, 9],
            "rank_high": [2, 2, 9],
        },
    )
    rows = grid([ALL], {"a": [0.5], "b": [0.4], "c": [0.3]})
    found = Results(metrics_table(rows), manifest(), ranks)
    assert [(r.system, r.low, r.high) for r in found.ranking] == [
        ("a", 1, 2),
        ("b", 1, 2),
        ("c", None, None),
    ]


def test_who_judged() -> None:
    rows = [row("a", *ALL, 0.5)]
    found = results(rows, engine="lexical")
    assert found.smoke
    assert str(found.judges[0]) == "main (lexical, smoke judge)"
    found = results(rows)
    assert not found.smoke
    assert str(found.judges[0]) == "main (Qwen/Qwen3-14B@8268fe3)"
    assert found.judges[0].pack == "pack 3"


def test_a_panel_is_named_whole() -> None:
    panel = {
        "panel": [{"name": "x", "engine": "vllm", "model": "m"}, {"name": "y", "engine": "lexical"}]
    }
    found = results([row("a", *ALL, 0.5)], config={"judge": panel}, judges={})
    assert [str(j) for j in found.judges] == ["x (m)", "y (lexical, smoke judge)"]
    assert found.smoke


def test_profile_and_corrections() -> None:
    scoring = {"profile": "robust", "corrections": ["anchor_normalised", {"spill_tolerance": 0.5}]}
    found = results([row("a", *ALL, 0.5, profile="published")], scoring=scoring)
    assert found.profile == "published"
    assert found.corrections == ["anchor_normalised", "spill_tolerance 0.5"]


def test_read(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [row("a", *ALL, 0.5, n_missing=4)])
    found = Results.read(run)
    assert found.title == "OmniInteract"
    assert found.missing("a") == 4
    assert found.value("a", *ALL) == 0.5
    assert found.value("a", "nor", "all") is None


def test_no_run_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no run here .no run\.json."):
        Results.read(tmp_path)


def test_a_run_that_has_no_metrics_yet(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [])
    (run / "metrics.parquet").unlink()
    with pytest.raises(DataError, match=r"metrics\.parquet: is missing"):
        Results.read(run)
