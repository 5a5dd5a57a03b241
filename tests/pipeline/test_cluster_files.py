"""What lies in ray_jobs for clusters: it loads, it is valid, and what it calls exists."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakes.commands import call, environment, manifest, table_bytes
from fakes.corpus import write_corpus
from requirements import need

from omnijudge import cli
from omnijudge.config import load_config

ROOT = Path(__file__).parents[2]
JOBS = ROOT / "ray_jobs"
SBATCH = JOBS / "shards.sbatch"


def load(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((JOBS / name).read_text(encoding="utf-8")))


def test_every_file_is_known_here() -> None:
    files = {p.name for p in JOBS.iterdir() if p.is_file()}
    assert files == {"cluster-a100.yaml", "rayjob-a100.yaml", "shards.sbatch"}


@pytest.mark.parametrize("name", ["cluster-a100.yaml", "rayjob-a100.yaml", "shards.sbatch"])
def test_files_that_are_named_exist(name: str) -> None:
    text = (JOBS / name).read_text(encoding="utf-8")
    for path in re.findall(r"\b(?:configs|ray_jobs)/[\w.-]+", text):
        assert (ROOT / path).exists(), path
    for module in re.findall(r"python -m ([\w.]+)", text):
        done = subprocess.run(
            [sys.executable, "-m", module, "--help"], capture_output=True, check=False
        )
        assert done.returncode == 0, module


@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")
def test_the_cluster_is_what_ray_expects() -> None:
    need("ray")
    from ray.autoscaler._private.util import prepare_config, validate_config

    config = load("cluster-a100.yaml")
    prepared = prepare_config(config)
    validate_config(prepared)
    workers = prepared["available_node_types"]["a100"]
    assert workers["resources"]["GPU"] == 8
    assert prepared["available_node_types"][prepared["head_node_type"]]["resources"]["CPU"] > 0
    starts = prepared["head_start_ray_commands"] + prepared["worker_start_ray_commands"]
    assert all(line.startswith(("ray ", "ulimit ")) for line in starts)


def test_the_ray_job_is_a_run(tmp_path: Path) -> None:
    job = load("rayjob-a100.yaml")
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    spec = job["spec"]
    words = shlex.split(spec["entrypoint"])
    assert words[0] == "omnijudge"
    args = cli.parser().parse_args(words[1:])
    assert (args.command, args.backend) == ("run", "ray")
    cluster = spec["rayClusterSpec"]
    head = cluster["headGroupSpec"]["template"]["spec"]
    (workers,) = cluster["workerGroupSpecs"]
    worker = workers["template"]["spec"]
    assert workers["minReplicas"] <= workers["replicas"] <= workers["maxReplicas"]
    images = {c["image"] for pod in (head, worker) for c in pod["containers"]}
    assert len(images) == 1, "head and workers run the same image"
    for pod in (head, worker):
        volumes = {v["name"] for v in pod["volumes"]}
        for container in pod["containers"]:
            assert {m["name"] for m in container["volumeMounts"]} <= volumes
            mounted = {m["mountPath"] for m in container["volumeMounts"]}
            assert "/shared" in mounted
            keys = [e["name"] for e in container["env"]]
            assert not any("KEY" in k or "TOKEN" in k for k in keys), "keys come from a secret"
    assert worker["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "8"
    for folder in ("configs", "outputs/one"):
        (tmp_path / folder).mkdir(parents=True)
    copy = shutil.copy(ROOT / "configs" / "overnight.yaml", tmp_path / "configs")
    config = load_config(copy, args.overrides)
    assert config.execution.backend == "ray"
    assert config.store == "/shared/store"


# The batch script.


def test_the_batch_script_is_a_shell_script() -> None:
    done = subprocess.run(["bash", "-n", SBATCH], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert os.access(SBATCH, os.X_OK)
    done = subprocess.run([SBATCH, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "--array=1-N" in done.stdout
    directives = re.findall(r"^#SBATCH --([\w-]+)(?:=(\S+))?$", SBATCH.read_text(), re.M)
    named = dict(directives)
    assert named["array"] == "1-8"
    assert "requeue" in named
    assert named["signal"].startswith("B:TERM@")
    assert int(named["signal"].partition("@")[2]) >= 60


@pytest.mark.parametrize(
    ("slurm", "code", "words"),
    [
        ({}, 1, "--array=1-N"),
        ({"SLURM_ARRAY_TASK_ID": "0", "SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_MAX": "3",
          "SLURM_ARRAY_TASK_COUNT": "4"}, 2, "count from 1"),
        ({"SLURM_ARRAY_TASK_ID": "5", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_MAX": "5",
          "SLURM_ARRAY_TASK_COUNT": "3"}, 2, "without gaps"),
    ],
)  # fmt: skip
def test_an_array_that_would_leave_samples_out(
    slurm: dict[str, str], code: int, words: str
) -> None:
    done = subprocess.run(
        [SBATCH, "run.yaml"], env=environment(**slurm), capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert words in done.stderr


CONFIG = """
benchmark: omniinteract
data: {{manifest: {manifest}}}
judge:
  engine: "fakes.odd_lexical:OddLexical"
  engine_options: {{log: {log}, delay: {delay}}}
