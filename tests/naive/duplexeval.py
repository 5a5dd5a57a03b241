"""Omni-DuplexEval from its rules, slow and obvious: plain values in, plain values out.

Shares no code with the package. A judge is a function ``ask(key)`` that gives the attempts of one
question, each ``("text", answer)``, ``("body", reply)`` or ``("error", message)``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

RTD_SPLITS = (
    "RTD_counting", "RTD_interaction_relation", "RTD_Omni", "RTD_world_knowledge", "RTD_OCR",
    "RTD_fine_grained_movement",
)  # fmt: skip
PR_SPLITS = ("PR_event_reminder", "PR_post_event_reminder", "PR_correction")
SHIFTS = (-1.0, -4 / 3, -5 / 3, -2.0)

Attempt = tuple[str, Any]
Ask = Callable[[str], Sequence[Attempt]]


class SampleFailed(Exception):
    """The published scripts fail on the sample."""


# ---- reading segments ----


def container(data: Any, keys: Sequence[str]) -> list[Any]:
    if isinstance(data, list):
        return data
    if isinstance(data, dict):
        for key in keys:
            if isinstance(data.get(key), list):
                return data[key]
    raise SampleFailed


def published_text(segment: dict[str, Any], keys: Sequence[str]) -> str | None:
    for key in keys:
        if key in segment:
            value = segment[key]
            return value.strip() if isinstance(value, str) else None
    return None


def published_number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as e:
        raise SampleFailed from e


def read_published_rtd(data: Any) -> list[dict[str, Any]]:
    found = []
    for segment in container(data, ("sentences", "chunks")):
        if not isinstance(segment, dict):
            continue
        text = published_text(segment, ("sentence", "text", "content"))
        if not text:
            continue
        other = segment.get("current_time") or segment.get("time")
        start = published_number((segment["start"] or 0) if "start" in segment else (other or 0))
        if "end" in segment:
            end = published_number(segment["end"] or start)
        else:
            end = published_number(other or start)
        found.append({"text": text, "start": start, "end": start if end < start else end})
    return found


def read_published_pr(data: Any) -> list[dict[str, Any]]:
    found = []
    for segment in container(data, ("chunks", "sentences")):
        if not isinstance(segment, dict):
            continue
        text = published_text(segment, ("text", "sentence", "content"))
        if not text:
            continue
        time: Any = 0
        for key in ("current_time", "start", "time"):
            if key in segment:
                time = segment[key]
                break
        found.append({"text": text, "time": published_number(time or 0)})
    return found


def number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = float(value.strip())
        except ValueError:
            return None
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    return None


def read_paper(data: Any) -> tuple[list[dict[str, Any]] | None, int]:
    """Segments and the number of rejected ones; None for a file that is no transcript."""
    try:
        elements = container(data, ("sentences", "chunks"))
    except SampleFailed:
        return None, 0

    def first(segment: dict[str, Any], keys: Iterable[str]) -> Any:
        for key in keys:
            if segment.get(key) is not None:
                return segment[key]
        return None

    found, rejected = [], 0
    for segment in elements:
        if not isinstance(segment, dict):
            rejected += 1
            continue
        text = None
        for key in ("sentence", "text", "content"):
            if isinstance(segment.get(key), str) and segment[key].strip():
                text = segment[key].strip()
                break
        if text is None:
            continue
        start = number(first(segment, ("start", "current_time", "time")))
        time = number(first(segment, ("current_time", "start", "time")))
        end = start if segment.get("end") is None else number(segment["end"])
        if start is None or time is None or end is None:
            rejected += 1
            continue
        start = max(0.0, start)
        found.append({"text": text, "start": start, "end": max(start, end), "time": time})
    return found, rejected


# ---- windows ----


def published_window(start: float, end: float, duration: float) -> tuple[float, float] | None:
    a = max(0, start - 2)
    b = max(a + 0.5, end - 2)
    return (a, b) if b <= duration and b - a >= 0.5 else None


def frame_times(a: float, b: float, fps: float = 2) -> list[float]:
    if b <= a:
        return []
    n = max(1, int((b - a) * fps))
    times = [(a + b) / 2] if n == 1 else [a + i * (b - a) / (n - 1) for i in range(n)]
    return [min(t, max(a, b - 0.01)) for t in times]


def candidate_windows(
    start: float, end: float, duration: float, shifts: Sequence[float] = SHIFTS
) -> list[tuple[int, float, float]]:
    found: list[tuple[int, float, float]] = []
    for i, shift in enumerate(shifts):
        a, b = max(0.0, start + shift), min(max(0.0, end + shift), duration)
        if duration <= 0 or a >= duration:
            continue
        if b - a < 0.5:
            b = min(duration, a + 0.5)
            a = max(0.0, min(a, b - 0.5))
        window = (i, round(a, 6), round(b, 6))
        if all(window[1:] != w[1:] for w in found):
            found.append(window)
    return found


# ---- answers ----

CANDIDATE = re.compile(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}", re.S)
COMMA = re.compile(r",(\s*[}\]])")
CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "temporal_score": lambda v: int(float(v)),
    "is_relevant": lambda v: int(float(v)),
    "success_score": lambda v: int(float(v)),
    "content_score": lambda v: round(float(v), 2),
}
PATTERNS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "temporal_score": (r'"temporal_score"\s*:\s*(\d+)', int),
    "is_relevant": (r'"is_relevant"\s*:\s*(\d+)', int),
    "content_score": (r'"content_score"\s*:\s*(\d+(?:\.\d+)?)', lambda s: round(float(s), 2)),
    "success_score": (r'"success_score"\s*:\s*([01])', int),
}


def parse_published(raw: str, fields: Sequence[str]) -> dict[str, Any]:
    for match in CANDIDATE.finditer(raw):
        try:
            found = json.loads(COMMA.sub(r"\1", match.group(0)))
            for field in fields:
                if field in found:
                    found[field] = CONVERSIONS[field](found[field])
                elif field == "success_score":
                    found[field] = 0
            return dict(found)
        except (ValueError, TypeError, OverflowError):
            continue
    found = {}
    for field in fields:
        pattern, convert = PATTERNS[field]
        if match := re.search(pattern, raw):
            found[field] = convert(match.group(1))
    if "success_score" in fields:
        return {"success_score": 0, **found, "reasoning": ""}
    for key in ("temporal_reasoning", "content_reasoning", "reasoning"):
        if match := re.search(rf'"{key}"\s*:\s*"([^"]*)"', raw):
            found[key] = match.group(1)
    return found


def top_level_objects(raw: str) -> list[str]:
    """Character by character, minding strings; an object that never closes is stepped over."""
    found, i = [], 0
    while i < len(raw):
        if raw[i] != "{":
            i += 1
            continue
        depth, inside, escaped, end = 0, False, False, None
        for j in range(i, len(raw)):
            c = raw[j]
            if inside:
                if escaped:
                    escaped = False
                elif c == "\\":
                    escaped = True
                elif c == '"':
                    inside = False
            elif c == '"':
                inside = True
            elif c == "{":
                depth += 1
            elif c == "}":
                depth -= 1
                if depth == 0:
                    end = j
                    break
        if end is None:
            i += 1
        else:
            found.append(raw[i : end + 1])
            i = end + 1
    return found


def legal(field: str, value: Any) -> float | int | None:
    if isinstance(value, bool):
        return int(value) if field in ("is_relevant", "success_score") else None
    x = number(value)
    if x is None:
        return None
    if field == "temporal_score":
        return int(x) if x == int(x) and 0 <= x <= 3 else None
    if field == "content_score":
        return round(x, 2) if 0 <= x <= 3 else None
    return int(x) if x in (0, 1) else None


def parse_strict(raw: Any, field: str) -> float | int | None:
    if not isinstance(raw, str):
        return None
    result = None
    for text in top_level_objects(raw):
        try:
            found = json.loads(text)
        except ValueError:
            try:
                found = json.loads(COMMA.sub(r"\1", text))
            except ValueError:
                continue
        value = legal(field, found.get(field))
        if value is not None:
            result = value
    return result


def ask_strictly(ask: Ask, key: str, field: str, attempts: int = 3) -> float | int | None:
    """The first legal value of up to three attempts."""
    for kind, said in list(ask(key))[:attempts]:
        text = said if kind == "text" else None
        if kind == "body" and said.get("error") is None:
            try:
                text = said["choices"][0]["message"]["content"]
            except (KeyError, IndexError, TypeError):
                text = None
        value = parse_strict(text, field)
        if value is not None:
            return value
    return None


# ---- whole samples, paper ----


def description(
    data: Any, duration: float, ask: Ask, penalty: float = 1.0, shifts: Sequence[float] = SHIFTS
) -> dict[str, Any]:
    segments, _ = read_paper(data)
    segments = segments or []
    sentences = []
    for i, s in enumerate(segments):
        relevant = ask_strictly(ask, f"relevance/{i}", "is_relevant")
        score: float | None = None
        if relevant == 1:
            windows = candidate_windows(s["start"], s["end"], duration, shifts)
            scores = [ask_strictly(ask, f"window/{i}/{w[0]}", "temporal_score") for w in windows]
            known = [x for x in scores if x is not None]
            score = 0 if not windows else max(known) if known else None
        sentences.append((relevant, score))
    relevant_scores = [s for r, s in sentences if r == 1]
    scored = [s for s in relevant_scores if s is not None]
    told = [r for r, _ in sentences if r is not None]
    ratio = told.count(0) / len(told) if told else None
    temporal: float | None
    if not sentences:
        temporal = 0.0
    elif ratio is None:
        temporal = None
    elif not relevant_scores:
        temporal = 0.0
    elif not scored:
        temporal = None
    else:
        temporal = sum(scored) / len(scored) * (1 - penalty * ratio)
    text = " ".join(s["text"] for s in segments)
    content = ask_strictly(ask, "content", "content_score") if text else 0.0
    t = None if temporal is None else temporal / 3 * 100
    c = None if content is None else content / 3 * 100
    return {
        "sentences": sentences,
        "temporal": t,
        "content": c,
        "overall": None if t is None or c is None else 0.5 * t + 0.5 * c,
    }


def reminder(
    data: Any, events: Sequence[float], ask: Ask, size: float = 10.0
) -> tuple[int | None, str, str | None]:
    """Success (0 or 100), class and detail; without events the whole transcript is judged."""
    segments, _ = read_paper(data)
    segments = segments or []
    texts = [" ".join(s["text"] for s in segments)]
    if events:
        texts = [
            " ".join(s["text"] for s in segments if t - 1e-6 <= s["time"] <= t + size + 1e-6)
            for t in events
        ]
    keys = [f"event/{n}" for n in range(1, len(events) + 1)] or ["full"]
    scores = [
        ask_strictly(ask, key, "success_score") if text else 0
        for key, text in zip(keys, texts, strict=True)
    ]
    if 0 not in scores and None not in scores:
        return 100, "success", None
    if 0 not in scores:
        return None, "judge_error", None
    if 1 in scores:
        return 0, "partial", None
    if any(texts):
        return 0, "wrong_answer", None
    if not segments:
        return 0, "no_answer", "silent"
    if events and all(s["time"] < min(events) for s in segments):
        return 0, "no_answer", "only_before_first_event"
    return 0, "no_answer", "outside_every_window"
