"""Engines by name: what answers the questions.

Built in are ``vllm``, ``openai``, ``lexical`` and ``replay``; installed packages add more through
the entry-point group ``omnijudge.engines``, and a name with a colon is the import path of a class
(``my_package.judges:MyEngine``).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from omnijudge.errors import ConfigError

if TYPE_CHECKING:
    from omnijudge.config import JudgeConfig
    from omnijudge.judging.types import Engine, Identity

__all__ = ["available", "engine_identity", "open_engine", "relevant_options"]

BUILT_IN = {
    "vllm": "omnijudge.judging.engines.vllm:VllmEngine",
    "openai": "omnijudge.judging.engines.openai:OpenAIEngine",
    "lexical": "omnijudge.judging.engines.lexical:LexicalEngine",
}

REPLAY = "replay"
"""Answers from a file, keyed by row. The pipeline reads the file itself; no engine is opened."""


def available() -> dict[str, str]:
    """Name -> import path of every engine that can be opened, installed plug-ins included."""
    from importlib.metadata import entry_points

    found = {e.name: e.value for e in entry_points(group="omnijudge.engines")}
    return {**found, **BUILT_IN}


def open_engine(judge: JudgeConfig, benchmark_name: str) -> Engine:
    """Opens the engine of a judge: loads its model, or gets ready to ask its server.

    Args:
        judge: the judge's configuration.
        benchmark_name: benchmark whose questions it will answer. Engines without a model need it.

    Raises:
        ConfigError: the engine is unknown, cannot be imported, or its settings do not fit.
        ResourceError: something the engine needs (package, model, GPU, server) is not there.
    """
    if judge.engine == REPLAY:
        raise ConfigError(
            f"judge {judge.name}: engine replay reads its answers from a file and asks nobody, "
            "so there is no engine to open"
        )
    engine: Engine = _engine_class(judge)(judge, benchmark_name)
    return engine


def engine_identity(judge: JudgeConfig, benchmark_name: str) -> Identity:
    """Says which model answers, without loading it.

    Args:
        judge: the judge's configuration.
        benchmark_name: benchmark whose questions it will answer.

    Raises:
        ConfigError: the engine is unknown, cannot be imported, or its settings do not fit.
        ResourceError: the model cannot be found or its revision cannot be resolved.
    """
    from omnijudge.judging.types import Identity

    if judge.engine == REPLAY:
        # Whose answers they are is not in the file; the configuration may say it.
        return Identity(text=judge.identity or REPLAY)
    identity: Identity = _engine_class(judge).identity(judge)
    return identity


def relevant_options(judge: JudgeConfig) -> dict[str, Any]:
    """The judge's engine options that can change an answer, in sorted order.

    An engine class may offer a class method of the same name; without one every option counts.
    """
    if judge.engine == REPLAY:
        return {}
    choose = getattr(_engine_class(judge), "relevant_options", None)
    options: Mapping[str, Any] = judge.engine_options if choose is None else choose(judge)
    return {k: options[k] for k in sorted(options)}


def _engine_class(judge: JudgeConfig) -> Any:
    from importlib import import_module

    name, where = judge.engine, f"judge {judge.name}: engine"
    path = name if ":" in name else available().get(name)
    if path is None:
        known = sorted({*available(), REPLAY})
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        raise ConfigError(f"{where}: {name!r} is unknown; {hint}")
    module, _, attribute = path.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as e:
        raise ConfigError(
            f"{where}: {path!r} cannot be imported ({e}); write module:Class and see that the "
            "module is on the Python path"
        ) from e
    missing = [n for n in ("identity", "answer", "counters", "close") if not hasattr(found, n)]
    if missing:
        raise ConfigError(f"{where}: {path!r} is no engine; it lacks {', '.join(missing)}")
    return found
