"""The report as one self-contained HTML page."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path

from omnijudge.report.results import Results
from omnijudge.run_directory import REPORT


def write_report(run: Path, out: Path | None = None) -> Path:
    """Writes the report of a run.

    Args:
        run: run directory.
        out: file to write; by default ``report.html`` in the run directory.

    Returns:
        The file written.

    Raises:
        DataError: there is no readable run.
    """
    results = Results.read(run)
    target = Path(run) / REPORT if out is None else Path(out)
    partial = target.with_name(target.name + ".unfinished")
    partial.write_text(escape(results.title), encoding="utf-8")
    os.replace(partial, target)
    return target
