"""Subtitle files: SRT and WebVTT. The unit of reading is the timing line."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from omnijudge.transcripts.entries import Clock, Entry, RawWord, join_pieces
from omnijudge.transcripts.files import split_lines
from omnijudge.transcripts.findings import Findings, Refusal
from omnijudge.values import has_cjk

_TIME = r"(?:([0-9]{1,12}):)?([0-5][0-9]):([0-5][0-9])(?:[.,]([0-9]{1,3}))?(?![0-9:])(?![.,][0-9])"
_TIMING = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}.*", re.DOTALL)
_COUNTER = re.compile(r"\s*[0-9]+\s*")
_HALF_TIMING = re.compile(r"\s*[0-9]+:[0-9:.,]*\s*-{0,2}")
_SRT_TAG = re.compile(r"</?(?:b|i|u|font)[^>]*>|\{\\[^}]*\}", re.IGNORECASE)
_VTT_SKIPPED = re.compile(r"(?:NOTE|STYLE|REGION)(?:[ \t]|$)")
_VTT_TAG = re.compile(r"<([^>]*)>")
_VTT_VOICE = re.compile(r"v(?:\.[^\s>]*)?\s+(.*)", re.DOTALL)
_ENTITY = re.compile(r"&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);")
_MAP = re.compile(r"X-TIMESTAMP-MAP=(.*)")
_MAP_TICKS = re.compile(r"MPEGTS:([0-9]+)")
_MAP_LOCAL = re.compile(rf"LOCAL:{_TIME}")


@dataclass(slots=True)
class _Cue:
    """A timing line and what belongs to it. ``start`` is None if the line is unreadable."""

    line: int
    start: float | None
    end: float | None
    text: list[str]


class _Span(NamedTuple):
    """A stretch of cue text under one voice, from one inner timestamp to the next."""

    voice: str | None
    start: float | None
    text: str


def srt(text: str, clock: Clock, findings: Findings) -> list[Entry]:
    """Cues of an SRT file.

    Raises:
        Refusal: ``truncated`` if the last cue is incomplete and no line break ends the file;
            ``no_times`` if there is text but no cue.
    """
    lines = split_lines(text)
    cues: list[_Cue] = []
    for number, line in enumerate(lines):
        if "-->" in line:
            before = cues[-1].text if cues else []
            if before and _COUNTER.fullmatch(before[-1]):
                before.pop()
            cues.append(_cue(number + 1, line))
        elif cues:
            cues[-1].text.append(line)
    _refuse_cut(text, lines, cues)
    if not cues:
        return _without_cues(text)
    entries = []
    for cue in cues:
        body = _trim_blank(cue.text)
        inner = sum(not line.strip() for line in body)
        if inner:
            findings.add("blank_in_cue", inner, place=f"line {cue.line}")
        if _usable(cue, findings):
            shown = _SRT_TAG.sub("", "\n".join(body)).split("\n")
            shown = [line for line in shown if line.strip()]
            entries.append(_entry(cue, join_pieces(shown), clock))
    return entries


def vtt(text: str, clock: Clock, findings: Findings) -> list[Entry]:
    """Cues of a WebVTT file; a cue with several voices gives one entry per voice.

    Raises:
        Refusal: as for :func:`srt`; a file that is only a header is silence.
    """
    lines = split_lines(text)
    cues, stray = _vtt_cues(lines, findings)
    _refuse_cut(text, lines, cues)
    if not cues and stray:
        return _without_cues(text)
    entries = []
    for cue in cues:
        if _usable(cue, findings):
            entries += _voices(cue, clock)
    return entries


def _vtt_cues(lines: Sequence[str], findings: Findings) -> tuple[list[_Cue], int]:
    """Cues, and the number of lines of text outside of any block."""
    cues: list[_Cue] = []
    stray = 0
    at = _skip_header(lines, findings)
    new_block = True
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            new_block = True
            at += 1
            continue
        if "-->" in line:
            cue = _cue(at + 1, line)
            at += 1
            # The cue's text ends at a blank line, or where the next cue's identifier stands.
            while at < len(lines) and lines[at].strip() and not _opens_cue(lines, at):
                cue.text.append(lines[at])
                at += 1
            cues.append(cue)
        elif new_block and _VTT_SKIPPED.match(line):
            while at < len(lines) and lines[at].strip():
                at += 1
        elif _opens_cue(lines, at):
            at += 1  # an identifier
        else:
            stray += 1
            if cues:
                findings.add("blank_in_cue", place=f"line {at + 1}")
            while at < len(lines) and lines[at].strip() and not _opens_cue(lines, at):
                at += 1
        new_block = False
    return cues, stray


def _opens_cue(lines: Sequence[str], at: int) -> bool:
    """Whether a line is a timing line or the identifier directly above one."""
    return "-->" in lines[at] or (at + 1 < len(lines) and "-->" in lines[at + 1])


def _skip_header(lines: Sequence[str], findings: Findings) -> int:
    at = 1
    while at < len(lines) and lines[at].strip() and not _opens_cue(lines, at):
        found = _MAP.match(lines[at].strip())
        if found is not None:
            ticks, local = _MAP_TICKS.search(found[1]), _MAP_LOCAL.search(found[1])
            if ticks is not None and local is not None:
                offset = int(ticks[1]) / 90000 - _seconds(local.groups())
                findings.add("timestamp_map", place=f"line {at + 1}", offset=offset)
        at += 1
    return at


def _voices(cue: _Cue, clock: Clock) -> list[Entry]:
    spans = _spans(cue)
    timed = any(span.start is not None for span in spans)
    entries = []
    for voice in dict.fromkeys(span.voice for span in spans if span.text.strip()):
        entry = _entry(cue, "".join(s.text for s in spans if s.voice == voice), clock)
        entry.speaker = voice
        if timed:
            entry.words = _inner_words(spans, voice, cue, clock)
        entries.append(entry)
    return entries or [_entry(cue, "", clock)]


def _spans(cue: _Cue) -> list[_Span]:
    plain = _ENTITY.sub(_decode, _VTT_TAG.sub("", "\n".join(cue.text)))
    pieces = _VTT_TAG.split(("" if has_cjk(plain) else " ").join(cue.text))
    spans = []
    voice: str | None = None
    start: float | None = None
    for number, piece in enumerate(pieces):
        if number % 2 == 0:
            spans.append(_Span(voice, start, _ENTITY.sub(_decode, piece)))
            continue
        inner = re.fullmatch(_TIME, piece.strip())
        named = _VTT_VOICE.fullmatch(piece)
        if inner is not None:
            start = _seconds(inner.groups())
        elif named is not None:
            voice = _ENTITY.sub(_decode, named[1]).strip() or None
        elif piece.strip() == "/v":
            voice = None
    return spans


def _inner_words(
    spans: Sequence[_Span], voice: str | None, cue: _Cue, clock: Clock
) -> list[RawWord]:
    """One word per stretch between two inner timestamps; markup inside a stretch is no border."""
    assert cue.start is not None
    assert cue.end is not None
    stretches: list[tuple[float, str]] = []
    moments = [cue.start]
    for span in spans:
        start = cue.start if span.start is None else span.start
        if start != moments[-1]:
            moments.append(start)
        if span.voice != voice:
            continue
        if stretches and stretches[-1][0] == start:
            stretches[-1] = (start, stretches[-1][1] + span.text)
        else:
            stretches.append((start, span.text))
    words = []
    for start, text in stretches:
        following = moments.index(start) + 1
        end = moments[following] if following < len(moments) else cue.end
        words.append(RawWord(text, clock.at(start), clock.at(end)))
    return words


def _decode(found: re.Match[str]) -> str:
    return html.unescape(found[0])


def _cue(number: int, line: str) -> _Cue:
    found = _TIMING.fullmatch(line)
    if found is None:
        return _Cue(number, None, None, [])
    parts = found.groups()
    return _Cue(number, _seconds(parts[:4]), _seconds(parts[4:]), [])


def _seconds(parts: Sequence[str | None]) -> float:
    hours, minutes, seconds, fraction = parts
    # Whole milliseconds, so that the sum is the nearest double to what is written.
    whole = int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
    return (whole * 1000 + int((fraction or "").ljust(3, "0"))) / 1000


def _usable(cue: _Cue, findings: Findings) -> bool:
    if cue.start is None:
        findings.add("bad_cues", place=f"line {cue.line}")
    return cue.start is not None


def _entry(cue: _Cue, text: str, clock: Clock) -> Entry:
    assert cue.start is not None
    assert cue.end is not None
    return Entry(text, clock.at(cue.start), clock.at(cue.end), f"line {cue.line}")


def _trim_blank(lines: list[str]) -> list[str]:
    filled = [n for n, line in enumerate(lines) if line.strip()]
    return lines[filled[0] : filled[-1] + 1] if filled else []


def _refuse_cut(text: str, lines: Sequence[str], cues: Sequence[_Cue]) -> None:
    """Refuses a file that ends inside its last cue."""
    if not cues or text.endswith(("\n", "\r")):
        return
    last = cues[-1]
    body = [line for line in last.text if line.strip()]
    cut = last.start is None or not body
    # A cut inside the next cue's counter or times leaves them as text behind the last cue.
    if not cut and _HALF_TIMING.fullmatch(lines[-1]):
        cut = not lines[-2].strip() or _COUNTER.fullmatch(lines[-2]) is not None
    if not cut and _COUNTER.fullmatch(lines[-1]) and not lines[-2].strip():
        cut = lines[-1].strip() == str(len(cues) + 1)
    if cut:
        raise Refusal(
            "truncated",
            f"the file ends inside a cue ({len(cues) - 1} before it good); nothing of it is "
            "used, write it again",
            f"line {len(lines)}",
        )


def _without_cues(text: str) -> list[Entry]:
    if not text.strip():
        return []
    raise Refusal("no_times", "there is text but no timing line (`00:00:01,000 --> 00:00:02,000`)")
