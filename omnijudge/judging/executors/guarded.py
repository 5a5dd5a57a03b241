"""An engine that outlives its failures: what harms it is found, set aside and named.

Every executor asks its engine through this, in its own process or in an actor.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from omnijudge.errors import ResourceError
from omnijudge.judging.types import Engine, Reply, Request

if TYPE_CHECKING:
    from omnijudge.judging.executors import EngineFactory

# Halving a batch around one poisonous question fails at most twice in a row.
FAILURES_IN_A_ROW = 3
REOPENED_IN_VAIN = 3


class GuardedEngine:
    """Opens an engine and asks it, batch by batch.

    A batch the engine fails on is asked again in halves until the question that does it stands
    alone; that one becomes an error reply. Out of memory only halves the batch. An engine that
    fails three times in a row is opened anew; when that does not help three times running, it is
    given up.
    """

    def __init__(self, factory: EngineFactory) -> None:
        self._factory = factory
        self._engine: Engine = factory()
        self._failures = 0
        self._in_vain = 0
        self._broken: ResourceError | None = None
        self._counters = {"engines_reopened": 0.0, "questions_quarantined": 0.0}
        self._counters["batches_split"] = 0.0
        self._closed_engines: dict[str, float] = {}

    def answer(self, batch: Sequence[Request]) -> list[Reply]:
        """As many replies as requests, in the same order.

        Raises:
            ResourceError: the engine could not be brought to answer anything any more when the
                last batch was asked.
        """
        if self._broken is not None:
            raise self._broken
        replies: list[Reply | None] = [None] * len(batch)
        try:
            self._fill(replies, batch)
        except ResourceError as e:
            # What was answered before is kept; the next call raises.
            self._broken = e
        return [r if r is not None else Reply(None, error=str(self._broken)) for r in replies]

    @property
    def overlaps(self) -> bool:
        """Whether the engine can answer a batch beside others."""
        return hasattr(self._engine, "answer_soon")

    def start(self, batch: Sequence[Request], then: Callable[[list[Reply] | None], None]) -> None:
        """Begins a batch beside those under way.

        Args:
            batch: the questions.
            then: is given the replies, in a thread of the engine; None if the batch failed as a
                whole, so that it is one for `answer`.
        """

        def ended(future: Future[list[Reply]]) -> None:
            if future.cancelled():
                return
            whole = future.exception() is None and len(future.result()) == len(batch)
            then(future.result() if whole else None)

        engine: Any = self._engine
        engine.answer_soon(batch).add_done_callback(ended)

    def stop_asking(self) -> None:
        """Tells the engine, if it wants to know, to begin no further question."""
        stop = getattr(self._engine, "stop_asking", None)
        if stop is not None:
            stop()

    def _fill(self, replies: list[Reply | None], batch: Sequence[Request]) -> None:
        todo = deque([range(len(batch))] if batch else [])
        retried: set[int] = set()
        while todo:
            part = todo.popleft()
            try:
                some = self._ask([batch[i] for i in part])
            except Exception as e:
                memory = out_of_memory(e)
                fresh = not memory and self._failed(e)
                if len(part) > 1:
                    middle = len(part) // 2
                    todo += [part[:middle], part[middle:]]
                    self._counters["batches_split"] += 1
                elif fresh and part[0] not in retried:
                    # The engine was broken already; the question may be harmless.
                    retried.add(part[0])
                    todo.append(part)
                else:
                    replies[part[0]] = self._quarantine(e, memory)
            else:
                for i, reply in zip(part, some, strict=True):
                    replies[i] = reply

    def counters(self) -> dict[str, float]:
        """The engine's counters, those of engines closed since included, and our own."""
        return add(self._engine_counters(), self._closed_engines, self._counters)

    def close(self) -> None:
        """Closes the engine."""
        self._engine.close()

    def _ask(self, requests: list[Request]) -> list[Reply]:
        answers: Any = self._engine.answer(requests)
        if not isinstance(answers, list | tuple):
            raise TypeError(f"the engine gave {type(answers).__name__} instead of replies")
        if len(answers) != len(requests):
            raise ValueError(
                f"the engine gave {len(answers)} replies for {len(requests)} questions"
            )
        self._failures = self._in_vain = 0
        none = "the engine gave nothing for this question"
        return [Reply(None, error=none) if a is None else a for a in answers]

    def _failed(self, error: Exception) -> bool:
        """Counts a failure; True if the engine was opened anew because of it."""
        self._failures += 1
        if self._failures < FAILURES_IN_A_ROW:
            return False
        if self._in_vain >= REOPENED_IN_VAIN:
            raise ResourceError(
                f"the engine answers nothing any more, opened {REOPENED_IN_VAIN} times anew; "
                f"last reason: {describe(error)}"
            ) from error
        self._counters["engines_reopened"] += 1
        self._in_vain += 1
        self._failures = 0
        self._closed_engines = add(self._closed_engines, self._engine_counters())
        with contextlib.suppress(Exception):  # it is broken; a new one is wanted
            self._engine.close()
        try:
            self._engine = self._factory()
        except Exception as e:
            raise ResourceError(
                f"the engine failed ({describe(error)}) and cannot be opened again: {describe(e)}"
            ) from e
        return True

    def _quarantine(self, error: Exception, memory: bool) -> Reply:
        self._counters["questions_quarantined"] += 1
        kind = "this question alone is too much for the memory" if memory else "the engine failed"
        return Reply(None, error=f"{kind}: {describe(error)}", permanent=True)

    def _engine_counters(self) -> dict[str, float]:
        try:
            return dict(self._engine.counters())
        except Exception:  # counters are never worth a judgement
            return {}


def out_of_memory(error: BaseException) -> bool:
    """Whether an engine failed for lack of memory (of the machine or of a GPU)."""
    name = type(error).__name__.lower()
    return (
        isinstance(error, MemoryError)
        or "outofmemory" in name
        or "out of memory" in str(error).lower()
    )


def describe(error: BaseException) -> str:
    """An exception in one line of at most 300 characters."""
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def add(*counters: dict[str, float]) -> dict[str, float]:
    """Sums counters by name."""
    total: dict[str, float] = {}
    for some in counters:
        for name, value in some.items():
            total[name] = total.get(name, 0.0) + value
    return total
