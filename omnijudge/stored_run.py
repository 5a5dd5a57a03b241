"""A run as it lies on disk, ready for its steps to be run again: score, show, status."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from omnijudge import tables
from omnijudge.asking import Asking, JudgeSeat
from omnijudge.benchmarks import get_benchmark
from omnijudge.benchmarks.base import Partition
from omnijudge.config import PanelConfig, RunConfig
from omnijudge.errors import DataError
from omnijudge.ingest import block_units, match
from omnijudge.judging.prompts import PromptPack
from omnijudge.judging.question import Asker
from omnijudge.judging.replay import NOT_THERE, Key
from omnijudge.judging.types import Identity, Reply
from omnijudge.partitions import Plan, TableReader, read_table, row_groups
from omnijudge.run_directory import PACKS, RunDirectory
from omnijudge.seats import reading, resolve_options

KEYS = ("system", "sample_id", "unit_id", "item", "stage")


class RecordedAnswers:
    """Answers from a run's own ``judgements.parquet``: by fingerprint, or by row for a replay."""

    def __init__(self, judgements: pa.Table, judge: str, by_row: bool) -> None:
        own = judgements.filter(pc.equal(judgements["judge"], judge))
        self._by_row = by_row
        self._found: dict[Any, dict[int, Reply]] = {}
        names = [
            *KEYS, "fingerprint", "repeat", "attempt", "raw", "status", "reason", "model",
            "prompt_tokens", "cached_tokens", "output_tokens",
        ]  # fmt: skip
        for r in zip(*(own[n].to_pylist() for n in names), strict=True):
            row = dict(zip(names, r, strict=True))
            key: Any = tuple(row[n] for n in KEYS)
            if not by_row:
                key = bytes.fromhex(row["fingerprint"])
            error = row["reason"] if row["raw"] is None else None
            self._found.setdefault((key, row["repeat"]), {})[row["attempt"]] = Reply(
                raw=row["raw"],
                error=error,
                model=row["model"] or "",
                prompt_tokens=row["prompt_tokens"],
                cached_tokens=row["cached_tokens"],
                output_tokens=row["output_tokens"],
            )

    def attempts(
        self, keys: Sequence[Key], fingerprints: Sequence[bytes], repeat: int, most: int
    ) -> list[list[tuple[int, Reply]]]:
        """Per question its recorded attempts."""
        wanted: Sequence[Any] = keys if self._by_row else fingerprints
        found = []
        for key in wanted:
            attempts = self._found.get((key, repeat), {})
            if not attempts and self._by_row:
                found.append([(1, Reply(raw=None, error=NOT_THERE))])
                continue
            found.append([(n, attempts[n]) for n in sorted(attempts) if n <= most])
        return found


class StoredRun:
    """A finished (or stopped) run.

    Attributes:
        config: its configuration, with ``scoring`` replaced if other options were given.
        plan: samples in blocks, and systems.
        units: units of all samples, in the order of the plan.
    """

    def __init__(self, path: str | Path, scoring: dict[str, Any] | None = None) -> None:
        """Opens a run.

        Args:
            path: its folder.
            scoring: scoring options instead of its own.

        Raises:
            DataError: there is no run, or it has not come to its end yet.
            ConfigError: the scoring options are wrong.
        """
        self.directory = RunDirectory(path)
        manifest = self.directory.manifest()
        if manifest is None:
            raise DataError(f"{path}: there is no run here (no run.json); check the path")
        if "config" not in manifest:
            raise DataError(f"{path}: the run has not ended yet; run its configuration again")
        self.manifest = manifest
        config = RunConfig.model_validate(manifest["config"])
        if scoring is not None:
            config = config.model_copy(update={"scoring": scoring})
        self.config = config
        self.benchmark = get_benchmark(config.benchmark)
        self.options = resolve_options(self.benchmark, config.scoring)
        self.units = read_table(self.directory.table("units"))
        self.plan = self._plan()
        self._blocks = [block_units(self.units, ids) for ids in self.plan.blocks]
        self._stack = ExitStack()
        self._readers: dict[str, TableReader] = {}

    def _plan(self) -> Plan:
        """Blocks and systems, from the row groups of the outputs."""
        file = pq.ParquetFile(self.directory.table("outputs"))
        systems: dict[str, None] = {}
        blocks: dict[tuple[str, ...], None] = {}
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, columns=["system", "sample_id"])
            systems.setdefault(rows["system"][0].as_py())
            blocks.setdefault(tuple(rows["sample_id"].to_pylist()))
        file.close()
        return Plan([list(b) for b in blocks], list(systems))

    def _read(self, name: str, schema: pa.Schema, position: int) -> pa.Table:
        if name not in self._readers:
            path = self.directory.table(name)
            reader = TableReader(path, schema, row_groups(path, self.plan))
            self._readers[name] = reader
            self._stack.callback(reader.close)
        return self._readers[name].read(position)

    def partition(self, block: int, system: int, with_chunks: bool = True) -> Partition:
        """A partition, matched anew under the options of this object."""
        return match(self.benchmark, self.unmatched(block, system), self.options)

    def unmatched(self, block: int, system: int) -> Partition:
        """A partition as it was read, for any options to be matched under."""
        at = self.plan.position(block, system)
        return Partition(
            self.plan.systems[system],
            self._blocks[block],
            self._read("outputs", tables.OUTPUTS, at),
            self._read("chunks", self.benchmark.chunk_schema, at),
            self.benchmark.stage_schema.empty_table(),
            folder=self.config.data.folder,
        )

    @property
    def missing(self) -> dict[str, int]:
        """Per system the samples without a usable output."""
        found: dict[str, int] = self.manifest["counts"]["missing_outputs"]
        return found

    @property
    def stopped(self) -> bool:
        """Whether it ended before everything was asked."""
        return bool(self.manifest.get("state") == "stopped")

    def pack(self, judge: str) -> PromptPack:
        """The copy of the prompt pack that a judge was asked with."""
        return PromptPack(self.directory.path / PACKS / judge)

    @property
    def combine(self) -> str:
        """How the verdicts of a panel become one."""
        judge = self.config.judge
        return judge.combine if isinstance(judge, PanelConfig) else "mean"

    def seats(self, by_row: bool = False) -> list[JudgeSeat]:
        """The judges of the run with their recorded answers.

        Args:
            by_row: look answers up by row, whatever was asked; a replay's always are.
        """
        judgements = read_table(self.directory.table("judgements"))
        seats = []
        for judge in self.config.judges:
            about = self.manifest["judges"][judge.name]
            options = self.manifest["inputs"]["judge"][judge.name]["engine_options"]
            identity = Identity(about["identity"], about["identity_details"])
            if revision := identity.details.get("revision"):
                judge = judge.model_copy(update={"revision": revision})
            asker = Asker(judge, self.pack(judge.name), identity, options)
            row_keyed = by_row or judge.engine == "replay"
            source = RecordedAnswers(judgements, judge.name, row_keyed)
            seats.append(JudgeSeat(judge, asker, source, *reading(judge, self.options)))
        return seats

    def asking(self) -> Asking:
        """The questions of the run under the options of this object, with recorded answers."""
        seats = self.seats()
        asking = Asking(
            self.benchmark, self.options, self.plan, seats, self.combine, self.partition
        )
        for _ in range(self.benchmark.rounds):
            if not asking.find():
                break
        return asking

    def close(self) -> None:
        """Closes its files."""
        self._stack.close()

    def __enter__(self) -> StoredRun:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
