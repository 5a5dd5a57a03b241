"""The smoke judge: no model, only the overlap of a text with its reference answer.

It shows a whole run in seconds on any machine. Its verdicts say nothing about quality.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from omnijudge.judging.types import Identity, Reply, Request

if TYPE_CHECKING:
    from omnijudge.config import JudgeConfig

IDENTITY = "lexical-1"
"""The number rises whenever an answer to an unchanged question could change."""


class LexicalEngine:
    """Answers with what the benchmark's own ``lexical`` says about a question's variables."""

    def __init__(self, judge: JudgeConfig, benchmark_name: str) -> None:
        from omnijudge.benchmarks import get_benchmark

        self._benchmark = get_benchmark(benchmark_name)

    @classmethod
    def identity(cls, judge: JudgeConfig) -> Identity:
        """Always the same: there is no model."""
        return Identity(text=IDENTITY)

    @classmethod
    def relevant_options(cls, judge: JudgeConfig) -> dict[str, Any]:
        """None: the smoke judge takes no options."""
        return {}

    def answer(self, batch: Sequence[Request]) -> list[Reply]:
        """Answers a batch, as compact JSON texts without any tokens."""
        return [self._answer(request) for request in batch]

    def _answer(self, request: Request) -> Reply:
        import orjson

        fields = self._benchmark.lexical(request.stage, request.variables)
        raw = orjson.dumps(dict(fields), option=orjson.OPT_SERIALIZE_NUMPY).decode()
        return Reply(raw=raw, finish_reason="stop", model=IDENTITY)

    def counters(self) -> dict[str, float]:
        """None."""
        return {}

    def close(self) -> None:
        """Nothing to free."""
