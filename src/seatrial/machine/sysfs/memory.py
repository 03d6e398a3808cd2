"""Memory: sizes, huge pages and swap (/proc/meminfo, memory blocks, page pools), NUMA nodes, and modules.

* The EDAC drivers, which need no root, have the memory controller and channel of each module but no transfer rate
  (Linux, Documentation/ABI/testing/sysfs-devices-edac); SMBIOS has both.
* GPUs of Grace and of POWER9 have their memory as NUMA nodes without CPUs, which is not memory of the host: NVIDIA's
  driver names the node in its file numa_status (nv-procfs.c).
* NUMA nodes: Documentation/ABI/stable/sysfs-devices-node. Rates and memory-side caches are those of the firmware's HMAT
  (admin-guide/mm/numaperf.rst), seen from the nearest node with CPUs (access1; access0 of older kernels).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from msgspec.structs import replace

from seatrial.errors import ParseError
from seatrial.machine.files import FileTree
from seatrial.machine.memory_population import declared_slots, say_memory_facts, system_modules
from seatrial.machine.readers.hwloc_memory import GPU_MEMORY, is_node_of_power9
from seatrial.machine.readers.procfs import CpuRecord, read_meminfo, read_present_pages
from seatrial.machine.readers.scalars import read_choice, read_cpu_list, write_cpu_list
from seatrial.machine.readers.smbios import read_smbios
from seatrial.machine.survey import CpuPart, FactBook, MemoryModule, Survey, merge_facts, one_fact
from seatrial.model.machine.fact import MEMINFO, FactKind
from seatrial.model.machine.machine import DeviceKind
from seatrial.model.units import SIUnit

NODE_ROOT = "/sys/devices/system/node"


def survey_numa(
    files: FileTree, online: frozenset[int], records: Collection[CpuRecord] = ()
) -> tuple[tuple[CpuPart, ...], tuple[str, ...]]:
    """The NUMA nodes with CPUs or memory, and sentences about what could not be read.

    GPUs of Grace systems register nodes for unused partitions, without CPUs or memory: these are skipped.
    """
    of_gpus = _nodes_of_gpus(files, records)
    parts: list[CpuPart] = []
    unread: list[str] = []
    numbers = sorted(int(m[1]) for name in files.names(NODE_ROOT) if (m := re.fullmatch(r"node(\d{1,5})", name)))
    for number in numbers:
        part = _numa_node(files, number, numbers, online, unread)
        if not part.cpus and (source := of_gpus(number)):
            part = replace(part, facts=merge_facts(part.facts, one_fact("memory_kind", GPU_MEMORY, source)))
        if part.cpus or part.facts.number("memory_total"):
            parts.append(part)
    if not numbers:
        unread.append(f"NUMA nodes: {NODE_ROOT} is missing (a kernel without NUMA support)")
    return tuple(parts), tuple(unread)


_NVIDIA, _PCI = "/proc/driver/nvidia/gpus", "/sys/bus/pci/devices"
_NEOVERSE_V2 = (0x41, 0xD4F)
"""Implementer and part of the cores of Grace, and of processors of clouds."""


def _nodes_of_gpus(files: FileTree, records: Collection[CpuRecord]) -> Callable[[int], str | None]:
    """What shows that a node without CPUs is the memory of a GPU, by its number."""
    stated: dict[int, str] = {}
    for gpu in files.names(_NVIDIA):
        path = f"{_NVIDIA}/{gpu}/numa_status"
        if match := re.search(r"^Node:\s*(\d{1,5})\s*$", files.text(path) or "", re.MULTILINE):
            stated[int(match[1])] = path
    is_power9 = "POWER9" in (files.text("/proc/cpuinfo") or "") and bool(files.names(_NVIDIA))
    of_dax = {files.integer(f"/sys/bus/dax/devices/{name}/target_node") for name in files.names("/sys/bus/dax/devices")}
    coherent = None
    if any((record.implementer, record.part) == _NEOVERSE_V2 for record in records):
        coherent = next((gpu for gpu in files.names(_PCI) if _is_nvidia_gpu(files, gpu)), None)

    def of_gpu(number: int) -> str | None:
        if number in stated or number in of_dax:  # a DAX device is CXL or persistent memory
            return stated.get(number)
        if is_power9 and is_node_of_power9(number):
            return f"{NODE_ROOT}/node{number} (without CPUs, on POWER9)"
        return None if coherent is None else f"{NODE_ROOT}/node{number} (without CPUs, beside Grace and GPU {coherent})"

    return of_gpu


def _is_nvidia_gpu(files: FileTree, address: str) -> bool:
    vendor, kind = (files.word(f"{_PCI}/{address}/{name}") or "" for name in ("vendor", "class"))
    return vendor == "0x10de" and kind.startswith(("0x0302", "0x0300"))


def _numa_node(files: FileTree, number: int, numbers: list[int], online: frozenset[int], unread: list[str]) -> CpuPart:
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


_RATES: tuple[tuple[str, str, float, SIUnit], ...] = (
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


_BLOCKS = "/sys/devices/system/memory"
_POOLS = "/sys/kernel/mm/hugepages"
_THP = "/sys/kernel/mm/transparent_hugepage"


def add_memory(files: FileTree, parts: tuple[CpuPart, ...], book: FactBook, unread: list[str]) -> None:
    """Add all sizes of the memory, the most useful first: the total of the kernel, then the sums of parts."""
    of_gpus = [p for p in parts if p.kind is DeviceKind.NUMA and p.facts.text("memory_kind") == GPU_MEMORY]
    without = ", ".join(f"node {part.os_index}" for part in of_gpus)
    without = f", without the memory of GPUs: {without}" if without else ""
    _add_meminfo(files, book, unread, [part.os_index for part in of_gpus], without)
    blocks = _online_blocks(files, [part.os_index for part in of_gpus])
    book.say("memory_total", blocks, f"{_BLOCKS} (sum of the online blocks{without})", "B")
    book.say("memory_online", blocks, f"{_BLOCKS} (sum of the online blocks{without})", "B")
    pages = None if of_gpus else read_present_pages(files.text("/proc/zoneinfo") or "")
    sizes = re.findall(r"^KernelPageSize: +([0-9]{1,9}) kB$", files.text("/proc/self/smaps") or "", re.MULTILINE)
    page_B = min(map(int, sizes), default=0) * 1024  # that of the smallest mapping of this process
    if pages is not None and page_B:
        book.say("memory_present", pages * page_B, "/proc/zoneinfo (pages present in all zones)", "B")
    nodes = [part for part in parts if part.kind is DeviceKind.NUMA and part not in of_gpus]
    known = [size for part in nodes if (size := part.facts.integer("memory_total")) is not None]
    if known:
        source = f"/sys/devices/system/node (sum of MemTotal of the NUMA nodes{without})"
        book.say("memory_total", sum(known), source, "B", volatile=True)
    _add_huge_pages(files, book)


def _add_meminfo(
    files: FileTree, book: FactBook, unread: list[str], of_gpus: Sequence[int | None], without: str
) -> None:
    source = MEMINFO
    text = files.text(source)
    try:
        values = read_meminfo(text or "")
        others = [read_meminfo(files.text(f"{NODE_ROOT}/node{node}/meminfo") or "") for node in of_gpus]
    except ParseError as error:
        unread.append(f"memory: {source} is invalid ({error.message})")
        return
    total, available = (
        None if name not in values else max(0, values[name] - sum(node.get(of_node, 0) for node in others)) or None
        for name, of_node in (("MemTotal", "MemTotal"), ("MemAvailable", "MemFree"))
    )
    book.say("memory_total", total, f"{source} (MemTotal{without})", "B")
    book.say("memory_available", available, f"{source} (MemAvailable{without})", "B", volatile=True)
    book.say("swap_total", values.get("SwapTotal"), f"{source} (SwapTotal)", "B")
    book.say("swap_free", values.get("SwapFree"), f"{source} (SwapFree)", "B", volatile=True)


def _online_blocks(files: FileTree, without: Collection[int | None]) -> int | None:
    """Bytes of the online memory blocks, but for those of some nodes (Documentation/admin-guide/mm/memory-hotplug.rst;
    the size is bare hex)."""
    try:
        block = int(files.word(f"{_BLOCKS}/block_size_bytes") or "", 16)
    except ValueError:
        return None
    others = {name for node in without for name in files.names(f"{NODE_ROOT}/node{node}")}
    names = [name for name in files.names(_BLOCKS) if re.fullmatch(r"memory\d+", name) and name not in others]
    states = [files.word(f"{_BLOCKS}/{name}/state") for name in names]
    return states.count("online") * block or None


def _add_huge_pages(files: FileTree, book: FactBook) -> None:
    for name in ("enabled", "defrag"):
        with suppress(ParseError):
            book.say(f"thp_{name}", read_choice(files.text(f"{_THP}/{name}") or ""), f"{_THP}/{name}")
    for pool in files.names(_POOLS):
        match = re.fullmatch(r"hugepages-(\d{1,12})kB", pool)
        if match is None:
            continue
        size = _binary_size(int(match[1]))
        total, free = files.integer(f"{_POOLS}/{pool}/nr_hugepages"), files.integer(f"{_POOLS}/{pool}/free_hugepages")
        book.say(f"hugetlb_{size}_total", total, f"{_POOLS}/{pool}/nr_hugepages", "1")
        book.say(f"hugetlb_{size}_free", free, f"{_POOLS}/{pool}/free_hugepages", "1", volatile=True)


def _binary_size(kib: int) -> str:
    for scale, name in ((1 << 20, "GiB"), (1 << 10, "MiB")):
        if kib >= scale and kib % scale == 0:
            return f"{kib // scale}{name}"
    return f"{kib}KiB"


_ROOT = "/sys/devices/system/edac/mc"
_SOCKET = re.compile(r"CPU_SrcID#(\d{1,3})_", re.ASCII)  # the label of the skx, i10nm and sb drivers
_CHANNEL = re.compile(r"channel (\d{1,3})\b", re.ASCII)


def survey_edac(files: FileTree, book: FactBook) -> tuple[MemoryModule, ...]:
    """The modules that EDAC lists. Adds `ecc_mode`, the mode of the controllers."""
    modules: list[MemoryModule] = []
    modes: set[str] = set()
    for controller in (name for name in files.names(_ROOT) if re.fullmatch(r"mc\d{1,4}", name)):
        # Some drivers list ranks (rank0, rank1, ...) instead of modules; these are skipped.
        for dimm in (name for name in files.names(f"{_ROOT}/{controller}") if re.fullmatch(r"dimm\d{1,4}", name)):
            folder = f"{_ROOT}/{controller}/{dimm}"
            size_mb = files.integer(f"{folder}/size")
            if not size_mb:
                continue
            label = files.word(f"{folder}/dimm_label") or dimm
            location = files.word(f"{folder}/dimm_location") or ""
            socket, channel = _SOCKET.search(label), _CHANNEL.search(location)
            modules.append(
                MemoryModule(
                    locator=label,
                    bank=f"{controller} {location}".strip(),
                    size_bytes=size_mb << 20,
                    memory_type=files.word(f"{folder}/dimm_mem_type"),
                    socket=int(socket[1]) if socket else None,
                    channel=f"{controller} channel {channel[1]}" if channel else None,
                    source=folder,
                )
            )
            mode = files.word(f"{folder}/dimm_edac_mode")
            if mode is not None:
                modes.add(mode)
    if modes:
        book.say("ecc_mode", ", ".join(sorted(modes)), f"{_ROOT}/mc*/dimm*/dimm_edac_mode")
    return tuple(modules)


_FOLDER = "/sys/firmware/dmi"
_TABLE = f"{_FOLDER}/tables/DMI"


def survey_firmware(files: FileTree, *, is_virtual: bool) -> Survey:
    """The modules, or a sentence on why they cannot be read."""
    data = files.data(_TABLE)
    if data is None:
        return _without_modules(_why_absent(files, is_virtual))
    try:
        smbios = read_smbios(data)
    except ParseError as error:
        return _without_modules(f"{_TABLE} is damaged ({error.message}); ask the board's vendor")
    modules = system_modules(smbios.modules, smbios.arrays, _TABLE)
    if not modules:
        return _without_modules(f"{_TABLE} describes no memory modules")
    book = FactBook()
    say_memory_facts(book, smbios.modules, modules, smbios.arrays, _TABLE)
    book.say("sockets", len(smbios.sockets) or None, _TABLE, "1")
    return Survey(source="SMBIOS", facts=book.facts(), modules=modules, memory_slots=declared_slots(smbios.arrays))


def _without_modules(why: str) -> Survey:
    return Survey("SMBIOS", why_no_modules=why, unread=(f"DIMMs: {why}",))


def _why_absent(files: FileTree, is_virtual: bool) -> str:
    if _TABLE in files.refused:
        return f"{_TABLE} can only be read by root; run once as root to get the modules and the DRAM limit"
    if is_virtual:
        return f"{_FOLDER} is missing (virtual machine without SMBIOS); only the host can list the modules"
    return f"{_FOLDER} is missing (no SMBIOS firmware); see the data sheet for the modules and the DRAM limit"
