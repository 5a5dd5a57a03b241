"""Collecting what is wrong with an entry of a file, and the keys of a file that nobody reads."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Set
from typing import Any

from omnijudge.benchmarks.omni_interactscope.jsonlines import number
from omnijudge.errors import Level, Problem

_SHOWN = 40
"""Characters of a wrong value that a message repeats."""


class Check:
    """Collects the problems of one entry (an interaction)."""

    def __init__(self, file: str, place: str, problems: list[Problem]) -> None:
        self.file = file
        self.place = place
        self.problems = problems
        self.sample_id: str | None = None
        self.failed = False

    def error(self, code: str, message: str) -> None:
        """Something that makes the entry unusable."""
        self.failed = True
        self._add(code, "error", message)

    def warn(self, code: str, message: str) -> None:
        """Something that is most likely not meant."""
        self._add(code, "warning", message)

    def info(self, code: str, message: str) -> None:
        """Something worth knowing."""
        self._add(code, "info", message)

    def _add(self, code: str, level: Level, message: str) -> None:
        self.problems.append(Problem(code, level, self.file, self.place, message, self.sample_id))

    def time(self, row: Mapping[str, Any], key: str, owner: str = "") -> float | None:
        """A time that has to be there."""
        value = row.get(key)
        seconds = number(value)
        if seconds is None:
            what = "is missing" if value is None else f"is {shown(value)}"
            self.error(
                "missing_time" if value is None else "bad_time",
                f"{owner}{key} {what}; write seconds on the clock of the recording",
            )
        return seconds

    def text(self, row: Mapping[str, Any], key: str, owner: str = "") -> str | None:
        """A text, empty if it is not there; None (and an error) if it is something else."""
        value = row.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            self.error("bad_text", f"{owner}{key} must be text, found {kind(value)}")
            return None
        return value

    def name(self, value: Any, what: str) -> str | None:
        """An id: text that is not blank, or a whole number; None (and an error) if it is none."""
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if value is None or value == "":
            self.error("missing_key", f"{what} is missing")
        elif not isinstance(value, str):
            self.error("bad_id", f"{what} must be text, found {kind(value)}")
        elif not value.strip():
            self.error("missing_key", f"{what} is blank")
        elif any(ord(c) < 32 for c in value):
            self.error("bad_id", f"{what} {shown(value)} has control characters")
        else:
            return value
        return None


class UnknownKeys:
    """Keys that nothing reads, counted over a file: most often a known key, misspelt."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], list[Any]] = {}

    def add(self, owner: str, keys: Set[str], known: Iterable[str], place: str) -> None:
        """Counts the keys of one entry.

        Args:
            owner: what has the keys, in the plural, as people call it.
            keys: the keys found.
            known: those that are read.
            place: where the entry stands.
        """
        for key in sorted(keys - set(known)):
            near = difflib.get_close_matches(key, list(known), 1)
            found = self._found.setdefault((owner, key), [place, near[0] if near else None, 0])
            found[2] += 1

    def problems(self, file: str, otherwise: Mapping[str, str]) -> list[Problem]:
        """One finding per key, at its first place.

        Args:
            file: name of the file.
            otherwise: owner -> what becomes of keys that are like no known one, where that is
                meant and no reason to warn.
        """
        found = []
        for (owner, key), (place, near, count) in self._found.items():
            meant = near is None and owner in otherwise
            fate = otherwise.get(owner, "is not used")
            question = "" if near is None else f"; did you mean {near!r}?"
            message = f"{owner} have a key {shown(key)}, which {fate}{question}"
            level: Level = "info" if meant else "warning"
            found.append(Problem("unknown_key", level, file, place, message, count=count))
        return found


def shown(value: Any) -> str:
    """A wrong value in a message."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def kind(value: Any) -> str:
    """What a JSON value is, in words."""
    names = {dict: "an object", list: "a list", str: "text", type(None): "null", bool: "a boolean"}
    return names.get(type(value), "a number")
