"""Drawing with matplotlib, without its global state, and its SVG made fit for a page.

Colours stand for variables of the page's style sheet, so light and dark both work. Names and
values beside the rows are set here and not by matplotlib, which takes long over text.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 820.0
"""Width of a plot of rows in its own units, which are about pixels."""

INK, MUTED, RULE, ACCENT, PAPER = "#010203", "#010204", "#010205", "#010206", "#010207"
PARTS = tuple(f"#01020{k}" for k in "89abcd")
_VARIABLES = {
    INK: "var(--ink)", MUTED: "var(--muted)", RULE: "var(--rule)", ACCENT: "var(--accent)",
    PAPER: "var(--paper)",
    **{c: f"var(--part-{i})" for i, c in enumerate(PARTS)},
}  # fmt: skip

TALL = 40
"""From so many rows on, a plot has an axis above, too, and scrolls in its frame."""

_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "omnijudge",
    "font.family": "DejaVu Sans",
    "font.size": 12.0,
    "text.color": INK,
    "axes.edgecolor": RULE,
    "axes.labelcolor": MUTED,
    "axes.labelsize": 11.5,
    "axes.facecolor": "none",
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "none",
    "xtick.color": RULE,
    "ytick.color": RULE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "xtick.labelsize": 11.0,
    "ytick.labelsize": 11.0,
    "xtick.major.size": 3.0,
    "ytick.major.size": 3.0,
    "grid.color": RULE,
    "grid.linewidth": 0.8,
}


@contextmanager
def settings() -> Iterator[None]:
    """Matplotlib's settings for the time of one drawing."""
    import matplotlib

    # The user's own defaults would show in the report.
    with matplotlib.rc_context({**_defaults(), **_SETTINGS}):
        yield


def _defaults() -> dict[str, Any]:
    import matplotlib

    return {k: v for k, v in matplotlib.rcParamsDefault.items() if not k.startswith("backend")}


def new_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty figure of this size in the plot's own units, and axes that fill it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width / 72, height / 72), dpi=72)
    return figure, figure.add_axes((0.0, 0.0, 1.0, 1.0))


@dataclass
class Rows:
    """A plot with one row per name, from top to bottom.

    Attributes:
        names: of the rows.
        right: room for the values beside them.
        top: room above, for a legend.
        figure: the figure.
        axes: its axes: the row number downwards.
        row: height of a row.
    """

    names: Sequence[str]
    right: float
    top: float = 8.0
    figure: Figure = field(init=False)
    axes: Axes = field(init=False)
    row: float = field(init=False)
    _texts: list[str] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        from rich.cells import cell_len

        n = len(self.names)
        self.row = 24.0 if n <= 30 else 18.0 if n <= 80 else 15.0
        tall = n > TALL
        self._font = min(12.5, self.row * 0.72)
        self._left = 16 + 0.6 * self._font * max(map(cell_len, self.names))
        self.top += 22 if tall else 0
        bottom = 40.0
        height = self.top + n * self.row + bottom
        inner = WIDTH - self._left - self.right
        self.figure, self.axes = new_figure(WIDTH, height)
        self.axes.set_position(
            (self._left / WIDTH, bottom / height, inner / WIDTH, n * self.row / height)
        )
        self.axes.set_ylim(n - 0.5, -0.5)
        self.axes.set_yticks([])
        self.axes.tick_params(axis="x", top=tall, labeltop=tall)
        self.axes.spines["left"].set_visible(False)
        self.axes.hlines(
            [y + 0.5 for y in range(n - 1)], 0, 1, transform=self.axes.get_yaxis_transform(),
            colors=RULE, linewidth=0.5, zorder=0,
        )  # fmt: skip
        for y, name in enumerate(self.names):
            self._text(self._left - 8, y, name, "end")

    @property
    def mark(self) -> float:
        """Size of a mark that suits the height of the rows."""
        return min(9.0, self.row * 0.4)

    def value(self, y: int, text: str) -> None:
        """Writes a value beside a row."""
        self._text(WIDTH - self.right + 10, y, text, "start")

    def _text(self, x: float, y: int, text: str, anchor: str) -> None:
        down = self.top + (y + 0.5) * self.row
        self._texts.append(svg_text(x, down, text, anchor, self._font))

    def svg(
        self, name: str, title: str, description: str, tips: Mapping[str, Sequence[str]]
    ) -> str:
        """The finished drawing."""
        return to_svg(self.figure, name, title, description, tips, "\n".join(self._texts))


