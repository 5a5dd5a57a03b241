"""``omnijudge sample``: which videos the gold judge gets, what to ask it, and what that brings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from omnijudge.analysis.gold_draw import (
    SAMPLE_FILE,
    Draw,
    Frame,
    draw_sample,
    frame_of,
    write_draw,
)
from omnijudge.analysis.run_set import read_sample_sums
from omnijudge.analysis.sample_sums import SampleSums
from omnijudge.analysis.selecting import select_metrics
from omnijudge.analysis.systems import compared_systems
from omnijudge.asking import stage_keys
from omnijudge.benchmarks.declared import every_question
from omnijudge.config import JudgeConfig
from omnijudge.errors import ConfigError, EvidenceError
from omnijudge.judging.batch_files import OPENAI_BYTES, OPENAI_LINES, BatchWriter, line_of
from omnijudge.judging.question import Asker
from omnijudge.judging.types import Identity, Message
from omnijudge.progress import Progress
from omnijudge.statistics.gold_sample import Budget, PlanRow, parse_budget, plan, random_order
from omnijudge.statistics.gold_sample import sample_size as size_for
from omnijudge.statistics.metric import Array, Metric
from omnijudge.stored_run import KEYS, StoredRun
from omnijudge.summary import unit_clusters

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Partition, Prompt

FOLDER = "gold"
BATCH = "batch.jsonl"
QUESTIONS = "questions.jsonl"
MODEL = "gpt-4o-2024-11-20"
SIZES = (10, 15, 25, 40, 60, 80, 120, 160, 240)
CORRELATIONS = (0.9, 0.7, 0.5)
BYTES_PER_TOKEN = 4.0
"""Rough for English and Chinese alike (a Chinese character has three bytes)."""
IMAGE_TOKENS = 800
OUTPUT_TOKENS = 60.0
LOOKED_AT = 400
"""Questions whose length is taken to stand for all where the run counted no tokens."""


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens."""

    input: float
    output: float

    def of(self, prompt_tokens: float, output_tokens: float) -> float:
        """Dollars for so many tokens."""
        return (prompt_tokens * self.input + output_tokens * self.output) / 1e6


@dataclass(frozen=True)
class GoldPlan:
    """A drawn sample with its questions, and what it promises.

    Attributes:
        draw: the sample.
        folder: where ``sample.json``, the batch files and the questions lie.
        files: the batch files.
        questions: distinct questions of the sample.
        rows: rows they belong to (equal questions are asked once).
        all_rows: rows that gold on everything would take.
        refused: questions whose evidence cannot be had.
        prompt_tokens: expected tokens of the sample's prompts.
        cost: expected dollars; None without a price.
        metric: metric of the expected widths.
        group: its group.
        widths: expected half-widths for several sizes, at the median over the systems.
        everything: the budget buys gold on all clusters, so there is nothing to correct.
        model: model in the batch files.
    """

    draw: Draw
    folder: Path
    files: Sequence[Path]
    questions: int
    rows: int
    all_rows: int
    refused: int
    prompt_tokens: float
    cost: float | None
    metric: str
    group: str
    widths: Sequence[PlanRow]
    everything: bool
    model: str


