"""How a simulated system behaves: one row of numbers per temper."""

from __future__ import annotations

from dataclasses import dataclass

from omnijudge.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Temper:
    """A manner of answering. Chances are in 0..1, times in seconds.

    Attributes:
        name: as written on the command line.
        acknowledge: chance of a short word right after the question.
        guess: chance of saying something of substance before the answer is due.
        answer: chance of answering at all.
        delay: least and greatest time from the moment an answer is due to its first word.
        keep: chance that a word of the annotated answer survives; small words go sooner.
        wrong: chance that the answer is false: facts changed, or another question's answer.
        extra: greatest number of needless sentences after an answer.
        chat: chance, per slot, of a remark nobody asked for.
        overrun: chance of talking on beyond the end of an interrupted slot.
        overrun_elsewhere: the same for slots that are not interrupted.
        overrun_seconds: least and greatest time it talks on. A system that does not overrun falls
            silent exactly where its slot ends.
    """

    name: str
    acknowledge: float = 0.0
    guess: float = 0.0
    answer: float = 0.0
    delay: tuple[float, float] = (0.2, 1.2)
    keep: float = 0.9
    wrong: float = 0.0
    extra: int = 0
    chat: float = 0.0
    overrun: float = 0.0
    overrun_elsewhere: float = 0.0
    overrun_seconds: tuple[float, float] = (1.0, 4.0)


TEMPERS = {
    temper.name: temper
    for temper in (
        Temper("punctual", acknowledge=0.8, answer=0.96, keep=0.92, wrong=0.04),
        Temper("late", acknowledge=0.3, answer=0.9, delay=(5.0, 14.0), keep=0.85, wrong=0.08),
        Temper(
            "talkative",
            acknowledge=0.9,
            guess=0.35,
            answer=0.92,
            delay=(0.1, 2.0),
            keep=0.85,
            wrong=0.15,
            extra=2,
            chat=0.5,
            overrun=0.6,
            overrun_elsewhere=0.15,
        ),
        Temper(
            "hallucinating",
            acknowledge=0.4,
            guess=0.8,
            answer=0.92,
            delay=(0.1, 2.0),
            keep=0.85,
            wrong=0.65,
        ),
        Temper("silent"),
        Temper(
            "spilling",
            acknowledge=0.6,
            guess=0.1,
            answer=1.0,
            keep=0.88,
            wrong=0.08,
            overrun=1.0,
            overrun_elsewhere=0.4,
        ),
    )
}
"""The tempers there are, by name. A new one is a new row."""


def temper_named(name: str) -> Temper:
    """The temper of that name.

    Raises:
        ConfigError: there is none; the message lists those there are.
    """
    if name in TEMPERS:
        return TEMPERS[name]
    raise ConfigError(f"temper {name!r} is unknown; there are {', '.join(TEMPERS)}")
