"""Control groups of a cluster's nodes: the CPUs, CPU time and memory that a node has, and the processes that are its.

Every process of the cluster is in one of them from its start, so what is left of a cluster is what is in its groups.
Version 2 of cgroups is used if it has the three controllers, else version 1.
Files: Linux, Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/cpusets.rst and memory.rst, scheduler/sched-bwc.rst.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.machine.readers.procfs import read_cgroup_mounts
from seatrial.machine.readers.scalars import write_cpu_list
from seatrial.model.frozen import Frozen
from seatrial.processes.tree import kill

_CONTROLLERS = ("cpuset", "cpu", "memory")
_PERIOD_US = 100_000
_LOOK_AGAIN_S = 0.02


class GroupsError(SeatrialError):
    """Control groups cannot be used as a cluster needs them."""


class ControlGroups(Frozen):
    """Where the groups of a cluster are: one folder in version 2, one for each controller in version 1. `enabled`:
    controllers of version 2 that the root passes on only since then."""

    tops: tuple[Path, ...]
    is_v2: bool
    enabled: tuple[str, ...] = ()

    def of(self, name: str) -> tuple[Path, ...]:
        """The folders of a node's group."""
        return tuple(top / name for top in self.tops)


def plan_groups(name: str, mountinfo: str) -> ControlGroups:
    """The groups that a cluster of this name will have; makes nothing. Raises GroupsError."""
    mounts = read_cgroup_mounts(mountinfo)
    for mount in mounts:
        root = Path(mount.mount_point)
        if mount.controllers is None and set(_CONTROLLERS) <= set(_words(root / "cgroup.controllers")):
            passed_on = _words(root / "cgroup.subtree_control")
            return ControlGroups((root / name,), True, tuple(c for c in _CONTROLLERS if c not in passed_on))
    tops: list[Path] = []
    for controller in _CONTROLLERS:
        found = next((m for m in mounts if m.controllers is not None and controller in m.controllers), None)
        if found is None:
            raise GroupsError(
                f"nodes need the cgroup controllers cpu, cpuset and memory; {controller} is not mounted here",
                "run it where cgroups are mounted, such as on the host instead of in a container",
            )
        top = Path(found.mount_point) / name
        if top not in tops:
            tops.append(top)
    return ControlGroups(tuple(tops), False)


def make_groups(groups: ControlGroups) -> None:
    """Make the groups in which those of the nodes will be. Raises GroupsError."""
    try:
        if groups.is_v2:
            _pass_on(groups.tops[0].parent, groups.enabled)
            groups.tops[0].mkdir()
            _pass_on(groups.tops[0], _CONTROLLERS)
            return
        for top in groups.tops:
            top.mkdir()
            _inherit_cpuset(top)
    except OSError as error:
        raise _failed(error) from error


def make_group(
    groups: ControlGroups, name: str, cpus: Sequence[int] | None, quota: float | None, memory_B: int | None
) -> None:
    """Make the group of a node: its CPUs (None: all), the share of their time, and its memory. Raises GroupsError."""
    try:
        for folder in groups.of(name):
            folder.mkdir()
            _inherit_cpuset(folder)
            if cpus is not None:
                _set(folder, "cpuset.cpus", write_cpu_list(frozenset(cpus)))
            if quota is not None and cpus is not None:
                quota_us = round(quota * len(cpus) * _PERIOD_US)
                _set(folder, "cpu.max", f"{quota_us} {_PERIOD_US}")
                _set(folder, "cpu.cfs_period_us", str(_PERIOD_US))
                _set(folder, "cpu.cfs_quota_us", str(quota_us))
            if memory_B is not None:
                _set(folder, "memory.max" if groups.is_v2 else "memory.limit_in_bytes", str(memory_B))
    except OSError as error:
        raise _failed(error) from error


def join(folders: Iterable[Path]) -> None:
    """Move this process into a group. Raises OSError."""
    for folder in folders:
        (folder / "cgroup.procs").write_text(str(os.getpid()))


def members(tops: Iterable[Path]) -> set[int]:
    """The processes in these groups and in those below; a group that is gone has none."""
    found: set[int] = set()
    for top in tops:
        for folder in (*_below(top), top):
            found.update(int(word) for word in _words(folder / "cgroup.procs"))
    return found


def end_members(tops: Sequence[Path], limit_s: float) -> set[int]:
    """Kill every process in these groups, until none is left; those that remain after `limit_s` seconds."""
    until = time.monotonic() + limit_s
    while left := members(tops):
        kill(left)
        for pid in left:
            _reap(pid)
        if time.monotonic() > until:
            return left
        time.sleep(_LOOK_AGAIN_S)
    return set()


def remove_groups(tops: Sequence[Path], enabled: Sequence[str], limit_s: float) -> None:
    """Remove groups without processes, and no longer pass on what was passed on for them. Raises GroupsError."""
    until = time.monotonic() + limit_s
    for top in tops:
        for folder in (*_below(top), top):
            while True:
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError as error:  # a process that has just ended is counted a little longer
                    if time.monotonic() > until:
                        raise GroupsError(
                            f"the control group {folder} cannot be removed: {error.strerror}", "try again"
                        ) from error
                    time.sleep(_LOOK_AGAIN_S)
    for controller in enabled:
        try:
            (tops[0].parent / "cgroup.subtree_control").write_text(f"-{controller}")
        except OSError:  # others need it by now
            continue


def _below(top: Path) -> list[Path]:
    try:
        return [folder for folder in top.iterdir() if folder.is_dir()]
    except FileNotFoundError:
        return []


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []


def _pass_on(folder: Path, controllers: Iterable[str]) -> None:
    for controller in controllers:
        (folder / "cgroup.subtree_control").write_text(f"+{controller}")


def _set(folder: Path, name: str, value: str) -> None:
    """Set a value where the folder has such a file: in version 1, each has those of its controller."""
    if (folder / name).exists():
        (folder / name).write_text(value)


def _inherit_cpuset(folder: Path) -> None:
    """In version 1 a new cpuset is empty, and no process may enter it."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        file = folder / name
        if file.exists() and not file.read_text().strip() and (value := (folder.parent / name).read_text().strip()):
            file.write_text(value)


def _reap(pid: int) -> None:
    """A child of ours that was killed stays in its group until it is waited for."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def _failed(error: OSError) -> GroupsError:
    return GroupsError(
        f"the control groups of the nodes cannot be made: {error.strerror} ({error.filename})",
        "cgroups must be writable for root, as on a host; most containers mount them read-only",
    )
