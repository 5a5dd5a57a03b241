"""From bytes to values: encodings, JSON, JSON lines, and what is wrong with a file."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from omnijudge.errors import DataError, Problem

_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_LITERALS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_CUT_NUMBERS = (".", "e", "E", "e+", "e-", "E+", "E-", "-")
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_UTF32_MARKS = (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")


class UnreadableFile(DataError):
    """A file that cannot be turned into values. ``problem`` says why."""

    def __init__(self, code: str, file: str, place: str, message: str) -> None:
        self.problem = Problem(code, "error", file, place, message)
        super().__init__(str(self.problem), (self.problem,))


@dataclass(frozen=True, slots=True)
class Document:
    """Parsed JSON.

    Attributes:
        value: the value; of JSON lines the list of the lines' values.
        lines: line number (from 1) of each element of ``value``; None for one whole JSON value.
        surrogates: some text may hold half a surrogate pair, which Arrow cannot store.
    """

    value: Any
    lines: list[int] | None = None
    surrogates: bool = False


def read_bytes(path: str | Path) -> bytes:
    """The bytes of a file.

    Raises:
        UnreadableFile: ``missing_file`` or ``unreadable_file``.
    """
    try:
        with open(path, "rb", buffering=0) as stream:
            return stream.read()
    except FileNotFoundError:
        raise UnreadableFile(
            "missing_file", str(path), "", "there is no such file; check the path"
        ) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UnreadableFile(
            "unreadable_file", str(path), "", f"the file cannot be opened: {reason}"
        ) from None


def is_blank(data: bytes) -> bool:
    """Whether there is nothing but blanks, line breaks and a byte-order mark."""
    return not _without_mark(data).strip(b" \t\r\n\f\v\x00")


def decode(data: bytes, file: str) -> str:
    """Text of a file: UTF-8 with or without mark, or UTF-16 with its mark.

    Raises:
        UnreadableFile: ``bad_encoding`` with the position of the first bad byte; ``truncated``
            when a JSON file ends inside a character.
    """
    try:
        if data.startswith(_UTF32_MARKS):
            raise UnreadableFile(
                "bad_encoding", file, "byte 0", "the file is UTF-32; convert it to UTF-8"
            )
        if data.startswith(_UTF16_MARKS):
            return data.decode("utf-16")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = error.start + (len(_UTF8_MARK) if data.startswith(_UTF8_MARK) else 0)
        json_like = data[:64].lstrip(_UTF8_MARK + b" \t\r\n")[:1] in (b"{", b"[")
        if error.reason == "unexpected end of data" and json_like:
            raise UnreadableFile(
                "truncated",
                file,
                f"byte {at}",
                "the file ends in the middle of a character; nothing of it is used, write it again",
            ) from None
        raise UnreadableFile(
            "bad_encoding",
            file,
            f"byte {at}",
            f"not {error.encoding.upper()} (byte 0x{data[at]:02x}); convert the file to UTF-8",
        ) from None


def read_text(path: str | Path) -> str:
    """The text of a file; see :func:`decode`."""
    return decode(read_bytes(path), str(path))


def read_json(path: str | Path) -> Any:
    """The one JSON value of a file.

    Raises:
        UnreadableFile: the file is missing, empty, in another encoding, or no JSON.
    """
    return load_json(read_bytes(path), str(path)).value


def read_json_lines(path: str | Path) -> Document:
    """The values of a JSON-lines file with their line numbers; blank lines are passed over.

    Raises:
        UnreadableFile: the file is missing, in another encoding, or a line is no JSON.
    """
    return load_json_lines(read_bytes(path), str(path))


def load_json(data: bytes, file: str) -> Document:
    """One JSON value. NaN and infinite numbers are let through as Python floats.

    Raises:
        UnreadableFile: ``empty_file``, ``bad_encoding``, ``truncated`` or ``bad_json``.
    """
    try:
        return Document(orjson.loads(data))
    except orjson.JSONDecodeError:
        pass
    if is_blank(data):
        raise UnreadableFile(
            "empty_file", file, "", f"the file is empty ({len(data)} bytes); write it again"
        )
    return _load_text(decode(data, file), file)


def load_json_lines(data: bytes, file: str) -> Document:
    """Every line one JSON value; an empty file has none.

    Raises:
        UnreadableFile: ``bad_encoding``, ``truncated`` or ``bad_json``.
    """
    return _load_lines(decode(data, file), file)


def load_json_or_lines(data: bytes, file: str) -> Document:
    """One JSON value, or JSON lines if that fails and the first line is a whole object.

    Raises:
        UnreadableFile: ``empty_file``, ``bad_encoding``, ``truncated`` or ``bad_json``.
    """
    try:
        return load_json(data, file)
    except UnreadableFile as fault:
        if fault.problem.code not in ("bad_json", "truncated"):
            raise
        text = decode(data, file)
        if not _first_line_is_object(text):
            raise
    return _load_lines(text, file)


def position(text: str, offset: int) -> tuple[int, int]:
    """Line and column, both from 1, of a character of a text with any kind of line break."""
    line, start = 1, 0
    for found in _LINE_BREAK.finditer(text, 0, offset):
        line, start = line + 1, found.end()
    return line, offset - start + 1


def split_lines(text: str) -> list[str]:
    """Lines at CR, LF or CRLF only (not at the separators ``str.splitlines`` knows besides)."""
    return _LINE_BREAK.split(text) if "\r" in text else text.split("\n")


def _without_mark(data: bytes) -> bytes:
    for mark in (_UTF8_MARK, *_UTF16_MARKS):
        if data.startswith(mark):
            return data[len(mark) :]
    return data


def _load_text(text: str, file: str) -> Document:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        line, column = position(text, error.pos)
        place = f"line {line}, column {column}"
        if _is_cut(error, text):
            raise UnreadableFile(
                "truncated",
                file,
                place,
                "the JSON ends too early; nothing of it is used, write the file again",
            ) from None
        raise UnreadableFile(
            "bad_json", file, place, f"not JSON ({error.msg}); correct it or write it again"
        ) from None
    except RecursionError:
        raise UnreadableFile("bad_json", file, "", "the JSON is nested too deeply") from None
    except ValueError as error:  # a number of several thousand digits
        raise UnreadableFile("bad_json", file, "", f"not usable as JSON: {error}") from None
    return Document(value, surrogates="\\u" in text)


def _is_cut(error: json.JSONDecodeError, text: str) -> bool:
    """Whether the fault is the end of the data or a string that is never closed."""
    rest = text[error.pos : error.pos + 4096].strip()
    if not rest or error.msg.startswith("Unterminated string"):
        return True
    if rest in _CUT_NUMBERS or any(word.startswith(rest) for word in _LITERALS):
        return True
    return error.msg.startswith("Invalid \\") and '"' not in text[error.pos :]


def _first_line_is_object(text: str) -> bool:
    first = next((line for line in split_lines(text) if line.strip()), "")
    if not first.lstrip("\ufeff \t").startswith("{"):
        return False
    try:
        return isinstance(_load_text(first, "").value, dict)
    except UnreadableFile:
        return False


def _load_lines(text: str, file: str) -> Document:
    lines = split_lines(text)
    values: list[Any] = []
    numbers: list[int] = []
    surrogates = False
    for number, line in enumerate(lines, 1):
        if not line or line.isspace():
            continue
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            try:
                document = _load_text(line, file)
            except UnreadableFile as fault:
                raise _bad_line(fault, file, lines, number, len(values)) from None
            value, surrogates = document.value, surrogates or document.surrogates
        values.append(value)
        numbers.append(number)
    return Document(values, numbers, surrogates)


def _bad_line(
    fault: UnreadableFile, file: str, lines: list[str], number: int, good: int
) -> UnreadableFile:
    before = f"{good} line{'' if good == 1 else 's'} before it good"
    if lines[-1] and not any(line.strip() for line in lines[number:]):  # cut, no line break after
        return UnreadableFile(
            "truncated",
            file,
            f"line {number}",
            f"the file ends inside a line ({before}); nothing of it is used, write it again",
        )
    _, _, column = fault.problem.place.partition("column ")
    place = f"line {number}" + (f", column {column}" if column else "")
    return UnreadableFile(
        "bad_json", file, place, f"not JSON ({before}); correct the line or write the file again"
    )
