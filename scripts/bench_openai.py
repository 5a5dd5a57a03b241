"""How near the `openai` engine comes to what a server can give, beside one request at a time.

The server is the one of the tests, in a process of its own: it answers any number of requests at
once, each after a while. With so many in flight it can give `in flight / mean time` answers a
second, and no client can have more. Two clients, one run: the judge step (questions, executor,
engine, answers, store), and the OpenAI client asking one request at a time. Times are equal, or
drawn between half and one and a half of the mean. The client's own work (some milliseconds of
processor time a request) weighs the more, the shorter they are.

    python scripts/bench_openai.py [--mean SECONDS] [--quick] [--out FILE]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
IN_FLIGHT = 64
ANSWER = '{"score": 0.8, "trigger_phrase": "the red cup", "spoiler": false, "reason": "Names it."}'
GOAL_SHARE, GOAL_FACTOR = 0.95, 20


def serve(pipe: Connection, mean: float, drawn: bool) -> None:
    """The server, until the other side says stop."""
    sys.path.insert(0, str(ROOT / "tests"))
    from fakes.http_judge import HttpJudge

    class Slow(HttpJudge):
        def _fault(self, http: Any, body: Any) -> Any:
            self.latency = mean * (random.uniform(0.5, 1.5) if drawn else 1.0)
            return super()._fault(http, body)

    with Slow(lambda body: ANSWER) as server:
        pipe.send(server.url)
        pipe.recv()
        pipe.send(server.most_in_flight)


def requests(count: int) -> Iterator[tuple[int, Any]]:
    """Questions, all different."""
    from omnijudge.judging.types import Message, Request

    for n in range(count):
        messages: list[Message] = [{"role": "user", "content": f"Question {n}: is it right?"}]
        key = hashlib.blake2b(messages[0]["content"].encode(), digest_size=16).digest()
        yield n // 50, Request(key, 1, 0, "core", messages)


def judge_step(url: str, count: int) -> float:
    """Seconds of the judge step."""
    from omnijudge.benchmarks.base import Answer
    from omnijudge.config import ExecutionConfig
    from omnijudge.judging.answers import one_object
    from omnijudge.judging.executors import open_executor
    from omnijudge.judging.loop import judge
    from omnijudge.judging.store import JudgementStore

    execution = ExecutionConfig()
    with tempfile.TemporaryDirectory() as folder, JudgementStore(Path(folder)) as store:
        executor = open_executor(execution, _judge(url), "omniinteract")
        start = time.perf_counter()
        report = judge(
            requests(count),
            store,
            executor,
            parse=lambda request, reply: Answer("ok", one_object(reply.raw or "")[0]),
            retry_turn=lambda r: r.messages,
            batch_size=execution.batch_size,
        )
        seconds = time.perf_counter() - start
        executor.close()
    if report.progress.done != count:
        raise SystemExit(f"{report.progress.done} of {count} questions came to an end")
    return seconds


def one_at_a_time(url: str, count: int) -> float:
    """Seconds of the plain client."""
    from openai import OpenAI

    with OpenAI(api_key="none", base_url=url) as client:
        start = time.perf_counter()
        for _, request in requests(count):
            client.chat.completions.create(
                model="judge-2026-01-01", messages=request.messages, temperature=0.0
            )
        return time.perf_counter() - start


def _judge(url: str) -> Any:
    from omnijudge.config import JudgeConfig

    return JudgeConfig(
        engine="openai", model="judge-2026-01-01", base_url=url, concurrency=IN_FLIGHT
    )


def measure(mean: float, drawn: bool, count: int, few: int) -> dict[str, float]:
    """Answers per second of each client, against one server."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(there, mean, drawn))
    process.start()
    url = here.recv()
    judge_step(url, 2)  # imports
    step = count / judge_step(url, count)
    single = few / one_at_a_time(url, few)
    here.send("stop")
    most = here.recv()
    process.join()
    limit = IN_FLIGHT / mean
    return {
        "server_limit_per_second": limit,
        "judge_step_per_second": step,
        "judge_step_share_of_limit": step / limit,
        "one_at_a_time_per_second": single,
        "times_one_at_a_time": step / single,
        "most_in_flight": most,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mean", type=float, default=1.0, help="seconds an answer takes")
    parser.add_argument("--quick", action="store_true", help="a tenth of the questions")
    parser.add_argument("--out", type=Path, help="file for the JSON")
    arguments = parser.parse_args()
    count, few = (640, 5) if arguments.quick else (6400, 20)
    result = {
        "in_flight": IN_FLIGHT,
        "mean_seconds": arguments.mean,
        "questions": count,
        "equal_times": measure(arguments.mean, False, count, few),
        "drawn_times": measure(arguments.mean, True, count, few),
        "goals": {"share_of_limit": GOAL_SHARE, "times_one_at_a_time": GOAL_FACTOR},
    }
    text = json.dumps(result, indent=2)
    print(text)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
