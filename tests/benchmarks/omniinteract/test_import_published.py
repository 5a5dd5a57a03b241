"""Results of the published evaluator: what is taken over, and what the audit finds."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from golden.omniinteract_reference import (
    as_result,
    expected,
    manifest,
    read,
    write,
    write_results,
)
from golden.omniinteract_run import GOLDEN, judge_answers, matched
from naive import omniinteract as naive

from omnijudge.benchmarks.omniinteract.matching import text_hash
from omnijudge.benchmarks.omniinteract.published.command import import_published
from omnijudge.benchmarks.omniinteract.published.files import parse_result
from omnijudge.config import build_config
from omnijudge.errors import ConfigError, DataError

OMNIJUDGE = Path(sys.executable).with_name("omnijudge")
REFERENCE = GOLDEN / "reference_format" / "alpha"
F1_ALPHA = 0.4152
F1_ALPHA_CUT = 0.4176
"""With five slots lost behind a failed call: measured with the published evaluator."""
CUT = "1q1a__videos__0007"


def command(*words: str | Path, code: int = 0) -> str:
    done = subprocess.run(
        [OMNIJUDGE, *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr + done.stdout
    return done.stdout


def table(run: Path, name: str) -> list[dict[str, Any]]:
    return pq.read_table(run / f"{name}.parquet").to_pylist()  # type: ignore[no-any-return]


def manifest_of(run: Path) -> dict[str, Any]:
    return read(run / "run.json")  # type: ignore[no-any-return]


def f1(totals: list[float]) -> float:
    return 2 * totals[0] / (2 * totals[0] + totals[1] + totals[2])


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The golden files themselves, through the command, their inputs found by their own paths."""
    run = tmp_path_factory.mktemp("three") / "run"
    said = command("import", "published", REFERENCE, "--system", "alpha", "--out", run)
    return run, said


def test_every_value_of_the_golden_files(three: tuple[Path, str]) -> None:
    run, _ = three
    scores = {(s["sample_id"], s["unit_id"]): s for s in table(run, "scores")}
    units = {(u["sample_id"], u["unit_id"]): u for u in table(run, "units")}
    judged = {(j["sample_id"], j["unit_id"], j["stage"]): j for j in table(run, "judgements")}
    stages = {(s["sample_id"], s["unit_id"], s["stage"]): s for s in table(run, "stages")}
    compared = 0

    def same(found: Any, stored: Any) -> None:
        nonlocal compared
        compared += 1
        if isinstance(stored, str) or stored is None or found is None:
            assert found == stored
        else:
            assert found == pytest.approx(stored, abs=1e-9)

    for file in REFERENCE.glob("*.unified_eval.json"):
        result, sample = read(file), file.name.removesuffix(".unified_eval.json")
        for slot in result["slots"]:
            key = (sample, str(slot["slot_id"]))
            score, unit = scores[key], units[key]
            early, core = slot["stage_early"], slot["stage_core"]
            for ours, theirs in (
                ("scene_type", "scene_type"),
                ("question_type", "question_type"),
                ("is_interrupted", "is_interrupted"),
                ("pair_index", "nested_group_id"),
                ("role", "nested_role"),
                ("t_start", "start"),
                ("t_a", "t_a"),
                ("t_end", "end"),
                ("question_text", "question_text"),
                ("target_answer", "gt_answer"),
            ):
                same(unit[ours], slot[theirs])
            for ours, theirs in (
                ("tp", "TP_n"),
                ("fp", "FP_delta"),
                ("fn", "FN_delta"),
                ("tp_ack", "Score_ack"),
                ("tp_core", "Score_core"),
            ):
                same(score[ours], slot[theirs])
            same(score["early_category"], early["category"])
            same(score["spill_seconds"], slot["spill_diagnostics"]["spill_seconds"])
            same(score["fp_low"], int(core["low_quality_fp"]))
            for ours, block, theirs in (
                ("s_ack", early, "S_ack"),
                ("t_ack", early, "T_ack"),
                ("s_core", core, "S_core"),
                ("t_core", core, "T_core"),
            ):
                same(score[ours] or 0.0, block[theirs])
            if "raw" in early["diagnostics"]:
                same(score["w_ack"], early["W_ack_used"])
                same(judged[*key, "early"]["raw"], early["diagnostics"]["raw"])
                same(stages[*key, "early"]["text"], early["text_early"])
            else:
                assert (*key, "early") not in judged
            if "raw" in core["judge_core"]:
                for ours, theirs in (
                    ("w_core", "W_core_used"),
                    ("t_used", "T_start"),
                    ("fallback", "T_start_fallback"),
                    ("anchor", "T_start_true_effective"),
                ):
                    same(score[ours], core[theirs])
                same(judged[*key, "core"]["raw"], core["judge_core"]["raw"])
                same(judged[*key, "core"]["trigger_phrase"], core["judge_core"]["trigger_phrase"])
                same(score["spoiler"], core["judge_core"]["spoiler"])
                same(stages[*key, "core"]["text"], core["text_core"])
            else:
                assert (*key, "core") not in judged
        unmatched = scores[sample, "sample"]["unmatched"]
        same(unmatched, result["summary"]["num_unmatched_chunks"])
    assert compared >= 345


