"""How much of a reference answer stands in a text: the arithmetic of the smoke judge.

Texts in scripts with spaces are compared by word, Chinese, Japanese and Korean by pairs of
neighbouring characters; case, width and punctuation do not count.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from difflib import SequenceMatcher
from itertools import pairwise

_CJK = (
    "\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUNS = re.compile(rf"([{_CJK}]+)|([^\W_{_CJK}]+(?:['’][^\W_{_CJK}]+)*)")
_TOKENS = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+(?:['’][^\W_{_CJK}]+)*")


def overlap(text: str, reference: str) -> float:
    """F1 of the tokens two texts share, each token counted as often as it stands in both.

    Returns:
        A number in 0..1, rounded to two decimals; 0 if either text has no words.
    """
    mine, theirs = _tokens(text), _tokens(reference)
    if not mine or not theirs:
        return 0.0
    shared = (mine & theirs).total()
    return round(2 * shared / (mine.total() + theirs.total()), 2)


def longest_shared_phrase(text: str, reference: str) -> str:
    """The longest run of words (or CJK characters) that both texts hold.

    Returns:
        The run exactly as it stands in ``text``, the first of several equally long ones; empty
        if the texts share nothing.
    """
    mine = list(_TOKENS.finditer(text))
    theirs = [_normal(t) for t in _TOKENS.findall(reference)]
    if not mine or not theirs:
        return ""
    matcher = SequenceMatcher(None, [_normal(m[0]) for m in mine], theirs, autojunk=False)
    run = matcher.find_longest_match()
    if not run.size:
        return ""
    return text[mine[run.a].start() : mine[run.a + run.size - 1].end()]


def _tokens(text: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for characters, word in _RUNS.findall(_normal(text)):
        if word:
            found[word] += 1
        elif len(characters) == 1:
            found[characters] += 1
        else:
            found.update(a + b for a, b in pairwise(characters))
    return found


def _normal(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
