"""Disks and NVMe name spaces from /sys/class (Linux, Documentation/ABI/stable/sysfs-block)."""

from __future__ import annotations

import re
from contextlib import suppress

from seatrial.errors import ParseError
from seatrial.machine.files import FileTree
from seatrial.machine.readers.scalars import read_choice
from seatrial.machine.survey import FactBook, NamedPart
from seatrial.machine.sysfs.pci import pci_of
from seatrial.model.machine.machine import DeviceKind

_SECTOR_BYTES = 512  # the unit in sysfs, whatever the device's sector size


def survey_storage(files: FileTree) -> tuple[NamedPart, ...]:
    """Physical disks; no optical drives, partitions, loop devices, RAM disks, device-mapper or md volumes."""
    nvme = _nvme(files)
    taken = {part.name for part in nvme}
    disks: list[NamedPart] = []
    for name in files.names("/sys/class/block"):
        folder = f"/sys/class/block/{name}"
        real = files.real(folder)
        hidden = files.integer(f"{folder}/hidden") == 1  # one of several paths of an NVMe device
        if real is None or "/devices/virtual/" in real or name in taken or hidden or re.match(r"(sr|fd)\d", name):
            continue
        if files.exists(f"{folder}/partition") or not files.exists(f"{folder}/device"):
            continue
        pci = pci_of(real)
        facts = _disk_facts(files, folder).facts()
        disks.append(NamedPart(DeviceKind.BLOCK, name, pci, _numa(files, pci), facts=facts))
    return (*nvme, *disks)


def _nvme(files: FileTree) -> tuple[NamedPart, ...]:
    parts: dict[str, NamedPart] = {}
    for controller in files.names("/sys/class/nvme"):
        folder = f"/sys/class/nvme/{controller}"
        real = files.real(folder)
        pci = pci_of(real) if real else None
        # With multipath the controller lists nvme0c0n1 and the usable disk nvme0n1 is a virtual device.
        paths = [match for name in files.names(folder) if (match := re.fullmatch(r"(nvme\d+)(?:c\d+)?(n\d+)", name))]
        names = [match[1] + match[2] for match in paths] or [controller]
        for name in names:
            book = _disk_facts(files, f"/sys/class/block/{name}")
            for fact in ("model", "firmware_rev", "transport", "state"):
                word = files.word(f"{folder}/{fact}")
                book.say("model_name" if fact == "model" else fact, word, f"{folder}/{fact}", volatile=fact == "state")
            parts.setdefault(name, NamedPart(DeviceKind.NVME, name, pci, _numa(files, pci), facts=book.facts()))
    return tuple(parts.values())


def _numa(files: FileTree, pci: str | None) -> int | None:
    number = files.integer(f"/sys/bus/pci/devices/{pci}/numa_node") if pci else None
    return number if number is not None and number >= 0 else None


def _disk_facts(files: FileTree, folder: str) -> FactBook:
    book = FactBook()
    sectors = files.integer(f"{folder}/size")
    book.say("size", sectors * _SECTOR_BYTES if sectors else None, f"{folder}/size", "B")
    rotational = files.integer(f"{folder}/queue/rotational")
    book.say("rotational", None if rotational is None else rotational == 1, f"{folder}/queue/rotational")
    book.say("sector_size", files.integer(f"{folder}/queue/logical_block_size"), f"{folder}/queue", "B")
    scheduler = files.text(f"{folder}/queue/scheduler")
    with suppress(ParseError):  # some drivers write invalid text here, and it is only a setting
        book.say("scheduler", read_choice(scheduler) if scheduler else None, f"{folder}/queue/scheduler")
    cache = files.word(f"{folder}/queue/write_cache")
    book.say("write_cache", cache, f"{folder}/queue/write_cache")
    if not folder.rsplit("/", 1)[-1].startswith("nvme"):
        book.say("model_name", files.word(f"{folder}/device/model"), f"{folder}/device/model")
    return book
