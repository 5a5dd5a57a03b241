"""The one family of errors; each carries the exit code the command line ends with.

A message names the file, the row or key, what was found there and what to do about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Level = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding about an input.

    Attributes:
        code: short stable name of the kind of problem, such as ``dropped_bad_time``.
        level: ``error`` (cannot be used), ``warning`` (used, but something was changed or lost),
            ``info`` (worth knowing).
        file: the file it was found in, as the user named it.
        place: row, key or line inside the file; empty for the file as a whole.
        message: what was found and what to do.
        sample_id: the sample concerned, if one is.
        system: the system concerned, if one is.
        count: how often it occurs at this place.
    """

    code: str
    level: Level
    file: str
    place: str
    message: str
    sample_id: str | None = None
    system: str | None = None
    count: int = 1

    def __str__(self) -> str:
        where = f"{self.file}: {self.place}" if self.place else self.file
        times = f" (x{self.count})" if self.count > 1 else ""
        return f"{where}: {self.message}{times}"


class OmnijudgeError(Exception):
    """Base of everything omnijudge raises on purpose."""

    exit_code = 1


class ConfigError(OmnijudgeError):
    """The configuration or the command line is wrong."""

    exit_code = 2


class DataError(OmnijudgeError):
    """Inputs cannot be used. ``problems`` lists all of them, found in one pass."""

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class EvidenceError(DataError):
    """What a question has to show cannot be had; the question is not asked."""


class ResourceError(OmnijudgeError):
    """Something the run needs (a package, a GPU, a model, a server) is not there."""


class StoreError(OmnijudgeError):
    """The judgement store cannot be read or written."""


class GateError(OmnijudgeError):
    """A gate (``--fail-if``, the exam's pass rate) failed."""

    exit_code = 4
