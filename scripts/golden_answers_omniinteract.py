"""Turns the golden set's judge answers into replay rows.

python scripts/golden_answers_omniinteract.py judge_answers.jsonl answers.jsonl
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any


def replay_rows(golden: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows for ``judge.answers`` from rows of ``judge_answers.jsonl``."""
    for row in golden:
        yield {
            "system": row["model"],
            "sample_id": row["sample_id"],
            "unit_id": str(row["slot_id"]),
            "stage": row["stage"],
            "attempt": 1,
            "raw": row["raw"],
        }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    args = parser.parse_args()
    lines = args.source.read_text(encoding="utf-8").splitlines()
    rows = list(replay_rows(json.loads(line) for line in lines if line.strip()))
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    args.target.write_text(text, encoding="utf-8")
    print(f"{len(rows)} answers written to {args.target}")


if __name__ == "__main__":
    main()
