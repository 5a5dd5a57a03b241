"""What some tests need beyond the package itself, and what happens where it is missing.

``OMNIJUDGE_REQUIRE=engine,ray`` turns a skip into a failure: on machines that promise to have
something, nobody wants to learn by accident that it was never tested.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

WHAT = {
    "engine": ("vllm", "vLLM is not installed; run scripts/install_cpu_engine.sh"),
    "s3": ("moto", "moto is not installed; run pip install 'omnijudge[dev]'"),
    "ray": ("ray", "Ray is not installed; run pip install 'omnijudge[ray]'"),
}
"""Requirement -> (module that shows it, what is missing and how to get it)."""


def need(requirement: str) -> None:
    """Skips the test where a requirement is missing, or fails it where it was promised."""
    module, reason = WHAT[requirement]
    if find_spec(module) is not None:
        return
    promised = {r.strip() for r in os.environ.get("OMNIJUDGE_REQUIRE", "").split(",")}
    if requirement in promised:
        pytest.fail(f"OMNIJUDGE_REQUIRE names {requirement}, but {reason}")
    pytest.skip(reason)
