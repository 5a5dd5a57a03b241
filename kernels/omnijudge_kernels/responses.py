"""Names shared by the compiled and the plain form of first-response assignment."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omnijudge_kernels import checks
from omnijudge_kernels.instances import Instances

Variant = Literal["default", "late_released", "since_previous"]


class Timing(IntEnum):
    """How the response that a target takes stands to its window."""

    MISSING = 0  # no response taken
    EARLY = 1
    LATE = 2
    INSIDE = 3


@dataclass(frozen=True, eq=False)
class FirstResponse:
    """What each target takes, in target order.

    Attributes:
        taken: the response, counted within the instance, -1 if none, int64 (targets,).
        timing: a :class:`Timing` each, int8 (targets,). Content is decided elsewhere, and only for
            ``INSIDE``.
    """

    taken: NDArray[np.int64]
    timing: NDArray[np.int8]


def checked_variant(variant: str) -> Variant:
    """``variant`` if it is one.

    Raises:
        ValueError: if it is not.
    """
    for known in get_args(Variant):
        if variant == known:
            return known  # type: ignore[no-any-return]
    raise ValueError(f"variant is {variant!r}; choose one of {', '.join(get_args(Variant))}.")


def checked_reference(
    given: Instances, reference_time: ArrayLike | None, variant: Variant
) -> NDArray[np.float64]:
    """The targets' reference times, which only ``since_previous`` needs.

    Raises:
        ValueError: if they are missing although needed, of another length, or not finite.
    """
    if variant != "since_previous":
        return checks.frozen(np.empty(0))
    if reference_time is None:
        raise ValueError("variant since_previous needs reference_time.")
    reference = checks.seconds("reference_time", reference_time)
    checks.same_length(window_low=given.window_low, reference_time=reference)
    checks.require_finite(reference_time=reference)
    return reference
