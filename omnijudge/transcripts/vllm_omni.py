"""What vLLM-Omni's OmniInteract client leaves beside a transcript, and its run folders.

A run folder has one folder per clip whose name ends in a digest, so clips are found through
``batch_summary.json``, whose rows say ``success`` instead of ``status``. Paths inside are those of
the machine that wrote them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from omnijudge.errors import Problem
from omnijudge.transcripts.files import UnreadableFile, read_json, read_json_lines
from omnijudge.transcripts.findings import Findings, Refusal

if TYPE_CHECKING:
    from omnijudge.transcripts.types import Transcript

TRANSCRIPT = "wav_transcript.json"
RESULT = "result.json"
SUMMARY = "batch_summary.json"
MANIFEST = "official_eval_manifest.jsonl"
_DIGEST = re.compile(r"--[0-9a-f]{8}$")


@dataclass(frozen=True, slots=True)
class RunClip:
    """One clip of a run folder.

    Attributes:
        sample_id: ``<subset>__<name of the clip's folder>``.
        subset: ``1q1a``, ``1q1a_math`` or ``1qna``.
        video: path of the video as written.
        status: ``ok`` or ``missing`` (failed, or nothing there).
        path: the transcript; None if missing.
        reason: why it is missing, else empty.
        reasons: why the clip was kept out of the official evaluation.
        output_name: ``<subset>/<video path with / as __>``, as the benchmark names its folders:
            the clip's folder without the digest.
    """

    sample_id: str
    subset: str
    video: str
    status: str
    path: Path | None
    reason: str = ""
    reasons: tuple[str, ...] = ()
    output_name: str = ""


def check_result(path: Path, findings: Findings) -> None:
    """Looks at the ``result.json`` beside a transcript.

    Raises:
        Refusal: ``missing_output`` if the clip failed.
    """
    result_path = path.with_name(RESULT)
    if not result_path.is_file():
        return
    try:
        result = read_json(result_path)
    except UnreadableFile:
        return
    if not isinstance(result, dict):
        return
    if result.get("success") is False:
        raise Refusal(
            "missing_output",
            f"`success` in {RESULT} beside it is false: the clip failed; run it again",
        )
    reasons = _reasons(result)
    if reasons:
        findings.add("ineligible", reasons=", ".join(reasons))


def is_run_summary(value: Any) -> bool:
    """Whether a parsed ``batch_summary.json`` is vLLM-Omni's: ``success``, not ``status``."""
    rows = value.get("results") if isinstance(value, dict) else None
    return isinstance(rows, list) and any(
        isinstance(row, dict) and "success" in row and "status" not in row for row in rows
    )


def run_clips(folder: str | Path) -> list[RunClip]:
    """All clips that the ``batch_summary.json`` of a run folder lists.

    Raises:
        UnreadableFile: the summary is missing or unreadable, or has no list ``results``.
    """
    root = Path(folder)
    summary = read_json(root / SUMMARY)
    rows = summary.get("results") if isinstance(summary, dict) else None
    if not isinstance(rows, list):
        raise UnreadableFile(
            "unknown_format",
            str(root / SUMMARY),
            "",
            "there is no list `results`; is this a run folder of vLLM-Omni?",
        )
    return [_clip(root, row) for row in rows if isinstance(row, dict)]


def read_run_folder(
    folder: str | Path,
    *,
    durations: Mapping[str, float] | None = None,
    **options: Any,
) -> Iterator[tuple[RunClip, Transcript | None]]:
    """Reads every clip of a run folder, one after the other.

    Args:
        folder: the run folder.
        durations: clip length in seconds by sample id, where known.
        **options: as for :func:`omnijudge.transcripts.reader.read_transcript`.

    Yields:
        The clip and its transcript; None where the output is missing.
    """
    from omnijudge.transcripts.reader import read_transcript

    for clip in run_clips(folder):
        if clip.path is None:
            yield clip, None
        else:
            duration = (durations or {}).get(clip.sample_id)
            yield clip, read_transcript(clip.path, duration=duration, **options)


def check_manifest(path: str | Path) -> list[Problem]:
    """Says how many clips an ``official_eval_manifest.jsonl`` leaves out.

    It lists only clips that succeeded and are eligible; the ``batch_summary.json`` beside it lists
    all.

    Raises:
        UnreadableFile: the manifest is unreadable.
    """
    manifest = Path(path)
    listed = len(read_json_lines(manifest).value)
    try:
        summary = read_json(manifest.with_name(SUMMARY))
    except UnreadableFile:
        return []
    rows = summary.get("results") if isinstance(summary, dict) else None
    left_out = len(rows) - listed if isinstance(rows, list) else 0
    if left_out <= 0:
        return []
    return [
        Problem(
            "manifest_incomplete",
            "warning",
            str(path),
            "",
            f"{left_out} of {listed + left_out} clips are not in it (failed or not eligible) and "
            f"would not be scored; point the system at the folder with {SUMMARY} instead",
            count=left_out,
        )
    ]


def find_written_path(written: str, folder: str | Path) -> Path | None:
    """A path written on another machine: as it stands, else its last three parts below ``folder``.

    Args:
        written: absolute or relative path, with ``/`` or ``\\``.
        folder: where the tree lies here.

    Returns:
        An existing path, or None.
    """
    if Path(written).exists():
        return Path(written)
    parts = [
        p for p in PurePosixPath(written.replace("\\", "/")).parts if p not in ("/", ".", "..")
    ]
    for length in (3, 2, 1):
        candidate = Path(folder, *parts[-length:])
        if len(parts) >= length and candidate.exists():
            return candidate
    return None


def _clip(root: Path, row: Mapping[str, Any]) -> RunClip:
    written = str(row.get("output_dir") or "")
    parts = PurePosixPath(written.replace("\\", "/")).parts
    name = parts[-1] if parts else ""
    subset = str(row.get("subset") or (parts[-2] if len(parts) > 1 else ""))
    video = str(row.get("video") or "")
    sample_id = f"{subset}__{name}"
    output_name = f"{subset}/{_DIGEST.sub('', name)}"
    reasons = _reasons(row)

    def missing(reason: str) -> RunClip:
        return RunClip(sample_id, subset, video, "missing", None, reason, reasons, output_name)

    if row.get("success") is not True:
        return missing(str(row.get("error") or "") or "`success` is not true")
    folder = find_written_path(written, root) if written else None
    if folder is None:
        return missing(f"there is no folder {name or '(no output_dir)'} below {root}")
    path = folder / TRANSCRIPT
    if not path.is_file():
        failed = (folder / ".failed.json").is_file()
        return missing("the clip failed (.failed.json)" if failed else f"no {TRANSCRIPT}")
    return RunClip(sample_id, subset, video, "ok", path, "", reasons, output_name)


def _reasons(row: Mapping[str, Any]) -> tuple[str, ...]:
    reasons = row.get("official_eval_ineligible_reasons")
    if not isinstance(reasons, list):
        return ()
    return tuple(str(reason) for reason in reasons)
