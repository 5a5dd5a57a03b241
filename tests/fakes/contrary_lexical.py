"""A judge that says the opposite of the smoke judge: ``fakes.contrary_lexical:ContraryLexical``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from omnijudge.config import JudgeConfig
from omnijudge.judging.engines.lexical import LexicalEngine
from omnijudge.judging.types import Identity, Reply, Request

HIGHEST = {"temporal_score": 3, "content_score": 3}


class ContraryLexical(LexicalEngine):
    """See above."""

    @classmethod
    def identity(cls, judge: JudgeConfig) -> Identity:
        return Identity("contrary")

    def answer(self, batch: Sequence[Request]) -> list[Reply]:
        return [
            replace(reply, raw=json.dumps(_turned(json.loads(str(reply.raw)))))
            for reply in super().answer(batch)
        ]


def _turned(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        name: not value
        if isinstance(value, bool)
        else HIGHEST.get(name, 1) - value
        if isinstance(value, int | float)
        else value
        for name, value in fields.items()
    }
