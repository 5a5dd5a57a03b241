"""Encodings, JSON faults and JSON lines."""

from __future__ import annotations

import json
from math import isnan
from pathlib import Path
from typing import Any

import pytest

from omnijudge.transcripts.files import (
    UnreadableFile,
    decode,
    load_json,
    load_json_lines,
    load_json_or_lines,
    position,
    read_bytes,
    read_json,
    split_lines,
)

VALUE = {"text": "灯亮了 – ok 😀", "n": [1, 2.5, None, True]}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_marks(encoding: str) -> None:
    data = json.dumps(VALUE, ensure_ascii=False).encode(encoding)
    assert load_json(data, "f").value == VALUE


def test_big_endian_with_mark() -> None:
    data = b"\xfe\xff" + json.dumps(VALUE).encode("utf-16-be")
    assert load_json(data, "f").value == VALUE


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b'{"a": "caf\xe9"}', "byte 10"),
        (b'\xef\xbb\xbf{"a": "\xff"}', "byte 10"),
        ("plain text é".encode("latin-1"), "byte 11"),
        (b'{"a": "\xed\xa0\x80"}', "byte 7"),
        ("{}".encode("utf-32"), "byte 0"),
        (b"\xff\xfea\x00\x00\xd8b\x00", "byte 4"),
    ],
)
def test_other_encodings_are_refused_with_the_byte(data: bytes, place: str) -> None:
    with pytest.raises(UnreadableFile) as caught:
        decode(data, "f.json")
    problem = caught.value.problem
    assert (problem.code, problem.place, problem.file) == ("bad_encoding", place, "f.json")
    assert "UTF-8" in problem.message


def test_json_cut_inside_a_character_is_truncated() -> None:
    data = '{"text": "灯亮'.encode()[:-1]
    with pytest.raises(UnreadableFile) as caught:
        load_json(data, "f")
    assert caught.value.problem.code == "truncated"


WHOLE = '{"a": [1.5, true, null, "b\\u4e2d\\n"], "c": -2e+3}'


@pytest.mark.parametrize("length", range(1, len(WHOLE)))
def test_json_cut_anywhere_is_truncated(length: int) -> None:
    with pytest.raises(UnreadableFile) as caught:
        load_json(WHOLE[:length].encode(), "f")
    assert caught.value.problem.code == "truncated"
    assert caught.value.problem.place.startswith("line 1, column ")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a": 1,}', "line 1, column 9"),
        ('{\n "a": 1\n "b": 2}', "line 3, column 2"),
        ('{\r\n "a": 1\r\n "b": 2}', "line 3, column 2"),
        ('{\r "a": 1\r "b": 2}', "line 3, column 2"),
        ('{"a": hello}', "line 1, column 7"),
        ("{'a': 1}", "line 1, column 2"),
        ('{"a": 1} trailing', "line 1, column 10"),
        ('{"a": "b\nc"}', "line 1, column 9"),
        ('{"a": "\\x"}', "line 1, column 8"),
    ],
)
def test_other_faults_are_bad_json(text: str, place: str) -> None:
    with pytest.raises(UnreadableFile) as caught:
        load_json(text.encode(), "f")
    problem = caught.value.problem
    assert problem.code == "bad_json"
    assert problem.place == place


def test_nesting_without_end() -> None:
    with pytest.raises(UnreadableFile) as caught:
        load_json(b"[" * 200_000 + b"]" * 200_000, "f")
    assert caught.value.problem.code == "bad_json"


def test_not_a_number_tokens_are_read_as_python_reads_them() -> None:
    value = load_json(b'{"a": NaN, "b": Infinity, "c": -Infinity, "d": 1e999}', "f").value
    assert isnan(value["a"])
    assert (value["b"], value["c"], value["d"]) == (float("inf"), float("-inf"), float("inf"))


def test_last_of_duplicate_keys_wins() -> None:
    assert load_json(b'{"a": 1, "a": 2}', "f").value == {"a": 2}
    assert load_json(b'{"a": NaN, "a": 2}', "f").value == {"a": 2}


def test_a_number_of_thousands_of_digits() -> None:
    with pytest.raises(UnreadableFile) as caught:
        load_json(b'{"a": ' + b"9" * 6000 + b"}", "f")
    assert caught.value.problem.code == "bad_json"


