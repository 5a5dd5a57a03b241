"""Writing tables as JSON, CSV, Markdown, LaTeX and for the terminal."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from typing import Literal

from omnijudge.report.grid import Grid, Head
from omnijudge.report.vocabulary import EMPTY

Format = Literal["table", "json", "csv", "markdown", "latex"]


# Machines


def as_json(grids: Sequence[Grid], about: Sequence[str]) -> str:
    """One table as a list of objects; several as an object with ``tables`` and ``notes``."""
    if len(grids) == 1:
        return _dump(_objects(grids[0]))
    tables = [{"name": g.name, "title": g.title, "rows": _objects(g)} for g in grids]
    return _dump({"tables": tables, "notes": list(about)})


def as_csv(grid: Grid) -> str:
    """Comma-separated values with a header line; null is empty."""
    grid = grid.for_machines()
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([h.key for h in grid.heads])
    for row in grid.rows:
        writer.writerow(["" if e.value is None else _plain(e.value) for e in row])
    return out.getvalue().rstrip("\n")


def _objects(grid: Grid) -> list[dict[str, object]]:
    grid = grid.for_machines()
    return [{h.key: e.value for h, e in zip(grid.heads, row, strict=True)} for row in grid.rows]


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)


def _plain(value: object) -> object:
    return ("true" if value else "false") if isinstance(value, bool) else value


# Markdown


def as_markdown(grids: Sequence[Grid], about: Sequence[str]) -> str:
    """Pipe tables with their titles, and the notes below."""
    parts = []
    for grid in grids:
        grid = grid.for_people()
        lines = [f"**{markdown(grid.title)}**", ""] if grid.title else []
        lines.append("| " + " | ".join(markdown(" ".join(h.label)) for h in grid.heads) + " |")
        lines.append("|" + "|".join("---:" if h.number else ":---" for h in grid.heads) + "|")
        for row in grid.rows:
            lines.append("| " + " | ".join(markdown(e.full) for e in row) + " |")
        if grid.notes:
            lines += ["", *(markdown(n) for n in grid.notes)]
        parts.append("\n".join(lines))
    if about:
        parts.append(markdown(" ".join(about)))
    return "\n\n".join(parts)


def markdown(text: str) -> str:
    """Text that Markdown shows as it is, also inside a table."""
    text = re.sub(r"([\\`*{}\[\]<>|~$])", r"\\\1", one_line(text))
    # An underscore or a hash inside a word is none of Markdown's business.
    text = re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)
    return re.sub(r"^([#+-])(?=\s)", r"\\\1", text).replace("&", "&amp;")


# LaTeX

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%",
    "#": r"\#", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}", "'": r"\textquotesingle{}",
    # Behind the end of a row, these two would be read as its options.
    "[": "{[}", "*": "{*}",
    "–": "--", "—": "---", "\u00a0": "~", "…": r"\ldots{}", "×": r"$\times$", "·": r"$\cdot$",
}  # fmt: skip


def latex(text: str) -> str:
    """Text that LaTeX sets as it is; characters beyond Latin need XeLaTeX or LuaLaTeX."""
    found = "".join(_LATEX.get(c, c) for c in one_line(text))
    # Two hyphens in a name are two hyphens, no dash.
    return re.sub(r"-(?=-)", "-{}", found) if "--" in text else found


def as_latex(grids: Sequence[Grid], about: Sequence[str]) -> str:
    """``table`` environments with booktabs rules and the notes below each table."""
    head = (
        "% Needs \\usepackage{booktabs}, \\usepackage{textcomp} and \\usepackage[T1]{fontenc}; "
        "names beyond Latin need XeLaTeX or LuaLaTeX."
    )
    return "\n\n".join([head, *(_latex_table(g.for_people(), about) for g in grids)])


def _latex_table(grid: Grid, about: Sequence[str]) -> str:
    spec = "".join("r" if h.number else "l" for h in grid.heads)
    lines = ["\\begin{table}[t]", "\\centering"]
    if grid.title:
        lines.append(f"\\caption{{{latex(grid.title)}}}")
    if len(grid.heads) > 5:
        lines.append("\\small\\setlength{\\tabcolsep}{4pt}")
    lines += [f"\\begin{{tabular}}{{{spec}}}", "\\toprule"]
    lines += [f"{line} \\\\" for line in _latex_head(grid.heads)]
    lines.append("\\midrule")
    for row in grid.rows:
        cells = []
        for h, e in zip(grid.heads, row, strict=True):
            text = _latex_number(e.text) if h.number else latex(e.text)
            mark = f"\\textsuperscript{{{e.mark}}}" if e.mark else ""
            # Below the value, so that a table of six columns fits a page. Inside a group,
            # brackets are no options of anything.
            span = _latex_number(e.interval).replace("{[}", "[")
            value = text + mark
            cells.append(
                f"\\shortstack[r]{{{value}\\\\{{\\scriptsize {span}}}}}" if span else value
            )
        lines.append(" & ".join(cells) + " \\\\")
    lines += ["\\bottomrule", "\\end{tabular}"]
    notes = " ".join(latex(n) for n in (*grid.notes, *about))
    if notes:
        lines += ["", f"\\smallskip\\parbox{{\\linewidth}}{{\\footnotesize {notes}}}"]
    return "\n".join([*lines, "\\end{table}"])


def _latex_head(heads: Sequence[Head]) -> Iterator[str]:
    """One or two header lines; equal neighbours of the upper one share a cell."""
    if not any(len(h.label) > 1 for h in heads):
        yield " & ".join(latex(h.label[0]) for h in heads)
        return
    upper = [h.label[0] if len(h.label) > 1 else "" for h in heads]
    cells, rules, i = [], [], 0
    while i < len(upper):
        j = i
        while upper[i] and j + 1 < len(upper) and upper[j + 1] == upper[i]:
            j += 1
        if upper[i]:
            cells.append(f"\\multicolumn{{{j - i + 1}}}{{c}}{{{latex(upper[i])}}}")
            rules.append(f"\\cmidrule(lr){{{i + 1}-{j + 1}}}")
        else:
            cells.append("")
        i = j + 1
    # The rules belong between the two lines, behind the end of the first.
    yield (
        " & ".join(cells)
        + " \\\\\n"
        + " ".join(rules)
        + "\n"
        + " & ".join(latex(h.label[-1]) for h in heads)
    )


def _latex_number(text: str) -> str:
    return re.sub(r"-(?=\d)", "$-$", latex(text)) if text != EMPTY else "--"


def one_line(text: str) -> str:
    """Text without line breaks and control characters."""
    return "".join(c if c.isprintable() or c == "\u00a0" else " " for c in text)
