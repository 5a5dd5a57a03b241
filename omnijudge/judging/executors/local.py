"""The local executor: one engine in this process, asked from one worker thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from omnijudge.errors import OmnijudgeError, ResourceError
from omnijudge.judging.executors import EngineFactory, batch_timeout, engine_factory
from omnijudge.judging.executors.guarded import GuardedEngine, add, describe
from omnijudge.judging.types import NOT_ASKED, Reply, Request

if TYPE_CHECKING:
    from omnijudge.config import ExecutionConfig, JudgeConfig

_Batch = Sequence[Request]
_Result = tuple[_Batch, list[Reply] | BaseException]


def open_backend(
    execution: ExecutionConfig, judge: JudgeConfig, benchmark_name: str
) -> LocalExecutor:
    """The local executor of a configuration."""
    return LocalExecutor(
        engine_factory(judge, benchmark_name),
        in_flight=execution.in_flight,
        timeout=batch_timeout(judge, execution.batch_size),
    )


class LocalExecutor:
    """Runs one engine in this process.

    The engine is opened here, in the thread that builds the executor (the main thread, where
    engines may install signal handlers), and asked in a thread of its own, so that the next batch
    is rendered meanwhile. An engine that can answer a batch beside others (one that only waits
    for a server) gets all batches in flight at once, so that none waits for another's last answer.

    Args:
        factory: opens the engine.
        in_flight: batches waiting for the engine or in it.
        timeout: seconds without a result after which the engine counts as hanging. A thread
            cannot be stopped, so that the hanging engine is left behind and a new one opened.

    Raises:
        ConfigError, ResourceError: the engine cannot be opened.
    """

    def __init__(
        self, factory: EngineFactory, *, in_flight: int = 2, timeout: float = 1800.0
    ) -> None:
        self._factory = factory
        self._in_flight = in_flight
        self._timeout = timeout
        self._given_up: dict[str, float] = {"engines_hung": 0.0}
        self._batches: list[_Batch] = []  # in the order of submission
        self._start()

    def _start(self) -> None:
        self._engine = GuardedEngine(self._factory)
        self._todo: queue.SimpleQueue[_Batch | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[_Result] = queue.SimpleQueue()
        self._ending = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=_work,
            args=(self._engine, self._todo, self._done, self._ending, self._stopping),
            name="omnijudge-engine",
            daemon=True,
        )
        self._thread.start()

    def room(self) -> bool:
        """Whether another batch may be submitted now."""
        return len(self._batches) < self._in_flight

    def submit(self, batch: _Batch) -> None:
        """Hands a batch to the engine."""
        self._batches.append(batch)
        todo, done = self._todo, self._done
        if self._engine.overlaps:
            # One that fails as a whole goes the slow way, to find the question that does it.
            self._engine.start(
                batch, lambda r: todo.put(batch) if r is None else done.put((batch, r))
            )
        else:
            todo.put(batch)

    def stop_asking(self) -> None:
        """Hands back unasked what the engine has not begun; returns at once."""
        self._stopping.set()
        self._engine.stop_asking()

    def wait(self) -> list[tuple[_Batch, list[Reply]]]:
        """Blocks until a batch is done; empty list if nothing is in flight.

        Raises:
            ResourceError: the engine cannot go on.
        """
        if not self._batches:
            return []
        try:
            batch, result = self._done.get(timeout=self._timeout)
        except queue.Empty:
            return self._hung()
        self._batches = [b for b in self._batches if b is not batch]
        if isinstance(result, OmnijudgeError):
            raise result
        if isinstance(result, BaseException):
            raise ResourceError(f"the engine ended: {describe(result)}") from result
        return [(batch, result)]

    def _hung(self) -> list[tuple[_Batch, list[Reply]]]:
        """Leaves the engine behind; what it has begun fails, what waits goes to a new engine."""
        begun = len(self._batches) if self._engine.overlaps else 1
        stuck, waiting = self._batches[:begun], self._batches[begun:]
        self._given_up = add(self._given_up, {"engines_hung": 1.0})
        if self._given_up["engines_hung"] > 3:
            raise ResourceError(
                f"the engine hangs: no answer within {self._timeout:g} s, after three new starts"
            )
        self._start()
        self._batches = []
        for batch in waiting:
            self.submit(batch)
        error = f"no answer within {self._timeout:g} s; the engine was left behind"
        return [(batch, [Reply(None, error=error)] * len(batch)) for batch in stuck]

    def counters(self) -> dict[str, float]:
        """The engine's counters and our own."""
        return add(self._engine.counters(), self._given_up)

    def close(self) -> None:
        """Ends the engine, dropping what is still waiting for it."""
        self._ending.set()
        self._todo.put(None)
        self._batches = []
        self._thread.join(timeout=5.0)
        if not self._thread.is_alive():
            self._engine.close()


def _work(
    engine: GuardedEngine,
    todo: queue.SimpleQueue[_Batch | None],
    done: queue.SimpleQueue[_Result],
    ending: threading.Event,
    stopping: threading.Event,
) -> None:
    while (batch := todo.get()) is not None and not ending.is_set():
        if stopping.is_set():
            done.put((batch, [NOT_ASKED] * len(batch)))
            continue
        try:
            done.put((batch, engine.answer(batch)))
        except BaseException as e:  # SystemExit of an engine included: the loop has to know
            done.put((batch, e))
            return
