"""Slow, obvious twins of the kernels, one for each, in the order of the kernel list.

They are written from the published rules, share no code with the kernels, and take plain lists for
one sample at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product
from math import comb


def assign_slots(
    chunk_start: Sequence[float], slot_start: Sequence[float], slot_end: Sequence[float]
) -> list[int]:
    """The containing slot with the greatest (start, position), else -1, for every chunk."""
    return [
        max(
            (
                (begin, position)
                for position, (begin, end) in enumerate(zip(slot_start, slot_end, strict=True))
                if begin <= time < end
            ),
            default=(0.0, -1),
        )[1]
        for time in chunk_start
    ]


def inside(time: float, low: float, high: float, eps: float = 1e-6) -> bool:
    """Closed at both ends, with slack."""
    return low - eps <= time <= high + eps


def eligibility(
    times: Sequence[float], windows: Sequence[tuple[float, float]], eps: float = 1e-6
) -> list[list[bool]]:
    """A row for each target: is the response inside its window?"""
    return [[inside(time, low, high, eps) for time in times] for low, high in windows]


def match_ordered(eligible: Sequence[Sequence[bool]]) -> tuple[int, list[int | None]]:
    """The best score and the canonical response of each target, from the table of suffix scores."""
    targets = len(eligible)
    responses = len(eligible[0]) if eligible else 0
    best = [[0] * (responses + 1) for _ in range(targets + 1)]
    for k in reversed(range(targets)):
        for j in reversed(range(responses)):
            best[k][j] = max(
                best[k + 1][j],
                best[k][j + 1],
                1 + best[k + 1][j + 1] if eligible[k][j] else 0,
            )
    taken: list[int | None] = []
    j = 0
    for k in range(targets):
        choices = [
            x
            for x in range(j, responses)
            if eligible[k][x] and 1 + best[k + 1][x + 1] == best[k][j]
        ]
        taken.append(choices[0] if choices else None)
        j = choices[0] + 1 if choices else j
    return best[0][0], taken


def all_ordered_matchings(
    eligible: Sequence[Sequence[bool]], k: int = 0, j: int = 0
) -> list[list[tuple[int, int]]]:
    """Every list of pairs that rises in both; for very small tables only."""
    if k == len(eligible):
        return [[]]
    found = all_ordered_matchings(eligible, k + 1, j)
    for x in range(j, len(eligible[k])):
        if eligible[k][x]:
            found += [[(k, x), *rest] for rest in all_ordered_matchings(eligible, k + 1, x + 1)]
    return found


def first_response(
    times: Sequence[float],
    windows: Sequence[tuple[float, float]],
    reference: Sequence[float],
    variant: str = "default",
    eps: float = 1e-6,
) -> list[tuple[int | None, str]]:
    """The response that each target takes, and its timing: missing, early, late or inside."""
    free = list(range(len(times)))
    result: list[tuple[int | None, str]] = []
    for k, (low, high) in enumerate(windows):
        candidates = free
        if variant == "since_previous" and k > 0:
            candidates = [j for j in free if times[j] > reference[k - 1] + eps]
        if variant == "late_released":
            candidates = [j for j in free[:1] if times[j] <= high + eps]
        if not candidates:
            result.append((None, "missing"))
            continue
        j = candidates[0]
        free = [x for x in free if x > j]
        if times[j] < low - eps:
            result.append((j, "early"))
        elif times[j] > high + eps:
            result.append((j, "late"))
        else:
            result.append((j, "inside"))
    return result


def complete_sequence_law(strata: Sequence[tuple[int, Sequence[int]]]) -> dict[int, Fraction]:
    """The exact law of the number of complete sequences, in fractions."""
    total: dict[int, Fraction] = {0: Fraction(1)}
    for n, counts in strata:
        law: dict[int, Fraction] = {counts[0]: Fraction(1)}
        for count in counts[1:]:
            following: dict[int, Fraction] = {}
            for s, p in law.items():
                for x in range(max(0, s + count - n), min(s, count) + 1):
                    step = Fraction(comb(s, x) * comb(n - s, count - x), comb(n, count))
                    following[x] = following.get(x, Fraction(0)) + p * step
            law = following
        both: dict[int, Fraction] = {}
        for a, p in total.items():
            for b, q in law.items():
                both[a + b] = both.get(a + b, Fraction(0)) + p * q
        total = both
    return total


def complete_by_enumeration(n: int, counts: Sequence[int]) -> dict[int, Fraction]:
    """The same law by going through all arrangements of one stratum; for very small ones only."""
    arrangements = list(product(*(list(combinations(range(n), count)) for count in counts)))
    law: dict[int, Fraction] = {}
    for arrangement in arrangements:
        complete = len(set(range(n)).intersection(*arrangement))
        law[complete] = law.get(complete, Fraction(0)) + Fraction(1, len(arrangements))
    return law


def prefix_hits(prompts: Sequence[Sequence[int]], block: int, capacity: int) -> list[int]:
    """Leading blocks of each prompt that a cache of whole blocks holds, prompts in order.

    A block is its tokens with all tokens before it. The cache gives up what was used longest ago,
    and of one prompt the last block first.
    """
    cache: list[tuple[int, ...]] = []  # oldest first
    hits = []
    for tokens in prompts:
        whole = len(tokens) // block
        blocks = [tuple(tokens[: (i + 1) * block]) for i in range(whole)]
        found = 0
        while found < whole and blocks[found] in cache:
            found += 1
        hits.append(found)
        for b in reversed(blocks):
            if b in cache:
                cache.remove(b)
            cache.append(b)
        cache = cache[max(0, len(cache) - capacity) :]
    return hits
