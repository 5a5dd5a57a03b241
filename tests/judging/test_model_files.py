"""Which model answers: digests of a folder, revisions of the hub; what is missing is named."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from omnijudge.config import JudgeConfig
from omnijudge.errors import ResourceError
from omnijudge.judging.engines import engine_identity, relevant_options
from omnijudge.judging.engines.model_files import combined_digest, file_digests

SHA = "0123456789abcdef0123456789abcdef01234567"


def safetensors(payload: bytes) -> bytes:
    header = json.dumps(
        {"w": {"dtype": "U8", "shape": [len(payload)], "data_offsets": [0, len(payload)]}}
    ).encode()
    return len(header).to_bytes(8, "little") + header + payload


def model_folder(folder: Path, payload: bytes = b"weights") -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "qwen2"}', encoding="utf-8")
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    (folder / "chat_template.jinja").write_text("{{ messages }}", encoding="utf-8")
    (folder / "model.safetensors").write_bytes(safetensors(payload))
    (folder / "README.md").write_text("A model.", encoding="utf-8")
    return folder


def judge(model: Path | str, **settings: Any) -> JudgeConfig:
    return JudgeConfig(engine="vllm", model=str(model), **settings)


def text(model: Path | str, **settings: Any) -> str:
    return engine_identity(judge(model, **settings), "omniinteract").text


def test_identity_ignores_the_name_of_the_folder_and_its_readme(tmp_path: Path) -> None:
    one = model_folder(tmp_path / "one")
    other = model_folder(tmp_path / "elsewhere" / "二")
    (other / "README.md").write_text("Other words.", encoding="utf-8")
    (other / "optimizer.pt").write_bytes(b"x")
    assert text(one) == text(other)


@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer.json", "chat_template.jinja", "model.safetensors"]
)
def test_identity_changes_with_every_file_that_matters(tmp_path: Path, name: str) -> None:
    folder = model_folder(tmp_path / "m")
    before = text(folder)
    if name == "model.safetensors":  # same size: weights swapped in place
        (folder / name).write_bytes(safetensors(b"weighty"))
    else:
        (folder / name).write_text("[]", encoding="utf-8")
    assert text(folder) != before


def test_digests_are_the_files_own(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "m")
    digests = file_digests(folder)
    assert set(digests) == {
        "config.json",
        "tokenizer.json",
        "chat_template.jinja",
        "model.safetensors",
    }
    content = (folder / "model.safetensors").read_bytes()
    assert digests["model.safetensors"] == hashlib.sha256(content).hexdigest()
    swapped = {**digests, "a": digests["config.json"]}
    assert combined_digest(swapped) != combined_digest(digests)


def test_options_that_change_answers_enter_the_identity_and_others_do_not(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "m")
    plain = text(folder)
    speed = {"gpu_memory_utilization": 0.5, "tensor_parallel_size": 2, "max_num_seqs": 4}
    assert text(folder, engine_options=speed) == plain
    assert text(folder, engine_options={"quantization": "fp8"}) != plain
    assert text(folder, engine_options={"a": 1, "b": 2}) == text(
        folder, engine_options={"b": 2, "a": 1}
    )
    options = {"dtype": "bfloat16", "max_num_seqs": 4, "max_model_len": 8192}
    assert relevant_options(judge(folder, engine_options=options)) == {
        "dtype": "bfloat16",
        "max_model_len": 8192,
    }


def test_chat_template_from_a_file_counts_by_its_text(tmp_path: Path) -> None:
    for name in ("a.jinja", "b.jinja"):
        (tmp_path / name).write_text("{{ messages }}!", encoding="utf-8")
    a, b = (
        relevant_options(judge("m", engine_options={"chat_template": str(tmp_path / n)}))
        for n in ("a.jinja", "b.jinja")
    )
    assert a == b == {"chat_template": "{{ messages }}!"}


def test_stated_identity_is_not_taken_over_the_files(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "m")
    identity = engine_identity(judge(folder, identity="gold"), "omniinteract")
    assert identity.text == text(folder)
    assert "identity is not used" in identity.warnings[0]


def broken(folder: Path, fault: str) -> None:
    weights = folder / "model.safetensors"
    if fault == "no config":
        (folder / "config.json").unlink()
    elif fault == "no tokenizer":
        (folder / "tokenizer.json").unlink()
    elif fault == "no weights":
        weights.unlink()
    elif fault == "empty":
        weights.write_bytes(b"")
    elif fault == "pointer":
        weights.write_bytes(b"version https://git-lfs.example/spec/v1\n")
    elif fault == "short":
        weights.write_bytes(weights.read_bytes()[:-3])
    elif fault == "short header":
        weights.write_bytes(weights.read_bytes()[:20])
    elif fault == "garbage":
        weights.write_bytes((4).to_bytes(8, "little") + b"nope")
    elif fault == "shard":
        index = {"weight_map": {"w": "model.safetensors", "v": "model-2.safetensors"}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("no config", "has no config.json"),
        ("no tokenizer", "has no tokenizer file"),
        ("no weights", "holds no weights"),
        ("empty", "model.safetensors is empty"),
        ("pointer", "is a Git LFS pointer"),
        ("short", r"is cut short \(\d+ of \d+ bytes\)"),
        ("short header", "is cut short"),
        ("garbage", "has no readable header"),
        ("shard", "model-2.safetensors is missing"),
    ],
)
def test_incomplete_folder_is_told_by_its_file(tmp_path: Path, fault: str, told: str) -> None:
    folder = model_folder(tmp_path / "m")
    broken(folder, fault)
    with pytest.raises(ResourceError, match=told) as caught:
        text(folder)
    assert str(caught.value).startswith("judge main: model: ")


def test_missing_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match="there is no folder"):
        text(tmp_path / "nothing")


class Hub:
    """A model hub that answers, or does not."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def __call__(self) -> Hub:
        return self

    def model_info(self, name: str, revision: str | None, timeout: float) -> SimpleNamespace:
        if self.error is not None:
            raise self.error
        return SimpleNamespace(sha=SHA)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty local cache of the hub."""
    constants = pytest.importorskip(
        "huggingface_hub.constants", reason="huggingface_hub is missing; it comes with vLLM"
    )
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def fill(cache: Path) -> Path:
    repository = cache / "models--someone--judge"
    snapshot = model_folder(repository / "snapshots" / SHA)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(SHA, encoding="utf-8")
    return snapshot


def test_hub_model_is_resolved_to_its_commit(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.HfApi", Hub())
    identity = engine_identity(judge("someone/judge"), "omniinteract")
    assert identity.text == f"someone/judge@{SHA}"
    assert identity.details["revision"] == SHA
    assert len(identity.warnings) == 1
    assert "is not pinned" in identity.warnings[0]
    assert engine_identity(judge("someone/judge", revision="v1.0"), "x").warnings == ()
    assert len(engine_identity(judge("someone/judge", revision="main"), "x").warnings) == 1


def test_full_commit_needs_no_hub(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.HfApi", Hub(AssertionError("asked")))
    identity = engine_identity(judge("someone/judge", revision=SHA), "omniinteract")
    assert (identity.text, identity.warnings) == (f"someone/judge@{SHA}", ())


def test_hub_out_of_reach_uses_the_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.HfApi", Hub(ConnectionError("no route")))
    with pytest.raises(ResourceError, match=r"cannot be reached.*not in the local cache"):
        text("someone/judge")
    fill(cache)
    assert text("someone/judge") == f"someone/judge@{SHA}"


def test_unknown_hub_model_is_told(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub.errors import HFValidationError

    monkeypatch.setattr("huggingface_hub.HfApi", Hub(HFValidationError("no")))
    with pytest.raises(ResourceError, match="neither a folder here nor a model on the hub"):
        text("someone/judge")
