"""A benchmark and an engine from another distribution work with every command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from requirements import need

ROOT = Path(__file__).parents[2]
TOY = ROOT / "tests" / "toy_plugin"
COMMAND = Path(sys.executable).with_name("omnijudge")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy distribution, installed by pip into a folder of its own, offline."""
    folder = tmp_path_factory.mktemp("toy")
    source = shutil.copytree(TOY, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    words = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--no-cache-dir",
             "--disable-pip-version-check", "--target", str(folder / "site")]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *words, str(source)],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "site"


class Shell:
    """Runs commands in a folder with the toy installed."""

    def __init__(self, folder: Path, site: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ, "PYTHONPATH": str(site), "OMNIJUDGE_STORE": str(folder / "store"),
        }  # fmt: skip

    def __call__(self, *words: str, rc: int = 0) -> str:
        done = subprocess.run(
            [COMMAND, *words], cwd=self.folder, env=self.environment, capture_output=True,
            text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == rc, (words, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def shell(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    folder = tmp_path_factory.mktemp("work")
    shutil.copytree(installed / "omnijudge_toy" / "sample", folder, dirs_exist_ok=True)
    run = Shell(folder, installed)
    run("run", "config.yaml", "-o", "output=run", "-o", "controls=[silent, shuffled]")
    return run


def table(shell: Shell, name: str, run: str = "run") -> list[dict[str, object]]:
    rows: list[dict[str, object]] = pq.read_table(
        shell.folder / run / f"{name}.parquet"
    ).to_pylist()
    return rows


def test_run(shell: Shell) -> None:
    """Hits by hand: prompt 5 of 6 (four cups are wrong), tardy 2 of 6 (in time and right)."""
    found = {(r["system"], r["metric"]): r["value"] for r in table(shell, "metrics")}
    assert found["prompt", "hits"] == pytest.approx(5 / 6)
    assert found["tardy", "hits"] == pytest.approx(2 / 6)
    assert found["prompt", "delay"] == pytest.approx((0.5 + 1 + 1 + 0.5 + 1) / 5)
    assert found["control:silent", "hits"] == 0
    manifest = json.loads((shell.folder / "run" / "run.json").read_text(encoding="utf-8"))
    assert manifest["judges"]["main"]["identity"] == "toy-1"
    assert manifest["benchmark"]["title"] == "Toy benchmark"
    models = set(pq.read_table(shell.folder / "run" / "judgements.parquet")["model"].to_pylist())
    assert models == {"toy-1"}
    said = shell("run", "config.yaml", "-o", "output=run", "-o", "controls=[silent, shuffled]")
    assert "requests to the judge 0" in said
    assert "Toy benchmark" in said


def test_the_same_by_the_smoke_judge(shell: Shell) -> None:
    shell("run", "config.yaml", "-o", "output=lexical", "-o", "judge.engine=lexical")
    assert "smoke judge" in shell("metrics", "lexical")
    assert "hits" in shell("agree", "run", "lexical")


def test_the_same_by_replay(shell: Shell) -> None:
    judgements = pq.read_table(shell.folder / "run" / "judgements.parquet")
    rows = judgements.filter(pc.equal(judgements["system"], "prompt")).to_pylist()
    keys = ("system", "sample_id", "unit_id", "stage", "raw")
    with open(shell.folder / "answers.jsonl", "w", encoding="utf-8") as stream:
        for r in rows:
            stream.write(json.dumps({k: r[k] for k in keys}) + "\n")
    shell("run", "config.yaml", "-o", "output=replay", "-o", "judge.engine=replay",
          "-o", "judge.answers=answers.jsonl", "-o", "limits.max_invalid=1",
          "-o", "limits.max_unscored=10")  # fmt: skip
    again = {(r["system"], r["metric"]): r["value"] for r in table(shell, "metrics", "replay")}
    assert again["prompt", "hits"] == pytest.approx(5 / 6)


def test_validate_and_dry_run(shell: Shell) -> None:
    said = shell("validate", "config.yaml", rc=1)
    assert "says nothing about 'bell'" in said
    assert "9 questions" in shell("run", "config.yaml", "-o", "output=x", "--dry-run")
    assert "2 samples" in shell("run", "config.yaml", "-o", "output=few", "--limit", "2")


@pytest.mark.parametrize(
    ("layout", "form"),
    [("long", "csv"), ("wide", "json"), ("wide", "markdown"), ("paper", "latex"),
     ("paper", "table")],
)  # fmt: skip
def test_metrics(shell: Shell, layout: str, form: str) -> None:
    said = shell("metrics", "run", "--layout", layout, "--format", form)
    assert "tardy" in said
    assert "0.833" in said


def test_metrics_by_column_and_by_tag(shell: Shell) -> None:
    assert "night" in shell("metrics", "run", "--by", "light")
    assert "large" in shell("metrics", "run", "--by", "size")


def test_score(shell: Shell) -> None:
    shell("score", "run", "-o", "scoring.patience=1.0", "--out", "impatient")
    found = {(r["system"], r["metric"]): r["value"] for r in table(shell, "metrics", "impatient")}
    assert found["prompt", "hits"] == pytest.approx(5 / 6)
    assert found["tardy", "hits"] == 0
    said = shell("score", "run", "-o", "scoring.patients=1.0", rc=2)
    assert "did you mean 'patience'" in said


def test_show_and_status(shell: Shell) -> None:
    said = shell("show", "run", "prompt/cup/1", "--prompt")
    assert "I see four cups." in said
    assert "question verified" in said
    assert "Reference: three cups" in said
    said = shell("status", "run", "config.yaml", "-o", "scoring.patience=3")
    assert "2 controls" in said
    assert "scores and metrics are made anew" in said


def test_report_and_compare(shell: Shell) -> None:
    shell("report", "run", "--out", "page.html")
    page = (shell.folder / "page.html").read_text(encoding="utf-8")
    assert "Toy benchmark" in page
    assert "control:shuffled" in page
    assert "hits" in shell("compare", "run", "--baseline", "prompt")


def test_prompts(shell: Shell) -> None:
    said = shell("prompts", "check", "default", "--benchmark", "toy")
    assert "all templates render" in said
    assert "Reference:" in shell("prompts", "preview", "default", "--benchmark", "toy")
    shell("prompts", "export", "pack", "--benchmark", "toy")
    shell("prompts", "check", "pack", "--benchmark", "toy")
    shell("run", "config.yaml", "-o", "output=own", "-o", "judge.prompts=pack")


def test_store_and_batch(shell: Shell) -> None:
    assert "toy-1" in shell("store", "stats")
    shell("batch", "export", "config.yaml", "--model", "any", "--out", "batch.jsonl",
          "-o", "judge.name=other")  # fmt: skip
    asked = (shell.folder / "batch.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(asked) == 9
    assert sum("Reference: three cups" in line for line in asked) == 2


def test_schemas_name_its_columns(shell: Shell) -> None:
    said = shell("schema", "tables")
    assert "scores.parquet (toy)" in said
    assert "Seconds from the due moment" in said


def test_what_it_does_not_have_is_refused_in_a_sentence(shell: Shell) -> None:
    assert "toy has no exam" in shell("exam", "config.yaml", rc=2)
    assert "Toy benchmark declares no sweeps" in shell("sensitivity", "run", rc=2)
    said = shell("run", "config.yaml", "-o", "output=x", "-o", "controls=[oracle]", rc=2)
    assert "toy has no oracle" in said
    said = shell("run", "config.yaml", "-o", "output=x", "-o", "scoring.profile=paper", rc=2)
    assert "scoring: profile: input should be 'robust'" in said


@pytest.mark.slow
@pytest.mark.ray
def test_its_engine_runs_in_ray_actors(shell: Shell) -> None:
    need("ray")
    shell("run", "config.yaml", "-o", "output=ray", "-o", "execution.actors=1", "--no-store",
          "--backend", "ray", "-o", "controls=[silent, shuffled]")  # fmt: skip
    assert table(shell, "metrics", "ray") == table(shell, "metrics")


def test_without_the_package_both_are_unknown(shell: Shell) -> None:
    bare = Shell(shell.folder, shell.folder / "nowhere")
    assert "'toy' is unknown" in bare("run", "config.yaml", "-o", "output=x", rc=2)
    assert "'toy' is unknown" in bare("metrics", "run", "--by", "light", rc=2)
    # What is on disk can be read all the same.
    assert "0.833" in bare("metrics", "run")
    bare("report", "run", "--out", "bare.html")
    assert (shell.folder / "bare.html").read_text(encoding="utf-8").count("Toy benchmark") > 1


def test_an_entry_point_that_leads_nowhere_is_named(installed: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(installed, tmp_path / "site")
    (broken / "omnijudge_toy" / "benchmark.py").unlink()
    shutil.copytree(broken / "omnijudge_toy" / "sample", tmp_path / "work")
    said = Shell(tmp_path / "work", broken)("run", "config.yaml", "-o", "output=x", rc=2)
    assert "omnijudge_toy.benchmark" in said
    assert "install its package again" in said
