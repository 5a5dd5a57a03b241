"""The non-judge part of a run (ingest to metrics, answers replayed) beside plain Python, and the
kernel that gives chunks to slots beside its peers, in one run.

    python scripts/bench_scoring.py [--samples 1000] [--systems 4] [--quick] [--clock cpu] [--out F]

Both sides read the same files: annotations of the sample set under many ids, simulated transcripts,
answers by the smoke judge. The plain side is the slow oracle of the tests: it writes no tables,
hashes no questions and has no intervals. Prints ratios measured in this run and writes them as
JSON. On a machine that others use too, ``--clock cpu`` counts processor time.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import bench_kernels

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "omnijudge" / "sample_data" / "omniinteract" / "data"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--systems", type=int, default=4)
    parser.add_argument("--quick", action="store_true", help="100 samples")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    args = parser.parse_args()
    samples = 100 if args.quick else args.samples
    clock = time.process_time if args.clock == "cpu" else time.perf_counter
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), samples, args.systems, clock)
    for name, value in figures.items():
        print(f"{name}: {value}")
    effort = bench_kernels.Effort(args.quick, 3, clock)
    rows = bench_kernels.slots(effort)
    print(bench_kernels.table(rows, args.quick))
    figures["slots"] = [asdict(row) for row in rows]
    if args.out:
        args.out.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def measure(folder: Path, samples: int, systems: int, clock: Callable[[], float]) -> dict[str, Any]:
    """Times both sides, interleaved, three rounds each; the best round counts."""
    manifest = build(folder, samples, systems)
    answers(folder)
    ours, plain = [], []
    for _ in range(3):
        started = clock()
        run_ours(folder)
        ours.append(clock() - started)
        started = clock()
        run_plain(folder, manifest)
        plain.append(clock() - started)
    steps = json.loads((folder / "run" / "run.json").read_text(encoding="utf-8"))["seconds"]
    pairs = samples * systems
    return {
        "transcripts": pairs,
        "ours_transcripts_per_second": round(pairs / min(ours)),
        "plain_transcripts_per_second": round(pairs / min(plain)),
        "ours_over_plain_time": round(min(ours) / min(plain), 2),
        "seconds_per_step": {k: round(v, 2) for k, v in steps.items()},
    }


def build(folder: Path, samples: int, systems: int) -> list[dict[str, Any]]:
    """Annotations of the sample set under many ids, and simulated transcripts."""
    from omnijudge.benchmarks.omniinteract.layout import read_root
    from omnijudge.simulate import TEMPERS, Recording, simulate_outputs

    originals = list(read_root(SAMPLE).samples.values())
    recordings, rows = [], []
    for i in range(samples):
        o = originals[i % len(originals)]
        name = f"s{i:06d}"
        target = folder / "gt" / f"{name}.json"
        target.parent.mkdir(exist_ok=True)
        shutil.copy(o.annotation, target)
        value = json.loads(target.read_text(encoding="utf-8"))
        recordings.append(Recording(name, value, o.scene_type))
        rows.append((name, target, o.scene_type))
    tempers = dict(list(TEMPERS.items())[:systems])
    simulate_outputs(recordings, folder / "out", tempers, 0, words=True)
    manifest = [
        {
            "sample_id": name, "gt_json": f"gt/{name}.json", "scene_type": scene,
            "model_json": f"out/{temper}/{name}.json", "model": temper,
        }
        for temper in tempers
        for name, _, scene in rows
    ]  # fmt: skip
    lines = "".join(json.dumps(m) + "\n" for m in manifest)
    (folder / "manifest.jsonl").write_text(lines, encoding="utf-8")
    return manifest


def config(folder: Path, **judge: Any) -> Any:
    """A configuration over the built data."""
    from omnijudge.config import build_config

    return build_config(
        {
            "benchmark": "omniinteract",
            "data": {"manifest": "manifest.jsonl"},
            "judge": judge,
            "scoring": {"profile": "published"},
            "store": "store",
            "output": "run",
        },
        folder,
        "bench",
    )


def answers(folder: Path) -> None:
    """Answers of the smoke judge, as replay rows."""
    import pyarrow.parquet as pq

    from omnijudge.pipeline import RunFlags, run

    run(config(folder, engine="lexical"), RunFlags(quiet=True))
    columns = ["system", "sample_id", "unit_id", "item", "stage", "attempt", "raw"]
    table = pq.read_table(folder / "run" / "judgements.parquet", columns=columns)
    pq.write_table(table, folder / "answers.parquet")


def run_ours(folder: Path) -> None:
    """Ingest to metrics with intervals, answers replayed."""
    from omnijudge.pipeline import RunFlags, run

    replay = config(folder, engine="replay", answers="answers.parquet")
    run(replay, RunFlags(quiet=True, fresh=True))


def run_plain(folder: Path, manifest: list[dict[str, Any]]) -> None:
    """The same numbers by plain Python, without intervals."""
    sys.path.insert(0, str(ROOT / "tests"))
    import pyarrow.parquet as pq
    from naive import omniinteract as naive

    found = {
        (r["system"], r["sample_id"], r["unit_id"], r["stage"]): r["raw"]
        for r in pq.read_table(folder / "answers.parquet").to_pylist()
    }
    for system in dict.fromkeys(m["model"] for m in manifest):
        items = [m for m in manifest if m["model"] == system]

        def judge_for(sample: str, system: str = system) -> Any:
            return lambda call: found[system, sample, str(call["slot_id"]), call["stage"]]

        results, _ = naive.run_manifest(items, str(folder), judge_for)
        naive.aggregate(list(results.values()))


if __name__ == "__main__":
    main()
