"""When a run stops before its questions end: deadline, cost, a signal."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import FrameType
from typing import Literal

from omnijudge.config import PriceConfig
from omnijudge.errors import ConfigError

StopKind = Literal["deadline", "cost", "interrupted", "engine"]


@dataclass(frozen=True, slots=True)
class Stop:
    """Why judging ended early.

    Attributes:
        kind: ``deadline`` and ``cost`` leave whole samples; ``interrupted`` and ``engine`` do not.
        message: in words.
    """

    kind: StopKind
    message: str


def deadline_at(text: str, now: datetime) -> datetime:
    """The next time the local clock shows this time (``07:45``).

    Raises:
        ConfigError: not a time of day.
    """
    m = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?", text.strip())
    if not m:
        raise ConfigError(f"limits.deadline: {text!r} is no time of day; write for example 07:45")
    at = now.replace(hour=int(m[1]), minute=int(m[2]), second=int(m[3] or 0), microsecond=0)
    return at if at > now else at + timedelta(days=1)


def cost(price: PriceConfig, prompt: int, cached: int, output: int) -> float:
    """Price of tokens in the currency of the configuration; cached prompt tokens are part of
    ``prompt`` and cost the normal price unless they have one of their own."""
    full = price.input or 0.0
    reduced = full if price.cached_input is None else price.cached_input
    return ((prompt - cached) * full + cached * reduced + output * (price.output or 0.0)) / 1e6


class StopFlag:
    """Set from outside to end judging: nothing new is asked, what comes back is kept."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._listeners: list[Callable[[], None]] = []
        self.reason = ""

    def set(self, reason: str) -> None:
        """Asks for the end; the first reason counts."""
        if not self._event.is_set():
            self.reason = reason
            self._event.set()
            for listener in self._listeners:
                listener()

    def listen(self, listener: Callable[[], None]) -> None:
        """Calls this when the flag is set (in a signal handler, so it must not wait)."""
        self._listeners.append(listener)
        if self:
            listener()

    def __bool__(self) -> bool:
        return self._event.is_set()


@contextmanager
def stopped_by_signals(flag: StopFlag) -> Iterator[None]:
    """SIGINT and SIGTERM set the flag; a second one does what it would have done without this.

    Only the main thread may receive signals; elsewhere this changes nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            # None: installed from outside Python, which cannot be put back from here.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def stop(number: int, frame: FrameType | None) -> None:
        flag.set(f"interrupted by {signal.Signals(number).name}")
        restore()

    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        restore()


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM raises KeyboardInterrupt, like SIGINT, so that both end a command in one way."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)
