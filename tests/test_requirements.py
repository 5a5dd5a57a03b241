"""A promised requirement that is missing fails; one that was not promised skips with a reason."""

from __future__ import annotations

from typing import Any

import pytest
import requirements


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(name: str) -> Any:
        return None

    monkeypatch.setattr(requirements, "find_spec", find_nothing)


@pytest.mark.usefixtures("missing")
@pytest.mark.parametrize("requirement", ["engine", "ray"])
def test_missing_requirement(requirement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIJUDGE_REQUIRE", "")
    with pytest.raises(pytest.skip.Exception, match="run "):
        requirements.need(requirement)
    monkeypatch.setenv("OMNIJUDGE_REQUIRE", "engine, ray")
    with pytest.raises(pytest.fail.Exception, match=f"names {requirement}, but"):
        requirements.need(requirement)


def test_what_is_there_is_not_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "find_spec", lambda name: object())
    requirements.need("engine")
