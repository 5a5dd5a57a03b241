"""A table on its way to the reader: values for machines, texts for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One cell.

    Attributes:
        value: as machines get it, in full precision.
        text: as people read it.
        interval: the interval as people read it, empty if there is none to show.
        mark: flags behind the value.
    """

    value: Value
    text: str
    interval: str = ""
    mark: str = ""

    @property
    def full(self) -> str:
        """Value, flags and interval in one line."""
        value = self.text + self.mark
        return f"{value} {self.interval}" if self.interval else value


@dataclass(frozen=True, slots=True)
class Head:
    """Head of a column.

    Attributes:
        key: name in machine formats.
        label: lines for people, from the general to the special.
        number: whether its values are numbers (set to the right).
        people: whether people see the column.
        machines: whether machine formats hold it.
    """

    key: str
    label: tuple[str, ...]
    number: bool = True
    people: bool = True
    machines: bool = True


@dataclass(frozen=True, slots=True)
class Grid:
    """A table.

    Attributes:
        name: short name.
        title: for people; may be empty.
        heads: one per column; the leading ones that are no numbers name the row.
        rows: entries by row.
        notes: sentences below it.
    """

    name: str
    title: str
    heads: tuple[Head, ...]
    rows: tuple[tuple[Entry, ...], ...]
    notes: tuple[str, ...] = ()

    def for_people(self) -> Grid:
        """Only the columns that people see."""
        return self._select([i for i, h in enumerate(self.heads) if h.people])

    def for_machines(self) -> Grid:
        """Only the columns that machine formats hold."""
        return self._select([i for i, h in enumerate(self.heads) if h.machines])

    def _select(self, columns: Sequence[int]) -> Grid:
        heads = tuple(self.heads[i] for i in columns)
        rows = tuple(tuple(row[i] for i in columns) for row in self.rows)
        return Grid(self.name, self.title, heads, rows, self.notes)


def text_entry(text: str) -> Entry:
    """An entry that is a text."""
    return Entry(text, text)
