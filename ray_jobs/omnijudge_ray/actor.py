"""The judge actor: one engine in one Ray worker process."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from omnijudge.config import JudgeConfig
from omnijudge.judging.executors import engine_factory
from omnijudge.judging.executors.guarded import GuardedEngine
from omnijudge.judging.types import Reply, Request


class JudgeActor:
    """Opens the judge's engine when told to, and asks it.

    Opening is a call of its own: that the process is there (``ping``) is soon known, while loading
    a model takes its time.
    """

    def __init__(self, judge: JudgeConfig, benchmark_name: str) -> None:
        _hide_source_root()
        self._factory = engine_factory(judge, benchmark_name)
        self._engine: GuardedEngine | None = None

    def ping(self) -> bool:
        """Answers as soon as the process is placed."""
        return True

    def open(self) -> None:
        """Opens the engine."""
        self._engine = GuardedEngine(self._factory)

    def answer(self, requests: Sequence[Request]) -> tuple[list[Reply], dict[str, float]]:
        """Replies in the order of the requests, and the counters so far."""
        assert self._engine is not None, "open comes first"
        return self._engine.answer(requests), self._engine.counters()

    def close(self) -> None:
        """Closes the engine."""
        if self._engine is not None:
            self._engine.close()


def _hide_source_root() -> None:
    """Takes this project's source folder off the path, where Ray puts the driver's folder.

    Started from there, ``kernels`` would be importable in workers, a name that belongs to another
    distribution which transformers looks for.
    """
    sys.path[:] = [p for p in sys.path if not Path(p, "kernels", "omnijudge_kernels").is_dir()]
