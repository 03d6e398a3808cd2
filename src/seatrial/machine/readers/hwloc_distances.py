"""Matrices of hwloc XML: latencies between NUMA nodes, and direct links between processors.

Formats: hwloc, topology-xml.c. hwloc 1 writes <distances> inside the object whose descendants it covers, as multiples
of a base; hwloc 2 and 3 write <distances2> (one type of objects) and <distances2hetero> (several) after the objects.
NVLinkBandwidth is, per pair and direction, the nominal rate of the links that are up (topology-nvml.c: 20 GB/s each
for NVLink 1, 25 for 2 to 4, 50 for 5), in MB/s. XGMIBandwidth is a constant (100000) in the ROCm SMI backend, also for
pairs that are connected through a third GPU (topology-rsmi.c): such pairs are dropped if XGMIHops shows them, and the
constant is not used as a rate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from seatrial.machine.readers.xml import Element, XmlDocument
from seatrial.machine.survey import PeerLink
from seatrial.model.frozen import Frozen

TEXTS = frozenset({"indexes", "u64values", "userdata"})
"""Elements of hwloc XML that contain text."""

_MOST_OBJECTS = 1024
_LINK_RATES_MBps = {20_000: 4, 25_000: 18, 50_000: 18}  # rate of a link -> the most links of such a GPU
_NO_RATE_MBps = 100_000
_INDEX = re.compile(r"(?:([A-Za-z0-9]{1,20})(?:\[[^\]]{0,40}\])?:)?(\d{1,18})\Z", re.ASCII)
_LATENCY_BIT = 4


class End(Frozen):
    """The object of a matrix index. `pci` is None for CPUs, packages and NUMA nodes; `is_processor`: it is a PCI
    function other than a bridge."""

    pci: str | None
    is_processor: bool


class PeerMatrix(Frozen):
    """Links of one matrix. `cpu_rates`: PCI address of a GPU -> B/s of its links to CPUs; `members`: all addresses."""

    links: tuple[PeerLink, ...]
    cpu_rates: Mapping[str, float]
    members: frozenset[str]
    kind: str


class _Matrix(Frozen):
    """A square matrix; `lines` has the element that contains each value."""

    element: Element
    indexes: tuple[int, ...]
    values: tuple[int, ...]
    lines: tuple[Element, ...]

    def value(self, row: int, column: int) -> int:
        return self.values[row * len(self.indexes) + column]


def node_distances(document: XmlDocument, nodes: Sequence[int]) -> Mapping[int, str]:
    """NUMA node -> its row as "0:10 1:21"; {} if the file has no such matrix. `nodes` are in file order."""
    for element in document.root.children:
        is_nodes = element.tag == "distances2" and element.attributes.get("type") == "NUMANode"
        if not is_nodes or element.attributes.get("name", "NUMALatency") != "NUMALatency":
            continue
        kind = element.attributes.get("kind", "")
        if kind.isascii() and kind.isdecimal() and len(kind) < 9 and int(kind) & _LATENCY_BIT:
            matrix = _read(document, element)
            if len(set(matrix.indexes)) != len(matrix.indexes):
                raise document.error(element, "a NUMA node occurs twice in the matrix")
            return _rows(matrix.indexes, matrix.values)
    return _old_distances(document, nodes)


def _rows(nodes: Sequence[int], values: Sequence[int]) -> dict[int, str]:
    size = len(nodes)
    rows = (zip(nodes, values[begin : begin + size], strict=True) for begin in range(0, size * size, size))
    return {node: " ".join(f"{other}:{value}" for other, value in row) for node, row in zip(nodes, rows, strict=True)}


def _old_distances(document: XmlDocument, nodes: Sequence[int]) -> Mapping[int, str]:
    """The distances of hwloc 1. They have no type: they are used if their number equals that of the NUMA nodes."""
    machines = [child for child in document.root.children if child.tag == "object"]
    for element in (child for machine in machines for child in machine.children if child.tag == "distances"):
        values = [child.attributes.get("value", "") for child in element.children if child.tag == "latency"]
        base = element.attributes.get("latency_base", "1")
        if element.attributes.get("nbobjs") != str(len(nodes)) or len(values) != len(nodes) ** 2:
            continue
        if not all(re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text, re.ASCII) for text in (base, *values)):
            raise document.error(element, "a distance is not a number")
        return _rows(nodes, [round(float(text) * float(base)) for text in values])
    return {}


def peer_matrices(document: XmlDocument, ends: Mapping[int, End], source: str) -> tuple[PeerMatrix, ...]:
    """The matrices of NVLink and XGMI. `ends`: hwloc's gp_index -> object. Raises ParseError."""
    named = {
        element.attributes.get("name"): element
        for element in document.root.children
        if element.tag in ("distances2", "distances2hetero")
    }
    found: list[PeerMatrix] = []
    for name, kind in (("NVLinkBandwidth", "nvlink"), ("XGMIBandwidth", "xgmi")):
        if name in named:
            matrix = _read(document, named[name])
            hops = _read(document, named["XGMIHops"]) if kind == "xgmi" and "XGMIHops" in named else None
            if hops is not None and hops.indexes != matrix.indexes:
                raise document.error(hops.element, "XGMIHops and XGMIBandwidth list different objects")
            found.append(_peers(document, matrix, ends, kind, f"{source} ({name})", hops))
    return tuple(found)


