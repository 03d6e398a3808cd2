"""The PCI tree with its link speeds, and the names of GPUs from their drivers.

Format: Linux, Documentation/ABI/testing/sysfs-bus-pci. The tree is the folder path that each entry links to:
/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0. Only functions relevant to performance are kept: bridges, GPUs and
those with a named device of another source; `assemble` drops bridges without devices.

GPU names are in /proc/driver/nvidia and amdgpu's product name; UUID and serial number, in the same places, are not
read.
"""

from __future__ import annotations

import re
from contextlib import suppress

from seatrial.errors import ParseError
from seatrial.machine.files import FileTree
from seatrial.machine.readers.pci_config import read_pci_config
from seatrial.machine.readers.scalars import read_cpu_list, read_link_speed
from seatrial.machine.survey import FactBook, LinkRate, NamedPart, PciPart
from seatrial.model.machine.machine import DeviceKind

PCI_DEVICES = "/sys/bus/pci/devices"

# Domains have more than four digits behind Intel VMD (10000:01:00.0).
FUNCTION = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\Z")
_HOST_BRIDGE = re.compile(r"\Apci([0-9a-f]{4,8}:[0-9a-f]{2})\Z")
_HOST = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}\Z")
_IDS = {
    "vendor_id": "vendor", "device_id": "device",
    "subsystem_id": "subsystem_device", "subsystem_vendor_id": "subsystem_vendor",
}  # fmt: skip
_MAX_LANES = 32
_BRIDGES = frozenset({"0604"})
_WITH_SETTINGS = frozenset({"01", "02", "03", "12"})
"""Base classes of disks, adapters, GPUs and accelerators: of other devices, the configuration space is not read."""


def survey_pci(files: FileTree) -> tuple[PciPart, ...]:
    """Every PCI function and host bridge, host bridges first."""
    functions: list[PciPart] = []
    hosts: dict[str, str | None] = {}
    for address in files.names(PCI_DEVICES):
        real = files.real(f"{PCI_DEVICES}/{address}")
        if FUNCTION.match(address) and real is not None:
            named = (_HOST_BRIDGE.sub(r"\1", part) for part in real.split("/"))
            chain = [part for part in named if FUNCTION.match(part) or _HOST.match(part)]
            functions.append(_function(files, address, chain[-2] if len(chain) > 1 else None))
            for above, link in zip((None, *chain), chain, strict=False):
                if not FUNCTION.match(link):
                    hosts.setdefault(link, above)
    return (*(_host(address, parent, functions) for address, parent in hosts.items()), *functions)


def pci_of(real_path: str) -> str | None:
    """The PCI function of a device's folder (its real path): the last address in the path, or None."""
    functions = [part for part in real_path.split("/") if FUNCTION.match(part)]
    return functions[-1] if functions else None


def _host(address: str, parent: str | None, functions: list[PciPart]) -> PciPart:
    """A host bridge, with the NUMA node and CPUs of the functions directly below it."""
    below = [function for function in functions if function.parent == address]
    numa = next((function.numa for function in below if function.numa is not None), None)
    cpus = next((function.cpus for function in below if function.cpus), None)
    return PciPart(address, "", parent, numa, cpus, source=PCI_DEVICES)


