"""Scoring options of Omni-InteractScope and what they decide (decisions 1 to 9)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Options(BaseModel):
    """``scoring`` of a run. The description of the benchmark leaves these points open.

    Attributes:
        profile: ``robust`` and ``paper`` mean the same here: the rules as described.
        tolerance: seconds a response may be early or late; no part of a T8-A window.
        group_span: seconds within which fragments become one response; never swept along with
            the tolerance.
        grouping_mode: the span counts from the group's first fragment (``anchored``) or from its
            latest (``chained``).
        first_response_variant: what a T1..T7 target may take: ``default`` (the earliest response
            not yet taken), ``late_released`` (a late one stays for the next target) or
            ``since_previous`` (only responses after the previous target's time).
        pre_query: outputs before the request are dropped and counted, or kept.
        judge_error: a verdict that stays unusable counts as not successful (``fail``), or the
            target leaves all sums (``exclude``).
        tool_case_sensitive: tool names differ by case.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    profile: Literal["robust", "paper"] = "robust"
    tolerance: Seconds = 2.0
    group_span: Seconds = 2.0
    grouping_mode: Literal["anchored", "chained"] = "anchored"
    first_response_variant: Literal["default", "late_released", "since_previous"] = "default"
    pre_query: Literal["drop", "keep"] = "drop"
    judge_error: Literal["fail", "exclude"] = "fail"
    tool_case_sensitive: bool = True

    @field_validator("profile", mode="before")
    @classmethod
    def _no_code(cls, value: Any) -> Any:
        if value == "published":
            raise ValueError(
                "no evaluator of Omni-InteractScope was published, so there is nothing to follow; "
                "write robust or paper"
            )
        return value

    def resolved(self) -> Options:
        """The options themselves: no default depends on the profile."""
        return self
