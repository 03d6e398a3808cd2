"""`amd-smi topology`, `amd-smi static` and `amd-smi list`, as text or JSON -> AMD GPUs, their links and places.

Formats: the readers of both forms (`amd_smi_text`, `amd_smi_json`). Hops (AMD SMI documentation, "Interpreting hops and
weight"): 1 over XGMI, 2 over PCIe within a NUMA node, 3 across NUMA nodes. A bandwidth of "50000-100000" is that of one
XGMI link and of all links of the pair, in MB/s, as the Linux driver computes it from lanes and speed. Serial numbers
and UUIDs are not kept. Written after outputs in public documentation and threads; not tried on a machine with AMD GPUs.
"""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.machine.readers.amd_smi_json import begins_json, read_json
from seatrial.machine.readers.amd_smi_parts import (
    ACCESS,
    BANDWIDTH,
    HOPS,
    LINK_TYPE,
    TOOL,
    Gpu,
    Output,
    Tables,
    check_tables,
    is_unknown,
    normal_bdf,
    read_amount,
    read_cpus,
    read_hex,
    read_node,
    read_rates,
)
from seatrial.machine.readers.amd_smi_text import read_text
from seatrial.machine.readers.dump import choose, read_lines
from seatrial.machine.survey import FactBook, LinkRate, NamedPart, PciPart, PeerLink, Survey
from seatrial.model.machine.machine import DeviceKind, Path, PeerAccess

SOURCE_TOPOLOGY, SOURCE_STATIC = "amd-smi topology", "amd-smi static"

_ACCESS = {"ENABLED": "OK", "DISABLED": "NS"}
_SIZES = {"B": 1.0, "KB": float(1 << 10), "MB": float(1 << 20), "GB": float(1 << 30)}  # as rocm-smi: binary
_RATES = {"GB/s": 1e9, "MB/s": 1e6}
_TRANSFERS = {"GT/s": 1.0, "": 1.0}
_VENDOR = "1002"


def read_amd_smi(data: bytes, pick: int | None = None) -> Survey:
    """The GPUs in a dump, the `pick`-th output (from 1) if there are several.

    `paths` has each unordered pair once: XGMI with the number of links, SYS (PCIe across NUMA nodes), PCI (PCIe within
    a node, or with unknown hops), or None if the tool does not know. Raises ParseError if the output is damaged or has
    no link types, access or GPUs; UsageError for several outputs without `pick`.
    """
    lines = read_lines(data, TOOL)
    outputs = read_json(lines) if begins_json(lines) else read_text(lines)
    outputs = [output for output in outputs if output.tables is not None or output.gpus]
    output = choose(outputs, lambda one: one.line.number, pick, TOOL, "output of amd-smi")
    tables = output.tables
    if tables is not None:
        if not {LINK_TYPE, ACCESS} & set(tables.cells) and not output.gpus:
            raise tables.line.error(TOOL, "no link types in the topology: take `amd-smi topology`")
        check_tables(tables)
    labels = _labels(output)
    unread: list[str] = []
    described = _by_label(output, labels)
    return Survey(
        source="amd-smi",
        pci_parts=tuple(part for gpu in described.values() if (part := _pci_part(gpu)) is not None),
        named_parts=tuple(_part(label, pci, described.get(label), unread) for label, pci in labels.items()),
        paths=() if tables is None else _paths(tables, _names(tables, labels)),
        p2p=() if tables is None else _access(tables, _names(tables, labels)),
        peer_links=() if tables is None else _links(tables, _names(tables, labels)),
        unread=tuple(unread),
    )


def _labels(output: Output) -> Mapping[str, str | None]:
    """Label of each GPU -> its PCI address: "GPU3" if its number is known, else the address itself.

    Raises ParseError if the topology and the description of the GPUs contradict each other.
    """
    found: dict[str, str | None] = {}
    numbers: dict[str, int] = {}
    for number, gpu in sorted(output.gpus.items()):
        address = _address(gpu)
        found[f"GPU{number}"] = address
        if address is not None:
            if address in numbers:
                raise gpu.line.error(TOOL, f"{address} is already GPU {numbers[address]}")
            numbers[address] = number
    tables = output.tables
    for label in tables.labels if tables is not None else ():
        address = normal_bdf(label)
        stated = tables.numbers.get(label) if tables is not None else None
        described = numbers.get(address or "", stated)
        if stated is not None and described != stated:
            raise output.line.error(TOOL, f"{address} is GPU {stated} and GPU {described}")
        name = address or label if described is None else f"GPU{described}"
        known = found.get(name)
        if known is not None and address is not None and known != address:
            raise output.line.error(TOOL, f"{name} is {known} and {address}")
        found[name] = address or known
    return found


def _address(gpu: Gpu) -> str | None:
    text = gpu.values.get("BUS.BDF", gpu.values.get("BDF", "N/A"))
    if is_unknown(text):
        return None
    address = normal_bdf(text)
    if address is None:
        raise gpu.line.error(TOOL, f"{text[:40]} is not a PCI address")
    return address


def _by_label(output: Output, labels: Mapping[str, str | None]) -> dict[str, Gpu]:
    return {label: gpu for number, gpu in output.gpus.items() if (label := f"GPU{number}") in labels}


def _names(tables: Tables, labels: Mapping[str, str | None]) -> Mapping[str, str]:
    """Label in a table -> label of the GPU."""
    by_address = {address: label for label, address in labels.items() if address is not None}
    return {label: by_address.get(normal_bdf(label) or "", label) for label in tables.labels}


def _pairs(tables: Tables) -> list[tuple[str, str]]:
    return [(a, b) for index, a in enumerate(tables.labels) for b in tables.labels[index + 1 :]]


def _paths(tables: Tables, names: Mapping[str, str]) -> tuple[Path, ...]:
    types = tables.cells.get(LINK_TYPE)
    if types is None:
        return ()
    hops, rates = tables.cells.get(HOPS, {}), tables.cells.get(BANDWIDTH, {})
    return tuple(
        Path(names[a], names[b], *_class(types[a, b], hops.get((a, b), ""), rates.get((a, b), "")))
        for a, b in _pairs(tables)
    )


def _class(link_type: str, hops: str, rates: str) -> tuple[str | None, int | None]:
    """The path class of a pair, and the number of its XGMI links."""
    if link_type == "XGMI":
        return "XGMI", _count(rates)
    if link_type == "PCIE":
        return ("SYS" if hops == "3" else "PCI"), None
    return None, None


def _count(cell: str) -> int | None:
    rates = read_rates(cell)
    if rates is None or rates[1] % rates[0]:
        return None
    return int(rates[1] // rates[0])


def _links(tables: Tables, names: Mapping[str, str]) -> tuple[PeerLink, ...]:
    types, cells = tables.cells.get(LINK_TYPE, {}), tables.cells.get(BANDWIDTH, {})
    found: list[PeerLink] = []
    for a, b in _pairs(tables):
        rates = read_rates(cells.get((a, b), ""))
        if types.get((a, b)) == "XGMI" and rates is not None and cells[a, b] == cells[b, a]:
            link = PeerLink(names[a], names[b], "xgmi", _count(cells[a, b]), rates[1], source=SOURCE_TOPOLOGY)
            found.append(link)
    return tuple(found)


def _access(tables: Tables, names: Mapping[str, str]) -> tuple[PeerAccess, ...]:
    cells = tables.cells.get(ACCESS, {})
    found: list[PeerAccess] = []
    for a, b in _pairs(tables) if cells else ():
        statuses = {_ACCESS.get(cells[a, b]), _ACCESS.get(cells[b, a])}
        status = "NS" if "NS" in statuses else statuses.pop()
        found.append(PeerAccess(names[a], names[b], status, status))
    return tuple(found)


def _part(label: str, pci: str | None, gpu: Gpu | None, unread: list[str]) -> NamedPart:
    book = FactBook()
    book.say("vendor_id", _VENDOR, "amd-smi lists AMD GPUs")
    if gpu is None:
        index = int(label.removeprefix("GPU")) if label.removeprefix("GPU").isdecimal() else None
        return NamedPart(DeviceKind.GPU, label, pci, index=index, is_label=True, facts=book.facts())
    name = gpu.values.get("ASIC.MARKET_NAME", "N/A")
    book.say("model_name", None if is_unknown(name) else name[:100], SOURCE_STATIC)
    size = read_amount(gpu, "VRAM.SIZE", _SIZES)
    book.say("memory_total", None if size is None else int(size), SOURCE_STATIC, "B")
    kind = gpu.values.get("VRAM.TYPE", "N/A")
    book.say("memory_type", None if is_unknown(kind) else kind[:40], SOURCE_STATIC)
    book.say("memory_bandwidth", read_amount(gpu, "VRAM.MAX_BANDWIDTH", _RATES), SOURCE_STATIC, "B/s")
    driver = gpu.values.get("DRIVER.VERSION", "N/A")
    book.say("driver_version", None if is_unknown(driver) else driver[:100], SOURCE_STATIC)
    nodes = {node for key in ("NUMA.NODE", "NUMA.AFFINITY") if (node := read_node(gpu, key)) is not None}
    if len(nodes) > 1:
        unread.append(f"{TOOL}: {label}: its node and its affinity are different NUMA nodes: both were ignored")
    return NamedPart(
        DeviceKind.GPU, label, pci, numa=next(iter(nodes)) if len(nodes) == 1 else None, facts=book.facts(),
        cpus=read_cpus(gpu), index=gpu.number, is_label=True,
    )  # fmt: skip


def _pci_part(gpu: Gpu) -> PciPart | None:
    """The PCI function with the capable rate of its link, or None without an address."""
    address = _address(gpu)
    if address is None:
        return None
    lanes = read_amount(gpu, "BUS.MAX_PCIE_WIDTH", {"": 1.0, "Lanes": 1.0})
    speed = read_amount(gpu, "BUS.MAX_PCIE_SPEED", _TRANSFERS)
    book = FactBook()
    for fact, key in (("vendor_id", "VENDOR_ID"), ("device_id", "DEVICE_ID"), ("subsystem_id", "SUBSYSTEM_ID")):
        book.say(fact, read_hex(gpu.values.get(f"ASIC.{key}", "")), SOURCE_STATIC)
    driver = gpu.values.get("DRIVER.NAME", "N/A")
    book.say("driver", None if is_unknown(driver) else driver[:100], SOURCE_STATIC)
    book.say("pcie_max_GTps", speed, SOURCE_STATIC, "1")
    book.say("pcie_max_lanes", None if lanes is None else int(lanes), SOURCE_STATIC)
    capable = LinkRate(speed, int(lanes)) if speed is not None and lanes is not None else None
    return PciPart(address, "0000", capable=capable, kind=DeviceKind.GPU, source=SOURCE_STATIC, facts=book.facts())
