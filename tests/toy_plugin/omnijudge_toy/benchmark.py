"""The toy benchmark: was the right thing said within a few seconds of the moment it was due?

Annotations are JSON lines with ``id``, ``question``, ``answer``, ``due`` (seconds) and optionally
``video`` and ``language``; further keys are passed through. A system is a file of JSON lines with
``id`` and ``said``, a list of ``{"t": seconds, "text": ...}``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from omnijudge import tables
from omnijudge.benchmarks.base import Annotations, Answer, Outputs, Partition, Prompt
from omnijudge.config import RunConfig, SystemConfig
from omnijudge.errors import ConfigError, Problem
from omnijudge.judging.answers import Unusable, one_object
from omnijudge.judging.engines.overlap import overlap
from omnijudge.statistics.metric import Metric, Sum, ratio
from omnijudge.tables import col, extend

HERE = Path(__file__).parent
OWN = ("id", "question", "answer", "due", "video", "language")
USABLE = ("ok", "repaired")


class Options(BaseModel):
    """``scoring`` of a run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    profile: Literal["robust"] = "robust"
    patience: float = 10.0

    def resolved(self) -> Options:
        """Nothing is left open."""
        return self


class Toy:
    """One question a recording, one stage, two metrics."""

    name = "toy"
    title = "Toy benchmark"
    profiles = ("robust",)
    stages = ("say",)
    pack = HERE / "prompts"
    sample_config = HERE / "sample" / "config.yaml"
    options = Options
    rounds = 1
    questions_need_chunks = False
    unit_schema = extend(
        tables.UNITS,
        [
            col("question", tables.STRING, "What the user asked."),
            col("answer", tables.STRING, "Reference answer."),
            col("due", tables.FLOAT, "Moment the answer is due, in seconds."),
            col("language", tables.STRING, "Language of the sample."),
            col("attributes", pa.map_(tables.STRING, tables.STRING), "Further keys."),
        ],
    )
    chunk_schema = tables.CHUNKS
    stage_schema = extend(tables.STAGES, [col("time", tables.FLOAT, "When it was said.")])
    score_schema = extend(
        tables.SCORES,
        [
            col("hit", tables.FLOAT, "1 if the right thing was said in time."),
            col("delay", tables.FLOAT, "Seconds from the due moment to the right answer."),
        ],
    )
    answer_schema = pa.schema([col("right", tables.BOOL, "Whether the answer is right.")])

    def read(self, config: RunConfig) -> Annotations:
        """Reads the annotation file."""
        if config.data.annotations is None:
            raise ConfigError("data: the toy benchmark takes data.annotations")
        path = Path(config.data.annotations)
        if not path.is_file():
            raise ConfigError(f"data.annotations: there is no file {path}")
        columns: dict[str, list[Any]] = {n: [] for n in self.unit_schema.names}
        problems = []
        rows = {}
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            row = json.loads(line)
            lacking = {"id", "question", "answer", "due"} - row.keys()
            if lacking:
                text = f"{min(lacking)} is missing"
                problems.append(Problem("missing_key", "error", str(path), f"line {number}", text))
                continue
            rows[str(row["id"])] = row
        for sample, row in sorted(rows.items()):
            values = {
                "sample_id": sample, "unit_id": "1", "unit_kind": "moment",
                "video_id": str(row.get("video", sample)), "question": row["question"],
                "answer": row["answer"], "due": float(row["due"]),
                "language": row.get("language", "en"),
                "attributes": [(k, str(v)) for k, v in row.items() if k not in OWN],
            }  # fmt: skip
            for name, column in columns.items():
                column.append(values.get(name))
        units = tables.make(self.unit_schema, dict(columns))
        return Annotations(units, rows, problems, len(lines), files=[path])

    def read_outputs(
        self,
        config: RunConfig,
        annotations: Annotations,
        system: str,
        settings: SystemConfig,
        sample_ids: Sequence[str],
    ) -> Outputs:
        """Reads a system's file."""
        path = Path(str(settings.path))
        if not path.is_file():
            raise ConfigError(f"systems.{system}: there is no file {path}")
        lines = path.read_text(encoding="utf-8").splitlines()
        said = {str(r["id"]): r["said"] for r in map(json.loads, lines)}
        states: dict[str, list[Any]] = {n: [] for n in tables.OUTPUTS.names}
        chunks: dict[str, list[Any]] = {n: [] for n in self.chunk_schema.names}
        problems = []
        for sample in sample_ids:
            state = "ok" if sample in said else "missing"
            if state == "missing":
                text = f"says nothing about {sample!r}; counts as silence"
                problems.append(
                    Problem("missing_output", "error", str(path), sample, text, sample, system)
                )
            row = (system, sample, state, path.name if state == "ok" else None, None)
            for name, value in zip(states, row, strict=True):
                states[name].append(value)
            for number, c in enumerate(said.get(sample, ())):
                values = {
                    "system": system, "sample_id": sample, "chunk_id": number,
                    "start": float(c["t"]), "end": float(c["t"]), "text": c["text"], "words": [],
                }  # fmt: skip
                for name, column in chunks.items():
                    column.append(values.get(name))
        return Outputs(
            tables.make(tables.OUTPUTS, dict(states)),
            tables.make(self.chunk_schema, dict(chunks)),
            problems,
        )

    def match(self, part: Partition, options: Options) -> tuple[pa.Table, pa.Table]:
        """The first chunk in the window answers the question."""
        units = {r["sample_id"]: r for r in part.units.to_pylist()}
        taken: set[str] = set()
        owners: list[str | None] = []
        stages: dict[str, list[Any]] = {n: [] for n in self.stage_schema.names}
        for c in part.chunks.to_pylist():
            unit = units[c["sample_id"]]
            inside = unit["due"] <= c["start"] <= unit["due"] + options.patience
            first = inside and c["sample_id"] not in taken
            owners.append("1" if first else None)
            if not first:
                continue
            taken.add(c["sample_id"])
            text = blake2b(f"{c['text']}\0{unit['answer']}".encode(), digest_size=8).hexdigest()
            values = {
                "system": part.system, "sample_id": c["sample_id"], "unit_id": "1",
                "stage": "say", "text": c["text"], "context": c["text"], "text_hash": text,
                "time": c["start"],
            }  # fmt: skip
            for name, column in stages.items():
                column.append(values.get(name))
        index = part.chunks.schema.get_field_index("unit_id")
        field = part.chunks.schema.field(index)
        chunks = part.chunks.set_column(index, field, pa.array(owners, pa.string()))
        return chunks, tables.make(self.stage_schema, dict(stages))

    def pending(self, part: Partition, options: Options) -> np.ndarray[Any, Any]:
        """Every stage without a verdict."""
        if part.verdicts is None:
            return np.arange(part.stages.num_rows, dtype=np.int64)
        status = part.verdicts["status"].to_pylist()
        return np.array([i for i, s in enumerate(status) if s is None], np.int64)

    def prompts(
        self, part: Partition, rows: np.ndarray[Any, Any], options: Options
    ) -> list[Prompt]:
        """Question, reference and what was said."""
        units = {r["sample_id"]: r for r in part.units.to_pylist()}
        found = []
        for stage in part.stages.take(pa.array(rows, pa.int64())).to_pylist():
            unit = units[stage["sample_id"]]
            names = {"question": unit["question"], "answer": unit["answer"]}
            found.append(Prompt("say", unit["language"], {**names, "text": stage["text"]}))
        return found

    def parse(self, stage: str, raw: str, mode: str, prompt: Prompt | None = None) -> Answer:
        """One object with a truth value."""
        try:
            value, repair = one_object(raw)
        except Unusable as e:
            return Answer("invalid", {}, str(e))
        if not isinstance(value.get("right"), bool):
            said = value.get("right")
            return Answer("invalid", {}, f"right is {said!r}, neither true nor false")
        return Answer("repaired" if repair else "ok", {"right": value["right"]}, repair)

    def score(self, part: Partition, options: Options) -> pa.Table:
        """Hit and delay of every sample."""
        said = {r["sample_id"]: i for i, r in enumerate(part.stages.to_pylist())}
        times = part.stages["time"].to_pylist()
        verdicts = [None] * part.stages.num_rows
        if part.verdicts is not None:
            verdicts = [
                r["right"] if r["status"] in USABLE else None for r in part.verdicts.to_pylist()
            ]
        columns: dict[str, list[Any]] = {n: [] for n in self.score_schema.names}
        for unit in part.units.to_pylist():
            at = said.get(unit["sample_id"])
            values = {n: unit.get(n) for n in ("sample_id", "unit_id", "unit_kind", "video_id")}
            values |= {"system": part.system, "hit": 0.0}
            if at is not None:
                right = verdicts[at]
                values["judged"] = right is not None
                values["hit"] = None if right is None else float(right)
                values["delay"] = times[at] - unit["due"] if right else None
            for name, column in columns.items():
                column.append(values.get(name))
        return tables.make(self.score_schema, dict(columns))

    def fill_unscored(self, scores: pa.Table, best: bool) -> pa.Table:
        """Unscored rows as hits or as misses."""
        rows = scores.to_pylist()
        for r in rows:
            if r["judged"] is False:
                r |= {"judged": True, "hit": float(best)}
        return tables.make(
            self.score_schema, {n: [r[n] for r in rows] for n in scores.schema.names}
        )

    def metrics(self, options: Options) -> list[Metric]:
        """Share of hits, and how long the right answers took."""
        rows = (Sum("moment"),)
        return [
            Metric("hits", "all", (Sum("moment", "hit"), Sum("moment")), ratio, rows),
            Metric(
                "delay", "all", (Sum("moment", "delay"), Sum("moment", "delay", count=True)),
                ratio, rows, bounds=(0.0, None), higher_is_better=False,
            ),
        ]  # fmt: skip

    def lexical(self, stage: str, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        """The smoke judge: half of the words in common."""
        return {"right": overlap(variables["text"], variables["answer"]) >= 0.5}


benchmark = Toy()
