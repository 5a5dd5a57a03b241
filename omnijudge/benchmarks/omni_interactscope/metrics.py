"""Omni-InteractScope's numbers as functions of sums over score rows (InteractScope rule 8)."""

from __future__ import annotations

import numpy as np

from omnijudge.benchmarks.omni_interactscope.schemas import INTERACTION, TARGET
from omnijudge.benchmarks.omni_interactscope.scoring import (
    FIRST_RESPONSE_STATUSES,
    LONGEST_SEQUENCE,
    ORDERED_STATUSES,
)
from omnijudge.benchmarks.omni_interactscope.windows import (
    FIRST_RESPONSE_TASKS,
    ORDERED_TASKS,
    SIX_TASKS,
    TASKS,
)
from omnijudge.statistics.metric import Array, Metric, Sum, Where

PERCENT = (0.0, 100.0)
ON_TIME = Where("status", ("success", "wrong_content", "judge_error"))
GUIDANCE = "T8-C"


def metrics() -> list[Metric]:
    """All metrics in display order."""
    found = [_share("joint_accuracy", t, _successes(t), _targets(t)) for t in FIRST_RESPONSE_TASKS]
    found.append(_average_six())
    found += [_on_time_rate(t) for t in FIRST_RESPONSE_TASKS]
    found += [_share("timely_recall", t, _successes(t), _targets(t)) for t in ORDERED_TASKS]
    found.append(
        _share("timely_recall", "T8", _successes(*ORDERED_TASKS), _targets(*ORDERED_TASKS))
    )
    found += [_sequence_coverage(GUIDANCE), _expected_complete(), _sequence_coverage("T7")]
    found += [_unmatched_outputs(), _output_rate("T8", ORDERED_TASKS), _output_rate("all", TASKS)]
    for task in TASKS:
        first = task in FIRST_RESPONSE_TASKS
        for status in FIRST_RESPONSE_STATUSES if first else ORDERED_STATUSES:
            found.append(_status_count(task, status))
    found += [_missing_trajectories(task) for task in TASKS]
    return found


def _of(*tasks: str) -> tuple[Where, ...]:
    return (Where("task", tasks),)


def _targets(*tasks: str) -> Sum:
    return Sum(TARGET, where=_of(*tasks))


def _successes(*tasks: str) -> Sum:
    return Sum(TARGET, "success", _of(*tasks))


def _interactions(*tasks: str) -> Sum:
    return Sum(INTERACTION, where=_of(*tasks))


def percentage(sums: Array) -> Array:
    """100 times the ratio of two sums; undefined without a denominator."""
    part, whole = sums[..., 0], sums[..., 1]
    return np.divide(100.0 * part, whole, out=np.full_like(part, np.nan), where=whole > 0)


def per_minute(sums: Array) -> Array:
    """60 times the ratio of a count and seconds; undefined without observed time."""
    count, seconds = sums[..., 0], sums[..., 1]
    return np.divide(60.0 * count, seconds, out=np.full_like(count, np.nan), where=seconds > 0)


