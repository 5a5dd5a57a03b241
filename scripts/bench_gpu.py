"""Measures how fast a judge answers on this machine's GPU, against vLLM alone on the same prompts.

    python scripts/bench_gpu.py --model FOLDER_OR_HUB_ID
    python scripts/bench_gpu.py --architecture qwen3-14b      # its shape, random weights
    python scripts/bench_gpu.py --architecture qwen3-14b --dry-run    # no GPU, no engine

Prints one JSON object to standard output:

* ``verdicts_per_second`` through the judge's engine, per batch size;
* ``raw``: the same prompts handed to vLLM at once, already tokenised, with the same answers asked
  for; ``share_of_raw`` is our speed over its speed;
* ``prefix_cache_share``: prompt tokens that came from the cache;
* ``structured_output_cost``: time that following the schema takes, over free text of equal length.

With ``--architecture`` the weights are random and the answers mean nothing, but the arithmetic per
token is that of the real model.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from omnijudge.config import JudgeConfig
from omnijudge.judging.types import Request


@dataclass(frozen=True)
class Architecture:
    """The shape of a decoder, as its model card states it."""

    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    positions: int = 40960


QWEN3_VOCABULARY = 151_936

ARCHITECTURES = {
    "qwen3-8b": Architecture(4096, 12288, 36, 32, 8, 128, QWEN3_VOCABULARY),
    "qwen3-14b": Architecture(5120, 17408, 40, 40, 8, 128, QWEN3_VOCABULARY),
    "qwen3-32b": Architecture(5120, 25600, 64, 64, 8, 128, QWEN3_VOCABULARY),
    "tiny": Architecture(128, 256, 2, 4, 2, 32, 1024, 4096),
}

SCHEMA = {
    "type": "object",
    "properties": {
        "reason": {"type": "string", "maxLength": 160},
        "hallucination": {"type": "boolean"},
        "score": {"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.01},
    },
    "required": ["reason", "hallucination", "score"],
    "additionalProperties": False,
}
"""A verdict as the benchmarks ask for: a short reason and two fields."""


@dataclass(frozen=True)
class Workload:
    """How the prompts share their beginnings: all the rubric, one unit's systems the unit."""

    units: int
    systems: int
    rubric_words: int
    unit_words: int
    answer_words: int

    @property
    def prompts(self) -> int:
        return self.units * self.systems


def requests(load: Workload, seed: int = 0) -> list[Request]:
    """The questions, all systems of a unit together, as a run asks them."""
    rng = random.Random(seed)
    rubric = "You judge what an assistant said while a video was running. " + _words(
        rng, load.rubric_words
    )
    found: list[Request] = []
    for unit in range(load.units):
        reference = f"Unit {unit}. What should have been said: {_words(rng, load.unit_words)}"
        for system in range(load.systems):
            said = f"What was said: {_words(rng, load.answer_words)} ({system})"
            messages = [
                {"role": "system", "content": rubric},
                {"role": "user", "content": f"{reference}\n{said}\nAnswer as JSON."},
            ]
            number = (unit * load.systems + system).to_bytes(16, "big")
            found.append(Request(number, 1, 0, "core", messages, SCHEMA))
    return found


def _words(rng: random.Random, count: int) -> str:
    from omnijudge.testing.tiny_model import SENTENCES

    vocabulary = " ".join(SENTENCES[:6]).replace(".", "").split()
    return " ".join(rng.choice(vocabulary) for _ in range(count))


def write_architecture(folder: Path, shape: Architecture) -> None:
    """A model folder with configuration and tokenizer, for weights that are made up on loading."""
    from transformers import Qwen3Config

    from omnijudge.testing.tiny_model import make_tokenizer

    tokenizer = make_tokenizer()
    tokenizer.save_pretrained(folder)
    config = Qwen3Config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden_size,
        intermediate_size=shape.intermediate_size,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_size,
        max_position_embeddings=shape.positions,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        dtype="bfloat16",
        architectures=["Qwen3ForCausalLM"],
    )
    config.save_pretrained(folder)
    _fill_vocabulary(folder / "tokenizer.json", shape.vocabulary)


