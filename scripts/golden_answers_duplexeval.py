"""Turns canned judge answers of Omni-DuplexEval into rows for the replay engine.

    python scripts/golden_answers_duplexeval.py judge_answers.json answers.jsonl

The input maps `system/split/id/stage/...` to the attempts of one question, each of kind `text`
(answer), `body` (whole reply), `error` or `raise` (no answer).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any


def replay_rows(answers: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Rows of the replay format, one per attempt."""
    for key, attempts in answers.items():
        system, split, sample, stage, *rest = key.split("/")
        # `content` and `full` are stage and unit at once; only windows carry an item.
        unit = rest[0] if rest else stage
        for number, attempt in enumerate(attempts, 1):
            row: dict[str, Any] = {
                "system": system,
                "sample_id": f"{split}/{sample}",
                "unit_id": unit,
                "item": rest[1] if len(rest) > 1 else None,
                "stage": stage,
                "attempt": number,
            }
            kind = attempt["kind"]
            if kind == "text":
                row["raw"] = attempt["text"]
            elif kind == "body":
                row["body"] = attempt["body"]
            elif kind in ("error", "raise"):
                row["error"] = attempt.get("message") or ""
            else:
                raise ValueError(f"{key}, attempt {number}: kind {kind!r} is unknown")
            yield row


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("answers", type=Path, help="judge_answers.json")
    parser.add_argument("out", type=Path, help="JSON-lines file to write")
    given = parser.parse_args()
    answers = json.loads(given.answers.read_text("utf-8"))
    with given.out.open("w", encoding="utf-8") as out:
        count = 0
        for row in replay_rows(answers):
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
    print(f"{given.out}: {count} answers to {len(answers)} questions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
