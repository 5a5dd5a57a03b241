"""Progress on stderr: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any

QUIET_SECONDS = 2.0
LINE_EVERY = 15.0


class Progress:
    """Shows how far a step is. Steps of less than two seconds stay silent off a terminal."""

    def __init__(self, enabled: bool = True) -> None:
        self._enabled = enabled
        self._bar: Any = None
        self._task: Any = None
        self._name = ""
        self._total: int | None = None
        self._done = 0
        self._started = self._spoken = 0.0
        self.seconds: dict[str, float] = {}

    def start(self, name: str, total: int | None = None) -> None:
        """Begins a step; ends the one before."""
        self.end()
        self._name, self._total, self._done = name, total, 0
        self._started = self._spoken = time.monotonic()
        if self._enabled and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[note]}"),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task(name, total=total, note="")
            self._bar.start()

    def advance(self, count: int = 1, note: str = "") -> None:
        """So much more is done."""
        self._done += count
        self._show(note)

    def reach(self, done: int, note: str = "") -> None:
        """So much is done in all."""
        self._done = done
        self._show(note)

    def _show(self, note: str) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, note=note)
            return
        now = time.monotonic()
        if self._enabled and now - self._spoken >= LINE_EVERY:
            self._spoken = now
            of = f"/{self._total}" if self._total is not None else ""
            self.say(f"{self._name}: {self._done}{of} {note}".rstrip())

    def say(self, line: str) -> None:
        """A line for the user, on stderr."""
        if not self._enabled:
            return
        if self._bar is not None:
            self._bar.console.print(line, highlight=False, markup=False)
        else:
            print(line, file=sys.stderr, flush=True)

    def end(self) -> None:
        """Ends the step."""
        if not self._name:
            return
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        spent = time.monotonic() - self._started
        self.seconds[self._name] = self.seconds.get(self._name, 0.0) + spent
        if spent >= QUIET_SECONDS:
            count = f" {self._done} in" if self._done else ""
            self.say(f"{self._name}:{count} {spent:.1f} s")
        self._name = ""
