"""Numbers and tables of analyses as people read them."""

from __future__ import annotations

from collections.abc import Sequence

from omnijudge.report.grid import Entry, Grid, Head
from omnijudge.report.vocabulary import EMPTY, group_name, metric_name, shown


def heading(metric: str, group: str) -> str:
    """A metric with its group."""
    return f"{metric_name(metric).label}, {group_name(group)}"


def signed(metric: str, value: float | None) -> str:
    """A difference in a metric, with its sign."""
    text = shown(metric, value)
    return f"+{text}" if value is not None and not text.startswith("-") else text


def span(metric: str, low: float | None, high: float | None) -> str:
    """An interval of values of a metric."""
    if low is None or high is None:
        return EMPTY
    return f"[{shown(metric, low)}, {shown(metric, high)}]"


def signed_span(metric: str, low: float | None, high: float | None) -> str:
    """An interval of differences in a metric."""
    if low is None or high is None:
        return EMPTY
    return f"[{signed(metric, low)}, {signed(metric, high)}]"


def p_text(p: float | None, smallest: float | None = None) -> str:
    """A p-value; where it is the smallest there can be, it says so."""
    if p is None:
        return EMPTY
    if smallest is not None and p <= smallest:
        return f"≤ {smallest:.2g}"
    return f"{p:.4f}" if p >= 0.0001 else f"{p:.1e}"


def share_text(share: float | None) -> str:
    """A share in percent."""
    return EMPTY if share is None else f"{100 * share:.1f} %"


def plain(value: float | None, digits: int = 3) -> str:
    """A number with fixed digits."""
    return EMPTY if value is None else f"{value:.{digits}f}"


def interval(low: float | None, high: float | None, digits: int = 3) -> str:
    """An interval of plain numbers."""
    return EMPTY if low is None or high is None else f"[{low:.{digits}f}, {high:.{digits}f}]"


def grid(
    name: str,
    title: str,
    heads: Sequence[str | tuple[str, bool]],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str] = (),
) -> Grid:
    """A table of texts; a head given with False is none of a number."""
    made = [
        Head(h, (h,)) if isinstance(h, str) else Head(h[0], (h[0],), number=h[1]) for h in heads
    ]
    entries = tuple(tuple(Entry(t, t) for t in row) for row in rows)
    return Grid(name, title, tuple(made), entries, tuple(notes))
