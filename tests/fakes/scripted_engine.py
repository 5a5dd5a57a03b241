"""An engine without a model that answers by script, and fails by script.

Named in a configuration as ``fakes.scripted_engine:ScriptedEngine`` (the folder ``tests`` has
to be on the Python path), so that it works in subprocesses and in Ray workers. ``engine_options``:

* ``log``: file that gets one line per question asked: fingerprint, attempt, repeat, process, batch
  size;
* ``faults``: fingerprint (hexadecimal) -> name of a fault, or ``name:n`` for the first n times,
  counted over all processes; the key ``*`` is for every question;
* ``state``: folder in which faults that happen n times are counted;
* ``delay``: seconds per batch;
* ``open``: a fault when the engine is opened (``open_error``, ``exit``, ``hang``).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from omnijudge.config import JudgeConfig
from omnijudge.judging.types import Identity, Reply, Request


def good_answer(fingerprint: bytes) -> str:
    """What the engine answers to a question, a function of its fingerprint alone."""
    return f'{{"score": {fingerprint[0] % 11 / 10}}}'


# Faults of one reply.
ANSWERS: dict[str, Any] = {
    "malformed": '{"score": ',
    "prose": "I would say it is rather good.",
    "empty": "",
    "white": " \n" * 500,
    "reasoning": "<think>Is it right? It may be.",
    "fenced": '```json\n{"score": 1}\n```',
    "surrogate": '{"score": 1, "why": "\ud800"}',
    "nul": '{"score": 1, "why": "\x00"}',
}
REPLIES: dict[str, Any] = {
    "endless": Reply('{"score": 0.3333333333333', finish_reason="length", output_tokens=256),
    "long": Reply('"' + "x" * (2**20 + 1)),
    "none": None,
    "nothing": Reply(None),
    "bytes": Reply(b'{"score": 1}'),  # type: ignore[arg-type]
    "text": '{"score": 1}',
    "odd_counts": Reply('{"score": 1}', prompt_tokens=-1, output_tokens=None),  # type: ignore[arg-type]
    "error": Reply(None, error="the server did not answer", retries=2),
    "refused": Reply(None, error="the prompt has 9000 tokens, 8192 fit", permanent=True),
    "odd_error": Reply(None, error="no usage", prompt_tokens=None, retries=-3),  # type: ignore[arg-type]
    "both": Reply('{"score": 1}', error="cut off"),
}


def _source_kernels() -> bool:
    """Whether the project's source folder ``kernels`` can be imported under that name."""
    spec = find_spec("kernels")
    places = spec.submodule_search_locations if spec else None
    return any(Path(p, "omnijudge_kernels").is_dir() for p in places or ())


class ScriptedEngine:
    """See above."""

    def __init__(self, judge: JudgeConfig, benchmark_name: str) -> None:
        self.options = judge.engine_options
        self.broken = False
        self.answered = 0
        self._do(self.options.get("open"), 1)

    @classmethod
    def identity(cls, judge: JudgeConfig) -> Identity:
        return Identity("scripted")

    def answer(self, batch: Sequence[Request]) -> list[Reply]:
        self._log(batch)
        if self.broken:
            raise RuntimeError("the engine is broken")
        time.sleep(self.options.get("delay", 0.0))
        faults = [self._fault(r) for r in batch]
        for fault in faults:
            self._do(fault, len(batch))
        replies: list[Any] = []
        for request, fault in zip(batch, faults, strict=True):
            if fault in ANSWERS:
                replies.append(Reply(ANSWERS[fault], finish_reason="stop", model="scripted"))
            elif fault in REPLIES:
                replies.append(REPLIES[fault])
            else:
                text = good_answer(request.fingerprint)
                replies.append(Reply(text, None, "stop", "scripted", 100, 60, 8))
        if "short" in faults:
            replies.pop()
        if "twice" in faults:
            replies += replies
        if "no_list" in faults:
            return None  # type: ignore[return-value]
        self.answered += len(batch)
        return replies

    def counters(self) -> dict[str, float]:
        return {
            "answered": float(self.answered),
            "devices_set": float("CUDA_VISIBLE_DEVICES" in os.environ),
            "kernels_found": float(_source_kernels()),
        }

    def close(self) -> None:
        self.broken = True

    def _log(self, batch: Sequence[Request]) -> None:
        if "log" not in self.options:
            return
        lines = [
            f"{r.fingerprint.hex()} {r.attempt} {r.repeat} {os.getpid()} {len(batch)}\n"
            for r in batch
        ]
        fd = os.open(self.options["log"], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.write(fd, "".join(lines).encode())
        os.close(fd)

    def _fault(self, request: Request) -> str | None:
        faults = self.options.get("faults", {})
        key = request.fingerprint.hex()
        text = faults.get(key, faults.get("*"))
        if text is None:
            return None
        name, _, times = text.partition(":")
        if not times or self._first(f"{key}-{name}", int(times)):
            return str(name)
        return None

    def _first(self, name: str, times: int) -> bool:
        """Whether this is one of the first so many times, over all processes."""
        for number in range(times):
            try:
                Path(self.options["state"], f"{name}-{number}").touch(exist_ok=False)
            except FileExistsError:
                continue
            return True
        return False

    def _do(self, fault: str | None, size: int) -> None:
        match fault:
            case "late":
                time.sleep(0.3)
            case "hang":
                time.sleep(3600)
            case "raise":
                raise RuntimeError("a kernel failed\nwith a long story")
            case "break":
                self.broken = True
                raise RuntimeError("the engine core died")
            case "open_error":
                raise ValueError("max_model_len is too large")
            case "memory" if size > 1:
                raise MemoryError
            case "cuda_memory" if size > 2:
                raise RuntimeError("CUDA error: out of memory")
            case "memory_always":
                raise MemoryError
            case "sysexit":
                raise SystemExit(1)
            case "exit":
                os._exit(3)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
