"""Files of the published OmniInteract adapters that are not transcripts by design.

Both hold the assistant's words with some time, but only one adapter (MiniCPM-o) writes times on the
clip's clock, in steps of one second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnijudge.transcripts.entries import Clock, Entry, text_field
from omnijudge.transcripts.findings import Findings, Refusal
from omnijudge.values import parse_bool

SIBLING = "wav_transcript.json"


def responses(
    records: Sequence[Any], places: Sequence[str], clock: Clock, findings: Findings
) -> list[Entry]:
    """``responses.jsonl``: one entry per reply, from its first to its last piece.

    Raises:
        Refusal: ``no_media_clock`` where the pieces' times begin anew in every reply.
    """
    entries = []
    for record, place in zip(records, places, strict=True):
        if not isinstance(record, dict):
            findings.add("dropped_bad_time", place=place)
            continue
        pieces = record.get("chunks")
        pieces = [p for p in pieces if isinstance(p, dict)] if isinstance(pieces, list) else []
        arrivals = sorted(
            {key for holder in (record, *pieces) for key in holder if key.startswith("t_arrival_")}
        )
        if "timestamp_method" in record or arrivals:
            found = [*arrivals, *(("timestamp_method",) if "timestamp_method" in record else ())]
            raise Refusal(
                "no_media_clock",
                f"`timestamp` starts at 0 again in every reply (found: {', '.join(found)}), so it "
                f"says nothing about the clip; use {SIBLING} of the same folder",
                place,
            )
        if not pieces:
            findings.add("response_without_times", place=place)
            continue
        entries.append(
            Entry(
                text_field(record.get("text")),
                clock(_time(pieces[0], 0)),
                clock(_time(pieces[-1], 1)),
                place,
            )
        )
    return entries


def model_output(
    records: Sequence[Any], places: Sequence[str], clock: Clock, findings: Findings
) -> list[Entry]:
    """``model_output.jsonl``: speaking seconds that follow each other make one entry.

    Raises:
        Refusal: ``no_media_clock`` where the seconds are those of arrival.
    """
    entries: list[Entry] = []
    second: float | None = None  # end of the open entry, in seconds as written
    for record, place in zip(records, places, strict=True):
        if not isinstance(record, dict):
            findings.add("dropped_bad_time", place=place)
            continue
        if "user_transcript" in record or "is_listen" not in record:
            found = "user_transcript" if "user_transcript" in record else "no is_listen"
            raise Refusal(
                "no_media_clock",
                f"`second` is when the text arrived, not when it was spoken (found: {found}); use "
                f"{SIBLING} of the same folder",
                place,
            )
        text = text_field(record.get("text"))
        if parse_bool(record["is_listen"]) or not text.strip():
            continue
        if record.get("audio_bytes") == 0:
            findings.add("silent_text", place=place)
            continue
        at = Clock("s", 0.0)(record.get("second"))
        if at is None:
            findings.add("dropped_bad_time", place=place)
            continue
        if entries and second == at:
            entries[-1].text += text
            entries[-1].end = clock(at + 1)
        else:
            entries.append(Entry(text, clock(at), clock(at + 1), place))
        second = at + 1
    return entries


def _time(piece: Any, which: int) -> Any:
    times = piece.get("timestamp")
    return times[which] if isinstance(times, list) and len(times) == 2 else None
