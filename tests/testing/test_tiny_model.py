"""The tiny model is the same everywhere: tests elsewhere rely on its bytes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from requirements import need

pytestmark = pytest.mark.engine


def content(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def test_equal_seeds_give_equal_bytes(tmp_path: Path) -> None:
    need("engine")
    from omnijudge.testing.tiny_model import make_tiny_model

    script = Path(__file__).parents[2] / "scripts" / "make_tiny_model.py"
    subprocess.run([sys.executable, str(script), str(tmp_path / "a")], check=True, timeout=120)
    first, other = content(tmp_path / "a"), content(make_tiny_model(tmp_path / "b"))
    assert first == other
    assert sum(len(c) for c in first.values()) < 2_000_000
    seeded = content(make_tiny_model(tmp_path / "c", seed=1))
    assert {n for n in first if first[n] != seeded[n]} == {"model.safetensors"}


def test_the_tokenizer_reads_english_and_chinese() -> None:
    need("engine")
    from omnijudge.testing.tiny_model import VOCABULARY, make_tokenizer

    tokenizer = make_tokenizer()
    assert len(tokenizer) == VOCABULARY
    text = "数到三 then say 好 <think>"
    assert tokenizer.decode(tokenizer.encode(text)) == text
    switched = tokenizer.apply_chat_template(
        [{"role": "user", "content": "hi"}],
        tokenize=False,
        add_generation_prompt=True,
        enable_thinking=False,
    )
    assert switched.endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
