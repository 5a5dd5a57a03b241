"""``omnijudge sample`` and ``omnijudge rectify``: the draw, its questions, and the correction."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.sample_runs import (
    Row,
    changed,
    make_run,
    omnijudge,
    replay_rows,
    table_rows,
    write_rows,
)

from omnijudge.analysis.gold_draw import draw_sample, frame_of, read_draw
from omnijudge.analysis.gold_sample import GoldPlan, Price, sample
from omnijudge.analysis.rectifying import Correction, correct
from omnijudge.errors import ConfigError, DataError
from omnijudge.statistics.metric import Metric, Sum
from omnijudge.statistics.rectify import rectify

KEY = ("system", "sample_id", "unit_id", "item", "stage")


def stricter(row: Row, answer: dict[str, Any], dice: random.Random) -> None:
    if row["stage"] == "core" and dice.random() < 0.5:
        answer["score"] = max(0.0, round(answer["score"] - 0.25, 2))


@pytest.fixture(scope="module")
def gold(work: Path, lexical: Path) -> Path:
    return write_rows(work / "gold.jsonl", changed(replay_rows(lexical), stricter, seed=7))


@pytest.fixture(scope="module")
def gold_run(work: Path, gold: Path) -> Path:
    return make_run(work, "gold-run", judge="{engine: replay, answers: gold.jsonl}")


@pytest.fixture(scope="module")
def drawn(lexical: Path, tmp_path_factory: pytest.TempPathFactory) -> GoldPlan:
    return sample(lexical, "9videos", price=Price(2.5, 10), out=tmp_path_factory.mktemp("gold"))


def rows_of(path: Path) -> list[Row]:
    return [json.loads(x) for x in path.read_text(encoding="utf-8").splitlines()]


def of_clusters(rows: list[Row], clusters: Any) -> list[Row]:
    """In OmniInteract's sample data every sample is a cluster of its own."""
    return [r for r in rows if r["sample_id"] in set(clusters)]


# The draw


def test_the_draw_is_reproducible_and_grows(lexical: Path, drawn: GoldPlan, tmp_path: Path) -> None:
    again = sample(lexical, "9videos", out=tmp_path / "again")
    assert again.draw == drawn.draw
    larger = sample(lexical, "12videos", out=tmp_path / "larger")
    assert larger.draw.clusters[:9] == drawn.draw.clusters
    other = sample(lexical, "9videos", seed=1, out=tmp_path / "other")
    assert other.draw.clusters != drawn.draw.clusters
    assert len(set(drawn.draw.clusters)) == 9


def test_every_cluster_is_drawn_equally_often(lexical: Path) -> None:
    from omnijudge.stored_run import StoredRun

    with StoredRun(lexical) as run:
        frame = frame_of(run.units, "video_id")
    counted = Counter(
        c for seed in range(600) for c in draw_sample("omniinteract", frame, 5, seed).clusters
    )
    expected = 600 * 5 / 17
    assert len(counted) == 17
    assert max(abs(n - expected) for n in counted.values()) < 5 * (expected * 12 / 17) ** 0.5


def test_questions_are_those_of_the_drawn_videos(lexical: Path, drawn: GoldPlan) -> None:
    sheet = rows_of(drawn.folder / "questions.jsonl")
    wanted = of_clusters(replay_rows(lexical), drawn.draw.clusters)
    assert {tuple(r[k] for k in KEY) for r in sheet} == {tuple(r[k] for k in KEY) for r in wanted}
    assert drawn.rows == len(wanted)
    lines = rows_of(drawn.files[0])
    names = [line["custom_id"] for line in lines]
    assert sorted(names) == sorted({r["fingerprint"] for r in sheet})
    assert drawn.questions == len(names)
    by_name = {r["fingerprint"]: r for r in sheet}
    for line in lines:
        assert line["body"]["model"] == drawn.model
        assert line["body"]["messages"] == by_name[line["custom_id"]]["messages"]
        assert line["body"]["response_format"]["type"] == "json_schema"
        assert line["url"] == "/v1/chat/completions"


def test_money_is_tokens_times_price(drawn: GoldPlan) -> None:
    text = sum(
        len(m["content"].encode()) for line in rows_of(drawn.files[0])
        for m in line["body"]["messages"]
    )  # fmt: skip
    assert drawn.prompt_tokens == pytest.approx(text / 4)
    assert drawn.cost == pytest.approx((text / 4 * 2.5 + 60 * drawn.questions * 10) / 1e6)


