"""Bounds of answer schemas: without them a weak model writes until max_tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def unbounded(schema: Mapping[str, Any], place: str = "") -> list[str]:
    """Fields of a JSON schema that could go on for ever.

    A text needs ``maxLength`` (or an enum), a number ``minimum``, ``maximum`` and ``multipleOf``
    (an integer no ``multipleOf``), a list ``maxItems``, an object ``additionalProperties: false``.

    Returns:
        Paths of the fields with what they lack, such as ``rationale: maxLength``.
    """
    if "enum" in schema or "const" in schema:
        return []
    kind = schema.get("type")
    name = place or "the answer"
    if kind in ("boolean", "null"):
        return []
    if kind == "object":
        found = []
        if schema.get("additionalProperties") is not False:
            found.append(f"{name}: additionalProperties: false")
        for key, field in schema.get("properties", {}).items():
            found += unbounded(field, f"{place}.{key}" if place else str(key))
        return found
    wanted = {
        "string": ("maxLength",),
        "number": ("minimum", "maximum", "multipleOf"),
        "integer": ("minimum", "maximum"),
        "array": ("maxItems",),
    }
    lacking = [k for k in wanted.get(str(kind), ("type",)) if k not in schema]
    found = [f"{name}: {', '.join(lacking)}"] if lacking else []
    if kind == "array" and isinstance(schema.get("items"), Mapping):
        found += unbounded(schema["items"], f"{place}[]")
    return found
