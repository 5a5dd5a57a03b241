"""Adjusting p-values of a family: one metric in one group, over systems or over pairs."""

from __future__ import annotations

from typing import Literal

import numpy as np

from omnijudge_kernels.resampling import Array

Adjustment = Literal["holm", "bh"]


def adjust(p_values: Array, method: Adjustment = "holm") -> Array:
    """Adjusted p-values (P,); NaN stays NaN and is no member of the family.

    Args:
        p_values: (P,).
        method: ``holm`` bounds the chance of any false finding, ``bh`` (Benjamini-Hochberg) the
            expected share of false ones among the findings.
    """
    result = np.full(p_values.shape, np.nan)
    members = np.flatnonzero(np.isfinite(p_values))
    if not len(members):
        return result
    order = members[np.argsort(p_values[members], kind="stable")]
    size = len(order)
    place = np.arange(size)
    if method == "holm":
        stepped = np.maximum.accumulate(p_values[order] * (size - place))
    elif method == "bh":
        scaled = p_values[order] * size / (place + 1)
        stepped = np.minimum.accumulate(scaled[::-1])[::-1]
    else:
        raise ValueError(f"unknown adjustment {method!r}; use holm or bh")
    result[order] = np.minimum(stepped, 1.0)
    return result
