"""Comma-separated answers of nvidia-smi about the memory of NVIDIA GPUs: ECC mode, remapped rows.

Format: `nvidia-smi --query-gpu=pci.bus_id,ecc.mode.current` and `nvidia-smi --query-remapped-rows=gpu_bus_id,
remapped_rows.correctable,remapped_rows.uncorrectable,remapped_rows.pending,remapped_rows.failure`, both with
`--format=csv,noheader,nounits` (nvidia-smi --help-query-gpu, --help-query-remapped-rows). A value that a product does
not have is "[N/A]" or "[Not Supported]". Whether a remapping is pending or failed is Yes or No, or a number.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.errors import ParseError
from seatrial.machine.survey import FactBook, NamedPart
from seatrial.model.machine.links import pci_address
from seatrial.model.machine.machine import DeviceKind

TOOL = "nvidia-smi"
ECC_QUERY = "--query-gpu=pci.bus_id,ecc.mode.current"
ROWS_QUERY = (
    "--query-remapped-rows=gpu_bus_id,remapped_rows.correctable,remapped_rows.uncorrectable,"
    "remapped_rows.pending,remapped_rows.failure"
)

_MODES = {"enabled": "enabled", "disabled": "disabled"}
_MOST_ROWS = 1_000_000


def read_ecc_modes(text: str) -> tuple[NamedPart, ...]:
    """One part per GPU with `ecc_mode`, if it has one. Raises ParseError."""
    parts = []
    for address, (mode,) in _lines(text, 1):
        book = FactBook()
        book.say("ecc_mode", _MODES.get(mode.lower()), f"{TOOL} {ECC_QUERY}")
        parts.append(NamedPart(DeviceKind.GPU, "", address, facts=book.facts()))
    return tuple(parts)


def read_remapped_rows(text: str) -> tuple[NamedPart, ...]:
    """One part per GPU with the number of rows remapped after correctable and after uncorrectable errors, and whether a
    remapping is pending or failed, as far as it has them. Raises ParseError."""
    source = f"{TOOL} {ROWS_QUERY.partition('=')[0]}"
    parts = []
    for address, (correctable, uncorrectable, pending, failure) in _lines(text, 4):
        book = FactBook()
        book.say("rows_remapped_correctable", _number(correctable), source, "1", volatile=True)
        book.say("rows_remapped_uncorrectable", _number(uncorrectable), source, "1", volatile=True)
        book.say("row_remapping_pending", _flag(pending), source, volatile=True)
        book.say("row_remapping_failed", _flag(failure), source, volatile=True)
        parts.append(NamedPart(DeviceKind.GPU, "", address, facts=book.facts()))
    return tuple(parts)


def _lines(text: str, values: int) -> Iterator[tuple[str, list[str]]]:
    """(PCI address, the other values) of each line."""
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        first, *others = (cell.strip() for cell in line.split(","))
        address = pci_address(first)
        if address is None or len(others) != values:
            raise ParseError(TOOL, number, line, f"expected a PCI address and {values} values, separated by commas")
        yield address, others


def _number(cell: str) -> int | None:
    return int(cell) if cell.isdecimal() and cell.isascii() and len(cell) < 8 and int(cell) < _MOST_ROWS else None


def _flag(cell: str) -> bool | None:
    if cell.lower() in ("yes", "no"):
        return cell.lower() == "yes"
    number = _number(cell)
    return None if number is None else number > 0
