"""One unit of a run: timeline, texts, question as rendered, raw answer, score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnijudge.asking import Asking, stage_keys
from omnijudge.benchmarks.base import Partition, Prompt
from omnijudge.errors import ConfigError, DataError, EvidenceError
from omnijudge.judging.question import Asker
from omnijudge.judging.replay import Key
from omnijudge.judging.verdicts import TEXTS, combine, outcomes
from omnijudge.partitions import read_table
from omnijudge.stored_run import StoredRun

WIDTH = 60


def show(run: str, address: str, prompt: bool = False) -> str:
    """Text about one unit.

    Args:
        run: folder of the run.
        address: ``SYSTEM/SAMPLE/UNIT``, each percent-encoded where it holds a slash.
        prompt: also the messages of each question, rendered again and checked.

    Raises:
        ConfigError: the address has another form.
        DataError: there is no such unit.
    """
    parts = [unquote(p) for p in address.split("/")]
    if len(parts) != 3:
        raise ConfigError(
            f"{address}: write SYSTEM/SAMPLE/UNIT; a slash inside a name is written %2F"
        )
    with StoredRun(run) as stored:
        system, sample, unit = parts
        return "\n".join(_lines(stored, system, sample, unit, prompt))


def _lines(stored: StoredRun, system: str, sample: str, unit: str, prompt: bool) -> list[str]:
    block, number = _find(stored, system, sample)
    part = stored.partition(block, number)
    rows = [r for r in part.units.to_pylist() if r["sample_id"] == sample and r["unit_id"] == unit]
    scores = read_table(stored.directory.table("scores"))
    scores = scores.filter(
        pc.and_(pc.equal(scores["system"], system), pc.equal(scores["sample_id"], sample))
    )
    _check_unit(part, scores, sample, unit)
    # What one system alone has (its sentences, say) is no row of the unit table.
    about: Mapping[str, Any] = rows[0] if rows else {}
    lines = [f"{system} / {sample} / {unit}", ""]
    lines += _named(about, skip=("sample_id", "unit_id", "attributes"))
    lines += ["", *timeline(part, sample, unit, about)]
    lines += ["", *_questions(stored, part, sample, unit, prompt)]
    found = scores.filter(pc.equal(scores["unit_id"], unit)).to_pylist()
    lines.append("score")
    if not found:
        return [*lines, "  the unit has no score row"]
    told = {"system": system, "sample_id": sample, "unit_id": unit, **about}
    known = tuple(k for k, v in told.items() if found[0].get(k) == v)
    return [*lines, *_named(found[0], skip=known)]


def _check_unit(part: Partition, scores: pa.Table, sample: str, unit: str) -> None:
    known: dict[str, None] = {}
    for table in (part.units, scores, part.stages):
        own = table.filter(pc.equal(table["sample_id"], sample))
        known |= dict.fromkeys(own["unit_id"].to_pylist())
    if unit not in known:
        raise DataError(f"{sample} has no unit {unit!r}; it has {', '.join(known)}")


def _find(stored: StoredRun, system: str, sample: str) -> tuple[int, int]:
    if system not in stored.plan.systems:
        known = ", ".join(stored.plan.systems)
        raise DataError(f"the run has no system {system!r}; it has {known}")
    for block, ids in enumerate(stored.plan.blocks):
        if sample in ids:
            return block, stored.plan.systems.index(system)
    raise DataError(f"the run has no sample {sample!r}")


def _named(row: Mapping[str, Any], skip: tuple[str, ...]) -> list[str]:
    shown = {k: v for k, v in row.items() if v is not None and k not in skip}
    width = max((len(k) for k in shown), default=0)
    return [f"  {k:<{width}}  {_plain(v)}" for k, v in shown.items()]


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def timeline(part: Partition, sample: str, unit: str, row: Mapping[str, Any]) -> list[str]:
    """The sample's chunks as bars over time; those of the unit are marked."""
    chunks = part.chunks.filter(pc.equal(part.chunks["sample_id"], sample)).to_pylist()
    marks = {k: row[k] for k in ("t_start", "t_a", "t_end") if row.get(k) is not None}
    times = [*marks.values(), *(c["start"] for c in chunks), *(c["end"] for c in chunks)]
    if not times:
        return ["said: nothing"]
    low, high = min(times), max(times)
    if unit_times := [*marks.values(), *_own_times(chunks, unit)]:
        low, high = min(unit_times), max(unit_times)
    scale = (WIDTH - 1) / (high - low) if high > low else 0.0

    def column(t: float) -> int:
        inside: float = min(max(t, low), high)
        return int((inside - low) * scale + 0.5)

    lines = [f"said between {low:g} and {high:g} s (* belongs to the unit)"]
    if marks:
        ruler = [" "] * WIDTH
        for name, t in marks.items():
            ruler[column(t)] = {"t_start": "[", "t_a": "A", "t_end": ")"}[name]
        lines.append("    " + "".join(ruler) + "  [ start  A answer due  ) end")
    for c in chunks:
        if c["end"] < low or c["start"] > high:
            continue
        bar = [" "] * WIDTH
        for i in range(column(c["start"]), column(c["end"]) + 1):
            bar[i] = "="
        own = "*" if c["unit_id"] == unit else " "
        lines.append(f"  {own} {''.join(bar)}  {c['start']:g}-{c['end']:g}  {c['text']}")
    return lines


