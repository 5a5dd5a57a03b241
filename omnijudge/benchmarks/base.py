"""What a benchmark is to the pipeline. Steps are pure functions between Arrow tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from omnijudge.errors import Problem

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from pydantic import BaseModel

    from omnijudge.config import RunConfig, SystemConfig
    from omnijudge.statistics.metric import Metric


@dataclass(frozen=True)
class Annotations:
    """A benchmark's annotations as read.

    Attributes:
        units: table with the benchmark's unit schema, rows of one sample together, samples in
            sorted order of ``sample_id``.
        samples: per usable sample id what ``read_outputs`` needs to find a system's output
            (opaque to the pipeline).
        problems: everything found, errors and warnings, in one pass.
        listed: number of samples listed, usable or not.
        systems: systems that the annotation list itself brings along (a manifest whose rows name
            a model): name -> opaque value for ``read_outputs``.
        files: path of every file read, for input hashes.
    """

    units: pa.Table
    samples: Mapping[str, Any]
    problems: Sequence[Problem]
    listed: int
    systems: Mapping[str, Any] = field(default_factory=dict)
    files: Sequence[Path] = ()


@dataclass(frozen=True)
class Outputs:
    """One system's outputs for a block of samples.

    Attributes:
        outputs: one row per sample: ``tables.OUTPUTS``.
        chunks: table with the benchmark's chunk schema, ``unit_id`` still null.
        problems: everything found.
    """

    outputs: pa.Table
    chunks: pa.Table
    problems: Sequence[Problem]


@dataclass(frozen=True)
class Partition:
    """One system x one block of samples: what every step after ingest works on.

    Attributes:
        system: name of the system.
        units: the block's units (all systems share them).
        outputs: one row per sample of the block, in the order of the block.
        chunks: the system's chunks for the block; ``unit_id`` is filled by ``match``.
        stages: result of ``match``.
        verdicts: aligned with ``stages`` row by row: ``status`` (null if not asked or not
            answered; ``ok``, ``repaired``, ``invalid``, ``error``) and the benchmark's answer
            fields (null unless ``ok`` or ``repaired``).
        folder: folder that paths in ``units`` (of clips, say) are meant from.
    """

    system: str
    units: pa.Table
    outputs: pa.Table
    chunks: pa.Table
    stages: pa.Table
    verdicts: pa.Table | None = None
    folder: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """A judge's answer text, parsed.

    Attributes:
        status: ``ok``, ``repaired`` (usable; ``reason`` says how) or ``invalid`` (``reason`` says
            why; never a number).
        fields: the benchmark's answer fields, empty when invalid.
        reason: in words; None for ``ok``.
    """

    status: str
    fields: Mapping[str, Any]
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a question is rendered from.

    Attributes:
        stage: stage name in the prompt pack.
        language: ``en``, ``zh``, ... of the sample; the pack falls back to its first language.
        variables: template variables. May hold ``media`` (sequence of message parts) for judges
            that see and hear. If it has an attribute ``digest`` (text that stands for all the
            parts show), fingerprints are made from that, and parts when the question is asked.
    """

    stage: str
    language: str
    variables: Mapping[str, Any]


class Benchmark(Protocol):
    """A benchmark. All methods are pure but ``read`` and ``read_outputs``.

    A benchmark may have further parts; what is not there is not offered, and says so:

    * ``oracle(units, system, options) -> chunks``: what a system that knows everything would say
      in a block of samples, for the control ``oracle``;
    * ``shuffle_within``: column of the units inside whose values the control ``shuffled`` swaps
      recordings;
    * ``exam``: path of its exam questions (``omnijudge.exam``);
    * ``sample_config``: path of a run configuration over sample data, for ``prompts``;
    * ``check_outputs(parts, settings) -> (problems, notes)``: what is odd about a system's outputs
      as a whole, for ``validate``;
    * ``read_body(stage, body, mode) -> (text, error)``: reads a replayed reply body;
    * ``leading``, ``sweeps(options)``, ``judged_fields(options)``,
      ``every_question(part, options)``: what systems are compared by, what ``sensitivity``
      moves, what judges are compared in, what a
      gold judge may be asked (``omnijudge.benchmarks.declared``).
    """

    name: str
    """As written in the configuration."""
    title: str
    """As written on tables."""
    profiles: tuple[str, ...]
    """Scoring profiles that exist for it."""
    stages: tuple[str, ...]
    """Stage names in asking order."""
    pack: Path
    """Folder of its default prompt pack."""
    options: type[BaseModel]
    """Model of ``scoring`` (with ``profile``); unknown keys refused; ``resolved()`` fills what the
    profile decides."""
    rounds: int
    """How many rounds of questions there are at most."""
    questions_need_chunks: bool
    """Whether ``pending`` and ``prompts`` read ``part.chunks`` (else they get an empty table)."""
    unit_schema: pa.Schema
    chunk_schema: pa.Schema
    stage_schema: pa.Schema
    score_schema: pa.Schema
    answer_schema: pa.Schema
    """Parsed answer fields, as they stand in ``judgements.parquet``."""

    def read(self, config: RunConfig) -> Annotations:
        """Reads all annotations; collects every problem; raises only on configuration errors."""
        ...

    def read_outputs(
        self,
        config: RunConfig,
        annotations: Annotations,
        system: str,
        settings: SystemConfig,
        sample_ids: Sequence[str],
    ) -> Outputs:
        """Reads one system's outputs for a block of samples."""
        ...

    def match(self, part: Partition, options: Any) -> tuple[pa.Table, pa.Table]:
        """Gives chunks to units; returns (chunks with ``unit_id``, stages). ``part.stages`` is
        an empty table here."""
        ...

    def pending(self, part: Partition, options: Any) -> np.ndarray[Any, Any]:
        """Rows of ``part.stages`` (int64, ascending) that can be asked now and have no verdict
        status yet. Called in rounds until it returns none."""
        ...

    def prompts(self, part: Partition, rows: np.ndarray[Any, Any], options: Any) -> list[Prompt]:
        """What the questions of these stage rows are rendered from."""
        ...

    def parse(self, stage: str, raw: str, mode: str, prompt: Prompt | None = None) -> Answer:
        """Reads an answer text; ``mode`` is ``strict`` or ``published``."""
        ...

    def score(self, part: Partition, options: Any) -> pa.Table:
        """Score rows of the partition (``score_schema``), in the order of the units."""
        ...

    def fill_unscored(self, scores: pa.Table, best: bool) -> pa.Table:
        """The same table with every unscored row (``judged`` false) at its best or worst."""
        ...

    def metrics(self, options: Any) -> list[Metric]:
        """The metrics, as functions of sums over score rows, in display order."""
        ...

    def lexical(self, stage: str, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer fields of the smoke judge: overlap with the reference, no model."""
        ...
