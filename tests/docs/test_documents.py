"""What the documents show works: every command runs, every key of a configuration is known."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from docs_blocks import ROOT, Block, blocks, documents, inline_commands

from omnijudge.benchmarks import BUILT_IN, get_benchmark
from omnijudge.cli import parser
from omnijudge.config import (
    DataConfig,
    JudgeConfig,
    RunConfig,
    SystemConfig,
    build_config,
    load_config,
)
from omnijudge.errors import ConfigError
from omnijudge.seats import resolve_options
from omnijudge.starter import TEXT

SKIPPED: dict[str, str] = {
    r"bash scripts/quickstart\.sh": "makes a virtual environment from a package index; what it "
    "runs at its end is run here",
    r"bash scripts/test\.sh.*": "runs this test",
    r"\.venv/bin/pytest .*": "tests, which run anyway",
    r"\.venv/bin/python scripts/bench_\w+\.py --quick": "a benchmark is never a test",
    r"omnijudge run configs/duplexeval-cpu\.yaml.*": "needs the engine and a model made before; "
    "the Omni-DuplexEval tests with a real model run it",
    r"python -m omnijudge_ray\.submit .*": "needs a cluster; test_ray_submit submits runs to one",
    r"sbatch .*": "needs Slurm; test_cluster_files runs the script as its tasks",
    r"omnijudge interactscope \w+ RUN.*": "RUN and the systems stand for a reader's own; the "
    "Omni-InteractScope tests run the commands",
    r"pip install --no-deps tests/toy_plugin": "changes the environment; test_toy_plugin installs "
    "it into a folder of its own",
}
"""Commands that are not run here (patterns of the whole command), and why."""

EXIT_CODES: dict[str, int] = {
    r"omnijudge exam configs/quickstart\.yaml": 4,  # the smoke judge fails, as the page says
}
"""Commands that end with another exit code than 0 (patterns of the whole command)."""

OTHER_YAML: dict[str, str] = {}
"""Fenced YAML that is no run configuration: first top-level key -> what it is."""

GOLDEN = "tests/golden/omniinteract"
NEEDED = {
    **{n: n for n in ("configs", "omnijudge/sample_data", "tests/toy_plugin", "scripts")},
    "data": f"{GOLDEN}/data",
    "outputs": f"{GOLDEN}/outputs",
    "results/mine": f"{GOLDEN}/reference_format/alpha",
}
"""What commands find in their folder: name there -> name in the source tree."""
DOCUMENTS = documents()


def _id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def matching(patterns: Any, command: str) -> str | None:
    """The pattern that fits a whole command."""
    return next((p for p in patterns if re.fullmatch(p, command)), None)


def commands(path: Path) -> list[tuple[int, str]]:
    return [c for b in blocks(path) if b.is_shell for c in b.commands()]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what commands name, so that the source tree stays as it is."""
    folder = tmp_path_factory.mktemp("work")
    for name, source in NEEDED.items():
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / source, folder / name, ignore=ignore)
    return folder


def environment(folder: Path) -> dict[str, str]:
    """The installed commands first; the toy plug-in as if it were installed."""
    site = folder / "site"
    if not site.exists():
        shutil.copytree(folder / "tests" / "toy_plugin" / "omnijudge_toy", site / "omnijudge_toy")
        info = site / "omnijudge_toy-0.1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: omnijudge-toy\nVersion: 0\n")
        (info / "entry_points.txt").write_text(
            "[omnijudge.benchmarks]\ntoy = omnijudge_toy.benchmark:benchmark\n"
            "[omnijudge.engines]\ntoy = omnijudge_toy.engine:ToyEngine\n"
        )
    return {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "OMNIJUDGE_STORE": str(folder / "store"),
        "PYTHONPATH": str(site),
    }


