"""Options that a published result was made with, read from its config block and its last slot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from omnijudge.benchmarks.omniinteract.options import Options
from omnijudge.benchmarks.omniinteract.published.files import StoredResult
from omnijudge.benchmarks.omniinteract.slots import end_of_last

NAMES = {
    "W_ack": "w_ack",
    "decay_alpha": "decay_alpha",
    "decay_gamma": "decay_gamma",
    "core_quality_threshold": "core_quality_threshold",
    "partial_quality_threshold": "partial_quality_threshold",
    "evaluate_interrupted_outputs": "interrupted_output_eval",
    "count_unmatched_as_fp": "unmatched_fp",
}
"""Key of a config block -> our option."""
TAIL = "last_slot_tail_sec"

Settings = tuple[tuple[str, Any], ...]
"""Options as sorted (name, value) pairs, all of them given."""


def settings_of(result: StoredResult, open_ended: Sequence[str]) -> Settings:
    """Options of a result; those it does not state have the published default.

    Args:
        result: the result.
        open_ended: ids of slots that nothing follows: their length tells the tail, which the
            config block does not hold.

    Raises:
        ValueError: the config block holds a value that cannot be.
    """
    found: dict[str, Any] = {TAIL: None}
    for name, option in NAMES.items():
        if result.config.get(name) is not None:
            found[option] = result.config[name]
    for slot in result.slots:
        if slot.slot_id in open_ended:
            tail = round(slot.t_end - slot.t_a, 6)
            if abs(end_of_last(slot.t_start, slot.t_a, tail) - slot.t_end) < 1e-6 and tail >= 0:
                found[TAIL] = tail
    given = {k: v for k, v in found.items() if v is not None}
    options = Options.model_validate({"profile": "published", **given})
    values = {o: getattr(options, o) for o in (*NAMES.values(), TAIL)}
    values[TAIL] = found[TAIL]
    return tuple(sorted(values.items()))


def most_common(settings: Mapping[str, Settings]) -> Settings:
    """The options of most results, with a tail; the first sample's where as many have others."""
    known = [dict(settings[s]) for s in sorted(settings)]
    tails = Counter(s[TAIL] for s in known if s[TAIL] is not None)
    tail = tails.most_common(1)[0][0] if tails else Options().last_slot_tail_sec
    found = Counter(tuple(sorted({**s, TAIL: None}.items())) for s in known)
    options = dict(found.most_common(1)[0][0]) if found else {}
    return tuple(sorted({**options, TAIL: tail}.items()))


def with_tail(settings: Settings, tail: float) -> Settings:
    """The same options, with a tail where the result does not tell one."""
    values = dict(settings)
    if values[TAIL] is None:
        values[TAIL] = tail
    return tuple(sorted(values.items()))


def differences(settings: Settings, usual: Settings) -> list[str]:
    """How options differ from the usual ones, in words."""
    other = dict(usual)
    return [f"{k} {v:g} instead of {other[k]:g}" for k, v in settings if v != other[k]]


def oddities(config: Mapping[str, Any]) -> list[str]:
    """What a config block says that omnijudge does not compute."""
    found = []
    weights = [config.get("W_ack", 0.2), config.get("W_core_default")]
    if all(isinstance(w, int | float) for w in weights) and abs(1 - sum(weights)) > 1e-9:
        found.append(f"W_core_default {weights[1]:g} beside W_ack {weights[0]:g}")
    if config.get("one_qna_later_steps_W_ack", 0) != 0:
        found.append(f"one_qna_later_steps_W_ack {config['one_qna_later_steps_W_ack']}")
    if config.get("one_qna_later_steps_start_at_t_a", True) is not True:
        found.append("one_qna_later_steps_start_at_t_a is off")
    return found