def sample(
    run: str | Path,
    budget: str,
    *,
    strata: int = 1,
    seed: int | None = None,
    model: str = MODEL,
    price: Price | None = None,
    metric: str | None = None,
    group: str | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> GoldPlan:
    """Draws videos for the gold judge and writes the questions about them.

    Args:
        run: the run whose judge is to be corrected.
        budget: ``40videos`` or ``50usd``.
        strata: strata by size (number of units of a video); 1 for a simple sample.
        seed: of the draw; None: ``statistics.seed`` of the run.
        model: gold model, as its service names it.
        price: its price, needed for a budget in dollars.
        metric: metric of the expected widths; None: the leading one.
        group: its group.
        out: folder for the files; None: ``gold`` in the run.
        progress: shows how far it is.

    Raises:
        ConfigError: a budget that cannot be read or has no price, or strata that are too many.
        DataError: there is no finished run.
    """
    try:
        wanted = parse_budget(budget)
    except ValueError as e:
        raise ConfigError(f"--{e}") from None
    if wanted.unit == "usd" and price is None:
        raise ConfigError("--budget in dollars: say what the gold judge costs with --price IN,OUT")
    if strata < 1:
        raise ConfigError(f"--strata {strata}: write 1 or more")
    progress = progress or Progress(False)
    with StoredRun(run) as stored:
        frame = frame_of(stored.units, stored.config.statistics.cluster)
        seed = stored.config.statistics.seed if seed is None else seed
        chosen = _lead(stored, metric, group)
        asked = _Questions(stored, frame, model)
        counts = asked.count(progress)
        tokens = asked.mean_tokens(frame, random_order(frame.total, seed))
        each = None if price is None else price.of(*tokens)
        n = _size(wanted, frame, seed, counts, each)
        drawn = draw_sample(stored.benchmark.name, frame, n, seed, strata)
        folder = Path(out) if out is not None else stored.directory.path / FOLDER
        _keep_answers(folder / QUESTIONS)
        folder.mkdir(parents=True, exist_ok=True)
        files = asked.write(frame, drawn, folder, progress)
        cost = None if price is None else price.of(asked.prompt_tokens, asked.questions * tokens[1])
        widths = _widths(stored, chosen, n, counts, each)
        result = GoldPlan(
            drawn, folder, files, asked.questions, asked.rows, int(counts.sum()), asked.refused,
            asked.prompt_tokens, cost, chosen.name, chosen.group, widths, n >= frame.total, model,
        )  # fmt: skip
        write_draw(folder / SAMPLE_FILE, drawn, _about(result, budget, price))
    return result


def _keep_answers(sheet: Path) -> None:
    """Refuses to write over a sheet that somebody has filled in."""
    if not sheet.is_file():
        return
    with sheet.open("rb") as lines:
        filled = sum(_is_filled(line) for line in lines if line.strip())
    if filled:
        raise ConfigError(
            f"{sheet}: {filled} rows are filled in, and a new sample would write over them; "
            "name another folder with --out, or move the sheet away"
        )


def _is_filled(line: bytes) -> bool:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        return True  # not as we wrote it
    return not isinstance(row, dict) or row.get("raw") is not None


def _lead(stored: StoredRun, metric: str | None, group: str | None) -> Metric:
    found = select_metrics(
        stored.benchmark, stored.benchmark.metrics(stored.options), metric, group
    )
    return found[0]


def _size(budget: Budget, frame: Frame, seed: int, counts: Array, each: float | None) -> int:
    cost = None if each is None else counts * each
    n = size_for(budget, random_order(frame.total, seed), cost)
    if n < 2:
        raise ConfigError(
            f"--budget: buys {n} of {frame.total} videos; at least 2 are needed for any interval, "
            "and below 15 intervals may be too narrow"
        )
    return n


def _about(found: GoldPlan, budget: str, price: Price | None) -> dict[str, Any]:
    return {
        "budget": budget,
        "model": found.model,
        "price": None if price is None else {"input": price.input, "output": price.output},
        "questions": found.questions,
        "rows": found.rows,
        "expected_prompt_tokens": round(found.prompt_tokens),
        "expected_cost": found.cost,
    }


class _Questions:
    """The gold judge's questions: the run's own prompts, sent to another model."""

    def __init__(self, stored: StoredRun, frame: Frame, model: str) -> None:
        self._stored = stored
        own = stored.config.judges[0]
        self.judge = JudgeConfig(
            name="gold", engine="openai", model=model, rationale=own.rationale,
            language=own.language, sampling=own.sampling,
        )  # fmt: skip
        self._asker = Asker(self.judge, stored.pack(own.name), Identity(model), {})
        self._cluster_of = unit_clusters(stored.units, frame.column)
        self._sample_cluster = {s: c for (s, _), c in self._cluster_of.items()}
        self._frame = frame
        self._recorded = self._recorded_tokens()
        self.questions = self.rows = self.refused = 0
        self.prompt_tokens = 0.0

    def _recorded_tokens(self) -> tuple[float, float] | None:
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        path = self._stored.directory.table("judgements")
        table = pq.read_table(path, columns=["prompt_tokens", "output_tokens"])
        prompt = pc.mean(table["prompt_tokens"]).as_py()
        return None if not prompt else (prompt, pc.mean(table["output_tokens"]).as_py() or 0.0)

    def _partitions(self) -> Iterator[tuple[Partition, Any, list[str]]]:
        """Every partition with the rows that a judge may be asked about, and their clusters."""
        stored = self._stored
        for block in range(len(stored.plan.blocks)):
            for system in range(len(stored.plan.systems)):
                part = stored.partition(block, system)
                rows = every_question(stored.benchmark, part, stored.options)
                keys = stage_keys(part, np.asarray(rows, np.int64))
                clusters = [
                    self._cluster_of.get((k[1], k[2]), self._sample_cluster[k[1]]) for k in keys
                ]
                yield part, rows, clusters

    def count(self, progress: Progress) -> Array:
        """(N,) questions about each cluster."""
        at = {name: i for i, name in enumerate(self._frame.names)}
        counts = np.zeros(self._frame.total)
        progress.start("counting questions", len(self._stored.plan))
        for _, _, clusters in self._partitions():
            np.add.at(counts, [at[c] for c in clusters], 1.0)
            progress.advance()
        progress.end()
        return counts

    def mean_tokens(self, frame: Frame, order: Any) -> tuple[float, float]:
        """Tokens of a prompt and of an answer, on average."""
        if self._recorded is not None:
            return self._recorded
        first = {frame.names[i] for i in order[:20].tolist()}
        seen: list[float] = []
        for part, rows, clusters in self._partitions():
            mine = np.array([c in first for c in clusters], np.bool_)
            for prompt in self._prompts(part, np.asarray(rows)[mine]):
                try:
                    seen.append(_tokens(self._asker.question(prompt).messages))
                except EvidenceError:
                    continue
                if len(seen) >= LOOKED_AT:
                    return float(np.mean(seen)), OUTPUT_TOKENS
        return (float(np.mean(seen)) if seen else 0.0), OUTPUT_TOKENS

    def _prompts(self, part: Partition, rows: Any) -> list[Prompt]:
        return self._stored.benchmark.prompts(part, rows, self._stored.options)

    def write(self, frame: Frame, drawn: Draw, folder: Path, progress: Progress) -> list[Path]:
        """Writes batch files and ``questions.jsonl``, each distinct question once."""
        wanted = set(drawn.clusters)
        seen: set[bytes] = set()
        for old in folder.glob("batch*.jsonl"):
            old.unlink()
        progress.start("writing questions", len(self._stored.plan))
        writer = BatchWriter(folder / BATCH, OPENAI_LINES, OPENAI_BYTES)
        with writer, (folder / QUESTIONS).open("wb") as sheet:
            for part, rows, clusters in self._partitions():
                mine = np.array([c in wanted for c in clusters], np.bool_)
                own = np.asarray(rows, np.int64)[mine]
                names = [c for c, m in zip(clusters, mine.tolist(), strict=True) if m]
                keys = stage_keys(part, own)
                texts = part.stages["text_hash"].take(own).to_pylist()
                asked = zip(keys, names, self._prompts(part, own), texts, strict=True)
                for key, cluster, prompt, text in asked:
                    self._one(key, cluster, prompt, text, seen, writer, sheet)
                progress.advance()
        progress.end()
        return list(writer.files)

    def _one(
        self,
        key: Any,
        cluster: str,
        prompt: Prompt,
        text_hash: str | None,
        seen: set[bytes],
        writer: Any,
        sheet: Any,
    ) -> None:
        try:
            question = self._asker.question(prompt)
        except EvidenceError:
            self.refused += 1
            return
        self.rows += 1
        new = question.fingerprint not in seen
        row = dict(zip(KEYS, key, strict=True))
        row |= {"cluster": cluster, "fingerprint": question.fingerprint.hex(), "raw": None}
        row["text_hash"] = text_hash
        # A sheet that people can fill; media would make it unreadable.
        row["messages"] = [_readable(m) for m in question.messages]
        sheet.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
        if not new:
            return
        seen.add(question.fingerprint)
        self.questions += 1
        self.prompt_tokens += _tokens(question.messages)
        request = self._asker.request(prompt, question)
        writer.add(line_of(self.judge, request, str(self.judge.model)))


def _readable(message: Message) -> dict[str, Any]:
    content = message["content"]
    if isinstance(content, list):
        content = "\n".join(
            str(p["text"]) if p.get("type") == "text" else f"[{p.get('type')}]" for p in content
        )
    return {"role": message["role"], "content": content}


def _tokens(messages: Sequence[Message]) -> float:
    total = 0.0
    for message in messages:
        content = message["content"]
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        for part in parts:
            if part.get("type") == "text":
                total += len(str(part["text"]).encode()) / BYTES_PER_TOKEN
            else:
                total += IMAGE_TOKENS
    return total


def _widths(
    stored: StoredRun, metric: Metric, n: int, counts: Array, each: float | None
) -> list[PlanRow]:
    """Expected half-widths at the median over the systems."""
    sums = SampleSums([metric], stored.units, stored.config.statistics.cluster)
    systems = compared_systems(stored.plan.systems)
    read_sample_sums(stored, sums, {s: s for s in systems})
    position = {s: k for k, s in enumerate(sums.sums)}
    columns = [position[s] for s in metric.sums]
    total = len(sums.clusters)
    sizes = sorted({s for s in (*SIZES, n, total) if 2 <= s <= total})
    of_systems = [
        plan(
            metric, sums.own(s)[:, columns], sizes, counts, price=each,
            correlations=CORRELATIONS, confidence=stored.config.statistics.confidence,
        )
        for s in systems
    ]  # fmt: skip
    found = []
    for rows in zip(*of_systems, strict=True):
        first = rows[0]
        found.append(
            PlanRow(
                first.n_gold,
                first.n_questions,
                first.cost,
                _median([r.gold_only for r in rows]),
                tuple(_median([r.rectified[i] for r in rows]) for i in range(len(CORRELATIONS))),
            )
        )
    return found


def _median(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None and np.isfinite(v)]
    return float(np.median(known)) if known else None
