"""K5: first-response assignment against the slow twin and golden data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import kernels as naive
from numba_kernels.matching_cases import csr_times, golden_instances, random_instance

from omnijudge_kernels.first_response import first_response
from omnijudge_kernels.responses import FirstResponse, Timing
from omnijudge_kernels.small import first_response_small

VARIANTS = ["default", "late_released", "since_previous"]
both = pytest.mark.parametrize("assign", [first_response, first_response_small])
variants = pytest.mark.parametrize("variant", VARIANTS)


def plain(found: FirstResponse) -> list[tuple[int | None, str]]:
    return [
        (None if j < 0 else j, Timing(timing).name.lower())
        for j, timing in zip(found.taken.tolist(), found.timing.tolist(), strict=True)
    ]


@both
@variants
def test_golden_instances(assign: Any, variant: str) -> None:
    cases = golden_instances()
    arguments = csr_times([(case["times"], case["windows"]) for case in cases])
    reference = np.array([anchor for case in cases for anchor in case["anchors"]])
    rows = iter(plain(assign(*arguments, reference, variant=variant)))
    for case in cases:
        golden = case[f"first_response_{variant}"]
        successes = 0
        for k, (status, response) in enumerate(golden["rows"]):
            taken, timing = next(rows)
            right = timing == "inside" and taken is not None and case["correct"][k][taken]
            found = ("success" if right else "wrong_content") if timing == "inside" else timing
            assert (found, taken) == (status, response), (case["case"], k)
            successes += bool(right)
        assert successes == golden["successes"]


@both
@variants
def test_the_published_example_settles_that_early_responses_are_consumed(
    assign: Any, variant: str
) -> None:
    found = assign([6.0, 10.0], [0, 2], [8.0], [12.0], [0, 1], [10.0], variant=variant)
    assert plain(found) == [(0, "early")]


@both
def test_one_superfluous_output_pushes_the_rest_back(assign: Any) -> None:
    arguments = csr_times([([1.0, 10.0, 20.0, 30.0], [(8, 12), (18, 22), (28, 32)])])
    reference = [10.0, 20.0, 30.0]
    early = [(0, "early"), (1, "early"), (2, "early")]
    assert plain(assign(*arguments, reference)) == early
    assert plain(assign(*arguments, reference, variant="late_released")) == early
    since = plain(assign(*arguments, reference, variant="since_previous"))
    assert since == [(0, "early"), (2, "inside"), (3, "inside")]


times = st.one_of(st.integers(-2, 9).map(float), st.floats(-1e5, 1e5, allow_nan=False))


@both
@variants
@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    some=st.lists(
        st.tuples(
            st.lists(times, max_size=9).map(sorted),
            st.lists(st.tuples(times, times, times), max_size=6),
        ),
        max_size=5,
    )
)
def test_equals_the_slow_twin(
    assign: Any,
    variant: str,
    some: list[tuple[list[float], list[tuple[float, float, float]]]],
) -> None:
    windows = [[(low, high) for low, high, _ in targets] for _, targets in some]
    references = [[reference for _, _, reference in targets] for _, targets in some]
    arguments = csr_times([(t, w) for (t, _), w in zip(some, windows, strict=True)])
    flat = np.array([reference for group in references for reference in group])
    want = [
        row
        for (t, _), w, r in zip(some, windows, references, strict=True)
        for row in naive.first_response(t, w, r, variant)
    ]
    assert plain(assign(*arguments, flat, variant=variant)) == want


@both
@variants
@pytest.mark.parametrize("responses", [0, 1, 64, 65, 129])
def test_many_responses(assign: Any, variant: str, responses: int) -> None:
    rng = np.random.default_rng(responses)
    some = [random_instance(rng, targets, responses, 6.0) for targets in (0, 1, 30, 140)]
    references = [[low + 1 for low, _ in windows] for _, windows in some]
    flat = np.array([reference for group in references for reference in group])
    want = [
        row
        for (t, w), r in zip(some, references, strict=True)
        for row in naive.first_response(t, w, r, variant)
    ]
    assert plain(assign(*csr_times(some), flat, variant=variant)) == want


@variants
def test_threads_do_not_show(variant: str) -> None:
    rng = np.random.default_rng(9)
    some = [random_instance(rng, int(n), int(3 * n), 3.0) for n in rng.integers(0, 20, 60)]
    arguments = csr_times(some)
    found = [
        first_response(*arguments, arguments[2], variant=variant, threads=n) for n in (1, 2, 8)
    ]
    assert len({result.taken.tobytes() + result.timing.tobytes() for result in found}) == 1


@both
def test_outputs_are_filled_and_returned(assign: Any) -> None:
    taken, timing = np.full(2, 9), np.full(2, 9, dtype=np.int8)
    found = assign([1.0], [0, 1], [0.0, 0.0], [2.0, 2.0], [0, 2], None, (taken, timing))
    assert found.taken is taken
    assert found.timing is timing
    assert plain(found) == [(0, "inside"), (None, "missing")]


@both
def test_refusals(assign: Any) -> None:
    good = ([1.0, 2.0], [0, 2], [0.0], [2.0], [0, 1])
    with pytest.raises(ValueError, match="variant is 'first'"):
        assign(*good, variant="first")
    with pytest.raises(ValueError, match="since_previous needs reference_time"):
        assign(*good, variant="since_previous")
    with pytest.raises(ValueError, match="Lengths differ: window_low 1, reference_time 2"):
        assign(*good, [1.0, 2.0], variant="since_previous")
    with pytest.raises(ValueError, match=r"reference_time\[0\] is nan"):
        assign(*good, [np.nan], variant="since_previous")
    with pytest.raises(ValueError, match=r"response_time\[1\] is 1.0, earlier"):
        assign([2.0, 1.0], *good[1:])
    for bad in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match=r"response_time\[1\] is (nan|inf|-inf)"):
            assign([1.0, bad], *good[1:])
        with pytest.raises(ValueError, match=r"window_high\[0\] is (nan|inf|-inf)"):
            assign(*good[:3], [bad], [0, 1])
    with pytest.raises(ValueError, match=r"out\[1\] has shape"):
        assign(*good, None, (np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)))


def test_a_million_instances_of_which_most_are_empty() -> None:
    n = 10**6
    filled = (np.arange(n) % 1000 == 7).astype(np.int64)
    bounds = np.concatenate([[0], np.cumsum(filled)])
    times = np.full(bounds[-1], 5.0)
    found = first_response(times, bounds, times - 1, times + 1, bounds)
    assert found.taken.tolist() == [0] * 1000
    assert set(found.timing.tolist()) == {Timing.INSIDE}
