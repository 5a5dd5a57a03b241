"""``import published``: a folder of results becomes a run, with an audit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from omnijudge.benchmarks.omniinteract.published.audit import Audit, audit_lines, make_audit
from omnijudge.benchmarks.omniinteract.published.check import (
    NO_ANNOTATION,
    NO_RESULT,
    NO_TRANSCRIPT,
    NOT_LISTED,
    Checked,
    Finding,
    check,
)
from omnijudge.benchmarks.omniinteract.published.files import StoredResults, read_results
from omnijudge.benchmarks.omniinteract.published.inputs import Inputs, find_inputs, manifest_rows
from omnijudge.errors import ConfigError, DataError
from omnijudge.partitions import read_table
from omnijudge.run_directory import IMPORTED, RunDirectory

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Annotations, Partition
    from omnijudge.config import RunConfig

JUDGE = "published"
MANIFEST = "manifest.jsonl"
ANSWERS = "answers.jsonl"


@dataclass(frozen=True)
class Imported:
    """How an import ended.

    Attributes:
        lines: the audit for people.
        exit_code: as the command line ends.
        messages: sentences of the run that was made.
    """

    audit: Audit
    lines: list[str]
    exit_code: int
    messages: list[str]


def import_published(
    folder: str | Path,
    system: str,
    out: str | Path,
    *,
    manifest: str | Path | None = None,
    root: str | Path | None = None,
    outputs: str | Path | None = None,
    fresh: bool = False,
    quiet: bool = True,
) -> Imported:
    """Turns results of the published evaluator into a run with their answers as judgements.

    Args:
        folder: where the evaluator wrote ``*.unified_eval.json``.
        system: name the system shall have.
        out: folder of the run.
        manifest: list of the samples that belong to it, with their files.
        root: the benchmark's folder, instead of a list.
        outputs: folder of the system's transcripts.
        fresh: discard what lies in ``out``.
        quiet: no progress on stderr.

    Raises:
        ConfigError: a path that is not there, or ``out`` holds another run.
        DataError: nothing can be imported.
    """
    from omnijudge.pipeline import RunFlags, run
    from omnijudge.report.html import write_report

    stored = read_results(Path(folder))
    inputs = find_inputs(stored, system, _path(manifest), _path(root), _path(outputs))
    directory = RunDirectory(out)
    _make_room(directory, fresh)
    imported = directory.path / IMPORTED
    imported.mkdir(parents=True, exist_ok=True)
    _write_lines(imported / MANIFEST, manifest_rows(inputs.samples, system, imported))
    annotations, part = _partition(_config(directory.path, {}, None), system)
    checked = check(stored.results, part)
    _write_lines(imported / ANSWERS, checked.answers)
    judges = sorted({r.model for r in stored.results.values() if r.model})
    config = _config(directory.path, checked.scoring, ", ".join(judges) or "not named")
    outcome = run(config, RunFlags(quiet=quiet))
    audit = make_audit(
        stored,
        checked,
        _findings(stored, inputs, annotations, part, checked),
        read_table(directory.table("scores")),
        read_table(directory.table("metrics")),
        len(annotations.samples),
    )
    found = directory.manifest() or {}
    directory.write_manifest({**found, "import": audit.for_manifest()})
    write_report(directory.path)
    problems = [f"{p.level}: {p}" for p in (*stored.problems, *inputs.problems)]
    lines = [*problems, *audit_lines(audit, system)]
    return Imported(audit, lines, outcome.exit_code, outcome.messages)


def _path(value: str | Path | None) -> Path | None:
    return None if value is None else Path(value)


def _make_room(directory: RunDirectory, fresh: bool) -> None:
    directory.check_usable()
    if fresh:
        directory.clear()
    found = directory.manifest()
    if found is not None and "import" not in found:
        raise ConfigError(
            f"--out: {directory.path} holds a run that was not imported; name another folder, "
            "or discard it with --fresh"
        )


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with open(path, "wb") as stream:
        for row in rows:
            stream.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))


def _config(out: Path, scoring: Mapping[str, Any], identity: str | None) -> RunConfig:
    """The run; without a judge's name only what reading the inputs needs."""
    from omnijudge.config import build_config

    judge: dict[str, Any] = {"engine": "lexical"}
    if identity is not None:
        answers = f"{IMPORTED}/{ANSWERS}"
        judge = {"name": JUDGE, "engine": "replay", "answers": answers, "identity": identity}
    values = {
        "benchmark": "omniinteract",
        "data": {"manifest": f"{IMPORTED}/{MANIFEST}", "on_bad_sample": "skip"},
        "judge": judge,
        "scoring": {"profile": "published", **scoring},
        "output": ".",
    }
    return build_config(values, out.resolve(), "import")


def _partition(config: RunConfig, system: str) -> tuple[Annotations, Partition]:
    """All samples of the system, not matched yet."""
    from omnijudge.benchmarks import get_benchmark
    from omnijudge.benchmarks.base import Partition
    from omnijudge.config import SystemConfig

    benchmark = get_benchmark(config.benchmark)
    annotations = benchmark.read(config)
    if not annotations.samples:
        raise DataError("import: no annotation can be used", annotations.problems)
    ids = sorted(annotations.samples)
    outputs = benchmark.read_outputs(config, annotations, system, SystemConfig(), ids)
    return annotations, Partition(
        system, annotations.units, outputs.outputs, outputs.chunks,
        benchmark.stage_schema.empty_table(),
    )  # fmt: skip


def _findings(
    stored: StoredResults,
    inputs: Inputs,
    annotations: Annotations,
    part: Partition,
    checked: Checked,
) -> list[Finding]:
    """Findings of the comparison, and those about samples that could not be compared."""
    found = list(checked.findings)
    states = {o["sample_id"]: o for o in part.outputs.to_pylist()}
    for sample_id in stored.results:
        if sample_id in annotations.samples:
            if states[sample_id]["state"] != "ok":
                found.append(Finding(NO_TRANSCRIPT, sample_id, states[sample_id]["detail"]))
        elif inputs.listed and sample_id not in inputs.samples:
            found.append(Finding(NOT_LISTED, sample_id, "a result is there, the sample is not"))
        else:
            said = [str(p) for p in annotations.problems if p.sample_id == sample_id]
            found.append(Finding(NO_ANNOTATION, sample_id, said[0] if said else "not found"))
    for sample_id in annotations.samples:
        if sample_id not in stored.results and states[sample_id]["state"] == "ok":
            found.append(Finding(NO_RESULT, sample_id, "no answers"))
    return found
