"""NUMA nodes from /sys/devices/system/node (Linux, Documentation/ABI/stable/sysfs-devices-node)."""

from __future__ import annotations

import re

from seatrial.errors import ParseError
from seatrial.machine.files import FileTree
from seatrial.machine.readers.meminfo import read_meminfo
from seatrial.machine.readers.scalars import read_cpu_list, write_cpu_list
from seatrial.machine.survey import CpuPart, FactBook
from seatrial.model.machine import DeviceKind

NODE_ROOT = "/sys/devices/system/node"


def survey_numa(files: FileTree, online: frozenset[int]) -> tuple[tuple[CpuPart, ...], tuple[str, ...]]:
    """The NUMA nodes with CPUs or memory, and sentences about what could not be read.

    GPUs of Grace systems register nodes for unused partitions, without CPUs or memory: these are skipped.
    """
    parts: list[CpuPart] = []
    unread: list[str] = []
    numbers = sorted(int(m[1]) for name in files.names(NODE_ROOT) if (m := re.fullmatch(r"node(\d{1,5})", name)))
    for number in numbers:
        part = _node(files, number, numbers, online, unread)
        if part.cpus or part.facts.number("memory_total"):
            parts.append(part)
    if not numbers:
        unread.append(f"NUMA nodes: {NODE_ROOT} is missing (a kernel without NUMA support)")
    return tuple(parts), tuple(unread)


def _node(files: FileTree, number: int, numbers: list[int], online: frozenset[int], unread: list[str]) -> CpuPart:
    folder = f"{NODE_ROOT}/node{number}"
    book = FactBook()
    book.say("os_index", number, folder)
    try:
        cpus = frozenset(read_cpu_list(files.text(f"{folder}/cpulist") or "")) & online
        total = read_meminfo(files.text(f"{folder}/meminfo") or "").get("MemTotal")
        # Linux lists the distances in node order; firmware may not provide them.
        values = [int(word) for word in (files.text(f"{folder}/distance") or "").split()]
    except (ParseError, ValueError) as error:
        unread.append(f"NUMA node {number}: a file in {folder} is invalid ({error})")
        cpus, total, values = frozenset(), None, []
    # Volatile: hotplug, balloons and kernels that initialise pages lazily change it while the machine runs.
    book.say("memory_total", total, f"{folder}/meminfo", "B", volatile=True)
    if len(values) == len(numbers):
        distances = " ".join(f"{node}:{value}" for node, value in zip(numbers, values, strict=True))
        book.say("distances", distances, f"{folder}/distance")
    book.say("cpus", write_cpu_list(cpus), f"{folder}/cpulist")
    return CpuPart(DeviceKind.NUMA, cpus, number, facts=book.facts())
