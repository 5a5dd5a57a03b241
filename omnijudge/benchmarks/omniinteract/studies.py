"""What OmniInteract's systems are compared by, what is swept, what judges are compared in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnijudge.benchmarks.declared import JudgedField, Sweep, choices, sweep
from omnijudge.benchmarks.omniinteract.options import CORRECTIONS

if TYPE_CHECKING:
    from omnijudge.benchmarks.omniinteract.options import Options

LEADING = (
    ("ia_qtf1", "all"),
    ("ia_qtf1", "realtime"),
    ("ia_qtf1", "proactive"),
    ("ia_qtf1", "nested"),
    ("ia_qtf1", "1qna"),
    ("paq", "interrupted"),
    ("nccs", "nested"),
)


def sweeps(options: Options) -> list[Sweep]:
    """Profile, weights, thresholds, decay, tail and repairs (OmniInteract rules 1 and 24)."""
    repairs: dict[str, dict[str, tuple[str, ...]]] = {"none": {"corrections": ()}}
    repairs |= {name: {"corrections": (name,)} for name in CORRECTIONS}
    return [
        choices("profile", {p: {"profile": p} for p in ("robust", "published", "paper")}),
        sweep("w_ack", (0.0, 0.1, 0.2, 0.3, 0.5)),
        sweep("core_quality_threshold", (0.0, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9)),
        sweep("partial_quality_threshold", (0.0, 0.25, 0.5, 0.75)),
        sweep("decay_alpha", (0.0, 0.5, 1.0, 2.0, 4.0)),
        sweep("decay_gamma", (0.5, 1.0, 2.0)),
        sweep("last_slot_tail_sec", (15.0, 30.0, 60.0, 120.0), "s"),
        choices("corrections", repairs),
    ]


def judged_fields(options: Options) -> list[JudgedField]:
    """Flags, scores with their thresholds, and the time of the trigger phrase."""
    core, partial = options.core_quality_threshold, options.partial_quality_threshold
    return [
        JudgedField("early", "flag", "category"),
        JudgedField("early", "score", "score", (0.0, 1.0)),
        JudgedField("core", "score", "score", (0.0, 1.0), core),
        JudgedField("core", "spoiler", "category"),
        JudgedField("core", "anchor", "time"),
        JudgedField("partial", "score", "score", (0.0, 1.0), partial),
        JudgedField("partial", "hallucination", "category"),
    ]
