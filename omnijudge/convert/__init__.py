"""Annotations of other data sets, turned into a benchmark's own form.

A converter is a module with ``add_arguments(parser)`` and ``run(args) -> exit code``. It is
imported only when it is asked for, so that the command line stays quick.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module

CONVERTERS: dict[str, str] = {
    "captaincook4d": "omnijudge.convert.captaincook4d:run",
}
"""Name on the command line -> ``module:function`` that runs it."""

SUMMARIES: dict[str, str] = {
    "captaincook4d": "step annotations of CaptainCook4D -> 1QnA annotations of OmniInteract",
}
"""What each converter does, in a line."""


def load_converter(name: str) -> Callable[[argparse.Namespace], int]:
    """The function that runs a converter.

    Raises:
        ConfigError: there is no converter of that name.
    """
    if name not in CONVERTERS:
        from omnijudge.errors import ConfigError

        raise ConfigError(f"converter {name!r} is unknown; there are {', '.join(CONVERTERS)}")
    module, function = CONVERTERS[name].split(":")
    run: Callable[[argparse.Namespace], int] = getattr(import_module(module), function)
    return run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds ``NAME ...`` of ``omnijudge convert``."""
    names = parser.add_subparsers(dest="converter", metavar="NAME", required=True)
    for name, target in CONVERTERS.items():
        summary = SUMMARIES[name]
        one = names.add_parser(name, help=summary)
        import_module(target.split(":")[0]).add_arguments(one)
        one.description = one.description or summary


def run(args: argparse.Namespace) -> int:
    """Runs the converter that was named; returns the exit code."""
    return load_converter(args.converter)(args)
