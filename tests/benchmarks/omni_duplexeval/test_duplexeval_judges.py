"""Judges that see and hear, through the installed command: real vLLM, and a server that checks."""

from __future__ import annotations

import base64
import io
import json
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("av", reason="needs the extra `media`")

import av
from benchmarks.omni_duplexeval.duplex_run import ROOT
from fakes.commands import call, manifest, rows
from fakes.http_judge import HttpJudge
from PIL import Image
from requirements import need

from omnijudge.benchmarks.omni_duplexeval.windows import frame_times
from omnijudge.media import clip_frames, window_wav

SAMPLE = ROOT / "omnijudge" / "sample_data" / "omni_duplexeval"
CONFIG = ROOT / "configs" / "duplexeval-cpu.yaml"
RATE = 16_000
GOOD = json.dumps({"is_relevant": 1, "temporal_score": 2, "content_score": 2.5, "success_score": 1})


def check_scores(run: Path, evidence: dict[str, set[str]]) -> None:
    """Every score is there, with the kind of its evidence and the frames behind it."""
    assert all(j["status"] == "ok" for j in rows(run, "judgements"))
    scores = rows(run, "scores")
    assert not [r for r in scores if r["judged"] is False]
    described = [r for r in scores if (r["unit_kind"], r["scene"]) == ("sample", "rtd")]
    assert len(described) == 24
    spoke = [r for r in described if r["content_evidence"] is not None]
    assert {r["content_evidence"] for r in spoke} == evidence["content"]
    for r in described:
        assert all(0 <= r[n] <= 100 for n in ("temporal", "content", "overall"))
    for r in spoke:
        assert r["content_frame_count"] == int(2 * r["video_duration"])
    shown = [r for r in scores if r["unit_kind"] == "sentence" and r["relevant"] == 1]
    assert {r["evidence"] for r in shown if r["windows"]} == evidence["windows"]
    assert all(r["frame_count"] > 0 for r in shown if r["windows"])
    reminded = [r for r in scores if (r["unit_kind"], r["scene"]) == ("sample", "pr")]
    assert {r["success"] for r in reminded} <= {0.0, 100.0}
    values = {(m["system"], m["metric"], m["group"]): m["value"] for m in rows(run, "metrics")}
    for system in ("attentive", "chatty"):
        for metric in (("overall", "all"), ("temporal", "rtd"), ("success_rate", "pr_macro")):
            assert values[(system, *metric)] is not None


@pytest.mark.engine
def test_a_real_model_sees_the_clips(tmp_path: Path) -> None:
    """The configuration that users start from: decoding, vLLM on the CPU, all stages."""
    need("engine")
    from omnijudge.testing.tiny_media_models import make_tiny_vision_model

    model = make_tiny_vision_model(tmp_path / "model")
    common = ["-o", f"judge.model={model}", "-o", f"store={tmp_path / 'store'}"]
    common += ["-o", "statistics.replicates=20"]
    run, published = tmp_path / "run", tmp_path / "published"
    output, _ = call(tmp_path, "run", str(CONFIG), *common, "-o", f"output={run}")
    assert "Evidence: frames, because the judge takes images" in output
    check_scores(run, {"windows": {"frames"}, "content": {"frames"}})
    told = rows(run, "judgements")
    stages = {j["stage"] for j in told}
    assert stages == {"relevance", "window", "content", "event", "full"}
    # Every picture takes its own tokens of the prompt.
    frames = {
        (s["system"], s["sample_id"], s["unit_id"], s["item"]): s["frame_count"]
        for s in rows(run, "stages")
        if s["stage"] == "window"
    }
    windows = [j for j in told if j["stage"] == "window"]
    counts = [frames[j["system"], j["sample_id"], j["unit_id"], j["item"]] for j in windows]
    slope, _ = np.polyfit(counts, [j["prompt_tokens"] for j in windows], 1)
    assert slope > 4
    # The one stage of the published scripts that the others do not have; content is known.
    profile = ["-o", "scoring.profile=published", "-o", "data.on_bad_sample=skip"]
    profile += ["-o", f"output={published}"]
    call(tmp_path, "run", str(CONFIG), *common, *profile, code=3)  # two outputs are missing
    judged = rows(published, "judgements")
    assert {j["status"] for j in judged} == {"ok"}
    assert "temporal" in {j["stage"] for j in judged}


