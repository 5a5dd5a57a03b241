"""The end of ``omnijudge run``: what a person must not miss, within the width of the terminal."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from fakes.runs import grid, make_run, manifest, row

from omnijudge import tables
from omnijudge.report.terminal import dry_run_text, summary_text

KEYS = [("ia_qtf1", g) for g in ("realtime", "proactive", "nested", "1q1a", "1qna", "all")]
VALUES = {
    "attentive": [0.7, 0.8, 0.9, 0.75, 0.6, 0.71],
    "chatty": [0.2, 0.3, 0.2, 0.25, 0.1, 0.18],
    "安静的助手": [0.3, 0.2, 0.1, 0.22, 0.1, 0.21],
}


def summary(folder: Path, rows=None, width: int | None = 110, **changes) -> str:
    tables_given = {k: changes.pop(k) for k in ("ranks",) if k in changes}
    rows = grid(KEYS, VALUES) if rows is None else rows
    return summary_text(make_run(folder / "run", rows, manifest(**changes), **tables_given), width)


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_ranking_comes_first_and_is_in_order(tmp_path: Path) -> None:
    lines = summary(tmp_path).splitlines()
    assert lines[0] == "OmniInteract: 17 samples, 98 units, 3 systems"
    head = next(i for i, line in enumerate(lines) if line.startswith("#"))
    assert "IA-QTF1, All" in lines[head]
    body = [line.split() for line in lines[head + 2 : head + 5]]
    assert [line[:5] for line in body] == [
        ["1", "attentive", "0.710", "[0.660,", "0.750]"],
        ["2", "安静的助手", "0.210", "[0.160,", "0.250]"],
        ["3", "chatty", "0.180", "[0.130,", "0.220]"],
    ]


def test_judge_profile_prompts_and_intervals_are_named(tmp_path: Path) -> None:
    text = one_line(summary(tmp_path))
    assert "OmniInteract, profile robust." in text
    assert "Judge main (Qwen/Qwen3-14B@8268fe3), prompts pack 3." in text
    assert "Intervals: 95 %, cluster bootstrap, percentile over clusters of video_id" in text
    assert "smoke" not in text


def test_the_smoke_judge_is_named_as_one(tmp_path: Path) -> None:
    text = one_line(summary(tmp_path, engine="lexical"))
    assert "Judge main (lexical, smoke judge)" in text
    assert "say nothing about the systems" in text


def test_questions_tokens_and_cost(tmp_path: Path) -> None:
    text = one_line(summary(tmp_path, cost=12.345))
    assert "Questions: 282; requests to the judge 280, answers reused 2" in text
    assert "tokens: 93,000 in (60,000 cached), 12,000 out." in text
    assert "Cost: 12.35." in text or "Cost: 12.34." in text


def test_nothing_lost_is_said(tmp_path: Path) -> None:
    assert "Lost: nothing." in summary(tmp_path)


def test_losses_missing_outputs_and_warnings(tmp_path: Path) -> None:
    rows = [row("a", "ia_qtf1", "all", 0.5, n_missing=3), row("b", "ia_qtf1", "all", 0.4)]
    problem = {
        "code": "dropped_bad_time", "level": "warning", "file": "f.json", "place": "chunk 1",
        "message": "no number", "sample_id": "s", "system": "a", "count": 4,
    }  # fmt: skip
    counts = {
        "answers": {"a": {"core": {"ok": 40, "invalid": 2, "error": 1}}},
        "missing_outputs": {"a": 3}, "systems": 2, "unscored_units": 3,
    }  # fmt: skip
    text = summary(tmp_path, rows, counts=counts, problems=[problem])
    ranked = [line.split() for line in text.splitlines() if line.startswith(("1", "2"))]
    assert ranked[0][:3] == ["1", "a", "3"]
    said = one_line(text)
    assert "3 of 34 outputs missing or unreadable (scored as silence)" in said
    assert "2 of 43 answers invalid after all attempts" in said
    assert "1 of 43 questions without an answer" in said
    assert "3 units unscored" in said
    assert "Missing outputs (scored as silence): a (3)." in said
    assert "Warnings in the data: dropped_bad_time 4." in said


def test_a_stopped_run_says_so_first(tmp_path: Path) -> None:
    text = summary(tmp_path, state="stopped", stopped="deadline 07:45 reached")
    assert text.startswith("NOT COMPLETE: deadline 07:45 reached.")


def test_few_clusters_bring_the_careful_interval(tmp_path: Path) -> None:
    warned = {"warning": "only 8 clusters; prefer the careful interval"}
    rows = [row("a", *KEYS[-1], 0.5, **warned), row("b", *KEYS[-1], 0.3)]
    text = summary(tmp_path, rows)
    assert "careful" in text
    assert "[0.440, 0.550]" in text
    assert "0.500* [0.450, 0.540]" in text
    assert "Read intervals marked * with care: only 8 clusters" in one_line(text)


def test_a_mark_that_stands_everywhere_stands_nowhere(tmp_path: Path) -> None:
    rows = grid(KEYS, VALUES)
    text = summary(tmp_path, [{**r, "warning": "only 8 clusters"} for r in rows])
    assert "*" not in text
    assert "Read all intervals with care: only 8 clusters" in one_line(text)


def test_incomplete_coverage_is_flagged(tmp_path: Path) -> None:
    rows = [row("a", *KEYS[-1], 0.5, coverage=0.98, n_unscored=10), row("b", *KEYS[-1], 0.3)]
    text = summary(tmp_path, rows)
    assert "0.500! [0.450, 0.540]" in text
    assert "lowest 98.0 % (a, IA-QTF1, All)" in one_line(text)


def test_rank_ranges(tmp_path: Path) -> None:
    ranks = tables.make(
        tables.RANKS,
        {
            "system": ["attentive", "安静的助手", "chatty"],
            "metric": ["ia_qtf1"] * 3, "group": ["all"] * 3, "rank": [1, 2, 3],
            "rank_low": [1, 2, 2], "rank_high": [1, 3, 3],
        },
    )  # fmt: skip
    text = summary(tmp_path, ranks=ranks)
    found = [line.split()[:3] for line in text.splitlines() if "[0." in line]
    assert found == [
        ["1", "attentive", "0.710"],
        ["2", "(2-3)", "安静的助手"],
        ["3", "(2-3)", "chatty"],
    ]


@pytest.mark.parametrize("width", [60, 80, 110, 200])
def test_the_table_fits_the_terminal(tmp_path: Path, width: int) -> None:
    from rich.cells import cell_len

    text = summary(tmp_path, width=width)
    table = text.split("\n\n")[1].splitlines()
    assert max(map(cell_len, table)) <= width
    assert all("0.710" in line for line in table if "attentive" in line)


def test_a_long_ranking_is_cut_and_says_where_the_rest_is(tmp_path: Path) -> None:
    rows = grid(KEYS[-1:], {f"s{i:03d}": [i / 300] for i in range(200)})
    text = summary(tmp_path, rows)
    assert "and 170 more systems: see the report" in text
    assert sum(line.split()[1:2] == ["s199"] for line in text.splitlines()) == 1
    assert " s000 " not in text


def test_the_report_is_named_where_it_lies(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", grid(KEYS, VALUES))
    assert "Report:" not in summary_text(run, 60)
    (run / "report.html").write_text("x")
    assert summary_text(run, 60).splitlines()[-1] == f"Report: {run}/report.html"


class Terminal(io.StringIO):
    """Output that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_styles_only_on_a_terminal_that_wants_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "run", grid(KEYS, VALUES))
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert "\x1b" not in summary_text(run)
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert "\x1b[1m" in summary_text(run)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in summary_text(run)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in summary_text(run)


def test_brackets_in_a_name_are_no_markup(tmp_path: Path) -> None:
    text = summary(tmp_path, [row("[bold]x[/bold]", "ia_qtf1", "all", 0.5)])
    assert "[bold]x[/bold]" in text


def test_no_value_at_all(tmp_path: Path) -> None:
    text = summary(tmp_path, [row("a", "ia_qtf1", "all", None, coverage=None)])
    assert ["–", "a", "–"] in [line.split() for line in text.splitlines()]


def test_an_empty_table_of_metrics(tmp_path: Path) -> None:
    assert "0 systems" in summary(tmp_path, [])


def test_dry_run() -> None:
    counts = {
        "samples": 17, "units": 98, "systems": 3, "questions": 282,
        "distinct_questions": {"main": 240}, "missing_outputs": {"a": 2, "b": 0},
        "warnings": {"long": 3}, "problems": {},
    }  # fmt: skip
    assert dry_run_text(counts).splitlines() == [
        "17 samples, 98 units, 3 systems",
        "282 questions in the first round",
        "  judge main: 240 distinct questions",
        "outputs missing or unreadable: a 2",
        "warnings in the data: long 3",
        "Dry run: nothing was asked and nothing was written.",
    ]
