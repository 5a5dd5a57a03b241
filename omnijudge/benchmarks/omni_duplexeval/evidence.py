"""What a judge gets to see, hear and read of a clip (Omni-DuplexEval rule 7).

The kind of evidence is chosen once per run, because scores from different kinds cannot be
compared. A sample that lacks what the run's kind needs is not asked about: its score is missing,
never zero.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from omnijudge.benchmarks.omni_duplexeval.windows import frame_times, thin_out

if TYPE_CHECKING:
    from omnijudge.benchmarks.omni_duplexeval.options import Options
    from omnijudge.config import JudgeConfig

HEARD = "frames+audio"
SEEN = ("frames", HEARD, "video")
"""Kinds that need the clip itself."""
TEXT_STAGES = ("relevance", "event", "full")
USABLE = ("ok", "truncated")
"""States of a clip that can be decoded, at least in part."""
MAKING = 1
"""How pictures and sound are made of a clip; raised when that changes, so that all are asked again.
"""


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """The kinds of evidence of a run.

    Attributes:
        content: for the content score: ``video``, ``frames``, ``frames+audio``, ``captions``,
            ``references`` or ``unknown`` (replayed answers).
        windows: likewise for windows; None where the judge could only read references, which
            carry no times.
        because: why, in words.
    """

    content: str
    windows: str | None
    because: str


def run_evidence(
    options: Options, judges: Sequence[JudgeConfig], any_captions: bool
) -> RunEvidence:
    """Chooses the kind for a run: as configured, or by what every judge of it can take in."""
    engines = {j.engine for j in judges}
    if engines == {"replay"}:
        return _both("unknown", "the answers are replayed")
    if options.evidence != "auto":
        return _both(options.evidence, f"scoring.evidence is {options.evidence}")
    if all(_takes(j, "image") for j in judges):
        if all(_takes(j, "audio") for j in judges) and not options.published:
            return _both("frames+audio", "the judge takes images and audio")
        return _both("frames", "the judge takes images")
    smoke = engines == {"lexical"}
    who = "the smoke judge reads" if smoke else "the judge is taken to read"
    if any_captions:
        return _both("captions", f"{who} text only and there are captions")
    because = f"{who} text only and there are no captions"
    return RunEvidence("references", "references" if smoke else None, because)


def _both(kind: str, because: str) -> RunEvidence:
    return RunEvidence(kind, kind, because)


def _takes(judge: JudgeConfig, modality: str) -> bool:
    """Whether the judge's engine options say how many images or sounds a question may hold."""
    limits = judge.engine_options.get("limit_mm_per_prompt")
    limit = limits.get(modality) if isinstance(limits, Mapping) else None
    count = limit.get("count") if isinstance(limit, Mapping) else limit
    return isinstance(count, int) and count > 0


@dataclass(frozen=True, slots=True)
class Plan:
    """Evidence of one question. ``kind`` None: it cannot be asked, ``note`` says why."""

    kind: str | None
    frames: int | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Clip:
    """What is known of a sample's clip before anything is decoded.

    Attributes:
        state: state of the clip (see ``omnijudge.media``); None if it was not looked at.
        readable: how far it can be read, in seconds.
        has_audio: it has a sound track.
        has_captions: the sample has captions.
        has_references: the sample has reference descriptions.
        windows: kind of evidence the run uses for windows.
        content: kind of evidence the run uses for the content score.
    """

    state: str | None
    readable: float | None
    has_audio: bool
    has_captions: bool
    has_references: bool
    windows: str | None
    content: str | None


def plan(stage: str, clip: Clip, start: float, end: float, options: Options) -> Plan:
    """Evidence of a question about ``[start, end]`` of a clip (content: the whole clip)."""
    if stage in TEXT_STAGES:
        return Plan("text", 0)
    kind = clip.content if stage == "content" else clip.windows
    if kind is None:
        return Plan(None, None, "references_carry_no_times")
    if kind == "unknown":
        return Plan("unknown")
    if kind == "captions":
        return Plan("captions", 0) if clip.has_captions else Plan(None, None, "no_captions")
    if kind == "references":
        return Plan("references", 0) if clip.has_references else Plan(None, None, "no_references")
    return _plan_media(stage, kind, clip, start, end, options)


def _plan_media(
    stage: str, kind: str, clip: Clip, start: float, end: float, options: Options
) -> Plan:
    if clip.state not in USABLE:
        return Plan(None, None, f"media_{clip.state or 'missing'}")
    if clip.readable is not None and end > clip.readable + 0.5:
        return Plan(None, None, "beyond_readable_media")
    if kind == "video" and stage == "content":
        return Plan("video")
    wanted = frame_times(start, end, options.fps)
    shown = min(len(wanted), options.max_frames)
    notes = [f"{shown} of {len(wanted)} frames"] if shown < len(wanted) else []
    hears = kind != "frames" and stage != "temporal"
    if hears and not clip.has_audio:
        notes.append("no_audio")
    seen = HEARD if hears and clip.has_audio else "frames"
    return Plan(seen, shown, ", ".join(notes) or None)


def shown_times(start: float, end: float, options: Options) -> list[float]:
    """Times of the frames that a question shows."""
    return thin_out(frame_times(start, end, options.fps), options.max_frames)


@dataclass(frozen=True)
class MediaParts(Sequence[dict[str, Any]]):
    """Message parts with pictures and sound of ``[start, end]``, decoded when they are read.

    A question is looked at several times (to find it, to ask it, to read its answer); only
    asking it needs the pictures.

    Attributes:
        folder: folder of the data.
        clip: the clip, from there.
        clip_digest: hash of the clip.
        kind: ``frames``, ``frames+audio`` or ``video``.
        start: in seconds.
        end: likewise.
        options: of the run.
    """

    folder: str
    clip: str
    clip_digest: str
    kind: str
    start: float
    end: float
    options: Options

    @property
    def source(self) -> str:
        """Where the clip is on this machine."""
        return os.path.normpath(os.path.join(self.folder, self.clip))

    @property
    def digest(self) -> str:
        """Stands for what the parts show: the clip and how they are cut from it."""
        size = "" if self.kind == "video" else f" side {self.options.frame_side}"
        times = "" if self.kind == "video" else f" at {self._times!r}"
        return (
            f"{MAKING}: {self.kind} of {self.clip_digest} {self.start!r}-{self.end!r}{times}{size}"
        )

    @property
    def _times(self) -> list[float]:
        return shown_times(self.start, self.end, self.options)

    def __len__(self) -> int:
        if self.kind == "video":
            return 1
        return len(self._times) + self.kind.endswith("audio")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The parts.

        Raises:
            omnijudge.errors.EvidenceError: the clip cannot be decoded there.
        """
        from omnijudge.media import MediaError

        try:
            yield from self._parts()
        except MediaError as e:
            # The reason is kept with the judgement, and that is no place for a machine's folders.
            here, clip = (p.partition("::")[0] for p in (self.source, self.clip))
            raise MediaError(str(e).replace(here, clip)) from e

    def _parts(self) -> Iterator[dict[str, Any]]:
        from omnijudge.media import audio_part, clip_frames, image_part, video_part, window_wav

        if self.kind == "video":
            yield video_part(self.source)
            return
        for jpeg in clip_frames(self.source, self._times, side=self.options.frame_side):
            yield image_part(jpeg)
        if self.kind == "frames+audio":
            yield audio_part(window_wav(self.source, self.start, self.end))

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...

    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        return list(self)[index]
