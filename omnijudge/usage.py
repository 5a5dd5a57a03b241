"""What a run has asked and spent so far, over all its beginnings: kept in ``run.json``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnijudge.judging.report import JudgeReport, Progress


@dataclass(frozen=True, slots=True)
class Usage:
    """What one judge was asked.

    Attributes:
        requests: requests handed to the engine, attempts counted singly.
        verdicts: questions that came to an answer by asking, usable or not.
        errors: questions that came to none.
        reasked: requests beyond the first of a question.
        transport_retries: requests sent again inside the engine.
        prompt_tokens, cached_tokens, output_tokens: as the replies count them.
        cache_queries, cache_hits: prompt tokens looked up in the engine's prefix cache, and found
            there, by the engine's own counters; 0 where it has none.
        cost: price of the tokens.
    """

    requests: int = 0
    verdicts: int = 0
    errors: int = 0
    reasked: int = 0
    transport_retries: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cache_queries: int = 0
    cache_hits: int = 0
    cost: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


def of_progress(progress: Progress) -> Usage:
    """Usage so far of a judge that is being asked."""
    return Usage(
        requests=progress.asked,
        verdicts=progress.done - progress.reused - progress.errors,
        errors=progress.errors,
        prompt_tokens=progress.prompt_tokens,
        cached_tokens=progress.cached_tokens,
        output_tokens=progress.output_tokens,
        cost=progress.cost,
    )


def of_report(report: JudgeReport) -> Usage:
    """Usage of a judge that was asked, without the engine's own counters."""
    return of_progress(report.progress) + Usage(
        reasked=report.reasked, transport_retries=report.transport_retries
    )


def of_counters(counters: Mapping[str, float]) -> Usage:
    """What an engine's own counters say about its prefix cache."""
    return Usage(
        cache_queries=int(counters.get("prefix_cache_queries", 0)),
        cache_hits=int(counters.get("prefix_cache_hits", 0)),
    )


def read_usage(value: Any) -> dict[str, Usage]:
    """Usage per judge from a manifest; what is not readable counts as nothing."""
    found: dict[str, Usage] = {}
    if not isinstance(value, Mapping):
        return found
    names = {f.name for f in fields(Usage)}
    for judge, counts in value.items():
        if isinstance(counts, Mapping):
            known = {k: v for k, v in counts.items() if k in names and _is_number(v)}
            found[str(judge)] = Usage(**known)
    return found


def plain_usage(usage: Mapping[str, Usage]) -> dict[str, dict[str, Any]]:
    """The same for a manifest."""
    return {judge: asdict(u) for judge, u in usage.items()}


def total(usage: Iterable[Usage]) -> Usage:
    """The sum."""
    return sum(usage, Usage())


def added(*parts: Mapping[str, Usage]) -> dict[str, Usage]:
    """The sum, judge by judge."""
    found: dict[str, Usage] = {}
    for part in parts:
        for judge, usage in part.items():
            found[judge] = found.get(judge, Usage()) + usage
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
