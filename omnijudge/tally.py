"""What is counted while results are written: how answers ended, what was wrong with them, how far
judges lie apart, and what asking has cost and saved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from omnijudge.judging.answer_faults import names_in
from omnijudge.judging.verdicts import combine
from omnijudge.usage import Usage

if TYPE_CHECKING:
    import numpy.typing as npt

    from omnijudge.asking import Asked, JudgeSeat
    from omnijudge.judging.verdicts import Outcome


@dataclass
class _Spreads:
    """Spreads of the verdicts of one stage."""

    verdicts: int = 0
    differing: int = 0
    total: float = 0.0
    largest: float = 0.0

    def add(self, spread: float) -> None:
        self.verdicts += 1
        self.differing += spread > 0
        self.total += spread
        self.largest = max(self.largest, spread)


class Tally:
    """Counts, partition by partition.

    Attributes:
        status: (system, stage, status) -> questions; ``not asked`` where there is no end yet.
        faults: name of a fault or flag -> attempts that have it.
    """

    def __init__(self, seats: Sequence[JudgeSeat], how: str) -> None:
        self.status: Counter[tuple[str, str, str]] = Counter()
        self.faults: Counter[str] = Counter()
        self._how = how
        self._seats = [(n, s, r) for n, s in enumerate(seats) for r in range(s.judge.repeats)]
        self._spreads: dict[str, _Spreads] = {}
        self._prints: list[list[bytes]] = [[] for _ in self._seats]
        self._tokens: list[list[npt.NDArray[np.int64]]] = [[] for _ in self._seats]

    def add(
        self, system: str, stages: Sequence[str], asked: Asked, results: list[list[Outcome]]
    ) -> list[float | None]:
        """Counts one partition.

        Args:
            system: its system.
            stages: stage of every row of its stage table.
            asked: its questions.
            results: their outcomes, judges outside, repeats inside.

        Returns:
            Per question the spread of its judges.
        """
        spreads = []
        for row, panel in zip(asked.rows, results, strict=True):
            stage = stages[row]
            for outcome in panel:
                self.status[system, stage, outcome.status or "not asked"] += 1
                for attempt in outcome.attempts:
                    self.faults.update(names_in(attempt.answer.reason))
            spread = combine(panel, self._how)[2] if len(panel) > 1 else None
            spreads.append(spread)
            if spread is not None:
                self._spreads.setdefault(stage, _Spreads()).add(spread)
        for place, (number, seat, _) in enumerate(self._seats):
            if seat.judge.engine == "replay":
                continue
            self._prints[place].append(bytes(asked.prints[number]))
            tokens = [
                sum(a.reply.prompt_tokens for a in panel[place].attempts) for panel in results
            ]
            self._tokens[place].append(np.array(tokens, np.int64))
        return spreads

    def answers(self) -> dict[str, Any]:
        """System -> stage -> status -> questions."""
        nested: dict[str, Any] = {}
        for (system, stage, status), n in sorted(self.status.items()):
            nested.setdefault(system, {}).setdefault(stage, {})[status] = n
        return nested

    def spreads(self) -> dict[str, dict[str, float]]:
        """Per stage how far several judges (or repeats of one) lie apart; empty without them."""
        return {
            stage: {
                "verdicts": s.verdicts,
                "differing": s.differing,
                "mean": s.total / s.verdicts,
                "largest": s.largest,
            }
            for stage, s in sorted(self._spreads.items())
        }

    def economy(self, usage: Mapping[str, Usage]) -> dict[str, dict[str, float | None]]:
        """Per judge what asking has cost and saved.

        Args:
            usage: what was asked under this output, all beginnings of the run together.

        Returns:
            Judge -> ``questions`` and the ``distinct`` ones among them; ``prompt_tokens`` that
            asking each question by itself would take, of which ``saved_by_deduplication``,
            ``saved_by_store`` (asked by other runs, or before a kill) and ``asked``;
            ``saved_by_prefix_cache`` of those asked, by the engine's own counters (or the
            replies, where it has none); ``output_tokens_per_verdict``.
        """
        sums: dict[str, Counter[str]] = {}
        for place, (_, seat, _) in enumerate(self._seats):
            if seat.judge.engine == "replay":
                continue
            prints = np.frombuffer(b"".join(self._prints[place]), np.dtype("V16"))
            none: list[npt.NDArray[np.int64]] = [np.empty(0, np.int64)]
            tokens = np.concatenate(self._tokens[place] or none)
            _, first = np.unique(prints, return_index=True)
            counts = sums.setdefault(seat.judge.name, Counter())
            counts["questions"] += len(prints)
            counts["distinct"] += len(first)
            counts["prompt_tokens"] += int(tokens.sum())
            counts["distinct_tokens"] += int(tokens[first].sum())
        return {judge: _economy(c, usage.get(judge, Usage())) for judge, c in sums.items()}


def _economy(counts: Mapping[str, int], usage: Usage) -> dict[str, float | None]:
    return {
        "questions": counts["questions"],
        "distinct": counts["distinct"],
        "prompt_tokens": counts["prompt_tokens"],
        "saved_by_deduplication": counts["prompt_tokens"] - counts["distinct_tokens"],
        "saved_by_store": max(counts["distinct_tokens"] - usage.prompt_tokens, 0),
        "asked": usage.prompt_tokens,
        "saved_by_prefix_cache": usage.cache_hits or usage.cached_tokens,
        "output_tokens": usage.output_tokens,
        "output_tokens_per_verdict": (
            usage.output_tokens / usage.verdicts if usage.verdicts else None
        ),
    }
