"""The grammar of gates, and what becomes of values that are undefined."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from omnijudge.analysis.gates import parse_gate
from omnijudge.errors import ConfigError


class Literal:
    """Numbers by function and systems."""

    systems = ("mine", "aura")

    def __init__(self, **values: float | None) -> None:
        self.values = values

    def number(
        self, function: str, systems: Sequence[str], metric: str, group: str
    ) -> float | None:
        assert (metric, group) == ("m", "all")
        return self.values["_".join((function, *systems))]


NUMBERS = Literal(
    value_mine=0.5, value_aura=0.3, low_mine=0.4, difference_mine_aura=0.2, p_mine_aura=None
)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("m/all < 0.4", True),
        ("m/all < 0.3", False),
        ("0.4 > m/all", True),
        ("value(mine, m/all) >= 0.5", True),
        ("low(mine, m/all) == 4e-1", True),
        ("low(mine, m/all) != .4", False),
        ("difference('mine', \"aura\", m/all) > +0.1", True),
        ("not m/all < 0.4", False),
        ("not not m/all < 0.4", True),
        ("m/all < 0.1 or m/all > 0.4", True),
        ("m/all < 0.4 and m/all > 0.6", False),
        ("m/all < 0.1 and m/all < 0.4 or m/all < 0.4", True),
        ("m/all < 0.1 and (m/all < 0.4 or m/all < 0.4)", False),
        ("p(mine, aura, m/all) < 0.05", None),
        ("not p(mine, aura, m/all) < 0.05", None),
        ("p(mine, aura, m/all) < 0.05 or m/all < 0.4", True),
        ("p(mine, aura, m/all) < 0.05 and m/all < 0.4", None),
        ("p(mine, aura, m/all) < 0.05 and m/all < 0.1", False),
    ],
)
def test_conditions(text: str, holds: bool | None) -> None:
    outcome = parse_gate(text).outcome(NUMBERS)
    assert outcome.holds is holds
    assert outcome.failed == (holds is not False)


def test_reasons_name_the_systems() -> None:
    outcome = parse_gate("m/all < 0.4").outcome(NUMBERS)
    assert outcome.because == ("aura: m/all = 0.3 < 0.4",)


def test_one_undefined_system_among_good_ones() -> None:
    numbers = Literal(value_mine=None, value_aura=0.9)
    assert parse_gate("m/all < 0.4").outcome(numbers).holds is None
    assert parse_gate("m/all > 0.4").outcome(numbers).holds is True


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "at character 1: expected a number"),
        ("m < 1", "at character 3: expected '/'"),
        ("m/all", "expected a comparison"),
        ("m/all < ", "found the end"),
        ("m/all < 1 and", "found the end"),
        ("(m/all < 1", "expected ')'"),
        ("m/all < 1)", "found ')'"),
        ("m/all < 1 m/all", "expected `and`, `or` or the end"),
        ("best(mine, m/all) < 1", "there is no function 'best'"),
        ("p(mine, m/all) < 1", "expected ','"),
        ("m/all < 1 § 2", "'§' cannot stand here"),
        ("and < 1", "found 'and'"),
    ],
)
def test_what_is_no_gate(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as found:
        parse_gate(text)
    assert said in str(found.value)
