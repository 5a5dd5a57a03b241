"""How one system's transcripts are to be read."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from omnijudge.errors import ConfigError

FORMATS = (
    "omniinteract",
    "vllm_omniinteract",
    "sentences",
    "whisper_chunks",
    "whisper_segments",
    "word_list",
    "whisper_cpp",
    "funasr",
    "dashscope_asr",
    "srt",
    "vtt",
    "realtime_events",
    "oi_responses",
    "oi_model_output",
)
ALIASES = {
    "hf": "whisper_chunks",
    "openai_verbose": "whisper_segments",
    "whisperx": "whisper_segments",
    "faster_whisper": "whisper_segments",
    "webvtt": "vtt",
    "qwen_asr": "word_list",
}
MILLISECOND_FORMATS = frozenset(("whisper_cpp", "funasr", "dashscope_asr"))
# Formats that carry their unit in the text or in the key.
FIXED_UNIT_FORMATS = frozenset(("srt", "vtt", "realtime_events"))
# The benchmark's own form: read by its own rules, where silence is ordinary.
NATIVE_FORMATS = frozenset(("omniinteract", "vllm_omniinteract"))


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Settings of a system and what is known about the clip.

    Attributes:
        format: canonical name or ``auto``.
        benchmark: decides between readings that the content leaves open.
        profile: scoring profile.
        time_unit: unit of the file's times; None for the format's own.
        time_offset: seconds added to every time after unit conversion.
        speakers: labels to keep; None keeps everything.
        duration: length of the clip in seconds, None if unknown.
    """

    format: str = "auto"
    benchmark: str = "omniinteract"
    profile: str = "robust"
    time_unit: Literal["s", "ms"] | None = None
    time_offset: float = 0.0
    speakers: frozenset[str] | None = None
    duration: float | None = None


def read_options(
    *,
    format: str = "auto",
    benchmark: str = "omniinteract",
    profile: str = "robust",
    time_unit: Literal["s", "ms"] | None = None,
    time_offset: float = 0.0,
    speaker: str | Sequence[str] | None = None,
    duration: float | None = None,
) -> ReadOptions:
    """Checks settings and brings them into one form.

    Raises:
        ConfigError: an unknown format or unit, or an offset that is not finite.
    """
    if time_unit not in (None, "s", "ms"):
        raise ConfigError(f"`time_unit` is {time_unit!r}; write s, ms, or leave it out")
    if not isfinite(time_offset):
        raise ConfigError(f"`time_offset` is {time_offset}; write a finite number of seconds")
    if speaker is None:
        speakers = None
    else:
        speakers = frozenset((speaker,)) if isinstance(speaker, str) else frozenset(speaker)
    if format not in FORMATS:
        format = canonical_format(format)
    return ReadOptions(format, benchmark, profile, time_unit, time_offset, speakers, duration)


def canonical_format(name: str) -> str:
    """The name of a format behind an alias.

    Raises:
        ConfigError: there is no such format; the nearest name is suggested.
    """
    name = ALIASES.get(name, name)
    if name == "auto" or name in FORMATS:
        return name
    known = ("auto", *FORMATS, *ALIASES)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known formats: {', '.join(known)}"
    raise ConfigError(f"`format` is {name!r}; {hint}")
