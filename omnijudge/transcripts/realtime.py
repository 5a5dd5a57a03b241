"""Timing of realtime event logs.

No event of the assistant's output carries a media time of its own; the writer of the log must have
added a clock. Three ways to get to times, tried in this order: ``playback`` (every audio delta has
a receive time and a size, and the start of the media is marked), ``media`` (every text delta has a
media clock) and ``arrival`` (every text delta has a receive time, and the start is marked).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any

from omnijudge.transcripts.adapters import SIBLING
from omnijudge.transcripts.entries import Clock, Entry
from omnijudge.transcripts.event_log import Event, EventLog, Reply, read_events
from omnijudge.transcripts.findings import Findings, Refusal

_MEDIA = ("audio_end_ms", "_media_clock_ms", "current_time_ms")
_seconds = Clock("s", 0.0)
_milliseconds = Clock("ms", 0.0)


def _calendar(value: Any) -> float | None:
    """Seconds of an RFC 3339 text."""
    if not isinstance(value, str) or "T" not in value.upper():
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()


_RECEIVE: dict[str, Callable[[Any], float | None]] = {
    "_client_received_at_s": _seconds,
    "received_at_s": _seconds,
    "t": _seconds,
    "received_at_ms": _milliseconds,
    "t_ms": _milliseconds,
    "received_at": _calendar,
    "timestamp": _calendar,
}


@dataclass(frozen=True, slots=True)
class _ReceiveClock:
    """A receive-time field and its value at media time 0."""

    field: str
    origin: float

    def __call__(self, event: Event) -> float | None:
        time = _RECEIVE[self.field](event.get(self.field))
        return None if time is None else time - self.origin


def realtime_events(
    events: Sequence[Any],
    places: Sequence[str],
    path: Path | None,
    clock: Clock,
    findings: Findings,
) -> tuple[list[Entry], str | None]:
    """One entry per reply with text, in order of first appearance, and the timing mode.

    Raises:
        Refusal: ``no_media_clock`` if no mode is possible; ``wrong_format`` for events without a
            reply.
    """
    log = read_events(events, places)
    spoken = []
    for reply in log.replies:
        if reply.cancelled:
            findings.add("cancelled_response", place=reply.place)
        if reply.text:
            spoken.append(reply)
        else:
            findings.add("response_without_text", place=reply.place)
    if not spoken:
        return [], None
    audio = [step.event for step in log.steps if step.kind == "audio"]
    deltas = [event for reply in spoken for _, event in reply.pieces]
    sized = all(step.audio is None or step.audio.seconds is not None for step in log.steps)
    playback = _receive_clock(audio, log.origins) if sized else None
    if playback is not None:
        return _playback(log, spoken, playback, clock, findings), "playback"
    filled = [e for reply in spoken for text, e in reply.pieces if text.strip()]
    if filled and all(_media_clock(event) is not None for event in filled):
        return _by_text(spoken, _media_clock, clock, findings), "media"
    arrival = _receive_clock(deltas, log.origins)
    if arrival is not None:
        return _by_text(spoken, arrival, clock, findings), "arrival"
    raise Refusal("no_media_clock", _no_clock(audio, deltas, log, path))


def _receive_clock(events: Sequence[Event], origins: Sequence[Event]) -> _ReceiveClock | None:
    if not events:
        return None
    for name, read in _RECEIVE.items():
        if any(read(event.get(name)) is None for event in events):
            continue
        for event in origins:
            origin = read(event.get(name))
            if origin is not None:
                return _ReceiveClock(name, origin)
    return None


def _media_clock(event: Event) -> float | None:
    return next((t for key in _MEDIA if (t := _milliseconds(event.get(key))) is not None), None)


def _by_text(
    replies: Sequence[Reply],
    time_of: Callable[[Event], float | None],
    clock: Clock,
    findings: Findings,
) -> list[Entry]:
    entries = []
    for reply in replies:
        entry = _text_entry(reply, time_of, clock)
        if entry is None:
            findings.add("response_without_times", place=reply.place)
        else:
            entries.append(entry)
    return entries


def _text_entry(
    reply: Reply, time_of: Callable[[Event], float | None], clock: Clock
) -> Entry | None:
    """From the first delta with text to the last one."""
    times = [t for text, e in reply.pieces if text.strip() and (t := time_of(e)) is not None]
    if not times:
        return None
    return Entry(reply.text, clock.at(times[0]), clock.at(times[-1]), reply.place)


def _playback(
    log: EventLog,
    replies: Sequence[Reply],
    receive: _ReceiveClock,
    clock: Clock,
    findings: Findings,
) -> list[Entry]:
    played = _play(log, receive, findings)
    entries = []
    for reply in replies:
        pieces = played.get(id(reply))
        if pieces:
            start, end = min(p[0] for p in pieces), max(p[1] for p in pieces)
            entries.append(Entry(reply.text, clock.at(start), clock.at(end), reply.place))
            continue
        entry = _text_entry(reply, receive, clock)
        if entry is None:
            findings.add("response_without_times", place=reply.place)
        else:
            findings.add("text_timing", place=reply.place)
            entries.append(entry)
    return entries


def _play(
    log: EventLog, receive: _ReceiveClock, findings: Findings
) -> dict[int, list[tuple[float, float]]]:
    """One loudspeaker: a piece plays when it has come and what came before has ended.

    Returns:
        Per reply (by identity) the intervals in which its audio sounds.
    """
    played: dict[int, list[tuple[float, float]]] = {}
    cleared: set[int] = set()
    free = -inf
    for step in log.steps:
        moment = receive(step.event)
        if moment is None:
            continue
        if step.kind == "user":
            if any(start <= moment < end for own in played.values() for start, end in own):
                findings.add("possible_interruption")
            continue
        assert step.reply is not None
        reply = id(step.reply)
        if step.kind == "clear":
            if reply not in cleared and step.reply.text:
                findings.add("cleared_response", place=step.reply.place)
            cleared.add(reply)
            heard = [(s, min(e, moment)) for s, e in played.get(reply, ()) if s < moment]
            played[reply] = heard
            free = max((end for own in played.values() for _, end in own), default=-inf)
        elif reply not in cleared:
            assert step.audio is not None
            assert step.audio.seconds is not None
            start = max(moment, free)
            free = start + step.audio.seconds
            played.setdefault(reply, []).append((start, free))
    return played


def _no_clock(
    audio: Sequence[Event], deltas: Sequence[Event], log: EventLog, path: Path | None
) -> str:
    what, events = ("audio deltas", audio) if audio else ("text deltas", deltas)
    found = [name for name in _RECEIVE if any(name in e for e in (*audio, *deltas))]
    media = [name for name in _MEDIA if any(name in event for event in deltas)]
    reasons = []
    if not found and not media:
        reasons.append("no event of the assistant's output has a time")
    if media:
        reasons.append(f"{', '.join(media)} is not on every text delta")
    for name in found:
        if any(_RECEIVE[name](event.get(name)) is None for event in events):
            reasons.append(f"`{name}` is not readable on all {what}")
        elif not log.origins:
            reasons.append(f"`{name}` has no origin: no event marks the start of the media")
        else:
            reasons.append(f"`{name}` is missing on the event that marks the start of the media")
    if path is not None and path.with_name(SIBLING).is_file():
        advice = f"use {SIBLING} beside it"
    else:
        advice = (
            "record `t` with every event and a `stream_start` event when the first media is sent"
        )
    return f"{'; '.join(reasons)}; {advice}"
