"""Reading the judge's answers: strictly, or as the published evaluator does (rule 10)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from omnijudge.benchmarks.base import Answer
from omnijudge.judging.answer_faults import FLAGS as REMARKS
from omnijudge.judging.answer_faults import PHRASE_NOT_FOUND, PHRASE_RESPELLED
from omnijudge.judging.answers import Unusable, one_object
from omnijudge.values import clamp, parse_bool, text_of

FLAGS = ("neutral", "hallucination")
_NUMBER = re.compile(r"[-+]?\d*\.?\d+(?:[eE][-+]?\d+)?")
_DECODER = json.JSONDecoder()


def parse(stage: str, raw: str, mode: str, judged_text: str | None = None) -> Answer:
    """Reads an answer text.

    Args:
        stage: ``early``, ``core`` or ``partial``.
        raw: the answer text.
        mode: ``strict`` or ``published``.
        judged_text: the text that was judged; a trigger phrase that is not in it is flagged.
    """
    if mode == "published":
        return _PUBLISHED[stage](raw)
    try:
        value, repair = one_object(raw)
    except Unusable as e:
        return Answer("invalid", {}, str(e))
    return _strict(stage, value, repair, judged_text)


def _strict(
    stage: str, value: Mapping[str, Any], repair: str | None, judged_text: str | None = None
) -> Answer:
    """Reads the one object of an answer."""
    try:
        fields = _STRICT[stage](value)
    except Unusable as e:
        return Answer("invalid", {}, str(e))
    remark = None
    if stage == "core" and judged_text is not None:
        remark = _phrase_remark(fields["trigger_phrase"], judged_text)
    rationale = value.get("rationale")
    fields["rationale"] = rationale if isinstance(rationale, str) else None
    reason = "; ".join(r for r in (repair, remark) if r) or None
    return Answer("repaired" if repair else "ok", fields, reason)


def _strict_early(value: Mapping[str, Any]) -> dict[str, Any]:
    flag = value.get("flag")
    if not isinstance(flag, str) or flag.strip().lower() not in FLAGS:
        raise Unusable(f"flag is {flag!r}, neither neutral nor hallucination")
    return {"flag": flag.strip().lower(), "score": _score(value)}


def _strict_core(value: Mapping[str, Any]) -> dict[str, Any]:
    phrase, spoiler = value.get("trigger_phrase"), value.get("spoiler")
    if not isinstance(phrase, str):
        raise Unusable(f"trigger_phrase is {phrase!r}, not a text")
    if not isinstance(spoiler, bool):
        raise Unusable(f"spoiler is {spoiler!r}, neither true nor false")
    return {"score": _score(value), "trigger_phrase": phrase.strip(), "spoiler": spoiler}


def _strict_partial(value: Mapping[str, Any]) -> dict[str, Any]:
    hallucination = value.get("hallucination")
    if not isinstance(hallucination, bool):
        raise Unusable(f"hallucination is {hallucination!r}, neither true nor false")
    return {"score": _score(value), "hallucination": hallucination}


_STRICT = {"early": _strict_early, "core": _strict_core, "partial": _strict_partial}


def _score(value: Mapping[str, Any]) -> float:
    score = value.get("score")
    if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
        raise Unusable(f"score is {score!r}, not a number")
    if not 0 <= score <= 1:
        raise Unusable(f"score {score!r} lies outside 0 to 1")
    return float(score)


def _phrase_remark(phrase: str, text: str) -> str | None:
    """What is odd about a trigger phrase. It is never changed: the anchor rule decides."""
    from omnijudge.benchmarks.omniinteract.anchor import bare_phrase, letters

    bare = bare_phrase(phrase)
    if not bare or bare in text or bare.lower() in text.lower():
        return None
    if letters(bare) and letters(bare) in letters(text):
        return f"{PHRASE_RESPELLED}: {REMARKS[PHRASE_RESPELLED]}"
    return f"{PHRASE_NOT_FOUND}: {REMARKS[PHRASE_NOT_FOUND]}"


def _find_object(raw: str) -> tuple[dict[str, Any] | None, bool]:
    """The first JSON object anywhere in the text, an empty one counting as none; and whether there
    is nothing else."""
    at = raw.find("{")
    while at >= 0:
        try:
            value, end = _DECODER.raw_decode(raw, at)
            if isinstance(value, dict):
                return value or None, at == 0 and end == len(raw)
        except (ValueError, RecursionError):
            pass
        at = raw.find("{", at + 1)
    return None, False


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _published_early(raw: str) -> Answer:
    found, alone = _find_object(raw)
    flag = raw if found is None else text_of(found.get("flag"))
    flag = flag.lower().replace(" ", "")
    if "hallucination" in flag:
        fields: dict[str, Any] = {"flag": "hallucination", "score": 0.0}
    elif "neutral" in flag:
        given = _number(found["score"]) if found is not None and "score" in found else None
        fields = {"flag": "neutral", "score": 1.0 if given is None else clamp(given)}
    else:
        fields = {"flag": "neutral", "score": 0.0}
    return _published("early", raw, fields, "failed" if found is None else "json", found, alone)


def _published_core(raw: str) -> Answer:
    found, alone = _find_object(raw)
    phrase, spoiler, score, parse_state = "", False, None, "failed"
    if found is not None:
        phrase = text_of(found.get("trigger_phrase")).strip()
        spoiler = parse_bool(found.get("spoiler"))
        score = _number(found.get("score", 0))
        parse_state = "json"
    if score is None:
        match = _NUMBER.search(raw)
        score = float(match.group()) if match else 0.0
        parse_state = "number" if match else "failed"
    fields = {"score": clamp(score), "trigger_phrase": phrase, "spoiler": spoiler}
    return _published("core", raw, fields, parse_state, found, alone)


def _published_partial(raw: str) -> Answer:
    found, alone = _find_object(raw)
    given = None if found is None else _number(found.get("score"))
    fields = {
        "score": 0.0 if given is None else clamp(given),
        "hallucination": found is not None and parse_bool(found.get("hallucination")),
    }
    return _published("partial", raw, fields, "failed" if found is None else "json", found, alone)


_PUBLISHED = {"early": _published_early, "core": _published_core, "partial": _published_partial}


def _published(
    stage: str,
    raw: str,
    fields: dict[str, Any],
    parse_state: str,
    found: dict[str, Any] | None,
    alone: bool,
) -> Answer:
    """Marks as repaired what the strict reading would have refused."""
    # An object and nothing else is what the strict reading finds, too.
    strict = _strict(stage, found, None) if found and alone else parse(stage, raw, "strict")
    rationale = strict.fields.get("rationale")
    fields = {**fields, "parse": parse_state, "rationale": rationale}
    if strict.status == "invalid":
        return Answer("repaired", fields, f"published parser: {strict.reason}")
    return Answer(strict.status, fields, strict.reason)
