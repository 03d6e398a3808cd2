"""Names of PCI functions from the PCI ID database (https://pci-ids.ucw.cz, the file pci.ids) of this computer.

Only functions without a name get one: what a tool or driver says of a device takes precedence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec.structs import replace

from seatrial.model.machine.fact import Fact, FactKind, Facts
from seatrial.model.machine.machine import Device, Machine

TABLES = (Path("/usr/share/hwdata/pci.ids"), Path("/usr/share/misc/pci.ids"), Path("/usr/share/pci.ids"))
_LIMIT_BYTES = 16 << 20  # the table has 1.4 MB
_ID = re.compile(r"[0-9a-f]{4}", re.ASCII)

Ids = tuple[str, str]


def with_pci_names(machine: Machine, tables: Iterable[Path] = TABLES) -> Machine:
    """The machine, with a `pci_name` for each device that has ids but no name; asserted by the first table found."""
    wanted: dict[str, Ids] = {}
    for device in machine.devices:
        facts = device.facts
        ids = (facts.text("vendor_id") or "").lower(), (facts.text("device_id") or "").lower()
        has_name = facts.text("pci_name") or facts.text("model_name")
        if not has_name and all(_ID.fullmatch(each) for each in ids):
            wanted[device.id] = ids
    if not wanted:
        return machine
    for table in tables:
        try:
            with table.open("rb") as stream:
                data = stream.read(_LIMIT_BYTES)
        except OSError:
            continue
        names = read_pci_ids(data.decode("utf-8", "replace"), set(wanted.values()))
        return replace(machine, devices=tuple(_named(device, wanted, names, str(table)) for device in machine.devices))
    return machine


def read_pci_ids(text: str, wanted: set[Ids]) -> Mapping[Ids, str]:
    """(vendor, device) -> name, of those wanted. A line with four hex digits is a vendor; one behind a tab, a device
    of it; classes begin with "C "."""
    names: dict[Ids, str] = {}
    vendors = {vendor for vendor, _ in wanted}
    vendor = ""
    for line in text.split("\n"):
        if not line or line[0] == "#" or line.startswith("\t\t"):
            continue
        if line[0] != "\t":
            vendor = line[:4] if line[:4] in vendors and line[4:6] == "  " else ""
        elif vendor and (ids := (vendor, line[1:5])) in wanted and line[5:7] == "  ":
            names.setdefault(ids, line[7:].strip())
    return names


def _named(device: Device, wanted: Mapping[str, Ids], names: Mapping[Ids, str], source: str) -> Device:
    name = names.get(wanted[device.id]) if device.id in wanted else None
    if not name:
        return device
    ids = ":".join(wanted[device.id])
    fact = Fact(name, f"{source} ({ids})", FactKind.ASSERTED)
    shown = name if device.name == f"PCI {ids}" else device.name
    return replace(device, name=shown, facts=Facts({**device.facts.by_name, "pci_name": (fact,)}))