def heard_parts(body: dict[str, Any]) -> tuple[bytes, ...]:
    """The bytes of all pictures and sounds of a request."""
    content = body["messages"][-1]["content"]
    found = []
    for part in content if isinstance(content, list) else []:
        if part["type"] == "image_url":
            head, _, data = part["image_url"]["url"].partition(",")
            assert head == "data:image/jpeg;base64"
            found.append(base64.b64decode(data, validate=True))
        elif part["type"] == "input_audio":
            assert part["input_audio"]["format"] == "wav"
            found.append(base64.b64decode(part["input_audio"]["data"], validate=True))
        else:
            assert part["type"] == "text"
    return tuple(found)


def decoded(clip: str) -> tuple[list[float], list[np.ndarray]]:
    """All pictures of a clip with their times, by nothing but PyAV."""
    with av.open(clip) as container:
        frames = list(container.decode(video=0))
    return [float(f.time) for f in frames], [f.to_ndarray(format="rgb24") for f in frames]


def test_a_server_gets_the_pictures_and_the_sound_of_each_window(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    with HttpJudge(lambda body: GOOD) as judge:
        values = {
            "benchmark": "omni_duplexeval",
            "data": {"annotations": str(SAMPLE / "annotations.jsonl")},
            "systems": {s: str(SAMPLE / "outputs" / s) for s in ("attentive", "chatty")},
            "judge": {
                "engine": "openai", "model": "tester-2026-01-01", "base_url": judge.url,
                "rationale": "none",
            },
            "scoring": {"evidence": "frames+audio", "fps": 2},
            "statistics": {"replicates": 20},
            "store": "store",
            "output": "run",
        }  # fmt: skip
        config.write_text(json.dumps(values), "utf-8")
        call(tmp_path, "run", "config.yaml", OPENAI_API_KEY="local")
        bodies = list(judge.bodies)
    run = tmp_path / "run"
    both = {"frames+audio", "frames"}  # some clips have no sound
    check_scores(run, {"windows": both, "content": both})

    units = {u["sample_id"]: u for u in rows(run, "units") if u["unit_kind"] == "sample"}
    asked = {
        tuple(j[k] for k in ("system", "sample_id", "unit_id", "item", "stage"))
        for j in rows(run, "judgements")
    }
    expected: dict[tuple[bytes, ...], tuple[str, list[float], float, float]] = {}
    for s in rows(run, "stages"):
        key = tuple(s[k] for k in ("system", "sample_id", "unit_id", "item", "stage"))
        if key not in asked or s["stage"] not in ("window", "content"):
            continue
        clip = str(SAMPLE / units[s["sample_id"]]["media"])
        times = frame_times(s["window_start"], s["window_end"])
        parts = clip_frames(clip, times)
        assert len(parts) == s["frame_count"]
        if s["evidence"] == "frames+audio":
            parts.append(window_wav(clip, s["window_start"], s["window_end"]))
        expected[tuple(parts)] = (clip, times, s["window_start"], s["window_end"])
    received = {heard_parts(body) for body in bodies} - {()}
    assert received == set(expected)
    assert len(received) > 40
    assert len(bodies) == manifest(run)["counts"]["asked"]

    clips = {clip: decoded(clip) for clip in {clip for clip, *_ in expected.values()}}
    for parts, (clip, times, start, end) in expected.items():
        shown_at, pictures = clips[clip]
        for jpeg, time in zip(parts, times, strict=False):
            picture = np.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB"), float)
            shown = pictures[sum(at <= time + 1e-6 for at in shown_at) - 1]
            assert picture.shape == shown.shape == (108, 192, 3)
            assert np.abs(picture - shown).mean() < 3
        if len(parts) > len(times):
            with wave.open(io.BytesIO(parts[-1])) as sound:
                form = (sound.getnchannels(), sound.getsampwidth(), sound.getframerate())
                assert form == (1, 2, RATE)
                assert sound.getnframes() == round(end * RATE) - round(start * RATE)
