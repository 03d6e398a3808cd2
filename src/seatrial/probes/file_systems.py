"""The file systems that a program uses: type, mount point and the options that change how fast calls are.

Paths are compared with the list of mounts; the files themselves are not touched, because a network file system may
hang.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from seatrial.machine.readers.procfs import Mount, read_mounts

_MOUNTS = Path("/proc/self/mountinfo")
_SLOW_OPTIONS = frozenset({"sync", "dirsync", "noac", "actimeo=0", "data=journal", "lookupcache=none", "directio"})
"""Mount options that make calls wait (mount(8), nfs(5), ext4(5))."""
_OPTION_PLACE = 5


def file_system_of(path: str, mounts: Path = _MOUNTS) -> dict[str, Any] | None:
    """`type`, `mount_point` and the slow `options` of the file system of an absolute path; None if it is not known."""
    try:
        text = mounts.read_bytes()
    except OSError:
        return None
    path = os.path.normpath(path)
    for mount, options in _by_length(text):
        point = mount.point.rstrip("/")
        if path == point or path.startswith(f"{point}/"):
            return {"type": mount.kind, "mount_point": mount.point, "options": sorted(options & _SLOW_OPTIONS)}
    return None


@lru_cache(maxsize=4)
def _by_length(text: bytes) -> tuple[tuple[Mount, frozenset[str]], ...]:
    """Mounts with all their options, the longest mount point first, of equal ones the last (it hides the others)."""
    lines = text.decode("utf-8", "surrogateescape").splitlines()
    found = []
    for line in lines:
        for mount in read_mounts(line):
            own = line.split(" ")[_OPTION_PLACE]
            found.append((mount, frozenset(own.split(",")) | frozenset(mount.options.split(","))))
    found.reverse()
    found.sort(key=lambda one: -len(one[0].point))
    return tuple(found)
