"""The judgement store: what is written is found, by everybody, for ever."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.questions import fingerprint
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import fs as pafs

from omnijudge.errors import StoreError
from omnijudge.judging import store as store_module
from omnijudge.judging.index import Index, entries
from omnijudge.judging.store import FOUND, Judgement, JudgementStore, replies
from omnijudge.judging.types import Reply


def judgement(number: int, attempt: int = 1, repeat: int = 0, raw: str | None = None) -> Judgement:
    text = raw if raw is not None else f'{{"score": {number}, "why": "对"}}'
    reply = Reply(text, None, "stop", "a-model", 100, 60, 8)
    return Judgement(fingerprint(number), attempt, repeat, "main", reply)


def raws(store: JudgementStore, number: int, repeat: int = 0) -> list[str | None]:
    return [r.raw for r in store.attempts(fingerprint(number), repeat)]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    with JudgementStore(tmp_path / "s") as store:
        store.append([judgement(1), judgement(2)])
        store.append([judgement(1, attempt=2)])
        (first, second) = store.attempts(fingerprint(1))
        assert first == Reply('{"score": 1, "why": "对"}', None, "stop", "a-model", 100, 60, 8)
        assert second.raw == first.raw
        assert raws(store, 3) == []
        assert len(store) == 3


def test_it_is_all_there_after_closing(tmp_path: Path) -> None:
    with JudgementStore(tmp_path) as store:
        store.append([judgement(n) for n in range(50)])
    assert not list((tmp_path / "journals").iterdir())
    assert len(list((tmp_path / "parts").glob("*.parquet"))) == 1
    with JudgementStore(tmp_path, writable=False) as store:
        assert all(raws(store, n) == [judgement(n).reply.raw] for n in range(50))
        assert store.report == []


def test_nothing_is_written_by_a_store_that_is_only_opened(tmp_path: Path) -> None:
    JudgementStore(tmp_path).close()
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == []


def test_attempts_end_at_the_first_gap(tmp_path: Path) -> None:
    with JudgementStore(tmp_path) as store:
        store.append([judgement(1, 1), judgement(1, 2), judgement(1, 4), judgement(2, 2)])
        assert len(raws(store, 1)) == 2
        assert raws(store, 2) == []
        assert store.count([fingerprint(1), fingerprint(2), fingerprint(3)]).tolist() == [2, 0, 0]


def test_repeats_are_kept_apart(tmp_path: Path) -> None:
    with JudgementStore(tmp_path) as store:
        store.append([judgement(1, repeat=0, raw="a"), judgement(1, repeat=1, raw="b")])
        store.append([judgement(1, repeat=300, raw="c")])
        assert [raws(store, 1, r) for r in (0, 1, 2, 300)] == [["a"], ["b"], [], ["c"]]
        table = store.attempts_many([fingerprint(1)] * 3, [300, 0, 1])
        assert table.column("raw").to_pylist() == ["c", "a", "b"]


def test_many_are_found_in_the_order_of_the_questions(tmp_path: Path) -> None:
    with JudgementStore(tmp_path) as store:
        for begin in range(0, 100, 10):
            store.append([judgement(n) for n in range(begin, begin + 10)])
            if begin in (20, 60):
                store.fold()
        store.append([judgement(7, attempt=2)])
        numbers = [99, 7, 200, 0, 7]
        table = store.attempts_many([fingerprint(n) for n in numbers])
        assert table.schema.equals(FOUND)
        assert table.column("question").to_pylist() == [0, 1, 1, 3, 4, 4]
        assert [q for q, _ in replies(table)] == [0, 1, 1, 3, 4, 4]
        array = np.frombuffer(b"".join(fingerprint(n) for n in numbers), np.uint8).reshape(-1, 16)
        assert store.attempts_many(array).equals(table)


def test_an_empty_lookup(tmp_path: Path) -> None:
    with JudgementStore(tmp_path) as store:
        assert store.attempts_many([]).num_rows == 0
        assert store.attempts_many([fingerprint(1)]).schema.equals(FOUND)
        assert len(store) == 0


def test_an_absent_finish_reason_comes_back_absent(tmp_path: Path) -> None:
    with JudgementStore(tmp_path) as store:
        store.append([Judgement(fingerprint(1), 1, 0, "main", Reply(""))])
        assert store.attempts(fingerprint(1)) == [Reply("")]


def test_errors_cannot_be_stored(tmp_path: Path) -> None:
    with JudgementStore(tmp_path) as store:
        for reply in (Reply(None, error="no answer"), Reply(None)):
            with pytest.raises(ValueError, match="no judgement"):
                store.append([Judgement(fingerprint(1), 1, 0, "main", reply)])
        assert len(store) == 0


def test_a_fingerprint_has_16_bytes(tmp_path: Path) -> None:
    with JudgementStore(tmp_path) as store, pytest.raises(ValueError, match="16 bytes"):
        store.attempts(b"short")


def test_a_reader_sees_what_a_writer_has_not_folded(tmp_path: Path) -> None:
    with JudgementStore(tmp_path) as writer:
        writer.append([judgement(1)])
        with JudgementStore(tmp_path, writable=False) as reader:
            assert len(raws(reader, 1)) == 1
            writer.append([judgement(2)])
            assert raws(reader, 2) == []
            reader.refresh()
            assert len(raws(reader, 2)) == 1
            writer.fold()
            assert len(raws(reader, 1)) == 1, "the journal it knew is gone, the part is there"
            writer.append([judgement(3)])
            reader.refresh()
            assert [len(raws(reader, n)) for n in (1, 2, 3)] == [1, 1, 1]


def test_a_journal_is_folded_at_the_size_limit(tmp_path: Path) -> None:
    with JudgementStore(tmp_path, fold_bytes=20_000) as store:
        for n in range(200):
            store.append([judgement(n, raw="x" * 1000)])
            assert len(raws(store, n // 2)) == 1
        parts = list((tmp_path / "parts").glob("*.parquet"))
        assert 5 <= len(parts) <= 20
    assert len(JudgementStore(tmp_path)) == 200


def test_the_first_written_wins_in_every_order_of_reading(tmp_path: Path) -> None:
    first, second = JudgementStore(tmp_path), JudgementStore(tmp_path)
    first.append([judgement(1, raw="first")])
    second.append([judgement(1, raw="second")])
    second.append([judgement(2, raw="first")])
    first.append([judgement(2, raw="second")])
    first.refresh()
    second.refresh()

    def check(store: JudgementStore) -> None:
        assert (raws(store, 1), raws(store, 2)) == (["first"], ["first"])

    check(first)
    check(second)
    second.close()
    check(JudgementStore(tmp_path, writable=False))
    first.close()
    check(JudgementStore(tmp_path, writable=False))
    for part in (tmp_path / "parts").iterdir():
        os.rename(part, part.with_name("0" + part.name[::-1][8:] + ".parquet"))
    check(JudgementStore(tmp_path, writable=False))
    with JudgementStore(tmp_path) as store:
        store.compact()
        check(store)
        assert store.stats().rows == 2


def test_of_one_batch_the_first_row_wins(tmp_path: Path) -> None:
    with JudgementStore(tmp_path) as store:
        store.append([judgement(1, raw="a"), judgement(1, raw="b")])
        assert raws(store, 1) == ["a"]
        store.fold()
        assert raws(store, 1) == ["a"]
    with JudgementStore(tmp_path) as store:
        assert raws(store, 1) == ["a"]


WRITE = """
import sys
from fakes.questions import fingerprint
from omnijudge.judging.store import Judgement, JudgementStore
from omnijudge.judging.types import Reply
store = JudgementStore(sys.argv[1], fold_bytes=4000)
for n in range(int(sys.argv[2]), int(sys.argv[2]) + 300, 3):
    store.append([Judgement(fingerprint(m), 1, 0, "main", Reply(f"{m}")) for m in range(n, n + 3)])