@pytest.mark.parametrize("data", [b"", b" \n\t\r\n", b"\xef\xbb\xbf", b"\xff\xfe \x00\n\x00"])
def test_empty(data: bytes) -> None:
    with pytest.raises(UnreadableFile) as caught:
        load_json(data, "f")
    assert caught.value.problem.code == "empty_file"
    assert load_json_lines(data, "f").value == []


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile) as caught:
        read_json(tmp_path / "none.json")
    assert caught.value.problem.code == "missing_file"
    assert "none.json" in str(caught.value)
    with pytest.raises(UnreadableFile) as caught:
        read_bytes(tmp_path)
    assert caught.value.problem.code == "unreadable_file"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_lines(end: str, last: bool) -> None:
    text = end.join(['{"a": 1}', "", '{"b": "x\u2028y"}', "  "]) + (end if last else "")
    document = load_json_or_lines(text.encode(), "f")
    assert document.value == [{"a": 1}, {"b": "x\u2028y"}]
    assert document.lines == [1, 3]


def test_one_line_is_one_value() -> None:
    document = load_json_or_lines(b'{"a": 1}\n', "f")
    assert (document.value, document.lines) == ({"a": 1}, None)


@pytest.mark.parametrize(
    ("text", "code", "place", "good"),
    [
        ('{"a": 1}\n{"b": 2}\n{"c": ', "truncated", "line 3", "2 lines"),
        ('{"a": 1}\n{"c": \n   ', "truncated", "line 2", "1 line "),
        ('{"a": 1}\n{"c": \n', "bad_json", "line 2, column", "1 line "),
        ('{"a": 1}\n\n{"c" 3}\n{"d": 4}', "bad_json", "line 3, column", "1 line "),
    ],
)
def test_bad_lines(text: str, code: str, place: str, good: str) -> None:
    with pytest.raises(UnreadableFile) as caught:
        load_json_or_lines(text.encode(), "f")
    problem = caught.value.problem
    assert problem.code == code
    assert problem.place.startswith(place)
    assert good in problem.message


def test_a_broken_list_is_not_taken_for_lines() -> None:
    with pytest.raises(UnreadableFile) as caught:
        load_json_or_lines(b"[1, 2]\n[3, 4", "f")
    assert caught.value.problem.code == "bad_json"


@pytest.mark.parametrize(
    ("text", "offset", "expected"),
    [("ab", 1, (1, 2)), ("a\nb\r\ncd", 6, (3, 2)), ("a\rb", 2, (2, 1)), ("", 0, (1, 1))],
)
def test_positions(text: str, offset: int, expected: tuple[int, int]) -> None:
    assert position(text, offset) == expected


def test_only_line_breaks_split() -> None:
    text = "a\x0bb\x1cc\u2028d\x85e\nf\r\ng\rh"
    assert split_lines(text) == ["a\x0bb\x1cc\u2028d\x85e", "f", "g", "h"]


@pytest.mark.parametrize(
    ("content", "text", "count"),
    [
        (r'{"chunks": [{"text": "a\ud83d\ude00", "timestamp": [1.0, 2.0]}]}', "a😀", 0),
        (r'{"chunks": [{"text": "a\ud83d", "timestamp": [1.0, 2.0]}]}', "a\ufffd", 1),
        (r'{"chunks": [{"text": "\ude00\ud83d!", "timestamp": [1.0, 2.0]}]}', "\ufffd\ufffd!", 2),
    ],
)
def test_halves_of_surrogate_pairs(read: Any, content: str, text: str, count: int) -> None:
    found = read(content)
    assert found.chunks[0].text == text
    assert {p.code: p.count for p in found.problems} == (
        {"replaced_surrogates": count} if count else {}
    )


def test_halves_in_words(read: Any) -> None:
    found = read(
        r'[{"word": "a\ud83d", "start": 1.0, "end": 2.0}, {"word": "b", "start": 2.0, "end": 3.0}]'
    )
    assert [word.text for word in found.chunks[0].words] == ["a\ufffd", "b"]
    assert {p.code: p.count for p in found.problems} == {
        "grouped_words": 2,
        "replaced_surrogates": 2,
    }


def test_a_mark_is_worth_knowing(read: Any) -> None:
    found = read(b"\xef\xbb\xbfWEBVTT\n")
    assert [p.code for p in found.problems] == ["empty_transcript", "byte_order_mark"]
