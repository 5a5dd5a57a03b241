"""The smoke judge with a log of what it was asked, a delay, and some unusable first answers.

Named in a configuration as ``fakes.logged_lexical:LoggedLexical``. ``engine_options``:

* ``log``: file that gets one line per question: fingerprint and attempt;
* ``delay``: seconds per batch;
* ``spoil``: every so many fingerprints the first answer is unusable.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from omnijudge.config import JudgeConfig
from omnijudge.judging.engines.lexical import LexicalEngine
from omnijudge.judging.types import Identity, Reply, Request


class LoggedLexical(LexicalEngine):
    """See above."""

    def __init__(self, judge: JudgeConfig, benchmark_name: str) -> None:
        super().__init__(judge, benchmark_name)
        self.options = judge.engine_options

    @classmethod
    def identity(cls, judge: JudgeConfig) -> Identity:
        return Identity("logged")

    @classmethod
    def relevant_options(cls, judge: JudgeConfig) -> dict[str, object]:
        return {"spoil": judge.engine_options.get("spoil")}

    def answer(self, batch: Sequence[Request]) -> list[Reply]:
        lines = "".join(f"{r.fingerprint.hex()} {r.attempt}\n" for r in batch)
        with open(self.options["log"], "a", encoding="utf-8") as stream:
            stream.write(lines)
        time.sleep(self.options.get("delay", 0.0))
        spoil = self.options.get("spoil")
        return [
            replace(reply, raw="hard to say")
            if spoil and r.attempt == 1 and r.fingerprint[0] % spoil == 0
            else reply
            for r, reply in zip(batch, super().answer(batch), strict=True)
        ]


def asked(log: str | os.PathLike[str]) -> list[tuple[str, int]]:
    """(fingerprint, attempt) of every question asked so far, in order."""
    path = Path(log)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [(line.split()[0], int(line.split()[1])) for line in lines if line.count(" ") == 1]
