"""The text of `amd-smi topology`, `static` and `list` -> tables and GPUs.

Format: the command line tool of AMD SMI (ROCm 6 and 7): "LINK TYPE TABLE:", a header of PCI addresses, a row for each;
"GPU: 0", its sections and keys indented below ("BUS:", "BDF: 0000:c1:00.0"). Blocks of other devices (CPU, AI_NIC) are
skipped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from seatrial.machine.readers.amd_smi_parts import MAX_GPUS, TOOL, Gpu, Output, Tables, normal_bdf
from seatrial.machine.readers.dump import Line, is_fence, without_prefix

_TABLE = re.compile(r"\s{0,40}([A-Z][A-Z -]{1,38}[A-Z]) TABLE:\s*\Z", re.ASCII)
_DEVICE = re.compile(r"(\s{0,40})(GPU|CPU|[A-Z_]{0,12}NIC|SWITCH): (\d{1,4})\s*\Z", re.ASCII)
_KEY = re.compile(r"(\s+)([A-Za-z0-9][A-Za-z0-9 _/().-]{0,60}):(?: (.*))?\Z", re.ASCII)
_MAX_LINE = 1 << 16
_MAX_DEPTH = 12


def read_text(lines: Sequence[Line]) -> list[Output]:
    """Every output in a text; a table or GPU that an output already has begins the next one. Raises ParseError."""
    outputs: list[Output] = []
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


def _read_table(lines: Sequence[Line], texts: Sequence[str], at: int, title: str, outputs: list[Output]) -> int:
    """Read the table below a title. Returns the index of the line after it."""
    header = _next_filled(texts, at + 1)
    labels = _addresses(texts[header].split()) if header is not None else None
    if header is None or not labels:
        raise lines[min(at if header is None else header, len(lines) - 1)].error(
            TOOL, f"the {title} table is cut off: expected a header of PCI addresses"
        )
    if len(set(labels)) < len(labels) or len(labels) > MAX_GPUS:
        raise lines[header].error(TOOL, f"an address occurs twice in the header, or more than {MAX_GPUS} GPUs")
    cells: dict[tuple[str, str], str] = {}
    row = header
    for expected in labels:
        row += 1
        words = texts[row].split() if row < len(texts) else []
        if not words or normal_bdf(words[0]) != expected:
            line = lines[row] if row < len(lines) else lines[-1]
            raise line.error(TOOL, f"the {title} table is cut off: no row of {expected}")
        if len(words) != len(labels) + 1:
            raise lines[row].error(TOOL, f"the row has {len(words) - 1} cells for {len(labels)} columns")
        if not lines[row].is_ended:
            raise lines[row].error(TOOL, "the file ends in this row without a line break: it may be cut off")
        cells.update({(expected, label): word for label, word in zip(labels, words[1:], strict=True)})
    if not outputs or (outputs[-1].tables is not None and title in outputs[-1].tables.cells):
        outputs.append(Output(lines[at]))
    if outputs[-1].tables is None:
        outputs[-1].tables = Tables(lines[at], labels)
    tables = outputs[-1].tables
    if tables.labels != labels:
        raise lines[header].error(TOOL, "the tables list different GPUs")
    tables.cells[title] = cells
    return row + 1


def _next_filled(texts: Sequence[str], at: int) -> int | None:
    return next((number for number in range(at, min(at + 3, len(texts))) if texts[number].strip()), None)


def _addresses(words: Sequence[str]) -> tuple[str, ...] | None:
    known = [normal_bdf(word) for word in words]
    return None if None in known else tuple(address for address in known if address is not None)


def _read_device(
    lines: Sequence[Line], texts: Sequence[str], at: int, match: re.Match[str], outputs: list[Output]
) -> int:
    """Read the block of a device. Returns the index of the line after it."""
    gpu = Gpu(lines[at], int(match[3]))
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
        if not outputs or (gpu.number or 0) in outputs[-1].gpus:
            outputs.append(Output(gpu.line))
        outputs[-1].gpus[gpu.number or 0] = gpu
        if len(outputs[-1].gpus) > MAX_GPUS:
            raise gpu.line.error(TOOL, f"more than {MAX_GPUS} GPUs")
    return at


def _check_alike(output: Output) -> None:
    """Raise ParseError for a last GPU with fewer sections than the others: the output is cut off."""
    *others, last = output.gpus.values() or (None,)
    if last is None or not others:
        return
    common = set.intersection(*({key.partition(".")[0] for key in gpu.values} for gpu in others))
    missing = sorted(common - {key.partition(".")[0] for key in last.values})
    if missing:
        raise last.line.error(TOOL, f"the output is cut off: GPU {last.number} has no {missing[0]}")
