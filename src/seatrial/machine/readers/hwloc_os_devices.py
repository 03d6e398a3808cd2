"""OS devices that hwloc attaches to PCI functions, with the names of the OS or the drivers: eth0, mlx5_0, sda, nvml0.

Format: `osdev_type` is a number in hwloc 1 and 2, a bit set in 3 (hwloc.h, hwloc_obj_osdev_type_e).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from seatrial.machine.readers.hwloc_infos import info_size, read_infos
from seatrial.machine.readers.xml import Element
from seatrial.machine.survey import FactBook, NamedPart
from seatrial.model.machine import DeviceKind

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
_NO_DISK = re.compile(r"(sr|fd|mem|dax)\d", re.ASCII)  # optical and floppy drives, CXL memory

# Numbers in GPU names: those of the vendor's management library, else of a runtime (which may count differently).
_VENDOR_NUMBER = re.compile(r"(?:nvml|rsmi)(\d{1,4})\Z", re.ASCII)
_RUNTIME_NUMBERS = (re.compile(r"cuda(\d{1,4})\Z", re.ASCII), re.compile(r"opencl0d(\d{1,4})\Z", re.ASCII))


@dataclass(slots=True)
class OsDevices:
    """Collects the devices of one file; `has_bits`: the types are bit sets."""

    source: str
    has_bits: bool
    _parts: list[NamedPart] = field(default_factory=list)
    _rdma_names: set[str] = field(default_factory=set)

    def add(self, element: Element, osdev_type: int | None, pci: str | None) -> None:
        """Keep a named device on a PCI function; skip DMA engines, memory, bonds and RAM disks."""
        name = element.attributes.get("name", "")
        kind = self._kind(name, osdev_type)
        if not name or kind is None or pci is None or (kind is DeviceKind.BLOCK and _NO_DISK.match(name)):
            return
        infos = read_infos(element)
        book = FactBook()
        if kind is DeviceKind.BLOCK and re.match(r"nvme\d+n\d+\Z", name, re.ASCII):
            kind = DeviceKind.NVME
        if kind in (DeviceKind.BLOCK, DeviceKind.NVME):
            # hwloc's "Model" comes from udev, with different spaces than the kernel's: not used.
            book.say("size", info_size(infos.get("Size")) or None, self.source, "B")
        if kind is DeviceKind.GPU:
            book.say("model_name", infos.get("GPUModel"), self.source)
        self._parts.append(NamedPart(kind, name, pci, facts=book.facts()))

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


def _numbered(parts: Sequence[NamedPart]) -> list[NamedPart]:
    names = [part.name for part in parts if part.kind is DeviceKind.GPU]
    for pattern in (_VENDOR_NUMBER, *_RUNTIME_NUMBERS):
        if any(pattern.match(name) for name in names):
            matches = [pattern.match(part.name) if part.kind is DeviceKind.GPU else None for part in parts]
            return [replace(p, index=int(m[1])) if m is not None else p for p, m in zip(parts, matches, strict=True)]
    return list(parts)
