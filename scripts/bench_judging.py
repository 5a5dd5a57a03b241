"""How fast the judge step is when the engine costs nothing, and how much memory it needs.

Questions go as requests through the loop and the local executor to an engine that answers at once,
and are parsed and stored. Two figures: questions per second on the way from request to stored
judgement, and bytes of memory per question, from the peaks of two runs of different length (so that
what a process needs anyway drops out). The third, going on after a stop, is the same run again on
the full store. Each run is a process of its own. With ``--quick`` the memory figure is too high:
buffers of fixed size weigh more on fewer questions.

    python scripts/bench_judging.py [--quick] [--out FILE]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ANSWER = '{"score": 0.8, "trigger_phrase": "the red cup", "spoiler": false, "reason": "Names it."}'
GOAL_RATE, GOAL_BYTES = 20_000, 200


def run_once(folder: Path, count: int) -> None:
    """Judges so many questions and prints seconds and peak memory as JSON."""
    from omnijudge.benchmarks.base import Answer
    from omnijudge.judging.answers import one_object
    from omnijudge.judging.executors.local import LocalExecutor
    from omnijudge.judging.loop import judge
    from omnijudge.judging.store import JudgementStore
    from omnijudge.judging.types import Message, Reply, Request

    class Instant:
        def answer(self, batch: Sequence[Request]) -> list[Reply]:
            return [Reply(ANSWER, None, "stop", "instant", 900, 700, 30) for _ in batch]

        def counters(self) -> dict[str, float]:
            return {}

        def close(self) -> None:
            pass

    def questions() -> Iterator[tuple[int, Request]]:
        for n in range(count):
            messages: list[Message] = [{"role": "user", "content": f"Question {n}: is it right?"}]
            key = hashlib.blake2b(messages[0]["content"].encode(), digest_size=16).digest()
            yield n // 50, Request(key, 1, 0, "core", messages)

    def parse(request: Request, reply: Reply) -> Answer:
        fields, _ = one_object(reply.raw or "")
        return Answer("ok", fields)

    begin, busy = time.perf_counter(), time.process_time()
    with JudgementStore(folder) as store:
        executor = LocalExecutor(Instant)
        report = judge(questions(), store, executor, parse=parse, retry_turn=lambda r: r.messages)
        executor.close()
    seconds, busy = time.perf_counter() - begin, time.process_time() - busy
    if report.progress.done != count:
        raise SystemExit(f"{report.progress.done} of {count} questions came to an end")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "cpu_seconds": busy, "peak": peak}))


def measure(folder: Path, count: int) -> dict[str, float]:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--once", str(count), "--folder", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the questions")
    parser.add_argument("--out", type=Path, help="file for the JSON")
    parser.add_argument("--once", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.once:
        run_once(arguments.folder, arguments.once)
        return

    few, many = (10_000, 100_000) if arguments.quick else (100_000, 1_000_000)
    with tempfile.TemporaryDirectory() as name:
        small = measure(Path(name, "few"), few)
        large = measure(Path(name, "many"), many)
        again = measure(Path(name, "many"), many)
        disk = sum(f.stat().st_size for f in Path(name, "many").rglob("*") if f.is_file())
    result = {
        "questions": many,
        "questions_per_second": many / large["seconds"],
        "questions_per_cpu_second": many / large["cpu_seconds"],
        "bytes_of_memory_per_question": (large["peak"] - small["peak"]) / (many - few),
        "peak_memory": large["peak"],
        "bytes_on_disk_per_question": disk / many,
        "stored_questions_per_second": many / again["seconds"],
        "stored_bytes_of_memory_per_question": (again["peak"] - small["peak"]) / (many - few),
        "goals": {
            "questions_per_second": GOAL_RATE,
            "bytes_of_memory_per_question": GOAL_BYTES,
        },
        "machine": platform.platform(),
        "python": platform.python_version(),
    }
    text = json.dumps(result, indent=2)
    print(text)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
