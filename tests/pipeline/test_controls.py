"""Controls: ceiling and floor rows that the benchmark makes itself."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from golden.omniinteract_run import GOLDEN, judged
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import omniinteract as naive

import omnijudge
from omnijudge import tables
from omnijudge.benchmarks import get_benchmark
from omnijudge.benchmarks.base import Partition
from omnijudge.benchmarks.omniinteract import benchmark, reader
from omnijudge.benchmarks.omniinteract.layout import Sample
from omnijudge.benchmarks.omniinteract.schemas import UNIT_SCHEMA
from omnijudge.benchmarks.omniinteract.slots import UnusableAnnotation, build_slots
from omnijudge.config import build_config
from omnijudge.controls import control_name, is_control, partners
from omnijudge.errors import ConfigError
from omnijudge.ingest import block_units, match, read_annotations, read_partition
from omnijudge.report.results import Results
from omnijudge.seats import resolve_options
from omnijudge.status import status_lines

SAMPLES = Path(__file__).parents[2] / "omnijudge" / "sample_data"
KINDS = ("oracle", "silent", "shuffled")

RIGHT = {
    "early": {"flag": "neutral", "score": 1},
    "core": {"score": 1, "trigger_phrase": "", "spoiler": False},
    "partial": {"score": 1, "hallucination": False},
}


def config(name: str = "omniinteract", **changes: Any) -> Any:
    sources = {
        "omniinteract": ({"root": "data"}, "outputs/*"),
        "omni_interactscope": ({"annotations": "annotations.jsonl"}, "responses/*"),
        "omni_duplexeval": ({"annotations": "annotations.jsonl"}, "outputs/*"),
    }
    data, systems = sources[name]
    values = {
        "benchmark": name,
        "data": data,
        "systems": {systems: systems},
        "controls": list(KINDS),
        "statistics": {"replicates": 200},
        "output": "unused",
        **changes,
    }
    return build_config(values, SAMPLES / name, "test")


def parts_of(run: Any, kinds: Iterable[str] = KINDS) -> dict[str, Partition]:
    """Matched partitions of the controls over all samples (they fit into one block)."""
    found = get_benchmark(run.benchmark)
    options = resolve_options(found, run.scoring)
    ingest = read_annotations(run, found)
    (ids,) = ingest.plan.blocks
    units = block_units(ingest.annotations.units, ids)
    return {
        kind: match(
            found, read_partition(run, found, ingest, control_name(kind), ids, units), options
        )
        for kind in kinds
    }


def windows_of_its_own(part: Partition) -> set[tuple[str, str]]:
    """Slots that own their answer moment: inside the window, and no later slot has begun.

    An inner slot lies inside its outer one; its window is its own nevertheless.
    """
    rows = [r for r in part.units.to_pylist() if r["unit_kind"] == "slot"]
    own = set()
    for r in rows:
        mates = [m for m in rows if m["sample_id"] == r["sample_id"]]
        inside = [m for m in mates if m["t_start"] <= r["t_a"] < m["t_end"]]
        latest = max(inside, key=lambda m: (m["t_start"], int(m["unit_id"])), default=None)
        if latest is r:
            own.add((r["sample_id"], r["unit_id"]))
    return own


def answers(part: Partition, phrases: Any) -> dict[tuple[str, str, str, str], dict[str, Any]]:
    """The best verdict on every stage; ``phrases(text)`` gives the trigger phrase."""
    found = {}
    for r in part.stages.to_pylist():
        answer = dict(RIGHT[r["stage"]])
        if r["stage"] == "core":
            answer["trigger_phrase"] = phrases(r["text"])
        key = (part.system, r["sample_id"], r["unit_id"], r["stage"])
        found[key] = {"raw": json.dumps(answer)}
    return found


def check_oracle(run: Any, part: Partition, phrases: Any) -> Counter[str]:
    """Full credit in every slot that can be had; counts these by scene type."""
    options = resolve_options(benchmark, run.scoring)
    own = windows_of_its_own(part)
    scores = benchmark.score(judged(part, options, answers(part, phrases), "strict"), options)
    seen: Counter[str] = Counter()
    for row in scores.to_pylist():
        if row["unit_kind"] == "sample":
            assert row["fp"] == 0
        if row["unit_kind"] != "slot" or row["is_interrupted"]:
            continue
        if (row["sample_id"], row["unit_id"]) not in own:
            continue
        step = row["unit_id"] if row["scene_type"] == "1QnA" else "1"
        weight = 1.0 if step != "1" else 1 - options.w_ack
        assert row["tp"] == pytest.approx(weight, abs=1e-12)
        assert row["tp_core"] == row["tp"]
        assert (row["fp"], row["fn"], row["fp_spill"]) == (0, 0, 0)
        assert row["t_core"] == 1
        seen[row["scene_type"]] += 1
    return seen


PHRASES = {
    "none": lambda text: "",
    "first word": lambda text: text.split()[0] if text.split() else "",
    "last words": lambda text: text[-4:],
    "everything": lambda text: text,
}


@pytest.mark.parametrize("phrases", PHRASES.values(), ids=PHRASES)
def test_oracle_earns_the_core_weight_in_the_sample_set(phrases: Any) -> None:
    run = config()
    seen = check_oracle(run, parts_of(run, ["oracle"])["oracle"], phrases)
    assert all(seen[s] >= 10 for s in ("multi_turn", "nested", "1QnA")), seen


@pytest.mark.parametrize("phrases", PHRASES.values(), ids=PHRASES)
def test_oracle_earns_the_core_weight_in_the_golden_set(phrases: Any) -> None:
    """The golden set is full of degenerate windows, blank answers and odd times."""
    values = {
        "benchmark": "omniinteract",
        "data": {"manifest": "manifest.jsonl", "on_bad_sample": "skip"},
        "controls": ["oracle"],
        "output": "unused",
    }
    run = build_config(values, GOLDEN, "golden")
    seen = check_oracle(run, parts_of(run, ["oracle"])["oracle"], phrases)
    assert all(seen[s] >= 5 for s in ("multi_turn", "nested", "1QnA")), seen


times = st.integers(0, 30).map(float)
one_to_one = st.lists(
    st.fixed_dictionaries(
        {
            "question_time": times,
            "answer_time": times,
            "question_text": st.just("what?"),
            "answer_text": st.sampled_from(["a red mug", "杯子", ""]),
            "is_interrupted": st.sampled_from([False, False, True]),
        }
    ),
    max_size=5,
)
one_to_many = st.fixed_dictionaries(
    {
        "question_time": times,
        "question_text": st.just("guide me"),
        "answers": st.lists(
            st.fixed_dictionaries(
                {"answer_time": times, "answer_text": st.sampled_from(["stir", "搅拌"])}
            ),
            max_size=5,
        ),
    }
)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(
    st.one_of(
        st.tuples(st.sampled_from(["multi_turn", "nested"]), one_to_one),
        st.tuples(st.just("1QnA"), one_to_many),
    )
)
def test_oracle_by_the_slow_twin(sample: tuple[str, Any]) -> None:
    """Random annotations with every kind of odd window, scored by the naive evaluator."""
    scene, root = sample
    try:
        slots = build_slots(root, scene, 60.0)
    except UnusableAnnotation:
        return
    rows: dict[str, list[Any]] = {n: [] for n in UNIT_SCHEMA.names}
    reader._unit_rows(Sample("x", scene, Path("a.json"), "list", "row 0", "x"), slots, rows)
    options = resolve_options(benchmark, {})
    said = benchmark.oracle(tables.make(UNIT_SCHEMA, dict(rows)), "o", options).to_pylist()
    chunks = [
        {"timestamp": [c["start"], c["end"]], "text": c["text"], "aligned_words": c["words"]}
        for c in said
    ]
    verdict = json.dumps({"score": 1, "flag": "neutral", "trigger_phrase": "a red mug"})
    found = naive.score_sample(
        root, {"chunks": chunks}, scene, lambda call: verdict, naive.DEFAULTS, []
    )
    assert not found["unmatched"]
    for slot, scored in zip(slots, found["slots"], strict=True):
        inside = [(s.t_start, s.slot_id) for s in slots if s.t_start <= slot.t_a < s.t_end]
        if slot.interrupted or max(inside, default=None) != (slot.t_start, slot.slot_id):
            continue
        weight = 1.0 if (slot.step or 1) > 1 else 0.8
        assert scored["TP"] == pytest.approx(weight, abs=1e-12)
        assert (scored["FP"], scored["FN"]) == (0, 0)


def test_oracle_never_speaks_into_another_slot() -> None:
    values = {
        "benchmark": "omniinteract",
        "data": {"manifest": "manifest.jsonl", "on_bad_sample": "skip"},
        "controls": ["oracle"],
        "output": "unused",
    }
    part = parts_of(build_config(values, GOLDEN, "golden"), ["oracle"])["oracle"]
    assert part.chunks["unit_id"].null_count == 0
    stages = Counter(part.stages["stage"].to_pylist())
    assert stages["early"] == 0
    assert stages["core"] > 100
    ends = {(r["sample_id"], r["unit_id"]): r["t_end"] for r in part.units.to_pylist()}
    for c in part.chunks.to_pylist():
        assert c["start"] <= c["end"] <= ends[c["sample_id"], c["unit_id"]]


def test_silence_scores_zero_with_the_right_counts() -> None:
    run = config()
    part = parts_of(run, ["silent"])["silent"]
    options = resolve_options(benchmark, run.scoring)
    assert part.chunks.num_rows == 0
    assert part.stages.num_rows == 0
    scores = benchmark.score(part, options).to_pylist()
    slots = [r for r in scores if r["unit_kind"] == "slot"]
    for scene in ("multi_turn", "nested", "1QnA"):
        own = [r for r in slots if r["scene_type"] == scene]
        assert own
        assert sum(r["tp"] for r in own) == 0
        assert sum(r["fp"] for r in own) == 0
        assert sum(r["fn"] for r in own) == sum(not r["is_interrupted"] for r in own)
    assert any(r["is_interrupted"] for r in slots)
    assert not any(r["has_output"] or r["missing_output"] for r in slots)


def test_shuffled_says_what_the_first_system_said_elsewhere_in_the_same_scene() -> None:
    run = config()
    part = parts_of(run, ["shuffled"])["shuffled"]
    first = next(iter(run.systems))
    ingest = read_annotations(run, benchmark)
    (ids,) = ingest.plan.blocks
    units = block_units(ingest.annotations.units, ids)
    own = read_partition(run, benchmark, ingest, first, ids, units)
    scene = dict(zip(units["sample_id"].to_pylist(), units["scene_type"].to_pylist(), strict=True))

    def said(table: Any, sample: str) -> list[Any]:
        rows = table.filter(pc.equal(table["sample_id"], sample)).to_pylist()
        return [(r["start"], r["end"], r["text"], r["words"]) for r in rows]

    taken = set()
    for row in part.outputs.to_pylist():
        sample = row["sample_id"]
        system, _, partner = row["detail"].partition(" about ")
        assert system == first
        assert partner != sample
        assert scene[partner] == scene[sample]
        assert said(part.chunks, sample) == said(own.chunks, partner)
        taken.add(partner)
    assert taken == set(ids)


def test_shuffled_counts_a_partner_without_output_as_missing(tmp_path: Path) -> None:
    run = config()
    first = next(iter(run.systems))
    (tmp_path / "empty").mkdir()
    settings = {**run.systems, first: replace_path(run.systems[first], tmp_path / "empty")}
    run = run.model_copy(update={"systems": settings})
    part = parts_of(run, ["shuffled"])["shuffled"]
    assert set(part.outputs["state"].to_pylist()) == {"missing"}


def replace_path(settings: Any, path: Path) -> Any:
    return settings.model_copy(update={"path": str(path)})


@settings(max_examples=200, derandomize=True, deadline=None)
@given(
    st.dictionaries(st.text(min_size=1, max_size=3), st.sampled_from("abc"), max_size=12),
    st.integers(0, 5),
)
def test_partners_are_others_of_the_same_group(groups: dict[str, str], seed: int) -> None:
    found = partners(groups, seed)
    assert found.keys() == groups.keys()
    assert set(found.values()) == groups.keys()
    sizes = Counter(groups.values())
    lonely = sum(n == 1 for n in sizes.values())
    for sample, partner in found.items():
        assert sample != partner or len(groups) == 1
        if lonely != 1 and sizes[groups[sample]] > 1:
            assert groups[partner] == groups[sample]
    assert found == partners(dict(reversed(groups.items())), seed)


@pytest.mark.parametrize("name", ["omni_interactscope", "omni_duplexeval"])
def test_oracle_is_the_ceiling_of_the_other_benchmarks(name: str, tmp_path: Path) -> None:
    run = config(name, output=str(tmp_path / "run"), store=str(tmp_path / "store"))
    done = omnijudge.run(run)
    results = Results.read(done.path)
    metric, group = results.lead
    value = {s: results.value(s, metric, group) or 0.0 for s in results.systems}
    assert value["control:oracle"] == max(value.values())
    assert value["control:oracle"] > 80
    assert value["control:silent"] == 0
    assert value["control:shuffled"] < value["control:oracle"]


def test_controls_flow_through_a_run(tmp_path: Path) -> None:
    run = config(output=str(tmp_path / "run"), store=str(tmp_path / "store"))
    done = omnijudge.run(run)
    names = {control_name(k) for k in KINDS}
    for table in ("outputs", "scores", "metrics"):
        assert names <= set(done.table(table)["system"].to_pylist()), table
    assert control_name("oracle") in done.judgements["system"].to_pylist()
    assert names <= done.manifest["inputs"]["systems"].keys()
    assert done.manifest["counts"]["systems"] == 3
    assert done.manifest["counts"]["controls"] == 3
    assert "17 samples, 3 systems, 3 controls" in "\n".join(status_lines(str(done.path)))
    ranking = Results.read(done.path).ranking
    assert {r.system for r in ranking if r.place is None} == names
    assert sorted(r.place for r in ranking if r.place is not None) == [1, 2, 3]
    oracle = done.metrics.filter(pc.equal(done.metrics["system"], control_name("oracle")))
    values = {(r["metric"], r["group"]): r["value"] for r in oracle.to_pylist()}
    assert values["fp", "all"] == values["fn", "all"] == 0
    assert values["ia_qtf1", "all"] == 1
    # The same controls again ask nothing and change nothing.
    metrics = done.metrics
    assert omnijudge.run(run).metrics == metrics


def test_a_control_more_is_another_run(tmp_path: Path) -> None:
    run = config(output=str(tmp_path / "run"), store=str(tmp_path / "store"), controls=["silent"])
    omnijudge.run(run)
    more = run.model_copy(update={"controls": ("silent", "oracle")})
    with pytest.raises(ConfigError, match=r"systems\.control:oracle"):
        omnijudge.run(more)


def test_names_of_controls_are_kept() -> None:
    with pytest.raises(ConfigError, match="kept for controls"):
        config(systems={"control:oracle": "outputs/chatty"})
    assert not is_control("oracle")
    assert config(controls=["silent", "silent"]).controls == ("silent",)


def test_names_of_controls_are_kept_in_a_manifest(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[]", encoding="utf-8")
    row = {"sample_id": "a", "gt_json": "a.json", "model_json": "x.json", "model": "control:silent"}
    (tmp_path / "m.jsonl").write_text(
        json.dumps({**row, "scene_type": "multi_turn"}), encoding="utf-8"
    )
    values = {"benchmark": "omniinteract", "data": {"manifest": "m.jsonl"}, "output": "x"}
    with pytest.raises(ConfigError, match="control:silent"):
        read_annotations(build_config(values, tmp_path, "test"), benchmark)


def test_a_benchmark_without_oracle_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(type(benchmark), "oracle")
    with pytest.raises(ConfigError, match="has no oracle"):
        read_annotations(config(), benchmark)


def test_validate_leaves_controls_out() -> None:
    from omnijudge.progress import Progress
    from omnijudge.validate import validate

    found = validate(config(), Progress(False))
    assert found.systems == 3
    assert not any(p.system and is_control(p.system) for p in found.problems)
