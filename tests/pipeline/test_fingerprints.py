"""What makes a question another one, through the pipeline: model, settings, prompts; no address."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from fakes.folder_lexical import write_model

import omnijudge
from omnijudge.benchmarks import get_benchmark
from omnijudge.config import RunConfig
from omnijudge.errors import ConfigError
from omnijudge.pipeline import RunFlags

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "omnijudge" / "sample_data" / "omniinteract"


@pytest.fixture(autouse=True)
def no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnijudge.report.html.write_report", lambda folder: folder)


class Lab:
    """Runs one configuration again and again, always with the same store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = 0
        self.model = folder / "model"
        write_model(self.model, b"1")

    def judge(self, output: str | None = None, **changes: Any) -> omnijudge.Run:
        self.runs += 1
        judge = {
            "engine": "fakes.folder_lexical:FolderLexical",
            "model": str(self.model),
            **changes,
        }
        config = {
            "benchmark": "omniinteract",
            "data": {"root": str(SAMPLE / "data")},
            "systems": {"attentive": str(SAMPLE / "outputs" / "attentive")},
            "judge": judge,
            "statistics": {"replicates": 50},
            "store": str(self.folder / "store"),
            "output": str(self.folder / (output or f"run-{self.runs}")),
        }
        return omnijudge.run(RunConfig.model_validate(config), flags=RunFlags(quiet=True))


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def prints(run: omnijudge.Run) -> dict[tuple[str, str, str], str]:
    table = run.table("questions")
    keys = zip(*(table[n].to_pylist() for n in ("sample_id", "unit_id", "stage")), strict=True)
    return dict(zip(keys, table["fingerprint"].to_pylist(), strict=True))


def asked(run: omnijudge.Run) -> int:
    return int(run.manifest["counts"]["asked"])


def test_the_same_again_asks_nothing(lab: Lab) -> None:
    first, second = lab.judge(), lab.judge()
    assert asked(first) > 0
    assert asked(second) == 0
    assert prints(first) == prints(second)


def test_weights_swapped_behind_one_folder_name_reuse_nothing(lab: Lab) -> None:
    first = lab.judge()
    write_model(lab.model, b"2")
    second = lab.judge()
    assert asked(second) == asked(first)
    assert not set(prints(first).values()) & set(prints(second).values())
    with pytest.raises(ConfigError, match=r"judge\.main\.identity changed"):
        lab.judge("run-1")
    # The old weights are back: so are their answers, whatever the folder is called.
    write_model(lab.model, b"1")
    lab.model.rename(lab.folder / "moved")
    third = lab.judge(model=str(lab.folder / "moved"))
    assert asked(third) == 0
    assert prints(third) == prints(first)
    lab.judge("run-1", model=str(lab.folder / "moved"))


@pytest.mark.parametrize(
    "change",
    [
        {"sampling": {"temperature": 0.7}},
        {"sampling": {"seed": 1}},
        {"sampling": {"max_tokens": 300}},
        {"thinking": {"budget": 512}},
        {"rationale": "none"},
        {"name": "other"},
        {"engine_options": {"dtype": "float32"}},
        {"engine_options": {"max_model_len": 4096}},
        {"chat_template_kwargs": {"terse": True}},
    ],
    ids=str,
)
def test_what_can_change_an_answer_changes_every_fingerprint(
    change: dict[str, Any], lab: Lab
) -> None:
    first, second = lab.judge(), lab.judge(**change)
    assert asked(second) == asked(first)
    assert prints(first).keys() == prints(second).keys()
    assert not set(prints(first).values()) & set(prints(second).values())


def test_one_thinking_budget_is_not_another(lab: Lab) -> None:
    first, second = (lab.judge(thinking={"budget": n}) for n in (512, 513))
    assert not set(prints(first).values()) & set(prints(second).values())


def test_one_revision_is_not_another(lab: Lab) -> None:
    hub = {"engine": "fakes.hub_lexical:HubLexical", "model": "lab/judge"}
    first, again, second = (lab.judge(**hub, revision=c * 40) for c in "aab")
    assert prints(first) == prints(again)
    assert not set(prints(first).values()) & set(prints(second).values())


@pytest.mark.parametrize(
    "change",
    [
        {"concurrency": 7},
        {"timeout": 5.0},
        {"base_url": "http://127.0.0.1:8001/v1"},
        {"api_key_env": "OTHER_KEY"},
        {"price": {"input": 3.0}},
        {"attempts": 2},
        {"parsing": "published"},
        {"engine_options": {"gpu_memory_utilization": 0.5, "tensor_parallel_size": 2}},
    ],
    ids=str,
)
def test_what_cannot_change_an_answer_changes_no_fingerprint(
    change: dict[str, Any], lab: Lab
) -> None:
    first, second = lab.judge(), lab.judge(**change)
    assert prints(first) == prints(second)
    assert asked(second) == 0


def test_one_character_of_a_template_changes_what_it_renders_and_nothing_else(lab: Lab) -> None:
    pack = lab.folder / "pack"
    shutil.copytree(get_benchmark("omniinteract").pack, pack)
    first = lab.judge(prompts=str(pack))
    template = pack / "core.zh.jinja"
    text = template.read_text(encoding="utf-8")
    assert "。" in text
    template.write_text(text.replace("。", "！", 1), encoding="utf-8")
    second = lab.judge(prompts=str(pack))
    old, new = prints(first), prints(second)
    units = first.units
    language = dict(zip(units["sample_id"].to_pylist(), units["language"].to_pylist(), strict=True))
    changed = {key for key in old if old[key] != new[key]}
    rendered = {key for key in old if key[2] == "core" and language[key[0]] == "zh"}
    assert changed == rendered
    assert 0 < len(rendered) < len(old)
    assert asked(second) == len({new[key] for key in rendered})
