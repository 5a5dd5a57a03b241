"""What was lost is counted, named, and never left out."""

from __future__ import annotations

from fakes.runs import manifest

from omnijudge.report.losses import answers_by_stage, answers_by_status, findings, losses, stopped

ANSWERS = {
    "a": {"core": {"ok": 50, "invalid": 2}, "early": {"ok": 7, "repaired": 1}},
    "b": {"core": {"ok": 40, "error": 3, "not asked": 4}},
}


def problem(code: str, level: str = "warning", system: str | None = "a", **others):
    found = {
        "code": code, "level": level, "file": "/home/someone/out/a/v1.json", "place": "chunk 3",
        "message": "time is no number", "sample_id": "v1", "system": system, "count": 1,
    }  # fmt: skip
    return {**found, **others}


def test_answers_are_summed_over_systems_and_stages() -> None:
    found = manifest(counts={"answers": ANSWERS})
    assert answers_by_status(found) == {
        "ok": 97, "repaired": 1, "invalid": 2, "error": 3, "not asked": 4,
    }  # fmt: skip
    assert answers_by_stage(found)["core"] == {
        "ok": 90, "repaired": 0, "invalid": 2, "error": 3, "not asked": 4,
    }  # fmt: skip


def test_every_kind_of_loss_is_listed() -> None:
    counts = {
        "answers": ANSWERS, "samples_listed": 20, "samples_unusable": 3, "samples": 17,
        "systems": 2,
        "missing_outputs": {"a": 0, "b": 5}, "unscored_units": 6,
    }  # fmt: skip
    found = {x.what: (x.count, x.of, x.meaning) for x in losses(manifest(counts=counts))}
    assert found["samples with unusable annotations"][:2] == (3, 20)
    assert found["outputs missing or unreadable"] == (5, 34, "scored as silence")
    assert found["answers invalid after all attempts"][:2] == (2, 107)
    assert found["questions without an answer (errors)"][:2] == (3, 107)
    assert found["questions not asked"][:2] == (4, 107)
    assert found["answers repaired"][:2] == (1, 107)
    assert found["units unscored"][0] == 6


def test_published_leaves_missing_outputs_out() -> None:
    found = manifest(
        counts={"missing_outputs": {"b": 5}}, scoring={"profile": "published", "corrections": []}
    )
    treated = {x.what: x.meaning for x in losses(found)}
    assert treated["outputs missing or unreadable"] == "left out of the denominators"


def test_findings_are_grouped_by_code_errors_first() -> None:
    problems = [
        problem("dropped_bad_time", count=4),
        problem("dropped_bad_time", system="b"),
        problem("swapped", system=None),
        problem("bad_json", level="error"),
        problem("long_gap", level="info"),
    ]
    found = findings(manifest(problems=problems))
    assert [(f.code, f.level, f.count, f.systems) for f in found] == [
        ("bad_json", "error", 1, ("a",)),
        ("dropped_bad_time", "warning", 5, ("a", "b")),
        ("swapped", "warning", 1, ()),
    ]
    assert found[0].example == "v1.json: chunk 3: time is no number"


def test_codes_beyond_the_kept_problems_are_still_counted() -> None:
    found = findings(manifest(counts={"warnings": {"late": 12}, "problems": {"bad": 2}}))
    assert [(f.code, f.level, f.count) for f in found] == [
        ("bad", "error", 2),
        ("late", "warning", 12),
    ]


def test_why_a_run_is_not_whole() -> None:
    assert stopped(manifest()) is None
    assert stopped(manifest(state="stopped", stopped="deadline 07:45")) == "deadline 07:45"
    assert stopped(manifest(state="running")) == "the run is running"
