"""The arithmetic of the smoke judge, against values worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnijudge.judging.engines.overlap import longest_shared_phrase, overlap


@pytest.mark.parametrize(
    ("text", "reference", "expected"),
    [
        ("The cup is red.", "the CUP is red", 1.0),
        ("The cup is red", "the cup was blue", 0.5),  # 2 of 4 and 4
        ("red red red", "red", 0.5),  # 1 shared of 3 and 1
        ("don’t stop", "don't stop", 1.0),
        ("ｆｕｌｌ", "full", 1.0),
        ("杯子是红色的", "红色的杯子", 0.67),  # 杯子 红色 色的 of 5 and 4
        ("红色，杯子。", "红色杯子", 0.8),  # 红色 杯子 of 2 and 3
        ("好", "好", 1.0),
        ("add 2 spoons of 糖水", "2 spoons 糖水", 0.75),  # 3 of 5 and 3
        ("blue", "red", 0.0),
        ("", "red", 0.0),
        ("?!", "?!", 0.0),
    ],
)
def test_overlap(text: str, reference: str, expected: float) -> None:
    assert overlap(text, reference) == expected


@pytest.mark.parametrize(
    ("text", "reference", "expected"),
    [
        ("Well, the Cup, is red now", "the cup is red", "the Cup, is red"),
        ("我看到一个红色的杯子了", "红色的杯子", "红色的杯子"),
        ("one two, two one", "one", "one"),
        ("nothing here", "else", ""),
        ("", "else", ""),
    ],
)
def test_longest_shared_phrase(text: str, reference: str, expected: str) -> None:
    assert longest_shared_phrase(text, reference) == expected


@given(st.text(max_size=40), st.text(max_size=40))
def test_overlap_is_a_symmetric_share(a: str, b: str) -> None:
    assert 0 <= overlap(a, b) <= 1
    assert overlap(a, b) == overlap(b, a)


@given(st.text(max_size=40), st.text(max_size=40))
def test_shared_phrase_stands_in_the_text(a: str, b: str) -> None:
    assert longest_shared_phrase(a, b) in a
