"""How many prompt tokens each measure of economy saves, on CaptainCook4D with simulated systems.

    python scripts/simulate_economy.py FOLDER_OF_CAPTAINCOOK4D [--out economy.json]
    python scripts/simulate_economy.py FOLDER --recordings 20 --engine      # and a real engine

Converts the annotations, simulates the systems, finds every question as a run would, and counts its
prompt tokens with the tokenizer of the tiny model. Compared with asking in arrival order (one
system after the other, every question of it) are: asking identical questions once; asking all
systems about one unit together (the order of a run), where the engine keeps a bounded cache of
prompt prefixes in blocks of 16 tokens; several engines, given batches or single questions; and a
store that knows the earlier systems. Prints one JSON object.

``--engine`` asks a slice of the questions of a real vLLM engine on the CPU, in both orders, with
the cache cut to a size that matters, and puts the engine's own counters beside the model's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

BLOCK = 16
TEMPERS = ("punctual", "late", "talkative", "hallucinating", "spilling")
MARK = "\x00"
TURN = "<|im_start|>{}\n{}<|im_end|>\n"
CLOSING = "<|im_start|>assistant\n<think>\n\n</think>\n\n"
ENGINE_QUESTIONS = 300
ENGINE_BLOCK = 32
"""vLLM's attention on a CPU takes multiples of this."""
ENGINE_BLOCKS = 80

Ints = npt.NDArray[np.int64]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path, help="folder with complete_step_annotations.json")
    parser.add_argument("--systems", type=int, default=100, help="a multiple of 5 (default: 100)")
    parser.add_argument("--recordings", type=int, help="only so many, spread over the set")
    parser.add_argument("--added", type=int, default=10, help="systems added the second night")
    parser.add_argument(
        "--cache-tokens", type=int, default=250_000,
        help="tokens a cache holds; default: what a 14B model leaves free on 80 GB",
    )  # fmt: skip
    parser.add_argument("--actors", type=int, default=4)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--engine", action="store_true", help="confirm on a real engine")
    parser.add_argument("--out", type=Path, help="write the JSON there, too")
    args = parser.parse_args()
    if args.systems % len(TEMPERS) or args.systems <= args.added:
        parser.error(f"--systems must be a multiple of {len(TEMPERS)} and more than --added")
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        manifest = build(Path(folder), args.source, args.systems, args.recordings)
        questions = Questions(Path(folder), manifest)
        figures = simulate(questions, args)
        figures["rationale_none"] = without_rationale(questions)
        if args.engine:
            figures["engine"] = confirm(questions, Path(folder))
    figures["seconds"] = round(time.monotonic() - started, 1)
    text = json.dumps(figures, indent=2)
    print(text)
    if args.out:
        args.out.write_text(text + "\n", encoding="utf-8")


