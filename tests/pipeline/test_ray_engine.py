"""Real Ray, real vLLM: two actors judge the sample set, one is killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from requirements import need

ROOT = Path(__file__).parents[2]
OMNIJUDGE = Path(sys.executable).with_name("omnijudge")
SAMPLE = ROOT / "omnijudge" / "sample_data" / "omniinteract"
COMPARED = ("units", "stages", "questions", "judgements", "scores", "metrics")

CONFIG = """
benchmark: omniinteract
data: {{root: {sample}/data}}
systems: {{"{sample}/outputs/*": "{sample}/outputs/*"}}
judge:
  engine: vllm
  model: {model}
  rationale: none
  sampling: {{temperature: 0.0, max_tokens: 200}}
  engine_options: {{dtype: float32, max_model_len: 2048, enforce_eager: true}}
execution: {{batch_size: 16, in_flight: 1, cpus_per_actor: 0.5}}
statistics: {{replicates: 500}}
limits: {{max_invalid: 1.0, max_unscored: 100000}}
store: store
output: run
"""


def judge_actors() -> list[int]:
    """Processes of judge actors on this machine."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            name = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
        except (OSError, NotADirectoryError):
            continue
        if name.startswith(b"ray::JudgeActor"):
            found.append(int(folder.name))
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    from omnijudge.testing.tiny_model import make_tiny_model

    make_tiny_model(tmp_path / "model")
    config = CONFIG.format(sample=SAMPLE, model=tmp_path / "model")
    (tmp_path / "run.yaml").write_text(config, encoding="utf-8")
    return tmp_path


def stored(store: Path) -> int:
    """Answers in the store's journals and parts so far, by size: enough to see it move."""
    return sum(p.stat().st_size for p in store.rglob("*") if p.is_file())


@pytest.mark.engine
@pytest.mark.ray
@pytest.mark.timeout(900)
def test_two_actors_one_killed(folder: Path) -> None:
    need("engine")
    need("ray")
    words = ["run", "run.yaml", "--backend", "ray", "-o", "execution.actors=2"]
    with (folder / "errors.txt").open("w") as errors:
        process = subprocess.Popen(
            [OMNIJUDGE, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=errors
        )
    until = time.monotonic() + 400
    while stored(folder / "store") < 8_000 and process.poll() is None and time.monotonic() < until:
        time.sleep(0.2)
    victims = judge_actors()
    assert victims, (folder / "errors.txt").read_text()
    os.kill(victims[0], signal.SIGKILL)
    assert process.wait(timeout=600) == 0, (folder / "errors.txt").read_text()
    manifest = json.loads((folder / "run" / "run.json").read_text(encoding="utf-8"))
    assert sum(c.get("actors_lost", 0) for c in manifest["engine_counters"]) == 1

    questions = pq.read_table(folder / "run" / "questions.parquet")
    judgements = pq.read_table(folder / "run" / "judgements.parquet").to_pylist()
    assert {q["fingerprint"] for q in questions.to_pylist()} == {
        j["fingerprint"] for j in judgements
    }
    assert all(j["status"] == "ok" for j in judgements), {j["reason"] for j in judgements}
    check_answers(judgements)

    # The same stored judgements on the local executor: nothing is asked, the bytes are the same.
    again = subprocess.run(
        [OMNIJUDGE, "run", "run.yaml", "-o", "output=local"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    local = json.loads((folder / "local" / "run.json").read_text(encoding="utf-8"))
    assert local["counts"]["asked"] == 0
    for name in COMPARED:
        first = (folder / "run" / f"{name}.parquet").read_bytes()
        assert (folder / "local" / f"{name}.parquet").read_bytes() == first, name


def check_answers(judgements: list[dict[str, object]]) -> None:
    """Every answer as its schema wants it, read by the plain JSON reader."""
    keys = {
        "early": {"flag", "score"},
        "core": {"score", "trigger_phrase", "spoiler"},
        "partial": {"score", "hallucination"},
    }
    for j in judgements:
        value = json.loads(str(j["raw"]))
        assert value.keys() == keys[str(j["stage"])]
        assert 0 <= value["score"] <= 1