def _fill_vocabulary(path: Path, size: int) -> None:
    """Adds made-up words up to ``size`` tokens: a grammar's cost grows with the vocabulary."""
    content = json.loads(path.read_text(encoding="utf-8"))
    vocabulary = content["model"]["vocab"]
    taken = set(vocabulary.values()) | {t["id"] for t in content["added_tokens"]}
    letters = "abcdefghijklmnopqrstuvwxyz"
    for number in range(size):
        if number not in taken:
            word, rest = "zq", number
            for _ in range(4):
                rest, letter = divmod(rest, len(letters))
                word += letters[letter]
            vocabulary[word] = number
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


@contextmanager
def model_folder(options: argparse.Namespace) -> Iterator[str]:
    """The model to measure: as named, or the shape of an architecture in a temporary folder."""
    if options.model:
        yield options.model
        return
    with tempfile.TemporaryDirectory(prefix="omnijudge-bench-") as folder:
        write_architecture(Path(folder), ARCHITECTURES[options.architecture])
        yield folder


def judge_config(model: str, options: argparse.Namespace) -> JudgeConfig:
    """The judge that is measured."""
    engine_options: dict[str, Any] = {"max_model_len": options.max_model_len}
    if options.architecture:
        engine_options["load_format"] = "dummy"
    engine_options |= json.loads(options.engine_options)
    return JudgeConfig(
        engine="vllm",
        model=model,
        engine_options=engine_options,
        sampling={"max_tokens": options.max_tokens},
    )


def measure(
    judge: JudgeConfig, load: Workload, batch_sizes: Sequence[int], repeats: int
) -> dict[str, Any]:
    """Runs the workload through our engine and through vLLM alone; of repeats the fastest."""
    from omnijudge.judging.engines.vllm import VllmEngine

    start = time.perf_counter()
    engine = VllmEngine(judge, "omniinteract")
    figures: dict[str, Any] = {"start_seconds": round(time.perf_counter() - start, 1)}
    batch = requests(load)
    try:
        engine.answer(batch[: min(len(batch), 2 * load.systems)])  # kernels get compiled here
        raws, frees, ours = [], [], []
        for _ in range(repeats):  # in turn, so that a slow minute of the machine hits all
            raws.append(_raw(engine, batch))
            frees.append(_raw(engine, batch, raws[0].lengths))
            ours.append([_judged(engine, batch, size) for size in batch_sizes])
        raw, free = min(raws, key=_seconds), min(frees, key=_seconds)
        figures["raw"] = raw.figures()
        figures["raw_free_text"] = free.figures()
        figures["structured_output_cost"] = round(raw.seconds / free.seconds - 1, 4)
        figures["judge"] = []
        for same_size in zip(*ours, strict=True):
            best = min(same_size, key=lambda f: f["seconds"])
            share = round(raw.seconds / best["seconds"], 4)
            figures["judge"].append({**best, "share_of_raw": share})
    finally:
        engine.close()
    return figures


@dataclass(frozen=True)
class Raw:
    """A pass through vLLM alone.

    Attributes:
        seconds: wall time.
        lengths: tokens of each answer.
    """

    seconds: float
    lengths: list[int]

    def figures(self) -> dict[str, Any]:
        return {
            "seconds": round(self.seconds, 3),
            "verdicts_per_second": round(len(self.lengths) / self.seconds, 3),
            "output_tokens": sum(self.lengths),
        }


def _seconds(run: Raw) -> float:
    return run.seconds


def _judged(engine: Any, batch: list[Request], size: int) -> dict[str, Any]:
    engine.llm.reset_prefix_cache()
    before = engine.counters()
    start = time.perf_counter()
    replies = []
    for first in range(0, len(batch), size):
        replies += engine.answer(batch[first : first + size])
    seconds = time.perf_counter() - start
    after = engine.counters()
    used = {k: after[k] - before.get(k, 0.0) for k in after}
    valid = sum(_is_verdict(r.raw) for r in replies)
    return {
        "batch_size": size,
        "seconds": round(seconds, 3),
        "verdicts_per_second": round(len(replies) / seconds, 3),
        "prefix_cache_share": round(
            used["prefix_cache_hits"] / max(used["prefix_cache_queries"], 1), 4
        ),
        "prompt_tokens": sum(r.prompt_tokens for r in replies),
        "output_tokens": sum(r.output_tokens for r in replies),
        "valid_share": round(valid / len(replies), 4),
        "preemptions": used.get("num_preemptions", 0.0),
    }


