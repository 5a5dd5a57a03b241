"""Questions out as a batch file, answers back by fingerprint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from fakes.commands import call, manifest, rows, table_bytes
from requirements import need

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "omnijudge" / "sample_data" / "omniinteract"

CONFIG: dict[str, Any] = {
    "benchmark": "omniinteract",
    "data": {"root": str(SAMPLE / "data")},
    "systems": {n: str(SAMPLE / "outputs" / n) for n in ("attentive", "chatty")},
    "judge": {"engine": "openai", "model": "small-2025-01-01", "attempts": 2},
    "statistics": {"replicates": 100},
    "limits": {"max_invalid": 1.0, "max_unscored": 100_000},
    "store": "store",
    "output": "run",
}


def config(folder: Path, **changes: Any) -> Path:
    (folder / "run.yaml").write_text(json.dumps({**CONFIG, **changes}), encoding="utf-8")
    return folder


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def answer(line: dict[str, Any], content: str | None = None, **message: Any) -> dict[str, Any]:
    """A line of a batch's output."""
    wanted = line["body"]["response_format"]["json_schema"]["schema"]["required"]
    values = {"flag": "neutral", "score": 0.75, "trigger_phrase": "", "spoiler": False,
              "hallucination": False, "rationale": "it fits"}  # fmt: skip
    text = json.dumps({n: values[n] for n in wanted}) if content is None else content
    finish = message.pop("finish_reason", "stop")
    body = {
        "id": "chatcmpl-7",
        "object": "chat.completion",
        "created": 1,
        "model": "small-2025-01-01-served",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, **message},
                "finish_reason": finish,
            }
        ],
        "usage": {
            "prompt_tokens": 300,
            "completion_tokens": 20,
            "total_tokens": 320,
            "prompt_tokens_details": {"cached_tokens": 128},
        },
    }
    response = {"status_code": 200, "request_id": "r", "body": body}
    return {
        "id": "batch_req_1",
        "custom_id": line["custom_id"],
        "response": response,
        "error": None,
    }


def failed(line: dict[str, Any]) -> dict[str, Any]:
    error = {"code": "batch_expired", "message": "This request could not be executed in time."}
    return {
        "id": "batch_req_2",
        "custom_id": line["custom_id"],
        "response": None,
        "error": error,
    }


def refused(line: dict[str, Any]) -> dict[str, Any]:
    body = {"error": {"message": "context length exceeded", "code": "too_long"}}
    return {
        "id": "batch_req_3",
        "custom_id": line["custom_id"],
        "response": {"status_code": 400, "request_id": "r", "body": body},
        "error": None,
    }


def write(path: Path, lines: Iterable[Any]) -> Path:
    text = "".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines)
    path.write_text(text, encoding="utf-8")
    return path


def test_out_and_back_is_a_run_without_a_server(tmp_path: Path) -> None:
    folder = config(tmp_path)
    output, _ = call(folder, "batch", "export", "run.yaml", "--out", "out.jsonl")
    lines = read(folder / "out.jsonl")
    assert f"{len(lines)} open questions for model small-2025-01-01" in output
    first = lines[0]
    assert set(first) == {"custom_id", "method", "url", "body"}
    assert (first["method"], first["url"]) == ("POST", "/v1/chat/completions")
    assert {"model", "messages", "temperature", "max_tokens", "seed"} <= first["body"].keys()
    assert {line["body"]["model"] for line in lines} == {"small-2025-01-01"}
    assert len({line["custom_id"] for line in lines}) == len(lines)
    assert all(len(line["custom_id"]) == 32 for line in lines)

    write(folder / "back.jsonl", [answer(line) for line in reversed(lines)])
    output, _ = call(folder, "batch", "import", "run.yaml", "back.jsonl")
    assert output.strip() == (
        f"{len(lines)} lines: {len(lines)} answers stored, 0 known already, 0 failed, 0 unknown, "
        "0 unreadable"
    )
    # No server and no key: everything is there.
    call(folder, "run", "run.yaml")
    found = manifest(folder / "run")
    assert found["counts"]["asked"] == 0
    asked = {q["fingerprint"] for q in rows(folder / "run", "questions")}
    assert asked == {line["custom_id"] for line in lines}
    judgements = rows(folder / "run", "judgements")
    assert {j["status"] for j in judgements} == {"ok"}
    assert {j["model"] for j in judgements} == {"small-2025-01-01-served"}
    assert {(j["prompt_tokens"], j["cached_tokens"], j["output_tokens"]) for j in judgements} == {
        (300, 128, 20)
    }
    assert {r["s_core"] for r in rows(folder / "run", "scores")} <= {None, 0.75}

    # Again, from the finished run: nothing is open, and the same lines are known.
    output, _ = call(folder, "batch", "export", "run", "--out", "none.jsonl")
    assert "nothing is open" in output
    assert not (folder / "none.jsonl").exists()
    output, _ = call(folder, "batch", "import", "run", "back.jsonl")
    assert f"0 answers stored, {len(lines)} known already" in output


