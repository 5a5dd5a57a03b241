"""The judgement store on object storage: an S3-compatible server that the test starts."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest
from fakes.commands import call, manifest, start, table_bytes
from fakes.corpus import write_corpus
from fakes.s3_server import KEYS, Server, s3_server
from requirements import need

from omnijudge.errors import StoreError
from omnijudge.judging.store import Judgement, JudgementStore
from omnijudge.judging.types import Reply

BATCH, IN_FLIGHT = 8, 1


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    need("s3")
    with s3_server() as found:
        yield found


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def judgements(first: int, count: int) -> list[Judgement]:
    return [
        Judgement(n.to_bytes(16, "big"), 1, 0, "main", Reply(f'{{"score": {n}}}', None, "stop"))
        for n in range(first, first + count)
    ]


def raws(store: JudgementStore, count: int) -> list[str | None]:
    found = store.attempts_many([n.to_bytes(16, "big") for n in range(count)])
    return list(found["raw"].to_pylist())


def test_writers_share_a_store(server: Server) -> None:
    address = server.store("shared")
    with JudgementStore(address) as one, JudgementStore(address) as two:
        one.append(judgements(0, 10))
        two.append(judgements(10, 10))
        one.append(judgements(20, 10))
        assert len(one) == 20
        one.refresh()
        two.refresh()
        expected = [f'{{"score": {n}}}' for n in range(30)]
        assert raws(one, 30) == raws(two, 30) == expected
    with JudgementStore(address) as again:
        assert again.report == []
        assert again.stats().judgements == 30
        again.compact()
        assert again.stats().parts == 1
        assert raws(again, 30) == expected
        assert again.verify() == []


def test_a_damaged_object_is_set_aside(server: Server) -> None:
    address = server.store("damaged")
    for first in (0, 10):
        with JudgementStore(address) as store:
            store.append(judgements(first, 10))
    filesystem, root = pafs.FileSystem.from_uri(address)
    parts = sorted(f.path for f in filesystem.get_file_info(pafs.FileSelector(f"{root}/parts")))
    with filesystem.open_input_stream(parts[0]) as stream:
        data = bytearray(stream.read())
    data[len(data) // 2] ^= 255
    with filesystem.open_output_stream(parts[0]) as stream:
        stream.write(bytes(data))
    with JudgementStore(address) as store:
        store.verify()
        assert len(store.report) == 1
        assert "damaged" in str(store.report[0])
        assert raws(store, 20) == [f'{{"score": {n}}}' for n in range(10, 20)]
    with JudgementStore(address) as store:
        assert store.report == []
        assert store.stats().damaged == 1


CONFIG: dict[str, Any] = {
    "benchmark": "omniinteract",
    "execution": {"batch_size": BATCH, "in_flight": IN_FLIGHT},
    "statistics": {"replicates": 100},
    "output": "run",
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus") / "c", 12, tempers="punctual,talkative")


def config(folder: Path, corpus: Path, store: str, delay: float = 0.0) -> Path:
    folder.mkdir()
    judge = {
        "engine": "fakes.odd_lexical:OddLexical",
        "engine_options": {"log": str(folder / "log.txt"), "delay": delay},
    }
    values = {**CONFIG, "data": {"manifest": str(corpus)}, "judge": judge, "store": store}
    (folder / "run.yaml").write_text(json.dumps(values), encoding="utf-8")
    return folder


def asked(folder: Path) -> list[str]:
    log = folder / "log.txt"
    return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


def test_shards_and_a_kill_on_object_storage(server: Server, corpus: Path, tmp_path: Path) -> None:
    local = config(tmp_path / "local", corpus, "store")
    call(local, "run", "run.yaml")
    remote = config(tmp_path / "remote", corpus, server.store("shards"), delay=0.1)
    killed = start(remote, "run", "run.yaml", "--shard", "1/2")
    until = time.monotonic() + 60
    while len(asked(remote)) < 3 * BATCH and time.monotonic() < until:
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    both = [start(remote, "run", "run.yaml", "--shard", f"{k}/2") for k in (1, 2)]
    for process in both:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        assert "cannot share" not in errors, "object storage is shared by nature"
    before = len(asked(remote))
    call(remote, "run", "run.yaml")
    assert len(asked(remote)) == before
    assert manifest(remote / "run")["counts"]["asked"] == 0
    assert table_bytes(remote / "run") == table_bytes(local / "run")
    twice = sum(n - 1 for n in Counter(asked(remote)).values())
    shared = len(asked(local)) - len(set(asked(local)))
    assert twice - shared <= BATCH * (IN_FLIGHT + 1)
    written = b"".join(p.read_bytes() for p in remote.rglob("*") if p.is_file())
    assert KEYS["AWS_SECRET_ACCESS_KEY"].encode() not in written


@pytest.mark.parametrize(
    "address",
    [
        "s3://name:hidden-word@bucket/store",
        "s3://bucket/store?access_key=name&secret_key=hidden-word",
        "abfs://container@account/store?account_key=hidden-word",
    ],
)
def test_keys_in_the_address_are_refused_and_not_shown(address: str) -> None:
    with pytest.raises(StoreError, match="holds a key") as caught:
        JudgementStore(address)
    assert "hidden-word" not in str(caught.value)


def test_a_server_that_is_not_there_is_named(corpus: Path, tmp_path: Path) -> None:
    need("s3")
    store = "s3://bucket/store?endpoint_override=127.0.0.1:9&scheme=http&region=us-east-1"
    folder = config(tmp_path / "a", corpus, store)
    _, errors = call(folder, "run", "run.yaml", "--limit", "1", code=1)
    assert "s3://bucket/store" in errors
    assert "Traceback" not in errors
    assert os.listdir(folder / "run") == [] or not (folder / "run" / "run.json").exists()
