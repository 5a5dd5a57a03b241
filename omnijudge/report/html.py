"""The report as one HTML page that needs nothing beside itself."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from omnijudge.report.page import build_page
from omnijudge.report.results import Results
from omnijudge.run_directory import REPORT


def write_report(run: Path, out: Path | None = None) -> Path:
    """Writes the report of a run. Equal runs give equal bytes.

    Args:
        run: run directory.
        out: file to write, or a folder for it; by default ``report.html`` in the run directory.

    Returns:
        The file written.

    Raises:
        DataError: there is no readable run.
    """
    text = report_html(Results.read(Path(run)))
    target = Path(run) / REPORT if out is None else Path(out)
    if target.is_dir():
        target = target / REPORT
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".unfinished")
    partial.write_text(text, encoding="utf-8", newline="\n")
    os.replace(partial, target)
    return target


def report_html(results: Results) -> str:
    """The page as text."""
    from jinja2 import Environment, StrictUndefined

    assets = files("omnijudge.report") / "assets"
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    template = environment.from_string((assets / "report.html.j2").read_text(encoding="utf-8"))
    return template.render(
        page=build_page(results),
        css=(assets / "report.css").read_text(encoding="utf-8"),
        script=(assets / "tables.js").read_text(encoding="utf-8"),
    )
