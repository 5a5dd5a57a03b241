"""Writes the bundled sample set from the hand-written sources in ``scripts/sample_data``.

A source lists recordings. ``rows`` are the annotated answers (``q``, ``a``: question and answer
time as they will stand in the annotation). ``said`` holds what each system says, as utterances
``[start in seconds, text]``, with ``|`` where one chunk ends and the next begins. How long a chunk
lasts follows from its text at an ordinary speed of speech, so that only starts are written by
hand. A third element ``w`` marks utterances with word times, for the system that has them only
sometimes.

    python scripts/make_sample_data.py [FOLDER]

The folder defaults to the package data; what is there under ``data`` and ``outputs`` is replaced.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "sample_data"
SUBSETS = ("1q1a", "1q1a_math", "1qna")
TARGET = HERE.parent / "omnijudge" / "sample_data" / "omniinteract"

CJK = re.compile(r"[\u4e00-\u9fff]")
# A word of a text with Chinese characters: one of them, or a Latin word, with what punctuation
# stands before (an opening quote) and after it. Joined, the words give the text again.
CHINESE_WORD = re.compile(
    r"[《“（]*(?:[\u4e00-\u9fff]|[A-Za-z0-9]+)[^\u4e00-\u9fffA-Za-z0-9《“（]*"
)
ENGLISH_WORDS_PER_SECOND = 2.8
CHINESE_SIGNS_PER_SECOND = 4.5
SHORTEST, LONGEST = 1.0, 4.0

# Which utterances of a system carry word times.
WORD_TIMES = {"attentive": "all", "chatty": "marked", "sleepy": "none"}


def split_words(text: str) -> list[str]:
    """Words of a text, punctuation kept, so that they rebuild it."""
    return CHINESE_WORD.findall(text) if CJK.search(text) else text.split()


def duration(text: str) -> float:
    """Seconds it takes to say a text, at least one.

    Raises:
        ValueError: the text is too long for one chunk.
    """
    chinese = CJK.search(text) is not None
    units = len(text) if chinese else len(text.split())
    rate = CHINESE_SIGNS_PER_SECOND if chinese else ENGLISH_WORDS_PER_SECOND
    seconds = max(SHORTEST, round(units / rate, 2))
    if seconds > LONGEST:
        raise ValueError(f"more than {LONGEST:g} s in one chunk, split it with |: {text!r}")
    return seconds


def aligned_words(text: str, start: float, seconds: float) -> list[dict[str, Any]]:
    """Word times, spread over the chunk by the length of the words."""
    words = split_words(text)
    total = sum(len(word) for word in words)
    rows, done = [], 0
    for word in words:
        begin = start + seconds * done / total
        done += len(word)
        end = start + seconds * done / total
        rows.append({"text": word, "start": round(begin, 2), "end": round(end, 2)})
    return rows


def transcript(utterances: list[list[Any]], words: str) -> dict[str, Any]:
    """A transcript in the benchmark's form.

    Raises:
        ValueError: utterances overlap or are not in order.
    """
    chunks: list[dict[str, Any]] = []
    clock = 0.0
    for start, text, *mark in utterances:
        if start < clock:
            raise ValueError(f"{text!r} begins at {start} s, before {clock} s")
        clock = float(start)
        for piece in text.split("|"):
            seconds = duration(piece)
            # Chunk texts are joined with nothing between, so English brings its own blank.
            blank = "" if CJK.search(piece) or not chunks else " "
            end = round(clock + seconds, 2)
            chunk: dict[str, Any] = {"text": blank + piece, "timestamp": [clock, end]}
            if words == "all" or (words == "marked" and mark):
                chunk["aligned_words"] = aligned_words(piece, clock, seconds)
            chunks.append(chunk)
            clock = end
    return {"text": "".join(chunk["text"] for chunk in chunks), "chunks": chunks}


def one_question_rows(recording: dict[str, Any]) -> list[dict[str, Any]]:
    """Annotation of a multi_turn or nested recording."""
    return [
        {
            "question_time": row["q"],
            "question_text": row["ask"],
            "answer_time": row["a"],
            "answer_text": row["answer"],
            "question_type": row["type"],
            "is_interrupted": row.get("interrupted", False),
        }
        for row in recording["rows"]
    ]


def many_answers(recording: dict[str, Any]) -> dict[str, Any]:
    """Annotation of a 1QnA recording, in the shape the source asks for."""
    knowledge = recording.get("knowledge")
    root: dict[str, Any] = {"inferred_knowledge": knowledge} if knowledge else {}
    rows = recording["rows"]
    if recording["shape"] == "conversations":
        root["conversations"] = [
            {"from": "user", "timestamp": recording["q"], "value": recording["ask"]},
            *(
                {
                    "from": "assistant",
                    "timestamp": row["a"],
                    "value": row["answer"],
                    "label": row["label"],
                    "interrupted": row.get("interrupted", False),
                }
                for row in rows
            ),
        ]
        return root
    root |= {"question_time": recording["q"], "question_text": recording["ask"]}
    root["answers"] = [
        {
            "answer_time": row["a"],
            "answer_text": row["answer"],
            "label": row["label"],
            "is_interrupted": row.get("interrupted", False),
        }
        for row in rows
    ]
    return root


def write(path: Path, value: Any) -> None:
    """Writes JSON with one row, entry or chunk a line, the same on every machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(spread(value) + "\n", encoding="utf-8", newline="\n")


def spread(value: Any) -> str:
    """JSON text in which lists of objects stand one object a line."""
    if isinstance(value, list):
        return "[\n" + ",\n".join(map(compact, value)) + "\n]"
    parts = (
        f"{json.dumps(key)}: {spread(item) if isinstance(item, list) else compact(item)}"
        for key, item in value.items()
    )
    return "{" + ",\n".join(parts) + "}"


def compact(value: Any) -> str:
    """JSON text on one line."""
    return json.dumps(value, ensure_ascii=False)


def write_subset(subset: str, recordings: list[dict[str, Any]], target: Path) -> None:
    """Writes annotations, map file and transcripts of one subset."""
    entries = []
    for recording in recordings:
        name = recording["name"]
        if subset == "1qna":
            annotation: Any = many_answers(recording)
            stem, video = name, f"videos_bench/{name}"
        else:
            annotation = one_question_rows(recording)
            stem, video = name.removeprefix("videos/"), name
            entries.append(
                {
                    "video": f"{video}.mp4",
                    "annotation": f"annotations/{stem}.json",
                    "scene_type": recording["scene"],
                }
            )
        write(target / "data" / subset / "annotations" / f"{stem}.json", annotation)
        for system, utterances in recording["said"].items():
            folder = target / "outputs" / system / subset / video.replace("/", "__")
            said = transcript(utterances, WORD_TIMES[system])
            write(folder / "precise_truncation.json", said)
    if entries:
        table = {"total": len(entries), "entries": entries}
        write(target / "data" / subset / "video_json_map.json", table)


def make(target: Path = TARGET) -> None:
    """Writes the whole sample set below ``target``."""
    for folder in ("data", "outputs"):
        if (target / folder).exists():
            shutil.rmtree(target / folder)
    for subset in SUBSETS:
        source = SOURCES / f"{subset}.yaml"
        recordings = yaml.safe_load(source.read_text(encoding="utf-8"))
        try:
            write_subset(subset, recordings, target)
        except ValueError as error:
            raise SystemExit(f"{source}: {error}") from None


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
