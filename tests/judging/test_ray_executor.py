"""The Ray executor on a real local cluster, with real deaths."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes.questions import asked, faults, fingerprint, questions, run, scripted, stored
from fakes.scripted_engine import good_answer
from requirements import need

from omnijudge.config import ExecutionConfig, JudgeConfig
from omnijudge.errors import ResourceError
from omnijudge.judging.executors import open_executor
from omnijudge.judging.store import JudgementStore

pytestmark = pytest.mark.ray
TESTS = str(Path(__file__).parents[1])


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster of two CPUs on this machine, shared by the tests of this module."""
    need("ray")
    import ray

    from omnijudge_ray.cluster import quiet

    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = TESTS  # workers import the scripted engine
    ray.init(
        address="local",
        num_cpus=2,
        num_gpus=0,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    quiet()
    yield ray
    ray.shutdown()
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JudgementStore]:
    with JudgementStore(tmp_path / "store") as opened:
        yield opened


def open_ray(judge: JudgeConfig, timeout: float | None = None, **execution: Any) -> Any:
    settings = ExecutionConfig(
        **{"backend": "ray", "actors": 2, "cpus_per_actor": 0.5, **execution}
    )
    if timeout is None:
        return open_executor(settings, judge, "omniinteract")
    from omnijudge_ray.executor import RayExecutor

    return RayExecutor(settings, judge, "omniinteract", timeout=timeout)


def expected(count: int, *but: int) -> dict[int, list[str]]:
    return {n: [good_answer(fingerprint(n))] for n in range(count) if n not in but}


@pytest.mark.usefixtures("cluster")
def test_a_quiet_run(
    tmp_path: Path, store: JudgementStore, capfd: pytest.CaptureFixture[str]
) -> None:
    executor = open_ray(scripted(tmp_path, faults(malformed__1=3, fenced=4)))
    report = run(store, executor, 100)
    executor.close()
    assert (report.stages[0].ok, report.stages[0].repaired) == (99, 1)
    answers = stored(store, 100)
    assert [len(answers[n]) for n in (2, 3, 4)] == [1, 2, 1]
    assert report.counters["answered"] == 101
    assert report.counters["actors"] == 2
    assert report.counters["actors_lost"] == 0
    assert report.counters["devices_set"] == 0
    assert report.counters["kernels_found"] == 0
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("cluster")
def test_batches_stay_whole(tmp_path: Path, store: JudgementStore) -> None:
    executor = open_ray(scripted(tmp_path))
    run(store, executor, 64)
    executor.close()
    lines = [line.split() for line in (tmp_path / "asked").read_text().splitlines()]
    assert {line[4] for line in lines} == {"8"}
    by_print = {line[0]: line[3] for line in lines}
    for first in range(0, 64, 8):
        processes = {by_print[fingerprint(n).hex()] for n in range(first, first + 8)}
        assert len(processes) == 1


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("death", ["exit", "kill"])
def test_an_actor_that_dies_once(tmp_path: Path, store: JudgementStore, death: str) -> None:
    executor = open_ray(scripted(tmp_path, faults(**{f"{death}__1": 20})))
    report = run(store, executor, 100)
    executor.close()
    assert report.stages[0].ok == 100
    assert stored(store, 100) == expected(100)
    assert report.counters["actors_lost"] == report.counters["actors_recreated"] == 1
    assert report.counters["questions_quarantined"] == 0


@pytest.mark.usefixtures("cluster")
def test_an_actor_killed_from_outside(tmp_path: Path, store: JudgementStore) -> None:
    executor = open_ray(scripted(tmp_path, delay=0.05))

    def kill() -> None:
        last = (tmp_path / "asked").read_text().splitlines()[-1]
        os.kill(int(last.split()[3]), signal.SIGKILL)

    threading.Timer(0.5, kill).start()
    report = run(store, executor, 200)
    executor.close()
    assert stored(store, 200) == expected(200)
    assert report.counters["actors_lost"] == 1
    twice = [key for key, n in asked(tmp_path).items() if n > 1]
    assert len(twice) <= 16, "what the actor had in flight"


