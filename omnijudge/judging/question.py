"""Questions and their fingerprints."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import orjson

from omnijudge.values import has_cjk

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Prompt
    from omnijudge.config import JudgeConfig
    from omnijudge.judging.prompts import PromptPack
    from omnijudge.judging.types import Identity, Message, Request

# Said after an unusable answer. A new seed alone changes nothing at temperature 0.
CORRECTION = {
    "en": "Your last answer could not be used. Answer again with one JSON object that follows "
    "the required form exactly, and nothing else.",
    "zh": "你上一次的回答无法使用。请重新回答，只输出一个符合要求格式的 JSON 对象。",
}


def _canonical(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


@dataclass(frozen=True, slots=True)
class Question:
    """A rendered question."""

    fingerprint: bytes
    messages: list[Message]


class Asker:
    """Renders questions for one judge and fingerprints them.

    The fingerprint covers exactly what can change the answer of attempt 1: messages (media
    included), schema, sampling, thinking, judge name, model identity, engine kind and the engine
    options that matter; not the address of a server, the batch size or the order.
    """

    def __init__(
        self, judge: JudgeConfig, pack: PromptPack, identity: Identity, options: dict[str, Any]
    ) -> None:
        self.judge = judge
        self.pack = pack
        self.identity = identity
        self.options = options
        self.rationale = judge.rationale != "none"
        thinking = judge.thinking if isinstance(judge.thinking, str) else judge.thinking.budget
        fixed = hashlib.blake2b(digest_size=16)
        fixed.update(
            _canonical(
                {
                    "judge": judge.name,
                    "engine": judge.engine,
                    "identity": identity.text,
                    "options": options,
                    "sampling": judge.sampling.model_dump(),
                    "thinking": thinking,
                    "chat_template_kwargs": judge.chat_template_kwargs,
                }
            )
        )
        self._schemas = {s: pack.schema(s, self.rationale) for s in pack.stages}
        self._started = {}
        for stage, schema in self._schemas.items():
            hasher = fixed.copy()
            hasher.update(b"\0" + stage.encode() + b"\0" + _canonical(schema) + b"\0")
            self._started[stage] = hasher

    def question(self, prompt: Prompt) -> Question:
        """Renders and fingerprints one prompt."""
        messages = self.pack.render(prompt, self.rationale, self.judge.language)
        hashed, digest = messages, _media_digest(prompt)
        if digest is not None:
            last = messages[-1]
            hashed = [*messages[:-1], {**last, "content": [last["content"][0], *digest]}]
        return Question(self._hash(prompt.stage, hashed), messages)

    def fingerprint(self, prompt: Prompt) -> bytes:
        """Fingerprint of a prompt; media that have a digest are not decoded for it."""
        digest = _media_digest(prompt)
        if digest is not None:
            prompt = replace(prompt, variables={**prompt.variables, "media": digest})
        messages = self.pack.render(prompt, self.rationale, self.judge.language)
        return self._hash(prompt.stage, messages)

    def _hash(self, stage: str, messages: list[Message]) -> bytes:
        hasher = self._started[stage].copy()
        hasher.update(orjson.dumps(messages))
        return hasher.digest()

    def prompt_id(self, prompt: Prompt) -> str:
        """Names the pack, its version, the stage and the language of a prompt."""
        return self.pack.prompt_id(prompt.stage, self._language(prompt))

    def _language(self, prompt: Prompt) -> str:
        return self.pack.language(self.judge.language or prompt.language)

    def request(self, prompt: Prompt, question: Question, repeat: int = 0) -> Request:
        """The request of attempt 1 for an engine."""
        from omnijudge.judging.types import Request

        return Request(
            fingerprint=question.fingerprint,
            attempt=1,
            repeat=repeat,
            stage=prompt.stage,
            messages=question.messages,
            schema=self._schemas[prompt.stage],
            variables=prompt.variables,
        )


def _media_digest(prompt: Prompt) -> list[dict[str, str]] | None:
    """What stands for the media of a prompt in its fingerprint, if they have a digest."""
    media = prompt.variables.get("media")
    digest = getattr(media, "digest", None) if media else None
    return None if digest is None else [{"type": "media", "digest": digest}]


def corrected(messages: list[Message]) -> list[Message]:
    """The messages of attempt 2 and later: the correction closes the user's turn.

    A message of its own would be a second user turn in a row, which many chat templates refuse.
    """
    text = CORRECTION["zh" if has_cjk(str(messages[0]["content"])) else "en"]
    last = messages[-1]
    content = last["content"]
    if isinstance(content, list):
        content = [*content, {"type": "text", "text": text}]
    else:
        content = f"{content}\n\n{text}"
    return [*messages[:-1], {**last, "content": content}]
