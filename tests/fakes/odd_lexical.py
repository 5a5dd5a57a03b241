"""The smoke judge with opinions, tokens, a price to pay and faults to order.

Named in a configuration as ``fakes.odd_lexical:OddLexical``. ``engine_options``:

* ``log``: file that gets one line per question: judge, fingerprint, attempt, repeat;
* ``delay``: seconds per batch;
* ``tokens``: prompt tokens that every reply counts (default: a quarter of the characters);
* ``bias``: added to every score, and kept inside 0..1;
* ``sway``: scores differ by so much between repeats;
* ``say``: this as the rationale of every answer;
* ``faults``: name of a fault -> list of [modulus, remainder]: every question whose fingerprint's
  first byte leaves that remainder gets it at every attempt;
* ``identity``: the model's identity (part of the fingerprint).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from typing import Any

from omnijudge.config import JudgeConfig
from omnijudge.judging.engines.lexical import LexicalEngine
from omnijudge.judging.types import Identity, Reply, Request

FAULTS: dict[str, Reply] = {
    "truncated": Reply('{"score": 0.5, "rationale": "it says that', finish_reason="length"),
    "refused": Reply("I'm sorry, but I can't judge this.", finish_reason="stop"),
    "declined": Reply("No.", finish_reason="refusal"),
    "withheld": Reply("", finish_reason="content_filter"),
    "empty": Reply("", finish_reason="stop"),
    "white_space": Reply('{"score":' + " \n" * 200, finish_reason="length"),
    "endless_digits": Reply('{"score": 0.3' + "3" * 200, finish_reason="length"),
    "reasoning_only": Reply("", finish_reason="reasoning_only"),
    "no_object": Reply("It is a good answer.", finish_reason="stop"),
    "broken_json": Reply('{"score": 0.5, score 7}', finish_reason="stop"),
    "wrong_form": Reply('{"score": 8, "trigger_phrase": "", "spoiler": false}'),
    "error": Reply(None, error="the server did not answer"),
}


class OddLexical(LexicalEngine):
    """See above."""

    def __init__(self, judge: JudgeConfig, benchmark_name: str) -> None:
        super().__init__(judge, benchmark_name)
        self.judge = judge
        self.options = judge.engine_options

    @classmethod
    def identity(cls, judge: JudgeConfig) -> Identity:
        return Identity(judge.engine_options.get("identity", "odd"))

    @classmethod
    def relevant_options(cls, judge: JudgeConfig) -> dict[str, object]:
        return {k: judge.engine_options.get(k) for k in ("bias", "sway", "say")}

    def answer(self, batch: Sequence[Request]) -> list[Reply]:
        self._log(batch)
        time.sleep(self.options.get("delay", 0.0))
        replies = []
        for request, plain in zip(batch, super().answer(batch), strict=True):
            fault = self._fault(request)
            if fault is not None:
                replies.append(FAULTS[fault])
                continue
            size = self.options.get("tokens", len(str(request.messages)) // 4)
            raw = self._opinion(request, json.loads(str(plain.raw)))
            replies.append(Reply(raw, None, "stop", self.judge.name, size, size // 2, 10))
        return replies

    def _opinion(self, request: Request, fields: dict[str, Any]) -> str:
        shift = self.options.get("bias", 0.0) + request.repeat * self.options.get("sway", 0.0)
        if "score" in fields:
            fields["score"] = min(max(fields["score"] + shift, 0.0), 1.0)
        if "say" in self.options:
            fields["rationale"] = self.options["say"]
        return json.dumps(fields, ensure_ascii=False)

    def _fault(self, request: Request) -> str | None:
        for name, (modulus, rest) in self.options.get("faults", {}).items():
            if request.fingerprint[0] % modulus == rest:
                return str(name)
        return None

    def _log(self, batch: Sequence[Request]) -> None:
        if "log" not in self.options:
            return
        lines = [f"{self.judge.name} {r.fingerprint.hex()} {r.attempt} {r.repeat}\n" for r in batch]
        fd = os.open(self.options["log"], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.write(fd, "".join(lines).encode())
        os.close(fd)
