"""The library against the slow oracle, on random and on awkward samples."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pyarrow.compute as pc
from golden.omniinteract_run import judged
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import omniinteract as naive

from omnijudge import tables
from omnijudge.benchmarks.base import Partition
from omnijudge.benchmarks.omniinteract import benchmark, reader
from omnijudge.benchmarks.omniinteract.layout import Sample
from omnijudge.benchmarks.omniinteract.options import Options
from omnijudge.benchmarks.omniinteract.schemas import STAGE_SCHEMA, UNIT_SCHEMA
from omnijudge.benchmarks.omniinteract.slots import SCENE_TYPES, UnusableAnnotation, build_slots
from omnijudge.statistics.metric import distinct_sums
from omnijudge.statistics.sums import cluster_sums
from omnijudge.transcripts.native import parse_native

# A coarse grid makes equal times, zero lengths and boundary hits common.
times = st.integers(0, 40).map(lambda n: n / 2)
clock = times.map(lambda t: f"{int(t // 60)}:{t % 60}")
anything = st.one_of(times, times, clock, st.sampled_from([None, "soon", " 7 "]))
words = st.sampled_from(["", "the", "kettle", "boils", "水", "开了", "now", " ok", "，"])
texts = st.lists(words, max_size=5).map(" ".join)
flags = st.sampled_from([True, False, "yes", "no", 1, 0, None])

rows = st.fixed_dictionaries(
    {"question_time": anything, "answer_time": anything, "question_text": texts},
    optional={
        "answer_text": texts,
        "question_type": st.sampled_from(["realtime", "proactive", " Math ", ""]),
        "is_interrupted": flags,
    },
)
answers = st.fixed_dictionaries(
    {"answer_time": anything, "answer_text": texts},
    optional={"label": st.sampled_from(["", "step", "error"]), "interrupted": flags},
)
one_to_many = st.fixed_dictionaries(
    {"question_time": anything, "question_text": texts, "answers": st.lists(answers, max_size=5)}
)
spoken_words = st.fixed_dictionaries({"start": times, "end": times, "text": words})
chunks = st.fixed_dictionaries(
    {"timestamp": st.tuples(anything, anything).map(list), "text": texts},
    optional={"aligned_words": st.lists(spoken_words, max_size=5)},
)
transcripts = st.fixed_dictionaries({"chunks": st.lists(chunks, max_size=12)})
raw_answers = st.one_of(
    st.fixed_dictionaries(
        {"score": st.sampled_from([0, 0.3, 0.5, 0.8, 1, "0.9", None, 85])},
        optional={
            "flag": st.sampled_from(["Neutral", "hallucination", "FP"]),
            "trigger_phrase": st.sampled_from(["", "kettle", "“水”", "boils the", "NOW"]),
            "spoiler": st.booleans(),
            "hallucination": flags,
        },
    ).map(json.dumps),
    st.sampled_from(["", "no idea", "8/10", "neutral", "{}", '{"a": {"score": 1}']),
)
samples = st.one_of(
    st.tuples(st.just("multi_turn"), st.lists(rows, max_size=5)),
    st.tuples(st.just("nested"), st.lists(rows, max_size=5)),
    st.tuples(st.just("1QnA"), one_to_many),
)
option_sets = st.fixed_dictionaries(
    {},
    optional={
        "w_ack": st.sampled_from([0.0, 0.2, 0.5]),
        "decay_alpha": st.sampled_from([0.5, 1.0, 2.0]),
        "decay_gamma": st.sampled_from([0.5, 1.0, 2.0]),
        "last_slot_tail_sec": st.sampled_from([0.0, 5.0, 60.0]),
        "core_quality_threshold": st.sampled_from([0.0, 0.5, 1.0]),
        "unmatched_fp": st.booleans(),
        "interrupted_output_eval": st.booleans(),
    },
)


def naive_options(options: dict[str, Any]) -> dict[str, Any]:
    """The oracle's spelling of the options."""
    found = {**naive.DEFAULTS, **options}
    found["no_unmatched_fp"] = not found.pop("unmatched_fp", True)
    found["no_interrupted_output_eval"] = not found.pop("interrupted_output_eval", True)
    return found


