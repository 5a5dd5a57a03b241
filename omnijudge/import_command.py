"""``omnijudge import``: results of other evaluators become runs."""

from __future__ import annotations

import argparse
import sys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds ``published DIR ...`` of ``omnijudge import``."""
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    text = (
        "Turn a folder of the published OmniInteract evaluator (*.unified_eval.json) into a run "
        "with its answers as judgements, and check it: truncated and stale results, mixed options, "
        "F1 as published against F1 complete."
    )
    sub = kinds.add_parser("published", help="results of the published evaluator", description=text)
    sub.add_argument("folder", metavar="DIR", help="folder of the results")
    sub.add_argument("--system", required=True, metavar="NAME", help="name of the system")
    sub.add_argument("--out", required=True, metavar="RUN", help="folder of the run")
    sub.add_argument("--manifest", metavar="FILE", help="list of the samples and their files")
    sub.add_argument("--data-root", metavar="DIR", help="the benchmark's folder, instead of a list")
    sub.add_argument("--outputs", metavar="DIR", help="folder of the system's transcripts")
    sub.add_argument("--fresh", action="store_true", help="discard what lies in RUN")


def run(args: argparse.Namespace) -> int:
    """Imports, prints the audit, and returns the exit code."""
    from omnijudge.benchmarks.omniinteract.published.command import import_published

    found = import_published(
        args.folder,
        args.system,
        args.out,
        manifest=args.manifest,
        root=args.data_root,
        outputs=args.outputs,
        fresh=args.fresh,
        quiet=False,
    )
    for message in found.messages:
        print(f"note: {message}", file=sys.stderr)
    print("\n".join(found.lines))
    return found.exit_code
