"""One simulated transcript: well formed, of its temper, and depending on its key alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnijudge.benchmarks.omniinteract.slots import UnusableAnnotation, build_slots
from omnijudge.errors import ConfigError
from omnijudge.simulate import TEMPERS, Temper, simulate_transcript, temper_named
from omnijudge.simulate.dice import Dice
from omnijudge.simulate.speech import Utterance, say, split_words
from omnijudge.simulate.wording import contradict, lead, paraphrase
from omnijudge.transcripts.native import parse_native
from omnijudge.values import has_cjk


def row(q: float, a: float, kind: str = "realtime", cut: bool = False) -> dict[str, Any]:
    return {
        "question_time": q,
        "question_text": "How many birds sit on the fence?",
        "answer_time": a,
        "answer_text": f"There are {a:g} red birds on the left side of the fence.",
        "question_type": kind,
        "is_interrupted": cut,
    }


MULTI_TURN = [row(10, 15), row(40, 45, cut=True), row(52, 58), row(80, 110, "proactive")]
NESTED = [row(5, 40, "proactive"), row(12, 17), row(60, 100, "proactive"), row(70, 75)]
CHINESE = [
    {
        "question_time": 5 + 30 * n,
        "question_text": "篮子里有几个苹果？",
        "answer_time": 9 + 30 * n,
        "answer_text": "篮子里有三个红苹果，左边还有两个梨。",
        "question_type": "realtime",
        "is_interrupted": n == 1,
    }
    for n in range(4)
]
MANY = {
    "question_time": "00:04",
    "question_text": "请一步一步教我泡茶。",
    "answers": [
        {"answer_time": 8 + 20 * n, "answer_text": text, "label": "step"}
        for n, text in enumerate(["先烧一壶水。", "放两勺茶叶。", "倒水，等三分钟。"])
    ],
}
SCENES = [
    ("multi_turn", MULTI_TURN),
    ("multi_turn", CHINESE),
    ("nested", NESTED),
    ("1QnA", MANY),
]


def simulate(temper: Temper, scene: str, annotation: Any, number: int, words: bool = True) -> Any:
    return simulate_transcript(annotation, scene, temper, f"sample {number}", 7, words)


@pytest.mark.parametrize(("scene", "annotation"), SCENES)
@pytest.mark.parametrize("name", TEMPERS)
def test_is_well_formed(name: str, scene: str, annotation: Any) -> None:
    for number in range(20):
        value = simulate(TEMPERS[name], scene, annotation, number)
        read = parse_native(value, "simulated")
        assert read.refused is None
        assert read.problems == []
        assert value["text"] == "".join(c["text"] for c in value["chunks"])
        clock = 0.0
        for chunk in read.chunks:
            assert clock <= chunk.start < chunk.end
            assert chunk.text.strip()
            clock = chunk.end
            blank = "" if has_cjk(chunk.text) else " "
            assert blank.join(w.text for w in chunk.words) == chunk.text.strip()
            edges = [t for w in chunk.words for t in (w.start, w.end)]
            assert edges == sorted(edges)
            assert (edges[0], edges[-1]) == (chunk.start, chunk.end)


@pytest.mark.parametrize(("scene", "annotation"), SCENES)
def test_words_change_nothing_else(scene: str, annotation: Any) -> None:
    for temper in TEMPERS.values():
        bare = simulate(temper, scene, annotation, 1, words=False)
        full = simulate(temper, scene, annotation, 1, words=True)
        for chunk in full["chunks"]:
            del chunk["aligned_words"]
        assert bare == full


def test_depends_on_seed_and_key() -> None:
    temper = TEMPERS["talkative"]
    texts = {
        simulate_transcript(MULTI_TURN, "multi_turn", temper, key, seed)["text"]
        for key in ("a", "b", "c")
        for seed in (0, 1)
    }
    assert len(texts) == 6
    again = [simulate_transcript(MULTI_TURN, "multi_turn", temper, "a", 0) for _ in range(2)]
    assert again[0] == again[1]


@pytest.mark.parametrize(("scene", "annotation"), SCENES)
def test_silent_says_nothing(scene: str, annotation: Any) -> None:
    value = simulate(TEMPERS["silent"], scene, annotation, 0)
    assert value == {"text": "", "chunks": []}


def home(chunk: Any, slots: list[Any]) -> Any:
    """The slot a chunk belongs to (OmniInteract rule 6)."""
    start = chunk["timestamp"][0]
    homes = [s for s in slots if s.t_start <= start < s.t_end]
    return max(homes, key=lambda s: (s.t_start, s.slot_id)) if homes else None


@pytest.mark.parametrize(("name", "least", "most"), [("punctual", 0.2, 1.25), ("late", 5.0, 14.05)])
def test_answers_begin_when_the_temper_says(name: str, least: float, most: float) -> None:
    slots = build_slots(MULTI_TURN, "multi_turn", 60.0)
    answered = 0
    for number in range(100):
        chunks = simulate(TEMPERS[name], "multi_turn", MULTI_TURN, number)["chunks"]
        for slot in slots:
            starts = [c["timestamp"][0] for c in chunks if home(c, slots) is slot]
            core = [s for s in starts if s >= slot.t_a]
            if core:
                answered += 1
                assert least - 1e-9 <= core[0] - slot.t_a <= most
    assert answered > 150


def test_punctual_and_late_end_where_the_slot_ends() -> None:
    for name in ("punctual", "late"):
        for scene, annotation in SCENES:
            slots = build_slots(annotation, scene, 60.0)
            for number in range(30):
                for chunk in simulate(TEMPERS[name], scene, annotation, number)["chunks"]:
                    assert chunk["timestamp"][1] <= home(chunk, slots).t_end


def test_spilling_talks_beyond_every_interruption() -> None:
    slots = build_slots(MULTI_TURN, "multi_turn", 60.0)
    cut = slots[1]
    assert cut.interrupted
    for number in range(100):
        chunks = simulate(TEMPERS["spilling"], "multi_turn", MULTI_TURN, number)["chunks"]
        ends = [c["timestamp"][1] for c in chunks if home(c, slots) is cut]
        assert max(ends) > cut.t_end


def test_talkative_says_more_and_some_of_it_to_nobody() -> None:
    def signs(name: str) -> int:
        runs = (simulate(TEMPERS[name], "multi_turn", MULTI_TURN, n)["text"] for n in range(50))
        return sum(map(len, runs))

    assert signs("talkative") > 1.5 * signs("punctual")
    before = [
        simulate(TEMPERS["talkative"], "multi_turn", MULTI_TURN, n)["chunks"][0]["timestamp"][0]
        for n in range(50)
    ]
    assert any(start < 10.0 for start in before)


def test_hallucinating_says_false_things_early() -> None:
    slots = build_slots(MULTI_TURN, "multi_turn", 60.0)
    early = wrong = 0
    for number in range(50):
        chunks = simulate(TEMPERS["hallucinating"], "multi_turn", MULTI_TURN, number)["chunks"]
        early += sum(
            home(c, slots) is not None and c["timestamp"][0] < home(c, slots).t_a - 2.0
            for c in chunks
        )
        wrong += "right side" in " ".join(c["text"].strip() for c in chunks)
    assert early > 50
    assert wrong > 25


def test_recites_the_steps_to_come() -> None:
    eager = Temper("eager", guess=1.0)
    text = simulate(eager, "1QnA", MANY, 0)["text"]
    assert "放两勺茶叶。" in text


def test_odd_annotations() -> None:
    temper = TEMPERS["punctual"]
    assert simulate_transcript([], "multi_turn", temper, "x")["chunks"] == []
    strange = [row(float("nan"), 5.0), row(3.0, 9.0)]
    chunks = simulate_transcript(strange, "multi_turn", temper, "x")["chunks"]
    assert all(c["timestamp"][0] >= 3.0 for c in chunks)
    backwards = [row(50.0, 20.0), row(50.0, 60.0), row(50.0, 55.0)]
    for spilling in TEMPERS.values():
        simulate_transcript(backwards, "multi_turn", spilling, "x")
    with pytest.raises(UnusableAnnotation, match="two rows"):
        simulate_transcript([row(1, 2)], "nested", temper, "x")


def test_an_unknown_temper_is_named() -> None:
    assert temper_named("late") is TEMPERS["late"]
    with pytest.raises(ConfigError, match=r"temper 'grumpy' is unknown.*punctual"):
        temper_named("grumpy")


def test_voice_says_one_thing_at_a_time() -> None:
    infinite = float("inf")
    chunks = say(
        [
            Utterance(3.0, infinite, infinite, "second thing"),
            Utterance(1.0, infinite, 2.0, "one two three four five six seven eight nine ten"),
            Utterance(3.1, 3.2, infinite, "too late for this"),
            Utterance(3.1, infinite, infinite, "third thing"),
        ],
        with_words=False,
    )
    texts = [c["text"] for c in chunks]
    assert texts[1:] == [" second thing", " third thing"]
    assert "ten" not in texts[0]
    assert chunks[0]["timestamp"][1] <= 2.0
    assert chunks[1]["timestamp"][0] == 3.0
    assert chunks[2]["timestamp"][0] == chunks[1]["timestamp"][1]


@given(st.text(max_size=60))
def test_words_rebuild_any_text(text: str) -> None:
    words = split_words(text)
    if has_cjk(text):
        assert "".join(words) == text
    else:
        assert words == text.split()


@given(st.text(max_size=60), st.floats(0, 1), st.integers(0, 5))
def test_paraphrase_keeps_order_and_something(text: str, keep: float, seed: int) -> None:
    told = paraphrase(text, keep, Dice(seed, "x"))
    assert bool(told) == bool(split_words(text))
    assert paraphrase(text, 1.0, Dice(seed, "x")).split() == "".join(told and text).split()


def test_facts_are_turned_round() -> None:
    assert contradict("Yes, three red cups on the left.") == "No, five blue cups on the right."
    assert contradict("左边有三个红杯子，没有水。") == "右边没有五个蓝杯子，有水。"
    assert contradict("It shows 41 degrees.") == "It shows 44 degrees."
    assert contradict("The someone leftover.") is None


def test_openings_fit_the_sentence() -> None:
    assert lead("So,", "The door is open.") == "So, the door is open."
    assert lead("So,", "HDMI is on.") == "So, HDMI is on."
    assert lead("我猜", "门开着。") == "我猜门开着。"
    assert lead("", "Hello.") == "Hello."
