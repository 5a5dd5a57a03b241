"""Every named repair against values worked out by hand, and where each is shown."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fakes.omniinteract_sample import core, early, partial, question, said, score

from omnijudge.benchmarks.omniinteract.options import CORRECTIONS

OMNIJUDGE = Path(sys.executable).with_name("omnijudge")

# A question at 0 s, due at 10 s; nothing follows, so that the slot ends at 30 s with tail 20.
ONE = [question(0, 10)]
TAIL = {"last_slot_tail_sec": 20.0}


def words(*pairs: tuple[float, str]) -> list[tuple[float, float, str]]:
    return [(t, t + 0.5, w) for t, w in pairs]


SPOKEN = words((10, "well"), (12, "it"), (13, "is"), (14, "blue"))


@pytest.mark.parametrize(
    ("chunks", "phrase", "t_used", "source"),
    [
        # Words without the text's punctuation: the word the phrase begins in.
        (
            [said(10, 18, "Well, it is, blue.", *SPOKEN)],
            "It is, blue",
            12.0,
            "phrase",
        ),
        (
            [said(10, 18, "是，蓝色。", *words((11, "是"), (13, "蓝"), (13.5, "色")))],
            "蓝色",
            13.0,
            "phrase",
        ),
        # No words: the chunk that holds the phrase, not the first one.
        ([said(10, 12, "Hmm."), said(15, 17, "It is blue.")], "“blue”", 15.0, "chunk_of_phrase"),
        # Words that do not give the text: the chunk, too.
        (
            [said(10, 12, "Hmm."), said(16, 17, "It is blue.", *words((16.5, "green")))],
            "blue",
            16.0,
            "chunk_of_phrase",
        ),
        # A phrase that nobody said: the first chunk, as published.
        ([said(12, 14, "It is blue.")], "green", 12.0, "first_chunk"),
    ],
)  # fmt: skip
def test_anchor_normalised(chunks: list[Any], phrase: str, t_used: float, source: str) -> None:
    answers = {(1, "core"): core(1.0, phrase)}
    plain = score("multi_turn", ONE, chunks, answers, **TAIL)
    (row,) = plain.slots
    first = chunks[0]["timestamp"][0]
    assert (row["anchor_source"], row["t_used"]) == ("first_chunk", first)
    assert plain.metrics["anchored_share", "all"] == 0
    repaired = score("multi_turn", ONE, chunks, answers, corrections=["anchor_normalised"], **TAIL)
    (row,) = repaired.slots
    assert (row["anchor_source"], row["t_used"]) == (source, t_used)
    assert row["t_core"] == pytest.approx(1 - (t_used - 10) / 20)
    assert row["tp"] == pytest.approx(0.8 * (1 - (t_used - 10) / 20))
    share = 0.0 if source == "first_chunk" else 1.0
    assert repaired.metrics["anchored_share", "all"] == share


def test_anchor_that_is_found_as_published_stays() -> None:
    chunk = said(10, 18, "so it is blue", *words((11, "so"), (12, "it"), (13, "is"), (14, "blue")))
    for corrections in ([], ["anchor_normalised"]):
        answers = {(1, "core"): core(1.0, "is blue")}
        (row,) = score("multi_turn", ONE, [chunk], answers, corrections=corrections, **TAIL).slots
        assert (row["anchor_source"], row["anchor"]) == ("phrase", 13.0)


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("one two three four", "one two", "three four"),  # cut at 9 of 18, back to the blank
        ("一二三四", "一二", "三四"),
        ("unbreakable", None, "unbreakable"),
    ],
)
def test_crossing_without_words_split(text: str, before: str | None, after: str) -> None:
    chunks = [said(8, 12, text)]
    answers = {(1, "early"): early(1.0), (1, "core"): core(1.0)}
    (row,) = score("multi_turn", ONE, chunks, answers, **TAIL).slots
    assert (row["tp"], row["fn"]) == (pytest.approx(0.2 * 0.2), 1.0)  # wholly early
    found = score(
        "multi_turn", ONE, chunks, answers, corrections=["crossing_without_words_split"], **TAIL
    )
    texts = {s["stage"]: s["text"] for s in found.part.stages.to_pylist()}
    assert texts == {k: v for k, v in (("early", before), ("core", after)) if v}
    (row,) = found.slots
    # Early from 8 s: 1 - 8/10; the core part is credited at the moment the answer is due.
    assert row["tp_ack"] == pytest.approx(0.2 * 0.2 if before else 0.0)
    assert (row["t_used"], row["t_core"], row["fn"]) == (10.0, 1.0, 0.0)
    assert row["tp"] == pytest.approx((0.04 if before else 0.0) + 0.8)


@pytest.mark.parametrize("chunk", [said(8, 12, "  "), said(8, 12, "", (8, 9, ""))])
def test_a_blank_crossing_chunk_stays_early(chunk: Any) -> None:
    answers = {(1, "early"): early(0.0)}
    found = score(
        "multi_turn", ONE, [chunk], answers, corrections=["crossing_without_words_split"], **TAIL
    )
    assert [s["stage"] for s in found.part.stages.to_pylist()] == ["early"]


@pytest.mark.parametrize(
    ("end", "correction", "seconds"),
    [
        (30.25, None, 0.25),
        (30.25, "spill_tolerance", 0.0),
        (30.5, "spill_tolerance", 0.0),  # up to the half second
        (30.75, "spill_tolerance", 0.75),  # beyond it all of the overrun counts
        (30.25, {"spill_tolerance": 0.125}, 0.25),
        (33.0, {"spill_tolerance": 5}, 0.0),
        (30.25, {"spill_tolerance": 0}, 0.25),
    ],
)
def test_spill_tolerance(end: float, correction: Any, seconds: float) -> None:
    chunks = [said(10, end, "it is blue")]
    corrections = [] if correction is None else [correction]
    answers = {(1, "core"): core(1.0)}
    (row,) = score("multi_turn", ONE, chunks, answers, corrections=corrections, **TAIL).slots
    assert row["spill_seconds"] == seconds
    assert row["fp"] == row["fp_spill"] == (1 if seconds else 0)


def test_blank_chunks_ignored() -> None:
    rows = [question(0, 10, is_interrupted=True), question(40, 50)]
    chunks = [said(12, 13, " "), said(45, 60, ""), said(200, 201, "")]
    answers = {(1, "partial"): partial(0.0), (2, "early"): early(0.0)}
    plain = score("multi_turn", rows, chunks, answers, **TAIL)
    assert [r["has_output"] for r in plain.slots] == [True, True]
    assert plain.metrics["fp_unmatched", "all"] == 1
    assert (plain.metrics["nor", "interrupted"], plain.metrics["fp", "all"]) == (0, 1)
    repaired = score("multi_turn", rows, chunks, {}, corrections=["blank_chunks_ignored"], **TAIL)
    assert repaired.part.stages.num_rows == 0  # nothing to ask
    assert [r["has_output"] for r in repaired.slots] == [False, False]
    assert [r["judged"] for r in repaired.slots] == [None, None]
    assert (repaired.metrics["nor", "interrupted"], repaired.metrics["fp", "all"]) == (1, 0)


def test_categories_by_slot() -> None:
    """A mistyped inner row takes from one category and gives to another; other types show up."""
    nested = [question(0, 40, "proactive"), question(10, 20, "proactive")]
    plain = score("nested", nested, [], **TAIL).metrics
    # Differences of sums: proactive = 2 rows less 1 outer; real-time = 0 rows less 1 inner.
    assert (plain["fn", "proactive"], plain["fn", "nested"]) == (1, 2)
    assert plain["fn", "1q1a"] == 3
    repaired = score("nested", nested, [], corrections=["categories_by_slot"], **TAIL).metrics
    assert str(repaired["fn", "proactive"]) == "nan"
    assert (repaired["fn", "nested"], repaired["fn", "1q1a"]) == (2, 2)
    turns = [question(0, 10, "realtime"), question(20, 30, "math"), question(40, 50, "")]
    found = score("multi_turn", turns, [], corrections=["categories_by_slot"], **TAIL)
    assert [r["category"] for r in found.slots] == ["realtime", "other", "other"]
    assert (found.metrics["fn", "realtime"], found.metrics["fn", "other"]) == (1, 2)
    assert (found.metrics["fn", "all"], found.metrics["ia_qtf1", "other"]) == (3, 0)
    labelled = {"question_time": 0, "answers": [{"answer_time": 5, "label": "realtime"}]}
    plain = score("1QnA", labelled, [], **TAIL).metrics
    assert (plain["fn", "realtime"], plain["fn", "1qna"]) == (1, 1)  # counted twice
    repaired = score("1QnA", labelled, [], corrections=["categories_by_slot"], **TAIL).metrics
    assert str(repaired["fn", "realtime"]) == "nan"
    assert repaired["fn", "1qna"] == 1


def test_degenerate_window_zero() -> None:
    """The next question comes before the answer is due: published credit is whole, then none."""
    rows = [question(0, 20), question(10, 60)]
    chunk = said(8, 22, "so blue", (8, 9, "so"), (21, 22, "blue"))
    answers = {(1, "early"): early(0.0), (1, "core"): core(1.0, "blue")}
    first = score("multi_turn", rows, [chunk], answers, **TAIL).slots[0]
    assert first["t_used"] == 21.0
    # An anchor after t_a earns nothing here; the bare fallback at t_a earns everything.
    assert first["t_core"] == 0.0
    answers[1, "core"] = core(1.0)
    first = score("multi_turn", rows, [chunk], answers, **TAIL).slots[0]
    assert (first["t_used"], first["t_core"], first["tp_core"], first["fn"]) == (20.0, 1.0, 0.8, 0)
    first = score(
        "multi_turn", rows, [chunk], answers, corrections=["degenerate_window_zero"], **TAIL
    ).slots[0]
    assert (first["t_core"], first["tp_core"], first["fn"]) == (0.0, 0.0, 1.0)
    assert first["s_core"] == 1.0
    assert first["response_delay"] is None


def test_unmatched_per_utterance() -> None:
    """Gaps of 0.5 s join, a gap of 1 s does not; another speaker's slot in between does not cut."""
    chunks = [said(100, 101, "a"), said(101.5, 102, "b"), said(103, 104, "c"), said(103.5, 104, "")]
    plain = score("multi_turn", ONE, chunks, **TAIL)
    assert (plain.kind("sample")[0]["unmatched"], plain.metrics["fp", "all"]) == (4, 4)
    found = score("multi_turn", ONE, chunks, corrections=["unmatched_per_utterance"], **TAIL)
    assert (found.kind("sample")[0]["unmatched"], found.metrics["fp_unmatched", "all"]) == (2, 2)
    off = score(
        "multi_turn", ONE, chunks, corrections=["unmatched_per_utterance"], unmatched_fp=False,
        **TAIL,
    )  # fmt: skip
    assert off.metrics["fp_unmatched", "all"] == 0


