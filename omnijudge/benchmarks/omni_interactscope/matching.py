"""Which response a target takes: by first response (T1..T7) or in order (T8).

The loops are those of ``omnijudge_kernels``; here responses are counted over all samples, as the
tables hold them, and not within their own sample.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omnijudge.benchmarks.omni_interactscope.windows import EPSILON, Bools, Floats, Ints
from omnijudge_kernels import choose
from omnijudge_kernels.masks import pack_pairs
from omnijudge_kernels.responses import Timing

Codes = npt.NDArray[np.int8]

MISSING, EARLY, LATE, ON_TIME = (int(t) for t in Timing)
"""What first-response assignment finds about the time of a target's response."""


def responses_inside(
    times: Floats, response_offsets: Ints, low: Floats, high: Floats, target_offsets: Ints
) -> tuple[Ints, Ints]:
    """The run of responses inside each window (InteractScope rule 3).

    Args:
        times: response times in seconds, rising within a sample, (responses,).
        response_offsets: CSR offsets of the responses by sample, (samples + 1,).
        low: lower ends of the windows in seconds, in target order, (targets,).
        high: upper ends.
        target_offsets: CSR offsets of the targets by sample, (samples + 1,).

    Returns:
        (first, last), places in ``times``: the responses ``first <= i < last`` are inside.
        Never ``last < first``.
    """
    first, last = choose.window_ranges(
        times, response_offsets, low, high, target_offsets, eps=EPSILON
    )
    base = np.repeat(response_offsets[:-1], np.diff(target_offsets))
    return first + base, last + base


def first_response(
    times: Floats,
    response_offsets: Ints,
    low: Floats,
    high: Floats,
    end: Floats,
    target_offsets: Ints,
    variant: str = "default",
) -> tuple[Ints, Codes]:
    """Walks through the targets in order, each taking one response (InteractScope rule 6).

    A taken response is gone, whatever its time or content; content is not looked at here.

    Args:
        times: response times in seconds, rising within a sample, (responses,).
        response_offsets: CSR offsets of the responses by sample, (samples + 1,).
        low: lower ends of the windows in seconds, in target order, (targets,).
        high: upper ends.
        end: reference times (of an interval its end), (targets,).
        target_offsets: CSR offsets of the targets by sample, (samples + 1,).
        variant: ``default``, ``late_released`` or ``since_previous``.

    Returns:
        (taken, timing): places in ``times``, -1 for none; ``MISSING``, ``EARLY``, ``LATE`` or
        ``ON_TIME``.
    """
    found = choose.first_response(
        times, response_offsets, low, high, target_offsets, end, variant=variant, eps=EPSILON
    )
    base = np.repeat(response_offsets[:-1], np.diff(target_offsets))
    return np.where(found.taken >= 0, found.taken + base, -1), found.timing


def match_in_order(
    target: Ints, response: Ints, eligible: Bools, response_offsets: Ints, target_offsets: Ints
) -> Ints:
    """The largest set of (target, response) pairs that rise together (InteractScope rule 7).

    Of several optima the lexicographically first: each target in turn takes the earliest response
    that still allows an optimum.

    Args:
        target: target of each pair, counted over all samples, (pairs,).
        response: response of each pair, counted over all samples.
        eligible: pairs inside the window whose content is right.
        response_offsets: CSR offsets of the responses by sample, (samples + 1,).
        target_offsets: CSR offsets of the targets by sample, (samples + 1,).

    Returns:
        Matched response of each target, counted over all samples, -1 for none, (targets,).
    """
    base = np.repeat(response_offsets[:-1], np.diff(target_offsets))
    pair = np.flatnonzero(eligible)
    owner = target[pair]
    masks = pack_pairs(owner, response[pair] - base[owner], target_offsets)
    taken = choose.match_ordered_pairs(masks).taken
    return np.where(taken >= 0, taken + base, -1)
