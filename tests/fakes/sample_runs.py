"""Runs of the bundled sample data, and replays of their answers."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "omnijudge" / "sample_data"
OMNIJUDGE = Path(sys.executable).with_name("omnijudge")

DATA = {
    "omniinteract": f"{{root: {SAMPLES}/omniinteract/data}}",
    "omni_interactscope": f"{{annotations: {SAMPLES}/omni_interactscope/annotations.jsonl}}",
    "omni_duplexeval": f"{{annotations: {SAMPLES}/omni_duplexeval/annotations.jsonl}}",
}
OUTPUTS = {
    "omniinteract": {
        s: f"{SAMPLES}/omniinteract/outputs/{s}" for s in ("attentive", "chatty", "sleepy")
    },
    "omni_interactscope": {
        s: f"{SAMPLES}/omni_interactscope/responses/{s}.jsonl" for s in ("steady", "eager")
    },
    "omni_duplexeval": {
        s: f"{SAMPLES}/omni_duplexeval/outputs/{s}" for s in ("attentive", "chatty")
    },
}
Row = dict[str, Any]


def omnijudge(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The installed command."""
    return subprocess.run(
        [OMNIJUDGE, *map(str, words)], cwd=cwd, capture_output=True, text=True, check=False
    )


def write_config(
    folder: Path,
    name: str,
    benchmark: str = "omniinteract",
    systems: Mapping[str, str] | None = None,
    judge: str = "{engine: lexical}",
    scoring: str = "{profile: robust}",
    statistics: str = "{replicates: 500}",
    extra: str = "",
    data: str | None = None,
) -> Path:
    """A configuration whose run goes to ``folder/name``."""
    lines = [
        f"benchmark: {benchmark}",
        f"data: {data or DATA[benchmark]}",
        f"systems: {json.dumps(dict(systems or OUTPUTS[benchmark]))}",
        f"judge: {judge}",
        f"scoring: {scoring}",
        f"statistics: {statistics}",
        "store: store",
        f"output: {name}",
        extra,
    ]
    path = folder / f"{name}.yaml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def make_run(folder: Path, name: str, code: int = 0, **settings: Any) -> Path:
    """Runs the sample data in this process and returns the run's folder."""
    import omnijudge as library

    run = library.run(write_config(folder, name, **settings))
    assert run.outcome is not None
    assert run.outcome.exit_code == code, run.outcome.messages
    return folder / name


def replay_rows(run: Path) -> list[Row]:
    """The first answers of a run as rows of a replay file."""
    names = ["system", "sample_id", "unit_id", "item", "stage", "raw"]
    rows = pq.read_table(run / "judgements.parquet", columns=[*names, "attempt"]).to_pylist()
    return [{n: r[n] for n in names} for r in rows if r["attempt"] == 1]


def write_rows(path: Path, rows: Iterable[Row]) -> Path:
    """A replay file."""
    text = "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows)
    path.write_text(text, encoding="utf-8")
    return path


def changed(
    rows: Iterable[Row], change: Callable[[Row, dict[str, Any], random.Random], None], seed: int = 0
) -> list[Row]:
    """The rows with their answers changed: ``change(row, answer, dice)`` edits the answer."""
    dice = random.Random(seed)
    found = []
    for row in rows:
        answer = json.loads(row["raw"])
        change(row, answer, dice)
        found.append({**row, "raw": json.dumps(answer, ensure_ascii=False)})
    return found


def table_rows(run: Path, name: str) -> list[Row]:
    """Rows of a table of a run."""
    return pq.read_table(run / f"{name}.parquet").to_pylist()
