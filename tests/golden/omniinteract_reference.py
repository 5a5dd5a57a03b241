"""The golden set in the published evaluator's own file layout, made from the golden values.

The three golden files show the layout; the rest of the 43 scored samples is written in the same
form here, so that an import can be tested on a whole run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from golden.omniinteract_run import GOLDEN, judge_answers
from naive import omniinteract as naive

PARSE = {"json": "llm_json", "number": "llm_float_text", "failed": "llm_parse_failed"}
CONFIG = {
    "W_ack": 0.2,
    "W_core_default": 0.8,
    "one_qna_later_steps_start_at_t_a": True,
    "one_qna_later_steps_W_ack": 0.0,
    "decay_alpha": 1.0,
    "decay_gamma": 1.0,
    "core_quality_threshold": 0.5,
    "evaluate_interrupted_outputs": True,
    "partial_quality_threshold": 0.5,
    "count_unmatched_as_fp": True,
}


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def manifest(system: str) -> dict[str, dict[str, Any]]:
    lines = (GOLDEN / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    rows = map(json.loads, lines)
    return {r["sample_id"]: r for r in rows if r["model"] == system}


def expected(system: str) -> dict[str, dict[str, Any]]:
    files = (GOLDEN / "expected" / system).glob("1q*.json")
    return {f.stem: read(f) for f in sorted(files)}


def write_results(folder: Path, system: str) -> None:
    """Writes every scored sample of a system, and a summary."""
    rows, items, totals = manifest(system), [], [0.0, 0.0, 0.0]
    for sample_id, want in expected(system).items():
        result = as_result(system, want, rows[sample_id])
        write(folder, sample_id, result)
        items.append({"status": "ok", "sample_id": sample_id, **result["meta"]})
        for i, name in enumerate(("TP", "FP", "FN")):
            totals[i] += want["summary"][name]
    tp, fp, fn = totals
    summary = {"summary": {"IA_QTF1": 2 * tp / (2 * tp + fp + fn)}, "items": items}
    path = folder / "unified_eval_summary.json"
    path.write_text(json.dumps(summary), encoding="utf-8")


def write(folder: Path, sample_id: str, result: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{sample_id}.unified_eval.json"
    path.write_text(json.dumps(result, ensure_ascii=False), encoding="utf-8")


def as_result(system: str, want: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    said = {c["id"]: c for c in naive.read_chunks(read(GOLDEN / row["model_json"]))}

    def chunk(number: int) -> dict[str, Any]:
        return {"chunk_id": number, **{k: said[number][k] for k in ("start", "end", "text")}}

    return {
        "status": "ok",
        "error": None,
        "config": dict(CONFIG),
        "summary": {"num_slots": len(want["slots"])},
        "slots": [slot(system, want["sample_id"], s, chunk) for s in want["slots"]],
        "unmatched_chunks": [chunk(n) for n in want["unmatched"]],
        "meta": {
            "gt_json": row["gt_json"],
            "model_json": row["model_json"],
            "scene_type": row["scene_type"],
            "judge_api_model": "gpt-4o-2024-08-06",
        },
    }


def slot(system: str, sample_id: str, s: dict[str, Any], chunk: Any) -> dict[str, Any]:
    answers = judge_answers()

    def raw(stage: str) -> dict[str, Any]:
        return answers[system, sample_id, str(s["slot_id"]), stage]

    found: dict[str, Any] = {
        "slot_id": s["slot_id"],
        "is_interrupted": s["interrupted"],
        "start": s["start"],
        "t_a": s["t_a"],
        "end": s["end"],
        "question_text": s["question"],
        "gt_answer": s["answer"],
        "TP_ack": s["TP_ack"],
        "TP_core": s["TP_core"],
        "TP_n": s["TP"],
        "FP_delta": s["FP"],
        "FN_delta": s["FN"],
        "all_chunks": [chunk(n) for n in s["chunks"]],
        "stage_early": {"category": "none", "diagnostics": {}, "text_early": ""},
        "stage_core": {"judge_core": {}, "text_core": s["text_core"]},
        "spill_diagnostics": {"spill_seconds": s["spill_s"]},
        "interruption_diagnostic": {},
    }
    if "ack" in s:
        ack = s["ack"]
        found["stage_early"] = {
            "category": ack["category"],
            "S_ack": ack["S"],
            "T_ack": ack["T"],
            "W_ack_used": ack["W"],
            "text_early": s["text_early"],
            "chunks": s["early"],
            "diagnostics": {"raw": raw("early")["raw"], "parse_source": PARSE[ack["parse"]]},
        }
    if "core_score" in s:
        core = s["core_score"]
        found["stage_core"] |= {
            "S_core": core["S"],
            "T_core": core["T"],
            "W_core_used": core["W"],
            "T_start": core["t_used"],
            "T_start_fallback": core["fallback"],
            "T_start_true_effective": core["anchor"],
            "low_quality_fp": core["low_quality"],
            "chunks": s["core"],
            "judge_core": {
                "raw": raw("core")["raw"],
                "parse_source": PARSE[core["parse"]],
                "trigger_phrase": core["phrase"],
                "spoiler": core["spoiler"],
            },
        }
    if s.get("interruption", {}).get("status") == "ok":
        row, inside = raw("partial"), s["interruption"]
        found["interruption_diagnostic"] = {
            "status": "ok",
            "actual_text": row["actual_text"],
            "partial_quality": inside["quality"],
            "hallucination": inside["hallucination"],
            "judge_partial": {
                "raw": row["raw"],
                "parse_source": PARSE[naive.parse_partial(row["raw"])[2]],
            },
        }
    return found
