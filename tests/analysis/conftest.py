from __future__ import annotations

from pathlib import Path

import pytest
from fakes.sample_runs import changed, make_run, replay_rows, write_rows


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("analysis")


@pytest.fixture(scope="session")
def lexical(work: Path) -> Path:
    """OmniInteract's sample data under the smoke judge."""
    return make_run(work, "lexical")


@pytest.fixture(scope="session")
def incomplete(work: Path, lexical: Path) -> Path:
    """The same with some answers of each system lost."""
    rows = replay_rows(lexical)
    kept = [r for i, r in enumerate(rows) if i % 29 and i % 31]
    write_rows(work / "incomplete.jsonl", kept)
    judge = "{engine: replay, answers: incomplete.jsonl}"
    return make_run(work, "incomplete", code=3, judge=judge)


@pytest.fixture(scope="session")
def lenient(work: Path, lexical: Path) -> Path:
    """The answers of a kinder judge."""

    def kinder(row: dict, answer: dict, dice: object) -> None:
        if row["stage"] == "core":
            answer["score"] = min(1.0, answer["score"] + 0.3)

    return write_rows(work / "lenient.jsonl", changed(replay_rows(lexical), kinder))
