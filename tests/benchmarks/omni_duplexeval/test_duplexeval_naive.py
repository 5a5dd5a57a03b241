"""Properties: the package against the slow twin on made-up responses and answers."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
from benchmarks.omni_duplexeval.duplex_run import ask, verdict_table
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import duplexeval as naive

from omnijudge.benchmarks.base import Partition
from omnijudge.benchmarks.omni_duplexeval import answers, benchmark, segments, windows
from omnijudge.benchmarks.omni_duplexeval.options import Options
from omnijudge.benchmarks.omni_duplexeval.scoring import SentenceVerdicts, temporal_score

times = st.one_of(
    st.integers(-3, 20),
    st.floats(-3, 20).map(lambda x: round(x, 2)),
    st.sampled_from(["2.5", " 7 "]),
)
odd = st.one_of(times, st.none(), st.booleans(), st.sampled_from(["soon", "", "nan"]), st.just([1]))
texts = st.one_of(
    st.sampled_from(["A bell.", " 灯亮了。 ", "", "  ", "Go on."]), st.none(), st.just(5)
)
segment = st.one_of(
    st.dictionaries(st.sampled_from(["sentence", "text", "content"]), texts, max_size=3).flatmap(
        lambda said: st.dictionaries(
            st.sampled_from(["start", "end", "current_time", "time"]), odd, max_size=4
        ).map(lambda when: {**said, **when})
    ),
    st.sampled_from(["bare", 3, None]),
)
response = st.one_of(
    st.lists(segment, max_size=5),
    st.dictionaries(
        st.sampled_from(["sentences", "chunks", "other"]), st.lists(segment, max_size=4), max_size=2
    ),
    st.sampled_from(["text", None, 4]),
)


@given(response)
def test_readings(data: Any) -> None:
    found = segments.read_segments(data)
    wanted, rejected = naive.read_paper(data)
    told = None
    if found.segments is not None:
        told = [
            {"text": s.text, "start": s.start, "end": s.end, "time": s.event_time}
            for s in found.segments
        ]
    assert (told, found.rejected) == (wanted, rejected)
    for mine, slow, names in (
        (segments.read_published_description, naive.read_published_rtd, ("text", "start", "end")),
        (segments.read_published_reminder, naive.read_published_pr, ("text", "time")),
    ):
        try:
            expected: Any = slow(data)
        except naive.SampleFailed:
            expected = None
        try:
            read = mine(data)
            got: Any = [
                dict(
                    zip(
                        names,
                        (s.text, s.start if len(names) == 3 else s.event_time, s.end),
                        strict=False,
                    )
                )
                for s in read
            ]
        except segments.UnreadableResponse:
            got = None
        assert repr(got) == repr(expected)  # NaN is equal to itself here


moments = st.floats(0, 30).map(lambda x: round(x, 3))


@given(moments, moments, moments, st.lists(st.floats(-4, 2), min_size=1, max_size=5))
def test_windows(start: float, length: float, duration: float, shifts: list[float]) -> None:
    found = windows.candidate_windows(start, start + length, duration, shifts)
    assert [(w.shift, w.start, w.end) for w in found] == naive.candidate_windows(
        start, start + length, duration, shifts
    )
    single = windows.published_window(start, start + length, duration)
    wanted = naive.published_window(start, start + length, duration)
    assert (None if single is None else (single.start, single.end)) == wanted
    for w in found:
        shown = windows.frame_times(w.start, w.end)
        assert shown == naive.frame_times(w.start, w.end)
        assert all(w.start <= t <= w.end for t in shown)
        thinned = windows.thin_out(shown, 4)
        assert len(thinned) == min(4, len(shown))
        assert set(thinned) <= set(shown)


value = st.one_of(
    st.sampled_from(["2", "2.5", "-1", "7", "true", "null", '"1"', '"x"', "NaN", "1e400", "[1]"]),
    st.floats(-1, 4).map(lambda x: f"{x:.3f}"),
)
pieces = st.one_of(
    st.tuples(
        st.sampled_from(sorted(naive.PATTERNS)),
        value,
        st.sampled_from(["}", ",}", "", ', "n": "}{"}']),
    ).map(lambda p: f'{{"{p[0]}": {p[1]}{p[2]}'),
    st.sampled_from(
        ["{}", "text ", '{"a": {"b": 1}}', '"is_relevant": 1', '{"reasoning": "好"', '"', "\\", "}"]
    ),
)
raw_answers = st.lists(pieces, max_size=4).map("".join)


@given(raw_answers)
def test_parsers(raw: str) -> None:
    for field in naive.PATTERNS:
        assert repr(answers.parse_strict(raw, field)) == repr(naive.parse_strict(raw, field))
        found = answers.parse_published(raw, (field,))
        assert repr(found) == repr(naive.parse_published(raw, (field,)))


@given(raw_answers)
def test_no_answer_of_a_judge_breaks_the_parser(raw: str) -> None:
    for stage, fields in answers.FIELDS.items():
        strict = benchmark.parse(stage, raw, "strict")
        assert strict.status in ("ok", "repaired", "invalid")
        assert (strict.status == "invalid") == (strict.fields == {})
        assert strict.reason if strict.status != "ok" else strict.reason is None
        lenient = benchmark.parse(stage, raw, "published")
        assert lenient.status in ("ok", "repaired")
        assert set(fields) <= set(lenient.fields)
        # The published parser takes a brace inside of a string for a bracket.
        if strict.status == "ok" and '"}{"' not in raw:
            assert {f: strict.fields[f] for f in fields} == {f: lenient.fields[f] for f in fields}


verdicts = st.lists(
    st.tuples(
        st.sampled_from([0, 1, None]),
        st.lists(st.sampled_from([0, 1, 2, 3, None]), max_size=4).map(tuple),
    ),
    max_size=6,
)


@given(verdicts)
def test_the_paper_s_identity_without_errors(
    told: list[tuple[int | None, tuple[Any, ...]]],
) -> None:
    """With lambda 1 and no failure an irrelevant sentence acts as a zero (rule 2)."""
    sentences = [SentenceVerdicts(r, w if r == 1 else ()) for r, w in told]
    if any(s.relevant is None or (s.relevant == 1 and s.score is None) for s in sentences):
        return
    found = temporal_score(sentences)
    scores = [s.score or 0 for s in sentences]
    wanted = sum(scores) / len(scores) if scores else 0.0
    assert found.value is not None
    assert math.isclose(found.value, wanted, abs_tol=1e-12)
    assert found.failed == 0


attempt = st.one_of(
    st.sampled_from(
        [
            (
                "text",
                '{"is_relevant": 1, "temporal_score": 2, "content_score": 1.5, "success_score": 1}',
            ),
            (
                "text",
                '{"is_relevant": 0, "temporal_score": 0, "content_score": 0, "success_score": 0}',
            ),
            (
                "text",
                '{"is_relevant": 1, "temporal_score": 3, "content_score": 3, "success_score": 1}',
            ),
            ("text", "no idea"),
            ("error", "overloaded"),
            ("body", {"choices": []}),
            ("body", {"error": None, "choices": [{"message": {"content": '{"is_relevant": 1}'}}]}),
        ]
    )
)
scripts = st.lists(st.lists(attempt, min_size=1, max_size=3), min_size=1, max_size=7)
REPLAY = {"text": "raw", "body": "body", "error": "error"}


@settings(max_examples=60, deadline=None)
@given(response, scripts, st.lists(st.sampled_from([0.0, 4.0, 7.5, 12.0]), max_size=2, unique=True))
def test_whole_samples(data: Any, script: list[list[Any]], events: list[float]) -> None:
    """A description and a reminder, scored through the benchmark and by the twin."""

    def attempts(key: str) -> list[Any]:
        return script[sum(map(ord, key)) % len(script)]

    options = Options()
    read = segments.read_segments(data)
    for scene in ("rtd", "pr"):
        part = partition(scene, read.segments or (), events, options)
        stages = part.stages.to_pylist()
        told: list[dict[str, Any]] = [{} for _ in stages]
        while len(rows := benchmark.pending(part, options)):
            for i in rows.tolist():
                stage = stages[i]
                key = stage["stage"]
                if key not in ("content", "full"):
                    key += f"/{stage['unit_id']}"
                if stage["item"] is not None:
                    key += f"/{stage['item']}"
                said = attempts(key)

                def reply(_: Any, n: int, said: list[Any] = said) -> dict[str, Any]:
                    if n > len(said):
                        return {"error": "missing"}
                    return {REPLAY[said[n - 1][0]]: said[n - 1][1]}

                told[i] = ask(stage, reply, 3, "strict")
            part = Partition(
                part.system, part.units, part.outputs, part.chunks, part.stages, verdict_table(told)
            )
        scores = benchmark.score(part, options).to_pylist()
        (sample,) = (r for r in scores if r["unit_kind"] == "sample")
        if scene == "rtd":
            wanted = naive.description(data, 15.0, attempts)
            assert (sample["temporal"], sample["content"], sample["overall"]) == (
                wanted["temporal"],
                wanted["content"],
                wanted["overall"],
            )
            own = [(r["relevant"], r["score"]) for r in scores if r["unit_kind"] == "sentence"]
            assert own == wanted["sentences"]
        else:
            assert (
                sample["success"],
                sample["outcome"],
                sample["no_answer_detail"],
            ) == naive.reminder(data, events, attempts)


def partition(scene: str, said: Any, events: list[float], options: Options) -> Partition:
    base = {
        "sample_id": "s", "video_id": "s", "scene": scene, "question_text": "q",
        "references": ["r"],
        "video_duration": 15.0, "window_evidence": "unknown", "content_evidence": "unknown",
        "split": "RTD_OCR" if scene == "rtd" else "PR_event_reminder",
    }  # fmt: skip
    rows = [{**base, "unit_id": "sample", "unit_kind": "sample"}]
    if scene == "pr":
        timed = [(str(n), t) for n, t in enumerate(events, 1)] or [("full", None)]
        rows = [
            *({**base, "unit_id": u, "unit_kind": "event", "event_time": t} for u, t in timed),
            *rows,
        ]
    units = pa.Table.from_pylist(
        [{n: r.get(n) for n in benchmark.unit_schema.names} for r in rows],
        schema=benchmark.unit_schema,
    )
    from omnijudge import tables

    outputs = pa.Table.from_pylist(
        [{"system": "x", "sample_id": "s", "state": "ok", "file": None, "detail": None}],
        schema=tables.OUTPUTS,
    )
    chunks = pa.Table.from_pylist(
        [
            {
                "system": "x", "sample_id": "s", "chunk_id": i, "start": c.start, "end": c.end,
                "text": c.text, "words": [], "unit_id": None, "event_time": c.event_time,
            }
            for i, c in enumerate(said)
        ],
        schema=benchmark.chunk_schema,
    )  # fmt: skip
    part = Partition("x", units, outputs, chunks, benchmark.stage_schema.empty_table())
    matched, stages = benchmark.match(part, options)
    return Partition("x", units, outputs, matched, stages, verdict_table([{}] * stages.num_rows))


def test_the_twin_knows_the_golden_data() -> None:
    """So that the twin itself is no invention: a few golden windows and answers."""
    strict = json.loads(
        (Path(__file__).parents[2] / "golden/omni_duplexeval/expected/unit_strict.json").read_text(
            "utf-8"
        )
    )
    for case in strict["candidate_windows"]:
        found = naive.candidate_windows(case["start"], case["end"], case["duration"])
        assert [{"shift_index": i, "start": a, "end": b} for i, a, b in found] == case["windows"]
    for case in strict["segments"]:
        found_segments, rejected = naive.read_paper(case["raw"])
        assert rejected == case["rejected"]
        assert (found_segments is None) == (case["segments"] is None)
