"""Answers from a file, keyed by row: engine ``replay`` and imported judgements.

They bypass the store and de-duplication, and nothing is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from omnijudge.errors import ConfigError, DataError, Problem
from omnijudge.judging.types import Reply

Key = tuple[str, str, str, str | None, str]
"""(system, sample_id, unit_id, item, stage)."""

COLUMNS = {
    "system", "sample_id", "unit_id", "item", "stage", "attempt", "raw", "body", "error", "model",
    "text_hash",
}  # fmt: skip
NOT_THERE = "no answer in the file"
_NO_REPLY = Reply(raw=None, error=NOT_THERE)
ReadBody = Callable[[str, Any], tuple[str | None, str | None]]


class ReplayedAnswers:
    """The answers of a replay file.

    Attributes:
        used: rows that a question has asked for.
        total: rows in the file.
    """

    def __init__(self, path: str, read_body: ReadBody | None = None) -> None:
        """Reads a JSONL or Parquet file of rows ``system, sample_id, unit_id, item, stage,
        attempt`` with one of ``raw``, ``body`` or ``error``. A ``text_hash`` may stand beside them
        (imported answers have one); it is not used here.

        Raises:
            ConfigError: there is no such file.
            DataError: rows that cannot be used; all of them are named.
        """
        if not Path(path).is_file():
            raise ConfigError(f"judge.answers: there is no file {path}")
        self._read_body = read_body or read_chat_body
        self._rows: dict[Key, dict[int, Reply]] = {}
        self._asked: set[Key] = set()
        problems: list[Problem] = []
        for place, row in _rows(path):
            self._add(path, place, row, problems)
        if problems:
            raise DataError(f"{path}: {len(problems)} rows cannot be used", problems)
        self.total = sum(len(r) for r in self._rows.values())

    def _add(self, path: str, place: str, row: Any, problems: list[Problem]) -> None:
        def bad(code: str, message: str) -> None:
            problems.append(Problem(code, "error", path, place, message))

        if not isinstance(row, Mapping):
            bad("wrong_root", "a row must be an object")
            return
        given = {k: v for k, v in row.items() if v is not None}
        unknown = given.keys() - COLUMNS
        if unknown:
            bad("unknown_key", f"unknown column {min(unknown)!r}; there are {sorted(COLUMNS)}")
            return
        lacking = {"system", "sample_id", "unit_id", "stage"} - given.keys()
        if lacking:
            bad("missing_key", f"{', '.join(sorted(lacking))} is missing")
            return
        # A body of JSON null is a body; so the key decides for it, the value for the others.
        said = [k for k in ("raw", "error") if k in given]
        if "body" in row and not said:
            said = ["body"]
        if len(said) != 1:
            bad("missing_key", "needs exactly one of raw, body, error")
            return
        unit, item = str(given["unit_id"]), given.get("item")
        for separator in ("#", "/"):
            if item is None and separator in unit:
                unit, _, item = unit.partition(separator)
        attempt = given.get("attempt", 1)
        if isinstance(attempt, bool) or not isinstance(attempt, int) or attempt < 1:
            bad("bad_value", f"attempt {attempt!r} is no number from 1")
            return
        key = (
            str(given["system"]),
            str(given["sample_id"]),
            unit,
            None if item is None else str(item),
            str(given["stage"]),
        )
        attempts = self._rows.setdefault(key, {})
        if attempt in attempts:
            bad("duplicate_row", f"attempt {attempt} of {'/'.join(map(str, key))} stands twice")
            return
        model = str(given.get("model", ""))
        raw: str | None
        error: str | None
        if said == ["raw"]:
            attempts[attempt] = Reply(raw=str(given["raw"]), model=model)
        elif said == ["error"]:
            raw, error = None, str(given["error"])
            if not error:  # some published evaluators take an empty error for a reply
                raw, error = self._read_body(key[4], {"error": error})
            attempts[attempt] = Reply(raw=raw, error=error, model=model)
        else:
            raw, error = self._read_body(key[4], row["body"])
            attempts[attempt] = Reply(raw=raw, error=error, model=model)

    def attempts(
        self, keys: Sequence[Key], fingerprints: Sequence[bytes], repeat: int, most: int
    ) -> list[list[tuple[int, Reply]]]:
        """Per question the attempts 1 to ``most``; one that is not in the file is an error."""
        found = []
        for key in keys:
            rows = self._rows.get(key)
            if rows is None:
                found.append([(1, _NO_REPLY)])
                continue
            self._asked.add(key)
            last = min(most, max(rows))
            found.append([(n, rows.get(n, _NO_REPLY)) for n in range(1, last + 1)])
        return found

    @property
    def keys(self) -> list[Key]:
        """Rows that it has answers for."""
        return list(self._rows)

    @property
    def models(self) -> set[str]:
        """Models that answered, where the file names them."""
        found = {r.model for attempts in self._rows.values() for r in attempts.values()}
        return found - {""}

    @property
    def unused(self) -> int:
        """Questions in the file that nobody has asked."""
        return len(self._rows) - len(self._asked)


def _rows(path: str) -> Iterator[tuple[str, Any]]:
    if path.endswith(".parquet"):
        import pyarrow.parquet as pq

        for number, row in enumerate(pq.read_table(path).to_pylist()):
            yield f"row {number}", row
        return
    from omnijudge.transcripts.files import read_json_lines

    document = read_json_lines(path)
    for line, row in zip(document.lines or [], document.value, strict=True):
        yield f"line {line}", row


def read_chat_body(stage: str, body: Any) -> tuple[str | None, str | None]:
    """(answer text, error) of a whole chat-completions reply."""
    if not isinstance(body, Mapping):
        return None, f"the reply is {type(body).__name__}, not an object"
    if body.get("error") is not None:
        return None, f"the server said {body['error']}"
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        return None, "the reply has no choices"
    message = choices[0].get("message")
    content = message.get("content") if isinstance(message, Mapping) else None
    return (content, None) if isinstance(content, str) else (None, "the reply has no text")
