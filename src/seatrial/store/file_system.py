"""Whether a folder is on a network file system, which reports errors late."""

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


def is_remote(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> bool:
    """By the device number of the folder and the type of the mount that has it (proc_pid_mountinfo(5)); False if
    nothing is known."""
    try:
        device = folder.stat().st_dev
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in lines:
        before, _, after = line.partition(" - ")
        words = before.split()
        if len(words) > 2 and words[2] == number:
            return after.partition(" ")[0] in _REMOTE
    return False
