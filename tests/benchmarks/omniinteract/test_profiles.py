"""What the profiles make of the same answers, worked out by hand (OmniInteract rule 24.1)."""

from __future__ import annotations

import math
from typing import Any

import pytest
from fakes.omniinteract_sample import core, early, partial, question, said, score

from omnijudge.benchmarks.omniinteract import benchmark

ONE = [question(0, 10)]


def one_slot(profile: str, answers: dict[Any, str], *chunks: Any, **scoring: Any) -> dict[str, Any]:
    (row,) = score("multi_turn", ONE, list(chunks), answers, profile=profile, **scoring).slots
    return row


@pytest.mark.parametrize(
    ("profile", "tp"), [("robust", 0.8 * 0.9), ("published", 0.8 * 0.9), ("paper", 0.9)]
)
def test_core_weight(profile: str, tp: float) -> None:
    """At the moment it is due, S 0.9: the paper prints S*T, the code 0.8 of it."""
    row = one_slot(profile, {(1, "core"): core(0.9)}, said(10, 12, "blue"))
    assert row["tp"] == pytest.approx(tp, abs=1e-12)


def test_acknowledgement_weight_and_the_limit_of_a_slot() -> None:
    """Acknowledged at 4 s of 10: T_ack = 0.6; answered at 40 s of 60 after t_a: T_core = 0.5."""
    chunks = [said(4, 5, "one moment"), said(40, 41, "blue")]
    answers = {(1, "early"): early(1.0), (1, "core"): core(1.0)}
    code, paper = (one_slot(p, answers, *chunks) for p in ("published", "paper"))
    assert code["tp"] == pytest.approx(0.2 * 0.6 + 0.8 * 0.5)
    assert paper["tp"] == pytest.approx(0.2 * 0.6 + 0.5)
    other = one_slot("paper", answers, *chunks, w_ack=0.5)
    assert other["tp"] == pytest.approx(0.5 * 0.6 + 0.5)
    at_once = one_slot("paper", answers, said(0, 1, "one moment"), said(10, 11, "blue"))
    assert at_once["tp"] == 1.0  # 0.2 + 1, cut off


def test_threshold() -> None:
    """S 0.4 at T 0.5: an FP everywhere; credit and no miss in the paper's reading alone."""
    answers = {(1, "core"): core(0.4)}
    for profile, want in (
        ("published", (0.0, 1, 1)),
        ("robust", (0.0, 1, 1)),
        ("paper", (0.2, 1, 0)),
    ):
        row = one_slot(profile, answers, said(40, 41, "blue"))
        assert (row["tp"], row["fp"], row["fn"]) == (pytest.approx(want[0]), *want[1:]), profile
    right = one_slot("paper", {(1, "core"): core(0.5)}, said(10, 11, "blue"))
    assert (right["tp"], right["fp"]) == (0.5, 0)  # strictly below counts as low
    worthless = one_slot("paper", {(1, "core"): core(0.0)}, said(10, 11, "red"))
    assert (worthless["tp"], worthless["fp"], worthless["fn"]) == (0.0, 1, 1)


def test_nested_chains() -> None:
    """Outer S 0.4 at T 1, inner S 1 at T 0.5: the paper's pair is sqrt(0.4 * 0.5), the code's 0."""
    rows = [question(0, 40, "proactive"), question(10, 20, "realtime")]
    chunks = [said(30, 31, "inner"), said(40, 41, "outer")]
    answers = {(2, "core"): core(1.0), (1, "core"): core(0.4)}
    found = {p: score("nested", rows, chunks, answers, profile=p) for p in ("published", "paper")}
    code, paper = found["published"].metrics, found["paper"].metrics
    assert (code["nccs", "nested"], code["missed_outer", "nested"]) == (0, 1)
    assert paper["nccs", "nested"] == pytest.approx(math.sqrt(0.4 * 0.5))
    assert (paper["missed_outer", "nested"], paper["missed_inner", "nested"]) == (0, 0)
    good = answers | {(1, "core"): core(0.9)}
    for profile, value in (("published", math.sqrt(0.72 * 0.4)), ("paper", math.sqrt(0.9 * 0.5))):
        pair = score("nested", rows, chunks, good, profile=profile).metrics["nccs", "nested"]
        assert pair == pytest.approx(value), profile


