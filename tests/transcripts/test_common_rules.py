"""Rules that every foreign format shares, on Whisper segments and word lists."""

from __future__ import annotations

from typing import Any

import pytest

from omnijudge.errors import ConfigError
from omnijudge.transcripts.types import Transcript


def codes(transcript: Transcript) -> dict[str, int]:
    return {p.code: p.count for p in transcript.problems}


def seg(start: Any, end: Any, text: str = "Hi.", **fields: Any) -> dict[str, Any]:
    return {"start": start, "end": end, "text": text, **fields}


def spans(transcript: Transcript) -> list[tuple[float, float]]:
    return [(c.start, c.end) for c in transcript.chunks]


def words(transcript: Transcript) -> list[tuple[str, Any, Any]]:
    return [
        (w.text, pytest.approx(w.start), pytest.approx(w.end))
        for c in transcript.chunks
        for w in c.words
    ]


def test_open_ends(read: Any) -> None:
    timed = [{"word": "Hi", "start": 4.0, "end": 6.5}, {"word": "you", "start": 4.5, "end": 5.0}]
    root = {
        "segments": [
            seg(1.0, None),
            seg(3.0, None, "Hi you", words=timed),
            {"start": 8.0, "text": "Next one is earlier."},
            seg(7.0, 7.5),
            seg(9.0, None),
        ]
    }
    assert spans(read(root, duration=30.0)) == [
        (1.0, 3.0),
        (3.0, 6.5),
        (8.0, 30.0),
        (7.0, 7.5),
        (9.0, 30.0),
    ]
    assert spans(read(root))[2:] == [(8.0, 8.0), (7.0, 7.5), (9.0, 9.0)]
    assert codes(read(root))["open_ends"] == 4
    assert spans(read(root, duration=9.0))[4] == (9.0, 9.0)


def test_no_start_takes_the_first_timed_word(read: Any) -> None:
    timed = [{"word": "So"}, {"word": "yes", "start": 2.0, "end": 2.5}]
    found = read({"segments": [seg(None, 3.0, "So yes", words=timed), seg("soon", 4.0)]})
    assert spans(found) == [(2.0, 3.0)]
    assert words(found) == [("So", 2.0, 2.0), ("yes", 2.0, 2.5)]
    assert codes(found) == {"words_interpolated": 1, "dropped_bad_time": 1}


def test_reversed_zero_negative_blank(read: Any) -> None:
    found = read(
        {
            "segments": [
                seg(3.0, 1.0),
                seg(4.0, 4.0),
                seg(-1.0, 0.5),
                seg(5.0, 6.0, " \n"),
                seg(7, 8),
            ]
        }
    )
    assert spans(found) == [(1.0, 3.0), (4.0, 4.0), (-1.0, 0.5), (7.0, 8.0)]
    assert codes(found) == {
        "swapped": 1,
        "zero_length": 1,
        "negative_time": 1,
        "dropped_blank": 1,
        "decreasing_starts": 1,
        "overlap": 1,
    }


def test_text_stays_as_written(read: Any) -> None:
    found = read({"segments": [seg(1, 2, "  Two cups \n"), seg(3, 4, " left.")]})
    assert [c.text for c in found.chunks] == ["  Two cups \n", " left."]


@pytest.mark.parametrize(
    ("start", "expected"),
    [("1:02.5", 62.5), (" 7 ", 7.0), (3, 3.0), (True, None), ("inf", None), ([1], None)],
)
def test_time_values(read: Any, start: Any, expected: float | None) -> None:
    found = read({"segments": [seg(start, 99.0), seg(99.0, 99.5)]})
    assert [c.start for c in found.chunks][:-1] == ([] if expected is None else [expected])