def test_no_repair_is_on_by_default_in_any_profile() -> None:
    for profile in ("robust", "published", "paper"):
        found = score("multi_turn", ONE, [], profile=profile)
        assert not any(found.options.corrects(name) for name in CORRECTIONS)
        assert found.options.spill_tolerance == 0


@pytest.mark.parametrize(
    ("corrections", "message"),
    [
        ("[anchor]", "is no correction"),
        ("[{anchor_normalised: 1}]", "only spill_tolerance takes a number"),
        ("[{spill_tolerance: -1}]", "0 or more"),
    ],
)
def test_wrong_repairs_are_refused(tmp_path: Path, corrections: str, message: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "config.yaml").write_text(
        "benchmark: omniinteract\ndata: {root: data}\nsystems: {a: data}\noutput: out\n"
        f"scoring: {{corrections: {corrections}}}\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [OMNIJUDGE, "run", tmp_path / "config.yaml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert message in done.stderr


def test_repairs_stand_beside_their_numbers(tmp_path: Path) -> None:
    """In the manifest, in the terminal, in every printed layout and on the page."""
    subprocess.run([OMNIJUDGE, "init", tmp_path], check=True, capture_output=True)
    (config,) = tmp_path.glob("*.yaml")
    given = [c for c in CORRECTIONS if c != "spill_tolerance"] + [{"spill_tolerance": 0.25}]
    shown = [c if isinstance(c, str) else "spill_tolerance 0.25" for c in given]
    changes = ["output=out", "statistics.replicates=20"]
    changes.append(f"scoring.corrections={json.dumps(given)}")
    overrides = [w for change in changes for w in ("-o", change)]
    done = subprocess.run(
        [OMNIJUDGE, "run", config, "--no-store", *overrides],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    run = tmp_path / "out"
    manifest = json.loads((run / "run.json").read_text(encoding="utf-8"))
    assert manifest["scoring"]["corrections"] == given
    page = (run / "report.html").read_text(encoding="utf-8")
    printed = [done.stdout, page]
    for form in ("table", "markdown", "latex"):
        words = [OMNIJUDGE, "metrics", run, "--format", form]
        made = subprocess.run(words, capture_output=True, text=True, check=True)
        printed.append(made.stdout.replace("\\_", "_"))
    for text in printed:
        plain = " ".join(text.split())
        assert [name for name in shown if name not in plain] == []
