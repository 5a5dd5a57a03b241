"""Scoring options of Omni-DuplexEval."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from omnijudge.benchmarks.omni_duplexeval.windows import DEFAULT_SHIFTS

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Offset = Annotated[float, Field(ge=-60, le=60, allow_inf_nan=False)]
EvidenceChoice = Literal["auto", "frames", "frames+audio", "captions", "references", "video"]


class Options(BaseModel):
    """``scoring`` of a run.

    Attributes:
        window_shifts: offsets in seconds by which a sentence's interval is moved to find what it
            describes. The paper gives the range of -1 to -2 s and the number of four, not the
            offsets themselves.
        penalty: weight of the share of irrelevant sentences (lambda of the paper).
        reminder_window_seconds: how long after an event a reply counts.
        exclusive_windows: end a reminder window just before the next event, so that one reply
            cannot serve two events.
        evidence: what the judge gets of a clip; ``auto`` goes by what the judge can take in.
        fps: frames per second of a window.
        max_frames: most frames in one question.
        frame_side: longer side of a frame in pixels.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    profile: Literal["robust", "published", "paper"] = "robust"
    window_shifts: Annotated[tuple[Offset, ...], Field(min_length=1)] = DEFAULT_SHIFTS
    penalty: Annotated[float, Field(alias="lambda", ge=0, le=1)] = 1.0
    reminder_window_seconds: Seconds = 10.0
    exclusive_windows: bool = False
    evidence: EvidenceChoice = "auto"
    fps: Annotated[float, Field(gt=0, le=30)] = 2.0
    max_frames: Annotated[int, Field(ge=1, le=512)] = 32
    frame_side: Annotated[int, Field(ge=64, le=4096)] = 512

    def resolved(self) -> Options:
        """The options with everything filled in that the profile decides: nothing is left open."""
        return self

    @property
    def published(self) -> bool:
        """Whether the published scripts are followed, quirks included."""
        return self.profile == "published"
