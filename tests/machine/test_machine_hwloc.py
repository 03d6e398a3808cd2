"""hwloc XML of its three generations, and XML that means harm."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import ParseError
from seatrial.machine.assemble import assemble
from seatrial.machine.readers.hwloc_xml import read_hwloc_xml
from seatrial.machine.readers.xml import MAX_DEPTH, read_xml
from seatrial.model.machine import DeviceKind, Machine

DATA = Path(__file__).resolve().parents[1] / "data" / "machine"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "topology"
SAMPLES = ("hwloc-v1.xml", "hwloc-v2.xml", "hwloc-v3.xml")


def _machine(name: str) -> Machine:
    return assemble([read_hwloc_xml((DATA / name).read_bytes())])


def _shape(machine: Machine) -> list[tuple[str, str | None, int | None]]:
    cpu_side = (DeviceKind.PACKAGE, DeviceKind.NUMA, DeviceKind.CACHE, DeviceKind.CORE, DeviceKind.PU)
    return [(device.id, device.parent, device.numa) for device in machine.devices if device.kind in cpu_side]


def test_versions_give_the_same_tree() -> None:
    first, *others = (_machine(name) for name in SAMPLES)
    assert _shape(first)[:4] == [
        ("package-0", None, 0), ("numa-0", "package-0", 0), ("l3-0", "numa-0", 0), ("l2-0", "l3-0", 0),
    ]  # fmt: skip
    assert len(first.of_kind(DeviceKind.PU)) == 8
    for other in others:
        assert _shape(other) == _shape(first)


@pytest.mark.parametrize("name", SAMPLES)
def test_what_all_versions_say(name: str) -> None:
    machine = _machine(name)
    assert machine.name == "quay"
    assert machine.facts.number("memory_total") == 2 * 17179869184
    assert machine.facts.text("smt_active") == "True"
    l3 = machine.device("l3-1")
    assert l3 is not None
    assert l3.facts.integer("size") == 33554432
    assert machine.last_level_cache_bytes([0, 1]) == 33554432
    gpu, nic, disk = machine.device("gpu-0"), machine.device("nic-mlx5_0"), machine.device("block-sda")
    assert gpu is not None
    assert (gpu.pci, gpu.numa, gpu.parent) == ("0000:01:00.0", 0, "pci-0000:00:01.0")
    assert nic is not None
    assert (nic.aliases, nic.numa) == (("ib0",), 1)
    assert disk is not None
    link = next(link for link in machine.links if link.b == "gpu-0")
    assert (link.capable_Bps, link.trained_Bps) == (None, 15.75e9)
    assert not any(link.b == "nic-mlx5_0" for link in machine.links), "1.0 GB/s stands for an idle or unknown link"
    text = repr(machine)
    assert "SECRET" not in text, "serial numbers and addresses are not taken"


def test_a_package_keeps_what_identifies_its_cpu() -> None:
    package = _machine("hwloc-v2.xml").device("package-0")
    assert package is not None
    assert package.facts.text("microarchitecture") == "Zen 4"
    assert package.facts.integer("fma_pipes") == 2
    assert package.facts.integer("memory_channels") == 12


@pytest.mark.parametrize(
    ("xml", "why"),
    [
        (b"", "no element"),
        (b"<topology>", "no element"),
        (b"<html/>", "no <topology>"),
        (b"<topology/>", "without objects"),
        (b'<topology><object type="Machine"/></topology>', "without PU"),
        (b'<topology><object type="PU" os_index="1" cpuset="0x1"/></topology>', "not exactly its own CPU"),
        (b'<topology><object type="PU" os_index="x" cpuset="0x1"/></topology>', "no number"),
        (b'<topology><object type="PU" os_index="0" cpuset="zz"/></topology>', "mask"),
        (b'<!DOCTYPE t [<!ENTITY a "b">]><topology>&a;</topology>', "entity"),
        (b'<!DOCTYPE t [<!ENTITY a SYSTEM "file:///etc/passwd">]><topology>&a;</topology>', "entity"),
        (b"<topology>" + b"<a>" * (MAX_DEPTH + 1), "deeper"),
        (b'<?xml version="1.0" encoding="klingon"?><topology/>', "encoding"),
    ],
)
def test_what_is_no_hwloc_xml_is_refused(xml: bytes, why: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_hwloc_xml(xml)
    assert why in str(caught.value)
    assert caught.value.tool == "hwloc-xml"


def test_errors_name_line_and_text() -> None:
    with pytest.raises(ParseError) as caught:
        read_hwloc_xml(b'<topology>\n <object type="Machine">\n  <object type="PU" os_index="-" cpuset="0x1"/>\n')
    assert caught.value.line in (3, 4)
    with pytest.raises(ParseError) as caught:
        read_hwloc_xml(
            b'<topology>\n<object type="Machine">\n<object type="L2Cache" cpuset="0x1"/>\n</object></topology>'
        )
    assert caught.value.line == 3
    assert "L2Cache" in caught.value.text


@given(st.sampled_from(SAMPLES), st.integers(0, 9000), st.integers(0, 9000), st.binary(max_size=6))
def test_cut_and_glued_xml_gives_a_machine_or_a_parse_error(name: str, start: int, end: int, glue: bytes) -> None:
    data = (DATA / name).read_bytes()
    try:
        machine = assemble([read_hwloc_xml(data[:start] + glue + data[end:])])
    except ParseError as error:
        assert error.tool == "hwloc-xml"
    else:
        assert machine.of_kind(DeviceKind.PU)


@given(st.binary(max_size=300))
def test_any_bytes_give_an_element_or_a_parse_error(data: bytes) -> None:
    try:
        assert read_xml(data, "x").tag
    except ParseError as error:
        assert error.tool == "x"


@pytest.mark.parametrize(
    ("file", "packages", "nodes", "cores", "pus", "gpus", "switches"),
    [
        ("hwloc_16intel64-manyVFs.xml.txt", 2, 2, 16, 16, 0, 0),
        ("hwloc_24em64t-2n6c2t-pci.xml.txt", 2, 2, 12, 24, 3, 0),
        ("hwloc_96em64t-4n4d3ca2co-pci.xml.txt", 16, 4, 96, 96, 0, 0),
        ("hwloc_cxlmem+dax.v2.xml.txt", 1, 1, 4, 4, 0, 0),
        ("hwloc_linux_40intel64-2g2n4c+pcilocality.xml.txt", 4, 4, 40, 40, 0, 0),
        ("hwloc_linux_nvidia-dgx-gb10.xml.txt", 1, 1, 20, 20, 0, 0),
        ("hwloc_nvidiaDGX2.xml.txt", 2, 2, 4, 4, 16, 12),
    ],
)
def test_real_machines(file: str, packages: int, nodes: int, cores: int, pus: int, gpus: int, switches: int) -> None:
    if not (SHARED / file).exists():
        pytest.skip(f"needs {SHARED / file}, which is not part of the repository")
    machine = assemble([read_hwloc_xml((SHARED / file).read_bytes())])
    kinds = [device.kind for device in machine.devices]
    found = [
        kinds.count(kind)
        for kind in (
            DeviceKind.PACKAGE,
            DeviceKind.NUMA,
            DeviceKind.CORE,
            DeviceKind.PU,
            DeviceKind.GPU,
            DeviceKind.SWITCH,
        )
    ]
    assert found == [packages, nodes, cores, pus, gpus, switches]
    assert all(machine.package_of(cpu) for cpu in machine.pus())
