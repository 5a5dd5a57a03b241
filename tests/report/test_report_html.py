"""The page itself: whole, self-contained, accessible, the same bytes for the same run."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from fakes.runs import grid, make_run, manifest, row

from omnijudge import tables
from omnijudge.errors import DataError
from omnijudge.report.html import write_report

NASTY = '<script>alert("1")</script> & "co" $x$'
KEYS = [
    *(("ia_qtf1", g) for g in ("realtime", "proactive", "nested", "1q1a", "1qna", "all")),
    *((m, "all") for m in ("precision", "recall", "tp", "fp", "fn")),
    *((m, "all") for m in ("fp_early", "fp_low", "fp_spill", "fp_unmatched")),
    *((f"response_delay_{q}", "all") for q in ("p50", "p90")),
    ("nccs", "nested"), ("missed_outer", "nested"), ("nor", "interrupted"),
]  # fmt: skip
VALUES = {
    "attentive": [0.7, 0.8, 0.9, 0.75, 0.6, 0.71, 0.8, 0.6, 50, 7, 9,
                  1, 2, 3, 1, 0.5, 2.0, 0.4, 3, 0.1],
    NASTY: [0.2, 0.3, 0.2, 0.25, 0.1, 0.18, 0.2, 0.2, 15, 81, 50,
            9, 50, 8, 14, 2.0, 4.0, 0.0, 9, 0.0],
    "安静的助手": [0.3, 0.2, 0.1, 0.22, 0.1, 0.21, 0.3, 0.1, 8, 19, 46,
                   0, 19, 0, 0, 6.0, 9.0, 0.0, 9, 1.0],
}  # fmt: skip


class Page(HTMLParser):
    """What the tests need to know of a page."""

    VOID = frozenset(("meta", "link", "br", "input", "hr", "img"))

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def having(self, tag: str, *attributes: str) -> list[dict[str, str | None]]:
        return [a for t, a in self.tags if t == tag and all(x in a for x in attributes)]


def html(folder: Path, rows=None, values=None, **others) -> str:
    rows = grid(KEYS, VALUES) if rows is None else rows
    return write_report(make_run(folder / "run", rows, values, **others)).read_text("utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    return Page(html(tmp_path_factory.mktemp("report")))


def test_where_it_is_written(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", grid(KEYS, VALUES))
    assert write_report(run) == run / "report.html"
    assert write_report(run, tmp_path / "new" / "mine.html") == tmp_path / "new" / "mine.html"
    assert write_report(run, tmp_path) == tmp_path / "report.html"
    assert sorted(p.name for p in run.iterdir()) == ["metrics.parquet", "report.html", "run.json"]


def test_no_run_is_no_report(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        write_report(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_equal_runs_give_equal_bytes(tmp_path: Path) -> None:
    assert html(tmp_path / "a") == html(tmp_path / "b")


def test_every_tag_is_closed_and_every_id_unique(page: Page) -> None:
    assert page.wrong == []
    assert page.open == []
    ids = Counter(a["id"] for _, a in page.tags if a.get("id"))
    assert [i for i, n in ids.items() if n > 1] == []


def test_nothing_is_fetched_from_anywhere(page: Page) -> None:
    for _, attributes in page.tags:
        for name in ("src", "href", "xlink:href", "action", "srcset", "data"):
            target = attributes.get(name)
            assert target is None or target.startswith(("#", "data:,"))
    (policy,) = [a["content"] for a in page.having("meta", "content") if "http-equiv" in a]
    assert (policy or "").startswith("default-src 'none'")


def test_style_and_script_name_no_address(tmp_path: Path) -> None:
    text = html(tmp_path)
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    # The one address is the name of the SVG language, where matplotlib writes it.
    assert set(re.findall(r"https?://[^\"'<\s]+", text)) <= {"http://www.w3.org/2000/svg"}


def test_links_inside_the_page_lead_somewhere(page: Page) -> None:
    ids = {a["id"] for _, a in page.tags if a.get("id")}
    for _, attributes in page.tags:
        href = attributes.get("href") or ""
        assert not href.startswith("#") or href[1:] in ids
        for name in (attributes.get("aria-labelledby") or "").split():
            assert name in ids


def test_names_are_text(tmp_path: Path) -> None:
    text = html(tmp_path)
    assert text.count("<script>") == 1
    assert NASTY in Page(text).text
    assert "安静的助手" in text


def test_tables_say_what_they_are(page: Page) -> None:
    tables_found = len(page.having("table"))
    assert tables_found >= 6
    assert len(page.having("caption")) == tables_found
    heads = page.having("th")
    assert heads
    assert all(h.get("scope") in ("col", "row") for h in heads)


def test_plots_have_words(page: Page) -> None:
    plots = [a for a in page.having("svg") if a.get("class") == "plot"]
    assert len(plots) == 4
    assert all(a.get("role") == "img" and a.get("aria-labelledby") for a in plots)


def test_language_title_and_headings(page: Page) -> None:
    assert page.having("html", "lang")[0]["lang"] == "en"
    assert "OmniInteract results" in page.text
    levels = [int(t[1]) for t, _ in page.tags if re.fullmatch(r"h[1-6]", t)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))


def test_what_was_run(page: Page) -> None:
    for said in (
        "3 systems on 17 samples, 98 units. Profile robust. Judge main (Qwen/Qwen3-14B@8268fe3).",
        "Highest IA-QTF1 attentive 0.710 [0.660, 0.750]",
        "282 280 requests, 2 answers reused",
        "pack 3",
        "Intervals: 95 %, cluster bootstrap, percentile over clusters of video_id, 10,000 "
        "replicates, seed 7.",
        "python 3.12.1",
        "77aa",
    ):
        assert said in page.text


def test_ranking_table(page: Page) -> None:
    assert (
        "# System IA-QTF1 Interval Careful Precision Recall TP FP FN "
        "1 attentive 0.710 [0.660, 0.750] [0.650, 0.760] 0.800 0.600 50.00 7 9 "
        "2 安静的助手 0.210" in page.text
    )


def test_honest_advice(page: Page) -> None:
    assert "silence can beat a bad answer" in page.text


def test_no_machine_no_time(tmp_path: Path) -> None:
    problem = {
        "code": "bad_json", "level": "error", "file": "/home/someone/secret/x.json",
        "place": "line 3", "message": "is no JSON", "sample_id": "x", "system": "attentive",
        "count": 1,
    }  # fmt: skip
    values = manifest(
        problems=[problem],
        config={"output": "/home/someone/runs/x", "data": {"root": "/home/someone/data"}},
    )
    text = html(tmp_path, values=values)
    assert "/home/someone" not in text
    assert "x.json: line 3: is no JSON" in text
    assert not re.search(r"20\d\d-\d\d-\d\d", text)


def test_losses_are_on_the_page(tmp_path: Path) -> None:
    rows = [
        row("a", "ia_qtf1", "all", 0.5, n_missing=3, coverage=0.98, n_unscored=10,
            bound_low=0.49, bound_high=0.52),
        row("b", "ia_qtf1", "all", 0.4, warning="only 8 clusters; prefer the careful interval"),
    ]  # fmt: skip
    problem = {
        "code": "dropped_bad_time", "level": "warning", "file": "v.json", "place": "chunk 3",
        "message": "time is no number", "sample_id": "v", "system": "a", "count": 4,
    }  # fmt: skip
    values = manifest(
        engine="lexical", state="stopped", stopped="deadline 07:45 reached", problems=[problem],
        errors=[{"reason": "timeout after 120 s", "count": 2, "stage": "core"}],
        counts={
            "answers": {"a": {"core": {"ok": 40, "invalid": 3, "error": 2}}},
            "missing_outputs": {"a": 3}, "systems": 2,
        },
    )  # fmt: skip
    text = Page(html(tmp_path, rows, values)).text
    for said in (
        "Not complete: deadline 07:45 reached.",
        "Smoke judge: it compares words with the reference",
        "Missing outputs (scored as silence): a (3).",
        "Not all scored:",
        "coverage goes down to 98.0 %",
        "98.0 % [0.490, 0.520]",
        "Intervals: Read intervals marked * with care: only 8 clusters",
        "answers invalid after all attempts 3 45 no number",
        "core 40 3 2",
        "a 3 3 2 0",
        "dropped_bad_time warning 4 a v.json: chunk 3: time is no number",
        "2 errors of the judge at stage core: timeout after 120 s",
        "Usable answers 88.9 % 5 of 45 lost",
    ):
        assert said in text


def test_published_profile_warns_of_missing_outputs(tmp_path: Path) -> None:
    rows = [row("a", "ia_qtf1", "all", 0.5, n_missing=3, profile="published")]
    text = Page(html(tmp_path, rows)).text
    assert "Missing outputs (not counted): a (3)." in text
    assert "a system that fails to answer can gain" in text


def test_ranges_and_differences_where_they_were_made(tmp_path: Path) -> None:
    ranks = tables.make(
        tables.RANKS,
        {
            "system": ["attentive", "安静的助手"], "metric": ["ia_qtf1"] * 2,
            "group": ["all"] * 2, "rank": [1, 2], "rank_low": [1, 1], "rank_high": [1, 3],
            "winner_low": [0.7, None], "winner_high": [0.95, None], "n_ranked": [3, 3],
        },
    )  # fmt: skip
    comparisons = tables.make(
        tables.COMPARISONS,
        {
            "baseline": ["attentive"] * 3, "system": ["安静的助手", NASTY, NASTY],
            "metric": ["ia_qtf1", "ia_qtf1", "nor"], "group": ["all", "all", "interrupted"],
            "difference": [-0.5, 0.25, 0.1], "ci_low": [-0.6, 0.1, 0.0],
            "ci_high": [-0.4, 0.3, 0.2],
            "careful_low": [-0.61, 0.09, 0.0], "careful_high": [-0.39, 0.31, 0.2],
            "p_value": [0.0001, 0.04, 0.5], "p_adjusted": [0.0002, 0.08, 0.5],
            "smallest_p": [0.0001, 0.0001, 0.0001], "n_clusters": [17, 17, 8],
            "detectable": [0.15, 0.12, None],
        },
    )  # fmt: skip
    text = Page(html(tmp_path, ranks=ranks, comparisons=comparisons)).text
    assert "1 1 attentive" in text
    assert "2 1-3 安静的助手" in text
    assert "1 more cannot be told from the first" in text
    assert (
        "安静的助手 attentive -0.500 [-0.600, -0.400] [-0.610, -0.390] ≤ 0.0001 0.0002 0.150 17"
        in text
    )
    assert "attentive was chosen as the best of 3" in text
    assert "its interval is [0.700, 0.950]" in text
    assert f"{NASTY} attentive +0.250 [+0.100, +0.300]" in text
    assert "+0.100 [0.000" not in text


@pytest.mark.parametrize("benchmark", ["omni_interactscope", "omni_duplexeval", "from_outside"])
def test_every_benchmark_has_a_page(tmp_path: Path, benchmark: str) -> None:
    keys = {
        "omni_interactscope": [("joint_accuracy", "T1"), ("timely_recall", "T8")],
        "omni_duplexeval": [("overall", "rtd"), ("success_rate", "pr_pooled")],
        "from_outside": [("grip", "wet"), ("grip", "dry")],
    }[benchmark]
    page = Page(html(tmp_path, grid(keys, {"a": [40.0, 20.0]}), manifest(benchmark)))
    assert page.wrong == []
    for number in ("40.0", "20.0"):
        assert number in page.text


def test_a_run_without_values_has_a_page(tmp_path: Path) -> None:
    page = Page(html(tmp_path / "null", [row("a", "ia_qtf1", "all", None, coverage=None)]))
    assert "– a –" in page.text
    assert Page(html(tmp_path / "empty", [])).wrong == []


def test_many_systems_keep_the_page_small(tmp_path: Path) -> None:
    values = {f"system-{i:03d}": [i / 200] * len(KEYS) for i in range(200)}
    text = html(tmp_path, grid(KEYS, values))
    assert len(text) < 3_000_000
    page = Page(text)
    assert page.text.count("system-117") >= 5
    assert "Every metric" not in page.text
