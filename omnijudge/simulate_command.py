"""``omnijudge simulate``: transcripts of invented systems for annotations on disk."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from omnijudge.benchmarks.omniinteract.layout import Listing, Sample
    from omnijudge.errors import Problem
    from omnijudge.simulate import Recording, Simulated, Temper

DESCRIPTION = """\
Write transcripts of simulated systems for OmniInteract annotations: what they say is taken from
the annotated answers, when and how depends on their temper. The same seed gives the same files.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``omnijudge simulate``."""
    parser.description = DESCRIPTION
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--manifest", metavar="FILE", help="list of samples (JSON lines or JSON)")
    source.add_argument("--root", metavar="DIR", help="annotations laid out as in the release")
    parser.add_argument(
        "--out",
        metavar="DIR",
        required=True,
        help="folder to write: SYSTEM/SAMPLE.json and manifest.jsonl; files there are replaced",
    )
    parser.add_argument(
        "--tempers",
        metavar="A,B",
        help="punctual, late, talkative, hallucinating, silent, spilling (default: all of them)",
    )
    parser.add_argument(
        "--copies",
        metavar="N",
        type=int,
        default=1,
        help="systems of each temper, named punctual-001 and so on when more than one",
    )
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="default: 0")
    parser.add_argument("--words", action="store_true", help="give every chunk word times")


def run(args: argparse.Namespace) -> int:
    """Runs ``omnijudge simulate``; returns the exit code (3: some samples could not be used).

    Raises:
        ConfigError: unknown temper, bad number of copies, or no annotations where the user says.
        DataError: none of the samples can be used.
    """
    from pathlib import Path

    from omnijudge.benchmarks.omniinteract.layout import read_manifest, read_root
    from omnijudge.errors import ConfigError, DataError
    from omnijudge.simulate import simulate_outputs

    tempers = _systems(args.tempers, args.copies)
    if args.manifest is not None:
        listing = read_manifest(Path(args.manifest), set())
    elif Path(args.root).is_dir():
        listing = read_root(Path(args.root))
    else:
        raise ConfigError(f"--root {args.root}: there is no such folder")
    out = Path(args.out)
    problems = [p for p in listing.problems if p.level == "error"]
    samples = [listing.samples[name] for name in sorted(listing.samples)]
    try:
        done = simulate_outputs(
            _recordings(samples, problems), out, tempers, args.seed, words=args.words
        )
        problems += done.problems
        if not done.sample_ids:
            found = "\n".join(map(str, problems)) or "the list is empty"
            raise DataError(f"no sample can be simulated:\n{found}", problems)
        rows = _write_manifest(out / "manifest.jsonl", listing, done)
    except OSError as error:
        raise DataError(f"{error.filename or out}: cannot be written: {error.strerror}") from None
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(done.systems)} systems: {', '.join(_some(done.systems))}")
    print(f"{len(done.sample_ids)} samples, {done.transcripts} transcripts, {done.chunks} chunks")
    print(f"{out / 'manifest.jsonl'}: {rows} rows; use it as data.manifest")
    if problems:
        print(f"{len(problems)} problems; the samples named above have no transcripts")
    return 3 if problems else 0


def _systems(tempers: str | None, copies: int) -> dict[str, Temper]:
    """Name of each system and its temper."""
    from omnijudge.errors import ConfigError
    from omnijudge.simulate import TEMPERS, temper_named

    if copies < 1:
        raise ConfigError(f"--copies {copies}: write 1 or more")
    names = [n.strip() for n in (tempers or ",".join(TEMPERS)).split(",") if n.strip()]
    if not names:
        raise ConfigError(f"--tempers {tempers!r} names none; there are {', '.join(TEMPERS)}")
    chosen = [temper_named(name) for name in dict.fromkeys(names)]
    if copies == 1:
        return {t.name: t for t in chosen}
    return {f"{t.name}-{n:03d}": t for t in chosen for n in range(1, copies + 1)}


def _recordings(samples: list[Sample], problems: list[Problem]) -> Iterator[Recording]:
    """The samples with their annotations; unreadable ones are added to ``problems``."""
    from dataclasses import replace

    from omnijudge.simulate import Recording
    from omnijudge.transcripts.files import UnreadableFile, read_json

    for sample in samples:
        try:
            annotation = read_json(sample.annotation)
        except UnreadableFile as error:
            problems.append(replace(error.problem, sample_id=sample.sample_id))
            continue
        source = str(sample.annotation)
        yield Recording(sample.sample_id, annotation, sample.scene_type, source)


def _write_manifest(path: Path, listing: Listing, done: Simulated) -> int:
    """One row per system and sample, paths relative to the manifest; returns their number."""
    import orjson

    rows = 0
    with path.open("wb") as stream:
        for system in done.systems:
            for sample_id in done.sample_ids:
                sample = listing.samples[sample_id]
                gt = os.path.relpath(sample.annotation, path.parent)
                row = {
                    **sample.attributes,
                    "model": system,
                    "sample_id": sample_id,
                    "gt_json": gt.replace(os.sep, "/"),
                    "model_json": f"{system}/{sample_id}.json",
                    "scene_type": sample.scene_type,
                    "video_id": sample.video_id,
                }
                if sample.language is not None:
                    row["language"] = sample.language
                stream.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
                rows += 1
    return rows


def _some(names: tuple[str, ...]) -> list[str]:
    return [*names[:8], "..."] if len(names) > 8 else list(names)
