"""OS devices that hwloc attaches to PCI functions, with the names of the OS or the drivers: eth0, mlx5_0, sda, nvml0.

Format: `osdev_type` is a number in hwloc 1 and 2, a bit set in 3 (hwloc.h, hwloc_obj_osdev_type_e).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from seatrial.machine.readers.hwloc_memory import info_size, read_infos
from seatrial.machine.readers.xml import Element
from seatrial.machine.survey import FactBook, NamedPart, one_fact
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fact import Facts
from seatrial.model.machine.machine import DeviceKind

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


class Place(Frozen):
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

    def add(self, element: Element, osdev_type: int | None, place: Place) -> None:
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
        # Without a PCI address, the place of a device is that of the object around it.
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
