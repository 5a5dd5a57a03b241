"""A whole corpus from tables to statuses in one call, block by block."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from omnijudge.benchmarks.omni_interactscope.assignment import Assignment, Pairs, assign, pairs
from omnijudge.benchmarks.omni_interactscope.matching import Codes
from omnijudge.benchmarks.omni_interactscope.scoring import pair_verdicts, statuses
from omnijudge.benchmarks.omni_interactscope.windows import Ints

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Partition
    from omnijudge.benchmarks.omni_interactscope.options import Options

Verdicts = Callable[["Partition", Assignment, Pairs], Codes]


@dataclass(frozen=True, eq=False)
class CorpusStatuses:
    """What became of every target of a corpus, in the order of the blocks.

    Attributes:
        status: places in ``scoring.STATUSES``, ``scoring.UNDECIDED`` where a verdict is missing,
            (targets,).
        output_index: response the status is about, by its place in its file; -1 for none.
    """

    status: Codes
    output_index: Ints


def corpus_statuses(
    parts: Iterable[Partition],
    options: Options,
    verdicts: Verdicts = pair_verdicts,
    threads: int = 1,
) -> CorpusStatuses:
    """Statuses of all targets of many partitions.

    Blocks are taken from ``parts`` as threads become free, so that memory holds ``threads + 1`` of
    them and the result, whatever their number. The result does not depend on ``threads``.

    Args:
        parts: partitions with units, outputs and chunks (and stages with verdicts, unless
            ``verdicts`` does without).
        options: scoring options.
        verdicts: gives the verdict of each pair.
        threads: blocks computed at once.

    Raises:
        ValueError: ``threads`` is less than 1.
    """
    if threads < 1:
        raise ValueError(f"threads is {threads}; it must be at least 1")
    # A corpus is worth compiling for. Imported here, once, and not in every thread.
    import omnijudge_kernels.first_response
    import omnijudge_kernels.matching
    import omnijudge_kernels.windows  # noqa: F401

    def work(part: Partition) -> tuple[Codes, Ints]:
        assignment = assign(part, options)
        asked = pairs(assignment)
        verdict = verdicts(part, assignment, asked)
        status, response = statuses(part, assignment, asked, verdict, options)
        index = np.full(len(response), -1, dtype=np.int64)
        has = np.flatnonzero(response >= 0)
        chunk_id = part.chunks["chunk_id"].to_numpy()
        index[has] = chunk_id[assignment.responses.first[response[has]]]
        return status, index

    done = list(_in_order(work, parts, threads))
    return CorpusStatuses(
        np.concatenate([np.empty(0, np.int8), *(s for s, _ in done)]),
        np.concatenate([np.empty(0, np.int64), *(i for _, i in done)]),
    )


def _in_order(
    work: Callable[[Partition], tuple[Codes, Ints]], parts: Iterable[Partition], threads: int
) -> Iterator[tuple[Codes, Ints]]:
    """Results in the order of the parts, with at most ``threads`` of them under way."""
    if threads == 1:
        yield from map(work, parts)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[tuple[Codes, Ints]]] = deque()
        for part in parts:
            waiting.append(pool.submit(work, part))
            if len(waiting) >= threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