@pytest.mark.parametrize("path", [p for p in DOCUMENTS if commands(p)], ids=_id)
def test_every_command_runs(path: Path, workplace: Path) -> None:
    """In the order of the page, each in a shell of its own."""
    for line, command in commands(path):
        if matching(SKIPPED, command):
            continue
        done = subprocess.run(
            ["bash", "-c", command], cwd=workplace, env=environment(workplace),
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        pattern = matching(EXIT_CODES, command)
        wanted = EXIT_CODES[pattern] if pattern else 0
        where = f"{_id(path)}:{line}: {command}"
        assert done.returncode == wanted, f"{where}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        assert "Traceback" not in done.stderr, where


@pytest.mark.parametrize("path", DOCUMENTS, ids=_id)
def test_no_command_hides_in_another_block(path: Path) -> None:
    for block in blocks(path):
        if block.is_shell:
            continue
        for line in block.text.splitlines():
            assert not re.match(r"\s*(\$ )?omnijudge [a-z]+ ", line), f"{block.file}: {line}"


def test_what_is_skipped_still_stands_in_a_document() -> None:
    shown = [c for path in DOCUMENTS for _, c in commands(path)]
    for pattern in (*SKIPPED, *EXIT_CODES):
        assert any(re.fullmatch(pattern, c) for c in shown), f"{pattern} fits no command any more"


@pytest.mark.parametrize("path", [p for p in DOCUMENTS if commands(p)], ids=_id)
def test_files_of_skipped_commands_exist(path: Path) -> None:
    for line, command in commands(path):
        if not matching(SKIPPED, command):
            continue
        for word in command.split():
            if "/" in word and not word.startswith((".venv/", "http")):
                assert (ROOT / word).exists(), f"{_id(path)}:{line}: {word}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=_id)
def test_commands_in_running_text_exist(path: Path) -> None:
    (choices,) = [a.choices for a in parser()._actions if a.dest == "command"]
    for command in inline_commands(path):
        name = command.split()[0]
        assert name in choices, f"{_id(path)}: omnijudge {command}"
        helped = choices[name].format_help()
        for option in re.findall(r"(?<!\S)--[a-z-]+", command):
            assert option in helped, f"{_id(path)}: omnijudge {command}"


@pytest.mark.parametrize(
    "block", [b for p in DOCUMENTS for b in blocks(p) if b.language == "python"],
    ids=lambda b: f"{b.file}:{b.line}",
)  # fmt: skip
def test_python_runs(block: Block, workplace: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", block.text], cwd=workplace, env=environment(workplace),
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, f"{block.file}:{block.line}\n{done.stderr[-3000:]}"


# Configurations


def yaml_blocks() -> list[Block]:
    return [b for p in DOCUMENTS for b in blocks(p) if b.language in ("yaml", "yml")]


def check_config(values: dict[str, Any], base: Path, source: str) -> None:
    """All keys are known and all values possible, those of ``scoring`` included."""
    bare = {"benchmark": "omniinteract", "data": {"root": "data"}, "output": "run"}
    config = build_config({**bare, **values}, base, source)
    if "benchmark" in values:
        resolve_options(get_benchmark(config.benchmark), config.scoring)
        return
    refused = []
    for name in BUILT_IN:
        try:
            resolve_options(get_benchmark(name), config.scoring)
            return
        except ConfigError as e:
            refused.append(str(e))
    raise AssertionError(f"{source}: no benchmark takes this scoring: {refused}")


@pytest.mark.parametrize("block", yaml_blocks(), ids=lambda b: f"{b.file}:{b.line}")
def test_every_key_of_a_yaml_block_validates(block: Block, tmp_path: Path) -> None:
    values = yaml.safe_load(block.text)
    first = next(iter(values))
    if first in OTHER_YAML:
        return
    # Folder patterns match something, as they do where the block is used.
    (tmp_path / "outputs" / "aura").mkdir(parents=True)
    check_config(values, tmp_path, f"{block.file}:{block.line}")


CONFIGS = sorted((ROOT / "configs").rglob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=_id)
def test_every_configuration_validates(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "configs"
    folder.mkdir()
    (tmp_path / "outputs" / "aura").mkdir(parents=True)
    copy = folder / path.name
    copy.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    config = load_config(copy)
    resolve_options(get_benchmark(config.benchmark), config.scoring)


def alternatives() -> list[tuple[str, str, str]]:
    """(source, text, commented line) of keys that stand in comments of configurations."""
    texts = {_id(p): p.read_text(encoding="utf-8") for p in CONFIGS}
    texts["starter"] = TEXT
    return [
        (source, text, line)
        for source, text in texts.items()
        for line in text.splitlines()
        if re.match(r"^\s*# ?[a-z_]+: ", line)
    ]


@pytest.mark.parametrize(("source", "text", "line"), alternatives(), ids=lambda x: x[-40:])
def test_keys_in_comments_are_known(source: str, text: str, line: str, tmp_path: Path) -> None:
    """An alternative takes the place of the key that stands in its way, or stands beside it."""
    (tmp_path / "outputs" / "aura").mkdir(parents=True)
    (tmp_path / "configs").mkdir()
    used = re.sub(r"# ?", "", line, count=1)
    key = used.split(":")[0].strip()
    indent = len(used) - len(used.lstrip())
    lines = []
    for other in text.splitlines():
        same = other.strip().startswith(f"{key}:") and len(other) - len(other.lstrip()) == indent
        if not same or other == line:
            lines.append(used if other == line else other)
    values = yaml.safe_load("\n".join(lines))
    problems: list[Any] = []
    refused = ""
    try:
        config = build_config(values, tmp_path / "configs", source, problems)
    except ConfigError as e:
        refused = str(e)
    assert not problems
    assert "unknown key" not in refused
    if refused:
        return  # another choice than the one made above it: root and manifest, say
    resolve_options(get_benchmark(config.benchmark), config.scoring)


def known_key(path: str) -> bool:
    """Whether a dotted path leads to a key of the configuration."""
    first, *rest = path.split(".")
    if first == "scoring":
        fields = [f for n in BUILT_IN for f in get_benchmark(n).options.model_fields.items()]
        return any(rest[0] in (name, field.alias) for name, field in fields)
    parts = {"data": DataConfig, "systems": SystemConfig, "judge": JudgeConfig}
    model: Any = parts.get(first) or RunConfig.model_fields[first].annotation
    for key in rest[1:] if first == "systems" else rest:
        if key == "engine_options":
            return True  # what follows belongs to the engine
        if key not in getattr(model, "model_fields", {}):
            return False
        model = model.model_fields[key].annotation
    return True


@pytest.mark.parametrize("path", DOCUMENTS, ids=_id)
def test_keys_in_running_text_are_known(path: Path) -> None:
    parts = "data|systems|judge|execution|scoring|statistics|limits"
    text = path.read_text(encoding="utf-8")
    for key in re.findall(rf"`(?:-o )?((?:{parts})(?:\.\w+)+)(?:[:=][^`]*)?`", text):
        assert known_key(key), f"{_id(path)}: {key}"


def test_every_part_of_the_configuration_is_named_somewhere() -> None:
    shown = "\n".join(p.read_text(encoding="utf-8") for p in (*DOCUMENTS, *CONFIGS)) + TEXT
    for name in RunConfig.model_fields:
        assert re.search(rf"\b{name}\b", shown), name
