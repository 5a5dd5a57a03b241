"""The steps of a run in order; the only module that knows them all."""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnijudge import __version__
from omnijudge.analysis.systems import choose_baseline
from omnijudge.asking import Asking
from omnijudge.benchmarks import get_benchmark
from omnijudge.benchmarks.declared import description
from omnijudge.config import RunConfig
from omnijudge.errors import ConfigError, Problem
from omnijudge.ingest import (
    WHOLE,
    Ingest,
    block_units,
    read_annotations,
    read_outputs,
    refuse_bad,
)
from omnijudge.judge_step import JudgeStep, LimitSet, check_price
from omnijudge.judging.replay import ReplayedAnswers
from omnijudge.judging.verdicts import StoredAnswers
from omnijudge.model_lock import read_lock, settle_lock
from omnijudge.progress import Progress
from omnijudge.results import ResultCounts, invalid_beyond, write_results
from omnijudge.run_directory import INGEST, OWN_STORE, PACKS, RunDirectory, changed_keys
from omnijudge.run_manifest import input_counts, inputs_of, judges_of, surroundings
from omnijudge.run_questions import asking_over
from omnijudge.seats import default_store, open_seats, resolve_options
from omnijudge.summary import unit_clusters
from omnijudge.usage import Usage, added, plain_usage, total

if TYPE_CHECKING:
    from omnijudge.judging.limits import Stop
    from omnijudge.judging.report import ErrorCount
    from omnijudge.judging.shards import Shard
    from omnijudge.judging.store import JudgementStore

KEEP_EVERY = 5.0
"""Seconds between two notes of what was spent; a kill forgets no more than that."""


@dataclass(frozen=True)
class RunFlags:
    """What the command line says beside the configuration.

    Attributes:
        limit: take the first so many samples of the seeded order.
        dry_run: count the questions and write nothing.
        fresh: discard the run, not the store.
        no_store: keep answers in the run's folder only.
        quiet: show no progress.
        shard: judge this share of the samples only.
        lock: file with the models as resolved, written or read.
    """

    limit: int | None = None
    dry_run: bool = False
    fresh: bool = False
    no_store: bool = False
    quiet: bool = False
    shard: Shard = WHOLE
    lock: str | None = None


@dataclass
class Outcome:
    """How a run ended.

    Attributes:
        output: its folder; None after a dry run.
        exit_code: as the command line ends.
        counts: what was read, asked, reused, lost.
        problems: everything found in the inputs.
        messages: sentences for the user.
    """

    output: Path | None
    exit_code: int
    counts: dict[str, Any]
    problems: list[Problem] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)


def run(config: RunConfig, flags: RunFlags | None = None) -> Outcome:
    """Runs a configuration from inputs to report; safe to call again.

    Raises:
        OmnijudgeError: it could not run; nothing of an earlier run under the same output is lost.
    """
    flags = flags or RunFlags()
    progress = Progress(not flags.quiet)
    try:
        return _Run(config, flags, progress).run()
    finally:
        progress.end()


