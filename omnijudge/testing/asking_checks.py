"""Whether a benchmark asks in rounds, renders its questions and reads odd answers safely."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnijudge.benchmarks.base import Answer, Benchmark, Partition, Prompt
from omnijudge.testing.expectations import expect, working

if TYPE_CHECKING:
    from omnijudge.judging.prompts import PromptPack

STATUSES = ("ok", "repaired", "invalid")
ODD_ANSWERS = (
    "", " ", "no idea", "{}", "[]", "null", "{", '{"score": ', '{"score": NaN}', '{"score": 1e999}',
    '{"score": "high"}', '{"score": 85}', '```json\n{"score": 1}\n```', "好的", "\x00", "{" * 200,
)  # fmt: skip
"""Answers that judges have given. None of them may raise; an unusable one is ``invalid``."""


def check_rounds(
    benchmark: Benchmark, part: Partition, options: Any, pack: PromptPack
) -> tuple[Partition, list[int]]:
    """Asks all rounds with answers of the smoke judge; returns partition and rows asked."""
    from omnijudge.judging.verdicts import verdict_table

    stages: set[str] = set()
    asked: list[int] = []
    verdicts: list[tuple[str | None, dict[str, Any]]] = []
    for number in range(benchmark.rounds + 1):
        rows = _pending(benchmark, part, options)
        new = [r for r in rows.tolist() if r not in asked]
        expect(
            new == rows.tolist(),
            "pending: a row with a verdict status is still pending; look at part.verdicts",
        )
        if not new:
            break
        expect(
            number < benchmark.rounds,
            f"after {benchmark.rounds} rounds there are {len(new)} more questions; raise `rounds`",
        )
        for prompt in _prompts(benchmark, part, rows, options, pack):
            answer = _smoke_answer(benchmark, prompt, prompt.stage not in stages)
            stages.add(prompt.stage)
            verdicts.append((answer.status, dict(answer.fields)))
        asked += new
        table = verdict_table(part.stages.num_rows, asked, verdicts, benchmark.answer_schema)
        part = replace(part, verdicts=table)
    return part, asked


def _pending(benchmark: Benchmark, part: Partition, options: Any) -> np.ndarray[Any, Any]:
    with working("pending"):
        rows = benchmark.pending(part, options)
    expect(
        isinstance(rows, np.ndarray) and rows.dtype == np.int64 and rows.ndim == 1,
        "pending: returns a one-dimensional int64 array of rows",
    )
    listed = rows.tolist()
    expect(listed == sorted(set(listed)), "pending: rows ascend, each once")
    expect(
        not listed or 0 <= listed[0] <= listed[-1] < part.stages.num_rows,
        "pending: rows lie outside the stage table",
    )
    return rows


def _prompts(
    benchmark: Benchmark,
    part: Partition,
    rows: np.ndarray[Any, Any],
    options: Any,
    pack: PromptPack,
) -> list[Prompt]:
    asked = part
    if not benchmark.questions_need_chunks:
        asked = replace(part, chunks=part.chunks.slice(0, 0))
    with working("prompts"):
        prompts = benchmark.prompts(asked, rows, options)
        single = [benchmark.prompts(asked, rows[i : i + 1], options)[0] for i in range(len(rows))]
    expect(len(prompts) == len(rows), f"prompts: {len(rows)} rows, {len(prompts)} prompts")
    stages = part.stages["stage"].take(pa.array(rows)).to_pylist()
    for prompt, alone, stage in zip(prompts, single, stages, strict=True):
        expect(prompt.stage == stage, f"prompts: row of stage {stage} gives stage {prompt.stage}")
        plain = {k: v for k, v in prompt.variables.items() if k != "media"}
        expect(
            plain == {k: v for k, v in alone.variables.items() if k != "media"},
            "prompts: a question depends on the rows it is asked with",
        )
        for language in pack.languages:
            for rationale in (True, False):
                with working(f"rendering stage {stage} in {language}"):
                    messages = pack.render(prompt, rationale, language)
                expect(all(m["content"] for m in messages), f"a message of stage {stage} is empty")
    return prompts


def _smoke_answer(benchmark: Benchmark, prompt: Prompt, odd_ones: bool) -> Answer:
    import orjson

    with working("lexical"):
        fields = dict(benchmark.lexical(prompt.stage, prompt.variables))
        raw = orjson.dumps(fields, option=orjson.OPT_SERIALIZE_NUMPY).decode()
    answer = _parsed(benchmark, prompt, raw, "strict")
    expect(
        answer.status in ("ok", "repaired"),
        f"the smoke judge's own answer of stage {prompt.stage} is {answer.status} "
        f"({answer.reason}): {raw}",
    )
    unknown = set(answer.fields) - set(benchmark.answer_schema.names)
    expect(not unknown, f"parse: fields {sorted(unknown)} are not in answer_schema")
    if odd_ones:
        for odd in (*ODD_ANSWERS, raw[: len(raw) // 2], json.dumps({"x": raw})):
            for mode in ("strict", "published"):
                _parsed(benchmark, prompt, odd, mode)
    return answer


def _parsed(benchmark: Benchmark, prompt: Prompt, raw: str, mode: str) -> Answer:
    shown = raw if len(raw) < 60 else raw[:57] + "..."
    with working(f"parse of {shown!r} ({mode})"):
        answer = benchmark.parse(prompt.stage, raw, mode, prompt)
    expect(
        answer.status in STATUSES,
        f"parse: status {answer.status!r} is none of {', '.join(STATUSES)}",
    )
    expect(
        answer.status == "ok" or answer.reason,
        f"parse: {shown!r} is {answer.status} without reason",
    )
    expect(
        answer.status != "invalid" or not answer.fields,
        f"parse: {shown!r} is invalid and yet has fields; a failure is never a number",
    )
    return answer
