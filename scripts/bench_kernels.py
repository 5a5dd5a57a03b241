"""Time the kernels beside their obvious alternatives, in one process, interleaved.

    python scripts/bench_kernels.py [--quick] [--only slots,matching,...] [--out FILE]

Every round runs each candidate once, so that all meet the same weather; the best round counts.
Ratios are against the kernel, per item: 40 means forty times slower than the kernel. Candidates
that are too slow for the whole data run on a part of it. Answers are compared with the kernel's
before anything is timed; a candidate that answers wrongly by nature is shown with its error share.
Candidates whose package is missing are named and left out (``pip install omnijudge[bench]``).
Everything runs on one thread unless its name says otherwise. On a machine that others use too,
``--clock cpu`` counts processor time instead of waiting time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import bench_peers_matching as peers
import bench_peers_slots as slot_peers
import numpy as np
from numpy.typing import NDArray

from omnijudge_kernels.first_response import first_response
from omnijudge_kernels.masks import Masks
from omnijudge_kernels.matching import (
    match_ordered,
    match_ordered_pairs,
    match_windows,
    match_windows_pairs,
)
from omnijudge_kernels.permutation import complete_sequence_law
from omnijudge_kernels.slots import assign_slots
from omnijudge_kernels.small import (
    assign_slots_small,
    first_response_small,
    match_ordered_pairs_small,
)

Run = Callable[[], Any]


@dataclass(frozen=True)
class Effort:
    """How large, how often, and by which clock."""

    quick: bool
    rounds: int
    clock: Callable[[], float]


@dataclass(frozen=True)
class Candidate:
    """One way to compute something.

    Attributes:
        name: what it is called in the table.
        run: does it once.
        items: how many items one run treats.
        wanted: the ratio to the kernel that the kernel must reach, if any.
        note: what to know about it, such as its error share.
    """

    name: str
    run: Run
    items: int
    wanted: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Row:
    """A line of the table; times are per item, in nanoseconds."""

    kernel: str
    name: str
    items: int
    nanoseconds: float
    ratio: float
    wanted: float | None
    note: str


def measure(kernel: str, candidates: list[Candidate], effort: Effort) -> list[Row]:
    """Time the candidates; the first is the kernel that the others are compared with."""
    best = [float("inf")] * len(candidates)
    spent = [0.0] * len(candidates)
    times = [_times(candidate, effort.clock) for candidate in candidates]
    for done in range(effort.rounds):
        for place, candidate in enumerate(candidates):
            if done >= 2 and spent[place] > 20.0:
                continue  # slow enough to be judged by two rounds
            begin = effort.clock()
            for _ in range(times[place]):
                candidate.run()
            seconds = effort.clock() - begin
            spent[place] += seconds
            best[place] = min(best[place], seconds / times[place] / candidate.items)
    return [
        Row(kernel, c.name, c.items, 1e9 * seconds, seconds / best[0], c.wanted, c.note)
        for c, seconds in zip(candidates, best, strict=True)
    ]


def _times(candidate: Candidate, clock: Callable[[], float]) -> int:
    """How often to run it in a row, so that the clock sees at least two milliseconds."""
    candidate.run()
    begin = clock()
    candidate.run()
    return max(1, int(2e-3 / max(clock() - begin, 1e-7)))


def same(name: str, found: NDArray[Any], want: NDArray[Any]) -> None:
    """Stop if a candidate that should be right is not."""
    if not np.array_equal(found, want):
        raise SystemExit(f"{name} disagrees with the kernel: the comparison would mean nothing.")


def slots(effort: Effort) -> list[Row]:
    """K1: ten slots and a hundred chunks a sample, nested slots among them."""
    samples = 1_000 if effort.quick else 20_000
    data = slot_peers.corpus(samples)
    out = np.empty(data.chunk_start.size, dtype=np.int64)
    arrays = data.arrays
    want = assign_slots(*arrays)
    n = want.size
    candidates = [Candidate("assign_slots", lambda: assign_slots(*arrays, out), n)]
    few = slot_peers.corpus(200)
    for name, function in slot_peers.right().items():
        same(name, function(few), assign_slots(*few.arrays))
        candidates.append(Candidate(name, partial(function, data), n, wanted=20.0))
    part = data.first(max(1, samples // 50))
    loop_items = part.chunk_start.size
    same("Python loop", slot_peers.python_loop(part), assign_slots(*part.arrays))
    candidates += [
        Candidate("NumPy broadcasting", lambda: slot_peers.broadcast(data), n, wanted=20.0),
        Candidate("Python loop", lambda: slot_peers.python_loop(part), loop_items, wanted=20.0),
        Candidate("plain form (small.py)", lambda: assign_slots_small(*arrays), n),
        Candidate("memory traffic alone", lambda: slot_peers.traffic(data.chunk_start, out), n),
        Candidate("assign_slots, 2 threads", lambda: assign_slots(*arrays, out, threads=2), n),
    ]
    same("NumPy broadcasting", slot_peers.broadcast(data), want)
    for name, function in slot_peers.as_of().items():
        wrong = float((function(data) != want).mean())
        note = f"wrong on {wrong:.1%} of the chunks"
        candidates.append(Candidate(name, partial(function, data), n, note=note))
    return measure("K1 slots", candidates, effort)


def matching(effort: Effort) -> list[Row]:
    """K2: 3 to 8 targets and 5 to 40 responses an instance."""
    n = 20_000 if effort.quick else 1_000_000
    data = peers.matching_corpus(n)
    masks = data.masks
    score, taken = np.empty(n, dtype=np.int64), np.empty(masks.n_targets, dtype=np.int64)
    content = Masks(data.content, data.target_offsets)
    times = data.arrays
    want = match_ordered(masks)
    padded = peers.padded_rows(masks)
    few = data.first(n // 100)
    same("NumPy bit-parallel", peers.match_numpy(masks), want)
    same("Numba DP", peers.match_numba_dp(masks), want)
    same("from times", match_windows(*times, content), want)
    same("pairs", match_ordered_pairs(masks).score, want)
    same("pairs from times", match_windows_pairs(*times, content).score, want)
    same("plain form", match_ordered_pairs_small(few).score, want[: few.n_instances])
    same("Python DP", peers.match_python_dp(few), want[: few.n_instances])
    candidates = [
        Candidate("match_ordered", lambda: match_ordered(masks, score), n),
        Candidate("NumPy batched bit-parallel", lambda: peers.match_numpy(masks), n, 3.0),
        Candidate("the same, padded beforehand", lambda: peers.match_padded(padded, n), n),
        Candidate("Numba DP", lambda: peers.match_numba_dp(masks), n, 20.0),
        Candidate("Python DP", lambda: peers.match_python_dp(few), few.n_instances),
        Candidate("reading the masks alone", lambda: peers.mask_stream(masks, score), n),
        Candidate("match_ordered_pairs", lambda: match_ordered_pairs(masks, (score, taken)), n),
        Candidate("match_windows", lambda: match_windows(*times, content, score), n),
        Candidate(
            "match_windows_pairs", lambda: match_windows_pairs(*times, content, (score, taken)), n
        ),
        Candidate(
            "plain form (small.py), pairs", lambda: match_ordered_pairs_small(few), few.n_instances
        ),
    ]
    tiny = data.first(200)
    for name, function in peers.unordered_peers().items():
        wrong = float((function(tiny) != want[: tiny.n_instances]).mean())
        note = f"ignores the order: wrong on {wrong:.1%} of the instances"
        candidates.append(Candidate(name, partial(function, tiny), tiny.n_instances, note=note))
    return measure("K2 matching", candidates, effort)


def long_matching(effort: Effort) -> list[Row]:
    """K2: one instance of 2000 targets and 5000 responses, windows of 20 s."""
    data = peers.long_instance(*((200, 500) if effort.quick else (2_000, 5_000)))
    masks, table = data.masks, data.table
    score = np.empty(1, dtype=np.int64)
    same("Numba DP", peers.dense_dp(table), match_ordered(masks))
    same("from times", match_windows(*data.arrays, data.content), match_ordered(masks))
    return measure(
        "K2 long",
        [
            Candidate("match_ordered, banded", lambda: match_ordered(masks, score), 1),
            Candidate("Numba DP", lambda: peers.dense_dp(table), 1, 300.0),
            Candidate("match_ordered_pairs, banded", lambda: match_ordered_pairs(masks), 1),
            Candidate("plain form, pairs", lambda: match_ordered_pairs_small(masks), 1),
            Candidate("match_windows", lambda: match_windows(*data.arrays, data.content), 1),
        ],
        replace(effort, rounds=10 * effort.rounds),
    )


def responses(effort: Effort) -> list[Row]:
    """K5: the corpus of K2, in the three variants."""
    n = 20_000 if effort.quick else 1_000_000
    data = peers.matching_corpus(n)
    part = peers.matching_corpus(n // 50)
    n_targets = data.target_offsets[-1]
    out = (np.empty(n_targets, dtype=np.int64), np.empty(n_targets, dtype=np.int8))
    rows = []
    for variant in ("default", "late_released", "since_previous"):
        same(
            "Python",
            np.array(peers.first_python(part, variant)),
            first_response(*part.arrays, part.window_high, variant=variant).taken,
        )
        candidates = [
            Candidate(
                f"first_response, {variant}",
                partial(first_response, *data.arrays, data.window_high, out, variant=variant),
                n,
            ),
            Candidate(
                "Python loop", partial(peers.first_python, part, variant), n // 50, wanted=20.0
            ),
            Candidate(
                "plain form (small.py)",
                partial(first_response_small, *part.arrays, part.window_high, variant=variant),
                n // 50,
            ),
        ]
        rows += measure("K5 responses", candidates, effort)
    return rows


def permutation(effort: Effort) -> list[Row]:
    """K6: 20 sequences of three steps."""
    shuffles = 2_000 if effort.quick else 100_000
    strata = [(20, (13, 11, 9))]
    sampled = peers.shuffled_complete(20, (13, 11, 9), shuffles).mean()
    if abs(sampled - complete_sequence_law(strata).expected) > 0.1:
        raise SystemExit("Shuffling and the exact law disagree.")
    candidates = [
        Candidate("complete_sequence_law", lambda: complete_sequence_law(strata), 1),
        Candidate(
            f"NumPy, {shuffles} shuffles",
            lambda: peers.shuffled_complete(20, (13, 11, 9), shuffles),
            1,
            wanted=500.0,
        ),
    ]
    return measure("K6 law", candidates, replace(effort, rounds=3 * effort.rounds))


CLOCKS = {"wall": perf_counter, "cpu": process_time}
SECTIONS = {
    "slots": slots,
    "matching": matching,
    "long": long_matching,
    "responses": responses,
    "permutation": permutation,
}


def table(rows: list[Row], quick: bool) -> str:
    """The rows for a terminal. Small sizes measure overheads, and are not judged."""
    lines = [f"{'kernel':13} {'candidate':36} {'items':>9} {'ns/item':>14} {'ratio':>9}  wanted"]
    previous = ""
    for row in rows:
        if row.kernel != previous:
            lines.append("")
        previous = row.kernel
        verdict = row.note
        if row.wanted is not None and not quick:
            verdict = f">= {row.wanted:g} {'met' if row.ratio >= row.wanted else 'MISSED'}"
        lines.append(
            f"{row.kernel:13} {row.name:36} {row.items:9d} {row.nanoseconds:14,.2f} "
            f"{row.ratio:9,.2f}  {verdict}"
        )
    return "\n".join(lines)


def missing() -> list[str]:
    """Packages of rivals that are not installed."""
    return [name for name in slot_peers.PACKAGES + peers.PACKAGES if find_spec(name) is None]


def main() -> None:
    """Parse, measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, comma-separated")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    chosen = options.only.split(",")
    unknown = [name for name in chosen if name not in SECTIONS]
    if unknown:
        parser.error(f"no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")

    effort = Effort(options.quick, options.rounds, CLOCKS[options.clock])
    rows: list[Row] = []
    for name in chosen:
        print(f"{name} ...", file=sys.stderr)
        rows += SECTIONS[name](effort)
    print(table(rows, options.quick))
    for name in missing():
        print(f"not installed: {name}")
    if options.out:
        about = {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "machine": platform.machine(),
            "cpus": os.cpu_count(),
            "quick": options.quick,
            "clock": options.clock,
            "not_installed": missing(),
            "rows": [asdict(row) for row in rows],
        }
        options.out.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
