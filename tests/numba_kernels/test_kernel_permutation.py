"""K6: the law of complete sequences against fractions, enumeration and golden data."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import kernels as naive
from numba_kernels.matching_cases import GOLDEN

from omnijudge_kernels.permutation import complete_sequence_law

Stratum = tuple[int, list[int]]


def test_golden_cases() -> None:
    cases = json.loads((GOLDEN / "permutation_cases.json").read_text(encoding="utf-8"))
    assert len(cases) == 11
    for case in cases:
        law = complete_sequence_law([(s["n"], s["counts"]) for s in case["strata"]])
        want = case["expected"]
        assert law.expected == pytest.approx(want["expected"], rel=1e-12)
        for x, p in enumerate(law.pmf.tolist()):
            assert p == pytest.approx(want["pmf"].get(str(x), 0.0), rel=1e-11, abs=1e-15), x
        assert list(law.interval()) == want["interval95"]
        observed = want["observed"]
        assert law.at_most(observed) == pytest.approx(want["p_at_most_observed"], rel=1e-11)
        assert law.at_least(observed) == pytest.approx(want["p_at_least_observed"], rel=1e-11)


def test_the_published_three_step_sequences() -> None:
    law = complete_sequence_law([(20, [8, 10, 12])])
    assert law.expected == pytest.approx(2.4)
    assert law.interval() == (0, 5)
    assert round(law.pmf[0], 5) == 0.03300
    assert round(law.pmf[3], 5) == 0.29465
    assert round(law.at_least(3), 5) == 0.45232


stratum = st.integers(1, 14).flatmap(
    lambda n: st.tuples(st.just(n), st.lists(st.integers(0, n), min_size=1, max_size=5))
)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(strata=st.lists(stratum, max_size=3))
def test_equals_the_law_in_fractions(strata: list[Stratum]) -> None:
    law = complete_sequence_law(strata)
    exact = naive.complete_sequence_law(strata)
    for x, p in enumerate(law.pmf.tolist()):
        assert p == pytest.approx(float(exact.get(x, 0)), rel=1e-11, abs=1e-300)
    assert max((x for x, p in exact.items() if p), default=0) < law.pmf.size
    mean = float(sum(x * p for x, p in exact.items()))
    assert law.expected == pytest.approx(mean, rel=1e-12)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    case=st.integers(1, 5).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.integers(0, n), min_size=1, max_size=3))
    )
)
def test_equals_the_enumeration_of_all_arrangements(case: Stratum) -> None:
    exact = naive.complete_by_enumeration(*case)
    law = complete_sequence_law([case])
    for x, p in enumerate(law.pmf.tolist()):
        assert p == pytest.approx(float(exact.get(x, 0)), rel=1e-11, abs=1e-300)


def test_large_strata_keep_their_accuracy() -> None:
    n, counts = 3000, [1500, 1400, 2000]
    law = complete_sequence_law([(n, counts)])
    assert law.pmf.sum() == pytest.approx(1.0, abs=1e-12)
    mean = float(law.pmf @ np.arange(law.pmf.size))
    assert mean == pytest.approx(law.expected, rel=1e-11)
    two = complete_sequence_law([(n, counts[:2])])
    x = 700
    exact = math.comb(1500, x) * math.comb(1500, 1400 - x) / math.comb(3000, 1400)
    assert two.pmf[x] == pytest.approx(exact, rel=1e-10)


def test_edges() -> None:
    assert complete_sequence_law([]).pmf.tolist() == [1.0]
    assert complete_sequence_law([(0, [0, 0])]).pmf.tolist() == [1.0]
    one_position = complete_sequence_law([(9, [5])])
    assert one_position.pmf.tolist() == [0.0] * 5 + [1.0]
    assert one_position.interval() == (5, 5)
    assert one_position.at_most(-1) == 0.0
    assert one_position.at_least(-1) == 1.0
    assert one_position.at_least(6) == 0.0


def test_refusals() -> None:
    with pytest.raises(ValueError, match="Stratum 1 has a count of 4 among 3"):
        complete_sequence_law([(3, [3]), (3, [1, 4])])
    with pytest.raises(ValueError, match="count of -1"):
        complete_sequence_law([(3, [-1])])
    with pytest.raises(ValueError, match="n = 3 and 0 positions"):
        complete_sequence_law([(3, [])])
    with pytest.raises(ValueError, match="n = -1"):
        complete_sequence_law([(-1, [0])])
    with pytest.raises(ValueError, match="level is 1"):
        complete_sequence_law([(3, [1])]).interval(1)
