"""The pool: judge actors that are created, watched, lost and recreated.

Ray's own restarts and task retries are off: a question that kills the engine would be retried by
Ray until nothing is left, and nobody would learn which one it was.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from omnijudge.config import ExecutionConfig, JudgeConfig
from omnijudge.errors import ResourceError
from omnijudge.judging.executors.guarded import add
from omnijudge_ray.actor import JudgeActor
from omnijudge_ray.cluster import Need, actor_count, missing, need

log = logging.getLogger("omnijudge.ray")

PLACE_SECONDS = 25.0
"""How long an actor may wait for its place while no other works."""
START_SECONDS = 120.0
"""How long a worker process may take to start when its place is free."""
OPENED_IN_VAIN = 3


@dataclass(slots=True, eq=False)
class Worker:
    """One place of the pool.

    Attributes:
        actor: the Ray actor.
        since: when it was created, monotonic seconds.
        starting: what it is doing before it can answer: the reference to ``ping``, then ``open``.
        placed: whether its process runs.
        ready: whether its engine is open.
        tasks: references of the calls on their way, in order, each with the caller's job.
        busy_since: since when the first of them runs, monotonic seconds.
        counters: as of its last reply.
        failed_opens: how often in a row an engine could not be opened in this place.
    """

    actor: Any
    since: float
    starting: Any
    placed: bool = False
    ready: bool = False
    tasks: dict[Any, Any] = field(default_factory=dict)
    busy_since: float = 0.0
    counters: dict[str, float] = field(default_factory=dict)
    failed_opens: int = 0


class Pool:
    """Creates the actors and keeps as many of them alive as there should be.

    Raises:
        ResourceError: the cluster cannot hold an actor, or no engine can be opened. Within half a
            minute if it is the resources.
    """

    def __init__(
        self, ray: Any, execution: ExecutionConfig, judge: JudgeConfig, benchmark_name: str
    ) -> None:
        self.ray = ray
        self._arguments = (judge, benchmark_name)
        self.need: Need = need(ray, execution, judge)
        count = actor_count(ray, execution, judge, self.need)
        self._class = ray.remote(
            num_cpus=self.need.cpus,
            num_gpus=self.need.gpus,
            max_restarts=0,
            max_task_retries=0,
        )(JudgeActor)
        self.counts: Counter[str] = Counter(actors=count)
        self._past: dict[str, float] = {}  # counters of actors that are gone
        self.workers: list[Worker] = []
        self._idle_since = time.monotonic()  # since when no actor has had its place
        self._opened_ever = False
        self._last_reason = ""
        for _ in range(count):
            self._create()

    def _create(self, failed_opens: int = 0) -> None:
        actor = self._class.remote(*self._arguments)
        now = time.monotonic()
        self.workers.append(Worker(actor, now, actor.ping.remote(), failed_opens=failed_opens))

    def ready(self) -> list[Worker]:
        """Actors that can answer."""
        return [w for w in self.workers if w.ready]

    def expected(self) -> int:
        """Actors that answer now or soon."""
        return sum(w.placed for w in self.workers)

    def wait_first(self) -> None:
        """Blocks until the first engine is open."""
        while not self.ready():
            self.step(0.5)

    def step(self, seconds: float) -> list[tuple[Worker, Any]]:
        """Waits for something to happen, at most so long.

        Returns:
            Finished calls as (worker, reference), in no order.

        Raises:
            ResourceError: no actor answers and none can be had.
        """
        watched = {w.starting: w for w in self.workers if w.starting is not None}
        watched |= {ref: w for w in self.workers for ref in w.tasks}
        if not watched:
            raise ResourceError(f"no judge actor is left; last reason: {self._last_reason}")
        refs = list(watched)
        happened, rest = self.ray.wait(refs, num_returns=1, timeout=seconds)
        if happened and rest:
            more, _ = self.ray.wait(rest, num_returns=len(rest), timeout=0)
            happened += more
        done = []
        for ref in happened:
            worker = watched[ref]
            if ref == worker.starting:
                self._started(worker)
            else:
                done.append((worker, ref))
        self._check_places()
        return done

    def _started(self, worker: Worker) -> None:
        try:
            self.ray.get(worker.starting)
        except Exception as e:  # whatever an engine raises, or the end of its process
            # An error of the engine is an answer about it; the end of a process may be bad luck.
            self.lose(worker, reason(e), opening=True)
            if not self.workers:
                raise ResourceError(
                    f"the judge's engine cannot be opened in an actor: {reason(e)}"
                ) from e
            return
        if not worker.placed:
            worker.placed = True
            worker.starting = worker.actor.open.remote()
            return
        worker.starting = None
        worker.ready = True
        worker.failed_opens = 0
        if not self._opened_ever:
            self._opened_ever = True
            for _ in range(self.counts["actors"] - len(self.workers)):
                self._create(failed_opens=1)  # those that failed before the first one came up

    def _check_places(self) -> None:
        now = time.monotonic()
        if any(w.placed for w in self.workers):
            self._idle_since = now
            return
        waited = now - max(self._idle_since, min((w.since for w in self.workers), default=now))
        if waited > PLACE_SECONDS:
            free = self.ray.available_resources()
            short = free.get("CPU", 0.0) < self.need.cpus or free.get("GPU", 0.0) < self.need.gpus
            if short and not self._opened_ever:
                raise ResourceError(missing(self.ray, self.need))
        if waited > START_SECONDS:
            raise ResourceError(f"no actor has started within {waited:.0f} s; see Ray's logs")

    def lose(self, worker: Worker, why: str, opening: bool = False) -> None:
        """Gives an actor up and creates another one in its place.

        The caller has taken its ``tasks`` before.
        """
        self._last_reason = why
        self.workers.remove(worker)
        self.ray.kill(worker.actor, no_restart=True)
        self._past = add(self._past, worker.counters)
        self.counts["actors_lost"] += 1
        log.warning("a judge actor was lost: %s", why)
        failed = worker.failed_opens + 1 if opening else 0
        if failed >= OPENED_IN_VAIN:
            self.counts["actors_given_up"] += 1
        elif self._opened_ever:
            self.counts["actors_recreated"] += 1
            self._create(failed)

    def counters(self) -> dict[str, float]:
        """Counters of all engines, those that are gone included, and of the pool."""
        own = {"actors_lost": 0.0, "actors_recreated": 0.0, "actors_given_up": 0.0}
        own |= {name: float(n) for name, n in self.counts.items()}
        return add(self._past, *(w.counters for w in self.workers), own)

    def close(self) -> None:
        """Closes idle engines in good order, then ends all actors."""
        closing = [w.actor.close.remote() for w in self.workers if w.ready and not w.tasks]
        if closing:
            self.ray.wait(closing, num_returns=len(closing), timeout=5.0)
        for worker in self.workers:
            self.ray.kill(worker.actor, no_restart=True)
        self.workers = []


def reason(error: BaseException) -> str:
    """Why a call of an actor failed, in one line."""
    cause = getattr(error, "cause", None) or error
    text = str(cause)
    # Ray's message about a dead actor is a page; one line of it says why.
    for line in text.splitlines():
        if line.startswith("The actor is dead because"):
            text = line.partition(". Some common causes")[0]
            text = "its process died: " + text.rpartition("Worker exit detail: ")[2]
            break
    text = " ".join(text.split())[:300]
    return text or type(cause).__name__
