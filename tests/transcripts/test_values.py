"""Value parsing, OmniInteract rule 2."""

from __future__ import annotations

from math import inf, isnan

import pytest

from omnijudge.values import clamp, has_cjk, parse_bool, parse_time, text_of


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (3, 3.0),
        (62.5, 62.5),
        (True, 1.0),
        ("62.5", 62.5),
        (" 7 ", 7.0),
        ("1e2", 100.0),
        ("1_0", 10.0),
        ("-inf", -inf),
        ("1:75", 135.0),
        ("1:02.37", 62.37),
        ("-1:30", -30.0),
        ("1: 5", 65.0),
        ("2:00:01.5", 7201.5),
        ("0.5:1:1", 1861.0),
        (None, None),
        ("", None),
        ("soon", None),
        ("1:2:3:4", None),
        ("1:x", None),
        ([1.0], None),
        ({}, None),
        (10**400, None),
    ],
)
def test_times(value: object, seconds: float | None) -> None:
    assert parse_time(value) == seconds


def test_not_a_number_is_a_time_as_python_reads_it() -> None:
    found = parse_time("nan")
    assert found is not None
    assert isnan(found)


@pytest.mark.parametrize(
    ("value", "truth"),
    [
        (True, True),
        (False, False),
        (2, True),
        (0.0, False),
        ("1", True),
        (" YES ", True),
        ("t", True),
        ("1.0", False),
        ("on", False),
        ("", False),
        (None, False),
        ([1], False),
    ],
)
def test_truth_values(value: object, truth: bool) -> None:
    assert parse_bool(value) is truth


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", "a"), (None, ""), (0, ""), (False, ""), ([], ""), (12, "12"), (1.5, "1.5"), ("", "")],
)
def test_texts(value: object, text: str) -> None:
    assert text_of(value) == text


def test_clamp() -> None:
    values = (-0.5, 0.25, 7.0, inf, -inf, float("nan"))
    assert [clamp(x) for x in values] == [0.0, 0.25, 1.0, 1.0, 0.0, 1.0]


def test_cjk() -> None:
    assert has_cjk("ok 好")
    assert has_cjk("\u9fff")
    assert not has_cjk("かな 한글 ，。 \u3400 é")
    assert not has_cjk("plain")
