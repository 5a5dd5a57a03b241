"""The tables of the papers: which metric of which group stands in which column."""

from __future__ import annotations

from dataclasses import dataclass

from omnijudge.report.vocabulary import DIGITS, group_name, metric_name, number


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        metric: metric name.
        group: group name.
        header: as printed.
        digits: digits after the point; None: as usual for the metric.
        factor: values are multiplied by it before they are printed.
        less: metric that is subtracted (same group), for printed differences.
    """

    metric: str
    group: str
    header: str
    digits: int | None = None
    factor: float = 1.0
    less: str | None = None

    def text(self, value: float | None, digits: int | None = None) -> str:
        """A value as printed in this column."""
        own = DIGITS[metric_name(self.metric).kind] if self.digits is None else self.digits
        places = own if digits is None else digits
        return number(None if value is None else value * self.factor, places)


@dataclass(frozen=True, slots=True)
class Block:
    """A table, or a part of one.

    Attributes:
        name: short name for anchors and data formats.
        title: as printed above it.
        columns: its columns after the system.
        note: what to know when reading it.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    note: str = ""


def _groups(metric: str, *groups: str, digits: int | None = None) -> tuple[Column, ...]:
    return tuple(Column(metric, g, group_name(g), digits) for g in groups)


_CATEGORIES = ("realtime", "proactive", "nested", "1qna", "all")

_OMNIINTERACT = (
    Block(
        "categories",
        "IA-QTF1 by category",
        _groups("ia_qtf1", "realtime", "proactive", "nested", "1q1a", "1qna", "all"),
        "Speech outside every slot counts against All and against no category.",
    ),
    Block(
        "nested",
        "Nested requests",
        (
            Column("nccs", "nested", "NCCS"),
            Column("ia_qtf1", "nested_inner", "Inner F1"),
            Column("ia_qtf1", "nested_outer", "Outer F1"),
            Column("missed_outer", "nested", "Missed outer"),
        ),
        "A pair earns NCCS only if both of its answers earn credit.",
    ),
    Block(
        "interruptions",
        "Interruptions",
        (
            Column("nor", "interrupted", "NOR (%)", 2, 100.0),
            Column("paq", "interrupted", "PAQ"),
            Column("csm_sr", "interrupted", "CSM-SR (%)", 2, 100.0),
            Column("csm_as", "interrupted", "CSM-AS (s)", 3),
        ),
        "PAQ, CSM-SR and CSM-AS are about interrupted slots with output; NOR is the share without.",
    ),
    Block(
        "maths",
        "Maths, online against offline",
        (
            Column("offline_quality", "math", "Offline"),
            Column("quality", "math", "Online", 4),
            Column("offline_quality", "math", "Drop", 4, less="quality"),
        ),
    ),
)

_SIX = ("T1", "T2", "T3", "T4", "T6", "T7")

_INTERACTSCOPE = (
    Block(
        "tasks",
        "Joint accuracy (0-100)",
        (*_groups("joint_accuracy", *_SIX), Column("joint_accuracy", "average_six", "Average")),
        "The average is the plain mean of the six tasks; T5 stands apart.",
    ),
    Block("elapsed", "Elapsed time, diagnostic", _groups("joint_accuracy", "T5")),
    Block(
        "assistance",
        "Assistance over time (T8, 0-100)",
        (
            *_groups("timely_recall", "T8-A", "T8-B", "T8-C", digits=2),
            Column("timely_recall", "T8", "Overall", 2),
            Column("sequence_coverage", "T8-C", "Complete T8-C", 2),
            Column("unmatched_outputs", "T8", "Unmatched"),
            Column("outputs_per_minute", "T8", "Outputs/min", 2),
        ),
        "Unmatched outputs cost nothing in the recall: read it beside the output rate.",
    ),
)

_RTD = (
    "RTD_counting", "RTD_interaction_relation", "RTD_Omni", "RTD_world_knowledge", "RTD_OCR",
    "RTD_fine_grained_movement",
)  # fmt: skip

_DUPLEXEVAL = (
    Block(
        "overall",
        "Overall (0-100)",
        (
            Column("temporal", "rtd", "Temporal"),
            Column("content", "rtd", "Content"),
            Column("overall", "rtd", "RTD"),
            Column("success_rate", "pr_pooled", "PR"),
            Column("overall", "all", "Overall"),
        ),
        "RTD is the plain mean of its six parts, PR the success rate over all its samples.",
    ),
    Block("descriptions", "Real-time description by part", _groups("overall", *_RTD)),
    Block(
        "reminders",
        "Proactive reminders by part",
        (
            *_groups(
                "success_rate", "PR_event_reminder", "PR_post_event_reminder", "PR_correction"
            ),
            Column("success_rate", "pr_macro", "Mean of three"),
        ),
    ),
    Block(
        "outcomes",
        "What became of reminders (% of samples)",
        (
            Column("outcome_success", "pr", "Success"),
            Column("outcome_partial", "pr", "Partial"),
            Column("outcome_no_answer", "pr", "No answer"),
            Column("outcome_wrong_answer", "pr", "Wrong answer"),
            Column("outcome_judge_error", "pr", "Judge error"),
        ),
    ),
)

BLOCKS: dict[str, tuple[Block, ...]] = {
    "omniinteract": _OMNIINTERACT,
    "omni_interactscope": _INTERACTSCOPE,
    "omni_duplexeval": _DUPLEXEVAL,
}

COUNTS = Block(
    "counts",
    "TP, FP, FN",
    tuple(
        Column(m, g, f"{group_name(g)} {metric_name(m).label}")
        for g in _CATEGORIES
        for m in ("tp", "fp", "fn")
    ),
)
