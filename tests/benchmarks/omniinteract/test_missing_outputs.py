"""Deleted transcripts: silence in profile robust, never a gain; parts of FP; columns passed on."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.omniinteract_sample import (
    Scored,
    core,
    early,
    metrics_of,
    partial,
    question,
    said,
    score,
)
from hypothesis import given, settings
from hypothesis import strategies as st

OMNIJUDGE = Path(sys.executable).with_name("omnijudge")

times = st.integers(0, 60).map(lambda n: n / 2)
texts = st.sampled_from(["", "well", "it is blue", "蓝色", " now "])
kinds = st.sampled_from(["realtime", "proactive", "other"])
rows = st.builds(
    lambda q, wait, kind, cut: question(q, q + wait, kind, is_interrupted=cut),
    times, times, kinds, st.booleans(),
)  # fmt: skip
steps = st.fixed_dictionaries(
    {
        "question_time": times,
        "answers": st.lists(
            st.fixed_dictionaries({"answer_time": times, "interrupted": st.booleans()}),
            min_size=1,
            max_size=4,
        ),
    }
)
pairs = st.builds(
    lambda q, kind: [question(q, q + 20, "proactive"), question(q + 5, q + 10, kind)],
    times,
    kinds,
)
samples = st.one_of(
    st.tuples(st.just("multi_turn"), st.lists(rows, min_size=1, max_size=4)),
    st.tuples(st.just("nested"), pairs),
    st.tuples(st.just("1QnA"), steps),
)
chunks = st.builds(lambda s, length, text: said(s, s + length, text), times, times, texts)
transcripts = st.lists(chunks, max_size=8)
scores_given = st.sampled_from([0.0, 0.3, 0.5, 0.8, 1.0])


@st.composite
def answers(draw: st.DrawFn) -> dict[tuple[int, str], str]:
    found = {}
    for slot in range(1, 5):
        found[slot, "early"] = early(
            draw(scores_given), draw(st.sampled_from(["neutral", "hallucination"]))
        )
        found[slot, "core"] = core(draw(scores_given))
        found[slot, "partial"] = partial(draw(scores_given))
    return found


def together(scored: list[Scored]) -> pa.Table:
    return pa.concat_tables([s.rows for s in scored])


def f1(scored: list[Scored]) -> float:
    return metrics_of(together(scored), scored[0].options)["ia_qtf1", "all"]


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.lists(st.tuples(samples, transcripts, answers(), st.booleans()), min_size=1, max_size=4))
def test_deleting_transcripts(cases: list[Any]) -> None:
    def run(profile: str, silent: bool) -> list[Scored]:
        found = []
        for (scene, root), chunks, given_answers, deleted in cases:
            said_now = ([] if silent else None) if deleted else chunks
            found.append(score(scene, root, said_now, given_answers, profile=profile))
        return found

    robust, silent, published = (
        run("robust", False), run("robust", True), run("published", False),
    )  # fmt: skip
    drop = ["missing_output"]
    assert together(robust).drop_columns(drop).equals(together(silent).drop_columns(drop))
    deleted = [c[3] for c in cases]
    missing = [set(s.rows["missing_output"].to_pylist()) for s in robust]
    assert missing == [{d} for d in deleted]
    # Misses are added and nothing else: never a gain over leaving the samples out.
    left_out = f1(published)
    if not math.isnan(left_out):
        assert f1(robust) <= left_out + 1e-12
    for scored in (*robust, *published):
        check_parts(scored)


def check_parts(scored: Scored) -> None:
    """The parts add up to FP in every slot and over everything."""
    for slot in scored.slots:
        assert slot["fp"] == slot["fp_early"] + slot["fp_low"] + slot["fp_spill"]
    metrics = scored.metrics
    if not math.isnan(metrics["fp", "all"]):
        parts = [metrics[f"fp_{p}", "all"] for p in ("unmatched", "early", "low", "spill")]
        assert metrics["fp", "all"] == sum(0 if math.isnan(p) else p for p in parts)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(samples, transcripts, answers(), st.sampled_from(["published", "paper"]), st.booleans())
def test_parts_of_fp(
    sample: Any, transcript: Any, given_answers: Any, profile: str, unmatched: bool
) -> None:
    scene, root = sample
    check_parts(
        score(scene, root, transcript, given_answers, profile=profile, unmatched_fp=unmatched)
    )


def test_silence_can_beat_a_bad_answer() -> None:
    """Said plainly in the documentation: a wrong answer costs an FP and a miss, silence a miss."""
    turns = [question(0, 10), question(100, 110)]
    right, wrong = said(10, 12, "blue"), said(110, 112, "red")
    answers = {(1, "core"): core(1.0), (2, "core"): core(0.0)}
    spoken = score("multi_turn", turns, [right, wrong], answers).metrics["ia_qtf1", "all"]
    silent = score("multi_turn", turns, [right], answers).metrics["ia_qtf1", "all"]
    assert (spoken, silent) == (pytest.approx(1.6 / 3.6), pytest.approx(1.6 / 2.6))


# Columns and tags


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two systems over two recordings of different rooms; one output is missing."""
    folder = tmp_path_factory.mktemp("by")
    listed = []
    for number, room in enumerate(("kitchen", "workshop")):
        (folder / f"{number}.json").write_text(
            json.dumps([question(0, 10, answer_text="it is blue")]), encoding="utf-8"
        )
        listed.append(
            {
                "sample_id": f"s{number}",
                "gt_json": f"{number}.json",
                "scene_type": "multi_turn",
                "room": room,
                "takes": number,
            }
        )
    text = "".join(json.dumps(row) + "\n" for row in listed)
    (folder / "manifest.jsonl").write_text(text, encoding="utf-8")
    for system, files in (("big", ("s0", "s1")), ("small", ("s0",))):
        (folder / system).mkdir()
        for name in files:
            transcript = {"chunks": [said(10, 12, "it is blue")]}
            (folder / system / f"{name}.json").write_text(json.dumps(transcript), encoding="utf-8")
    (folder / "config.yaml").write_text(
        "benchmark: omniinteract\ndata: {manifest: manifest.jsonl}\n"
        "systems:\n  big: {path: big, tags: {size: 70b}}\n"
        "  small: {path: small, tags: {size: 7b}}\n"
        "statistics: {replicates: 20}\noutput: out\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [OMNIJUDGE, "run", folder / "config.yaml", "--no-store"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (folder / "stdout").write_text(done.stdout, encoding="utf-8")
    return folder


def by(run: Path, column: str) -> dict[tuple[str, str], float]:
    words = ["metrics", run / "out", "--by", column, "--layout", "long", "--format", "json"]
    done = subprocess.run([OMNIJUDGE, *words], capture_output=True, text=True, check=True)
    rows = json.loads(done.stdout)
    return {
        (r["by"], r["system"]): r["value"]
        for r in rows
        if (r["metric"], r["group"]) == ("ia_qtf1", "all")
    }


def test_missing_outputs_are_counted_beside_the_rank(run: Path) -> None:
    rows = pq.read_table(run / "out" / "metrics.parquet").to_pylist()
    assert {(r["system"], r["n_missing"]) for r in rows} == {("big", 0), ("small", 1)}
    printed = (run / "stdout").read_text(encoding="utf-8")
    plain = " ".join(printed.split())
    assert "# System Missing" in plain
    assert " small 1 " in plain
    assert "Missing outputs (scored as silence): small" in plain


def test_columns_of_the_list_are_passed_through(run: Path) -> None:
    units = pq.read_table(run / "out" / "units.parquet").to_pylist()
    attributes = {u["sample_id"]: dict(u["attributes"]) for u in units}
    assert attributes == {
        "s0": {"room": "kitchen", "takes": "0"},
        "s1": {"room": "workshop", "takes": "1"},
    }


def test_metrics_by_a_column(run: Path) -> None:
    """0.8 + 0.8 against nothing: a whole answer earns the core weight, F1 = 1.6/1.6 each."""
    found = by(run, "room")
    assert found == {
        ("kitchen", "big"): 1.0,
        ("kitchen", "small"): 1.0,
        ("workshop", "big"): 1.0,
        ("workshop", "small"): 0.0,
    }


def test_metrics_by_a_tag(run: Path) -> None:
    # small: TP 0.8 and one miss, 1.6 / 2.6.
    assert by(run, "size") == {("70b", "big"): 1.0, ("7b", "small"): pytest.approx(1.6 / 2.6)}


def test_an_unknown_column_is_named(run: Path) -> None:
    done = subprocess.run(
        [OMNIJUDGE, "metrics", run / "out", "--by", "colour"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "room" in done.stderr
    assert "size" in done.stderr
