"""Reading annotations: every interaction checked, every problem found in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from omnijudge import tables
from omnijudge.benchmarks.omni_interactscope.checks import Check, UnknownKeys, kind, shown
from omnijudge.benchmarks.omni_interactscope.jsonlines import json_lines, number
from omnijudge.benchmarks.omni_interactscope.schemas import INTERACTION, TARGET, UNIT_SCHEMA
from omnijudge.benchmarks.omni_interactscope.windows import TASKS, target_windows
from omnijudge.errors import Problem
from omnijudge.transcripts.files import UnreadableFile, read_bytes
from omnijudge.values import attribute_text, has_cjk

RUBRICS = ("tool_set", "general", "event", "translation", "assistance")
_KEYS = {"interaction_id", "video_id", "task", "language", "request", "request_time"}
_KEYS |= {"clip_start", "clip_end", "valid", "targets"}
_TARGET_KEYS = ("target_id", "order", "reference", "rubric", "ref_time", "interval", "tools")
_PASSED_ON = {"interactions": "is passed on as a column"}
_ORDERED_WITH_REQUEST = ("T8-B", "T8-C")


@dataclass(frozen=True, slots=True)
class Target:
    """One reference answer; times in seconds.

    Attributes:
        start: reference time, or start of the annotated interval.
        end: reference time, or end of the annotated interval.
        tools: names of the tools to be called (T1), else None.
    """

    target_id: str
    order: float
    reference: str
    rubric: str
    start: float
    end: float
    tools: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Interaction:
    """One request with what has to be said when; targets in target order (rule 3)."""

    interaction_id: str
    video_id: str
    task: str
    language: str
    request: str
    request_time: float | None
    clip_start: float
    clip_end: float
    targets: tuple[Target, ...]
    attributes: dict[str, str]


@dataclass(frozen=True)
class Listing:
    """What an annotation file lists.

    Attributes:
        interactions: usable ones by id, sorted by id.
        problems: everything found.
        listed: interactions listed, usable or not, those of the media check included.
    """

    interactions: dict[str, Interaction]
    problems: list[Problem]
    listed: int


def read_annotations(path: Path, tolerance: float) -> Listing:
    """Reads and checks an annotation file (InteractScope rule 1).

    Args:
        path: JSON lines, one interaction a line.
        tolerance: seconds, for the warning about windows that can never be met.
    """
    file = str(path)
    problems: list[Problem] = []
    found: dict[str, Interaction] = {}
    seen: dict[str, str] = {}
    bad: set[str] = set()
    listed = 0
    unknown = UnknownKeys()
    try:
        for line in json_lines(read_bytes(path), file, problems):
            listed += 1
            check = Check(file, line.place, problems)
            row = line.value
            if not isinstance(row, dict):
                check.error("wrong_root", f"must be an object, found {kind(row)}")
                continue
            identity = _identity(row, check)
            if identity is None:
                continue
            if identity in seen:
                check.error(
                    "duplicate_id",
                    f"interaction_id {identity!r} stands in {seen[identity]} already; "
                    "neither is used, give each interaction an id of its own",
                )
                bad.add(identity)
                continue
            seen[identity] = line.place
            unknown.add("interactions", row.keys(), _KEYS, line.place)
            for target in _objects(row.get("targets")):
                unknown.add("targets", target.keys(), _TARGET_KEYS, line.place)
            interaction = _interaction(identity, row, check, tolerance)
            if interaction is not None:
                found[identity] = interaction
    except UnreadableFile as e:
        problems.append(e.problem)
    problems += unknown.problems(file, _PASSED_ON)
    usable = {k: found[k] for k in sorted(found) if k not in bad}
    if not listed and not problems:
        message = "lists no interaction; write one JSON object a line"
        problems.append(Problem("empty_file", "error", file, "", message))
    return Listing(usable, problems, listed)


def _identity(row: dict[str, Any], check: Check) -> str | None:
    identity = check.name(row.get("interaction_id"), "interaction_id")
    check.sample_id = identity
    return identity


def _interaction(
    identity: str, row: dict[str, Any], check: Check, tolerance: float
) -> Interaction | None:
    valid = row.get("valid", True)
    if not isinstance(valid, bool):
        check.error("bad_value", f"valid must be true or false, found {shown(valid)}")
    if valid is False:
        check.info("invalid_interaction", "valid is false: left out for every system")
        return None
    task = row.get("task")
    if task not in TASKS:
        check.error("unknown_task", f"task {shown(task)} is unknown; there are {', '.join(TASKS)}")
        return None
    clip_start, clip_end = check.time(row, "clip_start"), check.time(row, "clip_end")
    request_time = None
    if task != "T8-A":
        request_time = check.time(row, "request_time")
    elif row.get("request_time") is not None:
        check.warn("request_time_ignored", "T8-A has no request; request_time is not used")
    start = clip_start if task == "T8-A" else request_time
    if start is not None and clip_end is not None and clip_end < start:
        check.error("bad_time", f"clip_end {clip_end:g} lies before {start:g}, where it begins")
    request = check.text(row, "request")
    if request == "" and task != "T8-A":
        check.warn("no_request", "request is missing; the judge will see none")
    video: str | None = identity
    if row.get("video_id") in (None, ""):
        check.warn("no_video_id", "video_id is missing; the interaction is a cluster of its own")
    else:
        video = check.name(row["video_id"], "video_id")
    targets = _targets(row.get("targets"), task, check)
    language = check.text(row, "language")
    if check.failed:
        return None
    assert clip_start is not None
    assert clip_end is not None
    assert request is not None
    assert video is not None
    _warn_of_times(targets, request_time, clip_start, clip_end, check)
    _warn_of_empty_windows(task, targets, request_time, tolerance, check)
    if not language:
        cjk = has_cjk(request) or any(has_cjk(t.reference) for t in targets)
        language = "zh" if cjk else "en"
    return Interaction(
        identity,
        video,
        task,
        language,
        request,
        request_time,
        clip_start,
        clip_end,
        targets,
        {k: attribute_text(v) for k, v in row.items() if k not in _KEYS and v is not None},
    )


def _targets(rows: Any, task: str, check: Check) -> tuple[Target, ...]:
    if not isinstance(rows, list) or not rows:
        check.error("missing_key", "targets must be a list with one target at least")
        return ()
    found: list[Target] = []
    seen: set[str] = set()
    for place, row in enumerate(rows):
        owner = f"targets[{place}]: "
        if not isinstance(row, dict):
            check.error("wrong_root", f"{owner}must be an object, found {kind(row)}")
            continue
        target_id = check.name(row.get("target_id"), f"{owner}target_id")
        if target_id == INTERACTION:
            check.error(
                "bad_id", f"{owner}target_id {target_id!r} is kept for the whole interaction"
            )
        elif target_id in seen:
            check.error("duplicate_id", f"{owner}target_id {target_id!r} is taken already")
        span = _span(row, task, owner, check)
        order = number(place + 1 if row.get("order") is None else row["order"])
        if order is None:
            check.error("bad_value", f"{owner}order must be a number, found {shown(row['order'])}")
        reference = check.text(row, "reference", owner)
        tools = _tools(row, owner, check) if task == "T1" else None
        rubric = _rubric(row.get("rubric"), task, owner, check)
        if task != "T1" and reference is not None and not reference.strip():
            check.error("missing_key", f"{owner}reference is missing; the judge compares with it")
        if target_id is None or span is None or order is None or reference is None:
            continue
        seen.add(target_id)
        found.append(Target(target_id, order, reference, rubric, *span, tools))
    # Ties keep the order of the file, because sorting is stable.
    return tuple(sorted(found, key=lambda t: (t.start, t.order)))


def _span(row: dict[str, Any], task: str, owner: str, check: Check) -> tuple[float, float] | None:
    interval = row.get("interval")
    if interval is None:
        if task == "T8-A":
            check.error("missing_time", f"{owner}T8-A needs interval: [start, end] in seconds")
            return None
        at = check.time(row, "ref_time", owner)
        return None if at is None else (at, at)
    if row.get("ref_time") is not None:
        check.warn("two_times", f"{owner}has ref_time and interval; the interval counts")
    ends = [number(v) for v in interval] if isinstance(interval, list) else []
    if len(ends) != 2 or ends[0] is None or ends[1] is None:
        check.error("bad_time", f"{owner}interval {shown(interval)} must be two numbers of seconds")
        return None
    if ends[1] < ends[0]:
        check.error("bad_time", f"{owner}interval {interval!r} ends before it starts")
        return None
    return ends[0], ends[1]


def _tools(row: dict[str, Any], owner: str, check: Check) -> tuple[str, ...]:
    tools = row.get("tools")
    if not isinstance(tools, list) or not all(isinstance(t, str) for t in tools):
        check.error("missing_key", f"{owner}T1 needs tools: the list of tool names to be called")
        return ()
    if not any(t.strip() for t in tools):
        check.warn("no_tools", f"{owner}tools is empty: a reply that calls no tool is right here")
    return tuple(tools)


def _rubric(value: Any, task: str, owner: str, check: Check) -> str:
    if task == "T1":
        if value is not None and value != "tool_set":
            check.warn(
                "rubric_ignored", f"{owner}T1 compares tools; rubric {shown(value)} is not used"
            )
        return "tool_set"
    if value is None:
        return "assistance" if task.startswith("T8") else "event"
    if value not in RUBRICS:
        check.error(
            "unknown_rubric",
            f"{owner}rubric {shown(value)} is unknown; there are {', '.join(RUBRICS)}",
        )
    elif value == "tool_set":
        check.error("unknown_rubric", f"{owner}rubric tool_set belongs to T1; name another")
    return str(value)


def _warn_of_times(
    targets: tuple[Target, ...],
    request_time: float | None,
    clip_start: float,
    clip_end: float,
    check: Check,
) -> None:
    """Times outside the clip: most often another unit or another clock."""
    times = {} if request_time is None else {"request_time": (request_time, request_time)}
    times |= {f"target {t.target_id!r}": (t.start, t.end) for t in targets}
    for what, (start, end) in times.items():
        if start < clip_start or end > clip_end:
            at = f"{start:g}" if start == end else f"{start:g} to {end:g}"
            check.warn(
                "outside_clip",
                f"{what}: {at} s lies outside the clip, {clip_start:g} to {clip_end:g} s",
            )


def _warn_of_empty_windows(
    task: str,
    targets: tuple[Target, ...],
    request_time: float | None,
    tolerance: float,
    check: Check,
) -> None:
    if task not in _ORDERED_WITH_REQUEST or request_time is None:
        return
    for target in targets:
        _, high = target_windows(
            np.array([TASKS.index(task)]),
            np.array([target.start]),
            np.array([target.end]),
            np.array([request_time]),
            tolerance,
        )
        if request_time > high[0]:
            check.warn(
                "window_before_request",
                f"target {target.target_id!r}: its window ends at {high[0]:g} s, before the "
                f"request at {request_time:g} s; nothing can match it",
            )


def unit_table(interactions: dict[str, Interaction]) -> pa.Table:
    """Units: the targets of each interaction in target order, then the interaction itself."""
    columns: dict[str, list[Any]] = {name: [] for name in UNIT_SCHEMA.names}
    for sample in interactions.values():
        shared = {
            "sample_id": sample.interaction_id,
            "video_id": sample.video_id,
            "task": sample.task,
            "sequence_length": len(sample.targets),
            "request": sample.request,
            "request_time": sample.request_time,
            "clip_start": sample.clip_start,
            "clip_end": sample.clip_end,
            "language": sample.language,
            "attributes": list(sample.attributes.items()),
        }
        rows: list[dict[str, Any]] = [
            {
                "unit_id": t.target_id,
                "unit_kind": TARGET,
                "position": k,
                "target_order": t.order,
                "rubric": t.rubric,
                "reference": t.reference,
                "tools": t.tools,
                "ref_start": t.start,
                "ref_end": t.end,
            }
            for k, t in enumerate(sample.targets, 1)
        ]
        rows.append({"unit_id": INTERACTION, "unit_kind": INTERACTION})
        for row in rows:
            row |= shared
            for name, values in columns.items():
                values.append(row.get(name))
    return tables.make(UNIT_SCHEMA, columns)  # type: ignore[arg-type]


def _objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; nothing where it is no list."""
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []
