"""Topology XML of NCCL and RCCL: what stands in real files, generated files, and damaged ones."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from seatrial.errors import ParseError, UsageError
from seatrial.machine.assemble import assemble
from seatrial.machine.readers.nccl_xml import read_nccl_xml
from seatrial.machine.survey import NamedPart, PciPart, PeerLink, Survey, SurveyLinkRate
from seatrial.model.machine.fact import FactKind
from seatrial.model.machine.machine import DeviceKind, Machine

DATA = Path(__file__).resolve().parents[1] / "data" / "machine" / "xml"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "topology"
SWITCHED = (DATA / "nccl-switched.xml").read_bytes()


def _shared(name: str) -> bytes:
    if not (SHARED / name).exists():
        pytest.skip(f"needs {SHARED / name}, which is not part of the repository")
    return (SHARED / name).read_bytes()


def _pci(survey: Survey, address: str) -> PciPart:
    return next(part for part in survey.pci_parts if part.address == address)


def _named(survey: Survey, kind: DeviceKind) -> list[NamedPart]:
    return [part for part in survey.named_parts if part.kind is kind]


def _kinds(survey: Survey) -> Counter[DeviceKind | None]:
    return Counter(part.kind for part in survey.pci_parts)


def _ends(survey: Survey) -> set[frozenset[str]]:
    return {frozenset((link.a, link.b)) for link in survey.peer_links}


def _count(machine: Machine, kind: DeviceKind) -> int:
    return len(machine.of_kind(kind))


def test_a_switched_machine() -> None:
    survey = read_nccl_xml(SWITCHED)
    assert survey.source == "NCCL topology XML"
    nodes = {part.os_index: part for part in survey.cpu_parts}
    assert {index: part.cpus for index, part in nodes.items()} == {0: {0, 1, 2, 3}, 8: {4, 5, 6, 7}}
    facts = nodes[8].facts
    assert (facts.text("vendor"), facts.integer("family"), facts.integer("model")) == ("AuthenticAMD", 23, 49)
    assert _kinds(survey) == {DeviceKind.BRIDGE: 2, DeviceKind.GPU: 2, DeviceKind.NIC: 1, DeviceKind.SWITCH: 2}
    gpu = _pci(survey, "0000:21:00.0")
    assert (gpu.parent, gpu.numa, gpu.class_id, gpu.cpus) == ("0000:20:00.0", 8, "0302", {4, 5, 6, 7})
    assert (gpu.capable, gpu.trained) == (SurveyLinkRate(16, 8), None)
    assert (gpu.facts.text("vendor_id"), gpu.facts.text("device_id")) == ("10de", "20b0")
    switch = _pci(survey, "0000:20:00.0")
    assert (switch.parent, switch.numa, switch.class_id, switch.capable) == (None, 8, "0604", SurveyLinkRate(8, 16))
    assert [(part.pci, part.index) for part in _named(survey, DeviceKind.GPU)] == [
        ("0000:11:00.0", 1), ("0000:21:00.0", 0),
    ]  # fmt: skip
    assert _named(survey, DeviceKind.GPU)[0].facts.text("compute_capability") == "8.0"
    assert _named(survey, DeviceKind.GPU)[0].facts.integer("nvlink_links") == 6
    adapter, ethernet = _named(survey, DeviceKind.NIC)
    assert (adapter.name, adapter.pci, adapter.facts.number("rate")) == ("mlx5_0", "0000:12:00.0", 25e9)
    assert (ethernet.name, ethernet.pci, ethernet.numa, ethernet.facts.number("rate")) == ("eth0", None, 8, None)
    assert set(survey.peer_links) == {
        PeerLink(gpu, switch, "nvlink", count, count * 25e9, source="NCCL topology XML (nvlink)")
        for gpu in ("0000:11:00.0", "0000:21:00.0")
        for switch, count in (("0000:c4:00.0", 2), ("0000:c5:00.0", 4))
    }
    assert (survey.knows_peer_links, survey.unread) == (True, ())
    parts = (*survey.cpu_parts, *survey.pci_parts, *survey.named_parts)
    said = [fact for part in parts for facts in part.facts.values() for fact in facts]
    assert said
    assert {fact.kind for fact in said} == {FactKind.ASSERTED}
    assert "5ec2e7" not in repr(survey), "GUIDs are not taken"


def test_the_machine_of_it() -> None:
    machine = assemble([read_nccl_xml(SWITCHED)])
    kinds = (DeviceKind.NUMA, DeviceKind.GPU, DeviceKind.SWITCH, DeviceKind.NIC, DeviceKind.BRIDGE)
    assert [_count(machine, kind) for kind in kinds] == [2, 2, 2, 2, 2]
    gpu = next(device for device in machine.of_kind(DeviceKind.GPU) if device.pci == "0000:21:00.0")
    assert (gpu.id, gpu.numa) == ("gpu-0", 8)
    assert len([link for link in machine.links if link.kind == "nvlink"]) == 4
    path = next(path for path in machine.paths if {path.a, path.b} == {"gpu-0", "gpu-1"})
    assert (path.path_class, path.links) == ("NV", 6)


def test_new_files_may_tell_current_speeds_of_gpus() -> None:
    survey = read_nccl_xml(SWITCHED.replace(b'gdr="1"/>', b'gdr="1" net="1"/>'))
    gpu, port = _pci(survey, "0000:21:00.0"), _pci(survey, "0000:20:00.0")
    assert (gpu.capable, gpu.trained) == (None, SurveyLinkRate(16, 8))
    assert (port.capable, port.trained) == (SurveyLinkRate(8, 16), None)


# File, NUMA nodes, bridges, GPUs, NICs (on PCI or not), links between GPUs, count of each.
SAMPLES = (
    ("nccl_aws_p4de-24xl-topo.xml.txt", {0, 1}, 4, 8, 4, 0),
    ("nccl_azure_ncv4-topo.xml.txt", {0, 1, 2, 3}, 0, 4, 1, 0),
    ("nccl_azure_ndv2-topo.xml.txt", {0, 1}, 0, 8, 1, 0),
    ("nccl_azure_ndv4-topo.xml.txt", {0, 1, 2, 3}, 4, 8, 8, 0),
    ("rccl_topo_4p1h.xml.txt", {0}, 5, 4, 1, 4),
    ("rccl_topo_4p4h.xml.txt", {1}, 6, 16, 16, 24),
    ("rccl_topo_8p6l_6nic.xml.txt", {0, 1}, 8, 8, 6, 24),
    ("rccl_topo_8p_90a.xml.txt", {0}, 1, 8, 1, 12),
    ("rccl_topo_8p_940vm.xml.txt", {0, 1}, 0, 8, 8, 28),
    ("rccl_topo_8p_pcie_2nic.xml.txt", {0}, 10, 8, 2, 0),
    ("rccl_topo_8p_rome_n4.xml.txt", {1, 2, 3, 4, 5, 6, 7}, 8, 8, 1, 8),
    ("rccl_topo_8p_ts1_n4.xml.txt", {0, 1, 2, 3, 4, 5, 6, 7}, 8, 8, 2, 8),
)


@pytest.mark.parametrize(("file", "nodes", "bridges", "gpus", "nics", "links"), SAMPLES)
def test_real_files(file: str, nodes: set[int], bridges: int, gpus: int, nics: int, links: int) -> None:
    survey = read_nccl_xml(_shared(file))
    assert {part.os_index for part in survey.cpu_parts} == nodes
    kinds = _kinds(survey)
    assert (kinds[DeviceKind.BRIDGE], kinds[DeviceKind.GPU]) == (bridges, gpus)
    assert len(survey.peer_links) == len(_ends(survey)) == links
    assert {link.kind for link in survey.peer_links} <= {"xgmi"}
    assert {link.count for link in survey.peer_links} <= {1}
    assert {link.capable_Bps for link in survey.peer_links} <= {None}, "XGMI's rate is not reported"
    machine = assemble([survey])
    found = [_count(machine, k) for k in (DeviceKind.NUMA, DeviceKind.BRIDGE, DeviceKind.GPU, DeviceKind.NIC)]
    assert found == [len(nodes), bridges, gpus, nics]
    vendor = "1002" if file.startswith("rccl") else "10de"
    assert {gpu.facts.text("vendor_id") for gpu in machine.of_kind(DeviceKind.GPU)} == {vendor}


def test_files_of_clouds() -> None:
    survey = read_nccl_xml(_shared("nccl_aws_p4de-24xl-topo.xml.txt"))
    assert _pci(survey, "0000:90:1c.0").parent == "ffff:ff:03.0"
    assert _pci(survey, "0000:90:1c.0").numa == 1
    assert _pci(survey, "ffff:ff:03.0").facts.text("vendor_id") is None, "ffff is no vendor"
    assert {part.capable for part in survey.pci_parts} == {SurveyLinkRate(8, 16)}
    assert not survey.knows_peer_links, "it says nothing of NVLink, which these GPUs have"
    machine = assemble([survey])
    gpus = {gpu.id for gpu in machine.of_kind(DeviceKind.GPU)}
    assert {path.path_class for path in machine.paths if {path.a, path.b} <= gpus} == {None}

    survey = read_nccl_xml(_shared("nccl_azure_ncv4-topo.xml.txt"))
    assert {part.capable for part in survey.pci_parts} == {None}, 'link_speed="" and link_width="0"'
    gpus_of_file = _named(survey, DeviceKind.GPU)
    assert {part.facts.integer("nvlink_links") for part in gpus_of_file} == {12}
    assert len(survey.unread) == 1
    assert not survey.knows_peer_links
    assert _named(survey, DeviceKind.NIC)[0].facts.number("rate") == 12.5e9


def test_files_of_rccl() -> None:
    survey = read_nccl_xml(_shared("rccl_topo_4p1h.xml.txt"))
    assert _ends(survey) == {
        frozenset((f"0000:{a}:00.0", f"0000:{b}:00.0"))
        for a, b in (("1d", "20"), ("1d", "23"), ("20", "26"), ("23", "26"))
    }
    gpu = next(part for part in _named(survey, DeviceKind.GPU) if part.index == 3)
    assert (gpu.pci, gpu.facts.text("gpu_architecture"), gpu.facts.integer("compute_units")) == (
        "0000:26:00.0", "gfx906", 64,
    )  # fmt: skip
    assert survey.cpu_parts[0].cpus == {*range(14), *range(28, 42)}
    assert _pci(survey, "0000:26:00.0").capable == SurveyLinkRate(16, 16)
    assert _pci(survey, "0000:24:00.0").capable == SurveyLinkRate(8, 16)

    survey = read_nccl_xml(_shared("rccl_topo_8p_90a.xml.txt"))
    assert {part.facts.text("gpu_architecture") for part in _named(survey, DeviceKind.GPU)} == {"gfx90a"}
    assert _pci(survey, "0000:94:00.0").capable == SurveyLinkRate(2.5, 1)
    assert survey.cpu_parts[0].facts.integer("family") == 25

    survey = read_nccl_xml(_shared("rccl_topo_8p_940vm.xml.txt"))
    assert {part.pci: part.index for part in _named(survey, DeviceKind.GPU)}["0011:00:00.0"] == 0
    assert {part.class_id for part in survey.pci_parts if part.kind is DeviceKind.GPU} == {"1200"}

    survey = read_nccl_xml(_shared("rccl_topo_4p4h.xml.txt"))
    assert _pci(survey, "0000:d6:00.0").parent == "0000:c5:00.0", "a switch that the file repeats is one"
    assert read_nccl_xml(_shared("rccl_topo_8p_pcie_2nic.xml.txt")).knows_peer_links


def _gpus(links: str, sm: int = 70, other: str = "") -> bytes:
    """Three GPUs, of which two are described; `links` stand in the one (line 6), `other` in the other (line 11)."""
    return (
        '<system version="1">\n<cpu numaid="-1">\n<pci busid="0000:01:00.0" class="0x03"/>\n'
        '<pci busid="02:00.0" class="0x030200" link_speed="Unknown" link_width="16">\n'
        f'<gpu dev="0" sm="{sm}" rank="0" gdr="1">\n{links}\n</gpu>\n</pci>\n'
        '<pci busid="00000000:0A:00.0" class="0x030200" link_speed="8 GT/s" link_width="">\n'
        f'<gpu dev="0" sm="{sm}" rank="1" gdr="1">\n{other}\n</gpu>\n</pci>\n</cpu>\n</system>\n'
    ).encode()


def test_a_virtual_machine_has_few_facts() -> None:
    survey = read_nccl_xml(_gpus("", other='<c2c bw="44712" count="10"/>'))
    assert survey.cpu_parts == (), "node -1 is none"
    assert [part.address for part in survey.pci_parts] == ["0000:01:00.0", "0000:02:00.0", "0000:0a:00.0"]
    assert [part.numa for part in survey.pci_parts] == [None, None, None]
    assert [part.class_id for part in survey.pci_parts] == ["0380", "0302", "0302"]
    assert "class_id" not in survey.pci_parts[0].facts
    assert {part.capable for part in survey.pci_parts} == {None}
    first, second = _named(survey, DeviceKind.GPU)
    assert (first.index, second.index) == (None, None), "a number that repeats numbers nothing"
    assert second.facts.number("c2c_rate") == 447.12e9
    assert not survey.knows_peer_links, "the first GPU has no <gpu>"


@pytest.mark.parametrize(
    ("sm", "rate"), [(60, 40e9), (70, 50e9), (80, 50e9), (86, 28.125e9), (90, 50e9), (100, 100e9), (89, None)]
)
def test_rates_of_nvlink(sm: int, rate: float | None) -> None:
    ends = ('<nvlink target="0000:0a:00.0" count="2" tclass="0x030200"/>', '<nvlink target="02:00.0" count="2"/>')
    survey = read_nccl_xml(_gpus(ends[0], sm, ends[1]))
    link = PeerLink("0000:02:00.0", "0000:0a:00.0", "nvlink", 2, rate, source="NCCL topology XML (nvlink)")
    assert survey.peer_links == (link,)


@pytest.mark.parametrize(
    ("target", "tclass", "knows"),
    [
        ("0000:02:00.0", "0x030200", "have no known target"),  # the GPU itself
        ("fffffff:ffff:ff", "0x068000", "have no known target"),
        ("0004:00:01.0", "0x068001", None),  # a CPU of POWER9
        ("0000:85:00.0", "0x030200", "were ignored"),  # a GPU that the job did not use
        ("0000:85:00.0", "", "have no known target"),
    ],
)
def test_links_that_lead_nowhere_are_counted(target: str, tclass: str, knows: str | None) -> None:
    survey = read_nccl_xml(_gpus(f'<nvlink target="{target}" count="3" tclass="{tclass}"/>'))
    assert survey.peer_links == ()
    assert _kinds(survey) == {DeviceKind.GPU: 3}
    assert _named(survey, DeviceKind.GPU)[0].facts.integer("nvlink_links") == 3
    assert [knows in sentence for sentence in survey.unread if knows] == ([True] if knows else [])


def test_an_element_that_is_not_known_is_named() -> None:
    survey = read_nccl_xml(_gpus('<warp factor="9"/>'))
    assert survey.unread == ("NCCL topology XML: 1 unknown <warp> (line 6) were ignored",)


NVLINK = '<nvlink target="0000:0a:00.0" count="2" tclass="0x030200"/>'


@pytest.mark.parametrize(
    ("links", "other", "line", "why"),
    [
        (NVLINK, '<nvlink target="0000:02:00.0" count="1"/>', 11, "line 6 states 2"),
        (NVLINK, '<xgmi target="0000:02:00.0" count="2"/>', 11, "line 6 states 2"),
        (NVLINK, "", 10, "does not list them"),
        ("", NVLINK.replace("0a", "02"), 11, "does not list them"),
        (NVLINK + "\n" + NVLINK, "", 7, "are on line 6 already"),
        (NVLINK.replace("0000:0a:00.0", "GPU1"), "", 6, "not a PCI address"),
        (NVLINK.replace('"2"', '"two"'), "", 6, "count"),
        (NVLINK.replace('"2"', '"0"'), "", 6, "count"),
        (NVLINK.replace('count="2"', ""), "", 6, "no count"),
        ("<gpu/>", "", 6, "at a wrong level"),
        ('<c2c count="x" bw="1"/>', "", 6, "count"),
    ],
)
def test_links_that_contradict_are_refused(links: str, other: str, line: int, why: str) -> None:
    data = _gpus(links, other=other)
    with pytest.raises(ParseError) as caught:
        read_nccl_xml(data)
    assert caught.value.line == line
    assert caught.value.text == data.decode().split("\n")[line - 1]
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("before", "after", "line", "why"),
    [
        ('version="1"', 'version="7"', 1, "version"),
        ("<cpu ", "<gpu/><cpu ", 2, "at a wrong level"),
        ('numaid="8"', 'numaid="0"', 18, "node 0 is in the file already"),
        ('numaid="8"', 'numaid="eight"', 18, "numaid"),
        ('affinity="0000,000000f0"', 'affinity="0000,000000f8"', 18, "NUMA node 0"),
        ('affinity="0000,000000f0"', 'affinity="0-7"', 18, "affinity"),
        ('<cpu host_hash="0x1234567890abcdef" numaid="8"', '<cpu host_hash="0x2" numaid="8"', 18, "second host"),
        (
            'familyid="143" modelid="49">\n    <pci busid="0000:10',
            'familyid="?">\n    <pci busid="0000:10',
            2,
            "familyid",
        ),
        ("0000:21:00.0", "0000:11:00.0", 21, "is on line 5 already"),
        ("0000:21:00.0", "0000:21:00", 21, "not a PCI address"),
        ("0000:21:00.0", "0000:21:20.0", 21, "not a PCI address"),
        ('class="0x030200" vendor="0x10de" device="0x20b0"', 'class="gpu"', 5, "class"),
        ('device="0x20b0"', 'device="20b0"', 5, "not a PCI id"),
        ('link_width="8"', 'link_width="7"', 21, "link_width"),
        ('link_speed="8.0 GT/s PCIe"', 'link_speed="8.1 GT/s PCIe"', 19, "link_speed"),
        ('link_speed="8.0 GT/s PCIe"', 'link_speed="fast"', 19, "link_speed"),
        ('speed="200000"', 'speed="200 Gb/s"', 13, "speed"),
        ('name="eth0"', 'name="mlx5_0"', 29, "is on line 13 already"),
        ('name="eth0"', 'name=""', 29, "without a name"),
        ('sm="80" rank="1"', 'sm="eighty" rank="1"', 22, "sm"),
    ],
)
def test_damage_is_refused_at_its_line(before: str, after: str, line: int, why: str) -> None:
    text = SWITCHED.decode()
    assert before in text
    damaged = text.replace(before, after, 1)
    with pytest.raises(ParseError) as caught:
        read_nccl_xml(damaged.encode())
    assert caught.value.tool == "nccl-xml"
    assert caught.value.line == line
    assert caught.value.text == damaged.split("\n")[line - 1]
    assert why in str(caught.value)


def test_a_file_without_cpus_is_refused() -> None:
    with pytest.raises(ParseError):
        read_nccl_xml(b'<system version="1"/>')


def test_a_second_cpu_without_a_number_is_refused() -> None:
    with pytest.raises(ParseError) as caught:
        read_nccl_xml(b'<system version="1">\n<cpu numaid="-1"/>\n<cpu/>\n</system>')
    assert caught.value.line == 3


def test_of_several_files_one_is_picked() -> None:
    both = SWITCHED + b"\nand the other:\n" + _gpus("")
    with pytest.raises(UsageError) as caught:
        read_nccl_xml(both)
    second = both.count(b"\n") - _gpus("").count(b"\n") + 1
    assert f"line 1 and line {second}" in str(caught.value)
    assert len(read_nccl_xml(both, 2).pci_parts) == 3


def test_functions_without_class_and_device_are_reported() -> None:
    text = b"""<system version="1">
  <cpu numaid="0" affinity="f">
    <pci busid="0000:10:00.0" link_speed="16 GT/s" link_width="16"/>
    <pci busid="0000:11:00.0" class="0x030200"><gpu dev="0" sm="80" rank="0" gdr="1"/></pci>
  </cpu>
</system>
"""
    survey = read_nccl_xml(text)
    assert any("1 <pci> (first 0000:10:00.0)" in sentence for sentence in survey.unread)
    assert not any(
        "<pci>" in sentence
        for sentence in read_nccl_xml(text.replace(b'10:00.0"', b'10:00.0" class="0x020000"')).unread
    )
