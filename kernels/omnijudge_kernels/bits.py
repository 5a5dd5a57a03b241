"""Operations on 64-bit words that NumPy and Python lack, for use inside kernels.

Both are written with shifts and masks in the form that LLVM knows and turns into one or a few
instructions. All constants are uint64: Numba would turn a uint64 and a literal into a signed
integer.
"""

from __future__ import annotations

import numpy as np

from omnijudge_kernels.jit import kernel

NONE = np.uint64(0)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
ONE = np.uint64(1)
EACH_8TH = np.uint64(0x0101010101010101)
ODD_1 = np.uint64(0x5555555555555555)  # every other bit, pair of bits, ...
ODD_2 = np.uint64(0x3333333333333333)
ODD_4 = np.uint64(0x0F0F0F0F0F0F0F0F)
ODD_8 = np.uint64(0x00FF00FF00FF00FF)
ODD_16 = np.uint64(0x0000FFFF0000FFFF)
TWO, FOUR, EIGHT = np.uint64(2), np.uint64(4), np.uint64(8)
SIXTEEN, THIRTY_TWO, FIFTY_SIX = np.uint64(16), np.uint64(32), np.uint64(56)


@kernel
def count_bits(word: np.uint64) -> int:
    """How many bits of ``word`` are set."""
    word = word - ((word >> ONE) & ODD_1)
    word = (word & ODD_2) + ((word >> TWO) & ODD_2)
    word = (word + (word >> FOUR)) & ODD_4
    return int((word * EACH_8TH) >> FIFTY_SIX)


@kernel
def reverse_bits(word: np.uint64) -> np.uint64:
    """``word`` with bit ``i`` moved to bit ``63 - i``."""
    word = ((word >> ONE) & ODD_1) | ((word & ODD_1) << ONE)
    word = ((word >> TWO) & ODD_2) | ((word & ODD_2) << TWO)
    word = ((word >> FOUR) & ODD_4) | ((word & ODD_4) << FOUR)
    word = ((word >> EIGHT) & ODD_8) | ((word & ODD_8) << EIGHT)
    word = ((word >> SIXTEEN) & ODD_16) | ((word & ODD_16) << SIXTEEN)
    return (word >> THIRTY_TWO) | (word << THIRTY_TWO)


@kernel
def lowest_bits(n: int) -> np.uint64:
    """A word with its lowest ``n`` bits set; none below 0, all from 64 on."""
    if n <= 0:
        return NONE
    if n >= 64:
        return ALL
    return ALL >> np.uint64(64 - n)


@kernel
def lowest_set(word: np.uint64) -> int:
    """The place of the lowest set bit of ``word``; 64 if there is none."""
    return count_bits((word & (NONE - word)) - ONE)
