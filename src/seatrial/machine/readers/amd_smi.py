"""`amd-smi topology`, `amd-smi static` and `amd-smi list`, as text or JSON -> AMD GPUs, their links and positions.

Formats: `amd_smi_output`. Hops (AMD SMI documentation, "Interpreting hops and weight"): 1 over XGMI, 2 over PCIe within
a NUMA node, 3 across NUMA nodes. A bandwidth of "50000-100000" is that of one XGMI link and of all links of the pair,
in MB/s, as the Linux driver computes it from lanes and speed. Serial numbers and UUIDs are not kept. Written after
outputs in public documentation and threads; not tried on a machine with AMD GPUs.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from seatrial.machine.readers import amd_smi_output
from seatrial.machine.readers.dump import choose, read_lines
from seatrial.machine.survey import FactBook, NamedPart, PciPart, PeerLink, Survey, SurveyLinkRate
from seatrial.model.machine.links import pci_address
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
    lines = read_lines(data, amd_smi_output.TOOL)
    outputs = amd_smi_output.read_json(lines) if amd_smi_output.begins_json(lines) else amd_smi_output.read_text(lines)
    outputs = [output for output in outputs if output.tables is not None or output.gpus]
    output = choose(outputs, lambda one: one.line.number, pick, amd_smi_output.TOOL, "output of amd-smi")
    tables = output.tables or amd_smi_output.Tables(output.line)
    if (
        output.tables is not None
        and not {amd_smi_output.LINK_TYPE, amd_smi_output.ACCESS} & set(tables.cells)
        and not output.gpus
    ):
        raise tables.line.error(
            amd_smi_output.TOOL, "no link types in the topology: give the output of `amd-smi topology`"
        )
    amd_smi_output.check_tables(tables)
    labels = _labels(output, tables)
    by_address = {address: label for label, address in labels.items() if address is not None}
    names = {label: by_address.get(pci_address(label) or "", label) for label in tables.labels}
    unread: list[str] = []
    described = {f"GPU{number}": gpu for number, gpu in output.gpus.items()}
    return Survey(
        source="amd-smi",
        pci_parts=tuple(part for gpu in described.values() if (part := _pci_part(gpu)) is not None),
        named_parts=tuple(_part(label, pci, described.get(label), unread) for label, pci in labels.items()),
        paths=_paths(tables, names),
        p2p=_access(tables, names),
        peer_links=_links(tables, names),
        unread=tuple(unread),
    )


def _labels(output: amd_smi_output.AmdSmiOutput, tables: amd_smi_output.Tables) -> Mapping[str, str | None]:
    """Label of each GPU -> its PCI address: "GPU3" if its number is known, else the address itself.

    Raises ParseError if the topology and the description of the GPUs contradict each other.
    """
    found: dict[str, str | None] = {}
    numbers: dict[str, int] = {}
    for number, gpu in sorted(output.gpus.items()):
        address = gpu.address()
        found[f"GPU{number}"] = address
        if address is not None:
            if address in numbers:
                raise gpu.line.error(amd_smi_output.TOOL, f"{address} is already GPU {numbers[address]}")
            numbers[address] = number
    for label in tables.labels:
        address = pci_address(label)
        stated = tables.numbers.get(label)
        described = numbers.get(address or "", stated)
        if stated is not None and described != stated:
            raise output.line.error(amd_smi_output.TOOL, f"{address} is GPU {stated} and GPU {described}")
        name = address or label if described is None else f"GPU{described}"
        known = found.get(name)
        if known is not None and address is not None and known != address:
            raise output.line.error(amd_smi_output.TOOL, f"{name} is {known} and {address}")
        found[name] = address or known
    return found


def _paths(tables: amd_smi_output.Tables, names: Mapping[str, str]) -> tuple[Path, ...]:
    types, hops, rates = (
        tables.cells.get(what, {}) for what in (amd_smi_output.LINK_TYPE, amd_smi_output.HOPS, amd_smi_output.BANDWIDTH)
    )
    found: list[Path] = []
    for pair in combinations(tables.labels if types else (), 2):
        link_type, ends = types[pair], (names[pair[0]], names[pair[1]])
        if link_type == "XGMI":
            found.append(Path(*ends, "XGMI", _count(rates.get(pair, ""))))
        else:
            over_pcie = "SYS" if hops.get(pair) == "3" else "PCI"
            found.append(Path(*ends, over_pcie if link_type == "PCIE" else None))
    return tuple(found)


def _count(cell: str) -> int | None:
    """The number of XGMI links of a pair."""
    rates = amd_smi_output.read_rates(cell)
    return None if rates is None or rates[1] % rates[0] else int(rates[1] // rates[0])


def _links(tables: amd_smi_output.Tables, names: Mapping[str, str]) -> tuple[PeerLink, ...]:
    types, cells = tables.cells.get(amd_smi_output.LINK_TYPE, {}), tables.cells.get(amd_smi_output.BANDWIDTH, {})
    found: list[PeerLink] = []
    for a, b in combinations(tables.labels, 2):
        rates = amd_smi_output.read_rates(cells.get((a, b), ""))
        if types.get((a, b)) == "XGMI" and rates is not None and cells[a, b] == cells[b, a]:
            found.append(PeerLink(names[a], names[b], "xgmi", _count(cells[a, b]), rates[1], source=SOURCE_TOPOLOGY))
    return tuple(found)


def _access(tables: amd_smi_output.Tables, names: Mapping[str, str]) -> tuple[PeerAccess, ...]:
    cells = tables.cells.get(amd_smi_output.ACCESS, {})
    found: list[PeerAccess] = []
    for a, b in combinations(tables.labels if cells else (), 2):
        statuses = {_ACCESS.get(cells[a, b]), _ACCESS.get(cells[b, a])}
        status = "NS" if "NS" in statuses else statuses.pop()
        found.append(PeerAccess(names[a], names[b], status, status))
    return tuple(found)


def _part(label: str, pci: str | None, gpu: amd_smi_output.AmdGpu | None, unread: list[str]) -> NamedPart:
    book = FactBook()
    book.say("vendor_id", _VENDOR, "amd-smi lists AMD GPUs")
    if gpu is None:
        index = int(label.removeprefix("GPU")) if label.removeprefix("GPU").isdecimal() else None
        return NamedPart(DeviceKind.GPU, label, pci, index=index, is_label=True, facts=book.facts())
    book.say("model_name", gpu.word("ASIC.MARKET_NAME"), SOURCE_STATIC)
    size = gpu.amount("VRAM.SIZE", _SIZES)
    book.say("memory_total", None if size is None else int(size), SOURCE_STATIC, "B")
    book.say("memory_type", gpu.word("VRAM.TYPE", 40), SOURCE_STATIC)
    book.say("memory_bandwidth", gpu.amount("VRAM.MAX_BANDWIDTH", _RATES), SOURCE_STATIC, "B/s")
    book.say("driver_version", gpu.word("DRIVER.VERSION"), SOURCE_STATIC)
    nodes = {node for key in ("NUMA.NODE", "NUMA.AFFINITY") if (node := gpu.node(key)) is not None}
    if len(nodes) > 1:
        unread.append(
            f"{amd_smi_output.TOOL}: {label}: its node and its affinity are different NUMA nodes: both were ignored"
        )
    return NamedPart(
        DeviceKind.GPU, label, pci, numa=next(iter(nodes)) if len(nodes) == 1 else None, facts=book.facts(),
        cpus=gpu.cpus(), index=gpu.number, is_label=True,
    )  # fmt: skip


def _pci_part(gpu: amd_smi_output.AmdGpu) -> PciPart | None:
    """The PCI function with the capable rate of its link, or None without an address."""
    address = gpu.address()
    if address is None:
        return None
    lanes = gpu.amount("BUS.MAX_PCIE_WIDTH", {"": 1.0, "Lanes": 1.0})
    speed = gpu.amount("BUS.MAX_PCIE_SPEED", _TRANSFERS)
    book = FactBook()
    for fact in ("vendor_id", "device_id", "subsystem_id"):
        book.say(fact, gpu.hex(f"ASIC.{fact.upper()}"), SOURCE_STATIC)
    book.say("driver", gpu.word("DRIVER.NAME"), SOURCE_STATIC)
    book.say("pcie_max_GTps", speed, SOURCE_STATIC, "1")
    book.say("pcie_max_lanes", None if lanes is None else int(lanes), SOURCE_STATIC)
    capable = SurveyLinkRate(speed, int(lanes)) if speed is not None and lanes is not None else None
    return PciPart(address, "0000", capable=capable, kind=DeviceKind.GPU, source=SOURCE_STATIC, facts=book.facts())
