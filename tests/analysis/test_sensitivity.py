"""``omnijudge sensitivity``: every point against a run that was scored, or made, that way."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fakes.sample_runs import make_run, omnijudge, replay_rows, table_rows, write_rows

from omnijudge.analysis.sensitivity import Sensitivity, sensitivity
from omnijudge.errors import ConfigError
from omnijudge.rescore import rescore

Values = dict[tuple[str, str, str], float | None]


def at(found: Sensitivity, sweep: str, point: str) -> Values:
    return {
        (r["system"], r["metric"], r["group"]): r["value"]
        for r in found.points.to_pylist()
        if (r["sweep"], r["point"]) == (sweep, point)
    }


def metrics(run: Path) -> Values:
    return {(r["system"], r["metric"], r["group"]): r["value"] for r in table_rows(run, "metrics")}


def same(ours: Values, theirs: Values) -> bool:
    assert ours
    return all(v == pytest.approx(theirs[k], abs=1e-12, nan_ok=True) for k, v in ours.items())


@pytest.fixture(scope="module")
def found(lexical: Path, tmp_path_factory: pytest.TempPathFactory) -> Sensitivity:
    return sensitivity(lexical, out=tmp_path_factory.mktemp("sensitivity"))


@pytest.mark.parametrize(
    ("sweep", "point", "change"),
    [
        ("w_ack", "0.3", "scoring.w_ack=0.3"),
        ("core_quality_threshold", "0.75", "scoring.core_quality_threshold=0.75"),
        ("decay_gamma", "0.5", "scoring.decay_gamma=0.5"),
        ("last_slot_tail_sec", "15", "scoring.last_slot_tail_sec=15"),
        ("corrections", "spill_tolerance", "scoring.corrections=[spill_tolerance]"),
    ],
)
def test_a_point_is_the_run_scored_that_way(
    lexical: Path, found: Sensitivity, tmp_path: Path, sweep: str, point: str, change: str
) -> None:
    folder, _ = rescore(lexical, [change], tmp_path / "scored")
    assert same(at(found, sweep, point), metrics(folder))


def test_the_run_itself_is_a_point_of_every_sweep(lexical: Path, found: Sensitivity) -> None:
    rows = found.points.to_pylist()
    for sweep in {r["sweep"] for r in rows}:
        own = {r["point"] for r in rows if r["is_run"] and r["sweep"] == sweep}
        assert len(own) == 1
        assert same(at(found, sweep, own.pop()), metrics(lexical))


def test_a_value_between_the_declared_ones_is_put_in_its_place(
    lexical: Path, tmp_path: Path
) -> None:
    folder, _ = rescore(lexical, ["scoring.w_ack=0.25"], tmp_path / "scored")
    there = sensitivity(folder, only=["w_ack"], out=tmp_path / "out")
    points = list(dict.fromkeys(there.points["point"].to_pylist()))
    assert points == ["0", "0.1", "0.2", "0.25", "0.3", "0.5"]
    assert {r["point"] for r in there.points.to_pylist() if r["is_run"]} == {"0.25"}


def test_places_change_where_values_cross(found: Sensitivity) -> None:
    swaps = [r for r in found.swaps.to_pylist() if (r["sweep"], r["group"]) == ("w_ack", "all")]
    swaps = [r for r in swaps if r["metric"] == "ia_qtf1"]
    values = {
        point: {s: v for (s, m, g), v in at(found, "w_ack", point).items()
                if (m, g) == ("ia_qtf1", "all")}
        for point in ("0", "0.1", "0.2", "0.3", "0.5")
    }  # fmt: skip
    expected = set()
    points = list(values)
    for first, second in pairwise(points):
        for a in values[first]:
            for b in values[first]:
                ahead = values[first][a] > values[first][b]
                if ahead and values[second][a] < values[second][b]:
                    expected.add((a, b, first, second))
    assert expected
    assert {(r["ahead"], r["behind"], r["from_point"], r["to_point"]) for r in swaps} == expected
    for r in swaps:
        x, y = float(r["from_point"]), float(r["to_point"])
        a, b = values[r["from_point"]], values[r["to_point"]]
        share = (r["at"] - x) / (y - x)
        gaps = (a[r["ahead"]] - a[r["behind"]], b[r["ahead"]] - b[r["behind"]])
        assert gaps[0] + share * (gaps[1] - gaps[0]) == pytest.approx(0, abs=1e-12)


def test_what_was_never_asked_is_null_and_counted(found: Sensitivity) -> None:
    paper = [r for r in found.points.to_pylist() if r["point"] == "paper"]
    whole = [r for r in paper if (r["metric"], r["group"]) == ("ia_qtf1", "all")]
    assert all(r["value"] is None and r["rank"] is None for r in whole)
    assert all(r["n_missing"] > 0 for r in whole)
    assert {r["missing_questions"] for r in paper} != {0}


@pytest.mark.parametrize(
    ("benchmark", "sweep", "point", "scoring", "rounds"),
    [
        ("omni_interactscope", "tolerance", "5", "{tolerance: 5}", 1),
        ("omni_duplexeval", "window_shifts", "0", "{window_shifts: [0.0]}", 2),
    ],
)
def test_asking_asks_what_points_lack_and_nothing_else(
    tmp_path: Path, benchmark: str, sweep: str, point: str, scoring: str, rounds: int
) -> None:
    run = make_run(tmp_path, "run", benchmark=benchmark)
    before = sensitivity(run, only=[sweep])
    lacking = [r for r in before.points.to_pylist() if r["point"] == point and r["n_missing"]]
    assert lacking
    assert all(r["value"] is None for r in lacking)
    done = omnijudge("sensitivity", run, "--sweep", sweep, "--ask", "--format", "json",
                     cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["requests"] > 0
    after = sensitivity(run, only=[sweep])
    assert not any(r["n_missing"] for r in after.points.to_pylist())
    # The same store answers a run that is made that way without one more question.
    other = make_run(tmp_path, "other", benchmark=benchmark, scoring=scoring)
    manifest = json.loads((other / "run.json").read_text(encoding="utf-8"))
    assert manifest["counts"]["asked"] == 0
    assert same(at(after, sweep, point), metrics(other))
    again = sensitivity(run, only=[sweep], ask=True)
    assert again.asked == 0


def test_a_replay_answers_for_the_texts_it_was_given(
    lexical: Path, lenient: Path, work: Path
) -> None:
    run = make_run(work, "replayed", judge="{engine: replay, answers: lenient.jsonl}")
    there = sensitivity(run, only=["w_ack", "corrections"], out=work / "replayed-out")
    rescored, _ = rescore(run, ["scoring.w_ack=0.3"], work / "replayed-scored")
    assert same(at(there, "w_ack", "0.3"), metrics(rescored))
    split = [r for r in there.points.to_pylist() if r["point"] == "crossing_without_words_split"]
    assert sum(r["n_missing"] for r in split) > 0, "other texts have no verdict in the file"
    done = omnijudge("sensitivity", run, "--ask", cwd=work)
    assert done.returncode == 2
    assert "replay" in done.stderr


def test_output_for_people(lexical: Path, work: Path) -> None:
    done = omnijudge("sensitivity", lexical, "--sweep", "w_ack", cwd=work)
    assert done.returncode == 0, done.stderr
    assert "w_ack: IA-QTF1, All" in done.stdout
    assert "0.2*" in done.stdout
    assert "change places between" in done.stdout
    folder = lexical / "sensitivity"
    picture = folder / "ia_qtf1-all.svg"
    assert picture.read_text(encoding="utf-8").count("<svg") == 1
    first = picture.read_bytes()
    assert omnijudge("sensitivity", lexical, "--sweep", "w_ack", cwd=work).returncode == 0
    assert picture.read_bytes() == first


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda run: sensitivity(run, only=["weights"]), "there is no such sweep"),
        (lambda run: sensitivity(run, metric="nothing"), "--metric nothing"),
    ],
)
def test_wrong_names(lexical: Path, call: Callable[[Path], Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        call(lexical)


def test_a_response_the_file_is_silent_about_is_no_failure(tmp_path: Path) -> None:
    first = make_run(tmp_path, "first", benchmark="omni_interactscope")
    write_rows(tmp_path / "answers.jsonl", replay_rows(first))
    run = make_run(
        tmp_path, "again", benchmark="omni_interactscope",
        judge="{engine: replay, answers: answers.jsonl}",
    )  # fmt: skip
    there = sensitivity(run, only=["tolerance"])
    assert same(at(there, "tolerance", "2"), metrics(first))
    lacking = [r for r in there.points.to_pylist() if r["point"] == "5" and r["n_missing"]]
    assert lacking
    assert all(r["value"] is None for r in lacking)
