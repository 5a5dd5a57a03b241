"""Gates: conditions under which a command ends with exit code 4 (``--fail-if``).

Grammar::

    expression  = conjunction { "or" conjunction }
    conjunction = term { "and" term }
    term        = "not" term | "(" expression ")" | value op value
    op          = "<" | "<=" | ">" | ">=" | "==" | "!="
    value       = number | metric/group | function "(" argument { "," argument } ")"
    argument    = system | metric/group

Names are written as they are (letters, digits and ``_ . : @ + -``) or in quotes. A bare
``metric/group`` stands for the value of every system in turn: a comparison with one holds as soon
as one system makes it hold. Functions name their systems:

* of one system: ``value``, ``low``, ``high``, ``coverage``, ``unscored``, ``rank``, ``rank_low``,
  ``rank_high``: ``low(mine, ia_qtf1/all) < 0.4``;
* of two, the first less the second: ``difference``, ``difference_low``, ``difference_high``, ``p``,
  ``p_adjusted``: ``difference(mine, aura, ia_qtf1/all) < 0``.

A value that is undefined makes a comparison undefined; a gate that is undefined in the end fails,
because it has not been passed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol

from omnijudge.errors import ConfigError

OF_ONE = ("value", "low", "high", "coverage", "unscored", "rank", "rank_low", "rank_high")
OF_TWO = ("difference", "difference_low", "difference_high", "p", "p_adjusted")

_TOKEN = re.compile(
    r"\s*(?:(?P<op><=|>=|==|!=|<|>)|(?P<mark>[(),/])"
    r"|(?P<quoted>\"[^\"]*\"|'[^']*')|(?P<word>[\w.:@+-]+))"
)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


class Numbers(Protocol):
    """Where a gate gets its numbers from."""

    systems: Sequence[str]

    def number(
        self, function: str, systems: Sequence[str], metric: str, group: str
    ) -> float | None:
        """A function of one or two systems and a metric; None where it is undefined.

        Raises:
            ConfigError: there is no such system or metric.
        """
        ...


@dataclass(frozen=True, slots=True)
class Value:
    """A number in a gate.

    Attributes:
        text: as written.
        constant: the number, if it is one.
        function: what it is a function of, if it is none.
        systems: named systems; empty for a value of every system.
        metric: metric name.
        group: group name.
    """

    text: str
    constant: float | None = None
    function: str = "value"
    systems: tuple[str, ...] = ()
    metric: str = ""
    group: str = ""

    @property
    def of_every_system(self) -> bool:
        """Whether it stands for every system in turn."""
        return self.constant is None and not self.systems

    def number(self, numbers: Numbers, system: str | None) -> float | None:
        """Its value, for one system if it is about every system."""
        if self.constant is not None:
            return self.constant
        systems = self.systems or ((system,) if system is not None else ())
        return numbers.number(self.function, systems, self.metric, self.group)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a gate.

    Attributes:
        holds: whether its condition holds; None if that is undefined.
        because: the comparisons behind it, with numbers.
    """

    holds: bool | None
    because: tuple[str, ...]

    @property
    def failed(self) -> bool:
        """Whether the gate has failed: its condition holds, or nobody knows."""
        return self.holds is not False


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison of two values."""

    left: Value
    op: str
    right: Value

    def outcome(self, numbers: Numbers) -> Outcome:
        """Whether it holds, for any system if it is about every one."""
        every = self.left.of_every_system or self.right.of_every_system
        states: list[bool | None] = []
        said: dict[bool | None, list[str]] = {True: [], False: [], None: []}
        for system in numbers.systems if every else (None,):
            a, b = (v.number(numbers, system) for v in (self.left, self.right))
            state = None if a is None or b is None else _OPERATORS[self.op](a, b)
            states.append(state)
            who = f"{system}: " if system is not None else ""
            said[state].append(f"{who}{_shown(self.left, a)} {self.op} {_shown(self.right, b)}")
        holds = _any(states)
        if holds is False:
            return Outcome(False, ())
        return Outcome(holds, tuple(said[holds]))


@dataclass(frozen=True, slots=True)
class Join:
    """Several conditions joined by ``and`` or ``or``."""

    word: str
    parts: tuple[Condition, ...]

    def outcome(self, numbers: Numbers) -> Outcome:
        """Three-valued: undefined only where the defined parts do not decide."""
        found = [p.outcome(numbers) for p in self.parts]
        states = [o.holds for o in found]
        holds = _any(states) if self.word == "or" else _all(states)
        return Outcome(holds, tuple(line for o in found if o.failed for line in o.because))


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a condition."""

    part: Condition

    def outcome(self, numbers: Numbers) -> Outcome:
        """True for false and false for true."""
        found = self.part.outcome(numbers)
        if found.holds is None:
            return found
        return Outcome(not found.holds, ("the condition behind `not` does not hold",))