def partition(
    sample_id: str, scene: str, root: Any, transcript: Any, options: Options
) -> Partition:
    """One sample of one system through the library's own reading."""
    unit_rows: dict[str, list[Any]] = {n: [] for n in UNIT_SCHEMA.names}
    sample = Sample(sample_id, scene, reader.Path("a.json"), "list", "row 0", sample_id)
    slots = build_slots(root, scene, options.last_slot_tail_sec)
    reader._unit_rows(sample, slots, unit_rows)
    spoken = reader.ChunkColumns()
    spoken.add("s", sample_id, parse_native(transcript, "t.json").chunks)
    outputs = tables.make(
        tables.OUTPUTS, {"system": ["s"], "sample_id": [sample_id], "state": ["ok"]}
    )
    part = Partition(
        "s", tables.make(UNIT_SCHEMA, dict(unit_rows)), outputs, spoken.table(),
        STAGE_SCHEMA.empty_table(),
    )  # fmt: skip
    found, stages = benchmark.match(part, options)
    return Partition("s", part.units, outputs, found, stages)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(samples, transcripts, option_sets, st.lists(raw_answers, min_size=20, max_size=20))
def test_random_samples(
    sample: tuple[str, Any], transcript: Any, given_options: dict[str, Any], raws: list[str]
) -> None:
    scene, root = sample
    assert scene in SCENE_TYPES
    options = Options.model_validate({"profile": "published", **given_options}).resolved()
    calls: list[Any] = []

    def judge(call: dict[str, Any]) -> str:
        return raws[(call["slot_id"] * 3 + len(call["stage"])) % len(raws)]

    try:
        want = naive.score_sample(
            root, transcript, scene, judge, naive_options(given_options), calls
        )
    except naive.SampleFailed:
        try:
            build_slots(root, scene, 60.0)
        except UnusableAnnotation:
            return
        raise
    part = partition("x", scene, root, transcript, options)
    asked = {("s", "x", str(c["slot_id"]), c["stage"]): {"raw": judge(c)} for c in calls}
    rows = benchmark.pending(part, options)
    stages = part.stages.select(["unit_id", "stage"]).to_pylist()
    assert {("s", "x", *stages[r].values()) for r in rows.tolist()} == asked.keys()
    scores = benchmark.score(judged(part, options, asked), options)
    slots = scores.filter(pc.equal(scores["unit_kind"], "slot")).to_pylist()
    assert len(slots) == len(want["slots"])
    for found, w in zip(slots, want["slots"], strict=True):
        for ours, theirs in (
            ("tp", "TP"),
            ("fp", "FP"),
            ("fn", "FN"),
            ("spill_seconds", "spill_s"),
        ):
            assert math.isclose(found[ours], w[theirs], abs_tol=1e-12)
        assert found["fp"] == found["fp_early"] + found["fp_low"] + found["fp_spill"]
    result = {**want, "paths": ["a.json"]}
    summary = naive.aggregate([result], naive_options(given_options))
    check_summary(scores, options, summary)


def check_summary(scores: Any, options: Options, want: dict[str, Any]) -> None:
    metrics = [m for m in benchmark.metrics(options) if m.quantile is None]
    sums = distinct_sums(metrics)
    total = cluster_sums(scores, sums, {"x": 0}, scores["video_id"]).sum(axis=0)
    at = dict(zip(sums, total.tolist(), strict=True))
    values = {
        (m.name, m.group): float(m.function(np.array([at[s] for s in m.sums]))) for m in metrics
    }
    for group, row in want["categories"].items():
        if row["slots"]:
            assert math.isclose(values["ia_qtf1", group], row["f1"], abs_tol=1e-12), group
            assert values["fp", group] == row["FP"], group
    if want["ids"]["slots"]:
        for ours, theirs in (
            ("nor", "NOR"),
            ("paq", "PAQ"),
            ("csm_sr", "CSM_SR"),
            ("csm_as", "CSM_AS"),
        ):
            assert math.isclose(values[ours, "interrupted"], want["ids"][theirs], abs_tol=1e-12)
    if want["nccs"]["pairs"]:
        assert math.isclose(values["nccs", "nested"], want["nccs"]["NCCS"], abs_tol=1e-12)