def _function(files: FileTree, address: str, parent: str | None) -> PciPart:
    folder = f"{PCI_DEVICES}/{address}"
    book = FactBook()
    class_word = (files.word(f"{folder}/class") or "").removeprefix("0x")
    class_id = class_word[:4] if re.fullmatch(r"[0-9a-f]{6}", class_word) else "ffff"  # ffff: unassigned class
    book.say("class_id", class_id, f"{folder}/class")
    for name, file in _IDS.items():
        book.say(name, (files.word(f"{folder}/{file}") or "").removeprefix("0x"), f"{folder}/{file}")
    _add_functions(files, folder, book)
    driver = files.real(f"{folder}/driver")
    book.say("driver", driver.rsplit("/", 1)[-1] if driver else None, f"{folder}/driver")
    numa = files.integer(f"{folder}/numa_node")
    capable, trained = _link(files, folder, "max"), _link(files, folder, "current")
    for which, prefix, rate, volatile in (("max", "pcie_max", capable, False), ("current", "pcie", trained, True)):
        if rate is not None:
            book.say(f"{prefix}_GTps", rate.GTps, f"{folder}/{which}_link_speed", "1", volatile=volatile)
            book.say(f"{prefix}_lanes", rate.lanes, f"{folder}/{which}_link_width", volatile=volatile)
    if class_id[:2] in _WITH_SETTINGS or class_id in _BRIDGES:
        _add_config(files, f"{folder}/config", class_id in _BRIDGES, book)
    group = files.real(f"{folder}/iommu_group")
    if group is not None:  # the type of the group's domain: identity, or DMA or DMA-FQ (translated)
        files.say_words(book, group, iommu_domain="type")
    cpus = None
    with suppress(ParseError):
        cpus = frozenset(read_cpu_list(files.text(f"{folder}/local_cpulist") or "")) or None
    return PciPart(
        address, class_id, parent, numa if numa is not None and numa >= 0 else None, cpus, capable, trained,
        source=f"{folder}/*_link_*", facts=book.facts(),
    )  # fmt: skip


def _add_config(files: FileTree, path: str, is_bridge: bool, book: FactBook) -> None:
    """Add what the configuration space states; only root can read all of it."""
    settings = read_pci_config(files.data(path) or b"")
    book.say("pcie_type", settings.port, path)
    book.say("pcie_max_payload", settings.max_payload, path, "B")
    book.say("pcie_payload", settings.payload, path, "B")
    book.say("pcie_read_request", settings.read_request, path, "B")
    book.say("pcie_relaxed_ordering", settings.relaxed_ordering, path)
    book.say("acs", settings.acs, path)
    book.say("acs_redirects", settings.acs_redirects if is_bridge else None, path)


def _add_functions(files: FileTree, folder: str, book: FactBook) -> None:
    """Add what SR-IOV made of it: the function that it is a virtual function of, or how many of those it has."""
    physical = files.real(f"{folder}/physfn")
    name = physical.rsplit("/", 1)[-1] if physical else ""
    book.say("physical_function", name if FUNCTION.match(name) else None, f"{folder}/physfn")
    book.say("virtual_functions", files.integer(f"{folder}/sriov_numvfs") or None, f"{folder}/sriov_numvfs")


def _link(files: FileTree, folder: str, which: str) -> LinkRate | None:
    """One end's link speed; None for functions without a link (width 0, or 255 without the register)."""
    speed = read_link_speed(files.text(f"{folder}/{which}_link_speed") or "")
    lanes = files.integer(f"{folder}/{which}_link_width")
    if speed is None or lanes is None or not 0 < lanes <= _MAX_LANES:
        return None
    return LinkRate(speed, lanes)


_NVIDIA = "/proc/driver/nvidia/gpus"


def survey_gpu_drivers(files: FileTree) -> tuple[NamedPart, ...]:
    """One part per GPU that a driver names, attached to its PCI function."""
    parts: list[NamedPart] = []
    release = re.search(r"Kernel Module.*?\s(\d{3}\.\d+(?:\.\d+)?)\s", files.text("/proc/driver/nvidia/version") or "")
    for address in files.names(_NVIDIA):
        text = files.text(f"{_NVIDIA}/{address}/information") or ""
        book = FactBook()
        for fact, key in (("model_name", "Model"), ("video_bios", "Video BIOS")):
            match = re.search(rf"^{key}:[ \t]*(.+?)[ \t]*$", text, re.MULTILINE)
            book.say(fact, match[1] if match else None, f"{_NVIDIA}/{address}/information")
        book.say("driver_version", release[1] if release else None, "/proc/driver/nvidia/version")
        parts.append(NamedPart(DeviceKind.GPU, "", address.lower(), facts=book.facts()))
    for address in files.names("/sys/bus/pci/drivers/amdgpu"):
        book = FactBook()
        files.say_words(book, f"{PCI_DEVICES}/{address}", model_name="product_name")
        memory = f"{PCI_DEVICES}/{address}/mem_info_vram_total"
        book.say("memory_total", files.integer(memory) or None, memory, "B")
        if book.facts():
            parts.append(NamedPart(DeviceKind.GPU, "", address, facts=book.facts()))
    return tuple(parts)
