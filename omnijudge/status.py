"""What of a run is done, what is missing, and what a changed configuration would redo."""

from __future__ import annotations

from collections import Counter
from typing import Any

from omnijudge.config import RunConfig
from omnijudge.errors import DataError
from omnijudge.run_directory import RunDirectory


def status_lines(run: str, config: RunConfig | None = None) -> list[str]:
    """Lines about a run, and about what another configuration would do under its output.

    Raises:
        DataError: there is no run.
    """
    directory = RunDirectory(run)
    manifest = directory.manifest()
    shards = shard_lines(directory)
    if manifest is None:
        if shards:
            return [*shards, "run without --shard when all shards are done"]
        raise DataError(f"{run}: there is no run here (no run.json); check the path")
    lines = [f"{run}: {manifest['state']}", *shards]
    if manifest.get("stopped"):
        lines.append(f"stopped early: {manifest['stopped']}")
    if "counts" not in manifest:
        lines.append("the run was ended before its scores were written; run it again to go on")
        return lines
    counts = manifest["counts"]
    answers: Counter[str] = Counter()
    for stages in counts["answers"].values():
        for by_status in stages.values():
            answers.update(by_status)
    controls = f"{counts['controls']} controls, " if counts.get("controls") else ""
    lines.append(
        f"{counts['samples']} samples, {counts['systems']} systems, {controls}"
        f"{counts['questions']} questions"
    )
    lines.append(
        "answers: " + (", ".join(f"{n} {s}" for s, n in sorted(answers.items())) or "none")
    )
    lines.append(f"unscored units: {counts['unscored_units']}")
    missing = {s: n for s, n in counts["missing_outputs"].items() if n}
    if missing:
        lines.append("missing outputs: " + ", ".join(f"{s} {n}" for s, n in missing.items()))
    for judge, exam in (manifest.get("exam") or {}).items():
        lines.append(f"exam: judge {judge} passed {exam['passed']} of {exam['questions']}")
    if config is not None:
        lines += _changes(manifest, config)
    return lines


def shard_lines(directory: RunDirectory) -> list[str]:
    """A line about every shard that has begun."""
    lines = []
    for shard in directory.shards():
        manifest = shard.manifest() or {}
        line = f"shard {shard.path.name.replace('-of-', '/')}: {manifest.get('state', 'begun')}"
        counts = manifest.get("counts")
        if counts:
            line += f", {counts['samples']} samples, {counts['unscored_units']} units unscored"
        lines.append(line)
    return lines


# What follows from a change below each key of the configuration.
CONSEQUENCES = {
    "benchmark": "refused",
    "data": "read again; refused if the data differ",
    "systems": "read again; refused if the data differ",
    "controls": "read again; refused if the data differ",
    "judge": "refused (other questions) unless it only says where or how fast to ask",
    "execution": "nothing is redone",
    "limits": "nothing is redone",
    "scoring": "scores and metrics are made anew; questions that arise are asked",
    "statistics": "metrics are made anew",
    "store": "answers are looked for in the other store",
    "output": "another run",
}


def _changes(manifest: dict[str, Any], config: RunConfig) -> list[str]:
    from omnijudge.run_directory import changed_keys

    old, new = manifest["config"], config.model_dump(mode="json")
    changed = changed_keys(old, new)
    if not changed:
        failed = sum(
            stages[stage].get("error", 0)
            for stages in manifest.get("counts", {}).get("answers", {}).values()
            for stage in stages
        )
        again = f"asks the {failed} questions without an answer" if failed else "asks nothing"
        return [f"the configuration is the same: running it again with the same store {again}"]
    lines = ["the configuration differs:"]
    for key in changed:
        consequence = CONSEQUENCES.get(key.partition(".")[0], "")
        lines.append(f"  {key}: {consequence}")
    return lines
