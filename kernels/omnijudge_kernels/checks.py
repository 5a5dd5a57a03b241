"""What every kernel asks of its arrays, checked once in front of the loops.

The loops themselves check nothing. Times are float64 seconds and finite; ragged data is stored in
CSR form, where segment ``i`` occupies ``values[offsets[i]:offsets[i + 1]]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view, so that a compiled kernel meets one array type whoever calls it.

    Arrow buffers arrive read-only and NumPy arrays writable; Numba would compile the loop once for
    each.
    """
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def vector(name: str, values: ArrayLike, dtype: type[np.generic]) -> NDArray[Any]:
    """``values`` as a contiguous, aligned, one-dimensional array of ``dtype``.

    Raises:
        ValueError: if it has another number of dimensions or holds no such numbers.
    """
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} has {array.ndim} dimensions; give one.")
    if array.dtype == dtype and array.flags.c_contiguous and array.flags.aligned:
        return frozen(array)
    if array.size and not np.can_cast(array.dtype, dtype, casting="same_kind"):
        raise ValueError(f"{name} has dtype {array.dtype}; give {np.dtype(dtype).name}.")
    return frozen(np.require(array, dtype=dtype, requirements=["C", "A"]))


def seconds(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Times in seconds as float64. Finiteness is left to :func:`require_finite` or to the kernel.

    Single precision is refused: rounding a time to float32 moves it across slot boundaries.
    """
    array = np.asarray(values)
    if array.dtype.kind == "f" and array.dtype.itemsize < 8:
        raise ValueError(f"{name} has dtype {array.dtype}; times need float64.")
    return vector(name, array, np.float64)


def csr_offsets(name: str, values: ArrayLike, n_values: int) -> NDArray[np.int64]:
    """Offsets of a CSR layout over ``n_values`` values, as int64.

    Raises:
        ValueError: unless they start at 0, never fall, and end at ``n_values``.
    """
    offsets = vector(name, values, np.int64)
    if offsets.size == 0:
        raise ValueError(f"{name} is empty; it needs one more entry than there are segments.")
    if offsets[0] != 0 or offsets[-1] != n_values:
        raise ValueError(
            f"{name} runs from {offsets[0]} to {offsets[-1]}; it must run from 0 to {n_values}, "
            f"the number of values."
        )
    falls = offsets[1:] < offsets[:-1]
    if falls.any():
        where = int(np.argmax(falls))
        raise ValueError(
            f"{name} falls from {offsets[where]} to {offsets[where + 1]} at entry {where + 1}; "
            f"offsets must never fall."
        )
    return offsets


def same_length(**arrays: NDArray[Any]) -> int:
    """The common length of the named arrays.

    Raises:
        ValueError: if they differ.
    """
    lengths = {name: int(array.shape[0]) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(f"Lengths differ: {listed}.")
    return next(iter(lengths.values()))


def require_finite(**arrays: NDArray[np.float64]) -> None:
    """Refuse NaN and infinity.

    Raises:
        ValueError: naming the first offending entry.
    """
    for name, array in arrays.items():
        bad = ~np.isfinite(array)
        if bad.any():
            where = int(np.argmax(bad))
            raise ValueError(f"{name}[{where}] is {array[where]}; times must be finite.")


def output(name: str, out: NDArray[Any] | None, size: int, dtype: type[np.generic]) -> NDArray[Any]:
    """The caller's ``out`` if given and fitting, otherwise a new array.

    Raises:
        ValueError: if ``out`` has another shape or dtype, is not contiguous, or is read-only.
    """
    if out is None:
        return np.empty(size, dtype=dtype)
    if out.shape != (size,) or out.dtype != np.dtype(dtype):
        raise ValueError(
            f"{name} has shape {out.shape} and dtype {out.dtype}; "
            f"it needs ({size},) and {np.dtype(dtype).name}."
        )
    if not (out.flags.c_contiguous and out.flags.aligned and out.flags.writeable):
        raise ValueError(f"{name} must be contiguous, aligned and writable.")
    return out
