"""Values as the benchmark's files write them: times, truth values, texts (OmniInteract rule 2)."""

from __future__ import annotations

import re
from typing import Any

_TRUE = frozenset(("1", "true", "yes", "y", "t"))
_find_cjk = re.compile("[\u4e00-\u9fff]").search


def parse_time(value: Any) -> float | None:
    """A time in seconds, or None if the value is none (OmniInteract rule 2.1).

    Numbers and texts that Python's ``float`` reads are seconds (booleans count as 0 and 1);
    ``m:s`` and ``h:m:s`` are clock times without any range check. The result can be NaN or
    infinite, because ``float`` reads those words; callers that need a finite time check for it.
    """
    if type(value) is float:
        return value
    if isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError:
            return None
    if not isinstance(value, str):
        return None
    text = value.strip()
    try:
        return float(text)
    except ValueError:
        pass
    parts = text.split(":")
    try:
        if len(parts) == 2:
            return float(parts[0]) * 60 + float(parts[1])
        if len(parts) == 3:
            return float(parts[0]) * 3600 + float(parts[1]) * 60 + float(parts[2])
    except ValueError:
        pass
    return None


def parse_bool(value: Any) -> bool:
    """Truth value (OmniInteract rule 2.2): numbers by non-zero, else 1, true, yes, y, t."""
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return value != 0
    return str(value).strip().lower() in _TRUE


def text_of(value: Any) -> str:
    """A text field (OmniInteract rule 2.3): missing, null, 0, false and [] are the empty text."""
    return value if type(value) is str else str(value or "")


def attribute_text(value: Any) -> str:
    """A further value of an annotation, as text: texts as they stand, anything else as JSON."""
    import orjson

    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # a whole number of more than 64 bits, or hundreds of brackets
        return str(value) if isinstance(value, int) else "(deeply nested)"


def clamp(value: float) -> float:
    """Limits to 0..1 (OmniInteract rule 2.4). NaN gives 1.0, as in the published evaluator."""
    # The order of the arguments decides what becomes of NaN.
    return max(0.0, min(1.0, value))


def has_cjk(text: str) -> bool:
    """Whether any character lies in U+4E00..U+9FFF (OmniInteract rule 2.5)."""
    return not text.isascii() and _find_cjk(text) is not None
