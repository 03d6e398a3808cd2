"""Slurm's topology.conf, and lists of host names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import ParseError, UsageError
from seatrial.fabric.dumps import read_fabric
from seatrial.fabric.parts import FabricText
from seatrial.model.machine.fabric import Fabric
from seatrial.model.machine.host_list import by_number, expand_hosts, fold_hosts

TREE = """\
# SwitchName=old Nodes=gone[1-4]
SwitchName=core Switches=s[0-1] LinkSpeed=400
switchname=s0 nodes=n[01-03],login
SwitchName=s1 \\
   Nodes=n[04-10:2]
"""


def read(text: str) -> Fabric:
    return read_fabric("slurm-topology", [FabricText("topology.conf", text.encode())])


def test_a_tree() -> None:
    fabric = read(TREE.replace("[04-10:2]", "[04-05,10]"))
    assert [(switch.name, switch.level) for switch in fabric.switches] == [("core", 2), ("s0", 1), ("s1", 1)]
    assert fabric.nodes == ("login", "n01", "n02", "n03", "n04", "n05", "n10")
    assert fabric.nodes_of_switch == {"s0": ("login", "n01", "n02", "n03"), "s1": ("n04", "n05", "n10")}
    assert [(each.level, each.ratio) for each in fabric.oversubscription] == [(1, None)]


def test_blocks() -> None:
    fabric = read("BlockName=b1 Nodes=a[1-4]\nBlockName=b2 Nodes=a[5-8]\nBlockSizes=4,8\n")
    assert len(fabric.nodes) == 8 and fabric.facts == {"block_sizes": "4,8"}


@pytest.mark.parametrize("sizes", ["4,x", "4,,8", "4-8", "4,"])
def test_sizes_of_blocks_are_numbers(sizes: str) -> None:
    with pytest.raises(ParseError, match="BlockSizes is a list of numbers of nodes"):
        read(f"BlockName=b1 Nodes=a[1-4]\nBlockSizes={sizes}\n")


def test_quotes_are_not_part_of_a_name() -> None:
    fabric = read('SwitchName="s0" Nodes="n[1-2], n4"\nSwitchName="top" Switches="s0"\n')
    assert ([switch.name for switch in fabric.switches], fabric.nodes) == (["s0", "top"], ("n1", "n2", "n4"))


def test_a_node_that_is_listed_twice_is_one() -> None:
    assert len(read("SwitchName=s0 Nodes=n[1-2],n2\n").links) == 2


def test_what_scontrol_shows() -> None:
    """A switch above others also lists their nodes; blocks of blocks follow the blocks."""
    fabric = read(
        "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[1-2]\nSwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[3-4]\n"
        "SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=s[0-1]\n"
    )
    assert [(switch.name, switch.level) for switch in fabric.switches] == [("s0", 1), ("s1", 1), ("top", 2)]
    assert len(fabric.links) == 6
    fabric = read(
        "BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2\nBlockName=b2 BlockIndex=1 Nodes=n[3-4] BlockSize=2\n"
        "AggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[1-4] BlockSize=4\n"
    )
    assert ([switch.name for switch in fabric.switches], len(fabric.links)) == (["b1", "b2"], 4)


def test_an_included_file_must_be_given() -> None:
    main, other = "SwitchName=top Switches=s0\nInclude /etc/slurm/leaves.conf\n", "SwitchName=s0 Nodes=n1\n"
    with pytest.raises(ParseError, match=r"includes /etc/slurm/leaves\.conf"):
        read(main)
    both = [FabricText("topology.conf", main.encode()), FabricText("/tmp/leaves.conf", other.encode())]
    assert read_fabric("slurm-topology", both).nodes == ("n1",)


YAML = """\
---
- topology: tree
  cluster_default: true
  tree:
    switches:
      - switch: top
        children: s[0-1]
      - {switch: s0, nodes: "n[01-03]"}
      - {switch: s1, nodes: 7}
- topology: blocks
  block:
    block_sizes: [4, 8]
    blocks:
      - block: b1
        nodes: m[1-4]
      - block: b2
        nodes: m[5-8]
- topology: flat
  flat: true
