"""Suspicious times and texts of one transcript, each test at its limits."""

from __future__ import annotations

from typing import Any

import pytest

from omnijudge.transcripts.types import Transcript


def codes(transcript: Transcript) -> dict[str, int]:
    return {p.code: p.count for p in transcript.problems}


def segments(*spans: tuple[float, float], **fields: Any) -> dict[str, Any]:
    return {
        "segments": [
            {"start": s, "end": e, "text": f"{n} cups.", **fields} for n, (s, e) in enumerate(spans)
        ]
    }


def native(*spans: tuple[float, float], words: Any = ()) -> dict[str, Any]:
    return {
        "chunks": [
            {"timestamp": [s, e], "text": f"{n} cups.", "aligned_words": list(words)}
            for n, (s, e) in enumerate(spans)
        ]
    }


def with_words(start: float, end: float, *times: float) -> dict[str, Any]:
    listed = [{"word": "x", "start": t, "end": t} for t in times]
    return {"segments": [{"start": start, "end": end, "text": "x x", "words": listed}]}


@pytest.mark.parametrize(
    ("root", "mixed"),
    [
        (with_words(4.0, 6.0, 4000.0, 5000.0), True),
        (with_words(200.0, 205.0, 199000.0), True),
        (with_words(200.0, 205.0, 198999.0), False),
        (with_words(4000.0, 6000.0, 4.0, 5.0), True),
        (with_words(4000.0, 6000.0, 2.9), False),
        (with_words(4.0, 6.0, 9.0), False),  # a late first word alone
        (with_words(10.0, 12.0, 150.0), False),
    ],
)
def test_words_and_chunks_in_two_units(read: Any, root: Any, mixed: bool) -> None:
    found = read(root)
    assert (found.refused is not None) is mixed
    if mixed:
        assert found.refused.code == "mixed_units"
        assert found.refused.place == "chunk 0"
        chunk = root["segments"][0]
        assert f"{chunk['start']:g}" in found.refused.message
        assert f"{chunk['words'][0]['start']:g}" in found.refused.message


def test_one_outlier_is_not_mixed(read: Any) -> None:
    good = with_words(4.0, 6.0, 4.5)["segments"][0]
    odd = with_words(7.0, 9.0, 7500.0)["segments"][0]
    found = read({"segments": [good, good, odd]})
    assert found.refused is None
    assert "words_outside" in codes(found)
    assert read({"segments": [good, odd]}).refused.code == "mixed_units"


def test_chunks_in_two_units(read: Any) -> None:
    spans = [(1.0, 2.0)] * 9 + [(50_000.0, 51_000.0)]
    assert read(segments(*spans), duration=60.0).refused.code == "mixed_units"
    assert read(segments(*spans)).refused is None
    assert read(segments(*spans[-3:], (1.0, 2.0)), duration=10.0).refused is None
    found = read(segments(*[(1.0, 2.0)] * 10, spans[-1]), duration=60.0)
    assert found.refused is None
    assert "beyond_clip" in codes(found)
    text = "00:01.000 --> 00:02.000\nHi.\n\n14:00:00.000 --> 14:00:01.000\nHi.\n"
    assert read(text, duration=60.0).refused is None


def test_speech_after_the_end_is_not_mixed(read: Any) -> None:
    found = read(segments((1.0, 2.0), (40.0, 50.0), (66.0, 80.0)), duration=60.0)
    assert found.refused is None
    assert codes(found) == {"beyond_clip": 1}


def test_mixed_units_is_a_warning_in_the_benchmark_s_own_form(read: Any) -> None:
    word = {"text": "x", "start": 4000.0, "end": 5000.0}
    found = read(native((4.0, 6.0), words=[word]))
    assert found.refused is None
    assert len(found.chunks) == 1
    assert codes(found) == {"mixed_units": 1}
    found = read(native((1.0, 2.0), (50_000.0, 51_000.0)), duration=60.0)
    assert codes(found)["mixed_units"] == 1


