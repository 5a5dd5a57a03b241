"""OmniInteract as the pipeline sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnijudge.benchmarks.omniinteract import (
    answers,
    matching,
    questions,
    reader,
    schemas,
    studies,
)
from omnijudge.benchmarks.omniinteract import metrics as metrics_module
from omnijudge.benchmarks.omniinteract.options import Options
from omnijudge.benchmarks.omniinteract.system_folder import SystemFolder

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from omnijudge.benchmarks.base import Annotations, Answer, Outputs, Partition, Prompt
    from omnijudge.config import RunConfig, SystemConfig
    from omnijudge.errors import Problem
    from omnijudge.statistics.metric import Metric


class OmniInteract:
    """IA-QTF1, interruption suite and nested chains."""

    name = "omniinteract"
    title = "OmniInteract"
    profiles = ("robust", "published", "paper")
    stages = questions.STAGES
    pack = Path(__file__).parent / "prompts"
    exam = Path(__file__).parent / "exam.yaml"
    options = Options
    rounds = 1
    questions_need_chunks = False
    shuffle_within = "scene_type"
    unit_schema = schemas.UNIT_SCHEMA
    chunk_schema = schemas.CHUNK_SCHEMA
    stage_schema = schemas.STAGE_SCHEMA
    score_schema = schemas.SCORE_SCHEMA
    answer_schema = schemas.ANSWER_SCHEMA
    leading = studies.LEADING
    sweeps = staticmethod(studies.sweeps)
    judged_fields = staticmethod(studies.judged_fields)

    def __init__(self) -> None:
        self._folders: dict[tuple[str, str | None], SystemFolder] = {}

    def read(self, config: RunConfig) -> Annotations:
        """Annotations of the manifest or the release folders."""
        options = Options.model_validate(config.scoring)
        return reader.read_annotations(config, options.resolved())

    def read_outputs(
        self,
        config: RunConfig,
        annotations: Annotations,
        system: str,
        settings: SystemConfig,
        sample_ids: Sequence[str],
    ) -> Outputs:
        """Transcripts of one system for a block of samples."""
        folder = None
        if settings.path is not None or system not in annotations.systems:
            key = (system, settings.path)
            if key not in self._folders:
                self._folders[key] = SystemFolder(system, settings)
            folder = self._folders[key]
        return reader.read_outputs(config, annotations, system, settings, sample_ids, folder)

    def check_outputs(
        self, parts: Sequence[Partition], settings: Mapping[str, SystemConfig]
    ) -> tuple[list[Problem], list[str]]:
        """What is odd about a system's transcripts as a whole, and a line about each system."""
        from omnijudge.benchmarks.omniinteract.offline import recordings
        from omnijudge.transcripts.partition_checks import check_partitions

        parts = [recordings(part) for part in parts]
        return check_partitions(parts, {name: s.path for name, s in settings.items()})

    def match(self, part: Partition, options: Options) -> tuple[pa.Table, pa.Table]:
        """Rules 6 to 8."""
        return matching.match(part, options)

    def pending(self, part: Partition, options: Options) -> np.ndarray[Any, Any]:
        """Rule 9; all of it in one round."""
        return questions.pending(part, options)

    def prompts(
        self, part: Partition, rows: np.ndarray[Any, Any], options: Options
    ) -> list[Prompt]:
        """Rule 9."""
        return questions.prompts(part, rows, options)

    def parse(self, stage: str, raw: str, mode: str, prompt: Prompt | None = None) -> Answer:
        """Rule 10, or the strict reading."""
        text = None if prompt is None else prompt.variables.get("text")
        return answers.parse(stage, raw, mode, text)

    def score(self, part: Partition, options: Options) -> pa.Table:
        """Rules 11 to 16 and 20."""
        from omnijudge.benchmarks.omniinteract import scoring

        return scoring.score(part, options)

    def fill_unscored(self, scores: pa.Table, best: bool) -> pa.Table:
        """Unscored slots at TP 1, FP 0, FN 0 or at TP 0, FP 1, FN 1."""
        from omnijudge.benchmarks.omniinteract import scoring

        return scoring.fill_unscored(scores, best)

    def metrics(self, options: Options) -> list[Metric]:
        """Rules 16 to 21."""
        return metrics_module.metrics(options)

    def oracle(self, units: pa.Table, system: str, options: Options) -> pa.Table:
        """Each target answer, said at the moment it is due."""
        from omnijudge.benchmarks.omniinteract.oracle import oracle

        return oracle(units, system, options)

    def lexical(self, stage: str, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        """Overlap with the reference answer."""
        return questions.lexical(stage, variables)
