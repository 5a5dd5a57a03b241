"""Omni-InteractScope as the pipeline sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnijudge.benchmarks.omni_interactscope import answers, questions, schemas, studies
from omnijudge.benchmarks.omni_interactscope.options import Options

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from omnijudge.benchmarks.base import Annotations, Answer, Outputs, Partition, Prompt
    from omnijudge.config import RunConfig, SystemConfig
    from omnijudge.statistics.metric import Metric

ANNOTATION_FILE = "annotations.jsonl"


class OmniInteractScope:
    """Joint accuracy of content and timing for seven tasks; timely recall for assistance."""

    name = "omni_interactscope"
    title = "Omni-InteractScope"
    profiles = ("robust", "paper")
    stages = (schemas.VERDICT,)
    pack = Path(__file__).parent / "prompts"
    options = Options
    rounds = 1
    questions_need_chunks = False
    shuffle_within = "task"
    unit_schema = schemas.UNIT_SCHEMA
    chunk_schema = schemas.CHUNK_SCHEMA
    stage_schema = schemas.STAGE_SCHEMA
    score_schema = schemas.SCORE_SCHEMA
    answer_schema = schemas.ANSWER_SCHEMA
    leading = studies.LEADING
    sweeps = staticmethod(studies.sweeps)
    judged_fields = staticmethod(studies.judged_fields)

    def read(self, config: RunConfig) -> Annotations:
        """Annotations of one JSON-lines file (rule 1), and a look through the systems' files.

        Raises:
            ConfigError: there is no such file, or a system's settings cannot be meant.
        """
        from omnijudge.benchmarks.base import Annotations
        from omnijudge.benchmarks.omni_interactscope import outputs, reader

        options = Options.model_validate(config.scoring)
        for system, settings in config.systems.items():
            outputs.check_system(system, settings)
        path = _annotation_file(config)
        listing = reader.read_annotations(path, options.tolerance)
        problems = list(listing.problems)
        annotated = {*listing.interactions, *(p.sample_id for p in problems if p.sample_id)}
        for system, settings in config.systems.items():
            problems += outputs.system_problems(system, settings, annotated)
        return Annotations(
            units=reader.unit_table(listing.interactions),
            samples=listing.interactions,
            problems=problems,
            listed=listing.listed,
            files=[path],
        )

    def read_outputs(
        self,
        config: RunConfig,
        annotations: Annotations,
        system: str,
        settings: SystemConfig,
        sample_ids: Sequence[str],
    ) -> Outputs:
        """Trajectories (or transcripts) of one system for a block of interactions."""
        from omnijudge.benchmarks.omni_interactscope import outputs

        return outputs.read_system(system, settings, annotations.samples, sample_ids)

    def match(self, part: Partition, options: Options) -> tuple[pa.Table, pa.Table]:
        """Rules 2, 3 and 6: responses, windows, and the pairs inside them."""
        return questions.match(part, options)

    def pending(self, part: Partition, options: Options) -> np.ndarray[Any, Any]:
        """Rule 4, lazy calls; all of them in one round."""
        return questions.pending(part)

    def prompts(
        self, part: Partition, rows: np.ndarray[Any, Any], options: Options
    ) -> list[Prompt]:
        """Rule 4: request, reference, candidate, rubric."""
        return questions.prompts(part, rows)

    def parse(self, stage: str, raw: str, mode: str, prompt: Prompt | None = None) -> Answer:
        """Rule 4, the answer contract; the same in either mode."""
        return answers.parse_verdict(raw)

    def score(self, part: Partition, options: Options) -> pa.Table:
        """Rules 4 to 8."""
        from omnijudge.benchmarks.omni_interactscope import scoring

        return scoring.score(part, options)

    def fill_unscored(self, scores: pa.Table, best: bool) -> pa.Table:
        """Unscored targets as successes, or as wrong content."""
        from omnijudge.benchmarks.omni_interactscope import scoring

        return scoring.fill_unscored(scores, best)

    def metrics(self, options: Options) -> list[Metric]:
        """Rules 8, 9 and 11."""
        from omnijudge.benchmarks.omni_interactscope.metrics import metrics

        return metrics()

    def oracle(self, units: pa.Table, system: str, options: Options) -> pa.Table:
        """Each reference with its tools, put out at its reference time."""
        from omnijudge.benchmarks.omni_interactscope.oracle import oracle

        return oracle(units, system)

    def lexical(self, stage: str, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        """Overlap with the reference, no model."""
        return questions.lexical(variables)


def _annotation_file(config: RunConfig) -> Path:
    from omnijudge.errors import ConfigError

    data = config.data
    if data.manifest is not None:
        raise ConfigError("data.manifest: omni_interactscope takes data.annotations or data.root")
    if data.offline is not None:
        raise ConfigError("data.offline: only omniinteract has offline records; take it out")
    if data.annotations is not None:
        path, key = Path(data.annotations), "annotations"
    else:
        path, key = Path(str(data.root)) / ANNOTATION_FILE, "root"
    if not path.is_file():
        raise ConfigError(f"data.{key}: there is no file {path}")
    return path
