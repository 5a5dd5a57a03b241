"""Cases shared by the tests of the kernels that look at targets and responses."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnijudge_kernels.masks import Masks, pack_pairs

Table = Sequence[Sequence[bool]]
Windows = Sequence[tuple[float, float]]
GOLDEN = Path(__file__).parent.parent / "golden" / "omni_interactscope"


def golden_instances() -> list[dict[str, Any]]:
    """The 500 small matching instances."""
    with open(GOLDEN / "matching_instances.jsonl", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def offsets(counts: Iterable[int]) -> NDArray[np.int64]:
    return np.cumsum([0, *counts])


def pack(tables: Sequence[Table]) -> Masks:
    """Eligibility tables as bits, by way of pairs."""
    target_offsets = offsets(len(table) for table in tables)
    pairs = [
        (int(target_offsets[i]) + k, j)
        for i, table in enumerate(tables)
        for k, row in enumerate(table)
        for j, eligible in enumerate(row)
        if eligible
    ]
    return pack_pairs([k for k, _ in pairs], [j for _, j in pairs], target_offsets)


def unpack(masks: Masks, responses: Sequence[int]) -> list[list[list[bool]]]:
    """Bits as eligibility tables, one for each instance."""
    tables = []
    for i, width in enumerate(responses):
        table = []
        for k in range(masks.target_offsets[i], masks.target_offsets[i + 1]):
            if masks.word_offsets is None or masks.first_word is None:
                stored, first = masks.words[k : k + 1], 0
            else:
                stored = masks.words[masks.word_offsets[k] : masks.word_offsets[k + 1]]
                first = int(masks.first_word[k])
            number = sum(int(word) << (64 * (first + w)) for w, word in enumerate(stored))
            assert number >> width == 0, "a bit beyond the last response"
            table.append([bool(number >> j & 1) for j in range(width)])
        tables.append(table)
    return tables


def csr_times(
    instances: Sequence[tuple[Sequence[float], Windows]],
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Arguments of the timing kernels from (response times, windows) of each instance."""
    times = np.array([t for times, _ in instances for t in times], dtype=np.float64)
    low = np.array([w[0] for _, windows in instances for w in windows], dtype=np.float64)
    high = np.array([w[1] for _, windows in instances for w in windows], dtype=np.float64)
    return (
        times,
        offsets(len(times) for times, _ in instances),
        low,
        high,
        offsets(len(windows) for _, windows in instances),
    )


def random_instance(
    rng: np.random.Generator, targets: int, responses: int, length: float
) -> tuple[list[float], list[tuple[float, float]]]:
    """Times and windows on a grid of half seconds, so that borders are hit and times repeat."""
    scale = 2 * max(targets, responses, 1)
    times = np.sort(rng.integers(0, scale, responses)) / 2
    low = np.sort(rng.integers(0, scale, targets)) / 2
    high = low + rng.integers(-1, max(2, round(2 * length)), targets) / 2
    return times.tolist(), list(zip(low.tolist(), high.tolist(), strict=True))