@pytest.mark.usefixtures("cluster")
def test_a_question_that_kills_is_found_and_set_aside(
    tmp_path: Path, store: JudgementStore, capfd: pytest.CaptureFixture[str]
) -> None:
    executor = open_ray(scripted(tmp_path, faults(exit=21)), actors=1)
    report = run(store, executor, 48)
    executor.close()
    assert stored(store, 48) == expected(48, 21)
    assert report.stages[0].error == 1
    reason = report.failed[fingerprint(21), 0]
    assert "judge actors died over this question" in reason
    assert report.counters["questions_quarantined"] == 1
    assert report.counters["batches_split"] == 3
    assert report.counters["actors_lost"] == report.counters["actors_recreated"] == 5
    assert asked(tmp_path)[fingerprint(21).hex(), 1] == 5
    assert capfd.readouterr().out == ""


@pytest.mark.usefixtures("cluster")
def test_failures_inside_an_actor_do_not_end_it(tmp_path: Path, store: JudgementStore) -> None:
    script = faults(**{"raise": 3, "memory": 9, "memory_always": 17, "short__1": 25})
    executor = open_ray(scripted(tmp_path, script))
    report = run(store, executor, 40)
    executor.close()
    assert stored(store, 40) == expected(40, 3, 17)
    assert report.counters["actors_lost"] == 0
    assert report.counters["questions_quarantined"] == 2


@pytest.mark.usefixtures("cluster")
def test_an_actor_that_hangs_is_ended(tmp_path: Path, store: JudgementStore) -> None:
    executor = open_ray(scripted(tmp_path, faults(hang__1=10)), timeout=2.0)
    report = run(store, executor, 40)
    executor.close()
    assert stored(store, 40) == expected(40)
    assert report.counters["actors_hung"] == 1


@pytest.mark.usefixtures("cluster")
def test_actors_that_always_die_end_the_run(tmp_path: Path, store: JudgementStore) -> None:
    executor = open_ray(scripted(tmp_path, {"*": "exit"}), actors=1)
    report = run(store, executor, 40)
    executor.close()
    assert report.stop is not None
    assert report.stop.kind == "engine"
    assert "lost in a row" in report.stop.message
    assert len(store) == 0


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(("fault", "words"), [("open_error", "max_model_len"), ("exit", "died")])
def test_an_engine_that_cannot_be_opened(tmp_path: Path, fault: str, words: str) -> None:
    with pytest.raises(ResourceError, match=words) as error:
        open_ray(scripted(tmp_path, open=fault))
    assert "cannot be opened" in str(error.value)


@pytest.mark.usefixtures("cluster")
def test_work_begins_with_the_first_actor_there_is_room_for(
    tmp_path: Path, store: JudgementStore
) -> None:
    executor = open_ray(scripted(tmp_path), actors=4, cpus_per_actor=1.0)
    report = run(store, executor, 100)
    executor.close()
    assert stored(store, 100) == expected(100)
    assert report.counters["actors"] == 4


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("execution", "words"),
    [
        ({"gpus_per_actor": 1}, "needs 0.5 CPUs and 1 GPU, but the cluster has no GPU"),
        ({"cpus_per_actor": 64}, "needs 64 CPUs, but the largest node has 2 CPUs"),
    ],
)
def test_missing_resources_are_named_at_once(
    tmp_path: Path, execution: dict[str, Any], words: str
) -> None:
    begin = time.monotonic()
    with pytest.raises(ResourceError, match=words):
        open_ray(scripted(tmp_path), **execution)
    assert time.monotonic() - begin < 30


