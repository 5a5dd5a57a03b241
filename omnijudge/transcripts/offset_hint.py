"""A constant shift between a system's clock and the clip's, guessed from when it speaks.

Answers begin soon after they are due. If a clock is off by a constant, utterances begin at some
other constant distance from the moments the answers are due, and that distance stands out of all
distances as one sharp peak. A system that is merely late is late by different amounts, one that
talks all the time has no peak, one that talks in a fixed rhythm has several.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from omnijudge.errors import Problem
from omnijudge.transcripts.heard import Heard

REACH = 30.0
"""Greatest distance in seconds that is looked at, to either side."""
BIN = 0.2
WINDOW = 5
"""Bins (together 1 s) whose counts are added to find the peak; a second, so that systems with
whole-second times put one moment, not two, into a window."""
ORDINARY = (-0.5, 5.0)
"""Distances in seconds at which answers begin when the clock is right."""
USUAL_DELAY = 1.0
MOMENTS = 30
"""Least number of answer moments with speech around them."""
SAMPLES = 5
"""Least number of samples with speech."""
SHARE = 0.12
"""Least share of those moments that have an utterance within the peak."""
SIGMAS = 6.0
"""How far the peak must rise above the ordinary count of a window (Poisson deviations)."""
NEIGHBOURS = 3.0
"""Seconds to either side of the peak among which it must hold half of what is above ordinary."""
SECOND_PEAK = 0.6
"""A second peak this high beside the first is a rhythm, not a shift."""


def suggest_offset(outputs: Sequence[Heard]) -> float | None:
    """The ``time_offset`` that would bring the peak of delays to 1 s, or None.

    Args:
        outputs: one system's samples, read with its present settings.

    Returns:
        Seconds to add to the present ``time_offset``, rounded to 0.1; None if nothing stands out
        or the peak lies where ordinary answers begin.
    """
    distances, moments, samples = _distances(outputs)
    if moments < MOMENTS or samples < SAMPLES:
        return None
    bins = round(2 * REACH / BIN)
    counts, _ = np.histogram(distances, bins=bins, range=(-REACH, REACH))
    windows = np.convolve(counts, np.ones(WINDOW, int), "valid")
    at = int(np.argmax(windows))
    peak, usual = int(windows[at]), float(np.median(windows))
    if peak < SHARE * moments or peak - usual < SIGMAS * np.sqrt(usual + 1):
        return None
    if not _is_sharp(counts, at, peak, usual) or _has_second(windows, at, peak, usual):
        return None
    left = at * BIN - REACH
    near = distances[(distances >= left - 0.5) & (distances < left + WINDOW * BIN + 0.5)]
    centre = float(np.median(near))
    if ORDINARY[0] <= centre <= ORDINARY[1]:
        return None
    return round(USUAL_DELAY - centre, 1)


def offset_problem(system: str, file: str, outputs: Sequence[Heard]) -> list[Problem]:
    """A warning with the offset to write, if :func:`suggest_offset` finds one."""
    offset = suggest_offset(outputs)
    if offset is None:
        return []
    when = "after" if offset < 0 else "before"
    return [
        Problem(
            "suspect_offset",
            "warning",
            file,
            "",
            f"utterances begin about {abs(offset):.1f} s {when} the moments answers usually begin: "
            f"if the system's clock does not start with the clip, add {offset:+.1f} to "
            "`time_offset`",
            system=system,
        )
    ]


def _distances(outputs: Sequence[Heard]) -> tuple[NDArray[np.float64], int, int]:
    """Utterance start minus due moment for all pairs in reach; moments and samples with speech."""
    found = [np.empty(0)]
    moments = samples = 0
    for heard in outputs:
        utterances = heard.utterances()
        if len(utterances) == 0 or len(heard.answer_times) == 0:
            continue
        samples += 1
        table = utterances[:, None] - heard.answer_times[None, :]
        inside = np.abs(table) < REACH
        moments += int(inside.any(axis=0).sum())
        found.append(table[inside])
    return np.concatenate(found), moments, samples


def _is_sharp(counts: NDArray[np.int64], at: int, peak: int, usual: float) -> bool:
    reach = round(NEIGHBOURS / BIN)
    around = counts[max(0, at - reach) : at + WINDOW + reach]
    above = float(around.sum()) - usual * len(around) / WINDOW
    return peak - usual >= 0.5 * above


def _has_second(windows: NDArray[np.int64], at: int, peak: int, usual: float) -> bool:
    """Whether another window, further than the peak's own width, rises nearly as high."""
    apart = 2 * WINDOW
    rest = np.concatenate([windows[: max(0, at - apart)], windows[at + apart + 1 :]])
    return len(rest) > 0 and float(rest.max()) - usual >= SECOND_PEAK * (peak - usual)