def test_golden_summary_is_reproduced(three: tuple[Path, str]) -> None:
    run, said = three
    paper = read(REFERENCE / "unified_eval_summary.json")["summary"]["paper_metrics"]
    values = {(m["metric"], m["group"]): m["value"] for m in table(run, "metrics")}
    names = {"one_q1a_global": "1q1a", "one_qna": "1qna", "all_global": "all"}
    for name, row in paper["exp_f1"].items():
        group = names.get(name, name)
        for ours, theirs in (
            ("ia_qtf1", "IA_QTF1"),
            ("precision", "Precision"),
            ("recall", "Recall"),
            ("tp", "Global_TP"),
            ("fp", "Global_FP"),
            ("fn", "Global_FN"),
        ):
            assert values[ours, group] == pytest.approx(row[theirs], abs=1e-9), (ours, group)
    inside, nested = paper["exp_interruption"], paper["exp_nested"]
    for ours, theirs in (("nor", "NOR"), ("paq", "PAQ"), ("csm_sr", "CSM_SR")):
        assert values[ours, "interrupted"] == pytest.approx(inside[theirs], abs=1e-9)
    assert values["csm_as", "interrupted"] == pytest.approx(inside["CSM_AS_seconds"], abs=1e-9)
    assert values["nccs", "nested"] == pytest.approx(nested["NCCS"], abs=1e-9)
    assert values["missed_outer", "nested"] == nested["missed_outer"]
    assert "findings: none" in said
    assert "all equal" in said
    assert said.count("0.3299") == 3  # as published, by the summary, complete


