"""The judgement store after accidents: torn, flipped, truncated, full."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fakes.questions import fingerprint

from omnijudge.errors import StoreError
from omnijudge.judging.store import Judgement, JudgementStore
from omnijudge.judging.types import Reply


def fill(folder: Path, batches: int = 3, size: int = 2) -> JudgementStore:
    store = JudgementStore(folder)
    for b in range(batches):
        store.append([one(n) for n in range(b * size, (b + 1) * size)])
    return store


def one(number: int) -> Judgement:
    return Judgement(fingerprint(number), 1, 0, "main", Reply(f"answer {number}", model="m"))


def found(store: JudgementStore, count: int) -> dict[int, list[str | None]]:
    answers = {n: [r.raw for r in store.attempts(fingerprint(n))] for n in range(count)}
    return {n: a for n, a in answers.items() if a}


def check_true(store: JudgementStore, count: int) -> int:
    """Whatever is found is what was written; returns how many were found."""
    answers = found(store, count)
    assert all(a == [f"answer {n}"] for n, a in answers.items())
    return len(answers)


def dead_journal(folder: Path, batches: int = 3, size: int = 2) -> Path:
    """A journal whose process was killed."""
    store = fill(folder, batches, size)
    assert store._journal is not None
    store._journal.close()  # the kernel closes it for a dead process
    store._journal = None
    (journal,) = (folder / "journals").iterdir()
    return journal


def codes(store: JudgementStore) -> list[str]:
    return [p.code for p in store.report]


def test_a_torn_tail_is_dropped_and_reported(tmp_path: Path) -> None:
    journal = dead_journal(tmp_path)
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-100])
    with JudgementStore(tmp_path) as store:
        assert check_true(store, 6) == 4
        (problem,) = store.report
        assert problem.code == "torn_tail"
        assert journal.name in problem.file
        assert "asked again" in problem.message
        assert not list((tmp_path / "journals").iterdir())


def test_a_journal_torn_at_any_byte_keeps_all_whole_batches(tmp_path: Path) -> None:
    journal = dead_journal(tmp_path, batches=2)
    whole = journal.read_bytes()
    ends = []
    for cut in [*range(0, len(whole) - 1, 13), len(whole) - 1, len(whole)]:
        journal.write_bytes(whole[:cut])
        store = JudgementStore(tmp_path, writable=False)
        assert store.report == []
        ends.append(check_true(store, 4))
    assert ends == sorted(ends)
    assert set(ends) == {0, 2, 4}
    assert ends[-1] == 4
    assert ends[-2] == 2


def test_an_empty_journal_is_no_trouble(tmp_path: Path) -> None:
    dead_journal(tmp_path).write_bytes(b"")
    with JudgementStore(tmp_path) as store:
        assert (len(store), store.report) == (0, [])
    assert not list((tmp_path / "journals").iterdir())


def test_any_flipped_byte_of_a_journal_is_noticed_or_harmless(tmp_path: Path) -> None:
    journal = dead_journal(tmp_path)
    whole = journal.read_bytes()
    lost = 0
    for at in range(0, len(whole), 11):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << (at % 8)
        journal.write_bytes(damaged)
        kept = check_true(JudgementStore(tmp_path, writable=False), 6)
        assert kept >= 4, "one batch at most"
        lost += kept < 6
    assert lost > 20


def test_a_damaged_journal_is_set_aside_without_its_good_batches(tmp_path: Path) -> None:
    journal = dead_journal(tmp_path)
    data = bytearray(journal.read_bytes())
    data[data.index(b"answer 2")] ^= 1
    journal.write_bytes(data)
    with JudgementStore(tmp_path) as store:
        assert sorted(found(store, 6)) == [0, 1, 4, 5]
        assert codes(store) == ["damaged_journal"]
        assert store.stats().damaged == 1
        store.append([one(2), one(3)])
    names = sorted(p.suffix for p in (tmp_path / "journals").iterdir())
    assert names == [".damaged"]
    with JudgementStore(tmp_path) as store:
        assert check_true(store, 6) == 6
        assert store.report == []


def test_garbage_in_a_journal_is_stepped_over(tmp_path: Path) -> None:
    journal = dead_journal(tmp_path)
    data = journal.read_bytes()
    third = data.rindex(b"\xff\xff\xff\xff")
    journal.write_bytes(data[:third] + b"\xff" * 64 + os.urandom(64) + data[third:])
    with JudgementStore(tmp_path) as store:
        assert check_true(store, 6) == 6
        assert codes(store) == ["damaged_journal"]


def part_of(folder: Path) -> Path:
    (part,) = (folder / "parts").glob("*.parquet")
    return part


def test_any_flipped_byte_of_a_part_is_noticed_or_harmless(tmp_path: Path) -> None:
    fill(tmp_path).close()
    part = part_of(tmp_path)
    whole = part.read_bytes()
    noticed = 0
    for at in range(0, len(whole), 5):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << (at % 8)
        part.write_bytes(damaged)
        store = JudgementStore(tmp_path, writable=False)
        kept = check_true(store, 6)
        if kept < 6:
            assert codes(store) in (["damaged_part"], ["foreign_part"])
            noticed += 1
    assert noticed > 100


@pytest.mark.parametrize("keep", [0, 3, 200, -1, -300])
def test_a_truncated_part_is_set_aside(tmp_path: Path, keep: int) -> None:
    fill(tmp_path).close()
    part = part_of(tmp_path)
    whole = part.read_bytes()
    part.write_bytes(whole[:keep] if keep else b"")
    with JudgementStore(tmp_path) as store:
        assert len(store) == 0
        (problem,) = store.report
        assert problem.code == "damaged_part"
        assert problem.file == str(part)
        assert "asked again" in problem.message
        store.append([one(1)])
    assert part.with_name(part.name + ".damaged").read_bytes() == whole[:keep]
    with JudgementStore(tmp_path) as store:
        assert (len(store), store.report) == (1, [])


@pytest.fixture
def small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnijudge.judging.parts.ROW_GROUP", 2)


@pytest.mark.usefixtures("small_row_groups")
@pytest.mark.parametrize("writable", [True, False])
def test_the_sound_blocks_of_a_damaged_part_are_kept(tmp_path: Path, writable: bool) -> None:
    fill(tmp_path).close()
    part = part_of(tmp_path)
    data = bytearray(part.read_bytes())
    data[data.index(b"answer 3")] ^= 1
    part.write_bytes(data)
    with JudgementStore(tmp_path, writable=writable) as store:
        assert sorted(found(store, 6)) == [0, 1, 4, 5]
        assert check_true(store, 6) == 4
        assert codes(store) == ["damaged_part"]
        assert len(store) == 4
    assert part.exists() is not writable
    if writable:
        with JudgementStore(tmp_path) as store:
            assert check_true(store, 6) == 4
            assert store.report == []


@pytest.mark.usefixtures("small_row_groups")
def test_verify_finds_damage_nobody_has_read_yet(tmp_path: Path) -> None:
    fill(tmp_path).close()
    part = part_of(tmp_path)
    data = bytearray(part.read_bytes())
    data[data.index(b"answer 5")] ^= 1
    part.write_bytes(data)
    with JudgementStore(tmp_path) as store:
        assert store.report == []
        assert [p.code for p in store.verify()] == ["damaged_part"]
        assert len(store) == 4
        store.compact()
        assert check_true(store, 6) == 4
        assert store.export(tmp_path / "out.jsonl") == 4


def test_a_part_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    fill(tmp_path).close()
    part = part_of(tmp_path)
    table = pq.read_table(part)
    pq.write_table(table.replace_schema_metadata({"omnijudge.schema_version": "9"}), part)
    with JudgementStore(tmp_path) as store:
        assert len(store) == 0
        (problem,) = store.report
        assert problem.code == "foreign_part"
        assert "version 9" in problem.message
        store.compact()
    assert part.exists()


def test_a_journal_removed_under_a_writer_is_named(tmp_path: Path) -> None:
    store = fill(tmp_path)
    (journal,) = (tmp_path / "journals").iterdir()
    journal.unlink()
    with pytest.raises(StoreError, match="was removed"):
        store.append([one(9)])


def test_leftovers_of_killed_processes_go_after_a_day(tmp_path: Path) -> None:
    fill(tmp_path).close()
    leftovers = [tmp_path / "journals" / "a.new", tmp_path / "parts" / "b.parquet.tmp"]
    for path in leftovers:
        path.write_bytes(b"half")
    JudgementStore(tmp_path).close()
    assert all(p.exists() for p in leftovers), "somebody may be making them"
    for path in leftovers:
        os.utime(path, (0, 0))
    with JudgementStore(tmp_path) as store:
        assert check_true(store, 6) == 6
    assert not any(p.exists() for p in leftovers)


FULL = """
import resource, sys
from pathlib import Path
from fakes.questions import fingerprint
from omnijudge.errors import StoreError
from omnijudge.judging.store import Judgement, JudgementStore
from omnijudge.judging.types import Reply
store = JudgementStore(sys.argv[1])
limit = int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
n = 0
try:
    while n < 4000:
        store.append([Judgement(fingerprint(n), 1, 0, "main", Reply(f"answer {n}"))])
        n += 1
except StoreError as e:
    print(e)
store.close()
print(*(p.code for p in store.report))
print(n)
"""


def write_until_full(folder: Path, limit: int) -> tuple[str, str, int]:
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(folder), str(limit)],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    message, report, count = done.stdout.splitlines()
    return message, report, int(count)


def test_a_file_size_limit_is_named_and_loses_nothing(tmp_path: Path) -> None:
    message, _, count = write_until_full(tmp_path, 50_000)
    assert "full" in message
    assert "kept" in message
    assert 20 < count < 4000
    with JudgementStore(tmp_path) as store:
        assert check_true(store, count + 5) == count
        assert store.report == []


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small disk can only be mounted by root (the file size limit is tested)")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_named_and_loses_nothing(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "256k") as disk:
        message, report, count = write_until_full(disk / "store", 0)
        assert "the disk is full" in message
        assert "free some space" in message
        assert "fold_failed" in report
        assert count > 20
        assert not list((disk / "store" / "parts").iterdir()), "no half part is left"
        with JudgementStore(disk / "store", writable=False) as store:
            assert check_true(store, count + 5) == count
            assert store.report == []
