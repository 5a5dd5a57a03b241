"""Questions and answers as files in the OpenAI Batch format, which vLLM's ``run-batch`` reads, too.

A line's ``custom_id`` is the question's fingerprint (32 hexadecimal digits), followed by
``-aN-rM`` for attempt N above 1 or repeat M above 0.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import orjson

from omnijudge.errors import DataError, Problem
from omnijudge.judging.engines.openai import read_completion, request_body
from omnijudge.judging.loop import check_reply
from omnijudge.judging.store import Judgement

if TYPE_CHECKING:
    from omnijudge.config import JudgeConfig
    from omnijudge.judging.store import JudgementStore
    from omnijudge.judging.types import Reply, Request

URL = "/v1/chat/completions"
OPENAI_LINES = 50_000
OPENAI_BYTES = 190_000_000
"""OpenAI takes 200 MB and 50,000 requests a file."""
STORED_AT_ONCE = 1000

Key = tuple[bytes, int, int]
"""(fingerprint, attempt, repeat)."""


def custom_id(request: Request) -> str:
    """Names a request."""
    name = request.fingerprint.hex()
    if (request.attempt, request.repeat) != (1, 0):
        name += f"-a{request.attempt}-r{request.repeat}"
    return name


def read_custom_id(text: Any) -> Key | None:
    """(fingerprint, attempt, repeat) of a name; None if it is none of ours."""
    m = re.fullmatch(r"([0-9a-f]{32})(?:-a([1-9]\d?)-r(\d{1,4}))?", str(text))
    return None if m is None else (bytes.fromhex(m[1]), int(m[2] or 1), int(m[3] or 0))


def line_of(judge: JudgeConfig, request: Request, model: str) -> bytes:
    """A request as a line, without its end."""
    body = request_body(judge, request, thinking_switch=_own_server(judge))
    body = {"model": model, "messages": request.messages, **body}
    row = {"custom_id": custom_id(request), "method": "POST", "url": URL, "body": body}
    return orjson.dumps(row)


def _own_server(judge: JudgeConfig) -> bool:
    """Whether open models are behind it, which think unless told not to."""
    from omnijudge.judging.engines.openai import is_openai

    return judge.engine != "openai" or not is_openai(judge.base_url)


class BatchWriter:
    """Writes lines to a file, and to further ones where a file would get too large.

    The files appear under their names when all are whole. The second one of ``night.jsonl`` is
    ``night-2.jsonl``.
    """

    def __init__(
        self, path: Path, most_lines: int | None = None, most_bytes: int | None = None
    ) -> None:
        self.path = path
        self.lines = 0
        self._most = (most_lines or 2**62, most_bytes or 2**62)
        self._here = (0, 0)
        self._files: list[Path] = []
        self._stream: Any = None

    def add(self, line: bytes) -> None:
        """Writes one line."""
        lines, size = self._here[0] + 1, self._here[1] + len(line) + 1
        if self._stream is None or lines > self._most[0] or size > self._most[1]:
            self._next()
            lines, size = 1, len(line) + 1
        self._stream.write(line + b"\n")
        self._here = (lines, size)
        self.lines += 1

    def _next(self) -> None:
        if self._stream is not None:
            self._stream.close()
        number = len(self._files) + 1
        name = self.path.name if number == 1 else f"{self.path.stem}-{number}{self.path.suffix}"
        target = self.path.with_name(name)
        self._files.append(target)
        try:
            self._stream = open(_partial(target), "wb")  # noqa: SIM115  (closed by close)
        except OSError as e:
            raise DataError(f"--out {target}: cannot be written ({e.strerror})") from e

    @property
    def files(self) -> Sequence[Path]:
        """The files written."""
        return self._files

    def __enter__(self) -> BatchWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._stream is not None:
            self._stream.close()
        for file in self._files:
            if error is None:
                os.replace(_partial(file), file)
            else:
                _partial(file).unlink(missing_ok=True)


def _partial(path: Path) -> Path:
    return path.with_name(f"{path.name}.unfinished")


@dataclass
class Imported:
    """What became of the lines of answer files.

    Attributes:
        lines: lines read.
        stored: answers that are new in the store.
        known: answers that were there already.
        errors: requests that failed, by reason: nothing is stored, they are to be asked again.
        unknown: names that belong to no question of the configuration.
        problems: lines that are no answers at all.
    """

    lines: int = 0
    stored: int = 0
    known: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    unknown: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether every line brought an answer."""
        return not (self.errors or self.unknown or self.problems)