def test_resources_that_others_hold_are_named(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnijudge_ray.pool.PLACE_SECONDS", 2.0)

    @cluster.remote(num_cpus=2)
    class Other:
        def ping(self) -> bool:
            return True

    other = Other.remote()
    cluster.get(other.ping.remote())
    try:
        with pytest.raises(ResourceError, match="0 of 2 CPUs of the cluster are free"):
            open_ray(scripted(tmp_path), cpus_per_actor=1.0)
    finally:
        cluster.kill(other)


@pytest.mark.usefixtures("cluster")
def test_a_question_that_cannot_travel_is_an_error(tmp_path: Path, store: JudgementStore) -> None:
    from dataclasses import replace

    def source() -> Iterator[Any]:
        for sample, request in questions(16):
            if request.fingerprint == fingerprint(3):
                request = replace(request, variables={"lock": threading.Lock()})
            yield sample, request

    executor = open_ray(scripted(tmp_path))
    report = run(store, executor, questions=source())
    executor.close()
    assert report.stages[0].error == 8
    assert "cannot be sent" in report.errors[0].reason
    assert report.stages[0].ok == 8


# A process with a cluster of its own


def start(folder: Path, count: int) -> subprocess.Popen[str]:
    need("ray")
    # As a user's process would be: no connection to the cluster of this one.
    env = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "fakes.judge_driver", str(folder), str(count), "ray", "0.02"],
        env={**env, "PYTHONPATH": TESTS},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "asking\n"
    return process


def test_a_killed_driver_keeps_what_was_judged(tmp_path: Path) -> None:
    process = start(tmp_path, 400)
    time.sleep(0.3)
    process.kill()
    process.communicate()
    time.sleep(1.0)  # actors may live a moment longer and go on with what they have
    with JudgementStore(tmp_path / "store", writable=False) as store:
        kept = {(fingerprint(n).hex(), 1) for n in stored(store, 400)}
    lost = asked(tmp_path).keys() - kept
    assert len(lost) <= 2 * 2 * 8
    process = start(tmp_path, 400)
    out, err = process.communicate(timeout=120)
    assert (out, err, process.returncode) == ("done\n", "", 0)
    with JudgementStore(tmp_path / "store") as store:
        assert stored(store, 400) == expected(400)
        assert store.stats().rows == 400
    assert {key for key, n in asked(tmp_path).items() if n > 1} == lost


def test_sigterm_ends_the_driver_in_order(tmp_path: Path) -> None:
    process = start(tmp_path, 100_000)
    time.sleep(0.5)
    process.terminate()
    out, err = process.communicate(timeout=60)
    assert (out, err, process.returncode) == ("stopped interrupted\n", "", 0)
    with JudgementStore(tmp_path / "store") as store:
        assert len(store) == len(asked(tmp_path))


@pytest.mark.parametrize("how", ["environment", "configuration"])
def test_a_running_cluster_is_used(cluster: Any, tmp_path: Path, how: str) -> None:
    address = cluster.get_runtime_context().gcs_address
    code = (
        "from fakes.questions import run, scripted; from pathlib import Path; import sys, ray\n"
        "from omnijudge.config import ExecutionConfig\n"
        "from omnijudge.judging.executors import open_executor\n"
        "from omnijudge.judging.store import JudgementStore\n"
        "e = ExecutionConfig(backend='ray', cpus_per_actor=0.5, actors=2,\n"
        "                    address=sys.argv[2] or None)\n"
        "folder = Path(sys.argv[1])\n"
        "executor = open_executor(e, scripted(folder), 'omniinteract')\n"
        "with JudgementStore(folder / 'store') as store:\n"
        "    print(run(store, executor, 20).stages[0].ok, ray.get_runtime_context().gcs_address)\n"
        "executor.close()\n"
    )
    env = {**os.environ, "PYTHONPATH": TESTS, "VLLM_SOMETHING": "1"}
    if how == "environment":
        env["RAY_ADDRESS"] = address
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), "" if how == "environment" else address],
        env=env,
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == (f"20 {address}\n", "")


