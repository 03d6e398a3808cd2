"""XML of hwloc 1.x, 2.x and 3.x (lstopo --of xml) -> Survey.

Format: hwloc, "Importing and exporting topologies from/to XML files"; the parser in hwloc/topology-xml.c. What changed
between versions and matters here: sockets became packages (1.11), caches got a type each ("L2Cache", 2.0), NUMA nodes
left the main tree (2.0), and the types of OS devices became a set of bits (3.0). All objects carry the CPUs that
they hold, so the tree is not needed: `seatrial.machine.assemble` nests by CPUs whatever the source.
Serial numbers, UUIDs and hardware addresses stand in these files and are not taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from seatrial.errors import ParseError
from seatrial.machine.readers.scalars import read_cpu_mask, write_cpu_list
from seatrial.machine.readers.xml import Element, read_xml
from seatrial.machine.survey import CpuPart, FactBook, NamedPart, PciPart, Survey
from seatrial.model.fact import Facts
from seatrial.model.machine import DeviceKind

TOOL = "hwloc-xml"

_CACHE_TYPES = {"0": ("unified", ""), "1": ("data", "d"), "2": ("instruction", "i")}
_PCI_TYPE = re.compile(r"([0-9a-f]{4}) \[([0-9a-f]{4}):([0-9a-f]{4})\]", re.ASCII)
_BUSID = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\Z", re.ASCII)
_HOST = re.compile(r"([0-9a-f]{4,8}):\[([0-9a-f]{2})-[0-9a-f]{2}\]\Z", re.ASCII)

_OS_DEVICE_NUMBERS = {
    0: DeviceKind.BLOCK,
    1: DeviceKind.GPU,
    2: DeviceKind.NIC,
    3: DeviceKind.NIC,  # OpenFabrics
    5: DeviceKind.GPU,  # co-processor
}
_RDMA_NUMBER = 3
_OS_DEVICE_BITS = ((1, DeviceKind.BLOCK), (16 | 32, DeviceKind.NIC), (4 | 8, DeviceKind.GPU))
_RDMA_BIT = 32
_NO_DISK = re.compile(r"(sr|fd|mem|dax)\d", re.ASCII)  # optical and floppy drives; CXL memory, which is no disk


def read_hwloc_xml(data: bytes) -> Survey:
    """What hwloc says. Raises ParseError when it is no hwloc XML, or an object in it is damaged."""
    root = read_xml(data, TOOL)
    if root.tag not in ("topology", "root"):  # "root" was the tag of hwloc 0.9
        raise ParseError(TOOL, root.line, f"<{root.tag}>", "no <topology> element")
    machine = next((child for child in root.children if child.tag == "object"), None)
    if machine is None:
        raise ParseError(TOOL, root.line, f"<{root.tag}>", "a topology without objects")
    infos = _infos(root) | _infos(machine)
    version = infos.get("hwlocVersion")
    reader = _Reader(f"hwloc {version}" if version else "hwloc", root.attributes.get("version", "1").split(".")[0])
    reader.walk(machine, None, frozenset())
    if not any(part.kind is DeviceKind.PU for part in reader.cpu_parts):
        raise ParseError(TOOL, machine.line, "<object>", "a topology without PU objects")
    return Survey(
        source=reader.source,
        name=infos.get("HostName") or None,
        facts=_machine_facts(machine, infos, reader),
        cpu_parts=tuple(_with_distances(part, root, reader.source) for part in reader.cpu_parts),
        pci_parts=tuple(reader.pci_parts),
        named_parts=tuple(_joined_adapters(reader)),
    )


def _infos(element: Element) -> dict[str, str]:
    return {
        child.attributes["name"]: child.attributes["value"]
        for child in element.children
        if child.tag == "info" and "name" in child.attributes and "value" in child.attributes
    }


def _joined_adapters(reader: _Reader) -> list[NamedPart]:
    """The named parts, with the network names of a function that has an RDMA name as aliases of that."""
    rdma = {part.pci: part.name for part in reader.named_parts if part.name in reader.rdma_names}
    aliases: dict[str, list[str]] = {}
    joined: list[NamedPart] = []
    for part in reader.named_parts:
        owner = rdma.get(part.pci) if part.kind is DeviceKind.NIC else None
        if owner is not None and part.name not in reader.rdma_names:
            aliases.setdefault(owner, []).append(part.name)
        else:
            joined.append(part)
    return [replace(part, aliases=tuple(aliases.get(part.name, ()))) for part in joined]


def _machine_facts(machine: Element, infos: dict[str, str], reader: _Reader) -> Facts:
    book = FactBook()
    sizes = [part.facts.integer("memory_total") for part in reader.cpu_parts if part.kind is DeviceKind.NUMA]
    known = [size for size in sizes if size]
    total = sum(known) or _integer(machine, "local_memory")
    source = f"{reader.source} (sum of the NUMA nodes' local memory)"
    book.say("memory_total", total or None, source, "B", volatile=True)
    product = " ".join(filter(None, (infos.get("DMISysVendor"), infos.get("DMIProductName"))))
    book.say("product", product, reader.source)
    board = " ".join(filter(None, (infos.get("DMIBoardVendor"), infos.get("DMIBoardName"))))
    book.say("board", board, reader.source)
    for fact, key in (
        ("bios_vendor", "DMIBIOSVendor"),
        ("bios_version", "DMIBIOSVersion"),
        ("bios_date", "DMIBIOSDate"),
    ):
        book.say(fact, infos.get(key), reader.source)
    book.say("kernel", infos.get("OSRelease"), reader.source)
    book.say("architecture", infos.get("Architecture"), reader.source)
    return book.facts()


def _with_distances(part: CpuPart, root: Element, source: str) -> CpuPart:
    """A NUMA node with its row of the latency matrix (hwloc 2 and later write it at the end of the file)."""
    if part.kind is not DeviceKind.NUMA:
        return part
    for matrix in root.children:
        if matrix.tag != "distances2" or matrix.attributes.get("name") != "NUMALatency":
            continue
        text = {
            tag: " ".join(c.text for c in matrix.children if c.tag == tag).split() for tag in ("indexes", "u64values")
        }
        nodes, values = text["indexes"], text["u64values"]
        if str(part.os_index) in nodes and len(values) == len(nodes) ** 2:
            row = nodes.index(str(part.os_index)) * len(nodes)
            book = FactBook()
            distances = " ".join(f"{node}:{value}" for node, value in zip(nodes, values[row:], strict=False))
            book.say("distances", distances, source)
            return replace(part, facts=Facts({**part.facts.by_name, **book.facts().by_name}))
    return part


def _damaged(element: Element, why: str) -> ParseError:
    shown = " ".join(f'{key}="{value}"' for key, value in element.attributes.items())
    return ParseError(TOOL, element.line, f"<{element.tag} {shown}>"[:500], why)


def _integer(element: Element, name: str) -> int | None:
    text = element.attributes.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 20):
        raise _damaged(element, f"{name} is no number")
    return int(text)


@dataclass(slots=True)
class _Reader:
    """Walks the objects and collects parts. `major` is the format's version."""

    source: str
    major: str
    cpu_parts: list[CpuPart] = field(default_factory=list)
    pci_parts: list[PciPart] = field(default_factory=list)
    named_parts: list[NamedPart] = field(default_factory=list)
    rdma_names: set[str] = field(default_factory=set)

    def walk(self, element: Element, pci: str | None, cpus: frozenset[int]) -> None:
        """Read an object and all below it; `pci` is the bridge or function above it, `cpus` those it is next to."""
        kind = element.attributes.get("type", "")
        if "cpuset" in element.attributes:
            try:
                cpus = read_cpu_mask(element.attributes["cpuset"])
            except ParseError as error:
                raise _damaged(element, error.why) from None
        reader = _READERS.get(kind)
        if reader is not None:
            reader(self, element, cpus)
        elif kind in ("PCIDev", "Bridge"):
            pci = self.pci(element, pci, cpus) or pci
        elif kind == "OSDev":
            self.os_device(element, pci)
        for child in _objects(element):
            self.walk(child, pci, cpus)

    def package(self, element: Element, cpus: frozenset[int]) -> None:
        infos = _infos(element)
        book = FactBook()
        index = _integer(element, "os_index")
        book.say("os_index", index, self.source)
        book.say("vendor", infos.get("CPUVendor"), self.source)
        book.say("model_name", (infos.get("CPUModel") or "").strip(), self.source)
        for fact, key in (
            ("family", "CPUFamilyNumber"), ("model", "CPUModelNumber"), ("stepping", "CPUStepping"),
            ("implementer", "CPUImplementer"), ("part", "CPUPart"),
        ):  # fmt: skip
            book.say(fact, _info_number(infos.get(key)), self.source)
        self.cpu_parts.append(CpuPart(DeviceKind.PACKAGE, cpus, index, facts=book.facts()))

    def numa(self, element: Element, cpus: frozenset[int]) -> None:
        index = _integer(element, "os_index")
        if index is None:  # hwloc 1 invents one node for a machine that has none
            return
        book = FactBook()
        book.say("os_index", index, self.source)
        book.say("memory_total", _integer(element, "local_memory") or None, self.source, "B", volatile=True)
        book.say("cpus", write_cpu_list(cpus), self.source)
        self.cpu_parts.append(CpuPart(DeviceKind.NUMA, cpus, index, facts=book.facts()))

    def cache(self, element: Element, cpus: frozenset[int]) -> None:
        level = _integer(element, "depth")
        kind, suffix = _CACHE_TYPES.get(element.attributes.get("cache_type", "0"), ("", ""))
        if level is None or not 1 <= level <= 5 or not kind:
            raise _damaged(element, "a cache without level or type")
        book = FactBook()
        book.say("level", level, self.source)
        book.say("type", kind, self.source)
        book.say("size", _integer(element, "cache_size") or None, self.source, "B")
        book.say("line_size", _integer(element, "cache_linesize") or None, self.source, "B")
        ways = element.attributes.get("cache_associativity", "")
        book.say(
            "ways",
            int(ways) if ways.isascii() and ways.isdecimal() and len(ways) < 6 and int(ways) else None,
            self.source,
        )
        book.say("cpus", write_cpu_list(cpus), self.source)
        self.cpu_parts.append(CpuPart(DeviceKind.CACHE, cpus, None, level, f"l{level}{suffix}", book.facts()))

    def core(self, element: Element, cpus: frozenset[int]) -> None:
        book = FactBook()
        book.say("cpus", write_cpu_list(cpus), self.source)
        book.say("core_id", _integer(element, "os_index"), self.source)
        self.cpu_parts.append(CpuPart(DeviceKind.CORE, cpus, _integer(element, "os_index"), facts=book.facts()))

    def pu(self, element: Element, cpus: frozenset[int]) -> None:
        index = _integer(element, "os_index")
        if index is None or cpus != {index}:
            raise _damaged(element, "a PU that is not exactly its own CPU")
        book = FactBook()
        book.say("os_index", index, self.source)
        self.cpu_parts.append(CpuPart(DeviceKind.PU, cpus, index, facts=book.facts()))

    def pci(self, element: Element, parent: str | None, cpus: frozenset[int]) -> str | None:
        """Keep a bridge or function; the address that what is below hangs on."""
        address = element.attributes.get("pci_busid")
        if address is None:
            host = _HOST.match(element.attributes.get("bridge_pci", ""))
            if host is None:
                return None
            address = f"{host[1]}:{host[2]}"
            self.pci_parts.append(PciPart(address, "", parent, None, cpus or None, source=self.source))
            return address
        pci_type = _PCI_TYPE.match(element.attributes.get("pci_type", ""))
        if not _BUSID.match(address) or pci_type is None:
            raise _damaged(element, "a PCI device without address or type")
        book = FactBook()
        for fact, value in zip(("class_id", "vendor_id", "device_id"), pci_type.groups(), strict=True):
            book.say(fact, value if value != "0000" else None, self.source)  # zeros: its registers could not be read
        infos = _infos(element)
        book.say("pci_vendor", infos.get("PCIVendor"), self.source)
        book.say("pci_name", infos.get("PCIDevice"), self.source)
        rate = self._link_rate(element)
        book.say("pcie_rate", rate, self.source, "B/s", volatile=True)
        self.pci_parts.append(
            PciPart(
                address=address,
                class_id=pci_type[1],
                parent=parent,
                cpus=cpus or None,
                trained_Bps=rate,
                kind=DeviceKind.SWITCH if element.attributes.get("subtype") == "NVSwitch" else None,
                source=f"{self.source} (pci_link_speed)",
                facts=book.facts(),
            )
        )
        return address

    def _link_rate(self, element: Element) -> float | None:
        """B/s of `pci_link_speed` (GB/s after encoding). 0 and 1.0 stand for unknown or idle links."""
        try:
            value = float(element.attributes.get("pci_link_speed", "0"))
        except ValueError:
            raise _damaged(element, "pci_link_speed is no number") from None
        return value * 1e9 if 0 < value < 1e4 and value != 1.0 else None

    def os_device(self, element: Element, pci: str | None) -> None:
        name = element.attributes.get("name", "")
        kind = self._os_device_kind(element)
        if not name or kind is None or pci is None:
            return  # no name to know it by, a DMA engine or a memory device, or virtual (a bond, a RAM disk)
        if kind is DeviceKind.BLOCK and _NO_DISK.match(name):
            return
        infos = _infos(element)
        book = FactBook()
        if kind is DeviceKind.BLOCK and re.match(r"nvme\d+n\d+\Z", name):
            kind = DeviceKind.NVME
        if kind in (DeviceKind.BLOCK, DeviceKind.NVME):
            size = _info_number(infos.get("Size"))
            # hwloc tells KiB. Its "Model" is udev's, with other spaces than the kernel's: not taken.
            book.say("size", size * 1024 if size else None, self.source, "B")
        if kind is DeviceKind.GPU:
            book.say("model_name", infos.get("GPUModel"), self.source)
        self.named_parts.append(NamedPart(kind, name, pci, facts=book.facts()))

    def _os_device_kind(self, element: Element) -> DeviceKind | None:
        number = _integer(element, "osdev_type")
        if number is None:
            return None
        is_bits = self.major.isdecimal() and int(self.major) >= 3
        if (number & _RDMA_BIT) if is_bits else number == _RDMA_NUMBER:
            self.rdma_names.add(element.attributes.get("name", ""))
        if is_bits:
            return next((kind for bits, kind in _OS_DEVICE_BITS if number & bits), None)
        return _OS_DEVICE_NUMBERS.get(number)


_READERS: dict[str, Callable[[_Reader, Element, frozenset[int]], None]] = {
    "Package": _Reader.package,
    "Socket": _Reader.package,
    "NUMANode": _Reader.numa,
    "Node": _Reader.numa,
    "Cache": _Reader.cache,
    **{f"L{level}Cache": _Reader.cache for level in range(1, 6)},
    **{f"L{level}iCache": _Reader.cache for level in range(1, 4)},
    "Core": _Reader.core,
    "PU": _Reader.pu,
}


def _objects(element: Element) -> Iterator[Element]:
    return (child for child in element.children if child.tag == "object")


def _info_number(text: str | None) -> int | None:
    if text is None or not re.fullmatch(r"(0x[0-9a-fA-F]{1,8}|\d{1,18})", text.strip(), re.ASCII):
        return None
    return int(text.strip(), 0) if text.strip().startswith("0x") else int(text.strip())
