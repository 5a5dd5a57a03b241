"""Sentences with times: Omni-DuplexEval's response files and their relatives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omnijudge.transcripts.entries import Clock, Entry, label_field, objects, text_field
from omnijudge.transcripts.files import UnreadableFile, read_json
from omnijudge.transcripts.findings import Findings, Refusal
from omnijudge.transcripts.options import ReadOptions

_TEXTS = ("sentence", "text", "content")
_STARTS = ("start", "current_time", "time")
META_SUFFIX = ".meta.json"


def container(root: Any) -> tuple[str, list[Any]] | None:
    """Where the sentences stand: the key (empty for a bare list) and the list."""
    if isinstance(root, list):
        return "", root
    if isinstance(root, dict):
        for key in ("sentences", "chunks"):
            if isinstance(root.get(key), list):
                return key, root[key]
    return None


def sentences(root: Any, clock: Clock, options: ReadOptions, findings: Findings) -> list[Entry]:
    """Entries of ``{sentence | text | content, start | current_time | time, end?}``.

    An absent end is the start. In benchmark ``omni_duplexeval`` (its paper mode) starts are raised
    to 0, ends to the start, and blank sentences pass uncounted; elsewhere the common rules hold.

    Raises:
        Refusal: ``no_media_clock`` if three or more sentences all stand at 0.
    """
    found = container(root)
    assert found is not None
    where, items = found
    duplexeval = options.benchmark == "omni_duplexeval"
    entries = []
    zero = True
    for number, item in objects(items, where, findings):
        texts = (item.get(key) for key in _TEXTS)
        text = next((t for t in texts if isinstance(t, str) and t.strip()), "")
        written = next((item[k] for k in _STARTS if item.get(k) is not None), None)
        start = clock(written)
        end = start if item.get("end") is None else clock(item["end"])
        zero = zero and start == end == clock.at(0.0)
        if duplexeval:
            if not text:
                continue
            if start is not None:
                start = max(0.0, start)
                end = start if end is None else max(start, end)
        entries.append(
            Entry(
                text,
                start,
                start if end is None else end,
                f"{where}[{number}]",
                speaker=label_field(item.get("speaker")),
                untimed=written is None and item.get("end") is None,
            )
        )
    if zero and len(entries) >= 3:
        raise Refusal(
            "no_media_clock",
            f"all {len(entries)} sentences have `start` and `end` 0, which is written where the "
            "text deltas had no clock field; record the position in the input (`start`) with "
            "every sentence",
            where,
        )
    return entries


def check_meta(path: Path, findings: Findings) -> None:
    """Looks at the ``<id>.meta.json`` that Omni-DuplexEval's client leaves beside a response.

    Raises:
        Refusal: ``no_media_clock`` if the clip was not paced in real time.
    """
    meta_path = path.with_name(path.stem + META_SUFFIX)
    if not meta_path.is_file():
        return
    try:
        meta = read_json(meta_path)
    except UnreadableFile:
        return
    if not isinstance(meta, dict):
        return
    if text_field(meta.get("clock")).strip().lower() == "invalid":
        raise Refusal(
            "no_media_clock",
            f'`clock` in {meta_path.name} is "invalid": the clip was not sent in real time, so '
            "the times are not positions in it; run the clip again in real-time pace",
        )
    if meta.get("response_done") is False:
        findings.add("ineligible", reasons=f"`response_done` in {meta_path.name} is false")
