"""What simulated systems say: phrases of their own, and answers retold, rightly or wrongly."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from omnijudge.simulate.dice import Dice
from omnijudge.simulate.speech import joined, split_words
from omnijudge.values import has_cjk


@dataclass(frozen=True, slots=True)
class Phrases:
    """Stock phrases of one language."""

    chinese: bool
    acknowledgements: tuple[str, ...]
    lead_ins: tuple[str, ...]
    guesses: tuple[str, ...]
    recital: str
    small_talk: tuple[str, ...]
    fillers: tuple[str, ...]
    helpless: tuple[str, ...]
    small_words: frozenset[str]


ENGLISH = Phrases(
    chinese=False,
    acknowledgements=(
        "Sure.",
        "Okay, one moment.",
        "Let me have a look.",
        "Got it.",
        "Of course, let me check.",
        "Right, I am on it.",
    ),
    lead_ins=("", "", "", "So,", "Well,", "From what I see,", "Okay,"),
    guesses=("I guess", "It is probably this:", "Most likely", "I would say", "Surely"),
    recital="Later on it will be this:",
    small_talk=(
        "What a nice day for this.",
        "You are doing really well, by the way.",
        "This place looks so tidy.",
        "I could watch this for hours.",
        "Time flies when we are busy, right?",
        "Just tell me if you need anything else.",
    ),
    fillers=(
        "By the way, that is quite common.",
        "There is a lot more to say about it.",
        "Some people see it in another way, of course.",
        "It is always worth a second look.",
        "That reminds me of a similar case.",
        "And if you think about it, it makes sense.",
        "You never know what comes next.",
        "As I said, keep that in mind.",
    ),
    helpless=("I really cannot tell.", "There is nothing like that here.", "That is not the case."),
    small_words=frozenset(
        {"a", "an", "the", "of", "to", "in", "on", "at", "is", "are", "be", "it", "its", "this"}
        | {"that", "and", "now", "just", "has", "have", "you", "your"}
    ),
)

CHINESE = Phrases(
    chinese=True,
    acknowledgements=(
        "好的。",
        "好的，稍等一下。",
        "我看一下。",
        "明白了。",
        "没问题，我来看看。",
        "嗯，马上。",
    ),
    lead_ins=("", "", "", "嗯，", "看起来", "我看到，", "好，"),
    guesses=("我猜", "应该是这样，", "大概是", "估计", "肯定是"),
    recital="接下来就是，",
    small_talk=(
        "今天天气真不错。",
        "你做得真棒。",
        "这里收拾得好整齐。",
        "看着就让人心情好。",
        "时间过得真快呀。",
        "有什么需要随时告诉我。",
    ),
    fillers=(
        "顺便说一句，这其实很常见。",
        "这里面还有很多讲究。",
        "当然，也有人不这么看。",
        "多看一眼总是没错的。",
        "这让我想起一件类似的事。",
        "仔细想想也挺有道理的。",
        "后面会怎么样谁也说不准。",
        "总之，记住这一点就好。",
    ),
    helpless=("我实在看不出来。", "这里没有这个东西。", "情况不是这样的。"),
    small_words=frozenset("的了着正已经还把请先再一下个就可以是在"),
)

_OPPOSITES = """
one=two two=four three=five four=seven five=three six=nine seven=six eight=five nine=four ten=twelve
first=last last=first left=right right=left up=down down=up top=bottom bottom=top open=closed
closed=open yes=no no=yes more=less less=more before=after after=before hot=cold cold=hot
red=blue blue=green green=red black=white white=black yellow=brown big=small small=big
add=remove remove=add empty=full full=empty slowly=quickly fast=slow slow=fast high=low low=high
两=三 二=四 三=五 四=七 五=三 六=九 七=六 八=五 九=四 十=百 左=右 右=左 红=蓝 蓝=绿 绿=红
黑=白 白=黑 黄=紫 大=小 小=大 没有=有 有=没有
打开=关闭 关闭=打开 冷=热 热=冷 快=慢 慢=快 高=低 低=高
"""
_SWAP = dict(pair.split("=") for pair in _OPPOSITES.split())
_LATIN = "|".join(word for word in _SWAP if word.isascii())
_HAN = "|".join(word for word in sorted(_SWAP, key=len, reverse=True) if not word.isascii())
_FACTS = re.compile(rf"\b(?:{_LATIN})\b|{_HAN}|[0-9]{{1,9}}", re.IGNORECASE)
_PAUSES = " ,.!?;:，。！？；："


def phrases_for(text: str) -> Phrases:
    """The phrases of the language a text is in."""
    return CHINESE if has_cjk(text) else ENGLISH


def paraphrase(text: str, keep: float, dice: Dice) -> str:
    """A text retold with words left out: the order stays, and at least one word does.

    Args:
        text: what to retell.
        keep: chance of each word to survive; of small words its square. Chinese characters
            survive or go in pairs.
        dice: where chance comes from.
    """
    words = split_words(text)
    if not words:
        return ""
    chinese = has_cjk(text)
    small = CHINESE.small_words if chinese else ENGLISH.small_words
    kept = []
    fate = 0.0
    for place, word in enumerate(words):
        if not chinese or place % 2 == 0:
            fate = dice.roll()
        bare = word.strip(_PAUSES).lower()
        if fate < (keep * keep if bare in small else keep):
            kept.append(word)
    kept = kept or words[:1]
    if kept[-1] is not words[-1]:
        # The sentence still ends as a sentence.
        kept[-1] = kept[-1].rstrip(_PAUSES) + (words[-1][-1] if words[-1][-1] in _PAUSES else "")
    return joined(kept, chinese)


@lru_cache(maxsize=8192)
def contradict(text: str) -> str | None:
    """The text with its facts changed (numbers, sides, colours, ...); None if it has none."""
    changed = _FACTS.sub(_other, text)
    return None if changed == text else changed


def _other(match: re.Match[str]) -> str:
    fact = match[0]
    if fact.isdigit():
        return str(int(fact) + 3)
    other = _SWAP[fact.lower()]
    return other.capitalize() if fact[0].isupper() else other


def lead(opening: str, text: str) -> str:
    """An opening put before a text."""
    if not opening or not text:
        return opening or text
    if has_cjk(opening):
        return opening + text
    # "The box" goes on in lower case; "HDMI" and "I" do not.
    if len(text) > 1 and text[0].isupper() and text[1].islower():
        text = text[0].lower() + text[1:]
    return f"{opening} {text}"