def import_answers(
    files: Sequence[str | os.PathLike[str]],
    judge_of: Mapping[bytes, JudgeConfig],
    store: JudgementStore,
) -> Imported:
    """Puts the answers of batch output files into the store.

    Args:
        files: output and error files, of OpenAI's Batch API or of ``vllm run-batch``.
        judge_of: judge of every fingerprint that the configuration asks.
        store: where they go.

    Raises:
        DataError: a file cannot be read.
    """
    found = Imported()
    waiting: list[Judgement] = []

    def flush() -> None:
        new = _not_there(waiting, store)
        found.known += len(waiting) - len(new)
        found.stored += len(new)
        store.append(new)
        waiting.clear()

    for file, number, row in _rows(files, found.problems):
        found.lines += 1
        name = row.get("custom_id")
        key = read_custom_id(name)
        if key is None or key[0] not in judge_of:
            found.unknown.append(str(name))
            continue
        judge = judge_of[key[0]]
        reply = read_row(row, judge)
        if reply is None:
            place = f"line {number}"
            message = "has neither `response` nor `error`: it is no line of a batch's output"
            found.problems.append(Problem("wrong_root", "error", str(file), place, message))
        elif reply.error is not None:
            found.errors[reply.error] += 1
        else:
            waiting.append(Judgement(key[0], key[1], key[2], judge.name, reply))
        if len(waiting) >= STORED_AT_ONCE:
            flush()
    flush()
    return found


def _not_there(judgements: Sequence[Judgement], store: JudgementStore) -> list[Judgement]:
    """Those that the store does not hold, each of them once."""
    new: dict[Key, Judgement] = {}
    if judgements:
        counts = store.count([j.fingerprint for j in judgements], [j.repeat for j in judgements])
        for judgement, count in zip(judgements, counts.tolist(), strict=True):
            if count < judgement.attempt:
                key = judgement.fingerprint, judgement.attempt, judgement.repeat
                new.setdefault(key, judgement)
    return list(new.values())


def _rows(
    files: Iterable[str | os.PathLike[str]], problems: list[Problem]
) -> Iterator[tuple[Any, int, Mapping[str, Any]]]:
    for file in files:
        try:
            stream = open(file, "rb")  # noqa: SIM115  (closed below)
        except OSError as e:
            raise DataError(f"{file}: cannot be read ({e.strerror}); check the path") from e
        with stream:
            for number, line in enumerate(stream, 1):
                if not line.strip():
                    continue
                try:
                    row = orjson.loads(line)
                except ValueError as e:
                    row = f"is no JSON ({e})"
                if isinstance(row, dict):
                    yield file, number, row
                    continue
                message = row if isinstance(row, str) else "is no object"
                place = f"line {number}"
                problems.append(Problem("bad_json", "error", str(file), place, message))


def read_row(row: Mapping[str, Any], judge: JudgeConfig) -> Reply | None:
    """What a line of a batch's output says; None if it says nothing."""
    from omnijudge.judging.types import Reply

    error, response = row.get("error"), row.get("response")
    if error:
        return Reply(None, error=_words(error))
    if not isinstance(response, Mapping):
        return None
    body, status = response.get("body"), response.get("status_code", 200)
    if status != 200 or not isinstance(body, Mapping) or body.get("error"):
        said = body.get("error") if isinstance(body, Mapping) else body
        return Reply(None, error=f"the server answers {status}: {_words(said)}")
    split = not isinstance(judge.thinking, str)
    return check_reply(read_completion(_Node(body), split))


def _words(error: Any) -> str:
    if isinstance(error, Mapping):
        error = error.get("message") or error.get("code") or orjson.dumps(dict(error)).decode()
    return " ".join(str(error).split())[:300] or "no reason given"


class _Node:
    """A JSON object whose members are attributes, as the SDK's objects have them."""

    def __init__(self, value: Mapping[str, Any]) -> None:
        self._value = value

    def __getattr__(self, name: str) -> Any:
        found = self._value.get(name)
        if name == "choices" and isinstance(found, list):
            return [_Node(c) if isinstance(c, Mapping) else c for c in found]
        return _Node(found) if isinstance(found, Mapping) else found

    def to_json(self) -> str:
        """The object as text."""
        return orjson.dumps(dict(self._value)).decode()
