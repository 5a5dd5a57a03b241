"""A run as a submitted job: a Ray cluster with its dashboard on this machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.commands import call, environment, manifest, table_bytes
from fakes.corpus import write_corpus
from requirements import need

RAY = Path(sys.executable).with_name("ray")
SUBMIT = [sys.executable, "-m", "omnijudge_ray.submit"]

CONFIG = """
benchmark: omniinteract
data: {{manifest: {manifest}}}
judge:
  engine: "fakes.odd_lexical:OddLexical"
  engine_options: {{log: {log}, delay: {delay}}}
execution: {{batch_size: 8, in_flight: 1, actors: 1, cpus_per_actor: 0.5}}
statistics: {{replicates: 100}}
store: {folder}/store
output: {folder}/{output}
"""


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@pytest.fixture(scope="module")
def cluster() -> Iterator[dict[str, str]]:
    """Environment in which the job commands find the cluster."""
    need("ray")
    port, dashboard = free_port(), free_port()
    folder = tempfile.mkdtemp(prefix="ray-")  # short: sockets lie below it
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = environment(
        RAY_AUTH_MODE="disabled",
        RAY_API_SERVER_ADDRESS=f"http://127.0.0.1:{dashboard}",
        RAY_USAGE_STATS_ENABLED="0",
        PATH=path,
    )
    env.pop("RAY_ADDRESS", None)
    head = subprocess.Popen(
        [
            RAY, "start", "--head", "--block", f"--port={port}", "--num-cpus=2", "--num-gpus=0",
            "--include-dashboard=true", f"--dashboard-port={dashboard}", f"--temp-dir={folder}",
            f"--dashboard-agent-listen-port={free_port()}",
            f"--ray-client-server-port={free_port()}",
        ],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        until = time.monotonic() + 120
        while time.monotonic() < until and head.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", dashboard), timeout=1).close()
                break
            except OSError:
                time.sleep(0.5)
        time.sleep(3)  # the dashboard listens before its job agent does
        yield env
    finally:
        head.terminate()
        head.communicate(timeout=60)
        shutil.rmtree(folder, ignore_errors=True)


def submit(folder: Path, env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SUBMIT, *words], cwd=folder, env=env, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_submitted_run(cluster: dict[str, str], tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", 6, tempers="punctual")

    def configure(delay: float, output: str) -> Path:
        values = {"manifest": corpus, "log": tmp_path / "log.txt", "folder": tmp_path}
        path = tmp_path / f"{output}.yaml"
        path.write_text(CONFIG.format(**values, delay=delay, output=output), encoding="utf-8")
        return path

    done = submit(tmp_path, cluster, str(configure(0.0, "night")), "--", "--limit", "5")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "job raysubmit_" in done.stdout
    assert "OmniInteract: 5 samples" in done.stdout
    assert manifest(tmp_path / "night")["config"]["execution"]["backend"] == "ray"
    call(tmp_path, "run", "night.yaml", "--limit", "5", "-o", "output=local")
    assert manifest(tmp_path / "local")["counts"]["asked"] == 0
    assert table_bytes(tmp_path / "local") == table_bytes(tmp_path / "night")

    # The run's own exit code comes back.
    done = submit(tmp_path, cluster, str(tmp_path / "night.yaml"), "--", "-o", "judge.nmae=x")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "did you mean 'name'" in done.stdout

    # Stopped from outside, it keeps what was judged.
    shutil.rmtree(tmp_path / "store")
    (tmp_path / "log.txt").unlink()
    path = configure(0.5, "stopped")
    done = submit(tmp_path, cluster, str(path), "--no-wait")
    job = done.stdout.split()[-1]
    until = time.monotonic() + 120
    while not (tmp_path / "log.txt").exists() and time.monotonic() < until:
        time.sleep(0.2)
    assert submit(tmp_path, cluster, "--stop", job).returncode == 0
    done = submit(tmp_path, cluster, "--follow", job)
    assert done.returncode != 0
    before = len((tmp_path / "log.txt").read_text().splitlines())
    call(tmp_path, "run", "stopped.yaml", "--backend", "local")
    after = (tmp_path / "log.txt").read_text().splitlines()
    assert len(after) - len(set(after)) <= 16
    assert len(after) > before
