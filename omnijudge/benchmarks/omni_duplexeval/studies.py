"""What Omni-DuplexEval's systems are compared by, what is swept, what judges are compared in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from omnijudge.benchmarks.declared import JudgedField, Sweep, choices, sweep
from omnijudge.benchmarks.omni_duplexeval.windows import DEFAULT_SHIFTS

if TYPE_CHECKING:
    import numpy.typing as npt

    from omnijudge.benchmarks.base import Partition
    from omnijudge.benchmarks.omni_duplexeval.options import Options

LEADING = (
    ("overall", "all"),
    ("overall", "rtd"),
    ("temporal", "rtd"),
    ("content", "rtd"),
    ("success_rate", "pr_pooled"),
    ("success_rate", "pr_macro"),
)


def sweeps(options: Options) -> list[Sweep]:
    """Penalty, windows and profile (DuplexEval rules 2, 3 and 5)."""
    shifts: dict[str, dict[str, Any]] = {
        "-1 to -2": {"window_shifts": DEFAULT_SHIFTS},
        "0": {"window_shifts": (0.0,)},
        "-1": {"window_shifts": (-1.0,)},
        "-2": {"window_shifts": (-2.0,)},
    }
    return [
        choices("profile", {p: {"profile": p} for p in ("robust", "published")}),
        sweep("lambda", (0.0, 0.25, 0.5, 0.75, 1.0)),
        sweep("reminder_window_seconds", (5.0, 8.0, 10.0, 12.0, 15.0), "s"),
        choices("window_shifts", shifts),
        choices("exclusive_windows", {"no": {"exclusive_windows": False},
                                      "yes": {"exclusive_windows": True}}),
    ]  # fmt: skip


def judged_fields(options: Options) -> list[JudgedField]:
    """Relevance and success as labels, temporal and content scores from 0 to 3."""
    scale = (0.0, 3.0)
    return [
        JudgedField("temporal", "temporal_score", "score", scale),
        JudgedField("temporal", "is_relevant", "category"),
        JudgedField("relevance", "is_relevant", "category"),
        JudgedField("window", "temporal_score", "score", scale),
        JudgedField("content", "content_score", "score", scale),
        JudgedField("event", "success_score", "category"),
        JudgedField("full", "success_score", "category"),
    ]


def every_question(part: Partition, options: Options) -> npt.NDArray[np.int64]:
    """All stage rows that have their evidence: another judge may find other sentences relevant."""
    return np.flatnonzero(np.asarray(part.stages["evidence"].is_valid().to_numpy(), np.bool_))
