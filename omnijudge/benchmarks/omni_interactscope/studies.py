"""What Omni-InteractScope's systems are compared by, what is swept, what judges are compared in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnijudge.benchmarks.declared import JudgedField, Sweep, choices, sweep
from omnijudge.benchmarks.omni_interactscope.schemas import VERDICT

if TYPE_CHECKING:
    from omnijudge.benchmarks.omni_interactscope.options import Options

LEADING = (
    ("joint_accuracy", "average_six"),
    *(("joint_accuracy", f"T{n}") for n in range(1, 8)),
    ("timely_recall", "T8"),
)


def sweeps(options: Options) -> list[Sweep]:
    """Tolerance and the points that the benchmark leaves open (InteractScope decisions 1 to 9).

    The span of grouping is a point of its own and never moves along with the tolerance.
    """
    return [
        sweep("tolerance", (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0), "s"),
        sweep("group_span", (0.0, 1.0, 2.0, 3.0), "s"),
        choices("grouping_mode", {m: {"grouping_mode": m} for m in ("anchored", "chained")}),
        choices(
            "first_response_variant",
            {
                v: {"first_response_variant": v}
                for v in ("default", "late_released", "since_previous")
            },
        ),
        choices("pre_query", {v: {"pre_query": v} for v in ("drop", "keep")}),
        choices("judge_error", {v: {"judge_error": v} for v in ("fail", "exclude")}),
    ]


def judged_fields(options: Options) -> list[JudgedField]:
    """The one verdict: does the response say what the reference says?"""
    return [JudgedField(VERDICT, "equivalent", "category")]
