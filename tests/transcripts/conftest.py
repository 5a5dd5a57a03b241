"""A file written and read at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnijudge.transcripts.reader import read_transcript
from omnijudge.transcripts.types import Transcript

Read = Callable[..., Transcript]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Writes bytes, text or a JSON value to a file and reads it as a transcript."""

    def run(content: Any, *, name: str = "t.any", **options: Any) -> Transcript:
        if isinstance(content, str):
            content = content.encode()
        elif not isinstance(content, bytes):
            content = json.dumps(content).encode()
        path = tmp_path / name
        path.write_bytes(content)
        return read_transcript(path, **options)

    return run
