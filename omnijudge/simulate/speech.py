"""Texts on the time line: words, how long they take to say, chunks.

Times are whole hundredths of a second inside, so that ends can be compared exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import ceil, floor
from typing import Any, NamedTuple

from omnijudge.values import has_cjk

HUNDREDTHS = 100
# A word of a text with Chinese characters: one of them, or a run of Latin letters and digits,
# with the punctuation and blanks around it.
_CHINESE_WORD = re.compile(
    r"[《“（(]*(?:[\u4e00-\u9fff]|[A-Za-z0-9.%]+)(?:(?![《“（(])[^\u4e00-\u9fffA-Za-z0-9])*"
)
_CLAUSE_ENDS = frozenset(",.!?;:，。！？；：、")
# Ordinary speed of speech: about 2.7 English words, or 4.5 Chinese characters, a second.
_CHINESE_SIGN = 22
_LATIN_WORD, _LATIN_SIGN = 12, 5
_SHORT_CHUNK, _LONG_CHUNK = 100, 360


class Utterance(NamedTuple):
    """Something to say.

    Attributes:
        start: when it shall begin, in seconds; later if the voice is still busy.
        latest: if it cannot begin before this, it is not said.
        limit: the voice falls silent here, in the middle of a sentence if need be.
        text: what is said.
    """

    start: float
    latest: float
    limit: float
    text: str


def split_words(text: str) -> list[str]:
    """Words with their punctuation; see :func:`joined` for the way back."""
    if not has_cjk(text):
        return text.split()
    words = _CHINESE_WORD.findall(text)
    return words if sum(map(len, words)) == len(text) else list(text)


def joined(words: Iterable[str], chinese: bool) -> str:
    """Words put together again: Chinese with nothing between, else with one blank."""
    return ("" if chinese else " ").join(words)


def _length(word: str) -> int:
    """Hundredths of a second that a word takes."""
    if word.isascii():
        return _LATIN_WORD + _LATIN_SIGN * min(len(word), 40)
    signs = sum("\u4e00" <= sign <= "\u9fff" for sign in word)
    if signs == 0:
        return _LATIN_WORD + _LATIN_SIGN * min(len(word), 40)
    return _CHINESE_SIGN * signs


def seconds_to_say(text: str) -> float:
    """How long a text takes to say, in seconds."""
    return sum(map(_length, split_words(text))) / HUNDREDTHS


def say(utterances: Sequence[Utterance], with_words: bool) -> list[dict[str, Any]]:
    """Chunks of one voice, in order and without overlap.

    Args:
        utterances: in any order; said by start, one after the other.
        with_words: whether chunks carry ``aligned_words``. Nothing else depends on it.
    """
    chunks: list[dict[str, Any]] = []
    clock = 0
    for start, latest, limit, text in sorted(utterances, key=lambda u: u.start):
        begin = max(clock, ceil(start * HUNDREDTHS))
        if begin >= latest * HUNDREDTHS:
            continue
        stop = limit * HUNDREDTHS if limit == float("inf") else floor(limit * HUNDREDTHS)
        clock = _say_one(text, begin, stop, with_words, chunks)
    return chunks


def _say_one(
    text: str, begin: int, stop: float, with_words: bool, chunks: list[dict[str, Any]]
) -> int:
    """Appends the chunks of one text; returns when the voice is free again."""
    chinese = has_cjk(text)
    now, first = begin, begin
    part: list[str] = []
    ends: list[int] = []
    words = split_words(text)
    lengths = list(map(_length, words))
    left = sum(lengths)
    for word, length in zip(words, lengths, strict=True):
        if now + length > stop:
            break
        if part and now + length - first > _LONG_CHUNK and left >= _SHORT_CHUNK:
            chunks.append(_chunk(part, first, ends, chinese, with_words, bool(chunks)))
            part, ends, first = [], [], now
        now += length
        left -= length
        part.append(word)
        ends.append(now)
        if word[-1] in _CLAUSE_ENDS and now - first >= _SHORT_CHUNK and left >= _SHORT_CHUNK:
            chunks.append(_chunk(part, first, ends, chinese, with_words, bool(chunks)))
            part, ends, first = [], [], now
    if part:
        chunks.append(_chunk(part, first, ends, chinese, with_words, bool(chunks)))
    return now


def _chunk(
    words: list[str], start: int, ends: list[int], chinese: bool, with_words: bool, follows: bool
) -> dict[str, Any]:
    # Chunk texts are joined with nothing between, so English ones bring their own blank.
    blank = " " if follows and not chinese else ""
    chunk: dict[str, Any] = {
        "text": blank + joined(words, chinese),
        "timestamp": [start / HUNDREDTHS, ends[-1] / HUNDREDTHS],
    }
    if with_words:
        starts = [start, *ends[:-1]]
        chunk["aligned_words"] = [
            {"text": word, "start": s / HUNDREDTHS, "end": e / HUNDREDTHS}
            for word, s, e in zip(words, starts, ends, strict=True)
        ]
    return chunk
