"""Score rows: what is missing stays missing, and what a system did is told whatever happened."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.omni_duplexeval.duplex_run import values, verdict_table
from benchmarks.omni_duplexeval.test_duplexeval_naive import partition

from omnijudge.benchmarks.base import Partition
from omnijudge.benchmarks.omni_duplexeval import benchmark
from omnijudge.benchmarks.omni_duplexeval.metrics import metrics
from omnijudge.benchmarks.omni_duplexeval.options import Options
from omnijudge.benchmarks.omni_duplexeval.segments import Segment
from omnijudge.benchmarks.omni_duplexeval.windows import reminder_bounds, thin_out

OPTIONS = Options()


def said(*times: float) -> list[Segment]:
    return [Segment(f"text {t:g}", t, t + 1, t) for t in times]


def scored(
    part: Partition, verdicts: dict[tuple[str, str], dict[str, Any]], options: Options = OPTIONS
) -> list[dict[str, Any]]:
    rows = [verdicts.get((r["stage"], r["unit_id"]), {}) for r in part.stages.to_pylist()]
    part = Partition(
        part.system, part.units, part.outputs, part.chunks, part.stages, verdict_table(rows)
    )
    return list(benchmark.score(part, options).to_pylist())


def ok(**fields: Any) -> dict[str, Any]:
    return {"status": "ok", **fields}


def only(rows: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (row,) = (r for r in rows if r["unit_kind"] == kind)
    return row


GOOD = {
    ("relevance", "0"): ok(is_relevant=1),
    ("window", "0"): ok(temporal_score=2),
    ("content", "content"): ok(content_score=3.0),
}


def test_a_full_description() -> None:
    sample = only(scored(partition("rtd", said(4.0), [], OPTIONS), GOOD), "sample")
    assert (sample["temporal"], sample["content"]) == (pytest.approx(200 / 3), 100.0)
    assert sample["judged"] is True
    assert (sample["speaking_seconds"], sample["video_duration"]) == (1.0, 15.0)


@pytest.mark.parametrize("lost", [{"status": "invalid"}, {"status": "error"}, {}])
@pytest.mark.parametrize("key", list(GOOD))
def test_a_missing_verdict_is_never_a_zero(key: tuple[str, str], lost: dict[str, Any]) -> None:
    rows = scored(partition("rtd", said(4.0), [], OPTIONS), {**GOOD, key: lost})
    sample = only(rows, "sample")
    assert sample["overall"] is None
    assert sample["judged"] is False
    assert sample["content" if key[0] == "content" else "temporal"] is None
    assert only(rows, "sentence")["judged"] is (key[0] == "content")


def test_a_run_that_stopped_half_way_scores_no_sample_from_some_of_its_windows() -> None:
    part = partition("rtd", said(4.0), [], OPTIONS)
    stages = part.stages.to_pylist()
    told = [GOOD[r["stage"], r["unit_id"]] for r in stages]
    told[next(i for i, r in enumerate(stages) if r["item"] == "3")] = {}
    part = Partition("x", part.units, part.outputs, part.chunks, part.stages, verdict_table(told))
    rows = benchmark.score(part, OPTIONS).to_pylist()
    assert only(rows, "sample")["temporal"] is None
    # One window whose judge failed does not count.
    failed = [t or {"status": "error"} for t in told]
    part = Partition("x", part.units, part.outputs, part.chunks, part.stages, verdict_table(failed))
    rows = benchmark.score(part, OPTIONS).to_pylist()
    assert only(rows, "sample")["temporal"] == pytest.approx(200 / 3)


def test_silence_is_worth_zero_and_needs_no_judge() -> None:
    sample = only(scored(partition("rtd", [], [], OPTIONS), {}), "sample")
    assert (sample["temporal"], sample["content"], sample["overall"]) == (0.0, 0.0, 0.0)
    assert sample["judged"] is None
    sample = only(scored(partition("pr", [], [4.0], OPTIONS), {}), "sample")
    assert (sample["success"], sample["outcome"], sample["no_answer_detail"]) == (
        0,
        "no_answer",
        "silent",
    )
    assert sample["judged"] is None


def test_a_panel_that_is_split_counts_as_no() -> None:
    split = {**GOOD, ("relevance", "0"): ok(is_relevant=0.5)}
    assert (
        only(scored(partition("rtd", said(4.0), [], OPTIONS), split), "sentence")["relevant"] == 0
    )
    most = {("event", "1"): ok(success_score=2 / 3)}
    row = only(scored(partition("pr", said(4.0), [4.0], OPTIONS), most), "sample")
    assert row["success"] == 100


def test_one_reply_serves_two_events_unless_windows_are_exclusive() -> None:
    events = [4.0, 9.0]
    both = partition("pr", said(9.5), events, OPTIONS)
    assert both.stages["unit_id"].to_pylist() == ["1", "2"]
    assert both.chunks["unit_id"].to_pylist() == ["1"]
    exclusive = Options(exclusive_windows=True)
    one = partition("pr", said(9.5), events, exclusive)
    assert one.stages["unit_id"].to_pylist() == ["2"]
    assert one.chunks["unit_id"].to_pylist() == ["2"]
    # A reply at the very moment of the second event belongs to the second.
    edge = partition("pr", said(9.0), events, exclusive)
    assert edge.stages["unit_id"].to_pylist() == ["2"]
    assert reminder_bounds([9.0, 4.0], 10.0, exclusive=True) == [(9.0, 19.0), (4.0, 9.0)]


def test_delays_and_early_replies() -> None:
    rows = scored(
        partition("pr", said(2.0, 6.5, 5.5), [5.0, 14.9], OPTIONS),
        {("event", "1"): {"status": "error"}},
    )
    replies = [r for r in rows if r["unit_kind"] == "reply"]
    assert [(r["unit_id"], r["reply_delay"], r["judged"]) for r in replies] == [("1", 0.5, None)]
    assert only(rows, "behaviour")["early_only"] is False
    rows = scored(partition("pr", said(2.0), [5.0], OPTIONS), {})
    assert only(rows, "behaviour")["early_only"] is True
    assert only(rows, "sample")["no_answer_detail"] == "only_before_first_event"


def test_speaking_time_is_a_union_inside_the_clip() -> None:
    spoken = [
        Segment("a", 1.0, 4.0, 1.0),
        Segment("b", 3.0, 5.0, 3.0),
        Segment("c", 2.0, 2.5, 2.0),
        Segment("d", 14.0, 20.0, 14.0),
    ]
    rows = scored(partition("rtd", spoken, [], OPTIONS), {})
    assert only(rows, "behaviour")["speaking_seconds"] == 5.0


def test_bounds_lie_on_both_sides_of_an_unscored_sample() -> None:
    import pyarrow as pa

    lost = scored(
        partition("rtd", said(4.0), [], OPTIONS),
        {**GOOD, ("content", "content"): {"status": "error"}},
    )
    table = pa.Table.from_pylist(lost, schema=benchmark.score_schema)
    name = ("temporal", "RTD_OCR")
    ends = [
        values(benchmark.fill_unscored(table, best), metrics(OPTIONS))[name]
        for best in (False, True)
    ]
    assert ends == [0.0, 100.0]
    assert benchmark.fill_unscored(table, True)["judged"].to_pylist().count(False) == 0
    event = scored(
        partition("pr", said(4.0), [4.0], OPTIONS), {("event", "1"): {"status": "error"}}
    )
    table = pa.Table.from_pylist(event, schema=benchmark.score_schema)
    assert only(event, "sample")["outcome"] == "judge_error"
    for best in (False, True):
        filled = benchmark.fill_unscored(table, best).to_pylist()
        assert only(filled, "sample")["success"] == 100 * best


@pytest.mark.parametrize(
    ("limit", "kept"),
    [(1, [2]), (2, [0, 4]), (3, [0, 2, 4]), (5, [0, 1, 2, 3, 4]), (9, [0, 1, 2, 3, 4])],
)
def test_frames_are_thinned_out_evenly(limit: int, kept: list[float]) -> None:
    assert thin_out([0, 1, 2, 3, 4], limit) == kept


def test_metric_names_and_groups() -> None:
    found = {(m.name, m.group) for m in metrics(OPTIONS)}
    assert len(found) == len(metrics(OPTIONS))
    for wanted in (
        ("temporal", "rtd"), ("content", "RTD_OCR"), ("overall", "RTD_Omni"), ("overall", "all"),
        ("success_rate", "PR_correction"), ("success_rate", "pr_pooled"),
        ("success_rate", "pr_macro"), ("outcome_judge_error", "pr"),
        ("outcome_partial", "PR_event_reminder"), ("reply_delay_mean", "pr"),
        ("reply_delay_p50", "pr"), ("reply_delay_p90", "pr"), ("early_only_share", "pr"),
        ("speaking_share", "rtd"),
    ):  # fmt: skip
        assert wanted in found
