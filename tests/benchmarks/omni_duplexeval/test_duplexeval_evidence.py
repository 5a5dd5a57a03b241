"""What a judge is shown, for every kind of evidence and every way a clip can be broken."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("av", reason="needs the extra `media`")

from benchmarks.omni_duplexeval.duplex_run import ROOT, Result, config_of, run
from media.clips import cut, even_times, turned, write_clip

from omnijudge.benchmarks.omni_duplexeval import benchmark
from omnijudge.benchmarks.omni_duplexeval.evidence import run_evidence
from omnijudge.benchmarks.omni_duplexeval.options import Options
from omnijudge.config import JudgeConfig
from omnijudge.errors import EvidenceError
from omnijudge.judging.prompts import PromptPack

SAMPLE = ROOT / "omnijudge" / "sample_data" / "omni_duplexeval"
SEES = {"limit_mm_per_prompt": {"image": 32}}
HEARS = {"limit_mm_per_prompt": {"image": 32, "audio": {"count": 1}}}
GOOD = {"raw": '{"is_relevant": 1, "temporal_score": 3, "content_score": 2.5, "success_score": 1}'}


def judge(engine: str = "vllm", **options: Any) -> dict[str, Any]:
    return {"engine": engine, "model": "m", "engine_options": options}


def sample_config(scoring: dict[str, Any] | None = None, **chosen: Any) -> Any:
    values = {
        "data": {"annotations": "annotations.jsonl"},
        "systems": {"attentive": "outputs/attentive", "chatty": "outputs/chatty"},
        "judge": chosen.get("judge", {"engine": "lexical"}),
        "scoring": scoring or {},
    }
    return config_of(values, SAMPLE)


def always_good(stage: dict[str, Any], attempt: int) -> dict[str, Any]:
    return GOOD


@pytest.mark.parametrize(
    ("judges", "evidence", "captions", "content", "windows"),
    [
        ([("replay", {})], "auto", True, "unknown", "unknown"),
        ([("replay", {})], "frames", False, "unknown", "unknown"),
        ([("lexical", {})], "auto", True, "captions", "captions"),
        ([("lexical", {})], "auto", False, "references", "references"),
        ([("vllm", {})], "auto", True, "captions", "captions"),
        ([("vllm", {})], "auto", False, "references", None),
        ([("openai", {})], "references", False, "references", "references"),
        ([("vllm", SEES)], "auto", True, "frames", "frames"),
        ([("vllm", HEARS)], "auto", False, "frames+audio", "frames+audio"),
        ([("vllm", HEARS), ("vllm", SEES)], "auto", False, "frames", "frames"),
        ([("vllm", HEARS), ("vllm", {})], "auto", True, "captions", "captions"),
        ([("openai", {})], "video", False, "video", "video"),
    ],
)
def test_the_kind_is_chosen_once_per_run(
    judges: list[Any], evidence: Any, captions: bool, content: str, windows: str | None
) -> None:
    panel = [
        JudgeConfig(name=str(i), engine=e, model="m", answers="a", engine_options=o)
        for i, (e, o) in enumerate(judges)
    ]
    found = run_evidence(Options(evidence=evidence), panel, captions)
    assert (found.content, found.windows) == (content, windows)
    assert found.because


def test_the_published_profile_hears_nothing() -> None:
    panel = [JudgeConfig(engine="vllm", model="m", engine_options=HEARS)]
    assert run_evidence(Options(profile="published"), panel, False).windows == "frames"


def test_the_sample_runs_with_the_smoke_judge_and_tells_the_systems_apart() -> None:
    def lexical(stage: dict[str, Any], attempt: int) -> dict[str, Any]:
        prompt = stage["prompt"]
        return {"raw": json.dumps(dict(benchmark.lexical(prompt.stage, prompt.variables)))}

    means = {}
    for system in ("attentive", "chatty"):
        found = run(sample_config(), system, lexical, prompts=True)
        rows = list(found.rows("sample").values())
        assert len(rows) == 18
        assert all(r["judged"] is not False for r in rows)
        described = [r for r in rows if r["scene"] == "rtd"]
        means[system] = sum(r["overall"] for r in described) / len(described)
        assert {r["evidence"] for r in described} <= {"captions", None}
    assert means["attentive"] > means["chatty"] + 10


@pytest.mark.parametrize(
    ("evidence", "window_kinds", "content_kinds"),
    [
        ("frames", {"frames"}, {"frames"}),
        ("frames+audio", {"frames+audio", "frames"}, {"frames+audio", "frames"}),
        ("video", {"frames+audio", "frames"}, {"video"}),
        ("captions", {"captions"}, {"captions"}),
        ("references", {"references"}, {"references"}),
    ],
)
def test_every_score_tells_its_evidence(
    evidence: str, window_kinds: set[str], content_kinds: set[str]
) -> None:
    config = sample_config({"evidence": evidence}, judge=judge())
    found = run(config, "attentive", always_good, prompts=True)
    rows = [r for r in found.rows("sample").values() if r["scene"] == "rtd"]
    assert {r["evidence"] for r in rows} == window_kinds
    assert {r["content_evidence"] for r in rows} == content_kinds
    assert all(r["judged"] for r in rows)
    for asked in found.rounds:
        for stage in asked:
            media = stage["prompt"].variables.get("media")
            if stage["stage"] not in ("window", "content") or evidence in (
                "captions",
                "references",
            ):
                assert not media
                continue
            kinds = [p["type"] for p in media]
            assert len(kinds) == len(media)
            if stage["evidence"] == "video":
                assert kinds == ["video_url"]
                continue
            audio = stage["evidence"] == "frames+audio"
            assert kinds == ["image_url"] * stage["frame_count"] + ["input_audio"] * audio
            assert stage["frame_count"] <= 32


def test_frames_are_capped_and_it_is_said() -> None:
    config = sample_config({"evidence": "frames", "max_frames": 5, "fps": 4}, judge=judge())
    found = run(config, "attentive", always_good, prompts=True)
    content = [r for asked in found.rounds for r in asked if r["stage"] == "content"]
    assert {r["frame_count"] for r in content} == {5}
    assert all(r["evidence_note"].startswith("5 of ") for r in content)
    pack = PromptPack(benchmark.pack)
    text = pack.render(content[0]["prompt"], True)[1]["content"][0]["text"]
    assert content[0]["evidence_note"] in text


@pytest.mark.parametrize("evidence", ["frames+audio", "video", "captions", "references"])
@pytest.mark.parametrize("profile", ["robust", "published"])
def test_every_prompt_renders_in_both_languages(evidence: str, profile: str) -> None:
    pack = PromptPack(benchmark.pack)
    config = sample_config({"evidence": evidence, "profile": profile}, judge=judge())
    found = run(config, "attentive", always_good, prompts=True)
    seen = set()
    for asked in found.rounds:
        for stage in asked:
            if (stage["stage"], stage["prompt"].language) in seen:
                continue
            seen.add((stage["stage"], stage["prompt"].language))
            for rationale in (True, False):
                system, user = pack.render(stage["prompt"], rationale)
                schema = pack.schema(stage["stage"], rationale)
                for name in schema["properties"]:
                    assert name in system["content"]
                assert ("reasoning" in system["content"]) == rationale
                text = user["content"]
                if isinstance(text, list):
                    text = text[0]["text"]
                # What the system said stands last, so that questions share their prefix.
                assert text.endswith(stage["text"])
    stages = {"temporal"} if profile == "published" else {"relevance", "window"}
    assert {s for s, _ in seen} == stages | {"content", "event", "full"}
    assert {language for _, language in seen} == {"en", "zh"}


def broken(tmp_path: Path, kind: str) -> None:
    """An annotation with one clip of the given kind, and a response about it."""
    whole = tmp_path / "whole.mp4"
    times = even_times(6, 10)
    sound = 0.0 if kind == "no_audio" else 6.0
    if kind == "variable_frame_rate":
        times = [0.0, 0.1, 0.2, 1.5, 1.6, 3.0, 3.1, 5.5, 5.9]
    options = {"movflags": "faststart"} if kind == "truncated" else {}
    write_clip(whole, times, audio_seconds=sound, options=options)
    clip = tmp_path / "clip.mp4"
    if kind == "truncated":
        cut(whole, clip, 0.55)
    elif kind == "unreadable":
        cut(whole, clip, 0.5)
    elif kind == "rotated":
        turned(whole, clip)
    elif kind == "zero_duration":
        clip.write_bytes(b"")
    elif kind != "missing":
        shutil.copy(whole, clip)
    row = {
        "id": "a",
        "split": "RTD_OCR",
        "question_text": "Say what you see.",
        "answer1": "It gets brighter.",
        "video_duration": 6.0,
        "video": "clip.mp4",
    }
    (tmp_path / "annotations.jsonl").write_text(json.dumps(row) + "\n")
    said = [
        {"sentence": "It gets brighter.", "start": 2.0, "end": 3.0},
        {"sentence": "It is bright now.", "start": 6.5, "end": 7.0},
    ]
    (tmp_path / "x" / "RTD_OCR").mkdir(parents=True)
    (tmp_path / "x" / "RTD_OCR" / "a.json").write_text(json.dumps(said))


def run_broken(tmp_path: Path, kind: str, profile: str = "robust") -> Result:
    broken(tmp_path, kind)
    values = {
        "data": {"annotations": "annotations.jsonl"},
        "systems": {"x": "x"},
        "judge": judge(),
        "scoring": {"evidence": "frames+audio", "profile": profile},
    }
    return run(config_of(values, tmp_path), "x", always_good, prompts=True)


@pytest.mark.parametrize("profile", ["robust", "published"])
@pytest.mark.parametrize(
    ("kind", "state"),
    [("missing", "missing"), ("unreadable", "unreadable"), ("zero_duration", "unreadable")],
)
def test_a_clip_that_cannot_be_shown_leaves_scores_empty(
    tmp_path: Path, kind: str, state: str, profile: str
) -> None:
    found = run_broken(tmp_path, kind, profile)
    (sample,) = found.rows("sample").values()
    assert (sample["temporal"], sample["content"], sample["overall"]) == (None, None, None)
    assert sample["judged"] is False
    (unit,) = found.annotations.units.to_pylist()
    assert unit["media_state"] == state
    assert f"media_{state}" in {p.code for p in found.problems}
    notes = {r["evidence_note"] for r in found.part.stages.to_pylist() if r["stage"] != "relevance"}
    assert notes == {f"media_{state}"}
    # What needs no clip is asked all the same.
    asked = {r["stage"] for one in found.rounds for r in one}
    assert asked == (set() if profile == "published" else {"relevance"})


def test_a_cut_clip_is_used_as_far_as_it_reaches(tmp_path: Path) -> None:
    found = run_broken(tmp_path, "truncated")
    (unit,) = found.annotations.units.to_pylist()
    assert (unit["media_state"], unit["video_duration"]) == ("truncated", 6.0)
    sentences = found.rows("sentence")
    assert (sentences["RTD_OCR/a#0"]["score"], sentences["RTD_OCR/a#0"]["judged"]) == (3.0, True)
    late = sentences["RTD_OCR/a#1"]
    assert (late["score"], late["judged"], late["windows"]) == (None, False, 4)
    (sample,) = found.rows("sample").values()
    assert (sample["temporal"], sample["content"]) == (100.0, None)
    assert sample["judged"] is False
    notes = {r["evidence_note"] for r in found.part.stages.to_pylist() if r["evidence"] is None}
    assert notes == {"beyond_readable_media"}


@pytest.mark.parametrize(
    ("kind", "evidence"),
    [
        ("no_audio", "frames"),
        ("variable_frame_rate", "frames+audio"),
        ("rotated", "frames+audio"),
        ("whole", "frames+audio"),
    ],
)
def test_an_odd_clip_is_shown(tmp_path: Path, kind: str, evidence: str) -> None:
    found = run_broken(tmp_path, kind)
    (sample,) = found.rows("sample").values()
    assert sample["judged"] is True
    assert sample["evidence"] == sample["content_evidence"] == evidence
    (unit,) = found.annotations.units.to_pylist()
    assert unit["media_state"] == "ok"
    assert unit["media_notes"] == ("" if kind == "whole" else kind)


def test_a_judge_that_only_reads_is_told_what_it_lacks(tmp_path: Path) -> None:
    broken(tmp_path, "whole")
    values = {
        "data": {"annotations": "annotations.jsonl"},
        "systems": {"x": "x"},
        "judge": judge(),
    }
    found = run(config_of(values, tmp_path), "x", always_good, prompts=True)
    (sample,) = found.rows("sample").values()
    assert (sample["temporal"], sample["content_evidence"]) == (None, "references")
    assert sample["content"] == pytest.approx(2.5 / 3 * 100)
    warned = [p for p in found.problems if p.code == "no_evidence_for_windows"]
    assert [p.level for p in warned] == ["warning"]


def test_a_clip_that_vanishes_during_the_run_stops_its_question_only(tmp_path: Path) -> None:
    found = run_broken(tmp_path, "whole")
    window = next(r for asked in found.rounds for r in asked if r["stage"] == "window")
    (tmp_path / "clip.mp4").unlink()
    pack = PromptPack(benchmark.pack)
    with pytest.raises(EvidenceError, match=r"clip\.mp4"):
        pack.render(window["prompt"], True)


def test_a_clip_of_another_length_is_warned_about(tmp_path: Path) -> None:
    broken(tmp_path, "whole")
    path = tmp_path / "annotations.jsonl"
    path.write_text(path.read_text().replace('"video_duration": 6.0', '"video_duration": 9.0'))
    values = {
        "data": {"annotations": "annotations.jsonl"},
        "systems": {"x": "x"},
        "judge": judge(),
        "scoring": {"evidence": "frames"},
    }
    found = benchmark.read(config_of(values, tmp_path))
    (unit,) = found.units.to_pylist()
    assert unit["video_duration"] == pytest.approx(6.0, abs=0.1)
    assert "other_duration" in {p.code for p in found.problems}


def test_clips_inside_a_parquet_data_set(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    broken(tmp_path, "whole")
    row = json.loads((tmp_path / "annotations.jsonl").read_text())
    (tmp_path / "annotations.jsonl").unlink()
    clip = (tmp_path / "clip.mp4").read_bytes()
    (tmp_path / "clip.mp4").unlink()
    rows = [
        {**row, "id": name, "video": {"bytes": data, "path": "inside.mp4"}}
        for name, data in (("z", b"no clip"), ("a", clip))
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "RTD_OCR.parquet", row_group_size=1)
    values = {
        "data": {"root": "."},
        "systems": {"x": "x"},
        "judge": judge(),
        "scoring": {"evidence": "frames+audio"},
    }
    found = run(config_of(values, tmp_path), "x", always_good, prompts=True)
    states = {u["sample_id"]: u["media_state"] for u in found.annotations.units.to_pylist()}
    assert states == {"RTD_OCR/a": "ok", "RTD_OCR/z": "unreadable"}
    window = next(r for asked in found.rounds for r in asked if r["stage"] == "window")
    assert len(list(window["prompt"].variables["media"])) == window["frame_count"] + 1


def test_a_fingerprint_needs_no_decoding_and_tells_clips_and_windows_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import omnijudge.media
    from omnijudge.judging.question import Asker
    from omnijudge.judging.types import Identity

    def prints(config: Any) -> dict[tuple[Any, ...], bytes]:
        found = run(config, "attentive", always_good, prompts=True)
        asker = Asker(config.judges[0], PromptPack(benchmark.pack), Identity("m"), {})
        keys = ("sample_id", "stage", "unit_id", "item")
        asked = [r for one in found.rounds for r in one if r["stage"] in ("window", "content")]
        return {tuple(r[k] for k in keys): asker.fingerprint(r["prompt"]) for r in asked}

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("nothing has to be decoded")

    config = sample_config({"evidence": "frames+audio"}, judge=judge())
    found = run(config, "attentive", always_good, prompts=True)
    asker = Asker(config.judges[0], PromptPack(benchmark.pack), Identity("m"), {})
    some = [r["prompt"] for r in found.rounds[1][:3]]
    rendered = [asker.question(p) for p in some]
    assert [q.fingerprint for q in rendered] == [asker.fingerprint(p) for p in some]
    assert all(len(q.messages[-1]["content"]) > 1 for q in rendered)

    for name in ("clip_frames", "window_wav", "video_part"):
        monkeypatch.setattr(omnijudge.media, name, never)
    first = prints(config)
    for sample in {k[0] for k in first}:
        own = [v for k, v in first.items() if k[0] == sample]
        assert len(set(own)) == len(own)
    assert prints(config) == first
    other = prints(sample_config({"evidence": "frames+audio", "frame_side": 64}, judge=judge()))
    assert not set(other.values()) & set(first.values())
    # Another clip under the same name.
    shutil.copytree(SAMPLE, tmp_path / "data")
    videos = tmp_path / "data" / "videos"
    shutil.copy(videos / "signs.mp4", videos / "lights.mp4")
    values = config.model_dump(mode="json") | {
        "data": {"annotations": "data/annotations.jsonl"},
        "systems": {"attentive": "data/outputs/attentive"},
    }
    changed = prints(config_of(values, tmp_path))
    touched = {k[0] for k, v in changed.items() if first.get(k) != v}
    assert touched
    assert touched < {k[0] for k in first}