execution: {{batch_size: 8, in_flight: 1}}
statistics: {{replicates: 100}}
store: store
output: {output}
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus") / "c", 12, tempers="punctual,talkative")


def start_task(folder: Path, number: int, count: int) -> subprocess.Popen[str]:
    """One task of an array job, as Slurm would start it."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    requeue = tools / "scontrol"
    requeue.write_text(f'#!/bin/sh\necho "$@" >> {folder}/requeued\n', encoding="utf-8")
    requeue.chmod(0o755)
    slurm = {
        "SLURM_ARRAY_TASK_ID": str(number),
        "SLURM_ARRAY_TASK_MIN": "1",
        "SLURM_ARRAY_TASK_MAX": str(count),
        "SLURM_ARRAY_TASK_COUNT": str(count),
        "SLURM_JOB_ID": str(700 + number),
        "PATH": f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    return subprocess.Popen(
        [SBATCH, "run.yaml", "run.lock"],
        cwd=folder,
        env=environment(**slurm),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_an_array_of_tasks_is_one_run(corpus: Path, tmp_path: Path) -> None:
    """Two tasks, one of them preempted and put back into the queue; then the plain run."""
    log = tmp_path / "log.txt"

    def configure(delay: float, output: str = "run") -> None:
        text = CONFIG.format(manifest=corpus, log=log, delay=delay, output=output)
        (tmp_path / "run.yaml").write_text(text, encoding="utf-8")

    configure(0.0, "whole")
    call(tmp_path, "run", "run.yaml", "--no-store", "--lock", "run.lock")
    log.unlink()
    configure(0.3)
    task = start_task(tmp_path, 1, 2)
    until = time.monotonic() + 60
    while not log.exists() and time.monotonic() < until:
        time.sleep(0.02)
    task.send_signal(signal.SIGTERM)
    _, errors = task.communicate(timeout=60)
    assert task.returncode == 130, errors
    assert "interrupted; what was judged is kept" in errors
    assert (tmp_path / "requeued").read_text().split() == ["requeue", "701"]
    configure(0.0)
    for number in (1, 2):
        task = start_task(tmp_path, number, 2)
        _, errors = task.communicate(timeout=60)
        assert task.returncode == 0, errors
    before = log.read_text()
    call(tmp_path, "run", "run.yaml", "--lock", "run.lock")
    assert log.read_text() == before
    assert manifest(tmp_path / "run")["counts"]["asked"] == 0
    assert table_bytes(tmp_path / "run") == table_bytes(tmp_path / "whole")


# Submission.


@pytest.mark.ray
def test_submit_names_what_is_missing(tmp_path: Path) -> None:
    need("ray")
    module = [sys.executable, "-m", "omnijudge_ray.submit"]
    dead = subprocess.run(
        [*module, "run.yaml", "--address", "http://127.0.0.1:9"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert dead.returncode == 1
    assert "no Ray dashboard answers at http://127.0.0.1:9" in dead.stderr
    assert "Traceback" not in dead.stderr
    nothing = subprocess.run(module, capture_output=True, text=True, check=False)
    assert nothing.returncode == 2


def test_submit_quotes_and_passes_words_on() -> None:
    from omnijudge_ray.submit import command

    words = shlex.split(command("/data/my run.yaml", ["-o", "judge.name=a b", "--limit", "3"]))
    args = cli.parser().parse_args(words[1:])
    assert (args.config, args.backend, args.limit) == ("/data/my run.yaml", "ray", 3)
    assert args.overrides == ["judge.name=a b"]


def test_submit_takes_no_keys() -> None:
    from omnijudge_ray.submit import _setting

    assert _setting("HF_HOME=/shared/hub=1") == ("HF_HOME", "/shared/hub=1")
    with pytest.raises(SystemExit, match="looks like a key"):
        _setting("OPENAI_API_KEY=sk-1")
    with pytest.raises(SystemExit, match="NAME=VALUE"):
        _setting("HF_HOME")
