"""``omnijudge metrics``: what each layout and format holds. Figures are those of the papers."""

from __future__ import annotations

import csv
import io
import json
import re

import pyarrow as pa
import pytest
from fakes.runs import grid, manifest, metrics_table, row

from omnijudge import tables
from omnijudge.errors import ConfigError, DataError
from omnijudge.report.layouts import render
from omnijudge.report.writers import latex, markdown

CATEGORIES = [("ia_qtf1", g) for g in ("realtime", "proactive", "nested", "1q1a", "1qna", "all")]
NESTED = [
    ("nccs", "nested"),
    ("ia_qtf1", "nested_inner"),
    ("ia_qtf1", "nested_outer"),
    ("missed_outer", "nested"),
]
INTERRUPTED = [(m, "interrupted") for m in ("nor", "paq", "csm_sr", "csm_as")]
OMNIINTERACT = [*CATEGORIES, *NESTED, *INTERRUPTED]
# OmniInteract, tables 3, 4 and 5; NOR and CSM-SR as the whole-number ratios behind them.
PRINTED = {
    "AURA": [0.376, 0.549, 0.596, 0.467, 0.052, 0.363, 0.270, 0.595, 0.599, 54.0,
             152 / 192, 0.293, 24 / 40, 1.879],
    "Gemini": [0.553, 0.121, 0.398, 0.428, 0.028, 0.344, 0.001, 0.595, 0.165, 119.0,
               165 / 192, 0.370, 11 / 27, 0.312],
    "MiniCPM-o": [0.337, 0.607, 0.599, 0.456, 0.015, 0.368, 0.284, 0.587, 0.612, 55.0,
                  103 / 192, 0.571, 74 / 89, 10.067],
    "Qwen": [0.524, 0.108, 0.379, 0.401, 0.023, 0.323, 0.012, 0.702, 0.092, 116.0,
             137 / 192, 0.361, 23 / 55, 0.613],
}  # fmt: skip
ROWS = grid(OMNIINTERACT, PRINTED)


