"""/proc/self/cgroup and /proc/self/mountinfo -> the control group folders of this process.

Formats: cgroups(7) and proc_pid_mountinfo(5).
"""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.errors import ParseError
from seatrial.machine.readers.mounts import unescape
from seatrial.model.frozen import Frozen


class CgroupMount(Frozen):
    """A mounted cgroup hierarchy: mount point, root within the hierarchy, version 1 controllers (None for version
    2)."""

    mount_point: str
    root: str
    controllers: frozenset[str] | None


def read_cgroup_membership(text: str) -> Mapping[str, str]:
    """Controller -> path of this process in its hierarchy; the key of version 2 is "". Raises ParseError."""
    paths: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line:
            continue
        fields = line.split(":", 2)
        if len(fields) != 3 or not fields[0].isdecimal() or not fields[2].startswith("/"):
            raise ParseError("cgroup", number, line)
        for controller in fields[1].split(","):
            paths[controller] = fields[2]
    return paths


def read_cgroup_mounts(text: str) -> tuple[CgroupMount, ...]:
    """The cgroup hierarchies of a mountinfo file. Raises ParseError if a cgroup line is damaged."""
    mounts: list[CgroupMount] = []
    for number, line in enumerate(text.splitlines(), start=1):
        before, separator, after = line.partition(" - ")
        kind, *rest = after.split(" ") if separator else [""]
        if kind not in ("cgroup", "cgroup2"):
            continue
        fields = before.split(" ")
        if len(fields) < 6 or len(rest) < 2 or not fields[3].startswith("/") or not fields[4].startswith("/"):
            raise ParseError("mountinfo", number, line)
        controllers = frozenset(rest[-1].split(",")) if kind == "cgroup" else None
        mounts.append(CgroupMount(unescape(fields[4]), unescape(fields[3]), controllers))
    return tuple(mounts)


def cgroup_folders(mount: CgroupMount, path: str) -> tuple[str, ...]:
    """The folders from the mount point down to the process's own group: each may set a limit, the lowest applies.

    In a container the mount shows only the part of the hierarchy below `mount.root`, and a path that begins with "/.."
    (seen from another cgroup namespace) cannot be followed: then only the mount point can be read.
    """
    root = mount.root.rstrip("/")
    relative = path[len(root) :] if path == root or path.startswith(f"{root}/") else "/"
    parts = [part for part in relative.split("/") if part]
    if ".." in parts:
        parts = []
    return tuple("/".join([mount.mount_point.rstrip("/"), *parts[:depth]]) for depth in range(len(parts) + 1))
