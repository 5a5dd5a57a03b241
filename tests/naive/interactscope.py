"""Omni-InteractScope the slow, obvious way: one interaction at a time, standard library only.

The side the product is compared with. Written from the rules, not from the product.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from math import comb
from typing import Any

Row = dict[str, Any]
Window = tuple[float, float]

EPS = 1e-6
FIRST = ("T1", "T2", "T3", "T4", "T5", "T6", "T7")
SIX = ("T1", "T2", "T3", "T4", "T6", "T7")
T8 = ("T8-A", "T8-B", "T8-C")
TASKS = FIRST + T8
BLANKS_AND_STOPS = " \t\r\n\f\v\u00a0\u3000.!。！"


# ---------- rule 2: effective responses ----------


def is_silence(output: Row) -> bool:
    if output.get("tools"):
        return False
    text = (output.get("text") or "").strip(BLANKS_AND_STOPS)
    return text == "" or text.upper() == "ABSTAIN"


def effective(
    outputs: Sequence[Row],
    request_time: float | None,
    granularity: str,
    span: float = 2.0,
    mode: str = "anchored",
    pre_query: str = "drop",
) -> tuple[list[Row], int]:
    """Effective responses and the number of outputs before the request."""
    kept, early = [], 0
    for i, output in enumerate(outputs):
        if is_silence(output):
            continue
        if request_time is not None and output["t"] < request_time - EPS:
            early += 1
            if pre_query == "drop":
                continue
        kept.append((output["t"], i, output))
    kept.sort(key=lambda x: (x[0], x[1]))
    groups: list[Row] = []
    for t, i, output in kept:
        text, tools = output.get("text") or "", list(output.get("tools") or [])
        if granularity == "fragment" and groups:
            group = groups[-1]
            since = group["t"] if mode == "anchored" else group["latest"]
            if t - since <= span + EPS:
                group["members"].append(i)
                group["latest"] = t
                group["texts"].append(text)
                group["tools"] += tools
                continue
        groups.append(
            {
                "t": t,
                "output_index": i,
                "members": [i],
                "latest": t,
                "texts": [text],
                "tools": tools,
            }
        )
    for group in groups:
        texts = group["texts"]
        group["text"] = texts[0] if len(texts) == 1 else " ".join(x for x in texts if x.strip())
        names = (x.strip() for x in group["tools"])
        group["tools"] = list(dict.fromkeys(x for x in names if x))
    return groups, early


# ---------- rule 3: windows ----------


def bounds(target: Row) -> Window:
    if target.get("interval") is not None:
        return float(target["interval"][0]), float(target["interval"][1])
    return float(target["ref_time"]), float(target["ref_time"])


def window(task: str, target: Row, request_time: float | None, tau: float = 2.0) -> Window:
    a, b = bounds(target)
    if task == "T8-A":
        return a, b
    low, high = a - tau, b + tau
    if task in ("T8-B", "T8-C") and request_time is not None:
        low = max(low, request_time)
    return low, high


def inside(t: float, w: Window) -> bool:
    return w[0] - EPS <= t <= w[1] + EPS


def sort_targets(targets: Sequence[Row]) -> list[Row]:
    places = sorted(
        range(len(targets)),
        key=lambda i: (bounds(targets[i])[0], targets[i].get("order", 0), i),
    )
    return [targets[i] for i in places]


# ---------- rule 4: content ----------


def tool_match(got: Sequence[str], want: Sequence[str], case_sensitive: bool = True) -> bool:
    def names(listed: Sequence[str]) -> set[str]:
        found = {x.strip() for x in listed} - {""}
        return found if case_sensitive else {x.lower() for x in found}

    return names(got) == names(want)


def spans(raw: str) -> list[str]:
    found, i = [], 0
    while i < len(raw):
        if raw[i] != "{":
            i += 1
            continue
        depth, quoted, escaped, end = 0, False, False, None
        for j in range(i, len(raw)):
            c = raw[j]
            if quoted:
                if escaped:
                    escaped = False
                elif c == "\\":
                    escaped = True
                elif c == '"':
                    quoted = False
            elif c == '"':
                quoted = True
            elif c == "{":
                depth += 1
            elif c == "}":
                depth -= 1
                if depth == 0:
                    end = j
                    break
        if end is None:
            break
        found.append(raw[i : end + 1])
        i = end + 1
    return found


def parse_verdict(raw: str) -> bool | None:
    verdict = None
    for span in spans(raw):
        for text in (span, re.sub(r",(\s*[}\]])", r"\1", span)):
            try:
                value = json.loads(text)
            except (ValueError, RecursionError):
                continue
            found = as_bool(value.get("equivalent")) if isinstance(value, dict) else None
            verdict = verdict if found is None else found
            break
    return verdict


def as_bool(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return True if value == 1 else False if value == 0 else None
    if isinstance(value, str):
        word = value.strip().lower()
        return (
            True
            if word in ("true", "yes", "1")
            else False
            if word in ("false", "no", "0")
            else None
        )
    return None


def verdict_from_attempts(attempts: Iterable[str], most: int = 3) -> bool | None:
    for raw in list(attempts)[:most]:
        verdict = parse_verdict(raw)
        if verdict is not None:
            return verdict
    return None


# ---------- rule 6: first response ----------


def first_response(
    windows: Sequence[Window],
    anchors: Sequence[float],
    times: Sequence[float],
    verdict: Callable[[int, int], bool | None],
    variant: str = "default",
) -> list[tuple[str, int | None]]:
    """Status and response of each target; ``anchors`` are reference times or interval ends."""
    used: set[int] = set()
    rows: list[tuple[str, int | None]] = []
    for k, w in enumerate(windows):
        free = [j for j in range(len(times)) if j not in used]
        if variant == "since_previous" and k > 0:
            last = max(used, default=-1)
            free = [j for j in free if j > last and times[j] > anchors[k - 1] + EPS]
        if not free or (variant == "late_released" and times[free[0]] > w[1] + EPS):
            rows.append(("missing", None))
            continue
        j = free[0]
        used.add(j)
        if times[j] < w[0] - EPS:
            rows.append(("early", j))
        elif times[j] > w[1] + EPS:
            rows.append(("late", j))
        else:
            v = verdict(k, j)
            rows.append(({True: "success", False: "wrong_content", None: "judge_error"}[v], j))
    return rows


# ---------- rule 7: ordered matching ----------


def ordered_matching(
    eligible: Sequence[Sequence[Any]], targets: int, responses: int
) -> tuple[int, list[tuple[int, int]]]:
    """Size of the optimum and its lexicographically first pair list."""
    g = [[0] * (responses + 1) for _ in range(targets + 1)]
    for k in range(targets - 1, -1, -1):
        for j in range(responses - 1, -1, -1):
            take = 1 + g[k + 1][j + 1] if eligible[k][j] else 0
            g[k][j] = max(g[k + 1][j], g[k][j + 1], take)
    pairs, j = [], 0
    for k in range(targets):
        for x in range(j, responses):
            if eligible[k][x] and 1 + g[k + 1][x + 1] == g[k][j]:
                pairs.append((k, x))
                j = x + 1
                break
    return g[0][0], pairs


# ---------- one interaction ----------


def score_interaction(
    interaction: Row,
    trajectory: Row | None,
    verdict_of: Callable[[Row, Row], bool | None],
    tau: float = 2.0,
    variant: str = "default",
    mode: str = "anchored",
    span: float = 2.0,
) -> Row:
    """Everything about one interaction; ``verdict_of(target, response)`` is asked lazily."""
    task = interaction["task"]
    request_time = None if task == "T8-A" else interaction.get("request_time")
    targets = sort_targets(interaction["targets"])
    windows = [window(task, t, request_time, tau) for t in targets]
    missing = trajectory is None
    responses, early = [], 0
    if trajectory is not None:
        responses, early = effective(
            trajectory["outputs"],
            request_time,
            trajectory.get("granularity", "response"),
            span,
            mode,
        )
    times = [r["t"] for r in responses]
    asked: dict[tuple[int, int], bool | None] = {}

    def verdict(k: int, j: int) -> bool | None:
        if task == "T1":
            return tool_match(responses[j]["tools"], targets[k].get("tools") or [])
        if (k, j) not in asked:
            asked[k, j] = verdict_of(targets[k], responses[j])
        return asked[k, j]

    found: list[tuple[str, int | None]]
    if task in FIRST:
        anchors = [bounds(t)[1] for t in targets]
        found = first_response(windows, anchors, times, verdict, variant)
    else:
        found = _ordered(windows, times, verdict, missing)
    rows = [
        {
            "target_id": target["target_id"],
            "status": status,
            "output_index": None if j is None else responses[j]["output_index"],
            "m": int(status in ("success", "matched")),
        }
        for target, (status, j) in zip(targets, found, strict=True)
    ]
    start = interaction["clip_start"] if request_time is None else request_time
    return {
        "interaction_id": interaction["interaction_id"],
        "task": task,
        "video_id": interaction.get("video_id"),
        "missing_trajectory": missing,
        "n_outputs": len(responses),
        "n_pre_query": early,
        "observed_seconds": 0.0 if missing else interaction["clip_end"] - start,
        "effective_outputs": [
            {k: r[k] for k in ("t", "output_index", "members")} for r in responses
        ],
        "targets": rows,
        "complete": all(r["m"] for r in rows),
        "judge_calls": sorted(
            [targets[k]["target_id"], responses[j]["output_index"]] for k, j in asked
        ),
    }


def _ordered(
    windows: Sequence[Window],
    times: Sequence[float],
    verdict: Callable[[int, int], bool | None],
    missing: bool,
) -> list[tuple[str, int | None]]:
    within = [[inside(t, w) for t in times] for w in windows]
    verdicts = [
        [verdict(k, j) if within[k][j] else None for j in range(len(times))]
        for k in range(len(windows))
    ]
    eligible = [[v is True for v in row] for row in verdicts]
    _, pairs = ordered_matching(eligible, len(windows), len(times))
    taken = dict(pairs)
    rows: list[tuple[str, int | None]] = []
    for k in range(len(windows)):
        if k in taken:
            rows.append(("matched", taken[k]))
        elif missing:
            rows.append(("missing_trajectory", None))
        elif any(eligible[k]):
            rows.append(("order_conflict", None))
        elif any(i and v is None for i, v in zip(within[k], verdicts[k], strict=True)):
            rows.append(("judge_error", None))
        elif any(within[k]):
            rows.append(("wrong_content", None))
        else:
            rows.append(("no_timely_response", None))
    return rows


# ---------- rule 8: scores ----------


def summarise(rows: Sequence[Row], not_evaluated: Sequence[str] = ()) -> Row:
    tasks: Row = {}
    for task in TASKS:
        mine = [r for r in rows if r["task"] == task]
        if task in not_evaluated:
            tasks[task] = None
            continue
        targets = [t for r in mine for t in r["targets"]]
        n, successes = len(targets), sum(t["m"] for t in targets)
        statuses: dict[str, int] = {}
        for t in targets:
            statuses[t["status"]] = statuses.get(t["status"], 0) + 1
        tasks[task] = {
            "interactions": len(mine),
            "targets": n,
            "successes": successes,
            "score": 100.0 * successes / n if n else None,
            "missing_trajectories": sum(r["missing_trajectory"] for r in mine),
            "statuses": statuses,
        }
        if task in FIRST:
            on_time = sum(statuses.get(x, 0) for x in ("success", "wrong_content", "judge_error"))
            tasks[task]["on_time_first_response_rate"] = 100.0 * on_time / n if n else None
        if task in ("T7", "T8-C"):
            complete = sum(r["complete"] for r in mine)
            tasks[task]["complete_sequences"] = complete
            tasks[task]["complete_sequence_rate"] = 100.0 * complete / len(mine) if mine else None
    six = [tasks[t]["score"] if tasks[t] else None for t in SIX]
    evaluated = [r for r in rows if r["task"] not in not_evaluated]
    assisted = [r for r in evaluated if r["task"] in T8]
    n8 = sum(len(r["targets"]) for r in assisted)
    s8 = sum(t["m"] for r in assisted for t in r["targets"])
    return {
        "tasks": tasks,
        "average_six": None if any(x is None for x in six) else sum(six) / 6,
        "t8_overall": {"targets": n8, "successes": s8, "score": 100.0 * s8 / n8 if n8 else None},
        "t8_outputs_per_minute": _rate(assisted),
        "t8_unmatched_outputs": sum(r["n_outputs"] for r in assisted) - s8,
        "all_outputs_per_minute": _rate(evaluated),
    }


def _rate(rows: Sequence[Row]) -> float | None:
    seconds = sum(r["observed_seconds"] for r in rows)
    return 60.0 * sum(r["n_outputs"] for r in rows) / seconds if seconds else None


def run_model(
    annotations: Sequence[Row],
    trajectories: dict[str, Row],
    verdict_of: Callable[[Row, Row, Row], bool | None],
    not_evaluated: Sequence[str] = (),
    **settings: Any,
) -> Row:
    rows = []
    for a in annotations:
        if a.get("valid", True) and a["task"] not in not_evaluated:
            rows.append(
                score_interaction(
                    a,
                    trajectories.get(a["interaction_id"]),
                    lambda t, r, a=a: verdict_of(a, t, r),  # type: ignore[misc]
                    **settings,
                )
            )
    return {"interactions": rows, "summary": summarise(rows, not_evaluated)}


# ---------- rule 9: controls ----------


def mcnemar_exact(b: int, c: int) -> float:
    n = b + c
    if n == 0:
        return 1.0
    return min(1.0, 2.0 * sum(comb(n, i) for i in range(min(b, c) + 1)) / 2.0**n)


# ---------- rule 10: bootstrap by explicit resamples ----------


def statistic(clusters: Sequence[Row], resample: Iterable[int], name: str) -> float | None:
    resample = list(resample)
    if name == "average_six":
        parts = [_ratio(clusters, resample, (t,)) for t in SIX]
        known = [p for p in parts if p is not None]
        return sum(known) / 6 if len(known) == 6 else None
    return _ratio(clusters, resample, T8 if name == "t8_overall" else (name,))


def _ratio(clusters: Sequence[Row], resample: Sequence[int], tasks: Sequence[str]) -> float | None:
    values = [m for i in resample for t in tasks for m in clusters[i]["m"].get(t) or []]
    return 100.0 * sum(values) / len(values) if values else None


def percentile(values: Sequence[float], q: float) -> float:
    values = sorted(values)
    place = q * (len(values) - 1)
    i = math.floor(place)
    return values[i] + (values[min(i + 1, len(values) - 1)] - values[i]) * (place - i)


# ---------- rule 11: permutation reference ----------


def sequence_law(strata: Sequence[Row]) -> dict[int, float]:
    """Law of the number of complete sequences when step positions are unrelated."""
    law = {0: 1.0}
    for stratum in strata:
        n, counts = stratum["n"], stratum["counts"]
        own = {counts[0]: 1.0}
        for c in counts[1:]:
            new: dict[int, float] = {}
            for s, p in own.items():
                for x in range(max(0, c - (n - s)), min(s, c) + 1):
                    chance = comb(s, x) * comb(n - s, c - x) / comb(n, c)
                    new[x] = new.get(x, 0.0) + p * chance
            own = new
        both: dict[int, float] = {}
        for a, p in law.items():
            for b, q in own.items():
                both[a + b] = both.get(a + b, 0.0) + p * q
        law = both
    return law
