"""hwloc XML of its three generations, and XML that means harm."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import ParseError, UsageError
from seatrial.machine.assemble import assemble
from seatrial.machine.readers.hwloc_xml import read_hwloc_xml
from seatrial.machine.readers.xml import MAX_DEPTH
from seatrial.machine.survey import PeerLink, Survey
from seatrial.model.machine.machine import DeviceKind, Machine

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
        (b"", "no <topology>"),
        (b"<topology>", "cut"),
        (b"<html/>", "no <topology>"),
        (b'<topology version="9.0"><object type="Machine"/></topology>', "version"),
        (b"<topology/>", "without objects"),
        (b'<topology><object type="Machine"/></topology>', "without PU"),
        (b'<topology><object type="PU" os_index="1" cpuset="0x1"/></topology>', "not just its own CPU"),
        (b'<topology><object type="PU" os_index="x" cpuset="0x1"/></topology>', "not a number"),
        (b'<topology><object type="PU" os_index="0" cpuset="zz"/></topology>', "mask"),
        (b'<!DOCTYPE t [<!ENTITY a "b">]><topology>&a;</topology>', "entity"),
        (b'<!DOCTYPE t [<!ENTITY a SYSTEM "file:///etc/passwd">]><topology>&a;</topology>', "entity"),
        (b"<topology>" + b"<a>" * (MAX_DEPTH + 1), "deeper"),
        (b'<?xml version="1.0" encoding="klingon"?><topology/>', "encoding"),
    ],
)
def test_invalid_hwloc_xml_is_rejected(xml: bytes, why: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_hwloc_xml(xml)
    assert why in str(caught.value)
    assert caught.value.tool == "hwloc-xml"


def test_masks_of_too_many_cpus_are_refused() -> None:
    masks = [",".join(["0xffffffff"] * 2000 + [f"0x{(1 << bits) - 1:x}"]) for bits in range(32, 0, -1)]
    objects = "".join(f'\n<object type="Package" cpuset="{mask}">' for mask in masks)
    with pytest.raises(ParseError) as caught:
        read_hwloc_xml(f"<topology>{objects}{'</object>' * 32}</topology>".encode())
    assert "CPUs over all objects" in str(caught.value)


def test_errors_name_line_and_text() -> None:
    with pytest.raises(ParseError) as caught:
        read_hwloc_xml(b'<topology>\n <object type="Machine">\n  <object type="PU" os_index="-" cpuset="0x1"/>\n')
    assert caught.value.line == 3
    with pytest.raises(ParseError) as caught:
        read_hwloc_xml(
            b'<topology>\n<object type="Machine">\n  <object  type="L2Cache" cpuset="0x1"/> \n</object></topology>'
        )
    assert caught.value.line == 3
    assert caught.value.text == '  <object  type="L2Cache" cpuset="0x1"/> '


@given(st.sampled_from(SAMPLES), st.integers(0, 9000), st.integers(0, 9000), st.binary(max_size=6))
def test_cut_and_glued_xml_gives_a_machine_or_a_parse_error(name: str, start: int, end: int, glue: bytes) -> None:
    data = (DATA / name).read_bytes()
    try:
        machine = assemble([read_hwloc_xml(data[:start] + glue + data[end:])])
    except UsageError as error:
        assert "hwloc-xml" in str(error)
    else:
        assert machine.of_kind(DeviceKind.PU)


LINKS = (DATA / "xml" / "hwloc-links.xml").read_bytes()


def _survey(data: bytes) -> Survey:
    return read_hwloc_xml(b"user@mole:~$ lstopo --of xml\n" + data + b"user@mole:~$\n")


def test_links_between_processors() -> None:
    survey = _survey(LINKS)
    source = "hwloc (NVLinkBandwidth)"
    assert set(survey.peer_links) == {
        PeerLink("0000:11:00.0", "0000:12:00.0", "nvlink", 1, 25e9, source=source),
        PeerLink("0000:11:00.0", "0000:13:00.0", "nvlink", 2, 50e9, source=source),
        PeerLink("0000:12:00.0", "0000:13:00.0", "nvlink", 3, 75e9, source=source),
    }
    assert survey.knows_peer_links
    parts = {part.name: part for part in survey.named_parts}
    assert {name: part.index for name, part in parts.items()} == {
        "cuda1": None, "nvml0": 0, "cuda0": None, "nvml1": 1, "nvme0n1": None,
    }  # fmt: skip
    assert parts["nvml0"].facts.number("nvlink_cpu_rate") == 25e9
    assert parts["nvme0n1"].facts.integer("size") == 390711384 * 1024
    machine = assemble([survey])
    gpus = [(gpu.id, gpu.pci) for gpu in machine.of_kind(DeviceKind.GPU)]
    assert gpus == [("gpu-0", "0000:11:00.0"), ("gpu-1", "0000:12:00.0")]
    assert len([link for link in machine.links if link.kind == "nvlink"]) == 3


def test_numbers_of_a_runtime_only_count_without_the_vendors() -> None:
    survey = _survey(LINKS.replace(b'"nvml', b'"card'))
    assert {part.name: part.index for part in survey.named_parts if part.index is not None} == {"cuda1": 1, "cuda0": 0}


def test_memory_modules() -> None:
    (module,) = _survey(LINKS).modules
    assert (module.locator, module.size_bytes, module.memory_type) == ("CPU0_DIMM_A1", 16 << 30, "DDR4")
    assert (module.rank, module.part_number, module.socket, module.channel) == (2, "HMT351R7CFR8C-PB", 0, "A")
    assert (module.rated_MTps, module.configured_MTps) == (None, None)
    assert _survey(LINKS).memory_slots is None
    assert "SECRET" not in repr(_survey(LINKS))


@pytest.mark.parametrize(
    ("values", "counts"),
    [((25000, 50000, 75000), {1, 2, 3}), ((40000, 20000, 20000), {1, 2}), ((50000, 50000, 50000), {None})],
)
def test_link_counts_are_known_if_one_kind_of_nvlink_fits(values: tuple[int, ...], counts: set[int]) -> None:
    a, b, c = (str(value).encode() for value in values)
    text = LINKS.replace(b'nbobjs="4"', b'nbobjs="3"').replace(b" Package:2", b"")
    start, end = text.index(b"    <u64values", text.index(b"hetero")), text.index(b"  </distances2hetero>")
    matrix = b"    <u64values>0 %s %s %s 0 %s %s %s 0</u64values>\n" % (a, b, a, c, b, c)
    survey = _survey(text[:start] + matrix + text[end:])
    assert {link.count for link in survey.peer_links} == counts
    assert {link.capable_Bps for link in survey.peer_links} == {value * 1e6 for value in values}


def _xgmi(hops: bytes) -> bytes:
    text = LINKS.replace(b"NVLinkBandwidth", b"XGMIBandwidth").replace(b'nbobjs="4"', b'nbobjs="3"')
    text = text.replace(b" Package:2", b"")
    start, end = text.index(b"    <u64values", text.index(b"hetero")), text.index(b"</topology>")
    rates = b"<u64values>0 100000 200000 100000 0 50000 200000 50000 0</u64values></distances2hetero>\n"
    indexes = b"<indexes>OSDev:21 OSDev:23 PCIDev:13</indexes>"
    names = b'<distances2hetero nbobjs="3" kind="5" name="XGMIHops">'
    return (
        text[:start] + rates + names + indexes + b"<u64values>" + hops + b"</u64values></distances2hetero>" + text[end:]
    )


def test_xgmi_links_are_those_of_one_hop() -> None:
    survey = _survey(_xgmi(b"0 1 1 1 0 2 1 2 0"))
    assert survey.peer_links == (
        PeerLink("0000:11:00.0", "0000:12:00.0", "xgmi", None, None, source="hwloc (XGMIBandwidth)"),
        PeerLink("0000:11:00.0", "0000:13:00.0", "xgmi", None, 200e9, source="hwloc (XGMIBandwidth)"),
    )
    assert not survey.knows_peer_links


@pytest.mark.parametrize(
    ("before", "after", "line", "why"),
    [
        (b"1000000 75000 0 50000 75000", b"1000000 75000 0 50000 25000", 56, "75000 from"),
        (b"1000000 75000 0 50000 75000", b"1000000 75000 0 50000", 53, "15 values"),
        (b"1000000 75000 0 50000 75000", b"1000000 75000 0 50000 x", 56, "not a number"),
        (b'nbobjs="4"', b'nbobjs="99999"', 53, "nbobjs"),
        (b"OSDev:23", b"OSDev:29", 53, "gp_index 29"),
        (b'gp_index="22"', b'gp_index="21"', 27, "gp_index 21 is in"),
        (b'"PU" os_index="1" cpuset="0x00000002"', b'"PU" os_index="0" cpuset="0x00000001"', 13, "within"),
        (b'cpuset="0x00000002" gp_index="7"', b'cpuset="0x00000002" gp_index="6"', 13, "is in the file already"),
        (b'pci_busid="0000:12:00.0"', b'pci_busid="0000:11:00.0"', 26, "is in the file already"),
        (b'pci_busid="0000:14:00.0"', b'pci_busid="0000:13:00.0"', 32, "is in the file already"),
        (b'pci_busid="0000:12:00.0"', b'pci_busid="0000:12"', 26, "without an address"),
        (b'cpuset="0x00000003" nodeset', b'cpuset="0x00000007" nodeset', 5, "the PUs in the file differ"),
        (b'nodeset="0x00000001" gp_index="1"', b'nodeset="0x00000003" gp_index="1"', 5, "NUMA nodes"),
        (b'cpuset="0x00000001" gp_index="4"', b'cpuset="0x00000003" gp_index="4"', 9, "its CPUs are 0-1"),
        (b"OSDev:23", b"Bridge:11", 53, "is a bridge"),
        (b'"NVML" osdev_type="12">', b'"NVML" osdev_type="12"><object type="PU"/>', 19, "inside one of type OSDev"),
        (b'"SECRET-5"/>', b'"x"><object type="Core"/></info>', 42, "an object inside <info>"),
        (b'"SECRET-5"/>', b'"x"/><object type="Core"/>', 42, "inside one of type Misc"),
        (b'  <distances2 ', b'  <object type="Machine"/><distances2 ', 49, "second object"),
        (b'osdev_type="1"', b'osdev_type="one"', 33, "osdev_type"),
        (b'pci_link_speed="7.876923"', b'pci_link_speed="fast"', 32, "pci_link_speed"),
    ],
)  # fmt: skip
def test_damage_is_refused_at_its_line(before: bytes, after: bytes, line: int, why: str) -> None:
    assert before in LINKS
    damaged = LINKS.replace(before, after, 1)
    with pytest.raises(ParseError) as caught:
        _survey(damaged)
    assert why in str(caught.value)
    assert caught.value.line == line
    assert caught.value.text == damaged.decode().split("\n")[line - 2]


@given(st.data(), st.booleans())
def test_a_file_whose_lines_are_dropped_or_swapped_gives_no_other_machine(data: st.DataObject, is_swap: bool) -> None:
    """I/O lines that trade places may still tell a machine that could be; those of CPUs and matrices cannot."""
    lines = LINKS.split(b"\n")
    words = [b"PU", b"Core", b"NUMANode", b"Package", b"Machine", b"values", b"indexes"]
    words += [] if is_swap else [b"<object", b"</object"]
    inner = [number for number, line in enumerate(lines) if any(word in line for word in words)]
    one, other = data.draw(st.sampled_from(inner)), data.draw(st.sampled_from(inner))
    changed = list(lines)
    changed[one], changed[other] = (lines[other], lines[one]) if is_swap else (b"", b"")
    try:
        survey = _survey(b"\n".join(changed))
    except UsageError:
        return
    right = _survey(LINKS)
    assert set(survey.peer_links) == set(right.peer_links)
    told, whole = ({(p.kind, p.os_index, p.cpus) for p in found.cpu_parts} for found in (survey, right))
    assert told <= whole
    assert {kind for kind, *_ in whole - told} <= {DeviceKind.CORE}, "start and end of a core cannot be missed"
    lost = {part.address for part in right.pci_parts} - {part.address for part in survey.pci_parts}
    assert lost <= {"0000:14:00.0", "0000:10:01.0", "0000:10:02.0", "0000:10"}, "a disk or port cannot be missed"


def test_distances_of_hwloc_1() -> None:
    matrix = (
        b'<distances nbobjs="2" relative_depth="1" latency_base="10.000000">'
        b'<latency value="1.000000"/><latency value="2.100000"/><latency value="2.100000"/><latency value="1.000000"/>'
        b"</distances>"
    )
    data = (DATA / "hwloc-v1.xml").read_bytes().replace(b'<info name="HostName"', matrix + b'<info name="HostName"')
    nodes = [part for part in read_hwloc_xml(data).cpu_parts if part.kind is DeviceKind.NUMA]
    assert [node.facts.text("distances") for node in nodes] == ["0:10 1:21", "0:21 1:10"]


def test_of_several_topologies_one_is_picked() -> None:
    both = LINKS + (DATA / "hwloc-v1.xml").read_bytes()
    with pytest.raises(UsageError) as caught:
        read_hwloc_xml(both)
    second = LINKS.count(b"\n") + 3
    assert f"line 3 and line {second}" in str(caught.value)
    assert [read_hwloc_xml(both, pick).name for pick in (1, 2)] == ["mole", "quay"]


@pytest.mark.parametrize(
    ("file", "packages", "nodes", "cores", "pus", "gpus", "switches"),
    [
        ("hwloc_16intel64-manyVFs.xml.txt", 2, 2, 16, 16, 0, 0),
        ("hwloc_24em64t-2n6c2t-pci.xml.txt", 2, 2, 12, 24, 3, 0),
        ("hwloc_96em64t-4n4d3ca2co-pci.xml.txt", 16, 4, 96, 96, 0, 0),
        ("hwloc_cxlmem+dax.v2.xml.txt", 1, 1, 4, 4, 0, 0),
        ("hwloc_linux_32em64t-2n8c+dax+nvme+mic+dimms.xml.txt", 2, 2, 16, 16, 0, 0),
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
    assert all(machine.package_of(cpu) for cpu in machine.pus)


def _shared(name: str) -> Survey:
    if not (SHARED / name).exists():
        pytest.skip(f"needs {SHARED / name}, which is not part of the repository")
    return read_hwloc_xml((SHARED / name).read_bytes())


def test_the_links_of_a_dgx_2() -> None:
    survey = _shared("hwloc_nvidiaDGX2.xml.txt")
    switches = {part.address for part in survey.pci_parts if part.kind is DeviceKind.SWITCH}
    assert len(switches) == 12
    links = Counter(end for link in survey.peer_links for end in (link.a, link.b))
    assert {(link.count, link.capable_Bps) for link in survey.peer_links} == {(1, 25e9)}
    assert {links[end] for end in links if end in switches} == {8}, "each baseboard has 6 switches for 8 GPUs"
    assert {links[end] for end in links if end not in switches} == {6}, "each V100 has 6 links"
    gpus = [part for part in survey.named_parts if part.kind is DeviceKind.GPU]
    assert [part.index for part in gpus] == list(range(16))
    assert {part.facts.text("model_name") for part in gpus} == {"Tesla V100-SXM3-32GB-H"}
    assert survey.knows_peer_links
    node = next(part for part in survey.cpu_parts if part.kind is DeviceKind.NUMA)
    assert node.facts.text("distances") == "0:10 1:21"


def test_the_modules_of_a_server() -> None:
    survey = _shared("hwloc_linux_32em64t-2n8c+dax+nvme+mic+dimms.xml.txt")
    assert [module.locator for module in survey.modules] == [f"DIMM_{side}{n}" for side in "AB" for n in range(1, 5)]
    assert {(m.size_bytes, m.memory_type, m.rank) for m in survey.modules} == {(4 << 30, "DDR3", 2)}
    disks = {part.name: part.facts.integer("size") for part in survey.named_parts if part.kind is DeviceKind.NVME}
    assert disks == {"nvme0n1": 390711384 * 1024}
    adapter = next(part for part in survey.named_parts if part.name == "mlx4_0")
    assert (adapter.aliases, adapter.kind) == (("ib0",), DeviceKind.NIC)


def test_a_memory_side_cache_is_a_fact_about_its_node() -> None:
    node = next(line for line in LINKS.split(b"\n") if b'type="NUMANode"' in line and line.rstrip().endswith(b"/>"))
    cache = b'<object type="MemCache" cache_size="17179869184" depth="1" cache_linesize="64" cache_associativity="1">'
    machine = assemble([_survey(LINKS.replace(node, cache + node + b"</object>"))])
    (found,) = (device.facts for device in machine.of_kind(DeviceKind.NUMA))
    assert (found.integer("memory_side_cache"), found.integer("memory_side_cache_ways")) == (16 << 30, 1)
    assert not machine.of_kind(DeviceKind.CACHE), "no cache of the processor"


def test_a_memory_side_cache_of_hwloc_1_is_inside_its_node() -> None:
    """hwloc 1 has the memory in the main tree: the node is around the cache, and its subtype is an info."""
    data = (DATA / "hwloc-v1.xml").read_bytes()
    line = next(line for line in data.split(b"\n") if b'type="Cache"' in line and b'depth="3"' in line)
    machine = assemble([read_hwloc_xml(data.replace(line, line + b'<info name="Type" value="MemorySideCache"/>'))])
    first, second = (device.facts.integer("memory_side_cache") for device in machine.of_kind(DeviceKind.NUMA))
    assert (first, second) == (33554432, None)


@pytest.mark.parametrize(
    ("value", "why"), [('value="fast"', "is not a number"), ('target_obj_gp_index="4" value="1"', "not a NUMA node")]
)
def test_damaged_memory_attributes_are_refused(value: str, why: str) -> None:
    text = LINKS.decode()
    attribute = '<memattr name="Bandwidth" flags="5">\n<memattr_value target_obj_type="NUMANode" {}/>\n</memattr>\n'
    whole = attribute.format('target_obj_gp_index="3" value="1000" initiator_cpuset="0x3"')
    (node,) = (
        p for p in _survey((text.replace("</topology>", whole + "</topology>")).encode()).cpu_parts if p.kind == "numa"
    )
    assert node.facts.number("memory_bandwidth") == 1000 * (1 << 20)
    damaged = attribute.format(value if "target" in value else f'target_obj_gp_index="3" {value}')
    with pytest.raises(ParseError, match=why):
        _survey(text.replace("</topology>", damaged + "</topology>").encode())


def test_a_device_at_the_top_of_a_machine_with_hidden_nodes_has_no_node() -> None:
    """As lstopo writes it in a control group with one of two nodes: devices of the other node move to the machine."""
    data = (DATA / "xml" / "hwloc-links.xml").read_bytes()
    assert assemble([read_hwloc_xml(data)]).of_kind(DeviceKind.GPU)[0].numa == 0
    hidden = data.replace(
        b'nodeset="0x00000001" gp_index="1"', b'nodeset="0x00000001" complete_nodeset="0x3" gp_index="1"'
    )
    assert hidden != data
    assert {gpu.numa for gpu in assemble([read_hwloc_xml(hidden)]).of_kind(DeviceKind.GPU)} == {None}


@pytest.mark.parametrize(("vendor", "kind"), [("10de:2342", "GPUMemory"), ("15b3:1021", None)])
def test_a_node_without_CPUs_beside_grace_is_the_memory_of_a_GPU(vendor: str, kind: str | None) -> None:
    text = f"""<?xml version="1.0"?><topology version="2.0">
    <object type="Machine" os_index="0" cpuset="0x3" nodeset="0x3">
      <object type="NUMANode" os_index="1" cpuset="0x0" nodeset="0x2" gp_index="8" local_memory="103079215104"/>
      <object type="Package" os_index="0" cpuset="0x3" nodeset="0x1">
        <info name="CPUImplementer" value="0x41"/><info name="CPUPart" value="0xd4f"/>
        <object type="NUMANode" os_index="0" cpuset="0x3" nodeset="0x1" gp_index="2" local_memory="515396075520"/>
        <object type="PU" os_index="0" cpuset="0x1" nodeset="0x1"/>
        <object type="PU" os_index="1" cpuset="0x2" nodeset="0x1"/>
        <object type="Bridge" bridge_type="0-1" depth="0" bridge_pci="0009:[00-01]">
          <object type="PCIDev" pci_busid="0009:01:00.0" pci_type="0302 [{vendor}] [10de:16eb] a1"/>
        </object></object></object></topology>"""
    machine = assemble([read_hwloc_xml(text.encode())])
    nodes = {node.numa: node.facts.text("memory_kind") for node in machine.of_kind(DeviceKind.NUMA)}
    assert nodes == {0: None, 1: kind}
    assert machine.facts.number("memory_total") == (480 if kind else 576) << 30
