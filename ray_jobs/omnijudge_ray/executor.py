"""The Ray executor: batches go to a pool of actors, and come back whatever happens to these."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from omnijudge.config import ExecutionConfig, JudgeConfig
from omnijudge.errors import ResourceError
from omnijudge.judging.executors import batch_timeout
from omnijudge.judging.executors.guarded import describe
from omnijudge.judging.types import Reply, Request
from omnijudge_ray.cluster import connect, disconnect
from omnijudge_ray.pool import Pool, Worker, reason

KILLS = 2
"""A batch whose actor died so often while it was being answered is asked in halves."""


@dataclass(slots=True, eq=False)
class _Batch:
    """A batch as the judge step handed it in."""

    requests: Sequence[Request]
    replies: list[Reply | None]


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    """A batch or a part of it, and how many actors died over it."""

    batch: _Batch
    rows: range
    kills: int = 0


def open_backend(
    execution: ExecutionConfig, judge: JudgeConfig, benchmark_name: str
) -> RayExecutor:
    """The Ray executor of a configuration."""
    timeout = batch_timeout(judge, execution.batch_size)
    return RayExecutor(execution, judge, benchmark_name, timeout=timeout)


class RayExecutor:
    """Runs a pool of engines on a Ray cluster.

    A batch stays whole and goes to one actor, where its questions share their prefixes. When an
    actor dies, the batch it was answering and those waiting for it go to others. A batch that two
    actors died over is asked in halves, and so on, until the question that kills stands alone and
    becomes an error.

    Args:
        execution: number and size of actors, cluster address, batches per actor.
        judge: what every actor opens.
        benchmark_name: benchmark whose questions are asked.
        timeout: seconds after which an actor without an answer counts as hanging and is ended.

    Raises:
        ResourceError: no cluster, not enough resources, or the engine cannot be opened.
    """

    def __init__(
        self,
        execution: ExecutionConfig,
        judge: JudgeConfig,
        benchmark_name: str,
        *,
        timeout: float = 1800.0,
    ) -> None:
        self._in_flight = execution.in_flight
        self._timeout = timeout
        self._batches: list[_Batch] = []
        self._waiting: deque[_Job] = deque()
        self._losses = 0  # actors lost in a row, without an answer in between
        self._given_up: ResourceError | None = None
        self._closed = False
        ray, self._connected = connect(execution)
        self._ray = ray
        try:
            self._pool = Pool(ray, execution, judge, benchmark_name)
            self._pool.wait_first()
        except BaseException:
            self.close()
            raise

    def room(self) -> bool:
        """Whether another batch may be submitted now."""
        return len(self._batches) < self._in_flight * max(self._pool.expected(), 1)

    def submit(self, batch: Sequence[Request]) -> None:
        """Hands a batch to an actor.

        Raises:
            ResourceError: no actor is left and none can be had.
        """
        if self._given_up is not None:
            raise self._given_up
        whole = _Batch(batch, [None] * len(batch))
        self._batches.append(whole)
        self._waiting.append(_Job(whole, range(len(batch))))
        self._assign()

    def wait(self) -> list[tuple[Sequence[Request], list[Reply]]]:
        """Blocks until at least one batch is done; empty list if nothing is in flight."""
        while self._batches:
            done = self._take_finished()
            if done:
                return done
            try:
                self._assign()
                finished = self._pool.step(1.0)
                for worker, ref in finished:
                    if ref in worker.tasks:
                        self._take_back(worker, ref)
                self._end_hanging()
            except ResourceError as e:
                self._give_up(e)
            except self._ray.exceptions.RayError as e:
                self._give_up(ResourceError(f"the Ray cluster does not answer: {reason(e)}"))
        return []

    def counters(self) -> dict[str, float]:
        """Sums of the engines' counters, and ``actors_lost`` and the like."""
        return self._pool.counters()

    def close(self) -> None:
        """Ends all actors and the connection, dropping what is still in flight."""
        if self._closed:
            return
        self._closed = True
        if hasattr(self, "_pool") and self._ray.is_initialized():
            self._pool.close()
        if self._connected:
            disconnect(self._ray)

    # Inside

    def _assign(self) -> None:
        while self._waiting:
            free = [w for w in self._pool.ready() if len(w.tasks) < self._in_flight]
            if not free:
                return
            worker = min(free, key=lambda w: len(w.tasks))
            job = self._waiting.popleft()
            requests = [job.batch.requests[i] for i in job.rows]
            try:
                ref = worker.actor.answer.remote(requests)
            except Exception as e:  # cannot be pickled
                error = f"the question cannot be sent to an actor: {describe(e)}"
                self._fill(job, [Reply(None, error=error, permanent=True)] * len(requests))
                continue
            if not worker.tasks:
                worker.busy_since = time.monotonic()
            worker.tasks[ref] = job

    def _take_back(self, worker: Worker, ref: Any) -> None:
        try:
            replies, worker.counters = self._ray.get(ref)
        except Exception as e:  # the actor is dead, or its engine is beyond repair
            self._lost(worker, reason(e))
            return
        self._losses = 0
        self._fill(worker.tasks.pop(ref), replies)
        worker.busy_since = time.monotonic()

    def _lost(self, worker: Worker, why: str) -> None:
        """Puts the work of a dead actor back. The first call that failed is to blame."""
        blamed: _Job | None = None
        back: list[_Job] = []
        for ref, job in worker.tasks.items():
            try:
                ready, _ = self._ray.wait([ref], timeout=0)
                replies, worker.counters = self._ray.get(ready[0]) if ready else _raise()
            except Exception:
                if blamed is None:
                    blamed = replace(job, kills=job.kills + 1)
                else:
                    back.append(job)
            else:
                self._fill(job, replies)
        worker.tasks = {}
        self._pool.counts["batches_resubmitted"] += len(back)
        self._waiting.extendleft(reversed(back))
        if blamed is not None:
            self._blame(blamed, why)
        self._pool.lose(worker, why)
        self._losses += 1
        limit = 5 + 3 * self._pool.counts["actors"]
        if self._losses > limit:
            raise ResourceError(
                f"{self._losses} judge actors were lost in a row without an answer; "
                f"last reason: {why}"
            )

    def _blame(self, job: _Job, why: str) -> None:
        if job.kills < KILLS:
            self._pool.counts["batches_resubmitted"] += 1
            self._waiting.append(job)
        elif len(job.rows) == 1:
            self._pool.counts["questions_quarantined"] += 1
            error = f"{job.kills} judge actors died over this question; last reason: {why}"
            self._fill(job, [Reply(None, error=error, permanent=True)])
        else:
            self._pool.counts["batches_split"] += 1
            middle = len(job.rows) // 2
            for rows in (job.rows[:middle], job.rows[middle:]):
                self._waiting.append(_Job(job.batch, rows, kills=KILLS - 1))

    def _fill(self, job: _Job, replies: Sequence[Reply]) -> None:
        for i, reply in zip(job.rows, replies, strict=True):
            job.batch.replies[i] = reply

    def _take_finished(self) -> list[tuple[Sequence[Request], list[Reply]]]:
        done = []
        for batch in list(self._batches):
            replies = [r for r in batch.replies if r is not None]
            if len(replies) == len(batch.requests):
                self._batches.remove(batch)
                done.append((batch.requests, replies))
        return done

    def _end_hanging(self) -> None:
        now = time.monotonic()
        for worker in self._pool.ready():
            if worker.tasks and now - worker.busy_since > self._timeout:
                self._pool.counts["actors_hung"] += 1
                self._lost(worker, f"no answer within {self._timeout:g} s")

    def _give_up(self, error: ResourceError) -> None:
        """Hands everything back, what is missing as errors; the next submission raises."""
        self._given_up = error
        for batch in self._batches:
            batch.replies = [r or Reply(None, error=str(error)) for r in batch.replies]
        self._waiting.clear()
        for worker in self._pool.workers:
            worker.tasks = {}


def _raise() -> Any:
    raise ResourceError("no reply")
