"""Network and InfiniBand adapters, and the counters of their links.

Formats: Linux, Documentation/ABI/testing/sysfs-class-net and Documentation/ABI/stable/sysfs-class-infiniband.
An adapter with both an RDMA name (mlx5_0) and network names (ib0, ens1f0) is one device: the RDMA name is its name, as
in topology matrices; the others are aliases. MAC addresses and GUIDs are not read.

The PCI tree with its link speeds, and the names of GPUs from their drivers.

Format: Linux, Documentation/ABI/testing/sysfs-bus-pci. The tree is the folder path that each entry links to:
/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0. Only functions relevant to performance are kept: bridges, GPUs and
those with a named device of another source; `assemble` drops bridges without devices.

GPU names are in /proc/driver/nvidia and amdgpu's product name; UUID and serial number, beside these, are not
read.
"""

from __future__ import annotations

import re
from contextlib import suppress

from seatrial.errors import ParseError
from seatrial.machine.files import FileTree
from seatrial.machine.readers.pci_config import read_pci_config
from seatrial.machine.readers.scalars import read_choice, read_cpu_list, read_link_speed
from seatrial.machine.survey import FactBook, NamedPart, PciPart, SurveyLinkRate
from seatrial.model.machine.links import LINK_COUNTERS
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


def _link(files: FileTree, folder: str, which: str) -> SurveyLinkRate | None:
    """One end's link speed; None for functions without a link (width 0, or 255 without the register)."""
    speed = read_link_speed(files.text(f"{folder}/{which}_link_speed") or "")
    lanes = files.integer(f"{folder}/{which}_link_width")
    if speed is None or lanes is None or not 0 < lanes <= _MAX_LANES:
        return None
    return SurveyLinkRate(speed, lanes)


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


_NET = "/sys/class/net"
_RDMA = "/sys/class/infiniband"
_RATE = re.compile(r"(\d{1,6}(?:\.\d+)?) Gb/sec(?: \((\d+)X ([A-Z0-9]+)\))?")


def survey_network(files: FileTree) -> tuple[NamedPart, ...]:
    """The hardware adapters; loopback, bridges, bonds and other virtual interfaces are skipped."""
    nets: dict[str, tuple[str, str]] = {}
    for name in files.names(_NET):
        real = files.real(f"{_NET}/{name}")
        device = files.real(f"{_NET}/{name}/device")
        if real is not None and device is not None and "/devices/virtual/" not in real:
            nets[name] = (real, device)
    adapters: list[NamedPart] = []
    for name in files.names(_RDMA):
        device = files.real(f"{_RDMA}/{name}/device")
        aliases = tuple(net for net, (_, net_device) in nets.items() if net_device == device)
        adapters.append(_adapter(files, name, device or "", aliases))
        for alias in aliases:
            del nets[alias]
    adapters += [_adapter(files, name, real, ()) for name, (real, _) in nets.items()]
    return tuple(adapters)


def _adapter(files: FileTree, name: str, real: str, aliases: tuple[str, ...]) -> NamedPart:
    pci = pci_of(real)
    book = FactBook()
    is_rdma = files.exists(f"{_RDMA}/{name}")
    if is_rdma:
        _add_rdma(files, f"{_RDMA}/{name}", book)
        for net in aliases[:1]:  # the first port; its facts have a prefix
            _add_net(files, f"{_NET}/{net}", book, "net_")
    else:
        _add_net(files, f"{_NET}/{name}", book)
    driver = files.real(f"{_RDMA if is_rdma else _NET}/{name}/device/driver")
    book.say("driver", driver.rsplit("/", 1)[-1] if driver else None, f"/sys/class/*/{name}/device/driver")
    return NamedPart(DeviceKind.NIC, name, pci, _numa(files, pci), aliases, book.facts())


def _add_net(files: FileTree, folder: str, book: FactBook, prefix: str = "") -> None:
    # `speed` is in Mbit/s; it is unreadable or -1 while the link is down, and missing for virtio.
    speed = files.integer(f"{folder}/speed")
    rate = speed * 1e6 / 8 if speed is not None and 0 < speed < 1 << 31 else None
    book.say(f"{prefix}rate", rate, f"{folder}/speed", "B/s", volatile=True)
    book.say(f"{prefix}state", files.word(f"{folder}/operstate"), f"{folder}/operstate", volatile=True)
    book.say("mtu", files.integer(f"{folder}/mtu"), f"{folder}/mtu", "B")
    duplex = files.word(f"{folder}/duplex")
    book.say("duplex", duplex if duplex != "unknown" else None, f"{folder}/duplex", volatile=True)


def _add_rdma(files: FileTree, folder: str, book: FactBook) -> None:
    """Add rate, state and link layer of each port of an RDMA device; `rate` without prefix is that of port 1."""
    files.say_words(book, folder, firmware="fw_ver", board_id="board_id", hca_type="hca_type")
    ports = sorted((name for name in files.names(f"{folder}/ports") if name.isdecimal()), key=int)
    book.say("ports", len(ports) or None, f"{folder}/ports")
    for position, port in enumerate(ports):
        prefix, own = "" if position == 0 else f"port{port}_", f"{folder}/ports/{port}"
        match = _RATE.match(files.word(f"{own}/rate") or "")
        physical = (files.word(f"{own}/phys_state") or "").rpartition(": ")[2]
        state = (files.word(f"{own}/state") or "").rpartition(": ")[2].lower()
        # The rate of a port without a link is that of its slowest mode.
        has_link = physical in ("", "LinkUp") or state == "active"
        rate = float(match[1]) * 1e9 / 8 if match and has_link else None
        book.say(f"{prefix}rate", rate, f"{own}/rate", "B/s", volatile=True)
        if match and match[2]:
            book.say(f"{prefix}link_width", int(match[2]), f"{own}/rate", volatile=True)
            book.say(f"{prefix}link_speed", match[3], f"{own}/rate", volatile=True)
        book.say(f"{prefix}state", state, f"{own}/state", volatile=True)
        book.say(f"{prefix}physical_state", physical, f"{own}/phys_state", volatile=True)
        files.say_words(book, own, **{f"{prefix}link_layer": "link_layer"})


_MOST_PORTS = 64
"""Of more ports (virtual functions), the first are read: every file is a request to the adapter."""


def read_link_counters(files: FileTree) -> dict[str, dict[str, int]]:
    """Port ("mlx5_0 port 1", "eth0") -> counter -> value, of adapters that are hardware. Never fails."""
    places = [
        (f"{name} port {port}", f"{_RDMA}/{name}/ports/{port}/{folder}")
        for name in files.names(_RDMA)
        for port in files.names(f"{_RDMA}/{name}/ports")
        for folder in ("counters", "hw_counters")
    ]
    places += [
        (name, f"{_NET}/{name}/statistics") for name in files.names(_NET) if files.exists(f"{_NET}/{name}/device")
    ]
    found: dict[str, dict[str, int]] = {}
    for port, folder in places[: 2 * _MOST_PORTS]:
        values = {name: files.integer(f"{folder}/{name}") for name in files.names(folder) if name in LINK_COUNTERS}
        known = {name: value for name, value in values.items() if value is not None}
        if known:
            found.setdefault(port, {}).update(known)
    return found


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
    files.say_words(book, f"{folder}/queue", write_cache="write_cache")
    if not folder.rsplit("/", 1)[-1].startswith("nvme"):
        files.say_words(book, f"{folder}/device", model_name="model")
    return book