class _Run:
    def __init__(self, config: RunConfig, flags: RunFlags, progress: Progress) -> None:
        check_price(config)
        lock = read_lock(flags.lock)
        self.config = config = config if lock is None else lock.applied_to(config)
        self.flags = flags
        self.progress = progress
        self.benchmark = get_benchmark(config.benchmark)
        self.options = resolve_options(self.benchmark, config.scoring)
        self.messages: list[str] = []
        self.seats = open_seats(self.benchmark, config, self.options, self.messages)
        settle_lock(flags.lock, lock, config, self.seats, self.messages)
        self.directory = RunDirectory(config.output)
        if flags.shard.count > 1:
            self.directory = self.directory.shard(flags.shard)
        self.counts: dict[str, Any] = {}
        self.results = ResultCounts({}, 0)
        self.exams: dict[str, Any] = {}
        self.limits = LimitSet(config.limits, 0.0, 1 / flags.shard.count)
        self.earlier: dict[str, Usage] = {}
        self.usage: dict[str, Usage] = {}
        self.stop: Stop | None = None
        self.engine_counters: list[Mapping[str, float]] = []
        self.errors: list[ErrorCount] = []

    def run(self) -> Outcome:
        if self.flags.dry_run:
            with tempfile.TemporaryDirectory() as folder:
                return self.in_folder(Path(folder))
        self.directory.check_usable()
        with self.directory.locked():
            _remove_unfinished(self.directory.path)  # a killed run leaves such things behind
            if self.flags.fresh:
                self.directory.clear()
            try:
                return self.in_folder(self.directory.path)
            finally:
                _remove_unfinished(self.directory.path)

    def in_folder(self, folder: Path) -> Outcome:
        flags = self.flags
        ingest = read_annotations(self.config, self.benchmark, flags.limit, shard=flags.shard)
        if not ingest.plan.blocks:
            self.messages.append(f"shard {flags.shard}: there are fewer samples than shards")
            return Outcome(None, 0, {}, ingest.problems, self.messages)
        choose_baseline(self.config.statistics.baseline, ingest.plan.systems)
        refuse_bad(self.config, ingest, outputs=False)
        unit_clusters(ingest.annotations.units, self.config.statistics.cluster)
        with tempfile.TemporaryDirectory(dir=folder, prefix=INGEST) as new:
            read_outputs(
                self.config, self.benchmark, ingest, self.options, Path(new), self.progress
            )
            refuse_bad(self.config, ingest, outputs=self.options.profile == "published")
            inputs = inputs_of(self.config, self.seats, ingest, self.flags.limit)
            if not self.flags.dry_run:
                self.check_same_run(inputs)
            for name in ("units", "outputs", "chunks", "stages"):
                os.replace(Path(new) / f"{name}.parquet", folder / f"{name}.parquet")
        with ExitStack() as stack:
            store = None if self.flags.dry_run else stack.enter_context(self.open_store())
            self.connect(store)
            asking = asking_over(
                self.config, self.benchmark, self.options, self.seats, ingest, folder, stack
            )
            if self.flags.dry_run:
                self.judge(asking, store, inputs)
                self.counts |= input_counts(ingest)
                self.count_open(asking)
                return Outcome(None, 0, self.counts, ingest.problems, self.messages)
            self.earlier = self.directory.usage()
            self.copy_packs()
            if store is not None:
                self.examine(store)
            self.judge(asking, store, inputs)
            self.counts |= input_counts(ingest)
            self.finish(ingest, asking, folder, inputs)
        if flags.shard.count > 1:
            self.messages.append(
                f"shard {flags.shard}: these results are about its share of the samples; run "
                "without --shard when all shards are done"
            )
        return Outcome(folder, self.exit_code(ingest), self.counts, ingest.problems, self.messages)

    # Inputs

    def check_same_run(self, inputs: dict[str, Any]) -> None:
        """Refuses to go on under an output whose inputs or judge were others."""
        manifest = self.directory.manifest()
        if manifest is None or "inputs" not in manifest:
            return
        old, new = dict(manifest["inputs"]), dict(inputs)
        if old.get("limit") != new["limit"]:
            # A trial with --limit grows into the whole run: other samples, the same judge.
            for key in ("limit", "data", "systems"):
                old.pop(key, None)
                new.pop(key)
        changed = changed_keys(old, new)
        if changed:
            raise ConfigError(
                f"output: {self.directory.path} holds a run with other inputs: "
                f"{', '.join(changed)} changed; name another output, or start anew with --fresh "
                "(the judgement store keeps all answers)"
            )

    # Judging

    @contextlib.contextmanager
    def open_store(self) -> Iterator[JudgementStore | None]:
        if all(s.judge.engine == "replay" for s in self.seats):
            yield None
            return
        from omnijudge.judging.store import JudgementStore
        from omnijudge.judging.store_place import sharing_warning

        path = self.config.store or default_store()
        if self.flags.no_store:
            path = str(self.directory.path / OWN_STORE)
        shards = self.flags.shard.count > 1
        warning = sharing_warning(path, shards, on_cluster(self.config))
        if warning is not None:
            self.messages.append(warning)
        with JudgementStore(path) as store:
            self.messages.extend(str(p) for p in store.report)
            yield store

    def connect(self, store: JudgementStore | None) -> None:
        """Gives every judge's seat its source of answers."""
        for seat in self.seats:
            if seat.source is None:
                seat.source = StoredAnswers(store) if store is not None else NoAnswers()

    def examine(self, store: JudgementStore) -> None:
        """Stops here if a judge fails the exam it has to sit (``judge.exam``).

        Raises:
            GateError: it passed less than it has to; ``omnijudge exam`` lists the failures.
        """
        from omnijudge.exam import check_passed, load_exam, sit_exam

        sitting = [s for s in self.seats if s.judge.exam is not None]
        if not sitting:
            return
        exam = load_exam(self.benchmark)
        for seat in sitting:
            result = sit_exam(exam, self.benchmark, seat, self.config, store, self.progress)
            self.exams[seat.judge.name] = result.manifest()
            check_passed([(result, seat.judge.exam or 0.0)])

    def judge(self, asking: Asking, store: JudgementStore | None, inputs: dict[str, Any]) -> None:
        """Asks all judges what is open; writes down what it costs while it goes on."""
        self.limits.spent = total(self.earlier.values()).cost
        written = [-math.inf]

        def keep(usage: Mapping[str, Usage]) -> None:
            if time.monotonic() - written[0] < KEEP_EVERY:
                return
            written[0] = time.monotonic()
            self.directory.write_manifest(
                {
                    "state": "running",
                    "inputs": inputs,
                    "usage": plain_usage(added(self.earlier, usage)),
                }
            )

        step = JudgeStep(
            self.config, asking, store, self.limits, self.progress, self.messages.append, keep
        )
        if not self.flags.dry_run:
            keep({})
        step.run(self.flags.dry_run)
        self.stop = step.stop
        self.usage = step.usage
        self.counts["questions"] = asking.count
        self.engine_counters = list(step.counters.values())
        self.errors = list(step.errors.values())

    # Results

    def finish(self, ingest: Ingest, asking: Asking, folder: Path, inputs: dict[str, Any]) -> None:
        """Writes questions, judgements, scores, metrics, manifest and report."""
        from omnijudge.report.html import write_report

        ids = [sample for block in ingest.plan.blocks for sample in block]
        units = block_units(ingest.annotations.units, ids)
        self.results = write_results(
            asking, units, ingest.missing, self.config.statistics, folder, self.progress,
            self.all_usage(), self.stop is not None,
        )  # fmt: skip
        for seat in self.seats:
            if isinstance(seat.source, ReplayedAnswers) and seat.source.unused:
                self.messages.append(
                    f"judge {seat.judge.name}: {seat.source.unused} questions of the answers file "
                    "were not asked here"
                )
        self.counts |= self.results.for_manifest()
        self.directory.write_manifest(self.manifest(ingest, inputs))
        write_report(self.directory.path)

    def all_usage(self) -> dict[str, Usage]:
        """What was asked under this output: now, before, and by its shards."""
        return added(self.earlier, self.usage, *self.directory.shard_usage())

    def count_open(self, asking: Asking) -> None:
        """For a dry run: distinct questions per judge."""
        distinct = {}
        for number, seat in enumerate(self.seats):
            prints = {p for a in asking.asked for p in a.fingerprints(number)}
            distinct[seat.judge.name] = len(prints) * seat.judge.repeats
        self.counts["distinct_questions"] = distinct

    def manifest(self, ingest: Ingest, inputs: dict[str, Any]) -> dict[str, Any]:
        """``run.json``."""
        now, ever = total(self.usage.values()), total(self.all_usage().values())
        return {
            "state": "stopped" if self.stop else "done",
            "stopped": self.stop.message if self.stop else None,
            "stopped_by": self.stop.kind if self.stop else None,
            "shard": str(self.flags.shard) if self.flags.shard.count > 1 else None,
            "omnijudge": __version__,
            "config": self.config.model_dump(mode="json"),
            "scoring": self.options.model_dump(mode="json"),
            "inputs": inputs,
            "benchmark": description(self.benchmark, self.benchmark.metrics(self.options)),
            "judges": judges_of(self.seats),
            "exam": self.exams,
            "seeds": {"statistics": self.config.statistics.seed},
            "counts": {
                **self.counts,
                "asked": now.requests,
                "reused": self.counts["questions"] - now.verdicts - now.errors,
            },
            "usage": plain_usage(added(self.earlier, self.usage)),
            "tokens": {
                "prompt": ever.prompt_tokens,
                "cached": ever.cached_tokens,
                "output": ever.output_tokens,
            },
            "cost": ever.cost,
            "messages": self.messages,
            "seconds": self.progress.seconds,
            **surroundings(ingest.problems, self.errors, self.engine_counters),
        }

    def copy_packs(self) -> None:
        """Keeps a copy of every prompt pack used."""
        for seat in self.seats:
            for name, data in seat.asker.pack.files.items():
                target = self.directory.path / PACKS / seat.judge.name / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)

    def exit_code(self, ingest: Ingest) -> int:
        """What happened, as a number (contract of the command line)."""
        if self.stop is not None:
            return {"deadline": 5, "cost": 5, "interrupted": 130}.get(self.stop.kind, 1)
        limits = self.config.limits
        beyond = invalid_beyond(self.results.answers, limits.max_invalid)
        if beyond:
            self.messages.extend(beyond)
            return 3
        if self.counts["unscored_units"] > limits.max_unscored:
            self.messages.append(
                f"{self.counts['unscored_units']} units are unscored, more than limits.max_unscored"
            )
            return 3
        skipped = len(ingest.bad_samples)
        if self.options.profile == "published":
            skipped += sum(ingest.missing[system] for system in ingest.settings)
        if skipped or any(p.level == "error" and p.system is None for p in ingest.problems):
            self.messages.append(f"{skipped} samples were skipped because of problems in the data")
            return 3
        return 0


class NoAnswers:
    """The source of a dry run: nothing is answered."""

    def attempts(
        self, keys: Any, fingerprints: Any, repeat: int, most: int
    ) -> list[list[tuple[int, Any]]]:
        """No attempts."""
        return [[] for _ in fingerprints]


def on_cluster(config: RunConfig) -> bool:
    """Whether the run is driven from a Ray cluster that was there before it."""
    execution = config.execution
    address = execution.address or os.environ.get("RAY_ADDRESS")
    return execution.backend == "ray" and address not in (None, "", "local")


def _remove_unfinished(folder: Path) -> None:
    import shutil

    for p in folder.glob("*.unfinished"):
        p.unlink(missing_ok=True)
    for p in folder.glob(f"{INGEST}*"):
        shutil.rmtree(p, ignore_errors=True)
