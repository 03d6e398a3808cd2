"""`lspci -t`, `-tv`, `-tvnn`: what hangs on what, and trees that have lost a line."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine.lspci_damage import damage
from machine.lspci_machines import random_machine, render_tree

from seatrial.errors import ParseError, UsageError
from seatrial.machine.readers.lspci_names import kind_by_name, read_identity
from seatrial.machine.readers.lspci_tree import read_lspci_tree
from seatrial.machine.survey import PciPart
from seatrial.model.machine.machine import DeviceKind

DATA = Path(__file__).resolve().parents[1] / "data" / "machine" / "lspci"
SEEDS = st.integers(min_value=0, max_value=1 << 32)
TREE = r"""-+-[0000:00]-+-00.0
 |           +-01.0-[01-04]----00.0-[02-04]--+-00.0-[03]--+-00.0
 |           |                               |            \-00.1
 |           |                               \-01.0-[04]--
 |           \-1f.0
 \-[0000:80]---00.0
"""


def read(text: str, pick: int | None = None) -> dict[str, PciPart]:
    return {part.address: part for part in read_lspci_tree(text.encode(), pick).pci_parts}


def parents(text: str) -> dict[str, str | None]:
    return {address: part.parent for address, part in read(text).items()}


def test_bridges_that_are_forks_chains_and_empty() -> None:
    assert parents(TREE) == {
        "0000:00": None,
        "0000:80": None,
        "0000:00:00.0": "0000:00",
        "0000:00:01.0": "0000:00",
        "0000:01:00.0": "0000:00:01.0",
        "0000:02:00.0": "0000:01:00.0",
        "0000:03:00.0": "0000:02:00.0",
        "0000:03:00.1": "0000:02:00.0",
        "0000:02:01.0": "0000:01:00.0",
        "0000:00:1f.0": "0000:00",
        "0000:80:00.0": "0000:80",
    }
    classes = {address: part.class_id for address, part in read(TREE).items()}
    bridges = [address for address, class_id in classes.items() if class_id == "0604"]
    assert bridges == ["0000:00:01.0", "0000:01:00.0", "0000:02:00.0", "0000:02:01.0"]
    assert classes["0000:00"] == ""
    assert classes["0000:03:00.0"] == "0000"  # a tree does not tell it


def test_names_buses_of_virtual_functions_and_domains() -> None:
    parts = read((DATA / "buses-tree.txt").read_text())
    kinds = {address: part.kind for address, part in parts.items() if part.kind is not None}
    assert kinds == {
        "0000:3d:00.0": DeviceKind.GPU,
        "0000:3e:00.0": DeviceKind.NIC,
        "0000:3f:00.0": DeviceKind.NIC,
        "0000:3f:00.1": DeviceKind.NIC,
        "10000:e1:00.0": DeviceKind.NVME,
    }
    above = {address: parts[address].parent for address in kinds}
    assert above == {
        "0000:3d:00.0": "0000:3c:04.0",
        "0000:3e:00.0": "0000:3c:08.0",
        "0000:3f:00.0": "0000:3c:08.0",
        "0000:3f:00.1": "0000:3c:08.0",
        "10000:e1:00.0": "10000:e0:06.0",
    }
    gpu = parts["0000:3d:00.0"].facts
    assert [gpu.text(name) for name in ("vendor_id", "device_id", "pci_name")] == [
        "10de", "1db6", "GV100GL [Tesla V100 PCIe 32GB]",
    ]  # fmt: skip
    assert parts["0000:00:1e.0"].class_id == "0604"  # a bridge that firmware has not set up


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("NVIDIA Corporation GA102GL [RTX A6000]", DeviceKind.GPU),
        ("NVIDIA Corporation GH100[H100 SXM5 80GB]", DeviceKind.GPU),
        ("NVIDIA Corporation Device 2330", DeviceKind.GPU),
        ("10de:20b2", DeviceKind.GPU),
        ("NVIDIA Corporation GA102 High Definition Audio Controller", None),
        ("NVIDIA Corporation TU102 USB Type-C UCSI Controller", None),
        ("NVIDIA Corporation TU102 USB 3.1 Host Controller", None),
        ("NVIDIA Corporation NF200 PCIe 2.0 switch", None),
        ("NVIDIA Corporation Device 9999", None),
        ("NVIDIA Corporation GA100 [A100 NVSwitch]", DeviceKind.SWITCH),
        ("NVIDIA Corporation GH100 [H100 NVSwitch]", DeviceKind.SWITCH),
        ("NVIDIA Corporation Device 1af1", DeviceKind.SWITCH),
        ("Advanced Micro Devices, Inc. [AMD/ATI] Aldebaran/MI200 [Instinct MI250X/MI250]", DeviceKind.GPU),
        ("Advanced Micro Devices, Inc. [AMD/ATI] Arcturus GL-XL [Instinct MI100]", DeviceKind.GPU),
        ("Advanced Micro Devices, Inc. [AMD/ATI] Vega 20 HDMI Audio [Radeon VII]", None),
        ("Advanced Micro Devices, Inc. [AMD/ATI] Device 74a1", DeviceKind.GPU),
        ("Intel Corporation Ponte Vecchio XT (2 Tile) [Data Center GPU Max 1550]", DeviceKind.GPU),
        ("Mellanox Technologies MT28908 Family [ConnectX-6]", DeviceKind.NIC),
        ("Mellanox Technologies MT28908A0 Family [ConnectX-6 Flash Recovery]", None),
        ("Mellanox Technologies MT42822 BlueField-2 integrated ConnectX-6 Dx network controller", DeviceKind.NIC),
        ("Mellanox Technologies MT42822 BlueField-2 SoC Management Interface", None),
        ("Intel Corporation Ethernet Controller E810-C for QSFP", DeviceKind.NIC),
        ("Intel Corporation I350 Gigabit Network Connection", DeviceKind.NIC),
        ("Amazon.com, Inc. Elastic Network Adapter (ENA)", DeviceKind.NIC),
        ("Samsung Electronics Co Ltd NVMe SSD Controller PM9A1/PM9A3/980PRO", DeviceKind.NVME),
        ("HighPoint Technologies, Inc. SSD7540 PCIe Gen4 x16 8-Port M.2 NVMe RAID Controller", None),
        ("ASPEED Technology, Inc. ASPEED Graphics Family", None),
        ("Intel Corporation Ethernet Management Controller", None),
    ],
)
def test_kinds_that_a_name_settles(text: str, kind: DeviceKind | None) -> None:
    assert kind_by_name(read_identity(text)) is kind


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ((" |           |                               |            \\-00.1\n", ""), 3),  # its last branch is lost
        ((" |           +-01.0-[01-04]----00.0-[02-04]--+-00.0-[03]--+-00.0\n", ""), 2),
        ((" \\-[0000:80]---00.0\n", ""), 5),
        (("-+-[0000:00]-+-00.0\n", ""), 1),
        (("            \\-00.1", "           \\-00.1"), 3),  # a column too far to the left
        (("|            \\-00.1", "             \\-00.1"), 3),  # a bar is lost
        (("\\-01.0-[04]--", "\\-01.0-[05]--"), 4),  # not within 02-04
        (("\\-01.0-[04]--", "\\-01.0-[03]--"), 4),  # bus 03 a second time
        (("-[02-04]--", "-[01-04]--"), 2),
        (("-[02-04]--", "-[04-02]--"), 2),
        (("-[02-04]--", "-[02-0"), 2),
        (("-[02-04]--", "-[0x-04]--"), 2),
        (("\\-00.1", "\\-00.0"), 3),
        (("\\-00.1", "\\-00."), 3),
        (("\\-00.1", "\\-00.9"), 3),
        (("[03]--+-00.0", "[03]--+-00.2"), 3),  # 00.1 stands below it
        (("           \\-1f.0\n", "           \\-1e.0\n |           \\-1f.0\n"), 6),  # a branch below the last
        (("[0000:80]---", "[0000:00]---"), 6),
        (("[0000:80]---", "[0000:80]--"), 6),
        (("1f.0\n", "1f.0\nprose amid the tree\n"), 6),
    ],
)
def test_a_damaged_tree_is_refused_with_its_first_line(change: tuple[str, str], line: int) -> None:
    text = TREE.replace(*change)
    assert text != TREE
    with pytest.raises(ParseError) as caught:
        read(text)
    assert (caught.value.tool, caught.value.line) == ("lspci-tree", line)
    assert caught.value.text == text.split("\n")[line - 1]


def test_a_line_cut_within_a_name() -> None:
    tree = "-[0000:00]-+-00.0  Intel Corporation Device 09a2\n           \\-01.0  {}"
    with pytest.raises(ParseError, match="within brackets"):
        read(tree.format("NVIDIA Corporation GA102GL [RTX A60\n"))
    with pytest.raises(ParseError, match="is missing"):
        read(tree.format("").rstrip() + "\n")
    survey = read_lspci_tree(tree.format("Intel Corporation Ethernet Controller").encode())  # perhaps of more words
    assert survey.pci_parts[-1].kind is None
    assert "may be cut" in " ".join(survey.unread)
    whole = read_lspci_tree(tree.format("NVIDIA Corporation GA102GL [RTX A6000]").encode())
    assert whole.pci_parts[-1].kind is DeviceKind.GPU


def test_prose_prompts_and_quotes_round_a_tree() -> None:
    quoted = "".join(f"> {line}\n" for line in TREE.splitlines())
    commented = "".join(f"# {line}\n" for line in TREE.splitlines())
    fenced = f"The tree:\n```\n$ lspci -t\n{TREE}```\n| a | table |\n"
    indented = "".join(f"      {line}\n" for line in TREE.splitlines())
    for text in (quoted, commented, fenced, indented, TREE.replace("\n", "\r\n")):
        assert parents(text) == parents(TREE)


def test_regions_of_tvv_are_passed_over() -> None:
    region = " |           |     Memory at b4000000 (32-bit, non-prefetchable) [size=16M]\n"
    lines = TREE.splitlines(keepends=True)
    assert parents(
        "".join((*lines[:1], region, " |             Region 5: I/O ports at 5000\n", *lines[1:]))
    ) == parents(TREE)


def test_of_two_trees_one_must_be_picked() -> None:
    other = "-[0000:00]---1f.0\n"
    with pytest.raises(UsageError, match="line 1 and line 8"):
        read(f"{TREE}\n{other}")
    assert list(read(f"{TREE}\n{other}", 2)) == ["0000:00", "0000:00:1f.0"]
    assert len(read(f"{TREE}\n{other}", 1)) == 11


def test_missing_and_hostile_trees() -> None:
    with pytest.raises(ParseError, match="no PCI tree"):
        read("01:00.0 VGA compatible controller: NVIDIA Corporation GA100\n")
    deep = "-[0000:00]-" + "".join(f"--00.0-[{bus:02x}-ff]--" for bus in range(1, 255))
    with pytest.raises(ParseError, match="any machine"):
        read(deep)
    with pytest.raises(UsageError):
        read("-[0000:00]-" + "+-" * 100_000)
    wide = "".join(f" +-[{bus:04x}:00]---00.0\n" for bus in range(1, 20_000))
    with pytest.raises(ParseError, match="more functions than any machine has"):
        read(f"-+-[0000:00]---00.0\n{wide} \\-[ffff:00]---00.0\n")


@given(SEEDS, st.booleans(), st.booleans())
def test_random_machines_are_read_back(seed: int, names: bool, numbers: bool) -> None:
    machine = random_machine(seed)
    parts = read(render_tree(machine, names=names, numbers=numbers))
    assert {a: p.parent for a, p in parts.items() if p.class_id} == machine.parents()
    for function, _ in machine.functions():
        assert (parts[function.address].class_id == "0604") == (function.first is not None)
    if names and numbers:
        ids = {f.address: f.leaf[3] for f, _ in machine.functions() if f.first is None}
        assert {a: f"{parts[a].facts.text('vendor_id')}:{parts[a].facts.text('device_id')}" for a in ids} == ids


@settings(max_examples=300)
@given(SEEDS)
def test_damaged_trees_are_refused_or_right(seed: int) -> None:
    draw = random.Random(seed)
    machine = random_machine(seed)
    names = {function.address: function.leaf[2] for function, _ in machine.functions()}
    _, text = damage(draw, render_tree(machine, names=draw.random() < 0.7))
    try:
        parts = read(text)
    except UsageError:
        return
    truth = machine.parents()
    for part in (part for part in parts.values() if part.class_id):
        assert part.parent == truth[part.address]
        assert part.kind in (None, kind_by_name(read_identity(names[part.address])))