Condition = Compare | Join | Not


def _any(states: Sequence[bool | None]) -> bool | None:
    if True in states:
        return True
    return None if None in states else False


def _all(states: Sequence[bool | None]) -> bool | None:
    if False in states:
        return False
    return None if None in states else True


def _shown(value: Value, number: float | None) -> str:
    if value.constant is not None:
        return value.text
    return f"{value.text} is undefined" if number is None else f"{value.text} = {number:.6g}"


def parse_gate(text: str) -> Condition:
    """Reads a gate.

    Raises:
        ConfigError: it does not follow the grammar; the place is named.
    """
    parser = _Parser(text)
    condition = parser.expression()
    if parser.kind is not None:
        parser.wrong("`and`, `or` or the end")
    return condition


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = self._split()
        self.kind: str | None = None
        self.token = ""
        self.place = 0
        self._next()

    def _split(self) -> Iterator[tuple[str, str, int]]:
        at = 0
        while self.text[at:].strip():
            found = _TOKEN.match(self.text, at)
            if found is None:
                at += len(self.text[at:]) - len(self.text[at:].lstrip())
                self._raise(at, f"{self.text[at]!r} cannot stand here; put names in quotes")
            kind = str(found.lastgroup)
            yield kind, found[kind], found.start(kind)
            at = found.end()

    def _next(self) -> str:
        before = self.token
        self.kind, self.token, self.place = next(self._tokens, (None, "", len(self.text)))
        return before

    def _raise(self, at: int, message: str) -> NoReturn:
        raise ConfigError(f"--fail-if {self.text}: at character {at + 1}: {message}")

    def wrong(self, wanted: str) -> NoReturn:
        found = repr(self.token) if self.kind is not None else "the end"
        self._raise(self.place, f"expected {wanted}, found {found}")

    def _take(self, mark: str) -> None:
        if (self.kind, self.token) != ("mark", mark):
            self.wrong(repr(mark))
        self._next()

    def _is_word(self, word: str) -> bool:
        return self.kind == "word" and self.token == word

    def expression(self) -> Condition:
        return self._joined("or", lambda: self._joined("and", self._term))

    def _joined(self, word: str, part: Callable[[], Condition]) -> Condition:
        parts = [part()]
        while self._is_word(word):
            self._next()
            parts.append(part())
        return parts[0] if len(parts) == 1 else Join(word, tuple(parts))

    def _term(self) -> Condition:
        if self._is_word("not"):
            self._next()
            return Not(self._term())
        if (self.kind, self.token) == ("mark", "("):
            self._next()
            inner = self.expression()
            self._take(")")
            return inner
        left = self._value()
        if self.kind != "op":
            self.wrong("a comparison such as <")
        op = self._next()
        return Compare(left, op, self._value())

    def _value(self) -> Value:
        start = self.place
        if self.kind == "word" and _NUMBER.fullmatch(self.token):
            text = self._next()
            return Value(text, constant=float(text))
        name = self._name("a number, metric/group or a function")
        if (self.kind, self.token) == ("mark", "("):
            return self._call(name, start)
        group = self._group()
        return Value(f"{name}/{group}", metric=name, group=group)

    def _call(self, function: str, start: int) -> Value:
        if function not in (*OF_ONE, *OF_TWO):
            known = ", ".join((*OF_ONE, *OF_TWO))
            self._raise(start, f"there is no function {function!r}; there are {known}")
        self._take("(")
        systems = []
        for _ in range(1 if function in OF_ONE else 2):
            systems.append(self._name("the name of a system"))
            self._take(",")
        metric = self._name("metric/group")
        group = self._group()
        self._take(")")
        text = f"{function}({', '.join((*systems, f'{metric}/{group}'))})"
        return Value(text, None, function, tuple(systems), metric, group)

    def _group(self) -> str:
        self._take("/")
        return self._name("the name of a group")

    def _name(self, wanted: str) -> str:
        if self.kind == "quoted":
            return self._next()[1:-1]
        if self.kind != "word" or self.token in ("and", "or", "not"):
            self.wrong(wanted)
        return self._next()
