"""An engine that knows the exam and answers as expected, but for what it is told to get wrong.

Named in a configuration as ``fakes.exam_engine:ExamEngine``. ``engine_options``:

* ``wrong``: ids of questions (beginnings of ids) that get a verdict of the other kind;
* ``broken``: ids (beginnings) that get no usable answer;
* ``down``: every reply is an error;
* ``log``: file that gets one line per question.

Questions that are no part of the exam get the answers of the smoke judge.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from omnijudge.benchmarks import get_benchmark
from omnijudge.config import JudgeConfig
from omnijudge.exam import load_exam
from omnijudge.judging.engines.lexical import LexicalEngine
from omnijudge.judging.types import Identity, Reply, Request

NEUTRAL: Mapping[str, Mapping[str, Any]] = {
    "early": {"flag": "neutral", "score": 1},
    "core": {"score": 0.9, "trigger_phrase": "", "spoiler": False},
    "partial": {"score": 0.9, "hallucination": False},
}


def _met(wanted: Any) -> Any:
    """A value that is as expected."""
    if isinstance(wanted, dict):
        return f"so: {wanted['contains'].upper()}"
    return sum(wanted) / 2 if isinstance(wanted, list) else wanted


def _missed(wanted: Any) -> Any:
    """A value that is not."""
    if isinstance(wanted, dict):
        return "nothing of the kind"
    if isinstance(wanted, list):
        return 1 if wanted[0] == 0 and wanted[1] < 1 else 0
    return {"neutral": "hallucination", "hallucination": "neutral"}.get(wanted, not wanted)


class ExamEngine(LexicalEngine):
    """See above."""

    def __init__(self, judge: JudgeConfig, benchmark_name: str) -> None:
        super().__init__(judge, benchmark_name)
        self.options = judge.engine_options
        questions = load_exam(get_benchmark(benchmark_name)).questions
        self.known = {json.dumps(dict(q.prompt.variables), sort_keys=True): q for q in questions}

    @classmethod
    def identity(cls, judge: JudgeConfig) -> Identity:
        return Identity("examinee")

    @classmethod
    def relevant_options(cls, judge: JudgeConfig) -> dict[str, Any]:
        return {}

    def answer(self, batch: Sequence[Request]) -> list[Reply]:
        if "log" in self.options:
            with open(self.options["log"], "a", encoding="utf-8") as stream:
                stream.write("".join(f"{r.fingerprint.hex()} {r.attempt}\n" for r in batch))
        if self.options.get("down"):
            return [Reply(None, error="the server did not answer") for _ in batch]
        return [self._reply(request) for request in batch]

    def _reply(self, request: Request) -> Reply:
        question = self.known.get(json.dumps(dict(request.variables), sort_keys=True))
        if question is None:
            return super().answer([request])[0]
        if question.id.startswith(tuple(self.options.get("broken", ()))):
            return Reply("I would rather not say.", finish_reason="stop")
        make = _missed if question.id.startswith(tuple(self.options.get("wrong", ()))) else _met
        made = {name: make(wanted) for name, wanted in question.expect.items()}
        return Reply(json.dumps({**NEUTRAL[request.stage], **made}), finish_reason="stop")
