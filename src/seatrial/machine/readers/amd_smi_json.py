"""The JSON of `amd-smi topology`, `static` and `list` -> tables and GPUs.

Format: AMD SMI (ROCm 6 and 7): a list of objects, one for each GPU, or that list as "gpu_data". A topology has "links"
with an object for each GPU, up to ROCm 6.1 one object for each table ("link_type": {"gpu_0": ...}). Prompts and prose
around the JSON are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from seatrial.errors import ParseError
from seatrial.machine.readers.amd_smi_parts import (
    ACCESS,
    BANDWIDTH,
    HOPS,
    LINK_TYPE,
    MAX_GPUS,
    TOOL,
    Gpu,
    Output,
    Tables,
    normal_bdf,
)
from seatrial.machine.readers.dump import Line

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


def read_json(lines: Sequence[Line]) -> list[Output]:
    """Every output in a text. Raises ParseError."""
    outputs: list[Output] = []
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
            outputs.append(Output(line))
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
    known = normal_bdf(address) if isinstance(address, str) else None
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


def _gpu(record: Mapping[str, Any], number: int, line: Line) -> Gpu:
    """The values of a GPU by section and key, as in the text."""
    gpu = Gpu(line, number)
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
