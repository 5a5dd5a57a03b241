"""What the steps promise the pipeline: questions, verdicts to come, exclusion, bounds, prompts."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden.interactscope_run import (
    config,
    load,
    matched,
    metric_values,
    scored,
    stage_keys,
    with_verdicts,
)
from pydantic import ValidationError

from omnijudge.benchmarks import get_benchmark
from omnijudge.benchmarks.base import Partition, Prompt
from omnijudge.benchmarks.omni_interactscope import benchmark
from omnijudge.benchmarks.omni_interactscope.answers import parse_verdict
from omnijudge.benchmarks.omni_interactscope.controls import paired_scene_control
from omnijudge.benchmarks.omni_interactscope.corpus import corpus_statuses
from omnijudge.benchmarks.omni_interactscope.options import Options
from omnijudge.benchmarks.omni_interactscope.schemas import SCORE_SCHEMA, STAGE_SCHEMA, UNIT_SCHEMA
from omnijudge.benchmarks.omni_interactscope.scoring import STATUSES
from omnijudge.benchmarks.omni_interactscope.simulate import (
    MANNERS,
    PUBLISHED_TARGETS,
    invented_annotations,
    partitions,
    text_verdicts,
    write_corpus,
)
from omnijudge.benchmarks.omni_interactscope.windows import ORDERED_TASKS, TASKS
from omnijudge.config import load_config
from omnijudge.errors import DataError
from omnijudge.judging.prompts import load_pack

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "omnijudge" / "sample_data" / "omni_interactscope"


@pytest.fixture(scope="module")
def alpha() -> tuple[Partition, Options]:
    return matched("alpha", config())


def test_the_benchmark_is_found_by_its_name() -> None:
    assert get_benchmark("omni_interactscope") is benchmark


# ---------- options ----------


def test_published_is_refused_with_the_reason() -> None:
    with pytest.raises(ValidationError, match="no evaluator of Omni-InteractScope was published"):
        Options(profile="published")  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"tolerance": -1}, {"tolerance": float("inf")}, {"tau": 2}])
def test_options_that_cannot_be_meant(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Options(**wrong)


# ---------- questions ----------


def test_stage_rows_are_the_pairs_inside_windows(alpha: tuple[Partition, Options]) -> None:
    part, options = alpha
    assert part.stages.schema == STAGE_SCHEMA
    tasks = {u["sample_id"]: u["task"] for u in part.units.to_pylist()}
    rows = part.stages.to_pylist()
    assert len(set(stage_keys(part))) == len(rows)
    assert "T1" not in {tasks[r["sample_id"]] for r in rows}  # tools are compared, not judged
    for row in rows:
        if tasks[row["sample_id"]] in ORDERED_TASKS:
            assert row["needed"]
    unneeded = [i for i, r in enumerate(rows) if not r["needed"]]
    assert unneeded, "the golden set has pairs that only a variant asks for"
    assert not set(unneeded) & set(benchmark.pending(part, options).tolist())


def test_pending_shrinks_as_verdicts_come(alpha: tuple[Partition, Options]) -> None:
    part, options = alpha
    rows = benchmark.pending(part, options).tolist()
    answered = with_verdicts(part, {rows[0]: ("ok", True), rows[3]: ("invalid", None)})
    assert benchmark.pending(answered, options).tolist() == [
        r for r in rows if r not in (rows[0], rows[3])
    ]
    everything = with_verdicts(part, dict.fromkeys(rows, ("ok", False)))
    assert benchmark.pending(everything, options).tolist() == []


def test_prompts_show_four_things_and_no_time(alpha: tuple[Partition, Options]) -> None:
    part, options = alpha
    rows = benchmark.pending(part, options)
    prompts = benchmark.prompts(part, rows, options)
    units = {(u["sample_id"], u["unit_id"]): u for u in part.units.to_pylist()}
    for row, prompt in zip(rows.tolist(), prompts, strict=True):
        stage = part.stages.slice(row, 1).to_pylist()[0]
        unit = units[stage["sample_id"], stage["unit_id"]]
        assert dict(prompt.variables) == {
            "request": unit["request"].strip(),
            "reference": unit["reference"],
            "candidate": stage["text"].strip(),
            "rubric": unit["rubric"],
        }
        assert prompt.language == unit["language"]


def test_chunks_know_their_response_and_target(alpha: tuple[Partition, Options]) -> None:
    part, _ = alpha
    _, scores = scored("alpha")
    taken = {
        (r["sample_id"], r["output_index"]): r["unit_id"]
        for r in scores.to_pylist()
        if r["output_index"] is not None and r["task"] not in ORDERED_TASKS
    }
    seen = set()
    for chunk in part.chunks.to_pylist():
        key = chunk["sample_id"], chunk["response"]
        if chunk["response"] is None:
            assert chunk["unit_id"] is None
        elif key in taken:
            assert chunk["unit_id"] == taken[key]
            seen.add(key)
    assert seen == set(taken)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_rubric_renders_in_both_languages(language: str) -> None:
    pack = load_pack("default", benchmark)
    systems = set()
    for rubric in ("general", "event", "translation", "assistance"):
        variables = {"request": "R", "reference": "REF", "candidate": "CAND", "rubric": rubric}
        messages = pack.render(Prompt("verdict", language, variables), True)
        systems.add(messages[0]["content"])
        assert "REF" not in messages[0]["content"]
        user = messages[1]["content"]
        assert user.index("REF") < user.index("CAND")
        assert user.endswith("CAND")
    assert len(systems) == 4
    silent = {"request": "", "reference": "REF", "candidate": "", "rubric": "assistance"}
    assert "reason" not in pack.render(Prompt("verdict", language, silent), False)[0]["content"]
    assert list(pack.schema("verdict", True)["properties"]) == ["equivalent", "reason"]
    assert list(pack.schema("verdict", False)["properties"]) == ["equivalent"]


# ---------- answers ----------


@pytest.mark.parametrize(
    ("raw", "status", "verdict"),
    [
        ('{"equivalent": true, "reason": "same"}', "ok", True),
        (' {"equivalent": false}\n', "ok", False),
        ('{"equivalent": 0}', "repaired", False),
        ('Sure: {"equivalent": true}', "repaired", True),
        ('{"equivalent": true,}', "repaired", True),
        ('{"equivalent": true} {"equivalent": false}', "repaired", False),
        ('{"equivalent": tr', "invalid", None),
        ('{ {"equivalent": true}', "invalid", None),
        ("8/10", "invalid", None),
        ("", "invalid", None),
        ('{"equivalent": ' + "[" * 3000 + "]" * 3000 + "}", "invalid", None),
        ('{"equivalent": 1' + "0" * 5000 + "}", "invalid", None),
    ],
    ids=lambda x: str(x)[:30],
)
def test_answers_are_never_guessed(raw: str, status: str, verdict: bool | None) -> None:
    answer = benchmark.parse("verdict", raw, "strict")
    assert (answer.status, answer.fields.get("equivalent")) == (status, verdict)
    assert (answer.reason is None) == (status == "ok")
    assert benchmark.parse("verdict", raw, "published") == answer


def test_a_hostile_answer_takes_no_time() -> None:
    assert parse_verdict("{" * 200_000).status == "invalid"
    assert parse_verdict('{"a": "' + "\\" * 200_001 + '"}').status == "invalid"


def test_the_smoke_judge_goes_by_overlap() -> None:
    variables = {"reference": "the gate opens", "rubric": "event", "request": ""}
    yes = benchmark.lexical("verdict", variables | {"candidate": "now the gate opens"})
    no = benchmark.lexical("verdict", variables | {"candidate": "a dog"})
    assert (yes["equivalent"], no["equivalent"]) == (True, False)


# ---------- verdicts to come, unusable ones, bounds ----------


def test_without_verdicts_nothing_is_guessed(alpha: tuple[Partition, Options]) -> None:
    part, options = alpha
    scores = benchmark.score(part, options).to_pylist()
    asked = {key[:2] for i, key in enumerate(stage_keys(part)) if part.stages["needed"][i].as_py()}
    for row in scores:
        if row["unit_kind"] == "target" and (row["sample_id"], row["unit_id"]) in asked:
            assert row["judged"] is False
            assert row["status"] is None
            assert row["success"] is None
        elif row["unit_kind"] == "target":
            assert row["judged"] is None
            assert row["success"] == int(row["status"] == "success")  # tools need no judge


def test_one_missing_verdict_leaves_a_whole_assistance_interaction_open() -> None:
    part, scores = scored("alpha")
    tasks = {u["sample_id"]: u["task"] for u in part.units.to_pylist()}
    assert part.verdicts is not None
    status = part.verdicts["status"].to_pylist()
    keys = stage_keys(part)
    row = next(i for i, k in enumerate(keys) if tasks[k[0]] == "T8-C" and status[i])
    known = {
        i: (s, v)
        for i, (s, v) in enumerate(
            zip(status, part.verdicts["equivalent"].to_pylist(), strict=True)
        )
        if s and i != row
    }
    again = benchmark.score(with_verdicts(part, known), Options())
    changed = {
        b["sample_id"] for a, b in zip(scores.to_pylist(), again.to_pylist(), strict=True) if a != b
    }
    assert changed == {keys[row][0]}
    mine = [r for r in again.to_pylist() if r["sample_id"] == keys[row][0]]
    assert mine[-1]["judged"] is False
    assert mine[-1]["complete"] is None
    assert {r["status"] for r in mine if r["judged"] is False} == {None}


def test_unusable_verdicts_fail_or_leave_the_sums() -> None:
    expected = load("expected/alpha.json")["primary"]["summary"]
    errors = sum(t["statuses"].get("judge_error", 0) for t in expected["tasks"].values())
    _, failed = scored("alpha")
    _, excluded = scored("alpha", (("judge_error", "exclude"),))
    assert errors > 0
    assert failed["judged"].to_pylist().count(False) == 0
    rows = [r for r in excluded.to_pylist() if r["unit_kind"] == "target" and r["judged"] is False]
    assert {r["status"] for r in rows} == {"judge_error"}
    assert {r["success"] for r in rows} == {None}
    assert len(rows) == errors
    values = metric_values(excluded)
    for task in TASKS:
        own = expected["tasks"][task]
        name = "timely_recall" if task in ORDERED_TASKS else "joint_accuracy"
        scored_targets = own["targets"] - own["statuses"].get("judge_error", 0)
        assert values[name, task] == pytest.approx(100 * own["successes"] / scored_targets)


def test_bounds_enclose_what_could_have_been() -> None:
    _, excluded = scored("alpha", (("judge_error", "exclude"),))
    _, failed = scored("alpha")
    best, worst = (benchmark.fill_unscored(excluded, b) for b in (True, False))
    assert best.schema == worst.schema == excluded.schema == SCORE_SCHEMA
    high, low, middle = metric_values(best), metric_values(worst), metric_values(excluded)
    base = metric_values(failed)
    for key, value in middle.items():
        if key[0] in ("joint_accuracy", "timely_recall", "sequence_coverage", "expected_complete"):
            assert low[key] <= high[key]
            assert low[key] == pytest.approx(base[key])
            if key[0] != "expected_complete":
                assert low[key] <= value <= high[key]
    assert high["unmatched_outputs", "T8"] <= low["unmatched_outputs", "T8"]
    assert benchmark.fill_unscored(failed, True).equals(failed)


def test_outputs_before_the_request_may_be_kept() -> None:
    _, dropped = scored("alpha")
    part, kept = scored("alpha", (("pre_query", "keep"),))

    def counts(table: Any) -> dict[str, tuple[int, int]]:
        return {
            r["sample_id"]: (r["n_outputs"], r["n_pre_query"])
            for r in table.to_pylist()
            if r["unit_kind"] == "interaction"
        }

    before, after = counts(dropped), counts(kept)
    single = {
        c["sample_id"] for c in part.chunks.to_pylist() if c["granularity"] == "response"
    } & before.keys()
    assert any(before[s][1] for s in single)
    for sample in single:
        assert after[sample] == (before[sample][0] + before[sample][1], before[sample][1])


def test_stages_made_with_other_options_still_find_their_verdicts() -> None:
    part, scores = scored("alpha", (("tolerance", 4.0),))
    narrow, _ = scored("alpha", (("tolerance", 1.0),))
    again = benchmark.score(part, Options(tolerance=1.0))
    assert narrow.stages.num_rows < part.stages.num_rows
    known = again.filter(np.array([j is not False for j in again["judged"].to_pylist()]))
    expected = {
        (r["sample_id"], r["unit_id"]): r["status"]
        for r in scored("alpha", (("tolerance", 1.0),))[1].to_pylist()
    }
    for row in known.to_pylist():
        assert row["status"] == expected[row["sample_id"], row["unit_id"]]
    assert known.num_rows > 0.9 * scores.num_rows


def test_the_order_of_tables_does_not_matter(alpha: tuple[Partition, Options]) -> None:
    part, options = alpha
    shuffle = np.random.default_rng(1).permutation(part.chunks.num_rows)
    mixed = dataclasses.replace(part, chunks=part.chunks.take(shuffle))
    first, second = benchmark.match(part, options), benchmark.match(mixed, options)
    assert first[1].equals(second[1])
    assert benchmark.score(part, options).equals(benchmark.score(mixed, options))


def test_an_empty_block(alpha: tuple[Partition, Options]) -> None:
    part, options = alpha
    empty = Partition(
        "alpha",
        UNIT_SCHEMA.empty_table(),
        part.outputs.slice(0, 0),
        part.chunks.slice(0, 0),
        STAGE_SCHEMA.empty_table(),
    )
    chunks, stages = benchmark.match(empty, options)
    assert (chunks.num_rows, stages.num_rows) == (0, 0)
    matched_part = dataclasses.replace(empty, chunks=chunks, stages=stages)
    assert benchmark.pending(matched_part, options).tolist() == []
    assert benchmark.score(matched_part, options).num_rows == 0


def test_paired_control_from_score_tables() -> None:
    _, first = scored("alpha")
    _, second = scored("beta")
    found = paired_scene_control(first, second)
    assert (found.first, found.second) == (4, 2)
    assert found.both + found.only_first == found.first
    with pytest.raises(DataError, match="no target of T5 is scored for both"):
        paired_scene_control(first, second, task="T5")  # beta does not evaluate T5


# ---------- sample set and simulated corpora ----------


def test_the_sample_set_shows_everything() -> None:
    run = load_config(ROOT / "configs" / "interactscope.yaml")
    annotations = benchmark.read(run)
    assert not [p for p in annotations.problems if p.level != "info"]
    units = annotations.units.to_pylist()
    assert {u["task"] for u in units} == set(TASKS)
    assert {u["language"] for u in units} == {"en", "zh"}
    assert len(annotations.samples) >= 16
    seen: set[str] = set()
    scores = []
    for system, settings in run.systems.items():
        ids = list(annotations.samples)
        found = benchmark.read_outputs(run, annotations, system, settings, ids)
        assert {p.code for p in found.problems} <= {"missing_output"}
        options = Options()
        part = Partition(
            system, annotations.units, found.outputs, found.chunks, STAGE_SCHEMA.empty_table()
        )
        part = dataclasses.replace(
            part, **dict(zip(("chunks", "stages"), benchmark.match(part, options), strict=True))
        )
        rows = benchmark.pending(part, options)
        said = [
            benchmark.lexical("verdict", p.variables)["equivalent"]
            for p in benchmark.prompts(part, rows, options)
        ]
        known = {r: ("ok", v) for r, v in zip(rows.tolist(), said, strict=True)}
        table = benchmark.score(with_verdicts(part, known), options)
        seen |= set(table["status"].to_pylist())
        scores.append(metric_values(table)["joint_accuracy", "average_six"])
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[-1] + 30
    assert {"success", "early", "late", "wrong_content", "missing", "matched"} <= seen
    assert {"no_timely_response", "missing_trajectory"} <= seen


def test_simulated_annotations_have_the_published_size(tmp_path: Path) -> None:
    found = invented_annotations()
    per_task = {t: sum(len(a["targets"]) for a in found if a["task"] == t) for t in TASKS}
    published = load("paper_tables.json")
    assert per_task == {t: published["targets"][t] for t in TASKS}
    assert len(found) == published["identities"]["interactions_total"]
    assert sum(per_task.values()) == published["identities"]["targets_total"]
    assert len({a["video_id"] for a in found}) == published["identities"]["video_records"]
    guidance = PUBLISHED_TARGETS["T8-C"]
    assert (len(guidance), guidance.count(3)) == (26, 20)
    assert len(MANNERS) == len(published["main"]) == 12


def test_simulated_files_are_read_and_scored(tmp_path: Path) -> None:
    manners = [m for m in MANNERS if m.name in ("steady", "piecemeal", "forgetful")]
    write_corpus(tmp_path, manners=manners)
    first = (tmp_path / "responses" / "steady.jsonl").read_bytes()
    write_corpus(tmp_path, manners=manners)
    assert (tmp_path / "responses" / "steady.jsonl").read_bytes() == first
    names = [m.name for m in manners]
    run = config(tmp_path, "responses", names)
    assert not benchmark.read(run).problems
    counts = {}
    for name in names:
        part, options = matched(name, run)
        rows = benchmark.pending(part, options)
        prompts = benchmark.prompts(part, rows, options)
        known = {
            r: (
                "ok",
                p.variables["candidate"].replace(" ", "")
                == p.variables["reference"].replace(" ", ""),
            )
            for r, p in zip(rows.tolist(), prompts, strict=True)
        }
        counts[name] = metric_values(benchmark.score(with_verdicts(part, known), options))
    assert counts["steady"]["joint_accuracy", "average_six"] > 60
    lost = sum(counts["forgetful"]["missing_trajectories", t] for t in TASKS)
    assert 100 < lost < 200


def test_a_corpus_gives_the_same_bytes_for_any_number_of_threads() -> None:
    def parts() -> Any:
        return partitions(6000, block=500, seed=3)

    one, two, eight = (corpus_statuses(parts(), Options(), text_verdicts, n) for n in (1, 2, 8))
    assert len(one.status) == 6000
    assert one.status.tobytes() == two.status.tobytes() == eight.status.tobytes()
    assert one.output_index.tobytes() == eight.output_index.tobytes()
    assert {STATUSES[c] for c in one.status} > {"success", "matched", "early", "order_conflict"}
    whole = corpus_statuses(partitions(500, block=500, seed=3), Options(), text_verdicts)
    assert whole.status.tobytes() == one.status[:500].tobytes()
    with pytest.raises(ValueError, match="threads is 0"):
        corpus_statuses(parts(), Options(), text_verdicts, 0)