def test_the_same_question_goes_to_a_server_and_into_a_batch(tmp_path: Path) -> None:
    """Fingerprints and bodies are those of the engine: half by batch, half by asking."""
    from fakes.http_judge import HttpJudge

    folder = config(tmp_path)
    with HttpJudge() as server:
        judge = {**CONFIG["judge"], "base_url": server.url}
        config(folder, judge=judge)
        server.answer = lambda body: answer({"custom_id": "", "body": body})["response"]["body"][
            "choices"
        ][0]["message"]["content"]
        call(folder, "batch", "export", "run.yaml", "--out", "out.jsonl")
        lines = read(folder / "out.jsonl")
        half = lines[::2]
        write(folder / "back.jsonl", [answer(line) for line in half])
        call(folder, "batch", "import", "run.yaml", "back.jsonl")
        call(folder, "run", "run.yaml")
        assert manifest(folder / "run")["counts"]["asked"] == len(lines) - len(half)
        sent = {json.dumps(b["messages"], ensure_ascii=False): b for b in server.bodies}
        rest = [line["body"] for line in lines[1::2]]
        assert len(sent) == len(rest)
        for body in rest:
            assert sent[json.dumps(body["messages"], ensure_ascii=False)] == body
    call(folder, "run", "run.yaml", "-o", "output=again")
    assert table_bytes(folder / "again", ("scores",)) == table_bytes(folder / "run", ("scores",))


def test_what_goes_wrong_is_skipped_counted_and_named(tmp_path: Path) -> None:
    folder = config(tmp_path)
    call(folder, "batch", "export", "run.yaml", "--out", "out.jsonl")
    lines = read(folder / "out.jsonl")
    stranger = {**lines[0], "custom_id": "request-17"}
    other = {**lines[0], "custom_id": "f" * 32}
    back = write(
        folder / "back.jsonl",
        [
            answer(lines[0], "It is good."),
            answer(lines[1], '{"score": 0.', finish_reason="length"),
            answer(lines[2], "", refusal="I would rather not."),
            answer(lines[3], "", finish_reason="content_filter"),
            answer(lines[4], "", reasoning_content="hm"),
            failed(lines[5]),
            refused(lines[6]),
            answer(stranger),
            answer(other),
            "not json",
            "[]",
            {"custom_id": lines[7]["custom_id"]},
            answer(lines[8]),
            answer(lines[8]),
            "",
            *map(answer, lines[9:]),
        ],
    )
    output, errors = call(folder, "batch", "import", "run.yaml", back.name, code=3)
    stored = len(lines) - 3
    assert f"{stored} answers stored, 1 known already, 2 failed, 2 unknown, 3 unreadable" in output
    assert "failed, to be asked again: 1: This request could not be executed in time." in errors
    assert "the server answers 400: context length exceeded" in errors
    assert f"request-17, {'f' * 32}" in errors
    for number in (10, 11, 12):
        assert f"back.jsonl: line {number}: " in errors

    # What failed, and what cannot be used, is open: attempt 1 anew, attempt 2 with a correction.
    call(folder, "batch", "export", "run.yaml", "--out", "second.jsonl")
    second = {line["custom_id"]: line for line in read(folder / "second.jsonl")}
    expected = {lines[i]["custom_id"] for i in (5, 6, 7)}
    expected |= {f"{lines[i]['custom_id']}-a2-r0" for i in range(5)}
    assert second.keys() == expected
    corrected = second[f"{lines[0]['custom_id']}-a2-r0"]["body"]["messages"]
    assert corrected[-1]["content"] != lines[0]["body"]["messages"][-1]["content"]
    write(folder / "back2.jsonl", map(answer, second.values()))
    call(folder, "batch", "import", "run.yaml", "back2.jsonl")
    call(folder, "run", "run.yaml")
    found = manifest(folder / "run")
    assert found["counts"]["asked"] == 0
    assert found["counts"]["unscored_units"] == 0
    first = {j["fingerprint"]: j for j in rows(folder / "run", "judgements") if j["attempt"] == 1}
    reasons = [str(first[lines[i]["custom_id"]]["reason"]).partition(":")[0] for i in range(5)]
    assert reasons == ["no_object", "truncated", "refused", "withheld", "reasoning_only"]


