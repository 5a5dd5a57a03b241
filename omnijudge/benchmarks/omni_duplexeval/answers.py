"""Judge answers of Omni-DuplexEval: the published lenient parser and the strict one (rule 6)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from omnijudge.benchmarks.base import Answer
from omnijudge.benchmarks.omni_duplexeval.segments import finite_number

FIELDS = {
    "temporal": ("temporal_score", "is_relevant"),
    "relevance": ("is_relevant",),
    "window": ("temporal_score",),
    "content": ("content_score",),
    "event": ("success_score",),
    "full": ("success_score",),
}
"""Number fields an answer of each stage has to hold."""

REASONS = {
    "temporal": ("temporal_reasoning", "reasoning"),
    "content": ("content_reasoning", "reasoning"),
}
"""Where the explanation is looked for, the first filled one wins; ``reasoning`` elsewhere."""

EMPTY_ERROR = '{"error": null}'
"""Stands for a reply whose ``error`` is present but empty: see :func:`read_body`."""

_CANDIDATE = re.compile(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
_STRAY_COMMA = re.compile(r",(\s*[}\]])")
_PATTERNS = {
    "temporal_score": re.compile(r'"temporal_score"\s*:\s*(\d+)'),
    "is_relevant": re.compile(r'"is_relevant"\s*:\s*(\d+)'),
    "content_score": re.compile(r'"content_score"\s*:\s*(\d+(?:\.\d+)?)'),
    "success_score": re.compile(r'"success_score"\s*:\s*([01])'),
}
_EXPLANATIONS = {
    name: re.compile(rf'"{name}"\s*:\s*"([^"]*)"')
    for name in ("temporal_reasoning", "content_reasoning", "reasoning")
}


def parse_published(raw: str, fields: Sequence[str]) -> dict[str, Any]:
    """What the published parser makes of an answer.

    The first brace pair that parses wins even if it lacks the fields, numbers are cut to whole
    ones without any check of their range, and failing all that the raw text is searched.

    Args:
        raw: the answer text.
        fields: number fields wanted.

    Returns:
        The keys found; a missing ``success_score`` is 0, other missing fields stay absent (their
        callers take 0).
    """
    for match in _CANDIDATE.finditer(raw):
        try:
            found = json.loads(_STRAY_COMMA.sub(r"\1", match[0]))
            for field in fields:
                if field in found:
                    found[field] = _converted(field, found[field])
                elif field == "success_score":
                    found[field] = 0
        except (ValueError, TypeError, OverflowError):
            continue
        return dict(found)
    return _searched(raw, fields)


def _converted(field: str, value: Any) -> float | int:
    return round(float(value), 2) if field == "content_score" else int(float(value))


def _searched(raw: str, fields: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in fields:
        match = _PATTERNS[field].search(raw)
        if match:
            found[field] = _converted(field, match[1])
    if "success_score" in fields:
        found.setdefault("success_score", 0)
        found["reasoning"] = ""
        return found
    for name, pattern in _EXPLANATIONS.items():
        match = pattern.search(raw)
        if match:
            found[name] = match[1]
    return found


def parse_strict(raw: str | None, field: str) -> int | float | None:
    """The legal value of one field; None if the answer has none.

    The last top-level object of the text with a legal value wins. Braces inside of JSON strings
    do not count.
    """
    found = last_legal(raw, (field,))
    return None if found is None else found[field]


def last_legal(raw: str | None, fields: Sequence[str]) -> dict[str, Any] | None:
    """The last top-level object in which every field is legal, with the fields as numbers."""
    result = None
    for text in _objects(raw or ""):
        found = _loaded(text)
        if not isinstance(found, dict):
            continue
        values = {f: legal(f, found.get(f)) for f in fields}
        if None not in values.values():
            result = {**found, **values}
    return result


def legal(field: str, value: Any) -> int | float | None:
    """A field's value if the strict rules allow it, else None."""
    if isinstance(value, bool):
        return int(value) if field in ("is_relevant", "success_score") else None
    number = finite_number(value)
    if number is None:
        return None
    if field == "content_score":
        return round(number, 2) if 0 <= number <= 3 else None
    highest = 3 if field == "temporal_score" else 1
    return int(number) if number == int(number) and 0 <= number <= highest else None


