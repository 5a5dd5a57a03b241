"""What a run says about tokens asked and saved, against a count of our own over its tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fakes.commands import call, manifest, rows
from fakes.corpus import write_corpus

CONFIG: dict[str, Any] = {
    "benchmark": "omniinteract",
    "judge": {"engine": "fakes.odd_lexical:OddLexical", "engine_options": {}},
    "execution": {"batch_size": 16, "in_flight": 1},
    "statistics": {"replicates": 100},
    "store": "store",
    "output": "run",
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "c"
    return write_corpus(folder, 10, tempers="punctual,talkative", copies=3)


def config(folder: Path, corpus: Path, **changes: Any) -> None:
    values = {**CONFIG, "data": {"manifest": str(corpus)}, **changes}
    (folder / "run.yaml").write_text(json.dumps(values), encoding="utf-8")


def counted(run: Path) -> tuple[int, int, int, int]:
    """Questions, distinct ones, tokens asked one by one, tokens of the distinct ones."""
    tokens: dict[str, int] = {}
    every = 0
    judgements = rows(run, "judgements")
    by_print: dict[str, dict[int, int]] = {}
    for j in judgements:
        by_print.setdefault(j["fingerprint"], {})[j["attempt"]] = j["prompt_tokens"]
    tokens = {f: sum(attempts.values()) for f, attempts in by_print.items()}
    questions = rows(run, "questions")
    every = sum(tokens[q["fingerprint"]] for q in questions)
    distinct = {q["fingerprint"] for q in questions}
    return len(questions), len(distinct), every, sum(tokens[f] for f in distinct)


def test_tokens_saved_by_each_measure(corpus: Path, tmp_path: Path) -> None:
    config(tmp_path, corpus)
    output, _ = call(tmp_path, "run", "run.yaml", "--limit", "5")
    questions, distinct, every, once = counted(tmp_path / "run")
    assert distinct < questions
    first = manifest(tmp_path / "run")
    economy = first["counts"]["economy"]["main"]
    assert (economy["questions"], economy["distinct"]) == (questions, distinct)
    assert economy["prompt_tokens"] == every
    assert economy["saved_by_deduplication"] == every - once > 0
    assert economy["saved_by_store"] == 0
    assert economy["asked"] == once == first["tokens"]["prompt"]
    assert economy["saved_by_prefix_cache"] == first["tokens"]["cached"]
    assert economy["output_tokens_per_verdict"] == 10
    share = f"saved {100 * (every - once) / every:.1f} % by asking identical ones once"
    assert share in " ".join(output.split())
    assert "10.0 output tokens per verdict" in " ".join(output.split())

    # Another project with the same store pays only for what is new in it.
    output, _ = call(tmp_path, "run", "run.yaml", "-o", "output=other")
    _, _, every, all_once = counted(tmp_path / "other")
    economy = manifest(tmp_path / "other")["counts"]["economy"]["main"]
    assert economy["prompt_tokens"] == every
    assert economy["saved_by_store"] == once
    assert economy["asked"] == all_once - once
    assert manifest(tmp_path / "other")["counts"]["asked"] > 0

    # And the first one, grown to the whole: what it asked before is its own, not the store's.
    call(tmp_path, "run", "run.yaml")
    economy = manifest(tmp_path / "run")["counts"]["economy"]["main"]
    assert economy["asked"] == once
    assert economy["saved_by_store"] == all_once - once


def test_rationale_none_asks_for_less(corpus: Path, tmp_path: Path) -> None:
    config(tmp_path, corpus)
    call(tmp_path, "run", "run.yaml", "--limit", "2", "-o", "output=short")
    words = ("--limit", "2", "-o", "output=none", "-o", "judge.rationale=none")
    call(tmp_path, "run", "run.yaml", *words)
    short, none = (manifest(tmp_path / n)["counts"]["economy"]["main"] for n in ("short", "none"))
    assert none["questions"] == short["questions"]
    assert none["prompt_tokens"] < short["prompt_tokens"]


def test_every_attempt_is_paid(corpus: Path, tmp_path: Path) -> None:
    """Answers that had to be asked for again count with all their attempts."""
    options = {"tokens": 100, "faults": {"no_object": [3, 0]}}
    judge = {**CONFIG["judge"], "engine_options": options}
    config(tmp_path, corpus, judge=judge, limits={"max_invalid": 1, "max_unscored": 10_000})
    call(tmp_path, "run", "run.yaml", "--limit", "4")
    _, _, every, once = counted(tmp_path / "run")
    found = manifest(tmp_path / "run")
    economy = found["counts"]["economy"]["main"]
    assert (economy["prompt_tokens"], economy["asked"]) == (every, once)
    assert found["usage"]["main"]["reasked"] > 0
    assert found["usage"]["main"]["requests"] == found["counts"]["asked"]
