"""Topology XML of NCCL and RCCL (NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE) -> Survey.

Format: NCCL's src/graph/xml.cc (writer) and topo.cc (meaning of the attributes); RCCL's files of the same names add
<xgmi>, gcn and version 2. Such files are written by hand as often as dumped, so every fact is asserted. Details:

* A <pci> with others inside is a whole switch, named by its upstream port; downstream ports are omitted. The speed of a
  <pci> is that of the link to the enclosing one: the slower of `max_link_speed` of the function and the port above.
  NCCL 2.30.7 writes a GPU's *current* speed instead; files since 2.29.7 are recognised by `net=` on <net>, and in those
  the speed of a GPU counts as trained.
* Each end of a direct link lists it. An end may be outside the file (a job on some of the GPUs), invisible (an NVSwitch
  in a virtual machine), or the GPU itself (in cloud files): such links are counted, but have no known target.
* `dev` repeats if each process sees only one GPU, and is then no device number.
* AMD's family is written as base + 16 x extended (143 is family 23); RCCL's `sm` is the number of compute units.

GUIDs and host hashes in these files are not kept.
"""

from __future__ import annotations

import re
from collections import Counter

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import ParseError
from seatrial.machine.readers.nccl_links import DirectLink, normal_address, resolve_links
from seatrial.machine.readers.scalars import read_cpu_mask, read_link_speed, write_cpu_list
from seatrial.machine.readers.xml import Element, XmlDocument, read_xml
from seatrial.machine.survey import CpuPart, FactBook, NamedPart, PciPart, Survey, SurveyLinkRate
from seatrial.model.machine.fact import FactKind, Facts, FactValue
from seatrial.model.machine.machine import DeviceKind
from seatrial.model.units import SIUnit

TOOL = "nccl-xml"

_VERSIONS = ("1", "2")
_MAX_NODE = 4096
_NUMBER = re.compile(r"-?\d{1,9}\Z", re.ASCII)
_HEX = re.compile(r"0x([0-9a-f]{1,8})\Z", re.ASCII | re.IGNORECASE)
_CLASS = re.compile(r"0x([0-9a-f]{6}|[0-9a-f]{4}|[0-9a-f]{2})\Z", re.ASCII | re.IGNORECASE)
_SPEEDS_GTps = frozenset({2.5, 5.0, 8.0, 16.0, 32.0, 64.0})
_WIDTHS = frozenset({1, 2, 4, 8, 12, 16, 32})
_SWITCH, _NIC_CLASS, _GPU_CLASSES = "0604", "02", ("03", "12")
_UNKNOWN_CLASS = "0000"
_NVIDIA, _AMD = "10de", "1002"
_OLD_GCN_NAMES = {"910": "gfx90a"}  # RCCL before 2.18 wrote numbers; other numbers equal the names
_IGNORED = frozenset({"pcilink"})
_MISPLACED = frozenset({"system", "cpu", "pci", "gpu", "nic", "net", "nvlink", "xgmi", "c2c"})


def read_nccl_xml(data: bytes, pick: int | None = None) -> Survey:
    """The machine in a topology file of NCCL or RCCL. Raises ParseError with the first damaged line.

    `pick` is the number of the document (from 1) if the file has several; UsageError if it is missing then.
    """
    document = read_xml(data, TOOL, ("system",), pick)
    root = document.root
    version = root.attributes.get("version")
    if version not in _VERSIONS:
        raise document.error(root, f'unknown version "{version}" (NCCL writes 1, RCCL 2)')
    elements = [root]
    for element in elements:  # it grows by the children of each
        elements += element.children
    is_amd = version == "2" or any(e.tag == "xgmi" or (e.tag == "gpu" and "gcn" in e.attributes) for e in elements)
    is_current = not is_amd and any(e.tag == "net" and "net" in e.attributes for e in elements)
    source = f"{'RCCL' if is_amd else 'NCCL'} topology XML"
    reader = _Reader(document, source, is_amd, is_current)
    reader.system(root)
    if not reader.cpus:
        raise document.error(root, "a system without <cpu>")
    return reader.survey()