def _loaded(text: str) -> Any:
    for attempt in (text, _STRAY_COMMA.sub(r"\1", text)):
        try:
            return json.loads(attempt)
        except (ValueError, RecursionError):
            continue
    return None


def _objects(text: str) -> list[str]:
    """Top-level ``{...}`` stretches, aware of JSON strings."""
    found = []
    start = text.find("{")
    while start >= 0:
        end = _closing_brace(text, start)
        if end is None:
            start = text.find("{", start + 1)
        else:
            found.append(text[start : end + 1])
            start = text.find("{", end + 1)
    return found


_BRACE_OR_QUOTE = re.compile(r'[{}"]')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def _closing_brace(text: str, start: int) -> int | None:
    depth, at = 0, start
    while match := _BRACE_OR_QUOTE.search(text, at):
        at = match.end()
        if match[0] == '"':
            string = _STRING.match(text, match.start())
            if string is None:
                return None
            at = string.end()
        elif match[0] == "{":
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                return match.start()
    return None


def parse_answer(stage: str, raw: str, mode: str) -> Answer:
    """An answer text of a stage.

    Args:
        stage: stage it answers.
        raw: the text.
        mode: ``strict`` or ``published``.
    """
    fields = FIELDS[stage]
    strict = last_legal(raw, fields)
    if mode == "published":
        return _published_answer(stage, raw, strict)
    if strict is None:
        return Answer("invalid", {}, _why_invalid(raw, fields))
    values = {f: strict[f] for f in fields} | {"reasoning": explanation(stage, strict)}
    return Answer(*_ok_or_repaired(raw, values))


def _ok_or_repaired(raw: str, values: dict[str, Any]) -> tuple[str, dict[str, Any], str | None]:
    try:
        whole = json.loads(raw)
    except (ValueError, RecursionError):
        return "repaired", values, "the object was found inside other text"
    if not isinstance(whole, dict):
        return "repaired", values, "the object was found inside a JSON list"
    return "ok", values, None


def _published_answer(stage: str, raw: str, strict: dict[str, Any] | None) -> Answer:
    fields = FIELDS[stage]
    found = parse_published(raw, fields)
    values: dict[str, Any] = {f: float(found.get(f, 0)) for f in fields}
    values["reasoning"] = explanation(stage, found)
    if stage == "temporal" and raw == EMPTY_ERROR:
        values["without_duration"] = True
        return Answer("repaired", values, "the reply carried an empty error")
    if strict is None or any(strict[f] != values[f] for f in fields):
        return Answer("repaired", values, "read by the published lenient rules")
    return Answer(*_ok_or_repaired(raw, values))


def explanation(stage: str, found: dict[str, Any]) -> str:
    """The judge's explanation; empty if there is none."""
    texts = (found.get(k) for k in REASONS.get(stage, ("reasoning",)))
    return next((t for t in texts if isinstance(t, str) and t), "")


def _why_invalid(raw: str, fields: Sequence[str]) -> str:
    objects = [o for o in map(_loaded, _objects(raw)) if isinstance(o, dict)]
    if not objects:
        return "no JSON object in the answer" if raw.strip() else "the answer is empty"
    last = objects[-1]
    for field in fields:
        if field not in last:
            return f"{field} is missing"
        if legal(field, last[field]) is None:
            return f"{field} is {json.dumps(last[field], ensure_ascii=False)[:60]}"
    return f"no object holds {' and '.join(fields)} together"


def read_body(body: Any, published: bool, stage: str) -> tuple[str | None, str | None]:
    """A whole reply body: (answer text, None) or (None, why there is none).

    As published, an ``error`` key makes a reply a failure even if its value is empty; but a
    sentence whose error is empty then counts as judged, valid and irrelevant (quirk 3). Such a
    sentence is handed on as :data:`EMPTY_ERROR`. A reply without choices is an empty answer, a
    message of null the word None.
    """
    if not isinstance(body, dict):
        return None, "the reply is no object"
    error = body.get("error")
    if published and "error" in body:
        if not error and stage == "temporal":
            return EMPTY_ERROR, None
        return None, str(error)
    if error is not None:
        return None, str(error)
    try:
        content = body["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        return ("", None) if published else (None, "the reply holds no message")
    if published:
        return str(content), None
    if not isinstance(content, str):
        return None, "the message of the reply has no text"
    return content, None
