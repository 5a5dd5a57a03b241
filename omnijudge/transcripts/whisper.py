"""The Whisper family and plain word lists: chunks, segments, words, and whisper.cpp."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from math import inf
from typing import Any

from omnijudge.transcripts.entries import (
    Clock,
    Entry,
    RawWord,
    group_words,
    label_field,
    objects,
    text_field,
)
from omnijudge.transcripts.findings import Findings
from omnijudge.transcripts.options import ReadOptions

_WORD_LISTS = ("words", "word_segments", "time_stamps")
_CLOCK_TEXT = re.compile(r"\s*(?:(\d+):)?(\d+):(\d+(?:[.,]\d+)?)\s*", re.ASCII)


def whisper_chunks(root: Any, clock: Clock, findings: Findings) -> list[Entry]:
    """``chunks`` of ``{text, timestamp: [start, end or null]}``; never has words."""
    entries = []
    for number, item in objects(root["chunks"], "chunks", findings):
        start, end = _pair(item.get("timestamp"))
        entries.append(
            Entry(
                text_field(item.get("text")),
                clock(start),
                clock(end),
                f"chunks[{number}]",
                speaker=label_field(item.get("speaker")),
                untimed=start is None and end is None,
            )
        )
    return entries


def whisper_segments(root: Any, clock: Clock, findings: Findings) -> list[Entry]:
    """``segments`` (or a bare list) of ``{start, end, text, words?}``.

    Words that stand at the root beside segments without words of their own go to the last segment
    that does not start after them.
    """
    where = "segments" if isinstance(root, dict) else ""
    items = root["segments"] if isinstance(root, dict) else root
    entries = []
    for number, item in objects(items, where, findings):
        start, end = item.get("start"), item.get("end")
        entries.append(
            Entry(
                text_field(item.get("text")),
                clock(start),
                clock(end),
                f"{where}[{number}]",
                read_words(item.get("words"), clock),
                label_field(item.get("speaker")),
                untimed=start is None and end is None,
            )
        )
    if isinstance(root, dict) and not any(entry.words for entry in entries):
        _give_words(read_words(root.get("words"), clock), entries)
    return entries


def word_list(root: Any, clock: Clock, options: ReadOptions, findings: Findings) -> list[Entry]:
    """Words without segments, grouped into chunks by their gaps."""
    if isinstance(root, dict):
        where = next(key for key in _WORD_LISTS if isinstance(root.get(key), list))
        items = root[where]
    else:
        where, items = "", root
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            findings.add("dropped_words", place=f"{where}[{number}]")
    return group_words(read_words(items, clock), where, options, findings)


def whisper_cpp(root: Any, clock: Clock, findings: Findings) -> tuple[list[Entry], bool]:
    """``transcription`` of ``{offsets: {from, to}, timestamps: {from, to}, text}``.

    Returns:
        The entries, and whether times were taken from the clock texts, whose unit is fixed.
    """
    entries = []
    from_texts = False
    for number, item in objects(root["transcription"], "transcription", findings):
        offsets, texts = item.get("offsets"), item.get("timestamps")
        start = end = None
        if isinstance(offsets, dict):
            start, end = clock(offsets.get("from")), clock(offsets.get("to"))
        elif isinstance(texts, dict):
            from_texts = True
            start = _clock_text(texts.get("from"), clock)
            end = _clock_text(texts.get("to"), clock)
        entries.append(
            Entry(
                text_field(item.get("text")),
                start,
                end,
                f"transcription[{number}]",
                speaker=label_field(item.get("speaker")),
                untimed=not isinstance(offsets, dict) and not isinstance(texts, dict),
            )
        )
    return entries, from_texts


def read_words(items: Any, clock: Clock) -> list[RawWord]:
    """Words in any of the family's layouts; other entries than objects are passed over."""
    if not isinstance(items, list):
        return []
    words = []
    for item in items:
        if not isinstance(item, dict):
            continue
        text = next((item[k] for k in ("word", "text") if isinstance(item.get(k), str)), "")
        if "start" in item or "end" in item:
            start, end = item.get("start"), item.get("end")
        elif "start_time" in item or "end_time" in item:
            start, end = item.get("start_time"), item.get("end_time")
        else:
            start, end = _pair(item.get("timestamp"))
        words.append(RawWord(text, clock(start), clock(end), label_field(item.get("speaker"))))
    return words


def _pair(value: Any) -> tuple[Any, Any]:
    return (value[0], value[1]) if isinstance(value, list) and len(value) == 2 else (None, None)


def _give_words(words: Sequence[RawWord], entries: Sequence[Entry]) -> None:
    """Spreads words at the root over the segments."""
    if not entries:
        return
    given: list[list[RawWord]] = [[] for _ in entries]
    # The least start from each segment on grows with the position, so that the last segment that
    # does not start after a word is found by bisection in whatever order the segments stand.
    starts = [inf if entry.start is None else entry.start for entry in entries]
    least = list(accumulate(reversed(starts), min))[::-1]
    home = 0
    for word in words:
        start = word.start if word.start is not None else word.end
        if start is not None:  # a word without times stays with the word before it
            home = max(0, bisect_right(least, start) - 1)
        given[home].append(word)
    for entry, own in zip(entries, given, strict=True):
        entry.words = own


def _clock_text(value: Any, clock: Clock) -> float | None:
    found = _CLOCK_TEXT.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    hours, minutes, seconds = found.groups()
    return clock.at(int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds.replace(",", ".")))