def test_answers_are_keyed_rows_with_text_hashes(three: tuple[Path, str]) -> None:
    run, _ = three
    lines = (run / "imported" / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    stages = {(s["sample_id"], s["unit_id"], s["stage"]): s for s in table(run, "stages")}
    units = {(u["sample_id"], u["unit_id"]): u for u in table(run, "units")}
    assert len(rows) == 12
    for row in rows:
        key = (row["sample_id"], row["unit_id"])
        stage = stages[*key, row["stage"]]
        target = units[key]["target_answer"]
        assert row["text_hash"] == stage["text_hash"] == text_hash(stage["text"], target)
        assert (row["system"], row["attempt"], row["model"]) == ("alpha", 1, "gpt-4o-2024-08-06")
    judgements = table(run, "judgements")
    assert {j["judge"] for j in judgements} == {"published"}
    assert {j["model"] for j in judgements} == {"gpt-4o-2024-08-06"}


def test_commands_work_on_an_imported_run(three: tuple[Path, str], tmp_path: Path) -> None:
    run, _ = three
    printed = command("metrics", run)
    assert "gpt-4o-2024-08-06" in printed
    assert "Imported results: F1 as published 0.3299, complete 0.3299; findings: none." in printed
    assert "prompts" not in printed  # the published judge was asked with its own
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "F1 as published 0.3299" in page
    sample = "1qna__videos_bench__egodesk__Task_1-37"
    shown = command("show", run, f"alpha/{sample}/1")
    assert "llm_json" not in shown
    assert '"score": 0.0' in shown
    assert "the question it was given to is not known" in shown
    out = tmp_path / "robust"
    # Answers that only the lenient parser reads are unscored under the strict one.
    command("score", run, "-o", "scoring.profile=robust", "--out", out, code=3)
    assert manifest_of(out)["import"]["f1_as_published"] == pytest.approx(0.329906455857605)
    assert command("report", run).strip().endswith("report.html")
    # Importing the same again is no other run; another one in its place is refused.
    command("import", "published", REFERENCE, "--system", "alpha", "--out", run)
    again = ("import", "published", REFERENCE, "--system", "beta", "--out", run)
    command(*again, code=2)


@pytest.fixture(autouse=True)
def no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page takes longer to draw than all the rest; commands in their own process draw it."""
    monkeypatch.setattr("omnijudge.report.html.write_report", lambda *args: None)


Plant = Callable[[Path], None]


def results_with(folder: Path, plant: Plant) -> Path:
    write_results(folder, "alpha")
    plant(folder)
    return folder


def audit_of(tmp_path: Path, plant: Plant, **arguments: Any) -> dict[str, Any]:
    folder = results_with(tmp_path / "results", plant)
    arguments = {"manifest": GOLDEN / "manifest.jsonl", **arguments}
    found = import_published(folder, "alpha", tmp_path / "run", **arguments)
    audit: dict[str, Any] = manifest_of(tmp_path / "run")["import"]
    assert audit["f1_as_published"] == found.audit.f1_as_published
    return audit


def edit(sample: str, change: Callable[[dict[str, Any]], None]) -> Plant:
    def plant(folder: Path) -> None:
        path = folder / f"{sample}.unified_eval.json"
        result = read(path)
        change(result)
        write(folder, sample, result)

    return plant


def sums(leave_out: str = "") -> list[float]:
    """TP, FP, FN of the golden samples of alpha."""
    kept = [w["summary"] for s, w in expected("alpha").items() if s != leave_out]
    return [sum(k[name] for k in kept) for name in ("TP", "FP", "FN")]


def kinds(audit: dict[str, Any]) -> dict[str, float]:
    return {k["kind"]: k["moved_f1_by"] for k in audit["kinds"]}


def test_untouched_results(tmp_path: Path) -> None:
    audit = audit_of(tmp_path, lambda folder: None)
    assert (audit["results"], audit["findings"]) == (43, [])
    assert round(audit["f1_as_published"], 4) == F1_ALPHA
    assert audit["f1_complete"] == pytest.approx(audit["f1_as_published"], abs=1e-12)
    assert audit["f1_summary"] == pytest.approx(audit["f1_as_published"], abs=1e-12)
    asked = [k for k in judge_answers() if k[0] == "alpha"]
    assert (audit["answers"], audit["answers_outdated"]) == (len(asked), 0)
    read_as = [naive_parse(k[3], judge_answers()[k]["raw"]) for k in asked]
    for stage, counts in audit["parsed"].items():
        of_stage = [p for p, k in zip(read_as, asked, strict=True) if k[3] == stage]
        assert counts == {p: of_stage.count(p) for p in set(of_stage)}
    assert audit["parsed_otherwise"] == 0


def naive_parse(stage: str, raw: str) -> str:
    parsers = {
        "early": naive.parse_early,
        "core": naive.parse_core,
        "partial": naive.parse_partial,
    }
    return parsers[stage](raw)[-1]  # type: ignore[no-any-return, no-untyped-call]


def test_a_result_cut_short_by_a_failed_call(tmp_path: Path) -> None:
    """One failed call loses five slots and *raises* the published F1."""

    def cut(result: dict[str, Any]) -> None:
        result["slots"] = result["slots"][:2]
        result["unmatched_chunks"] = []
        result |= {"status": "failed", "error": "the judge timed out"}

    audit = audit_of(tmp_path, edit(CUT, cut))
    assert round(audit["f1_as_published"], 4) == F1_ALPHA_CUT
    assert round(audit["f1_summary"], 4) == F1_ALPHA  # written before, say
    (finding,) = audit["findings"]
    assert (finding["kind"], finding["sample_id"]) == ("truncated", CUT)
    assert finding["detail"] == "2 of 7 slots (the judge timed out)"
    # Put right: the two kept slots, the lost ones without words, and the unmatched chunk.
    want = expected("alpha")[CUT]
    lost = [s for s in want["slots"][2:] if "ack" in s or "core_score" in s or speaks(s)]
    kept = [s for s in want["slots"] if s not in lost]
    right = [sum(s[n] for s in kept) for n in ("TP", "FP", "FN")]
    right[1] += len(want["unmatched"])
    whole = [a + b for a, b in zip(sums(CUT), right, strict=True)]
    assert audit["f1_complete"] == pytest.approx(f1(whole), abs=1e-12)
    moved = audit["f1_as_published"] - f1(whole)
    assert finding["moved_f1_by"] == pytest.approx(moved, abs=1e-12)
    assert kinds(audit) == {"truncated": pytest.approx(moved, abs=1e-12)}
    assert audit["unscored_slots"] == len(lost)
    # What the slots really were lies between the bounds.
    assert audit["f1_complete_low"] <= f1(sums()) <= audit["f1_complete_high"]


def speaks(slot: dict[str, Any]) -> bool:
    return slot.get("interruption", {}).get("status") == "ok"


def test_a_call_without_an_answer(tmp_path: Path) -> None:
    def lose(result: dict[str, Any]) -> None:
        slot = next(s for s in result["slots"] if "raw" in s["stage_core"]["judge_core"])
        slot["stage_core"]["judge_core"].pop("raw")

    audit = audit_of(tmp_path, edit(CUT, lose))
    (finding,) = audit["findings"]
    assert finding["kind"] == "truncated"
    assert finding["detail"].endswith("has no answer of the core judge")
    assert audit["unscored_slots"] == 1


def test_a_stale_result(tmp_path: Path) -> None:
    """The transcript was made anew since: the judge's answers were for other words."""
    changed: list[dict[str, Any]] = []

    def age(result: dict[str, Any]) -> None:
        slot = next(s for s in result["slots"] if "raw" in s["stage_core"]["judge_core"])
        slot["all_chunks"][-1]["text"] = "something else"
        slot["stage_core"]["text_core"] = "something else"
        changed.append(copy.deepcopy(slot))

    audit = audit_of(tmp_path, edit(CUT, age))
    (finding,) = audit["findings"]
    assert (finding["kind"], finding["sample_id"]) == ("stale", CUT)
    assert "the transcript says something else now" in finding["detail"]
    assert (audit["answers_outdated"], audit["unscored_slots"]) == (1, 1)
    (slot,) = changed
    right = sums()
    for i, name in enumerate(("TP_n", "FP_delta", "FN_delta")):
        right[i] -= slot[name]
    moved = f1(sums()) - f1(right)
    assert finding["moved_f1_by"] == pytest.approx(moved, abs=1e-12)
    judgements = table(tmp_path / "run", "judgements")
    lost = [j for j in judgements if j["status"] == "error"]
    assert [(j["sample_id"], j["unit_id"]) for j in lost] == [(CUT, str(slot["slot_id"]))]


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"gt_answer": "another answer"}, "has another question or target answer now"),
        ({"t_a": 1.25}, "has other times now"),
    ],
)
def test_an_annotation_that_changed_since(
    tmp_path: Path, change: dict[str, Any], detail: str
) -> None:
    audit = audit_of(tmp_path, edit(CUT, lambda r: r["slots"][0].update(change)))
    (finding,) = audit["findings"]
    assert finding["kind"] == "stale"
    assert finding["detail"] == f"slot 1 {detail}"


