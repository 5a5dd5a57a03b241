"""Omni-DuplexEval through the whole pipeline: golden data by replay, clips that break."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from benchmarks.omni_duplexeval.duplex_run import GOLDEN, config_of, golden_answers
from benchmarks.omni_duplexeval.test_duplexeval_paper_golden import check_table

from omnijudge.pipeline import RunFlags
from omnijudge.pipeline import run as run_pipeline

AGGREGATES = json.loads((GOLDEN / "expected" / "aggregates.json").read_text("utf-8"))
QUIET = RunFlags(quiet=True, no_store=True)


@pytest.mark.parametrize(
    ("profile", "table"),
    [
        ("robust", "paper_missing_as_zero"),
        ("paper", "paper_missing_as_zero"),
        ("published", "release_files_only"),
    ],
)
def test_golden_tables_by_replay(tmp_path: Path, profile: str, table: str) -> None:
    answers = tmp_path / "answers.jsonl"
    answers.write_text("".join(json.dumps(r) + "\n" for r in golden_answers().values()), "utf-8")
    config = config_of(
        {
            "data": {"annotations": str(GOLDEN / "annotations.jsonl"), "on_bad_sample": "skip"},
            "systems": {s: str(GOLDEN / "responses" / s) for s in ("gamma", "delta")},
            "judge": {"engine": "replay", "answers": str(answers)},
            "scoring": {"profile": profile},
            "statistics": {"replicates": 20},
            "output": str(tmp_path / "run"),
        },
        tmp_path,
    )
    outcome = run_pipeline(config, QUIET)
    # Some golden answers are unusable on purpose.
    assert outcome.exit_code == 3
    rows = pq.read_table(tmp_path / "run" / "metrics.parquet").to_pylist()
    for system in ("gamma", "delta"):
        found = {(r["metric"], r["group"]): r["value"] for r in rows if r["system"] == system}
        check_table(found, AGGREGATES[system][table])
    scores = pq.read_table(tmp_path / "run" / "scores.parquet")
    assert {"sentence", "event", "sample"} <= set(scores["unit_kind"].to_pylist())


def test_a_clip_that_cannot_be_decoded_costs_its_questions_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("av", reason="needs the extra `media`")
    from benchmarks.omni_duplexeval.test_duplexeval_evidence import SAMPLE

    import omnijudge.media

    decode = omnijudge.media.clip_frames

    def fails_late(source: str, times: list[float], side: int = 512) -> list[bytes]:
        if source.endswith("dots.mp4") and max(times) > 6:
            raise omnijudge.media.MediaError(f"{source}: the picture at 6.00 s cannot be decoded")
        return decode(source, times, side)

    monkeypatch.setattr(omnijudge.media, "clip_frames", fails_late)
    values: dict[str, Any] = {
        "data": {"annotations": str(SAMPLE / "annotations.jsonl")},
        "systems": {"attentive": str(SAMPLE / "outputs" / "attentive")},
        "judge": {"engine": "lexical"},
        "scoring": {"evidence": "frames", "max_frames": 6},
        "statistics": {"replicates": 20},
        "output": str(tmp_path / "run"),
    }
    config = config_of(values, tmp_path)
    outcome = run_pipeline(config, QUIET)
    assert outcome.exit_code == 3
    rows = pq.read_table(tmp_path / "run" / "scores.parquet").to_pylist()
    samples = {r["sample_id"]: r for r in rows if r["unit_kind"] == "sample"}
    unscored = [s for s, r in samples.items() if r["judged"] is False]
    assert unscored == ["RTD_counting/s01"]
    assert samples["RTD_counting/s01"]["content"] is None
    early = next(r for r in rows if (r["sample_id"], r["unit_id"]) == ("RTD_counting/s01", "0"))
    assert early["judged"] is True
    asked = pq.read_table(tmp_path / "run" / "judgements.parquet").to_pylist()
    errors = {r["reason"] for r in asked if r["status"] == "error"}
    assert len(errors) == 1
    assert "the picture at 6.00 s cannot be decoded" in errors.pop()
    # Running again changes nothing.
    again = run_pipeline(config, QUIET)
    assert again.exit_code == 3
    assert pq.read_table(tmp_path / "run" / "scores.parquet").to_pylist() == rows
