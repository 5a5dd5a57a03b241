"""Omni-DuplexEval through the installed command: golden tables, clips that break or move."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.omni_duplexeval.duplex_run import GOLDEN, ROOT
from benchmarks.omni_duplexeval.test_duplexeval_paper_golden import check_table, close
from fakes.commands import call, manifest, rows, table_bytes

AGGREGATES = json.loads((GOLDEN / "expected" / "aggregates.json").read_text("utf-8"))
SAMPLE = ROOT / "omnijudge" / "sample_data" / "omni_duplexeval"
SYSTEMS = ("gamma", "delta")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with a judgement store of its own."""
    monkeypatch.setenv("OMNIJUDGE_STORE", str(tmp_path / "store"))
    return tmp_path


def write_config(folder: Path, **values: Any) -> Path:
    """A configuration as JSON, which is YAML too."""
    complete = {"benchmark": "omni_duplexeval", "statistics": {"replicates": 20}, **values}
    path = folder / "config.yaml"
    path.write_text(json.dumps(complete), "utf-8")
    return path


def run_golden(folder: Path, profile: str) -> Path:
    """The golden data with the golden answers, as a user would replay them."""
    import subprocess

    script = ROOT / "scripts" / "golden_answers_duplexeval.py"
    answers = GOLDEN / "judge_answers.json"
    subprocess.run([sys.executable, script, answers, folder / "answers.jsonl"], check=True)
    write_config(
        folder,
        data={"annotations": str(GOLDEN / "annotations.jsonl"), "on_bad_sample": "skip"},
        systems={s: str(GOLDEN / "responses" / s) for s in SYSTEMS},
        judge={"engine": "replay", "answers": "answers.jsonl"},
        scoring={"profile": profile},
        output="run",
    )
    # Some golden answers are unusable on purpose, and delta lacks three responses.
    call(folder, "run", "config.yaml", code=3)
    return folder / "run"


def samples_of(run: Path, system: str) -> dict[str, dict[str, Any]]:
    found = (r for r in rows(run, "scores") if r["system"] == system)
    return {r["sample_id"]: r for r in found if r["unit_kind"] == "sample"}


def check_metrics(run: Path, table: str) -> None:
    for system in SYSTEMS:
        own = (r for r in rows(run, "metrics") if r["system"] == system)
        check_table({(r["metric"], r["group"]): r["value"] for r in own}, AGGREGATES[system][table])


def test_golden_tables_of_the_published_scripts(folder: Path) -> None:
    run = run_golden(folder, "published")
    check_metrics(run, "release_files_only")
    expected = json.loads((GOLDEN / "expected" / "release.json").read_text("utf-8"))
    checked = 0
    for system in SYSTEMS:
        samples = samples_of(run, system)
        for sample_id, wanted in expected[system].items():
            if wanted["status"] != "success":
                continue
            found, result = samples[sample_id], wanted["result"]
            if sample_id.startswith("RTD"):
                mean = result["temporal"]["summary"]["avg_temporal_score"]
                assert close(found["temporal"], mean / 3 * 100), sample_id
                assert close(found["content"], result["content"]["score"] / 3 * 100), sample_id
            else:
                assert found["success"] == 100 * result["all_success"], sample_id
            checked += 1
    assert checked > 50


def test_golden_tables_of_the_paper(folder: Path) -> None:
    run = run_golden(folder, "paper")
    check_metrics(run, "paper_missing_as_zero")
    expected = json.loads((GOLDEN / "expected" / "paper.json").read_text("utf-8"))
    checked = 0
    for system in SYSTEMS:
        samples = samples_of(run, system)
        for sample_id, wanted in expected[system].items():
            found = samples[sample_id]
            if "sentences" in wanted:
                for ours, theirs in (
                    ("temporal", "temporal_100"),
                    ("content", "content_100"),
                    ("overall", "overall_100"),
                ):
                    assert close(found[ours], wanted[theirs]), (sample_id, ours)
                checked += 1
            elif "events" in wanted:
                score = None if wanted["score"] is None else 100 * wanted["score"]
                assert (found["success"], found["outcome"]) == (score, wanted["outcome"])
                checked += 1
        text = call(folder, "metrics", "run", "--layout", "paper", "--format", "json")[0]
        assert system in text
    assert checked > 50