def test_an_address_where_nobody_answers(tmp_path: Path) -> None:
    need("ray")
    code = (
        "from fakes.questions import scripted; from pathlib import Path; import sys\n"
        "from omnijudge.config import ExecutionConfig\n"
        "from omnijudge.errors import ResourceError\n"
        "from omnijudge.judging.executors import open_executor\n"
        "e = ExecutionConfig(backend='ray', address='127.0.0.1:1')\n"
        "try: open_executor(e, scripted(Path(sys.argv[1])), 'omniinteract')\n"
        "except ResourceError as e: print(e)\n"
    )
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": TESTS},
        capture_output=True,
        text=True,
    )
    assert "no Ray cluster answers at 127.0.0.1:1" in done.stdout
    assert time.monotonic() - begin < 30


# What an actor needs, without a cluster


def fake(*nodes: dict[str, float]) -> Any:
    total: dict[str, float] = {}
    for node in nodes:
        for kind, value in node.items():
            total[kind] = total.get(kind, 0.0) + value
    return SimpleNamespace(
        cluster_resources=lambda: total,
        available_resources=lambda: total,
        nodes=lambda: [{"Alive": True, "Resources": n} for n in nodes],
    )


VLLM = JudgeConfig(engine="vllm", model="m")


@pytest.mark.parametrize(
    ("judge", "execution", "nodes", "gpus", "actors"),
    [
        (VLLM, {}, [{"CPU": 8.0, "GPU": 4.0}], 1, 4),
        (VLLM, {}, [{"CPU": 8.0}], 0, 8),
        (VLLM, {"cpus_per_actor": 4}, [{"CPU": 8.0, "GPU": 4.0}, {"CPU": 2.0}], 1, 2),
        (VLLM, {"gpus_per_actor": 0.5}, [{"CPU": 8.0, "GPU": 2.0}], 0.5, 4),
        (VLLM, {"actors": 3}, [{"CPU": 8.0, "GPU": 2.0}], 1, 3),
        (
            VLLM.model_copy(
                update={"engine_options": {"tensor_parallel_size": 2, "pipeline_parallel_size": 2}}
            ),
            {},
            [{"CPU": 64.0, "GPU": 8.0}, {"CPU": 64.0, "GPU": 3.0}],
            4,
            2,
        ),
        (JudgeConfig(engine="openai", model="m"), {}, [{"CPU": 8.0, "GPU": 4.0}], 0, 1),
        (JudgeConfig(engine="lexical"), {}, [{"CPU": 8.0, "GPU": 4.0}], 0, 8),
    ],
)
def test_what_an_actor_needs(
    judge: JudgeConfig, execution: Any, nodes: Any, gpus: float, actors: int
) -> None:
    from omnijudge_ray import cluster

    settings = ExecutionConfig(backend="ray", **execution)
    ray = fake(*nodes)
    one = cluster.need(ray, settings, judge)
    assert one.gpus == gpus
    assert cluster.actor_count(ray, settings, judge, one) == actors


def test_the_last_user_of_our_connection_ends_it(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnijudge_ray import cluster as module

    ended = []
    ours = SimpleNamespace(shutdown=lambda: ended.append(1))
    assert module.connect(ExecutionConfig(backend="ray")) == (cluster, False)
    monkeypatch.setattr(module, "_users", 1)
    assert module.connect(ExecutionConfig(backend="ray")) == (cluster, True)
    module.disconnect(ours)
    assert ended == []
    module.disconnect(ours)
    assert ended == [1]


def test_more_gpus_than_a_node_has() -> None:
    from omnijudge_ray import cluster

    ray = fake({"CPU": 8.0, "GPU": 2.0}, {"CPU": 8.0, "GPU": 2.0})
    judge = VLLM.model_copy(update={"engine_options": {"tensor_parallel_size": 4}})
    settings = ExecutionConfig(backend="ray")
    one = cluster.need(ray, settings, judge)
    with pytest.raises(ResourceError, match="needs 1 CPU and 4 GPUs, but the largest node has 2"):
        cluster.actor_count(ray, settings, judge, one)
