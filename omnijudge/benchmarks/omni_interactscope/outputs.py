"""One system's outputs for a block of interactions, checked, as tables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnijudge import tables
from omnijudge.benchmarks.base import Outputs
from omnijudge.benchmarks.omni_interactscope.checks import kind, shown
from omnijudge.benchmarks.omni_interactscope.jsonlines import number
from omnijudge.benchmarks.omni_interactscope.reader import Interaction
from omnijudge.benchmarks.omni_interactscope.schemas import CHUNK_SCHEMA
from omnijudge.benchmarks.omni_interactscope.trajectories import Source, Spot, find_outputs, load
from omnijudge.benchmarks.omni_interactscope.windows import TASKS
from omnijudge.errors import ConfigError, Level, Problem
from omnijudge.transcripts.files import UnreadableFile
from omnijudge.transcripts.reader import read_transcript

if TYPE_CHECKING:
    from omnijudge.config import SystemConfig

GRANULARITIES = ("response", "fragment")


@dataclass(frozen=True, slots=True)
class Output:
    """One output of a system: times in seconds, names of the tools it called."""

    output_index: int
    time: float
    text: str
    tools: tuple[str, ...] = ()
    end: float | None = None


@dataclass(frozen=True)
class Trajectory:
    """Everything a system put out during one interaction, in file order."""

    outputs: tuple[Output, ...]
    granularity: str = "response"


class Unusable(Exception):
    """A trajectory that cannot be used, with the finding that says why."""

    def __init__(self, problem: Problem, state: str = "unreadable") -> None:
        super().__init__(problem.message)
        self.problem = problem
        self.state = state


def check_system(name: str, settings: SystemConfig) -> None:
    """Refuses settings that cannot be meant.

    Raises:
        ConfigError: no path, nothing there, or an unknown task in ``not_evaluated``.
    """
    if settings.path is None:
        raise ConfigError(f"systems.{name}: needs a path: a file of trajectories or a folder")
    if not os.path.exists(settings.path):
        raise ConfigError(f"systems.{name}: there is no file or folder {settings.path}")
    unknown = [t for t in settings.not_evaluated if t not in TASKS]
    if unknown:
        raise ConfigError(
            f"systems.{name}.not_evaluated: {unknown[0]!r} is no task; there are {', '.join(TASKS)}"
        )


def system_problems(system: str, settings: SystemConfig, annotated: Set[str]) -> list[Problem]:
    """What is wrong with a system's files as a whole, and what they hold beside the annotated.

    Args:
        system: its name.
        settings: where its files are.
        annotated: ids of all annotated interactions, usable or not.
    """
    assert settings.path is not None
    source = find_outputs(settings.path)
    found = [
        *source.problems,
        *_strangers(source, settings.path, annotated),
        *_left_over(source, settings.path, annotated),
    ]
    return [_about(p, system) for p in found]


def read_system(
    system: str,
    settings: SystemConfig,
    interactions: Mapping[str, Interaction],
    sample_ids: Sequence[str],
) -> Outputs:
    """Outputs of one system for some interactions.

    Args:
        system: its name.
        settings: where its files are and how to read them.
        interactions: all usable interactions by id.
        sample_ids: the block.
    """
    check_system(system, settings)
    assert settings.path is not None
    source = find_outputs(settings.path)
    problems: list[Problem] = []
    states: dict[str, list[Any]] = {name: [] for name in tables.OUTPUTS.names}
    chunks: dict[str, list[Any]] = {name: [] for name in CHUNK_SCHEMA.names}
    for sample_id in sample_ids:
        interaction = interactions[sample_id]
        state, detail, file = "ok", None, None
        if interaction.task in settings.not_evaluated:
            state = "not_evaluated"
        else:
            notes: list[Problem] = []
            try:
                file, trajectory = _read(interaction, source, settings, notes)
                _append(chunks, system, sample_id, trajectory)
            except Unusable as e:
                state, detail = e.state, f"{e.problem.code}: {e.problem.message}"
                file = e.problem.file if state == "unreadable" else None
                notes.append(e.problem)
            problems += [_about(p, system, sample_id) for p in notes if p is not source.refused]
        shown = None if file is None else _relative(file, settings.path)
        row = (system, sample_id, state, shown, detail)
        for name, value in zip(tables.OUTPUTS.names, row, strict=True):
            states[name].append(value)
    return Outputs(
        tables.make(tables.OUTPUTS, dict(states)), tables.make(CHUNK_SCHEMA, dict(chunks)), problems
    )


def _read(
    interaction: Interaction, source: Source, settings: SystemConfig, notes: list[Problem]
) -> tuple[str, Trajectory]:
    """The file and the trajectory of one interaction.

    Raises:
        Unusable: there is none, there are several, or it cannot be read.
    """
    identity = interaction.interaction_id
    spots, files = source.spots.get(identity, ()), source.transcripts.get(identity, ())
    if source.refused is not None:
        raise Unusable(source.refused)
    if not spots and not files:
        message = f"has no trajectory for {identity!r}; counts as a missing trajectory"
        problem = Problem("missing_output", "error", str(settings.path), identity, message)
        raise Unusable(problem, "missing")
    if len(spots) + len(files) > 1:
        places = [f"{s.file} {s.place}".strip() for s in spots] + list(files)
        message = (
            f"interaction {identity!r} has {len(places)} trajectories ({', '.join(places[:3])}); "
            "none is used, keep one"
        )
        raise Unusable(Problem("duplicate_id", "error", places[0].split(" ")[0], "", message))
    if files:
        return files[0], _from_transcript(files[0], interaction, settings, notes)
    spot = spots[0]
    try:
        row = load(spot)
    except UnreadableFile as e:
        raise Unusable(e.problem) from None
    trajectory = parse_trajectory(row, spot, settings.time_unit, settings.time_offset, notes)
    _note_times(trajectory, interaction, spot, notes)
    return spot.file, trajectory


def parse_trajectory(
    row: Mapping[str, Any],
    spot: Spot,
    time_unit: str | None = None,
    time_offset: float = 0.0,
    notes: list[Problem] | None = None,
) -> Trajectory:
    """Checks a trajectory (InteractScope rule 1).

    An output without a usable time cannot be placed: it is dropped and counted.

    Raises:
        Unusable: it is not written as a trajectory; everything wrong with it in one message.
    """
    faults: list[str] = []
    granularity = row.get("granularity", "response")
    if granularity not in GRANULARITIES:
        faults.append(f"granularity {shown(granularity)} is none of {', '.join(GRANULARITIES)}")
    listed = row.get("outputs")
    if not isinstance(listed, list):
        faults.append(f"outputs must be a list, found {kind(listed)}")
        listed = []
    scale = 1000.0 if time_unit == "ms" else 1.0
    outputs: list[Output] = []
    without_time: list[int] = []
    for place, entry in enumerate(listed):
        if not isinstance(entry, dict):
            faults.append(f"outputs[{place}] must be an object")
            continue
        text, tools = entry.get("text"), entry.get("tools")
        if text is not None and not isinstance(text, str):
            faults.append(f"outputs[{place}].text must be text")
            continue
        if tools is None:
            tools = []
        if not isinstance(tools, list) or not all(isinstance(t, str) for t in tools):
            faults.append(f"outputs[{place}].tools must be a list of names")
            continue
        time = number(entry.get("t"))
        if time is None:
            without_time.append(place)
            continue
        outputs.append(Output(place, time / scale + time_offset, text or "", tuple(tools)))
    if faults:
        more = f" and {len(faults) - 3} more" if len(faults) > 3 else ""
        message = f"{'; '.join(faults[:3])}{more}; nothing of this trajectory is used"
        raise Unusable(Problem("wrong_format", "error", spot.file, spot.place, message))
    if without_time and notes is not None:
        at = without_time[0]
        message = (
            "outputs without a finite time t were dropped "
            f"(first: outputs[{at}], t is {shown(listed[at].get('t'))})"
        )
        _note(notes, "dropped_bad_time", "warning", spot, message, len(without_time))
    return Trajectory(tuple(outputs), granularity)


def _note_times(
    trajectory: Trajectory, interaction: Interaction, spot: Spot, notes: list[Problem]
) -> None:
    times = [o.time for o in trajectory.outputs]
    beyond = sum(t > interaction.clip_end + 0.5 for t in times)
    if beyond:
        message = f"outputs after the end of the clip at {interaction.clip_end:g} s; they are kept"
        _note(notes, "beyond_clip", "info", spot, message, beyond)
    before = sum(t < 0 for t in times)
    if before:
        message = "outputs before 0 s, the start of the recording; they stand as they are"
        _note(notes, "negative_time", "warning", spot, message, before)
    backwards = sum(b < a for a, b in pairwise(times))
    if backwards:
        message = "outputs that stand behind later ones; they are put in order of time"
        _note(notes, "unsorted", "info", spot, message, backwards)
    if len(times) > 2 and sorted(times)[len(times) // 2] > 100 * max(interaction.clip_end, 1.0):
        message = "the times look like milliseconds; if so, write time_unit: ms for this system"
        _note(notes, "suspect_ms", "warning", spot, message)


def _note(
    notes: list[Problem], code: str, level: Level, spot: Spot, message: str, count: int = 1
) -> None:
    notes.append(Problem(code, level, spot.file, spot.place, message, count=count))


def _from_transcript(
    file: str, interaction: Interaction, settings: SystemConfig, notes: list[Problem]
) -> Trajectory:
    """A transcript of another tool: each chunk is one output at its start, without tools."""
    transcript = read_transcript(
        file,
        format=settings.format,
        benchmark="omni_interactscope",
        time_unit=settings.time_unit,
        time_offset=settings.time_offset,
        speaker=settings.speaker,
        duration=interaction.clip_end,
    )
    notes += transcript.problems
    if transcript.refused is not None:
        raise Unusable(transcript.refused)
    if interaction.task == "T1":
        message = "a transcript shows no tool calls; write not_evaluated: [T1] for this system"
        notes.append(Problem("no_tools", "warning", file, "", message))
    words = any(p.code == "word_chunks" for p in transcript.problems)
    outputs = tuple(Output(c.id, c.start, c.text, (), c.end) for c in transcript.chunks)
    return Trajectory(outputs, "fragment" if words else "response")


def _append(
    chunks: dict[str, list[Any]], system: str, sample_id: str, trajectory: Trajectory
) -> None:
    for output in trajectory.outputs:
        row = {
            "system": system,
            "sample_id": sample_id,
            "chunk_id": output.output_index,
            "start": output.time,
            "end": output.end,
            "text": output.text,
            "words": [],
            "tools": output.tools,
            "granularity": trajectory.granularity,
        }
        for name, values in chunks.items():
            values.append(row.get(name))


def _strangers(source: Source, path: str, known: Set[str]) -> list[Problem]:
    """Trajectories nobody asked for: most often a sign of ids that do not fit."""
    strangers = [name for name in source.spots if name not in known]
    if not strangers:
        return []
    message = (
        f"trajectories of interactions that are not annotated: {_some(strangers)}; "
        "they are not used"
    )
    return [Problem("not_listed", "warning", path, "", message, count=len(strangers))]


def _left_over(source: Source, path: str, known: Set[str]) -> list[Problem]:
    """Files of a folder that hold no trajectory and bear no interaction's name."""
    used = {file for name, files in source.transcripts.items() if name in known for file in files}
    left = [file for file in source.faults if file not in used]
    found = [p for file in left for p in source.faults[file] if p.code == "bad_json"]
    if left:
        names = _some([_relative(file, path) for file in left])
        message = f"files that hold no trajectory and bear no interaction's name: {names}; not used"
        found.append(Problem("unused_file", "info", path, "", message, count=len(left)))
    if source.refused is None and not used and not known & source.spots.keys():
        message = "nothing here is about an annotated interaction; correct the path or the names"
        found.append(Problem("no_outputs", "error", path, "", message))
    return found


def _some(names: Sequence[str]) -> str:
    """The first names of a list."""
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def _about(problem: Problem, system: str, sample_id: str | None = None) -> Problem:
    return Problem(
        problem.code,
        problem.level,
        problem.file,
        problem.place,
        problem.message,
        problem.sample_id or sample_id,
        system,
        problem.count,
    )


def _relative(file: str, root: str) -> str:
    """The file without the part that differs from machine to machine."""
    path = Path(file)
    if path.is_relative_to(root) and path != Path(root):
        return path.relative_to(root).as_posix()
    return path.name
