"""What metrics and groups are called, how their values are shown, and which way is better.

Only names: the rules themselves are the benchmarks'. A metric that is not listed (a benchmark
from outside) is shown under its own name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["share", "percent", "seconds", "count", "amount", "rate", "plain"]
"""share: 0..1; percent: 0..100; amount: a count that may be fractional; plain: not known."""

DIGITS: dict[Kind, int] = {
    "share": 3, "percent": 1, "seconds": 2, "count": 0, "amount": 2, "rate": 2, "plain": 3,
}  # fmt: skip

UNITS: dict[Kind, str] = {"percent": "0-100", "seconds": "s", "rate": "per minute"}

EMPTY = "–"
"""Stands for null wherever people read."""

TITLES = {
    "omniinteract": "OmniInteract",
    "omni_interactscope": "Omni-InteractScope",
    "omni_duplexeval": "Omni-DuplexEval",
}


@dataclass(frozen=True, slots=True)
class MetricName:
    """How a metric is shown.

    Attributes:
        label: as in the papers.
        kind: what its values are.
        better: True if higher is better, False if lower is, None where no direction is meant.
        meaning: one sentence.
    """

    label: str
    kind: Kind
    better: bool | None
    meaning: str


_METRICS: dict[str, MetricName] = {
    # OmniInteract
    "ia_qtf1": MetricName(
        "IA-QTF1", "share", True,
        "F1 of what was answered rightly and in time, against what was wrong, early or missing.",
    ),
    "precision": MetricName("Precision", "share", True, "TP / (TP + FP)."),
    "recall": MetricName(
        "Recall", "share", True,
        "TP / (TP + FN). Acknowledgements earn credit too, so it is no share of slots.",
    ),
    "tp": MetricName("TP", "amount", None, "Credit for right and timely answers, 0 to 1 a slot."),
    "fp": MetricName("FP", "count", None, "False positives: up to three a slot."),
    "fn": MetricName("FN", "count", None, "Slots without a creditable answer."),
    "fp_unmatched": MetricName("FP unmatched", "count", None, "Speech outside every slot."),
    "fp_early": MetricName("FP early", "count", None, "Invented answers before their time."),
    "fp_low": MetricName("FP low quality", "count", None, "Answers below the quality threshold."),
    "fp_spill": MetricName("FP spill", "count", None, "Speech beyond a hard end of a slot."),
    "nor": MetricName("NOR", "share", None, "Share of interrupted slots without any output."),
    "paq": MetricName("PAQ", "share", True, "Quality of what was said before an interruption."),
    "csm_sr": MetricName(
        "CSM-SR", "share", False, "Share of interrupted slots with output that speak past the end."
    ),
    "csm_as": MetricName("CSM-AS", "seconds", False, "Mean time spoken past an interruption."),
    "nccs": MetricName("NCCS", "share", True, "Nested pairs in which both answers earn credit."),
    "missed_outer": MetricName("Missed outer", "count", False, "Pairs without outer credit."),
    "missed_inner": MetricName("Missed inner", "count", False, "Pairs without inner credit."),
    "order_errors": MetricName("Order errors", "count", False, "Pairs answered in wrong order."),
    "quality": MetricName("Quality", "share", True, "Mean core score; silence counts as 0."),
    "timeliness": MetricName("Timeliness", "share", True, "Mean time factor; silence counts as 0."),
    "offline_quality": MetricName(
        "Offline quality", "share", True, "Mean core score with the whole clip in view."
    ),
    "spoiler_rate": MetricName("Spoilers", "share", False, "Answers that give later steps away."),
    "response_delay_mean": MetricName(
        "Delay, mean", "seconds", False, "Time from the answer moment to the credited answer."
    ),
    "response_delay_p50": MetricName("Delay, median", "seconds", False, "Median of the same."),
    "response_delay_p90": MetricName("Delay, p90", "seconds", False, "90th percentile of it."),
    "anchored_share": MetricName(
        "Anchored", "share", None, "Share of credited answers whose time was found word by word."
    ),
    # Omni-InteractScope
    "joint_accuracy": MetricName("Joint accuracy", "percent", True, "Right content, in time."),
    "on_time_rate": MetricName("On time", "percent", True, "In time, whatever was said."),
    "timely_recall": MetricName(
        "Timely recall", "percent", True, "Targets met in time and in order; extra speech is free."
    ),
    "sequence_coverage": MetricName(
        "Complete sequences", "percent", True, "Interactions with every target met."
    ),
    "unmatched_outputs": MetricName(
        "Unmatched outputs", "count", None, "Outputs that met no target and cost nothing."
    ),
    "outputs_per_minute": MetricName("Outputs", "rate", None, "Outputs per observed minute."),
    "missing_trajectories": MetricName(
        "Missing trajectories", "count", False, "Interactions without an output file."
    ),
    "expected_complete": MetricName(
        "Expected complete", "amount", None, "Complete sequences if steps were unrelated."
    ),
    # Omni-DuplexEval
    "temporal": MetricName("Temporal", "percent", True, "Descriptions said at the right moment."),
    "content": MetricName("Content", "percent", True, "Descriptions that are right and complete."),
    "overall": MetricName("Overall", "percent", True, "Mean of its parts."),
    "success_rate": MetricName("Success", "percent", True, "Reminders that met every event."),
    "reply_delay_mean": MetricName(
        "Reply delay, mean", "seconds", False, "Time from the event to the first reply."
    ),
    "reply_delay_p50": MetricName("Reply delay, median", "seconds", False, "Median of the same."),
    "reply_delay_p90": MetricName("Reply delay, p90", "seconds", False, "90th percentile of it."),
    "early_only_share": MetricName(
        "Early only", "percent", False, "Samples that spoke before the event and not after it."
    ),
    "speaking_share": MetricName("Speaking", "percent", None, "Share of the time spoken."),
}  # fmt: skip

_FAMILIES: dict[str, tuple[str, Kind, str]] = {
    "status_": ("Status: ", "count", "Targets with this end."),
    "outcome_": ("Outcome: ", "percent", "Share of all samples."),
    "failure_": ("Failure: ", "percent", "Share of the failed samples."),
}

_GROUPS = {
    "all": "All",
    "realtime": "Real-time",
    "proactive": "Proactive",
    "nested": "Nested",
    "1q1a": "1Q1A",
    "1qna": "1QnA",
    "other": "Other types",
    "nested_inner": "Nested, inner",
    "nested_outer": "Nested, outer",
    "interrupted": "Interrupted",
    "math": "Maths",
    "average_six": "Six-task average",
    "rtd": "RTD",
    "pr": "PR",
    "pr_pooled": "PR pooled",
    "pr_macro": "PR macro",
    "RTD_counting": "Counting",
    "RTD_interaction_relation": "Interaction",
    "RTD_Omni": "Omni",
    "RTD_world_knowledge": "Knowledge",
    "RTD_OCR": "OCR",
    "RTD_fine_grained_movement": "Movement",
    "PR_event_reminder": "Event",
    "PR_post_event_reminder": "Post-event",
    "PR_correction": "Correction",
}


def metric_name(metric: str) -> MetricName:
    """How a metric is shown; one that is not known, under its own name."""
    found = _METRICS.get(metric)
    if found is not None:
        return found
    for prefix, (label, kind, meaning) in _FAMILIES.items():
        if metric.startswith(prefix):
            return MetricName(
                label + metric.removeprefix(prefix).replace("_", " "), kind, None, meaning
            )
    return _LEARNT.get(metric) or MetricName(metric, "plain", None, "")


_LEARNT: dict[str, MetricName] = {}
_KINDS: dict[tuple[float | None, float | None], Kind] = {
    (0.0, 1.0): "share", (0.0, 100.0): "percent"
}  # fmt: skip


def learn(metrics: Mapping[str, Mapping[str, Any]]) -> None:
    """Takes note of the metrics of a benchmark from outside, as its manifest describes them.

    Args:
        metrics: name -> ``higher_is_better`` and ``bounds``.
    """
    for name, about in metrics.items():
        low, high = about.get("bounds") or (None, None)
        kind = _KINDS.get((low, high), "plain")
        _LEARNT[name] = MetricName(name, kind, about.get("higher_is_better"), "")


def group_name(group: str) -> str:
    """How a group is shown."""
    return _GROUPS.get(group, group)


def title_of(benchmark: str) -> str:
    """How a benchmark is written on tables."""
    return TITLES.get(benchmark, benchmark)


def number(value: float | None, digits: int) -> str:
    """A value with fixed digits; an en dash for null; never a negative zero."""
    if value is None:
        return EMPTY
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text


def shown(metric: str, value: float | None, digits: int | None = None) -> str:
    """A value of a metric as people read it."""
    return number(value, DIGITS[metric_name(metric).kind] if digits is None else digits)