def test_an_empty_error_counts_as_published(folder: Path) -> None:
    """Quirk 12: a failure without a message leaves a valid, irrelevant sentence without times."""
    (folder / "out" / "RTD_OCR").mkdir(parents=True)
    said = [{"sentence": f"Sentence {i}.", "start": 3.0 * i, "end": 3.0 * i + 1} for i in (1, 2, 3)]
    (folder / "out" / "RTD_OCR" / "a.json").write_text(json.dumps(said))
    row = {"id": "a", "split": "RTD_OCR", "question_text": "Tell.", "answer1": "x"}
    (folder / "a.jsonl").write_text(json.dumps({**row, "video_duration": 30}))
    good = {"raw": '{"temporal_score": 3, "is_relevant": 1}'}
    answers = [good, {"error": ""}, {"error": "timed out"}]
    lines = [
        {"system": "s", "sample_id": "RTD_OCR/a", "unit_id": str(i), "stage": "temporal", **t}
        for i, t in enumerate(answers)
    ]
    content = {"unit_id": "content", "stage": "content", "raw": '{"content_score": 3}'}
    lines.append({"system": "s", "sample_id": "RTD_OCR/a", **content})
    (folder / "answers.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    write_config(
        folder,
        data={"annotations": "a.jsonl"},
        systems={"s": "out"},
        judge={"engine": "replay", "answers": "answers.jsonl"},
        scoring={"profile": "published"},
        output="run",
    )
    call(folder, "run", "config.yaml", code=None)
    scores = rows(folder / "run", "scores")
    told = [r["relevant"] for r in scores if r["unit_kind"] == "sentence"]
    assert told == [1, 0, None]
    (sample,) = (r for r in scores if r["unit_kind"] == "sample")
    # One failed sentence; the one without a message counts, but not with its length.
    assert (sample["temporal"], sample["judge_errors"]) == (100.0, 1)
    assert sample["irrelevant_ratio"] == 0.0


def test_a_misspelt_option_is_told_its_name(folder: Path) -> None:
    write_config(
        folder,
        data={"annotations": str(SAMPLE / "annotations.jsonl")},
        systems={"attentive": str(SAMPLE / "outputs" / "attentive")},
        output="run",
    )
    for wrong, right in (("lamda", "lambda"), ("exclusive_window", "exclusive_windows")):
        _, errors = call(folder, "run", "config.yaml", "-o", f"scoring.{wrong}=1", code=2)
        assert f"{wrong}: unknown key; did you mean '{right}'?" in errors


def test_data_may_move(folder: Path) -> None:
    """No table names a folder; elsewhere the same data give the same run and nothing is asked."""
    pytest.importorskip("av", reason="needs the extra `media`")
    shutil.copytree(SAMPLE, folder / "here")
    write_config(
        folder,
        data={"annotations": "here/annotations.jsonl"},
        systems={"attentive": "here/outputs/attentive"},
        scoring={"evidence": "frames+audio", "max_frames": 3},
        output="run",
    )
    output, _ = call(folder, "run", "config.yaml")
    output = " ".join(output.split())
    assert "Evidence: frames+audio, because scoring.evidence is frames+audio" in output
    assert "clips: 12 ok (no_audio 4)" in output
    before = table_bytes(folder / "run")
    for name in before:
        for row in rows(folder / "run", name):
            assert str(folder) not in str(row), name
    media = {r["media"] for r in rows(folder / "run", "units") if r["scene"] == "rtd"}
    assert "videos/dots.mp4" in media

    (folder / "there").mkdir()
    (folder / "here").rename(folder / "there" / "data")
    # New scores of old judgements need no clip.
    call(folder, "score", "run", "--out", "scored")
    assert (folder / "scored" / "scores.parquet").read_bytes() == before["scores"]
    moved = ["-o", "data.annotations=there/data/annotations.jsonl"]
    moved += ["-o", "systems.attentive=there/data/outputs/attentive"]
    call(folder, "run", "config.yaml", *moved)
    assert table_bytes(folder / "run") == before
    assert manifest(folder / "run")["counts"]["asked"] == 0
    grouped, _ = call(
        folder, "metrics", "run", "--by", "language", "--metrics", "temporal", "--format", "json"
    )
    assert '"zh"' in grouped
    shown, _ = call(folder, "show", "run", "attentive/RTD_counting%2Fs01/0", "--prompt")
    assert "question verified" in shown
    assert "[image_url, " in shown
    # The same questions about another clip are other questions.
    videos = folder / "there" / "data" / "videos"
    shutil.copy(videos / "bell.mp4", videos / "dots.mp4")
    _, errors = call(folder, "run", "config.yaml", *moved, code=2)
    assert "annotations" in errors


