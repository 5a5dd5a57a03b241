"""Invented OmniInteract recordings with simulated systems, as many as a test needs."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

OMNIJUDGE = Path(sys.executable).with_name("omnijudge")

PLACES = ("kitchen", "garage", "garden", "library", "harbour", "market", "station", "workshop")
THINGS = ("red kettle", "green ladder", "small drum", "wooden box", "paper kite", "brass lamp")
ZH_PLACES = ("厨房", "车库", "花园", "图书馆", "港口", "市场")
ZH_THINGS = ("红色的水壶", "绿色的梯子", "小鼓", "木箱", "纸风筝", "铜灯")


def write_corpus(
    folder: Path,
    samples: int,
    tempers: str = "punctual,late,talkative",
    seed: int = 0,
    turns: tuple[int, int] = (2, 4),
    copies: int = 1,
) -> Path:
    """Writes recordings and simulated transcripts; returns the manifest that lists both."""
    dice = random.Random(seed)
    annotations = folder / "annotations"
    annotations.mkdir(parents=True)
    rows = []
    for number in range(samples):
        chinese = number % 3 == 2
        name = f"clip-{number:04d}"
        turns_here = [_turn(dice, i, chinese) for i in range(dice.randint(*turns))]
        text = json.dumps(turns_here, ensure_ascii=False)
        (annotations / f"{name}.json").write_text(text, encoding="utf-8")
        rows.append(
            {
                "sample_id": name,
                "gt_json": f"annotations/{name}.json",
                "scene_type": "multi_turn",
                "video_id": name,
                "language": "zh" if chinese else "en",
            }
        )
    listing = folder / "samples.jsonl"
    listing.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    command = [
        OMNIJUDGE, "simulate", "--manifest", listing, "--out", folder / "outputs",
        "--tempers", tempers, "--copies", str(copies), "--seed", str(seed),
    ]  # fmt: skip
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder / "outputs" / "manifest.jsonl"


def _turn(dice: random.Random, number: int, chinese: bool) -> dict[str, object]:
    asked = 20.0 * number + dice.randint(1, 4)
    proactive = dice.random() < 0.4
    if chinese:
        thing, place = dice.choice(ZH_THINGS), dice.choice(ZH_PLACES)
        question, answer = (
            f"{thing}在哪里？",
            f"{thing}放在{place}里，一共有{dice.randint(2, 9)}个。",
        )
    else:
        thing, place = dice.choice(THINGS), dice.choice(PLACES)
        question = f"Where is the {thing}?"
        answer = f"The {thing} stands in the {place}, {dice.randint(2, 9)} of them in a row."
    return {
        "question_time": asked,
        "question_text": question,
        "answer_time": asked + (8.0 if proactive else 2.0),
        "answer_text": answer,
        "question_type": "proactive" if proactive else "realtime",
        "is_interrupted": False,
    }
