"""Whatever is in a file, the reader returns chunks or a reason; it never raises."""

from __future__ import annotations

import copy
import json
import random
from math import inf
from pathlib import Path
from typing import Any

import pytest

from omnijudge.transcripts.options import FORMATS, read_options
from omnijudge.transcripts.reader import parse_transcript

GOLDEN = Path(__file__).parents[1] / "golden" / "formats"
FILES = sorted(
    path
    for path in GOLDEN.glob("*/*/*")
    if path.is_file() and path.suffix in (".json", ".jsonl", ".srt", ".vtt")
    if path.name not in ("expected.json", "result.json") and not path.name.endswith(".meta.json")
)
ODD: list[Any] = [
    None, True, -1, 0, 1.5, 10**30, inf, "", " ", "x", "3", "1:02", "-->", "\ud83d", [], {}, [[]],
    [1], [1, 2], ["a", None], [{}], {"id": 1}, {"text": "x"},
]  # fmt: skip


def check(data: bytes, **options: Any) -> None:
    found = parse_transcript(data, "f", read_options(**options))
    if found.refused is not None:
        assert found.chunks == []
        assert found.refused.level == "error"
        assert found.refused.message
    for chunk in found.chunks:
        assert -inf < chunk.start <= chunk.end < inf
        chunk.text.encode()
        for word in chunk.words:
            assert -inf < word.start <= word.end < inf
            word.text.encode()
    for problem in found.problems:
        assert problem.count > 0
        assert problem.message


def nodes(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a JSON value, as holder and key."""
    keys = value.keys() if isinstance(value, dict) else range(len(value))
    found: list[tuple[Any, Any]] = [(value, key) for key in keys]
    for key in keys:
        if isinstance(value[key], (dict, list)):
            found += nodes(value[key])
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parts[-3]}/{p.parts[-2]}")
def test_cut_and_scrambled_bytes(path: Path) -> None:
    rng = random.Random(str(path.relative_to(GOLDEN)))
    data = path.read_bytes()
    for _ in range(30):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(damaged) + 1)
            damaged[at : at + rng.choice((0, 1, 1, 5))] = rng.choice(
                (b"", b"\n", b"\xff", b'"', b"\\u", b"<", b"9", b"}")
            )
        check(bytes(damaged))
        check(data[: rng.randrange(len(data) + 1)], format=rng.choice(FORMATS))
        check(bytes(damaged), format=rng.choice(FORMATS), duration=10.0, time_unit="ms")


@pytest.mark.parametrize(
    "path", [p for p in FILES if p.suffix == ".json"], ids=lambda p: f"{p.parts[-3]}/{p.parts[-2]}"
)
@pytest.mark.parametrize("benchmark", ["omniinteract", "omni_duplexeval"])
def test_odd_values_anywhere(path: Path, benchmark: str) -> None:
    rng = random.Random(str(path.relative_to(GOLDEN)) + benchmark)
    value = json.loads(path.read_bytes())
    name = path.parts[-3]
    explicit = name if name in FORMATS else "auto"
    for holder, key in nodes(value):
        kept = holder[key]
        for odd in rng.sample(ODD, 6):
            holder[key] = copy.deepcopy(odd)
            data = json.dumps(value).encode()
            check(data, benchmark=benchmark)
            check(data, benchmark=benchmark, format=explicit, speaker="A", time_offset=-3.0)
        holder[key] = kept


@pytest.mark.parametrize(
    "path", [p for p in FILES if p.suffix == ".jsonl"], ids=lambda p: p.parts[-2]
)
def test_odd_values_in_lines(path: Path) -> None:
    rng = random.Random(str(path.relative_to(GOLDEN)))
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    for holder, key in nodes(lines):
        kept = holder[key]
        for odd in rng.sample(ODD, 8):
            holder[key] = copy.deepcopy(odd)
            check("\n".join(map(json.dumps, lines)).encode(), format=path.parts[-3])
            check("\n".join(map(json.dumps, lines)).encode())
        holder[key] = kept


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("value", [*ODD, [[1, 2, "x"]], [{"text": "a", "start": 1}]], ids=repr)
def test_any_value_as_any_format(name: str, value: Any) -> None:
    check(json.dumps(value).encode(), format=name)
    check(json.dumps({"chunks": value, "segments": value, "words": value}).encode(), format=name)
    check(json.dumps([value, value]).encode(), format=name, profile="published")
