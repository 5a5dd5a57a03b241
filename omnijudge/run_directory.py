"""What a run leaves on disk: the manifest, the tables, and the rules for running again."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from omnijudge.errors import ConfigError, DataError
from omnijudge.partitions import UNFINISHED
from omnijudge.usage import Usage, read_usage

if TYPE_CHECKING:
    from omnijudge.judging.shards import Shard

MANIFEST = "run.json"
REPORT = "report.html"
PACKS = "prompts"
SHARDS = "shards"
OWN_STORE = "judgements-store"
IMPORTED = "imported"
LOCK = ".lock"
ANALYSES = ("sensitivity",)
"""Folders of what is made of a run afterwards."""
KEPT = ("gold",)
"""Folders that stay when a run is begun anew: gold answers may lie there, and they cost money."""
INGEST = ".ingest"
"""Begins the names of folders that a step fills before its tables are moved into place."""
TABLES = (
    "units", "outputs", "chunks", "stages", "questions", "judgements", "scores",
    "metrics", "comparisons", "ranks",
)  # fmt: skip


class RunDirectory:
    """The folder of one run."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def table(self, name: str) -> Path:
        """Path of a table."""
        return self.path / f"{name}.parquet"

    @property
    def manifest_path(self) -> Path:
        """Path of ``run.json``."""
        return self.path / MANIFEST

    def manifest(self) -> dict[str, Any] | None:
        """The manifest, None if there is none.

        Raises:
            DataError: it is there and cannot be read.
        """
        try:
            data = self.manifest_path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError as e:
            raise DataError(
                f"{self.manifest_path}: is no valid JSON ({e}); "
                "start anew with --fresh (the judgement store keeps all answers)"
            ) from None
        return dict(value)

    def write_manifest(self, values: Mapping[str, Any]) -> None:
        """Writes the manifest in one step."""
        partial = self.manifest_path.with_name(MANIFEST + UNFINISHED)
        options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS
        partial.write_bytes(orjson.dumps(values, option=options))
        os.replace(partial, self.manifest_path)

    def shard(self, shard: Shard) -> RunDirectory:
        """The folder of one shard's own results."""
        return RunDirectory(self.path / SHARDS / f"{shard.number}-of-{shard.count}")

    def usage(self) -> dict[str, Usage]:
        """What was asked under this output before, per judge."""
        return read_usage((self.manifest() or {}).get("usage"))

    def shards(self) -> list[RunDirectory]:
        """Folders of the shards that have begun."""
        return [RunDirectory(p) for p in sorted((self.path / SHARDS).glob("*-of-*"))]

    def shard_usage(self) -> list[dict[str, Usage]]:
        """What was asked by shards of this run."""
        return [shard.usage() for shard in self.shards()]

    def check_usable(self) -> None:
        """Refuses a folder that holds other things than a run.

        Raises:
            ConfigError: it is a file, or a folder with foreign content and no manifest.
        """
        if self.path.exists() and not self.path.is_dir():
            raise ConfigError(f"output: {self.path} is a file; name a folder")
        if not self.path.is_dir() or self.manifest_path.exists():
            return
        foreign = sorted(p.name for p in self.path.iterdir() if not _is_ours(p.name))
        if foreign:
            raise ConfigError(
                f"output: {self.path} is no run and holds other files ({foreign[0]}); "
                "name another folder"
            )

    def clear(self) -> None:
        """Removes what a run has written there, and nothing else."""
        if not self.path.is_dir():
            return
        for p in self.path.iterdir():
            if p.name in (LOCK, *KEPT) or not _is_ours(p.name):
                continue
            if p.is_dir():
                shutil.rmtree(p)
            else:
                p.unlink()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps a second process from writing the same run at the same time.

        Raises:
            ConfigError: another process is at it.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with open(self.path / LOCK, "w") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as e:
                raise ConfigError(
                    f"output: {self.path} is being written by another process; "
                    "wait for it, or name another folder"
                ) from e
            yield


def _is_ours(name: str) -> bool:
    name = name.removesuffix(UNFINISHED)
    known = {MANIFEST, REPORT, PACKS, SHARDS, OWN_STORE, IMPORTED, LOCK, *ANALYSES, *KEPT}
    tables = {f"{t}.parquet" for t in TABLES}
    return name in known or name in tables or name.startswith(INGEST)


def changed_keys(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Keys of ``inputs`` that differ between a run on disk and the one that wants its folder."""
    keys = {**_flat(old), **_flat(new)}
    return sorted(k for k in keys if _flat(old).get(k) != _flat(new).get(k))


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {prefix: value}
    found: dict[str, Any] = {}
    for key, inner in value.items():
        found |= _flat(inner, f"{prefix}.{key}" if prefix else str(key))
    return found