def test_a_budget_in_dollars_buys_as_many_videos_as_it_can(lexical: Path, tmp_path: Path) -> None:
    price = Price(2.5, 10)
    all_of_it = sample(lexical, "99usd", price=price, out=tmp_path / "all")
    assert all_of_it.everything
    assert all_of_it.draw.n == 17
    assert all_of_it.widths[-1].gold_only == 0
    each = all_of_it.widths[-1].cost / 17
    half = sample(lexical, f"{each * 8.5:.6f}usd", price=price, out=tmp_path / "half")
    assert half.draw.n == 8
    widths = [w.gold_only for w in all_of_it.widths]
    assert widths == sorted(widths, reverse=True)
    for row in all_of_it.widths:
        assert list(row.rectified) == sorted(row.rectified)
        assert row.rectified[-1] <= row.gold_only


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"budget": "many"}, "write a number of videos or dollars"),
        ({"budget": "50usd"}, "--price IN,OUT"),
        ({"budget": "1videos"}, "at least 2 are needed"),
        ({"budget": "9videos", "strata": 5}, "--strata 5"),
        ({"budget": "9videos", "strata": 0}, "--strata 0"),
        ({"budget": "9videos", "metric": "nothing"}, "--metric nothing"),
    ],
)
def test_wrong_budgets(lexical: Path, tmp_path: Path, words: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as found:
        sample(lexical, out=tmp_path, **words)
    assert said in str(found.value)


# The correction


def f1(sums: np.ndarray) -> np.ndarray:
    tp, fp, fn = sums[..., 0], sums[..., 1], sums[..., 2]
    p, r = tp / (tp + fp), tp / (tp + fn)
    return 2 * p * r / (p + r)


F1 = Metric("ia_qtf1", "all", tuple(Sum("slot", c) for c in ("tp", "fp", "fn")), f1, (),
            denominator=(0, 1, 2))  # fmt: skip


def sums_by_hand(run: Path, system: str, clusters: list[str]) -> np.ndarray:
    at = {c: i for i, c in enumerate(clusters)}
    found = np.zeros((len(clusters), 3))
    for row in table_rows(run, "scores"):
        if row["system"] != system or row["video_id"] not in at:
            continue
        if row["unit_kind"] == "slot":
            found[at[row["video_id"]]] += [row["tp"], row["fp"], row["fn"]]
        elif row["unit_kind"] == "sample":
            found[at[row["video_id"]]] += [0, row["fp"], 0]
    return found


def lead(found: Correction) -> dict[str, Any]:
    return {c.system: c for c in found.metrics["ia_qtf1", "all"]}


def test_the_numbers_are_those_of_the_estimator(
    lexical: Path, gold_run: Path, gold: Path, drawn: GoldPlan, tmp_path: Path
) -> None:
    file = write_rows(tmp_path / "gold.jsonl", of_clusters(rows_of(gold), drawn.draw.clusters))
    found = correct(lexical, file, sample=drawn.folder)
    clusters = sorted({r["video_id"] for r in table_rows(lexical, "scores")})
    place = np.sort([clusters.index(c) for c in drawn.draw.clusters])
    for system, ours in lead(found).items():
        cheap = sums_by_hand(lexical, system, clusters)[None]
        true = sums_by_hand(gold_run, system, clusters)[None]
        for target, mine in (("finite", ours.finite), ("superpopulation", ours.superpopulation)):
            (theirs,) = rectify(F1, true[:, place], cheap, place, target=target)  # type: ignore[arg-type]
            assert mine.value == pytest.approx(theirs.value, abs=1e-9)
            assert mine.low == pytest.approx(theirs.low, abs=1e-9)
            assert mine.high == pytest.approx(theirs.high, abs=1e-9)
            assert mine.weight == pytest.approx(theirs.weight, abs=1e-9)
            assert (mine.method, mine.reason, mine.n_gold) == (theirs.method, theirs.reason, 9)
    assert found.n_gold == 9
    assert "drawn by omnijudge sample, seed 0" in found.sampling
    values = [c.finite.value for c in found.metrics["ia_qtf1", "all"]]
    assert values == sorted(values, reverse=True)


def test_worth_says_how_much_gold_the_width_would_take(
    lexical: Path, gold: Path, drawn: GoldPlan, tmp_path: Path
) -> None:
    file = write_rows(tmp_path / "gold.jsonl", of_clusters(rows_of(gold), drawn.draw.clusters))
    for c in lead(correct(lexical, file, sample=drawn.folder)).values():
        own, alone = c.finite.high - c.finite.low, c.finite.gold_high - c.finite.gold_low
        assert c.width == pytest.approx(own / alone)
        assert c.width <= 1.05 + 1e-9
        spread = (1 / c.worth - 1 / 17) / (1 / 9 - 1 / 17)
        assert spread == pytest.approx(c.width**2)


def test_gold_on_every_video_is_gold(lexical: Path, gold: Path, gold_run: Path) -> None:
    values = {
        (r["system"], r["metric"], r["group"]): r["value"] for r in table_rows(gold_run, "metrics")
    }
    for source in (gold, gold_run):
        found = correct(lexical, source)
        assert found.sampling == "gold on every video"
        for (metric, group), rows in found.metrics.items():
            for c in rows:
                want = values[c.system, metric, group]
                if want is None:
                    assert c.finite.value is None
                    continue
                assert c.finite.value == pytest.approx(want, abs=1e-12)
                assert c.finite.low == c.finite.high == c.finite.value


def test_a_batch_and_a_sheet_say_the_same(
    lexical: Path, gold: Path, drawn: GoldPlan, tmp_path: Path
) -> None:
    said = {tuple(r[k] for k in KEY): r["raw"] for r in rows_of(gold)}
    sheet = rows_of(drawn.folder / "questions.jsonl")
    # Equal questions have equal answers in a batch.
    answer = {r["fingerprint"]: said[tuple(r[k] for k in KEY)] for r in sheet}
    rows = [{**{k: r[k] for k in KEY}, "raw": answer[r["fingerprint"]]} for r in sheet]
    expected = lead(correct(lexical, write_rows(tmp_path / "rows.jsonl", rows),
                            sample=drawn.folder))  # fmt: skip
    batch = [
        {
            "id": f"batch_req_{i}",
            "custom_id": name,
            "response": {
                "status_code": 200,
                "body": {
                    "model": "gpt-4o-2024-11-20",
                    "choices": [{"message": {"content": raw}, "finish_reason": "stop"}],
                },
            },
            "error": None,
        }
        for i, (name, raw) in enumerate(sorted(answer.items()))
    ]
    found = lead(correct(lexical, write_rows(tmp_path / "batch.jsonl", batch), sample=drawn.folder))
    assert found == expected
    filled = [{**r, "raw": answer[r["fingerprint"]]} for r in sheet]
    found = lead(correct(lexical, write_rows(tmp_path / "sheet.jsonl", filled),
                         sample=drawn.folder))  # fmt: skip
    assert found == expected
    foreign = [{**batch[0], "custom_id": "0" * 32}, *batch[1:]]
    with pytest.raises(DataError, match="1 lines answer no question"):
        correct(lexical, write_rows(tmp_path / "foreign.jsonl", foreign), sample=drawn.folder)
    failed = [{**batch[0], "response": None, "error": {"message": "expired"}}, *batch[1:]]
    found = correct(lexical, write_rows(tmp_path / "failed.jsonl", failed), sample=drawn.folder)
    assert found.n_gold < 9
    assert any("lack gold answers" in note for note in found.notes)


# Honest samples only


def test_a_sample_nobody_drew_is_refused(lexical: Path, gold: Path, work: Path) -> None:
    chosen = sorted({r["sample_id"] for r in rows_of(gold)})[:9]
    file = write_rows(work / "chosen.jsonl", of_clusters(rows_of(gold), chosen))
    done = omnijudge("rectify", lexical, "--gold", file, cwd=work)
    assert done.returncode == 2
    assert "--declared-random" in done.stderr
    done = omnijudge("rectify", lexical, "--gold", file, "--declared-random", cwd=work)
    assert done.returncode == 0, done.stderr
    assert "declared a simple random sample" in " ".join(done.stdout.split())
    assert "9 of 17 videos" in done.stdout


def edit(folder: Path, target: Path, rehash: bool, **changes: Any) -> Path:
    shutil.copytree(folder, target)
    path = target / "sample.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    values["draw"] |= changes
    path.write_text(json.dumps(values), encoding="utf-8")
    if rehash:
        from omnijudge.analysis.gold_draw import Draw

        given = {**values["draw"], "clusters": tuple(values["draw"]["clusters"])}
        values["draw"]["hash"] = Draw(**given).hashed().hash
        path.write_text(json.dumps(values), encoding="utf-8")
    return target


def test_a_changed_draw_is_refused(
    lexical: Path, gold: Path, drawn: GoldPlan, tmp_path: Path
) -> None:
    every = sorted({r["sample_id"] for r in rows_of(gold)})
    others = [c for c in every if c not in drawn.draw.clusters]
    swapped = [*drawn.draw.clusters[:-1], others[0]]
    file = write_rows(tmp_path / "gold.jsonl", of_clusters(rows_of(gold), swapped))
    changed_file = edit(drawn.folder, tmp_path / "changed", False, clusters=swapped)
    with pytest.raises(DataError, match="was changed after the draw"):
        correct(lexical, file, sample=changed_file)
    forged = edit(drawn.folder, tmp_path / "forged", True, clusters=swapped)
    with pytest.raises(ConfigError, match="are not what seed 0 draws"):
        correct(lexical, file, sample=forged)
    foreign = edit(drawn.folder, tmp_path / "foreign", True, units="f00")
    with pytest.raises(ConfigError, match="other annotations"):
        correct(lexical, file, sample=foreign)
    with pytest.raises(ConfigError, match=r"there is no sample\.json"):
        correct(lexical, file, sample=tmp_path / "nowhere")
    (tmp_path / "sample.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match="is no sample file"):
        read_draw(tmp_path / "sample.json")


def test_a_night_that_ends_early_leaves_a_sample(
    lexical: Path, gold: Path, drawn: GoldPlan, tmp_path: Path
) -> None:
    first = drawn.draw.clusters[:6]
    every = sorted({r["sample_id"] for r in rows_of(gold)})
    extra = next(c for c in every if c not in drawn.draw.clusters)
    file = write_rows(tmp_path / "gold.jsonl", of_clusters(rows_of(gold), [*first, extra]))
    found = correct(lexical, file, sample=drawn.folder)
    assert found.n_gold == 6
    assert any("first 6 of 9 drawn videos" in n for n in found.notes)
    assert any("1 videos with gold judgements were not drawn" in n for n in found.notes)
    again = correct(
        lexical,
        write_rows(tmp_path / "only.jsonl", of_clusters(rows_of(gold), first)),
        declared_random=True,
    )
    assert lead(again)["chatty"].finite.value == pytest.approx(
        lead(found)["chatty"].finite.value, abs=1e-12
    )


def test_systems_without_gold_are_left_out(lexical: Path, gold: Path, tmp_path: Path) -> None:
    rows = [r for r in rows_of(gold) if r["system"] != "sleepy"]
    found = correct(lexical, write_rows(tmp_path / "two.jsonl", rows))
    assert set(lead(found)) == {"attentive", "chatty"}
    assert any("left out: sleepy" in note for note in found.notes)


def test_strata_are_drawn_and_corrected(lexical: Path, gold: Path, tmp_path: Path) -> None:
    plan = sample(lexical, "10videos", strata=2, out=tmp_path / "strata")
    assert plan.draw.method == "stratified"
    file = write_rows(tmp_path / "gold.jsonl", of_clusters(rows_of(gold), plan.draw.clusters))
    found = correct(lexical, file, sample=plan.folder)
    assert found.n_gold == 10
    assert "2 strata by size" in found.sampling
    simple = correct(lexical, file, declared_random=True)
    assert lead(found)["chatty"].finite.gold != pytest.approx(
        lead(simple)["chatty"].finite.gold, abs=1e-6
    )


@pytest.mark.parametrize("benchmark", ["omni_interactscope", "omni_duplexeval"])
def test_other_benchmarks(benchmark: str, work: Path) -> None:
    run = make_run(work, f"gold-{benchmark}", benchmark=benchmark)
    done = omnijudge("sample", run, "--budget", "5videos", cwd=work)
    assert done.returncode == 0, done.stderr
    assert "Drawn: 5 of" in done.stdout
    sheet = rows_of(run / "gold" / "questions.jsonl")
    answers = {tuple(r[k] for k in KEY): r["raw"] for r in replay_rows(run)}
    usual = {"window": '{"temporal_score": 1, "is_relevant": 1, "reasoning": ""}'}
    filled = [
        {**{k: r[k] for k in KEY}, "raw": answers.get(tuple(r[k] for k in KEY),
                                                       usual.get(r["stage"], ""))}
        for r in sheet
    ]  # fmt: skip
    file = write_rows(work / f"gold-{benchmark}.jsonl", filled)
    done = omnijudge("rectify", run, "--gold", file, "--format", "json", cwd=work)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["n_gold"] == 5
    rows = [r for r in found["rows"] if r["kind"] == "value" and r["value"] is not None]
    metrics = {(r["system"], r["metric"], r["group"]): r["value"]
               for r in table_rows(run, "metrics")}  # fmt: skip
    for r in rows:
        assert r["cheap"] == pytest.approx(metrics[r["system"], r["metric"], r["group"]])


def test_through_the_command(lexical: Path, gold: Path, work: Path) -> None:
    done = omnijudge(
        "sample", lexical, "--budget", "0.25usd", "--price", "2.5,10", "--out", "drawn", cwd=work
    )
    assert done.returncode == 0, done.stderr
    for said in ("Expected half-widths of IA-QTF1, All", "distinct questions", "Then: omnijudge"):
        assert said in done.stdout
    clusters = json.loads((work / "drawn" / "sample.json").read_text())["draw"]["clusters"]
    file = write_rows(work / "part.jsonl", of_clusters(rows_of(gold), clusters))
    done = omnijudge("rectify", lexical, "--gold", file, "--sample", "drawn", cwd=work)
    assert done.returncode == 0, done.stderr
    for said in ("Gold alone", "Corrected", "lambda", "Worth", "each system less attentive"):
        assert said in done.stdout
    done = omnijudge("rectify", lexical, "--gold", "nothing.jsonl", cwd=work)
    assert done.returncode == 2


def test_a_filled_sheet_is_never_written_over(lexical: Path, tmp_path: Path) -> None:
    first = sample(lexical, "9videos", out=tmp_path)
    sheet = tmp_path / "questions.jsonl"
    assert sample(lexical, "9videos", out=tmp_path).draw == first.draw  # nothing is lost by that
    rows = rows_of(sheet)
    rows[3]["raw"] = '{"score": 1}'
    before = write_rows(sheet, rows).read_bytes()
    with pytest.raises(ConfigError, match="1 rows are filled in"):
        sample(lexical, "6videos", seed=7, out=tmp_path)
    assert sheet.read_bytes() == before
    assert read_draw(tmp_path / "sample.json") == first.draw


def test_a_sheet_about_other_texts_is_refused(lexical: Path, tmp_path: Path) -> None:
    sample(lexical, "9videos", out=tmp_path)
    rows = rows_of(tmp_path / "questions.jsonl")
    empty = write_rows(tmp_path / "empty.jsonl", rows)
    with pytest.raises(DataError, match="no row is filled in"):
        correct(lexical, empty, sample=tmp_path)
    for row in rows:
        row["raw"] = '{"score": 1}'
    rows[5]["text_hash"] = "0" * 16
    other = write_rows(tmp_path / "other.jsonl", rows)
    with pytest.raises(DataError, match=f"1 of {len(rows)} answers are about other texts"):
        correct(lexical, other, sample=tmp_path)
    (tmp_path / "nothing.jsonl").touch()
    with pytest.raises(DataError, match="is empty"):
        correct(lexical, tmp_path / "nothing.jsonl", sample=tmp_path)


def test_a_row_that_stands_twice_is_named_in_the_file_of_the_user(
    lexical: Path, tmp_path: Path
) -> None:
    sample(lexical, "9videos", out=tmp_path)
    row = rows_of(tmp_path / "questions.jsonl")[0] | {"raw": '{"score": 1}'}
    twice = write_rows(tmp_path / "twice.jsonl", [row, row])
    with pytest.raises(DataError) as caught:
        correct(lexical, twice, sample=tmp_path)
    assert [p.file for p in caught.value.problems] == [str(twice)]
    assert str(twice) in str(caught.value)
