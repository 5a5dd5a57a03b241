"""Scoring options of OmniInteract and what the profiles make of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]

CORRECTIONS = (
    "anchor_normalised",
    "crossing_without_words_split",
    "spill_tolerance",
    "blank_chunks_ignored",
    "categories_by_slot",
    "degenerate_window_zero",
    "unmatched_per_utterance",
)
SPILL_TOLERANCE = 0.5


class Options(BaseModel):
    """``scoring`` of a run; names and defaults as in the published evaluator (rule 1).

    Attributes:
        last_slot_tail_sec: seconds after ``t_a`` for a slot that nothing follows.
        w_ack: weight of the early stage.
        core_weight: weight of the core stage; None: ``1 - w_ack`` (1 for later 1QnA steps).
        decay_alpha: slope of the time decay.
        decay_gamma: exponent of the time decay.
        core_quality_threshold: a core score strictly below it is low quality.
        partial_quality_threshold: the same for the interruption diagnosis.
        threshold_zeroes_core: a low-quality core score earns no TP (else only the FP).
        later_answers: which scenes show the judge the answers of later slots.
        nccs_from: what a pair's score is made of: ``tp_core`` or ``quality_times_timeliness``.
        unmatched_fp: every unmatched chunk is an FP.
        interrupted_output_eval: judge the outputs of interrupted slots.
        corrections: named repairs of the measure; none is on by default.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    profile: Literal["robust", "published", "paper"] = "robust"
    last_slot_tail_sec: NonNegative = 60.0
    w_ack: Share = 0.2
    core_weight: Share | None = None
    decay_alpha: NonNegative = 1.0
    decay_gamma: NonNegative = 1.0
    core_quality_threshold: Share = 0.5
    partial_quality_threshold: Share = 0.5
    threshold_zeroes_core: bool | None = None
    later_answers: Literal["all", "1qna"] | None = None
    nccs_from: Literal["tp_core", "quality_times_timeliness"] | None = None
    unmatched_fp: bool = True
    interrupted_output_eval: bool = True
    corrections: tuple[str | dict[str, float], ...] = ()

    @field_validator("corrections")
    @classmethod
    def _known(cls, value: tuple[str | dict[str, float], ...]) -> Any:
        for entry in value:
            names = [entry] if isinstance(entry, str) else list(entry)
            for name in names:
                if name not in CORRECTIONS:
                    raise ValueError(
                        f"{name!r} is no correction; there are {', '.join(CORRECTIONS)}"
                    )
            if isinstance(entry, dict) and (
                set(entry) != {"spill_tolerance"} or not 0 <= entry["spill_tolerance"] < 1e9
            ):
                raise ValueError("only spill_tolerance takes a number: seconds, 0 or more")
        return value

    def resolved(self) -> Options:
        """The options with everything filled in that the profile decides."""
        paper = self.profile == "paper"
        defaults: dict[str, Any] = {
            "core_weight": 1.0 if paper else None,
            "threshold_zeroes_core": not paper,
            "later_answers": "1qna" if paper else "all",
            "nccs_from": "quality_times_timeliness" if paper else "tp_core",
        }
        update = {k: v for k, v in defaults.items() if getattr(self, k) is None}
        return self.model_copy(update=update)

    def corrects(self, name: str) -> bool:
        """Whether a named repair is on."""
        return any(name == c or (isinstance(c, dict) and name in c) for c in self.corrections)

    @property
    def spill_tolerance(self) -> float:
        """Seconds of overrun that are no spill (0 unless the repair is on)."""
        for c in self.corrections:
            if c == "spill_tolerance":
                return SPILL_TOLERANCE
            if isinstance(c, dict):
                return c["spill_tolerance"]
        return 0.0
