"""How kernels are compiled: one decorator, one policy.

* ``nogil``: a kernel holds no Python lock, so callers may run blocks of samples in plain threads
  (:mod:`omnijudge_kernels.blocks`). Numba's own ``prange`` is not used: its default ``workqueue``
  layer ends the whole process when two threads enter parallel kernels at once.
* No ``fastmath``: it assumes that no NaN or infinity ever appears, and the kernels look for them.
* No cache on disk. Numba picks the name of a cache file before it writes it, so processes that
  compile at the same moment, or nodes with different processors and one home directory, can leave
  an index that points at somebody else's machine code. A kernel compiles in well under a second on
  first use, small inputs never compile anything (:mod:`omnijudge_kernels.choose`), and threads of
  one process share what is compiled.

This is the only module that imports Numba at its top, and only modules with kernels import it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Loop = TypeVar("Loop", bound=Callable[..., Any])


def kernel(loop: Loop) -> Loop:
    """Compile ``loop`` on first call, in nopython mode."""
    return cast("Loop", numba.njit(loop, nogil=True))
