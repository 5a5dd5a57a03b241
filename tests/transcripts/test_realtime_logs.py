"""Realtime event logs: clocks, playback, replies."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from omnijudge.transcripts.event_log import audio_bytes
from omnijudge.transcripts.types import Transcript

START = {"type": "stream_start", "t": 100.0}


def codes(transcript: Transcript) -> dict[str, int]:
    return {p.code: p.count for p in transcript.problems}


def chunks(transcript: Transcript) -> list[tuple[str, Any, Any]]:
    return [(c.text, pytest.approx(c.start), pytest.approx(c.end)) for c in transcript.chunks]


def lines(*events: Any) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


def text(delta: str, t: float | None = None, reply: str = "r1", **more: Any) -> dict[str, Any]:
    event = {"type": "response.audio_transcript.delta", "response_id": reply, "delta": delta}
    return event | ({} if t is None else {"t": t}) | more


def audio(seconds: float, t: float | None, reply: str = "r1", **more: Any) -> dict[str, Any]:
    size = round(48000 * seconds)
    event = {"type": "response.audio.delta", "response_id": reply, "audio_bytes": size}
    return event | ({} if t is None else {"t": t}) | more


def test_one_loudspeaker(read: Any) -> None:
    found = read(
        lines(
            START,
            text("A long", 101.0),
            audio(2.0, 101.5),
            audio(3.0, 102.0),  # waits until 3.5
            text(" reply.", 102.0),
            text("Next.", 104.0, "r2"),
            audio(1.0, 104.0, "r2"),  # waits until 6.5
            text("Later.", 120.0, "r3"),
            audio(1.0, 120.0, "r3"),
        )
    )
    assert found.timing == "playback"
    assert chunks(found) == [
        ("A long reply.", 1.5, 6.5),
        ("Next.", 6.5, 7.5),
        ("Later.", 20.0, 21.0),
    ]
    assert codes(found) == {}


def test_cleared_audio(read: Any) -> None:
    found = read(
        lines(
            START,
            text("One two three.", 101.0),
            audio(2.0, 101.0),
            audio(2.0, 101.0),
            audio(2.0, 101.0),
            {"type": "input_audio_buffer.speech_started", "t": 102.5, "audio_start_ms": 2400},
            {"type": "input_audio_buffer.speech_started", "audio_start_ms": 2400},
            {"type": "output_audio_buffer.cleared", "response_id": "r1", "t": 102.5},
            audio(2.0, 103.0),  # comes too late
            text("Four.", 103.0, "r2"),
            audio(1.0, 103.0, "r2"),
            {"type": "output_audio_buffer.cleared", "response_id": "r2"},
            {"type": "output_audio_buffer.cleared", "response_id": "unknown", "t": 104.0},
        )
    )
    assert chunks(found) == [("One two three.", 1.0, 2.5), ("Four.", 3.0, 4.0)]
    assert codes(found) == {"possible_interruption": 1, "cleared_response": 1}


def test_a_reply_whose_audio_is_gone_takes_the_times_of_its_text(read: Any) -> None:
    found = read(
        lines(
            START,
            text("Playing.", 101.0),
            audio(5.0, 101.0),
            text("Que", 102.0, "r2"),
            text("ued.", 102.5, "r2"),
            audio(1.0, 102.5, "r2"),
            {"type": "output_audio_buffer.cleared", "response_id": "r2", "t": 103.0},
            {"type": "response.text.done", "response_id": "r3", "text": "Never timed."},
            text("No time.", None, "r4"),
        )
    )
    assert chunks(found) == [("Playing.", 1.0, 6.0), ("Queued.", 2.0, 2.5)]
    assert codes(found) == {
        "cleared_response": 1,
        "text_timing": 1,
        "response_without_times": 2,
        "overlap": 1,
    }


@pytest.mark.parametrize(
    ("session", "event", "seconds"),
    [
        ({}, {}, 1.0),
        ({"output_audio_format": "pcm16"}, {}, 1.0),
        ({"output_audio_format": "g711_alaw"}, {}, 6.0),
        ({"audio": {"output": {"format": {"type": "audio/pcmu"}}}}, {}, 6.0),
        ({"audio": {"output": {"format": {"type": "audio/pcm", "rate": 16000}}}}, {}, 1.5),
        ({"output_audio_format": "g711_ulaw"}, {"sample_rate_hz": 16000}, 3.0),
        ({}, {"mime_type": "audio/pcm;rate=48000"}, 0.5),
        ({}, {"mime_type": "audio/pcm;rate=48000", "sample_rate_hz": 12000}, 2.0),
    ],
)
def test_rates(read: Any, session: Any, event: Any, seconds: float) -> None:
    found = read(
        lines(
            {"type": "session.created", "session": session},
            START,
            text("Hi.", 101.0),
            audio(1.0, 101.0, **event),
        )
    )
    assert chunks(found) == [("Hi.", 1.0, 1.0 + seconds)]


@pytest.mark.parametrize(
    ("event", "size"),
    [
        ({"delta": base64.b64encode(b"x" * 100).decode()}, 100),
        ({"audio": base64.b64encode(b"x" * 101).decode() + "\n"}, 101),
        ({"delta": base64.b64encode(b"x" * 102).decode(), "audio_bytes": 7}, 102),
        ({"delta": "<6401 b64 chars>"}, 4800),
        ({"delta": "<6401 b64 chars>", "audio_bytes": 12}, 12),
        ({"audio_bytes": 12}, 12),
        ({"delta": ""}, 0),
        ({"delta": "not base64!"}, None),
        ({}, None),
    ],
)
def test_sizes(event: dict[str, Any], size: int | None) -> None:
    assert audio_bytes(event) == size


@pytest.mark.parametrize(
    ("key", "start", "at"),
    [
        ("_client_received_at_s", 5000.0, 5002.5),
        ("received_at_s", "5000", "5002.5"),
        ("received_at_ms", 1000, 3500),
        ("t_ms", 0, 2500),
        ("received_at", "2026-01-31T23:59:59Z", "2026-02-01T00:00:01.5+00:00"),
        ("timestamp", "2026-01-31T23:59:59+08:00", "2026-01-31T16:00:01.5Z"),
    ],
)
def test_receive_clocks(read: Any, key: str, start: Any, at: Any) -> None:
    origin = {"type": "input_audio_buffer.append", "audio": "", key: start}
    found = read(lines(origin, text("Hi.", None, **{key: at})))
    assert (found.timing, chunks(found)) == ("arrival", [("Hi.", 2.5, 2.5)])


def test_the_recorder_s_start_comes_before_the_first_media(read: Any) -> None:
    found = read(
        lines(
            {"type": "input_audio_buffer.append", "audio": "", "t": 50.0}, START, text("Hi.", 103.0)
        )
    )
    assert chunks(found) == [("Hi.", 3.0, 3.0)]


def test_media_clock_before_arrival(read: Any) -> None:
    found = read(
        lines(
            START,
            text(" ", 101.0),
            text("Hi", 102.0, audio_end_ms=1500),
            text(" all.", 103.0, current_time_ms="2500"),
            audio(1.0, None),
        ),
        time_unit="s",
        time_offset=1.0,
    )
    assert (found.timing, chunks(found)) == ("media", [("Hi all.", 2.5, 3.5)])
    assert codes(found) == {"time_unit_ignored": 1}


def test_kinds_of_text(read: Any) -> None:
    def event(kind: str, reply: str, **more: Any) -> dict[str, Any]:
        return {"type": f"response.{kind}", "response_id": reply, "t": 101.0, **more}

    found = read(
        lines(
            START,
            event("output_text.delta", "a", delta="written"),
            event("output_audio_transcript.delta", "a", delta="spoken"),
            event("output_audio_transcript.done", "a", transcript="spoken, again"),
            event("text.delta", "b", delta=" plain "),
            event("audio_transcript.done", "c", transcript="only at the end"),
            {
                "type": "conversation.item.input_audio_transcription.completed",
                "transcript": "the user",
                "t": 101.0,
            },
            {"type": "response.done", "response": {"id": "b", "status": "cancelled"}},
            {"type": "response.created", "response": {"id": "d"}},
            {"type": "response.done", "response": {"id": "d", "status": "incomplete"}},
        )
    )
    assert found.timing == "arrival"
    assert chunks(found) == [("spoken", 1.0, 1.0), ("plain", 1.0, 1.0)]
    assert {k: v for k, v in codes(found).items() if k != "zero_length"} == {
        "cancelled_response": 2,
        "response_without_text": 1,
        "response_without_times": 1,
    }


def test_deltas_without_ids_belong_to_the_open_response(read: Any) -> None:
    delta = {"type": "response.text.delta", "delta": "Hi.", "t": 101.0}
    created = {"type": "response.created", "response": {"id": "r"}}
    assert chunks(read(lines(START, created, delta))) == [("Hi.", 1.0, 1.0)]
    found = read(lines(START, created, {"type": "response.done", "response": {"id": "r"}}, delta))
    assert found.refused is not None
    assert (found.refused.code, found.refused.place) == ("wrong_format", "line 4")


def gemini(t: float, **content: Any) -> dict[str, Any]:
    return {"serverContent": content, "t": t}


@pytest.mark.parametrize("snake", [False, True])
def test_gemini_turns(read: Any, snake: bool) -> None:
    def part(seconds: float) -> dict[str, Any]:
        data = base64.b64encode(bytes(round(seconds * 48000))).decode()
        return {"parts": [{"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": data}}]}

    log = lines(
        {"setupComplete": {}},
        {"realtimeInput": {"audio": {}}, "t": 10.0},
        gemini(12.0, outputTranscription={"text": "One "}),
        gemini(12.0, modelTurn=part(0.5)),
        gemini(12.1, modelTurn=part(0.5), outputTranscription={"text": "two."}),
        gemini(12.2, turnComplete=True),
        gemini(20.0, outputTranscription={"text": "Three."}, modelTurn=part(2.0)),
        gemini(21.0, interrupted=True),
        gemini(21.5, turnComplete=True),
        gemini(30.0, inputTranscription={"text": "the user"}),
        gemini(31.0, modelTurn={"parts": [{"text": "hm", "thought": True}]}),
    )
    if snake:
        for camel, low in (
            ("serverContent", "server_content"),
            ("outputTranscription", "output_transcription"),
            ("modelTurn", "model_turn"),
            ("inlineData", "inline_data"),
            ("mimeType", "mime_type"),
            ("turnComplete", "turn_complete"),
        ):
            log = log.replace(camel, low)
    found = read(log)
    assert found.timing == "playback"
    assert chunks(found) == [("One two.", 2.0, 3.0), ("Three.", 10.0, 11.0)]
    assert codes(found) == {"cleared_response": 1}


@pytest.mark.parametrize(
    ("events", "mentions"),
    [
        ([text("Hi.")], ["no event of the assistant's output has a time", "`t`", "stream_start"]),
        ([text("Hi.", 101.0)], ["`t`", "no origin"]),
        ([START, text("Hi.", 101.0), text("Bye.")], ["`t`", "not readable on all text deltas"]),
        ([{"type": "stream_start"}, text("Hi.", 1.0)], ["`t`", "missing on the event"]),
        ([text("Hi.", audio_end_ms=5), text("Bye.")], ["audio_end_ms", "not on every text delta"]),
        (
            [START, {"type": "response.text.done", "response_id": "r", "text": "Hi."}],
            ["no event of the assistant's output has a time"],
        ),
    ],
)
def test_no_media_clock(read: Any, events: list[Any], mentions: list[str]) -> None:
    found = read(lines({"type": "session.created"}, *events))
    assert found.refused is not None
    assert found.refused.code == "no_media_clock"
    assert found.format == "realtime_events"
    for mention in mentions:
        assert mention in found.refused.message


def test_the_sibling_is_named_only_if_it_is_there(read: Any, tmp_path: Path) -> None:
    log = lines({"type": "session.created"}, text("Hi."))
    assert "wav_transcript.json" not in read(log).refused.message
    (tmp_path / "wav_transcript.json").write_text("{}")
    assert "wav_transcript.json" in read(log).refused.message


def test_client_receive_times_without_origin(read: Any) -> None:
    # What vLLM-Omni's client leaves in events.json: one list, server events only.
    events = [
        {"type": "session.created", "_client_received_at_s": 7.0},
        text("Hi.", None, _client_received_at_s=9.0),
        audio(1.0, None, _client_received_at_s=9.1),
    ]
    found = read(events)
    assert found.refused is not None
    assert "`_client_received_at_s` has no origin" in found.refused.message


def test_nothing_said_needs_no_clock(read: Any) -> None:
    found = read(lines({"type": "session.created"}, {"type": "input_audio_buffer.committed"}))
    assert (found.timing, codes(found)) == (None, {"empty_transcript": 1})
    found = read(lines({"type": "session.created"}, audio(1.0, None)))
    assert codes(found) == {"response_without_text": 1}


def test_emoji_split_between_two_deltas(read: Any) -> None:
    log = lines(START, text("ok \ud83d", 101.0), text("\ude00", 102.0))
    found = read(log)
    assert chunks(found) == [("ok 😀", 1.0, 2.0)]
    assert codes(found) == {}


def test_cut_log(read: Any) -> None:
    log = lines(START, text("Hi.", 101.0))
    assert read(log[:-10]).refused.code == "truncated"
    assert read(log + "{}x\n").refused.code == "bad_json"
