"""Where the trigger phrase was said (OmniInteract rule 12.1 and 12.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from omnijudge.benchmarks.omniinteract.matching import join_words
from omnijudge.benchmarks.omniinteract.speech import Part, SpokenWord
from omnijudge.values import has_cjk

Words = Callable[[Part], Sequence[SpokenWord]]
"""Words of a part."""

QUOTES = "\"'\u201c\u201d\u2018\u2019"


def bare_phrase(phrase: str) -> str:
    """The phrase without blanks and quotes around it; blanks inside the quotes stay."""
    return phrase.strip().strip(QUOTES)


def find_anchor(phrase: str, parts: Sequence[Part], words: Words) -> float | None:
    """Start in seconds of the first timed character of the phrase; None if not found."""
    needle = bare_phrase(phrase)
    haystack = "".join(p.text for p in parts)
    if not needle or not haystack:
        return None
    at = haystack.find(needle)
    if at < 0:
        at = haystack.lower().find(needle.lower())
    if at < 0:
        return None
    first = 0
    for part in parts:
        # Only parts that the phrase touches are looked at.
        begin, end = max(at - first, 0), min(at + len(needle) - first, len(part.text))
        if begin < end:
            time = first_time(part.text, words(part), begin, end)
            if time is not None:
                return time
        first += len(part.text)
    return None


def first_time(text: str, words: Sequence[SpokenWord], begin: int, end: int) -> float | None:
    """Start of the word that the first timed character of a stretch of a part's text belongs to.

    The words are laid over the text where they stand in it (rule 12.2); the blank between two of
    them has no time.

    Args:
        text: the part's text.
        words: the part's words.
        begin: where the stretch begins in the text.
        end: where it ends, at most at the end of the text.
    """
    tokens = [(start, word) for start, _, word in words if word]
    gap = 0 if has_cjk("".join(word for _, word in tokens)) else 1
    # Not shifted by leading blanks of the first token: the rule wants it so.
    place = text.find(join_words([word for _, word in tokens]).strip())
    if place < 0:
        return None
    for start, token in tokens:
        if place >= end:
            return None
        place += len(token)
        if place > begin:
            return start
        place += gap
    return None


def find_anchor_normalised(
    phrase: str, parts: Sequence[Part], words: Words
) -> tuple[float | None, bool]:
    """Repair ``anchor_normalised``: letters, digits and Chinese characters only.

    Returns:
        (time, from_words): the start of the word the phrase begins in, or the start of the part
        that holds the phrase where its words do not give it; None if the phrase is nowhere.
    """
    needle = letters(phrase)
    if not needle:
        return None, False
    joined, owners = "", []
    for number, p in enumerate(parts):
        kept = letters(p.text)
        joined += kept
        owners += [number] * len(kept)
    at = joined.find(needle)
    if at < 0:
        return None, False
    part = parts[owners[at]]
    offset = at - owners.index(owners[at])
    spoken, starts = "", []
    for start, _, word in words(part):
        kept = letters(word)
        spoken += kept
        starts += [start] * len(kept)
    if spoken == letters(part.text):
        return starts[offset], True
    found = spoken.find(needle)
    return (starts[found], True) if found >= 0 else (part.start, False)


def letters(text: str) -> str:
    """Letters and digits of a text (Chinese characters are letters), lower case."""
    return "".join(c for c in text.lower() if c.isalnum())
