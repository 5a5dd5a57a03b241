"""Benchmarks: one package each, found by name; others come through entry points."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnijudge.errors import ConfigError

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Benchmark

BUILT_IN = {
    "omniinteract": "omnijudge.benchmarks.omniinteract:benchmark",
    "omni_interactscope": "omnijudge.benchmarks.omni_interactscope:benchmark",
    "omni_duplexeval": "omnijudge.benchmarks.omni_duplexeval:benchmark",
}


def available() -> dict[str, str]:
    """Name -> import path of every benchmark, those of installed plug-ins included."""
    from importlib.metadata import entry_points

    found = {e.name: e.value for e in entry_points(group="omnijudge.benchmarks")}
    return {**found, **BUILT_IN}


def get_benchmark(name: str) -> Benchmark:
    """Loads a benchmark by its name.

    Raises:
        ConfigError: no benchmark of that name is built in or installed, or an installed one cannot
            be imported.
    """
    from importlib import import_module

    paths = available()
    if name not in paths:
        raise ConfigError(
            f"benchmark: {name!r} is unknown; there are {', '.join(sorted(paths))}, and those of "
            "installed plug-ins"
        )
    module, _, attribute = paths[name].partition(":")
    try:
        loaded: Benchmark = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as e:
        raise ConfigError(
            f"benchmark: {name!r} is installed as {paths[name]} and cannot be imported ({e}); "
            "install its package again, or take it out"
        ) from e
    return loaded