def lines_of(text: str) -> list[list[str]]:
    """Rows of a printed table, split at its wide gaps."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines() if line.strip()]


def rendered(layout, format, rows=ROWS, values=None, **options) -> str:
    return render(metrics_table(rows), values or manifest(), layout, format, **options)


def unescaped_columns(line: str) -> int:
    return len(re.split(r"(?<!\\)&", line))


# The published tables


def test_paper_layout_of_omniinteract_is_the_printed_tables() -> None:
    found = lines_of(rendered("paper", "table", width=200))
    for line in (
        # Table 3, best first.
        ["System", "Real-time", "Proactive", "Nested", "1Q1A", "1QnA", "All"],
        ["MiniCPM-o", "0.337", "0.607", "0.599", "0.456", "0.015", "0.368"],
        ["AURA", "0.376", "0.549", "0.596", "0.467", "0.052", "0.363"],
        ["Gemini", "0.553", "0.121", "0.398", "0.428", "0.028", "0.344"],
        ["Qwen", "0.524", "0.108", "0.379", "0.401", "0.023", "0.323"],
        # Table 4.
        ["System", "NCCS", "Inner F1", "Outer F1", "Missed outer"],
        ["AURA", "0.270", "0.595", "0.599", "54"],
        ["Qwen", "0.012", "0.702", "0.092", "116"],
        # Table 5: two columns as percentages.
        ["System", "NOR (%)", "PAQ", "CSM-SR (%)", "CSM-AS (s)"],
        ["AURA", "79.17", "0.293", "60.00", "1.879"],
        ["Gemini", "85.94", "0.370", "40.74", "0.312"],
        ["MiniCPM-o", "53.65", "0.571", "83.15", "10.067"],
        ["Qwen", "71.35", "0.361", "41.82", "0.613"],
    ):
        assert line in found
    order = [line[0] for line in found if line[0] in PRINTED]
    assert order[:4] == ["MiniCPM-o", "AURA", "Gemini", "Qwen"]


def test_offline_drop_is_the_difference() -> None:
    # OmniInteract, table 6.
    keys = [("ia_qtf1", "all"), ("quality", "math"), ("offline_quality", "math")]
    text = rendered("paper", "table", grid(keys, {"a": [0.3, 0.3475, 0.6833]}))
    assert ["a", "0.683", "0.3475", "0.3358"] in lines_of(text)


def test_paper_layout_of_interactscope_rounds_once() -> None:
    # Successes of two models and the sizes of the tasks: the printed average is that of the exact
    # scores, 13.9, where the mean of the printed scores would be 13.95.
    sizes = {"T1": 200, "T2": 206, "T3": 207, "T4": 206, "T6": 37, "T7": 457}
    counts = {"Gemini-3.1-Pro": (45, 58, 24, 23, 10, 51), "Qwen3.5": (64, 50, 10, 8, 4, 36)}
    keys = [*(("joint_accuracy", t) for t in sizes), ("joint_accuracy", "average_six")]
    values = {}
    for name, successes in counts.items():
        scores = [100 * c / n for c, n in zip(successes, sizes.values(), strict=True)]
        values[name] = [*scores, sum(scores) / 6]
    t8 = [("timely_recall", g) for g in ("T8-A", "T8-B", "T8-C", "T8")]
    t8.append(("sequence_coverage", "T8-C"))
    keys += t8
    values["Gemini-3.1-Pro"] += [2800 / 122, 9400 / 151, 4500 / 87, 16700 / 360, 300 / 26]
    values["Qwen3.5"] += [1100 / 122, 7500 / 151, 2600 / 87, 11200 / 360, 100 / 26]
    found = lines_of(
        rendered("paper", "table", grid(keys, values), manifest("omni_interactscope"), width=200)
    )
    assert ["System", "T1", "T2", "T3", "T4", "T6", "T7", "Average"] in found
    assert ["Gemini-3.1-Pro", "22.5", "28.2", "11.6", "11.2", "27.0", "11.2", "18.6"] in found
    assert ["Qwen3.5", "32.0", "24.3", "4.8", "3.9", "10.8", "7.9", "13.9"] in found
    assert ["Gemini-3.1-Pro", "22.95", "62.25", "51.72", "46.39", "11.54", "–", "–"] in found
    assert ["Qwen3.5", "9.02", "49.67", "29.89", "31.11", "3.85", "–", "–"] in found


def test_paper_layout_of_duplexeval() -> None:
    keys = [
        ("temporal", "rtd"), ("content", "rtd"), ("overall", "rtd"),
        ("success_rate", "pr_pooled"), ("overall", "all"),
    ]  # fmt: skip
    values = {
        "MiniCPM-o 4.5": [79.9, 38.3, 59.1, 20.0, 39.55],
        "LiveCC": [62.5, 23.2, 42.9, 4.7, 23.8],
    }
    found = lines_of(rendered("paper", "table", grid(keys, values), manifest("omni_duplexeval")))
    assert ["System", "Temporal", "Content", "RTD", "PR", "Overall"] in found
    assert ["LiveCC", "62.5", "23.2", "42.9", "4.7", "23.8"] in found


def test_paper_layout_of_a_benchmark_from_outside_is_its_own_metrics() -> None:
    rows = grid([("speed", "x"), ("grip", "x")], {"a": [1.5, 2.5]})
    found = lines_of(rendered("paper", "table", rows, manifest("mine")))
    assert ["System", "speed x", "grip x"] in found
    assert ["a", "1.500", "2.500"] in found


# Machines


def test_long_json_is_the_table_in_full_precision() -> None:
    value = 0.1 + 0.2
    rows = [row("a", "ia_qtf1", "all", value), row("b", "ia_qtf1", "all", None, coverage=None)]
    found = json.loads(rendered("long", "json", rows))
    assert [list(r) for r in found] == [[*tables.METRICS.names, "judge"]] * 2
    assert found[0]["value"] == value
    assert found[1]["value"] is None
    assert found[1]["coverage"] is None
    assert found[0]["judge"] == "main (Qwen/Qwen3-14B@8268fe3)"


def test_long_csv_reads_back() -> None:
    value = 0.1 + 0.2
    rows = [row('a,"b"\n', "ia_qtf1", "all", value), row("b", "ia_qtf1", "all", None)]
    found = list(csv.DictReader(io.StringIO(rendered("long", "csv", rows))))
    assert found[0]["system"] == 'a,"b"\n'
    assert float(found[0]["value"]) == value
    assert found[1]["value"] == ""
    assert found[0]["profile"] == "robust"


def test_wide_json_has_a_row_per_system() -> None:
    found = json.loads(rendered("wide", "json"))
    assert [r["system"] for r in found] == ["MiniCPM-o", "AURA", "Gemini", "Qwen"]
    assert found[1]["ia_qtf1/all"] == 0.363
    assert found[1]["nor/interrupted"] == 152 / 192
    assert {r["profile"] for r in found} == {"robust"}


def test_paper_json_holds_the_values_as_printed_but_unrounded() -> None:
    found = json.loads(rendered("paper", "json"))
    tables_by_name = {t["name"]: t for t in found["tables"]}
    aura = next(r for r in tables_by_name["interruptions"]["rows"] if r["system"] == "AURA")
    assert aura["NOR (%)"] == 100 * (152 / 192)
    assert any("profile robust" in n for n in found["notes"])


def test_paper_csv_puts_the_tables_side_by_side() -> None:
    found = list(csv.DictReader(io.StringIO(rendered("paper", "csv"))))
    assert len(found) == 4
    assert float(found[0]["categories: All"]) == 0.368
    assert float(found[0]["nested: NCCS"]) == 0.284


@pytest.mark.parametrize("format", ["json", "csv"])
@pytest.mark.parametrize("layout", ["long", "wide"])
def test_the_smoke_judge_is_named_where_its_numbers_stand(layout, format) -> None:
    assert "smoke judge" in rendered(layout, format, values=manifest(engine="lexical"))


# People


@pytest.mark.parametrize("format", ["table", "markdown", "latex"])
@pytest.mark.parametrize("layout", ["long", "wide", "paper"])
def test_what_stands_below_every_table(layout, format) -> None:
    text = " ".join(rendered(layout, format, values=manifest(engine="lexical")).split())
    text = text.replace("\\", "")
    for said in (
        "OmniInteract, profile robust",
        "lexical, smoke judge",
        "pack 3",
        "Intervals: 95 %, cluster bootstrap, percentile over clusters of video_id",
        "10,000 replicates, seed 7",
        "Coverage: every unit is scored",
    ):
        assert said in text


def test_null_is_a_dash() -> None:
    rows = grid([("ia_qtf1", "all"), ("paq", "interrupted")], {"a": [0.5, None], "b": [0.4, 0.1]})
    assert ["a", "–", "0.500"] not in lines_of(rendered("wide", "table", rows))
    assert lines_of(rendered("wide", "table", rows))[3] == ["a", "0.500 [0.450, 0.540]", "–"]
    assert "| a | 0.500 \\[0.450, 0.540\\] | – |" in rendered("wide", "markdown", rows)
    assert "a & \\shortstack[r]{0.500\\\\{\\scriptsize [0.450, 0.540]}} & -- \\\\" in rendered(
        "wide", "latex", rows
    )


def test_incomplete_coverage_and_missing_outputs_are_flagged() -> None:
    rows = [
        row("a", "ia_qtf1", "all", 0.5, coverage=0.9996, n_unscored=1),
        row("b", "ia_qtf1", "all", 0.4, n_missing=12),
    ]
    text = rendered("wide", "table", rows)
    assert "0.500! [0.450, 0.540]" in text
    assert "lowest 99.9 % (a, IA-QTF1, All)" in " ".join(text.split())
    assert "Missing outputs (scored as silence): b (12)." in text
    assert ["b", "12", "0.400 [0.350, 0.440]"] in lines_of(text)


def test_warned_intervals_are_marked_and_explained_once() -> None:
    rows = [
        row("a", "ia_qtf1", "all", 0.5, warning="only 8 clusters; prefer the careful interval"),
        row("b", "ia_qtf1", "all", 0.4),
    ]
    text = rendered("wide", "table", rows)
    assert "0.500* [0.450, 0.540]" in text
    assert "0.400 [0.350, 0.440]" in text
    assert "Read intervals marked * with care: only 8 clusters" in text


def test_digits() -> None:
    text = rendered("paper", "table", digits=1)
    assert ["AURA", "0.4", "0.5", "0.6", "0.5", "0.1", "0.4"] in lines_of(text)
    assert json.loads(rendered("wide", "json", digits=1))[1]["ia_qtf1/all"] == 0.363


def test_a_wide_table_goes_on_below_where_the_terminal_ends() -> None:
    text = rendered("wide", "table", width=60)
    assert max(map(len, text.splitlines())) <= 60
    assert sum(line.split()[:1] == ["AURA"] for line in text.splitlines()) > 2


def test_systems_of_a_wide_table_keep_their_whole_names() -> None:
    name = "一个名字很长的全双工视频语音助手系统_quantised_to_four_bits"
    assert name in rendered("wide", "table", [row(name, "ia_qtf1", "all", 0.5)], width=120)


# Choosing


def test_metrics_are_chosen_by_name_group_or_pattern() -> None:
    found = json.loads(rendered("wide", "json", metrics_filter=["nor", "ia_qtf1/nested_*"]))
    chosen = [k for k in found[0] if "/" in k]
    assert chosen == ["ia_qtf1/nested_inner", "ia_qtf1/nested_outer", "nor/interrupted"]


def test_people_see_the_published_metrics_unless_they_ask_for_all() -> None:
    rows = [*ROWS, row("AURA", "anchored_share", "all", 0.9)]
    assert "Anchored" not in rendered("wide", "table", rows)
    assert "14 of 15 metrics" in rendered("wide", "table", rows)
    assert "Anchored" in rendered("wide", "table", rows, metrics_filter=["all"])
    assert "anchored_share/all" in rendered("wide", "csv", rows)


def test_an_unknown_metric_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(
        ConfigError, match="'ia_qtf' is no metric of this run; did you mean 'ia_qtf1'"
    ):
        rendered("wide", "table", metrics_filter=["ia_qtf"])


def test_by_tag_groups_the_systems() -> None:
    systems = {
        "AURA": {"tags": {"size": "8b"}}, "Gemini": {"tags": {}},
        "MiniCPM-o": {"tags": {"size": "8b"}}, "Qwen": {"tags": {"size": "4b"}},
    }  # fmt: skip
    values = manifest(config={"systems": systems})
    found = json.loads(rendered("wide", "json", values=values, by="size"))
    assert [(r["system"], r["size"]) for r in found] == [
        ("Qwen", "4b"),
        ("MiniCPM-o", "8b"),
        ("AURA", "8b"),
        ("Gemini", ""),
    ]


def grouped() -> pa.Table:
    """Metrics with two rows of one system, as grouping by a column gives them."""
    return metrics_table(
        [
            row("a", "ia_qtf1", "all", 0.5),
            row("a", "ia_qtf1", "all", 0.3),
            row("b", "ia_qtf1", "all", 0.4, coverage=0.9),
        ]
    ).append_column("by", pa.array(["en", "zh", "zh"]))


@pytest.mark.parametrize(("by", "head"), [(None, "by"), ("by", "by"), ("language", "language")])
def test_by_column_splits_the_systems(by: str | None, head: str) -> None:
    found = json.loads(render(grouped(), manifest(), "wide", "json", by=by))
    assert [(r["system"], r[head], r["ia_qtf1/all"]) for r in found] == [
        ("a", "en", 0.5),
        ("b", "zh", 0.4),
        ("a", "zh", 0.3),
    ]


@pytest.mark.parametrize("layout", ["long", "wide", "paper"])
def test_by_column_for_people(layout) -> None:
    text = render(grouped(), manifest(), layout, "table", by="language")
    assert "language" in text
    assert {("a", "en"), ("a", "zh"), ("b", "zh")} <= {tuple(line[:2]) for line in lines_of(text)}
    assert "lowest 90.0 % (b, IA-QTF1, All)" in " ".join(text.split())


def test_the_same_metric_twice_is_refused() -> None:
    with pytest.raises(DataError, match="a ia_qtf1 all stands twice"):
        rendered("wide", "json", [row("a", "ia_qtf1", "all", 0.5)] * 2)


def test_by_something_unknown_is_refused() -> None:
    with pytest.raises(ConfigError, match="--by colour: is no column of the metrics and no tag"):
        rendered("wide", "table", by="colour")


# Escaping

NASTY = r"a|b & 100% $x_1^2$ #{q} ~<b>`c`*\\ [x] -- «视频»"


def test_markdown_keeps_its_columns() -> None:
    text = rendered("wide", "markdown", [row(NASTY, "ia_qtf1", "all", 0.5)])
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.split(r"(?<!\\)\|", line)) for line in table} == {4}
    assert "<b>" not in text.replace("\\<b\\>", "")


def test_markdown_of_a_name() -> None:
    assert markdown("snake_case_name") == "snake_case_name"
    assert markdown("_emphasis_ & <i>") == "\\_emphasis\\_ &amp; \\<i\\>"
    assert markdown("two\nlines") == "two lines"


def test_latex_of_special_characters() -> None:
    assert latex("100% & $5 #1 a_b {c}") == r"100\% \& \$5 \#1 a\_b \{c\}"
    assert latex("\\~^") == r"\textbackslash{}\textasciitilde{}\textasciicircum{}"
    assert latex("[a]*") == "{[}a]{*}"
    assert latex("run--2") == "run-{}-2"
    assert latex("–") == "--"
    assert latex("two\nlines") == "two lines"


def test_latex_tables_are_well_formed() -> None:
    rows = [row(NASTY, m, g, -0.25) for m, g in OMNIINTERACT]
    for layout in ("long", "wide", "paper"):
        text = rendered(layout, "latex", rows)
        plain = re.sub(r"\\[\\{}&%$#_]", "", text)
        assert plain.count("{") == plain.count("}")
        assert text.count("\\begin{") == text.count("\\end{")
        for body in re.findall(r"\\midrule\n(.*?)\\bottomrule", text, flags=re.S):
            table = text[: text.index(body)]
            spec = re.findall(r"\\begin\{tabular\}\{([lr]+)\}", table)[-1]
            assert {unescaped_columns(line) for line in body.strip().splitlines()} == {len(spec)}
            assert all(line.endswith("\\\\") for line in body.strip().splitlines())
        assert "$-$0.25" in text


def test_latex_heads_of_one_metric_share_a_cell() -> None:
    text = rendered("wide", "latex", metrics_filter=["ia_qtf1"])
    assert "\\multicolumn{8}{c}{IA-QTF1} \\\\\n\\cmidrule(lr){2-9}\n" in text
