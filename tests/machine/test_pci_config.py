"""Settings of PCI functions, from the configuration space and from lspci, which must agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine.machine_trees import Tree
from shared_samples import TOPOLOGY

from seatrial.machine.files import FileTree
from seatrial.machine.readers.lspci_vv import read_lspci_vv
from seatrial.machine.readers.pci_config import ExpressSettings, read_pci_config
from seatrial.machine.survey import CpuPart, FactBook
from seatrial.machine.sysfs.cpus import add_idle_states
from seatrial.machine.sysfs.devices import survey_pci
from seatrial.model.machine.fact import Facts
from seatrial.model.machine.machine import DeviceKind

NOTHING = ExpressSettings()


def config(port: int = 0, can: int = 2, control: int = 0x2810, acs: int | None = None) -> bytes:
    """A configuration space of 4096 bytes: power management at 40, Express at 60, ACS at 148 behind AER."""
    data = bytearray(4096)
    data[0:2] = b"\x86\x80"
    data[0x06] = 0x10
    data[0x34] = 0x40
    data[0x40:0x42] = bytes((0x01, 0x60))
    data[0x60:0x62] = bytes((0x10, 0x00))
    data[0x62:0x64] = (port << 4 | 2).to_bytes(2, "little")
    data[0x64:0x66] = can.to_bytes(2, "little")
    data[0x68:0x6A] = control.to_bytes(2, "little")
    data[0x100:0x104] = (0x148 << 20 | 1 << 16 | 0x0001).to_bytes(4, "little")
    if acs is not None:
        data[0x148:0x14C] = (1 << 16 | 0x000D).to_bytes(4, "little")
        data[0x14E:0x150] = acs.to_bytes(2, "little")
    return bytes(data)


def test_what_the_registers_say() -> None:
    settings = read_pci_config(config(port=6, can=3, control=0x5020, acs=0x1D))
    assert settings == ExpressSettings(
        port="Downstream Port",
        max_payload=1024,
        payload=256,
        read_request=4096,
        relaxed_ordering=False,
        acs="SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-",
        acs_redirects=True,
    )
    assert read_pci_config(config()).relaxed_ordering is True and read_pci_config(config()).acs is None
    assert read_pci_config(config(acs=0x11)).acs_redirects is False
    assert read_pci_config(config(can=7, control=0x70E0)).payload is None, "reserved codes are no sizes"


def test_what_users_may_read_is_nothing_and_no_fault() -> None:
    assert read_pci_config(config()[:64]) == NOTHING
    assert read_pci_config(b"") == NOTHING and read_pci_config(b"\xff" * 4096) == NOTHING
    assert read_pci_config(config(acs=4)[:256]) == read_pci_config(config())


@given(st.binary(max_size=600), st.integers(0, 4096))
def test_any_bytes_end(data: bytes, cut: int) -> None:
    read_pci_config(data)
    read_pci_config((config(acs=4)[:0x100] + data)[:cut])
    loop = bytearray(config())
    loop[0x41] = 0x40
    loop[0x100:0x104] = (0x100 << 20 | 1 << 16 | 1).to_bytes(4, "little")
    read_pci_config(bytes(loop[:cut]))


HEX = re.compile(r"([0-9a-f]{2,3}): ((?:[0-9a-f]{2} ?){16})\s*\Z")
BLOCK = re.compile(r"((?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ")


def spaces(path: Path) -> dict[str, bytes]:
    """Address -> configuration space, in pciutils' dumps."""
    found: dict[str, bytearray] = {}
    address = ""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if match := BLOCK.match(line):
            address = match[1] if match[1].count(":") == 2 else f"0000:{match[1]}"
            found[address] = bytearray()
        elif match := HEX.match(line):
            assert int(match[1], 16) == len(found[address])
            found[address] += bytes.fromhex(match[2])
    return {address: bytes(data) for address, data in found.items()}


@pytest.mark.parametrize("name", ["cap-dpc", "cap-exp-lnkcap2", "cap-pcie-2", "tree-asus-p6t6", "tree-fujitsu-p8010"])
def test_the_registers_and_lspci_agree(name: str) -> None:
    dump, rendered = TOPOLOGY / f"lspci_pciutils_{name}.txt", TOPOLOGY / f"lspci-vv_rendered_{name}.txt"
    if not dump.exists() or not rendered.exists():
        pytest.skip(f"needs {dump} and {rendered}, which are not part of the repository")
    registers = spaces(dump)
    compared = 0
    for part in read_lspci_vv(rendered.read_bytes()).pci_parts:
        if part.address not in registers or not part.class_id:
            continue
        settings = read_pci_config(registers[part.address])
        facts = part.facts
        if len(registers[part.address]) <= 64:
            continue
        compared += 1
        assert settings.port == facts.text("pcie_type")
        assert settings.max_payload == facts.integer("pcie_max_payload")
        assert settings.payload == facts.integer("pcie_payload")
        assert settings.read_request == facts.integer("pcie_read_request")
        ordering = facts.best("pcie_relaxed_ordering")
        assert settings.relaxed_ordering == (None if ordering is None else ordering.value)
        if "acs" in facts:
            assert settings.acs == facts.text("acs")
    assert compared


