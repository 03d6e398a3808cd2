"""The output of `amd-smi topology`, `static` and `list` (AMD SMI of ROCm 6 and 7) -> tables and GPUs.

* JSON: a list of objects, one for each GPU, or that list as "gpu_data". A topology has "links" with an object for each
  GPU, up to ROCm 6.1 one object for each table ("link_type": {"gpu_0": ...}). Prompts and prose around it are ignored.
* Text: "LINK TYPE TABLE:", a header of PCI addresses, a row for each; "GPU: 0", its sections and keys indented below
  ("BUS:", "BDF: 0000:c1:00.0"). Blocks of other devices (CPU, AI_NIC) are skipped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from seatrial.errors import ParseError
from seatrial.machine.readers.dump import Line, is_fence, without_prefix
from seatrial.machine.readers.scalars import read_cpu_list
from seatrial.model.machine.links import pci_address

TOOL = "amd-smi"
MAX_GPUS = 256
_HEX = re.compile(r"0x([0-9a-fA-F]{1,4})\Z", re.ASCII)
_NUMBER = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)(?: ?([A-Za-z/]{1,8}))?\Z", re.ASCII)
_RANGE = re.compile(r"(\d{1,9})-(\d{1,9})\Z", re.ASCII)
_UNKNOWN = frozenset({"", "N/A", "None", "null", "-1", "4294967295", "UNKNOWN", "Unknown"})

Pair = tuple[str, str]


class AmdGpu(Struct):
    """A GPU as `amd-smi static` or `list` describes it: the values of its sections by "SECTION.KEY" in capital letters
    ("BUS.BDF"), each a text, and its line."""

    line: Line
    number: int
    values: dict[str, str] = {}

    def word(self, key: str, longest: int = 100) -> str | None:
        """A text, or None if it is unknown."""
        text = self.values.get(key, "")
        return None if text.strip() in _UNKNOWN or text.startswith("N/A") else text[:longest]

    def hex(self, key: str) -> str | None:
        """The digits of "0x1002", as in the PCI ID database; None if unknown."""
        match = _HEX.match(self.values.get(key, ""))
        return match[1].lower().rjust(4, "0") if match else None

    def amount(self, key: str, units: Mapping[str, float]) -> float | None:
        """The number of "65520 MB" times the factor of its unit; None if unknown. Raises ParseError."""
        text = self.word(key)
        if text is None:
            return None
        match = _NUMBER.match(text)
        factor = units.get(match[2] or "") if match else None
        if match is None or factor is None:
            raise self.line.error(TOOL, f"{key}: {text[:40]} is not a number with a known unit")
        return float(match[1]) * factor or None

    def node(self, key: str) -> int | None:
        """A NUMA node, or None. Raises ParseError."""
        text = self.word(key)
        if text is not None and not re.fullmatch(r"\d{1,5}", text, re.ASCII):
            raise self.line.error(TOOL, f"{key}: {text[:40]} is not a NUMA node")
        return None if text is None else int(text)

    def cpus(self) -> frozenset[int] | None:
        """The CPUs next to it (CPU_CORES_AFFINITY of each list), or None. Raises ParseError."""
        found: set[int] = set()
        for key in self.values:
            text = self.word(key, 1 << 16) if re.fullmatch(r"NUMA\..*CPU_CORES_AFFINITY", key) else None
            try:
                found.update(read_cpu_list(text or ""))
            except ParseError:
                raise self.line.error(TOOL, f"{(text or '')[:40]} is not a list of CPUs") from None
        return frozenset(found) or None

    def address(self) -> str | None:
        """Its PCI address, or None. Raises ParseError."""
        text = self.word("BUS.BDF" if "BUS.BDF" in self.values else "BDF")
        address = None if text is None else pci_address(text)
        if text is not None and address is None:
            raise self.line.error(TOOL, f"{text[:40]} is not a PCI address")
        return address


class Tables(Struct):
    """The tables of `amd-smi topology`: what -> cell of each ordered pair; `labels` are addresses, or "GPU0" in JSON
    of old versions; `numbers`: label -> the number of the GPU."""

    line: Line
    labels: tuple[str, ...] = ()
    numbers: dict[str, int] = {}
    cells: dict[str, dict[Pair, str]] = {}


class AmdSmiOutput(Struct):
    """The output of one machine: topology, descriptions of GPUs, or both."""

    line: Line
    tables: Tables | None = None
    gpus: dict[int, AmdGpu] = {}


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


def read_rates(cell: str) -> tuple[float, float] | None:
    """(B/s of one link, B/s of all links) of "50000-100000" in MB/s: amdgpu_amdkfd_get_xgmi_bandwidth_mbytes of the
    Linux driver. None if unknown."""
    match = _RANGE.match(cell)
    if match is None or not 0 < int(match[1]) <= int(match[2]):
        return None
    return int(match[1]) * 1e6, int(match[2]) * 1e6


_NEW = {LINK_TYPE: "link_type", ACCESS: "link_status", HOPS: "num_hops", BANDWIDTH: "bandwidth"}
_OLD = {LINK_TYPE: "link_type", ACCESS: "link_accessibility", HOPS: "hops", BANDWIDTH: "numa_bandwidth"}
_MAX_VALUES = 4000
_MAX_DEPTH = 12


def begins_json(lines: Sequence[Line]) -> bool:
    """Whether a line of the text begins a JSON list or object."""
    return any(_is_start(line) for line in lines)


def _is_start(line: Line) -> bool:
    text = line.text.strip()
    return text[:1] in ("[", "{") and (len(text) == 1 or text[1:].lstrip()[:1] in ("{", '"', "]", "}"))


def read_json(lines: Sequence[Line]) -> list[AmdSmiOutput]:
    """Every output in a text. Raises ParseError."""
    outputs: list[AmdSmiOutput] = []
    for line, value in _documents(lines):
        records = value.get("gpu_data") if isinstance(value, dict) and "gpu_data" in value else value
        records = [records] if isinstance(records, dict) else records
        if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
            raise line.error(TOOL, "expected a list of objects, one for each GPU")
        gpus = [record for record in records if "gpu" in record]
        if not gpus:
            continue
        if len(gpus) > MAX_GPUS:
            raise line.error(TOOL, f"more than {MAX_GPUS} GPUs")
        tables = _tables(gpus, line)
        described = {} if tables is not None else {number: _gpu(r, number, line) for number, r in _numbered(gpus, line)}
        last = outputs[-1] if outputs else None
        if last is None or (tables is not None and last.tables is not None) or (described and last.gpus):
            outputs.append(AmdSmiOutput(line))
        outputs[-1].tables = outputs[-1].tables if tables is None else tables
        outputs[-1].gpus.update(described)
    return outputs


def _documents(lines: Sequence[Line]) -> Iterator[tuple[Line, Any]]:
    """The JSON values of a text, each with its first line."""
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    text = "\n".join(line.text for line in lines)
    starts: list[int] = []
    at = 0
    for line in lines:
        starts.append(at)
        at += len(line.text) + 1
    end = 0
    for number, line in enumerate(lines):
        if starts[number] < end or not _is_start(line):
            continue
        begin = starts[number] + len(line.text) - len(line.text.lstrip())
        try:
            value, end = decoder.raw_decode(text, begin)
        except json.JSONDecodeError as error:
            wrong = lines[min(error.doc.count("\n", 0, error.pos), len(lines) - 1)]
            raise wrong.error(TOOL, f"invalid JSON, or it is cut off: {error.msg}") from None
        except (RecursionError, ValueError):
            raise line.error(TOOL, "invalid JSON: a number that JSON does not have, or nested too deeply") from None
        yield line, value


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _numbered(records: Sequence[Mapping[str, Any]], line: Line) -> Iterator[tuple[int, Mapping[str, Any]]]:
    seen: set[int] = set()
    for record in records:
        number = record["gpu"]
        if type(number) is not int or not 0 <= number < 1 << 16 or number in seen:
            raise line.error(TOOL, "the number of a GPU is missing, invalid or occurs twice")
        seen.add(number)
        yield number, record


def _tables(records: Sequence[Mapping[str, Any]], line: Line) -> Tables | None:
    """The tables of a topology; None if the records describe GPUs."""
    is_new = all("links" in record for record in records)
    if not is_new and not any(isinstance(record.get(key), dict) for record in records for key in _OLD.values()):
        return None
    numbers = {
        label: number
        for number, record in sorted(_numbered(records, line), key=lambda entry: entry[0])
        for label in (_label(record, number, line) if is_new else f"GPU{number}",)
    }
    if len(numbers) < len(records):
        raise line.error(TOOL, "an address occurs twice")
    tables = Tables(line, tuple(numbers), numbers)
    labels = {number: label for label, number in numbers.items()}
    for record in records:
        row = labels[record["gpu"]]
        for what, cells in (_new_cells if is_new else _old_cells)(record, labels, line).items():
            if set(cells) != set(labels.values()):
                raise line.error(TOOL, f"GPU {record['gpu']} does not have the {what} to every GPU")
            tables.cells.setdefault(what, {}).update({(row, other): cell for other, cell in cells.items()})
    for what, every in tables.cells.items():
        if len(every) != len(labels) ** 2:
            raise line.error(TOOL, f"the {what} of some GPUs is missing")
    return tables


def _label(record: Mapping[str, Any], number: int, line: Line) -> str:
    address = record.get("bdf")
    known = pci_address(address) if isinstance(address, str) else None
    if known is None:
        raise line.error(TOOL, f"GPU {number} has no PCI address")
    return known


def _new_cells(record: Mapping[str, Any], labels: Mapping[int, str], line: Line) -> dict[str, dict[str, str]]:
    links = record["links"]
    if not isinstance(links, list) or not all(isinstance(link, dict) and "gpu" in link for link in links):
        raise line.error(TOOL, "expected a list of links, one for each GPU")
    found: dict[str, dict[str, str]] = {}
    for number, link in _numbered(links, line):
        if number not in labels:
            raise line.error(TOOL, f"a link to GPU {number}, which is not in the output")
        if "bdf" in link and _label(link, number, line) != labels[number]:
            raise line.error(TOOL, f"two addresses of GPU {number}")
        for what, key in _NEW.items():
            if key in link:
                found.setdefault(what, {})[labels[number]] = _scalar(link[key])
    return found


def _old_cells(record: Mapping[str, Any], labels: Mapping[int, str], line: Line) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    by_key = {f"gpu_{number}": label for number, label in labels.items()}
    for what, key in _OLD.items():
        cells = record.get(key)
        if isinstance(cells, dict):
            if not set(cells) <= set(by_key):
                raise line.error(TOOL, f"{key} of GPU {record['gpu']} names a GPU that is not in the output")
            found[what] = {by_key[name]: _scalar(cell) for name, cell in cells.items()}
    return found


def _scalar(value: Any) -> str:
    if isinstance(value, dict):  # {"value": 65520, "unit": "MB"}
        return f"{_scalar(value.get('value'))} {_scalar(value.get('unit', ''))}".strip()
    return "N/A" if value is None or isinstance(value, list | bool) else str(value).strip()[:1000]


def _gpu(record: Mapping[str, Any], number: int, line: Line) -> AmdGpu:
    """The values of a GPU by section and key, as in the text."""
    gpu = AmdGpu(line, number)
    stack: list[tuple[str, int, Any]] = [("", 0, record)]
    while stack:
        path, depth, value = stack.pop()
        if depth > _MAX_DEPTH or len(gpu.values) > _MAX_VALUES:
            raise ParseError(TOOL, line.number, line.raw, f"GPU {number} has more values than amd-smi prints")
        if isinstance(value, dict) and not set(value) <= {"value", "unit"}:
            stack += [(f"{path}.{key}".strip(".").upper(), depth + 1, inner) for key, inner in value.items()]
        elif not isinstance(value, list):
            gpu.values[path] = _scalar(value)
    return gpu


_TABLE = re.compile(r"\s{0,40}([A-Z][A-Z -]{1,38}[A-Z]) TABLE:\s*\Z", re.ASCII)
_DEVICE = re.compile(r"(\s{0,40})(GPU|CPU|[A-Z_]{0,12}NIC|SWITCH): (\d{1,4})\s*\Z", re.ASCII)
_KEY = re.compile(r"(\s+)([A-Za-z0-9][A-Za-z0-9 _/().-]{0,60}):(?: (.*))?\Z", re.ASCII)
_MAX_LINE = 1 << 16


def read_text(lines: Sequence[Line]) -> list[AmdSmiOutput]:
    """Every output in a text; a table or GPU that an output already has begins the next one. Raises ParseError."""
    outputs: list[AmdSmiOutput] = []
    texts = [without_prefix(line.text).expandtabs(8)[:_MAX_LINE] for line in lines]
    at = 0
    while at < len(lines):
        table, device = _TABLE.match(texts[at]), _DEVICE.match(texts[at])
        if table is not None:
            at = _read_table(lines, texts, at, table[1], outputs)
        elif device is not None:
            at = _read_device(lines, texts, at, device, outputs)
        else:
            at += 1
    for output in outputs:
        _check_alike(output)
    return outputs


def _read_table(lines: Sequence[Line], texts: Sequence[str], at: int, title: str, outputs: list[AmdSmiOutput]) -> int:
    """Read the table below a title. Returns the index of the line after it."""
    below = range(at + 1, min(at + 4, len(texts)))
    header = next((number for number in below if texts[number].strip()), at)
    labels = tuple(pci_address(word) or "" for word in texts[header].split()) if header > at else ()
    if not labels or "" in labels:
        raise lines[header].error(TOOL, f"the {title} table is cut off: expected a header of PCI addresses")
    if len(set(labels)) < len(labels) or len(labels) > MAX_GPUS:
        raise lines[header].error(TOOL, f"an address occurs twice in the header, or more than {MAX_GPUS} GPUs")
    cells: dict[tuple[str, str], str] = {}
    row = header
    for expected in labels:
        row += 1
        words = texts[row].split() if row < len(texts) else []
        if not words or pci_address(words[0]) != expected:
            why = f"the {title} table is cut off: no row of {expected}"
            raise lines[min(row, len(lines) - 1)].error(TOOL, why)
        if len(words) != len(labels) + 1:
            raise lines[row].error(TOOL, f"the row has {len(words) - 1} cells for {len(labels)} columns")
        if not lines[row].is_ended:
            raise lines[row].error(TOOL, "the file ends in this row without a line break: it may be cut off")
        cells.update({(expected, label): word for label, word in zip(labels, words[1:], strict=True)})
    if not outputs or (outputs[-1].tables is not None and title in outputs[-1].tables.cells):
        outputs.append(AmdSmiOutput(lines[at]))
    if outputs[-1].tables is None:
        outputs[-1].tables = Tables(lines[at], labels)
    tables = outputs[-1].tables
    if tables.labels != labels:
        raise lines[header].error(TOOL, "the tables list different GPUs")
    tables.cells[title] = cells
    return row + 1


def _read_device(
    lines: Sequence[Line], texts: Sequence[str], at: int, match: re.Match[str], outputs: list[AmdSmiOutput]
) -> int:
    """Read the block of a device. Returns the index of the line after it."""
    gpu = AmdGpu(lines[at], int(match[3]))
    stack: list[tuple[int, str]] = []  # (indentation, key) of the sections around
    at += 1
    while at < len(lines):
        text = texts[at]
        key = _KEY.match(text)
        if not text.strip() or is_fence(text) or key is None or len(key[1]) <= len(match[1]):
            if text.strip() and not is_fence(text) and len(text) - len(text.lstrip()) > len(match[1]):
                raise lines[at].error(TOOL, 'expected "KEY: value" below a device')
            break
        while stack and stack[-1][0] >= len(key[1]):
            stack.pop()
        path = ".".join((*(name for _, name in stack), key[2].upper()))
        value = (key[3] or "").strip()
        if not lines[at].is_ended:
            raise lines[at].error(TOOL, "the file ends in this line without a line break: it may be cut off")
        if path in gpu.values:
            raise lines[at].error(TOOL, f"{path} occurs twice below one device")
        gpu.values[path] = value
        if not value:
            stack.append((len(key[1]), key[2].upper()))
        if len(stack) > _MAX_DEPTH:
            raise lines[at].error(TOOL, "sections are nested too deeply")
        at += 1
    if match[2] == "GPU":
        if not outputs or gpu.number in outputs[-1].gpus:
            outputs.append(AmdSmiOutput(gpu.line))
        outputs[-1].gpus[gpu.number] = gpu
        if len(outputs[-1].gpus) > MAX_GPUS:
            raise gpu.line.error(TOOL, f"more than {MAX_GPUS} GPUs")
    return at


def _check_alike(output: AmdSmiOutput) -> None:
    """Raise ParseError for a last GPU with fewer sections than the others: the output is cut off."""
    *others, last = output.gpus.values() or (None,)
    if last is None or not others:
        return
    common = set.intersection(*({key.partition(".")[0] for key in gpu.values} for gpu in others))
    missing = sorted(common - {key.partition(".")[0] for key in last.values})
    if missing:
        raise last.line.error(TOOL, f"the output is cut off: GPU {last.number} has no {missing[0]}")
