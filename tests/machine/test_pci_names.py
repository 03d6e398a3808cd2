"""Names from the PCI ID database."""

from __future__ import annotations

from pathlib import Path

from seatrial.machine.pci_names import read_pci_ids, with_pci_names
from seatrial.model.machine.fact import Fact, FactKind, Facts
from seatrial.model.machine.identity import machine_identity
from seatrial.model.machine.machine import Device, DeviceKind, Machine

TABLE = (
    "# a table\n10b5  PLX Technology, Inc.\n\t9781  PEX 9781 Switch\n\t\t10b5 9781  A card\n\t9797  PEX 9797\n"
    "10de  NVIDIA Corporation\n\t1ac2  GV100 [NVSwitch]\nC 03  Display controller\n\t00  VGA\n"
)


def device(name: str, vendor: str, number: str, **more: str) -> Device:
    facts = {"vendor_id": vendor, "device_id": number, **more}
    told = Facts({key: (Fact(value, "hwloc"),) for key, value in facts.items()})
    return Device(f"pci-{name}", DeviceKind.GPU, name, facts=told)


def test_only_what_has_no_name_gets_one(tmp_path: Path) -> None:
    table = tmp_path / "pci.ids"
    table.write_text(TABLE)
    machine = Machine(
        "m",
        (
            device("PCI 10b5:9781", "10b5", "9781"),
            device("x", "10de", "1ac2"),
            device("y", "10b5", "9797", pci_name="the tool's name"),
            device("z", "ffff", "9797"),
            device("damaged", "10b5", "../."),
            Device("none", DeviceKind.GPU, "none"),
        ),
    )
    named = with_pci_names(machine, [tmp_path / "missing", table])
    assert [d.facts.text("pci_name") for d in named.devices] == [
        "PEX 9781 Switch", "GV100 [NVSwitch]", "the tool's name", None, None, None,
    ]  # fmt: skip
    assert [d.name for d in named.devices][:2] == ["PEX 9781 Switch", "x"]
    fact = named.devices[0].facts.best("pci_name")
    assert fact is not None and fact.kind is FactKind.ASSERTED and str(table) in fact.source
    assert with_pci_names(machine, [tmp_path / "missing"]) == machine
    assert machine_identity(named) == machine_identity(machine)


def test_a_damaged_table_gives_no_wrong_name() -> None:
    wanted = {("10b5", "9781"), ("0000", "0000")}
    for size in range(len(TABLE)):
        assert set(read_pci_ids(TABLE[:size], wanted).values()) <= {"PEX 9781 Switch"[:n] for n in range(17)}
    assert read_pci_ids("\t9781  a device without a vendor\n", wanted) == {}
    assert read_pci_ids("10b5\n\t9781\n", wanted) == {}
