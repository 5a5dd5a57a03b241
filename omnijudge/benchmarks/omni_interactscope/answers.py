"""Reading a judge's answer: one boolean (InteractScope rule 4, answer contract)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from omnijudge.benchmarks.base import Answer

FIELD = "equivalent"

_TRUE = ("true", "yes", "1")
_FALSE = ("false", "no", "0")
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_MARK = re.compile(r'[{}"\\]')


def parse_verdict(raw: str) -> Answer:
    """Reads an answer text.

    The last top-level ``{...}`` span with a usable ``equivalent`` wins. Usable are booleans, the
    numbers 0 and 1, and the words true, yes, 1, false, no, 0 in any case.

    Returns:
        ``ok`` if the text is one plain JSON object with a boolean, ``repaired`` if it had to be
        read with more good will, else ``invalid``; never a guess.
    """
    found: tuple[bool, Any, dict[str, Any], bool] | None = None
    seen = 0
    for span in object_spans(raw):
        seen += 1
        value, mended = _load(span)
        if isinstance(value, dict):
            verdict = _as_bool(value.get(FIELD))
            if verdict is not None:
                found = verdict, value[FIELD], value, mended
    if found is None:
        return Answer("invalid", {}, _why_not(raw, seen))
    verdict, written, value, mended = found
    reasons = []
    if seen > 1:
        reasons.append("several objects, the last usable one counts")
    elif not (raw.lstrip().startswith("{") and raw.rstrip().endswith("}")):
        reasons.append("text around the object")
    if mended:
        reasons.append("comma before a closing bracket")
    if not isinstance(written, bool):
        reasons.append(f"{FIELD} written as {written!r}")
    rationale = value.get("reason")
    fields = {FIELD: verdict, "rationale": rationale if isinstance(rationale, str) else None}
    return Answer("repaired" if reasons else "ok", fields, "; ".join(reasons) or None)


def object_spans(text: str) -> Iterator[str]:
    """The top-level ``{...}`` spans of a text; braces inside quoted strings do not count.

    A brace that never closes ends the search.
    """
    at = text.find("{")
    while at >= 0:
        end = _closing_brace(text, at)
        if end is None:
            return
        yield text[at : end + 1]
        at = text.find("{", end + 1)


def _closing_brace(text: str, at: int) -> int | None:
    depth, quoted = 0, False
    mark = _MARK.search(text, at)
    while mark is not None:
        sign, place = mark[0], mark.start()
        step = 1
        if quoted:
            if sign == "\\":
                step = 2  # the next character is escaped
            elif sign == '"':
                quoted = False
        elif sign == '"':
            quoted = True
        elif sign == "{":
            depth += 1
        elif sign == "}":
            depth -= 1
            if depth == 0:
                return place
        mark = _MARK.search(text, place + step)
    return None


def _load(span: str) -> tuple[Any, bool]:
    """The value of a span and whether commas had to go; (None, False) if it is no JSON."""
    try:
        return json.loads(span), False
    except (ValueError, RecursionError):
        pass
    try:
        return json.loads(_TRAILING_COMMA.sub(r"\1", span)), True
    except (ValueError, RecursionError):
        return None, False


def _as_bool(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _TRUE:
            return True
        if word in _FALSE:
            return False
    return None


def _why_not(raw: str, seen: int) -> str:
    if not raw.strip():
        return "empty answer"
    if seen:
        return f"no object has a usable {FIELD!r}"
    return "an object is never closed" if "{" in raw else "no JSON object"
