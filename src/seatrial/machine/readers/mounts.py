"""/proc/self/mountinfo -> the mounts that this process sees (proc_pid_mountinfo(5))."""

from __future__ import annotations

import re

from seatrial.model.frozen import Frozen


class Mount(Frozen):
    """A mount: the folder of its file system that is mounted (`root`), where, the file system's type, its source and
    options."""

    root: str
    point: str
    kind: str
    source: str
    options: str


def read_mounts(text: str) -> tuple[Mount, ...]:
    """The mounts, in order; lines of another form are skipped."""
    mounts: list[Mount] = []
    for line in text.splitlines():
        before, separator, after = line.partition(" - ")
        fields, rest = before.split(" "), after.split(" ", 2)
        if separator and len(fields) >= 6 and len(rest) == 3:
            mounts.append(Mount(unescape(fields[3]), unescape(fields[4]), rest[0], unescape(rest[1]), rest[2]))
    return tuple(mounts)


def unescape(path: str) -> str:
    """Decode a path of mountinfo: space, tab, newline and backslash are written as three octal digits."""
    return re.sub(r"\\([0-3][0-7]{2})", lambda match: chr(int(match[1], 8)), path)
