"""Many transcripts: every system over every recording, one file each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from omnijudge.benchmarks.omniinteract.slots import UnusableAnnotation, build_slots
from omnijudge.errors import Problem
from omnijudge.simulate.dice import Dice
from omnijudge.simulate.tempers import Temper
from omnijudge.simulate.transcript import TAIL_SECONDS, transcript_of_slots


class Recording(NamedTuple):
    """One annotated recording, in memory.

    Attributes:
        sample_id: names the transcript files.
        annotation: as read from JSON.
        scene_type: ``multi_turn``, ``nested`` or ``1QnA``.
        source: where it comes from, for messages.
    """

    sample_id: str
    annotation: Any
    scene_type: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Simulated:
    """What was written.

    Attributes:
        systems: names of the systems.
        sample_ids: recordings with a transcript of every system.
        transcripts: number of files.
        chunks: number of chunks in them.
        problems: recordings that could not be used, and why.
    """

    systems: tuple[str, ...]
    sample_ids: tuple[str, ...]
    transcripts: int
    chunks: int
    problems: tuple[Problem, ...]


def simulate_outputs(
    samples: Iterable[Recording],
    out_dir: Path,
    tempers: Mapping[str, Temper],
    seed: int = 0,
    *,
    words: bool = False,
) -> Simulated:
    """Writes ``<out_dir>/<system>/<sample_id>.json`` for every system and recording.

    A file depends on the seed, the system's name and temper, the sample id and the annotation,
    never on what else is written or in which order. Files that are there are replaced.

    Args:
        samples: the recordings; taken one by one, so that a generator will do.
        out_dir: folder to write below.
        tempers: name of each system and how it behaves.
        seed: seed of the whole simulation.
        words: whether chunks carry word times.
    """
    folders = {name: out_dir / name for name in tempers}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    sample_ids: list[str] = []
    problems: list[Problem] = []
    chunks = 0
    for sample in samples:
        try:
            slots = build_slots(sample.annotation, sample.scene_type, TAIL_SECONDS)
        except UnusableAnnotation as error:
            message = f"{error}; no transcript is written for it"
            problems.append(
                Problem("bad_annotation", "error", sample.source, "", message, sample.sample_id)
            )
            continue
        for system, temper in tempers.items():
            dice = Dice(seed, system, sample.sample_id)
            transcript = transcript_of_slots(slots, temper, dice, words)
            chunks += len(transcript["chunks"])
            path = folders[system] / f"{sample.sample_id}.json"
            path.write_bytes(orjson.dumps(transcript))
        sample_ids.append(sample.sample_id)
    count = len(sample_ids) * len(tempers)
    return Simulated(tuple(tempers), tuple(sample_ids), count, chunks, tuple(problems))
