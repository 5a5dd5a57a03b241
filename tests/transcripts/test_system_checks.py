"""Checks of a system as a whole: they find what they are for and leave ordinary systems alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from omnijudge.errors import Problem
from omnijudge.transcripts.checks import (
    ChunkStatistics,
    check_system,
    check_systems,
    chunk_lengths,
    chunk_statistics,
    chunked_differently,
    milliseconds,
    truncated,
    unmatched_share,
    word_coverage,
)
from omnijudge.transcripts.heard import Heard
from omnijudge.transcripts.mixups import other_samples, same_systems, same_transcripts
from omnijudge.transcripts.offset_hint import suggest_offset

LETTERS = "bdfgklmnprst"
THINGS = [f"{a}a{b}o{c}e" for a in LETTERS for b in LETTERS[:5] for c in LETTERS[:3]]
SIGNS = "水壶台灯抽屉单车梯子包裹窗帘收音提琴锤桶花园胡椒洋葱茶"
THINGS_ZH = [a + b for a in SIGNS for b in SIGNS[:8] if a != b]

Delay = Callable[[np.random.Generator], float]


def punctual(rng: np.random.Generator) -> float:
    return float(rng.lognormal(0.0, 0.5))


def late(rng: np.random.Generator) -> float:
    return float(rng.uniform(5.0, 14.0))


def slow_but_steady(rng: np.random.Generator) -> float:
    return float(max(0.2, rng.normal(7.0, 1.5)))


def recordings(number: int, seed: int = 1) -> list[Heard]:
    """Annotated recordings in which nothing has been said yet."""
    rng = np.random.default_rng(seed)
    found = []
    for n in range(number):
        slots = int(rng.integers(6, 12))
        due = np.round(np.cumsum(rng.uniform(8.0, 25.0, slots)), 1)
        starts = np.maximum(0.0, due - np.round(rng.uniform(1.0, 6.0, slots), 1))
        ends = np.append(starts[1:], due[-1] + 60.0)
        words = rng.permutation(THINGS if n % 4 else THINGS_ZH)
        answers = [
            f"The {a} stands beside the {b} and the {c}." if n % 4 else f"{a}在{b}和{c}的旁边。"
            for a, b, c in (rng.choice(words[:24], 3, replace=False) for _ in range(slots))
        ]
        found.append(
            Heard(
                f"s{n:03d}", f"out/s{n:03d}.json", np.empty(0), np.empty(0), (), 0, 0,
                starts, due, ends, answers, "multi_turn",
            )
        )  # fmt: skip
    return found


def say(heard: Heard, spoken: Sequence[tuple[float, float, str]], words: bool = True) -> Heard:
    starts = np.array([s for s, _, _ in spoken])
    ends = np.array([e for _, e, _ in spoken])
    inside = [((heard.slot_starts <= s) & (s < heard.slot_ends)).any() for s in starts]
    return replace(
        heard,
        starts=starts,
        ends=ends,
        texts=[t for _, _, t in spoken],
        with_words=len(spoken) if words else 0,
        unmatched=len(spoken) - sum(map(bool, inside)),
    )


def speak(
    samples: Sequence[Heard],
    delay: Delay = punctual,
    answers: float = 0.9,
    chat: float = 0.0,
    seed: int = 2,
    shift: float = 0.0,
    scale: float = 1.0,
    pieces: int = 2,
) -> list[Heard]:
    """A system that answers with a chance, after a delay, in pieces, and chats in between."""
    rng = np.random.default_rng(seed)
    found = []
    for heard in samples:
        spoken: list[tuple[float, float, str]] = []
        for due, answer in zip(heard.answer_times, heard.answers, strict=True):
            if rng.random() < chat:
                at = float(due) - rng.uniform(-20.0, 20.0)
                spoken.append((at, at + 1.5, "One moment please."))
            if rng.random() < answers:
                at = float(due) + delay(rng)
                for part in range(pieces):
                    spoken.append((at, at + 1.4, answer if part == 0 else "That is all."))
                    at += 1.5
        spoken = [(s * scale + shift, e * scale + shift, t) for s, e, t in spoken if s > 0]
        found.append(say(heard, spoken))
    return found


def steady_talker(samples: Sequence[Heard], every: float = 4.0) -> list[Heard]:
    """Says something every few seconds, whatever happens."""
    found = []
    for heard in samples:
        moments = np.arange(0.5, float(heard.slot_ends[-1]) - 40.0, every)
        spoken = [(float(m), float(m) + 1.0, "I can see the table now.") for m in moments]
        found.append(say(heard, spoken))
    return found


SAMPLES = recordings(60)
SYSTEMS = {
    "punctual": speak(SAMPLES),
    "punctual, another": speak(SAMPLES, seed=7),
    "slow but steady": speak(SAMPLES, slow_but_steady),
    "late": speak(SAMPLES, late),
    "silent": [say(h, []) for h in SAMPLES],
    "often silent": speak(SAMPLES, answers=0.15),
    "half": speak(SAMPLES, answers=0.5),
    "talkative": speak(SAMPLES, chat=1.5),
    "steady talker": steady_talker(SAMPLES),
    "talker in round seconds": steady_talker(SAMPLES, 5.0),
    "babbler": steady_talker(SAMPLES, 2.0),
}


def codes(problems: Sequence[Problem]) -> set[str]:
    return {p.code for p in problems}


@pytest.mark.parametrize("name", SYSTEMS)
def test_ordinary_systems_pass_without_a_word(name: str) -> None:
    assert check_system(name, "out", SYSTEMS[name]) == []


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("delay", [punctual, late, slow_but_steady])
@pytest.mark.parametrize("answers", [0.2, 0.6, 1.0])
def test_no_false_alarm_in_many_draws(seed: int, delay: Delay, answers: float) -> None:
    outputs = speak(recordings(30, seed + 10), delay, answers, chat=0.3, seed=seed)
    assert check_system("x", "out", outputs) == []


def test_no_system_looks_odd_beside_the_others() -> None:
    spoken = {n: o for n, o in SYSTEMS.items() if n != "silent"}
    spoken["silent"] = SYSTEMS["silent"]
    assert check_systems(spoken, {}) == []


def test_few_samples_say_nothing() -> None:
    assert check_system("x", "out", speak(SAMPLES[:2])) == []
    assert check_system("x", "out", []) == []


@pytest.mark.parametrize("shift", [-20.0, -4.2, 6.5, 12.0, 25.0])
@pytest.mark.parametrize("answers", [0.5, 1.0])
def test_a_shifted_clock_is_found(shift: float, answers: float) -> None:
    outputs = speak(SAMPLES, answers=answers, chat=0.3, shift=shift)
    found = suggest_offset(outputs)
    assert found is not None
    assert found == pytest.approx(-shift, abs=0.6)
    problems = [p for p in check_system("x", "out", outputs) if p.code == "suspect_offset"]
    assert len(problems) == 1
    assert problems[0].level == "warning"
    assert f"add {found:+.1f} to `time_offset`" in problems[0].message


def test_a_rhythm_is_no_shift() -> None:
    # Questions every ten seconds and a system that speaks every ten seconds.
    samples = []
    for heard in SAMPLES:
        due = 10.0 * np.arange(1, 10)
        samples.append(
            replace(
                heard,
                slot_starts=due - 2,
                answer_times=due,
                slot_ends=np.append(due[1:] - 2, due[-1] + 60),
                answers=["The lamp is on."] * len(due),
            )
        )
    assert suggest_offset(steady_talker(samples, 10.0)) is None


def test_milliseconds() -> None:
    outputs = speak(SAMPLES, scale=1000.0)
    found = check_system("x", "out", outputs)
    assert codes(found) == {"suspect_ms", "chunk_length"}
    assert found[0].count == 60
    assert "time_unit: ms" in found[0].message
    mixed = [*outputs[:20], *speak(SAMPLES)[20:]]
    assert milliseconds("x", "out", mixed) == []


def test_unmatched_share() -> None:
    outputs = [replace(h, unmatched=len(h.starts) // 2) for h in speak(SAMPLES)]
    found = unmatched_share("x", "out", outputs)
    assert codes(found) == {"unmatched_share"}
    assert "%" in found[0].message
    assert unmatched_share("x", "out", outputs[:1]) == []


def test_chunk_lengths() -> None:
    outputs = speak(SAMPLES)
    long = [replace(h, ends=h.starts + 30.0) for h in outputs]
    assert "30 s" in chunk_lengths("x", "out", long)[0].message
    none = [replace(h, ends=h.starts) for h in outputs]
    assert "no length" in chunk_lengths("x", "out", none)[0].message


def test_word_coverage() -> None:
    outputs = speak(SAMPLES)
    without = [replace(h, with_words=0) for h in outputs]
    found = word_coverage("x", "out", without)
    assert [(p.code, p.level) for p in found] == [("word_coverage", "info")]
    partly = [*outputs[:40], *without[40:]]
    found = word_coverage("x", "out", partly)
    assert [p.level for p in found] == ["warning"]
    assert "only " in found[0].message
    assert word_coverage("x", "out", SYSTEMS["silent"]) == []


def cut(heard: Heard, until: float) -> Heard:
    kept = heard.starts < until
    return replace(
        heard,
        starts=heard.starts[kept],
        ends=heard.ends[kept],
        texts=[t for t, k in zip(heard.texts, kept, strict=True) if k],
        with_words=int(kept.sum()),
        unmatched=0,
    )


def test_a_cut_transcript_is_found() -> None:
    outputs = speak(SAMPLES)
    outputs[5] = cut(outputs[5], float(outputs[5].answer_times[2]))
    found = truncated("x", outputs)
    assert [p.sample_id for p in found] == ["s005"]
    assert found[0].file == "out/s005.json"
    assert f"{outputs[5].answer_times[-1]:.1f} s" in found[0].message
    assert found[0].count >= 3


def test_a_system_that_falls_silent_now_and_then_is_not_suspected() -> None:
    outputs = speak(SAMPLES, answers=0.4)
    outputs[5] = cut(outputs[5], float(outputs[5].answer_times[3]))
    assert truncated("x", outputs) == []


def test_silent_in_one_kind_of_sample_only() -> None:
    # Answers one kind always and the other only at its first question.
    outputs = speak(SAMPLES, answers=1.0)
    for n in range(0, 60, 2):
        short = cut(outputs[n], float(outputs[n].slot_ends[0]))
        outputs[n] = replace(short, group="1QnA")
    assert truncated("x", outputs) == []


def test_copies_under_two_names() -> None:
    outputs = speak(SAMPLES)
    outputs[9] = replace(outputs[3], sample_id="s009", file="out/s009.json")
    found = same_transcripts("x", outputs)
    assert [(p.sample_id, p.count) for p in found] == [("s003", 2)]
    assert "s009" in found[0].message


def test_short_replies_recur() -> None:
    outputs = [say(h, [(float(n), n + 0.5, "Okay.")]) for n, h in enumerate(SAMPLES)]
    assert same_transcripts("x", outputs) == []


@pytest.mark.parametrize(("first", "second"), [(1, 2), (4, 8)])  # English, Chinese
def test_swapped_transcripts(first: int, second: int) -> None:
    outputs = speak(SAMPLES, answers=0.95)
    a, b = outputs[first], outputs[second]
    outputs[first] = replace(a, starts=b.starts, ends=b.ends, texts=b.texts)
    outputs[second] = replace(b, starts=a.starts, ends=a.ends, texts=a.texts)
    found = other_samples("x", outputs)
    assert {p.sample_id for p in found} == {a.sample_id, b.sample_id}
    assert all(p.level == "warning" for p in found)


def test_wrong_answers_are_no_swap() -> None:
    rng = np.random.default_rng(5)
    outputs = []
    for heard in speak(SAMPLES):
        texts = [f"I believe it is the {rng.choice(THINGS)} over there." for _ in heard.texts]
        outputs.append(replace(heard, texts=texts))
    assert other_samples("x", outputs) == []


def test_alike_annotations_are_no_swap() -> None:
    twins = [replace(h, answers=SAMPLES[1].answers[:6]) for h in SAMPLES]
    twins = [
        replace(h, answer_times=h.answer_times[:6], slot_starts=h.slot_starts[:6],
                slot_ends=h.slot_ends[:6])
        for h in twins
    ]  # fmt: skip
    assert other_samples("x", speak(twins)) == []


def test_one_folder_registered_twice() -> None:
    outputs = speak(SAMPLES)
    found = same_systems({"a": outputs, "b": list(outputs), "c": speak(SAMPLES, seed=9)})
    assert [(p.system, p.count) for p in found] == [("b", 60)]
    assert "system a" in found[0].message


def statistics(length: float, rate: float, chunks: int = 100) -> ChunkStatistics:
    return ChunkStatistics(chunks, length, rate, 0.0, 1.0, 10)


def test_chunked_differently() -> None:
    systems = {
        "a": statistics(3.0, 20.0),
        "b": statistics(2.5, 22.0),
        "c": statistics(0.4, 130.0),
        "few": statistics(0.1, 500.0, chunks=5),
        "silent": statistics(0.0, 0.0, chunks=0),
    }
    found = chunked_differently(systems, {"c": "out/c"})
    assert [(p.system, p.file) for p in found] == [("c", "out/c")]
    assert "chunked differently" in found[0].message
    assert chunked_differently({"a": systems["a"]}, {}) == []


def test_statistics() -> None:
    found = chunk_statistics([say(SAMPLES[0], [(30.0, 31.0, "a"), (32.0, 35.0, "b")])])
    assert found == ChunkStatistics(2, 2.0, 30.0, 0.0, 1.0, 1)
    assert chunk_statistics([]) == ChunkStatistics(0, 0.0, 0.0, 0.0, 0.0, 0)
