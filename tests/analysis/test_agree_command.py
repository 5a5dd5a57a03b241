"""``omnijudge agree``: the join, and every number against a plain count."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fakes.sample_runs import (
    OUTPUTS,
    Row,
    changed,
    make_run,
    omnijudge,
    replay_rows,
    table_rows,
    write_rows,
)

from omnijudge.analysis.agreement import PairAgreement, agree
from omnijudge.analysis.judges import Judge, difference_label
from omnijudge.errors import ConfigError, DataError


def kappa(pairs: list[tuple[Any, Any]]) -> float:
    n = len(pairs)
    observed = sum(a == b for a, b in pairs) / n
    first, second = (Counter(p[i] for p in pairs) for i in (0, 1))
    expected = sum(first[c] * second[c] for c in first) / n**2
    return (observed - expected) / (1 - expected)


def field(pair: PairAgreement, stage: str, name: str) -> Any:
    return next(f for f in pair.fields if (f.field.stage, f.field.field) == (stage, name))


def measures(found: Any) -> dict[str, float | None]:
    return {m.measure: m.value for m in found}


def noisy(row: Row, answer: dict[str, Any], dice: random.Random) -> None:
    """Another opinion on a third of the answers."""
    if dice.random() < 0.33:
        answer["score"] = round(dice.random(), 2)
        if row["stage"] == "early":
            answer["flag"] = dice.choice(["neutral", "hallucination"])
        if row["stage"] == "core":
            answer["trigger_phrase"] = answer["trigger_phrase"][-dice.choice([2, 9]) :]


@pytest.fixture(scope="module")
def other(work: Path, lexical: Path) -> Path:
    return write_rows(work / "other.jsonl", changed(replay_rows(lexical), noisy, seed=3))


@pytest.fixture(scope="module")
def pair(lexical: Path, other: Path) -> PairAgreement:
    (found,) = agree([lexical, other], margin=0.05)
    return found


def answers(run: Path, other: Path, stage: str, name: str) -> list[tuple[Any, Any]]:
    key = ("system", "sample_id", "unit_id", "item", "stage")
    ours = {tuple(r[k] for k in key): json.loads(r["raw"]) for r in replay_rows(run)}
    rows = [json.loads(x) for x in other.read_text(encoding="utf-8").splitlines()]
    theirs = {tuple(r[k] for k in key): json.loads(r["raw"]) for r in rows}
    return [(ours[k][name], theirs[k][name]) for k in ours if k[4] == stage]


def test_everything_is_joined(lexical: Path, pair: PairAgreement) -> None:
    assert pair.matching.matched == len(replay_rows(lexical))
    assert sum(getattr(pair.matching, n) for n in pair.matching.__dataclass_fields__) == (
        pair.matching.matched
    )
    assert "judge + prompt" in pair.label


def test_labels_and_decisions(lexical: Path, other: Path, pair: PairAgreement) -> None:
    flags = answers(lexical, other, "early", "flag")
    found = field(pair, "early", "flag")
    assert found.items == len(flags)
    assert found.same_share == pytest.approx(sum(a == b for a, b in flags) / len(flags))
    assert measures(found.measures)["kappa"] == pytest.approx(kappa(flags), abs=1e-12)
    scores = answers(lexical, other, "core", "score")
    decided = [(a >= 0.5, b >= 0.5) for a, b in scores]
    decision = measures(field(pair, "core", "score").decision)
    assert decision["kappa"] == pytest.approx(kappa(decided), abs=1e-12)


def test_scores_and_bias(lexical: Path, other: Path, pair: PairAgreement) -> None:
    scores = answers(lexical, other, "core", "score")
    found = field(pair, "core", "score")
    mean = sum(b - a for a, b in scores) / len(scores)
    assert found.bias.mean == pytest.approx(mean, abs=1e-12)
    assert found.bias.low < mean < found.bias.high
    assert found.bias.n_clusters == 17
    n = len(scores)
    ma, mb = sum(a for a, _ in scores) / n, sum(b for _, b in scores) / n
    va = sum((a - ma) ** 2 for a, _ in scores) / n
    vb = sum((b - mb) ** 2 for _, b in scores) / n
    cov = sum((a - ma) * (b - mb) for a, b in scores) / n
    assert measures(found.measures)["pearson"] == pytest.approx(cov / (va * vb) ** 0.5)
    lin = 2 * cov / (va + vb + (ma - mb) ** 2)
    assert measures(found.measures)["lin"] == pytest.approx(lin)


def test_distance_of_anchors(lexical: Path, other: Path, work: Path, pair: PairAgreement) -> None:
    judged = make_run(work, "other-run", judge="{engine: replay, answers: other.jsonl}")
    keys = ("system", "sample_id", "unit_id")
    ours = {tuple(r[k] for k in keys): r["anchor"] for r in table_rows(lexical, "scores")}
    theirs = {tuple(r[k] for k in keys): r["anchor"] for r in table_rows(judged, "scores")}
    both = [(a, theirs[k]) for k, a in ours.items() if None not in (a, theirs[k])]
    time = field(pair, "core", "anchor").time
    assert field(pair, "core", "anchor").items == len(both)
    apart = sorted(abs(a - b) for a, b in both)
    assert max(apart) > 0
    assert time.same_share == pytest.approx(sum(d == 0 for d in apart) / len(apart))
    assert time.bias.mean == pytest.approx(sum(b - a for a, b in both) / len(both))
    assert time.only_first == sum(a is not None and theirs[k] is None for k, a in ours.items())
    assert time.only_second == sum(a is None and theirs[k] is not None for k, a in ours.items())


def test_metrics_under_both_judges(
    lexical: Path, other: Path, work: Path, pair: PairAgreement
) -> None:
    judged = make_run(work, "other-again", judge="{engine: replay, answers: other.jsonl}")
    values = [
        {(r["metric"], r["group"], r["system"]): r["value"] for r in table_rows(run, "metrics")}
        for run in (lexical, judged)
    ]
    for found in pair.metrics:
        for s in found.systems:
            key = (found.metric, found.group, s.system)
            assert s.first == pytest.approx(values[0][key], abs=1e-12)
            assert s.second == pytest.approx(values[1][key], abs=1e-12)
            assert s.equivalence.difference == pytest.approx(values[1][key] - values[0][key])
        assert found.ranks.note == "uninformative"
        assert found.n_samples == [17, 17, 17]


def test_a_run_agrees_with_itself(lexical: Path) -> None:
    (found,) = agree([lexical, lexical], margin=0.3)
    assert found.label == "same judge, asked again"
    assert all(s.equivalence.difference == 0 for m in found.metrics for s in m.systems)
    lead = found.metrics[0]
    assert {s.equivalence.verdict for s in lead.systems} == {"equivalent"}
    assert found.disagreements == []


def test_largest_disagreements_come_with_their_texts(
    lexical: Path, other: Path, pair: PairAgreement
) -> None:
    sizes = [d.size for d in pair.disagreements]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == 10
    (few,) = agree([lexical, other], largest=2)
    assert [d.key for d in few.disagreements] == [d.key for d in pair.disagreements[:2]]
    texts = {
        (r["system"], r["sample_id"], r["unit_id"], r["item"], r["stage"]): r["text"]
        for r in table_rows(lexical, "stages")
    }
    assert all(d.text == texts[d.key] for d in pair.disagreements)


def test_what_does_not_match_is_counted_and_left_out(lexical: Path, work: Path) -> None:
    outputs = work / "edited"
    shutil.copytree(OUTPUTS["omniinteract"]["chatty"], outputs)
    file = next(p for p in sorted(outputs.rglob("*.json")))
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('"text": "', '"text": "Now then, '), encoding="utf-8")
    systems = {"chatty": str(outputs), "extra": OUTPUTS["omniinteract"]["sleepy"]}
    run = make_run(work, "edited-run", systems=systems)
    (found,) = agree([lexical, run])
    m = found.matching
    keys = ("system", "sample_id", "unit_id", "item", "stage")
    ours, theirs = (
        {tuple(r[k] for k in keys): r["text_hash"] for r in table_rows(f, "stages")}
        for f in (lexical, run)
    )
    asked = [{tuple(r[k] for k in keys) for r in replay_rows(f)} for f in (lexical, run)]
    common = asked[0] & asked[1]
    assert m.matched == sum(ours[k] == theirs[k] for k in common)
    differ = sum(k in theirs and ours[k] != theirs[k] for k in asked[0] | (asked[1] & set(ours)))
    assert m.other_text == differ > 0
    assert m.unknown_second == sum(k not in ours for k in asked[1]) > 0
    assert m.only_first == sum(k not in theirs for k in asked[0]) > 0
    lead = {s.system: s for s in found.metrics[0].systems}
    samples = dict(zip(lead, found.metrics[0].n_samples, strict=True))
    assert samples["chatty"] == 16
    assert lead["chatty"].equivalence.difference == pytest.approx(0)
    assert lead["attentive"].first is None, "no sample is scored under both"


def test_unusable_answers_are_no_numbers(lexical: Path, work: Path) -> None:
    rows = replay_rows(lexical)
    broken = [{**r, "raw": "no idea"} if i % 10 == 0 else r for i, r in enumerate(rows)]
    write_rows(work / "broken.jsonl", broken[5:])
    (found,) = agree([lexical, work / "broken.jsonl"])
    lost = sum(i % 10 == 0 for i in range(5, len(rows)))
    assert found.matching.unusable == lost
    assert found.matching.only_first == 5
    assert found.matching.matched == len(rows) - lost - 5
    assert all(s.equivalence.difference in (0, None) for m in found.metrics for s in m.systems)


def shifted(rows: list[Row], by: float) -> list[Row]:
    def shift(row: Row, answer: dict[str, Any], dice: random.Random) -> None:
        if row["stage"] == "core":
            answer["score"] = min(max(answer["score"] + by, 0.0), 1.0)

    return changed(rows, shift)


def test_prompt_and_model_are_told_apart_by_three_judges(lexical: Path, work: Path) -> None:
    rows = replay_rows(lexical)
    write_rows(work / "gold-published.jsonl", shifted(rows, -0.35))
    write_rows(work / "gold.jsonl", rows)
    write_rows(work / "open.jsonl", shifted(rows, -0.35))
    names = [work / f"{n}.jsonl" for n in ("gold-published", "gold", "open")]
    found = agree([*names, lexical], margin=0.05, largest=0)
    assert len(found) == 6
    shift = {
        (Path(p.first).stem, Path(p.second).stem): p.metrics[0].systems[0].equivalence
        for p in found
    }
    prompt, model = shift["gold-published", "gold"], shift["gold", "open"]
    together = shift["gold-published", "open"]
    assert prompt.difference > 0 > model.difference
    assert prompt.verdict == model.verdict == "different"
    assert together.difference == 0


def judge(models: set[str] | None, prompts: set[str] | None, name: str = "x") -> Judge:
    return Judge(
        name, [], "mean", frozenset(), None,
        None if models is None else frozenset(models),
        None if prompts is None else frozenset(prompts),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second", "label"),
    [
        (judge({"a"}, {"p"}), judge({"a"}, {"p"}), "same judge, asked again"),
        (judge({"a"}, {"p"}), judge({"b"}, {"p"}), "judge"),
        (judge({"a"}, {"p"}), judge({"a"}, {"q"}), "prompt"),
        (judge({"a"}, {"p"}), judge({"b"}, {"q"}), "judge + prompt"),
        (judge(None, {"p"}), judge(None, {"p"}), "judge"),
        (
            judge({"a"}, {"p"}),
            judge({"a"}, None, "gold.jsonl"),
            "judge + prompt (the prompts of gold.jsonl are not known)",
        ),
    ],
)
def test_what_differs_between_judges(first: Judge, second: Judge, label: str) -> None:
    assert difference_label(first, second) == label


@pytest.mark.parametrize("benchmark", ["omni_interactscope", "omni_duplexeval"])
def test_other_benchmarks(benchmark: str, work: Path) -> None:
    run = make_run(work, f"agree-{benchmark}", benchmark=benchmark)
    rows = replay_rows(run)

    def turned(row: Row, answer: dict[str, Any], dice: random.Random) -> None:
        for name in ("equivalent", "is_relevant", "success_score", "temporal_score"):
            if name in answer and dice.random() < 0.2:
                most = 3 if name == "temporal_score" else 1
                value = most - answer[name]
                answer[name] = bool(value) if name == "equivalent" else value

    file = write_rows(work / f"{benchmark}.jsonl", changed(rows, turned, seed=1))
    (found,) = agree([run, file], margin=10)
    assert found.matching.matched > 0
    labels = [f for f in found.fields if f.items and f.field.kind == "category"]
    assert any(0 < f.same_share < 1 for f in labels)
    lead = found.metrics[0]
    judged = make_run(
        work, f"again-{benchmark}", benchmark=benchmark, code=3 if "duplex" in benchmark else 0,
        judge=f"{{engine: replay, answers: {file}}}", extra="limits: {max_invalid: 1}",
    )  # fmt: skip
    values = {
        r["system"]: r["value"]
        for r in table_rows(judged, "metrics")
        if (r["metric"], r["group"]) == (lead.metric, lead.group)
    }
    if "duplex" not in benchmark:
        for s in lead.systems:
            assert s.second == pytest.approx(values[s.system], abs=1e-9)


def test_through_the_command(lexical: Path, other: Path, work: Path) -> None:
    done = omnijudge("agree", lexical, other, "--margin", "0.1", "--largest", "2", cwd=work)
    assert done.returncode == 0, done.stderr
    for said in ("with a usable verdict of both", "Agreement on labels", "Agreement on scores",
                 "uninformative: only 3 systems", "Largest disagreements", "Verdict"):  # fmt: skip
        assert said in done.stdout
    done = omnijudge(
        "agree", other, lexical / "judgements.parquet", lexical, "--format", "json", cwd=work
    )
    found = json.loads(done.stdout)
    assert len(found) == 3
    assert found[2]["matching"]["matched"] == len(replay_rows(lexical))


@pytest.mark.parametrize(
    ("files", "error", "said"),
    [
        (["lexical"], ConfigError, "at least two"),
        (["other.jsonl", "other.jsonl"], ConfigError, "none of them is a run"),
        (["lexical", "nothing.jsonl"], ConfigError, "there is no run and no file"),
        (["lexical", "bad.jsonl"], DataError, "rows cannot be used"),
    ],
)
def test_wrong_inputs(
    lexical: Path, other: Path, work: Path, files: list[str], error: type[Exception], said: str
) -> None:
    (work / "bad.jsonl").write_text('{"system": "a"}\n', encoding="utf-8")
    with pytest.raises(error, match=said):
        agree([work / f for f in files])


def test_another_benchmark_is_refused(lexical: Path, work: Path) -> None:
    scope = make_run(work, "agree-scope", benchmark="omni_interactscope")
    with pytest.raises(ConfigError, match="is a run of Omni-InteractScope"):
        agree([lexical, scope])
    with pytest.raises(ConfigError, match="--margin"):
        agree([lexical, lexical], margin=0)
