"""Draws the clips of the Omni-DuplexEval media sample and writes its annotations and transcripts.

    python scripts/make_media_sample.py [FOLDER]

The scenes stand in `scripts/sample_data/duplexeval.yaml`. The folder defaults to the package data
and is replaced. Needs PyAV and Pillow (pip install 'omnijudge[media]').
"""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import yaml
from PIL import Image, ImageDraw, ImageFont

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "sample_data" / "duplexeval.yaml"
TARGET = HERE.parent / "omnijudge" / "sample_data" / "omni_duplexeval"

WIDTH, HEIGHT, FPS, RATE = 192, 108, 10, 16_000
SYSTEMS = ("attentive", "chatty")
CJK = re.compile(r"[\u4e00-\u9fff]")
BACKGROUND = (32, 36, 44)
COLOURS = {
    "red": (220, 60, 50),
    "green": (60, 190, 90),
    "yellow": (235, 200, 60),
    "blue": (70, 120, 230),
    "white": (235, 235, 235),
    "dark": (64, 68, 78),
}

Draw = Callable[[ImageDraw.ImageDraw, float], None]


def disc(d: ImageDraw.ImageDraw, x: float, y: float, r: float, colour: str) -> None:
    """A filled circle."""
    d.ellipse((x - r, y - r, x + r, y + r), fill=COLOURS[colour])


def balls(d: ImageDraw.ImageDraw, t: float) -> None:
    """A red ball rolls, a blue one falls, a square takes their place."""
    if t >= 9:
        d.rectangle((76, 34, 116, 74), fill=COLOURS["yellow"])
        return
    disc(d, 20 + min(t, 4) / 4 * 150, 80, 12, "red")
    if t >= 5:
        disc(d, 60, 12 + min((t - 5) / 2, 1) ** 2 * 68, 12, "blue")


def dots(d: ImageDraw.ImageDraw, t: float) -> None:
    """A dot more every three seconds."""
    for i, start in enumerate((1, 4, 7, 10)):
        if t >= start:
            disc(d, 36 + 40 * i, 54, 10, "white")


def signs(d: ImageDraw.ImageDraw, t: float) -> None:
    """A sign with changing words."""
    text = "OPEN" if t < 5 else "SALE 30" if t < 9 else "CLOSED"
    d.rectangle((20, 30, 172, 78), outline=COLOURS["white"], width=3)
    d.text((96, 54), text, fill=COLOURS["white"], font=ImageFont.load_default(28), anchor="mm")


def lights(d: ImageDraw.ImageDraw, t: float) -> None:
    """A traffic light."""
    lit = "red" if t < 5 or t >= 10.5 else "green" if t < 9 else "yellow"
    for i, colour in enumerate(("red", "yellow", "green")):
        disc(d, 96, 24 + 30 * i, 12, colour if colour == lit else "dark")


def meeting(d: ImageDraw.ImageDraw, t: float) -> None:
    """Two circles come together and part."""
    gap = 60 * (1 - t / 4) if t < 4 else 0 if t < 7 else 60 * min((t - 7) / 4, 1)
    disc(d, 80 - gap, 54, 16, "red")
    disc(d, 112 + gap, 54, 16, "blue")


def arm(d: ImageDraw.ImageDraw, t: float) -> None:
    """An arm turns, stops and turns back."""
    turned = min(t, 4) / 4 * 240 if t < 6 else 240 - (t - 6) / 5 * 240
    angle = math.radians(turned - 90)
    end = (96 + 44 * math.cos(angle), 54 + 44 * math.sin(angle))
    d.line((96, 54, *end), fill=COLOURS["white"], width=5)
    disc(d, 96, 54, 6, "red")


def bell(d: ImageDraw.ImageDraw, t: float) -> None:
    """A lamp that glows with the high tone."""
    disc(d, 96, 46, 22, "yellow" if 5 <= t < 7 else "dark")
    d.rectangle((88, 68, 104, 86), fill=COLOURS["white"])


def kettle(d: ImageDraw.ImageDraw, t: float) -> None:
    """Water rises, the kettle steams, the steam goes."""
    d.rectangle((60, 40, 132, 96), outline=COLOURS["white"], width=3)
    level = min(t / 7, 1) * 48
    d.rectangle((64, 92 - level, 128, 92), fill=COLOURS["blue"])
    if 7 <= t < 9.5:
        for i in range(3):
            rise = (t * 20 + 12 * i) % 32
            disc(d, 80 + 16 * i, 34 - rise, 5, "white")


CLIPS: dict[str, Draw] = {
    f.__name__: f for f in (balls, dots, signs, lights, meeting, arm, bell, kettle)
}


def sound(seconds: float, tones: list[list[float]]) -> np.ndarray[Any, Any]:
    """Sine tones with soft edges on silence, 16 bits."""
    samples = np.zeros(round(seconds * RATE))
    for start, end, frequency in tones:
        first, last = round(start * RATE), round(end * RATE)
        t = np.arange(last - first) / RATE
        edge = np.minimum(1, np.minimum(t, t[::-1]) / 0.02)
        samples[first:last] += 0.3 * edge * np.sin(2 * np.pi * frequency * t)
    return (samples * 32767).astype(np.int16)


