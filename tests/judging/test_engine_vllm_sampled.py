"""vLLM on the CPU with sampled answers, and after a call that failed half way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from requirements import need

from omnijudge.config import JudgeConfig, SamplingConfig
from omnijudge.judging.engines import open_engine
from omnijudge.judging.types import Request

pytestmark = pytest.mark.engine

SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "integer", "enum": [0, 1]}},
    "required": ["score"],
    "additionalProperties": False,
}


def requests(count: int) -> list[Request]:
    """More prompt tokens than one step of the engine takes."""
    return [
        Request(
            i.to_bytes(16, "big"), 1, 0, "core",
            [
                {"role": "system", "content": "A rubric that all of them share. " * 20},
                {"role": "user", "content": f"Question {i}, told at length. " * 20},
            ],
            SCHEMA,
        )
        for i in range(count)
    ]  # fmt: skip


def test_sampled_answers_and_a_failure_in_between(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("engine")
    judge = JudgeConfig(
        engine="vllm",
        model=str(tiny_model),
        sampling=SamplingConfig(temperature=1.0, max_tokens=32),
        engine_options={"dtype": "float32"},
    )
    engine: Any = open_engine(judge, "omniinteract")
    batch = requests(60)
    first = engine.answer(batch)
    scores = [json.loads(reply.raw)["score"] for reply in first]
    assert set(scores) == {0, 1}
    assert sum(reply.prompt_tokens for reply in first) > 4096

    core = engine.llm.llm_engine
    step, calls = core.step, 0

    def fails_once() -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise RuntimeError("out of order")
        return step()

    monkeypatch.setattr(core, "step", fails_once)
    with pytest.raises(RuntimeError, match="out of order"):
        engine.answer(batch)
    assert not core.has_unfinished_requests()
    again = engine.answer(batch[:7])
    assert [json.loads(reply.raw)["score"] for reply in again] == scores[:7]
    engine.close()