def test_a_result_of_a_sample_that_is_not_listed(tmp_path: Path) -> None:
    def plant(folder: Path) -> None:
        old = read(folder / f"{CUT}.unified_eval.json")
        write(folder, "1q1a__videos__0999", old)

    audit = audit_of(tmp_path, plant)
    (finding,) = audit["findings"]
    assert (finding["kind"], finding["sample_id"]) == ("not_listed", "1q1a__videos__0999")
    own = expected("alpha")[CUT]["summary"]
    twice = [t + own[n] for t, n in zip(sums(), ("TP", "FP", "FN"), strict=True)]
    assert audit["f1_as_published"] == pytest.approx(f1(twice), abs=1e-12)
    assert audit["f1_complete"] == pytest.approx(f1(sums()), abs=1e-12)
    assert finding["moved_f1_by"] == pytest.approx(f1(twice) - f1(sums()), abs=1e-12)


@pytest.mark.parametrize(
    ("options", "answers", "config", "said"),
    [
        ({"w_ack": 0.5}, "", {"W_ack": 0.5, "W_core_default": 0.5}, "w_ack 0.5 instead of 0.2"),
        ({"decay_gamma": 2.0}, "", {"decay_gamma": 2.0}, "decay_gamma 2 instead of 1"),
        ({"last_slot_tail_sec": 15.0}, "_tail15", {}, "last_slot_tail_sec 15 instead of 60"),
        ({"no_unmatched_fp": True}, "", {"count_unmatched_as_fp": False}, "unmatched_fp 0"),
    ],
)
def test_a_result_with_other_options(
    tmp_path: Path,
    options: dict[str, Any],
    answers: str,
    config: dict[str, Any],
    said: str,
) -> None:
    """The answers are good; the numbers were made in another way."""
    row = manifest("alpha")[CUT]
    known = judge_answers(f"judge_answers{answers}.jsonl")

    def judge(call: dict[str, Any]) -> str:
        return known["alpha", CUT, str(call["slot_id"]), call["stage"]]["raw"]  # type: ignore[no-any-return]

    scored = naive.score_sample(  # type: ignore[no-untyped-call]
        read(GOLDEN / row["gt_json"]),
        read(GOLDEN / row["model_json"]),
        row["scene_type"],
        judge,
        {**naive.DEFAULTS, **options},
        [],
    )
    want = {**scored, "sample_id": CUT, "unmatched": scored["unmatched"]}

    def plant(folder: Path) -> None:
        result = as_result("alpha", want, row)
        result["config"] |= config
        write(folder, CUT, result)

    audit = audit_of(tmp_path, plant)
    assert {f["kind"] for f in audit["findings"]} == {"other_options"}
    (finding,) = audit["findings"]
    assert said in finding["detail"]
    assert audit["f1_complete"] == pytest.approx(f1(sums()), abs=1e-12)
    own = [sum(s[n] for s in scored["slots"]) for n in ("TP", "FP", "FN")]
    own[1] += 0 if "no_unmatched_fp" in options else len(scored["unmatched"])
    published = f1([a + b for a, b in zip(sums(CUT), own, strict=True)])
    assert audit["f1_as_published"] == pytest.approx(published, abs=1e-12)
    assert finding["moved_f1_by"] == pytest.approx(published - f1(sums()), abs=1e-12)
    assert audit["options"]["w_ack"] == 0.2
    assert audit["options"]["last_slot_tail_sec"] == 60.0


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"W_ack": "much"}, "values that cannot be"),
        ({"W_core_default": 0.7}, "W_core_default 0.7 beside W_ack 0.2"),
        ({"one_qna_later_steps_W_ack": 0.2}, "one_qna_later_steps_W_ack 0.2"),
        ({"one_qna_later_steps_start_at_t_a": False}, "one_qna_later_steps_start_at_t_a is off"),
    ],
)
def test_a_config_block_that_nobody_computes(config: dict[str, Any], said: str) -> None:
    from omnijudge.benchmarks.omniinteract.published.check import check

    sample = "1q1a__videos__0001"
    result = read(REFERENCE / f"{sample}.unified_eval.json")
    result["config"] |= config
    run = build_config(
        {
            "benchmark": "omniinteract",
            "data": {"manifest": "manifest.jsonl", "on_bad_sample": "skip"},
            "scoring": {"profile": "published"},
            "output": "unused",
        },
        GOLDEN,
        "golden",
    )
    part, _ = matched("alpha", run)
    stored = parse_result(REFERENCE / f"{sample}.unified_eval.json", result)
    (finding,) = check({sample: stored}, part).findings
    assert (finding.kind, finding.sample_id) == ("other_options", sample)
    assert said in finding.detail


