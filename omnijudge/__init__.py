"""omnijudge: batch judging and scoring of real-time omnimodal assistants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["OmnijudgeError", "Run", "RunConfig", "__version__", "agree", "open_run", "run"]

if TYPE_CHECKING:
    from omnijudge.api import Run, agree, open_run, run
    from omnijudge.config import RunConfig
    from omnijudge.errors import OmnijudgeError

# Importing omnijudge must stay cheap (the command line answers --help at once), so the public
# names are loaded when they are first used.
_HOMES = {
    "run": "omnijudge.api",
    "open_run": "omnijudge.api",
    "Run": "omnijudge.api",
    "agree": "omnijudge.api",
    "RunConfig": "omnijudge.config",
    "OmnijudgeError": "omnijudge.errors",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'omnijudge' has no attribute {name!r}")
