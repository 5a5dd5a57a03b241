"""Writes the tiny random-weight model that tests and dry runs judge with.

    python scripts/make_tiny_model.py OUT [--seed N] [--kind text|vision|audio]

Needs torch and transformers, as they come with the vLLM engine.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from omnijudge.testing.tiny_media_models import make_tiny_audio_model, make_tiny_vision_model
from omnijudge.testing.tiny_model import make_tiny_model

MAKERS = {
    "text": make_tiny_model,
    "vision": make_tiny_vision_model,
    "audio": make_tiny_audio_model,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes a tiny random-weight language model.")
    parser.add_argument("out", type=Path, help="folder to write to")
    parser.add_argument("--seed", type=int, default=0, help="seed of the weights")
    parser.add_argument("--kind", choices=MAKERS, default="text", help="what it takes beside text")
    options = parser.parse_args()
    folder = MAKERS[options.kind](options.out, options.seed)
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{folder}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
