"""The one policy for asking a server again: when, how often, and how long to wait in between."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt
from tenacity.wait import wait_base, wait_random_exponential

T = TypeVar("T")

LONGEST_WAIT = 30.0
"""Seconds between two tries when the server does not say how long to wait."""

LONGEST_RETRY_AFTER = 120.0
"""Seconds a server may ask us to wait; more than that is cut, so that a run always ends."""


class _Wait(wait_base):
    """As long as the server asks for, else a random time below a bound that doubles."""

    def __init__(self, first: float) -> None:
        self._growing = wait_random_exponential(multiplier=first, max=LONGEST_WAIT)

    def __call__(self, retry_state: RetryCallState) -> float:
        outcome = retry_state.outcome
        error = outcome.exception() if outcome is not None else None
        headers = getattr(getattr(error, "response", None), "headers", None)
        asked = retry_after(headers) if headers is not None else None
        if asked is not None:
            return min(asked, LONGEST_RETRY_AFTER)
        return float(self._growing(retry_state))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds a reply's headers ask to wait (RFC 9110, 10.2.3), None if they do not say."""
    milliseconds = headers.get("retry-after-ms")
    value = headers.get("retry-after")
    try:
        if milliseconds is not None:
            return max(0.0, float(milliseconds) / 1000)
        if value is None:
            return None
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        moment = email.utils.parsedate_to_datetime(str(value))
    except ValueError:
        return None
    return max(0.0, moment.timestamp() - time.time())


async def with_retries(
    call: Callable[[], Awaitable[T]],
    transient: Callable[[BaseException], bool],
    retries: int,
    first_wait: float = 0.5,
    on_retry: Callable[[], None] = lambda: None,
) -> T:
    """Calls until it works, an error is not transient, or the retries are used up.

    Args:
        call: what to do.
        transient: whether an error may pass by itself.
        retries: how often to try again at most.
        first_wait: seconds before the first retry; later ones wait longer.
        on_retry: called before each retry, to count it.

    Raises:
        Exception: the last error of the call itself.
    """

    async def once() -> T:
        return await call()

    policy = AsyncRetrying(
        retry=retry_if_exception(transient),
        stop=stop_after_attempt(retries + 1),
        wait=_Wait(first_wait),
        before_sleep=lambda _: on_retry(),
        reraise=True,
    )
    return await policy(once)