def test_a_value_that_does_not_follow_from_the_answers(tmp_path: Path) -> None:
    audit = audit_of(tmp_path, edit(CUT, lambda r: r["slots"][0].update(FP_delta=7)))
    (finding,) = audit["findings"]
    assert finding["kind"] == "differs"
    assert finding["detail"].startswith("slot 1: fp is 7")


def test_several_findings_at_once_and_what_each_is_worth(tmp_path: Path) -> None:
    def plant(folder: Path) -> None:
        edit(CUT, lambda r: r.update(slots=r["slots"][:2]))(folder)
        old = read(folder / f"{CUT}.unified_eval.json")
        write(folder, "old", old)
        (folder / "1q1a__videos__0001.unified_eval.json").unlink()
        (folder / "broken.unified_eval.json").write_text("{", encoding="utf-8")

    folder = results_with(tmp_path / "results", plant)
    out = tmp_path / "run"
    listed = ("--manifest", GOLDEN / "manifest.jsonl")
    done = subprocess.run(
        [OMNIJUDGE, "import", "published", folder, "--system", "alpha", "--out", out, *listed],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr  # slots without an answer
    assert "broken.unified_eval.json" in done.stdout
    for kind in ("truncated", "not_listed", "no_result"):
        assert f"\n{kind} (" in done.stdout
    audit = manifest_of(out)["import"]
    assert set(kinds(audit)) == {"truncated", "not_listed", "no_result"}
    assert f"F1 as published: {audit['f1_as_published']:.4f}" in done.stdout
    assert f"F1 complete:     {audit['f1_complete']:.4f}" in done.stdout
    for kind, moved in kinds(audit).items():
        assert f"F1 moved by {moved:+.4f}" in done.stdout, kind


def test_inputs_by_folder(tmp_path: Path) -> None:
    """The release's folders instead of a list, and a system's outputs beside them."""
    audit = audit_of(
        tmp_path,
        lambda folder: None,
        manifest=None,
        root=GOLDEN / "data",
        outputs=GOLDEN / "outputs" / "alpha",
    )
    assert audit["findings"] == []
    assert audit["f1_complete"] == pytest.approx(f1(sums()), abs=1e-12)
    math_slots = [
        m for m in table(tmp_path / "run", "metrics") if (m["metric"], m["group"]) == ("tp", "math")
    ]
    assert math_slots[0]["n_units"] > 0


def test_a_transcript_that_is_gone(tmp_path: Path) -> None:
    rows = [dict(r) for r in manifest("alpha").values()]
    for row in rows:
        for name in ("gt_json", "model_json"):
            row[name] = str(GOLDEN / row[name])
        if row["sample_id"] == CUT:
            row["model_json"] = str(tmp_path / "gone.json")
    listed = tmp_path / "list.json"
    listed.write_text(json.dumps(rows), encoding="utf-8")
    audit = audit_of(tmp_path, lambda folder: None, manifest=listed)
    (finding,) = audit["findings"]
    assert (finding["kind"], finding["sample_id"]) == ("no_transcript", CUT)
    assert finding["moved_f1_by"] == pytest.approx(f1(sums()) - f1(sums(CUT)), abs=1e-12)


def test_what_cannot_be_imported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no folder"):
        import_published(tmp_path / "x", "alpha", tmp_path / "run")
    with pytest.raises(ConfigError, match=r"holds no \*\.unified_eval\.json"):
        import_published(tmp_path, "alpha", tmp_path / "run")
    with pytest.raises(ConfigError, match="not both"):
        import_published(REFERENCE, "alpha", tmp_path / "run", manifest="m", root="r")
    copied = tmp_path / "elsewhere"
    write(copied, CUT, as_result("alpha", expected("alpha")[CUT], manifest("alpha")[CUT]))
    with pytest.raises(DataError, match="--manifest or --data-root"):
        import_published(copied, "alpha", tmp_path / "run")
    other = tmp_path / "other"
    other.mkdir()
    (other / "run.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigError, match="was not imported"):
        import_published(REFERENCE, "alpha", other)


def test_published_scores_stand_under_profile_published(three: tuple[Path, str]) -> None:
    run, _ = three
    metrics = pq.read_table(run / "metrics.parquet")
    assert pc.unique(metrics["profile"]).to_pylist() == ["published"]
