"""Plots: every mark where its value belongs, named, and the same bytes each time."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from itertools import pairwise

import pytest
from fakes.runs import grid, manifest, metrics_table, row

from omnijudge.report.plots import (
    Plot,
    delay_plot,
    label,
    ranking_plot,
    stack_plot,
    trade_off_plot,
)
from omnijudge.report.published import DELAYS, STACKS, TRADE_OFFS
from omnijudge.report.results import Ranked, Results

ALL = ("ia_qtf1", "all")
FP = [("fp_early", "all"), ("fp_low", "all"), ("fp_spill", "all"), ("fp_unmatched", "all")]
DELAY = [("response_delay_p50", "all"), ("response_delay_p90", "all")]
POINT = [("recall", "all"), ("precision", "all")]
KEYS = [ALL, *FP, *DELAY, *POINT]
VALUES = {
    "first": [0.5, 8.0, 0.0, 2.0, 5.0, 0.5, 1.5, 0.6, 0.4],
    '<b>&"x" $y_1$': [0.2, 1.0, 1.0, 1.0, 1.0, 2.0, 4.0, 0.1, 0.9],
    "慢吞吞的助手": [0.3, 0.0, 3.0, 0.0, 0.0, 6.0, 12.0, 0.3, 0.3],
}


def results(values=VALUES, **changes) -> Results:
    return Results(metrics_table(grid(KEYS, values)), manifest(**changes))


def all_plots(found: Results) -> list[Plot]:
    plots = [
        ranking_plot(found),
        stack_plot(found, STACKS["omniinteract"]),
        delay_plot(found, DELAYS["omniinteract"]),
        trade_off_plot(found, TRADE_OFFS["omniinteract"]),
    ]
    return [p for p in plots if p is not None]


def tree(plot: Plot) -> ET.Element:
    # Inside HTML no namespace needs to be declared; a parser of XML is told none.
    return ET.fromstring(plot.svg)


def marks(plot: Plot, gid: str) -> list[tuple[str, float]]:
    """Tips of an artist's marks with their place from the left."""
    group = next(g for g in tree(plot).iter("g") if g.get("id", "").endswith(f"-{gid}"))
    found = []
    for mark in [*group.iter("use"), *group.iter("path")]:
        title = mark.find("title")
        if title is not None and title.text is not None:
            place = mark.get("x") or re.findall(r"[ML] ([\d.]+)", mark.get("d", ""))[0]
            found.append((title.text, float(place)))
    return found


def texts(plot: Plot) -> list[str]:
    return [t.text or "" for t in tree(plot).iter("text")]


def scale(places: dict[float, float]) -> tuple[float, float]:
    """Slope and offset of value -> place from two known pairs."""
    (a, x), (b, y) = list(places.items())[:2]
    slope = (y - x) / (b - a)
    return slope, x - slope * a


def test_the_ranking_has_a_dot_per_system_at_its_value() -> None:
    plot = ranking_plot(results())
    assert plot is not None
    found = marks(plot, "dots")
    assert [t for t, _ in found] == [
        "first: 0.500 [0.450, 0.540]",
        "慢吞吞的助手: 0.300 [0.250, 0.340]",
        '<b>&"x" $y_1$: 0.200 [0.150, 0.240]',
    ]
    slope, offset = scale({0.5: found[0][1], 0.2: found[2][1]})
    assert slope > 0
    assert found[1][1] == pytest.approx(slope * 0.3 + offset, abs=0.01)
    said = texts(plot)
    assert said.index("1. first") < said.index("2. 慢吞吞的助手")
    assert "0.300" in said


def test_controls_are_drawn_apart() -> None:
    plot = ranking_plot(results({"first": VALUES["first"], "control:oracle": [0.9] * 9}))
    assert plot is not None
    assert [t for t, _ in marks(plot, "controls")] == ["control:oracle: 0.900 [0.850, 0.940]"]
    assert [t for t, _ in marks(plot, "dots")] == ["first: 0.500 [0.450, 0.540]"]
    assert "control:oracle" in texts(plot)
    assert "Diamonds are controls" in plot.note


def test_systems_without_a_value_are_counted_not_drawn() -> None:
    rows = [row("a", *ALL, 0.5), row("b", *ALL, None)]
    plot = ranking_plot(Results(metrics_table(rows), manifest()))
    assert plot is not None
    assert plot.left_out == 1
    assert len(marks(plot, "dots")) == 1


def test_parts_of_the_false_positives() -> None:
    plot = stack_plot(results(), STACKS["omniinteract"])
    assert plot is not None
    assert [t for t, _ in marks(plot, "part-0")] == [
        "first: invented early 8",
        '<b>&"x" $y_1$: invented early 1',
    ]
    assert [t for t, _ in marks(plot, "part-1")] == [
        "慢吞吞的助手: low quality 3",
        '<b>&"x" $y_1$: low quality 1',
    ]
    # Each part begins where the one before it ends: 8, 2, 5 of the first system.
    (_, zero), (_, one) = marks(plot, "part-0")[0], marks(plot, "part-1")[1]
    unit = one - zero
    assert marks(plot, "part-2")[0][1] == pytest.approx(zero + 8 * unit, abs=0.01)
    assert marks(plot, "part-3")[0][1] == pytest.approx(zero + 10 * unit, abs=0.01)
    assert {"15", "3", "4"} <= set(texts(plot))


