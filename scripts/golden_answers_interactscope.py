"""Turns canned judge answers of Omni-InteractScope into rows for the replay engine.

    python scripts/golden_answers_interactscope.py judge/*.jsonl answers.jsonl

Each input file is named after a system; its rows hold `interaction_id`, `target_id`,
`output_index` and `attempts`, the raw answer texts in order.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any


def replay_rows(system: str, answers: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows of the replay format, one per attempt."""
    for answer in answers:
        for number, raw in enumerate(answer["attempts"], 1):
            yield {
                "system": system,
                "sample_id": answer["interaction_id"],
                "unit_id": answer["target_id"],
                "item": str(answer["output_index"]),
                "stage": "verdict",
                "attempt": number,
                "raw": raw,
            }


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("answers", type=Path, nargs="+", help="one JSON-lines file per system")
    parser.add_argument("out", type=Path, help="JSON-lines file to write")
    given = parser.parse_args()
    count = 0
    with given.out.open("w", encoding="utf-8") as out:
        for file in given.answers:
            rows = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line]
            for row in replay_rows(file.stem, rows):
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
                count += 1
    print(f"{given.out}: {count} answers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
