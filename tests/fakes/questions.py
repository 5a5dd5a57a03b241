"""Questions, a parser and a corrective turn for tests of the judge step."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omnijudge.benchmarks.base import Answer
from omnijudge.config import JudgeConfig
from omnijudge.judging.loop import judge
from omnijudge.judging.report import JudgeReport
from omnijudge.judging.store import replies
from omnijudge.judging.types import Executor, Message, Reply, Request

ENGINE = "fakes.scripted_engine:ScriptedEngine"
PER_SAMPLE = 5


def fingerprint(number: int) -> bytes:
    """Fingerprint of the question of this number."""
    return hashlib.blake2b(f"question {number}".encode(), digest_size=16).digest()


def request(number: int, repeat: int = 0) -> Request:
    """The question of this number, every third in Chinese."""
    text = f"第 {number} 题：回答对吗？" if number % 3 == 0 else f"Question {number}: is it right?"
    messages = [{"role": "user", "content": text}]
    return Request(fingerprint(number), 1, repeat, "core", messages)


def questions(count: int, first: int = 0) -> Iterator[tuple[int, Request]]:
    """Questions with their samples, five each."""
    for number in range(first, first + count):
        yield number // PER_SAMPLE, request(number)


def faults(**numbers: int | tuple[int, ...]) -> dict[str, str]:
    """Fault -> numbers of the questions it strikes; ``memory__2`` strikes twice each."""
    found = {}
    for name, struck in numbers.items():
        for number in (struck,) if isinstance(struck, int) else struck:
            found[fingerprint(number).hex()] = name.replace("__", ":")
    return found


def scripted(folder: Path, faults: dict[str, str] | None = None, **options: Any) -> JudgeConfig:
    """A judge with the scripted engine, which logs into this folder."""
    state = folder / "state"
    state.mkdir(exist_ok=True)
    options = {"log": str(folder / "asked"), "state": str(state), "faults": faults or {}, **options}
    return JudgeConfig(engine=ENGINE, engine_options=options)


def parse(question: Request, reply: Reply) -> Answer:
    """Reads ``{"score": number}``; a code fence is repaired."""
    raw = reply.raw or ""
    bare = raw.removeprefix("```json\n").removesuffix("\n```")
    try:
        score = json.loads(bare, strict=False)["score"]
    except (ValueError, TypeError, KeyError) as e:
        return Answer("invalid", {}, f"not the wanted form ({e})")
    if bare != raw:
        return Answer("repaired", {"score": score}, "taken out of a code fence")
    return Answer("ok", {"score": score})


def correct(question: Request) -> list[Message]:
    """Messages of the attempts above 1."""
    return [*question.messages, {"role": "user", "content": "Only JSON, please."}]


def run(store: Any, executor: Executor, count: int = 100, **options: Any) -> JudgeReport:
    """Judges questions 0..count with small batches."""
    options = {"parse": parse, "retry_turn": correct, "batch_size": 8, **options}
    source = options.pop("questions", None) or questions(count)
    return judge(source, store, executor, **options)


def asked(folder: Path) -> Counter[tuple[str, int]]:
    """How often each (fingerprint, attempt) was asked, over all processes."""
    file = folder / "asked"
    if not file.exists():
        return Counter()
    lines = [line.split() for line in file.read_text().splitlines()]
    return Counter((line[0], int(line[1])) for line in lines)


def stored(store: Any, count: int) -> dict[int, list[str]]:
    """Stored answer texts by question number, by attempt."""
    found: dict[int, list[str]] = {}
    table = store.attempts_many([fingerprint(n) for n in range(count)])
    for number, reply in replies(table):
        found.setdefault(number, []).append(reply.raw or "")
    return found
