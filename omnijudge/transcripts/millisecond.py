"""Recognisers that write milliseconds: FunASR, and the file transcription of DashScope."""

from __future__ import annotations

import re
from typing import Any

from omnijudge.transcripts.entries import (
    Clock,
    Entry,
    RawWord,
    group_words,
    label_field,
    objects,
    text_field,
)
from omnijudge.transcripts.findings import Findings, Refusal
from omnijudge.transcripts.options import ReadOptions

# A CJK character, or a run of letters, digits and apostrophes.
_TOKEN = re.compile("[\u4e00-\u9fff]|['’]*[^\\W_\u4e00-\u9fff](?:[^\\W_\u4e00-\u9fff]|['’])*")


def funasr(root: Any, clock: Clock, options: ReadOptions, findings: Findings) -> list[Entry]:
    """``sentence_info``, else ``text`` with a pair of times per token."""
    sentences = root.get("sentence_info")
    if not isinstance(sentences, list):
        return _tokens_only(root, clock, options, findings)
    entries = []
    for number, item in objects(sentences, "sentence_info", findings):
        place = f"sentence_info[{number}]"
        text = text_field(item.get("text"))
        pairs = _pairs(item.get("timestamp"), clock)
        start, end = clock(item.get("start")), clock(item.get("end"))
        # `start` is known to hold the last word's begin in some versions.
        begins = [begin for begin, _ in pairs if begin is not None]
        ends = [finish for _, finish in pairs if finish is not None]
        entries.append(
            Entry(
                text,
                min(begins) if begins else start,
                max(ends) if ends else end,
                place,
                _words(text, pairs, place, findings),
                label_field(item.get("spk")),
                untimed=not pairs and item.get("start") is None and item.get("end") is None,
            )
        )
    return entries


def dashscope_asr(root: Any, clock: Clock, findings: Findings) -> list[Entry]:
    """``transcripts`` with one channel of ``sentences``.

    Raises:
        Refusal: ``several_results`` for more than one channel; ``no_times`` for text alone.
    """
    results = root["transcripts"]
    if len(results) > 1:
        channels = ", ".join(
            str(r.get("channel_id", "?")) if isinstance(r, dict) else "?" for r in results
        )
        raise Refusal(
            "several_results",
            f"{len(results)} transcripts (channels {channels}); write the assistant's channel to "
            "a file of its own",
            "transcripts",
        )
    if not results or not isinstance(results[0], dict):
        return []
    sentences = results[0].get("sentences")
    if not isinstance(sentences, list):
        text = text_field(results[0].get("text"))
        return [Entry(text, None, None, "transcripts[0]", untimed=True)] if text.strip() else []
    entries = []
    place = "transcripts[0].sentences"
    for number, item in objects(sentences, place, findings):
        start, end = item.get("begin_time"), item.get("end_time")
        words = item.get("words")
        entries.append(
            Entry(
                text_field(item.get("text")),
                clock(start),
                clock(end),
                f"{place}[{number}]",
                [
                    RawWord(
                        text_field(word.get("text")).strip() + text_field(word.get("punctuation")),
                        clock(word.get("begin_time")),
                        clock(word.get("end_time")),
                    )
                    for word in (words if isinstance(words, list) else ())
                    if isinstance(word, dict)
                ],
                label_field(item.get("speaker_id")),
                untimed=start is None and end is None,
            )
        )
    return entries


def tokens(text: str) -> list[str]:
    """The units FunASR gives times to: CJK characters, and runs of letters and digits."""
    return _TOKEN.findall(text)


def is_pairs(value: Any) -> bool:
    """Whether a value is a list of pairs."""
    return isinstance(value, list) and all(isinstance(p, list) and len(p) == 2 for p in value)


def _pairs(value: Any, clock: Clock) -> list[tuple[float | None, float | None]]:
    if not is_pairs(value):
        return []
    return [(clock(begin), clock(end)) for begin, end in value]


def _words(
    text: str, pairs: list[tuple[float | None, float | None]], place: str, findings: Findings
) -> list[RawWord]:
    if not pairs:
        return []
    found = tokens(text)
    if len(found) != len(pairs):
        findings.add("words_mismatch", place=place)
        return []
    return [RawWord(t, begin, end) for t, (begin, end) in zip(found, pairs, strict=True)]


def _tokens_only(root: Any, clock: Clock, options: ReadOptions, findings: Findings) -> list[Entry]:
    text = text_field(root.get("text"))
    pairs = _pairs(root.get("timestamp"), clock)
    words = _words(text, pairs, "timestamp", findings)
    if words:
        return group_words(words, "timestamp", options, findings)
    if not text.strip():
        return []
    begins = [begin for begin, _ in pairs if begin is not None]
    ends = [end for _, end in pairs if end is not None]
    return [
        Entry(
            text,
            begins[0] if begins else None,
            max(ends) if ends else None,
            "timestamp",
            untimed=not pairs,
        )
    ]
