"""Slurm's topology.conf, and lists of host names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import ParseError
from seatrial.fabric.dumps import read_fabric
from seatrial.fabric.parts import Text
from seatrial.model.fabric import Fabric
from seatrial.model.host_list import by_number, expand_hosts, fold_hosts

TREE = """\
# SwitchName=old Nodes=gone[1-4]
SwitchName=core Switches=s[0-1] LinkSpeed=400
switchname=s0 nodes=n[01-03],login
SwitchName=s1 \\
   Nodes=n[04-10:2]
"""


def read(text: str) -> Fabric:
    return read_fabric("slurm-topology", [Text("topology.conf", text.encode())])


def test_a_tree() -> None:
    fabric = read(TREE.replace("[04-10:2]", "[04-05,10]"))
    assert [(switch.name, switch.level) for switch in fabric.switches] == [("core", 2), ("s0", 1), ("s1", 1)]
    assert fabric.nodes == ("login", "n01", "n02", "n03", "n04", "n05", "n10")
    assert fabric.nodes_of_switch == {"s0": ("login", "n01", "n02", "n03"), "s1": ("n04", "n05", "n10")}
    assert [(each.level, each.ratio) for each in fabric.oversubscription] == [(1, None)]


def test_blocks() -> None:
    fabric = read("BlockName=b1 Nodes=a[1-4]\nBlockName=b2 Nodes=a[5-8]\nBlockSizes=4,8\n")
    assert len(fabric.nodes) == 8 and fabric.facts == {"block_sizes": "4,8"}


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        (TREE, 4, "not a list of numbers"),
        ("SwitchName=a Switches=b\n", 1, "no line of its own"),
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
