"""Caption tracks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omnijudge.media import Caption, find_captions
from omnijudge.media.cache import ByteCache

TRACK = [{"start": 2, "end": 3.5, "text": " 灯亮了 "}, {"start": 0, "end": 1, "text": "A bell."}]
READ = [Caption(0.0, 1.0, "A bell."), Caption(2.0, 3.5, "灯亮了")]


def test_in_the_annotation_itself(tmp_path: Path) -> None:
    assert find_captions(TRACK, tmp_path, None) == READ


@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_in_a_file_that_the_annotation_names(tmp_path: Path, ending: str) -> None:
    text = json.dumps(TRACK) if ending == "json" else "\n".join(map(json.dumps, TRACK))
    (tmp_path / f"c.{ending}").write_text(text, "utf-8")
    assert find_captions(f"c.{ending}", tmp_path, None) == READ


def test_beside_the_clip(tmp_path: Path) -> None:
    (tmp_path / "clip.captions.json").write_text(json.dumps({"captions": TRACK}), "utf-8")
    assert find_captions(None, tmp_path, str(tmp_path / "clip.mp4")) == READ


def test_none_anywhere(tmp_path: Path) -> None:
    assert find_captions(None, tmp_path, str(tmp_path / "clip.mp4")) is None
    assert find_captions("", tmp_path, None) is None


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        (["x"], "caption 0 is no object"),
        ([{"text": "x"}], "caption 0 needs start and end"),
        ([{"start": "soon", "text": "x"}], "caption 0 needs start and end"),
        ([{"start": float("nan"), "text": "x"}], "finite times"),
        ([{"start": 1, "text": 5}], "needs a text"),
        ("gone.json", "gone.json"),
    ],
)
def test_bad_captions_say_what_is_wrong(tmp_path: Path, cell: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        find_captions(cell, tmp_path, None)


def test_the_cache_drops_what_was_used_longest_ago() -> None:
    cache: ByteCache[str] = ByteCache(10)
    cache.put("a", "A", 4)
    cache.put("b", "B", 4)
    assert cache.get("a") == "A"
    cache.put("c", "C", 4)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == ("A", None, "C")
    assert cache.used == 8
    cache.put("d", "D", 11)
    assert cache.get("d") is None
    cache.put("a", "again", 2)
    assert (cache.used, len(cache)) == (6, 2)
    cache.clear()
    assert (cache.used, len(cache)) == (0, 0)
