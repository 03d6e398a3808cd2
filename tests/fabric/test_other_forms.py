"""Forms in which other versions and options of the tools print a fabric."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from dataclasses import replace

import pytest
from fabric.made_up_fabrics import FatTree
from fabric.test_fabric_dumps import PODS, read, refused

from seatrial.errors import ParseError
from seatrial.fabric.dumps import read_fabric
from seatrial.fabric.parts import FabricText
from seatrial.model.machine.fabric import Fabric

SMALL = FatTree(leaves=2, nodes=2, spines=2)


def links(fabric: Fabric) -> Counter[tuple[str, int | None, str, int | None, str | None, float | None]]:
    return Counter(
        (fabric.name(link.a.device), link.a.port, fabric.name(link.b.device), link.b.port, link.speed, link.trained_Bps)
        for link in fabric.links
    )


def test_labels_of_the_front_panel_behind_port_numbers() -> None:
    """As ibdiagnet writes it: cage and port, and for a split port a third number."""
    text = SMALL.ibnetdiscover()
    labelled = re.sub(r"^(\[(\d+)\])\t", r"\1(1/\2/1) ", text, flags=re.MULTILINE).replace("] \t", "](1/4)     ")
    assert labelled != text and read("ibnetdiscover", labelled) == read("ibnetdiscover", text)


def test_records_that_are_not_separated_by_blank_lines() -> None:
    text = SMALL.ibnetdiscover()
    assert links(read("ibnetdiscover", text.replace("\n\n", "\n"))) == links(read("ibnetdiscover", text))


def test_old_dumps_have_rates_at_adapters_only() -> None:
    text = SMALL.ibnetdiscover()
    switches, adapters = text[: text.index("\nCa")], text[text.index("\nCa") :]
    fabric = read("ibnetdiscover", switches.replace(" 4xHDR", "") + adapters)
    assert Counter(link.trained_Bps for link in fabric.links) == {25e9: 4, None: 4}
    assert "is unknown" in fabric.oversubscription[0].why
    assert "no rate" in str(refused("ibnetdiscover", switches.replace(" 4xHDR", "", 1) + adapters))


def test_a_width_that_the_tool_does_not_know() -> None:
    fabric = read("ibnetdiscover", SMALL.ibnetdiscover().replace("4xHDR", "??HDR"))
    assert {(link.width, link.speed, link.trained_Bps) for link in fabric.links} == {(None, "HDR", None)}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('Ca\t : 0x00000000001000a3 ports 2 devid 0x1003 vendid 0x2c9 "n1 HCA-1"\n', "a list of devices"),
        ('Switch\t: 0x00000000002000a1 ports 36 "leaf" base port 0 lid 3 lmc 0\n', "a list of devices"),
        (SMALL.ibnetdiscover().replace("\nSwitch", "\n< Switch"), "differences between two fabrics"),
    ],
)
def test_what_is_no_fabric_is_refused(text: str, why: str) -> None:
    assert why in str(refused("ibnetdiscover", text))


@pytest.mark.parametrize("kind", ["ibnetdiscover", "iblinkinfo"])
def test_a_query_without_an_answer_means_that_parts_may_be_missing(kind: str) -> None:
    tree = FatTree(leaves=6, nodes=2, spines=3, missing=(("spine-0-2", "leaf-0-3"),))
    text = getattr(tree, kind)()
    failed = (
        "src/query_smp.c:197; umad (DR path slid 0; dlid 0; 0,1,13 Attr 0x11:0) bad status 110; Connection timed out\n"
    )
    fabric = read(kind, f'ibwarn: [6931] sim_connect: attached as client 1 at node "n1"\n{failed}{failed}{text}')
    (unread,) = fabric.unread
    assert unread == "the tool reports 2 failed queries, the first on line 2: parts of the fabric may be missing"
    assert not fabric.findings and {each.ratio for each in fabric.oversubscription} == {None}
    assert links(fabric) == links(read(kind, text))


def test_an_adapter_with_two_ports_is_one_in_a_list_of_ports() -> None:
    """The list gives the GUIDs of ports. A second adapter of the same name has others."""
    ends = [("00000000000000a1", 1), ("00000000000000a2", 2), ("00000000000000b1", 1)]
    text = "".join(
        f"CA    {port:2} {port:2} 0x{guid} 4x QDR - SW     3 {at:2} 0x0000000000000c00 ( 'n1 HCA-1' - 'leaf' )\n"
        f"SW     3 {at:2} 0x0000000000000c00 4x QDR - CA    {port:2} {port:2} 0x{guid} ( 'leaf' - 'n1 HCA-1' )\n"
        for at, (guid, port) in enumerate(ends, 1)
    )
    fabric = read("ibnetdiscover", text + "SW     3  9 0x0000000000000c00 ?? ???" + " " * 36 + "'leaf'\n")
    assert [adapter.id for adapter in fabric.adapters] == ["H-00000000000000a0", "H-00000000000000b1"]
    assert (len(fabric.links), len(fabric.ports_down)) == (3, 1)


def test_lines_with_everything() -> None:
    """`iblinkinfo -l`: it does not say what is a switch."""
    tree = replace(PODS, slow={("spine-1-1", "leaf-1-2"): "2xEDR"})
    fabric = read("iblinkinfo", tree.iblinkinfo_lines())
    whole = read("iblinkinfo", tree.iblinkinfo())
    assert links(fabric) == links(whole) and sum(link.is_low for link in fabric.links) == 1
    assert (len(fabric.switches), fabric.nodes) == (len(PODS.switches), whole.nodes)


def test_lines_of_switches_only() -> None:
    lines = [line for line in PODS.iblinkinfo_lines().splitlines(keepends=True) if "mlx5_0" not in line.split("==")[0]]
    fabric = read("iblinkinfo", "".join(lines))
    assert links(fabric) == links(read("iblinkinfo", PODS.iblinkinfo()))
    assert f"{len(PODS.hosts)} adapters are described only by the switch" in fabric.unread[0]


def test_settings_behind_the_rate() -> None:
    text = SMALL.iblinkinfo()
    assert read("iblinkinfo", text.replace(")==>", ") (HOQ:16 VL_Stall:7)==>")) == read("iblinkinfo", text)


def test_fdr10_is_not_qdr() -> None:
    text = SMALL.iblinkinfo()
    fabric = read("iblinkinfo", text.replace("53.125 Gbps", "10.0 Gbps (FDR10)"))
    assert {(link.speed, link.trained_Bps) for link in fabric.links} == {("FDR10", 4 * 10.3125e9 * 64 / 66 / 8)}
    could = "Could be FDR10 (Found link at QDR but expected speed is FDR10)"
    fabric = read("iblinkinfo", text.replace("53.125 Gbps", "10.0 Gbps").replace("( )", f"({could})"))
    assert all((link.speed, link.capable_Bps) == ("QDR", 5e9) for link in fabric.links)


@pytest.mark.parametrize(
    ("old", "new"),
    [("( )", "(Could be undefined (64))"), ("53.125 Gbps", "undefined (64)"), ("4X ", "undefined (64) ")],
)
def test_a_rate_that_the_tool_does_not_know_is_unknown(old: str, new: str) -> None:
    fabric = read("iblinkinfo", SMALL.iblinkinfo().replace(old, new))
    assert {link.capable_Bps for link in fabric.links} == {None}


def test_a_fabric_without_a_subnet_manager_has_no_lids() -> None:
    """Links are found by the names and ports that both ends give, unless two devices have one name."""
    text = SMALL.iblinkinfo()
    for number in range(1, 9):
        text = re.sub(rf" {{5}}{number} (?= +\d+\[)", "     0 ", text)
    assert "LID" not in text and links(read("iblinkinfo", text)) == links(read("iblinkinfo", SMALL.iblinkinfo()))
    error = refused("iblinkinfo", text.replace("leaf-0-1", "leaf-0-0").replace("n00002", "n00000"))
    assert "2 devices have that name" in str(error) and "iblinkinfo -l" in str(error)


def test_the_other_end_did_not_answer() -> None:
    text = SMALL.iblinkinfo()
    lines = text.splitlines(keepends=True)
    lost = next(n for n, line in enumerate(lines) if '"n00003 mlx5_0"' in line and "==" in line)
    lines[lost] = lines[lost].partition("==>")[0] + '==>      "Port not available"\n'
    own = next(n for n, line in enumerate(lines) if "CA: n00003" in line)
    fabric = read("iblinkinfo", "".join(lines[:own] + lines[own + 2 :]))
    assert len(fabric.links) == 7 and not fabric.ports_down and not fabric.findings
    assert "1 connected ports whose other end did not answer" in fabric.unread[0]


def test_a_list_of_ports_that_are_down_is_no_fabric() -> None:
    down = '           1    9[  ] ==(                Down/ Polling)==>             [  ] "" ( )\n'
    error = refused("iblinkinfo", f"Switch: 0x00000000000000a1 leaf:\n{down}")
    assert "no port in the dump is connected" in str(error)


def test_an_unused_module_of_a_director_is_no_level() -> None:
    """Its spines are those of the other modules of that director; no cables are below it."""
    text = PODS.ibnetdiscover()
    names = {name: f"S-{number:016x}" for number, name in enumerate(PODS.switches, 0x1000)}
    module = "S-00000000000000ff"
    record = f'\nvendid=0x2c9\ndevid=0x0\nSwitch\t64 "{module}"\t\t# "unused" base port 0 lid 99 lmc 0\n'
    for port, core in enumerate(name for name in PODS.switches if name.startswith("core")):
        record += f'[{port + 1}]\t"{names[core]}"[40] \t\t# "{core}" lid 1 4xHDR\n'
        head = text.index(f'"{names[core]}"\t\t# "{core}" base')
        end = text.index("\n\n", head)
        text = f'{text[:end]}\n[40]\t"{module}"[{port + 1}] \t\t# "unused" lid 99 4xHDR{text[end:]}'
    # Each core of PODS has one spine of every pod below it; here the spines of pod 0 get all four cores.
    fabric = read("ibnetdiscover", text + record)
    assert Counter(switch.level for switch in fabric.switches) == {1: 12, 2: 6, 3: 4, 4: 1}
    one = FatTree(pods=2, leaves=4, nodes=5, spines=1, cores=4)
    text = one.ibnetdiscover()
    names = {name: f"S-{number:016x}" for number, name in enumerate(one.switches, 0x1000)}
    record = f'\nSwitch\t64 "{module}"\t\t# "unused" base port 0 lid 99 lmc 0\n'
    for port in range(4):
        core = f"core-{port}"
        record += f'[{port + 1}]\t"{names[core]}"[40] \t\t# "{core}" lid 1 4xHDR\n'
        end = text.index("\n\n", text.index(f'"{names[core]}"\t\t# "{core}" base'))
        text = f'{text[:end]}\n[40]\t"{module}"[{port + 1}] \t\t# "unused" lid 99 4xHDR{text[end:]}'
    fabric = read("ibnetdiscover", text + record)
    assert Counter(switch.level for switch in fabric.switches) == {1: 8, 2: 3, 3: 4}


def test_a_name_without_a_port_is_damage() -> None:
    """Else the port below a second name would be that device's."""
    text = SMALL.iblinkinfo()
    assert "no port below the name" in str(refused("iblinkinfo", f"CA: n00009 mlx5_0:\n{text}"))
    assert "no port below the name" in str(refused("iblinkinfo", f"{text}Switch: 0x00000000000000ff more:\n"))


