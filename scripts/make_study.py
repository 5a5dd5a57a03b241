"""What docs/study.md works on: invented recordings, two simulated judges, and its pictures.

    python scripts/make_study.py recordings study     # a list of 68 recordings and a configuration
    python scripts/make_study.py judges study         # two judges' answers to all questions
    python scripts/make_study.py gold study           # the gold judge's answers about drawn videos
    python scripts/make_study.py coverage study       # how often corrected intervals hold the truth
    python scripts/make_study.py pictures study docs/pictures

The judges are simulated: both start from what the smoke judge says. The gold judge adds a little
noise. The open judge is kinder to weak answers, overlooks three in ten of the early guesses, and
is noisier. Everything follows from fixed seeds.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "omnijudge" / "sample_data" / "omniinteract" / "data"
TAKES = 4
KEYS = ("system", "sample_id", "unit_id", "item", "stage")
CONFIG = """\
# Ten simulated systems on 68 recordings. Judges are put in with -o (docs/study.md).
benchmark: omniinteract
data: {manifest: outputs/manifest.jsonl}
judge: {engine: lexical}
statistics: {replicates: 4000, baseline: punctual-001}
output: runs/draft
"""
Row = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("action", choices=("recordings", "judges", "gold", "coverage", "pictures"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path, nargs="?", help="pictures: where they go")
    options = parser.parse_args()
    if options.action == "pictures" and options.out is None:
        parser.error("pictures: name the folder for them")
    if options.action == "recordings":
        recordings(options.folder)
    elif options.action == "judges":
        judges(options.folder)
    elif options.action == "gold":
        gold_of_sample(options.folder)
    elif options.action == "coverage":
        coverage(options.folder)
    else:
        pictures(options.folder, options.out)
    return 0


def recordings(folder: Path) -> None:
    """Every recording of the sample data in several takes: other words, another video."""
    from omnijudge.benchmarks.omniinteract.layout import read_root

    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, sample in sorted(read_root(SAMPLES).samples.items()):
        for take in range(1, TAKES + 1):
            rows.append(
                {
                    "sample_id": f"{name}-{take}",
                    "video_id": f"{name}-{take}",
                    "scene_type": sample.scene_type,
                    "gt_json": os.path.relpath(sample.annotation, folder),
                }
            )
    write(folder / "recordings.jsonl", rows)
    (folder / "study.yaml").write_text(CONFIG, encoding="utf-8")
    print(f"{len(rows)} recordings in {folder / 'recordings.jsonl'}")


def judges(folder: Path) -> None:
    """Answers of both judges to every question of the draft run."""
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "runs" / "draft" / "judgements.parquet")
    rows = table.select([*KEYS, "raw"]).to_pylist()
    for name, opinion in (("gold", gold_opinion), ("open", open_opinion)):
        said = []
        for row in rows:
            dice = random.Random("/".join(str(row[k]) for k in KEYS))
            answer = json.loads(row["raw"])
            answer = gold_opinion(row, answer, dice)
            if opinion is open_opinion:
                answer = open_opinion(row, answer, dice)
            said.append({**row, "raw": json.dumps(answer, ensure_ascii=False), "model": name})
        write(folder / f"{name}.jsonl", said)
        print(f"{len(said)} answers in {folder / f'{name}.jsonl'}")


def gold_opinion(row: Row, answer: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    """Nearly the smoke judge's own."""
    if row["stage"] != "early":
        return {**answer, "score": inside(answer["score"] + dice.gauss(0, 0.04))}
    return answer