def test_words_without_times_share_their_gap(read: Any) -> None:
    listed = [
        {"word": "7"},
        {"word": "plus", "start": 1.5, "end": 2.0},
        {"word": "8"},
        {"word": "9"},
        {"word": "is", "start": 4.0, "end": 4.5},
        {"word": " "},
        {"word": "24", "start": 5.0},
        {"word": "!"},
    ]
    found = read({"segments": [seg(1.0, 6.0, "7 plus 8 9 is 24 !", words=listed)]})
    assert words(found) == [
        ("7", 1.0, 1.5),
        ("plus", 1.5, 2.0),
        ("8", 2.0, 3.0),
        ("9", 3.0, 4.0),
        ("is", 4.0, 4.5),
        ("24", 5.0, 5.0),
        ("!", 5.0, 6.0),
    ]
    assert codes(found) == {"words_interpolated": 5}
    assert found.problems[0].level == "warning"


def test_a_negative_gap_gives_no_length_at_its_left_edge(read: Any) -> None:
    listed = [
        {"word": "a", "start": 1.0, "end": 3.0},
        {"word": "b"},
        {"word": "c", "start": 2.0, "end": 3.5},
    ]
    found = read({"segments": [seg(1.0, 4.0, "a b c", words=listed)]})
    assert words(found)[1] == ("b", 3.0, 3.0)


def test_few_interpolated_words_are_only_worth_knowing(read: Any) -> None:
    listed = [{"word": f"w{n}", "start": float(n), "end": n + 1.0} for n in range(20)]
    listed[7] = {"word": "7"}
    found = read({"segments": [seg(0.0, 20.0, "long", words=listed)]})
    assert [(p.code, p.count, p.level) for p in found.problems] == [
        ("words_interpolated", 1, "info")
    ]


def test_no_timed_word_no_words(read: Any) -> None:
    found = read({"segments": [seg(1.0, 2.0, "a b", words=[{"word": "a"}, {"word": "b"}])]})
    assert found.chunks[0].words == ()
    assert codes(found) == {}


def word(text: str, start: float | None = None, end: float | None = None, **more: Any) -> Any:
    return {"word": text, "start": start, "end": end, **more}


def test_grouping_by_gaps(read: Any) -> None:
    found = read(
        [
            word("a", 0.0, 5.0),
            word("b", 1.0, 1.5),
            word("c", 5.999, 6.1),
            word("d", 7.1, 7.2),
            word("", 8.0, 8.1),
            word("e", 8.1999, 8.3),
        ]
    )
    assert [c.text for c in found.chunks] == ["a b c", "d e"]
    assert spans(found) == [(0.0, 6.1), (7.1, 8.3)]
    assert codes(found) == {"grouped_words": 5}


def test_a_gap_of_one_second_is_a_gap_whatever_the_floats_say(read: Any) -> None:
    # 0.7 + 1.0 > 1.7 - 1e-16 in binary
    found = read([word("a", 0.1, 0.7), word("b", 1.7, 2.0), word("c", 2.9999, 3.1)])
    assert [c.text for c in found.chunks] == ["a", "b c"]


def test_grouping_by_speaker(read: Any) -> None:
    listed = [
        word("a", 0.0, 0.5, speaker="A"),
        word("b", 0.5, 1.0, speaker="B"),
        word("c", 1.0, 1.5, speaker="B"),
        word("d", 1.5, 2.0, speaker="A"),
    ]
    found = read(listed)
    assert [c.text for c in found.chunks] == ["a", "b c", "d"]
    assert codes(found) == {"grouped_words": 4, "speakers": 2}
    found = read(listed, speaker="A")
    assert [c.text for c in found.chunks] == ["a", "d"]
    assert codes(found) == {"grouped_words": 4}


@pytest.mark.parametrize(
    ("texts", "joined"),
    [
        ([" Two", " cups"], " Two cups"),
        (["Two", " cups", " left"], "Two cups left"),
        (["Two", "cups ", " left"], "Two cups left"),
        (["水", "开了"], "水开了"),
        (["水", "ok"], "水ok"),
        ([" 水", " ok"], " 水 ok"),
        ([" solo "], " solo "),
    ],
)
def test_text_of_grouped_words(read: Any, texts: list[str], joined: str) -> None:
    found = read([word(t, float(n), n + 0.5) for n, t in enumerate(texts)])
    assert [c.text for c in found.chunks] == [joined]