store.close()
"""


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}


def test_several_processes_write_and_fold_at_once(tmp_path: Path) -> None:
    # Neighbours overlap by half of their questions.
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITE, str(tmp_path), str(150 * k)], env=environment()
        )
        for k in range(3)
    ]
    with JudgementStore(tmp_path) as store:
        while any(w.poll() is None for w in writers):
            store.refresh()
            store.attempts_many([fingerprint(n) for n in range(0, 600, 7)])
        assert [w.returncode for w in writers] == [0, 0, 0]
        store.refresh()
        assert all(raws(store, n) == [str(n)] for n in range(600))
        assert store.report == []
        assert store.stats().rows == 900, "nothing lost, nothing doubled by folding"
        store.compact()
        assert store.stats().rows == 600
        assert all(raws(store, n) == [str(n)] for n in range(600))


def test_stores_that_fold_the_same_dead_journal_lose_and_double_nothing(tmp_path: Path) -> None:
    code = WRITE.replace("store.close()", "import os; os._exit(0)").replace("4000", "10**9")
    subprocess.run([sys.executable, "-c", code, str(tmp_path), "0"], env=environment(), check=True)
    assert len(list((tmp_path / "journals").iterdir())) == 1
    openers = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import sys; from omnijudge.judging.store import JudgementStore;"
                "print(len(JudgementStore(sys.argv[1])))",
                str(tmp_path),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    assert [o.communicate()[0].strip() for o in openers] == ["300"] * 3
    with JudgementStore(tmp_path) as store:
        assert store.stats().rows == 300
        assert store.stats().journals == 0


def test_a_living_writer_keeps_its_journal(tmp_path: Path) -> None:
    with JudgementStore(tmp_path) as writer:
        writer.append([judgement(1)])
        JudgementStore(tmp_path).close()
        assert len(list((tmp_path / "journals").glob("*.arrows"))) == 1
        writer.append([judgement(2)])
    assert len(JudgementStore(tmp_path)) == 2


def test_a_fold_killed_before_its_last_step_counts_once(tmp_path: Path) -> None:
    writer = JudgementStore(tmp_path)
    writer.append([judgement(n) for n in range(10)])
    (journal,) = (tmp_path / "journals").iterdir()
    copy = journal.read_bytes()
    writer.close()
    journal.write_bytes(copy)  # as if the removal had not happened
    with JudgementStore(tmp_path, writable=False) as store:
        assert (len(store), store.stats().rows) == (10, 10)
    with JudgementStore(tmp_path) as store:
        assert (len(store), store.stats().rows, store.stats().journals) == (10, 10, 0)


def test_compacting_makes_one_part_and_changes_no_answer(tmp_path: Path) -> None:
    for begin in range(0, 60, 10):
        with JudgementStore(tmp_path) as store:
            store.append([judgement(n) for n in range(begin, begin + 15)])
    reader = JudgementStore(tmp_path, writable=False)
    with JudgementStore(tmp_path) as store:
        assert (store.stats().parts, store.stats().rows) == (6, 90)
        store.compact()
        stats = store.stats()
        assert (stats.parts, stats.rows, stats.judgements) == (1, 65, 65)
    assert all(raws(reader, n) == [judgement(n).reply.raw] for n in range(65))


def test_stats_name_judges_and_models(tmp_path: Path) -> None:
    with JudgementStore(tmp_path) as store:
        store.append([judgement(n) for n in range(3)])
        store.append([Judgement(fingerprint(1), 1, 0, "second", Reply("x", model="b"))])
        assert store.stats().judges == (("main", "a-model", 3), ("second", "b", 1))
        assert store.stats().judgements == 3


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_export_holds_every_judgement_once(tmp_path: Path, suffix: str) -> None:
    with JudgementStore(tmp_path / "s") as store:
        store.append([judgement(n) for n in range(5)])
        store.append([judgement(2, raw="again"), judgement(2, attempt=2)])
        target = tmp_path / f"out.{suffix}"
        assert store.export(target) == 6
    if suffix == "jsonl":
        rows = [json.loads(line) for line in target.read_text().splitlines()]
        keys = [row["fingerprint"] for row in rows]
    else:
        rows = pq.read_table(target).to_pylist()
        keys = [row["fingerprint"].hex() for row in rows]
    assert keys == sorted([fingerprint(n).hex() for n in range(5)] + [fingerprint(2).hex()])
    assert "again" not in [row["raw"] for row in rows]


def test_export_refuses_an_unknown_form(tmp_path: Path) -> None:
    with JudgementStore(tmp_path) as store, pytest.raises(StoreError, match="parquet"):
        store.export(tmp_path / "out.csv")


def test_reading_only_needs_a_store_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no store here"):
        JudgementStore(tmp_path / "none", writable=False)
    with JudgementStore(tmp_path) as store:
        store.append([judgement(1)])
    with JudgementStore(tmp_path, writable=False) as store:
        for forbidden in (lambda: store.append([judgement(2)]), store.compact):
            with pytest.raises(StoreError, match="reading only"):
                forbidden()


def test_a_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file"):
        JudgementStore(tmp_path / "file")


def test_an_unknown_address_is_refused() -> None:
    with pytest.raises(StoreError, match="no filesystem"):
        JudgementStore("nonsense://somewhere/store")


def test_a_file_address_is_a_local_path(tmp_path: Path) -> None:
    with JudgementStore(f"file://{tmp_path}/s") as store:
        store.append([judgement(1)])
        assert len(list((tmp_path / "s" / "journals").iterdir())) == 1


class Objects(pafs.FileSystemHandler):
    """An object store over a folder: no appending, no renaming, listing in odd order."""

    def __init__(self, root: Path) -> None:
        self.inner = pafs.SubTreeFileSystem(str(root), pafs.LocalFileSystem())

    def get_type_name(self) -> str:
        return "objects"

    def get_file_info(self, paths: list[str]) -> Any:
        return self.inner.get_file_info(paths)

    def get_file_info_selector(self, selector: Any) -> Any:
        return list(reversed(self.inner.get_file_info(selector)))

    def open_input_file(self, path: str) -> Any:
        return self.inner.open_input_file(path)

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        return self.inner.open_output_stream(path)

    def create_dir(self, path: str, recursive: bool) -> None:
        self.inner.create_dir(path, recursive=recursive)

    def move(self, source: str, target: str) -> None:
        self.inner.move(source, target)

    def delete_file(self, path: str) -> None:
        self.inner.delete_file(path)

    def open_append_stream(self, path: str, metadata: Any) -> Any:
        raise NotImplementedError

    def copy_file(self, source: str, target: str) -> None:
        raise NotImplementedError

    def delete_dir(self, path: str) -> None:
        raise NotImplementedError

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        raise NotImplementedError

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError

    def normalize_path(self, path: str) -> str:
        return path

    def open_input_stream(self, path: str) -> Any:
        return self.inner.open_input_stream(path)


def test_on_object_stores_every_batch_is_there_at_once_and_folded_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "FOLD_SMALL_PARTS", 4)
    filesystem = pafs.PyFileSystem(Objects(tmp_path))

    def open_store(writable: bool = True) -> JudgementStore:
        return JudgementStore("bucket/store", writable, filesystem=filesystem)

    store = open_store()
    for n in range(6):
        store.append([judgement(n), judgement(n + 100)])
        reader = open_store(writable=False)
        assert (len(raws(reader, n)), len(raws(reader, n + 100))) == (1, 1)
    folder = tmp_path / "bucket" / "store"
    assert len(list((folder / "parts").iterdir())) == 3, "four became one"
    store.close()
    assert len(list((folder / "parts").iterdir())) == 2
    assert not (folder / "journals").exists()
    with open_store() as store:
        assert store.stats().rows == 12
        store.compact()
        assert (store.stats().parts, store.stats().rows) == (1, 12)


keys = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2), st.integers(1, 3))
rows = st.lists(st.tuples(keys, st.integers(0, 4), st.integers(0, 2)), max_size=12)


@settings(deadline=None, max_examples=200)
@given(st.lists(rows, max_size=6))
def test_the_index_finds_what_a_plain_search_finds(batches: list[Any]) -> None:
    """Fingerprints with few different halves, written at few different times."""

    def print_of(high: int, low: int) -> bytes:
        return high.to_bytes(8, "big") + low.to_bytes(8, "big")

    index = Index()
    best: dict[Any, Any] = {}
    for number, batch in enumerate(batches):
        for row, (key, written, writer) in enumerate(batch):
            order = (written, writer, number, row)
            best[key] = min(best.get(key, order), order)
        prints = b"".join(print_of(k[0], k[1]) for k, _, _ in batch)
        index.add(
            [
                entries(
                    np.frombuffer(prints, np.uint8).reshape(-1, 16),
                    np.array([k[2] for k, _, _ in batch], np.uint16),
                    np.array([k[3] for k, _, _ in batch], np.uint8),
                    np.array([w for _, w, _ in batch], np.int64),
                    np.array([w for _, _, w in batch], np.uint32),
                    number,
                    0,
                )
            ]
        )
    queries = [(h, low, r) for h in range(4) for low in range(4) for r in range(3)]
    expected = []
    for number, (high, low, repeat) in enumerate(queries):
        for attempt in (1, 2, 3):
            found = best.get((high, low, repeat, attempt))
            if found is None:
                break
            expected.append((number, attempt, found[2], found[3]))
    prints = b"".join(print_of(h, low) for h, low, _ in queries)
    position, hits = index.find(
        np.frombuffer(prints, np.uint8).reshape(-1, 16),
        np.array([r for _, _, r in queries], np.uint16),
    )
    columns = (position, hits.attempt, hits.source, hits.row)
    assert list(zip(*(c.tolist() for c in columns), strict=True)) == expected
    every = index.all()
    assert len(every) == len(best)


def test_the_schema_of_the_parts_is_stable(tmp_path: Path) -> None:
    with JudgementStore(tmp_path) as store:
        store.append([judgement(1)])
    (part,) = (tmp_path / "parts").iterdir()
    schema = pq.read_schema(part)
    assert schema.metadata[b"omnijudge.schema_version"] == b"1"
    assert {f.name: str(f.type) for f in schema} == {
        "fingerprint": "fixed_size_binary[16]",
        "repeat": "uint16",
        "attempt": "uint8",
        "written": "int64",
        "writer": "uint32",
        "judge": "string",
        "model": "string",
        "raw": "string",
        "finish_reason": "string",
        "prompt_tokens": "int32",
        "cached_tokens": "int32",
        "output_tokens": "int32",
    }
    meta = pq.read_metadata(part)
    codecs = {meta.row_group(0).column(i).compression for i in range(meta.num_columns)}
    assert codecs == {"ZSTD"}


def test_a_journal_is_a_plain_arrow_stream(tmp_path: Path) -> None:
    with JudgementStore(tmp_path) as store:
        store.append([judgement(1)])
        store.append([judgement(2), judgement(3)])
        (journal,) = (tmp_path / "journals").iterdir()
        table = pa.ipc.open_stream(journal.read_bytes()).read_all()
        assert table.column("fingerprint").to_pylist() == [fingerprint(n) for n in (1, 2, 3)]
