"""Pictures, sound and clips as parts of a chat message, as data the judge can open."""

from __future__ import annotations

import base64
from typing import Any

from omnijudge.media.sources import MediaError, read_source, split_source

LARGEST_VIDEO = 64 * 2**20
"""Bytes of a clip sent whole at most."""
KINDS = {".mp4": "mp4", ".m4v": "mp4", ".mov": "quicktime", ".webm": "webm", ".mkv": "x-matroska"}


def image_part(jpeg: bytes) -> dict[str, Any]:
    """A JPEG picture."""
    return {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{_text(jpeg)}"}}


def audio_part(wav: bytes) -> dict[str, Any]:
    """WAV sound."""
    return {"type": "input_audio", "input_audio": {"data": _text(wav), "format": "wav"}}


def video_part(source: str) -> dict[str, Any]:
    """A whole clip.

    Raises:
        MediaError: it cannot be read or is too large to be sent.
    """
    data = read_source(source)
    if len(data) > LARGEST_VIDEO:
        raise MediaError(
            f"{source}: {len(data) / 2**20:.0f} MiB are too large to be sent whole "
            f"(at most {LARGEST_VIDEO / 2**20:.0f}); use scoring.evidence: frames+audio"
        )
    path, row = split_source(source)
    kind = "mp4" if row is not None else KINDS.get(path.suffix.lower(), "mp4")
    return {"type": "video_url", "video_url": {"url": f"data:video/{kind};base64,{_text(data)}"}}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
