"""What looks wrong about the times and texts of one transcript once it has been read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
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


def check_times(
    chunks: Sequence[Chunk], format_name: str, options: ReadOptions, findings: Findings
) -> None:
    """Adds what is suspicious about chunks in file order.

    Raises:
        Refusal: ``mixed_units``; only a finding in the benchmark's own form.
    """
    if not chunks:
        return
    mixed = False
    if format_name not in FIXED_UNIT_FORMATS:
        detail = _mixed_units(chunks, options.duration)
        mixed = detail is not None
        if detail is not None:
            if format_name not in NATIVE_FORMATS:
                raise Refusal("mixed_units", f"{detail[1]}; correct the file", detail[0])
            findings.add("mixed_units", place=detail[0], detail=detail[1])
        milliseconds = format_name in MILLISECOND_FORMATS
        unit = options.time_unit or ("ms" if milliseconds else "s")
        _suspect_unit(chunks, unit, options.duration, findings)
    _count(chunks, options.duration, findings, skip_words=mixed)
    _texts(chunks, findings)


def _mixed_units(chunks: Sequence[Chunk], duration: float | None) -> tuple[str, str] | None:
    """Place and description of times in two units, or None."""
    with_words = odd = 0
    first: tuple[str, str] | None = None
    for chunk in chunks:
        if not chunk.words:
            continue
        with_words += 1
        word = chunk.words[0].start
        low, high = chunk.start - 1, chunk.end + 1
        words_in_ms = word >= 100 and word > high and low <= word / 1000 <= high
        chunks_in_ms = (
            chunk.start >= 1000
            and word < chunk.start / 10
            and chunk.start - 1000 <= 1000 * word <= chunk.end + 1000
        )
        if words_in_ms or chunks_in_ms:
            odd += 1
            first = first or (
                f"chunk {chunk.id}",
                f"the chunk starts at {chunk.start:g}, its first word at {word:g}: one is in "
                "seconds, the other in milliseconds",
            )
    if with_words and 2 * odd >= with_words:
        return first
    if duration is None:
        return None
    limit = duration + CLIP_SLACK
    far = [c for c in chunks if c.start > limit and c.start / 1000 <= limit]
    near = next((c for c in chunks if c.end <= limit), None)
    if near is not None and far and 10 * len(far) >= len(chunks):
        return (
            f"chunk {far[0].id}",
            f"this chunk starts at {far[0].start:g}, chunk {near.id} at {near.start:g}, in a clip "
            f"of {duration:g} s: one is in seconds, the other in milliseconds",
        )
    return None


def _suspect_unit(
    chunks: Sequence[Chunk], unit: str, duration: float | None, findings: Findings
) -> None:
    greatest = max(chunk.end for chunk in chunks)
    if unit == "ms":
        if duration is not None and len(chunks) >= 3 and 0 < greatest < duration / 100:
            findings.add("suspect_s")
    elif duration is not None:
        if duration < greatest <= 1000 * (duration + CLIP_SLACK) and (
            median(chunk.start for chunk in chunks) > duration
        ):
            findings.add("suspect_ms")
    elif (
        len(chunks) >= 3
        and all(c.start.is_integer() and c.end.is_integer() for c in chunks)
        and median(c.end - c.start for c in chunks) >= 100
    ):
        findings.add("suspect_ms")


def _count(
    chunks: Sequence[Chunk], duration: float | None, findings: Findings, *, skip_words: bool
) -> None:
    beyond = float("inf") if duration is None else duration + BEYOND
    last = chunks[0].start
    greatest = chunks[0].end
    for number, chunk in enumerate(chunks):
        start, end = chunk.start, chunk.end
        if start > beyond:
            findings.add("beyond_clip", place=f"chunk {chunk.id}", duration=duration)
        if start < last - BACKWARD:
            findings.add("decreasing_starts", place=f"chunk {chunk.id}")
        if end - start > LONG:
            findings.add("long_chunk", place=f"chunk {chunk.id}")
        if end == start:
            findings.add("zero_length", place=f"chunk {chunk.id}")
        if number:
            if start - greatest > LONG:
                findings.add("long_gap", place=f"chunk {chunk.id}")
            if start < greatest - OVERLAP:
                findings.add("overlap", place=f"chunk {chunk.id}")
        if chunk.words and not skip_words:
            low = min(word[0] for word in chunk.words)
            high = max(word[1] for word in chunk.words)
            if low < start - OUTSIDE or high > end + OUTSIDE:
                findings.add("words_outside", place=f"chunk {chunk.id}")
        last = start
        if end > greatest:
            greatest = end


def _texts(chunks: Sequence[Chunk], findings: Findings) -> None:
    texts = [chunk.text.strip() for chunk in chunks]
    if len(texts) >= 10 and 10 * sum(map(is_one_word, texts)) >= 8 * len(texts):
        findings.add("word_chunks")
    repeated = sum(len(before) >= 4 and text.startswith(before) for before, text in pairwise(texts))
    if repeated >= 2:
        findings.add("repeated_text", repeated)
