"""The files of a judgement store: where they are, and how one kind becomes the other."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa
from pyarrow import fs as pafs

from omnijudge.errors import Level, Problem, StoreError
from omnijudge.judging import journal, parts
from omnijudge.judging.parts import DamagedPart, PartReader

DAMAGED = ".damaged"


class StoreFiles:
    """A store's folder.

    Args:
        path: folder or filesystem URI.
        filesystem: a pyarrow filesystem in which ``path`` is meant.

    Attributes:
        filesystem: where the files are.
        local: whether it is a local path; only these have journals.
        report: what was found damaged or lost.
    """

    def __init__(self, path: str, filesystem: Any = None) -> None:
        self.path = path
        self.report: list[Problem] = []
        self.filesystem, self.root = filesystem, path.rstrip("/")
        if filesystem is None and "://" in path:
            _refuse_keys(path)
            try:
                self.filesystem, inside = pafs.FileSystem.from_uri(path)
            except (pa.ArrowException, OSError, ValueError) as e:
                raise StoreError(
                    f"{path}: no filesystem for this address ({e}); check `store`"
                ) from e
            self.root = inside.rstrip("/")
        elif filesystem is None:
            self.filesystem = pafs.LocalFileSystem()
            self.root = str(Path(path).expanduser().absolute())
        self.local = self.filesystem.type_name == "local"
        self.parts = f"{self.root}/parts"
        self.journals = f"{self.root}/journals"

    def make(self) -> None:
        """Makes the folders.

        Raises:
            StoreError: they cannot be made.
        """
        try:
            self.filesystem.create_dir(self.parts, recursive=True)
            if self.local:
                self.filesystem.create_dir(self.journals, recursive=True)
        except OSError as e:
            raise StoreError(f"{self.path}: cannot be made ({e}); choose another `store`") from e

    def exists(self) -> bool:
        """Whether there is a store."""
        kind = self.filesystem.get_file_info(self.root).type
        return bool(kind == pafs.FileType.Directory)

    def note(self, code: str, file: str, message: str, level: Level = "error") -> None:
        """Reports something once."""
        problem = Problem(code, level, file, "", message)
        if problem not in self.report:
            self.report.append(problem)

    def new_part(self) -> str:
        """Path of a part not yet there."""
        return f"{self.parts}/{new_name()}{parts.SUFFIX}"

    def new_journal(self) -> Path:
        """Path of a journal not yet there."""
        return Path(self.journals, new_name() + journal.SUFFIX)

    def all(self) -> list[Any]:
        """Every file, with its size."""
        found = []
        # Journals first: what is folded meanwhile then shows up among the parts.
        for folder in (self.journals, self.parts) if self.local else (self.parts,):
            selector = pafs.FileSelector(folder, allow_not_found=True)
            found += [f for f in self.filesystem.get_file_info(selector) if f.is_file]
        return found

    def readable(self) -> tuple[list[str], list[str]]:
        """Journals and parts to read, sorted. What shows up as both is read as the part."""
        files = [f.path for f in self.all()]
        found = sorted(p for p in files if p.endswith(parts.SUFFIX))
        folded = {Path(p).stem for p in found}
        journals = sorted(p for p in files if p.endswith(journal.SUFFIX))
        return [j for j in journals if Path(j).stem not in folded], found

    def fold_journal(self, path: Path) -> PartReader | None:
        """Turns a journal, whose lock this process holds, into the part of the same name.

        Killed anywhere in between, it leaves the journal, or both with the same content.

        Raises:
            StoreError: the part cannot be written; the journal stays.
        """
        target = f"{self.parts}/{path.stem}{parts.SUFFIX}"
        found = journal.scan(path)
        self.note_journal(str(path), found)
        if found.torn:
            self.note(
                "torn_tail",
                str(path),
                f"ends with {found.torn} bytes of a batch whose writing was cut off; "
                "its questions will be asked again",
                "warning",
            )
        if found.batches:
            table = pa.Table.from_batches(found.batches)
            parts.write_part(self.filesystem, target, table)
        if found.damaged:
            os.replace(path, f"{path}{DAMAGED}")
        else:
            path.unlink(missing_ok=True)
        return PartReader(self.filesystem, target) if found.batches else None

    def fold_abandoned(self) -> None:
        """Folds the journals of dead processes."""
        if not self.local:
            return
        self._sweep()
        for path in sorted(Path(self.journals).glob(f"*{journal.SUFFIX}")):
            fd = journal.take_over(path)
            if fd is None:
                continue
            try:
                self.fold_journal(path)
            except (StoreError, OSError) as e:
                self.note("fold_failed", str(path), str(e), "warning")
            finally:
                os.close(fd)

    def _sweep(self) -> None:
        """Removes what processes killed while they made a file have left, after a day."""
        for folder, suffix in ((self.journals, journal.NEW), (self.parts, parts.TEMPORARY)):
            for path in Path(folder).glob(f"*{suffix}"):
                with contextlib.suppress(OSError):
                    if time.time() - path.stat().st_mtime > 86_400:
                        path.unlink()

    def note_journal(self, path: str, found: journal.Found) -> None:
        """Reports the damage found in a journal, if any."""
        if found.damaged:
            self.note(
                "damaged_journal",
                path,
                f"{sum(found.damaged)} bytes in {len(found.damaged)} places are damaged; the "
                "judgements in them are lost and will be asked again, all others are kept",
            )

    def set_aside(self, error: DamagedPart, writable: bool) -> None:
        """Reports a damaged part; keeps its readable blocks as a new part and renames it."""
        kept: list[pa.Table] = []
        try:
            part = PartReader(self.filesystem, error.path)
            for block in range(part.blocks):
                try:
                    kept.append(part.read_block(block))
                except DamagedPart:
                    continue
        except (DamagedPart, StoreError):
            pass
        except FileNotFoundError:
            return  # another process was faster
        rows = sum(t.num_rows for t in kept)
        self.note(
            "damaged_part",
            error.path,
            f"damaged ({error}); "
            + ("set aside as *.damaged; " if writable else "its damaged blocks are left out; ")
            + f"{rows} of its judgements are kept, the others will be asked again",
        )
        if not writable:
            return
        try:
            if kept:
                parts.write_part(self.filesystem, self.new_part(), pa.concat_tables(kept))
            self.filesystem.move(error.path, error.path + DAMAGED)
        except (OSError, StoreError) as e:
            self.note("fold_failed", error.path, f"cannot be set aside ({e})", "warning")


_KEY_WORDS = ("access_key", "secret_key", "secret", "token", "password", "account_key", "sas")


def _refuse_keys(address: str) -> None:
    """Keys in an address would be written down with the configuration of every run.

    Raises:
        StoreError: there are some; the message does not show them.
    """
    split = urlsplit(address)
    named = {k.lower() for k, _ in parse_qsl(split.query, keep_blank_values=True)}
    if split.password or any(w in k for k in named for w in _KEY_WORDS):
        raise StoreError(
            f"store: the address {split.scheme}://... holds a key, which would be written into "
            "run.json; put it where the storage's own tools look for it (for S3 the environment "
            "variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws)"
        )


def new_name() -> str:
    """A name no other process takes; names sort by time."""
    return f"{time.time_ns():016x}-{secrets.token_hex(4)}"