def test_untimed_words_are_filled_before_grouping(read: Any) -> None:
    found = read(
        [
            word("first"),
            word("a", 1.0, 1.5),
            word("7"),
            word("8"),
            word("b", 4.5, 5.0),
            word("last"),
        ]
    )
    assert words(found) == [
        ("first", 1.0, 1.0),
        ("a", 1.0, 1.5),
        ("7", 1.5, 3.0),
        ("8", 3.0, 4.5),
        ("b", 4.5, 5.0),
        ("last", 5.0, 5.0),
    ]
    assert len(found.chunks) == 1
    assert codes(found) == {"grouped_words": 6, "words_interpolated": 4}


def test_unit_and_offset_together(read: Any) -> None:
    listed = [word("now", 1500, 1800)]
    root = {"segments": [seg(1500, 2500, "now", words=listed)]}
    found = read(root, time_unit="ms", time_offset=-1.25)
    assert spans(found) == [(0.25, 1.25)]
    assert words(found) == [("now", 0.25, 0.55)]
    assert codes(read(root, time_unit="ms", time_offset=-2.0)) == {"negative_time": 1}


def test_speakers(read: Any) -> None:
    root = {
        "segments": [
            seg(1.0, None, speaker="A"),
            seg(2.0, 3.0, speaker="B"),
            seg(4.0, 5.0),
            seg(6.0, 7.0, "", speaker="C"),
        ]
    }
    assert len(read(root).chunks) == 3
    assert codes(read(root)) == {"open_ends": 1, "speakers": 3, "dropped_blank": 1}
    found = read(root, speaker="A")
    assert spans(found) == [(1.0, 2.0)]  # closed by the next entry, whoever speaks there
    assert codes(found) == {"open_ends": 1}
    found = read(root, speaker="Z")
    assert found.chunks == []
    assert codes(found) == {"speaker_absent": 1}
    assert "A, B, C" in found.problems[0].message
    unlabelled = {"segments": [seg(1.0, 2.0)]}
    assert codes(read(unlabelled, speaker="A")) == {"speaker_absent": 1}


def test_labels_may_be_numbers(read: Any) -> None:
    root = {"segments": [seg(1.0, 2.0, speaker=0), seg(3.0, 4.0, "Yes.", speaker=1)]}
    assert [c.text for c in read(root, speaker="1").chunks] == ["Yes."]


def test_no_chunk_and_nothing_else_to_say(read: Any) -> None:
    assert codes(read({"segments": []})) == {"empty_transcript": 1}
    assert codes(read({"segments": [seg(1.0, 2.0, "")]})) == {"dropped_blank": 1}
    assert codes(read({"words": []})) == {"empty_transcript": 1}


@pytest.mark.parametrize(
    "root",
    [
        {"segments": [{"text": "No times here."}, {"text": ""}]},
        {"segments": [seg(None, None)]},
        {"segments": [seg(None, None, "a", words=[{"word": "a"}])]},
        {"words": [{"word": "no"}, {"word": "times"}]},
        {"transcription": [{"text": "no times"}]},
    ],
)
def test_text_without_any_time_is_refused(read: Any, root: Any) -> None:
    found = read(root)
    assert found.refused is not None
    assert found.refused.code == "no_times"
    assert "timestamps" in found.refused.message


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"format": "wisper_segments"}, "whisper_segments"),
        ({"format": "xml"}, "known formats"),
        ({"time_unit": "us"}, "time_unit"),
        ({"time_offset": float("nan")}, "time_offset"),
    ],
)
def test_wrong_settings(read: Any, options: dict[str, Any], hint: str) -> None:
    with pytest.raises(ConfigError, match=hint):
        read({"segments": []}, **options)
