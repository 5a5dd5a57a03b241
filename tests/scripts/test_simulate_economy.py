"""The economy simulation on a small invented set of recipes."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from requirements import need

SCRIPT = Path(__file__).parents[2] / "scripts" / "simulate_economy.py"
DOINGS = ("peel the carrots", "boil a litre of water", "chop the leek", "melt the butter",
          "whisk two eggs", "toast the seeds", "rinse the rice", "fold in the flour")  # fmt: skip


def write_recipes(folder: Path, recordings: int = 6) -> Path:
    dice = random.Random(1)
    found = {}
    for number in range(recordings):
        at = 0.0
        steps = []
        for i in range(8):
            at += dice.randint(8, 20)
            text = f"do-{dice.choice(DOINGS)} for {dice.randint(2, 9)} minutes"
            steps.append(
                {"step_id": i, "start_time": at, "end_time": at + 6, "description": text,
                 "has_errors": False}
            )  # fmt: skip
        name = f"7_{number}"
        found[name] = {
            "recording_id": name, "activity_id": 7, "activity_name": f"Soup {number}",
            "person_id": 1, "environment": 1, "steps": steps,
        }  # fmt: skip
    path = folder / "complete_step_annotations.json"
    path.write_text(json.dumps(found), encoding="utf-8")
    return folder


def simulate(folder: Path, *words: str) -> dict[str, Any]:
    out = folder / "economy.json"
    command = [sys.executable, SCRIPT, folder, "--systems", "10", "--added", "2", "--out", out]
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    assert json.loads(done.stdout) == figures
    return figures


@pytest.mark.engine
def test_each_measure_saves(tmp_path: Path) -> None:
    need("engine")
    found = simulate(write_recipes(tmp_path), "--cache-tokens", "4000", "--batch", "16")
    data = found["data"]
    assert (data["recordings"], data["systems"]) == (6, 10)
    assert 0 < data["distinct"] < data["questions"]
    arrival, once = found["arrival_order"], found["identical_questions_once"]
    together = found["units_together"]
    assert arrival["questions"] == data["questions"]
    assert once["questions"] == together["questions"] == data["distinct"]
    assert arrival["prompt_tokens"] > once["prompt_tokens"] == together["prompt_tokens"]
    assert arrival["computed"] > once["computed"] > together["computed"]
    assert together["prefix_cache_share"] > 1.1 * once["prefix_cache_share"]
    by_batch = found["units_together_on_4_engines_by_batch"]["computed"]
    singly = found["units_together_on_4_engines_singly"]["computed"]
    assert together["computed"] <= by_batch < singly
    store = found["store_knows_all_but_2_systems"]
    assert store["questions"] < 0.3 * together["questions"]
    saved = found["rationale_none"]
    assert 0 < saved["prompt_tokens_saved"] < 0.1
    longest = saved["longest_answer_characters"]
    assert all(longest["none"][s] < longest["short"][s] for s in longest["short"])


@pytest.mark.engine
@pytest.mark.slow
def test_a_real_engine_finds_what_the_model_says(tmp_path: Path) -> None:
    need("engine")
    found = simulate(write_recipes(tmp_path, 12), "--engine")["engine"]
    for order in ("arrival_order", "units_together"):
        shares = found[order]
        assert shares["engine_share"] == pytest.approx(shares["model_share"], abs=0.01)
    assert found["units_together"]["engine_share"] > 1.2 * found["arrival_order"]["engine_share"]
