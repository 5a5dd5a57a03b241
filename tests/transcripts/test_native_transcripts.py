"""The benchmark's own form, OmniInteract rule 5."""

from __future__ import annotations

import json
from math import inf, isfinite
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnijudge.transcripts.native import parse_native
from omnijudge.transcripts.types import Chunk, Word
from omnijudge.values import parse_time, text_of


def codes(transcript: Any) -> dict[str, int]:
    return {p.code: p.count for p in transcript.problems}


def chunk(*times: Any, **fields: Any) -> dict[str, Any]:
    return {"text": "x", "timestamp": list(times), **fields}


@pytest.mark.parametrize("root", [None, [], "text", 3, {}, {"chunks": None}, {"chunks": {}}])
def test_without_a_list_the_system_was_silent(root: Any) -> None:
    found = parse_native(root, "f")
    assert found.chunks == []
    assert found.refused is None
    assert codes(found) == {"no_chunks": 1}


def test_an_empty_list_is_silence_without_a_word() -> None:
    assert parse_native({"chunks": []}, "f").problems == []


def test_ids_are_positions_in_the_list_as_written() -> None:
    root = {"chunks": [chunk(1, 2), chunk("soon", 2), 5, chunk(1.0), chunk(9.0, 3.0), chunk(0, 1)]}
    found = parse_native(root, "f")
    assert found.chunks == [
        Chunk(0, 1.0, 2.0, "x"),
        Chunk(4, 3.0, 9.0, "x"),
        Chunk(5, 0.0, 1.0, "x"),
    ]
    assert codes(found) == {"dropped_bad_time": 3, "swapped": 1}
    assert found.problems[0].place == "chunks[1]"


@pytest.mark.parametrize("text", ["", None, 0, False])
def test_chunks_without_text_are_kept(text: Any) -> None:
    root = {"chunks": [chunk(1.0, 2.0, text=text), {"timestamp": [3.0, 4.0]}]}
    assert [c.text for c in parse_native(root, "f").chunks] == ["", ""]


def test_times_as_the_benchmark_reads_them() -> None:
    root = {"chunks": [chunk("1:02.5", " 70 "), chunk(True, "0:00:02")]}
    assert [(c.start, c.end) for c in parse_native(root, "f").chunks] == [(62.5, 70.0), (1.0, 2.0)]


def test_words_are_sorted_swapped_and_may_be_blank() -> None:
    words = [
        {"text": "c", "start": 3.0, "end": 4.0},
        {"text": "", "start": "2", "end": 3},
        {"text": "a", "start": 2.0, "end": 1.0},
        {"text": "first", "start": 2.0, "end": 3.0},
        {"text": "lost", "start": None, "end": 3.0},
        "lost",
    ]
    found = parse_native({"chunks": [chunk(0.0, 9.0, aligned_words=words)]}, "f")
    assert found.chunks[0].words == (
        Word(1.0, 2.0, "a"),
        Word(2.0, 3.0, ""),
        Word(2.0, 3.0, "first"),
        Word(3.0, 4.0, "c"),
    )
    assert codes(found) == {"dropped_words": 2}


@pytest.mark.parametrize("bad", [inf, -inf, float("nan"), "inf", "nan", "1:nan"])
@pytest.mark.parametrize("side", [0, 1])
def test_times_that_no_interval_can_hold_refuse_the_transcript(bad: Any, side: int) -> None:
    times = [1.0, 2.0]
    times[side] = bad
    found = parse_native({"chunks": [chunk(0.0, 1.0), chunk(*times)]}, "f.json")
    assert found.chunks == []
    assert found.refused is not None
    assert found.refused.code == "non_finite_time"
    assert (found.refused.file, found.refused.place) == ("f.json", "chunks[1]")


def test_words_with_such_times_are_dropped() -> None:
    words = [{"text": "a", "start": 1.0, "end": inf}, {"text": "b", "start": 1.0, "end": 2.0}]
    found = parse_native({"chunks": [chunk(0.0, 3.0, aligned_words=words)]}, "f")
    assert found.chunks[0].words == (Word(1.0, 2.0, "b"),)


def plainly(root: Any) -> list[Chunk] | None:
    """Rule 5, word for word."""
    chunks: list[Chunk] = []
    for number, entry in enumerate(root["chunks"]):
        times = entry.get("timestamp") if isinstance(entry, dict) else None
        if not isinstance(times, list) or len(times) != 2:
            continue
        start, end = (parse_time(t) for t in times)
        if start is None or end is None:
            continue
        if not (isfinite(start) and isfinite(end)):
            return None
        words: list[Word] = []
        listed = entry.get("aligned_words")
        for word in listed if isinstance(listed, list) else []:
            if not isinstance(word, dict):
                continue
            left, right = parse_time(word.get("start")), parse_time(word.get("end"))
            if left is None or right is None or not (isfinite(left) and isfinite(right)):
                continue
            words.append(Word(min(left, right), max(left, right), text_of(word.get("text"))))
        words.sort(key=lambda w: (w.start, w.end))
        low, high = min(start, end), max(start, end)
        chunks.append(Chunk(number, low, high, text_of(entry.get("text")), tuple(words)))
    return chunks


times = st.one_of(
    st.floats(0, 50).map(lambda x: round(x, 1)),
    st.integers(-5, 50),
    st.sampled_from(["3", "1:02", "soon", "", None, True, float("nan")]),
)
texts = st.sampled_from(["", "ok", "好", None, 0, 12, ["a"]])
words: st.SearchStrategy[Any] = st.one_of(
    st.fixed_dictionaries({"start": times, "end": times}, optional={"text": texts}),
    st.sampled_from([None, "word", []]),
)
chunks = st.one_of(
    st.fixed_dictionaries(
        {"timestamp": st.one_of(st.lists(times, min_size=2, max_size=2), times, st.just([1.0]))},
        optional={"text": texts, "aligned_words": st.one_of(st.lists(words), texts)},
    ),
    st.sampled_from([None, "x", []]),
)


@settings(deadline=None)
@given(st.lists(chunks))
def test_the_fast_reading_is_the_plain_one(entries: list[Any]) -> None:
    root = {"chunks": entries}
    found = parse_native(root, "f")
    expected = plainly(root)
    if expected is None:
        assert found.refused is not None
    else:
        assert found.chunks == expected
        assert all(type(t) is float for c in found.chunks for t in (c.start, c.end))


def test_settings_apply(read: Any) -> None:
    root = {
        "chunks": [
            {
                "text": "one two",
                "timestamp": [1000, 3000],
                "speaker": "A",
                "aligned_words": [{"text": "one", "start": 1000, "end": 2000}],
            },
            {"text": "three", "timestamp": [4000, 4500], "speaker": "B"},
            {"text": "four", "timestamp": [5000, 5500]},
        ]
    }
    found = read(root, time_unit="ms", time_offset=0.5, speaker="A")
    assert found.chunks == [Chunk(0, 1.5, 3.5, "one two", (Word(1.5, 2.5, "one"),))]
    assert codes(found) == {}
    assert codes(read(root))["speakers"] == 2
    assert codes(read(root, speaker="C"))["speaker_absent"] == 1
    assert read(root, speaker=["B", "C"]).chunks[0].text == "three"


def test_bytes_of_the_file_do_not_matter(read: Any) -> None:
    root = {"chunks": [chunk(1.0, 2.0, text="好的")]}
    plain = read(root).chunks
    assert read(json.dumps(root, ensure_ascii=False).encode("utf-16")).chunks == plain
    assert read(b"\xef\xbb\xbf\r\n" + json.dumps(root).encode()).chunks == plain
