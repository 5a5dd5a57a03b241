"""The benchmark's own form: ``chunks`` with ``timestamp`` and ``aligned_words``.

OmniInteract rule 5: a root without a list ``chunks`` is silence; a chunk whose ``timestamp`` is not
two readable times is dropped; reversed times are swapped; chunks with empty text are kept; the
chunk's id is its position in the list as written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from math import inf
from typing import Any

from omnijudge.transcripts.findings import Findings, Refusal
from omnijudge.transcripts.types import Chunk, Transcript, Word
from omnijudge.values import parse_time, text_of

# Straight to the tuple: the generated constructor costs as much as everything else together.
_chunk: Callable[[Iterable[Any]], Chunk] = partial(tuple.__new__, Chunk)
_word: Callable[[Iterable[Any]], Word] = partial(tuple.__new__, Word)


def parse_native(value: Any, file_name: str, *, format_name: str = "omniinteract") -> Transcript:
    """Reads an already loaded transcript.

    Args:
        value: the JSON value.
        file_name: for messages.
        format_name: what ``Transcript.format`` shall say.

    Returns:
        Chunks in the order of the file, words of each sorted by (start, end), times in seconds.
        A time that is NaN or infinite refuses the transcript (``non_finite_time``), because no
        interval can hold it.
    """
    findings = Findings()
    try:
        chunks = native_chunks(value, findings)
    except Refusal as refusal:
        return Transcript([], format_name, [], refusal.problem(file_name))
    return Transcript(chunks, format_name, findings.problems(file_name) if findings else [])


def native_chunks(value: Any, findings: Findings) -> list[Chunk]:
    """The chunks of a loaded transcript; what was changed is counted in ``findings``.

    Raises:
        Refusal: ``non_finite_time``.
    """
    raw = value.get("chunks") if isinstance(value, dict) else None
    if not isinstance(raw, list):
        findings.add("no_chunks")
        return []
    chunks: list[Chunk] = []
    keep = chunks.append
    for number, entry in enumerate(raw):
        try:
            start, end = entry["timestamp"]
            text = entry["text"]
            words = entry.get("aligned_words")
            plain = type(start) is float and type(end) is float and type(text) is str
        except (KeyError, TypeError, ValueError, AttributeError):
            plain = False
        # The comparison also keeps out NaN and infinite times.
        if plain and -inf < start <= end < inf:
            pieces = _words(words, number, findings) if words.__class__ is list else ()
            keep(_chunk((number, start, end, text, pieces)))
        else:
            chunk = _odd_chunk(entry, number, findings)
            if chunk is not None:
                keep(chunk)
    return chunks


def _odd_chunk(entry: Any, number: int, findings: Findings) -> Chunk | None:
    """A chunk that is not written as two ordered floats and a text."""
    place = f"chunks[{number}]"
    times = entry.get("timestamp") if isinstance(entry, dict) else None
    if not isinstance(times, list) or len(times) != 2:
        findings.add("dropped_bad_time", place=place)
        return None
    start, end = parse_time(times[0]), parse_time(times[1])
    if start is None or end is None:
        findings.add("dropped_bad_time", place=place)
        return None
    if not (-inf < start < inf and -inf < end < inf):
        raise Refusal(
            "non_finite_time",
            f"`timestamp` is [{start}, {end}]; write finite seconds",
            place,
        )
    if end < start:
        start, end = end, start
        findings.add("swapped", place=place)
    words = entry.get("aligned_words")
    pieces = _words(words, number, findings) if isinstance(words, list) else ()
    return Chunk(number, start, end, text_of(entry.get("text")), pieces)


def _words(raw: list[Any], number: int, findings: Findings) -> tuple[Word, ...]:
    # Nearly all words are objects with two ordered floats and a text, one after the other; the
    # first that is not sends the whole list to the careful reading.
    words: list[Word] = []
    keep = words.append
    last = -inf
    try:
        for entry in raw:
            start, end, text = entry["start"], entry["end"], entry["text"]
            if (
                last < start <= end < inf  # not so for NaN
                and type(start) is float
                and type(end) is float
                and type(text) is str
            ):
                last = start
                keep(_word((start, end, text)))
            else:
                return _odd_words(raw, number, findings)
    except (KeyError, TypeError):
        return _odd_words(raw, number, findings)
    return tuple(words)


def _odd_words(raw: list[Any], number: int, findings: Findings) -> tuple[Word, ...]:
    words: list[Word] = []
    for entry in raw:
        word = _odd_word(entry)
        if word is None:
            findings.add("dropped_words", place=f"chunks[{number}]")
        else:
            words.append(word)
    words.sort(key=_by_time)
    return tuple(words)


def _odd_word(entry: Any) -> Word | None:
    if not isinstance(entry, dict):
        return None
    start, end = parse_time(entry.get("start")), parse_time(entry.get("end"))
    if start is None or end is None or not (-inf < start < inf and -inf < end < inf):
        return None
    if end < start:
        start, end = end, start
    return Word(start, end, text_of(entry.get("text")))


def _by_time(word: Word) -> tuple[float, float]:
    return word[0], word[1]
