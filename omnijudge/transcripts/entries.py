"""The rules every foreign format shares: from what a tool wrote to chunks on the clip's clock.

A reader turns its file into :class:`Entry` objects whose times are already seconds on the clip's
clock (:class:`Clock`); :func:`to_chunks` closes open ends, swaps reversed times, drops what is
blank or untimed and fills in words without times. Nothing is sorted and no speech is cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

from omnijudge.errors import Level
from omnijudge.transcripts.findings import Findings, Refusal
from omnijudge.transcripts.options import ReadOptions
from omnijudge.transcripts.types import Chunk, Word
from omnijudge.values import has_cjk, parse_time

GAP = 1.0 - 1e-9
"""Silence in seconds that ends a chunk made of single words."""


class Clock:
    """Turns written times into seconds from the start of the clip."""

    __slots__ = ("_divisor", "_offset")

    def __init__(self, unit: str, offset: float) -> None:
        self._divisor = 1000.0 if unit == "ms" else 1.0
        self._offset = offset

    def __call__(self, value: Any) -> float | None:
        """The time of a number or text in the file's unit; None if it is no finite time."""
        if isinstance(value, bool):
            return None
        time = parse_time(value)
        if time is None or not -inf < time < inf:
            return None
        return time / self._divisor + self._offset

    def at(self, seconds: float) -> float:
        """A time that the format itself writes in seconds."""
        return seconds + self._offset


class RawWord(NamedTuple):
    """A word as written; text untrimmed, times in seconds on the clip's clock or None."""

    text: str
    start: float | None
    end: float | None
    speaker: str | None = None


@dataclass(slots=True)
class Entry:
    """One chunk as written: text untouched, times in seconds on the clip's clock or None.

    Attributes:
        text: as written.
        start: seconds, None without a readable time.
        end: seconds; None for an open end.
        place: where in the file.
        words: as written, blank ones included.
        speaker: the speaker label.
        untimed: no time was written at all (not: a time that cannot be read).
    """

    text: str
    start: float | None
    end: float | None
    place: str
    words: Sequence[RawWord] = field(default_factory=tuple)
    speaker: str | None = None
    untimed: bool = False


def text_field(value: Any) -> str:
    """A text as written; null or missing is empty."""
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    return ""


def label_field(value: Any) -> str | None:
    """A speaker label, or None; numbers become their text."""
    return text_field(value).strip() or None


def objects(items: Iterable[Any], place: str, findings: Findings) -> list[tuple[int, Any]]:
    """The entries of a list that are objects, with their positions.

    Raises:
        Refusal: an entry is an array, as some tools dump their tuples.
    """
    found = []
    for number, item in enumerate(items):
        if isinstance(item, dict):
            found.append((number, item))
        elif isinstance(item, list):
            raise Refusal(
                "wrong_format",
                "a segment is written as an array, which does not name its values; write "
                "segments as objects with `start`, `end` and `text` (setting `format`)",
                f"{place}[{number}]",
            )
        else:
            findings.add("dropped_bad_time", place=f"{place}[{number}]")
    return found


def to_chunks(
    entries: Sequence[Entry], level: str, options: ReadOptions, findings: Findings
) -> list[Chunk]:
    """Chunks by the common rules.

    Args:
        entries: in file order.
        level: what an entry is called in the format, for the message when none has a time.
        options: the clip's duration and the speakers to keep are used.
        findings: receives the counts.

    Raises:
        Refusal: ``no_times`` if there is text but no time was written anywhere.
    """
    spoken = [entry for entry in entries if entry.text.strip()]
    if spoken and all(entry.untimed and not _timed(entry.words) for entry in spoken):
        raise Refusal(
            "no_times",
            f"the {level} have text but no times; ask the recogniser for segment or word "
            "timestamps",
        )
    wanted = choose_speakers([entry.speaker for entry in entries], options, findings)
    chunks: list[Chunk] = []
    interpolated = total = 0
    for number, entry in enumerate(entries):
        if wanted is not None and entry.speaker not in wanted:
            continue
        words = [word for word in entry.words if word.text.strip()]
        start = entry.start
        if start is None:
            start = next((t for w in words if (t := _word_start(w)) is not None), None)
        if start is None:
            findings.add("dropped_bad_time", place=entry.place)
            continue
        end = entry.end
        if end is None:
            end = _open_end(start, words, entries, number, options.duration)
            findings.add("open_ends", place=entry.place)
        if end < start:
            start, end = end, start
            findings.add("swapped", place=entry.place)
        if not entry.text.strip():
            findings.add("dropped_blank", place=entry.place)
            continue
        timed, filled = fill_words(words, start, end)
        if filled:
            findings.add("words_interpolated", filled, place=entry.place)
        interpolated, total = interpolated + filled, total + len(timed)
        chunks.append(Chunk(number, start, end, entry.text, tuple(timed)))
    note_interpolated(interpolated, total, findings)
    return chunks


