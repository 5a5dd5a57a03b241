"""Invented corpora at the benchmark's published size, and far beyond it.

Two ways: files as a user would have them (1,477 interactions, 1,788 targets, any number of
systems), and tables straight from arrays for measuring speed. Everything follows from the seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from omnijudge import tables
from omnijudge.benchmarks.base import Partition
from omnijudge.benchmarks.omni_interactscope.assignment import Assignment, Pairs
from omnijudge.benchmarks.omni_interactscope.matching import Codes
from omnijudge.benchmarks.omni_interactscope.schemas import (
    CHUNK_SCHEMA,
    INTERACTION,
    STAGE_SCHEMA,
    TARGET,
    UNIT_SCHEMA,
)
from omnijudge.benchmarks.omni_interactscope.scoring import NO, YES
from omnijudge.benchmarks.omni_interactscope.windows import TASKS, TOOL_TASK, UNPROMPTED_TASK
from omnijudge.simulate.dice import Dice

PUBLISHED_TARGETS: dict[str, list[int]] = {
    "T1": [1] * 200,
    "T2": [1] * 206,
    "T3": [1] * 207,
    "T4": [1] * 206,
    "T5": [1] * 115,
    "T6": [1] * 37,
    "T7": [3] * 43 + [2] * 164,
    "T8-A": [1] * 122,
    "T8-B": [1] * 151,
    "T8-C": [3] * 20 + [4] * 3 + [5] * 3,
}
"""Targets of each interaction. The totals are published, and that 20 of the 26 guidance sequences
have three steps; how the rest spread is ours."""

EXPLICIT_VIDEOS, ASSISTANCE_VIDEOS = 905, 207
TOOL_NAMES = ("set_timer", "take_photo", "look_up", "translate", "add_note", "call_lift")

_WHO = {
    "en": ("a courier", "the girl in yellow", "the cook", "a cyclist", "the guide", "an old man"),
    "zh": ("快递员", "穿黄衣的女孩", "厨师", "骑车人", "导游", "一位老人"),
}
_DOES = {
    "en": ("picks up", "puts down", "points at", "opens", "pushes away", "walks past"),
    "zh": ("拿起了", "放下了", "指着", "打开了", "推开了", "走过了"),
}
_WHAT = {
    "en": ("the blue crate", "a folding chair", "the side door", "the kettle", "two lamps"),
    "zh": ("蓝色箱子", "折叠椅", "侧门", "水壶", "两盏灯"),
}
_ASIDES = {
    "en": ("Still watching.", "Nothing new yet.", "It is rather busy here.", "ABSTAIN", "..."),
    "zh": ("我还在看。", "暂时没有变化。", "这里挺热闹。", "ABSTAIN", "。"),
}


@dataclass(frozen=True, slots=True)
class Manner:
    """How a simulated system behaves. Chances are in 0..1, times in seconds.

    Attributes:
        name: of the system, and of its file.
        answer: chance that it answers a target at all.
        right: chance that what it says is right.
        delay: mean delay after the reference time.
        spread: half-width of the delays.
        chatter: chance, per target, of a needless remark.
        fragments: it writes its responses in pieces.
        lost: chance that a trajectory is missing.
    """

    name: str
    answer: float
    right: float
    delay: float
    spread: float
    chatter: float = 0.1
    fragments: bool = False
    lost: float = 0.0


MANNERS = (
    Manner("steady", 0.95, 0.85, 0.5, 1.0, 0.02),
    Manner("prompt", 0.9, 0.6, 0.0, 0.8, 0.1),
    Manner("careful", 0.7, 0.9, 1.2, 1.2, 0.0),
    Manner("hasty", 0.95, 0.6, -1.8, 2.0, 0.2),
    Manner("dreamy", 0.8, 0.7, 2.6, 2.5, 0.05),
    Manner("chatty", 0.9, 0.5, 0.5, 2.0, 0.9),
    Manner("piecemeal", 0.9, 0.7, 0.3, 1.0, 0.1, fragments=True),
    Manner("babbling", 0.8, 0.4, 0.8, 3.0, 0.8, fragments=True),
    Manner("shy", 0.3, 0.8, 0.6, 1.0, 0.0),
    Manner("forgetful", 0.8, 0.6, 0.5, 1.5, 0.1, lost=0.1),
    Manner("guessing", 0.95, 0.15, 0.0, 2.0, 0.3),
    Manner("silent", 0.02, 0.5, 0.0, 1.0, 0.0),
)
"""Twelve systems, as many as were published."""


def invented_annotations(seed: int = 0) -> list[dict[str, Any]]:
    """1,477 invented interactions with 1,788 targets on 1,112 video records, in both languages."""
    found: list[dict[str, Any]] = []
    for task, sizes in PUBLISHED_TARGETS.items():
        for size in sizes:
            number = len(found)
            assistance = task.startswith("T8")
            videos = ASSISTANCE_VIDEOS if assistance else EXPLICIT_VIDEOS
            video = f"{'assist' if assistance else 'explicit'}{number % videos:04d}"
            dice = Dice(seed, "annotation", str(number))
            found.append(_interaction(f"{task}-{number:04d}", task, size, video, dice))
    return found


def _interaction(identity: str, task: str, size: int, video: str, dice: Dice) -> dict[str, Any]:
    language = dice.pick(("en", "zh"))
    request_time = round(dice.between(0.0, 15.0), 2)
    at = request_time + dice.between(3.0, 12.0)
    targets = []
    for k in range(1, size + 1):
        target: dict[str, Any] = {
            "target_id": f"{identity}-t{k}",
            "order": k,
            "reference": _sentence(language, dice),
            "rubric": _rubric(task, dice),
        }
        if task == "T1":
            target |= {
                "reference": "",
                "tools": sorted({dice.pick(TOOL_NAMES), dice.pick(TOOL_NAMES)}),
            }
        if task == "T8-A":
            target["interval"] = [round(at, 2), round(at + dice.between(2.0, 6.0), 2)]
        else:
            target["ref_time"] = round(at, 2)
        targets.append(target)
        at += dice.between(3.0, 14.0)
    opening = {"en": "Tell me when this happens: ", "zh": "发生这件事时告诉我："}[language]
    return {
        "interaction_id": identity,
        "video_id": video,
        "task": task,
        "language": language,
        "request": opening + targets[0]["reference"],
        "request_time": None if task == "T8-A" else request_time,
        "clip_start": 0.0,
        "clip_end": round(at + 10.0, 2),
        "valid": True,
        "targets": targets,
    }


def _rubric(task: str, dice: Dice) -> str:
    if task == "T1":
        return "tool_set"
    if task == "T7" and dice.chance(0.4):
        return "translation"
    return "assistance" if task.startswith("T8") else "event"


def _sentence(language: str, dice: Dice) -> str:
    who, does, what = (dice.pick(words[language]) for words in (_WHO, _DOES, _WHAT))
    return f"{who}{does}{what}。" if language == "zh" else f"{who} {does} {what}.".capitalize()


def trajectory(interaction: dict[str, Any], manner: Manner, seed: int = 0) -> dict[str, Any] | None:
    """What a system of some manner says during an interaction; None where it is lost."""
    dice = Dice(seed, manner.name, interaction["interaction_id"])
    if dice.chance(manner.lost):
        return None
    language = interaction["language"]
    outputs: list[dict[str, Any]] = []
    for target in interaction["targets"]:
        a, b = target.get("interval") or [target["ref_time"]] * 2
        at = (a + b) / 2 + manner.delay + dice.between(-manner.spread, manner.spread)
        if dice.chance(manner.chatter):
            outputs.append(_output(at - dice.between(2.0, 8.0), dice.pick(_ASIDES[language])))
        if not dice.chance(manner.answer):
            continue
        right = dice.chance(manner.right)
        if interaction["task"] == "T1":
            tools = target["tools"] if right else [dice.pick(TOOL_NAMES)]
            outputs.append(_output(at, "", tools))
            continue
        text = target["reference"] if right else _sentence(language, dice)
        if manner.fragments:
            middle = max(1, len(text) // 2)
            outputs += [_output(at, text[:middle]), _output(at + 0.8, text[middle:])]
        else:
            outputs.append(_output(at, text))
    return {
        "interaction_id": interaction["interaction_id"],
        "granularity": "fragment" if manner.fragments else "response",
        "outputs": outputs,
    }


def _output(at: float, text: str, tools: Sequence[str] = ()) -> dict[str, Any]:
    return {"t": round(max(at, 0.0), 2), "text": text, "tools": list(tools)}


def write_corpus(folder: Path, seed: int = 0, manners: Sequence[Manner] = MANNERS) -> None:
    """Writes ``annotations.jsonl`` and ``responses/<system>.jsonl`` below a folder."""
    interactions = invented_annotations(seed)
    (folder / "responses").mkdir(parents=True, exist_ok=True)
    _write(folder / "annotations.jsonl", interactions)
    for manner in manners:
        said = (trajectory(i, manner, seed) for i in interactions)
        _write(folder / "responses" / f"{manner.name}.jsonl", [t for t in said if t is not None])


def _write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))


def partitions(windows: int, block: int = 200_000, seed: int = 0) -> Iterator[Partition]:
    """Partitions straight from arrays, with as many target windows as wanted.

    Tasks come in the published proportions of interactions. Each target has three responses on
    average. A response's text is a number; it is right for the target with the same reference
    (see :func:`text_verdicts`).

    Args:
        windows: number of targets altogether.
        block: number of targets of a partition, about.
        seed: block ``i`` depends on the seed and ``i`` alone.
    """
    made = 0
    number = 0
    while made < windows:
        wanted = min(block, windows - made)
        yield _partition(wanted, number, seed)
        made += wanted
        number += 1


def _partition(windows: int, number: int, seed: int) -> Partition:
    rng = np.random.default_rng([seed, number])
    sizes_of = [(TASKS.index(t), n) for t, sizes in PUBLISHED_TARGETS.items() for n in sizes]
    drawn = rng.integers(len(sizes_of), size=windows)
    sizes = np.array([n for _, n in sizes_of])[drawn]
    samples = int(np.searchsorted(np.cumsum(sizes), windows)) + 1
    drawn, sizes = drawn[:samples], sizes[:samples].copy()
    sizes[-1] -= sizes.sum() - windows
    task = np.array([t for t, _ in sizes_of])[drawn]
    sample = np.repeat(np.arange(samples), sizes)
    position = np.arange(windows) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
    request = np.round(rng.uniform(0, 15, samples), 2)
    # Steps of guidance follow each other so closely that their windows overlap.
    apart = np.where(task[sample] > UNPROMPTED_TASK, 2.0, 6.0)
    start = np.round(request[sample] + apart * (position + rng.random(windows)), 2)
    unprompted = task[sample] == UNPROMPTED_TASK
    end = np.where(unprompted, np.round(start + 4.0, 2), start)
    ids = np.char.add(f"{number}-", np.arange(samples).astype(str))
    units = _units(ids, task, sizes, sample, position, request, start, end)
    # Responses gather around targets, some of them out of order.
    said = rng.integers(0, 7, windows)
    about = np.repeat(np.arange(windows), said)
    time = np.round(start[about] + rng.normal(0.5, 2.0, len(about)), 2)
    # Files are in order of time, but for every twentieth.
    in_time = np.lexsort((time, sample[about]))
    time = np.where(sample[about] % 20 == 0, time, time[in_time])
    wrong = rng.random(len(about)) < 0.5
    text = np.where(wrong, rng.integers(0, 8, len(about)), position[about])
    called = (task[sample[about]] == TOOL_TASK).astype(np.int64)
    chunk_id = np.arange(len(about)) - np.searchsorted(sample[about], sample[about])
    chunks = tables.make(
        CHUNK_SCHEMA,
        {
            "system": pa.repeat("simulated", len(about)),
            "sample_id": pa.array(ids).take(pa.array(sample[about])),
            "chunk_id": chunk_id,
            "start": time,
            "text": pa.array(np.arange(16).astype(str)).take(pa.array(text)),
            "tools": pa.ListArray.from_arrays(
                pa.array(np.concatenate([[0], np.cumsum(called)]), pa.int32()),
                pa.array(TOOL_NAMES).take(pa.array(text[called > 0] % 2)),
            ),
            "granularity": pa.repeat("response", len(about)),
        },
    )
    outputs = tables.make(
        tables.OUTPUTS,
        {
            "system": pa.repeat("simulated", samples),
            "sample_id": ids,
            "state": pa.repeat("ok", samples),
        },
    )
    return Partition("simulated", units, outputs, chunks, STAGE_SCHEMA.empty_table())


def _units(
    ids: Any, task: Any, sizes: Any, sample: Any, position: Any, request: Any, start: Any, end: Any
) -> pa.Table:
    """Targets in target order, each sample's own unit after them."""
    windows, samples = len(sample), len(ids)
    n = windows + samples
    own = np.cumsum(sizes + 1) - 1
    of_target = np.arange(windows) + sample
    of_row = np.empty(n, dtype=np.int64)
    of_row[of_target], of_row[own] = sample, np.arange(samples)
    is_target = np.ones(n, dtype=np.bool_)
    is_target[own] = False

    def spread(values: Any) -> pa.Array:
        filled = np.zeros(n, dtype=np.asarray(values).dtype)
        filled[of_target] = values
        return pa.array(filled, mask=~is_target)

    numbers = pa.array(np.arange(position.max(initial=0) + 1).astype(str))
    places = spread(position)
    tools = pa.array([[TOOL_NAMES[0]], [TOOL_NAMES[1]]])
    tool_task = is_target & (task[of_row] == TOOL_TASK)
    return tables.make(
        UNIT_SCHEMA,
        {
            "sample_id": pa.array(ids).take(pa.array(of_row)),
            "unit_id": pc.fill_null(numbers.take(places), INTERACTION),
            "unit_kind": pa.array([INTERACTION, TARGET]).take(pa.array(is_target.astype(np.int64))),
            "video_id": pa.array(ids).take(pa.array(of_row)),
            "task": pa.array(TASKS).take(pa.array(task[of_row])),
            "position": places,
            "sequence_length": sizes[of_row],
            "reference": numbers.take(places),
            "tools": tools.take(pa.array(np.arange(n) % 2, mask=~tool_task)),
            "ref_start": spread(start),
            "ref_end": spread(end),
            "request_time": pa.array(request[of_row], mask=task[of_row] == UNPROMPTED_TASK),
            "clip_start": np.zeros(n),
            "clip_end": np.full(n, 200.0),
        },
    )


def text_verdicts(part: Partition, assignment: Assignment, asked: Pairs) -> Codes:
    """The judge of simulated partitions: a response is right if it says the reference."""
    said = part.chunks["text"].take(pa.array(assignment.responses.first[asked.response]))
    reference = part.units["reference"].take(pa.array(assignment.unit_rows[asked.target]))
    same = pc.equal(said, reference).to_numpy()
    return np.where(same, YES, NO).astype(np.int8)
