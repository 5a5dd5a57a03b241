"""JSON lines read one by one, so that a broken line does not hide what is wrong with the others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from omnijudge.errors import Problem
from omnijudge.transcripts.files import decode, split_lines


@dataclass(frozen=True, slots=True)
class Line:
    """A JSON value with the place it stands at."""

    place: str
    value: Any


def json_lines(data: bytes, file: str, problems: list[Problem]) -> Iterator[Line]:
    """The values of a JSON-lines file, or of a file that is one JSON list.

    A line that cannot be read becomes a problem; the lines after it are still read.

    Raises:
        UnreadableFile: the file as a whole is in another encoding.
    """
    text = decode(data, file)
    if text.lstrip("\ufeff \t\r\n").startswith("["):
        try:
            values = json_value(text)
        except ValueError as e:
            problems.append(Problem("bad_json", "error", file, "", f"not JSON: {e}; correct it"))
            return
        for number, value in enumerate(values):
            yield Line(f"row {number}", value)
        return
    for number, line in enumerate(split_lines(text), 1):
        if not line.strip():
            continue
        try:
            value = json_value(line)
        except ValueError as e:
            message = f"not JSON: {e}; correct or remove the line"
            problems.append(Problem("bad_json", "error", file, f"line {number}", message))
            continue
        yield Line(f"line {number}", value)


def json_value(text: str) -> Any:
    """A JSON value; lone surrogates become U+FFFD, NaN and infinity pass as floats.

    Raises:
        ValueError: no JSON, or nested too deeply.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        return _without_surrogates(json.loads(text))
    except RecursionError as e:
        raise ValueError("nested too deeply") from e


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_without_surrogates(v) for v in value]
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(v) for k, v in value.items()}
    return value


LONGEST = 1e9
"""Seconds that no recording reaches: beyond it times are of another unit, or since 1970."""


def number(value: Any) -> float | None:
    """A number that can be seconds of a recording (finite, below ``LONGEST``), or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # NaN compares false.
    return float(value) if -LONGEST < value < LONGEST else None
