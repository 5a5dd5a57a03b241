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
        # Only parts that the phrase touches are looked at character by character.
        begin, end = max(at - first, 0), min(at + len(needle) - first, len(part.text))
        if begin < end:
            times = character_times(part.text, words(part))[begin:end]
            known = next((t for t in times if t is not None), None)
            if known is not None:
                return known
        first += len(part.text)
    return None


def character_times(text: str, words: Sequence[SpokenWord]) -> list[float | None]:
    """A time per character of a part's text, None where it is unknown (rule 12.2)."""
    unknown: list[float | None] = [None] * len(text)
    tokens = [(start, word) for start, _, word in words if word]
    if not text or not tokens:
        return unknown
    gap: list[float | None] = [] if has_cjk("".join(t for _, t in tokens)) else [None]
    entries: list[float | None] = []
    for number, (start, token) in enumerate(tokens):
        if number:
            entries += gap
        entries += [start] * len(token)
    built = join_words([t for _, t in tokens]).strip()
    # The entries are not shifted by leading blanks of the first token: the rule wants it so.
    if built == text:
        return entries[: len(text)]
    at = text.find(built)
    if at < 0:
        return unknown
    laid = entries[: len(text) - at]
    return unknown[:at] + laid + unknown[at + len(laid) :]


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
