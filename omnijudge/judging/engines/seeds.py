"""Seeds of single requests."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnijudge.judging.types import Request


def request_seed(request: Request, seed: int) -> int:
    """A seed of its own for every request, in 0..2**31-1.

    One seed for all would give every question the same random numbers and every repeat the same
    answer. It depends on nothing but the question, attempt, repeat and the configured seed, so
    order, batch and machine do not show.
    """
    text = b"%b:%d:%d:%d" % (request.fingerprint, request.attempt, request.repeat, seed)
    return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "big") & 0x7FFFFFFF
