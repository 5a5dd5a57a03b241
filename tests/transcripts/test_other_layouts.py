"""Sentences, the adapters' files, vLLM-Omni's folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omnijudge.transcripts.files import UnreadableFile
from omnijudge.transcripts.types import Transcript
from omnijudge.transcripts.vllm_omni import (
    check_manifest,
    find_written_path,
    is_run_summary,
    run_clips,
)


def codes(transcript: Transcript) -> dict[str, int]:
    return {p.code: p.count for p in transcript.problems}


def chunks(transcript: Transcript) -> list[tuple[str, float, float]]:
    return [(c.text, c.start, c.end) for c in transcript.chunks]


def refusal(transcript: Transcript) -> str | None:
    return None if transcript.refused is None else transcript.refused.code


def lines(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


# sentences


def test_keys_of_sentences(read: Any) -> None:
    root = [
        {"sentence": " ", "text": None, "content": "First non-blank.", "start": None, "time": 4},
        {"sentence": "Both.", "text": "no", "start": 5, "current_time": 1, "end": None},
        {"sentence": "Reversed.", "start": "0:07", "end": 6},
        {"sentence": "", "start": 8},
        {"sentence": "No time."},
        {"sentence": "Bad end.", "start": 9, "end": "soon"},
    ]
    found = read(root)
    assert found.format == "sentences"
    assert chunks(found) == [
        ("First non-blank.", 4.0, 4.0),
        ("Both.", 5.0, 5.0),
        ("Reversed.", 6.0, 7.0),
        ("Bad end.", 9.0, 9.0),
    ]
    assert codes(found) == {
        "swapped": 1,
        "dropped_blank": 1,
        "dropped_bad_time": 1,
        "zero_length": 3,
    }


def test_in_duplexeval_ends_and_starts_are_raised(read: Any) -> None:
    root = {
        "sentences": [
            {"sentence": "Early.", "start": -2, "end": -1},
            {"sentence": "Reversed.", "start": 7, "end": 6},
            {"sentence": "", "start": 8},
            {"sentence": "Bad.", "start": True},
        ],
        "chunks": [{"text": "not read", "timestamp": [1, 2]}],
    }
    found = read(root, benchmark="omni_duplexeval")
    assert chunks(found) == [("Early.", 0.0, 0.0), ("Reversed.", 7.0, 7.0)]
    assert codes(found) == {"dropped_bad_time": 1, "zero_length": 2}


def test_times_that_are_all_zero_are_no_times(read: Any) -> None:
    zero = {"sentence": "Hi.", "start": 0.0, "end": 0.0}
    found = read([zero] * 3)
    assert refusal(found) == "no_media_clock"
    assert "start" in found.refused.message
    assert refusal(read([zero] * 2)) is None
    assert refusal(read([zero, zero, {"sentence": "Hi.", "start": 0.0, "end": 0.5}])) is None


@pytest.mark.parametrize(
    ("meta", "code", "problems"),
    [
        ({"clock": "media", "response_done": True}, None, {}),
        ({"clock": "media", "response_done": False}, None, {"ineligible": 1}),
        ({"clock": "invalid"}, "no_media_clock", {}),
        (["odd"], None, {}),
        ("{ broken", None, {}),
    ],
)
def test_meta_file(read: Any, tmp_path: Path, meta: Any, code: Any, problems: Any) -> None:
    (tmp_path / "s1.meta.json").write_text(meta if isinstance(meta, str) else json.dumps(meta))
    found = read([{"sentence": "Hi.", "start": 1.0, "end": 2.0}], name="s1.json")
    assert refusal(found) == code
    assert codes(found) == problems
    if code:
        assert "s1.meta.json" in found.refused.message


def test_silence_is_ordinary_in_sentences(read: Any) -> None:
    assert codes(read({"sentences": []})) == {}


# files of the adapters


def test_responses(read: Any) -> None:
    def record(text: str, *pieces: Any, **more: Any) -> dict[str, Any]:
        return {"triggered_at_second": 1, "text": text, "chunks": list(pieces), **more}

    piece = {"text": "x", "timestamp": [3, 4]}
    found = read(
        lines(record("Whole.", piece, {"timestamp": [4.0, 5.0]}), record("None."), ["odd"])
    )
    assert found.format == "oi_responses"
    assert chunks(found) == [("Whole.", 3.0, 5.0)]
    assert codes(found) == {"response_without_times": 1, "dropped_bad_time": 1}
    for bad in (
        record("a", piece, timestamp_method="by count"),
        record("a", piece | {"t_arrival_ms_from_turn_start": 3}),
    ):
        refused = read(lines(record("Whole.", piece), bad)).refused
        assert (refused.code, refused.place) == ("no_media_clock", "line 2")
        assert "wav_transcript.json" in refused.message


def test_model_output(read: Any) -> None:
    def second(at: Any, text: str, **more: Any) -> dict[str, Any]:
        return {"second": at, "text": text, "is_listen": False, "audio_bytes": 9, **more}

    found = read(
        lines(
            second(0, "a "),
            second(1, "b", end_of_turn=True),
            second(2, " "),
            second(3, "c"),
            second(4, "quiet", audio_bytes=0),
            second(5, "listening", is_listen=True),
            second(6, "d"),
        )
    )
    assert chunks(found) == [("a b", 0.0, 2.0), ("c", 3.0, 4.0), ("d", 6.0, 7.0)]
    assert codes(found) == {"silent_text": 1}
    arrival = {"second": 0, "text": "a", "user_transcript": "", "audio_bytes": 4}
    assert read(lines(arrival)).format == "oi_model_output"
    for records in ([arrival], [second(0, "a"), arrival | {"is_listen": False}]):
        assert refusal(read(lines(*records))) == "no_media_clock"


@pytest.mark.parametrize("name", ["oi_responses", "oi_model_output", "srt"])
def test_tools_that_leave_an_empty_file_after_silence(read: Any, name: str) -> None:
    found = read("\n", format=name)
    assert (found.format, codes(found)) == (name, {"empty_transcript": 1})
    refused = read("\n").refused
    assert refused.code == "empty_file"
    assert name in refused.message
    assert "1 bytes" in refused.message


# vLLM-Omni


def test_result_beside_a_transcript(read: Any, tmp_path: Path) -> None:
    root = {
        "chunks": [{"response_id": "a", "text": "Hi.", "timestamp": [1.0, 2.0]}],
        "timestamp_semantics": "from the start",
    }
    assert codes(read(root)) == {}
    result = tmp_path / "result.json"
    result.write_text('{"success": true, "official_eval_ineligible_reasons": ["audio_clipped"]}')
    found = read(root)
    assert codes(found) == {"ineligible": 1}
    assert "audio_clipped" in found.problems[0].message
    result.write_text('{"success": false}')
    assert refusal(read(root)) == "missing_output"
    assert refusal(read({"chunks": root["chunks"][:0]})) is None  # not a file of this tool
    result.write_text("broken")
    assert codes(read(root)) == {}


def test_silent_clip(read: Any) -> None:
    found = read({"text": "", "chunks": [], "timestamp_semantics": "x"})
    assert (found.format, found.chunks, codes(found)) == ("vllm_omniinteract", [], {})


def make_run(folder: Path, rows: list[Any]) -> None:
    (folder / "batch_summary.json").write_text(json.dumps({"results": rows}))


def test_run_folder(tmp_path: Path) -> None:
    for name in ("a--1", "b--2", "d--4"):
        (tmp_path / "1qna" / name).mkdir(parents=True)
    (tmp_path / "1qna" / "a--1" / "wav_transcript.json").write_text('{"chunks": []}')
    (tmp_path / "1qna" / "b--2" / ".failed.json").write_text("{}")
    rows: list[Any] = [
        {"output_dir": "C:\\out\\1qna\\a--1", "success": True, "video": "v"},
        {"output_dir": "/out/1qna/b--2", "success": True, "subset": "1qna"},
        {"output_dir": "/out/1qna/c--3", "success": True},
        {"output_dir": "/out/1qna/d--4", "success": True},
        {"output_dir": "/out/1qna/e--5", "success": False, "error": "timed out"},
        {"output_dir": "/out/1qna/f--6"},
        "odd",
    ]
    make_run(tmp_path, rows)
    clips = run_clips(tmp_path)
    assert [(c.sample_id, c.status, c.reason.split(" ")[0]) for c in clips] == [
        ("1qna__a--1", "ok", ""),
        ("1qna__b--2", "missing", "the"),
        ("1qna__c--3", "missing", "there"),
        ("1qna__d--4", "missing", "no"),
        ("1qna__e--5", "missing", "timed"),
        ("1qna__f--6", "missing", "`success`"),
    ]
    assert clips[0].path == tmp_path / "1qna" / "a--1" / "wav_transcript.json"
    assert is_run_summary({"results": rows})
    assert not is_run_summary({"results": [{"status": "ok", "success": True}]})


def test_run_folder_without_summary(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=r"batch_summary\.json"):
        run_clips(tmp_path)
    (tmp_path / "batch_summary.json").write_text("[]")
    with pytest.raises(UnreadableFile, match="results"):
        run_clips(tmp_path)


def test_complete_manifest(tmp_path: Path) -> None:
    manifest = tmp_path / "official_eval_manifest.jsonl"
    manifest.write_text('{"sample_id": "a"}\n')
    assert check_manifest(manifest) == []
    make_run(tmp_path, [{"success": True}])
    assert check_manifest(manifest) == []


def test_paths_of_another_machine(tmp_path: Path) -> None:
    target = tmp_path / "1q1a" / "annotations" / "0001.json"
    target.parent.mkdir(parents=True)
    target.write_text("{}")
    assert find_written_path("/far/data/1q1a/annotations/0001.json", tmp_path) == target
    assert find_written_path("D:\\data\\1q1a\\annotations\\0001.json", tmp_path) == target
    assert find_written_path(str(target), "/nowhere") == target
    assert find_written_path("/far/0002.json", tmp_path) is None
