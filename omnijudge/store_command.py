"""``omnijudge store``: looking after the judgement store."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnijudge.judging.store import JudgementStore

DESCRIPTION = """\
The judgement store holds every answer of every judge, for all runs. STORE is a folder or an address
such as s3://bucket/folder; without it, the one that runs use: OMNIJUDGE_STORE, or the user's cache.
"""

TEXTS = {
    "stats": "count judgements, files and bytes, per judge and model",
    "verify": "read every byte and report what is damaged; changes nothing",
    "compact": "rewrite the store as few large files, each judgement once",
    "export": "write every judgement to a Parquet or JSONL file",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds ``stats``, ``verify``, ``compact`` and ``export``."""
    parser.description = DESCRIPTION
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, text in TEXTS.items():
        action = actions.add_parser(name, help=text, description=text)
        action.add_argument("store", nargs="?", metavar="STORE")
        if name == "export":
            action.add_argument(
                "--out", metavar="FILE", required=True, help="ends with .parquet or .jsonl"
            )


def run(args: argparse.Namespace) -> int:
    """Runs ``omnijudge store``; returns the exit code (3: something is damaged).

    Raises:
        StoreError: there is no store, or it cannot be used.
    """
    from omnijudge.judging.store import JudgementStore
    from omnijudge.seats import default_store

    path = args.store or default_store()
    if args.action == "compact":
        JudgementStore(path, writable=False).close()  # one that is not there is not made
    with JudgementStore(path, writable=args.action == "compact") as store:
        lines = _LINES[args.action](store, args)
        problems = list(store.report)
    for problem in problems:
        print(f"{problem.level}: {problem}", file=sys.stderr)
    print("\n".join(lines))
    return 3 if any(p.level == "error" for p in problems) else 0


def _stats(store: JudgementStore, args: argparse.Namespace) -> list[str]:
    found = store.stats()
    lines = [
        f"{store.path}",
        f"{found.judgements:,} judgements ({found.rows:,} rows, double ones included)",
        f"{found.parts:,} parts, {found.journals:,} journals, {found.damaged:,} set aside as "
        f"damaged; {found.size:,} bytes",
    ]
    for judge, model, n in found.judges:
        lines.append(f"  judge {judge}, model {model or 'not named'}: {n:,}")
    return lines


def _verify(store: JudgementStore, args: argparse.Namespace) -> list[str]:
    problems = store.verify()
    if not problems:
        return [f"{store.path}: {len(store):,} judgements, every byte read, nothing damaged"]
    return [f"{store.path}: {len(store):,} judgements can be read; {len(problems)} findings"]


def _compact(store: JudgementStore, args: argparse.Namespace) -> list[str]:
    before = store.stats()
    store.compact()
    after = store.stats()
    return [
        f"{store.path}: {before.parts + before.journals:,} files, {before.size:,} bytes -> "
        f"{after.parts + after.journals:,} files, {after.size:,} bytes; "
        f"{after.judgements:,} judgements"
    ]


def _export(store: JudgementStore, args: argparse.Namespace) -> list[str]:
    written = store.export(args.out)
    return [f"{args.out}: {written:,} judgements"]


_LINES = {"stats": _stats, "verify": _verify, "compact": _compact, "export": _export}
