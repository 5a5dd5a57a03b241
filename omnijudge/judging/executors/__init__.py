"""Executors: where engines run."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from omnijudge.errors import ResourceError

if TYPE_CHECKING:
    from omnijudge.config import ExecutionConfig, JudgeConfig
    from omnijudge.judging.types import Engine, Executor

__all__ = ["EngineFactory", "engine_factory", "open_executor"]

EngineFactory = Callable[[], "Engine"]

# By name, so that nothing of Ray is needed before it is asked for.
BACKENDS = {
    "local": "omnijudge.judging.executors.local",
    "ray": "omnijudge_ray.executor",
}


def engine_factory(judge: JudgeConfig, benchmark_name: str) -> EngineFactory:
    """What opens the judge's engine, once or again."""

    def factory() -> Engine:
        from omnijudge.judging.engines import open_engine

        return open_engine(judge, benchmark_name)

    return factory


def batch_timeout(judge: JudgeConfig, batch_size: int) -> float:
    """Seconds after which a batch counts as hanging: never less than half an hour, and long
    enough for every request of a batch to use up all its retries."""
    rounds = -(-batch_size // judge.concurrency)
    return max(1800.0, rounds * judge.timeout * (judge.transport_retries + 1))


def open_executor(execution: ExecutionConfig, judge: JudgeConfig, benchmark_name: str) -> Executor:
    """Opens the executor of the configured backend, with the engine of the judge.

    Raises:
        ConfigError: the engine is unknown or its settings do not fit.
        ResourceError: something it needs (a package, a GPU, a model) is not there.
    """
    try:
        module = import_module(BACKENDS[execution.backend])
    except ModuleNotFoundError as e:
        if (e.name or "").partition(".")[0] not in ("ray", "omnijudge_ray"):
            raise
        raise ResourceError(
            "execution.backend: ray is not installed; pip install 'omnijudge[ray]', or use local"
        ) from e
    executor: Executor = module.open_backend(execution, judge, benchmark_name)
    return executor
