"""Realtime event logs, normalised: what the assistant said and sent, whoever's protocol it is.

OpenAI and Qwen realtime logs name replies by id; Gemini Live logs (nested or flattened) by turns
that ``turnComplete`` or ``interrupted`` closes. Nothing here looks at a clock.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from omnijudge.transcripts.entries import text_field
from omnijudge.transcripts.findings import Refusal

Event = dict[str, Any]

# Transcripts of speech come before plain text output; a reply is read from one kind only.
_DELTAS = {
    "response.output_audio_transcript.delta": 0,
    "response.audio_transcript.delta": 0,
    "response.output_text.delta": 1,
    "response.text.delta": 1,
}
_DONE = {
    "response.output_audio_transcript.done": (0, "transcript"),
    "response.audio_transcript.done": (0, "transcript"),
    "response.output_text.done": (1, "text"),
    "response.text.done": (1, "text"),
}
_AUDIO = ("response.output_audio.delta", "response.audio.delta")
_PLACEHOLDER = re.compile(r"<(\d+) b64 chars>")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*(={0,2})\s*")
_RATE = re.compile(r"rate=(\d+)")
_DEFAULT_RATE = 24000


@dataclass(slots=True)
class Audio:
    """A piece of the assistant's audio. ``seconds`` is None where its size is not known."""

    event: Event
    seconds: float | None


@dataclass(slots=True)
class Reply:
    """One reply of the assistant.

    Attributes:
        key: its id, or the number of the turn.
        place: where it first appears.
        deltas: pieces of text with their events, of transcripts (0) and of plain text (1).
        done: whole texts from closing events, by kind.
        cancelled: ended as cancelled or incomplete.
    """

    key: str
    place: str
    deltas: tuple[list[tuple[str, Event]], list[tuple[str, Event]]] = field(
        default_factory=lambda: ([], [])
    )
    done: dict[int, str] = field(default_factory=dict)
    cancelled: bool = False

    @property
    def pieces(self) -> list[tuple[str, Event]]:
        """The text deltas the reply is read from."""
        return self.deltas[0] or self.deltas[1]

    @property
    def text(self) -> str:
        """The whole text, trimmed; from a closing event if there are no deltas."""
        pieces = self.pieces
        if pieces:
            return "".join(text for text, _ in pieces).strip()
        return self.done.get(0, self.done.get(1, "")).strip()


@dataclass(slots=True)
class Step:
    """Something that happens to playback, in log order.

    ``kind`` is ``audio``, ``clear`` or ``user`` (the user begins to speak).
    """

    kind: str
    event: Event
    reply: Reply | None = None
    audio: Audio | None = None


@dataclass(slots=True)
class EventLog:
    """A log, normalised: replies in order of first appearance, and the steps of playback."""

    replies: list[Reply]
    steps: list[Step]
    origins: list[Event]
    """Events that mark media time 0, the preferred first."""


def read_events(events: Sequence[Any], places: Sequence[str]) -> EventLog:
    """Normalises a log.

    Raises:
        Refusal: ``wrong_format`` where an output event belongs to no reply.
    """
    reader = _Reader()
    for event, place in zip(events, places, strict=True):
        if isinstance(event, dict):
            reader.take(event, place)
    return EventLog(
        list(reader.replies.values()), reader.steps, [*reader.started[:1], *reader.sent[:1]]
    )


def audio_bytes(event: Event, key: str | None = None) -> int | None:
    """Size of the audio in an event: its base64, else a count, else a placeholder's length."""
    payload = next(
        (
            event[k]
            for k in ((key,) if key else ("delta", "audio"))
            if isinstance(event.get(k), str)
        ),
        None,
    )
    if payload:
        found = _BASE64.fullmatch(payload)
        if found is not None and len(payload.rstrip()) % 4 != 1:
            return (len(payload.rstrip()) - len(found[1])) * 3 // 4
    size = event.get("audio_bytes")
    if isinstance(size, (int, float)) and not isinstance(size, bool) and size >= 0:
        return int(size)
    if payload is not None and not payload.strip():
        return 0
    placeholder = _PLACEHOLDER.fullmatch(payload.strip()) if payload is not None else None
    return 3 * int(placeholder[1]) // 4 if placeholder is not None else None


