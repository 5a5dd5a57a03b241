"""Throughput of decoding windows, against one ffmpeg process per frame, in one run.

    python scripts/bench_media.py [--seconds 30] [--systems 8] [--calls 30] [--out FILE]

A clip is made on the spot; invented sentences of several systems give a set of windows as in a
run of Omni-DuplexEval (four windows a sentence, 2 frames a second). Prints frames per second and
the ratio, writes JSON. Without an ffmpeg program (or pip install imageio-ffmpeg) only our side is
measured.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from omnijudge.benchmarks.omni_duplexeval.windows import candidate_windows, frame_times
from omnijudge.media.frames import FrameStore

WIDTH, HEIGHT, FPS, SIDE = 640, 360, 30, 512


def make_clip(path: Path, seconds: float, seed: int = 0) -> None:
    """A moving texture: pictures that take an ordinary effort to decode."""
    rng = np.random.default_rng(seed)
    texture = rng.integers(0, 255, (HEIGHT // 8, WIDTH // 2, 3), dtype=np.uint8)
    texture = texture.repeat(8, axis=0).repeat(4, axis=1)
    with av.open(str(path), "w") as out:
        video = out.add_stream("libx264", rate=FPS, options={"crf": "24", "preset": "veryfast"})
        video.width, video.height, video.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for i in range(round(seconds * FPS)):
            pixels = np.roll(texture, i, axis=1)[:HEIGHT, :WIDTH]
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format="rgb24")
            frame.pts, frame.time_base = i, Fraction(1, FPS)
            out.mux(video.encode(frame))
        out.mux(video.encode(None))


def window_set(seconds: float, systems: int, seed: int = 0) -> list[list[float]]:
    """Frame times of every window of every sentence."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(systems):
        for start in np.arange(1.0, seconds - 4, 3.5):
            begin = float(start + rng.uniform(0, 1.5))
            end = begin + float(rng.uniform(1.0, 3.0))
            for w in candidate_windows(begin, end, seconds):
                found.append(frame_times(w.start, w.end))
    return found


def ours(path: Path, windows: list[list[float]]) -> float:
    """Seconds that all windows take."""
    store = FrameStore()
    started = time.perf_counter()
    for times in windows:
        store.frames(str(path), times, SIDE)
    return time.perf_counter() - started


def one_process_per_frame(ffmpeg: str, path: Path, times: list[float]) -> float:
    """Seconds that these frames take."""
    started = time.perf_counter()
    for t in times:
        command = [ffmpeg, "-v", "error", "-ss", f"{t:.3f}", "-i", str(path), "-frames:v", "1"]
        command += ["-vf", f"scale={SIDE}:-2", "-f", "image2pipe", "-c:v", "mjpeg", "-"]
        subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return time.perf_counter() - started


def find_ffmpeg() -> str | None:
    """An ffmpeg program: the machine's own, else that of the package imageio-ffmpeg."""
    if found := shutil.which("ffmpeg"):
        return found
    try:
        from imageio_ffmpeg import get_ffmpeg_exe
    except ImportError:
        return None
    return str(get_ffmpeg_exe())


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30.0, help="length of the clip")
    parser.add_argument("--systems", type=int, default=8, help="systems that talk about it")
    parser.add_argument("--calls", type=int, default=30, help="frames for the ffmpeg side")
    parser.add_argument("--ffmpeg", default=find_ffmpeg(), help="the ffmpeg program")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clip = Path(folder) / "clip.mp4"
        make_clip(clip, given.seconds)
        windows = window_set(given.seconds, given.systems)
        frames = sum(map(len, windows))
        took = ours(clip, windows)
        result = {
            "clip": f"{WIDTH}x{HEIGHT}, {FPS} fps, {given.seconds:g} s",
            "clip_bytes": clip.stat().st_size,
            "windows": len(windows),
            "frames": frames,
            "omnijudge_frames_per_second": frames / took,
            "ffmpeg_frames_per_second": None,
            "ratio": None,
        }
        if given.ffmpeg:
            every = np.linspace(0, len(windows) - 1, min(given.calls, len(windows)))
            times = [windows[int(i)][0] for i in every]
            speed = len(times) / one_process_per_frame(given.ffmpeg, clip, times)
            result["ffmpeg_frames_per_second"] = speed
            result["ratio"] = frames / took / speed
    for name, value in result.items():
        print(f"{name}: {value:.1f}" if isinstance(value, float) else f"{name}: {value}")
    if given.out:
        given.out.write_text(json.dumps(result, indent=2) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
