"""The LaTeX that ``omnijudge metrics`` prints goes through a real TeX."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from fakes.runs import manifest, metrics_table, row

from omnijudge.report.layouts import render

ENGINE = shutil.which("pdflatex")
NAMES = (
    "plain", r"a|b & 100% $x_1^2$ #{q} ~<b>`c`*\\ \n", "[first in a row]", "* second", "--dashes--",
    "it's \"quoted\"", "-0.5",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(
    ENGINE is None, reason="no pdflatex; apt-get install texlive-latex-recommended brings one"
)
@pytest.mark.parametrize("layout", ["long", "wide", "paper"])
def test_tables_compile(layout: str, tmp_path: Path) -> None:
    assert ENGINE is not None
    keys = [("ia_qtf1", "all"), ("ia_qtf1", "nested_inner"), ("nor", "interrupted"), ("fp", "all")]
    rows = [row(n, m, g, -0.25, warning="few clusters") for n in NAMES for m, g in keys]
    rows.append(row("empty", "ia_qtf1", "all", None))
    table = render(metrics_table(rows), manifest(engine="lexical"), layout, "latex")  # type: ignore[arg-type]
    document = (
        "\\documentclass{article}\\usepackage[T1]{fontenc}\\usepackage{textcomp,booktabs}"
        f"\\begin{{document}}\n{table}\n\\end{{document}}\n"
    )
    (tmp_path / "table.tex").write_text(document, encoding="utf-8")
    done = subprocess.run(
        [ENGINE, "-interaction=nonstopmode", "-halt-on-error", "table.tex"],
        cwd=tmp_path,
        env={**os.environ, "TEXMFVAR": str(tmp_path / "var")},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert (tmp_path / "table.pdf").stat().st_size > 1000
