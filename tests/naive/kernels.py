"""Slow, obvious twins of the kernels, one for each, in the order of the kernel list.

They are written from the published rules, share no code with the kernels, and take plain lists for
one sample at a time.
"""

from __future__ import annotations

from collections.abc import Sequence


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
