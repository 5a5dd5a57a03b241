"""Pictures that stand alone: SVG with colours of its own, the same bytes for the same numbers."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (
    "#2b6cb0", "#c05621", "#2f855a", "#6b46c1", "#b83280", "#4a5568", "#b7791f", "#2c7a7b",
    "#9b2c2c", "#1a365d",
)  # fmt: skip
INK, MUTED, RULE = "#1a202c", "#5a6472", "#d5dae1"

_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "omnijudge",
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": RULE,
    "axes.labelcolor": MUTED,
    "axes.titlesize": 10.0,
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "#ffffff",
    "xtick.color": RULE,
    "ytick.color": RULE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "lines.markersize": 3.5,
    "legend.frameon": False,
}


@contextmanager
def drawing() -> Iterator[None]:
    """Matplotlib's settings for the time of one picture, whatever the user's own are."""
    import matplotlib

    defaults = {k: v for k, v in matplotlib.rcParamsDefault.items() if not k.startswith("backend")}
    with matplotlib.rc_context({**defaults, **_SETTINGS}):
        yield


def panels(count: int, columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A figure with panels in rows.

    Args:
        count: number of panels.
        columns: panels in a row.
        width: of a panel, in inches.
        height: of a panel, in inches.
    """
    from matplotlib.figure import Figure

    columns = min(columns, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(columns * width, rows * height), layout="constrained")
    axes: Any = figure.subplots(rows, columns, squeeze=False)
    flat = list(axes.flat)
    for unused in flat[count:]:
        unused.set_axis_off()
    return figure, flat[:count]


def common_legend(figure: Figure, axes: Axes, columns: int = 4) -> None:
    """One legend for all panels, below them."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower left", ncols=columns)


def save_svg(figure: Figure, path: Path, title: str) -> Path:
    """Writes a picture; equal pictures give equal bytes."""
    out = io.StringIO()
    nothing: dict[str, Any] = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(out, format="svg", metadata={**nothing, "Title": title})
    text = re.sub(r"<!--.*?-->\s*", "", out.getvalue(), flags=re.S)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def colour(index: int) -> str:
    """Colour of the n-th line."""
    return COLOURS[index % len(COLOURS)]


def some(names: Sequence[str], most: int) -> list[str]:
    """The first names."""
    return list(names[:most])
