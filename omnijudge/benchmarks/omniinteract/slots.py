"""From an annotation to slots (OmniInteract rules 3 and 4).

A slot is the window ``[t_start, t_a, t_end)`` in which one answer is due at ``t_a``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omnijudge.values import parse_bool, parse_time, text_of

SCENE_TYPES = ("multi_turn", "nested", "1QnA")


class UnusableAnnotation(Exception):
    """The annotation cannot be turned into slots; the sample is not scored."""


@dataclass(frozen=True, slots=True)
class Row:
    """One 1Q1A row: a question and the moment its answer is due."""

    question_time: float
    answer_time: float
    question: str
    answer: str
    question_type: str
    interrupted: bool


@dataclass(frozen=True, slots=True)
class Slot:
    """One slot; times in seconds.

    Attributes:
        slot_id: from 1, in the order of the rules.
        t_end: end of the slot; where nothing follows, ``t_a`` plus the tail.
        open_ended: nothing follows, so that ``t_end`` depends on the tail.
        boundary: ``hard`` for 1Q1A, ``soft`` for 1QnA.
        pair: number of the nested pair, None elsewhere; ``role`` is ``outer`` or ``inner``.
    """

    slot_id: int
    t_start: float
    t_a: float
    t_end: float
    open_ended: bool
    boundary: str
    question_type: str
    interrupted: bool
    question: str
    answer: str
    turn: int
    step: int | None = None
    label: str = ""
    pair: int | None = None
    role: str | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    """An entry that the rules drop without a word, so that we can say it."""

    place: str
    reason: str


def end_of_last(t_start: float, t_a: float, tail: float) -> float:
    """End of a slot that nothing follows."""
    return max(t_a + tail, t_start)


def read_rows(root: Any, dropped: list[Dropped] | None = None) -> list[Row]:
    """1Q1A rows, sorted by question and answer time (rule 3.1)."""
    if isinstance(root, dict):
        root = root.get("items")
    rows = []
    for number, r in enumerate(root if isinstance(root, list) else []):
        if not isinstance(r, dict):
            _drop(dropped, f"row {number}", f"is {_kind(r)}, not an object")
            continue
        q, a = parse_time(r.get("question_time")), parse_time(r.get("answer_time"))
        if q is None or a is None:
            key = "question_time" if q is None else "answer_time"
            _drop(dropped, f"row {number}", f"{key} {r.get(key)!r} is no time")
            continue
        rows.append(
            Row(
                q,
                a,
                text_of(r.get("question_text")),
                text_of(r.get("answer_text")),
                text_of(r.get("question_type")).strip().lower() or "unknown",
                parse_bool(r.get("is_interrupted")),
            )
        )
    rows.sort(key=lambda r: (r.question_time, r.answer_time))
    return rows


@dataclass(frozen=True, slots=True)
class Answers:
    """A 1QnA annotation: one question, many answers (rule 3.2)."""

    question_time: float
    question: str
    answers: list[tuple[float, str, str, bool]]
    """(answer time, answer text, label, interrupted), by time."""


def read_1qna(root: Any, dropped: list[Dropped] | None = None) -> Answers:
    """Reads a 1QnA object, either shape.

    Raises:
        UnusableAnnotation: no object, or neither list is there.
    """
    if not isinstance(root, dict):
        raise UnusableAnnotation(f"a 1QnA annotation must be an object, found {_kind(root)}")
    conversations, answers = root.get("conversations"), root.get("answers")
    if isinstance(conversations, list):
        question_time, question, found = _conversation(root, conversations, dropped)
    elif isinstance(answers, list):
        question_time = parse_time(root.get("question_time"))
        question = text_of(root.get("question_text"))
        found = []
        for number, e in enumerate(answers):
            place = f"answers[{number}]"
            if not isinstance(e, dict):
                _drop(dropped, place, f"is {_kind(e)}, not an object")
                continue
            t = parse_time(e.get("answer_time"))
            if t is None:
                _drop(dropped, place, f"answer_time {e.get('answer_time')!r} is no time")
                continue
            key = "interrupted" if "interrupted" in e else "is_interrupted"
            found.append(
                (t, text_of(e.get("answer_text")), text_of(e.get("label")), parse_bool(e.get(key)))
            )
    else:
        raise UnusableAnnotation("has neither a list `conversations` nor a list `answers`")
    found.sort(key=lambda f: f[0])
    return Answers(0.0 if question_time is None else question_time, question, found)


def _conversation(
    root: dict[str, Any], entries: list[Any], dropped: list[Dropped] | None
) -> tuple[float | None, str, list[tuple[float, str, str, bool]]]:
    user = next((e for e in entries if isinstance(e, dict) and e.get("from") == "user"), None)
    if user is not None:
        question_time, question = parse_time(user.get("timestamp")), text_of(user.get("value"))
    else:
        question_time = parse_time(root.get("question_time"))
        question = text_of(root.get("question_text"))
    knowledge = text_of(root.get("inferred_knowledge")).strip()
    if knowledge:
        question = f"{knowledge}\n\n{question}".strip()
    found = []
    for number, e in enumerate(entries):
        place = f"conversations[{number}]"
        if not isinstance(e, dict):
            _drop(dropped, place, f"is {_kind(e)}, not an object")
            continue
        if e.get("from") != "assistant":
            if e is not user:
                _drop(
                    dropped, place, f"is from {e.get('from')!r}, neither the question nor an answer"
                )
            continue
        t = parse_time(e.get("timestamp"))
        if t is None:
            _drop(dropped, place, f"timestamp {e.get('timestamp')!r} is no time")
            continue
        found.append(
            (t, text_of(e.get("value")), text_of(e.get("label")), parse_bool(e.get("interrupted")))
        )
    return question_time, question, found


def build_slots(
    root: Any, scene_type: str, tail: float, dropped: list[Dropped] | None = None
) -> list[Slot]:
    """Slots of one annotation (rule 4).

    Args:
        root: the annotation as read from JSON.
        scene_type: ``multi_turn``, ``nested`` or ``1QnA``.
        tail: seconds after ``t_a`` for a slot that nothing follows.
        dropped: if given, entries that are dropped are added to it.

    Raises:
        UnusableAnnotation: the sample cannot be scored.
    """
    if scene_type == "multi_turn":
        return _multi_turn(read_rows(root, dropped), tail)
    if scene_type == "1QnA":
        return _one_to_many(read_1qna(root, dropped), tail)
    if scene_type == "nested":
        return _nested(read_rows(root, dropped), tail, dropped)
    known = ", ".join(SCENE_TYPES)
    raise UnusableAnnotation(f"scene type {scene_type!r} is unknown; there are {known}")


def _multi_turn(rows: list[Row], tail: float) -> list[Slot]:
    slots = []
    for i, r in enumerate(rows):
        last = i + 1 == len(rows)
        if last:
            t_end = end_of_last(r.question_time, r.answer_time, tail)
        else:
            t_end = max(rows[i + 1].question_time, r.question_time)
        slots.append(_from_row(i + 1, r, t_end, last, turn=i + 1))
    return slots


def _one_to_many(annotation: Answers, tail: float) -> list[Slot]:
    slots = []
    answers = annotation.answers
    for i, (t_a, answer, label, interrupted) in enumerate(answers):
        t_start = annotation.question_time if i == 0 else t_a
        last = i + 1 == len(answers)
        t_end = end_of_last(t_start, t_a, tail) if last else max(answers[i + 1][0], t_start)
        slots.append(
            Slot(
                slot_id=i + 1,
                t_start=t_start,
                t_a=t_a,
                t_end=t_end,
                open_ended=last,
                boundary="soft",
                question_type=label.strip().lower() or "step",
                interrupted=interrupted,
                question=annotation.question,
                answer=answer,
                turn=1,
                step=i + 1,
                label=label,
            )
        )
    return slots


def _nested(rows: list[Row], tail: float, dropped: list[Dropped] | None) -> list[Slot]:
    if len(rows) < 2:
        raise UnusableAnnotation(f"a nested sample needs two rows at least, found {len(rows)}")
    pairs = []
    i = 0
    while i < len(rows):
        outer = rows[i]
        inner_at = next(
            (
                j
                for j in range(i + 1, len(rows))
                if outer.question_time < rows[j].question_time < outer.answer_time
                and rows[j].answer_time <= outer.answer_time
            ),
            None,
        )
        if inner_at is None:
            raise UnusableAnnotation(
                f"nested: the row asked at {outer.question_time:g} s and answered at "
                f"{outer.answer_time:g} s has no inner row "
                "(asked and answered before its own answer)"
            )
        for skipped in rows[i + 1 : inner_at]:
            _drop(
                dropped,
                f"row asked at {skipped.question_time:g} s",
                "lies between an outer row and its inner row",
            )
        pairs.append((outer, rows[inner_at]))
        i = inner_at + 1
    slots = []
    for k, (outer, inner) in enumerate(pairs):
        last = k + 1 == len(pairs)
        if last:
            t_end = end_of_last(outer.question_time, outer.answer_time, tail)
        else:
            t_end = max(pairs[k + 1][0].question_time, outer.answer_time)
        number = k + 1
        slots.append(
            _from_row(2 * k + 1, outer, t_end, last, turn=number, pair=number, role="outer")
        )
        slots.append(
            _from_row(
                2 * k + 2, inner, outer.answer_time, False, turn=number, pair=number, role="inner"
            )
        )
    return slots


def _from_row(
    slot_id: int,
    row: Row,
    t_end: float,
    open_ended: bool,
    turn: int,
    pair: int | None = None,
    role: str | None = None,
) -> Slot:
    return Slot(
        slot_id=slot_id,
        t_start=row.question_time,
        t_a=row.answer_time,
        t_end=t_end,
        open_ended=open_ended,
        boundary="hard",
        question_type=row.question_type,
        interrupted=row.interrupted,
        question=row.question,
        answer=row.answer,
        turn=turn,
        pair=pair,
        role=role,
    )


def _drop(dropped: list[Dropped] | None, place: str, reason: str) -> None:
    if dropped is not None:
        dropped.append(Dropped(place, reason))


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", type(None): "null", bool: "a boolean"}
    return names.get(type(value), "a number")
