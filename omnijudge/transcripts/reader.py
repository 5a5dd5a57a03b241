"""One entry point for every transcript file, whatever tool wrote it."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from omnijudge.errors import Problem
from omnijudge.transcripts import adapters, millisecond, subtitles, whisper
from omnijudge.transcripts.detect import describe, detect_json, is_result, matches, several_results
from omnijudge.transcripts.entries import Clock, Entry, choose_speakers, label_field, to_chunks
from omnijudge.transcripts.files import (
    Document,
    UnreadableFile,
    decode,
    is_blank,
    load_json_or_lines,
    read_bytes,
    split_lines,
)
from omnijudge.transcripts.findings import Findings, Refusal
from omnijudge.transcripts.native import native_chunks, parse_native
from omnijudge.transcripts.options import (
    FIXED_UNIT_FORMATS,
    MILLISECOND_FORMATS,
    NATIVE_FORMATS,
    ReadOptions,
    read_options,
)
from omnijudge.transcripts.plausibility import check_times
from omnijudge.transcripts.realtime import realtime_events
from omnijudge.transcripts.sentences import check_meta, sentences
from omnijudge.transcripts.types import Chunk, Transcript, Word
from omnijudge.transcripts.vllm_omni import check_result

__all__ = ["parse_native", "parse_transcript", "read_options", "read_transcript"]

_TEXT_FORMATS = ("srt", "vtt")
# Tools that leave an empty file after a silent clip.
_EMPTY_IS_SILENCE = ("srt", "oi_responses", "oi_model_output")
_ONE_RESULT = ("whisper_segments", "whisper_cpp", "dashscope_asr", "funasr")
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_transcript(
    path: str | Path,
    *,
    format: str = "auto",
    benchmark: str = "omniinteract",
    profile: str = "robust",
    time_unit: Literal["s", "ms"] | None = None,
    time_offset: float = 0.0,
    speaker: str | Sequence[str] | None = None,
    duration: float | None = None,
) -> Transcript:
    """Reads one transcript file. Never raises for what is in the file.

    Args:
        path: the file; files its tool leaves beside it (``result.json``, ``<id>.meta.json``) are
            taken into account.
        format: name of a format or alias; ``auto`` looks at the content.
        benchmark: decides between readings that the content leaves open.
        profile: ``published`` reads OmniInteract's own form where its evaluator would.
        time_unit: unit of the file's times; None for the format's own.
        time_offset: seconds added to every time after unit conversion.
        speaker: keep only chunks with this label, or one of these.
        duration: length of the clip in seconds; None if unknown (rules that need it are skipped).

    Returns:
        Chunks in file order with times in seconds from the start of the clip, and what was
        changed or is suspicious; or ``refused``.

    Raises:
        ConfigError: a setting is wrong.
    """
    options = read_options(
        format=format,
        benchmark=benchmark,
        profile=profile,
        time_unit=time_unit,
        time_offset=time_offset,
        speaker=speaker,
        duration=duration,
    )
    try:
        data = read_bytes(path)
    except UnreadableFile as fault:
        return Transcript([], None, [], fault.problem)
    return parse_transcript(data, str(path), options, path)


def parse_transcript(
    data: bytes, file: str, options: ReadOptions, path: str | Path | None = None
) -> Transcript:
    """Reads the bytes of a transcript file.

    Args:
        data: the whole file.
        file: its name for messages.
        options: how to read it.
        path: where it lies, to look at files beside it; None: nothing is looked at.
    """
    findings = Findings()
    reading = _Reading(options, findings, path)
    chunks: list[Chunk] = []
    refused: Problem | None = None
    try:
        chunks = reading.read(data, file)
    except UnreadableFile as fault:
        refused = fault.problem
    except Refusal as refusal:
        refused = refusal.problem(file)
    if data.startswith(BOM_UTF8):
        findings.add("byte_order_mark")
    problems = findings.problems(file) if findings else []
    timing = reading.timing if refused is None else None
    return Transcript(chunks, reading.format, problems, refused, timing)


class _Reading:
    """One file being read: what is found out on the way."""

    def __init__(self, options: ReadOptions, findings: Findings, path: str | Path | None) -> None:
        self.options = options
        self.findings = findings
        self.path = path
        self.format: str | None = None
        self.timing: str | None = None

    def read(self, data: bytes, file: str) -> list[Chunk]:
        wanted = self.options.format
        if wanted in _TEXT_FORMATS and not is_blank(data):
            return self._text(decode(data, file), wanted)
        if data[:1] not in (b"{", b"["):
            if is_blank(data):
                return self._empty(data)
            text = decode(data, file)
            if text.lstrip()[:1] not in ("{", "["):
                return self._not_json(text)
        document = load_json_or_lines(data, file)
        if wanted == "auto":
            self.format = detect_json(document.value, _several_lines(document), self.options)
            if self.format is None:
                self.findings.add("empty_transcript")
                return []
        elif not matches(wanted, document.value):
            raise Refusal(
                "wrong_format",
                f"{describe(document.value)} is not the format {wanted}; correct the setting "
                "`format` or leave it out",
            )
        else:
            self.format = wanted
        if self.format in NATIVE_FORMATS:
            return self._native(document, data)
        return self._foreign(document)

    def _empty(self, data: bytes) -> list[Chunk]:
        if self.options.format not in _EMPTY_IS_SILENCE:
            raise Refusal(
                "empty_file",
                f"the file is empty ({len(data)} bytes): silence or a crash; where it means "
                f"silence, name the `format` ({', '.join(_EMPTY_IS_SILENCE)})",
            )
        self.format = self.options.format
        self.findings.add("empty_transcript")
        return []

    def _not_json(self, text: str) -> list[Chunk]:
        wanted = self.options.format
        if wanted != "auto":
            raise Refusal(
                "wrong_format",
                f"the file begins with {text.strip()[:40]!r}, not with JSON, as the format "
                f"{wanted} does; correct the setting `format` or leave it out",
            )
        if _is_vtt(text):
            return self._text(text, "vtt")
        filled = (line for line in split_lines(text) if line.strip())
        if any("-->" in line for line, _ in zip(filled, range(3), strict=False)):
            return self._text(text, "srt")
        raise Refusal(
            "unknown_format",
            f"the file begins with {text.strip()[:40]!r}, which fits no known format; name it "
            "with the setting `format`",
        )

    def _text(self, text: str, name: str) -> list[Chunk]:
        fits = _is_vtt(text) if name == "vtt" else not _is_vtt(text)
        if not fits or (name == "srt" and text.lstrip()[:1] in ("{", "[") and "-->" not in text):
            raise Refusal(
                "wrong_format",
                f"the file begins with {text.strip()[:40]!r}, which is not the format {name}; "
                "correct the setting `format` or leave it out",
            )
        self.format = name
        read = subtitles.vtt if name == "vtt" else subtitles.srt
        clock = Clock("s", self.options.time_offset)
        return self._finish(read(text, clock, self.findings), "cues")

    def _native(self, document: Document, data: bytes) -> list[Chunk]:
        assert self.format is not None
        options = self.options
        if self.format == "vllm_omniinteract" and self.path is not None:
            check_result(Path(self.path), self.findings)
        chunks = native_chunks(document.value, self.findings)
        if options.speakers is not None or b'"speaker"' in data:
            chunks = self._native_speakers(chunks, document.value)
        if options.time_unit == "ms" or options.time_offset:
            chunks = _moved(chunks, options)
        if document.surrogates:
            chunks = self._without_surrogates(chunks)
        check_times(chunks, self.format, options, self.findings)
        return chunks

    def _native_speakers(self, chunks: list[Chunk], value: Any) -> list[Chunk]:
        if not chunks:
            return chunks
        labels = [label_field(value["chunks"][chunk.id].get("speaker")) for chunk in chunks]
        wanted = choose_speakers(labels, self.options, self.findings)
        if wanted is None:
            return chunks
        return [c for c, label in zip(chunks, labels, strict=True) if label in wanted]

    def _foreign(self, document: Document) -> list[Chunk]:
        options, findings, value = self.options, self.findings, document.value
        default = "ms" if self.format in MILLISECOND_FORMATS else "s"
        clock = Clock(options.time_unit or default, options.time_offset)
        level = "segments"
        if self.format in _ONE_RESULT and isinstance(value, list) and is_result(value[:1]):
            if len(value) > 1:
                raise several_results(value, _several_lines(document))
            value = value[0]
        entries: list[Entry]
        if value == []:
            entries = []
        elif self.format == "whisper_chunks":
            level, entries = "chunks", whisper.whisper_chunks(value, clock, findings)
        elif self.format == "whisper_segments":
            entries = whisper.whisper_segments(value, clock, findings)
        elif self.format == "word_list":
            level, entries = "words", whisper.word_list(value, clock, options, findings)
        elif self.format == "whisper_cpp":
            entries, fixed = whisper.whisper_cpp(value, clock, findings)
            if fixed and options.time_unit is not None:
                findings.add("time_unit_ignored")
        elif self.format == "funasr":
            level, entries = "sentences", millisecond.funasr(value, clock, options, findings)
        elif self.format == "dashscope_asr":
            level, entries = "sentences", millisecond.dashscope_asr(value, clock, findings)
        elif self.format == "sentences":
            if self.path is not None:
                check_meta(Path(self.path), findings)
            level, entries = "sentences", sentences(value, clock, options, findings)
        else:
            level, entries = "replies", self._records(document, clock)
        chunks = self._finish(entries, level)
        return self._without_surrogates(chunks) if document.surrogates else chunks

    def _records(self, document: Document, clock: Clock) -> list[Entry]:
        """Formats that are lists of records, one JSON line each as a rule."""
        records = document.value if isinstance(document.value, list) else [document.value]
        if document.lines is not None:
            places = [f"line {number}" for number in document.lines]
        else:
            places = [f"[{number}]" for number in range(len(records))]
        if self.format == "oi_responses":
            return adapters.responses(records, places, clock, self.findings)
        if self.format == "oi_model_output":
            return adapters.model_output(records, places, clock, self.findings)
        path = None if self.path is None else Path(self.path)
        entries, self.timing = realtime_events(records, places, path, clock, self.findings)
        return entries

    def _finish(self, entries: Sequence[Entry], level: str) -> list[Chunk]:
        assert self.format is not None
        if self.format in FIXED_UNIT_FORMATS and self.options.time_unit is not None:
            self.findings.add("time_unit_ignored")
        chunks = to_chunks(entries, level, self.options, self.findings)
        check_times(chunks, self.format, self.options, self.findings)
        if not chunks and not self.findings and self.format != "sentences":
            self.findings.add("empty_transcript")
        return chunks

    def _without_surrogates(self, chunks: list[Chunk]) -> list[Chunk]:
        """Joins surrogate pairs and replaces lone halves, which Arrow cannot hold."""
        replaced = 0

        def clean(text: str) -> str:
            nonlocal replaced
            if _SURROGATE.search(text) is None:
                return text
            joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
            cleaned, count = _SURROGATE.subn("\ufffd", joined)
            replaced += count
            return cleaned

        result = [
            chunk._replace(
                text=clean(chunk.text),
                words=tuple(Word(w.start, w.end, clean(w.text)) for w in chunk.words),
            )
            for chunk in chunks
        ]
        if replaced:
            self.findings.add("replaced_surrogates", replaced)
        return result


def _moved(chunks: list[Chunk], options: ReadOptions) -> list[Chunk]:
    """Chunks of the benchmark's own form with the system's unit and offset applied."""
    divisor, offset = (1000.0 if options.time_unit == "ms" else 1.0), options.time_offset
    return [
        Chunk(
            chunk.id,
            chunk.start / divisor + offset,
            chunk.end / divisor + offset,
            chunk.text,
            tuple(Word(w.start / divisor + offset, w.end / divisor + offset, w.text) for w in words)
            if (words := chunk.words)
            else (),
        )
        for chunk in chunks
    ]


def _is_vtt(text: str) -> bool:
    return text.startswith("WEBVTT") and text[6:7] in ("", " ", "\t", "\n", "\r")


def _several_lines(document: Document) -> bool:
    return document.lines is not None and len(document.lines) > 1
