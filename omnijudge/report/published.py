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

BESIDE: dict[str, tuple[Column, ...]] = {
    "omniinteract": tuple(
        Column(m, "all", metric_name(m).label) for m in ("precision", "recall", "tp", "fp", "fn")
    ),
    "omni_interactscope": (Column("outputs_per_minute", "all", "Outputs/min"),),
    "omni_duplexeval": (
        Column("temporal", "rtd", "Temporal"),
        Column("content", "rtd", "Content"),
        Column("success_rate", "pr_pooled", "PR"),
    ),
}
"""What stands beside the leading metric in a ranking."""


def _crossed(metrics: tuple[str, ...], groups: tuple[str, ...]) -> tuple[Column, ...]:
    return tuple(
        Column(m, g, f"{group_name(g)} {metric_name(m).label}") for g in groups for m in metrics
    )


MORE: dict[str, tuple[Block, ...]] = {
    "omniinteract": (
        Block("counts", "TP, FP and FN by category", _crossed(("tp", "fp", "fn"), _CATEGORIES)),
        Block(
            "delays",
            "Delays by category (seconds)",
            _crossed(
                ("response_delay_mean", "response_delay_p50", "response_delay_p90"), _CATEGORIES
            ),
        ),
        Block(
            "quality",
            "Quality, timeliness, anchors, spoilers",
            (
                Column("quality", "all", "Quality"),
                Column("timeliness", "all", "Timeliness"),
                Column("quality", "math", "Quality, maths"),
                Column("timeliness", "math", "Timeliness, maths"),
                Column("anchored_share", "all", "Anchored"),
                Column("spoiler_rate", "1qna", "Spoilers, 1QnA"),
            ),
            "Silence counts as 0 in quality and timeliness.",
        ),
    ),
    "omni_interactscope": (
        Block(
            "on-time", "On time, whatever was said (0-100)", _groups("on_time_rate", *_SIX, "T5")
        ),
        Block(
            "sequences",
            "Sequences",
            (
                Column("sequence_coverage", "T7", "Complete T7", 2),
                Column("sequence_coverage", "T8-C", "Complete T8-C", 2),
                Column("expected_complete", "T8-C", "Expected T8-C"),
            ),
            "Expected: complete sequences if successes at different steps were unrelated.",
        ),
    ),
    "omni_duplexeval": (
        Block("temporal", "Temporal score by part", _groups("temporal", *_RTD)),
        Block("content", "Content score by part", _groups("content", *_RTD)),
        Block(
            "failures",
            "Failed reminders (% of failures)",
            tuple(
                Column(f"failure_{k}", "pr", k.replace("_", " ").capitalize())
                for k in ("partial", "no_answer", "wrong_answer", "judge_error")
            ),
        ),
        Block(
            "behaviour",
            "Behaviour",
            (
                Column("reply_delay_mean", "pr", "Delay, mean (s)"),
                Column("reply_delay_p50", "pr", "Delay, median (s)"),
                Column("reply_delay_p90", "pr", "Delay, p90 (s)"),
                Column("early_only_share", "pr", "Early only (%)"),
                Column("speaking_share", "rtd", "Speaking (%)"),
            ),
        ),
    ),
}
"""What a reader may want beyond the tables of the papers."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a stacked bar: the sum of a metric over groups."""

    label: str
    metric: str
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stack:
    """What a total is made of, system by system.

    Attributes:
        title: of the plot.
        unit: what is counted.
        parts: from left to right; ``parts[0]`` is the good one where ``good`` is set.
        good: whether the first part is a success.
        note: what to know when reading it.
    """

    title: str
    unit: str
    parts: tuple[Part, ...]
    good: bool
    note: str


@dataclass(frozen=True, slots=True)
class TradeOff:
    """Two metrics against each other.

    Attributes:
        title: of the plot.
        x: metric and group to the right.
        y: metric and group upwards.
        curves: whether lines of equal F1 help.
        note: what to know when reading it.
    """

    title: str
    x: tuple[str, str]
    y: tuple[str, str]
    curves: bool
    note: str


@dataclass(frozen=True, slots=True)
class Delays:
    """Metrics of a waiting time: median and 90th percentile, and what it is from and to."""

    p50: tuple[str, str]
    p90: tuple[str, str]
    note: str


_TASKS = ("T1", "T2", "T3", "T4", "T5", "T6", "T7")

STACKS: dict[str, Stack] = {
    "omniinteract": Stack(
        "Where false positives come from",
        "false positives",
        (
            Part("invented early", "fp_early", ("all",)),
            Part("low quality", "fp_low", ("all",)),
            Part("spoke past the end", "fp_spill", ("all",)),
            Part("outside every slot", "fp_unmatched", ("all",)),
        ),
        False,
        "One slot can cost up to three of them.",
    ),
    "omni_interactscope": Stack(
        "What became of the targets of T1 to T7",
        "targets",
        (
            Part("success", "status_success", _TASKS),
            Part("wrong content", "status_wrong_content", _TASKS),
            Part("too early", "status_early", _TASKS),
            Part("too late", "status_late", _TASKS),
            Part("no response", "status_missing", _TASKS),
            Part("judge error", "status_judge_error", _TASKS),
        ),
        True,
        "Early and late responses are never judged: their content is unknown.",
    ),
    "omni_duplexeval": Stack(
        "What became of the reminders",
        "% of samples",
        (
            Part("success", "outcome_success", ("pr",)),
            Part("partial", "outcome_partial", ("pr",)),
            Part("wrong answer", "outcome_wrong_answer", ("pr",)),
            Part("no answer", "outcome_no_answer", ("pr",)),
            Part("judge error", "outcome_judge_error", ("pr",)),
        ),
        True,
        "A sample succeeds only if every one of its events is met.",
    ),
}

TRADE_OFFS: dict[str, TradeOff] = {
    "omniinteract": TradeOff(
        "Precision against recall",
        ("recall", "all"),
        ("precision", "all"),
        True,
        "Grey lines join points of equal IA-QTF1. Talkative systems lie low, silent ones left.",
    ),
    "omni_interactscope": TradeOff(
        "Timely recall of assistance (T8) against how much was said",
        ("outputs_per_minute", "T8"),
        ("timely_recall", "T8"),
        False,
        "Unmatched outputs cost nothing in this recall: of two equal ones, the left is better.",
    ),
    "omni_duplexeval": TradeOff(
        "Content against moment of descriptions",
        ("temporal", "rtd"),
        ("content", "rtd"),
        False,
        "The overall score is the mean of both.",
    ),
}

DELAYS: dict[str, Delays] = {
    "omniinteract": Delays(
        ("response_delay_p50", "all"),
        ("response_delay_p90", "all"),
        "From the answer moment to the credited answer. Only credited answers have a delay, so a "
        "system that answers little is shown by the few it got right.",
    ),
    "omni_duplexeval": Delays(
        ("reply_delay_p50", "pr"),
        ("reply_delay_p90", "pr"),
        "From the event to the first reply in its window, whatever it says.",
    ),
}
