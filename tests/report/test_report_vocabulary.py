"""How values and names are shown."""

from __future__ import annotations

import pytest

from omnijudge.report.vocabulary import group_name, metric_name, number, shown, title_of


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (None, 3, "–"),
        (0.0, 3, "0.000"),
        (-0.0001, 3, "0.000"),
        (-0.25, 1, "-0.2"),
        (293.0, 0, "293"),
        (0.9996, 3, "1.000"),
    ],
)
def test_number(value: float | None, digits: int, text: str) -> None:
    assert number(value, digits) == text


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("ia_qtf1", 0.3634, "0.363"),
        ("joint_accuracy", 18.6002, "18.6"),
        ("csm_as", 1.879, "1.88"),
        ("tp", 162.42, "162.42"),
        ("fp", 293.0, "293"),
        ("status_wrong_content", 12.0, "12"),
        ("outcome_no_answer", 49.17, "49.2"),
        ("a_metric_from_outside", 0.12345, "0.123"),
    ],
)
def test_metric_in_its_unit(metric: str, value: float, text: str) -> None:
    assert shown(metric, value) == text


def test_names() -> None:
    assert metric_name("ia_qtf1").label == "IA-QTF1"
    assert metric_name("status_order_conflict").label == "Status: order conflict"
    assert metric_name("unheard_of").label == "unheard_of"
    assert group_name("1qna") == "1QnA"
    assert group_name("T8-C") == "T8-C"
    assert title_of("omni_duplexeval") == "Omni-DuplexEval"
    assert title_of("mine") == "mine"
