"""Tables in a terminal; what is too wide goes on below."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from omnijudge.report.grid import Entry, Grid, Head

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

PIPED_WIDTH = 110


def open_console(width: int | None = None) -> tuple[Console, io.StringIO]:
    """A console that collects text: styled on a terminal that wants it, plain elsewhere.

    Args:
        width: columns; None asks the terminal, or takes 110 off one.
    """
    from rich.console import Console

    out = io.StringIO()
    terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    if width is None:
        width = shutil.get_terminal_size((PIPED_WIDTH, 24)).columns if terminal else PIPED_WIDTH
    plain = not terminal or bool(os.environ.get("NO_COLOR"))
    console = Console(
        file=out, width=max(width, 40), force_terminal=not plain, no_color=plain,
        color_system=None if plain else "standard", emoji=False, markup=False, highlight=False,
        legacy_windows=False,
    )  # fmt: skip
    return console, out


def as_table(grids: Sequence[Grid], about: Sequence[str], width: int | None = None) -> str:
    """Tables with their titles, and the notes below."""
    console, out = open_console(width)
    for grid in grids:
        if grid.title:
            console.print(grid.title, style="bold", soft_wrap=True)
        for table in stacked(grid.for_people(), console.width):
            console.print(table)
            console.print()
        for note in grid.notes:
            console.print(note)
        if grid.notes:
            console.print()
    for line in about:
        console.print(line)
    return out.getvalue().rstrip()


def stacked(grid: Grid, width: int) -> list[Table]:
    """The table, cut into as many below each other as the width asks for.

    The leading text columns name the row and stand in each part.
    """
    names = 0
    while names < len(grid.heads) and not grid.heads[names].number:
        names += 1
    fixed = sum(column_width(grid, i) for i in range(names))
    parts: list[list[int]] = [[]]
    used = fixed
    for i in range(names, len(grid.heads)):
        need = column_width(grid, i)
        if parts[-1] and used + need > width:
            parts.append([])
            used = fixed
        parts[-1].append(i)
        used += need
    return [rich_table(grid, [*range(names), *part]) for part in parts]


def column_width(grid: Grid, column: int) -> int:
    """Width of a column with the space before the next."""
    from rich.cells import cell_len

    texts = (*grid.heads[column].label, *(row[column].full for row in grid.rows))
    return max(map(cell_len, texts)) + 3


def rich_table(grid: Grid, columns: Sequence[int], bold: int | None = None) -> Table:
    """The columns as a table; ``bold`` is set in bold type."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for i in columns:
        head: Head = grid.heads[i]
        table.add_column(
            Text("\n".join(head.label)),
            justify="right" if head.number else "left",
            no_wrap=head.number,
            overflow="fold",
            style="bold" if i == bold else "",
        )
    for row in grid.rows:
        table.add_row(*(_cell(row[i]) for i in columns))
    return table


def _cell(entry: Entry) -> Text:
    from rich.text import Text

    text = Text(entry.text + entry.mark)
    if entry.interval:
        text.append(f" {entry.interval}", style="not bold dim")
    return text
