"""Whether a folder is on a network file system, which reports errors late, or on a local one, whose files all processes
see alike."""

from __future__ import annotations

import os
from pathlib import Path

_REMOTE = frozenset(
    (
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "lustre",
        "gpfs",
        "beegfs",
        "ceph",
        "glusterfs",
        "fuse.glusterfs",
        "afs",
        "9p",
        "panfs",
    )
)


_LOCAL = frozenset(("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "tmpfs"))
_MOUNTS = Path("/proc/self/mountinfo")


def is_remote(folder: Path, mounts: Path = _MOUNTS) -> bool:
    """Whether the type is a known one of a network; False if nothing is known."""
    return _kind(folder, mounts) in _REMOTE


def is_local(folder: Path, mounts: Path = _MOUNTS) -> bool:
    """Whether the type is a known one of a local disk; False if nothing is known."""
    return _kind(folder, mounts) in _LOCAL


def _kind(folder: Path, mounts: Path) -> str:
    """The type of the mount that has the folder, by its device number (proc_pid_mountinfo(5)); "" if unknown."""
    try:
        device = folder.stat().st_dev
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in lines:
        before, _, after = line.partition(" - ")
        words = before.split()
        if len(words) > 2 and words[2] == number:
            return after.partition(" ")[0]
    return ""
