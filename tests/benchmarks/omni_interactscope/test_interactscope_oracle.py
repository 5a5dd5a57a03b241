"""The library's steps against the slow way of doing the same, on random and nasty inputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden.interactscope_run import (
    config,
    interactions,
    matched,
    metric_values,
    stage_keys,
    with_verdicts,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import interactscope as naive

from omnijudge.benchmarks.omni_interactscope import benchmark
from omnijudge.benchmarks.omni_interactscope.answers import object_spans, parse_verdict
from omnijudge.benchmarks.omni_interactscope.matching import first_response, match_in_order
from omnijudge.benchmarks.omni_interactscope.windows import TASKS

Row = dict[str, Any]
GRID = [0.0, 0.3, 1.0, 2.0, 2.3, 4.0, 4.3, 6.0, 6.3, 8.0, 8.3, 9.0, 10.3, 12.0, 14.5]
SAYINGS = ["Watch the step.", "ABSTAIN", " . ", "", "停一下", "Now turn left.", "abstain！"]
TOOLS: list[list[str]] = [[], ["timer"], [" timer "], ["photo", "timer"], [""], ["Timer"]]


def random_interaction(rng: np.random.Generator, number: int) -> Row:
    task = TASKS[rng.integers(len(TASKS))]
    targets = []
    for k in range(1 if task in ("T1", "T8-A") else int(rng.integers(1, 5))):
        start = float(rng.choice(GRID))
        target: Row = {"target_id": f"t{k}", "order": int(rng.integers(1, 4)), "reference": "r"}
        if task == "T8-A" or rng.random() < 0.2:
            target["interval"] = [start, start + float(rng.choice([0.0, 1.5]))]
        else:
            target["ref_time"] = start
        if task == "T1":
            target["tools"] = TOOLS[rng.integers(len(TOOLS))]
        targets.append(target)
    return {
        "interaction_id": f"i{number:04d}",
        "video_id": f"v{number % 7}",
        "task": task,
        "request": "q",
        "request_time": None if task == "T8-A" else float(rng.choice(GRID[:6])),
        "clip_start": 0.0,
        "clip_end": 20.0,
        "valid": bool(rng.random() > 0.05),
        "targets": targets,
    }


def random_trajectory(rng: np.random.Generator, identity: str) -> Row | None:
    if rng.random() < 0.1:
        return None
    outputs = [
        {
            "t": float(rng.choice(GRID)) + float(rng.choice([0.0, 0.0, 5e-7, 2e-6])),
            "text": SAYINGS[rng.integers(len(SAYINGS))],
            "tools": TOOLS[rng.integers(len(TOOLS))] if rng.random() < 0.3 else [],
        }
        for _ in range(rng.integers(0, 9))
    ]
    granularity = "fragment" if rng.random() < 0.3 else "response"
    return {"interaction_id": identity, "granularity": granularity, "outputs": outputs}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "scoring",
    [
        {},
        {"tolerance": 1.0, "first_response_variant": "late_released"},
        {"tolerance": 4.0, "first_response_variant": "since_previous"},
        {"grouping_mode": "chained", "group_span": 1.5},
    ],
    ids=str,
)
def test_random_corpora(seed: int, scoring: Row, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    annotated = [random_interaction(rng, i) for i in range(250)]
    found = [random_trajectory(rng, a["interaction_id"]) for a in annotated]
    trajectories = {t["interaction_id"]: t for t in found if t is not None}
    dump = lambda rows: "\n".join(json.dumps(r, ensure_ascii=False) for r in rows)  # noqa: E731
    (tmp_path / "annotations.jsonl").write_text(dump(annotated), encoding="utf-8")
    (tmp_path / "x.jsonl").write_text(dump(trajectories.values()), encoding="utf-8")

    def verdict(sample: str, target: str, index: int) -> bool | None:
        draw = np.random.default_rng([seed, int(sample[1:]), int(target[1:]), index]).random()
        return None if draw < 0.1 else draw < 0.7

    expected = naive.run_model(
        annotated,
        trajectories,
        lambda a, t, r: verdict(a["interaction_id"], t["target_id"], r["output_index"]),
        tau=scoring.get("tolerance", 2.0),
        variant=scoring.get("first_response_variant", "default"),
        mode=scoring.get("grouping_mode", "anchored"),
        span=scoring.get("group_span", 2.0),
    )
    part, options = matched("x", config(tmp_path, ".", ["x"], **scoring))
    keys = stage_keys(part)
    known: dict[int, tuple[str, bool | None]] = {}
    for row in benchmark.pending(part, options).tolist():
        said = verdict(*keys[row])
        known[row] = ("error" if said is None else "ok", said)
    scores = benchmark.score(with_verdicts(part, known), options)
    mine = interactions(part, scores, options)
    theirs = sorted(expected["interactions"], key=lambda r: r["interaction_id"])
    assert mine == theirs
    values = metric_values(scores)
    summary = expected["summary"]
    assert values["outputs_per_minute", "all"] == pytest.approx(summary["all_outputs_per_minute"])
    assert values["joint_accuracy", "average_six"] == pytest.approx(summary["average_six"])


times = st.lists(st.sampled_from(GRID), max_size=9).map(sorted)
instance = st.tuples(
    st.lists(st.tuples(st.sampled_from(GRID), st.sampled_from([0.0, 2.0, 5.0])), max_size=6), times
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(instance, min_size=1, max_size=5),
    st.sampled_from(["default", "late_released", "since_previous"]),
)
def test_first_response_of_random_instances(instances: list[Any], variant: str) -> None:
    windows = [[(a - w, a + w) for a, w in targets] for targets, _ in instances]
    low = np.array([w[0] for ws in windows for w in ws])
    high = np.array([w[1] for ws in windows for w in ws])
    end = np.array([a for targets, _ in instances for a, _ in targets])
    target_offsets = np.cumsum([0, *(len(t) for t, _ in instances)])
    response_offsets = np.cumsum([0, *(len(r) for _, r in instances)])
    flat = np.array([t for _, r in instances for t in r])
    taken, timing = first_response(flat, response_offsets, low, high, end, target_offsets, variant)
    names = ["missing", "early", "late", "success"]
    for s, (targets, responses) in enumerate(instances):
        anchors = [a for a, _ in targets]
        expected = naive.first_response(windows[s], anchors, responses, lambda k, j: True, variant)
        where = slice(target_offsets[s], target_offsets[s + 1])
        mine = [
            (names[c], None if j < 0 else int(j - response_offsets[s]))
            for c, j in zip(timing[where], taken[where], strict=True)
        ]
        assert mine == expected


tables_of_bits = st.integers(0, 8).flatmap(
    lambda width: st.lists(st.lists(st.booleans(), min_size=width, max_size=width), max_size=6)
)


@settings(max_examples=200, deadline=None)
@given(st.lists(tables_of_bits, min_size=1, max_size=4))
def test_ordered_matching_of_random_tables(tables: list[list[list[bool]]]) -> None:
    target_offsets = np.cumsum([0, *(len(t) for t in tables)])
    widths = [len(t[0]) if t else 0 for t in tables]
    bases = np.cumsum([0, *widths])
    base = np.repeat(bases[:-1], np.diff(target_offsets))
    rows = [row for table in tables for row in table]
    eligible = np.array([e for row in rows for e in row], dtype=bool)
    target = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    inner = np.array([j for row in rows for j in range(len(row))], dtype=np.int64)
    found = match_in_order(target, base[target] + inner, eligible, bases, target_offsets)
    for s, table in enumerate(tables):
        _, pairs = naive.ordered_matching(table, len(table), widths[s])
        mine = found[target_offsets[s] : target_offsets[s + 1]]
        assert [(k, int(j - bases[s])) for k, j in enumerate(mine) if j >= 0] == pairs


WHOLE = ['{"equivalent": true}', '{"equivalent": 0,}', '{"a": {"equivalent": true}}']
BROKEN = [
    '{"equivalent":"No "',
    "}",
    "{",
    '"',
    "\\",
    " ok ",
    ",}",
    "0",
    ":",
    '"}"',
    "```json\n",
    "否",
]
pieces = st.sampled_from([*WHOLE, *BROKEN])


@settings(max_examples=400, deadline=None)
@given(st.lists(pieces, max_size=8).map("".join))
def test_answers_are_read_like_the_slow_way(raw: str) -> None:
    assert list(object_spans(raw)) == naive.spans(raw)
    assert parse_verdict(raw).fields.get("equivalent") is naive.parse_verdict(raw)
