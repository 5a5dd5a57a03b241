"""The media sample: built twice, the same bytes, whatever lay in memory before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("av", reason="needs the extra `media`")

ROOT = Path(__file__).parents[2]


def build(folder: Path, fill: str) -> dict[str, bytes]:
    script = ROOT / "scripts" / "make_media_sample.py"
    # Makes the C library hand out memory filled with other bytes each time.
    environment = {**os.environ, "MALLOC_PERTURB_": fill}
    subprocess.run([sys.executable, script, folder], check=True, env=environment)
    return {
        p.relative_to(folder).as_posix(): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


def test_a_rebuilt_sample_has_the_same_bytes(tmp_path: Path) -> None:
    first, second = build(tmp_path / "a", "85"), build(tmp_path / "b", "170")
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []
    assert sum(map(len, first.values())) < 300_000


def test_all_but_the_clips_is_what_the_package_ships(tmp_path: Path) -> None:
    """Encoders differ between versions; texts do not."""
    shipped = ROOT / "omnijudge" / "sample_data" / "omni_duplexeval"
    for name, data in build(tmp_path / "a", "0").items():
        if not name.endswith(".mp4"):
            assert (shipped / name).read_bytes() == data, name