class _Reader:
    """State of one pass over a log."""

    def __init__(self) -> None:
        self.replies: dict[str, Reply] = {}
        self.steps: list[Step] = []
        self.started: list[Event] = []
        self.sent: list[Event] = []
        self._open: str | None = None
        self._turn = 1
        self._format: tuple[int, int] = (2, _DEFAULT_RATE)  # bytes per sample, samples per second

    def take(self, event: Event, place: str) -> None:
        kind = event.get("type")
        kind = kind if isinstance(kind, str) else ""
        content = event.get("serverContent", event.get("server_content"))
        if isinstance(content, dict):
            self._gemini(content, event, place)
        elif kind in ("output_transcription", "turn_complete", "interrupted"):
            self._flat(kind, event, place)
        elif kind == "stream_start":
            self.started.append(event)
        elif kind == "input_audio_buffer.append" or _either(
            event, "realtimeInput", "realtime_input"
        ):
            self.sent.append(event)
        elif kind == "input_audio_buffer.speech_started":
            self.steps.append(Step("user", event))
        elif kind == "output_audio_buffer.cleared":
            key = _reply_id(event)
            if key is not None and key in self.replies:
                self.steps.append(Step("clear", event, self.replies[key]))
        elif kind.startswith("session."):
            self._session(event.get("session"))
        elif kind.startswith("response."):
            self._response(kind, event, place)

    def _response(self, kind: str, event: Event, place: str) -> None:
        if kind == "response.created":
            self._open = _reply_id(event)
            if self._open is not None:
                self._reply(self._open, place)
        elif kind == "response.done":
            key = _reply_id(event) or self._open
            inner = event.get("response")
            status = inner.get("status") if isinstance(inner, dict) else event.get("status")
            if key is not None and status in ("cancelled", "incomplete"):
                self._reply(key, place).cancelled = True
            if key == self._open:
                self._open = None
        elif kind in _DELTAS:
            reply = self._owner(event, place)
            reply.deltas[_DELTAS[kind]].append((text_field(event.get("delta")), event))
        elif kind in _DONE:
            which, key = _DONE[kind]
            reply = self._owner(event, place)
            reply.done[which] = reply.done.get(which, "") + text_field(event.get(key))
        elif kind in _AUDIO:
            reply = self._owner(event, place)
            self._audio(reply, event, audio_bytes(event), event.get("mime_type"))

    def _gemini(self, content: dict[str, Any], event: Event, place: str) -> None:
        spoken = _either(content, "outputTranscription", "output_transcription")
        if isinstance(spoken, dict) and isinstance(spoken.get("text"), str):
            self._reply(self._turn_key(), place).deltas[0].append((spoken["text"], event))
        turn = _either(content, "modelTurn", "model_turn")
        parts = turn.get("parts") if isinstance(turn, dict) else None
        for part in parts if isinstance(parts, list) else ():
            if not isinstance(part, dict):
                continue
            data = _either(part, "inlineData", "inline_data")
            if isinstance(data, dict):
                mime = _either(data, "mimeType", "mime_type")
                size = audio_bytes(data, "data")
                if size is None:
                    size = audio_bytes({"audio_bytes": event.get("audio_bytes")})
                self._audio(self._reply(self._turn_key(), place), event, size, mime)
            elif isinstance(part.get("text"), str) and not part.get("thought"):
                self._reply(self._turn_key(), place).deltas[1].append((part["text"], event))
        if content.get("interrupted"):
            self._end_turn(event, cleared=True)
        if _either(content, "turnComplete", "turn_complete"):
            self._end_turn(event, cleared=False)

    def _flat(self, kind: str, event: Event, place: str) -> None:
        if kind == "output_transcription":
            reply = self._reply(self._turn_key(), place)
            reply.deltas[0].append((text_field(event.get("text")), event))
        else:
            self._end_turn(event, cleared=kind == "interrupted")

    def _end_turn(self, event: Event, *, cleared: bool) -> None:
        reply = self.replies.get(self._turn_key())
        if reply is None:
            return
        if cleared:
            self.steps.append(Step("clear", event, reply))
        self._turn += 1

    def _turn_key(self) -> str:
        return f"turn {self._turn}"

    def _owner(self, event: Event, place: str) -> Reply:
        key = _reply_id(event) or self._open
        if key is None:
            raise Refusal(
                "wrong_format",
                f"{event['type']} has no `response_id` and no response is open; keep the ids, or "
                "the response.created events, in the log (setting `format`)",
                place,
            )
        return self._reply(key, place)

    def _reply(self, key: str, place: str) -> Reply:
        if key not in self.replies:
            self.replies[key] = Reply(key, place)
        return self.replies[key]

    def _session(self, session: Any) -> None:
        if not isinstance(session, dict):
            return
        written = session.get("output_audio_format")
        if written is None:
            audio = session.get("audio")
            output = audio.get("output") if isinstance(audio, dict) else None
            written = output.get("format") if isinstance(output, dict) else None
        if isinstance(written, dict):
            self._format = _audio_format(written.get("type"), written.get("rate"), self._format)
        elif isinstance(written, str):
            self._format = _audio_format(written, None, (2, _DEFAULT_RATE))

    def _audio(self, reply: Reply, event: Event, size: int | None, mime: Any) -> None:
        width, rate = _audio_format(mime, event.get("sample_rate_hz"), self._format)
        seconds = None if size is None else size / (width * rate)
        self.steps.append(Step("audio", event, reply, Audio(event, seconds)))


def _audio_format(name: Any, rate: Any, known: tuple[int, int]) -> tuple[int, int]:
    """Bytes per sample and samples per second; ``known`` where nothing is said."""
    width, default = known
    if isinstance(name, str):
        lower = name.lower()
        found = _RATE.search(lower)
        if lower.startswith(("g711", "audio/pcmu", "audio/pcma")):
            width, default = 1, 8000
        elif lower.startswith("audio/pcm"):
            width = 2
        if found is not None and int(found[1]) > 0:
            default = int(found[1])
    if isinstance(rate, (int, float)) and not isinstance(rate, bool) and rate > 0:
        return width, int(rate)
    return width, default


def _reply_id(event: Event) -> str | None:
    key = event.get("response_id")
    if key is None and isinstance(event.get("response"), dict):
        key = event["response"].get("id")
    return str(key) if isinstance(key, (str, int)) and str(key) else None


def _either(holder: dict[str, Any], camel: str, snake: str) -> Any:
    return holder[camel] if camel in holder else holder.get(snake)
