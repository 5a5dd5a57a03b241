"""Whether a store can be seen from other machines."""

from __future__ import annotations

import os
from pathlib import Path

OWN_DISKS = frozenset(
    ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "jfs", "tmpfs", "ramfs", "overlay",
     "aufs", "devtmpfs", "squashfs", "vfat", "exfat", "ntfs", "ntfs3", "apfs", "hfs")
)  # fmt: skip
"""Filesystems that belong to one machine. All others are taken to be shared."""

MOUNTS = Path("/proc/self/mounts")


def filesystem_of(path: str, mounts: Path = MOUNTS) -> str | None:
    """Type of the filesystem a path lies on; None where the system does not say.

    Args:
        path: it, or the nearest folder above it that exists.
        mounts: the system's list of mounts.
    """
    place = os.path.realpath(os.path.expanduser(path))
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    best, kind = "", None
    for line in lines:
        words = line.split()
        if len(words) < 3:
            continue
        point = words[1].encode().decode("unicode_escape")  # blanks stand there as \040
        inside = place == point or place.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, words[2]
    return kind


def sharing_warning(store: str, shards: bool, cluster: bool, mounts: Path = MOUNTS) -> str | None:
    """A sentence if other machines cannot see the store although they may have to.

    Args:
        store: path or address of the store.
        shards: whether several processes share the run (``--shard``).
        cluster: whether the run is driven from a node of a Ray cluster.
        mounts: the system's list of mounts.
    """
    if "://" in store or not (shards or cluster):
        return None
    kind = filesystem_of(store, mounts)
    if kind not in OWN_DISKS:
        return None
    where = f"store: {store} lies on a disk of this machine ({kind})"
    advice = "name a shared folder or an s3:// address in `store` (or OMNIJUDGE_STORE)"
    if shards:
        return f"{where}; shards on other machines cannot share it: {advice}, unless all run here"
    return f"{where}; it is lost with this node, and a driver on another node begins anew: {advice}"
