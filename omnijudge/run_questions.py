"""The questions of a configuration: over tables on disk, and without a run around them."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnijudge import tables
from omnijudge.asking import Asking
from omnijudge.benchmarks.base import Partition
from omnijudge.config import PanelConfig
from omnijudge.ingest import block_units, read_annotations, read_outputs, refuse_bad
from omnijudge.partitions import TableReader
from omnijudge.seats import default_store, open_seats, resolve_options

if TYPE_CHECKING:
    from omnijudge.asking import JudgeSeat
    from omnijudge.benchmarks.base import Benchmark
    from omnijudge.config import RunConfig
    from omnijudge.ingest import Ingest
    from omnijudge.judging.store import JudgementStore
    from omnijudge.progress import Progress


def asking_over(
    config: RunConfig,
    benchmark: Benchmark,
    options: Any,
    seats: list[JudgeSeat],
    ingest: Ingest,
    folder: Path,
    stack: ExitStack,
) -> Asking:
    """The questions of a run whose tables were written by ``read_outputs``.

    Args:
        config: the run.
        benchmark: its benchmark.
        options: its scoring options.
        seats: its judges.
        ingest: what came in.
        folder: where the tables are.
        stack: closes the files.
    """
    units = [block_units(ingest.annotations.units, ids) for ids in ingest.plan.blocks]
    schemas = {
        "outputs": tables.OUTPUTS,
        "chunks": benchmark.chunk_schema,
        "stages": benchmark.stage_schema,
    }
    readers = {
        n: TableReader(folder / f"{n}.parquet", s, ingest.groups[n]) for n, s in schemas.items()
    }
    for reader in readers.values():
        stack.callback(reader.close)

    def load(block: int, system: int, with_chunks: bool = False) -> Partition:
        at = ingest.plan.position(block, system)
        wanted = with_chunks or benchmark.questions_need_chunks
        chunks = readers["chunks"].read(at) if wanted else schemas["chunks"].empty_table()
        return Partition(
            ingest.plan.systems[system],
            units[block],
            readers["outputs"].read(at),
            chunks,
            readers["stages"].read(at),
            folder=config.data.folder,
        )

    judge = config.judge
    how = judge.combine if isinstance(judge, PanelConfig) else "mean"
    return Asking(benchmark, options, ingest.plan, seats, how, load)


@dataclass(frozen=True)
class RunQuestions:
    """The questions of a configuration with what is known about them.

    Attributes:
        asking: all questions that can be asked by now, later rounds included as far as the
            answers in the store raise them.
        store: where the answers are.
        notes: sentences for the user.
    """

    asking: Asking
    store: JudgementStore
    notes: tuple[str, ...]


@contextlib.contextmanager
def questions_of(
    config: RunConfig, progress: Progress, limit: int | None = None
) -> Iterator[RunQuestions]:
    """Reads a configuration's inputs into a temporary folder and finds its questions.

    Args:
        config: the run; its output is neither read nor written.
        progress: shows how far it is.
        limit: take the first so many samples of the seeded order.

    Raises:
        OmnijudgeError: as a run would.
    """
    from omnijudge.benchmarks import get_benchmark
    from omnijudge.judging.store import JudgementStore
    from omnijudge.judging.verdicts import StoredAnswers

    benchmark = get_benchmark(config.benchmark)
    options = resolve_options(benchmark, config.scoring)
    notes: list[str] = []
    seats = open_seats(benchmark, config, options, notes)
    ingest = read_annotations(config, benchmark, limit)
    refuse_bad(config, ingest, outputs=False)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        read_outputs(config, benchmark, ingest, options, Path(folder), progress)
        refuse_bad(config, ingest, outputs=options.profile == "published")
        store = stack.enter_context(JudgementStore(config.store or default_store()))
        notes.extend(str(p) for p in store.report)
        for seat in seats:
            if seat.source is None:
                seat.source = StoredAnswers(store)
        asking = asking_over(config, benchmark, options, seats, ingest, Path(folder), stack)
        progress.start("finding questions")
        for _ in range(benchmark.rounds):
            if not asking.find():
                break
        progress.end()
        yield RunQuestions(asking, store, tuple(notes))