def test_interrupted_pairs_earn_nothing() -> None:
    rows = [question(0, 40, "proactive", is_interrupted=True), question(10, 20)]
    chunks = [said(20, 21, "inner"), said(40, 41, "outer")]
    answers = {(2, "core"): core(1.0), (1, "partial"): partial(1.0)}
    for profile in ("published", "paper"):
        found = score("nested", rows, chunks, answers, profile=profile).metrics
        assert (found["nccs", "nested"], found["missed_outer", "nested"]) == (0, 1)


def test_later_steps() -> None:
    """1QnA: later steps have core weight 1 in every profile, and no early stage."""
    root = {"question_time": 0, "answers": [{"answer_time": t} for t in (10, 30)]}
    chunks = [said(10, 11, "first"), said(40, 41, "second")]
    answers = {(1, "core"): core(1.0), (2, "core"): core(1.0)}
    for profile, first in (("published", 0.8), ("paper", 1.0)):
        rows = score("1QnA", root, chunks, answers, profile=profile).slots
        # The last step ends 60 s after it is due: 10 s late is 5/6.
        assert [r["tp"] for r in rows] == [pytest.approx(first), pytest.approx(5 / 6)]


@pytest.mark.parametrize(
    ("profile", "shown"), [("robust", True), ("published", True), ("paper", False)]
)
def test_later_answers_shown_to_the_core_judge(profile: str, shown: bool) -> None:
    turns = [question(0, 10), question(20, 30, answer_text="the later one")]
    steps = {"question_time": 0, "answers": [{"answer_time": 10}, {"answer_time": 30}]}
    for scene, root, expect in (("multi_turn", turns, shown), ("1QnA", steps, True)):
        found = score(scene, root, [said(10, 11, "blue")], {(1, "core"): core(1)}, profile=profile)
        rows = benchmark.pending(found.part, found.options)
        assert len(rows) == 0  # all answered
        part = found.part
        unasked = type(part)(part.system, part.units, part.outputs, part.chunks, part.stages)
        (prompt,) = benchmark.prompts(
            part, benchmark.pending(unasked, found.options), found.options
        )
        ids = [slot for slot, _ in prompt.variables["later_answers"]]
        assert ids == (["2"] if expect else []), scene


def test_the_rest_is_as_in_the_code() -> None:
    """Interrupted slots, spill and hallucinated guesses are the same in every profile."""
    rows = [question(0, 10, is_interrupted=True)]
    chunks = [said(4, 5, "surely red"), said(12, 75, "well")]
    answers = {(1, "early"): early(0.0, "hallucination"), (1, "partial"): partial(0.3)}
    for profile in ("robust", "published", "paper"):
        found = score("multi_turn", rows, chunks, answers, profile=profile)
        (row,) = found.slots
        assert (row["tp"], row["fp_early"], row["fp_spill"], row["fn"]) == (0, 1, 1, 0), profile
        assert row["spill_seconds"] == 5.0  # the slot ends 60 s after t_a, in the paper's too
        assert found.metrics["paq", "interrupted"] == 0.3


def test_options_overrule_the_profile() -> None:
    row = one_slot(
        "paper", {(1, "core"): core(0.4)}, said(10, 11, "blue"),
        core_weight=0.5, threshold_zeroes_core=True,
    )  # fmt: skip
    assert (row["w_core"], row["tp"], row["fn"]) == (0.5, 0.0, 1)


def test_an_unusable_answer_is_no_number_but_in_the_published_profile() -> None:
    """85 is clamped to 1 by the published parser; elsewhere the slot is unscored."""
    from omnijudge.config import JudgeConfig
    from omnijudge.seats import reading

    answers = {(1, "core"): core(85)}
    for profile in ("robust", "published", "paper"):
        options = benchmark.options(profile=profile).resolved()
        mode, attempts = reading(JudgeConfig(), options)
        (row,) = score(
            "multi_turn", ONE, [said(10, 11, "blue")], answers, mode=mode, profile=profile
        ).slots
        if profile == "published":
            assert (row["tp"], attempts) == (0.8, 1)
        else:
            assert (row["judged"], row["tp"], row["fp"], row["fn"]) == (False, None, None, None)
            assert attempts == 3
