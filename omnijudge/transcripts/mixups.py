"""Transcripts that belong elsewhere: copied, swapped, or of another sample."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from omnijudge.errors import Problem
from omnijudge.transcripts.heard import Heard

LONG_TEXT = 60
"""Characters (a CJK character counts as two) above which two recordings do not get the same text
by chance."""
SAME_TIMES = 2
"""Different chunks whose equal texts and times are no chance either."""
TOKENS = 12
"""Least number of different words a transcript and an annotation need to be compared."""
OTHER_FIT = 0.4
"""Cosine with another annotation from which a transcript can belong there."""
OWN_SHARE = 0.3
"""The own annotation must fit less than this share of that, ..."""
NEXT_SHARE = 0.6
"""... and every further one less than this: random words fit many annotations alike."""
COMMON = 0.2
"""Words in more than this share of the annotations say nothing about the sample."""
SAME_SYSTEM = 0.5
"""Share of equal transcripts above which two systems look like one."""

_TOKEN = re.compile("[\u4e00-\u9fff]+|[^\\W\\d_]+|\\d+")

_Key = tuple[tuple[str, float], ...]


def same_transcripts(system: str, outputs: Sequence[Heard]) -> list[Problem]:
    """Transcripts of one system that are the same under several sample ids.

    Equal means: equal texts and starts of two or more different chunks, or one long text. Short
    replies that recur ("Okay."), and one phrase said again and again, are ordinary.
    """
    groups: dict[object, list[Heard]] = defaultdict(list)
    for heard in outputs:
        key = _key(heard)
        different = {text for text, _ in key}
        if _length("".join(different)) >= LONG_TEXT:
            groups["".join(text for text, _ in key)].append(heard)
        elif len(different) >= SAME_TIMES:
            groups[key].append(heard)
    problems = []
    for members in groups.values():
        if len(members) < 2:
            continue
        others = ", ".join(heard.sample_id for heard in members[1:6])
        more = "" if len(members) <= 6 else f" and {len(members) - 6} more"
        problems.append(
            Problem(
                "same_transcript",
                "warning",
                members[0].file,
                "",
                f"the transcript is the same as that of {others}{more}; copied by mistake?",
                members[0].sample_id,
                system,
                len(members),
            )
        )
    return problems


def other_samples(system: str, outputs: Sequence[Heard]) -> list[Problem]:
    """Transcripts that share their rare words with another sample's answers, not their own.

    Both sides of a swap are reported, each naming the other. Samples whose annotations are alike
    never are, because then the own annotation fits as well.
    """
    expected = [_counts(heard.answers) for heard in outputs]
    weights = _weights(expected)
    postings: dict[str, tuple[list[int], list[float]]] = defaultdict(lambda: ([], []))
    lengths = np.zeros(len(outputs))
    for number, counts in enumerate(expected):
        for token, value in _weighted(counts, weights).items():
            postings[token][0].append(number)
            postings[token][1].append(value)
            lengths[number] += value * value
    columns = {t: (np.array(n), np.array(v)) for t, (n, v) in postings.items()}
    problems = []
    comparable = np.array([len(counts) >= TOKENS for counts in expected])
    for number, heard in enumerate(outputs):
        said = _weighted(_counts(heard.texts), weights)
        if len(said) < TOKENS or not comparable[number]:
            continue
        fit = _fits(said, columns, lengths)
        fit[~comparable] = 0.0
        best = int(np.argmax(fit))
        bars = np.full(len(fit), NEXT_SHARE * fit[best])
        bars[number], bars[best] = OWN_SHARE * fit[best], np.inf
        if best == number or fit[best] < OTHER_FIT or (fit > bars).any():
            continue
        problems.append(
            Problem(
                "other_sample",
                "warning",
                heard.file,
                "",
                f"what is said there fits the answers of {outputs[best].sample_id} "
                f"({fit[best]:.2f}) and not those of its own sample ({fit[number]:.2f}); "
                "were files swapped?",
                heard.sample_id,
                system,
            )
        )
    return problems


def same_systems(systems: Mapping[str, Sequence[Heard]]) -> list[Problem]:
    """Pairs of systems whose transcripts are equal for half of the samples both speak in."""
    keys = {
        name: {h.sample_id: hash(_key(h)) for h in outputs if len(h.texts)}
        for name, outputs in systems.items()
    }
    owners: dict[tuple[str, int], list[str]] = defaultdict(list)
    for name, found in keys.items():
        for item in found.items():
            owners[item].append(name)
    equal: Counter[tuple[str, str]] = Counter()
    for names in owners.values():
        for i, first in enumerate(names):
            equal.update((first, second) for second in names[i + 1 :])
    problems = []
    for (first, second), count in sorted(equal.items()):
        both = len(keys[first].keys() & keys[second].keys())
        if both >= 3 and count >= SAME_SYSTEM * both:
            problems.append(
                Problem(
                    "same_outputs",
                    "warning",
                    systems[second][0].file,
                    "",
                    f"{count} of {both} transcripts are those of the system {first}; does `path` "
                    "point to the right folder?",
                    system=second,
                    count=count,
                )
            )
    return problems


def _key(heard: Heard) -> _Key:
    order = np.argsort(heard.starts, kind="stable")
    return tuple(
        (text, float(heard.starts[n]))
        for n in order
        if (text := "".join(heard.texts[n].split()).lower())
    )


def _length(text: str) -> int:
    return len(text) + sum("\u4e00" <= c <= "\u9fff" for c in text)


def _counts(texts: Sequence[str]) -> Counter[str]:
    """Words; of CJK runs the pairs of neighbouring characters."""
    counts: Counter[str] = Counter()
    for text in texts:
        for token in _TOKEN.findall(text.lower()):
            if "\u4e00" <= token[0] <= "\u9fff":
                counts.update(token[n : n + 2] for n in range(max(1, len(token) - 1)))
            else:
                counts[token] += 1
    return counts


def _weights(expected: Sequence[Counter[str]]) -> dict[str, float]:
    """Inverse document frequency of words that not too many annotations hold."""
    seen: Counter[str] = Counter()
    for counts in expected:
        seen.update(counts.keys())
    limit = max(2.0, COMMON * len(expected))
    total = len(expected)
    return {t: float(np.log((1 + total) / n)) for t, n in seen.items() if n <= limit}


def _weighted(counts: Counter[str], weights: Mapping[str, float]) -> dict[str, float]:
    return {t: (1 + np.log(n)) * weights[t] for t, n in counts.items() if t in weights}


def _fits(
    said: Mapping[str, float],
    columns: Mapping[str, tuple[NDArray[np.int64], NDArray[np.float64]]],
    lengths: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Cosine of a transcript with every annotation, shape (samples,)."""
    numbers = np.concatenate([columns[t][0] for t in said])
    products = np.concatenate([columns[t][1] * v for t, v in said.items()])
    dots = np.bincount(numbers, products, minlength=len(lengths))
    size = np.sqrt(sum(v * v for v in said.values()))
    return np.asarray(dots / np.maximum(np.sqrt(lengths) * size, 1e-12))