def write_clip(path: Path, draw: Draw, seconds: float, tones: list[list[float]]) -> None:
    """Encodes one clip: H.264 pictures; AAC sound if it has any tone."""
    with av.open(str(path), "w") as out:
        # x264 weighs blocks by memory it never wrote (mbtree): every build gave other bytes.
        options = {"crf": "30", "threads": "1", "x264-params": "mbtree=0"}
        video = out.add_stream("libx264", rate=FPS, options=options)
        video.width, video.height, video.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        audio = None
        if tones:
            audio = out.add_stream("aac", rate=RATE, layout="mono")
            audio.bit_rate = 24_000
        for i in range(round(seconds * FPS)):
            image = Image.new("RGB", (WIDTH, HEIGHT), BACKGROUND)
            draw(ImageDraw.Draw(image), i / FPS)
            frame = av.VideoFrame.from_image(image)
            frame.pts, frame.time_base = i, Fraction(1, FPS)
            out.mux(video.encode(frame))
        out.mux(video.encode(None))
        if audio is not None:
            samples = sound(seconds, tones)
            for first in range(0, len(samples), 1024):
                block = np.ascontiguousarray(samples[first : first + 1024].reshape(1, -1))
                frame = av.AudioFrame.from_ndarray(block, format="s16", layout="mono")
                frame.sample_rate, frame.pts = RATE, first
                frame.time_base = Fraction(1, RATE)
                out.mux(audio.encode(frame))
            out.mux(audio.encode(None))


def spoken(text: str) -> float:
    """Seconds it takes to say a text."""
    return round(len(text) / 4.5 if CJK.search(text) else len(text.split()) / 2.8, 2)


def describe(
    system: str, sample: str, clip: dict[str, Any], language: str, source: dict[str, Any]
) -> Any:
    """What a system says of a clip, in a layout of its own."""
    habits = source[system]
    said = []
    for i, (event, words) in enumerate(zip(clip["events"], clip["said"], strict=True)):
        if i != habits["overlooks"].get(sample, habits["overlooks"].get("every")):
            text = words[0 if language == "en" else 1]
            said.append([round(event[0] + habits["late"], 2), text])
    if system == "chatty":
        said.insert(0, [0.4, habits["opening"][language]])
        said.append([clip["seconds"] - 0.5, habits["filler"][language]])
    return respond(system, said)


def respond(system: str, said: list[list[Any]]) -> Any:
    """Reminders in the same layouts."""
    if system == "attentive":
        return [{"sentence": t, "start": s, "end": round(s + spoken(t), 2)} for s, t in said]
    return {"chunks": [{"text": t, "current_time": s} for s, t in said]}


def main(target: Path = TARGET) -> None:
    """Writes the whole sample."""
    source = yaml.safe_load(SOURCE.read_text("utf-8"))
    shutil.rmtree(target, ignore_errors=True)
    (target / "videos").mkdir(parents=True)
    for name, clip in source["clips"].items():
        write_clip(target / "videos" / f"{name}.mp4", CLIPS[name], clip["seconds"], clip["tones"])
        captions = [{"start": s, "end": e, "text": text} for s, e, text, _ in clip["events"]]
        chinese = [{"start": s, "end": e, "text": text} for s, e, _, text in clip["events"]]
        write_lines(target / "captions" / f"{name}.en.jsonl", captions)
        write_lines(target / "captions" / f"{name}.zh.jsonl", chinese)
    rows = []
    for split, samples in source["descriptions"].items():
        for sample, name, language in samples:
            clip = source["clips"][name]
            column = 2 if language == "en" else 3
            told = [e[column] for e in clip["events"]]
            rows.append(row(split, sample, name, clip, source["ask"][language], language))
            rows[-1]["answer1"] = (" " if language == "en" else "").join(told)
            for system in SYSTEMS:
                if not (system == "chatty" and sample in source["silent"]):
                    write(
                        target,
                        system,
                        split,
                        sample,
                        describe(system, sample, clip, language, source),
                    )
    for r in source["reminders"]:
        clip = source["clips"][r["clip"]]
        language = "zh" if CJK.search(r["ask"]) else "en"
        rows.append(row(r["split"], r["id"], r["clip"], clip, r["ask"], language))
        rows[-1]["answer1"] = r.get("answer")
        for number, time in enumerate(r.get("events", ()), 1):
            rows[-1][f"reminder{number}"] = time
        for system, said in r["said"].items():
            if said is not None:
                write(target, system, r["split"], r["id"], respond(system, said))
    write_lines(target / "annotations.jsonl", rows)


def row(
    split: str, sample: str, name: str, clip: dict[str, Any], ask: str, language: str
) -> dict[str, Any]:
    """An annotation row with the fields of the published data set."""
    return {
        "id": sample,
        "split": split,
        "question_text": ask,
        "answer1": None,
        "answer2": None,
        "reminder1": None,
        "reminder2": None,
        "video_type": "drawn",
        "video_duration": float(clip["seconds"]),
        "video": f"videos/{name}.mp4",
        "video_id": name,
        "captions": f"captions/{name}.{language}.jsonl",
        "language": language,
    }


def write(target: Path, system: str, split: str, sample: str, value: Any) -> None:
    """One response file."""
    path = target / "outputs" / system / split / f"{sample}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", "utf-8")


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    """A JSON-lines file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(r, ensure_ascii=False) + "\n" for r in rows)
    path.write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
