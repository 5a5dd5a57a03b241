"""The GPU benchmark, as far as a machine without one can show that it will run."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from requirements import need

SCRIPT = Path(__file__).parents[2] / "scripts" / "bench_gpu.py"
SMALL = ["--units", "2", "--systems", "3", "--rubric-words", "60", "--unit-words", "20"]


@pytest.fixture(scope="module")
def bench() -> Any:
    spec = spec_from_file_location("bench_gpu", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["bench_gpu"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_prompts_of_one_unit_share_their_beginning(bench: Any) -> None:
    found = bench.requests(bench.Workload(3, 4, 50, 30, 10))
    assert len(found) == 12
    assert len({r.fingerprint for r in found}) == 12
    systems = {r.messages[0]["content"] for r in found}
    assert len(systems) == 1
    users = [r.messages[1]["content"] for r in found]
    for unit in range(3):
        block = {u.split("What was said:")[0] for u in users[4 * unit : 4 * unit + 4]}
        assert len(block) == 1
    assert len(set(users)) == 12


@pytest.mark.engine
def test_dry_run_settles_everything_but_the_engine(
    bench: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    need("engine")
    assert bench.main(["--architecture", "tiny", "--dry-run", *SMALL]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["workload"]["prompts"] == 6
    assert report["vocabulary"] == bench.ARCHITECTURES["tiny"].vocabulary
    assert report["prompt_tokens"]["mean"] > 80
    assert report["too_long"] == 0
    assert report["random_weights"] is True


@pytest.mark.engine
@pytest.mark.slow
def test_it_measures_on_a_cpu() -> None:
    need("engine")
    arguments = ["--architecture", "tiny", "--batch-sizes", "3", "6", "--repeats", "1", *SMALL]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [j["batch_size"] for j in report["judge"]] == [3, 6]
    assert all(j["share_of_raw"] > 0 for j in report["judge"])
    assert report["raw"]["output_tokens"] == report["raw_free_text"]["output_tokens"] > 0
    assert report["judge"][0]["valid_share"] == 1.0
