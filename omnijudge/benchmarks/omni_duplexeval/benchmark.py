"""Omni-DuplexEval as the pipeline sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnijudge.benchmarks.omni_duplexeval import questions, schemas, studies
from omnijudge.benchmarks.omni_duplexeval.options import Options

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from omnijudge.benchmarks.base import Annotations, Answer, Outputs, Partition, Prompt
    from omnijudge.config import RunConfig, SystemConfig
    from omnijudge.statistics.metric import Metric


class OmniDuplexEval:
    """Real-time description and proactive reminders."""

    name = "omni_duplexeval"
    title = "Omni-DuplexEval"
    profiles = ("robust", "published", "paper")
    stages = questions.STAGES
    pack = Path(__file__).parent / "prompts"
    options = Options
    rounds = 2
    questions_need_chunks = False
    shuffle_within = "split"
    unit_schema = schemas.UNIT_SCHEMA
    chunk_schema = schemas.CHUNK_SCHEMA
    stage_schema = schemas.STAGE_SCHEMA
    score_schema = schemas.SCORE_SCHEMA
    answer_schema = schemas.ANSWER_SCHEMA
    leading = studies.LEADING
    sweeps = staticmethod(studies.sweeps)
    judged_fields = staticmethod(studies.judged_fields)
    every_question = staticmethod(studies.every_question)

    def read(self, config: RunConfig) -> Annotations:
        """Rule 1, and a look at every clip that will be shown."""
        from omnijudge.benchmarks.omni_duplexeval import reader

        return reader.read_annotations(config, _options(config))

    def read_outputs(
        self,
        config: RunConfig,
        annotations: Annotations,
        system: str,
        settings: SystemConfig,
        sample_ids: Sequence[str],
    ) -> Outputs:
        """Rule 1."""
        from omnijudge.benchmarks.omni_duplexeval import outputs

        published = _options(config).published
        return outputs.read_outputs(annotations, system, settings, sample_ids, published)

    def match(self, part: Partition, options: Options) -> tuple[pa.Table, pa.Table]:
        """Rules 2, 3 and 5."""
        from omnijudge.benchmarks.omni_duplexeval import matching

        return matching.match(part, options)

    def pending(self, part: Partition, options: Options) -> npt.NDArray[np.int64]:
        """Two rounds: windows are asked once their sentence is known to be relevant."""
        return questions.pending(part, options)

    def prompts(
        self, part: Partition, rows: npt.NDArray[np.int64], options: Options
    ) -> list[Prompt]:
        """Rule 7."""
        return questions.prompts(part, rows, options)

    def parse(self, stage: str, raw: str, mode: str, prompt: Prompt | None = None) -> Answer:
        """Rule 6."""
        from omnijudge.benchmarks.omni_duplexeval import answers

        return answers.parse_answer(stage, raw, mode)

    def read_body(self, stage: str, body: Any, mode: str) -> tuple[str | None, str | None]:
        """A whole reply body: (answer text, None) or (None, why there is none)."""
        from omnijudge.benchmarks.omni_duplexeval import answers

        return answers.read_body(body, mode == "published", stage)

    def score(self, part: Partition, options: Options) -> pa.Table:
        """Rules 2 to 5."""
        from omnijudge.benchmarks.omni_duplexeval import sample_scores

        return sample_scores.score(part, options)

    def fill_unscored(self, scores: pa.Table, best: bool) -> pa.Table:
        """Unscored samples at 100 or 0, events and reminders at success or failure."""
        from omnijudge.benchmarks.omni_duplexeval import sample_scores

        return sample_scores.fill_unscored(scores, best)

    def metrics(self, options: Options) -> list[Metric]:
        """Rules 4, 5 and 10."""
        from omnijudge.benchmarks.omni_duplexeval import metrics

        return metrics.metrics(options)

    def oracle(self, units: pa.Table, system: str, options: Options) -> pa.Table:
        """Captions and references, said when they are due."""
        from omnijudge.benchmarks.omni_duplexeval.oracle import oracle

        return oracle(units, system, options)

    def lexical(self, stage: str, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        """Overlap with references, captions or the instruction."""
        return questions.lexical(stage, variables)


def _options(config: RunConfig) -> Options:
    return Options.model_validate(config.scoring).resolved()
