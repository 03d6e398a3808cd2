"""Memory, <info> elements and OS devices in hwloc XML.

Formats: hwloc, "Heterogeneous Memory" and "Comparing memory node attributes" (hwloc.h, hwloc/memattrs.h;
topology-linux.c). A NUMA node has a subtype: DRAM, HBM, MCDRAM, SPM (specific-purpose memory), NVM, GPUMemory,
CXL-DRAM. hwloc 1 writes subtypes as an info "Type". A memory-side cache is an object of type MemCache around its node;
on Xeon Phi, an L3 cache with the subtype MemorySideCache around a cluster, in front of its DRAM but not of its MCDRAM.
Bandwidths are in MiB/s and latencies in ns. They come from the firmware (ACPI HMAT) or from a file that the user gave
hwloc: the XML does not say which, so they are stated, not measured by seatrial.

OS devices are attached to PCI functions, with the names of the OS or the drivers: eth0, mlx5_0, sda, nvml0;
`osdev_type` is a number in hwloc 1 and 2, a bit set in 3 (hwloc.h, hwloc_obj_osdev_type_e).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from seatrial.machine.readers.memory_locators import read_places
from seatrial.machine.readers.scalars import write_cpu_list
from seatrial.machine.readers.smbios import hypervisor_of
from seatrial.machine.readers.xml import Element, XmlDocument
from seatrial.machine.survey import CpuPart, FactBook, MemoryModule, NamedPart, one_fact
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fact import FactKind, Facts
from seatrial.model.machine.machine import DeviceKind
from seatrial.model.units import SIUnit


def read_infos(element: Element) -> dict[str, str]:
    """Name -> value of the infos directly inside an element; the last one of duplicates."""
    return {
        child.attributes["name"]: child.attributes["value"]
        for child in element.children
        if child.tag == "info" and "name" in child.attributes and "value" in child.attributes
    }


def info_number(text: str | None) -> int | None:
    """A whole number, decimal or 0x; None for anything else."""
    match = re.fullmatch(r"\s*(?:0x([0-9a-fA-F]{1,8})|(\d{1,18}))\s*", text or "", re.ASCII)
    return None if match is None else int(match[1], 16) if match[1] else int(match[2])


def info_size(text: str | None) -> int | None:
    """Bytes of "390711384KiB" (hwloc 3) or "390711384" (KiB too, hwloc 1 and 2)."""
    number = info_number(text.strip().removesuffix("KiB")) if text is not None else None
    return number * 1024 if number is not None else None


def number_of(document: XmlDocument, element: Element, name: str) -> int | None:
    """The number in an attribute, or None. Raises ParseError for anything but a number."""
    text = element.attributes.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 20):
        raise document.error(element, f"{name} is not a number")
    return int(text)


def machine_facts(
    document: XmlDocument, machine: Element, infos: Mapping[str, str], parts: Sequence[CpuPart], source: str
) -> Facts:
    """The facts about the whole machine: its memory, firmware and kernel."""
    book = FactBook()
    nodes = [part.facts for part in parts if part.kind is DeviceKind.NUMA]
    sizes = (facts.integer("memory_total") or 0 for facts in nodes if facts.text("memory_kind") != GPU_MEMORY)
    total = sum(sizes) or number_of(document, machine, "local_memory")
    sum_of = f"{source} (sum of the NUMA nodes' local memory)"
    book.say("memory_total", total or None, sum_of, "B", volatile=True)
    for fact, keys in _MACHINE_INFOS.items():
        book.say(fact, " ".join(filter(None, map(infos.get, keys))), source)
    product = book.facts().text("product") or ""
    book.say("hypervisor", hypervisor_of(product, virtual_cpu=None), f"{source} (DMI product)")
    return book.facts()


_MACHINE_INFOS = {
    "product": ("DMISysVendor", "DMIProductName"),
    "board": ("DMIBoardVendor", "DMIBoardName"),
    "bios_vendor": ("DMIBIOSVendor",),
    "bios_version": ("DMIBIOSVersion",),
    "bios_date": ("DMIBIOSDate",),
    "kernel": ("OSRelease",),
    "architecture": ("Architecture",),
}


_ATTRIBUTES: Mapping[str, tuple[str, float, SIUnit, bool]] = {
    "Bandwidth": ("memory_bandwidth", float(1 << 20), "B/s", True),
    "ReadBandwidth": ("memory_read_bandwidth", float(1 << 20), "B/s", True),
    "WriteBandwidth": ("memory_write_bandwidth", float(1 << 20), "B/s", True),
    "Latency": ("memory_latency", 1e-9, "s", False),
    "ReadLatency": ("memory_read_latency", 1e-9, "s", False),
    "WriteLatency": ("memory_write_latency", 1e-9, "s", False),
}
"""Name in hwloc -> the fact, its scale to SI, its unit, whether more is better."""

_FAST_KINDS = frozenset({"HBM", "MCDRAM"})
_MOST_VALUES = 1 << 16


class SideCache(Frozen):
    """A memory-side cache: bytes, ways, and whether it is around a cluster (Xeon Phi) rather than around its nodes."""

    size: int | None
    ways: int | None
    is_around_cluster: bool


def subtype_of(element: Element) -> str:
    """The subtype of an object, "" for none."""
    return element.attributes.get("subtype") or read_infos(element).get("Type", "")


def is_node_of_power9(number: int) -> bool:
    """Whether a node of a POWER9 machine without CPUs is the memory of a GPU: they are numbered downwards from 255
    (Linux, arch/powerpc: the firmware's numbers of NVLink memory)."""
    return 248 <= number <= 255


_NEOVERSE_V2 = ("0x41", "0xd4f")
_GPU_OF_NVIDIA = re.compile(r"030[02] \[10de:", re.ASCII)


def attaches_gpu_memory(root: Element) -> bool:
    """Whether nodes without CPUs are the memory of GPUs: all cores are those of Grace, and NVIDIA's GPUs are among the
    objects."""
    makers, cores, has_gpu, waiting = set[str](), set[str](), False, [root]
    while waiting:
        element = waiting.pop()
        waiting += element.children
        has_gpu = has_gpu or bool(_GPU_OF_NVIDIA.match(element.attributes.get("pci_type", "")))
        if element.tag == "info" and element.attributes.get("name") in ("CPUImplementer", "CPUPart"):
            found = makers if element.attributes["name"] == "CPUImplementer" else cores
            found.add(element.attributes.get("value", "").lower())
    return has_gpu and (makers, cores) == ({_NEOVERSE_V2[0]}, {_NEOVERSE_V2[1]})


def side_cache(element: Element) -> SideCache | None:
    """The memory-side cache that an object is, or None."""
    is_memory_cache = element.attributes.get("type") == "MemCache"
    if not is_memory_cache and subtype_of(element) != "MemorySideCache":
        return None
    size, ways = (info_number(element.attributes.get(name)) for name in ("cache_size", "cache_associativity"))
    return SideCache(size or None, ways or None, not is_memory_cache)


GPU_MEMORY = "GPUMemory"
"""The subtype of a NUMA node that is the memory of a GPU: not memory of the host."""


def say_memory_kind(
    book: FactBook,
    element: Element,
    caches: Sequence[SideCache],
    source: str,
    *,
    is_gpu: bool,
) -> None:
    """Add the kind of a NUMA node's memory, and the memory-side cache in front of it. `is_gpu`: whether it is the
    memory of a GPU, if the file has no subtype."""
    kind = subtype_of(element) or (GPU_MEMORY if is_gpu else "")
    book.say("memory_kind", kind[:40], source)
    own = [cache for cache in caches if not (cache.is_around_cluster and kind in _FAST_KINDS)]
    largest = max(own, key=lambda cache: cache.size or 0, default=None)
    if largest is not None:
        _say_cache(book, largest, source)


def _say_cache(book: FactBook, cache: SideCache, source: str) -> None:
    book.say("memory_side_cache", cache.size, source, "B")
    book.say("memory_side_cache_ways", cache.ways, source, "1")


def cache_facts(caches: Mapping[int, SideCache], source: str) -> Mapping[int, Facts]:
    """NUMA node -> the facts about the memory-side cache in front of it."""
    books = {node: FactBook() for node in caches}
    for node, cache in caches.items():
        _say_cache(books[node], cache, source)
    return {node: book.facts() for node, book in books.items()}


def memory_module(element: Element, source: str) -> MemoryModule:
    """A module; hwloc omits empty slots, speeds and the number of slots."""
    infos = {name: value.strip() for name, value in read_infos(element).items()}
    return MemoryModule(
        locator=infos.get("DeviceLocation", ""),
        bank=infos.get("BankLocation", ""),
        size_bytes=info_size(infos.get("Size")),
        memory_type=infos.get("Type") or None,
        rank=info_number(infos.get("Rank")) or None,
        manufacturer=infos.get("Vendor") or None,
        part_number=infos.get("PartNumber") or None,
        source=f"{source} (MemoryModule)",
    )


def placed_modules(modules: Sequence[MemoryModule]) -> tuple[MemoryModule, ...]:
    """The modules with the socket and channel that their names state."""
    places = read_places([(m.locator, m.bank, bool(m.size_bytes)) for m in modules])
    return tuple(
        replace(module, socket=place.socket, channel=place.channel)
        for module, place in zip(modules, places, strict=True)
    )


class _Value(Frozen):
    """A value of an attribute, and the CPUs that it is for (None: all, or those of another object)."""

    value: int
    cpus: frozenset[int] | None


def memory_rates(
    document: XmlDocument,
    nodes: Mapping[int, int],
    parts: Sequence[CpuPart],
    mask: Callable[[Element, str], frozenset[int]],
    source: str,
) -> Mapping[int, Facts]:
    """NUMA node -> the rates stated for it. `nodes`: gp_index -> node; `mask` reads a CPU mask of an element. Raises
    ParseError for a damaged value.

    Of several initiators, the CPUs of the node itself count, else those with the best value.
    """
    own = {part.os_index: part.cpus for part in parts if part.kind is DeviceKind.NUMA}
    books: dict[int, FactBook] = {}
    for element in (child for child in document.root.children if child.tag == "memattr"):
        attribute = _ATTRIBUTES.get(element.attributes.get("name", ""))
        if attribute is None:
            continue
        name, scale, unit, is_more_better = attribute
        for node, values in _values(document, element, nodes, mask).items():
            near = [value for value in values if value.cpus is not None and value.cpus == own.get(node)] or values
            best = (max if is_more_better else min)(near, key=lambda entry: entry.value)
            where = f", from CPUs {write_cpu_list(best.cpus)}" if best.cpus else ""
            book = books.setdefault(node, FactBook())
            stated = f"{source} (memory attribute {element.attributes['name']}{where})"
            book.say(name, best.value * scale, stated, unit, kind=FactKind.ASSERTED)
    return {node: book.facts() for node, book in books.items()}


def _values(
    document: XmlDocument, element: Element, nodes: Mapping[int, int], mask: Callable[[Element, str], frozenset[int]]
) -> dict[int, list[_Value]]:
    found: dict[int, list[_Value]] = {}
    entries = [child for child in element.children if child.tag == "memattr_value"]
    if len(entries) > _MOST_VALUES:
        raise document.error(element, f"more than {_MOST_VALUES} values of a memory attribute")
    for entry in entries:
        attributes = entry.attributes
        if attributes.get("target_obj_type") != "NUMANode":
            continue
        target, value = info_number(attributes.get("target_obj_gp_index")), info_number(attributes.get("value"))
        if value is None:
            raise document.error(entry, "the value of a memory attribute is not a number")
        if target is None or target not in nodes:
            raise document.error(entry, "a memory attribute of an object that is not a NUMA node of the file")
        text = attributes.get("initiator_cpuset")
        if value:  # 0 is unknown
            found.setdefault(nodes[target], []).append(_Value(value, None if text is None else mask(entry, text)))
    return found


_NUMBERS = {
    0: DeviceKind.BLOCK,
    1: DeviceKind.GPU,
    2: DeviceKind.NIC,
    3: DeviceKind.NIC,  # OpenFabrics
    5: DeviceKind.GPU,  # co-processor
}
_RDMA_NUMBER = 3
_BITS = ((1, DeviceKind.BLOCK), (16 | 32, DeviceKind.NIC), (4 | 8, DeviceKind.GPU))
_RDMA_BIT = 32
_DAX = re.compile(r"dax\d{1,4}\.\d{1,4}\Z", re.ASCII)
_NO_DISK = re.compile(r"(sr|fd|mem|dax)\d", re.ASCII)  # optical and floppy drives, CXL memory

# Numbers in GPU names: those of the vendor's management library, else of a runtime (which may count differently).
_VENDOR_NUMBER = re.compile(r"(?:nvml|rsmi)(\d{1,4})\Z", re.ASCII)
_RUNTIME_NUMBERS = (re.compile(r"cuda(\d{1,4})\Z", re.ASCII), re.compile(r"opencl0d(\d{1,4})\Z", re.ASCII))


class HwlocPlace(Frozen):
    """The function that a device is on (`pci`: its address, None if that is unknown or there is no function), and the
    NUMA node and CPUs of the object around it."""

    pci: str | None
    is_on_function: bool
    numa: int | None
    cpus: frozenset[int] | None


class OsDevices(Struct):
    """Collects the devices of one file; `has_bits`: the types are bit sets."""

    source: str
    has_bits: bool
    _parts: list[NamedPart] = []
    _rdma_names: set[str] = set()

    def add(self, element: Element, osdev_type: int | None, place: HwlocPlace) -> None:
        """Keep a named device on a PCI function, and memory devices; skip DMA engines, bonds and RAM disks."""
        name = element.attributes.get("name", "")
        infos = read_infos(element)
        memory = _memory_facts(element, name, infos, self.source)
        kind = DeviceKind.MEMORY if memory is not None else self._kind(name, osdev_type)
        if not name or kind is None or (kind is DeviceKind.BLOCK and _NO_DISK.match(name)):
            return
        if not place.is_on_function and memory is None:
            return
        facts = memory or Facts()
        if kind is DeviceKind.BLOCK and re.match(r"nvme\d+n\d+\Z", name, re.ASCII):
            kind = DeviceKind.NVME
        if kind in (DeviceKind.BLOCK, DeviceKind.NVME):
            # hwloc's "Model" comes from udev, with different spaces than the kernel's: not used.
            facts = one_fact("size", info_size(infos.get("Size")) or None, self.source, "B")
        if kind is DeviceKind.GPU:
            facts = one_fact("model_name", infos.get("GPUModel"), self.source)
        part = NamedPart(kind, name, place.pci, facts=facts)
        # Without a PCI address, the position of a device is that of the object around it.
        self._parts.append(part if place.pci is not None else replace(part, numa=place.numa, cpus=place.cpus))

    def parts(self) -> list[NamedPart]:
        """All devices, GPUs numbered. Network names of a function with an RDMA name become its aliases."""
        rdma = {part.pci: part.name for part in self._parts if part.name in self._rdma_names}
        aliases: dict[str, list[str]] = {}
        joined: list[NamedPart] = []
        for part in self._parts:
            owner = rdma.get(part.pci) if part.kind is DeviceKind.NIC else None
            if owner is not None and part.name not in self._rdma_names:
                aliases.setdefault(owner, []).append(part.name)
            else:
                joined.append(part)
        return _numbered([replace(part, aliases=tuple(aliases.get(part.name, ()))) for part in joined])

    def _kind(self, name: str, osdev_type: int | None) -> DeviceKind | None:
        if osdev_type is None:
            return None
        if (osdev_type & _RDMA_BIT) if self.has_bits else osdev_type == _RDMA_NUMBER:
            self._rdma_names.add(name)
        if self.has_bits:
            return next((kind for bits, kind in _BITS if osdev_type & bits), None)
        return _NUMBERS.get(osdev_type)


def _memory_facts(element: Element, name: str, infos: Mapping[str, str], source: str) -> Facts | None:
    """The facts of a CXL memory device (mem0) or a DAX device (dax0.0: memory that the kernel does not use itself);
    None for any other device."""
    subtype = element.attributes.get("subtype", "")
    book = FactBook()
    if subtype == "CXLMem":
        volatile, persistent = info_size(infos.get("CXLRAMSize")), info_size(infos.get("CXLPMEMSize"))
        book.say("memory_device", "CXL memory", source)
        book.say("size", (volatile or 0) + (persistent or 0) or None, source, "B")
        book.say("volatile_size", volatile or None, source, "B")
        book.say("persistent_size", persistent or None, source, "B")
        return book.facts()
    if _DAX.match(name):
        book.say("memory_device", "DAX device", source)
        book.say("memory_kind", (infos.get("DAXType") or subtype)[:40], source)
        book.say("size", info_size(infos.get("Size")) or None, source, "B")
        return book.facts()
    return None


def _numbered(parts: Sequence[NamedPart]) -> list[NamedPart]:
    names = [part.name for part in parts if part.kind is DeviceKind.GPU]
    for pattern in (_VENDOR_NUMBER, *_RUNTIME_NUMBERS):
        if any(pattern.match(name) for name in names):
            matches = [pattern.match(part.name) if part.kind is DeviceKind.GPU else None for part in parts]
            return [replace(p, index=int(m[1])) if m is not None else p for p, m in zip(parts, matches, strict=True)]
    return list(parts)
