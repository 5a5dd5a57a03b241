"""CaptainCook4D step annotations as 1QnA annotations of OmniInteract.

CaptainCook4D records people who cook by a recipe, rightly or with mistakes, and annotates which
step they do from when to when. Each recording becomes one 1QnA sample in the answers shape: the
cook asks once, at the beginning, to be led through the recipe, and the assistant owes one answer
per step that is performed, in the order in which this cook performs them.

The answer is the step's instruction, and it is due when the step **begins**: from then on it is
of use, and its slot lasts until the next answer is due. (When the step ends would be too late:
the assistant would announce what has just been done.) Steps that were left out have times of -1 in
the source; nobody could see when to announce them, so they are skipped and counted.

With the error annotations, each performed step with mistakes adds an answer about them, labelled
``error`` and due when that step ends, the first moment at which the whole mistake has been seen:
it names what went wrong and what the recipe asks for.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

from omnijudge.errors import ConfigError, DataError, Problem

STEPS_FILE = "complete_step_annotations.json"
FOLDER = "captaincook4d"
QUESTION = "Guide me through making {recipe}, one step at a time."
DESCRIPTION = """\
Turn CaptainCook4D step annotations into OmniInteract 1QnA annotations: one file per recording and
a manifest. Each performed step is an answer, due when the step begins.
"""
# "Measure and add-1/4 tsp salt": the verb of the step's node, then what is done.
_VERB = re.compile(r"\s*([^\W\d_]+(?:\s+[^\W\d_]+){0,3})\s*-\s*(.+)", re.DOTALL)
_MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer the assistant owes. ``time`` in seconds, ``label`` ``step`` or ``error``."""

    time: float
    text: str
    label: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """One recording, converted.

    Attributes:
        recording_id: as in the source; names the files.
        name: the recipe.
        columns: further facts about the recording, for grouping.
        answers: by time.
    """

    recording_id: str
    name: str
    columns: Mapping[str, str]
    answers: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class Converted:
    """All recordings, and what was counted on the way.

    Attributes:
        recipes: recordings with at least one answer, in the order of the source.
        recordings: recordings in the source.
        steps: steps in the source.
        skipped: reason -> number of steps (or mistakes, or recordings) left out.
        notes: what is worth knowing -> how often.
    """

    recipes: tuple[Recipe, ...]
    recordings: int
    steps: int
    skipped: Mapping[str, int]
    notes: Mapping[str, int]

    def count(self, label: str) -> int:
        """Number of answers with a label."""
        return sum(answer.label == label for recipe in self.recipes for answer in recipe.answers)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``omnijudge convert captaincook4d``."""
    parser.description = DESCRIPTION
    parser.add_argument("source", metavar="SRC", help=f"{STEPS_FILE}, or the folder that holds it")
    parser.add_argument("--out", metavar="DIR", required=True, help="folder to write")
    parser.add_argument(
        "--errors",
        metavar="FILE",
        help="error_annotations.json: adds an answer per step with mistakes",
    )
    parser.add_argument(
        "--question",
        metavar="TEXT",
        default=QUESTION,
        help=f"what the cook asks; {{recipe}} stands for its name (default: {QUESTION})",
    )


def run(args: argparse.Namespace) -> int:
    """Runs ``omnijudge convert captaincook4d``; returns the exit code.

    Raises:
        ConfigError: the question is blank.
        DataError: a file is missing or not of the known form, or DIR cannot be written.
    """
    from omnijudge.transcripts.files import read_json

    if not args.question.strip():
        raise ConfigError("--question is blank; write what the cook asks")
    source = Path(args.source)
    if source.is_dir():
        source = source / STEPS_FILE
    mistakes = None
    if args.errors is not None:
        mistakes = read_mistakes(read_json(args.errors), args.errors)
    converted = convert(read_json(source), str(source), mistakes)
    out = Path(args.out)
    try:
        manifest = write(converted, out, args.question)
    except OSError as error:
        raise DataError(f"{error.filename or out}: cannot be written: {error.strerror}") from None
    _report(converted, manifest, with_errors=mistakes is not None)
    return 0


def _report(converted: Converted, manifest: Path, with_errors: bool) -> None:
    print(f"recordings written: {len(converted.recipes)} of {converted.recordings}")
    print(f"steps written: {converted.count('step')} of {converted.steps}")
    if with_errors:
        print(f"answers about mistakes written: {converted.count('error')}")
    for reason, count in sorted(converted.skipped.items()):
        print(f"skipped, {reason}: {count}")
    for note, count in sorted(converted.notes.items()):
        print(f"{note}: {count}")
    print(f"{manifest}: use it as data.manifest, or {manifest.parent} as data.root")


@dataclass(slots=True)
class _Tally:
    """What turns up while converting."""

    file: str
    problems: list[Problem] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)

    def wrong(self, place: str, message: str) -> None:
        self.problems.append(Problem("wrong_value", "error", self.file, place, message))

    def stop_if_wrong(self) -> None:
        if not self.problems:
            return
        shown = [str(p) for p in self.problems[:_MOST_SHOWN]]
        if len(self.problems) > _MOST_SHOWN:
            shown.append(f"... and {len(self.problems) - _MOST_SHOWN} more")
        raise DataError("\n".join(shown), self.problems)


StepKey = tuple[str, Any, Any]
"""(recording id, step id, start time) as written: both files repeat them exactly."""
Mistakes = Mapping[StepKey, Sequence[str]]
"""Step -> what went wrong in it."""


def convert(root: Any, file: str, mistakes: Mistakes | None = None) -> Converted:
    """Converts the step annotations.

    Args:
        root: the content of ``complete_step_annotations.json``: recording id -> recording.
        file: its name, for messages.
        mistakes: what :func:`read_mistakes` returned, to add answers for mistakes.

    Raises:
        DataError: not of the known form; names every place.
    """
    if not isinstance(root, dict):
        raise DataError(
            f"{file}: must be an object from recording id to recording, as in {STEPS_FILE}; "
            f"found {type(root).__name__}"
        )
    tally = _Tally(file)
    mistakes = mistakes or {}
    recipes: list[Recipe] = []
    steps = 0
    seen: set[StepKey] = set()
    for recording_id, recording in root.items():
        rows = recording.get("steps") if isinstance(recording, dict) else None
        if not isinstance(rows, list):
            tally.wrong(recording_id, "needs an object with a list `steps`")
            continue
        name = recording.get("activity_name")
        if not isinstance(name, str) or not name.strip():
            tally.wrong(recording_id, f"activity_name is {name!r}; write the recipe's name")
            continue
        if bad := _bad_file_name(recording_id):
            tally.wrong(recording_id, bad)
            continue
        steps += len(rows)
        seen.update(_key(recording_id, row) for row in rows if isinstance(row, dict))
        answers = _answers(recording_id, rows, mistakes, tally)
        if not answers:
            tally.skipped["recording without any performed step"] += 1
            continue
        columns = {
            column: str(recording[key])
            for column, key in (("person", "person_id"), ("environment", "environment"))
            if key in recording
        }
        recipes.append(Recipe(recording_id, name.strip(), columns, answers))
    tally.stop_if_wrong()
    if not recipes:
        raise DataError(f"{file}: holds no recording with a performed step")
    if strangers := sum(len(wrongs) for key, wrongs in mistakes.items() if key not in seen):
        tally.skipped["mistake in a step that the step annotations lack"] += strangers
    return Converted(tuple(recipes), len(root), steps, tally.skipped, _notes(recipes))


def _answers(
    recording_id: str, rows: list[Any], mistakes: Mistakes, tally: _Tally
) -> tuple[Answer, ...]:
    """The answers of one recording, by time; what begins later follows, else in source order."""
    answers: list[Answer] = []
    for position, row in enumerate(rows):
        place = f"{recording_id}, steps[{position}]"
        if not isinstance(row, dict):
            tally.wrong(place, f"must be an object, found {type(row).__name__}")
            continue
        text = row.get("description")
        if not isinstance(text, str) or not text.strip():
            tally.wrong(place, f"description is {text!r}; write what is done")
            continue
        instruction = instruction_of(text)
        start, end = row.get("start_time"), row.get("end_time")
        wrongs = mistakes.get(_key(recording_id, row), ())
        if not _is_time(start):
            tally.skipped["step without a start time"] += 1
        elif start < 0:
            tally.skipped["step with a negative time (not performed)"] += 1
        else:
            answers.append(Answer(float(start), instruction, "step"))
            if wrongs and _is_time(end) and end > start:
                text = correction_of(wrongs, instruction)
                answers.append(Answer(float(end), text, "error"))
                continue
        if wrongs:
            tally.skipped["mistake in a step without usable times"] += len(wrongs)
    return tuple(sorted(answers, key=lambda answer: answer.time))


def _notes(recipes: Sequence[Recipe]) -> dict[str, int]:
    """Answers due at the very moment of the next one: no system can earn them."""
    together = sum(
        a.time == b.time
        for recipe in recipes
        for a, b in zip(recipe.answers, recipe.answers[1:], strict=False)
    )
    note = "answers due at the same moment as the next one, in slots without length"
    return {note: together} if together else {}


def instruction_of(description: str) -> str:
    """A step's description as a sentence to say.

    The source puts a verb and a hyphen before it. The verb goes where the sentence has it anyway
    (``Peel-Peel the garlic``), and stays where the sentence would lack it (``Add-1/4 tsp salt``).
    """
    text = " ".join(description.split())
    match = _VERB.fullmatch(text)
    if match is not None:
        verb, rest = match[1].strip(), match[2].strip()
        has_verb = re.search(rf"\b{re.escape(verb)}\b", rest, re.IGNORECASE)
        text = rest if has_verb else f"{verb} {rest}"
    return _sentence(text)


def correction_of(wrongs: Sequence[str], instruction: str) -> str:
    """What to say about the mistakes of one step."""
    return f"There is a mistake: {_sentence('; '.join(wrongs))} The recipe says: {instruction}"


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?", ".)")) else ".")


def read_mistakes(root: Any, file: str) -> Mistakes:
    """Mistakes of ``error_annotations.json``, by recording and position of the step.

    Raises:
        DataError: not of the known form; names every place.
    """
    if not isinstance(root, list):
        raise DataError(
            f"{file}: must be a list of recordings, as in error_annotations.json; "
            f"found {type(root).__name__}"
        )
    tally = _Tally(file)
    found: dict[StepKey, list[str]] = {}
    for number, recording in enumerate(root):
        ok = isinstance(recording, dict) and isinstance(recording.get("step_annotations"), list)
        if not ok or not isinstance(recording.get("recording_id"), str):
            tally.wrong(
                f"[{number}]", "needs the text `recording_id` and a list `step_annotations`"
            )
            continue
        recording_id = recording["recording_id"]
        for position, step in enumerate(recording["step_annotations"]):
            errors = step.get("errors", []) if isinstance(step, dict) else None
            if not isinstance(errors, list):
                place = f"{recording_id}, step_annotations[{position}]"
                tally.wrong(place, "must be an object whose `errors`, if any, is a list")
                continue
            texts = [e.get("description") for e in errors if isinstance(e, dict)]
            said = [" ".join(t.split()) for t in texts if isinstance(t, str) and t.strip()]
            if said:
                found.setdefault(_key(recording_id, step), []).extend(said)
    tally.stop_if_wrong()
    return found


def write(converted: Converted, out: Path, question: str) -> Path:
    """Writes annotations in the release layout and a manifest; returns the manifest's path.

    Sample ids are those that ``data.root`` gives to the same files, so that both ways in agree.
    """
    import orjson

    folder = out / "1qna" / "annotations" / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for recipe in converted.recipes:
        annotation = {
            "question_time": 0.0,
            "question_text": question.replace("{recipe}", recipe.name),
            "answers": [
                {"answer_time": a.time, "answer_text": a.text, "label": a.label}
                for a in recipe.answers
            ],
        }
        path = folder / f"{recipe.recording_id}.json"
        path.write_bytes(orjson.dumps(annotation, option=orjson.OPT_INDENT_2))
        rows.append(
            {
                "sample_id": f"1qna__videos_bench__{FOLDER}__{recipe.recording_id}",
                "gt_json": path.relative_to(out).as_posix(),
                "scene_type": "1QnA",
                "video_id": recipe.recording_id,
                "recipe": recipe.name,
                **recipe.columns,
            }
        )
    manifest = out / "manifest.jsonl"
    manifest.write_bytes(b"".join(orjson.dumps(r, option=orjson.OPT_APPEND_NEWLINE) for r in rows))
    return manifest


def _key(recording_id: str, step: Mapping[str, Any]) -> StepKey:
    step_id, start = step.get("step_id"), step.get("start_time")
    plain = (int, float, str)
    return (
        recording_id,
        step_id if isinstance(step_id, plain) else None,
        start if isinstance(start, plain) else None,
    )


def _is_time(value: Any) -> TypeGuard[float]:
    return type(value) in (int, float) and abs(value) < 1e9


def _bad_file_name(recording_id: str) -> str | None:
    if not recording_id.strip() or any(c in "/\\" or ord(c) < 32 for c in recording_id):
        return "this recording id cannot name a file; take path separators out of it"
    return None
