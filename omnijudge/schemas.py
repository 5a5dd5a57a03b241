"""Schemas as text, for ``omnijudge schema``."""

from __future__ import annotations

import json

from omnijudge.errors import ConfigError


def schema_text(what: str) -> str:
    """The schema of the configuration (JSON schema) or of the tables (a listing).

    Raises:
        ConfigError: no such schema.
    """
    if what == "config":
        from omnijudge.config import RunConfig

        return json.dumps(RunConfig.model_json_schema(), indent=2, ensure_ascii=False)
    if what == "tables":
        return _tables()
    raise ConfigError(f"schema: {what!r} is unknown")


def _tables() -> str:
    from omnijudge import tables
    from omnijudge.benchmarks import available, get_benchmark

    common = ("OUTPUTS", "QUESTIONS", "METRICS", "COMPARISONS", "RANKS")
    listed = [(f"{name.lower()}.parquet", getattr(tables, name)) for name in common]
    for name in sorted(available()):
        benchmark = get_benchmark(name)
        listed += [
            (f"units.parquet ({name})", benchmark.unit_schema),
            (f"chunks.parquet ({name})", benchmark.chunk_schema),
            (f"stages.parquet ({name})", benchmark.stage_schema),
            (
                f"judgements.parquet ({name})",
                tables.extend(tables.JUDGEMENTS, benchmark.answer_schema),
            ),
            (f"scores.parquet ({name})", benchmark.score_schema),
        ]
    lines = []
    for title, schema in listed:
        lines.append(title)
        for field in schema:
            meaning = (field.metadata or {}).get(b"meaning", b"").decode()
            lines.append(f"  {field.name}: {field.type}  {meaning}".rstrip())
        lines.append("")
    return "\n".join(lines).rstrip()
