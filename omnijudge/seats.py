"""The judges of a run: what each is asked with, and where its answers are."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnijudge.asking import JudgeSeat
from omnijudge.errors import ConfigError
from omnijudge.judging.question import Asker

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Benchmark
    from omnijudge.config import JudgeConfig, RunConfig
    from omnijudge.judging.prompts import PromptPack


def resolve_options(benchmark: Benchmark, scoring: dict[str, Any]) -> Any:
    """Scoring options of the benchmark, with what the profile decides filled in.

    Raises:
        ConfigError: an unknown option or value, or a profile the benchmark does not have.
    """
    from pydantic import ValidationError

    from omnijudge.config import explain

    try:
        options: Any = benchmark.options.model_validate(scoring)
    except ValidationError as e:
        fields = benchmark.options.model_fields
        known = [*fields, *(f.alias for f in fields.values() if f.alias)]
        lines = [explain(error, "scoring", known) for error in e.errors(include_url=False)]
        raise ConfigError("\n".join(dict.fromkeys(lines))) from None
    if options.profile not in benchmark.profiles:
        raise ConfigError(f"scoring.profile: {benchmark.title} has {', '.join(benchmark.profiles)}")
    return options.resolved()


def default_store() -> str:
    """Where judgements are kept unless the configuration says otherwise."""
    if given := os.environ.get("OMNIJUDGE_STORE"):
        return given
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(Path.home(), ".cache")
    return os.path.join(cache, "omnijudge", "store")


def reading(judge: Any, options: Any) -> tuple[str, int]:
    """How a judge's answers are read, and how often a question is asked."""
    published = options.profile == "published"
    return (
        judge.parsing or ("published" if published else "strict"),
        judge.attempts or (1 if published else 3),
    )


WITHOUT_WORDS = ("replay", "lexical")
"""Engines that answer with what is there, not with words that come one after the other."""


def _unbounded(judge: JudgeConfig, pack: PromptPack, benchmark: Benchmark) -> list[str]:
    from omnijudge.judging.answer_schemas import unbounded

    found = {
        f"{stage}: {lacking}"
        for stage in benchmark.stages
        for lacking in unbounded(pack.schema(stage, judge.rationale != "none"))
    }
    if not found:
        return []
    return [
        f"judge {judge.name}: prompt pack {pack.name}: answers are not bounded and may run to "
        f"max_tokens ({'; '.join(sorted(found))}); add what is named to the schemas in pack.yaml"
    ]


def open_seats(
    benchmark: Benchmark, config: RunConfig, options: Any, messages: list[str]
) -> list[JudgeSeat]:
    """A seat per judge; those that ask an engine have no source of answers yet."""
    from omnijudge.judging.engines import engine_identity, relevant_options
    from omnijudge.judging.prompts import load_pack
    from omnijudge.judging.replay import ReplayedAnswers

    seats = []
    for judge in config.judges:
        pack = load_pack(judge.prompts, benchmark)
        identity = engine_identity(judge, benchmark.name)
        messages.extend(identity.warnings)
        if judge.engine not in WITHOUT_WORDS:
            messages.extend(_unbounded(judge, pack, benchmark))
        if revision := identity.details.get("revision"):
            # What was resolved is what gets loaded, on every node and however late.
            judge = judge.model_copy(update={"revision": revision})
        asker = Asker(judge, pack, identity, relevant_options(judge))
        source: Any = None
        if judge.engine == "replay":
            assert judge.answers is not None
            read_body = getattr(benchmark, "read_body", None)
            if read_body is not None:
                # How a whole reply is read depends on the profile, like the answer inside it.
                read_body = partial(read_body, mode=reading(judge, options)[0])
            source = ReplayedAnswers(judge.answers, read_body)
        seats.append(JudgeSeat(judge, asker, source, *reading(judge, options)))
    return seats