@pytest.mark.parametrize(
    ("spans", "duration", "suspect"),
    [
        ([(61_000.0, 62_000.0), (64_000.5, 65_000.0)], 60.0, True),
        ([(61_000.0, 62_000.0), (64_000.5, 65_001.0)], 60.0, False),
        ([(59.0, 60.0), (61.0, 62.0), (66.0, 67.0)], 60.0, True),
        ([(1.0, 2.0), (61.0, 62.0), (2.0, 3.0)], 60.0, False),
        ([(0.0, 400.0), (500.0, 700.0), (900.0, 1000.0)], None, True),
        ([(0.0, 400.0), (500.0, 599.0), (900.0, 999.0)], None, False),
        ([(0.0, 400.0), (500.5, 700.0), (900.0, 1000.0)], None, False),
        ([(0.0, 400.0), (500.0, 700.0)], None, False),
    ],
)
def test_suspect_milliseconds(
    read: Any, spans: list[tuple[float, float]], duration: float | None, suspect: bool
) -> None:
    for root in (segments(*spans), native(*spans)):
        found = read(root, duration=duration)
        assert ("suspect_ms" in codes(found)) is suspect
        if suspect:
            problem = next(p for p in found.problems if p.code == "suspect_ms")
            assert "time_unit: ms" in problem.message
    assert "suspect_ms" not in codes(read(segments(*spans), duration=duration, time_unit="ms"))


def test_suspect_seconds(read: Any) -> None:
    def cpp(*spans: tuple[float, float]) -> dict[str, Any]:
        return {
            "transcription": [
                {"offsets": {"from": s, "to": e}, "text": f"{n} cups."}
                for n, (s, e) in enumerate(spans)
            ]
        }

    spans = [(1.0, 2.0), (3.0, 4.0), (50.0, 59.0)]
    found = read(cpp(*spans), duration=60.0)
    assert codes(found) == {"suspect_s": 1}
    assert "time_unit: s" in found.problems[0].message
    assert codes(read(cpp(*spans[:2]), duration=60.0)) == {}
    assert codes(read(cpp(*spans))) == {}
    assert codes(read(cpp(*spans, (400.0, 600.0)), duration=60.0)) == {}


def test_beyond_the_clip(read: Any) -> None:
    found = read(segments((1.0, 2.0), (2.0, 99.0), (60.5, 61.0), (60.6, 61.0)), duration=60.0)
    assert codes(found)["beyond_clip"] == 1
    assert "60 s" in next(p.message for p in found.problems if p.code == "beyond_clip")


def test_order_length_gaps_overlap(read: Any) -> None:
    spans = [
        (5.0, 6.0),
        (4.9989, 5.0),
        (5.0, 65.1),
        (125.05, 126.0),
        (186.01, 187.0),
        (187.0, 188.0),
    ]
    assert codes(read(segments(*spans))) == {
        "decreasing_starts": 1,
        "overlap": 2,
        "long_chunk": 1,
        "long_gap": 1,
    }
    close = [(5.0, 6.0), (5.95, 7.0), (6.999, 8.0), (68.0, 68.0), (67.9991, 127.9)]
    assert codes(read(segments(*close))) == {"zero_length": 1}


def test_negative_times(read: Any) -> None:
    for root in (native((-2.0, 3.0), (4.0, 5.0)), segments((-2.0, 3.0), (4.0, 5.0))):
        assert codes(read(root)) == {"negative_time": 1}
        assert codes(read(root, time_offset=2.0)) == {}


def test_words_outside(read: Any) -> None:
    assert codes(read(with_words(1.0, 2.0, 0.5, 2.5))) == {}
    assert codes(read(with_words(1.0, 2.0, 0.49))) == {"words_outside": 1}
    assert codes(read(with_words(1.0, 2.0, 2.51, 1.0))) == {"words_outside": 1}


@pytest.mark.parametrize(
    ("texts", "flagged"),
    [
        (["one"] * 8 + ["two words"] * 2, True),
        (["one"] * 7 + ["two words"] * 3, False),
        (["one"] * 9, False),
        (["四个汉字"] * 10, True),
        (["五个汉字了"] * 10, False),
        ([" one "] * 10, True),
    ],
)
def test_word_chunks(read: Any, texts: list[str], flagged: bool) -> None:
    root = {"chunks": [{"text": t, "timestamp": [n, n + 1]} for n, t in enumerate(texts)]}
    assert ("word_chunks" in codes(read(root))) is flagged


def test_blank_chunks_are_not_words(read: Any) -> None:
    root = {"chunks": [{"text": "", "timestamp": [n, n + 1]} for n in range(10)]}
    assert codes(read(root)) == {}


def test_repeated_text(read: Any) -> None:
    def texts(*found: str) -> dict[str, Any]:
        return {"segments": [{"start": n, "end": n + 1, "text": t} for n, t in enumerate(found)]}

    assert codes(read(texts("the red", " the red bus", "the red bus stops"))) == {
        "repeated_text": 2
    }
    assert codes(read(texts("the red", "the red bus", "stops"))) == {}
    assert codes(read(texts("the", "the red", "the"))) == {}
    assert codes(read(texts("Yes, I see.", "Yes, I see.", "Yes, I see."))) == {"repeated_text": 2}
