"""New scores and metrics from the judgements of a run; nothing is asked."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omnijudge.config import RunConfig, apply_overrides
from omnijudge.errors import ConfigError
from omnijudge.partitions import TableWriter
from omnijudge.progress import Progress
from omnijudge.results import ResultCounts, write_results
from omnijudge.run_directory import INGEST, PACKS, RunDirectory
from omnijudge.stored_run import StoredRun
from omnijudge.usage import read_usage

ALLOWED = ("scoring", "statistics", "limits")
COPIED = ("units", "outputs")


def rescore(
    run: str | Path,
    overrides: Sequence[str] = (),
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> tuple[Path, ResultCounts]:
    """Scores a run again under other options.

    Args:
        run: folder of the run.
        overrides: ``key.path=value`` for keys of scoring, statistics and limits.
        out: folder for the result; None replaces the scores of the run itself.
        progress: shows how far it is.

    Returns:
        (folder of the result, what is scored and what is not). A question that the new options
        raise and nobody was asked stays unscored and is counted.

    Raises:
        ConfigError: an override that would need judging, or a wrong value.
        DataError: there is no finished run.
    """
    progress = progress or Progress(False)
    for item in overrides:
        if item.partition(".")[0].partition("=")[0].strip() not in ALLOWED:
            raise ConfigError(
                f"-o {item}: score changes {', '.join(ALLOWED)} only; for anything else run anew"
            )
    directory = RunDirectory(run)
    manifest = directory.manifest() or {}
    values = apply_overrides(dict(manifest.get("config", {})), overrides)
    scoring = values.get("scoring")
    with StoredRun(run, scoring) as stored:
        config = RunConfig.model_validate(values)
        target = RunDirectory(out) if out is not None else stored.directory
        target.check_usable()
        with target.locked(), tempfile.TemporaryDirectory(dir=target.path, prefix=INGEST) as new:
            counts = _write(stored, config, Path(new), progress)
            for file in Path(new).iterdir():
                os.replace(file, target.path / file.name)
            if out is not None:
                _copy(stored.directory, target)
            target.write_manifest(_manifest(stored, config, counts))
            from omnijudge.report.html import write_report

            write_report(target.path)
    return target.path, counts


def _write(stored: StoredRun, config: RunConfig, folder: Path, progress: Progress) -> ResultCounts:
    asking = stored.asking()
    plan, benchmark = stored.plan, stored.benchmark
    schemas = {"chunks": benchmark.chunk_schema, "stages": benchmark.stage_schema}
    writers = {n: TableWriter(folder / f"{n}.parquet", s) for n, s in schemas.items()}
    for block in range(len(plan.blocks)):
        for system in range(len(plan.systems)):
            part = stored.partition(block, system)
            writers["chunks"].add(part.chunks)
            writers["stages"].add(part.stages)
    for writer in writers.values():
        writer.close()
    return write_results(
        asking, stored.units, stored.missing, config.statistics, folder, progress,
        read_usage(stored.manifest.get("usage")), stored.stopped,
    )  # fmt: skip


def _copy(source: RunDirectory, target: RunDirectory) -> None:
    for name in COPIED:
        shutil.copyfile(source.table(name), target.table(name))
    if not (target.path / PACKS).exists():
        shutil.copytree(source.path / PACKS, target.path / PACKS)


def _manifest(stored: StoredRun, config: RunConfig, counts: ResultCounts) -> dict[str, Any]:
    changed = {
        "config": config.model_dump(mode="json"),
        "scoring": stored.options.model_dump(mode="json"),
        "seeds": {"statistics": config.statistics.seed},
    }
    old: dict[str, Any] = stored.manifest["counts"]
    return {
        **stored.manifest, **changed, "counts": {**old, **counts.for_manifest(), "asked": 0}
    }  # fmt: skip
