"""NUMA nodes from /sys/devices/system/node (Linux, Documentation/ABI/stable/sysfs-devices-node).

Rates and memory-side caches are those of the firmware's HMAT (Documentation/admin-guide/mm/numaperf.rst), seen from the
nearest node with CPUs (access1; access0 of older kernels).
"""

from __future__ import annotations

import re

from seatrial.errors import ParseError
from seatrial.machine.files import FileTree
from seatrial.machine.readers.meminfo import read_meminfo
from seatrial.machine.readers.scalars import read_cpu_list, write_cpu_list
from seatrial.machine.survey import CpuPart, FactBook
from seatrial.model.machine.fact import FactKind
from seatrial.model.machine.machine import DeviceKind
from seatrial.model.units import Unit

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
    _say_memory(files, folder, book)
    return CpuPart(DeviceKind.NUMA, cpus, number, facts=book.facts())


_RATES: tuple[tuple[str, str, float, Unit], ...] = (
    ("memory_read_bandwidth", "read_bandwidth", 1e6, "B/s"),
    ("memory_write_bandwidth", "write_bandwidth", 1e6, "B/s"),
    ("memory_read_latency", "read_latency", 1e-9, "s"),
    ("memory_write_latency", "write_latency", 1e-9, "s"),
)
"""(fact, file, scale to SI, unit); the files are in MB/s and ns."""


def _say_memory(files: FileTree, folder: str, book: FactBook) -> None:
    """Add what the firmware states about a node's memory: its rates, and a memory-side cache in front of it."""
    for fact, name, scale, unit in _RATES:
        for access in ("access1", "access0"):
            path = f"{folder}/{access}/initiators/{name}"
            value = files.integer(path)
            if value is not None:
                book.say(fact, value * scale or None, path, unit, kind=FactKind.ASSERTED)
                break
    caches = [f"{folder}/memory_side_cache/{index}/size" for index in files.names(f"{folder}/memory_side_cache")]
    sizes = [(size, path) for path in caches if (size := files.integer(path))]
    if sizes:
        size, path = max(sizes)
        book.say("memory_side_cache", size, path, "B")
