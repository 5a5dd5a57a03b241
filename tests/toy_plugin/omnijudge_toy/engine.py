"""The toy engine: right is what holds the reference word by word. It reads the prompt itself."""

from __future__ import annotations

import json
from collections.abc import Sequence

from omnijudge.config import JudgeConfig
from omnijudge.judging.types import Identity, Reply, Request


class ToyEngine:
    """Answers the questions of the toy benchmark without a model."""

    def __init__(self, judge: JudgeConfig, benchmark_name: str) -> None:
        self.answered = 0

    @classmethod
    def identity(cls, judge: JudgeConfig) -> Identity:
        """Always the same."""
        return Identity("toy-1")

    def answer(self, batch: Sequence[Request]) -> list[Reply]:
        """One reply a question."""
        self.answered += len(batch)
        return [self._reply(str(request.messages[-1]["content"])) for request in batch]

    def _reply(self, prompt: str) -> Reply:
        lines = dict(line.split(": ", 1) for line in prompt.splitlines() if ": " in line)
        if "Reference" not in lines:
            return Reply(None, error="the question has no reference", permanent=True)
        right = lines["Reference"].lower() in lines.get("Said", "").lower()
        return Reply(json.dumps({"right": right}), finish_reason="stop", model="toy-1")

    def counters(self) -> dict[str, float]:
        """How many it answered."""
        return {"answered": float(self.answered)}

    def close(self) -> None:
        """Nothing to free."""
