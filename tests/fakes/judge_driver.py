"""A process that judges questions into a store, to be killed by tests.

    python -m fakes.judge_driver FOLDER COUNT BACKEND DELAY

The store is ``FOLDER/store``; the engine logs to ``FOLDER/asked``. Prints one line when it begins
to ask and one when it is done.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
from fakes.questions import run, scripted

from omnijudge.config import ExecutionConfig
from omnijudge.judging.executors import open_executor
from omnijudge.judging.store import JudgementStore


def main() -> None:
    folder, count, backend, delay = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    execution = ExecutionConfig(backend=backend, actors=2, cpus_per_actor=0.5)  # type: ignore[arg-type]
    executor = open_executor(execution, scripted(folder, delay=float(delay)), "omniinteract")
    # Arrow looks for pandas when it makes its first array, which takes longer than a kill waits.
    pa.array([0])
    # A small limit, so that a kill also meets a fold.
    with JudgementStore(folder / "store", fold_bytes=20_000) as store:
        print("asking", flush=True)
        report = run(store, executor, count)
    executor.close()
    print(f"stopped {report.stop.kind}" if report.stop else "done", flush=True)


if __name__ == "__main__":
    main()
