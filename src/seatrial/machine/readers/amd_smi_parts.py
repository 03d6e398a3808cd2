"""The facts in amd-smi's output, common to its text and its JSON form, and the checks that hold for both."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from msgspec import Struct

from seatrial.errors import ParseError
from seatrial.machine.readers.dump import Line
from seatrial.machine.readers.scalars import read_cpu_list

TOOL = "amd-smi"
MAX_GPUS = 256

_BDF = re.compile(r"([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2}\.[0-7])\Z", re.ASCII)
_HEX = re.compile(r"0x([0-9a-fA-F]{1,4})\Z", re.ASCII)
_NUMBER = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)(?: ?([A-Za-z/]{1,8}))?\Z", re.ASCII)
_RANGE = re.compile(r"(\d{1,9})-(\d{1,9})\Z", re.ASCII)
_UNKNOWN = frozenset({"", "N/A", "None", "null", "-1", "4294967295", "UNKNOWN", "Unknown"})

Pair = tuple[str, str]


class Gpu(Struct):
    """A GPU as `amd-smi static` or `list` describes it: the values of its sections by "SECTION.KEY" in capital letters
    ("BUS.BDF"), each a text, and its line."""

    line: Line
    number: int | None = None
    values: dict[str, str] = {}


class Tables(Struct):
    """The tables of `amd-smi topology`: what -> cell of each ordered pair; `labels` are addresses, or "GPU0" in JSON
    of old versions; `numbers`: label -> the number of the GPU."""

    line: Line
    labels: tuple[str, ...] = ()
    numbers: dict[str, int] = {}
    cells: dict[str, dict[Pair, str]] = {}


class Output(Struct):
    """The output of one machine: topology, descriptions of GPUs, or both."""

    line: Line
    tables: Tables | None = None
    gpus: dict[int, Gpu] = {}


LINK_TYPE, ACCESS, HOPS, BANDWIDTH = "LINK TYPE", "ACCESS", "HOPS", "NUMA BW"

_TYPES = frozenset({"SELF", "XGMI", "PCIE", "UNKNOWN", "N/A"})
_CHECKS: Mapping[str, Callable[[str], object]] = {
    LINK_TYPE: lambda cell: cell in _TYPES,
    ACCESS: lambda cell: cell in ("ENABLED", "DISABLED", "N/A", "SELF"),
    HOPS: lambda cell: cell == "N/A" or re.fullmatch(r"\d{1,4}", cell, re.ASCII),
    BANDWIDTH: lambda cell: cell == "N/A" or cell == "SELF" or _RANGE.match(cell),
}
"""The cells of the tables that are used."""


def check_tables(tables: Tables) -> None:
    """Raise ParseError for a cell that the tool does not print, a wrong diagonal, and contradicting directions."""
    for what, cells in tables.cells.items():
        is_cell = _CHECKS.get(what)
        for (a, b), cell in cells.items():
            if is_cell is not None and not is_cell(cell):
                raise tables.line.error(TOOL, f"{cell[:40]} is not a value of the {what} table ({a} to {b})")
            if what == LINK_TYPE and (cell == "SELF") != (a == b):
                raise tables.line.error(TOOL, f"the link type of {a} to {b} is {cell}")
            if what == LINK_TYPE and cell != cells[b, a]:
                raise tables.line.error(TOOL, f"{a} to {b} is {cell}, but {b} to {a} is {cells[b, a]}")


def normal_bdf(text: str) -> str | None:
    """The address in lower case with four digits of domain, or None."""
    match = _BDF.match(text)
    if match is None:
        return None
    domain = match[1].lower().lstrip("0").rjust(4, "0")
    return f"{domain}:{match[2].lower()}:{match[3].lower()}"


def is_unknown(text: str) -> bool:
    """Whether amd-smi does not know a value."""
    return text.strip() in _UNKNOWN or text.startswith("N/A")


def read_hex(text: str) -> str | None:
    """The digits of "0x1002", as in the PCI ID database; None if unknown."""
    match = _HEX.match(text)
    return match[1].lower().rjust(4, "0") if match else None


def read_amount(gpu: Gpu, key: str, units: Mapping[str, float]) -> float | None:
    """The number of "65520 MB" times the factor of its unit; None if unknown. Raises ParseError."""
    text = gpu.values.get(key, "")
    if is_unknown(text):
        return None
    match = _NUMBER.match(text)
    factor = units.get(match[2] or "") if match else None
    if match is None or factor is None:
        raise gpu.line.error(TOOL, f"{key}: {text[:40]} is not a number with a known unit")
    return float(match[1]) * factor or None


def read_node(gpu: Gpu, key: str) -> int | None:
    """A NUMA node, or None. Raises ParseError."""
    text = gpu.values.get(key, "")
    if is_unknown(text):
        return None
    if not re.fullmatch(r"\d{1,5}", text, re.ASCII):
        raise gpu.line.error(TOOL, f"{key}: {text[:40]} is not a NUMA node")
    return int(text)


def read_cpus(gpu: Gpu) -> frozenset[int] | None:
    """The CPUs next to a GPU (CPU_CORES_AFFINITY of each list), or None. Raises ParseError."""
    found: set[int] = set()
    for key, text in gpu.values.items():
        if key.startswith("NUMA.") and key.endswith("CPU_CORES_AFFINITY") and not is_unknown(text):
            try:
                found.update(read_cpu_list(text))
            except ParseError:
                raise gpu.line.error(TOOL, f"{text[:40]} is not a list of CPUs") from None
    return frozenset(found) or None


def read_rates(cell: str) -> tuple[float, float] | None:
    """(B/s of one link, B/s of all links) of "50000-100000" in MB/s: amdgpu_amdkfd_get_xgmi_bandwidth_mbytes of the
    Linux driver. None if unknown."""
    match = _RANGE.match(cell)
    if match is None or not 0 < int(match[1]) <= int(match[2]):
        return None
    return int(match[1]) * 1e6, int(match[2]) * 1e6
