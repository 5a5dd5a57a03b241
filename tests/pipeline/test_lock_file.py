"""The lock file: models resolved once, with network, and then the same everywhere without."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes.commands import call, manifest, rows
from fakes.folder_lexical import write_model

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "omnijudge" / "sample_data" / "omniinteract"
OLD, NEW = "a" * 40, "b" * 40

CONFIG = """
benchmark: omniinteract
data: {{root: {sample}/data}}
systems: {{attentive: {sample}/outputs/attentive}}
judge:
  engine: "fakes.hub_lexical:HubLexical"
  model: lab/judge
  engine_options: {{hub: {hub}}}
statistics: {{replicates: 200}}
store: store
output: run
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    hub = tmp_path / "hub.json"
    hub.write_text(json.dumps({"lab/judge": OLD, "lab/other": NEW}), encoding="utf-8")
    text = CONFIG.format(sample=SAMPLE, hub=hub)
    (tmp_path / "run.yaml").write_text(text, encoding="utf-8")
    return tmp_path


def test_written_with_network_read_without(folder: Path) -> None:
    _, errors = call(folder, "run", "run.yaml", "--dry-run", "--lock", "run.lock")
    assert "run.lock: written" in errors
    assert "not pinned" in errors
    locked = json.loads((folder / "run.lock").read_text(encoding="utf-8"))
    assert locked["judges"]["main"]["revision"] == OLD
    (folder / "hub.json").unlink()
    _, errors = call(folder, "run", "run.yaml", code=1)
    assert "cannot be reached" in errors
    _, errors = call(folder, "run", "run.yaml", "--lock", "run.lock")
    assert "not pinned" not in errors
    found = manifest(folder / "run")
    assert found["judges"]["main"]["identity"] == f"lab/judge@{OLD}"
    assert found["config"]["judge"]["revision"] == OLD


def test_a_lock_keeps_the_old_revision_when_the_hub_moves(folder: Path) -> None:
    call(folder, "run", "run.yaml", "--lock", "run.lock")
    first = [q["fingerprint"] for q in rows(folder / "run", "questions")]
    (folder / "hub.json").write_text(json.dumps({"lab/judge": NEW}), encoding="utf-8")
    call(folder, "run", "run.yaml", "--lock", "run.lock")
    assert [q["fingerprint"] for q in rows(folder / "run", "questions")] == first
    assert manifest(folder / "run")["counts"]["asked"] == 0
    # Without the lock it is another model, and the run refuses to mix the two.
    _, errors = call(folder, "run", "run.yaml", code=2)
    assert "judge.main.identity" in errors


def test_the_engine_loads_the_revision_that_was_resolved(folder: Path) -> None:
    """Resolved once, before the run: the engine does not look it up again."""
    call(folder, "run", "run.yaml", "-o", f"judge.revision={OLD}", "-o", "judge.model=lab/other")
    assert manifest(folder / "run")["judges"]["main"]["identity"] == f"lab/other@{OLD}"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("-o", "judge.model=lab/other"), "holds model lab/judge"),
        (("-o", f"judge.revision={NEW}"), f"names {NEW}"),
        (("-o", "judge.name=second"), "knows no judge 'second'"),
        (("-o", "judge.engine=lexical"), "is not the locked one"),
    ],
)
def test_a_lock_for_something_else_is_refused(
    change: tuple[str, str], words: str, folder: Path
) -> None:
    call(folder, "run", "run.yaml", "--dry-run", "--lock", "run.lock")
    _, errors = call(folder, "run", "run.yaml", "--lock", "run.lock", *change, code=2)
    assert words in errors
    assert "run.lock" in errors


@pytest.mark.parametrize("text", ["[1]", '{"judges": {"main": {}}}'])
def test_what_is_no_lock_file(text: str, folder: Path) -> None:
    (folder / "run.lock").write_text(text, encoding="utf-8")
    _, errors = call(folder, "run", "run.yaml", "--lock", "run.lock", code=2)
    assert "is no lock file" in errors


def test_other_weights_in_a_folder_are_told_from_the_locked_ones(folder: Path) -> None:
    """Folders have no revision; the lock knows them by the digests of their files."""
    model = folder / "model"
    write_model(model, b"1")
    engine = "judge.engine=fakes.folder_lexical:FolderLexical"
    words = ("-o", engine, "-o", f"judge.model={model}", "-o", "judge.engine_options={}")
    call(folder, "run", "run.yaml", "--dry-run", "--lock", "run.lock", *words)
    call(folder, "run", "run.yaml", "--dry-run", "--lock", "run.lock", *words)
    write_model(model, b"2")
    _, errors = call(folder, "run", "run.yaml", "--dry-run", "--lock", "run.lock", *words, code=2)
    assert "is not the locked one" in errors