BLOCK_TEXT = """01:00.0 Infiniband controller: Mellanox Technologies MT28908 Family [ConnectX-6]
	Control: I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR- FastB2B- DisINTx+
	Capabilities: [60] Express (v2) Endpoint, MSI 00
		DevCap:	MaxPayload 512 bytes, PhantFunc 0, Latency L0s unlimited, L1 unlimited
			ExtTag+ AttnBtn- AttnInd- PwrInd- RBE+ FLReset+ SlotPowerLimit 75W
		DevCtl:	CorrErr+ NonFatalErr+ FatalErr+ UnsupReq-
			RlxdOrd- ExtTag+ PhantFunc- AuxPwr- NoSnoop+ FLReset-
			MaxPayload 256 bytes, MaxReadReq 128 bytes
"""


def facts_of(text: str) -> Facts:
    return next(p for p in read_lspci_vv(text.encode()).pci_parts if p.class_id).facts


def test_what_lspci_says_is_read_and_a_cut_line_is_not() -> None:
    facts = facts_of(BLOCK_TEXT)
    assert facts.integer("pcie_max_payload") == 512 and facts.integer("pcie_payload") == 256
    assert facts.integer("pcie_read_request") == 128 and facts.text("pcie_relaxed_ordering") == "False"
    cut = facts_of(BLOCK_TEXT[: BLOCK_TEXT.rindex("8 bytes")])
    assert "pcie_payload" not in cut and "pcie_read_request" not in cut and "pcie_max_payload" in cut


def test_a_live_function_has_its_settings_and_its_iommu_domain(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    for address, class_id, space in (
        ("0000:00:01.0", "0x060400", config(port=4, acs=0x1D)),
        ("0000:01:00.0", "0x020700", config(port=0, acs=0)),
        ("0000:00:02.0", "0x0c0330", config()),
    ):
        real = "/sys/devices/pci0000:00/" + ("0000:00:01.0/" if address == "0000:01:00.0" else "") + address
        tree.link(f"/sys/bus/pci/devices/{address}", real)
        tree.write(f"{real}/class", class_id)
        tree.write(f"{real}/config", space)
        tree.link(f"{real}/iommu_group", "/sys/kernel/iommu_groups/7")
    tree.write("/sys/kernel/iommu_groups/7/type", "DMA-FQ")
    parts = {part.address: part.facts for part in survey_pci(FileTree(tmp_path))}
    port, adapter, usb = (parts[a] for a in ("0000:00:01.0", "0000:01:00.0", "0000:00:02.0"))
    assert port.text("pcie_type") == "Root Port" and port.text("acs_redirects") == "True"
    assert adapter.integer("pcie_payload") == 128 and adapter.integer("pcie_read_request") == 512
    assert "acs_redirects" not in adapter and adapter.text("iommu_domain") == "DMA-FQ"
    assert "pcie_payload" not in usb, "only of devices that matter"


def test_a_virtual_function_has_no_settings_of_its_own() -> None:
    """Its registers read as 0, which is not 128 B."""
    settings = read_pci_config(config(port=0, can=2, control=0))
    assert settings == ExpressSettings(port="Endpoint", max_payload=512)
    assert read_pci_config(config(port=4, control=0)).payload == 128, "a port implements them"
    text = BLOCK_TEXT.replace("MaxPayload 256 bytes,", "MaxPayload 128 bytes,")
    facts = facts_of(text)
    assert not {"pcie_payload", "pcie_read_request", "pcie_relaxed_ordering"} & set(facts)
    assert facts.integer("pcie_max_payload") == 512
    assert facts_of(text.replace("RlxdOrd-", "RlxdOrd+")).integer("pcie_read_request") == 128


def idle(tmp_path: Path, cpus: int) -> Facts:
    parts = [CpuPart(DeviceKind.PU, frozenset({cpu}), cpu) for cpu in range(cpus)]
    book = FactBook()
    add_idle_states(FileTree(tmp_path), parts, book)
    return book.facts()


def test_idle_states_are_those_that_are_not_off_everywhere(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    for cpu in range(2):
        for number, (name, latency) in enumerate((("POLL", 0), ("C1", 1), ("C1E", 4), ("C6", 290))):
            folder = f"/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{number}"
            tree.write(f"{folder}/name", name)
            tree.write(f"{folder}/latency", latency)
            tree.write(f"{folder}/disable", int(name == "C6" and cpu == 0))
    facts = idle(tmp_path, 2)
    assert facts.text("idle_states") == "POLL C1 C1E C6" and "idle_states_off" not in facts
    assert facts.number("idle_exit_latency") == pytest.approx(290e-6)
    tree.write("/sys/devices/system/cpu/cpu1/cpuidle/state3/disable", 1)
    facts = idle(tmp_path, 2)
    assert facts.text("idle_states_off") == "C6" and facts.number("idle_exit_latency") == pytest.approx(4e-6)


def test_a_machine_without_idle_states_says_nothing_of_them(tmp_path: Path) -> None:
    assert not idle(tmp_path, 2)
