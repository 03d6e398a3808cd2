"""Dumps of made-up fabrics are read as they were made; damaged ones are refused at the right line."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from fabric.made_up_fabrics import FatTree

from seatrial.errors import ParseError, UsageError
from seatrial.fabric.dumps import read_fabric
from seatrial.fabric.parts import FabricText
from seatrial.model.machine.fabric import CapableBasis, Fabric

PODS = FatTree(pods=3, leaves=4, nodes=5, spines=2, cores=4)


def read(kind: str, *texts: str) -> Fabric:
    return read_fabric(kind, [FabricText(f"part{n}", text.encode()) for n, text in enumerate(texts)])


def refused(kind: str, *texts: str) -> ParseError:
    with pytest.raises(ParseError) as caught:
        read(kind, *texts)
    return caught.value


@pytest.mark.parametrize("kind", ["ibnetdiscover", "iblinkinfo"])
def test_both_tools_give_the_fabric_that_was_made(kind: str) -> None:
    fabric = read(kind, getattr(PODS, kind)())
    assert sorted(switch.name for switch in fabric.switches) == sorted(PODS.switches)
    assert list(fabric.nodes) == PODS.hosts
    assert Counter(switch.level for switch in fabric.switches) == {1: 12, 2: 6, 3: 4}
    made = sorted((upper, lower) for upper, lower, _ in PODS.links())
    assert sorted((fabric.name(link.a.device), fabric.place(fabric.name(link.b.device)).split()[0])
                  for link in fabric.links) == made  # fmt: skip
    assert {link.trained_Bps for link in fabric.links} == {25e9}
    # 5 nodes below a leaf, 2 links above it; 4 leaves below a spine, 2 cores above it
    assert [(each.level, each.ratio) for each in fabric.oversubscription] == [(1, 2.5), (2, 2.0)]
    assert not fabric.findings and not fabric.unread


def test_the_nodes_of_a_leaf() -> None:
    fabric = read("ibnetdiscover", PODS.ibnetdiscover())
    names = {fabric.name(switch): nodes for switch, nodes in fabric.nodes_of_switch.items()}
    assert names["leaf-1-0"] == ("n00020", "n00021", "n00022", "n00023", "n00024")
    assert len(names) == 12


@pytest.mark.parametrize(
    ("kind", "basis"), [("ibnetdiscover", CapableBasis.INFERRED), ("iblinkinfo", CapableBasis.STATED)]
)
@pytest.mark.parametrize("ends", [("spine-1-1", "leaf-1-2"), ("leaf-2-0", "n00040")])
def test_a_slow_link_is_named(kind: str, basis: CapableBasis, ends: tuple[str, str]) -> None:
    fabric = read(kind, getattr(replace(PODS, slow={ends: "2xEDR"}), kind)())
    (low,) = (link for link in fabric.links if link.is_low)
    assert (low.trained_Bps, low.capable_Bps, low.capable_basis) == (6.25e9, 25e9, basis)
    finding = next(finding for finding in fabric.findings if finding.rule == "link-below-capability")
    assert all(any(end in device for device in finding.devices) for end in ends)


def test_several_rates_of_one_model_prove_nothing() -> None:
    """One chip is sold with several speeds: a quarter of the adapters at half the rate is no fault."""
    slow = {(upper, lower): "2xHDR" for upper, lower, _ in PODS.links() if lower.startswith("n") and lower[-1] in "05"}
    fabric = read("ibnetdiscover", replace(PODS, slow=slow).ibnetdiscover())
    assert not any(link.is_low for link in fabric.links)
    assert [finding.rule for finding in fabric.findings] == ["mixed-rates"]


def test_a_server_on_a_spine_does_not_make_it_a_leaf() -> None:
    text = replace(PODS, leaves=12).ibnetdiscover()
    spine = text.index('"spine-0-0" base')
    last = text.index("\n\n", spine)
    text = f'{text[:last]}\n[60]\t"H-00000000000000aa"[1] \t\t# "manager mlx5_0" lid 9 4xHDR{text[last:]}'
    text += '\nCa\t1 "H-00000000000000aa"\t\t# "manager mlx5_0"\n[1] \t"S-0000000000001024"[60]\t\t# lid 9 lmc 0 "spine-0-0" lid 1 4xHDR\n'  # noqa: E501
    fabric = read("ibnetdiscover", text)
    assert {switch.level for switch in fabric.switches if switch.name.startswith("spine")} == {2}
    assert "manager" in fabric.nodes


def test_an_empty_leaf_is_a_leaf() -> None:
    off = tuple(("leaf-0-0", f"n0000{number}") for number in range(3))
    fabric = read("ibnetdiscover", FatTree(leaves=4, nodes=3, spines=2, missing=off).ibnetdiscover())
    assert Counter(switch.level for switch in fabric.switches) == {1: 4, 2: 2}
    assert [finding.rule for finding in fabric.findings] == ["no-link"]


def test_a_missing_uplink_is_named() -> None:
    tree = FatTree(leaves=6, nodes=2, spines=3, missing=(("spine-0-2", "leaf-0-3"),))
    (finding,) = read("iblinkinfo", tree.iblinkinfo()).findings
    assert (finding.rule, finding.devices) == ("fewer-uplinks", ("leaf-0-3",))


def test_parts_of_a_dump_are_joined_wherever_it_was_cut() -> None:
    lines = PODS.ibnetdiscover().splitlines(keepends=True)
    whole = read("ibnetdiscover", "".join(lines))
    for cut in range(1, len(lines), 17):
        assert read("ibnetdiscover", "".join(lines[:cut]), "".join(lines[cut:])) == whole


@pytest.mark.parametrize("kind", ["ibnetdiscover", "iblinkinfo"])
def test_a_dump_that_was_cut_off_is_refused_or_complete(kind: str) -> None:
    text = getattr(FatTree(leaves=3, nodes=2, spines=2), kind)()
    whole = read(kind, text)
    for cut in range(0, len(text), 23):
        try:
            fabric = read(kind, text[:cut])
        except ParseError:
            continue
        assert (fabric.nodes, Counter(fabric.links)) == (whole.nodes, Counter(whole.links))


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('[3] \t\t# "leaf-0-0"', '[9] \t\t# "leaf-0-0"', "connected to something else on line"),
        ('[1]\t"H', '[9]\t"H', "connected to something else"),
        ("4xHDR", "4xHDX", "'HDX' is not a speed"),
        ("4xHDR", "5xHDR", "5x is not a width"),
        ("Switch\t64", "Switch\t64000", "record of a device, but not in the form"),
        ("Switch\t64", "Switch\t2", "which has 2 ports"),
        ("lid 1 4xHDR", "lid 1", "no rate"),
    ],
)
def test_damage_is_refused_with_its_line(old: str, new: str, why: str) -> None:
    text = FatTree(leaves=2, nodes=2, spines=2).ibnetdiscover()
    assert old in text
    error = refused("ibnetdiscover", text.replace(old, new, 1))
    assert why in str(error) and error.line and "part0" in str(error)


def test_two_dumps_in_one_file_need_a_choice() -> None:
    one, two = FatTree(leaves=2).ibnetdiscover(), FatTree(leaves=3).ibnetdiscover()
    with pytest.raises(UsageError, match="2 dumps"):
        read("ibnetdiscover", one + "\n" + two)
    picked = read_fabric("ibnetdiscover", [FabricText("both", f"{one}\n{two}".encode(), 2)])
    assert len(picked.switches) == 5


def test_prose_fences_and_a_prefix_are_ignored() -> None:
    text = PODS.ibnetdiscover()
    whole = read("ibnetdiscover", text)
    assert read("ibnetdiscover", f"Here it is:\n```\n$ ibnetdiscover\n{text}\n```\nThanks!\n") == whole
    quoted = "".join(f"> {line}" for line in text.splitlines(keepends=True))
    assert Counter(read("ibnetdiscover", quoted).links) == Counter(whole.links)


def test_ports_that_are_down_or_wait_for_the_subnet_manager() -> None:
    text = FatTree(leaves=1, nodes=2, spines=0).iblinkinfo()
    down = '           1    9[  ] ==(                Down/ Polling)==>             [  ] "" ( )\n'
    text = text.replace("Active/  LinkUp", "Initialize/  LinkUp")
    fabric = read("iblinkinfo", text + down)
    assert [(port.port, port.state, port.physical) for port in fabric.ports_down] == [(9, "Down", "Polling")]
    assert [finding.rule for finding in fabric.findings] == ["link-not-active"]


def test_switches_only_is_read_without_the_adapters() -> None:
    text = PODS.iblinkinfo()
    fabric = read("iblinkinfo", text[text.index("Switch: ") :])
    assert list(fabric.nodes) == PODS.hosts and "60 adapters are described only by" in fabric.unread[0]
