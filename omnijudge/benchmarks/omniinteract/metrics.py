"""OmniInteract's numbers as functions of sums (rules 16 to 21)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from omnijudge.benchmarks.omniinteract.offline import KIND as OFFLINE
from omnijudge.statistics.metric import Array, Metric, Sum, Where, ratio, total

if TYPE_CHECKING:
    from omnijudge.benchmarks.omniinteract.options import Options

NESTED = Where("scene_type", ("nested",))
ONE_TO_MANY = Where("scene_type", ("1QnA",))
INNER = Where("role", ("inner",))
OUTER = Where("role", ("outer",))
INTERRUPTED = Where("is_interrupted", (True,))
REALTIME = Where("question_type", ("realtime",))
PROACTIVE = Where("question_type", ("proactive",))

TOTALS = ("tp", "fp", "fn")


def metrics(options: Options) -> list[Metric]:
    """All metrics in display order."""
    by_slot = options.corrects("categories_by_slot")
    found: list[Metric] = []
    found += _quality_of_timing("realtime", _category("realtime", by_slot))
    found += _quality_of_timing("proactive", _category("proactive", by_slot))
    found += _quality_of_timing("nested", [_group(NESTED)])
    found += _quality_of_timing(
        "1q1a", [*_category("realtime", by_slot), *_category("proactive", by_slot), _group(NESTED)]
    )
    found += _quality_of_timing("1qna", [_group(ONE_TO_MANY)])
    if by_slot:
        # Slots of any other type, which the published categories leave out.
        found += _quality_of_timing("other", _category("other", by_slot))
    found += _quality_of_timing("all", [_group()], unmatched=True)
    found += _quality_of_timing("nested_inner", [_group(INNER)])
    found += _quality_of_timing("nested_outer", [_group(OUTER)])
    found += _quality_of_timing("interrupted", [_group(INTERRUPTED)])
    found += _quality_of_timing("math", [_group(Where("is_math", (True,)))])
    found += _parts_of_fp()
    found += _interruption()
    found += _nested_chains()
    found += _quality_means()
    found += _spoilers_and_delays()
    return found


Group = tuple[tuple[Where, ...], tuple[Where, ...]]
"""Conditions, and conditions of what is subtracted."""


def _group(*where: Where) -> Group:
    return where, ()


def _category(name: str, by_slot: bool) -> list[Group]:
    """Real-time and proactive: differences of sums (rule 18), or by the slot itself."""
    if by_slot:
        return [_group(Where("category", (name,)))]
    return [((REALTIME,), (INNER,))] if name == "realtime" else [((PROACTIVE,), (OUTER,))]


def _quality_of_timing(name: str, groups: list[Group], unmatched: bool = False) -> list[Metric]:
    """IA-QTF1, precision, recall and their sums for one group, or several added up."""
    sums: list[Sum] = []
    for where, less in groups:
        sums += [Sum("slot", c, where, less=less) for c in (*TOTALS, None)]
    if unmatched:
        sums.append(Sum("sample", "fp"))

    def totals(s: Array) -> tuple[Array, Array, Array, Array]:
        """TP, FP, FN and slots; after subtraction all but TP are cut off at 0 (rule 18)."""
        tp, fp, fn, n = s[..., 0], *(np.maximum(s[..., i], 0) for i in (1, 2, 3))
        for g in range(4, 4 * len(groups), 4):
            tp = tp + s[..., g]
            fp = fp + np.maximum(s[..., g + 1], 0)
            fn = fn + np.maximum(s[..., g + 2], 0)
            n = n + np.maximum(s[..., g + 3], 0)
        if unmatched:
            fp = fp + s[..., -1]
        return tp, fp, fn, n

    def precision(s: Array) -> Array:
        tp, fp, _, n = totals(s)
        return _zero_or_none(tp, tp + fp, n)

    def recall(s: Array) -> Array:
        tp, _, fn, n = totals(s)
        return _zero_or_none(tp, tp + fn, n)

    def f1(s: Array) -> Array:
        # As published, from precision and recall: the two differ in the last bits.
        tp, fp, fn, n = totals(s)
        p, r = _zero_or_none(tp, tp + fp, n), _zero_or_none(tp, tp + fn, n)
        return _zero_or_none(2 * p * r, p + r, np.where(np.isnan(p), 0, 1))

    every = range(len(sums))
    numerator = tuple(i for i in every if i % 4 == 0 and i < 4 * len(groups))
    denominator = tuple(i for i in every if i % 4 != 3 or i >= 4 * len(groups))
    units = tuple(Sum("slot", where=where) for where, _ in groups)

    def part(index: int) -> Function:
        def amount(s: Array) -> Array:
            found = totals(s)
            return np.where(found[3] > 0, found[index], np.nan)

        return amount

    slots = tuple(i for i in range(3, 4 * len(groups), 4))
    found = [
        Metric(metric, name, tuple(sums), function, units, UNIT_RANGE, numerator, denominator)
        for metric, function in (("ia_qtf1", f1), ("precision", precision), ("recall", recall))
    ]
    for index, metric in enumerate(TOTALS):
        used = numerator if metric == "tp" else tuple(i + index for i in numerator)
        found.append(_amount(metric, name, tuple(sums), part(index), units, used, slots))
    return found


Function = Callable[[Array], Array]
UNIT_RANGE = (0.0, 1.0)
FROM_ZERO = (0.0, None)


def _amount(
    metric: str,
    group: str,
    sums: tuple[Sum, ...],
    function: Function,
    units: tuple[Sum, ...],
    numerator: tuple[int, ...] = (0,),
    denominator: tuple[int, ...] = (1,),
) -> Metric:
    """A count or sum, in which neither direction is better by itself."""
    return Metric(
        metric, group, sums, function, units, FROM_ZERO, numerator, denominator,
        higher_is_better=None,
    )  # fmt: skip


def _zero_or_none(numerator: Array, denominator: Array, units: Array) -> Array:
    """Ratio; 0 where the denominator is not positive (rule 16), undefined without units."""
    ratio = np.divide(numerator, denominator, out=np.zeros_like(denominator), where=denominator > 0)
    some = units > 0
    return ratio if some.all() else np.where(some, ratio, np.nan)


def _parts_of_fp() -> list[Metric]:
    slot, sample = Sum("slot"), Sum("sample")
    unmatched = (Sum("sample", "fp"), sample)
    found = [_amount("fp_unmatched", "all", unmatched, total, (sample,))]
    for name in ("fp_early", "fp_low", "fp_spill"):
        found.append(_amount(name, "all", (Sum("slot", name), slot), total, (slot,)))
    return found


def _share(s: Array) -> Array:
    """Sum over count; 0 where the count is 0 but the group is not empty (last sum)."""
    return _zero_or_none(s[..., 0], s[..., 1], s[..., 2])


def _interruption() -> list[Metric]:
    """Interruption Diagnostic Suite (rule 19)."""
    inside = (INTERRUPTED,)
    slots = Sum("slot", where=inside)
    silent = Sum("slot", where=(INTERRUPTED, Where("has_output", (False,))))
    speaking_where = (INTERRUPTED, Where("has_output", (True,)))
    speaking = Sum("slot", where=speaking_where)
    judged = (INTERRUPTED, Where("paq_judged", (True,)))
    spilled = Sum("slot", "fp_spill", speaking_where)
    seconds = Sum("slot", "spill_seconds", speaking_where)
    units = (slots,)
    return [
        Metric("nor", "interrupted", (silent, slots, slots), _share, units, higher_is_better=None),
        Metric(
            "paq",
            "interrupted",
            (Sum("slot", "paq", judged), Sum("slot", where=judged), slots),
            _share,
            units,
        ),
        Metric(
            "csm_sr", "interrupted", (spilled, speaking, slots), _share, units,
            higher_is_better=False,
        ),
        Metric(
            "csm_as", "interrupted", (seconds, speaking, slots), _share, units,
            bounds=(0.0, None), higher_is_better=False,
        ),
    ]  # fmt: skip


def _nested_chains() -> list[Metric]:
    """Nested Chain Completion Score and its counts (rule 20)."""
    pairs = Sum("pair")

    def amount(s: Array) -> Array:
        return np.where(s[..., 1] > 0, s[..., 0], np.nan)

    found = [Metric("nccs", "nested", (Sum("pair", "nccs"), pairs, pairs), _share, (pairs,))]
    for name, column in (
        ("missed_outer", "missed_outer"),
        ("missed_inner", "missed_inner"),
        ("order_errors", "order_error"),
    ):
        found.append(
            Metric(
                name, "nested", (Sum("pair", column), pairs), amount, (pairs,),
                bounds=(0.0, None), higher_is_better=False,
            )
        )  # fmt: skip
    return found


def _quality_means() -> list[Metric]:
    """Mean core score and timeliness, silent slots with 0; offline maths (rule 21)."""
    found = []
    for group, where in (("all", ()), ("math", (Where("is_math", (True,)),))):
        slots = Sum("slot", where=where)
        for name, column in (("quality", "s_core"), ("timeliness", "t_core")):
            sums = (Sum("slot", column, where), slots, slots)
            found.append(Metric(name, group, sums, _share, (slots,)))
    clips = Sum(OFFLINE)
    sums = (Sum(OFFLINE, "s_core"), clips, clips)
    found.append(Metric("offline_quality", "math", sums, _share, (clips,)))
    return found


def _spoilers_and_delays() -> list[Metric]:
    one_to_many = (ONE_TO_MANY,)
    found = [
        Metric(
            "spoiler_rate",
            "1qna",
            (Sum("slot", "spoiler", one_to_many), Sum("slot", "spoiler", one_to_many, count=True)),
            ratio,
            (Sum("slot", where=one_to_many),),
            higher_is_better=False,
        )
    ]
    looked_up = ("phrase", "chunk_of_phrase", "first_chunk")
    for group in ("realtime", "proactive", "nested", "1qna", "all"):
        where = () if group == "all" else (Where("category", (group,)),)
        units = (Sum("slot", where=where),)
        delay = Sum("slot", "response_delay", where)
        delays = Sum("slot", "response_delay", where, count=True)
        found.append(
            Metric(
                "response_delay_mean", group, (delay, delays), ratio, units, FROM_ZERO,
                higher_is_better=False,
            )
        )  # fmt: skip
        for q in (50, 90):
            found.append(
                Metric(
                    f"response_delay_p{q}", group, (delay, delays), ratio, units, FROM_ZERO,
                    quantile=("response_delay", q / 100), higher_is_better=False,
                )
            )  # fmt: skip
        anchored = Sum("slot", where=(*where, Where("anchor_source", looked_up[:2])))
        searched = Sum("slot", where=(*where, Where("anchor_source", looked_up)))
        found.append(
            Metric(
                "anchored_share", group, (anchored, searched), ratio, units,
                higher_is_better=None,
            )
        )  # fmt: skip
    return found