def test_repeats_and_parts(tmp_path: Path) -> None:
    judge = {**CONFIG["judge"], "repeats": 2}
    folder = config(tmp_path, judge=judge, systems={"attentive": CONFIG["systems"]["attentive"]})
    words = ("--out", "part.jsonl", "--max-lines", "50", "--limit", "9")
    output, _ = call(folder, "batch", "export", "run.yaml", *words)
    files = [Path(line) for line in output.splitlines() if line.endswith(".jsonl")]
    assert [f.name for f in files[:2]] == ["part.jsonl", "part-2.jsonl"]
    parts = [read(folder / f) for f in files]
    assert {len(p) for p in parts[:-1]} == {50}
    lines = [line for part in parts for line in part]
    plain = {line["custom_id"] for line in lines if len(line["custom_id"]) == 32}
    assert {line["custom_id"] for line in lines} == plain | {f"{p}-a1-r1" for p in plain}
    assert len({line["body"]["seed"] for line in lines}) == len(lines)
    write(folder / "back.jsonl", map(answer, lines))
    call(folder, "batch", "import", "run.yaml", "back.jsonl", "--limit", "9")
    call(folder, "run", "run.yaml", "--limit", "9")
    assert manifest(folder / "run")["counts"]["asked"] == 0


def test_one_judge_of_a_panel(tmp_path: Path) -> None:
    panel = [{**CONFIG["judge"], "name": n, "model": f"{n}-2025-01-01"} for n in ("one", "two")]
    folder = config(tmp_path, judge={"panel": panel})
    _, errors = call(folder, "batch", "export", "run.yaml", "--out", "x.jsonl", code=2)
    assert "--judge" in errors
    assert "one, two" in errors
    call(folder, "batch", "export", "run.yaml", "--out", "x.jsonl", "--judge", "two")
    lines = read(folder / "x.jsonl")
    assert {line["body"]["model"] for line in lines} == {"two-2025-01-01"}
    _, errors = call(
        folder, "batch", "export", "run.yaml", "--out", "x.jsonl", "--judge", "six", code=2
    )
    assert "there is no such judge" in errors
    write(folder / "back.jsonl", map(answer, lines))
    call(folder, "batch", "import", "run.yaml", "back.jsonl")


