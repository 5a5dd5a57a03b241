"""Which format a file is taken for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from omnijudge.transcripts.options import ALIASES, FORMATS
from omnijudge.transcripts.types import Transcript

C = {"text": "a", "timestamp": [1.0, 2.0]}
S = {"text": "One word more.", "start": 1.0, "end": 2.0}


def refusal(transcript: Transcript) -> str | None:
    return None if transcript.refused is None else transcript.refused.code


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        ({"triggered_at_second": 1, "chunks": []}, "oi_responses"),
        ([{"second": 1, "text": "", "is_listen": True}], "oi_model_output"),
        ([{"type": "session.created"}], "realtime_events"),
        ({"type": "conversation.item.created"}, "realtime_events"),
        ({"type": "stream_start"}, "realtime_events"),
        ({"setupComplete": {}}, "realtime_events"),
        ({"chunks": [], "timestamp_semantics": "x"}, "vllm_omniinteract"),
        ({"chunks": [C, C | {"response_id": "r"}]}, "vllm_omniinteract"),
        ({"chunks": [C], "sentences": []}, "sentences"),
        ({"chunks": [{"sentence": "a", "timestamp": [1, 2]}]}, "sentences"),
        ({"chunks": ["odd", {"text": "a", "time": 1}]}, "sentences"),
        ([{"sentence": "a"}], "sentences"),
        ([{"content": "a", "start": 1}], "sentences"),
        ([{"text": "a", "time": 1}], "sentences"),
        ({"chunks": [C, {"text": "b", "timestamp": [3, None]}]}, "whisper_chunks"),
        ({"chunks": [{"text": "b", "timestamp": [3, None]}, C]}, "omniinteract"),
        ({"chunks": [C | {"aligned_words": []}, {"timestamp": [3, None]}]}, "omniinteract"),
        ({"chunks": [{"text": "b", "timestamp": ["3", None]}]}, "omniinteract"),
        ({"chunks": [C], "segments": [S]}, "omniinteract"),
        ({"chunks": []}, "omniinteract"),
        ({"segments": [], "words": []}, "whisper_segments"),
        ({"transcription": []}, "whisper_cpp"),
        ({"transcripts": []}, "dashscope_asr"),
        ({"sentence_info": [], "text": ""}, "funasr"),
        ([{"text": "a", "timestamp": [[1, 2]]}], "funasr"),
        ({"word_segments": []}, "word_list"),
        ([{"word": "a", "start": 1, "end": 2}], "word_list"),
        ([{"text": "a", "start": 1, "seek": 0}] * 3, "whisper_segments"),
        ([S, S], "whisper_segments"),
        ([S | {"text": "a"}] * 2, "whisper_segments"),
        ([S | {"text": "a"}] * 3, None),
        ([S | {"text": "好的"}] * 3, None),
        ([S | {"text": "水已经开了"}] + [S | {"text": "好"}] * 2, "whisper_segments"),
        ({"anything": 1}, "omniinteract"),
        ([{"anything": 1}], "omniinteract"),
        ({"text": " "}, "omniinteract"),
    ],
)
def test_signatures(read: Any, root: Any, expected: str | None) -> None:
    found = read(root)
    assert found.format == expected
    if expected is None:
        assert refusal(found) == "ambiguous_format"


def test_text_and_start_in_duplexeval(read: Any) -> None:
    words = [S | {"text": "a"}] * 3
    assert read(words, benchmark="omni_duplexeval").format == "sentences"


@pytest.mark.parametrize("benchmark", ["omni_duplexeval", "omni_interactscope"])
def test_other_json_is_unknown_in_other_benchmarks(read: Any, benchmark: str) -> None:
    found = read({"anything": 1, "else": 2}, benchmark=benchmark)
    assert refusal(found) == "unknown_format"
    assert "anything, else" in found.refused.message
    assert "format" in found.refused.message


def test_lines_that_fit_nothing_are_not_taken_for_silence(read: Any) -> None:
    assert refusal(read('{"a": 1}\n{"a": 2}\n')) == "unknown_format"


def test_empty_list(read: Any) -> None:
    found = read([])
    assert (found.format, found.refused) == (None, None)
    assert [p.code for p in found.problems] == ["empty_transcript"]


@pytest.mark.parametrize(
    ("root", "count"),
    [
        ({"chunks": [C, {"text": "b", "timestamp": [3, None]}]}, 1),
        ({"text": "no chunks"}, 0),
        ([], 0),
        ([[0.0, 1.0, "x"]], 0),
    ],
)
def test_the_published_evaluator_reads_its_own_form(read: Any, root: Any, count: int) -> None:
    found = read(root, profile="published")
    assert (found.format, len(found.chunks), found.refused) == ("omniinteract", count, None)


EXAMPLES = {
    "omniinteract": {"chunks": [C]},
    "vllm_omniinteract": {"chunks": [C | {"response_id": "r"}]},
    "sentences": [{"sentence": "Hi.", "start": 1}],
    "whisper_chunks": {"chunks": [C]},
    "whisper_segments": {"segments": [S]},
    "word_list": [{"word": "a", "start": 1.0, "end": 2.0}],
    "whisper_cpp": {"transcription": [{"offsets": {"from": 1, "to": 2}, "text": "a"}]},
    "funasr": {"text": "a", "timestamp": [[1, 2]]},
    "dashscope_asr": {"transcripts": [{"sentences": [{"begin_time": 1, "text": "a"}]}]},
    "realtime_events": [{"type": "session.created"}],
    "oi_responses": [{"triggered_at_second": 1, "text": "a", "chunks": [C]}],
    "oi_model_output": [{"second": 1, "text": "a", "is_listen": False}],
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_named_format_is_read_or_refused_but_never_another(read: Any, name: str) -> None:
    found = read(EXAMPLES[name], format=name)
    assert (found.format, found.refused) == (name, None)
    for other, example in EXAMPLES.items():
        found = read(example, format=name)
        if found.refused is None:
            assert found.format == name
        else:
            assert found.refused.code == "wrong_format"
            assert name in found.refused.message
            assert name != other


def test_a_named_format_decides_the_open_case(read: Any) -> None:
    words = [S | {"text": t, "start": n, "end": n + 0.5} for n, t in enumerate(["a", "b", "c"])]
    assert len(read(words, format="word_list").chunks) == 1
    assert len(read(words, format="whisper_segments").chunks) == 3


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_aliases(read: Any, alias: str, name: str) -> None:
    text = "WEBVTT\n\n00:01.000 --> 00:02.000\nHi.\n"
    assert read(text if name == "vtt" else EXAMPLES[name], format=alias).format == name
    assert name in FORMATS


@pytest.mark.parametrize(
    ("content", "code", "place"),
    [
        ('{"chunks": [', "truncated", "line 1, column 13"),
        ('{"chunks": [}', "bad_json", "line 1, column 13"),
        (b'{"chunks": "\xff"}', "bad_encoding", "byte 12"),
        ("\n\n", "empty_file", ""),
        ("42", "unknown_format", ""),
    ],
)
def test_faults_of_files(read: Any, content: Any, code: str, place: str) -> None:
    found = read(content)
    assert found.chunks == []
    assert found.refused is not None
    assert (found.refused.code, found.refused.place) == (code, place)
    assert found.refused.level == "error"


def test_missing_file(tmp_path: Any) -> None:
    from omnijudge.transcripts.reader import read_transcript

    found = read_transcript(tmp_path / "none.json")
    assert refusal(found) == "missing_file"


def test_names_and_suffixes_do_not_matter(read: Any) -> None:
    assert read(json.dumps(EXAMPLES["word_list"]), name="t.srt").format == "word_list"
