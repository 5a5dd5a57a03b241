"""One transcript: what a system of some temper says to one annotation, and when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from math import inf, isfinite
from typing import Any

from omnijudge.benchmarks.omniinteract.slots import Slot, build_slots
from omnijudge.simulate.dice import Dice
from omnijudge.simulate.speech import Utterance, joined, say, seconds_to_say
from omnijudge.simulate.tempers import Temper
from omnijudge.simulate.wording import Phrases, contradict, lead, paraphrase, phrases_for

TAIL_SECONDS = 60.0
# A slot that stays open longer than this after the answer is due gives nothing to run into.
OVERRUN_WITHIN = 30.0
_REMARK_PAUSE = 4.0


def simulate_transcript(
    annotation: Any,
    scene_type: str,
    temper: Temper,
    seed_key: str,
    seed: int = 0,
    words: bool = False,
) -> dict[str, Any]:
    """A transcript in the benchmark's own form (OmniInteract rule 5).

    The annotation is read by the scorer's own rules (OmniInteract rules 3 and 4). The result
    depends on the arguments alone; ``words`` adds word times and changes nothing else.

    Args:
        annotation: the annotation as read from JSON.
        scene_type: ``multi_turn``, ``nested`` or ``1QnA``.
        temper: how the system behaves.
        seed_key: names the random stream, usually system and sample id.
        seed: seed of the whole simulation.
        words: whether every chunk gets ``aligned_words``.

    Returns:
        ``{"text": ..., "chunks": [{"text", "timestamp", "aligned_words"?}]}``, times in seconds.

    Raises:
        UnusableAnnotation: the annotation has no slots by the rules.
    """
    slots = build_slots(annotation, scene_type, TAIL_SECONDS)
    return transcript_of_slots(slots, temper, Dice(seed, seed_key), words)


def transcript_of_slots(
    slots: Sequence[Slot], temper: Temper, dice: Dice, words: bool
) -> dict[str, Any]:
    """As :func:`simulate_transcript`, from slots already built."""
    usable = [s for s in slots if all(map(isfinite, (s.t_start, s.t_a, s.t_end)))]
    utterances: list[Utterance] = []
    if usable:
        utterances += _opening_remark(usable[0], temper, dice)
    for slot in usable:
        phrases = phrases_for(slot.question + slot.answer)
        utterances += _before(slot, slots, temper, dice, phrases)
        utterances += _answer(slot, slots, temper, dice, phrases)
    chunks = say(utterances, words)
    return {"text": "".join(c["text"] for c in chunks), "chunks": chunks}


def _opening_remark(first: Slot, temper: Temper, dice: Dice) -> list[Utterance]:
    """Small talk before anybody has asked: it belongs to no slot."""
    talks, text = dice.chance(temper.chat), dice.pick(phrases_for(first.question).small_talk)
    if not talks or first.t_start < 3.0:
        return []
    return [Utterance(0.4, first.t_start - 1.0, first.t_start, text)]


def _before(
    slot: Slot, slots: Sequence[Slot], temper: Temper, dice: Dice, phrases: Phrases
) -> list[Utterance]:
    """Acknowledgement and guess, between the question and the moment the answer is due."""
    start = slot.t_start + dice.between(0.3, 0.9)
    nods, nod = dice.chance(temper.acknowledge), dice.pick(phrases.acknowledgements)
    guesses, guess = dice.chance(temper.guess), _guess(slot, slots, dice, phrases)
    due = min(slot.t_a, slot.t_end)
    said = []
    if nods:
        said.append(Utterance(start, due - 0.8, due, nod))
    if guesses:
        # A moment after the acknowledgement; if that is still going on, right after it.
        said.append(Utterance(start + 0.4, due - 0.4, slot.t_end, guess))
    return said


def _guess(slot: Slot, slots: Sequence[Slot], dice: Dice, phrases: Phrases) -> str:
    """Something of substance said too early: a wrong answer, or the steps still to come."""
    opening = dice.pick(phrases.guesses)
    if slot.step == 1 and len(slots) > 1:
        steps = [s.answer for s in slots[1:4] if s.answer]
        return joined((phrases.recital, *steps), phrases.chinese)
    return lead(opening, _wrong(slot, slots, dice, phrases))


def _answer(
    slot: Slot, slots: Sequence[Slot], temper: Temper, dice: Dice, phrases: Phrases
) -> list[Utterance]:
    """The answer with what follows it, ended where the slot ends or run on beyond."""
    start = slot.t_a + dice.between(*temper.delay)
    answers, errs = dice.chance(temper.answer), dice.chance(temper.wrong)
    opening, extras = dice.pick(phrases.lead_ins), dice.below(temper.extra + 1)
    fillers = _from(phrases.fillers, dice.below(len(phrases.fillers)))
    overruns = dice.chance(temper.overrun if slot.interrupted else temper.overrun_elsewhere)
    beyond = dice.between(*temper.overrun_seconds)
    remarks, remark = dice.chance(temper.chat), dice.pick(phrases.small_talk)
    told = _wrong(slot, slots, dice, phrases) if errs else slot.answer
    parts = [lead(opening, paraphrase(told, temper.keep, dice))]
    parts += islice(fillers, extras)
    if not answers:
        return []
    limit = slot.t_end
    if overruns and not slot.open_ended and slot.t_end - slot.t_a <= OVERRUN_WITHIN:
        limit = inf
        needed = slot.t_end + beyond - start
        spoken = sum(map(seconds_to_say, parts))
        while spoken <= needed:
            parts.append(next(fillers))
            spoken += seconds_to_say(parts[-1])
    text = joined(parts, phrases.chinese)
    said = [Utterance(start, slot.t_end, limit, text)]
    if remarks:
        later = start + seconds_to_say(text) + _REMARK_PAUSE
        said.append(Utterance(later, slot.t_end - 2.0, slot.t_end, remark))
    return said


def _from(items: Sequence[str], first: int) -> Iterator[str]:
    """The items round and round, from one of them on."""
    return cycle((*items[first:], *items[:first]))


def _wrong(slot: Slot, slots: Sequence[Slot], dice: Dice, phrases: Phrases) -> str:
    """A false answer: the facts changed, else another slot's answer, else a flat denial."""
    start, denial = dice.below(len(slots)), dice.pick(phrases.helpless)
    changed = contradict(slot.answer)
    if changed is not None:
        return changed
    for step in range(len(slots)):
        other = slots[(start + step) % len(slots)].answer
        if other.strip() and other != slot.answer:
            return other
    return denial
