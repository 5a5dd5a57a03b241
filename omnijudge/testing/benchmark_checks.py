"""Whether a benchmark keeps what the pipeline relies on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnijudge.benchmarks.base import Annotations, Benchmark, Partition
from omnijudge.testing.asking_checks import check_rounds
from omnijudge.testing.declared_checks import check_declared, check_metrics
from omnijudge.testing.expectations import expect, expect_schema, working
from omnijudge.testing.reading_checks import check_match, check_outputs, check_reading
from omnijudge.testing.score_checks import check_scores, check_silence

if TYPE_CHECKING:
    from omnijudge.config import RunConfig
    from omnijudge.judging.prompts import PromptPack


def check_benchmark(benchmark: Benchmark, config: RunConfig) -> None:
    """Takes a benchmark through all steps of a run, with answers of its own smoke judge.

    Args:
        benchmark: the benchmark.
        config: a run over a little data of it (a few samples, one system or more) that is in
            order; its judge is not asked and nothing is written.

    Raises:
        AssertionError: with a sentence that says what is not as the pipeline expects it.
    """
    from omnijudge.config import SystemConfig
    from omnijudge.seats import resolve_options

    pack = check_declared(benchmark)
    with working("options"):
        options = resolve_options(benchmark, config.scoring)
    check_metrics(benchmark, options)
    annotations = check_reading(benchmark, config)
    ids = sorted(annotations.samples)
    systems = {**dict.fromkeys(annotations.systems), **config.systems}
    expect(systems, "the configuration names no system")
    partitions = []
    for system, settings in systems.items():
        settings = settings or SystemConfig()
        outputs = check_outputs(benchmark, config, annotations, system, settings, ids)
        part = Partition(
            system, annotations.units, outputs.outputs, outputs.chunks,
            benchmark.stage_schema.empty_table(),
        )  # fmt: skip
        partitions.append(check_match(benchmark, part, options, ids))
    asked = [check_rounds(benchmark, part, options, pack) for part in partitions]
    expect(
        any(len(rows) for _, rows in asked),
        "no system of the configuration raises a question; use data that do",
    )
    for part, _ in asked:
        check_scores(benchmark, part, options)
    check_silence(benchmark, annotations, options, ids)
    _check_further(benchmark, annotations, options, pack)


def _check_further(
    benchmark: Benchmark, annotations: Annotations, options: Any, pack: PromptPack
) -> None:
    """The optional parts, where they are there."""
    within = getattr(benchmark, "shuffle_within", None)
    if within is not None:
        expect(
            within in benchmark.unit_schema.names,
            f"shuffle_within: the units have no column {within!r}",
        )
    oracle = getattr(benchmark, "oracle", None)
    if oracle is not None:
        with working("oracle"):
            chunks = oracle(annotations.units, "control:oracle", options)
        expect_schema(chunks, benchmark.chunk_schema, "the chunk table of oracle")
    if getattr(benchmark, "exam", None) is not None:
        from omnijudge.exam import load_exam

        with working("loading the exam"):
            exam = load_exam(benchmark)
            for question in exam.questions:
                pack.render(question.prompt, True)
    sample = getattr(benchmark, "sample_config", None)
    if sample is not None:
        from omnijudge.prompt_commands import sample_prompts

        with working("sample_config"):
            rendered = [pack.render(p, True) for p in sample_prompts(benchmark)]
        expect(rendered, "sample_config: its data raise no question")
