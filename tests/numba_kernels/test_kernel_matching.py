"""K2: windows, eligibility bits and ordered matching against the slow twins and golden data."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import kernels as naive
from numba_kernels.matching_cases import (
    Table,
    csr_times,
    golden_instances,
    offsets,
    pack,
    random_instance,
    unpack,
)
from numpy.typing import NDArray

from omnijudge_kernels.masks import Masks, Matching, pack_pairs
from omnijudge_kernels.matching import (
    match_ordered,
    match_ordered_pairs,
    match_windows,
    match_windows_pairs,
)
from omnijudge_kernels.small import match_ordered_pairs_small, window_ranges_small
from omnijudge_kernels.windows import window_masks, window_ranges

both = pytest.mark.parametrize("match_pairs", [match_ordered_pairs, match_ordered_pairs_small])


REFUSERS: tuple[Any, ...] = (
    match_windows,
    match_windows_pairs,
    window_masks,
    window_ranges,
    window_ranges_small,
)


def plain(matching: Matching, masks: Masks) -> list[tuple[int, list[int | None]]]:
    """The result by instance, as the slow twin gives it."""
    return [
        (
            int(matching.score[i]),
            [
                None if j < 0 else int(j)
                for j in matching.taken[masks.target_offsets[i] : masks.target_offsets[i + 1]]
            ],
        )
        for i in range(masks.n_instances)
    ]


def random_table(rng: np.random.Generator, targets: int, responses: int, share: float) -> Table:
    return (rng.random((targets, responses)) < share).tolist()


# --- eligibility as bits ---------------------------------------------------------------------


@both
def test_golden_instances(match_pairs: Any) -> None:
    cases = golden_instances()
    masks = pack([case["eligible"] for case in cases])
    scores = match_ordered(masks)
    pairs = plain(match_pairs(masks), masks)
    assert len(cases) == 500
    for case, score, (score_too, taken) in zip(cases, scores.tolist(), pairs, strict=True):
        assert score == score_too == case["ordered_max"], case["case"]
        assert [[k, j] for k, j in enumerate(taken) if j is not None] == case["ordered_pairs"]
    assert any(case["ordered_max"] != case["trap_unordered_max"] for case in cases)
    assert any(case["ordered_max"] != case["trap_greedy"] for case in cases)


tables = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 7), st.sampled_from([0.1, 0.4, 0.8, 1.0])),
    max_size=6,
)


@both
@settings(derandomize=True, deadline=None, max_examples=150)
@given(shapes=tables, seed=st.integers(0, 2**32))
def test_small_tables_against_the_slow_twin(
    match_pairs: Any, shapes: list[tuple[int, int, float]], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    some = [random_table(rng, *shape) for shape in shapes]
    masks = pack(some)
    want = [naive.match_ordered(table) for table in some]
    assert match_ordered(masks).tolist() == [score for score, _ in want]
    assert plain(match_pairs(masks), masks) == want


@settings(derandomize=True, deadline=None, max_examples=60)
@given(targets=st.integers(0, 4), responses=st.integers(0, 5), seed=st.integers(0, 2**32))
def test_the_canonical_pairs_are_the_first_of_all_largest_lists(
    targets: int, responses: int, seed: int
) -> None:
    table = random_table(np.random.default_rng(seed), targets, responses, 0.5)
    every = naive.all_ordered_matchings(table)
    largest = max(len(pairs) for pairs in every)
    want = min(pairs for pairs in every if len(pairs) == largest)
    found = match_ordered_pairs(pack([table]))
    assert [(k, j) for k, j in enumerate(found.taken.tolist()) if j >= 0] == want


@both
@pytest.mark.parametrize("responses", [0, 1, 2, 63, 64, 65, 127, 128, 129, 200])
@pytest.mark.parametrize("share", [0.02, 0.3, 1.0])
def test_word_borders(match_pairs: Any, responses: int, share: float) -> None:
    rng = np.random.default_rng([responses, int(100 * share)])
    some = [random_table(rng, targets, responses, share) for targets in (0, 1, 8, 9, 40, 100)]
    masks = pack(some)
    want = [naive.match_ordered(table) for table in some]
    assert match_ordered(masks).tolist() == [score for score, _ in want]
    assert plain(match_pairs(masks), masks) == want


@both
def test_short_and_long_instances_together(match_pairs: Any) -> None:
    rng = np.random.default_rng(11)
    some = [
        random_table(rng, int(rng.integers(0, 30)), int(responses), 0.15)
        for responses in rng.permutation([0, 3, 40, 64, 65, 90, 129, 1, 300])
    ]
    masks = pack(some)
    assert masks.word_offsets is not None
    assert plain(match_pairs(masks), masks) == [naive.match_ordered(table) for table in some]


@both
def test_a_carry_runs_up_to_the_high_water_word(match_pairs: Any) -> None:
    # Row 0 clears bit 130; rows 1 and 2 then carry through the untouched second word into it.
    rows = [[130], [1, 130], [0, 2], [1, 130, 131], [63, 64, 127, 128, 191]]
    table = [[j in row for j in range(192)] for row in rows]
    masks = pack([table])
    assert plain(match_pairs(masks), masks) == [naive.match_ordered(table)]
    assert match_ordered(masks).tolist() == [naive.match_ordered(table)[0]]


def test_bands_may_store_zeros_around_what_they_need() -> None:
    rng = np.random.default_rng(3)
    table = random_table(rng, 20, 300, 0.05)
    tight = pack([table])
    assert tight.word_offsets is not None
    rows = unpack(tight, [300])[0]
    words = np.zeros((20, 5), dtype=np.uint64)
    for k, row in enumerate(rows):
        for j in np.flatnonzero(row):
            words[k, j // 64] |= np.uint64(1) << np.uint64(j % 64)
    wide = Masks(
        words.ravel(), np.array([0, 20]), np.arange(0, 101, 5), np.zeros(20, dtype=np.int64)
    )
    assert match_ordered(wide).tolist() == match_ordered(tight).tolist()
    assert match_ordered_pairs(wide).taken.tolist() == match_ordered_pairs(tight).taken.tolist()


def test_a_million_instances_without_targets() -> None:
    target_offsets = np.zeros(10**6 + 1, dtype=np.int64)
    target_offsets[500_001:] = 2
    masks = pack_pairs([0, 1], [3, 5], target_offsets)
    score = match_ordered(masks)
    assert score.sum() == score[500_000] == 2
    assert match_ordered_pairs(masks).taken.tolist() == [3, 5]


# --- windows ---------------------------------------------------------------------------------


def test_golden_windows() -> None:
    cases = golden_instances()
    arguments = csr_times([(case["times"], case["windows"]) for case in cases])
    responses = [len(case["times"]) for case in cases]
    windows = unpack(window_masks(*arguments), responses)
    content = pack([case["correct"] for case in cases])
    eligible = unpack(window_masks(*arguments, content), responses)
    for case, by_time, both_conditions in zip(cases, windows, eligible, strict=True):
        assert both_conditions == [[bool(e) for e in row] for row in case["eligible"]]
        assert by_time == naive.eligibility(case["times"], case["windows"])
    assert match_windows(*arguments, content).tolist() == [case["ordered_max"] for case in cases]
    pairs = plain(match_windows_pairs(*arguments, content), content)
    for case, (_, taken) in zip(cases, pairs, strict=True):
        assert [[k, j] for k, j in enumerate(taken) if j is not None] == case["ordered_pairs"]


def test_a_boundary_hit_that_floats_miss() -> None:
    assert not 8.3 - 2 <= 6.3 - 1e-15  # the reason for the slack: 8.3 - 2 is 6.300000000000001
    first, end = window_ranges([6.3], [0, 1], [8.3 - 2], [8.3 + 2], [0, 1])
    assert (first.tolist(), end.tolist()) == ([0], [1])
    first, end = window_ranges([6.3], [0, 1], [8.3 - 2], [8.3 + 2], [0, 1], eps=0.0)
    assert first.tolist() == end.tolist()
    within, beyond = 10.3 + 0.9e-6, 10.3 + 1.1e-6
    first, end = window_ranges([within, beyond], [0, 2], [8.3 - 2], [8.3 + 2], [0, 1])
    assert (first.tolist(), end.tolist()) == ([0], [1])


@pytest.mark.parametrize("responses", [0, 1, 5, 64, 65, 129, 700])
@pytest.mark.parametrize("in_order", [True, False])
def test_windows_against_the_slow_twin(responses: int, in_order: bool) -> None:
    rng = np.random.default_rng([responses, in_order])
    some = []
    for targets, length in ((0, 1.0), (1, 3.0), (7, 2.0), (30, 20.0), (5, 500.0)):
        times, windows = random_instance(rng, targets, responses, length)
        windows = windows if in_order else [windows[k] for k in rng.permutation(len(windows))]
        some.append((times, windows))
    arguments = csr_times(some)
    want = [naive.eligibility(times, windows) for times, windows in some]
    assert unpack(window_masks(*arguments), [responses] * len(some)) == want
    first, end = window_ranges(*arguments)
    small_first, small_end = window_ranges_small(*arguments)
    assert small_end.tolist() == end.tolist()
    assert small_first.tolist() == first.tolist()
    rows = [row for table in want for row in table]
    for row, begin, stop in zip(rows, first.tolist(), end.tolist(), strict=True):
        assert [j for j, eligible in enumerate(row) if eligible] == list(range(begin, stop))
    matchings = [naive.match_ordered(table) for table in want]
    assert match_windows(*arguments).tolist() == [score for score, _ in matchings]
    assert plain(match_windows_pairs(*arguments), pack(want)) == matchings


@pytest.mark.parametrize("responses", [9, 64, 65, 200])
@pytest.mark.parametrize("share", [0.0, 0.03, 0.5])
def test_windows_and_content(responses: int, share: float) -> None:
    rng = np.random.default_rng([responses, int(100 * share)])
    some = [random_instance(rng, targets, responses, 25.0) for targets in (3, 0, 12, 25)]
    right = [random_table(rng, len(windows), responses, share) for _, windows in some]
    want = [
        [
            [a and b for a, b in zip(row, right_row, strict=True)]
            for row, right_row in zip(naive.eligibility(*instance), table, strict=True)
        ]
        for instance, table in zip(some, right, strict=True)
    ]
    arguments, content = csr_times(some), pack(right)
    assert unpack(window_masks(*arguments, content), [responses] * 4) == want
    matchings = [naive.match_ordered(table) for table in want]
    assert match_windows(*arguments, content).tolist() == [score for score, _ in matchings]
    assert plain(match_windows_pairs(*arguments, content), pack(want)) == matchings


times = st.one_of(st.integers(-2, 8).map(float), st.floats(-1e5, 1e5, allow_nan=False))


@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    some=st.lists(
        st.tuples(
            st.lists(times, max_size=9).map(sorted),
            st.lists(st.tuples(times, times), max_size=5),
        ),
        max_size=5,
    )
)
def test_any_windows(some: list[tuple[list[float], list[tuple[float, float]]]]) -> None:
    arguments = csr_times(some)
    want = [naive.eligibility(times, windows) for times, windows in some]
    assert unpack(window_masks(*arguments), [len(times) for times, _ in some]) == want
    assert match_windows(*arguments).tolist() == [naive.match_ordered(t)[0] for t in want]


# --- threads, outputs, refusals --------------------------------------------------------------


def corpus(long: bool) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(17)
    most = 150 if long else 64
    return csr_times(
        [
            random_instance(rng, int(rng.integers(0, 12)), int(rng.integers(0, most + 1)), 8.0)
            for _ in range(80)
        ]
    )


@pytest.mark.parametrize("long", [False, True])
def test_threads_do_not_show(long: bool) -> None:
    arguments = corpus(long)
    masks = window_masks(*arguments)
    scores = {match_ordered(masks, threads=n).tobytes() for n in (1, 2, 8)}
    scores |= {match_windows(*arguments, threads=n).tobytes() for n in (1, 2, 8)}
    assert len(scores) == 1
    pairs = {match_ordered_pairs(masks, threads=n).taken.tobytes() for n in (1, 2, 8)}
    assert len(pairs) == 1


def test_simultaneous_calls_agree() -> None:
    masks = window_masks(*corpus(True))
    want = match_ordered_pairs(masks).taken.tobytes()
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(match_ordered_pairs, masks, threads=3) for _ in range(8)]
    assert all(call.result().taken.tobytes() == want for call in calls)


def test_outputs_are_filled_and_returned() -> None:
    arguments = corpus(False)
    masks = window_masks(*arguments)
    words = np.full(masks.words.size, 7, dtype=np.uint64)
    assert np.shares_memory(window_masks(*arguments, out=words).words, words)
    assert words.tolist() == masks.words.tolist()
    score = np.full(masks.n_instances, -9)
    taken = np.full(masks.n_targets, -9)
    assert match_ordered(masks, score) is score
    want = score.copy()
    score[:] = -9
    assert match_windows(*arguments, out=score) is score
    assert score.tolist() == want.tolist()
    score[:] = -9
    matching = match_ordered_pairs(masks, (score, taken))
    assert matching.score is score
    assert matching.taken is taken
    assert score.tolist() == want.tolist()
    first, end = np.full(masks.n_targets, -9), np.full(masks.n_targets, -9)
    ranges = window_ranges(*arguments, out=(first, end))
    assert ranges[0] is first
    assert ranges[1] is end
    assert end.min() >= 0


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", [0, 2, 3])
@pytest.mark.parametrize("place", [0, 5, -1])
def test_refuses_what_is_not_finite(long: bool, bad: float, where: int, place: int) -> None:
    arguments = [array.copy() for array in corpus(long)]
    arguments[where][place] = bad
    name = {0: "response_time", 2: "window_low", 3: "window_high"}[where]
    for function in REFUSERS:
        with pytest.raises(ValueError, match=rf"{name}\[\d+\] is (nan|inf|-inf)"):
            function(*arguments)


def test_refuses_responses_out_of_order() -> None:
    for n in (3, 100):
        times = np.arange(n, dtype=np.float64)
        times[1], times[2] = 2.0, 1.0
        for function in REFUSERS:
            with pytest.raises(ValueError, match=r"response_time\[2\] is 1.0, earlier"):
                function(times, [0, n], [0.0], [9.0], [0, 1])
    # A new instance may begin before the last one ended.
    assert match_windows([5.0, 1.0], [0, 1, 2], [0.0, 0.0], [9.0, 9.0], [0, 1, 2]).tolist() == [
        1,
        1,
    ]


def test_refuses_what_does_not_fit() -> None:
    good = Masks(np.zeros(3, dtype=np.uint64), np.array([0, 1, 3]))
    with pytest.raises(ValueError, match="words has dtype"):
        Masks(np.zeros(3), good.target_offsets)
    with pytest.raises(ValueError, match="target_offsets runs from 0 to 3"):
        Masks(good.words[:2], good.target_offsets)
    with pytest.raises(ValueError, match="together, or neither"):
        Masks(good.words, good.target_offsets, np.arange(4))
    with pytest.raises(ValueError, match=r"first_word\[1\] is negative"):
        Masks(good.words, good.target_offsets, np.arange(4), np.array([0, -1, 0]))
    with pytest.raises(ValueError, match="word_offsets has 4 entries for 2 targets"):
        Masks(good.words, np.array([0, 2]), np.arange(4), np.array([0, 0]))
    with pytest.raises(ValueError, match="other target_offsets"):
        match_windows([1.0], [0, 1], [0.0], [1.0], [0, 1], good)
    with pytest.raises(ValueError, match="eps is -1"):
        match_windows([1.0], [0, 1], [0.0], [1.0], [0, 1], eps=-1)
    with pytest.raises(ValueError, match="target runs from 0 to 3; there are 3 targets"):
        pack_pairs([0, 3], [0, 0], [0, 3])
    with pytest.raises(ValueError, match=r"response\[1\] is negative"):
        pack_pairs([0, 1], [0, -1], [0, 3])
    with pytest.raises(ValueError, match="Lengths differ"):
        pack_pairs([0, 1], [0], offsets([3]))
    with pytest.raises(ValueError, match="target_offsets is empty"):
        pack_pairs(np.array([], dtype=int), np.array([], dtype=int), np.array([], dtype=int))


def test_nothing_at_all() -> None:
    masks = pack_pairs(np.array([], dtype=int), np.array([], dtype=int), [0])
    assert match_ordered(masks).size == 0
    assert match_ordered_pairs(masks).taken.size == 0
    assert match_windows(np.array([]), [0], np.array([]), np.array([]), [0]).size == 0
