"""Taking one JSON object out of an answer text, strictly."""

from __future__ import annotations

import json
import re
from typing import Any

_FENCE = re.compile(r"```[A-Za-z]*\s*\n?(.*?)```", re.DOTALL)
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)
_DECODER = json.JSONDecoder(strict=False)


class Unusable(Exception):
    """Why an answer is not usable."""


def one_object(raw: str) -> tuple[dict[str, Any], str | None]:
    """The one JSON object of an answer, and what had to be passed over to get it.

    Returns:
        (object, None) for an answer that is an object and nothing else; else (object, how it was
        found): out of a code fence, after a closed thought, or with text around it.

    Raises:
        Unusable: empty, no object, cut off, several objects, or only a thought; in words.
    """
    text = raw.strip().lstrip("\ufeff")
    if not text:
        raise Unusable("the answer is empty")
    whole = _load(text)
    if whole is not None:
        return whole, None
    if "<think>" in text or "</think>" in text:
        after = _THOUGHT.sub("", text)
        if "<think>" in after:
            raise Unusable("the answer holds a thought that does not end, and no verdict")
        text = after.rpartition("</think>")[2].strip()
        if not text:
            raise Unusable("the answer holds a thought only, and no verdict")
        whole = _load(text)
        if whole is not None:
            return whole, "taken from behind a thought"
    fenced = _FENCE.findall(text)
    if len(fenced) == 1:
        whole = _load(fenced[0].strip())
        if whole is not None:
            return whole, "taken out of a code fence"
    objects = _objects(text)
    if len(objects) == 1:
        return objects[0], "taken out of the text around it"
    if len(objects) > 1:
        raise Unusable(f"the answer holds {len(objects)} objects; one is wanted")
    if "{" in text:
        raise Unusable("the answer holds JSON that is cut off or broken")
    raise Unusable("the answer holds no JSON object")


def _load(text: str) -> dict[str, Any] | None:
    try:
        value, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and not text[end:].strip() else None


def _objects(text: str) -> list[dict[str, Any]]:
    """Top-level objects in the text, from the left."""
    found = []
    at = text.find("{")
    while at >= 0:
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            # What is broken here may hold whole objects inside; taking one of those would be a
            # guess, so a broken start ends the search.
            return []
        if isinstance(value, dict):
            found.append(value)
        at = text.find("{", end)
    return found
