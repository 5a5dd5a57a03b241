"""``omnijudge compare`` and the tables that every run writes."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fakes.sample_runs import OUTPUTS, make_run, omnijudge, table_rows, write_config, write_rows

import omnijudge as library
from omnijudge.analysis.compare import compare
from omnijudge.errors import ConfigError


def f1_by_hand(run: Path, system: str, samples: set[str]) -> float:
    tp = fp = fn = 0.0
    for row in table_rows(run, "scores"):
        if row["system"] != system or row["sample_id"] not in samples:
            continue
        if row["unit_kind"] == "slot" and row["judged"] is not False:
            tp, fp, fn = tp + row["tp"], fp + row["fp"], fn + row["fn"]
        elif row["unit_kind"] == "sample":
            fp += row["fp"]
    return 2 * tp / (2 * tp + fp + fn)


def scored_samples(run: Path, system: str) -> set[str]:
    lost: dict[str, set[bool]] = defaultdict(set)
    for row in table_rows(run, "scores"):
        if row["system"] == system:
            lost[row["sample_id"]].add(row["judged"] is False)
    return {sample for sample, found in lost.items() if found == {False}}


def rows_of(run: Path, table: str, metric: str = "ia_qtf1", group: str = "all") -> list[Any]:
    return [r for r in table_rows(run, table) if (r["metric"], r["group"]) == (metric, group)]


def test_a_run_compares_with_its_first_system(lexical: Path) -> None:
    found = rows_of(lexical, "comparisons")
    assert [(r["baseline"], r["system"]) for r in found] == [
        ("attentive", "chatty"),
        ("attentive", "sleepy"),
    ]
    values = {r["system"]: r["value"] for r in rows_of(lexical, "metrics")}
    for row in found:
        assert row["difference"] == pytest.approx(values[row["system"]] - values["attentive"])
        assert row["ci_low"] <= row["difference"] <= row["ci_high"]
        assert row["n_samples"] == 17
        assert row["n_left_out"] == 0
    groups = {(r["metric"], r["group"]) for r in table_rows(lexical, "comparisons")}
    assert ("nccs", "nested") in groups
    assert ("tp", "all") not in groups


def test_ranks_follow_the_metrics(lexical: Path) -> None:
    values = {r["system"]: r["value"] for r in rows_of(lexical, "metrics")}
    order = sorted(values, key=lambda s: -values[s])
    ranks = {r["system"]: r for r in rows_of(lexical, "ranks")}
    assert [ranks[s]["rank"] for s in order] == [1, 2, 3]
    for system, row in ranks.items():
        assert row["rank_low"] <= row["rank"] <= row["rank_high"]
        assert row["value"] == pytest.approx(values[system])
        assert (row["winner_low"] is not None) == (row["rank"] == 1)


def test_pairs_stand_on_samples_scored_for_both(incomplete: Path) -> None:
    found = rows_of(incomplete, "comparisons")
    some_lost = False
    for row in found:
        both = scored_samples(incomplete, row["baseline"]) & scored_samples(
            incomplete, row["system"]
        )
        expected = f1_by_hand(incomplete, row["system"], both) - f1_by_hand(
            incomplete, row["baseline"], both
        )
        assert row["difference"] == pytest.approx(expected, abs=1e-12)
        assert row["n_samples"] == len(both)
        assert row["n_left_out"] == 17 - len(both)
        some_lost |= len(both) < 17
    assert some_lost


def test_all_pairs_of_an_incomplete_run(incomplete: Path, work: Path) -> None:
    done = omnijudge("compare", incomplete, "--all-pairs", "--format", "json", cwd=work)
    assert done.returncode == 0, done.stderr
    rows = [r for r in json.loads(done.stdout)["comparisons"] if r["metric"] == "ia_qtf1"]
    rows = [r for r in rows if r["group"] == "all"]
    assert [(r["baseline"], r["system"]) for r in rows] == [
        ("attentive", "chatty"),
        ("attentive", "sleepy"),
        ("chatty", "sleepy"),
    ]
    against = {r["system"]: r for r in rows_of(incomplete, "comparisons")}
    for row in rows[:2]:
        for name in ("difference", "ci_low", "ci_high", "careful_low", "p_value"):
            assert row[name] == pytest.approx(against[row["system"]][name], abs=1e-12), name


def test_another_baseline_turns_the_signs(lexical: Path, work: Path) -> None:
    out = work / "compared"
    done = omnijudge(
        "compare", lexical, "--baseline", "sleepy", "--metric", "ia_qtf1", "--group", "all",
        "--out", out, cwd=work,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "each system less sleepy" in done.stdout
    assert "corrected for that, its interval" in done.stdout
    ours = {r["system"]: r for r in table_rows(out, "comparisons")}
    first = {r["system"]: r for r in rows_of(lexical, "comparisons")}
    assert ours["attentive"]["difference"] == pytest.approx(-first["sleepy"]["difference"])
    assert {r["system"] for r in table_rows(out, "ranks")} == {"attentive", "chatty", "sleepy"}


def test_the_library_says_the_same(lexical: Path) -> None:
    found = library.open_run(lexical).compare(baseline="attentive")
    assert found.comparisons.equals(library.open_run(lexical).comparisons)
    assert found.ranks.equals(library.open_run(lexical).ranks)


@pytest.mark.parametrize("benchmark", ["omni_interactscope", "omni_duplexeval"])
def test_other_benchmarks(benchmark: str, work: Path) -> None:
    run = make_run(work, f"compared-{benchmark}", code=0, benchmark=benchmark)
    done = omnijudge("compare", run, cwd=work)
    assert done.returncode == 0, done.stderr
    assert "each system less" in done.stdout
    keys = {"omni_interactscope": ("joint_accuracy", "average_six")}
    metric, group = keys.get(benchmark, ("overall", "all"))
    values = {r["system"]: r["value"] for r in rows_of(run, "metrics", metric, group)}
    (row,) = rows_of(run, "comparisons", metric, group)
    assert row["difference"] == pytest.approx(values[row["system"]] - values[row["baseline"]])


# Across runs


def one_system(work: Path, name: str, system: str, **settings: Any) -> Path:
    systems = {system: OUTPUTS["omniinteract"][system]}
    return make_run(work, name, systems=systems, **settings)


def test_two_runs_are_as_good_as_one(lexical: Path, work: Path) -> None:
    first = one_system(work, "apart-a", "attentive")
    second = one_system(work, "apart-b", "chatty", statistics="{replicates: 500, seed: 5}")
    done = omnijudge("compare", first, second, "--format", "json", cwd=work)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    rows = {(r["metric"], r["group"]): r for r in found["comparisons"]}
    together = {
        (r["metric"], r["group"]): r
        for r in table_rows(lexical, "comparisons")
        if r["system"] == "chatty"
    }
    for key in (("ia_qtf1", "all"), ("ia_qtf1", "1qna")):
        for name in ("difference", "careful_low", "p_value", "ci_high"):
            assert rows[key][name] == pytest.approx(together[key][name], abs=1e-12), name
    assert [r["rank"] for r in found["ranks"][:2]] == [1, 2]


def test_a_name_that_means_two_things_gets_its_run(lexical: Path, work: Path) -> None:
    systems = {"attentive": OUTPUTS["omniinteract"]["sleepy"]}
    other = make_run(work, "impostor", systems=systems)
    done = omnijudge("compare", lexical, other, "--format", "json", cwd=work)
    found = json.loads(done.stdout)
    assert found["baseline"] == "lexical:attentive"
    assert {r["system"] for r in found["ranks"]} >= {"lexical:attentive", "impostor:attentive"}


def test_the_same_outputs_count_once(lexical: Path, work: Path) -> None:
    copy = work / "copy"
    shutil.copytree(lexical, copy)
    done = omnijudge("compare", lexical, copy, cwd=work)
    assert done.returncode == 0, done.stderr
    assert "attentive: copy holds the outputs that lexical holds, too" in done.stdout


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("scoring", "w_ack"), 0.3, "scoring: {} differ in w_ack 0.2 against 0.3"),
        (("inputs", "judge", "main", "rationale"), "none", "prompts: {} differ"),
        (("inputs", "judge", "main", "prompts"), "f00", "prompts: {} differ"),
        (
            ("inputs", "judge", "main", "identity"),
            "other",
            "judge: {} differ (judge main: identity",
        ),
        (("inputs", "judge", "main", "sampling", "temperature"), 1, "sampling.temperature 0.0"),
        (("inputs", "data", "offline"), "f00", "annotations: {} differ in offline"),
        (("inputs", "benchmark"), "omni_duplexeval", "benchmark: "),
    ],
)
def test_what_differs_is_named(
    lexical: Path, tmp_path: Path, place: Sequence[str], value: Any, said: str
) -> None:
    other = tmp_path / "other"
    shutil.copytree(lexical, other)
    manifest = json.loads((other / "run.json").read_text(encoding="utf-8"))
    node = manifest
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] = value
    (other / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(ConfigError) as found:
        compare([lexical, other])
    assert said.format(f"{lexical} and {other}") in str(found.value)


def test_fewer_samples_and_another_model_are_named(
    lexical: Path, lenient: Path, work: Path
) -> None:
    done = omnijudge("run", work / "lexical.yaml", "-o", "output=short", "--limit", "5", cwd=work)
    assert done.returncode == 0, done.stderr
    done = omnijudge("compare", lexical, "short", cwd=work)
    assert done.returncode == 2
    assert "annotations: " in done.stderr
    assert "17 samples" in done.stderr
    rows = [json.loads(x) for x in lenient.read_text(encoding="utf-8").splitlines()]
    names = []
    for model in ("gpt-a", "gpt-b"):
        write_rows(work / f"{model}.jsonl", [{**r, "model": model} for r in rows])
        judge = f"{{engine: replay, answers: {model}.jsonl}}"
        names.append(make_run(work, model, judge=judge))
    with pytest.raises(ConfigError, match="answered by gpt-a"):
        compare(names)


# Wrong usage and gates


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"baseline": "nobody"}, "no system 'nobody'; there are attentive, chatty, sleepy"),
        ({"metric": "ia_qtf"}, "did you mean 'ia_qtf1'?"),
        ({"metric": "nccs", "group": "everything"}, "--group everything"),
        ({"metric": "response_delay_p50"}, "quantile"),
        ({"fail_if": ["ia_qtf1/all <"]}, "at character 14: expected a number"),
        ({"fail_if": ["ia_qtf1/none < 1"]}, "'ia_qtf1/none'"),
        ({"fail_if": ["value(nobody, ia_qtf1/all) < 1"]}, "no system 'nobody'"),
        ({"fail_if": ["p(chatty, sleepy, response_delay_p50/all) < 1"]}, "quantile"),
    ],
)
def test_wrong_names(lexical: Path, words: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as found:
        compare([lexical], **words)
    assert said in str(found.value)


def test_wrong_usage_ends_with_2(lexical: Path, work: Path) -> None:
    done = omnijudge("compare", lexical, "--baseline", "chatty", "--all-pairs", cwd=work)
    assert done.returncode == 2
    assert "leave --baseline out" in done.stderr


def test_unknown_baseline_ends_a_run_at_once(work: Path) -> None:
    config = write_config(work, "early")
    done = omnijudge("run", config, "-o", "statistics.baseline=nobody", cwd=work)
    assert done.returncode == 2
    assert "statistics.baseline: no system 'nobody'" in done.stderr
    assert not (work / "early" / "metrics.parquet").exists()


FAILING = (
    "ia_qtf1/all < 0.4",
    "difference(chatty, attentive, ia_qtf1/all) < 0",
    "difference_high(chatty, attentive, ia_qtf1/all) < 0 and "
    "p_adjusted(chatty, attentive, ia_qtf1/all) < 0.05",
)
PASSING = (
    "ia_qtf1/all < 0.01",
    "value(attentive, ia_qtf1/all) < 0.4",
    "difference(attentive, chatty, ia_qtf1/all) < 0",
    "not rank_low(attentive, ia_qtf1/all) == 1",
    "coverage(attentive, ia_qtf1/all) < 1 or unscored(attentive, ia_qtf1/all) > 0",
    "response_delay_p50/all > 1000",
)


@pytest.mark.parametrize(("gates", "code"), [(FAILING, 4), (PASSING, 0)])
def test_gates(lexical: Path, work: Path, gates: Sequence[str], code: int) -> None:
    words = [w for g in gates for w in ("--fail-if", g)]
    done = omnijudge("compare", lexical, *words, cwd=work)
    assert done.returncode == code, done.stdout + done.stderr
    said = "Gate FAILED" if code else "Gate passed"
    assert done.stdout.count(said) == len(gates)
    both = compare([lexical], fail_if=[*FAILING, *PASSING])
    assert [g.outcome.failed for g in both.gates] == [True] * 3 + [False] * 6


def test_controls_are_not_compared(work: Path) -> None:
    run = make_run(work, "with-silence", benchmark="omni_interactscope", extra="controls: [silent]")
    systems = {r["system"] for r in table_rows(run, "metrics")}
    assert "control:silent" in systems
    for table in ("ranks", "comparisons"):
        assert all(not r["system"].startswith("control:") for r in table_rows(run, table))
    found = compare([run], fail_if=["joint_accuracy/average_six < 1"])
    assert not found.failed, "the silent control has 0 and is no system under test"
