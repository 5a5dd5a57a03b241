"""Judges side by side: the answers of runs and files about the same texts, read alike.

One run is the reference: its systems, texts, options and clusters count. The answers of every
judge are looked up by row (system, sample, unit, item, stage) and used where the judged text is the
same; what was asked in which words does not matter here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnijudge.analysis.points import NOT_ASKED, SameText, never_asked
from omnijudge.asking import Asking, JudgeSeat, stage_keys
from omnijudge.config import JudgeConfig
from omnijudge.errors import ConfigError
from omnijudge.ingest import match
from omnijudge.judging.question import Asker
from omnijudge.judging.replay import Key, ReplayedAnswers
from omnijudge.judging.verdicts import USABLE, Outcome
from omnijudge.partitions import Plan, read_table
from omnijudge.run_directory import MANIFEST
from omnijudge.seats import reading
from omnijudge.stored_run import KEYS, RecordedAnswers, StoredRun

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Partition, Prompt

Ints = np.ndarray[Any, np.dtype[np.int64]]
HASH = "text_hash"


class NoQuestions(Asker):
    """Renders nothing: answers are looked up by row."""

    def __init__(self) -> None:
        pass

    def fingerprint(self, prompt: Prompt) -> bytes:
        """The same for all."""
        return bytes(16)


@dataclass(frozen=True)
class Judge:
    """The answers of one judge (or panel).

    Attributes:
        name: the path, as the user wrote it.
        seats: its judges, answers by row.
        combine: how a panel's verdicts become one.
        keys: rows that it has answers for.
        texts: row -> hash of the judged text; None for a file, which does not say.
        models: what answered: identities or names; None if nobody knows.
        prompts: what it was asked with; None if nobody knows.
    """

    name: str
    seats: list[JudgeSeat]
    combine: str
    keys: frozenset[Key]
    texts: Mapping[Key, str] | None
    models: frozenset[str] | None
    prompts: frozenset[str] | None
    _sources: list[SameText] = field(default_factory=list)

    def take(self, part: Partition) -> None:
        """Takes the texts of a partition as those that count."""
        for source in self._sources:
            source.take(part)

    def text_differs(self, key: Key, text_hash: str | None) -> bool:
        """Whether it judged another text in this row."""
        return self.texts is not None and key in self.texts and self.texts[key] != text_hash


@dataclass(frozen=True)
class Judged:
    """One partition under one judge.

    Attributes:
        part: the partition with the judge's verdicts.
        rows: rows of the stage table that the judge would be asked about.
        status: per such row ``ok``, ``repaired``, ``invalid``, ``error`` or None (no answer).
        scores: its score rows.
    """

    part: Partition
    rows: Sequence[int]
    status: Sequence[str | None]
    scores: pa.Table


def is_run(path: str | Path) -> bool:
    """Whether there is a run at a path."""
    return (Path(path) / MANIFEST).is_file()


def open_reference(paths: Sequence[str | Path]) -> StoredRun:
    """The first of several paths that is a run.

    Raises:
        ConfigError: none is.
    """
    for path in paths:
        if is_run(path):
            return StoredRun(path)
    names = ", ".join(map(str, paths))
    raise ConfigError(
        f"{names}: none of them is a run (a folder with {MANIFEST}); texts and clusters come from "
        "a run, so name at least one"
    )


def open_judge(path: str | Path, reference: StoredRun) -> Judge:
    """The answers of a run, or of a file about the texts of the reference.

    Args:
        path: a run, a replay file (JSON lines or Parquet), or a ``judgements.parquet``.
        reference: the run whose texts were judged.

    Raises:
        ConfigError: there is nothing, or a run of another benchmark.
        DataError: rows that cannot be used.
    """
    if is_run(path):
        return _judge_of_run(str(path), reference)
    if not Path(path).is_file():
        raise ConfigError(f"{path}: there is no run and no file of judgements")
    if str(path).endswith(".parquet"):
        import pyarrow.parquet as pq

        if "fingerprint" in pq.read_schema(path).names:
            return _judge_of_table(str(path), read_table(Path(path)), reference)
    return replayed_judge(str(path), str(path), reference)


def _judge_of_run(path: str, reference: StoredRun) -> Judge:
    with StoredRun(path) as run:
        if run.benchmark.name != reference.benchmark.name:
            raise ConfigError(
                f"{path} is a run of {run.benchmark.title}, "
                f"{reference.directory.path} of {reference.benchmark.title}"
            )
        stages = read_table(run.directory.table("stages"))
        names = [*KEYS, HASH]
        rows = zip(*(stages[n].to_pylist() for n in names), strict=True)
        texts = {row[:-1]: row[-1] for row in rows}
        judgements = read_table(run.directory.table("judgements"))
        keys = frozenset(_keys(judgements))
        seats, sources = [], []
        for seat in run.seats(by_row=True):
            source = SameText(seat.source, stages)
            sources.append(source)
            mode, most = reading(seat.judge, reference.options)
            seats.append(replace(seat, asker=NoQuestions(), source=source, mode=mode, most=most))
        judges = run.manifest["inputs"]["judge"]
        settings = [j for j in judges.values() if isinstance(j, Mapping)]
        models: frozenset[str] | None = frozenset(_models(judgements)) or None
        prompts: frozenset[str] | None = None
        if all(j["engine"] != "replay" for j in settings):
            # What answered a replay, and in reply to which words, its run does not know.
            models = models or frozenset(str(j["identity"]) for j in settings)
            prompts = frozenset(
                f"{j['prompts']}/{j['rationale']}/{j['language']}" for j in settings
            )
        return Judge(path, seats, run.combine, keys, texts, models, prompts, sources)


def _judge_of_table(path: str, judgements: pa.Table, reference: StoredRun) -> Judge:
    names = list(dict.fromkeys(judgements["judge"].to_pylist()))
    repeats = max(judgements["repeat"].to_pylist(), default=0) + 1
    seats = []
    for name in names:
        judge = JudgeConfig(name=name, engine="replay", answers=path, repeats=repeats)
        source = RecordedAnswers(judgements, name, by_row=True)
        seats.append(_seat(judge, source, reference))
    models = frozenset(_models(judgements))
    return Judge(path, seats, "mean", frozenset(_keys(judgements)), None, models or None, None)


def replayed_judge(name: str, path: str, reference: StoredRun) -> Judge:
    """The answers of a replay file.

    Raises:
        DataError: rows that cannot be used.
    """
    read_body = getattr(reference.benchmark, "read_body", None)
    judge = JudgeConfig(name="file", engine="replay", answers=path)
    if read_body is not None:
        from functools import partial

        read_body = partial(read_body, mode=reading(judge, reference.options)[0])
    source = ReplayedAnswers(path, read_body)
    models = frozenset(source.models)
    return Judge(
        name, [_seat(judge, source, reference)], "mean", frozenset(source.keys), None,
        models or None, None,
    )  # fmt: skip


def _seat(judge: JudgeConfig, source: Any, reference: StoredRun) -> JudgeSeat:
    mode, most = reading(judge, reference.options)
    return JudgeSeat(judge, NoQuestions(), source, mode, most)


def _keys(judgements: pa.Table) -> Iterator[Key]:
    rows: Iterator[Any] = zip(*(judgements[n].to_pylist() for n in KEYS), strict=True)
    yield from rows


def _models(judgements: pa.Table) -> set[str]:
    import pyarrow.compute as pc

    return {m for m in pc.unique(judgements["model"]).to_pylist() if m}


def partitions(
    reference: StoredRun, judges: Sequence[Judge]
) -> Iterator[tuple[int, int, list[Judged]]]:
    """Every partition of the reference under every judge: (block, system, judged)."""
    for block in range(len(reference.plan.blocks)):
        for system in range(len(reference.plan.systems)):
            part = match(reference.benchmark, reference.unmatched(block, system), reference.options)
            ids = reference.plan.blocks[block]
            yield block, system, [_under(reference, part, ids, judge) for judge in judges]


def _under(reference: StoredRun, part: Partition, ids: Sequence[str], judge: Judge) -> Judged:
    judge.take(part)
    benchmark, options = reference.benchmark, reference.options
    plan = Plan([ids], [part.system])
    asking = Asking(benchmark, options, plan, judge.seats, judge.combine, lambda *_, **__: part)
    for _ in range(benchmark.rounds):
        if not asking.find():
            break
    results: list[list[Outcome]] = [
        [_final(outcome) for outcome in panel] for panel in asking.results(part, 0, 0)
    ]
    judged = asking.with_verdicts(part, 0, 0, results)
    rows = asking.asked[0].rows
    assert judged.verdicts is not None
    status = judged.verdicts["status"].to_pylist()
    return Judged(judged, rows, [status[r] for r in rows], benchmark.score(judged, options))


def _final(outcome: Outcome) -> Outcome:
    """What a question came to, now that nobody will be asked again."""
    if never_asked(outcome):
        return NOT_ASKED
    return replace(outcome, status=outcome.status or "invalid")


def usable(status: str | None) -> bool:
    """Whether a status stands for a verdict."""
    return status in USABLE


def row_keys(judged: Judged) -> list[Key]:
    """Keys of all stage rows of a partition."""
    every = np.arange(judged.part.stages.num_rows, dtype=np.int64)
    return stage_keys(judged.part, every)


def difference_label(first: Judge, second: Judge) -> str:
    """What differs between two judges: their model, their prompts, or both."""
    if first.prompts is None or second.prompts is None:
        unknown = first.name if first.prompts is None else second.name
        return f"judge + prompt (the prompts of {unknown} are not known)"
    same_prompts = first.prompts == second.prompts
    same_model = first.models is not None and first.models == second.models
    if same_prompts:
        return "same judge, asked again" if same_model else "judge"
    return "prompt" if same_model else "judge + prompt"