def open_opinion(row: Row, answer: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    """Kinder to weak answers, blind to some guesses, and noisier."""
    if row["stage"] == "early":
        if answer["flag"] == "hallucination" and dice.random() < 0.3:
            return {**answer, "flag": "neutral", "score": 0.7}
        return answer
    kind = 0.25 if answer["score"] < 0.6 and dice.random() < 0.5 else 0.0
    return {**answer, "score": inside(answer["score"] + kind + dice.gauss(0, 0.08))}


def inside(score: float) -> float:
    return round(min(max(score, 0.0), 1.0), 2)


def gold_of_sample(folder: Path) -> None:
    """The gold judge's answers about the videos that `omnijudge sample` drew."""
    drawn = json.loads((folder / "runs" / "open" / "gold" / "sample.json").read_text("utf-8"))
    wanted = set(drawn["draw"]["clusters"])
    lines = (folder / "gold.jsonl").read_text("utf-8").splitlines()
    rows = [r for r in map(json.loads, lines) if r["sample_id"] in wanted]
    write(folder / "gold-sample.jsonl", rows)
    print(f"{len(rows)} answers about {len(wanted)} videos in {folder / 'gold-sample.jsonl'}")


def coverage(folder: Path, draws: int = 400, videos: int = 25) -> None:
    """How often, over many draws, a corrected interval holds what gold says about everything."""
    import numpy as np

    from omnijudge.analysis.run_set import RunSet
    from omnijudge.statistics.gold_sample import random_order
    from omnijudge.statistics.rectify import rectify

    sides = []
    for name in ("gold", "open"):
        with RunSet([folder / "runs" / name]) as found:
            metric = next(m for m in found.metrics if (m.name, m.group) == ("ia_qtf1", "all"))
            sums = found.sample_sums([metric])
            columns = [sums.sums.index(s) for s in metric.sums]
            sides.append(np.stack([sums.own(s)[:, columns] for s in found.systems]))
            systems = found.systems
    gold, cheap = sides
    truth = metric.function(gold.sum(axis=1))
    print(f"IA-QTF1, {draws} draws of {videos} videos; covered, and share of gold alone")
    print(f"{'':20s} {'as published':>20s} {'rare errors guarded':>20s}")
    held = np.zeros((2, len(systems), 2))
    for seed in range(draws):
        sample = random_order(gold.shape[1], seed)[:videos]
        for guard in (False, True):
            rows = rectify(metric, gold[:, sample], cheap, sample, guard_rare_errors=guard)
            for s, row in enumerate(rows):
                inside = row.low is not None and row.low <= truth[s] <= (row.high or 0.0)
                held[int(guard), s] += inside, row.method == "gold only"
    for s, name in enumerate(systems):
        cells = [f"{100 * a / draws:10.0f} % {100 * b / draws:6.0f} %" for a, b in held[:, s]]
        print(f"{name:20s} {cells[0]} {cells[1]}")


def write(path: Path, rows: list[Row]) -> None:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")


# Pictures


def pictures(folder: Path, out: Path) -> None:
    """Three pictures of the study's results."""
    from omnijudge.analysis.rectifying import correct

    runs = folder / "runs"
    correction = correct(runs / "open", folder / "gold-sample.jsonl", guard_rare_errors=True)
    truth = values(runs / "gold")
    for path in (
        two_judges(values(runs / "open"), truth, out / "study-two-judges.svg"),
        ranking(runs / "open", out / "study-ranking.svg"),
        corrected(correction.metrics["ia_qtf1", "all"], truth, out / "study-corrected.svg"),
    ):
        print(path)


def values(run: Path) -> dict[str, Row]:
    """The leading metric of every system."""
    import omnijudge

    rows = omnijudge.open_run(run).metrics.to_pylist()
    return {r["system"]: r for r in rows if (r["metric"], r["group"]) == ("ia_qtf1", "all")}


def two_judges(cheap: dict[str, Row], gold: dict[str, Row], path: Path) -> Path:
    """Every system under both judges, with careful intervals."""
    from omnijudge.analysis.pictures import COLOURS, RULE, drawing, panels, save_svg

    with drawing():
        figure, (ax,) = panels(1, 1, 5.6, 4.6)
        ax.plot([0, 1], [0, 1], color=RULE, linewidth=1)
        for system, g in gold.items():
            c = cheap[system]
            ax.plot([g["careful_low"], g["careful_high"]], [c["value"]] * 2, color=COLOURS[0], lw=1)
            ax.plot([g["value"]] * 2, [c["careful_low"], c["careful_high"]], color=COLOURS[0], lw=1)
            ax.plot(g["value"], c["value"], "o", color=COLOURS[0], ms=5)
            left = system.endswith("1")  # systems of a pair lie close together
            ax.annotate(
                system, (g["value"], c["value"]), (-7, 6) if left else (7, -11),
                textcoords="offset points", ha="right" if left else "left", fontsize=8,
            )  # fmt: skip
        ends = [r[n] for t in (cheap, gold) for r in t.values()
                for n in ("careful_low", "careful_high")]  # fmt: skip
        limits = min(ends) - 0.13, max(ends) + 0.13
        ax.set(xlim=limits, ylim=limits, xlabel="IA-QTF1 under the gold judge",
               ylabel="under the open judge")  # fmt: skip
        return save_svg(figure, path, "IA-QTF1 of ten systems under two judges")


def ranking(run: Path, path: Path) -> Path:
    """Ranks that the comparisons leave open."""
    import omnijudge
    from omnijudge.analysis.pictures import COLOURS, drawing, panels, save_svg

    rows = omnijudge.open_run(run).ranks.to_pylist()
    rows = [r for r in rows if (r["metric"], r["group"]) == ("ia_qtf1", "all")]
    rows.sort(key=lambda r: -r["rank"])
    with drawing():
        figure, (ax,) = panels(1, 1, 5.6, 3.4)
        for y, r in enumerate(rows):
            ends = r["rank_low"], r["rank_high"]
            ax.plot(ends, [y, y], color=COLOURS[0], lw=5, alpha=0.4, solid_capstyle="butt")
            ax.plot(r["rank"], y, "o", color=COLOURS[0], ms=6)
        ax.set_yticks(range(len(rows)), [r["system"] for r in rows])
        ax.set_xticks(range(1, len(rows) + 1))
        ax.set_xlabel("rank by IA-QTF1; bar: ranks that the tests leave open")
        return save_svg(figure, path, "Ranks of ten systems and those the tests leave open")


def corrected(found: Any, truth: dict[str, Row], path: Path) -> Path:
    """The open judge, gold alone, both together, and what gold says about everything."""
    from omnijudge.analysis.pictures import COLOURS, INK, common_legend, drawing, panels, save_svg

    rows = sorted(found, key=lambda c: c.finite.value)
    with drawing():
        figure, (ax,) = panels(1, 1, 6.4, 4.4)
        for y, c in enumerate(rows):
            r = c.finite
            first = y == 0
            ax.plot(r.cheap, y, "x", color=COLOURS[1], ms=7,
                    label="open judge, all videos" if first else None)  # fmt: skip
            ax.plot([r.gold_low, r.gold_high], [y + 0.16] * 2, color=COLOURS[5], lw=2,
                    label=f"gold alone, {r.n_gold} videos" if first else None)  # fmt: skip
            ax.plot([r.low, r.high], [y - 0.16] * 2, color=COLOURS[0], lw=4,
                    label="corrected" if first else None)  # fmt: skip
            ax.plot(truth[c.system]["value"], y, "|", color=INK, ms=13, mew=2,
                    label="gold on all videos" if first else None)  # fmt: skip
        ax.set_yticks(range(len(rows)), [c.system for c in rows])
        ax.set_xlabel("IA-QTF1")
        common_legend(figure, ax, 2)
        return save_svg(figure, path, "IA-QTF1 corrected by gold judgements on a sample")


if __name__ == "__main__":
    sys.exit(main())
