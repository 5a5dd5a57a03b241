"""A system's outputs on disk: which transcript belongs to which sample."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from omnijudge.benchmarks.omniinteract.batch_summary import SummaryOfSystem
from omnijudge.benchmarks.omniinteract.discovery import SUMMARY_FILE, TRANSCRIPT_NAMES
from omnijudge.errors import ConfigError

if TYPE_CHECKING:
    from omnijudge.benchmarks.omniinteract.layout import Sample
    from omnijudge.config import SystemConfig

TRANSCRIPT_ENDINGS = (".json", ".jsonl", ".srt", ".vtt")


class SystemFolder:
    """A system's outputs on disk, listed once."""

    def __init__(self, name: str, settings: SystemConfig) -> None:
        if settings.path is None:
            raise ConfigError(
                f"systems.{name}: needs a path, because no row of the manifest names this system"
            )
        self.root = Path(settings.path)
        if not self.root.exists():
            raise ConfigError(f"systems.{name}: there is no folder or file {settings.path}")
        self.files: set[str] = set()
        for folder, _, names in os.walk(self.root):
            inside = os.path.relpath(folder, self.root)
            prefix = "" if inside == "." else inside + "/"
            self.files.update(prefix + n for n in names)
        summary = SUMMARY_FILE in self.files
        self._summary = SummaryOfSystem(self.root) if summary else None

    def find(self, sample: Sample) -> Path | None:
        """The transcript of a sample: in its release folder, else named by its id."""
        stems = []
        if sample.subset:
            stems += [f"{sample.subset}/{sample.folder}", sample.folder]
        stems.append(sample.sample_id)
        for stem in stems:
            for name in TRANSCRIPT_NAMES:
                if f"{stem}/{name}" in self.files:
                    return self.root / stem / name
        for stem in stems:
            for ending in TRANSCRIPT_ENDINGS:
                if stem + ending in self.files:
                    return self.root / (stem + ending)
        annotation = sample.released_as
        if self._summary is None or annotation is None:
            return None
        return self._summary.find(annotation)

    def reason(self, sample: Sample) -> str:
        """Why there is no transcript of a sample."""
        if self._summary is None or sample.released_as is None:
            return "no transcript found"
        return self._summary.reason(sample.released_as)
