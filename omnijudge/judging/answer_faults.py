"""Names for what is wrong with an answer. They begin the ``reason`` of a judgement.

An answer that cannot be used has one of ``INVALID``; ``invalid`` judgements start with it and a
colon. ``FLAGS`` are remarks about answers that are used as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from omnijudge.judging.engines.reasoning import REASONING_ONLY as FINISH_REASONING

if TYPE_CHECKING:
    from omnijudge.judging.types import Reply

EMPTY = "empty"
WHITE_SPACE = "white_space"
ENDLESS_DIGITS = "endless_digits"
TRUNCATED = "truncated"
REASONING_ONLY = "reasoning_only"
REFUSED = "refused"
WITHHELD = "withheld"
NO_OBJECT = "no_object"
BROKEN_JSON = "broken_json"
WRONG_FORM = "wrong_form"

INVALID: Mapping[str, str] = {
    EMPTY: "no text at all",
    WHITE_SPACE: "white space until max_tokens",
    ENDLESS_DIGITS: "a number that never ends",
    TRUNCATED: "cut off before its end, mostly by max_tokens",
    REASONING_ONLY: "reasoning, and no verdict behind it",
    REFUSED: "the model declines to judge",
    WITHHELD: "withheld by the server's content filter",
    NO_OBJECT: "text without a JSON object",
    BROKEN_JSON: "JSON that cannot be read",
    WRONG_FORM: "JSON without the wanted fields and values",
}
"""Name -> what it means."""

WRONG_LANGUAGE = "wrong_language"
PHRASE_RESPELLED = "phrase_respelled"
PHRASE_NOT_FOUND = "phrase_not_found"

FLAGS: Mapping[str, str] = {
    WRONG_LANGUAGE: "the reason is in another script than the judged text",
    PHRASE_RESPELLED: "the trigger phrase differs from the judged text in blanks or punctuation",
    PHRASE_NOT_FOUND: "the trigger phrase is not in the judged text",
}
"""Name -> what it means. Flagged answers count as they are."""

_DIGITS = re.compile(r"\d{16,}$")
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)
_DECLINES = re.compile(
    r"\s*(?:I['’]?m sorry|I am sorry|Sorry, |I (?:cannot|can['’]?t|can not|won['’]?t|will not|"
    r"am unable to|am not able to|must decline)|As an AI|很?抱歉|对不起|我(?:无法|不能|没有办法))",
    re.IGNORECASE,
)


def fault_name(reply: Reply) -> str:
    """What makes an answer unusable, given that no verdict could be read from it."""
    raw, finish = reply.raw or "", reply.finish_reason
    if finish == "content_filter":
        return WITHHELD
    if finish == "refusal":
        return REFUSED
    if finish == FINISH_REASONING:
        return REASONING_ONLY
    text = raw.strip()
    cut = finish == "length"
    if cut and len(raw.rstrip()) < len(raw) / 2:
        return WHITE_SPACE
    if not text:
        return WHITE_SPACE if len(raw) > _MUCH_SPACE else EMPTY
    if cut and _DIGITS.search(text):
        return ENDLESS_DIGITS
    spoken = _THOUGHT.sub("", text)
    if "<think>" in spoken or not spoken.rpartition("</think>")[2].strip():
        return REASONING_ONLY
    if cut:
        return TRUNCATED
    if "{" not in spoken:
        return REFUSED if _DECLINES.match(spoken) else NO_OBJECT
    return _form(spoken[spoken.index("{") :])


_MUCH_SPACE = 64
"""Blanks that nobody leaves by mistake."""


def _form(text: str) -> str:
    try:
        json.JSONDecoder(strict=False).raw_decode(text)
    except json.JSONDecodeError as e:
        at_end = e.pos >= len(text.rstrip()) or e.msg.startswith("Unterminated string")
        return TRUNCATED if at_end else BROKEN_JSON
    except RecursionError:
        return BROKEN_JSON
    return WRONG_FORM


def named(reply: Reply, words: str | None) -> str:
    """The reason of an invalid answer: its name, then the parser's words."""
    return f"{fault_name(reply)}: {words or 'no verdict'}"


# Scripts. Hundreds of languages share one, so that this finds the coarse mistakes only: a Chinese
# verdict explained in English, or an English one in Chinese.

_SCRIPTS = {
    "latin": re.compile("[A-Za-z\u00c0-\u024f]"),
    "han": re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"),
    "hangul": re.compile("[\uac00-\ud7af]"),
    "cyrillic": re.compile("[\u0400-\u04ff]"),
    "greek": re.compile("[\u0370-\u03ff]"),
    "arabic": re.compile("[\u0600-\u06ff]"),
    "hebrew": re.compile("[\u0590-\u05ff]"),
    "devanagari": re.compile("[\u0900-\u097f]"),
    "thai": re.compile("[\u0e00-\u0e7f]"),
}
_FREQUENT = {name: _SCRIPTS[name] for name in ("latin", "han")}
_RARE = re.compile("|".join(p.pattern for n, p in _SCRIPTS.items() if n not in _FREQUENT))
_LETTERS_PER_SIGN = {"han": 3, "hangul": 2}
"""A Chinese character says about as much as so many Latin letters."""
_FEW = 6
"""Fewer letters than this are a name or a number, not a language."""
_SOME_LATIN = re.compile(f"(?:[A-Za-z][^A-Za-z]*){{{_FEW}}}")


def script_of(text: str) -> str | None:
    """The script most of a text is written in; None where there are too few letters."""
    if text.isascii():
        return "latin" if _SOME_LATIN.search(text) else None
    scripts = _SCRIPTS if _RARE.search(text) else _FREQUENT
    weights = {
        name: len(pattern.findall(text)) * _LETTERS_PER_SIGN.get(name, 1)
        for name, pattern in scripts.items()
    }
    best = max(weights, key=lambda n: weights[n])
    return best if weights[best] >= _FEW else None


SAID = ("rationale", "reasoning", "trigger_phrase")
"""Answer fields that hold words of the judge."""
JUDGED = ("text", "candidate")
"""Prompt variables that hold the judged text; the first one there is."""


def language_flag(fields: Mapping[str, Any], variables: Mapping[str, Any]) -> str | None:
    """A remark where the judge speaks in another script than the judged text, else None."""
    said = [f for n in SAID if isinstance(f := fields.get(n), str) and f]
    judged = next((variables[n] for n in JUDGED if isinstance(variables.get(n), str)), "")
    if not said or not judged:
        return None
    wanted = script_of(judged)
    found = next((s for t in said if (s := script_of(t)) not in (None, wanted)), None)
    if wanted is None or found is None:
        return None
    return f"{WRONG_LANGUAGE}: {found} letters about a text in {wanted} letters"


def names_in(reason: str | None) -> list[str]:
    """The names of this module that a reason holds."""
    if not reason:
        return []
    found = []
    for part in reason.split("; "):
        name = part.partition(":")[0]
        if name in INVALID or name in FLAGS:
            found.append(name)
    return found
