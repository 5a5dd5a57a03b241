"""Omni-DuplexEval's numbers as functions of sums (rules 4, 5 and 10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from omnijudge.benchmarks.omni_duplexeval.samples import DESCRIPTION_SPLITS, REMINDER_SPLITS
from omnijudge.statistics.metric import Array, Metric, Sum, Where, ratio

if TYPE_CHECKING:
    from omnijudge.benchmarks.omni_duplexeval.options import Options

OUTCOMES = ("success", "partial", "no_answer", "wrong_answer", "judge_error")
SCORES = ("temporal", "content", "overall")


def metrics(options: Options) -> list[Metric]:
    """All metrics in display order."""
    # As published, a sample without a response leaves all means; else it counts as silence.
    counted = (Where("output_state", ("ok",)),) if options.published else ()
    # The lenient parser lets scores beyond the scale pass (quirk 5).
    span = (None, None) if options.published else (0.0, 100.0)
    return [
        *_descriptions(counted, span),
        *_reminders(counted),
        _overall(counted, span),
        *_outcomes(),
        *_behaviour(),
    ]


def _means(kind: str, column: str, splits: Sequence[str], counted: tuple[Where, ...]) -> list[Sum]:
    """Sum and count of a column, split by split."""
    sums = []
    for split in splits:
        where = (Where("split", (split,)), *counted)
        sums += [Sum(kind, column, where), Sum(kind, None, where)]
    return sums


def _mean_of_means(sums: Array) -> Array:
    """Plain mean of ratios; undefined if one of them is."""
    parts = [ratio(sums[..., i : i + 2]) for i in range(0, sums.shape[-1], 2)]
    return np.asarray(np.mean(np.stack(parts, axis=-1), axis=-1), np.float64)


def _percent(sums: Array) -> Array:
    return 100 * ratio(sums)


def _pooled(sums: Array) -> Array:
    """Mean over several (sum, count) pairs together."""
    return ratio(np.stack([sums[..., ::2].sum(axis=-1), sums[..., 1::2].sum(axis=-1)], axis=-1))


def _metric(
    name: str, group: str, sums: Sequence[Sum], function: Any, units: Sequence[Sum], **extra: Any
) -> Metric:
    every = range(len(sums))
    return Metric(
        name,
        group,
        tuple(sums),
        function,
        tuple(units),
        numerator=tuple(every[::2]),
        denominator=tuple(every[1::2]),
        **extra,
    )


def _descriptions(
    counted: tuple[Where, ...], span: tuple[float | None, float | None]
) -> list[Metric]:
    found = []
    for split in DESCRIPTION_SPLITS:
        for name in SCORES:
            sums = _means("sample", name, (split,), counted)
            found.append(_metric(name, split, sums, _mean_of_means, sums[1::2], bounds=span))
    for name in SCORES:
        sums = _means("sample", name, DESCRIPTION_SPLITS, counted)
        found.append(_metric(name, "rtd", sums, _mean_of_means, sums[1::2], bounds=span))
    return found


def _reminders(counted: tuple[Where, ...]) -> list[Metric]:
    found = []
    span = (0.0, 100.0)
    for split in REMINDER_SPLITS:
        sums = _means("sample", "success", (split,), counted)
        found.append(_metric("success_rate", split, sums, _mean_of_means, sums[1::2], bounds=span))
    sums = _means("sample", "success", REMINDER_SPLITS, counted)
    for group, function in (("pr_pooled", _pooled), ("pr_macro", _mean_of_means)):
        found.append(_metric("success_rate", group, sums, function, sums[1::2], bounds=span))
    return found


def _overall(counted: tuple[Where, ...], span: tuple[float | None, float | None]) -> Metric:
    """Mean of the description score and the pooled success rate.

    Pooled, because the published total of reminders is no mean of its three printed parts.
    """
    descriptions = _means("sample", "overall", DESCRIPTION_SPLITS, counted)
    reminders = _means("sample", "success", REMINDER_SPLITS, counted)
    cut = len(descriptions)

    def both(sums: Array) -> Array:
        return 0.5 * _mean_of_means(sums[..., :cut]) + 0.5 * _pooled(sums[..., cut:])

    sums = [*descriptions, *reminders]
    return _metric("overall", "all", sums, both, sums[1::2], bounds=span)


def _outcomes() -> list[Metric]:
    """Shares of all samples, and of the failures, in percent."""
    found = []
    groups = [(s, Where("split", (s,))) for s in REMINDER_SPLITS]
    groups.append(("pr", Where("scene", ("pr",))))
    for group, inside in groups:
        whole = Sum("behaviour", None, (inside, Where("outcome", OUTCOMES)))
        for name in OUTCOMES:
            part = Sum("behaviour", None, (inside, Where("outcome", (name,))))
            better = True if name == "success" else None if name == "partial" else False
            found.append(
                _metric(
                    f"outcome_{name}", group, (part, whole), _percent, (whole,),
                    bounds=(0.0, 100.0), higher_is_better=better,
                )
            )  # fmt: skip
    inside = Where("scene", ("pr",))
    failures = Sum("behaviour", None, (inside, Where("outcome", OUTCOMES[1:])))
    for name in OUTCOMES[1:]:
        part = Sum("behaviour", None, (inside, Where("outcome", (name,))))
        found.append(
            _metric(
                f"failure_{name}", "pr", (part, failures), _percent, (failures,),
                bounds=(0.0, 100.0), higher_is_better=None,
            )
        )  # fmt: skip
    return found


def _behaviour() -> list[Metric]:
    """When a system spoke, whatever it said."""
    reminders = (Where("scene", ("pr",)),)
    delay, delays = Sum("reply", "reply_delay"), Sum("reply")
    seconds: dict[str, Any] = {"bounds": (None, None), "higher_is_better": False}
    timed = Sum("behaviour", None, (*reminders, Where("early_only", (True, False))))
    early = Sum("behaviour", "early_only", timed.where)
    descriptions = (Where("scene", ("rtd",)),)
    spoken = Sum("behaviour", "speaking_seconds", descriptions)
    lasted = Sum("behaviour", "video_duration", descriptions)
    share: dict[str, Any] = {"bounds": (0.0, 100.0)}
    return [
        _metric("reply_delay_mean", "pr", (delay, delays), ratio, (delays,), **seconds),
        *(
            _metric(
                f"reply_delay_p{q}", "pr", (delay, delays), ratio, (delays,),
                quantile=("reply_delay", q / 100), **seconds,
            )
            for q in (50, 90)
        ),
        _metric(
            "early_only_share", "pr", (early, timed), _percent, (timed,), higher_is_better=False,
            **share,
        ),
        _metric(
            "speaking_share", "rtd", (spoken, lasted), _percent,
            (Sum("behaviour", None, descriptions),), higher_is_better=None, **share,
        ),
    ]  # fmt: skip
