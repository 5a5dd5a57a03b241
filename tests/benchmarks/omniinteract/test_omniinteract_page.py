"""The page on OmniInteract says what the code does: options, defaults, metrics, repairs."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from omnijudge.benchmarks.omniinteract import benchmark
from omnijudge.benchmarks.omniinteract.options import CORRECTIONS, Options
from omnijudge.cli import parser

PAGE = (Path(__file__).parents[3] / "docs" / "benchmarks" / "omniinteract.md").read_text(
    encoding="utf-8"
)


def test_options_and_defaults() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    shown = yaml.safe_load(block)["scoring"]
    assert Options.model_validate(shown) == Options()
    assert set(shown) == set(Options.model_fields)


def test_every_metric_is_named() -> None:
    named = set(re.findall(r"`([a-z0-9_]+)`", PAGE))
    for metric in benchmark.metrics(Options().resolved()):
        suffix = re.sub("^response_delay", "", metric.name)
        assert metric.name in named or suffix in named, metric.name
        assert metric.group in named, metric.group


def test_every_repair_is_explained() -> None:
    table = PAGE.split("## Repairs")[1]
    assert [r for r in CORRECTIONS if f"| `{r}` |" not in table] == []


def test_the_import_command() -> None:
    (line,) = re.findall(r"^    omnijudge (import .*)$", PAGE, re.MULTILINE)
    args = parser().parse_args(line.split())
    assert (args.folder, args.system, args.out) == ("results/mine", "mine", "runs/mine")
    flags = re.findall(r"`(--[a-z-]+)`", PAGE.split("## Results of the published")[1])
    assert flags
    for flag in flags:
        parser().parse_args([*line.split(), flag, "x"])
