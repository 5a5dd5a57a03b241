"""Finding samples and transcripts through ``batch_summary.json`` (OmniInteract rule 22)."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from golden.omniinteract_run import GOLDEN, SYSTEMS
from naive import omniinteract as naive

from omnijudge.benchmarks.omniinteract.discovery import (
    Disk,
    annotation_path,
    discover,
    output_folder,
    read_scene_maps,
    scene_type,
)

OMNIJUDGE = Path(sys.executable).with_name("omnijudge")


@dataclass
class ListedFiles:
    """Files that exist only in a list."""

    files: set[str] = field(default_factory=set)

    def is_file(self, path: str) -> bool:
        return path in self.files

    def is_folder(self, path: str) -> bool:
        return any(f.startswith(path + "/") for f in self.files)

    def folders_named(self, root: str, name: str) -> list[str]:
        folders = {
            f[: f.index(f"/{name}/") + len(name) + 1] for f in self.files if f"/{name}/" in f
        }
        return sorted(f for f in folders if f.startswith(root + "/"))


def results(system: str) -> list[dict[str, Any]]:
    path = GOLDEN / "outputs" / system / "batch_summary.json"
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["results"]
    return found


def as_published(rows: list[Any]) -> list[dict[str, Any]]:
    """Rows in the form of the golden file."""
    return [
        {
            "status": "ready" if r.ready else "missing",
            "sample_id": r.sample_id if r.ready else None,
            "video": r.video,
            "scene": r.scene,
            "gt_json": r.annotation,
            "model_json": r.transcript,
        }
        for r in rows
        if not r.dropped
    ]


@pytest.mark.parametrize("system", SYSTEMS)
def test_golden_set(system: str) -> None:
    rows = discover(results(system), read_scene_maps(GOLDEN), Disk(GOLDEN), f"outputs/{system}")
    path = GOLDEN / "expected" / system / "discovery.json"
    assert as_published(rows) == json.loads(path.read_text(encoding="utf-8"))


ODD_ROWS = [
    {"video": "/somewhere/data/1q1a_math/videos/0002.mp4", "output_dir": "gone/videos__0002"},
    {"video": "data\\1q1a\\videos\\0003.mp4", "output_dir": "x/videos__0003"},
    {"video": "x/1QNA/y.mp4", "output_dir": ""},
    {"video": "d/1qna/videos_bench/egodesk/Task_1-37.mp4", "output_dir": "Task_1-37"},
    {"video": "v/nested2/a.mp4", "output_dir": "a", "status": None},
    {"video": "v/x__nested__a.mp4", "output_dir": "videos__0001/"},
    {"video": None, "output_dir": None, "status": "ok"},
    "not a row",
]


@pytest.mark.parametrize("forced", [None, "output.json", "precise_truncation.json"])
def test_against_the_slow_oracle(forced: str | None) -> None:
    rows = [*results("alpha"), *results("beta"), *ODD_ROWS]
    found = discover(rows, read_scene_maps(GOLDEN), Disk(GOLDEN), "outputs/alpha", forced)
    assert as_published(found) == naive.discover(
        {"results": rows}, str(GOLDEN), "outputs/alpha", forced
    )


@pytest.mark.parametrize(
    ("video", "scene"),
    [
        ("data/1q1a/videos/a.mp4", "nested"),  # the map says so
        ("data/1q1a/videos/b.mp4", "multi_turn"),
        ("data/1q1a_math/videos/a.mp4", "multi_turn"),  # the other subset's map is not asked
        ("old/1q1a/x/1q1a/videos/a.mp4", "nested"),  # last occurrence of the subset
        ("data/nested2/a.mp4", "nested"),
        ("data/unnested/a.mp4", "multi_turn"),
        ("DATA/1QnA/a.mp4", "1QnA"),
        ("data/my_videos_bench.mp4", "1QnA"),
    ],
)
def test_scene_of_a_video(video: str, scene: str) -> None:
    assert scene_type(video, {"1q1a": {"videos/a.mp4": "nested"}}) == scene


@pytest.mark.parametrize(
    ("video", "subset", "annotation"),
    [
        ("data/1q1a/videos/0001.mp4", "1q1a", "data/1q1a/annotations/0001.json"),
        ("data/1q1a/more/videos/7.mp4", "1q1a", "data/1q1a/annotations/more/videos/7.json"),
        ("1q1a/x/1q1a_math/videos/7.mp4", "1q1a_math", "data/1q1a_math/annotations/7.json"),
        ("a/1qna/videos_bench/k/T_1.mp4", "1qna", "data/1qna/annotations/k/T_1.json"),
        ("a/1qna/T_1.mp4", "1qna", ""),
        ("elsewhere/7.mp4", "", ""),
    ],
)
def test_annotation_of_a_video(video: str, subset: str, annotation: str) -> None:
    assert annotation_path(video) == (subset, annotation)


def test_output_folder_is_looked_for_in_order() -> None:
    files = ListedFiles({"out/1q1a/v/t.json", "out/1qna/v/t.json", "out/deep/er/w/t.json"})
    assert output_folder("out/1qna/v", files, "out") == "out/1qna/v"  # as given
    assert output_folder("lost/1qna/v", files, "out") == "out/1qna/v"  # its own subset first
    assert output_folder("lost/v", files, "out") == "out/1q1a/v"
    assert output_folder("lost/w", files, "out") == "out/deep/er/w"  # the only one of that name
    files.files |= {"out/other/w/t.json"}
    assert output_folder("lost/w", files, "out") is None
    assert output_folder("lost\\1qna\\v", files, "out") == "out/1qna/v"
    files.files |= {"out/v/t.json"}
    assert output_folder("lost/1qna/v/", files, "out") == "out/v"
    assert output_folder("", files, "out") is None


def run(folder: Path, data: str, profile: str = "published", systems: str = "{}") -> Path:
    answers = [
        json.loads(line)
        for line in (GOLDEN / "judge_answers.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    rows = [
        {
            "system": r["model"],
            "sample_id": r["sample_id"],
            "unit_id": str(r["slot_id"]),
            "stage": r["stage"],
            "raw": r["raw"],
        }
        for r in answers
    ]
    text = "".join(json.dumps(r) + "\n" for r in rows)
    (folder / "answers.jsonl").write_text(text, encoding="utf-8")
    (folder / "config.yaml").write_text(
        f"benchmark: omniinteract\ndata: {{{data}, on_bad_sample: skip}}\n"
        f"systems: {systems}\njudge: {{engine: replay, answers: answers.jsonl}}\n"
        f"scoring: {{profile: {profile}}}\nstatistics: {{replicates: 20}}\noutput: {profile}\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [OMNIJUDGE, "run", folder / "config.yaml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done.stderr  # unusable annotations
    return folder / profile


def expected_totals(system: str, leave_out: set[str]) -> list[float]:
    """TP, FP (unmatched ones too) and FN of the golden samples."""
    totals = [0.0, 0.0, 0.0]
    for file in (GOLDEN / "expected" / system).glob("1*.json"):
        if file.stem not in leave_out:
            summary = json.loads(file.read_text(encoding="utf-8"))["summary"]
            for i, name in enumerate(("TP", "FP", "FN")):
                totals[i] += summary[name]
    return totals


def totals_of(run_folder: Path) -> list[float]:
    rows = pq.read_table(run_folder / "metrics.parquet").to_pylist()
    values = {r["metric"]: r["value"] for r in rows if r["group"] == "all"}
    return [values["tp"], values["fp"], values["fn"]]


def problem_codes(run_folder: Path) -> dict[str, list[str]]:
    manifest = json.loads((run_folder / "run.json").read_text(encoding="utf-8"))
    found: dict[str, list[str]] = {}
    for p in manifest["problems"]:
        found.setdefault(p["code"], []).append(f"{p['place']}: {p['message']}")
    return found


def test_batch_summary_as_manifest(tmp_path: Path) -> None:
    """As published: the failed row is left out, and both it and the unknown video are named."""
    folder = run(tmp_path, f"manifest: {GOLDEN}/outputs/alpha/batch_summary.json")
    found = totals_of(folder)
    assert found == pytest.approx(expected_totals("alpha", {"1q1a__videos__0005"}), abs=1e-9)
    codes = problem_codes(folder)
    assert ["0005" in m and "'error'" in m for m in codes["failed_row"]] == [True]
    assert ["9999" in m for m in codes["missing_annotation"]] == [True]


def test_a_failed_row_counts_as_silence(tmp_path: Path) -> None:
    """Profile robust: the same file, and the failed row is a missing output."""
    folder = run(tmp_path, f"manifest: {GOLDEN}/outputs/beta/batch_summary.json", "robust")
    manifest = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert manifest["counts"]["missing_outputs"] == {"beta": 2}
    outputs = pq.read_table(folder / "outputs.parquet").to_pylist()
    reasons = {o["sample_id"]: o["detail"] for o in outputs if o["state"] == "missing"}
    assert "'error'" in reasons["1q1a__videos__0005"]
    assert "no transcript" in reasons["1q1a__videos__0031"]
    scores = pq.read_table(folder / "scores.parquet").to_pylist()
    silent = [s for s in scores if s["sample_id"] == "1q1a__videos__0005"]
    assert silent
    assert all(s["missing_output"] and s["fp"] in (0, None) for s in silent)


def test_system_folder_with_names_of_its_own(tmp_path: Path) -> None:
    """Where the plain layout finds nothing, the system's batch summary says where to look."""
    outputs = tmp_path / "outputs"
    rows = []
    for number, row in enumerate(results("alpha")):
        source = GOLDEN / "outputs" / "alpha" / row["output_dir"].partition("alpha/")[2]
        name = f"clip_{number}"
        if source.is_dir():
            (outputs / name).mkdir(parents=True)
            text = (source / "precise_truncation.json").read_bytes()
            (outputs / name / "output.json").write_bytes(text)
        rows.append({**row, "output_dir": f"/another/machine/{name}"})
    (outputs / "batch_summary.json").write_text(json.dumps({"results": rows}), encoding="utf-8")
    folder = run(tmp_path, f"root: {GOLDEN}/data", systems="{alpha: outputs}")
    assert totals_of(folder) == pytest.approx(
        expected_totals("alpha", {"1q1a__videos__0005"}), abs=1e-9
    )
    missing = problem_codes(folder)["missing_output"]
    assert len(missing) == 1
    assert "status 'error'" in missing[0]


@pytest.mark.parametrize(
    ("systems", "model", "named"),
    [("{}", None, "outputs"), ("{mine: .}", None, "mine"), ("{}", "m1", "m1")],
)
def test_name_of_the_system(tmp_path: Path, systems: str, model: str | None, named: str) -> None:
    from omnijudge.benchmarks.omniinteract import benchmark
    from omnijudge.config import build_config

    annotations = tmp_path / "data" / "1q1a" / "annotations"
    annotations.mkdir(parents=True)
    (annotations / "a.json").write_text("[]", encoding="utf-8")
    (tmp_path / "outputs").mkdir()
    document: dict[str, Any] = {"results": [{"video": "1q1a/videos/a.mp4", "output_dir": "x"}]}
    if model:
        document["model"] = model
    summary = tmp_path / "outputs" / "batch_summary.json"
    summary.write_text(json.dumps(document), encoding="utf-8")
    values = {
        "benchmark": "omniinteract",
        "data": {"manifest": "outputs/batch_summary.json"},
        "systems": {"mine": "."} if "mine" in systems else {},
        "output": "o",
    }
    found = benchmark.read(build_config(values, tmp_path, "c"))
    assert list(found.systems) == [named]
    assert found.samples["1q1a__x"].outputs == {named: None}