def test_parts_that_nobody_has_are_not_in_the_legend() -> None:
    rows = grid([ALL, ("fp_low", "all"), ("fp_spill", "all")], {"a": [0.5, 3.0, 0.0]})
    plot = stack_plot(Results(metrics_table(rows), manifest()), STACKS["omniinteract"])
    assert plot is not None
    assert "low quality" in texts(plot)
    assert "spoke past the end" not in texts(plot)


def test_statuses_are_summed_over_tasks() -> None:
    keys = [("joint_accuracy", "average_six")]
    keys += [(f"status_{s}", t) for t in ("T1", "T2") for s in ("success", "early")]
    rows = grid(keys, {"a": [50.0, 3.0, 1.0, 4.0, 2.0]})
    found = Results(metrics_table(rows), manifest("omni_interactscope"))
    plot = stack_plot(found, STACKS["omni_interactscope"])
    assert plot is not None
    assert marks(plot, "part-0")[0][0] == "a: success 7"
    assert marks(plot, "part-2")[0][0] == "a: too early 3"


def test_delays() -> None:
    plot = delay_plot(results(), DELAYS["omniinteract"])
    assert plot is not None
    assert [t for t, _ in marks(plot, "p50")] == [
        "first: median 0.50 s",
        "慢吞吞的助手: median 6.00 s",
        '<b>&"x" $y_1$: median 2.00 s',
    ]
    p50, p90 = dict(marks(plot, "p50")), dict(marks(plot, "p90"))
    assert p50["慢吞吞的助手: median 6.00 s"] < p90["慢吞吞的助手: 90th percentile 12.00 s"]
    assert "6.00 / 12.00" in texts(plot)


def test_trade_off() -> None:
    plot = trade_off_plot(results(), TRADE_OFFS["omniinteract"])
    assert plot is not None
    found = marks(plot, "points")
    assert found[0][0] == "first: Recall 0.600, Precision 0.400"
    slope, offset = scale({0.6: found[0][1], 0.1: found[2][1]})
    assert found[1][1] == pytest.approx(slope * 0.3 + offset, abs=0.01)
    assert "1. first" in texts(plot)


def test_without_values_there_is_no_plot() -> None:
    found = Results(metrics_table([row("a", *ALL, None)]), manifest())
    assert all_plots(found) == []


def test_equal_inputs_give_equal_bytes() -> None:
    assert [p.svg for p in all_plots(results())] == [p.svg for p in all_plots(results())]


def test_the_users_own_settings_do_not_show() -> None:
    import matplotlib

    before = [p.svg for p in all_plots(results())]
    with matplotlib.rc_context({"axes.grid": False, "lines.linewidth": 7, "svg.fonttype": "path"}):
        assert [p.svg for p in all_plots(results())] == before
        assert matplotlib.rcParams["lines.linewidth"] == 7


def test_plots_stand_in_one_page_without_touching_it_or_each_other() -> None:
    plots = all_plots(results())
    ids = Counter(e.get("id") for p in plots for e in tree(p).iter() if e.get("id"))
    assert [i for i, n in ids.items() if n > 1] == []
    for p in plots:
        assert "<style" not in p.svg
        assert "<script" not in p.svg
        assert not re.search(r"(href|src)=\"(?!#)", p.svg)
        for used in re.findall(r"href=\"#([^\"]+)\"|url\(#([^)]+)\)", p.svg):
            assert "".join(used) in ids
        assert "#0102" not in p.svg
        assert re.findall(r"(?:fill|stroke): #[0-9a-f]{6}", p.svg) == []


def test_what_those_hear_who_do_not_see() -> None:
    for plot in all_plots(results()):
        root = tree(plot)
        assert root.get("role") == "img"
        by_id = {e.get("id"): e for e in root.iter()}
        for name in (root.get("aria-labelledby") or "").split():
            assert by_id[name].text


@pytest.mark.parametrize("n", [1, 30, 31, 80, 200])
def test_rows_of_many_systems_do_not_touch(n: int) -> None:
    found = Results(metrics_table(grid([ALL], {f"s{i}": [i / n] for i in range(n)})), manifest())
    plot = ranking_plot(found)
    assert plot is not None
    assert plot.tall == (n > 40)
    names = [t for t in tree(plot).iter("text") if re.match(r"\d+\. s\d+", t.text or "")]
    assert len(names) == n
    heights = [float(t.get("y", "nan")) for t in names]
    size = float(names[0].get("font-size", "nan"))
    assert all(b - a > size for a, b in pairwise(heights))
    assert size > 9


def test_a_long_name_is_shortened_in_the_middle() -> None:
    assert label(Ranked("x" * 38, 1, None)) == "1. " + "x" * 38
    assert label(Ranked("a" * 30 + "b" * 30, 2, None)) == "2. " + "a" * 19 + "…" + "b" * 19
