"""Which questions go to a judge, and in which order.

Samples in the seeded order; inside by unit, stage, item, system. All systems' questions about one
unit stand together and share their prefix, and any prefix of the night is a random set of complete
samples. Questions that follow from answers (a second round) are found soon after these are in, not
at the end of the night, so that samples are complete early.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from omnijudge.errors import EvidenceError
from omnijudge.judging.verdicts import StoredAnswers, outcomes

if TYPE_CHECKING:
    from omnijudge.asking import Asking
    from omnijudge.benchmarks.base import Partition, Prompt
    from omnijudge.judging.types import Request


@dataclass(frozen=True, slots=True)
class Entry:
    """One open question.

    Attributes:
        order: what questions of a block are sorted by.
        sample: its sample.
        prompt: what it is rendered from.
        fingerprint: 16 bytes.
    """

    order: tuple[Any, ...]
    sample: str
    prompt: Prompt
    fingerprint: bytes


@dataclass(frozen=True, slots=True)
class _Group:
    """Samples whose questions are on their way, and which may raise further ones."""

    block: int
    samples: tuple[str, ...]
    prints: tuple[bytes, ...]


class OpenQuestions:
    """The open questions of one judge, each fingerprint once, as (sample, request)."""

    def __init__(
        self,
        asking: Asking,
        seat: int,
        group_size: int = 512,
        samples: Collection[str] | None = None,
    ) -> None:
        """Prepares the order.

        Args:
            asking: the questions of the run, as far as they are known.
            seat: number of the judge.
            group_size: about as many questions as are in flight at one time: further questions
                are looked for when so many later ones have been handed out.
            samples: only questions about these.
        """
        self._asking = asking
        self._number = seat
        self._seat = asking.seats[seat]
        self._size = group_size
        self._samples = samples
        self._seen: set[bytes] = set()

    def __iter__(self) -> Iterator[tuple[str, Request]]:
        waiting: list[_Group] = []
        for block, ids in enumerate(self._asking.plan.blocks):
            wanted = ids
            if self._samples is not None:
                wanted = [s for s in ids if s in self._samples]
            if not wanted:
                continue
            entries = self.entries(block, None if len(wanted) == len(ids) else wanted)
            for group, some in self._groups(block, wanted, entries):
                yield from self._requests(some)
                if self._asking.benchmark.rounds > 1:
                    for earlier in [g for g in waiting if self._answered(g)]:
                        waiting.remove(earlier)
                        yield from self._requests(self._following(earlier))
                    waiting.append(group)
        for group in waiting:
            if self._answered(group):
                yield from self._requests(self._following(group))

    def entries(self, block: int, samples: Sequence[str] | None = None) -> list[Entry]:
        """The open questions of a block (or of some of its samples), in order."""
        found: list[Entry] = []
        for system in range(len(self._asking.plan.systems)):
            found += self._entries_of(block, system, samples)
        return sorted(found, key=lambda e: e.order)

    def _groups(
        self, block: int, samples: Sequence[str], entries: list[Entry]
    ) -> Iterator[tuple[_Group, list[Entry]]]:
        """Cuts a block between samples, so that every part has some questions."""
        begin = at = first = 0
        for number, sample in enumerate(samples):
            while at < len(entries) and entries[at].sample == sample:
                at += 1
            if at - begin >= self._size or number == len(samples) - 1:
                some = entries[begin:at]
                prints = tuple(e.fingerprint for e in some)
                yield _Group(block, tuple(samples[first : number + 1]), prints), some
                begin, first = at, number + 1

    def _requests(self, entries: Sequence[Entry]) -> Iterator[tuple[str, Request]]:
        for entry in entries:
            if entry.fingerprint in self._seen:
                continue
            self._seen.add(entry.fingerprint)
            try:
                question = self._seat.asker.question(entry.prompt)
            except EvidenceError as e:  # what it has to show is decoded here at the earliest
                self._seat.refused[entry.fingerprint] = str(e)
                continue
            for repeat in range(self._seat.judge.repeats):
                yield entry.sample, self._seat.asker.request(entry.prompt, question, repeat)

    def _answered(self, group: _Group) -> bool:
        source = self._seat.source
        return not isinstance(source, StoredAnswers) or source.has_all(group.prints)

    def _following(self, group: _Group) -> list[Entry]:
        """Questions that the answers about these samples raise."""
        found = 0
        for system in range(len(self._asking.plan.systems)):
            found += self._asking.find_in(group.block, system, group.samples)
        return self.entries(group.block, group.samples) if found else []

    def _entries_of(self, block: int, system: int, samples: Sequence[str] | None) -> list[Entry]:
        from omnijudge.asking import stage_keys

        asking, seat = self._asking, self._seat
        part, asked = asking.part_of(block, system, samples)
        if not asked.rows:
            return []
        rows = np.array(asked.rows, np.int64)
        prompts = asking.benchmark.prompts(part, rows, asking.options)
        prints = asked.fingerprints(self._number)
        keys = stage_keys(part, rows)
        wanted: set[int] = set()
        for repeat in range(seat.judge.repeats):
            found = outcomes(
                asking.benchmark, seat.source, seat.mode, seat.most, keys, prints, prompts, repeat
            )
            wanted |= {i for i, o in enumerate(found) if o.status in (None, "error")}
        wanted = {i for i in wanted if prints[i] not in seat.refused}
        if not wanted:
            return []
        sample_at = {s: i for i, s in enumerate(asking.plan.blocks[block])}
        unit_at = _unit_positions(part)
        stage_at = {s: i for i, s in enumerate(asking.benchmark.stages)}
        entries = []
        for i in sorted(wanted):
            _, sample, unit, item, stage = keys[i]
            # Units of one system alone (its sentences, say) are no rows of the unit table.
            position = unit_at.get((sample, unit), len(unit_at))
            order = (sample_at[sample], position, unit, stage_at[stage], item or "", system)
            entries.append(Entry(order, sample, prompts[i], prints[i]))
        return entries


def _unit_positions(part: Partition) -> dict[tuple[str, str], int]:
    keys = zip(part.units["sample_id"].to_pylist(), part.units["unit_id"].to_pylist(), strict=True)
    return {key: i for i, key in enumerate(keys)}
