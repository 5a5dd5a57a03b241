"""Omni-InteractScope at scale: simulated windows from tables to matched statuses in one call.

    python scripts/bench_interactscope.py [--windows 5000000] [--block 200000] [--threads 1 2 8]

Blocks of tables are made as they are needed, so memory holds a few blocks and the result, however
many windows there are. Prints the time with and (for one thread, where the two can be told apart)
without making the tables, peak memory, the ratio to the slow way on the same kind of data, and
whether every number of threads gave the same bytes. Writes the same as JSON with --json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omnijudge.benchmarks.base import Partition
from omnijudge.benchmarks.omni_interactscope.corpus import CorpusStatuses, corpus_statuses
from omnijudge.benchmarks.omni_interactscope.options import Options
from omnijudge.benchmarks.omni_interactscope.scoring import STATUSES
from omnijudge.benchmarks.omni_interactscope.simulate import partitions, text_verdicts

TESTS = Path(__file__).resolve().parents[1] / "tests"


class Timed:
    """An iterator of partitions that knows how long they took to make."""

    def __init__(self, parts: Iterator[Partition]) -> None:
        self.parts = parts
        self.seconds = 0.0

    def __iter__(self) -> Iterator[Partition]:
        while True:
            begin = time.perf_counter()
            part = next(self.parts, None)
            self.seconds += time.perf_counter() - begin
            if part is None:
                return
            yield part


def digest(found: CorpusStatuses) -> str:
    """Hash of all statuses and output indices."""
    return hashlib.sha256(found.status.tobytes() + found.output_index.tobytes()).hexdigest()


def peak_mib() -> float:
    """Peak memory of this process in MiB (Linux)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def slow_way(windows: int) -> float:
    """Seconds per window of the plain Python reference, which gives the same statuses."""
    sys.path.insert(0, str(TESTS))
    from naive import interactscope as naive  # type: ignore[import-not-found]

    part = next(partitions(windows))
    found = corpus_statuses([part], Options(), text_verdicts)
    rows: dict[str, dict[str, Any]] = {}
    for u in part.units.to_pylist():
        mine = rows.setdefault(u["sample_id"], {"targets": []})
        if u["unit_kind"] == "interaction":
            mine |= u | {"interaction_id": u["sample_id"]}
        else:
            span = {"interval": [u["ref_start"], u["ref_end"]]}
            own = {"target_id": u["unit_id"], "order": u["position"], "tools": u["tools"]}
            mine["targets"].append(own | span | {"reference": u["reference"]})
    said: dict[str, list[dict[str, Any]]] = {sample: [] for sample in rows}
    for c in part.chunks.to_pylist():
        said[c["sample_id"]].append({"t": c["start"], "text": c["text"], "tools": c["tools"]})
    begin = time.perf_counter()
    statuses = [
        target["status"]
        for sample, row in rows.items()
        for target in naive.score_interaction(
            row, {"outputs": said[sample]}, lambda t, r: r["text"] == t["reference"]
        )["targets"]
    ]
    seconds = time.perf_counter() - begin
    if statuses != [STATUSES[code] for code in found.status]:
        raise SystemExit("the slow way found other statuses")
    return seconds / len(statuses)


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--windows", type=int, default=5_000_000)
    parser.add_argument("--block", type=int, default=200_000, help="windows per block of tables")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 8])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--slow", type=int, default=20_000, help="windows given to the slow way")
    parser.add_argument("--json", type=Path, help="also write the results here")
    args = parser.parse_args()
    corpus_statuses(partitions(2000), Options(), text_verdicts)  # compile outside the clock
    slow = slow_way(args.slow) if args.slow and (TESTS / "naive").is_dir() else None
    runs = []
    for threads in args.threads:
        parts = Timed(partitions(args.windows, args.block, args.seed))
        begin = time.perf_counter()
        found = corpus_statuses(parts, Options(), text_verdicts, threads)
        whole = time.perf_counter() - begin
        # With several threads tables are made while others are scored.
        scoring = whole - parts.seconds if threads == 1 else None
        run = {
            "threads": threads,
            "windows": len(found.status),
            "seconds": round(whole, 3),
            "seconds_scoring": scoring and round(scoring, 3),
            "times_faster_than_slow_way": slow
            and scoring
            and round(slow * len(found.status) / scoring, 1),
            "peak_memory_mib": round(peak_mib()),
            "digest": digest(found),
        }
        runs.append(run)
        alone = f", scoring alone {scoring:.1f} s" if scoring else ""
        ratio = run["times_faster_than_slow_way"]
        print(
            f"{threads} threads: {run['windows']:,} windows in {whole:.1f} s with making the "
            f"tables{alone}{f', {ratio}x the slow way' if ratio else ''}; "
            f"peak memory {run['peak_memory_mib']} MiB"
        )
    same = len({run["digest"] for run in runs}) == 1
    print(f"same bytes for every number of threads: {'yes' if same else 'NO'}")
    if args.json:
        args.json.write_text(json.dumps({"runs": runs, "same_bytes": same}, indent=1))
    if not same:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
