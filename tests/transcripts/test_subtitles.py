"""SRT and WebVTT."""

from __future__ import annotations

from typing import Any

import pytest

from omnijudge.transcripts.types import Transcript


def codes(transcript: Transcript) -> dict[str, int]:
    return {p.code: p.count for p in transcript.problems if p.code != "byte_order_mark"}


def cues(transcript: Transcript) -> list[tuple[float, float, str]]:
    return [(c.start, c.end, c.text) for c in transcript.chunks]


def refusal(transcript: Transcript) -> str | None:
    return None if transcript.refused is None else transcript.refused.code


SRT = "1\n00:00:01,000 --> 00:00:02,000\nOne.\n\n2\n00:00:03,000 --> 00:00:04,500\nTwo\nlines.\n"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("name", ["auto", "srt"])
def test_line_ends_and_marks(read: Any, end: str, encoding: str, name: str) -> None:
    found = read(SRT.replace("\n", end).encode(encoding), format=name)
    assert cues(found) == [(1.0, 2.0, "One."), (3.0, 4.5, "Two lines.")]
    assert codes(found) == {}


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("00:00:01,5", 1.5),
        ("00:01.05", 1.05),
        ("01:02", 62.0),
        ("0:00:01.250", 1.25),
        ("100:00:00,001", 360000.001),
    ],
)
def test_times(read: Any, written: str, seconds: float) -> None:
    found = read(f"{written}-->999:59:59,999\nHi.\n")
    assert [c.start for c in found.chunks] == [pytest.approx(seconds, abs=1e-9)]


@pytest.mark.parametrize(
    "line",
    [
        "00:00:61,000 --> 00:01:02,000",
        "00:60:01,000 --> 00:01:02,000",
        "0:1,000 --> 0:2,000",
        "00:00:01;000 --> 00:00:02,000",
        "soon --> later",
        "00:00:01,000 -->",
    ],
)
def test_bad_timing_lines_drop_their_cue(read: Any, line: str) -> None:
    text = f"1\n00:00:00,100 --> 00:00:00,900\nKept.\n\n2\n{line}\nLost.\n\n"
    found = read(text)
    assert cues(found) == [(0.1, 0.9, "Kept.")]
    assert codes(found) == {"bad_cues": 1}
    assert found.problems[0].place == "line 6"


def test_text_of_cues(read: Any) -> None:
    text = (
        "7\n00:00:01,000 --> 00:00:02,000 X1:0\n\n<b>Bold</B> and {\\an8}up\n\nafter a blank\n"
        "8\n00:00:03,000 --> 00:00:04,000\n[Anna] 2 &amp; <x> {y}\n42\n\n"
        "9\n00:00:05,000 --> 00:00:06,000\n<font color=red>灯</font>\n亮了\n\n"
        "10\n00:00:07,000 --> 00:00:08,000\n<i> </i>\n"
    )
    found = read(text)
    assert cues(found) == [
        (1.0, 2.0, "Bold and up after a blank"),
        (3.0, 4.0, "[Anna] 2 &amp; <x> {y} 42"),
        (5.0, 6.0, "灯亮了"),
    ]
    assert codes(found) == {"blank_in_cue": 1, "dropped_blank": 1}


def test_chinese_in_markup_does_not_decide_the_join(read: Any) -> None:
    found = read("00:01,000 --> 00:02,000\n<font face='微软雅黑'>two</font>\nlines\n")
    assert found.chunks[0].text == "two lines"


@pytest.mark.parametrize(
    "tail",
    [
        "3\n00:00:05,000 --> 00:0",
        "3\n00:00:05,000 --> 00:00:06,000",
        "3\n00:00:05,0",
        "3",
    ],
)
def test_cut_inside_a_cue(read: Any, tail: str) -> None:
    found = read(SRT + "\n" + tail)
    assert refusal(found) == "truncated"
    assert found.refused.place == f"line {9 + tail.count(chr(10)) + 1}"


def test_the_last_text_needs_no_line_break(read: Any) -> None:
    assert len(read(SRT.rstrip("\n")).chunks) == 2
    assert len(read(SRT + "\n").chunks) == 2


def test_without_cues(read: Any) -> None:
    assert refusal(read("Just text.\n", format="srt")) == "no_times"
    assert refusal(read("Just text.\n")) == "unknown_format"
    assert refusal(read("", format="srt")) is None
    assert codes(read(" \r\n", format="srt")) == {"empty_transcript": 1}
    assert refusal(read("")) == "empty_file"


def test_detection_looks_at_three_lines(read: Any) -> None:
    assert read("\n\n1\n\nx\n00:01.0 --> 00:02.0\nHi.\n").format == "srt"
    assert refusal(read("a\nb\nc\n00:01.0 --> 00:02.0\nHi.\n")) == "unknown_format"


