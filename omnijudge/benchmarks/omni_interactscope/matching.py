"""Which response a target takes: by first response (T1..T7) or in order (T8).

Whole corpora at once, in CSR form. The rules do not depend on each other's samples, so any block
of samples gives the same result as all of them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omnijudge.benchmarks.omni_interactscope.windows import EPSILON, Bools, Floats, Ints

Codes = npt.NDArray[np.int8]

MISSING, EARLY, LATE, ON_TIME = range(4)
"""What first-response assignment finds about the time of a target's response."""


def first_response(
    low: Floats,
    high: Floats,
    end: Floats,
    target_offsets: Ints,
    times: Floats,
    response_offsets: Ints,
    variant: str = "default",
) -> tuple[Ints, Codes]:
    """Walks through the targets in order, each taking one response (InteractScope rule 6).

    A taken response is gone, whatever its time or content; content is not looked at here.

    Args:
        low: lower ends of the windows in seconds, in target order, (targets,).
        high: upper ends.
        end: reference times (of an interval its end), (targets,).
        target_offsets: CSR offsets of the targets by sample, (samples + 1,).
        times: response times, rising within a sample, (responses,).
        response_offsets: CSR offsets of the responses by sample, (samples + 1,).
        variant: ``default``, ``late_released`` or ``since_previous``.

    Returns:
        (taken, timing): places in ``times``, -1 for none; ``MISSING``, ``EARLY``, ``LATE`` or
        ``ON_TIME``.
    """
    if variant == "default":
        # The k-th target takes the k-th response.
        counts = np.diff(target_offsets)
        taken = np.arange(len(low)) + np.repeat(response_offsets[:-1] - target_offsets[:-1], counts)
        taken = np.where(taken < np.repeat(response_offsets[1:], counts), taken, -1)
    else:
        walk = _late_released if variant == "late_released" else _since_previous
        taken = np.full(len(low), -1, dtype=np.int64)
        bounds, ends = target_offsets.tolist(), response_offsets.tolist()
        for s in range(len(bounds) - 1):
            k0, k1, j0, j1 = bounds[s], bounds[s + 1], ends[s], ends[s + 1]
            if k0 < k1 and j0 < j1:
                found = walk(high[k0:k1].tolist(), end[k0:k1].tolist(), times[j0:j1].tolist())
                taken[k0:k1] = [-1 if j is None else j0 + j for j in found]
    return taken, _timing(low, high, times, taken)


def _timing(low: Floats, high: Floats, times: Floats, taken: Ints) -> Codes:
    timing = np.full(len(low), MISSING, dtype=np.int8)
    has = np.flatnonzero(taken >= 0)
    t = times[taken[has]]
    late = np.where(t > high[has] + EPSILON, LATE, ON_TIME)
    timing[has] = np.where(t < low[has] - EPSILON, EARLY, late)
    return timing


def _late_released(high: list[float], end: list[float], times: list[float]) -> list[int | None]:
    """A response after the window's end stays for the next target."""
    found: list[int | None] = []
    j = 0
    for h in high:
        if j < len(times) and times[j] <= h + EPSILON:
            found.append(j)
            j += 1
        else:
            found.append(None)
    return found


def _since_previous(high: list[float], end: list[float], times: list[float]) -> list[int | None]:
    """Only responses after the previous target's time; taking one discards those before it."""
    found: list[int | None] = []
    free = 0
    for k in range(len(high)):
        j = free
        if k:
            while j < len(times) and times[j] <= end[k - 1] + EPSILON:
                j += 1
        if j < len(times):
            found.append(j)
            free = j + 1
        else:
            found.append(None)  # nothing is discarded
    return found


def match_in_order(target_offsets: Ints, first: Ints, pair_offsets: Ints, eligible: Bools) -> Ints:
    """The largest set of (target, response) pairs that rise together (InteractScope rule 7).

    Of several optima the lexicographically first: each target in turn takes the earliest response
    that still allows an optimum.

    Args:
        target_offsets: CSR offsets of the targets by sample, (samples + 1,).
        first: first response inside each target's window, a place among all responses, (targets,).
        pair_offsets: CSR offsets of the window's responses by target: pair ``pair_offsets[k] + i``
            is (target k, response ``first[k] + i``), (targets + 1,).
        eligible: pairs whose content is right, (pairs,).

    Returns:
        Matched response of each target, a place among all responses, -1 for none, (targets,).
    """
    target = np.repeat(np.arange(len(first)), np.diff(pair_offsets))
    pair = np.flatnonzero(eligible)
    owner = target[pair]
    response = first[owner] + pair - pair_offsets[owner]
    opens = np.concatenate([[True], owner[1:] != owner[:-1]])[: len(owner)]
    matched = np.full(len(first), -1, dtype=np.int64)
    matched[owner[opens]] = response[opens]
    # If every target's own earliest response rises with the targets, that is the optimum, and the
    # first one. Only the other samples need the search.
    sample = np.repeat(np.arange(len(target_offsets) - 1), np.diff(target_offsets))
    served = owner[opens]
    same = sample[served[1:]] == sample[served[:-1]]
    falls = same & (matched[served[1:]] <= matched[served[:-1]])
    hard = np.unique(sample[served[1:][falls]])
    for s in hard.tolist():
        k0, k1 = int(target_offsets[s]), int(target_offsets[s + 1])
        a, b = np.searchsorted(owner, [k0, k1])
        matched[k0:k1] = _search(k1 - k0, owner[a:b] - k0, response[a:b])
    return matched


def _search(targets: int, owner: Ints, response: Ints) -> Ints:
    """The optimum of one sample by dynamic programming over its eligible pairs."""
    columns = {r: j for j, r in enumerate(sorted(set(response.tolist())))}
    places = list(columns)
    width = len(places)
    row: list[list[int]] = [[] for _ in range(targets)]
    for k, r in zip(owner.tolist(), response.tolist(), strict=True):
        row[k].append(columns[r])
    # best[k][j]: most pairs among targets from k and responses from j.
    best = [[0] * (width + 1) for _ in range(targets + 1)]
    for k in range(targets - 1, -1, -1):
        here, below = best[k], best[k + 1]
        usable = set(row[k])
        for j in range(width - 1, -1, -1):
            value = max(below[j], here[j + 1])
            if j in usable:
                value = max(value, 1 + below[j + 1])
            here[j] = value
    matched = np.full(targets, -1, dtype=np.int64)
    j = 0
    for k in range(targets):
        for x in row[k]:
            if x >= j and 1 + best[k + 1][x + 1] == best[k][j]:
                matched[k] = places[x]
                j = x + 1
                break
    return matched
