"""Which systems are compared, and with whom."""

from __future__ import annotations

from collections.abc import Sequence

from omnijudge.controls import is_control
from omnijudge.errors import ConfigError


def compared_systems(systems: Sequence[str]) -> list[str]:
    """The systems under test: all but controls, in their order."""
    return [s for s in systems if not is_control(s)]


def choose_baseline(named: str | None, systems: Sequence[str]) -> str:
    """The system that the others are compared with.

    Without a name it is the first of the configuration: fixed before any result is known. The best
    one would be chosen for its luck, and every difference to it would be too large.

    Args:
        named: ``statistics.baseline``.
        systems: all rows of the run, controls included.

    Raises:
        ConfigError: there is no such system, or it is a control.
    """
    compared = compared_systems(systems)
    if named is None:
        return compared[0]
    if named not in compared:
        raise ConfigError(
            f"statistics.baseline: no system {named!r}; there are {', '.join(compared)}"
        )
    return named