def choose_speakers(
    labels: Sequence[str | None], options: ReadOptions, findings: Findings
) -> frozenset[str] | None:
    """The labels to keep, or None for everything; says what is odd about the labels.

    Args:
        labels: one per chunk, None where it has none.
        options: ``speakers`` is used.
        findings: receives ``speakers`` or ``speaker_absent``.
    """
    found = sorted({label for label in labels if label is not None})
    if options.speakers is None:
        if len(found) > 1:
            findings.add("speakers", len(found), labels=", ".join(found))
        return None
    if labels and not options.speakers.intersection(found):
        findings.add(
            "speaker_absent",
            speaker=" or ".join(sorted(options.speakers)),
            labels=", ".join(found) or "none",
        )
    return options.speakers


def note_interpolated(filled: int, total: int, findings: Findings) -> None:
    """Completes the count of interpolated words; a share above 5 % is a warning."""
    if filled:
        level: Level = "warning" if filled > 0.05 * total else "info"
        findings.add("words_interpolated", 0, level=level, total=total)


def fill_words(words: Sequence[RawWord], start: float, end: float) -> tuple[list[Word], int]:
    """Words with times: those without share the gap between their timed neighbours evenly.

    Args:
        words: not blank, in order.
        start: seconds; where a gap before the first timed word begins.
        end: seconds; where a gap after the last timed word ends.

    Returns:
        The words, trimmed, and how many of them had not both times of their own. No words if none
        has a time.
    """
    if not _timed(words):
        return [], 0
    found: list[Word] = []
    filled = 0
    left = start
    waiting: list[str] = []
    for word in words:
        own, own_end = word.start, word.end
        text = word.text.strip()
        if own is None and own_end is None:
            waiting.append(text)
            continue
        if own is None or own_end is None:
            own = own_end = own if own is not None else own_end
            filled += 1
        assert own is not None
        assert own_end is not None
        if own_end < own:
            own, own_end = own_end, own
        if waiting:
            found += _share(waiting, left, own)
            filled += len(waiting)
            waiting = []
        found.append(Word(own, own_end, text))
        left = own_end
    if waiting:
        found += _share(waiting, left, end)
        filled += len(waiting)
    return found, filled


def group_words(
    words: Sequence[RawWord], place: str, options: ReadOptions, findings: Findings
) -> list[Entry]:
    """Entries from a list of words without segments.

    A new entry begins where a word starts a second or more after the greatest end so far, or where
    the speaker changes. Words without times are filled in first; at the edges of the list they
    take their neighbour's time.
    """
    words = [word for word in words if word.text.strip()]
    if not words:
        return []
    known = [word for word in words if _timed((word,))]
    if not known:
        raise Refusal(
            "no_times",
            "the words have no times; ask the recogniser for word timestamps",
            place,
        )
    first, last = _word_start(known[0]), _word_end(known[-1])
    assert first is not None
    assert last is not None
    timed, filled = fill_words(words, first, last)
    if filled:
        findings.add("words_interpolated", filled, place=place)
        note_interpolated(filled, len(timed), findings)
    findings.add("grouped_words", len(words))
    groups: list[list[int]] = []
    greatest = -inf
    for number, word in enumerate(timed):
        if (
            not groups
            or word.start - greatest >= GAP
            or words[number].speaker != words[number - 1].speaker
        ):
            groups.append([])
        groups[-1].append(number)
        greatest = max(greatest, word.end)
    return [
        Entry(
            text=words_text([words[n].text for n in group]),
            start=timed[group[0]].start,
            end=max(timed[n].end for n in group),
            place=f"{place}[{group[0]}]",
            words=[RawWord(words[n].text, timed[n].start, timed[n].end) for n in group],
            speaker=words[group[0]].speaker,
        )
        for group in groups
    ]


def words_text(texts: Sequence[str]) -> str:
    """Text of a chunk made of words: as written if they carry their blanks, else joined."""
    if all(text[:1].isspace() for text in texts[1:]):
        return "".join(texts)
    trimmed = [text.strip() for text in texts]
    return join_pieces(trimmed)


def join_pieces(texts: Sequence[str]) -> str:
    """Joined with nothing if any piece contains CJK, else with one blank."""
    return ("" if any(map(has_cjk, texts)) else " ").join(texts)


def _timed(words: Iterable[RawWord]) -> bool:
    return any(word.start is not None or word.end is not None for word in words)


def _word_start(word: RawWord) -> float | None:
    return word.start if word.start is not None else word.end


def _word_end(word: RawWord) -> float | None:
    return word.end if word.end is not None else word.start


def _share(texts: list[str], left: float, right: float) -> list[Word]:
    step = max(0.0, right - left) / len(texts)
    return [Word(left + i * step, left + (i + 1) * step, text) for i, text in enumerate(texts)]


def _open_end(
    start: float,
    words: Sequence[RawWord],
    entries: Sequence[Entry],
    number: int,
    duration: float | None,
) -> float:
    ends = [t for word in words if (t := _word_end(word)) is not None]
    if ends:
        return max(ends)
    following = entries[number + 1].start if number + 1 < len(entries) else None
    if following is not None and following >= start:
        return following
    if duration is not None and duration > start:
        return duration
    return start
