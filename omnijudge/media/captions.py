"""Time-stamped captions of a clip: what a judge reads that cannot see."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

SIDECARS = (".captions.json", ".captions.jsonl", ".srt", ".vtt")


class Caption(NamedTuple):
    """A caption with its times in seconds; spoken words and sound tags alike."""

    start: float
    end: float
    text: str


def find_captions(cell: Any, folder: Path, media: str | None) -> list[Caption] | None:
    """Captions of a sample.

    Args:
        cell: the annotation's own ``captions``: a list of ``{start, end, text}`` or a file.
        folder: folder that a relative path is meant from.
        media: the clip; a file beside it that differs in the ending only is taken, too.

    Returns:
        The captions by time, or None if there are none anywhere.

    Raises:
        ValueError: they are there but cannot be read; the message says why.
    """
    if isinstance(cell, list):
        return _from_list(cell, "the list")
    if isinstance(cell, str) and cell.strip():
        return read_captions(folder / cell)
    if media is None:
        return None
    clip = Path(media)
    beside = (clip.with_name(clip.stem + ending) for ending in SIDECARS)
    found = next((p for p in beside if p.is_file()), None)
    return None if found is None else read_captions(found)


def read_captions(path: Path) -> list[Caption]:
    """Captions of a file: JSON or JSON lines of ``{start, end, text}``, SRT or WebVTT.

    Raises:
        ValueError: it cannot be read.
    """
    from omnijudge.transcripts.files import UnreadableFile, load_json_or_lines, read_bytes

    if path.suffix.lower() in (".srt", ".vtt"):
        from omnijudge.transcripts.reader import read_transcript

        transcript = read_transcript(path)
        if transcript.refused is not None:
            raise ValueError(str(transcript.refused))
        return sorted(
            (Caption(c.start, c.end, c.text.strip()) for c in transcript.chunks if c.text.strip()),
            key=lambda c: (c.start, c.end),
        )
    try:
        value = load_json_or_lines(read_bytes(path), str(path)).value
    except UnreadableFile as e:
        raise ValueError(str(e)) from e
    if isinstance(value, Mapping):
        value = value.get("captions", [value])
    if not isinstance(value, list):
        raise ValueError(f"{path}: must be a list of captions")
    return _from_list(value, str(path))


def _from_list(entries: list[Any], where: str) -> list[Caption]:
    found = []
    for number, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            raise ValueError(f"{where}: caption {number} is no object")
        text = entry.get("text")
        try:
            start = float(entry["start"])
            end = float(entry.get("end", start))
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"{where}: caption {number} needs start and end in seconds") from None
        if not isinstance(text, str) or not (math.isfinite(start) and math.isfinite(end)):
            raise ValueError(f"{where}: caption {number} needs a text and finite times")
        if text.strip():
            found.append(Caption(start, max(start, end), text.strip()))
    return sorted(found, key=lambda c: (c.start, c.end))
