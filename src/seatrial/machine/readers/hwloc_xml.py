"""XML of hwloc 1.x, 2.x and 3.x (lstopo --of xml) -> Survey.

Format: hwloc, "Importing and exporting topologies from/to XML files"; the parser in hwloc/topology-xml.c. Relevant
changes between versions: sockets became packages (1.11), caches got separate types ("L2Cache", 2.0), NUMA nodes left
the main tree (2.0), and the types of OS devices became a bit set (3.0). All objects state their CPUs, so the tree is
not needed: `seatrial.machine.assemble` nests by CPUs for every source. Contradictions (CPUs outside those of the
enclosing object, a duplicate object) are refused. A function whose bus is not one of those of the bridge around it
(hwloc writes such files with its "normalio" option) stays where hwloc put it. Serial numbers, UUIDs and hardware
addresses in these files are not kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import ParseError
from seatrial.machine.readers import hwloc_memory
from seatrial.machine.readers.hwloc_distances import TEXTS, End, PeerMatrix, node_distances, peer_matrices
from seatrial.machine.readers.hwloc_memory import HwlocPlace, OsDevices
from seatrial.machine.readers.scalars import read_cpu_mask, write_cpu_list
from seatrial.machine.readers.xml import Element, XmlDocument, read_xml
from seatrial.machine.survey import CpuPart, FactBook, MemoryModule, NamedPart, PciPart, Survey, merge_facts, one_fact
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fact import Facts
from seatrial.model.machine.machine import DeviceKind

TOOL = "hwloc-xml"
MAX_MASK_BITS = 2_000_000
"""A machine with 8192 PUs has about 100 000 over all objects. A short text can be a mask of very many CPUs."""

_CACHE_TYPES = {"0": ("unified", ""), "1": ("data", "d"), "2": ("instruction", "i")}
_INSIDE_IO = {
    "Bridge": frozenset({"Bridge", "PCIDev", "OSDev", "Misc"}),
    "PCIDev": frozenset({"Bridge", "PCIDev", "OSDev", "Misc"}),
    "OSDev": frozenset({"OSDev", "Misc"}),
}
_PCI_TYPE = re.compile(r"([0-9a-f]{4}) \[([0-9a-f]{4}):([0-9a-f]{4})\]", re.ASCII)
_BUSID = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\Z", re.ASCII)
_HOST = re.compile(r"([0-9a-f]{4,8}):\[([0-9a-f]{2})-([0-9a-f]{2})\]\Z", re.ASCII)


def read_hwloc_xml(data: bytes, pick: int | None = None) -> Survey:
    """The machine in hwloc XML. Raises ParseError if it is not hwloc XML, or an object is damaged.

    `pick` is the number of the document (from 1) if the file has several; UsageError if it is missing then.
    """
    document = read_xml(data, TOOL, ("topology", "root"), pick, TEXTS)  # "root" was the tag of hwloc 0.9
    root = document.root
    objects = [child for child in root.children if child.tag == "object"]
    if len(objects) != 1:
        why = "a topology without objects" if not objects else "a second object at the top level"
        raise document.error(objects[1] if objects else root, why)
    machine = objects[0]
    infos = hwloc_memory.read_infos(root) | hwloc_memory.read_infos(machine)
    version = infos.get("hwlocVersion")
    source = f"hwloc {version}" if version else "hwloc"
    major = root.attributes.get("version", "1").split(".")[0]
    if major not in ("0", "1", "2", "3"):
        raise document.error(root, f"unknown format version {major[:20]} (known: 1, 2 and 3)")
    is_power = infos.get("Architecture", "").startswith("ppc64")
    is_grace = hwloc_memory.attaches_gpu_memory(root)
    reader = _Reader(document, source, major, OsDevices(source, has_bits=major == "3"), is_power, is_grace)
    reader.hidden = reader.hidden_nodes(machine)
    reader.walk(machine, _Context())
    reader.check_whole(machine)
    nodes = [part.os_index for part in reader.cpu_parts if part.kind is DeviceKind.NUMA and part.os_index is not None]
    distances = node_distances(document, nodes)
    matrices = peer_matrices(document, reader.ends, source)
    caches = hwloc_memory.cache_facts(reader.node_caches, source)
    rates = hwloc_memory.memory_rates(document, reader.node_numbers, reader.cpu_parts, reader.mask, source)
    named = reader.devices.parts()
    gpus = {part.pci for part in named if part.kind is DeviceKind.GPU}
    return Survey(
        source=source,
        name=infos.get("HostName") or None,
        facts=hwloc_memory.machine_facts(document, machine, infos, reader.cpu_parts, source),
        cpu_parts=tuple(_with_node_facts(part, distances, source, caches, rates) for part in reader.cpu_parts),
        pci_parts=tuple(reader.pci_parts.values()),
        named_parts=tuple(_with_cpu_links(part, matrices, source) for part in named),
        modules=hwloc_memory.placed_modules(reader.modules),
        peer_links=tuple(link for matrix in matrices for link in matrix.links),
        # The XGMI matrix does not show which pairs have links.
        knows_peer_links=bool(gpus) and any(one.kind == "nvlink" and gpus <= one.members for one in matrices),
        unread=tuple(reader.unread),
    )


def _with_cpu_links(part: NamedPart, matrices: tuple[PeerMatrix, ...], source: str) -> NamedPart:
    """A GPU with the rate of its links to CPUs (NVLink on POWER), which are not in the tree."""
    book = FactBook()
    for matrix in matrices:
        if part.kind is DeviceKind.GPU and part.pci is not None:
            book.say(f"{matrix.kind}_cpu_rate", matrix.cpu_rates.get(part.pci), source, "B/s")
    return replace(part, facts=merge_facts(part.facts, book.facts()))


def _with_node_facts(part: CpuPart, distances: Mapping[int, str], source: str, *stated: Mapping[int, Facts]) -> CpuPart:
    """A NUMA node with its row of the latency matrix, and what is stated for it."""
    if part.kind is not DeviceKind.NUMA or part.os_index is None:
        return part
    row = one_fact("distances", distances.get(part.os_index), source)
    others = (facts[part.os_index] for facts in stated if part.os_index in facts)
    return replace(part, facts=merge_facts(part.facts, row, *others))


class _Context(Frozen):
    """The context of an object: the bridge or function above, its buses (domain, first, last), the CPUs and NUMA nodes
    of the enclosing object (None at the top), the memory-side caches around, the NUMA node that it is inside of."""

    pci: str | None = None
    buses: tuple[str, str, str] | None = None
    cpus: frozenset[int] | None = None
    nodes: frozenset[int] | None = None
    caches: tuple[hwloc_memory.SideCache, ...] = ()
    node: int | None = None
    is_on_function: bool = False

    @property
    def its_cpus(self) -> frozenset[int]:
        """The CPUs, empty if there are none."""
        return self.cpus or frozenset()

    @property
    def numa(self) -> int | None:
        """The node of the enclosing object, unless it has several."""
        return next(iter(self.nodes)) if self.nodes is not None and len(self.nodes) == 1 else None


class _Reader(Struct):
    """Walks the objects and collects parts. `major` is the format version."""

    document: XmlDocument
    source: str
    major: str
    devices: OsDevices
    is_power: bool = False
    is_grace: bool = False
    cpu_parts: list[CpuPart] = []
    pci_parts: dict[str, PciPart] = {}
    modules: list[MemoryModule] = []
    ends: dict[int, End] = {}
    node_numbers: dict[int, int] = {}
    node_caches: dict[int, hwloc_memory.SideCache] = {}
    unread: list[str] = []
    hidden: frozenset[int] = frozenset()
    numbers: set[tuple[DeviceKind, int]] = set()
    masks: dict[str, frozenset[int]] = {}
    mask_bits: int = 0

    def walk(self, element: Element, context: _Context) -> frozenset[int]:
        """Read an object and everything below it. Returns the PUs inside."""
        kind = element.attributes.get("type", "")
        cpus = self._cpus(element, context)
        # A control group may hide nodes that a device is next to.
        text = element.attributes.get("complete_nodeset", element.attributes.get("nodeset"))
        inside = replace(context, cpus=cpus, nodes=context.nodes if text is None else self.mask(element, text))
        reader = _READERS.get(kind)
        cache = hwloc_memory.side_cache(element)
        if cache is not None:
            reader = None
            inside = replace(inside, caches=(*context.caches, cache))
            if context.node is not None:  # hwloc 1: the node is around the cache
                self.node_caches.setdefault(context.node, cache)
        elif reader is not None:
            reader(self, element, inside)
            if kind in ("NUMANode", "Node"):
                inside = replace(inside, node=hwloc_memory.number_of(self.document, element, "os_index"))
        elif kind in ("PCIDev", "Bridge"):
            inside = self.pci(element, inside)
        elif kind == "OSDev":
            number = hwloc_memory.number_of(self.document, element, "osdev_type")
            place = HwlocPlace(context.pci, context.is_on_function, context.numa, self._near(context))
            self.devices.add(element, number, place)
        elif kind == "Misc" and element.attributes.get("subtype") == "MemoryModule":
            self.modules.append(hwloc_memory.memory_module(element, self.source))
        self._number(element, kind, inside)
        below = frozenset(cpus or ()) if kind == "PU" else frozenset()
        for child in element.children:
            if child.tag == "object":
                if not _may_contain(kind, child.attributes.get("type", ""), self.major):
                    raise self.document.error(child, f"an object of its type cannot be inside one of type {kind}")
                below |= self.walk(child, inside)
            elif child.children and child.children[0].tag == "object":
                raise self.document.error(child.children[0], f"an object inside <{child.tag}>")
        if self.has_exact_sets and reader is not None and below != (frozenset() if kind == "NUMANode" else cpus):
            inside_it, its_own = write_cpu_list(below) or "none", write_cpu_list(cpus or frozenset()) or "none"
            raise self.document.error(element, f"the PUs inside it are {inside_it}, but its CPUs are {its_own}")
        return below

    @property
    def has_exact_sets(self) -> bool:
        """Whether objects have exactly the CPUs of the PUs inside; hwloc 1 also includes offline or hidden CPUs."""
        return self.major in ("2", "3")

    def hidden_nodes(self, machine: Element) -> frozenset[int]:
        """The NUMA nodes that exist but are not in the file: outside the control group, or restricted."""
        every, seen = (machine.attributes.get(name) for name in ("complete_nodeset", "nodeset"))
        return self.mask(machine, every) - self.mask(machine, seen) if every and seen else frozenset()

    def check_whole(self, machine: Element) -> None:
        """Refuse a file without some of the PUs or NUMA nodes that the machine object lists."""
        pus = {part.os_index for part in self.cpu_parts if part.kind is DeviceKind.PU}
        if not pus:
            raise self.document.error(machine, "a topology without PU objects")
        nodes = {part.os_index for part in self.cpu_parts if part.kind is DeviceKind.NUMA}
        for name, numbers, noun in (("cpuset", pus, "PU"), ("nodeset", nodes, "NUMA node")):
            if self.has_exact_sets and (text := machine.attributes.get(name)) is not None:
                listed = self.mask(machine, text)
                if listed and listed != numbers:
                    missing = write_cpu_list(listed - {n for n in numbers if n is not None})
                    raise self.document.error(machine, f"its {name} and the {noun}s in the file differ ({missing})")

    def mask(self, element: Element, text: str) -> frozenset[int]:
        """The numbers of a mask. Objects share masks: each is parsed once."""
        if text not in self.masks:
            try:
                self.masks[text] = read_cpu_mask(text)
            except ParseError as error:
                raise self.document.error(element, error.why) from None
            self.mask_bits += len(self.masks[text])
            if self.mask_bits > MAX_MASK_BITS:
                raise self.document.error(element, f"more than {MAX_MASK_BITS} CPUs over all objects")
        return self.masks[text]

    def _cpus(self, element: Element, context: _Context) -> frozenset[int] | None:
        text = element.attributes.get("cpuset")
        if text is None:
            return context.cpus
        cpus = self.mask(element, text)
        if context.cpus is not None and not cpus <= context.cpus:
            raise self.document.error(element, "its CPUs are not within those of the enclosing object")
        return cpus

    def _number(self, element: Element, kind: str, inside: _Context) -> None:
        """Register the object under its gp_index, which matrices refer to."""
        number = hwloc_memory.number_of(self.document, element, "gp_index")
        if number is None:
            return
        if number in self.ends:
            raise self.document.error(element, f"gp_index {number} is in the file already")
        node = hwloc_memory.number_of(self.document, element, "os_index") if kind in ("NUMANode", "Node") else None
        if node is not None:
            self.node_numbers[number] = node
        pci = inside.pci if kind in ("PCIDev", "OSDev", "Bridge") else None
        self.ends[number] = End(pci, is_processor=pci is not None and not self.pci_parts[pci].is_bridge)

    def _once(self, element: Element, kind: DeviceKind, number: int) -> None:
        if (kind, number) in self.numbers:
            raise self.document.error(element, f"{kind} {number} is in the file already")
        self.numbers.add((kind, number))

    def package(self, element: Element, inside: _Context) -> None:
        infos = hwloc_memory.read_infos(element)
        book = FactBook()
        index = hwloc_memory.number_of(self.document, element, "os_index")
        book.say("os_index", index, self.source)
        book.say("vendor", infos.get("CPUVendor"), self.source)
        book.say("model_name", (infos.get("CPUModel") or "").strip(), self.source)
        for fact, key in (
            ("family", "CPUFamilyNumber"), ("model", "CPUModelNumber"), ("stepping", "CPUStepping"),
            ("implementer", "CPUImplementer"), ("part", "CPUPart"),
        ):  # fmt: skip
            book.say(fact, hwloc_memory.info_number(infos.get(key)), self.source)
        self.cpu_parts.append(CpuPart(DeviceKind.PACKAGE, inside.its_cpus, index, facts=book.facts()))

    def numa(self, element: Element, inside: _Context) -> None:
        index = hwloc_memory.number_of(self.document, element, "os_index")
        if index is None:  # hwloc 1 makes up a node for a machine without one
            return
        self._once(element, DeviceKind.NUMA, index)
        book = FactBook()
        book.say("os_index", index, self.source)
        memory = hwloc_memory.number_of(self.document, element, "local_memory")
        book.say("memory_total", memory or None, self.source, "B", volatile=True)
        book.say("cpus", write_cpu_list(inside.its_cpus), self.source)
        book.say("hidden_nodes", write_cpu_list(self.hidden), self.source)
        is_gpu = not inside.its_cpus and (self.is_grace or (self.is_power and hwloc_memory.is_node_of_power9(index)))
        hwloc_memory.say_memory_kind(book, element, inside.caches, self.source, is_gpu=is_gpu)
        self.cpu_parts.append(CpuPart(DeviceKind.NUMA, inside.its_cpus, index, facts=book.facts()))

    def cache(self, element: Element, inside: _Context) -> None:
        level = hwloc_memory.number_of(self.document, element, "depth")
        kind, suffix = _CACHE_TYPES.get(element.attributes.get("cache_type", "0"), ("", ""))
        if level is None or not 1 <= level <= 5 or not kind:
            raise self.document.error(element, "a cache without a level or type")
        book = FactBook()
        book.say("level", level, self.source)
        book.say("type", kind, self.source)
        book.say("size", hwloc_memory.number_of(self.document, element, "cache_size") or None, self.source, "B")
        book.say(
            "line_size", hwloc_memory.number_of(self.document, element, "cache_linesize") or None, self.source, "B"
        )
        book.say("ways", hwloc_memory.info_number(element.attributes.get("cache_associativity")) or None, self.source)
        cpus = inside.its_cpus
        book.say("cpus", write_cpu_list(cpus), self.source)
        self.cpu_parts.append(CpuPart(DeviceKind.CACHE, cpus, None, level, f"l{level}{suffix}", book.facts()))

    def core(self, element: Element, inside: _Context) -> None:
        book, cpus = FactBook(), inside.its_cpus
        index = hwloc_memory.number_of(self.document, element, "os_index")
        book.say("cpus", write_cpu_list(cpus), self.source)
        book.say("core_id", index, self.source)
        self.cpu_parts.append(CpuPart(DeviceKind.CORE, cpus, index, facts=book.facts()))

    def pu(self, element: Element, inside: _Context) -> None:
        cpus = inside.its_cpus
        index = hwloc_memory.number_of(self.document, element, "os_index")
        if index is None or cpus != {index}:
            raise self.document.error(element, "a PU whose cpuset is not just its own CPU")
        self._once(element, DeviceKind.PU, index)
        self.cpu_parts.append(CpuPart(DeviceKind.PU, cpus, index, facts=one_fact("os_index", index, self.source)))

    def pci(self, element: Element, context: _Context) -> _Context:
        """Keep a bridge or function. Returns the context of the objects below it."""
        address = element.attributes.get("pci_busid")
        host = _HOST.match(element.attributes.get("bridge_pci", ""))
        buses = (host[1], host[2], host[3]) if host is not None else None
        if address is None:
            if host is None:
                return context
            address = f"{host[1]}:{host[2]}"
            part = PciPart(address, "", context.pci, context.numa, self._near(context), source=self.source)
        else:
            part = self._function(element, address, context)
        known = self.pci_parts.get(address)
        if known is not None:
            is_other = all(known.facts.text(name) != part.facts.text(name) for name in ("vendor_id", "device_id"))
            if part.is_bridge or not is_other or self._is_on(address, context):
                raise self.document.error(element, f"{address} is in the file already")
            self._note(element, f"{address} is another function already, so the address of this one is unknown")
            return replace(context, pci=None, buses=None, is_on_function=True)
        if part.class_id and not self._is_on(address, context):
            self._note(element, f"the bus of {address} is not one of those of the bridge around it")
        self.pci_parts[address] = part
        return replace(context, pci=address, buses=buses, is_on_function=True)

    def _function(self, element: Element, address: str, context: _Context) -> PciPart:
        pci_type = _PCI_TYPE.match(element.attributes.get("pci_type", ""))
        if not _BUSID.match(address) or pci_type is None:
            raise self.document.error(element, "a PCI device without an address or type")
        domain = address.partition(":")[0]
        above = self.pci_parts.get(context.pci or "")
        if above is not None and not above.is_bridge and above.address.startswith(f"{domain}:"):
            raise self.document.error(element, "a PCI device inside one that is not a bridge")
        book = FactBook()
        for fact, value in zip(("class_id", "vendor_id", "device_id"), pci_type.groups(), strict=True):
            book.say(fact, value if value != "0000" else None, self.source)  # zeros: the registers could not be read
        infos = hwloc_memory.read_infos(element)
        book.say("pci_vendor", infos.get("PCIVendor"), self.source)
        book.say("pci_name", infos.get("PCIDevice"), self.source)
        rate = self._link_rate(element)
        book.say("pcie_rate", rate, self.source, "B/s", volatile=True)
        return PciPart(
            address=address,
            class_id=pci_type[1],
            parent=context.pci,
            numa=context.numa,
            cpus=self._near(context),
            trained_Bps=rate,
            kind=DeviceKind.SWITCH if element.attributes.get("subtype") == "NVSwitch" else None,
            source=f"{self.source} (pci_link_speed)",
            facts=book.facts(),
        )

    def _link_rate(self, element: Element) -> float | None:
        """B/s of `pci_link_speed` (GB/s after encoding). 0 and 1.0 mean an unknown or idle link."""
        try:
            value = float(element.attributes.get("pci_link_speed", "0"))
        except ValueError:
            raise self.document.error(element, "pci_link_speed is not a number") from None
        return value * 1e9 if 0 < value < 1e4 and value != 1.0 else None

    def _near(self, context: _Context) -> frozenset[int] | None:
        """The CPUs next to a device; None if the object around it has nodes that are hidden."""
        return None if self.hidden & (context.nodes or frozenset()) else context.cpus or None

    def _is_on(self, address: str, context: _Context) -> bool:
        """Whether a bus is one of those of the bridge around it, as far as known."""
        domain, bus, _ = address.split(":")
        buses = context.buses
        return buses is None or (domain == buses[0] and buses[1] <= bus <= buses[2])

    def _note(self, element: Element, why: str) -> None:
        self.unread.append(f"{TOOL}: line {element.line}: {why}")


_READERS: dict[str, Callable[[_Reader, Element, _Context], None]] = {
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


def _may_contain(kind: str, child: str, major: str) -> bool:
    """Whether an object may be directly inside one of type `kind`: only I/O inside I/O, a machine inside nothing."""
    if kind == "Misc" and major in ("2", "3"):  # in hwloc 1 they may be groups
        return child == "Misc"
    return child in _INSIDE_IO[kind] if kind in _INSIDE_IO else child != "Machine"