def _raw(engine: Any, batch: list[Request], lengths: Sequence[int] | None = None) -> Raw:
    """vLLM alone: tokenised prompts, all at once; with ``lengths`` free text of those lengths."""
    prompts = [{"prompt_token_ids": ids} for ids in engine.tokens([r.messages for r in batch])]
    parameters = [engine.parameters(r) for r in batch]
    if lengths is not None:
        for settings, length in zip(parameters, lengths, strict=True):
            settings.structured_outputs = None
            settings.max_tokens = settings.min_tokens = length
            settings.ignore_eos = True
    engine.llm.reset_prefix_cache()
    start = time.perf_counter()
    outputs = engine.llm.generate(prompts, parameters, use_tqdm=False)
    seconds = time.perf_counter() - start
    return Raw(seconds, [len(o.outputs[0].token_ids) for o in outputs])


def _is_verdict(raw: str | None) -> bool:
    try:
        answer = json.loads(raw or "")
    except ValueError:
        return False
    return isinstance(answer, dict) and set(answer) == set(SCHEMA["required"])


def plan(judge: JudgeConfig, load: Workload) -> dict[str, Any]:
    """What would be measured: everything up to the engine, without a GPU."""
    from transformers import AutoTokenizer

    from omnijudge.judging.engines import model_files, vllm_setup

    model = model_files.find_model(str(judge.model), judge.revision, f"judge {judge.name}")
    dummy = judge.engine_options.get("load_format") == "dummy"
    model_files.check_complete(model, f"judge {judge.name}", weights=not dummy)
    tokenizer = AutoTokenizer.from_pretrained(model.location)
    texts = [
        tokenizer.apply_chat_template(r.messages, tokenize=False, add_generation_prompt=True)
        for r in requests(load)
    ]
    lengths = [len(ids) for ids in tokenizer(texts, add_special_tokens=False)["input_ids"]]
    limit = judge.engine_options["max_model_len"]
    return {
        "dry_run": True,
        "gpus": vllm_setup.gpu_count(),
        "vocabulary": len(tokenizer),
        "prompt_tokens": {"mean": round(sum(lengths) / len(lengths)), "most": max(lengths)},
        "too_long": sum(n + judge.sampling.max_tokens > limit for n in lengths),
        "engine_options": dict(judge.engine_options),
    }


def device() -> dict[str, Any]:
    """The device that was measured."""
    from vllm.platforms import current_platform

    try:
        total = current_platform.get_device_total_memory()
    except NotImplementedError:
        total = None
    return {"name": current_platform.get_device_name() or "cpu", "memory_bytes": total}


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Measures a judge's speed on this machine.")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--model", help="folder or hub id")
    which.add_argument("--architecture", choices=sorted(ARCHITECTURES), help="random weights")
    parser.add_argument("--units", type=int, default=64)
    parser.add_argument("--systems", type=int, default=16, help="prompts that share a unit")
    parser.add_argument("--rubric-words", type=int, default=700)
    parser.add_argument("--unit-words", type=int, default=350)
    parser.add_argument("--answer-words", type=int, default=100)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[256, 1024])
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--max-model-len", type=int, default=4096)
    parser.add_argument("--engine-options", default="{}", help="more of them, as JSON")
    parser.add_argument("--dry-run", action="store_true", help="everything up to the engine")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    load = Workload(
        options.units,
        options.systems,
        options.rubric_words,
        options.unit_words,
        options.answer_words,
    )
    from omnijudge.judging.engines import vllm_setup

    report: dict[str, Any] = {
        "model": options.model or options.architecture,
        "random_weights": bool(options.architecture),
        "workload": {**asdict(load), "prompts": load.prompts},
        "versions": vllm_setup.versions(),
    }
    with model_folder(options) as folder:
        judge = judge_config(folder, options)
        if options.dry_run:
            report |= plan(judge, load)
        else:
            report |= measure(judge, load, options.batch_sizes, options.repeats)
            report["device"] = device()
    json.dump(report, sys.stdout, indent=2)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
