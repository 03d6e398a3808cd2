"""SMBIOS tables and what follows from the modules: channels, peak, verdict."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine.machine_trees import add_node, cpuinfo_x86, two_sockets
from machine.smbios_tables import Dimm, dump, slots, table

from seatrial.errors import ParseError
from seatrial.machine.live import discover_live
from seatrial.machine.readers.smbios import read_smbios
from seatrial.model.machine.machine import DeviceKind, Machine, Population

GIB = 1 << 30


def _machine(tmp_path: Path, data: bytes) -> Machine:
    two_sockets(tmp_path).write("sys/firmware/dmi/tables/DMI", data)
    return discover_live(tmp_path)


def test_a_module_is_read_whole() -> None:
    smbios = read_smbios(table([Dimm("DIMM_A1", "P0 CHANNEL A", size_mib=65536, configured=4400)]))
    module = smbios.modules[0]
    assert (module.locator, module.bank, module.size_bytes) == ("DIMM_A1", "P0 CHANNEL A", 64 * GIB)
    assert (module.memory_type, module.rated_MTps, module.configured_MTps, module.rank) == ("DDR5", 4800, 4400, 2)
    assert (module.manufacturer, module.part_number) == ("Micron", "MTC20F")
    assert smbios.arrays[0].error_correction == "multi-bit ECC"
    assert smbios.sockets == ("CPU0", "CPU1")
    assert "SECRET" not in repr(smbios)


def test_empty_unknown_and_extended_values() -> None:
    data = table(
        [Dimm("A", size_mib=0, rated=0, configured=0, rank=0), Dimm("B", size_mib=0x7FFE), Dimm("C", rated=70000)]
    )
    empty, large, fast = read_smbios(data).modules
    assert (empty.size_bytes, empty.rated_MTps, empty.configured_MTps, empty.rank) == (0, None, None, None)
    assert large.size_bytes == 0x7FFE << 20
    assert fast.rated_MTps == 70000


@pytest.mark.parametrize(
    "data", [b"", b"\x11", b"\x11\x03\x00\x00\0\0", b"\x11\x20\x00\x00\0\0", b"\x11\x04\x00\x00abc"]
)
def test_damaged_tables_are_refused(data: bytes) -> None:
    with pytest.raises(ParseError):
        read_smbios(data)


@given(st.binary(max_size=400), st.integers(0, 900), st.integers(0, 900))
def test_any_table_gives_a_value_or_a_parse_error(glue: bytes, start: int, end: int) -> None:
    whole = table(slots(2, 2))
    for data in (glue, whole[:start] + glue + whole[end:], whole[:start]):
        try:
            read_smbios(data)
        except ParseError as error:
            assert error.tool == "smbios"


def test_dmidecode_reads_the_same(tmp_path: Path, need: Callable[[str, str], str]) -> None:
    program = need("dmidecode", "apt install dmidecode")
    data = table([*slots(2, 3), Dimm("DIMM X", size_mib=0, rated=0, configured=0), Dimm("Y", memory_type=0x1A, rank=1)])
    file = tmp_path / "dump.bin"
    file.write_bytes(dump(data))
    done = subprocess.run([program, "--from-dump", str(file), "-t", "17"], capture_output=True, text=True, check=True)
    blocks = done.stdout.split("Memory Device\n")[1:]
    modules = read_smbios(data).modules
    assert len(blocks) == len(modules) == 8
    for block, module in zip(blocks, modules, strict=True):
        fields = dict(re.findall(r"^\t([^:\t]+): (.*)$", block, re.MULTILINE))
        assert fields["Locator"] == module.locator
        if module.size_bytes == 0:
            assert fields["Size"] == "No Module Installed"
            continue
        assert fields["Size"] == f"{(module.size_bytes or 0) // GIB} GB"
        assert fields["Type"] == module.memory_type
        assert fields["Speed"] == f"{module.rated_MTps:g} MT/s"
        assert fields["Configured Memory Speed"] == f"{module.configured_MTps:g} MT/s"
        assert fields["Rank"] == str(module.rank)
        assert fields["Part Number"] == module.part_number


def test_all_named_channels_filled(tmp_path: Path) -> None:
    machine = _machine(tmp_path, table(slots(2, 8), arrays=2))
    memory = machine.memory
    assert memory.verdict is Population.BALANCED
    assert memory.peak.value == 16 * 8 * 4400e6
    assert "16 populated channels x 8 B x 4400 MT/s" in memory.peak.derivation
    assert [(s.channels, s.populated_channels, s.dimms) for s in memory.sockets] == [(8, 8, 8), (8, 8, 8)]
    assert (memory.sockets[0].configured_MTps, memory.sockets[0].rated_MTps) == (4400, 4800)
    limit = machine.named_limit("dram.bandwidth")
    assert limit is not None
    assert limit.is_physical
    modules = machine.of_kind(DeviceKind.MEMORY)
    assert len(modules) == 16
    assert {module.parent for module in modules} == {"package-0", "package-1"}


def test_half_filled_channels_are_near_balanced(tmp_path: Path) -> None:
    dimms = slots(2, 8)
    for dimm in dimms[1::2]:
        dimm.size_mib = 0
    memory = _machine(tmp_path, table(dimms, arrays=2)).memory
    assert memory.verdict is Population.NEAR_BALANCED
    assert "4 of 8 channels" in memory.why
    assert [(s.channels, s.populated_channels) for s in memory.sockets] == [(8, 4), (8, 4)]
    assert memory.peak.value == 8 * 8 * 4400e6


def test_names_without_a_channel_leave_it_unknown(tmp_path: Path) -> None:
    dimms = [Dimm(f"CPU {socket} slot {n}", size_mib=0 if n > 8 else 32768) for socket in (1, 2) for n in range(1, 17)]
    memory = _machine(tmp_path, table(dimms)).memory
    assert memory.verdict is Population.UNKNOWN
    assert [(s.channels, s.populated_channels, s.dimms) for s in memory.sockets] == [(8, None, 8), (8, None, 8)]
    assert memory.peak.value is None
    assert "which channels are populated" in memory.peak.derivation


def test_the_vendors_table_gives_channels_on_a_live_machine(tmp_path: Path) -> None:
    filled = (1, 3, 5, 7, 10, 12, 14, 16)
    dimms = [
        Dimm(f"PROC {socket} DIMM {n}", size_mib=32768 if n in filled else 0) for socket in (1, 2) for n in range(1, 17)
    ]
    tree = two_sockets(tmp_path)
    tree.write("sys/class/dmi/id/sys_vendor", "HPE")
    tree.write("sys/class/dmi/id/product_name", "ProLiant DL380 Gen11")
    tree.write("sys/firmware/dmi/tables/DMI", table(dimms))
    memory = discover_live(tmp_path).memory
    assert memory.verdict is Population.BALANCED
    assert [(s.channels, s.populated_channels, s.dimms) for s in memory.sockets] == [(8, 8, 8), (8, 8, 8)]
    assert memory.peak.value == 16 * 8 * 4400e6
    assert "HPE" in memory.why


def test_every_slot_filled_alike_fills_every_channel(tmp_path: Path) -> None:
    dimms = [Dimm(f"PROC {socket} DIMM {n}") for socket in (1, 2) for n in range(1, 17)]
    memory = _machine(tmp_path, table(dimms)).memory
    assert memory.verdict is Population.BALANCED
    assert [s.populated_channels for s in memory.sockets] == [8, 8], "Sapphire Rapids has 8"
    assert memory.peak.value == 16 * 8 * 4400e6


def test_slots_that_are_not_listed_keep_the_verdict_open(tmp_path: Path) -> None:
    dimms = [Dimm(f"PROC {socket} DIMM {n}") for socket in (1, 2) for n in range(1, 5)]
    memory = _machine(tmp_path, table(dimms, declared=32)).memory
    assert memory.verdict is Population.UNKNOWN
    assert memory.peak.value is None


def test_slots_of_unknown_sockets(tmp_path: Path) -> None:
    memory = _machine(tmp_path / "eight", table([Dimm(f"A{n}") for n in range(8)])).memory
    assert memory.sockets == ()
    assert memory.verdict is Population.UNKNOWN
    assert "sockets" in memory.why
    few = _machine(tmp_path / "few", table([Dimm(f"A{n}") for n in range(4)])).memory
    assert few.verdict is Population.UNBALANCED, "4 modules for 2 processors with 8 channels each, whatever the slots"
    assert few.peak.value is None


def test_a_virtual_machine_has_no_real_modules(tmp_path: Path) -> None:
    tree = two_sockets(tmp_path)
    text = (tmp_path / "proc/cpuinfo").read_text()
    tree.write("proc/cpuinfo", text.replace("fpu sse2", "fpu hypervisor sse2"))
    tree.write("sys/firmware/dmi/tables/DMI", table([Dimm("PROC 1 DIMM 0"), Dimm("PROC 2 DIMM 0")]))
    memory = discover_live(tmp_path).memory
    assert memory.verdict is Population.UNKNOWN
    assert "virtual" in memory.why
    assert memory.peak.value is None


def test_memory_in_the_package_is_not_limited_by_the_modules(tmp_path: Path) -> None:
    tree = two_sockets(tmp_path)
    text = (tmp_path / "proc/cpuinfo").read_text()
    tree.write("proc/cpuinfo", text.replace("Xeon(R) Platinum 8480+", "Xeon(R) CPU Max 9480"))
    tree.write("sys/firmware/dmi/tables/DMI", table(slots(2, 8), arrays=2))
    memory = discover_live(tmp_path).memory
    assert memory.verdict is Population.BALANCED
    assert memory.peak.value is None
    assert "HBM2e" in memory.peak.derivation


def test_memory_without_cpus_is_not_limited_by_the_modules(tmp_path: Path) -> None:
    tree = two_sockets(tmp_path)
    add_node(tree, 2, set(), 64 << 20, "14 24 10")
    tree.write("sys/firmware/dmi/tables/DMI", table(slots(2, 8), arrays=2))
    memory = discover_live(tmp_path).memory
    assert memory.peak.value is None
    assert "numa-2 is memory without CPUs" in memory.peak.derivation


def test_unconfirmed_channels_give_an_unconfirmed_limit(tmp_path: Path) -> None:
    tree = two_sockets(tmp_path)
    tree.write("proc/cpuinfo", cpuinfo_x86(8, **{"model": 0xAD, "model name": "Intel(R) Xeon(R) 6980P"}))
    tree.write("sys/firmware/dmi/tables/DMI", table([Dimm(f"PROC {s} DIMM {n}") for s in (1, 2) for n in range(12)]))
    peak = discover_live(tmp_path).memory.peak
    assert peak.value == 24 * 8 * 4400e6
    assert not peak.confirmed
    assert "unconfirmed" in peak.derivation
    tree.write("sys/firmware/dmi/tables/DMI", table(slots(2, 12), arrays=2))
    named = discover_live(tmp_path).memory.peak
    assert named.value == peak.value
    assert named.is_physical, "the slots' names tell the channels"


def test_what_cannot_be_read_is_reported_once(tmp_path: Path) -> None:
    two_sockets(tmp_path)
    machine = discover_live(tmp_path)
    said = [sentence for sentence in machine.unread if sentence.startswith("DIMMs:")]
    assert len(said) == 1
    assert "/sys/firmware/dmi is missing" in said[0]
    assert machine.memory.why in said[0]
    limit = machine.named_limit("dram.bandwidth")
    assert limit is not None
    assert limit.value is None


def test_edac_lists_modules_without_root(tmp_path: Path) -> None:
    tree = two_sockets(tmp_path)
    for mc in range(4):
        for channel in range(2):
            at = f"sys/devices/system/edac/mc/mc{mc}/dimm{channel}"
            tree.write(f"{at}/size", 32768)
            tree.write(f"{at}/dimm_label", f"CPU_SrcID#{mc // 2}_MC#{mc % 2}_Chan#{channel}_DIMM#0")
            tree.write(f"{at}/dimm_location", f"channel {channel} slot 0")
            tree.write(f"{at}/dimm_mem_type", "Unbuffered-DDR5")
            tree.write(f"{at}/dimm_edac_mode", "S4ECD4ED")
    machine = discover_live(tmp_path)
    assert machine.facts.text("ecc_mode") == "S4ECD4ED"
    assert [(s.channels, s.populated_channels) for s in machine.memory.sockets] == [(8, 4), (8, 4)]
    assert machine.memory.peak.value is None, "EDAC tells no speed"


def test_memory_behind_a_memory_side_cache_is_not_limited_by_the_modules(tmp_path: Path) -> None:
    tree = two_sockets(tmp_path)
    tree.write("sys/devices/system/node/node0/memory_side_cache/index1/size", str(64 << 30))
    tree.write("sys/firmware/dmi/tables/DMI", table(slots(2, 8), arrays=2))
    memory = discover_live(tmp_path).memory
    assert memory.verdict is Population.BALANCED
    assert memory.peak.value is None
    assert "64 GiB" in memory.peak.derivation


def test_the_width_in_the_table_of_the_firmware(tmp_path: Path) -> None:
    """The binary table states the width of each device, as dmidecode prints it."""
    assert {module.data_bits for module in read_smbios(table(slots(1, 2))).modules} == {64}
