"""The Whisper family and the millisecond recognisers."""

from __future__ import annotations

from typing import Any

import pytest

from omnijudge.transcripts.millisecond import tokens
from omnijudge.transcripts.types import Transcript, Word


def codes(transcript: Transcript) -> dict[str, int]:
    return {p.code: p.count for p in transcript.problems}


def refusal(transcript: Transcript) -> str | None:
    return None if transcript.refused is None else transcript.refused.code


def test_whisper_chunks_inner_open_end(read: Any) -> None:
    root = {
        "chunks": [
            {"text": " One.", "timestamp": [1.0, None]},
            {"text": " Two.", "timestamp": [4.0, 5.0]},
            {"text": " Three.", "timestamp": [6.0, None]},
            {"text": " Four.", "timestamp": [None, 7.0]},
            {"text": " Five.", "timestamp": [8.0]},
            {"text": " Six.", "timestamp": [9.0, None]},
        ]
    }
    found = read(root, duration=10.0)
    assert found.format == "whisper_chunks"
    # No time of the fourth and fifth: the third runs to the end of the clip.
    assert [(c.id, c.start, c.end) for c in found.chunks] == [
        (0, 1.0, 4.0),
        (1, 4.0, 5.0),
        (2, 6.0, 10.0),
        (5, 9.0, 10.0),
    ]
    assert codes(found) == {"open_ends": 3, "dropped_bad_time": 2, "overlap": 1}


def test_root_words_go_to_the_last_segment_that_has_begun(read: Any) -> None:
    root = {
        "segments": [
            {"start": 2.0, "end": 3.0, "text": "b"},
            {"start": 4.0, "end": 5.0, "text": "c"},
        ],
        "words": [
            {"word": "early", "start": 1.0, "end": 1.5},
            {"word": "on", "start": 2.0, "end": 2.2},
            {"word": "7"},
            {"word": "late", "start": 9.0, "end": 9.5},
        ],
    }
    found = read(root)
    assert [[w.text for w in c.words] for c in found.chunks] == [["early", "on", "7"], ["late"]]
    assert codes(found) == {"words_interpolated": 1, "words_outside": 2}


def test_root_words_are_not_used_beside_words_of_segments(read: Any) -> None:
    root = {
        "segments": [
            {"start": 2.0, "end": 3.0, "text": "a", "words": [{"word": "a", "start": 2, "end": 3}]},
            {"start": 4.0, "end": 5.0, "text": "c"},
        ],
        "words": [{"word": "c", "start": 4.0, "end": 4.2}],
    }
    assert [len(c.words) for c in read(root).chunks] == [1, 0]


def test_segments_in_a_list_of_one(read: Any) -> None:
    found = read([{"segments": [{"start": 1.0, "end": 2.0, "text": "Hi."}]}])
    assert found.format == "whisper_segments"
    assert len(found.chunks) == 1


@pytest.mark.parametrize(
    "root",
    [
        {"segments": [[0, 0.0, 1.5, " Hi."]]},
        {"segments": [{"start": 0.0, "end": 1.0, "text": "a"}, [0.0, 1.5, "Hi."]]},
        [[0.0, 1.5, " Hi."]],
    ],
)
def test_tuple_dumps(read: Any, root: Any) -> None:
    found = read(root)
    assert refusal(found) == "wrong_format"
    assert "segments as objects" in found.refused.message
    assert "format" in found.refused.message


@pytest.mark.parametrize(
    "root",
    [
        [{"segments": []}, {"segments": []}],
        [{"transcription": []}, {"transcription": []}],
        [{"transcripts": []}, {"transcripts": []}],
        [{"key": "a", "text": "x", "sentence_info": []}, {"key": "b", "sentence_info": []}],
        {"transcripts": [{"channel_id": 0, "sentences": []}, {"channel_id": 1}]},
    ],
)
@pytest.mark.parametrize("explicit", [False, True])
def test_several_results(read: Any, root: Any, explicit: bool) -> None:
    names = {"segments": "whisper_segments", "transcription": "whisper_cpp"}
    names |= {"transcripts": "dashscope_asr", "key": "funasr"}
    first = root[0] if isinstance(root, list) else root
    options = {"format": names[next(iter(first))]} if explicit else {}
    assert refusal(read(root, **options)) == "several_results"


