"""What ``validate`` says about one system's transcripts as a whole, and about systems side by side.

Pure functions on :class:`Heard`. Every threshold is a constant here with the reason for its value;
they are set so that ordinary, late, silent and talkative systems pass without a word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from omnijudge.errors import Problem
from omnijudge.transcripts.heard import Heard
from omnijudge.transcripts.mixups import other_samples, same_systems, same_transcripts
from omnijudge.transcripts.offset_hint import offset_problem

__all__ = [
    "ChunkStatistics",
    "Heard",
    "check_system",
    "check_systems",
    "chunk_lengths",
    "chunk_statistics",
    "chunked_differently",
    "milliseconds",
    "truncated",
    "unmatched_share",
    "word_coverage",
]

FEW_CHUNKS = 20
"""Below this number of chunks shares and medians of a system say nothing."""
UNMATCHED = 0.25
"""Share of unmatched chunks that is worth a warning. They lie before the first question or a
minute after the last answer; the published systems have about one in fifty."""
LONG_CHUNK = 20.0
"""Median length in seconds from which chunks are rather recordings than utterances: a chunk is
given to one slot by its start, however many it lasts through."""
WORDS_EXPECTED = 0.9
"""Share of chunks with words from which the rest are exceptions."""
CLIP_SLACK = 5.0
CHANCE = 0.01
"""Probability of one false alarm about truncation over all samples of a system."""
TAIL_SLOTS = 3
"""Unanswered slots at the end before truncation is considered at all."""
FACTOR = 3.0
"""Ratio to the other systems' median that counts as chunked differently."""


@dataclass(frozen=True, slots=True)
class ChunkStatistics:
    """How a system's speech is cut up.

    Attributes:
        chunks: number of chunks with text.
        median_length: seconds; 0 without chunks.
        per_minute: chunks per minute of speech (not of the clip, which would measure
            talkativeness); 0 where chunks have no length.
        unmatched: share of chunks that belong to no slot.
        with_words: share of chunks with words.
        samples: samples with speech.
    """

    chunks: int
    median_length: float
    per_minute: float
    unmatched: float
    with_words: float
    samples: int


def chunk_statistics(outputs: Sequence[Heard]) -> ChunkStatistics:
    """Counts and medians over all samples of a system."""
    lengths = np.concatenate([np.empty(0), *(h.ends - h.starts for h in outputs)])
    number = len(lengths)
    if number == 0:
        return ChunkStatistics(0, 0.0, 0.0, 0.0, 0.0, 0)
    speech = float(lengths.sum())
    return ChunkStatistics(
        number,
        float(np.median(lengths)),
        60 * number / speech if speech > 0 else 0.0,
        sum(h.unmatched for h in outputs) / number,
        sum(h.with_words for h in outputs) / number,
        sum(len(h.starts) > 0 for h in outputs),
    )


def check_system(system: str, file: str, outputs: Sequence[Heard]) -> list[Problem]:
    """Everything about one system.

    Args:
        system: its name.
        file: its folder or file, for findings about the system as a whole.
        outputs: its samples; only those whose transcript was read.
    """
    found = milliseconds(system, file, outputs)
    if not found:  # in the wrong unit everything else looks wrong, too
        found = [
            *offset_problem(system, file, outputs),
            *unmatched_share(system, file, outputs),
            *truncated(system, outputs),
        ]
    return [
        *found,
        *chunk_lengths(system, file, outputs),
        *word_coverage(system, file, outputs),
        *same_transcripts(system, outputs),
        *other_samples(system, outputs),
    ]


def check_systems(
    systems: Mapping[str, Sequence[Heard]], files: Mapping[str, str]
) -> list[Problem]:
    """Everything that shows only beside the other systems."""
    statistics = {name: chunk_statistics(outputs) for name, outputs in systems.items()}
    return [*chunked_differently(statistics, files), *same_systems(systems)]


def unmatched_share(system: str, file: str, outputs: Sequence[Heard]) -> list[Problem]:
    """Warns if many chunks belong to no slot."""
    statistics = chunk_statistics(outputs)
    if statistics.chunks < FEW_CHUNKS or statistics.unmatched < UNMATCHED:
        return []
    count = sum(h.unmatched for h in outputs)
    return [
        Problem(
            "unmatched_share",
            "warning",
            file,
            "",
            f"{count} of {statistics.chunks} chunks ({statistics.unmatched:.0%}) belong to no slot "
            "and count as false positives each; do the times start with the clip?",
            system=system,
            count=count,
        )
    ]


def chunk_lengths(system: str, file: str, outputs: Sequence[Heard]) -> list[Problem]:
    """Warns if chunks are very long, or have no length."""
    statistics = chunk_statistics(outputs)
    if statistics.chunks < FEW_CHUNKS:
        return []
    if statistics.median_length >= LONG_CHUNK:
        message = (
            f"half of the chunks last {statistics.median_length:.0f} s or longer: a chunk is given "
            "to one slot by its start; cut the transcripts at pauses"
        )
    elif statistics.median_length == 0:
        message = "most chunks have no length: their ends are missing, spill cannot be seen"
    else:
        return []
    return [Problem("chunk_length", "warning", file, "", message, system=system)]


