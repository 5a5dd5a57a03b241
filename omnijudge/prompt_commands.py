"""``omnijudge prompts``: export a pack, check one, look at its questions."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omnijudge.benchmarks import get_benchmark
from omnijudge.benchmarks.base import Benchmark, Prompt
from omnijudge.errors import ConfigError
from omnijudge.judging.prompts import PACK_FILE, load_pack

SAMPLES = Path(__file__).parent / "sample_data"


def export(benchmark_name: str, folder: str) -> list[str]:
    """Copies a benchmark's default pack to a folder to start from.

    Raises:
        ConfigError: the folder has a pack already.
    """
    source = get_benchmark(benchmark_name).pack
    target = Path(folder)
    if (target / PACK_FILE).exists():
        raise ConfigError(f"{target}: there is a pack already; name an empty folder")
    try:
        shutil.copytree(source, target, dirs_exist_ok=True)
    except OSError as e:
        raise ConfigError(f"{target}: cannot be written ({e.strerror})") from e
    return [f"wrote {target}", f"use it with judge.prompts: {target}"]


def sample_prompts(benchmark: Benchmark) -> Iterator[Prompt]:
    """Prompts of the sample data that ships with a benchmark."""
    import numpy as np

    from omnijudge.ingest import block_units, match, read_annotations, read_partition
    from omnijudge.seats import resolve_options

    config = sample_config(benchmark)
    options: Any = resolve_options(benchmark, config.scoring)
    ingest = read_annotations(config, benchmark, sort=True)
    for ids in ingest.plan.blocks:
        units = block_units(ingest.annotations.units, ids)
        for system in ingest.plan.systems:
            part = read_partition(config, benchmark, ingest, system, ids, units)
            part = match(benchmark, part, options)
            rows = np.arange(part.stages.num_rows, dtype=np.int64)
            yield from benchmark.prompts(part, rows, options)


def sample_config(benchmark: Benchmark) -> Any:
    """A configuration over the sample data of a benchmark.

    Raises:
        ConfigError: the benchmark ships none.
    """
    from omnijudge.config import build_config, load_config

    own = getattr(benchmark, "sample_config", None)
    if own is not None:
        return load_config(own)
    base = SAMPLES / benchmark.name
    if not base.is_dir():
        raise ConfigError(
            f"benchmark {benchmark.name} ships no sample data, so there is nothing to render its "
            "prompts with; it would name a configuration in `sample_config`"
        )
    data: dict[str, Any] = {"root": "data"}
    if not (base / "data").is_dir():
        data = {"annotations": "annotations.jsonl"}
    systems = "outputs/*" if (base / "outputs").is_dir() else "responses/*"
    values = {
        "benchmark": benchmark.name,
        "data": data,
        "systems": {systems: systems},
        "output": "-",
    }
    return build_config(values, base, "sample data")


def check(folder: str, benchmark_name: str) -> list[str]:
    """Renders every template of a pack on the sample data, in every language.

    Raises:
        ConfigError: a template, a schema or a variable is wrong; the message names it.
    """
    benchmark = get_benchmark(benchmark_name)
    pack = load_pack(folder, benchmark)
    counted: dict[tuple[str, str], int] = {}
    longest: dict[tuple[str, str], int] = {}
    for prompt in sample_prompts(benchmark):
        for language in pack.languages:
            for rationale in (True, False):
                messages = pack.render(prompt, rationale, language)
                if not all(m["content"] for m in messages):
                    raise ConfigError(
                        f"{folder}: stage {prompt.stage} ({language}): a message is empty"
                    )
                size = sum(len(str(m["content"])) for m in messages)
                key = (prompt.stage, language)
                longest[key] = max(longest.get(key, 0), size)
            counted[prompt.stage, language] = counted.get((prompt.stage, language), 0) + 1
    lines = [f"pack {pack.name} {pack.version}: {', '.join(pack.languages)}"]
    for (stage, language), n in sorted(counted.items()):
        size = longest[stage, language]
        lines.append(f"  {stage} ({language}): rendered {n} times, up to {size} characters")
    unseen = [s for s in benchmark.stages if not any(stage == s for stage, _ in counted)]
    lines += [f"  {s}: not in the sample data, loaded only" for s in unseen]
    return [*lines, "all templates render"]


def preview(
    folder: str, benchmark_name: str, stage: str | None, language: str | None, rationale: bool
) -> list[str]:
    """The first question of each stage (or of one), as a judge would see it.

    Raises:
        ConfigError: no such pack or stage.
    """
    benchmark = get_benchmark(benchmark_name)
    pack = load_pack(folder, benchmark)
    if stage is not None and stage not in pack.stages:
        raise ConfigError(f"stage {stage!r} is unknown; there are {', '.join(pack.stages)}")
    lines: list[str] = []
    shown: set[str] = set()
    for prompt in sample_prompts(benchmark):
        wrong_language = language is not None and prompt.language != language
        if prompt.stage in shown or (stage is not None and prompt.stage != stage) or wrong_language:
            continue
        shown.add(prompt.stage)
        lines.append(f"=== {pack.prompt_id(prompt.stage, pack.language(prompt.language))}")
        for message in pack.render(prompt, rationale, language):
            lines += [f"--- {message['role']}", str(message["content"])]
        lines += ["--- answer schema", str(pack.schema(prompt.stage, rationale)), ""]
    return lines
