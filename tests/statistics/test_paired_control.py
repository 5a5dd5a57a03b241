from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from omnijudge.statistics.permutation import mcnemar_p, paired_control

NEEDED = "needs the dev extra: pip install 'omnijudge[dev]'"
CASES = json.loads(
    (Path(__file__).parents[1] / "golden" / "omni_interactscope" / "controls_cases.json").read_text(
        encoding="utf-8"
    )
)["paired"]


@pytest.mark.parametrize("case", CASES)
def test_paired_controls(case: dict[str, list[int]]) -> None:
    found = paired_control(case["with_scene"], case["without_scene"])
    expected: dict[str, float] = case["expected"]  # type: ignore[assignment]
    assert (found.first, found.second) == (expected["with"], expected["without"])
    assert (found.both, found.neither) == (expected["both"], expected["neither"])
    assert (found.only_first, found.only_second) == (
        expected["only_with"],
        expected["only_without"],
    )
    assert found.difference == pytest.approx(expected["difference_points"], rel=1e-9)
    assert found.p_value == pytest.approx(expected["mcnemar_exact_p"], rel=1e-9)


@given(st.integers(0, 60), st.integers(0, 60))
def test_exact_p_is_a_sign_test(b: int, c: int) -> None:
    expected = binomtest(b, b + c, 0.5).pvalue if b + c else 1.0
    assert mcnemar_p(b, c) == pytest.approx(expected, rel=1e-9)


def test_exact_p_is_that_of_another_library() -> None:
    truescore = pytest.importorskip("truescore", reason=NEEDED)
    first, second = [1] * 9 + [0] * 14, [1] * 3 + [0] * 6 + [1] * 11 + [0] * 3
    assert paired_control(first, second).p_value == pytest.approx(
        truescore.mcnemar(first, second, midp=False).p_value, rel=1e-9
    )


def test_no_items_and_unequal_lengths() -> None:
    nothing = paired_control([], [])
    assert (nothing.items, nothing.difference, nothing.p_value) == (0, None, 1.0)
    with pytest.raises(ValueError, match="under the other"):
        paired_control([1], [1, 0])