def test_several_results_on_lines(read: Any) -> None:
    found = read('{"key": "a", "sentence_info": []}\n{"key": "b", "sentence_info": []}\n')
    assert refusal(found) == "several_results"
    assert "2 lines" in found.refused.message
    assert "a, b" in found.refused.message


@pytest.mark.parametrize("key", ["words", "word_segments", "time_stamps"])
def test_word_lists_at_the_root(read: Any, key: str) -> None:
    listed = [
        {"text": "Go", "timestamp": [1.0, 1.5]},
        {"word": "on", "start_time": 1.5, "end_time": 2.0},
    ]
    found = read({"text": "Go on", key: listed})
    assert found.format == "word_list"
    assert found.chunks[0].words == (Word(1.0, 1.5, "Go"), Word(1.5, 2.0, "on"))
    assert found.chunks[0].text == "Go on"


def test_whisper_cpp_clock_texts(read: Any) -> None:
    root = {
        "transcription": [
            {"timestamps": {"from": "00:01:02,500", "to": "01:00:00,000"}, "text": " Hi."},
            {"timestamps": {"from": "later", "to": "01:00:00,000"}, "text": " Hi."},
        ]
    }
    found = read(root, time_unit="s")
    assert [(c.start, c.end) for c in found.chunks] == [(62.5, 3600.0)]
    assert codes(found)["time_unit_ignored"] == 1
    assert codes(found)["dropped_bad_time"] == 1


def test_whisper_cpp_unit_can_be_overruled(read: Any) -> None:
    root = {"transcription": [{"offsets": {"from": 2.5, "to": 3}, "text": " Hi."}]}
    assert [(c.start, c.end) for c in read(root, time_unit="s").chunks] == [(2.5, 3.0)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("门开了，有3个人。", ["门", "开", "了", "有", "3", "个", "人"]),
        ("don't stop; it’s 8.5 'ok'", ["don't", "stop", "it’s", "8", "5", "'ok'"]),
        ("snake_case — done '", ["snake", "case", "done"]),
        ("カタカナ 한글", ["カタカナ", "한글"]),
        ("，。", []),
    ],
)
def test_tokens(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_funasr_mismatch(read: Any) -> None:
    root = [{"key": "k", "text": "three words here", "timestamp": [[100, 200], [300, 900]]}]
    found = read(root)
    assert [(c.text, c.start, c.end, c.words) for c in found.chunks] == [
        ("three words here", 0.1, 0.9, ())
    ]
    assert codes(found) == {"words_mismatch": 1}


def test_funasr_sentences_without_pairs(read: Any) -> None:
    root = {
        "text": "…",
        "sentence_info": [
            {"text": "你好", "start": 1000, "end": 1400, "spk": 0},
            {"text": "再见", "start": 3000, "end": 3400, "spk": 1, "timestamp": [[3000, 3200]]},
        ],
    }
    found = read(root)
    assert [(c.start, c.end) for c in found.chunks] == [(1.0, 1.4), (3.0, 3.2)]
    assert codes(found) == {"speakers": 2, "words_mismatch": 1}
    assert [c.text for c in read(root, speaker="1").chunks] == ["再见"]


def test_funasr_silence(read: Any) -> None:
    found = read([{"key": "k", "text": "", "timestamp": []}])
    assert (found.format, codes(found)) == ("funasr", {"empty_transcript": 1})


def test_funasr_text_without_times(read: Any) -> None:
    assert refusal(read({"key": "k", "text": "hello", "timestamp": []})) == "no_times"


def test_dashscope_speaker_and_text_only(read: Any) -> None:
    sentence = {"begin_time": 100, "end_time": 900, "text": "Hi.", "speaker_id": 2}
    root = {"transcripts": [{"channel_id": 0, "sentences": [sentence]}]}
    assert [c.text for c in read(root, speaker="2").chunks] == ["Hi."]
    assert refusal(read({"transcripts": [{"channel_id": 0, "text": "Hi."}]})) == "no_times"
    assert codes(read({"transcripts": []})) == {"empty_transcript": 1}