def broken_data(folder: Path) -> None:
    """A clip in each bad or odd state, the same words about each, and a system that said them."""
    from media.clips import cut, even_times, turned, write_clip
    from media.test_media_probe import write_sound

    whole = write_clip(
        folder / "whole.mp4",
        even_times(6, 10),
        audio_seconds=6,
        options={"movflags": "faststart"},
    )
    cut(whole, folder / "truncated.mp4", 0.55)
    cut(whole, folder / "unreadable.mp4", 0.02)
    turned(whole, folder / "rotated.mp4")
    write_clip(folder / "no_audio.mp4", even_times(6, 10))
    times = [0.0, 0.1, 0.2, 1.5, 1.6, 3.0, 3.1, 5.5, 5.9]
    write_clip(folder / "variable_frame_rate.mp4", times, audio_seconds=6)
    write_sound(folder / "zero_duration.mkv", with_empty_video=True)
    said = [
        {"sentence": "It gets brighter.", "start": 2.0, "end": 3.0},
        {"sentence": "It is bright now.", "start": 6.5, "end": 7.0},
    ]
    (folder / "x" / "RTD_OCR").mkdir(parents=True)
    lines = []
    clips = [p for p in sorted(folder.iterdir()) if p.suffix in (".mp4", ".mkv")]
    for clip in (*clips, folder / "missing.mp4"):
        row = {"id": clip.stem, "split": "RTD_OCR", "question_text": "Say what you see."}
        row |= {"answer1": "It gets brighter.", "video": clip.name}
        lines.append({**row, "video_duration": 6.0})
        (folder / "x" / "RTD_OCR" / f"{clip.stem}.json").write_text(json.dumps(said))
    (folder / "a.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))


UNUSABLE = ("missing", "unreadable", "zero_duration")
ODD = {
    "whole": "frames+audio",
    "no_audio": "frames",
    "variable_frame_rate": "frames+audio",
    "rotated": "frames+audio",
}


@pytest.mark.parametrize("profile", ["robust", "published"])
def test_every_broken_clip_has_a_named_state(folder: Path, profile: str) -> None:
    pytest.importorskip("av", reason="needs the extra `media`")
    broken_data(folder)
    write_config(
        folder,
        data={"annotations": "a.jsonl"},
        systems={"x": "x"},
        scoring={"evidence": "frames+audio", "profile": profile},
        output="run",
    )
    output, errors = call(folder, "run", "config.yaml", code=3)
    assert "Traceback" not in errors
    assert "units are unscored" in errors
    output = " ".join(output.split())
    assert (
        "clips: 1 missing, 4 ok, 1 truncated, 1 unreadable, 1 zero_duration "
        "(no_audio 1, rotated 1, variable_frame_rate 1)"
    ) in output
    for state in (*UNUSABLE, "truncated"):
        assert f"media_{state} 1" in output
    units = {u["sample_id"]: u for u in rows(folder / "run", "units")}
    samples = samples_of(folder / "run", "x")
    for name in UNUSABLE:
        row = samples[f"RTD_OCR/{name}"]
        assert units[f"RTD_OCR/{name}"]["media_state"] == name
        assert (row["temporal"], row["content"], row["judged"]) == (None, None, False)
    for name, evidence in ODD.items():
        row, unit = samples[f"RTD_OCR/{name}"], units[f"RTD_OCR/{name}"]
        assert (unit["media_state"], unit["media_notes"]) == ("ok", "" if name == "whole" else name)
        assert row["judged"] is True
        assert row["frame_count"] > 0
        assert row["content_frame_count"] == int(2 * unit["video_duration"])
        assert row["content_evidence"] == evidence
    cut_off = samples["RTD_OCR/truncated"]
    assert (cut_off["content"], cut_off["judged"]) == (None, False)
    assert cut_off["frame_count"] > 0
    stages = rows(folder / "run", "stages")
    notes = {
        s["sample_id"].partition("/")[2]: s["evidence_note"]
        for s in stages
        if s["stage"] == "content"
    }
    assert notes["truncated"] == "beyond_readable_media"
    assert {n: notes[n] for n in UNUSABLE} == {n: f"media_{n}" for n in UNUSABLE}
    assert notes["no_audio"] == "no_audio"
    # All of it is known before a judge is asked.
    listed, _ = call(folder, "validate", "config.yaml", code=None)
    for name in (*UNUSABLE, "truncated", "no_audio", "variable_frame_rate", "rotated"):
        assert f"clip {name}: " in listed
