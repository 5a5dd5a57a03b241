"""A folder to start from: a commented configuration and the sample data."""

from __future__ import annotations

import shutil
from pathlib import Path

from omnijudge.errors import ConfigError

SAMPLE = Path(__file__).parent / "sample_data" / "omniinteract"
CONFIG = "omnijudge.yaml"

TEXT = """\
# A run of omnijudge. Paths are meant from this file's folder.
# All keys: omnijudge schema config

benchmark: omniinteract

data:
  root: data/                  # annotations laid out as the benchmark is released,
  # manifest: manifest.jsonl   # or an explicit list of samples
  on_bad_sample: refuse        # or skip

systems:                       # one folder of transcripts per system
  attentive: outputs/attentive
  chatty: outputs/chatty
  sleepy: outputs/sleepy

# controls: [oracle, silent, shuffled]   # ceiling, floor and chance as rows beside the systems

judge:
  engine: lexical              # no model: overlap with the reference, to try things out
  # engine: vllm               # a real judge in this process, or on Ray
  # model: Qwen/Qwen3-14B
  # revision: <commit>         # pin it: the judge is part of every number
  # exam: 0.9                  # stop unless it passes 90 % of `omnijudge exam`

scoring:
  profile: robust              # robust | published | paper

statistics:
  replicates: 10000            # cluster bootstrap over videos
  confidence: 0.95

output: runs/first
"""


def write_starter(folder: str) -> list[str]:
    """Writes configuration and sample data; returns lines that say what to do next.

    Raises:
        ConfigError: something of that name is there already.
    """
    target = Path(folder)
    for name in (CONFIG, "data", "outputs"):
        if (target / name).exists():
            raise ConfigError(f"init: {target / name} is there already; name an empty folder")
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name in ("data", "outputs"):
            shutil.copytree(SAMPLE / name, target / name)
        (target / CONFIG).write_text(TEXT, encoding="utf-8")
    except OSError as e:
        raise ConfigError(f"init: {target} cannot be written ({e.strerror})") from e
    return [f"wrote {target / CONFIG} and sample data", f"next: omnijudge run {target / CONFIG}"]