"""


def test_topology_yaml_has_several() -> None:
    with pytest.raises(UsageError, match="3 dumps"):
        read(YAML)
    one, two = (read_fabric("slurm-topology", [FabricText("topology.yaml", YAML.encode(), pick)]) for pick in (1, 2))
    assert [(switch.name, switch.level) for switch in one.switches] == [("top", 2), ("s0", 1), ("s1", 1)]
    assert one.nodes == ("7", "n01", "n02", "n03") and one.facts == {"topology": "tree"}
    assert len(two.nodes) == 8 and two.facts == {"topology": "blocks", "block_sizes": "4,8"}
    with pytest.raises(ParseError, match="flat is not read"):
        read_fabric("slurm-topology", [FabricText("topology.yaml", YAML.encode(), 3)])


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("topology: a\ntree: SwitchName=s1\n", 2, "not keys with values"),
        ("topology: a\ntree:\n  switches: s1=n1\n", 3, "not a list of entries"),
        ("topology: a\ntree:\n  switches:\n    - nodes: n1\n", 4, "no key switch"),
        ("topology: a\ntree:\n  switches:\n    - switch: s\n      node: n1\n", 5, "'node' is not a key"),
        ("topology: a\ntree:\n  switches:\n    - switch: s\n      nodes: [n1]\n", 5, "not text"),
        ("topology: a\ntree:\n  switches:\n    - switch: s\n      children: t\n", 4, "no line in the file"),
        ("topology: a\nblock: {blocks: [{block: b, nodes: n1}]}\ntree: {}\n", 1, "tree and block"),
        ("topology: a\n", 1, "has none"),
    ],
)
def test_a_topology_yaml_that_is_wrong(text: str, line: int, why: str) -> None:
    with pytest.raises(ParseError, match=why) as caught:
        read(text)
    assert caught.value.line == line


def test_what_is_no_yaml_is_refused() -> None:
    with pytest.raises(UsageError, match="line 3: invalid YAML"):
        read("topology: a\ntree: [\n")


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("RingName=r0 Nodes=n[1-8]\n", 1, "rings .* are not read"),
        ('SwitchName="a Nodes=n1\n', 1, "not a Key=value"),
        (TREE, 4, "not a list of numbers"),
        ("SwitchName=a Switches=b\n", 1, "no line in the file"),
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a\n", 1, "below itself"),
        ("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n", 2, "also on line 1"),
        ("SwitchName=a Nodes=n1\nBlockName=b Nodes=n2\n", 2, "switches and blocks"),
        ("SwitchName=a Nodes=n[1-999999999]\n", 1, "more than 1000000 names"),
        ("SwitchName=a Nodes=n[1-9][1-999][1-999]\n", 1, "more than 1000000 names"),
        ("SwitchName=a Nodes=n[1-4\n", 1, "not closed"),
        ("SwitchName=a Nodes=n1 Colour=red\n", 1, "colour is not a key"),
        ("SwitchName=a Nodes=\n", 1, "no value"),
        ("SwitchName=a\n", 1, "neither switches nor nodes"),
        ("SwitchNme=a Nodes=n1\n", 1, "not a line of topology.conf"),
        ("SwitchName=a Nodes=n1 \\", 1, "goes on"),
        ("hello\n", None, "no SwitchName="),
    ],
)
def test_damage_is_refused_with_its_line(text: str, line: int | None, why: str) -> None:
    with pytest.raises(ParseError, match=why) as caught:
        read(text)
    assert caught.value.line == line


@given(st.lists(st.from_regex(r"\A[a-c]{1,2}-?(0{0,2}[0-9]{1,3})?[x-y]?\Z"), max_size=30))
def test_folded_names_expand_to_the_same(names: list[str]) -> None:
    assert sorted(expand_hosts(fold_hosts(names))) == sorted(set(names))


def test_spans_are_as_people_write_them() -> None:
    assert fold_hosts(f"n{number}" for number in range(8, 12)) == "n[8-11]"
    assert fold_hosts(f"n{number:03}" for number in range(98, 102)) == "n[098-101]"
    assert fold_hosts(["login", "n1", "n3"]) == "login,n[1,3]"
    assert expand_hosts("r[1-2]n[01-02],login") == ("r1n01", "r1n02", "r2n01", "r2n02", "login")
    assert sorted(["n10", "n9"], key=by_number) == ["n9", "n10"]