def build(folder: Path, source: Path, systems: int, recordings: int | None) -> Path:
    """Converted annotations with transcripts of every system; returns the manifest."""
    command = [sys.executable, "-m", "omnijudge.cli"]
    data = folder / "data"
    words = ["convert", "captaincook4d", str(source), "--out", str(data)]
    subprocess.run([*command, *words], check=True, stdout=sys.stderr)
    listing = next(data.rglob("manifest.jsonl"))
    if recordings:
        lines = listing.read_text(encoding="utf-8").splitlines(keepends=True)
        step = max(len(lines) // recordings, 1)
        listing.write_text("".join(lines[::step][:recordings]), encoding="utf-8")
    words = ["simulate", "--manifest", str(listing), "--out", str(folder / "outputs")]
    words += ["--tempers", ",".join(TEMPERS), "--copies", str(systems // len(TEMPERS))]
    subprocess.run([*command, *words], check=True, stdout=sys.stderr)
    return folder / "outputs" / "manifest.jsonl"


@dataclass(frozen=True)
class Keys:
    """Where each question stands, as numbers: columns to sort by."""

    system: Ints
    arrival: Ints
    sample: Ints
    unit: Ints
    stage: Ints


class Questions:
    """All questions, each as a head (what its unit and stage fix) and a tail (what was said).

    Attributes:
        prompt_of: distinct prompt of every question.
        keys: of every question.
        lengths: tokens of every distinct prompt.
        saved: those of them that a prompt without a rationale does not have.
    """

    def __init__(self, folder: Path, manifest: Path) -> None:
        self.tokenizer = load_tokenizer(folder / "model")
        self.heads: dict[str, int] = {}
        self.bare_heads: list[str] = []
        self.pairs: dict[tuple[int, str], int] = {}
        prompt_of: list[int] = []
        columns: list[list[int]] = [[] for _ in range(5)]
        with ExitStack() as stack:
            self._read(folder, manifest, prompt_of, columns, stack)
        self.prompt_of = np.array(prompt_of, np.int64)
        self.keys = Keys(*(np.array(c, np.int64) for c in columns))
        self._tokenise()

    def _read(
        self,
        folder: Path,
        manifest: Path,
        prompt_of: list[int],
        columns: list[list[int]],
        stack: ExitStack,
    ) -> None:
        from dataclasses import replace

        from omnijudge.asking import stage_keys
        from omnijudge.benchmarks import get_benchmark
        from omnijudge.config import RunConfig
        from omnijudge.ingest import read_annotations, read_outputs
        from omnijudge.judging.prompts import load_pack
        from omnijudge.progress import Progress
        from omnijudge.run_questions import asking_over
        from omnijudge.seats import open_seats, resolve_options

        config = RunConfig.model_validate(
            {
                "benchmark": "omniinteract",
                "data": {"manifest": str(manifest)},
                "output": str(folder / "run"),
            }
        )
        benchmark = get_benchmark(config.benchmark)
        options = resolve_options(benchmark, config.scoring)
        seats = open_seats(benchmark, config, options, [])
        ingest = read_annotations(config, benchmark)
        progress = Progress()
        tables = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder)))
        read_outputs(config, benchmark, ingest, options, tables, progress)
        asking = asking_over(config, benchmark, options, seats, ingest, tables, stack)
        pack = load_pack("default", benchmark)
        plan = asking.plan
        by_name = {s: i for i, s in enumerate(sorted(s for b in plan.blocks for s in b))}
        seeded = {s: i for i, s in enumerate(s for b in plan.blocks for s in b)}
        self.systems = len(plan.systems)
        self.samples = len(seeded)
        stages = {name: i for i, name in enumerate(benchmark.stages)}
        head_of: dict[tuple[str, str, str], tuple[int, str]] = {}
        progress.start("rendering questions", len(plan))
        for block in range(len(plan.blocks)):
            for system in range(self.systems):
                part = asking.load(block, system)
                rows = benchmark.pending(part, options)
                keys = stage_keys(part, rows)
                at = {u: i for i, u in enumerate(part.units["unit_id"].to_pylist())}
                for key, prompt in zip(keys, benchmark.prompts(part, rows, options), strict=True):
                    where = key[1], key[2], key[4]
                    if where not in head_of:
                        marks = {n: MARK for n in ("context", "text") if n in prompt.variables}
                        marked = replace(prompt, variables={**prompt.variables, **marks})
                        head, bare = (
                            self._text(pack.render(marked, rationale)).partition(MARK)[0]
                            for rationale in (True, False)
                        )
                        head_of[where] = self.heads.setdefault(head, len(self.heads)), head
                        if len(self.bare_heads) < len(self.heads):
                            self.bare_heads.append(bare)
                    number, head = head_of[where]
                    whole = self._text(pack.render(prompt, True))
                    if not whole.startswith(head):
                        raise SystemExit(f"the prompt of {where} does not begin as its unit's do")
                    pair = number, whole[len(head) :]
                    prompt_of.append(self.pairs.setdefault(pair, len(self.pairs)))
                    for column, value in zip(
                        columns,
                        (system, by_name[key[1]], seeded[key[1]], at[key[2]], stages[key[4]]),
                        strict=True,
                    ):
                        column.append(value)
                progress.advance()
        progress.end()

    def _text(self, messages: Sequence[dict[str, Any]]) -> str:
        """The prompt as the tiny model's chat template writes it."""
        turns = (TURN.format(m["role"], m["content"]) for m in messages)
        return "".join(turns) + CLOSING

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        found: list[list[int]] = self.tokenizer(list(texts), add_special_tokens=False)["input_ids"]
        return found

    def _tokenise(self) -> None:
        """Tokens of heads and tails, and their blocks as dense numbers."""
        from omnijudge_kernels.prefix_cache import chain_hashes

        heads = self._encode(list(self.heads))
        head_hashes, self.head_bounds = chain_hashes(
            *flat(heads), np.zeros(len(heads), np.uint64), BLOCK
        )
        last = {h: head_hashes[self.head_bounds[h + 1] - 1] for h in range(len(heads))}
        pairs = list(self.pairs)
        self.head_of = np.array([h for h, _ in pairs], np.int64)
        bare = self._encode(self.bare_heads)
        lost = [len(a) - len(b) for a, b in zip(heads, bare, strict=True)]
        self.saved = np.array(lost, np.int64)[self.head_of]
        self.lengths = np.empty(len(pairs), np.int64)
        hashes, counts = [], [np.zeros(1, np.int64)]
        for begin in range(0, len(pairs), 20_000):
            some = pairs[begin : begin + 20_000]
            tails = self._encode([t for _, t in some])
            for i, (h, _) in enumerate(some):
                self.lengths[begin + i] = len(heads[h]) + len(tails[i])
                tails[i] = heads[h][len(heads[h]) // BLOCK * BLOCK :] + tails[i]
                # The last token is always computed, so that a full last block is never found.
                if len(tails[i]) % BLOCK == 0:
                    tails[i].pop()
            parents = np.array([last[h] for h, _ in some], np.uint64)
            found, bounds = chain_hashes(*flat(tails), parents, BLOCK)
            hashes.append(found)
            counts.append(np.diff(bounds))
        self._check(pairs, heads)
        self.tail_bounds = np.cumsum(np.concatenate(counts))
        everything = np.concatenate([head_hashes, *hashes])
        distinct, numbers = np.unique(everything, return_inverse=True)
        self.ids = len(distinct)
        numbers = numbers.astype(np.int32)
        self.head_blocks, self.tail_blocks = np.split(numbers, [len(head_hashes)])

    def _check(self, pairs: list[tuple[int, str]], heads: list[list[int]]) -> None:
        """Head and tail, tokenised apart, are the tokens of the whole."""
        texts = list(self.heads)
        for i in range(0, len(pairs), max(len(pairs) // 200, 1)):
            h, tail = pairs[i]
            whole, rest = self._encode([texts[h] + tail, tail])
            if whole != heads[h] + rest:
                raise SystemExit("a prompt's tokens differ where its unit's part ends")

    def hits(self, order: Ints, tokens: int) -> int:
        """Prompt tokens found in a cache of so many tokens, prompts in this order."""
        from omnijudge_kernels.prefix_cache import prefix_hits

        found = prefix_hits(
            order, self.head_of, self.head_bounds, self.head_blocks,
            self.tail_bounds, self.tail_blocks, self.ids, tokens // BLOCK,
        )  # fmt: skip
        return int(found.sum()) * BLOCK

    def tokens(self, prompts: Ints) -> list[list[int]]:
        """Whole prompts as tokens."""
        heads, pairs = list(self.heads), list(self.pairs)
        return self._encode([heads[pairs[p][0]] + pairs[p][1] for p in prompts.tolist()])


def hits_of(prompts: Sequence[Sequence[int]], block: int, tokens: int) -> int:
    """Prompt tokens found in a cache of so many tokens, for a few prompts as they are."""
    from omnijudge_kernels.prefix_cache import chain_hashes, prefix_hits

    findable = [list(p[:-1]) for p in prompts]  # the last token is always computed
    hashes, bounds = chain_hashes(*flat(findable), np.zeros(len(prompts), np.uint64), block)
    distinct, numbers = np.unique(hashes, return_inverse=True)
    nothing = np.zeros(2, np.int64)
    found = prefix_hits(
        np.arange(len(prompts)), np.zeros(len(prompts), np.int64), nothing,
        np.empty(0, np.int32), bounds, numbers.astype(np.int32), len(distinct), tokens // block,
    )  # fmt: skip
    return int(found.sum()) * block


def load_tokenizer(model: Path) -> Any:
    """The tokenizer of the tiny model, as an engine loads it."""
    try:
        from transformers import AutoTokenizer

        from omnijudge.testing.tiny_model import make_tiny_model

        if not model.exists():
            make_tiny_model(model)
    except ImportError as e:
        raise SystemExit(f"{e.name} is missing; scripts/install_cpu_engine.sh brings it") from e
    return AutoTokenizer.from_pretrained(model)


def flat(rows: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Sequences one behind the other, and their bounds."""
    offsets = np.array([0, *accumulate(map(len, rows))], np.int64)
    return np.fromiter((t for r in rows for t in r), np.int64, int(offsets[-1])), offsets


def once(prompts: Ints) -> Ints:
    """Every prompt where it stands first."""
    _, first = np.unique(prompts, return_index=True)
    return prompts[np.sort(first)]


def orders(q: Questions) -> tuple[Ints, Ints]:
    """All prompts in arrival order, and each one once in the order of a run."""
    k = q.keys
    arrival = q.prompt_of[np.lexsort((k.stage, k.unit, k.arrival, k.system))]
    ordered = once(q.prompt_of[np.lexsort((k.system, k.stage, k.unit, k.sample))])
    return arrival, ordered


def simulate(q: Questions, args: argparse.Namespace) -> dict[str, Any]:
    """Tokens asked and computed under each measure."""
    arrival, ordered = orders(q)
    asked = int(q.lengths[arrival].sum())
    cache = args.cache_tokens

    def plan(order: Ints, parts: Sequence[Ints] | None = None) -> dict[str, Any]:
        tokens = int(q.lengths[order].sum())
        found = sum(q.hits(part, cache) for part in parts or [order])
        return {
            "questions": len(order),
            "prompt_tokens": tokens,
            "from_prefix_cache": found,
            "prefix_cache_share": round(found / tokens, 4),
            "computed": tokens - found,
            "saved_of_all": round(1 - (tokens - found) / asked, 4),
        }

    batches = [ordered[i : i + args.batch] for i in range(0, len(ordered), args.batch)]
    by_batch = [np.concatenate(b) for a in range(args.actors) if (b := batches[a :: args.actors])]
    singly = [ordered[a :: args.actors] for a in range(args.actors)]
    known = q.keys.system < q.systems - args.added
    old = set(np.unique(q.prompt_of[known]).tolist())
    new = np.array([p for p in ordered.tolist() if p not in old], np.int64)
    return {
        "data": {
            "recordings": q.samples,
            "systems": q.systems,
            "questions": len(q.prompt_of),
            "distinct": len(q.pairs),
            "mean_prompt_tokens": round(asked / len(arrival), 1),
        },
        "cache": {"block": BLOCK, "tokens": cache},
        "arrival_order": plan(arrival),
        "arrival_order_without_cache": {"prompt_tokens": asked},
        "identical_questions_once": plan(once(arrival)),
        "units_together": plan(ordered),
        f"units_together_on_{args.actors}_engines_by_batch": plan(ordered, by_batch),
        f"units_together_on_{args.actors}_engines_singly": plan(ordered, singly),
        f"store_knows_all_but_{args.added}_systems": plan(new),
    }


def without_rationale(q: Questions) -> dict[str, Any]:
    """What `rationale: none` saves: prompt tokens, and the longest answers the schemas allow."""
    from omnijudge.benchmarks import get_benchmark
    from omnijudge.judging.prompts import load_pack

    pack = load_pack("default", get_benchmark("omniinteract"))
    letters: dict[str, dict[str, int]] = {}
    for name, rationale in (("short", True), ("none", False)):
        letters[name] = {
            stage: sum(
                len(field) + 5 + (f.get("maxLength", 16) if "enum" not in f else 13)
                for field, f in pack.schema(stage, rationale)["properties"].items()
            )
            for stage in pack.stages
        }
    prompts = once(q.prompt_of)
    return {
        "prompt_tokens_saved": round(float(q.saved[prompts].sum() / q.lengths[prompts].sum()), 4),
        "longest_answer_characters": letters,
    }


def confirm(q: Questions, folder: Path) -> dict[str, Any]:
    """The share of the prefix cache on a slice, by a real engine's counters and by the model."""
    from omnijudge.config import JudgeConfig
    from omnijudge.judging.engines import open_engine

    arrival, ordered = orders(q)
    # The first questions of a run; in arrival order they come from the same units.
    ours = ordered[:ENGINE_QUESTIONS]
    theirs = once(arrival[np.isin(arrival, ours)])
    found: dict[str, Any] = {
        "questions": len(ours),
        "block": ENGINE_BLOCK,
        "cache_tokens": ENGINE_BLOCKS * ENGINE_BLOCK,
    }
    for name, order in (("arrival_order", theirs), ("units_together", ours)):
        judge = JudgeConfig(
            engine="vllm",
            model=str(folder / "model"),
            rationale="none",
            sampling={"max_tokens": 1},  # type: ignore[arg-type]
            engine_options={
                "dtype": "float32", "max_model_len": 2048, "block_size": ENGINE_BLOCK,
                "num_gpu_blocks_override": ENGINE_BLOCKS, "max_num_seqs": 1,
            },
        )  # fmt: skip
        engine = open_engine(judge, "omniinteract")
        try:
            replies = engine.answer([request(q, int(p)) for p in order])
            counters = engine.counters()
        finally:
            engine.close()
        tokens = sum(r.prompt_tokens for r in replies)
        errors = {r.error for r in replies if r.error is not None}
        if errors or tokens != int(q.lengths[order].sum()):
            said = "; ".join(sorted(errors)[:3]) or "other prompt tokens than the simulation"
            raise SystemExit(f"the engine and the simulation differ: {said}")
        # vLLM keeps one block back.
        modelled = hits_of(q.tokens(order), ENGINE_BLOCK, (ENGINE_BLOCKS - 1) * ENGINE_BLOCK)
        found[name] = {
            "prompt_tokens": tokens,
            "engine_share": round(counters["prefix_cache_hits"] / tokens, 4),
            "model_share": round(modelled / tokens, 4),
        }
    return found


def request(q: Questions, prompt: int) -> Any:
    """A question for the engine, without a schema."""
    from omnijudge.judging.types import Request

    heads, pairs = list(q.heads), list(q.pairs)
    head, tail = pairs[prompt]
    system, _, user = (heads[head] + tail).partition("<|im_end|>\n")
    messages = [
        {"role": "system", "content": system.removeprefix("<|im_start|>system\n")},
        {
            "role": "user",
            "content": user.removeprefix("<|im_start|>user\n").removesuffix(
                f"<|im_end|>\n{CLOSING}"
            ),
        },
    ]
    return Request(prompt.to_bytes(16, "big"), 1, 0, "core", messages)


if __name__ == "__main__":
    main()
