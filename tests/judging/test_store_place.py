"""Whether other machines can see a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnijudge.judging.store_place import filesystem_of, sharing_warning

MOUNTS = """\
overlay / overlay rw 0 0
/dev/nvme0n1p1 /home ext4 rw 0 0
fileserver:/export /home/lab\\040data nfs4 rw 0 0
scratch@tcp:/scratch /scratch lustre rw 0 0
tmpfs /scratch/tmp tmpfs rw 0 0
broken
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    path = tmp_path / "mounts"
    path.write_text(MOUNTS, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/opt/store", "overlay"),
        ("/home/ann/store", "ext4"),
        ("/home/lab data/store", "nfs4"),
        ("/home/lab", "ext4"),
        ("/scratch", "lustre"),
        ("/scratch/store", "lustre"),
        ("/scratch/tmp/store", "tmpfs"),
        ("/scratchpad", "overlay"),
    ],
)
def test_filesystem_of_a_path(path: str, kind: str, mounts: Path) -> None:
    assert filesystem_of(path, mounts) == kind


def test_a_system_that_does_not_say(tmp_path: Path) -> None:
    assert filesystem_of("/home", tmp_path / "none") is None
    assert sharing_warning("/home", True, False, tmp_path / "none") is None


def test_links_are_followed(tmp_path: Path, mounts: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/scratch")
    assert filesystem_of(str(link / "store"), mounts) == "lustre"


def test_who_is_warned(mounts: Path) -> None:
    own, shared = "/home/ann/store", "/scratch/store"
    assert sharing_warning(own, False, False, mounts) is None
    assert sharing_warning(shared, True, True, mounts) is None
    assert sharing_warning("s3://bucket/store", True, True, mounts) is None
    shards = sharing_warning(own, True, False, mounts)
    assert shards is not None
    assert "shards on other machines cannot share it" in shards
    assert own in shards
    assert "ext4" in shards
    cluster = sharing_warning(own, False, True, mounts)
    assert cluster is not None
    assert "lost with this node" in cluster