def _own_times(chunks: list[dict[str, Any]], unit: str) -> list[float]:
    return [t for c in chunks if c["unit_id"] == unit for t in (c["start"], c["end"])]


def _questions(
    stored: StoredRun, part: Partition, sample: str, unit: str, prompt: bool
) -> list[str]:
    recorded = _recorded(stored, part.system, sample, unit)
    asking: Asking = stored.asking()
    wanted = pc.and_(
        pc.equal(part.stages["sample_id"], sample), pc.equal(part.stages["unit_id"], unit)
    )
    rows = pc.indices_nonzero(wanted).to_numpy().astype(np.int64)
    if not len(rows):
        return ["no stage to judge", ""]
    prompts = stored.benchmark.prompts(part, rows, stored.options)
    lines = []
    for key, question in zip(stage_keys(part, rows), prompts, strict=True):
        stage, item = key[4], key[3]
        title = stage if item is None else f"{stage} {item}"
        lines += [f"stage {title}", f"  text: {question.variables.get('text', '')}"]
        for seat in asking.seats:
            fingerprint = seat.asker.fingerprint(question)
            known = recorded.get((seat.judge.name, stage, item), [])
            if not known:
                lines.append(f"  judge {seat.judge.name}: not asked")
                continue
            same = known[0]["fingerprint"] == fingerprint.hex()
            if prompt:
                lines += _messages(seat.asker, question)
            verified = "question verified" if same else "QUESTION DIFFERS from the one asked"
            if seat.judge.engine == "replay":
                verified = "replayed answer; the question it was given to is not known"
            lines.append(f"  judge {seat.judge.name}: {verified} ({known[0]['fingerprint']})")
            for j in known:
                reason = f" ({j['reason']})" if j["reason"] else ""
                repeat = f"repeat {j['repeat'] + 1}, " if seat.judge.repeats > 1 else ""
                said = f"{j['status']}{reason}: {j['raw']}"
                lines.append(f"    {repeat}attempt {j['attempt']}: {said}")
        lines += _together(asking, key, question)
        lines.append("")
    return lines


def _together(asking: Asking, key: Key, prompt: Prompt) -> list[str]:
    """What several judges (or repeats of one) come to."""
    panel = []
    for seat in asking.seats:
        print_ = [seat.asker.fingerprint(prompt)]
        for repeat in range(seat.judge.repeats):
            panel += outcomes(
                asking.benchmark, seat.source, seat.mode, seat.most, [key], print_, [prompt], repeat
            )
    if len(panel) < 2:
        return []
    status, fields, spread = combine(panel, asking.how)
    said = ", ".join(
        f"{n} {_plain(v)}" for n, v in fields.items() if v is not None and n not in TEXTS
    )
    apart = "" if spread is None else f"; spread {spread:g}"
    return [f"  together ({asking.how}): {status or 'no verdict yet'}: {said}{apart}"]


def _messages(asker: Asker, prompt: Prompt) -> list[str]:
    """The messages of a question; pictures and sound by kind and size."""
    try:
        messages = asker.question(prompt).messages
    except EvidenceError as e:
        return [f"  --- cannot be shown: {e}", "  ---"]
    lines = []
    for message in messages:
        lines.append(f"  --- {message['role']}")
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for part in parts:
            text = part.get("text") or f"[{part['type']}, {len(str(part)):,} characters]"
            lines += [f"  {x}" for x in str(text).splitlines()]
    return [*lines, "  ---"]


def _recorded(
    stored: StoredRun, system: str, sample: str, unit: str
) -> dict[tuple[str, str, str | None], list[dict[str, Any]]]:
    judgements: pa.Table = read_table(stored.directory.table("judgements"))
    for name, value in (("system", system), ("sample_id", sample), ("unit_id", unit)):
        judgements = judgements.filter(pc.equal(judgements[name], value))
    found: dict[tuple[str, str, str | None], list[dict[str, Any]]] = {}
    for j in judgements.to_pylist():
        found.setdefault((j["judge"], j["stage"], j["item"]), []).append(j)
    return found
