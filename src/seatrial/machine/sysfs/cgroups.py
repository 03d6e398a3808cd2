"""Limits that control groups (v1 and v2) set for this process: the lowest ones between the root and its own group.

Formats: Linux, Documentation/admin-guide/cgroup-v2.rst (cpu.max, memory.max, cpuset.cpus.effective) and
cgroup-v1/memory.rst, scheduler/sched-bwc.rst (cpu.cfs_quota_us).
"""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.errors import ParseError
from seatrial.machine.files import FileTree
from seatrial.machine.readers.control_groups import (
    CgroupMount,
    cgroup_folders,
    read_cgroup_membership,
    read_cgroup_mounts,
)
from seatrial.machine.survey import FactBook

_UNLIMITED_BYTES = 1 << 60  # version 1 writes LONG_MAX rounded down to a page for "no limit"


def add_cgroup_limits(files: FileTree, book: FactBook, unread: list[str]) -> None:
    """Add the CPU, CPU set and memory limits of this process, each with the file that sets it."""
    try:
        membership = read_cgroup_membership(files.text("/proc/self/cgroup") or "")
        mounts = read_cgroup_mounts(files.text("/proc/self/mountinfo") or "")
    except ParseError as error:
        unread.append(f"control group limits: {error.message}")
        return
    cpus: list[tuple[float, str]] = []
    memory: list[tuple[int, str]] = []
    for mount in mounts:
        for folder in _folders(mount, membership, "cpu"):
            cpus += _cpu_limit(files, folder, mount.controllers is None)
        for folder in _folders(mount, membership, "memory"):
            file = f"{folder}/{'memory.max' if mount.controllers is None else 'memory.limit_in_bytes'}"
            limit = files.integer(file)  # "max" is not a number: no limit
            if limit is not None and 0 < limit < _UNLIMITED_BYTES:
                memory.append((limit, file))
        _add_cpuset(files, mount, membership, book)
    if cpus:
        book.say("cgroup_cpu_limit", *min(cpus), "1")
    if memory:
        book.say("cgroup_memory_limit", *min(memory), "B")


def _folders(mount: CgroupMount, membership: Mapping[str, str], controller: str) -> tuple[str, ...]:
    if mount.controllers is None:
        return cgroup_folders(mount, membership[""]) if "" in membership else ()
    if controller in mount.controllers and controller in membership:
        return cgroup_folders(mount, membership[controller])
    return ()


def _cpu_limit(files: FileTree, folder: str, is_v2: bool) -> list[tuple[float, str]]:
    if is_v2:
        file = f"{folder}/cpu.max"
        words = (files.text(file) or "").split()
        quota, period = (words[0], words[1]) if len(words) == 2 else ("max", "")
    else:
        file = f"{folder}/cpu.cfs_quota_us"
        quota, period = files.word(file) or "-1", files.word(f"{folder}/cpu.cfs_period_us") or ""
    if not (quota.isdecimal() and period.isdecimal() and int(quota) > 0 and int(period) > 0):
        return []
    return [(int(quota) / int(period), file)]


def _add_cpuset(files: FileTree, mount: CgroupMount, membership: Mapping[str, str], book: FactBook) -> None:
    """Add the effective CPU set of the innermost group with one; it already respects the groups above."""
    names = ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus")
    for folder in reversed(_folders(mount, membership, "cpuset")):
        for name in names:
            word = files.word(f"{folder}/{name}")
            if word is not None:
                book.say("cgroup_cpus", word, f"{folder}/{name}")
                return