def test_ports_without_a_line_are_counted() -> None:
    lines = SMALL.iblinkinfo().splitlines(keepends=True)
    lines.append('                4    9[  ] ==(                Down/ Polling)==>             [  ] "" ( )\n')
    fabric = read("iblinkinfo", "".join(lines))
    assert len(fabric.links) == 8 and {each.ratio for each in fabric.oversubscription} == {None}
    assert fabric.unread == ("6 ports of switches have no line (the first: spine-0-1 port 3): they may have links",)


def test_ports_that_are_down_may_have_been_left_out() -> None:
    """As by `grep -v Down`: nothing is missing then."""
    text = SMALL.iblinkinfo()
    moved = re.sub(r"(?m)^( +1 +)4(\[)", r"\g<1>9\2", text).replace('1    4[  ] "leaf-0-0"', '1    9[  ] "leaf-0-0"')
    fabric = read("iblinkinfo", moved)
    assert "ports of switches have no line" in fabric.unread[0] and fabric.oversubscription[0].ratio == 1.0


def test_a_port_that_is_down_and_listed_twice_is_one() -> None:
    text = SMALL.iblinkinfo()
    down = '           1    9[  ] ==(                Down/ Polling)==>             [  ] "" ( )\n'
    begin = text.index("\n", text.index("Switch:")) + 1
    once, twice = (read("iblinkinfo", text[:begin] + down * n + text[begin:]) for n in (1, 2))
    assert len(once.ports_down) == 1 and twice == once


def test_two_dumps_in_two_files_are_not_the_parts_of_one() -> None:
    other = FatTree(leaves=2, nodes=2, spines=1).ibnetdiscover()
    assert (
        "a dump begins here, and one in part0 on line 2" in refused("ibnetdiscover", SMALL.ibnetdiscover(), other).why
    )
    text = SMALL.ibnetdiscover()
    cut = text.index("\nvendid", len(text) // 2)
    assert links(read("ibnetdiscover", text[:cut], text[cut:])) == links(read("ibnetdiscover", text))


def test_a_compressed_file_is_read() -> None:
    text = SMALL.ibnetdiscover()
    packed = [FabricText("f.gz", gzip.compress(text.encode()))]
    assert links(read_fabric("ibnetdiscover", packed)) == links(read("ibnetdiscover", text))
    with pytest.raises(ParseError, match="the compressed file is damaged"):
        read_fabric("ibnetdiscover", [FabricText("f.gz", packed[0].data[:-9])])
