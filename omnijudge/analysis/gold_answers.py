"""Gold judgements as users have them: a run, a replay file, a filled sheet, or a batch's output."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from omnijudge.analysis.gold_sample import QUESTIONS
from omnijudge.analysis.judges import Judge, is_run, open_judge, replayed_judge
from omnijudge.config import JudgeConfig
from omnijudge.errors import ConfigError, DataError
from omnijudge.judging.batch_files import read_custom_id, read_row
from omnijudge.partitions import read_table
from omnijudge.stored_run import KEYS

if TYPE_CHECKING:
    from omnijudge.stored_run import StoredRun

OUR_KEYS = ("cluster", "fingerprint", "messages")
"""What ``omnijudge sample`` writes beside the columns of a replay."""


def open_gold(path: str | Path, reference: StoredRun, folder: Path) -> Judge:
    """The gold judge's answers.

    Args:
        path: a run, a replay file, the sheet of ``omnijudge sample`` with ``raw`` filled in, or
            the output file of its batch.
        reference: the run whose judge is to be corrected.
        folder: where ``omnijudge sample`` left the questions of a batch.

    Raises:
        ConfigError: there is nothing at the path, or nothing known of a batch's questions.
        DataError: rows that cannot be used.
    """
    path = Path(path)
    if is_run(path) or path.suffix == ".parquet" or not path.is_file():
        return open_judge(path, reference)
    first = next(_lines(path), None)
    if first is None:
        raise DataError(f"{path}: is empty")
    if not isinstance(first, Mapping):
        return open_judge(path, reference)
    if "custom_id" in first:
        return _rewritten(path, reference, _of_batch(path, folder))
    if any(key in first for key in OUR_KEYS):
        return _rewritten(path, reference, _of_sheet(path, reference))
    return open_judge(path, reference)


def _lines(path: Path) -> Iterator[Any]:
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                yield orjson.loads(line)
            except orjson.JSONDecodeError as e:
                raise DataError(f"{path}: line {number} is no JSON ({e})") from None


def _rewritten(path: Path, reference: StoredRun, rows: Iterator[dict[str, Any]]) -> Judge:
    """Rows as a replay file, for the time of reading it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gold.jsonl"
        with file.open("wb") as stream:
            for row in rows:
                stream.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
        try:
            return replayed_judge(str(path), str(file), reference)
        except DataError as e:
            problems = [replace(p, file=str(path)) for p in e.problems]
            raise DataError(str(e).replace(str(file), str(path)), problems) from None


def _of_sheet(path: Path, reference: StoredRun) -> Iterator[dict[str, Any]]:
    """Filled rows of the sheet; rows without an answer are not there."""
    stages = read_table(reference.directory.table("stages"))
    columns = (stages[name].to_pylist() for name in (*KEYS, "text_hash"))
    texts = {tuple(row[:-1]): row[-1] for row in zip(*columns, strict=True)}
    filled = others = 0
    for row in _lines(path):
        if isinstance(row, Mapping) and any(row.get(k) is not None for k in ("raw", "error")):
            filled += 1
            text = row.get("text_hash")
            others += text is not None and texts.get(tuple(row.get(k) for k in KEYS)) != text
            yield {k: v for k, v in row.items() if k not in OUR_KEYS and v is not None}
    if others:
        raise DataError(
            f"{path}: {others} of {filled} answers are about other texts than those of "
            f"{reference.directory.path}; is it the sheet of another run?"
        )
    if not filled:
        raise DataError(f"{path}: no row is filled in; the answers go into `raw`")


def _of_batch(path: Path, folder: Path) -> Iterator[dict[str, Any]]:
    """Every row that a batch's answers belong to (equal questions were asked once)."""
    sheet = folder / QUESTIONS
    if not sheet.is_file():
        raise ConfigError(
            f"{path}: is the output of a batch, and {sheet} with its questions is not there; name "
            "the folder that `omnijudge sample` wrote with --sample"
        )
    owners: dict[str, list[dict[str, Any]]] = {}
    for row in _lines(sheet):
        owners.setdefault(row["fingerprint"], []).append({k: row[k] for k in KEYS})
    judge = JudgeConfig(name="gold", engine="replay", answers=str(path))
    unknown = 0
    for line in _lines(path):
        key = read_custom_id(line.get("custom_id")) if isinstance(line, Mapping) else None
        rows = owners.get(key[0].hex(), []) if key is not None else []
        if key is None or not rows:
            unknown += 1
            continue
        reply = read_row(line, judge)
        said: dict[str, Any] = {"error": "the line holds no answer"}
        if reply is not None and reply.raw is not None:
            said = {"raw": reply.raw, "model": reply.model}
        elif reply is not None:
            said = {"error": reply.error}
        for row in rows:
            yield {**row, "attempt": key[1], **said}
    if unknown:
        raise DataError(
            f"{path}: {unknown} lines answer no question of {sheet}; is it the output of another "
            "batch?"
        )
