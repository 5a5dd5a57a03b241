"""The commands about finished runs are calls of the library, too."""

from __future__ import annotations

from pathlib import Path

from fakes.sample_runs import make_run, omnijudge

import omnijudge as library


def test_calls(lexical: Path, lenient: Path, tmp_path: Path) -> None:
    run = library.open_run(lexical)
    assert run.sensitivity(only=["w_ack"], out=tmp_path / "s").points.num_rows > 0
    assert run.sample("9videos", out=tmp_path / "g").draw.n == 9
    found = run.rectify(lenient, sample=tmp_path / "g")
    assert found.sampling == "gold on every video"
    (pair,) = library.agree(lexical, lenient, largest=1)
    assert pair.matching.matched > 0


def test_beginning_anew_keeps_the_gold(tmp_path: Path) -> None:
    run = make_run(tmp_path, "run", benchmark="omni_interactscope")
    library.open_run(run).sensitivity(only=["group_span"])
    library.open_run(run).sample("5videos")
    (run / "gold" / "answers.jsonl").write_text("bought\n", encoding="utf-8")
    assert (run / "sensitivity").is_dir()
    done = omnijudge("run", tmp_path / "run.yaml", "--fresh", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not (run / "sensitivity").exists()
    assert (run / "gold" / "answers.jsonl").read_text(encoding="utf-8") == "bought\n"