def test_settings(read: Any) -> None:
    found = read(SRT, time_unit="ms", time_offset=10.0)
    assert [c.start for c in found.chunks] == [11.0, 13.0]
    assert codes(found) == {"time_unit_ignored": 1}
    assert refusal(read(SRT, format="vtt")) == "wrong_format"
    assert refusal(read("WEBVTT\n", format="srt")) == "wrong_format"
    assert refusal(read({"segments": []}, format="srt")) == "wrong_format"
    assert refusal(read(SRT, format="whisper_segments")) == "wrong_format"
    assert read("WEBVTT\n\n00:01.000 --> 00:02.000\nHi.\n", format="webvtt").format == "vtt"


@pytest.mark.parametrize("header", ["WEBVTT", "WEBVTT - title", "WEBVTT\tx", "\ufeffWEBVTT"])
def test_vtt_header_alone_is_silence(read: Any, header: str) -> None:
    for rest in ("", "\n", "\nKind: captions\n\nNOTE nothing here\n"):
        found = read(header + rest)
        assert (found.format, codes(found)) == ("vtt", {"empty_transcript": 1})


def test_vtt_blocks(read: Any) -> None:
    text = """WEBVTT
Language: en

STYLE
::cue { color: red }

NOTE
00:09.000 --> 00:10.000
is in a note

REGION
id:r

first
00:01.000 --> 00:02,000 align:start
One
two.

stray
lines

3
00:00:03.000-->00:00:04.000
Three.
00:00:05.000 --> 00:00:06.000
Four.
"""
    found = read(text)
    # The line above a timing line is its identifier, even without a blank line between.
    assert cues(found) == [(1.0, 2.0, "One two."), (5.0, 6.0, "Four.")]
    assert codes(found) == {"blank_in_cue": 1, "dropped_blank": 1}


def test_vtt_cue_text(read: Any) -> None:
    text = (
        "WEBVTT\n\n00:01.000 --> 00:02.000\n"
        "<c.loud>2 &lt; 3</c> &#38; &#x4e2d;&nbsp;&unknown; &amp\n"
        "\n00:03.000 --> 00:04.000\n<b></b>\n"
    )
    found = read(text)
    assert cues(found) == [(1.0, 2.0, "2 < 3 & 中\xa0&unknown; &amp")]
    assert codes(found) == {"dropped_blank": 1}


def test_vtt_voices(read: Any) -> None:
    text = (
        "WEBVTT\n\n00:01.000 --> 00:02.000\nIntro <v.first Ann>Hi.</v>\n<v Bo B>Yes.\n"
        "<v Ann> Bye.\n\n00:03.000 --> 00:04.000\n<v Ann>\n"
    )
    found = read(text)
    assert cues(found) == [(1.0, 2.0, "Intro  "), (1.0, 2.0, "Hi. Bye."), (1.0, 2.0, "Yes. ")]
    assert codes(found) == {"speakers": 2, "dropped_blank": 1, "overlap": 2}
    assert cues(read(text, speaker="Bo B")) == [(1.0, 2.0, "Yes. ")]


def test_vtt_inner_timestamps(read: Any) -> None:
    text = (
        "WEBVTT\n\n00:10.000 --> 00:12.000\n<00:10.000><c>the</c> <00:10.500> <00:00:11.000><c>big"
        "</c> red\nbus<00:11.500>\n"
    )
    found = read(text, time_offset=1.0)
    assert found.chunks[0].text == "the  big red bus"
    assert [tuple(w) for w in found.chunks[0].words] == [
        (11.0, 11.5, "the"),
        (12.0, 12.5, "big red bus"),
    ]


def test_vtt_map_is_only_a_hint(read: Any) -> None:
    text = (
        "WEBVTT\nX-TIMESTAMP-MAP=LOCAL:00:00:02.000,MPEGTS:900000\n\n00:01.000 --> 00:02.000\nHi.\n"
    )
    found = read(text)
    assert cues(found) == [(1.0, 2.0, "Hi.")]
    assert codes(found) == {"timestamp_map": 1}
    assert "time_offset: 8" in found.problems[0].message


def test_vtt_cut_and_without_cues(read: Any) -> None:
    start = "WEBVTT\n\n00:01.000 --> 00:02.000\nHi.\n\n"
    assert refusal(read(start + "00:03.000 --> 00:0")) == "truncated"
    assert refusal(read(start + "00:03.000 --> 00:04.000")) == "truncated"
    assert refusal(read(start + "00:03.0")) == "truncated"
    assert refusal(read(start + "00:03.000 --> 00:04.000\nBye.")) is None
    assert refusal(read("WEBVTT\n\nOnly text.\n")) == "no_times"


def test_rolling_captions_are_reported(read: Any) -> None:
    text = (
        "WEBVTT\n\n00:01.000 --> 00:02.000\nthe red\n\n00:02.000 --> 00:03.000\nthe red bus\n\n"
        "00:03.000 --> 00:04.000\nthe red bus stops\n"
    )
    assert codes(read(text)) == {"repeated_text": 2}


def test_big_numbers_are_not_milliseconds_here(read: Any) -> None:
    found = read("25:00:00,000 --> 25:00:01,000\nHi.\n", duration=100.0)
    assert codes(found) == {"beyond_clip": 1}