def test_later_rounds_are_exported_when_the_first_is_back(tmp_path: Path) -> None:
    sample = ROOT / "omnijudge" / "sample_data" / "omni_duplexeval"
    folder = config(
        tmp_path,
        benchmark="omni_duplexeval",
        data={"annotations": str(sample / "annotations.jsonl")},
        systems={"attentive": str(sample / "outputs" / "attentive")},
        scoring={"evidence": "captions"},
        judge=CONFIG["judge"],
    )
    values = {"is_relevant": 1, "temporal_score": 2, "content_score": 1.5, "success_score": 1}

    def said(line: dict[str, Any]) -> dict[str, Any]:
        wanted = line["body"]["response_format"]["json_schema"]["schema"]["required"]
        return answer(
            {**line, "body": {**line["body"]}},
            json.dumps({n: values.get(n, "so") for n in wanted}),
        )

    stages = []
    for turn in ("one", "two"):
        call(folder, "batch", "export", "run.yaml", "--out", f"{turn}.jsonl")
        lines = read(folder / f"{turn}.jsonl")
        names = {line["body"]["response_format"]["json_schema"]["name"] for line in lines}
        stages.append(names)
        write(folder / f"{turn}-back.jsonl", map(said, lines))
        call(folder, "batch", "import", "run.yaml", f"{turn}-back.jsonl")
    assert "window" not in stages[0]
    assert stages[1] == {"window"}
    call(folder, "run", "run.yaml")
    assert manifest(folder / "run")["counts"]["asked"] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("export", "no.yaml", "--out", "x.jsonl"), "no.yaml"),
        (("import", "run.yaml", "no.jsonl"), "no.jsonl: cannot be read"),
        (("export", "run.yaml", "--out", "no/x.jsonl"), "no/x.jsonl: cannot be written"),
        (("export", ".", "--out", "x.jsonl"), "holds no finished run"),
    ],
)
def test_wrong_words(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    folder = config(tmp_path)
    _, errors = call(folder, "batch", *words, code=None)
    assert message in errors
    assert "Traceback" not in errors


def run_batch_module() -> str:
    """Where this vLLM has its batch runner."""
    places = ("vllm.entrypoints.launchers.run_batch", "vllm.entrypoints.openai.run_batch")
    return next(p for p in places if find_spec(p) is not None)


@pytest.mark.engine
def test_lines_are_what_vllm_reads(tmp_path: Path) -> None:
    need("engine")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what vLLM's parts deprecate among themselves
        reader = import_module(run_batch_module()).BatchRequestInput
    folder = config(tmp_path, judge={**CONFIG["judge"], "base_url": "http://127.0.0.1:1/v1"})
    call(folder, "batch", "export", "run.yaml", "--out", "out.jsonl")
    for line in (folder / "out.jsonl").read_text(encoding="utf-8").splitlines():
        found = reader.model_validate_json(line)
        assert found.url == "/v1/chat/completions"
        assert found.body.response_format is not None
        assert found.body.chat_template_kwargs == {"enable_thinking": False}


RUN_BATCH = """
import asyncio, sys
from importlib import import_module
module = import_module(sys.argv.pop(1))
asyncio.run(module.main(module.parse_args()))
"""


@pytest.mark.engine
@pytest.mark.slow
def test_vllm_answers_a_batch(tmp_path: Path) -> None:
    """Out, through vLLM's own batch runner with a tiny model, and back."""
    need("engine")
    from omnijudge.judging.engines.vllm_setup import CPU_ENVIRONMENT
    from omnijudge.testing.tiny_model import make_tiny_model

    model = make_tiny_model(tmp_path / "model")
    judge = {
        "engine": "vllm", "model": str(model), "rationale": "none",
        "sampling": {"max_tokens": 200}, "engine_options": {"dtype": "float32"},
    }  # fmt: skip
    folder = config(tmp_path, judge=judge)
    call(folder, "batch", "export", "run.yaml", "--out", "in.jsonl", "--limit", "2")
    structured = {"backend": "guidance", "disable_any_whitespace": True}
    words = [
        "-i", "in.jsonl", "-o", "out.jsonl", "--model", str(model), "--dtype", "float32",
        "--max-model-len", "2048", "--enforce-eager",
        "--structured-outputs-config", json.dumps(structured),
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", RUN_BATCH, run_batch_module(), *words],
        cwd=folder,
        env={**os.environ, **CPU_ENVIRONMENT, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    call(folder, "batch", "import", "run.yaml", "out.jsonl", "--limit", "2")
    call(folder, "run", "run.yaml", "--limit", "2")
    assert manifest(folder / "run")["counts"]["asked"] == 0
    judgements = rows(folder / "run", "judgements")
    assert judgements
    assert {j["status"] for j in judgements} == {"ok"}
    assert all(j["prompt_tokens"] > 100 for j in judgements)