class _Reader(Struct):
    """Walks the document. `is_current`: the file may have current speeds of GPUs."""

    document: XmlDocument
    source: str
    is_amd: bool
    is_current: bool
    cpus: list[Element] = []
    cpu_parts: list[CpuPart] = []
    pci_parts: dict[str, PciPart] = {}
    pci_elements: dict[str, Element] = {}
    gpus: dict[str, tuple[Element, int | None]] = {}
    gpu_parts: list[NamedPart] = []
    nets: dict[str, tuple[Element, int]] = {}
    """Name -> its first element, and its index in `net_parts`."""
    net_parts: list[NamedPart] = []
    links: list[DirectLink] = []
    unknown: dict[str, list[Element]] = {}

    def survey(self) -> Survey:
        """The survey, with both ends of the links combined."""
        resolved = resolve_links(self.document, self.links, self.gpus, self.pci_parts, self.source)
        every_gpu = {part.address for part in self.pci_parts.values() if part.kind is DeviceKind.GPU}
        numbers = Counter(part.index for part in self.gpu_parts)
        return Survey(
            source=self.source,
            name=self.document.root.attributes.get("name") or None,
            cpu_parts=tuple(self.cpu_parts),
            pci_parts=(*self.pci_parts.values(), *resolved.switches),
            named_parts=(
                *(p if numbers[p.index] == 1 else replace(p, index=None) for p in self.gpu_parts),
                *self.net_parts,
            ),
            unread=(*self._unread(), *resolved.unread),
            peer_links=resolved.links,
            # AMD GPUs without a direct link may still be connected by XGMI through a third one.
            knows_peer_links=bool(every_gpu)
            and every_gpu == set(self.gpus)
            and resolved.is_complete
            and not any(link.kind == "xgmi" for link in self.links),
        )

    def system(self, element: Element) -> None:
        """Read the <cpu>s of one host."""
        for child in element.children:
            if child.tag != "cpu":
                self._unknown(child)
                continue
            host, first = (e.attributes.get("host_hash") for e in (child, self.cpus[0] if self.cpus else child))
            if host != first:
                raise self.document.error(child, "a second host (host_hash): a file must describe one machine")
            self._cpu(child)
            self.cpus.append(child)

    def _cpu(self, element: Element) -> None:
        node = self._number(element, "numaid", -1, _MAX_NODE)
        numa = None if node is None or node < 0 else node
        try:
            cpus = read_cpu_mask(element.attributes.get("affinity") or "0")
        except ParseError as error:
            raise self.document.error(element, f"affinity: {error.why}") from None
        if numa is not None:
            for part in self.cpu_parts:
                if part.os_index == numa:
                    raise self.document.error(element, f"NUMA node {numa} is in the file already")
                if part.cpus & cpus:
                    raise self.document.error(element, f"some of its CPUs are also in NUMA node {part.os_index}")
            self.cpu_parts.append(CpuPart(DeviceKind.NUMA, cpus, numa, facts=self._node_facts(element, numa, cpus)))
        elif len(self.cpus) > len(self.cpu_parts):
            raise self.document.error(element, "a second <cpu> without the number of a NUMA node")
        for child in element.children:
            if child.tag == "pci":
                self._pci(child, None, numa, cpus or None)
            elif child.tag == "nic":
                self._nic(child, None, numa)
            else:
                self._unknown(child)

    def _node_facts(self, element: Element, numa: int, cpus: frozenset[int]) -> Facts:
        book = FactBook()
        self._say(book, "os_index", numa)
        self._say(book, "cpus", write_cpu_list(cpus))
        self._say(book, "architecture", element.attributes.get("arch"))
        self._say(book, "vendor", element.attributes.get("vendor"))
        family = self._number(element, "familyid", 0, 1 << 12)
        if family is not None and family > 15 and family & 15 == 15:
            family = 15 + (family >> 4)
        self._say(book, "family", family)
        self._say(book, "model", self._number(element, "modelid", 0, 1 << 12))
        return book.facts()

    def _pci(self, element: Element, parent: str | None, numa: int | None, cpus: frozenset[int] | None) -> None:
        address = normal_address(element.attributes.get("busid", ""))
        if address is None:
            raise self.document.error(element, "its busid is not a PCI address")
        part = self._function(element, address, parent, numa, cpus)
        known = self.pci_elements.get(address)
        if known is None:
            self.pci_parts[address], self.pci_elements[address] = part, element
        elif part != self.pci_parts[address] or part.class_id != _SWITCH or known.attributes != element.attributes:
            # Dumps repeat a switch for each of its partitions (Broadcom), identically.
            raise self.document.error(element, f"{address} is on line {known.line} already")
        for child in element.children:
            if child.tag == "pci":
                self._pci(child, address, numa, cpus)
            elif child.tag == "gpu":
                self._gpu(child, address)
            elif child.tag == "nic":
                self._nic(child, address, None)
            elif child.tag not in _IGNORED:
                self._unknown(child)

    def _function(
        self, element: Element, address: str, parent: str | None, numa: int | None, cpus: frozenset[int] | None
    ) -> PciPart:
        tags = {child.tag for child in element.children}
        class_id = self._class_id(element)
        kind = None
        if "gpu" in tags or class_id.startswith(_GPU_CLASSES):
            kind = DeviceKind.GPU
        elif "nic" in tags or class_id.startswith(_NIC_CLASS):
            kind = DeviceKind.NIC
        elif "pci" in tags or class_id == _SWITCH:
            kind = DeviceKind.BRIDGE
        rate = self._link_rate(element)
        is_current = self.is_current and "gpu" in tags
        book = FactBook()
        if len(element.attributes.get("class", "")) >= 6:
            self._say(book, "class_id", class_id)
        for name, attribute in (("vendor_id", "vendor"), ("device_id", "device"), ("subsystem_id", "subsystem_device")):
            self._say(book, name, self._identity(element, attribute))
        if kind is DeviceKind.GPU and "vendor" not in element.attributes:
            # NCCL supports only NVIDIA GPUs, RCCL only AMD GPUs.
            self._say(book, "vendor_id", _AMD if self.is_amd else _NVIDIA)
        return PciPart(
            address=address,
            class_id=class_id,
            parent=parent,
            numa=numa,
            cpus=cpus,
            capable=None if is_current else rate,
            trained=rate if is_current else None,
            kind=kind,
            source=f"{self.source} (link_speed)",
            facts=book.facts(),
            is_condensed=True,
        )

    def _class_id(self, element: Element) -> str:
        text = element.attributes.get("class", "")
        match = _CLASS.match(text)
        if match is None and text:
            raise self.document.error(element, "its class is not a PCI class")
        if match is None:
            return _UNKNOWN_CLASS
        # NCCL writes "0x03" and "0x02" for an unknown subclass: the subclass "other" is 80.
        return match[1].lower()[:4] if len(match[1]) >= 4 else f"{match[1].lower()}80"

    def _identity(self, element: Element, name: str) -> str | None:
        """Four hex digits of "0x10de"; None if it is not reported, or ffff, which is not a valid id."""
        text = element.attributes.get(name, "")
        match = _HEX.match(text)
        if text and (match is None or int(match[1], 16) > 0xFFFF):
            raise self.document.error(element, f"its {name} is not a PCI id")
        value = f"{int(match[1], 16):04x}" if match is not None else None
        return value if value != "ffff" else None

    def _link_rate(self, element: Element) -> SurveyLinkRate | None:
        """None if speed or width is empty, 0 or unknown."""
        text = element.attributes.get("link_speed", "").strip()
        speed = read_link_speed(text)
        if text and not text.startswith("Unknown") and speed not in _SPEEDS_GTps:
            raise self.document.error(element, "its link_speed is not one of PCIe")
        width = self._number(element, "link_width", 0, max(_WIDTHS)) or None
        if width is not None and width not in _WIDTHS:
            raise self.document.error(element, "its link_width is not one of PCIe")
        return SurveyLinkRate(speed, width) if speed is not None and width is not None else None

    def _gpu(self, element: Element, address: str) -> None:
        is_partition = "mlopart" in element.attributes
        if address in self.gpus and not is_partition:
            raise self.document.error(element, f"a second <gpu> on {address}")
        sm = self._number(element, "sm", 0, 1 << 16) or None
        dev = self._number(element, "dev", -1, 1 << 16)
        book = FactBook()
        if self.is_amd:
            gcn = element.attributes.get("gcn", "")
            gcn = _OLD_GCN_NAMES.get(gcn, f"gfx{gcn}" if gcn.isascii() and gcn.isdecimal() else gcn)
            self._say(book, "gpu_architecture", gcn)
            self._say(book, "compute_units", sm)
        elif sm is not None:
            self._say(book, "compute_capability", f"{sm // 10}.{sm % 10}")
        gdr = self._number(element, "gdr", 0, 1)
        self._say(book, "gpudirect_rdma", None if gdr is None else bool(gdr))
        is_first = address not in self.gpus
        self.gpus.setdefault(address, (element, None if self.is_amd else sm))
        counts: dict[str, int] = {}
        for child in element.children:
            if child.tag in ("nvlink", "xgmi"):
                count = self._number(child, "count", 1, 128)
                if count is None:
                    raise self.document.error(child, "it has no count")
                counts[child.tag] = counts.get(child.tag, 0) + count
                if is_first:  # partitions of one GPU repeat its links
                    target, tclass = child.attributes.get("target", ""), child.attributes.get("tclass", "").lower()
                    self.links.append(DirectLink(address, target, count, child.tag, tclass, child))
            elif child.tag == "c2c":
                # NVLink-C2C to the CPU: `bw` is MB/s of one link (topo.cc: bw x count / 1000 is GB/s).
                links, bandwidth = self._number(child, "count", 1, 1024), self._number(child, "bw", 0, 10**8)
                self._say(book, "c2c_links", links)
                self._say(book, "c2c_rate", links * bandwidth * 1e6 if links and bandwidth else None, "B/s")
            else:
                self._unknown(child)
        for kind, count in counts.items():
            self._say(book, f"{kind}_links", count)
        index = dev if dev is not None and dev >= 0 else None
        self.gpu_parts.append(NamedPart(DeviceKind.GPU, "", address, facts=book.facts(), index=index))

    def _nic(self, element: Element, pci: str | None, numa: int | None) -> None:
        for net in element.children:
            if net.tag != "net":
                self._unknown(net)
                continue
            name = net.attributes.get("name", "")
            if not name:
                raise self.document.error(net, "an adapter without a name")
            known, at = self.nets.setdefault(name, (net, len(self.net_parts)))
            if known is not net:
                # An adapter without a PCI function (a tunnel, a container bridge) is listed below the <cpu> of each
                # process that wrote a part of the file: it is one adapter, near none of them.
                if pci is not None or self.net_parts[at].pci is not None or net.attributes != known.attributes:
                    raise self.document.error(net, f"{name} is on line {known.line} already")
                self.net_parts[at] = replace(self.net_parts[at], numa=None)
                continue
            book = FactBook()
            speed = self._number(net, "speed", -1, 10**9)
            self._say(book, "rate", speed * 1e6 / 8 if speed is not None and speed > 0 else None, "B/s", volatile=True)
            self._say(book, "port", self._number(net, "port", 0, 1 << 16) or None)
            gdr = self._number(net, "gdr", 0, 1)
            self._say(book, "gpudirect_rdma", None if gdr is None else bool(gdr))
            self.net_parts.append(NamedPart(DeviceKind.NIC, name, pci, numa, facts=book.facts()))

    def _unknown(self, element: Element) -> None:
        """Skip an element that newer releases of NCCL may have; a known one at a wrong level is damage."""
        if element.tag in _MISPLACED:
            raise self.document.error(element, f"a <{element.tag}> at a wrong level")
        self.unknown.setdefault(element.tag, []).append(element)

    def _unread(self) -> list[str]:
        sentences = [
            f"{self.source}: {len(elements)} unknown <{tag[:60]}> (line {elements[0].line}) were ignored"
            for tag, elements in list(self.unknown.items())[:20]
        ]
        unclassified = [p.address for p in self.pci_parts.values() if p.kind is None and p.class_id == _UNKNOWN_CLASS]
        if unclassified:
            sentences.append(
                f"{self.source}: {len(unclassified)} <pci> (first {unclassified[0]}) have neither a class nor a device "
                "inside and are not shown"
            )
        return sentences

    def _number(self, element: Element, name: str, low: int, high: int) -> int | None:
        """A whole number, decimal or 0x; None if the attribute is absent or empty."""
        text = element.attributes.get(name, "").strip()
        if not text:
            return None
        match = _HEX.match(text)
        value = int(match[1], 16) if match is not None else int(text) if _NUMBER.match(text) else None
        if value is None or not low <= value <= high:
            raise self.document.error(element, f"its {name} must be a number from {low} to {high}")
        return value

    def _say(
        self, book: FactBook, name: str, value: FactValue | None, unit: SIUnit | None = None, *, volatile: bool = False
    ) -> None:
        book.say(name, value, self.source, unit, kind=FactKind.ASSERTED, volatile=volatile)
