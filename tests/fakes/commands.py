"""The installed command in a folder of its own, with the tests' engines on the path."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

OMNIJUDGE = Path(sys.executable).with_name("omnijudge")
TESTS = Path(__file__).parents[1]
RESULTS = ("units", "stages", "questions", "judgements", "scores", "metrics", "comparisons")


def environment(**more: str) -> dict[str, str]:
    """The environment of a command: the tests' own engines can be imported."""
    return {**os.environ, "PYTHONPATH": str(TESTS), **more}


def start(folder: Path, *words: str, **env: str) -> subprocess.Popen[str]:
    """Starts ``omnijudge ...`` in a folder."""
    return subprocess.Popen(
        [OMNIJUDGE, *words],
        cwd=folder,
        env=environment(**env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def call(folder: Path, *words: str, code: int | None = 0, **env: str) -> tuple[str, str]:
    """Runs ``omnijudge ...`` to its end; returns (output, errors)."""
    process = start(folder, *words, **env)
    output, errors = process.communicate(timeout=300)
    if code is not None:
        assert process.returncode == code, f"{process.returncode}: {errors}\n{output}"
    return output, errors


def manifest(run: Path) -> dict[str, Any]:
    """``run.json``."""
    return dict(json.loads((run / "run.json").read_text(encoding="utf-8")))


def table_bytes(run: Path, names: tuple[str, ...] = RESULTS) -> dict[str, bytes]:
    """Tables of a run as they lie on disk."""
    return {n: (run / f"{n}.parquet").read_bytes() for n in names}


def rows(run: Path, name: str) -> list[dict[str, Any]]:
    """Rows of a table of a run."""
    return list(pq.read_table(run / f"{name}.parquet").to_pylist())
