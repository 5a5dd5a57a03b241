"""Several judges over the same questions, and one judge several times."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fakes.commands import call, manifest, rows
from fakes.corpus import write_corpus
from fakes.http_judge import HttpJudge

ROOT = Path(__file__).parents[2]
SAMPLE_DATA = ROOT / "omnijudge" / "sample_data"
ENGINE = "fakes.odd_lexical:OddLexical"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus") / "c", 8, tempers="punctual,talkative")


def odd(name: str, **options: Any) -> dict[str, Any]:
    return {"name": name, "engine": ENGINE, "engine_options": options}


def config(folder: Path, corpus: Path, judge: dict[str, Any], **more: Any) -> Path:
    folder.mkdir(exist_ok=True)
    values = {
        "benchmark": "omniinteract",
        "data": {"manifest": str(corpus)},
        "judge": judge,
        "statistics": {"replicates": 200},
        "execution": {"batch_size": 8, "in_flight": 1},
        "store": "store",
        "output": "run",
        **more,
    }
    # JSON is YAML.
    (folder / "run.yaml").write_text(json.dumps(values), encoding="utf-8")
    return folder


def verdicts(run: Path) -> dict[tuple[Any, ...], list[float]]:
    """(system, sample, unit, stage) -> scores of the usable answers, judges in order."""
    found: dict[tuple[Any, ...], list[float]] = {}
    for j in rows(run, "judgements"):
        key = j["system"], j["sample_id"], j["unit_id"], j["stage"]
        if j["status"] in ("ok", "repaired"):
            found.setdefault(key, []).append(j["score"])
    return found


def majority(values: list[float]) -> float:
    (value, times), *rest = Counter(values).most_common()
    if times > 1 and all(n < times for _, n in rest):
        return value
    return statistics.median(values)


@pytest.mark.parametrize(
    ("how", "middle"),
    [("mean", statistics.fmean), ("median", statistics.median), ("majority", majority)],
)
def test_scores_are_combined_and_the_spread_is_kept(
    how: str, middle: Any, corpus: Path, tmp_path: Path
) -> None:
    panel = [odd("strict", bias=-0.3), odd("plain"), odd("twin"), odd("kind", bias=0.25)]
    folder = config(tmp_path, corpus, {"panel": panel, "combine": how})
    call(folder, "run", "run.yaml")
    said = verdicts(folder / "run")
    assert {len(v) for v in said.values()} == {4}
    checked = 0
    for row in rows(folder / "run", "scores"):
        key = row["system"], row["sample_id"], row["unit_id"]
        own = {stage: v for (*k, stage), v in said.items() if tuple(k) == key}
        if row["unit_kind"] != "slot" or not own:
            assert row["judge_spread"] is None
            continue
        assert row["judge_spread"] == pytest.approx(max(max(v) - min(v) for v in own.values()))
        if "core" in own:
            assert row["s_core"] == pytest.approx(middle(own["core"]))
            checked += 1
    assert checked > 20
    found = manifest(folder / "run")
    assert list(found["judges"]) == ["strict", "plain", "twin", "kind"]
    assert found["inputs"]["judge"]["combine"] == how
    spreads = found["counts"]["spreads"]["core"]
    core = [max(v) - min(v) for (*_, stage), v in said.items() if stage == "core"]
    assert spreads["verdicts"] == len(core)
    assert spreads["mean"] == pytest.approx(statistics.fmean(core))
    assert spreads["largest"] == pytest.approx(max(core))


def test_one_failed_judge_never_poisons_the_panel(corpus: Path, tmp_path: Path) -> None:
    both = [odd("a"), odd("b", bias=-0.2)]
    for fault in ("error", "refused"):
        ill = odd("ill", faults={fault: [1, 0]})
        with_ill = config(tmp_path / f"with-{fault}", corpus, {"panel": [both[0], ill, both[1]]})
        without = config(tmp_path / f"without-{fault}", corpus, {"panel": both})
        call(without, "run", "run.yaml")
        _, errors = call(with_ill, "run", "run.yaml", code=3)
        assert "answers are unusable" in errors
        for name in ("scores", "metrics"):
            first = (with_ill / "run" / f"{name}.parquet").read_bytes()
            assert first == (without / "run" / f"{name}.parquet").read_bytes()
    found = manifest(with_ill / "run")
    assert found["counts"]["unscored_units"] == 0
    assert found["counts"]["faults"]["refused"] > 20


def test_repeats_measure_the_variance_of_a_judge(corpus: Path, tmp_path: Path) -> None:
    judge = odd("moody", sway=0.1, log=str(tmp_path / "log.txt")) | {"repeats": 3}
    folder = config(tmp_path / "a", corpus, judge)
    call(folder, "run", "run.yaml")
    judgements = rows(folder / "run", "judgements")
    assert {j["repeat"] for j in judgements} == {0, 1, 2}
    for key, scores in verdicts(folder / "run").items():
        assert scores == sorted(scores), key
    spreads = manifest(folder / "run")["counts"]["spreads"]["core"]
    assert 0.1 <= spreads["mean"] <= spreads["largest"] == pytest.approx(0.2)
    lines = (tmp_path / "log.txt").read_text(encoding="utf-8").splitlines()
    asked = Counter(line.split()[1] for line in lines)
    assert set(asked.values()) == {3}, "each distinct question, three times"
    found = manifest(folder / "run")["counts"]
    assert found["asked"] == len(lines)
    assert found["questions"] == 3 * len(rows(folder / "run", "questions"))
    address = "/".join(next(k for k in verdicts(folder / "run") if k[3] == "core")[:3])
    output, _ = call(folder, "show", "run", address)
    assert "repeat 3, attempt 1: ok" in output
    assert "together (mean): ok: score" in output
    assert "spread" in output
    call(folder, "run", "run.yaml")
    assert manifest(folder / "run")["counts"]["asked"] == 0


def test_each_judge_has_its_own_server_and_key(corpus: Path, tmp_path: Path) -> None:
    with (
        HttpJudge(lambda body: _http_answer(body, 0.2)) as first,
        HttpJudge(lambda body: _http_answer(body, 0.8)) as second,
    ):
        first.key, second.key = "first-secret-key", "second-secret-key"
        panel = [
            {"name": "one", "engine": "openai", "model": "small-2025-01-01",
             "base_url": first.url, "api_key_env": "FIRST_KEY"},
            {"name": "two", "engine": "openai", "model": "large-2025-01-01",
             "base_url": second.url, "api_key_env": "SECOND_KEY"},
        ]  # fmt: skip
        folder = config(tmp_path, corpus, {"panel": panel})
        keys = {"FIRST_KEY": "first-secret-key", "SECOND_KEY": "second-secret-key"}
        output, errors = call(folder, "run", "run.yaml", **keys)
        assert {b["model"] for b in first.bodies} == {"small-2025-01-01"}
        assert {b["model"] for b in second.bodies} == {"large-2025-01-01"}
    cores = [r for r in rows(folder / "run", "scores") if r["s_core"] is not None]
    assert {round(r["s_core"], 9) for r in cores} == {0.5}
    assert {round(r["judge_spread"], 9) for r in cores} == {0.6}
    written = b"".join(
        p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.suffix != ".yaml"
    )
    for key in keys.values():
        assert key.encode() not in written
        assert key not in output + errors
    # Another port is another address, not another judge.
    changed = (folder / "run.yaml").read_text(encoding="utf-8").replace(first.url, second.url)
    (folder / "run.yaml").write_text(changed, encoding="utf-8")
    call(folder, "run", "run.yaml", **keys)
    assert manifest(folder / "run")["counts"]["asked"] == 0


def _http_answer(body: dict[str, Any], score: float) -> str:
    wanted = body["response_format"]["json_schema"]["schema"]["required"]
    values = {"flag": "neutral", "score": score, "trigger_phrase": "", "spoiler": False,
              "hallucination": False, "rationale": "so it is"}  # fmt: skip
    return json.dumps({name: values[name] for name in wanted})


@pytest.mark.parametrize("benchmark", ["omni_interactscope", "omni_duplexeval"])
def test_every_benchmark_keeps_the_spread(benchmark: str, tmp_path: Path) -> None:
    systems = {
        "omni_interactscope": {
            n: str(SAMPLE_DATA / benchmark / "responses" / f"{n}.jsonl")
            for n in ("steady", "eager")
        },
        "omni_duplexeval": {
            n: str(SAMPLE_DATA / benchmark / "outputs" / n) for n in ("attentive", "chatty")
        },
    }
    contrary = "fakes.contrary_lexical:ContraryLexical"
    panel = [{"name": "a", "engine": "lexical"}, {"name": "b", "engine": contrary}]
    more = {
        "benchmark": benchmark,
        "data": {"annotations": str(SAMPLE_DATA / benchmark / "annotations.jsonl")},
        "systems": systems[benchmark],
    }
    folder = config(tmp_path, tmp_path, {"panel": [*panel, panel[0] | {"name": "c"}]}, **more)
    call(folder, "run", "run.yaml")
    spread = {r["judge_spread"] for r in rows(folder / "run", "scores") if r["judged"]}
    assert None not in spread
    assert max(spread) == 1.0
    assert all(r["judge_spread"] is None for r in rows(folder / "run", "scores") if not r["judged"])


def test_a_stopped_panel_leaves_samples_that_all_judges_have_seen(
    corpus: Path, tmp_path: Path
) -> None:
    price = {"price": {"input": 1000.0}}
    panel = [odd("a", tokens=1000) | price, odd("b", tokens=1000, bias=-0.1) | price]
    execution = {"batch_size": 2, "in_flight": 1}
    folder = config(tmp_path, corpus, {"panel": panel}, execution=execution)
    call(folder, "run", "run.yaml", "-o", "output=whole", "-o", "store=elsewhere")
    total = manifest(folder / "whole")["cost"]
    call(folder, "run", "run.yaml", "-o", f"limits.max_cost={total / 2}", code=5)
    left = manifest(folder / "run")["counts"]["samples_incomplete"]
    assert 0 < left <= 5, "of eight samples three or more are complete for both judges"
    whole = {
        (r["system"], r["sample_id"], r["unit_id"]): r for r in rows(folder / "whole", "scores")
    }
    for row in rows(folder / "run", "scores"):
        if row["judged"]:
            assert row == whole[row["system"], row["sample_id"], row["unit_id"]]