def _peers(
    document: XmlDocument, matrix: _Matrix, ends: Mapping[int, End], kind: str, source: str, hops: _Matrix | None
) -> PeerMatrix:
    addresses = [_address(document, matrix, index, ends) for index in matrix.indexes]
    link_MBps = _link_rate(matrix) if kind == "nvlink" else None
    links: list[PeerLink] = []
    cpu_rates: dict[str, float] = {}
    for row, column, value in _pairs(document, matrix):
        a, b = addresses[row], addresses[column]
        if (hops is not None and hops.value(row, column) != 1) or a == b:
            continue
        if a is None or b is None:
            gpu = a or b or ""
            cpu_rates[gpu] = cpu_rates.get(gpu, 0.0) + value * 1e6
            continue
        is_rate = kind != "xgmi" or value != _NO_RATE_MBps
        count = value // link_MBps if link_MBps is not None else None
        links.append(PeerLink(a, b, kind, count, value * 1e6 if is_rate else None, source=source))
    members = frozenset(address for address in addresses if address is not None)
    return PeerMatrix(tuple(links), cpu_rates, members, kind)


def _pairs(document: XmlDocument, matrix: _Matrix) -> Iterator[tuple[int, int, int]]:
    """Row, column and value of each pair that has links. Raises ParseError if its two directions differ."""
    size = len(matrix.indexes)
    for row in range(size):
        for column in range(row + 1, size):
            there, back = matrix.value(row, column), matrix.value(column, row)
            if there != back:
                why = f"{back} MB/s from object {column} to {row} of the matrix, but {there} from {row} to {column}"
                raise document.error(matrix.lines[column * size + row], why)
            if there:
                yield row, column, there


def _address(document: XmlDocument, matrix: _Matrix, index: int, ends: Mapping[int, End]) -> str | None:
    if index not in ends:
        raise document.error(matrix.element, f"it refers to an object (gp_index {index}) that is not in the file")
    if ends[index].pci is not None and not ends[index].is_processor:
        raise document.error(matrix.element, f"it refers to {ends[index].pci} (gp_index {index}), which is a bridge")
    return ends[index].pci


def _link_rate(matrix: _Matrix) -> int | None:
    """MB/s of one link; None unless exactly one NVLink generation explains all values."""
    size = len(matrix.indexes)
    linked = [(r, c) for r in range(size) for c in range(size) if r != c and matrix.value(r, c)]
    totals = [sum(matrix.value(r, c) for c in range(size) if c != r) for r in range(size)]
    values = {matrix.value(r, c) for r, c in linked}
    # A switch has more links than a GPU: the end with fewer links is the GPU.
    largest_gpu_total = max((min(totals[r], totals[c]) for r, c in linked), default=0)
    fitting = [
        rate
        for rate, most in _LINK_RATES_MBps.items()
        if all(value % rate == 0 for value in values) and largest_gpu_total <= most * rate
    ]
    return fitting[0] if values and len(fitting) == 1 else None


def _read(document: XmlDocument, element: Element) -> _Matrix:
    """Indexes and values. Raises ParseError unless their number matches `nbobjs`."""
    count = element.attributes.get("nbobjs", "")
    if not (count.isascii() and count.isdecimal() and len(count) < 9 and 0 < int(count) <= _MOST_OBJECTS):
        raise document.error(element, f"its nbobjs must be a number from 1 to {_MOST_OBJECTS}")
    indexes: list[int] = []
    values: list[int] = []
    lines: list[Element] = []
    for child in element.children:
        for word in child.text.split():
            match = _INDEX.match(word)
            if match is None or (child.tag != "indexes" and match[1] is not None):
                raise document.error(child, f"{word[:40]} is not a number")
            if child.tag == "indexes":
                indexes.append(int(match[2]))
            elif child.tag == "u64values":
                values.append(int(match[2]))
                lines.append(child)
    if len(indexes) != int(count) or len(values) != int(count) ** 2:
        why = f"{len(indexes)} indexes and {len(values)} values, but {count} objects need {int(count) ** 2} values"
        raise document.error(element, why)
    return _Matrix(element, tuple(indexes), tuple(values), tuple(lines))