def word_coverage(system: str, file: str, outputs: Sequence[Heard]) -> list[Problem]:
    """Says how many chunks have words: without them a chunk across t_a cannot be split."""
    statistics = chunk_statistics(outputs)
    if statistics.chunks == 0 or statistics.with_words >= WORDS_EXPECTED:
        return []
    some = statistics.with_words > 0
    have = f"only {statistics.with_words:.0%} of the chunks have" if some else "no chunk has"
    return [
        Problem(
            "word_coverage",
            "warning" if some and statistics.chunks >= FEW_CHUNKS else "info",
            file,
            "",
            f"{have} word times: a chunk that crosses the moment an answer is due then counts as "
            "early as a whole",
            system=system,
        )
    ]


def milliseconds(system: str, file: str, outputs: Sequence[Heard]) -> list[Problem]:
    """Warns if most samples with speech would fit their slots a thousand times smaller."""
    spoken = suspicious = 0
    for heard in outputs:
        if len(heard.starts) == 0 or len(heard.slot_ends) == 0:
            continue
        spoken += 1
        last = float(heard.slot_ends.max())
        fits = float(heard.ends.max()) / 1000 <= last + CLIP_SLACK
        suspicious += fits and float(np.median(heard.starts)) > last + CLIP_SLACK
    if suspicious == 0 or 2 * suspicious <= spoken:
        return []
    return [
        Problem(
            "suspect_ms",
            "warning",
            file,
            "",
            f"{suspicious} of {spoken} transcripts lie behind all slots and would fit them as "
            "milliseconds? write `time_unit: ms`",
            system=system,
            count=suspicious,
        )
    ]


def truncated(system: str, outputs: Sequence[Heard]) -> list[Problem]:
    """Warns about transcripts that stop well before the last slot.

    A system that answers a share r of the slots of such samples leaves the last k of a sample
    unanswered with probability (1-r)^k by chance; reported is what would not happen once in a
    hundred systems. So a system that is often silent is never suspected, and one that always
    answers is after few slots. Samples without any speech are silence, not truncation.
    """
    tails: list[tuple[Heard, int, int]] = []
    slots: Counter[str] = Counter()
    with_speech: Counter[str] = Counter()
    for heard in outputs:
        if len(heard.starts) == 0 or len(heard.slot_ends) == 0:
            continue
        answered = heard.answered()[np.argsort(heard.slot_starts, kind="stable")]
        slots[heard.group] += len(answered)
        with_speech[heard.group] += int(answered.sum())
        tail = int(np.argmax(answered[::-1])) if answered.any() else 0
        if tail >= TAIL_SLOTS:
            tails.append((heard, tail, int(answered.sum())))
    problems = []
    for heard, tail, own in tails:
        # The rate is that of the other samples; one slot more on either side keeps the rate of
        # few slots away from 0 and 1.
        others = slots[heard.group] - len(heard.slot_starts)
        rate = (with_speech[heard.group] - own + 1) / (others + 2)
        if (1 - rate) ** tail * len(outputs) > CHANCE:
            continue
        due = np.sort(heard.answer_times)
        problems.append(
            Problem(
                "truncated_output",
                "warning",
                heard.file,
                "",
                f"speech stops at {heard.ends.max():.1f} s; the last {tail} of {len(due)} answers "
                f"(from {due[-tail]:.1f} to {due[-1]:.1f} s) have none, though this system answers "
                f"{rate:.0%} elsewhere: cut off? run the clip again",
                heard.sample_id,
                system,
                tail,
            )
        )
    return problems


def chunked_differently(
    statistics: Mapping[str, ChunkStatistics], files: Mapping[str, str]
) -> list[Problem]:
    """Warns about systems whose speech is cut three times finer or coarser than the others'.

    Unmatched chunks count one false positive each, so that finer chunks cost more.
    """
    enough = {n: s for n, s in statistics.items() if s.chunks >= FEW_CHUNKS and s.median_length > 0}
    problems = []
    for name, own in enough.items():
        # Of three or more the odd one is measured against all, so that it does not make its
        # neighbours look odd; two are measured against each other.
        peers = [s for n, s in enough.items() if n != name or len(enough) > 2]
        if not peers:
            continue
        length = float(np.median([s.median_length for s in peers]))
        rate = float(np.median([s.per_minute for s in peers]))
        if _apart(own.median_length, length) < FACTOR and _apart(own.per_minute, rate) < FACTOR:
            continue
        problems.append(
            Problem(
                "chunked_differently",
                "warning",
                files.get(name, name),
                "",
                f"chunked differently: {own.median_length:.1f} s and {own.per_minute:.0f} chunks "
                f"per minute of speech, the other systems {length:.1f} s and {rate:.0f}; finer "
                "chunks mean more unmatched chunks",
                system=name,
            )
        )
    return problems


def _apart(a: float, b: float) -> float:
    return max(a, b) / min(a, b) if a > 0 and b > 0 else 1.0
