"""The bundled sample set: laid out like the release, clean, and what it is said to be."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from omnijudge.benchmarks.omniinteract import benchmark
from omnijudge.benchmarks.omniinteract.layout import Sample, read_root
from omnijudge.benchmarks.omniinteract.slots import Dropped, Slot, build_slots
from omnijudge.config import build_config
from omnijudge.values import has_cjk

REPOSITORY = Path(__file__).parents[2]
SAMPLE = REPOSITORY / "omnijudge" / "sample_data" / "omniinteract"
SYSTEMS = ("attentive", "chatty", "sleepy")


@cache
def samples() -> dict[str, Sample]:
    listing = read_root(SAMPLE / "data")
    assert listing.problems == []
    return listing.samples


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def slots_of(sample: Sample) -> list[Slot]:
    return build_slots(load(sample.annotation), sample.scene_type, 60.0)


def transcript(system: str, sample: Sample) -> Any:
    folder = SAMPLE / "outputs" / system / sample.subset / sample.folder
    return load(folder / "precise_truncation.json")


CASES = [(system, sample_id) for system in SYSTEMS for sample_id in samples()]


def test_reads_without_a_problem() -> None:
    paths = {system: str(SAMPLE / "outputs" / system) for system in SYSTEMS}
    config = build_config(
        {
            "benchmark": "omniinteract",
            "data": {"root": str(SAMPLE / "data")},
            "systems": paths,
            "judge": {"engine": "lexical"},
            "output": "unused",
        },
        SAMPLE,
        "sample set",
    )
    annotations = benchmark.read(config)
    assert list(annotations.problems) == []
    for system, settings in config.systems.items():
        ids = list(annotations.samples)
        outputs = benchmark.read_outputs(config, annotations, system, settings, ids)
        assert [p for p in outputs.problems if p.level != "info"] == []
        assert set(outputs.outputs["state"].to_pylist()) == {"ok"}


def test_covers_scenes_languages_and_kinds() -> None:
    found = samples()
    assert len(found) >= 14
    assert {s.scene_type for s in found.values()} == {"multi_turn", "nested", "1QnA"}
    assert {s.subset for s in found.values()} == {"1q1a", "1q1a_math", "1qna"}
    chinese = 0
    kinds: set[tuple[str, str | None]] = set()
    shapes = set()
    interrupted = Counter[str]()
    for sample in found.values():
        slots = slots_of(sample)
        assert 2 <= len(slots) <= 7
        languages = {has_cjk(s.question) for s in slots} | {has_cjk(s.answer) for s in slots}
        assert len(languages) == 1
        chinese += languages == {True}
        kinds |= {(s.question_type, s.role) for s in slots}
        interrupted[sample.scene_type] += sum(s.interrupted for s in slots)
        if sample.scene_type == "1QnA":
            shapes |= {"conversations", "answers"} & set(load(sample.annotation))
    assert 0.4 <= chinese / len(found) <= 0.6
    assert {("realtime", None), ("proactive", None)} <= kinds
    assert {("proactive", "outer"), ("realtime", "inner")} <= kinds
    assert shapes == {"conversations", "answers"}
    assert all(interrupted[scene] > 0 for scene in ("multi_turn", "nested", "1QnA"))


def test_annotations_drop_nothing_and_are_in_order() -> None:
    for sample in samples().values():
        dropped: list[Dropped] = []
        slots = build_slots(load(sample.annotation), sample.scene_type, 60.0, dropped)
        assert dropped == []
        for slot in slots:
            assert 0 <= slot.t_start <= slot.t_a < slot.t_end
            assert slot.question.strip()
            assert slot.answer.strip()


@pytest.mark.parametrize(("system", "sample_id"), CASES)
def test_transcript_is_clean(system: str, sample_id: str) -> None:
    value = transcript(system, samples()[sample_id])
    chunks = value["chunks"]
    assert value["text"] == "".join(c["text"] for c in chunks)
    clock = 0.0
    for number, chunk in enumerate(chunks):
        start, end = chunk["timestamp"]
        assert clock <= start < end
        assert 1.0 <= end - start <= 4.0 + 1e-9
        clock = end
        if number > 0 and not has_cjk(chunk["text"]):
            assert chunk["text"].startswith(" ")
        words = chunk.get("aligned_words", [])
        if words:
            blank = "" if has_cjk(chunk["text"]) else " "
            assert blank.join(w["text"] for w in words) == chunk["text"].strip()
            edges = [t for w in words for t in (w["start"], w["end"])]
            assert edges == sorted(edges)
            assert start <= edges[0]
            assert edges[-1] <= end


def test_word_times_differ_by_system() -> None:
    share = {}
    for system in SYSTEMS:
        chunks = [c for s in samples().values() for c in transcript(system, s)["chunks"]]
        share[system] = sum("aligned_words" in c for c in chunks) / len(chunks)
    assert share["attentive"] == 1.0
    assert 0.2 < share["chatty"] < 0.8
    assert share["sleepy"] == 0.0


def test_systems_have_their_temper() -> None:
    spilled, unmatched, answered, late = (Counter[str]() for _ in range(4))
    slots_in_all = 0
    for sample in samples().values():
        slots = slots_of(sample)
        slots_in_all += len(slots)
        for system in SYSTEMS:
            told: dict[int, list[Any]] = {}
            for chunk in transcript(system, sample)["chunks"]:
                start, end = chunk["timestamp"]
                homes = [s for s in slots if s.t_start <= start < s.t_end]
                if not homes:
                    unmatched[system] += 1
                    continue
                home = max(homes, key=lambda s: (s.t_start, s.slot_id))
                told.setdefault(home.slot_id, []).append((start, end))
            for slot in slots:
                core = [c for c in told.get(slot.slot_id, []) if c[0] >= slot.t_a]
                answered[system] += bool(core)
                late[system] += bool(core) and core[0][0] >= slot.t_a + 4.0
                ends = [e for _, e in told.get(slot.slot_id, [])]
                spilled[system] += slot.interrupted and max(ends, default=0.0) > slot.t_end
    assert unmatched["chatty"] >= 10
    assert unmatched["attentive"] == unmatched["sleepy"] == 0
    assert spilled["chatty"] >= 5
    assert spilled["sleepy"] == 0
    assert spilled["attentive"] <= 1
    assert answered["attentive"] >= 0.9 * slots_in_all
    assert answered["sleepy"] <= 0.7 * slots_in_all
    assert late["sleepy"] >= 0.9 * answered["sleepy"]
    assert late["attentive"] <= 0.1 * answered["attentive"]


def test_sources_give_the_bundled_files(tmp_path: Path) -> None:
    path = REPOSITORY / "scripts" / "make_sample_data.py"
    spec = importlib.util.spec_from_file_location("make_sample_data", path)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.make(tmp_path)
    made = {p.relative_to(tmp_path): p.read_bytes() for p in tmp_path.rglob("*.json")}
    kept = {p.relative_to(SAMPLE): p.read_bytes() for p in SAMPLE.rglob("*.json")}
    assert made == kept
