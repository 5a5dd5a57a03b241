"""What a transcript is once it has been read, whatever tool wrote it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from omnijudge.errors import Problem


class Word(NamedTuple):
    """A word with its times in seconds. ``text`` may be empty."""

    start: float
    end: float
    text: str


class Chunk(NamedTuple):
    """A stretch of speech. ``id`` is its position in the source; times in seconds."""

    id: int
    start: float
    end: float
    text: str
    words: tuple[Word, ...] = ()


@dataclass(frozen=True, slots=True)
class Transcript:
    """A transcript as read.

    Attributes:
        chunks: in file order; sorted later by (start, end, id).
        format: name of the format it was read as, None if refused before one was known.
        problems: everything dropped, changed or suspicious.
        refused: why nothing of it can be used; None if it was read.
        timing: for event logs the clock used (``playback``, ``media``, ``arrival``), else None.
    """

    chunks: list[Chunk]
    format: str | None = None
    problems: list[Problem] = field(default_factory=list)
    refused: Problem | None = None
    timing: str | None = None
