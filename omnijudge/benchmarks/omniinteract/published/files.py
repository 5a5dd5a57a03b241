"""Reading the files of the published evaluator (rule 23): one per sample, and a summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omnijudge.errors import ConfigError, Problem
from omnijudge.transcripts.files import UnreadableFile, read_json
from omnijudge.values import parse_time, text_of

RESULT_ENDING = ".unified_eval.json"
SUMMARY_FILE = "unified_eval_summary.json"
PARSE_NAMES = {"llm_json": "json", "llm_float_text": "number", "llm_parse_failed": "failed"}
"""How the published evaluator names what its parser made of an answer -> how we do."""

Spoken = tuple[float, float, str]
"""Start and end in seconds, and text of a chunk."""


@dataclass(frozen=True, slots=True)
class JudgedStage:
    """One stage of a slot that was judged.

    Attributes:
        text: what the judge was shown of the system's words.
        raw: its answer; None if there is none although the stage has words.
        parse: what the parser made of it, in the file's own words.
    """

    text: str
    raw: str | None
    parse: str | None


@dataclass(frozen=True)
class StoredSlot:
    """One slot of a result, times in seconds.

    Attributes:
        stages: the judged stages: early, core, partial.
        chunks: what was said in it; None if the file does not keep it.
        values: scored values under our column names.
    """

    slot_id: str
    t_start: float
    t_a: float
    t_end: float
    question: str
    target_answer: str
    stages: Mapping[str, JudgedStage]
    chunks: Sequence[Spoken] | None
    values: Mapping[str, Any]

    @property
    def totals(self) -> tuple[float, float, float]:
        """(TP, FP, FN)."""
        return self.values["tp"], self.values["fp"], self.values["fn"]


@dataclass(frozen=True)
class StoredResult:
    """The result of one sample.

    Attributes:
        status: as the file says it.
        error: what it says went wrong.
        config: the evaluator's options as it wrote them.
        unmatched: chunks that fit no slot; None if the file does not keep them.
        paths: ``gt_json`` and ``model_json`` of the evaluator's machine.
        model: the judge.
    """

    sample_id: str
    file: Path
    status: str
    error: str | None
    config: Mapping[str, Any]
    slots: Sequence[StoredSlot]
    unmatched: Sequence[Spoken] | None
    scene_type: str
    paths: Mapping[str, str]
    model: str

    @property
    def totals(self) -> tuple[float, float, float]:
        """(TP, FP, FN) as the published summary adds them up, unmatched chunks included."""
        tp, fp, fn = (float(sum(s.totals[i] for s in self.slots)) for i in range(3))
        if self.config.get("count_unmatched_as_fp", True):
            fp += len(self.unmatched or ())
        return tp, fp, fn


@dataclass(frozen=True)
class StoredSummary:
    """What the summary file says.

    Attributes:
        f1: its IA-QTF1 over everything; None if there is no summary.
        items: samples it lists: id -> its item.
    """

    f1: float | None = None
    items: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class StoredResults:
    """A folder of the published evaluator."""

    folder: Path
    results: Mapping[str, StoredResult]
    summary: StoredSummary
    problems: Sequence[Problem]


def read_results(folder: Path) -> StoredResults:
    """Reads a folder; files that cannot be read are problems.

    Raises:
        ConfigError: there is no folder, or no result in it.
    """
    if not folder.is_dir():
        raise ConfigError(f"import: there is no folder {folder}")
    files = sorted(folder.glob(f"*{RESULT_ENDING}"))
    if not files:
        raise ConfigError(
            f"import: {folder} holds no *{RESULT_ENDING}; "
            "name the folder the published evaluator wrote its results to"
        )
    problems: list[Problem] = []
    results = {}
    for file in files:
        try:
            result = parse_result(file, read_json(file))
        except UnreadableFile as e:
            problems.append(e.problem)
            continue
        except MalformedResult as e:
            problems.append(
                Problem("wrong_root", "error", str(file), e.place, f"{e}; it is left out")
            )
            continue
        results[result.sample_id] = result
    return StoredResults(folder, results, _summary(folder / SUMMARY_FILE, problems), problems)


class MalformedResult(Exception):
    """A result that cannot be used; ``place`` says where."""

    def __init__(self, place: str, message: str) -> None:
        super().__init__(message)
        self.place = place


def parse_result(file: Path, value: Any) -> StoredResult:
    """One result from its JSON value; ``file`` gives the sample id.

    Raises:
        MalformedResult: it lacks what an import needs.
    """
    if not isinstance(value, dict):
        raise MalformedResult("", "must be an object")
    slots = value.get("slots")
    if not isinstance(slots, list):
        raise MalformedResult("slots", "must be a list")
    meta, unmatched = _object(value.get("meta")), value.get("unmatched_chunks")
    return StoredResult(
        sample_id=file.name.removesuffix(RESULT_ENDING),
        file=file,
        status=text_of(value.get("status")) or "ok",
        error=text_of(value.get("error")) or None,
        config=_object(value.get("config")),
        slots=[_slot(s, f"slots[{n}]") for n, s in enumerate(slots)],
        unmatched=_chunks(unmatched) if isinstance(unmatched, list) else None,
        scene_type=text_of(meta.get("scene_type")),
        paths={k: text_of(meta.get(k)) for k in ("gt_json", "model_json")},
        model=text_of(meta.get("judge_api_model")),
    )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _slot(value: Any, place: str) -> StoredSlot:
    if not isinstance(value, dict):
        raise MalformedResult(place, "must be an object")
    times = {k: parse_time(value.get(k)) for k in ("start", "t_a", "end")}
    lacking = [k for k, t in times.items() if t is None]
    totals = {k: _number(value.get(k)) for k in ("TP_n", "FP_delta", "FN_delta")}
    lacking += [k for k, t in totals.items() if t is None]
    if lacking or value.get("slot_id") is None:
        raise MalformedResult(place, f"{', '.join(lacking) or 'slot_id'} is missing or no number")
    early, core = _object(value.get("stage_early")), _object(value.get("stage_core"))
    partial = _object(value.get("interruption_diagnostic"))
    said = value.get("all_chunks")
    return StoredSlot(
        slot_id=str(value["slot_id"]),
        t_start=times["start"] or 0.0,
        t_a=times["t_a"] or 0.0,
        t_end=times["end"] or 0.0,
        question=text_of(value.get("question_text")),
        target_answer=text_of(value.get("gt_answer")),
        stages=_stages(value, early, core, partial),
        chunks=_chunks(said) if isinstance(said, list) else None,
        values={
            "tp": totals["TP_n"],
            "fp": totals["FP_delta"],
            "fn": totals["FN_delta"],
            **_early_values(value, early),
            **_core_values(value, core),
            **_interruption_values(value, partial),
        },
    )


def _stages(
    slot: Mapping[str, Any],
    early: Mapping[str, Any],
    core: Mapping[str, Any],
    partial: Mapping[str, Any],
) -> dict[str, JudgedStage]:
    found = {}
    blocks = (
        ("early", early, "text_early", _object(early.get("diagnostics"))),
        ("core", core, "text_core", _object(core.get("judge_core"))),
        ("partial", partial, "actual_text", _object(partial.get("judge_partial"))),
    )
    for name, block, key, judge in blocks:
        text = text_of(block.get(key, block.get("actual_text")))
        raw = judge.get("raw")
        if raw is not None or text.strip() or (name != "partial" and block.get("chunks")):
            parse = judge.get("parse_source")
            found[name] = JudgedStage(
                text, None if raw is None else str(raw), None if parse is None else str(parse)
            )
    if slot.get("is_interrupted"):
        found.pop("core", None)
    return found


def _early_values(slot: Mapping[str, Any], early: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {"tp_ack": slot.get("TP_ack", slot.get("Score_ack"))}
    if "category" in early:
        values["early_category"] = early["category"]
    if early.get("category") not in (None, "none"):
        values |= {"s_ack": early.get("S_ack"), "t_ack": early.get("T_ack")}
        values["w_ack"] = early.get("W_ack_used")
    return values


def _core_values(slot: Mapping[str, Any], core: Mapping[str, Any]) -> dict[str, Any]:
    judge = _object(core.get("judge_core"))
    values: dict[str, Any] = {"tp_core": slot.get("TP_core", slot.get("Score_core"))}
    if "raw" not in judge:
        return values
    return values | {
        "s_core": core.get("S_core"),
        "t_core": core.get("T_core"),
        "w_core": core.get("W_core_used"),
        "fallback": core.get("T_start_fallback"),
        "t_used": core.get("T_start"),
        "anchor": core.get("T_start_true_effective"),
        "fp_low": int(bool(core.get("low_quality_fp"))),
        "spoiler": judge.get("spoiler"),
        "trigger_phrase": judge.get("trigger_phrase"),
    }


def _interruption_values(slot: Mapping[str, Any], partial: Mapping[str, Any]) -> dict[str, Any]:
    spill = _object(slot.get("spill_diagnostics"))
    values: dict[str, Any] = {}
    if "spill_seconds" in spill:
        values["spill_seconds"] = spill["spill_seconds"]
    if partial.get("status") == "ok":
        values["paq"] = partial.get("partial_quality")
        values["partial_hallucination"] = partial.get("hallucination")
    return values


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _chunks(values: Sequence[Any]) -> list[Spoken]:
    found = []
    for c in values:
        c = _object(c)
        start, end = parse_time(c.get("start")), parse_time(c.get("end"))
        if start is not None and end is not None:
            found.append((start, end, text_of(c.get("text"))))
    return found


def _summary(path: Path, problems: list[Problem]) -> StoredSummary:
    if not path.is_file():
        return StoredSummary()
    try:
        value = _object(read_json(path))
    except UnreadableFile as e:
        problems.append(e.problem)
        return StoredSummary()
    items = value.get("items")
    return StoredSummary(
        _number(_object(value.get("summary")).get("IA_QTF1")),
        {
            text_of(i["sample_id"]): i
            for i in (items if isinstance(items, list) else [])
            if isinstance(i, dict) and i.get("sample_id")
        },
    )