def svg_text(x: float, y: float, text: str, anchor: str, size: float) -> str:
    """A text whose middle is at height ``y``, counted downwards."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" dominant-baseline="central" '
        f'font-size="{size:.1f}" fill="var(--ink)">{escape(text, quote=False)}</text>'
    )


def legend(figure: Figure, entries: Sequence[tuple[str, str]], dots: bool = False) -> None:
    """A legend in one line at the top left: (label, colour)."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Line2D([], [], linestyle="", marker="o", markersize=8, color=colour,
               markeredgecolor=ACCENT, label=label)
        if dots
        else Patch(facecolor=colour, label=label, linewidth=0)
        for label, colour in entries
    ]  # fmt: skip
    figure.legend(
        handles=handles, loc="upper left", ncols=len(handles), frameon=False, fontsize=12,
        bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2, handlelength=1.0, handleheight=1.0,
        columnspacing=1.6, handletextpad=0.5,
    )  # fmt: skip


def to_svg(
    figure: Figure,
    name: str,
    title: str,
    description: str,
    tips: Mapping[str, Sequence[str]],
    extra: str = "",
) -> str:
    """The figure as an SVG element that can stand in a page beside others.

    Args:
        figure: what was drawn.
        name: goes before every id.
        title: what it shows, for those who cannot see it.
        description: more of the same.
        tips: per artist (by its gid) what its marks say under the pointer, in drawing order.
        extra: SVG elements on top.
    """
    out = io.StringIO()
    figure.savefig(
        out,
        format="svg",
        transparent=True,
        metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
    )
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.S)
    # A style element would reach the whole page.
    text = re.sub(r"<style[^>]*>.*?</style>\s*", "", text, flags=re.S)
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.S)
    text = re.sub(r"\bfont: ([\d.]+)px [^;\"]*", r"font-size: \1px", text)
    text = text.replace("font-family: 'DejaVu Sans'; ", "")
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{name}-", text)
    text = text.replace("xlink:href", "href")
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, variable)
    for gid, said in tips.items():
        text = _with_tips(text, f'<g id="{name}-{gid}">', said)
    # Line breaks and indents take a third of the bytes.
    text = re.sub(r"\s*\n\s*", " ", text).replace("> <", "><")
    box = re.search(r'viewBox="([^"]+)"', text)
    assert box is not None
    body = text[text.index(">") + 1 :].rstrip().removesuffix("</svg>")
    width = float(box[1].split()[2])
    return (
        f'<svg viewBox="{box[1]}" role="img" aria-labelledby="{name}-title {name}-desc" '
        f'class="plot" style="max-width: {width:g}px">'
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-desc">{escape(description)}</desc>'
        f"{body}{extra}</svg>"
    )


_MARK = re.compile(r"<(use|path)( [^>]*?)/>", re.S)


def _with_tips(text: str, group: str, tips: Sequence[str]) -> str:
    """Puts a title into each mark of a group, in order."""
    start = text.index(group)
    # The shape of a marker is defined first; only its uses are marks.
    end_of_shapes = text.find("</defs>", start)
    first = _MARK.search(text, start)
    if first is not None and end_of_shapes >= 0 and "<defs>" in text[start : first.start()]:
        start = end_of_shapes
    parts = [text[:start]]
    for tip in tips:
        found = _MARK.search(text, start)
        assert found is not None
        parts.append(text[start : found.start()])
        parts.append(f"<{found[1]}{found[2]}><title>{escape(tip)}</title></{found[1]}>")
        start = found.end()
    return "".join([*parts, text[start:]])