def mean_of_percentages(sums: Array) -> Array:
    """Plain mean of the unrounded percentages of pairs of sums; undefined if one of them is."""
    pairs = sums.reshape(*sums.shape[:-1], sums.shape[-1] // 2, 2)
    mean: Array = percentage(pairs).sum(axis=-1) / pairs.shape[-2]
    return mean


def amount(sums: Array) -> Array:
    """A sum, undefined if the rows it could come from do not exist (second sum)."""
    known: Array = np.where(sums[..., 1] > 0, sums[..., 0], np.nan)
    return known


def _share(name: str, group: str, part: Sum, whole: Sum) -> Metric:
    return Metric(name, group, (part, whole), percentage, (whole,), bounds=PERCENT)


def _on_time_rate(task: str) -> Metric:
    """First responses inside their window, whatever they say (rule 9)."""
    on_time = Sum(TARGET, where=(*_of(task), ON_TIME))
    return _share("on_time_rate", task, on_time, _targets(task))


def _average_six() -> Metric:
    sums = tuple(s for task in SIX_TASKS for s in (_successes(task), _targets(task)))
    return Metric(
        "joint_accuracy",
        "average_six",
        sums,
        mean_of_percentages,
        (_targets(*SIX_TASKS),),
        bounds=PERCENT,
        numerator=tuple(range(0, len(sums), 2)),
        denominator=tuple(range(1, len(sums), 2)),
    )


def _sequence_coverage(task: str) -> Metric:
    complete = Sum(INTERACTION, "complete", _of(task))
    return _share("sequence_coverage", task, complete, _interactions(task))


def _unmatched_outputs() -> Metric:
    """Outputs that cost nothing under ordered matching: to be read beside the recall."""
    return Metric(
        "unmatched_outputs",
        "T8",
        (Sum(INTERACTION, "unmatched", _of(*ORDERED_TASKS)), _interactions(*ORDERED_TASKS)),
        amount,
        (_interactions(*ORDERED_TASKS),),
        bounds=(0.0, None),
        higher_is_better=None,
    )


def _output_rate(group: str, tasks: tuple[str, ...]) -> Metric:
    return Metric(
        "outputs_per_minute",
        group,
        (
            Sum(INTERACTION, "n_outputs", _of(*tasks)),
            Sum(INTERACTION, "observed_seconds", _of(*tasks)),
        ),
        per_minute,
        (_interactions(*tasks),),
        bounds=(0.0, None),
        higher_is_better=None,
    )


def _status_count(task: str, status: str) -> Metric:
    counted = Sum(TARGET, where=(*_of(task), Where("status", (status,))))
    return Metric(
        f"status_{status}",
        task,
        (counted, _targets(task)),
        amount,
        (_targets(task),),
        bounds=(0.0, None),
        higher_is_better=None,
    )


def _missing_trajectories(task: str) -> Metric:
    return Metric(
        "missing_trajectories",
        task,
        (Sum(INTERACTION, "missing_trajectory", _of(task)), _interactions(task)),
        amount,
        (_interactions(task),),
        bounds=(0.0, None),
        higher_is_better=False,
    )


def _expected_complete() -> Metric:
    """Complete sequences to be expected if successes at different steps were unrelated (rule 11).

    For the n sequences of one length with c_1, ..., c_K successes: n * product(c_k / n).
    """
    sums: list[Sum] = []
    strata: list[tuple[int, slice]] = []
    for length in range(1, LONGEST_SEQUENCE + 1):
        where = (*_of(GUIDANCE), Where("sequence_length", (length,)))
        first = len(sums)
        sums.append(Sum(INTERACTION, where=where))
        sums += [
            Sum(TARGET, "sequence_success", (*where, Where("position", (k,))))
            for k in range(1, length + 1)
        ]
        strata.append((first, slice(first + 1, first + 1 + length)))
    all_of_them, too_long = len(sums), len(sums) + 1
    sums.append(_interactions(GUIDANCE))
    sums.append(Sum(INTERACTION, "long_sequence", _of(GUIDANCE)))

    def expected(s: Array) -> Array:
        result = np.zeros(s.shape[:-1])
        for size, counts in strata:
            n = s[..., size]
            share = np.divide(
                s[..., counts],
                n[..., None],
                out=np.zeros_like(s[..., counts]),
                where=n[..., None] > 0,
            )
            result += n * share.prod(axis=-1)
        undefined = (s[..., all_of_them] <= 0) | (s[..., too_long] > 0)
        return np.where(undefined, np.nan, result)

    return Metric(
        "expected_complete",
        GUIDANCE,
        tuple(sums),
        expected,
        (_interactions(GUIDANCE),),
        bounds=(0.0, None),
        numerator=tuple(k for _, counts in strata for k in range(counts.start, counts.stop)),
        denominator=(all_of_them,),
        higher_is_better=None,
    )
