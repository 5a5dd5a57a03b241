"""What looks wrong about the times and texts of one transcript once it has been read."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from statistics import median

from omnijudge.transcripts.detect import is_one_word
from omnijudge.transcripts.findings import Findings, Refusal
from omnijudge.transcripts.options import (
    FIXED_UNIT_FORMATS,
    MILLISECOND_FORMATS,
    NATIVE_FORMATS,
    ReadOptions,
)
from omnijudge.transcripts.types import Chunk

LONG = 60.0
BEYOND = 0.5
BACKWARD = 0.001
OUTSIDE = 0.5
OVERLAP = 0.05
CLIP_SLACK = 5.0
"""Seconds that a plausible transcript may reach beyond its clip."""
MILLISECONDS_FROM = 10.0
"""How many times the clip's length a start must be to count as milliseconds among seconds: speech
that merely goes on after the end of the clip stays below, all milliseconds but those of the first
hundredth of the clip lie above."""


def check_times(
    chunks: Sequence[Chunk], format_name: str, options: ReadOptions, findings: Findings
) -> None:
    """Adds what is suspicious about chunks in file order.

    Raises:
        Refusal: ``mixed_units``; only a finding in the benchmark's own form.
    """
    if not chunks:
        return
    mixed = None
    if format_name not in FIXED_UNIT_FORMATS:
        mixed = _mixed_units(chunks, options.duration)
        if mixed is not None:
            place, detail = mixed
            if format_name not in NATIVE_FORMATS:
                raise Refusal("mixed_units", f"{detail}; correct the file", place)
            findings.add("mixed_units", place=place, detail=detail)
        milliseconds = format_name in MILLISECOND_FORMATS
        unit = options.time_unit or ("ms" if milliseconds else "s")
        _suspect_unit(chunks, unit, options.duration, findings)
    _count(chunks, options.duration, findings, look_at_words=mixed is None)
    _texts(chunks, findings)


def _mixed_units(chunks: Sequence[Chunk], duration: float | None) -> tuple[str, str] | None:
    """Place and description of times in two units, or None."""
    with_words = odd = 0
    first: tuple[str, str] | None = None
    for number, start, end, _, words in chunks:
        if not words:
            continue
        with_words += 1
        word = words[0].start
        if word < 100 and start < 1000:
            continue
        words_in_ms = word >= 100 and word > end + 1 and start - 1 <= word / 1000 <= end + 1
        chunks_in_ms = (
            start >= 1000 and word < start / 10 and start - 1000 <= 1000 * word <= end + 1000
        )
        if words_in_ms or chunks_in_ms:
            odd += 1
            first = first or (
                f"chunk {number}",
                f"the chunk starts at {start:g}, its first word at {word:g}: one is in seconds, "
                "the other in milliseconds",
            )
    if odd and 2 * odd >= with_words:
        return first
    if duration is None:
        return None
    limit = duration + CLIP_SLACK
    far = [c for c in chunks if MILLISECONDS_FROM * limit < c[1] <= 1000 * limit]
    if 10 * len(far) < len(chunks) or not far:
        return None
    near = next((c for c in chunks if c.end <= limit), None)
    if near is None:
        return None
    return (
        f"chunk {far[0].id}",
        f"this chunk starts at {far[0].start:g}, chunk {near.id} at {near.start:g}, in a clip of "
        f"{duration:g} s: one is in seconds, the other in milliseconds",
    )


def _suspect_unit(
    chunks: Sequence[Chunk], unit: str, duration: float | None, findings: Findings
) -> None:
    if unit == "ms":
        if duration is not None and len(chunks) >= 3 and 0 < _last_end(chunks) < duration / 100:
            findings.add("suspect_s")
    elif duration is not None:
        if duration < _last_end(chunks) <= 1000 * (duration + CLIP_SLACK) and (
            median(chunk.start for chunk in chunks) > duration
        ):
            findings.add("suspect_ms")
    elif (
        len(chunks) >= 3
        and all(c[1].is_integer() and c[2].is_integer() for c in chunks)
        and median(c.end - c.start for c in chunks) >= 100
    ):
        findings.add("suspect_ms")


def _last_end(chunks: Sequence[Chunk]) -> float:
    return max([chunk[2] for chunk in chunks])


def _count(
    chunks: Sequence[Chunk], duration: float | None, findings: Findings, *, look_at_words: bool
) -> None:
    beyond = inf if duration is None else duration + BEYOND
    last = greatest = None
    for number, start, end, _, words in chunks:
        if start > beyond:
            findings.add("beyond_clip", place=f"chunk {number}", duration=duration)
        if start < 0:
            findings.add("negative_time", place=f"chunk {number}")
        if end - start > LONG:
            findings.add("long_chunk", place=f"chunk {number}")
        if end == start:
            findings.add("zero_length", place=f"chunk {number}")
        if last is None or greatest is None:
            greatest = end
        else:
            if start < last - BACKWARD:
                findings.add("decreasing_starts", place=f"chunk {number}")
            if start - greatest > LONG:
                findings.add("long_gap", place=f"chunk {number}")
            if start < greatest - OVERLAP:
                findings.add("overlap", place=f"chunk {number}")
            if end > greatest:
                greatest = end
        last = start
        if words and look_at_words:
            starts, ends, _ = zip(*words, strict=True)
            if min(starts) < start - OUTSIDE or max(ends) > end + OUTSIDE:
                findings.add("words_outside", place=f"chunk {number}")


def _texts(chunks: Sequence[Chunk], findings: Findings) -> None:
    texts = [chunk[3].strip() for chunk in chunks]
    if len(texts) >= 10 and 10 * sum(map(is_one_word, texts)) >= 8 * len(texts):
        findings.add("word_chunks")
    repeated = 0
    before = ""
    for text in texts:
        if len(before) >= 4 and text.startswith(before):
            repeated += 1
        before = text
    if repeated >= 2:
        findings.add("repeated_text", repeated)
