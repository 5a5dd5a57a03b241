"""Every per-slot value of the golden set, to 1e-9."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from golden.omniinteract_run import GOLDEN, SYSTEMS, config, judge_answers, judged, matched

from omnijudge.benchmarks.omniinteract import benchmark
from omnijudge.benchmarks.omniinteract.answers import parse
from omnijudge.benchmarks.omniinteract.matching import slot_bounds


@cache
def scored(system: str) -> dict[str, Any]:
    run = config()
    part, options = matched(system, run)
    part = judged(part, options, judge_answers())
    bounds = slot_bounds(part.units, options)
    units = part.units.to_pylist()
    ends = {
        row: (bounds.t_start[i], bounds.t_a[i], bounds.t_end[i])
        for i, row in enumerate(bounds.rows)
    }
    slots: dict[str, list[dict[str, Any]]] = {}
    for row, (start, t_a, end) in ends.items():
        slots.setdefault(units[row]["sample_id"], []).append(
            {**units[row], "start": start, "t_a": t_a, "end": end}
        )
    stages: dict[tuple[str, str, str], dict[str, Any]] = {
        (s["sample_id"], s["unit_id"], s["stage"]): {**s, "parts": p}
        for s, p in zip(part.stages.to_pylist(), part.stages["parts"].to_pylist(), strict=True)
    }
    verdicts = dict(zip(stages, part.verdicts.to_pylist(), strict=True))
    chunks: dict[tuple[str, str | None], list[int]] = {}
    for c in part.chunks.select(["sample_id", "unit_id", "chunk_id"]).to_pylist():
        chunks.setdefault((c["sample_id"], c["unit_id"]), []).append(c["chunk_id"])
    scores = {(s["sample_id"], s["unit_id"]): s for s in benchmark.score(part, options).to_pylist()}
    return {
        "slots": slots,
        "stages": stages,
        "verdicts": verdicts,
        "chunks": chunks,
        "scores": scores,
    }


def expected_samples(system: str) -> list[str]:
    files = (GOLDEN / "expected" / system).glob("*.json")
    return sorted(f.stem for f in files if f.stem not in ("summary", "discovery"))


CASES = [(system, sample) for system in SYSTEMS for sample in expected_samples(system)]


def close(found: Any, expected: Any) -> bool:
    if expected is None or found is None or isinstance(expected, str | bool):
        return bool(found == expected)
    return abs(found - expected) <= 1e-9


@pytest.mark.parametrize(("system", "sample"), CASES)
def test_every_value_of_a_sample(system: str, sample: str) -> None:
    run = scored(system)
    path = GOLDEN / "expected" / system / f"{sample}.json"
    want = json.loads(path.read_text(encoding="utf-8"))
    slots = run["slots"][sample]
    assert len(slots) == len(want["slots"])
    for slot, w in zip(slots, want["slots"], strict=True):
        key = (sample, slot["unit_id"])
        score = run["scores"][key]
        stages = {s: run["stages"].get((*key, s)) for s in ("early", "core", "partial")}
        found: dict[str, Any] = {
            "slot_id": int(slot["unit_id"]),
            "start": slot["start"],
            "t_a": slot["t_a"],
            "end": slot["end"],
            "boundary": slot["boundary"],
            "effective_boundary": "hard" if slot["is_interrupted"] else slot["boundary"],
            "question_type": slot["question_type"],
            "interrupted": slot["is_interrupted"],
            "label": slot["label"],
            "step": slot["step_index"],
            "turn": slot["turn_index"],
            "pair": slot["pair_index"],
            "role": slot["role"],
            "question": slot["question_text"],
            "answer": slot["target_answer"],
            "chunks": run["chunks"].get(key, []),
            "TP_ack": score["tp_ack"],
            "TP_core": score["tp_core"],
            "TP": score["tp"],
            "FP": score["fp"],
            "FN": score["fn"],
            "spill": bool(score["fp_spill"]),
            "spill_s": score["spill_seconds"],
        }
        for name, value in found.items():
            assert close(value, w[name]) if not isinstance(value, list) else value == w[name], name
        assert score["fp"] == score["fp_early"] + score["fp_low"] + score["fp_spill"]
        check_stages(stages, w)
        check_scores(
            score, run["verdicts"].get((*key, "early")), run["verdicts"].get((*key, "core")), w
        )
    assert run["chunks"].get((sample, None), []) == want["unmatched"]
    assert run["scores"][sample, "sample"]["unmatched"] == want["summary"]["unmatched"]


def check_stages(stages: dict[str, Any], want: dict[str, Any]) -> None:
    for name in ("early", "core"):
        parts = [] if stages[name] is None else stages[name]["parts"]
        assert len(parts) == len(want[name])
        for part, w in zip(parts, want[name], strict=True):
            assert (part["chunk_id"], part["part"], part["spill"]) == (
                w["id"],
                w["part"],
                w["spill"],
            )
            assert close(part["start"], w["start"])
            assert close(part["end"], w["end"])
            if "text" in w:
                assert part["text"] == w["text"]
        assert (stages[name]["text"] if stages[name] else "") == want[f"text_{name}"]


def check_scores(score: dict[str, Any], early: Any, core: Any, want: dict[str, Any]) -> None:
    if "ack" in want:
        w = want["ack"]
        assert score["early_category"] == w["category"]
        assert early["parse"] == w["parse"]
        for name, value in (("S", score["s_ack"]), ("T", score["t_ack"]), ("W", score["w_ack"])):
            assert close(value, w[name]), name
    else:
        assert score["early_category"] == "none"
    if "core_score" in want:
        w = want["core_score"]
        pairs = {
            "S": score["s_core"], "T": score["t_core"], "W": score["w_core"],
            "anchor": score["anchor"], "anchor_from": score["anchor_source"] or "first_chunk",
            "fallback": score["fallback"], "t_used": score["t_used"],
            "low_quality": bool(score["fp_low"]), "spoiler": score["spoiler"],
            "phrase": core["trigger_phrase"], "parse": core["parse"],
        }  # fmt: skip
        for name, value in pairs.items():
            assert close(value, w[name]), name
    else:
        assert score["s_core"] is None
    if "interruption" in want:
        w = want["interruption"]
        assert score["has_output"] == w["has_output"]
        assert score["paq_judged"] == (w["status"] == "ok")
        assert close(score["paq"], w["quality"])
        assert bool(score["partial_low"]) == w["low_quality"]
        assert bool(score["partial_hallucination"]) == w["hallucination"]


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(
    ("answers", "tail"), [("judge_answers.jsonl", 60.0), ("judge_answers_tail15.jsonl", 15.0)]
)
def test_exactly_the_published_questions_are_asked(system: str, answers: str, tail: float) -> None:
    known = judge_answers(answers)
    part, options = matched(system, config(last_slot_tail_sec=tail))
    rows = benchmark.pending(part, options)
    prompts = benchmark.prompts(part, rows, options)
    stages = part.stages.to_pylist()
    asked = set()
    for row, prompt in zip(rows.tolist(), prompts, strict=True):
        s = stages[row]
        key = (system, s["sample_id"], s["unit_id"], s["stage"])
        asked.add(key)
        assert s["text"] == known[key]["actual_text"]
        if s["stage"] != "partial":
            assert s["context"] == known[key]["full_context"]
        if s["stage"] == "core":
            shown = [int(i) for i, _ in prompt.variables["later_answers"]]
            assert shown == known[key]["future_slots"]
    assert asked == {k for k in known if k[0] == system}


def test_every_golden_answer_is_read_as_published() -> None:
    for key, row in judge_answers().items():
        assert parse(key[3], row["raw"], "published").status in ("ok", "repaired")
