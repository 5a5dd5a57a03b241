"""The golden set once through the installed command, answers replayed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "omniinteract"
OMNIJUDGE = Path(sys.executable).with_name("omnijudge")


def command(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(w) for w in words], cwd=cwd, capture_output=True, text=True, check=False
    )


def run_golden(folder: Path, profile: str, answers: str = "judge_answers.jsonl") -> Path:
    converter = ROOT / "scripts" / "golden_answers_omniinteract.py"
    made = command(sys.executable, converter, GOLDEN / answers, "answers.jsonl", cwd=folder)
    assert made.returncode == 0, made.stderr
    return run_answers(folder, profile)


def run_answers(folder: Path, profile: str) -> Path:
    """Runs the answers of a folder; the three bad annotations are skipped (exit code 3)."""
    (folder / f"{profile}.yaml").write_text(
        "benchmark: omniinteract\n"
        f"data: {{manifest: {GOLDEN}/manifest.jsonl, on_bad_sample: skip}}\n"
        "judge: {engine: replay, answers: answers.jsonl}\n"
        f"scoring: {{profile: {profile}}}\n"
        "statistics: {replicates: 200}\n"
        f"output: {profile}\n",
        encoding="utf-8",
    )
    done = command(OMNIJUDGE, "run", f"{profile}.yaml", cwd=folder)
    assert done.returncode == 3, done.stderr
    return folder / profile


def metric_rows(run: Path) -> dict[tuple[str, str, str], dict[str, Any]]:
    rows = pq.read_table(run / "metrics.parquet").to_pylist()
    return {(r["system"], r["metric"], r["group"]): r for r in rows}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_golden(tmp_path_factory.mktemp("golden"), "published")


@pytest.mark.parametrize("system", ["alpha", "beta"])
def test_summary_values(published: Path, system: str) -> None:
    want = json.loads((GOLDEN / "expected" / system / "summary.json").read_text(encoding="utf-8"))
    found = metric_rows(published)
    names = {"ia_qtf1": "f1", "precision": "precision", "recall": "recall"}
    names |= {"tp": "TP", "fp": "FP", "fn": "FN"}
    groups = want["categories"] | {"interrupted": want["interrupted"]}
    groups |= {f"nested_{role}": row for role, row in want["nested_by_role"].items()}
    for group, row in groups.items():
        for ours, theirs in names.items():
            value = found[system, ours, group]["value"]
            assert value == pytest.approx(row[theirs], abs=1e-9), (ours, group)
    for ours, theirs in (
        ("nor", "NOR"),
        ("paq", "PAQ"),
        ("csm_sr", "CSM_SR"),
        ("csm_as", "CSM_AS"),
    ):
        value = found[system, ours, "interrupted"]["value"]
        assert value == pytest.approx(want["ids"][theirs], abs=1e-9), ours
    assert found[system, "nccs", "nested"]["value"] == pytest.approx(want["nccs"]["NCCS"], abs=1e-9)


@pytest.mark.parametrize("system", ["alpha", "beta"])
def test_slot_values(published: Path, system: str) -> None:
    rows = pq.read_table(published / "scores.parquet").to_pylist()
    slots = {
        (r["sample_id"], r["unit_id"]): r
        for r in rows
        if r["system"] == system and r["unit_kind"] == "slot"
    }
    checked = 0
    for file in sorted((GOLDEN / "expected" / system).glob("*__*.json")):
        want = json.loads(file.read_text(encoding="utf-8"))
        for s in want["slots"]:
            found = slots[want["sample_id"], str(s["slot_id"])]
            for ours, theirs in (("tp", "TP"), ("fp", "FP"), ("fn", "FN")):
                assert found[ours] == pytest.approx(s[theirs], abs=1e-9)
            checked += 1
    assert checked == len(slots) > 0


def readable(row: dict[str, Any]) -> bool:
    """Whether strict reading takes an answer as it stands."""
    from omnijudge.benchmarks.omniinteract.answers import parse

    return parse(row["stage"], row["raw"], "strict").status == "ok"


def test_robust_equals_published_where_nothing_fails(tmp_path: Path) -> None:
    """Good answers only, no output missing: the two profiles give the same numbers."""
    good = {
        "early": '{"flag": "neutral", "score": 0.6, "rationale": "a remark"}',
        "core": '{"score": 0.8, "trigger_phrase": "", "spoiler": false, "rationale": "right"}',
        "partial": '{"score": 0.7, "hallucination": false, "rationale": "on the way"}',
    }
    lines = (GOLDEN / "judge_answers.jsonl").read_text(encoding="utf-8").splitlines()
    kept, mended = 0, []
    for line in lines:
        row = json.loads(line)
        if readable(row):
            kept += 1
        else:
            row["raw"] = good[row["stage"]]
        mended.append(row)
    assert kept > 100
    answers = "".join(
        json.dumps(
            {
                "system": r["model"], "sample_id": r["sample_id"], "unit_id": str(r["slot_id"]),
                "stage": r["stage"], "raw": r["raw"],
            }
        )
        + "\n"
        for r in mended
    )  # fmt: skip
    (tmp_path / "answers.jsonl").write_text(answers, encoding="utf-8")
    strict = metric_rows(run_answers(tmp_path, "robust"))
    lenient = metric_rows(run_answers(tmp_path, "published"))
    # beta lacks one transcript, which robust scores as silence; alpha has them all.
    for key, row in lenient.items():
        if key[0] == "alpha":
            for name in ("value", "n_units", "n_unscored"):
                assert strict[key][name] == pytest.approx(row[name], abs=1e-9), key
    assert strict["beta", "ia_qtf1", "all"]["n_missing"] == 1


def test_an_answer_that_fails_is_never_a_score(tmp_path: Path, published: Path) -> None:
    """Under robust the unreadable golden answers leave their slots unscored and counted."""
    run = run_golden(tmp_path, "robust")
    scores = pq.read_table(run / "scores.parquet").to_pylist()
    slots = [r for r in scores if r["unit_kind"] == "slot"]
    lost = [r for r in slots if r["judged"] is False]
    assert lost
    assert all(r[c] is None for r in lost for c in ("tp", "fp", "fn"))
    row = metric_rows(run)["alpha", "ia_qtf1", "all"]
    assert row["n_unscored"] == sum(r["system"] == "alpha" for r in lost)
    assert row["coverage"] == pytest.approx(1 - row["n_unscored"] / row["n_units"])
    assert row["bound_low"] <= row["value"] <= row["bound_high"]
    judgements = pq.read_table(run / "judgements.parquet").to_pylist()
    assert all(j["reason"] for j in judgements if j["status"] in ("invalid", "repaired", "error"))
