"""Every hand-written format case: chunks, counts, refusals and timing modes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from omnijudge.transcripts.reader import read_transcript
from omnijudge.transcripts.vllm_omni import check_manifest, read_run_folder

GOLDEN = Path(__file__).parents[1] / "golden" / "formats"
CASES = sorted(GOLDEN.glob("*/*/expected.json"))
RUN_FOLDER = GOLDEN / "vllm_omniinteract" / "run_folder"
# May be reported in addition to what a case lists.
INFO = {"long_chunk", "long_gap", "overlap", "zero_length"}


def test_all_cases_are_there() -> None:
    assert len(CASES) == 38


@pytest.mark.parametrize("case", CASES, ids=lambda p: f"{p.parts[-3]}/{p.parts[-2]}")
def test_case(case: Path) -> None:
    expected: dict[str, Any] = json.loads(case.read_text(encoding="utf-8"))
    path = case.with_name(expected["input"])
    found = read_transcript(
        path,
        benchmark=expected["benchmark"],
        profile=expected["profile"],
        duration=expected["duration"],
        **expected["options"],
    )
    assert found.format == expected["format"]
    assert found.timing == expected.get("timing")
    if expected["refused"] is not None:
        assert found.refused is not None
        assert found.refused.code == expected["refused"]["code"]
        assert found.refused.file == str(path)
        for mention in expected["refused"]["mentions"]:
            assert mention in found.refused.message
        assert not found.chunks
        return
    assert found.refused is None
    assert [chunk.text for chunk in found.chunks] == [c["text"] for c in expected["chunks"]]
    for chunk, wanted in zip(found.chunks, expected["chunks"], strict=True):
        assert (chunk.start, chunk.end) == pytest.approx((wanted["start"], wanted["end"]), abs=1e-6)
        assert [word.text for word in chunk.words] == [w["text"] for w in wanted["words"]]
        for word, times in zip(chunk.words, wanted["words"], strict=True):
            assert (word.start, word.end) == pytest.approx((times["start"], times["end"]), abs=1e-6)
    assert {p.code: p.count for p in found.problems if p.code not in INFO} == expected["problems"]


def test_run_folder() -> None:
    expected = json.loads((RUN_FOLDER / "expected_run.json").read_text(encoding="utf-8"))
    statuses: Counter[str] = Counter()
    for clip, transcript in read_run_folder(RUN_FOLDER):
        wanted = expected["clips"].pop(clip.sample_id)
        statuses[clip.status] += 1
        assert clip.status == wanted["status"]
        assert clip.output_name == f"1q1a/videos__{clip.sample_id[14:18]}"
        if wanted["transcript"] is None:
            assert clip.path is None
            assert transcript is None
            assert clip.reason
            continue
        assert clip.path == RUN_FOLDER / wanted["transcript"]
        assert transcript is not None
        assert transcript.chunks
        assert {p.code: p.count for p in transcript.problems} == wanted["problems"]
        assert list(clip.reasons) == wanted.get("reasons", [])
        for reason in clip.reasons:
            assert reason in transcript.problems[0].message
    assert not expected["clips"]
    summary = expected["by_batch_summary"]
    assert statuses == {"ok": summary["ok"], "missing": summary["missing"]}
    assert statuses.total() == summary["listed"]


def test_manifest_of_a_run_folder_leaves_clips_out() -> None:
    expected = json.loads((RUN_FOLDER / "expected_run.json").read_text(encoding="utf-8"))
    found = check_manifest(RUN_FOLDER / "official_eval_manifest.jsonl")
    assert {p.code: p.count for p in found} == expected["by_manifest"]["problems"]
