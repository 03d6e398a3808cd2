"""The options of `cluster up`, and the shape that follows from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.errors import UsageError
from seatrial.places.cluster.namespaces import has_planted
from seatrial.places.cluster.network import head_lines, losses, partner_of, shaping
from seatrial.places.cluster.shape import (
    HEAD_ADDRESS,
    ClusterShape,
    ClusterState,
    Home,
    LinkShape,
    Obtained,
    read_link,
    read_wanted,
    shape_of,
    sharing_cpus,
)
from seatrial.places.cluster.up import configuration, topology
from seatrial.places.owned_folder import write_state


def made(nodes: int | None = None, link: str = "1gbit", cpus: int = 4, **options: object) -> ClusterShape:
    return shape_of(read_wanted(nodes, link, **options), range(cpus))


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("10gbit", LinkShape(1.25e9)),
        ("500mbit", LinkShape(62.5e6)),
        ("2.5Gbit,50us", LinkShape(312.5e6, 50e-6)),
        ("1tbit, 1ms", LinkShape(1.25e11, 1e-3)),
    ],
)
def test_a_link_has_a_rate_and_a_delay(text: str, link: LinkShape) -> None:
    found = read_link(text)
    assert (found.rate_Bps, found.delay_s) == pytest.approx((link.rate_Bps, link.delay_s))


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"link": "10"}, "10gbit or 500mbit"),
        ({"link": "10GB/s"}, "10gbit or 500mbit"),
        ({"link": "1kbit"}, "1mbit to 1tbit"),
        ({"link": "1gbit,50"}, "50"),
        ({"link": "1gbit,2s"}, "0 to 1s"),
        ({"nodes": None}, "--nodes N"),
        ({"nodes": 513}, "1 to 512"),
        ({"nodes": 3, "tree": "2x2,4:1"}, "leave out --nodes"),
        ({"nodes": None, "tree": "2x2"}, "LEAVESxNODES,RATIO"),
        ({"nodes": None, "tree": "1x4,2:1"}, "2 leaf switches"),
        ({"nodes": None, "tree": "2x2,0:1"}, "--tree"),
        ({"changed": ["5:link=1gbit"]}, "1 to 4"),
        ({"changed": ["2"]}, "2:link=5gbit"),
        ({"changed": ["2:lnk=1gbit"]}, "did you mean link?"),
        ({"changed": ["2:link="]}, "link=VALUE"),
        ({"changed": ["2:quota=80%,quota=70%"]}, "given twice"),
        ({"changed": ["2:quota=80%", "2:cpus=1"]}, "given twice"),
        ({"changed": ["2:quota=80"]}, "80% or 0.8"),
        ({"changed": ["2:loss=2"]}, "1% or 0.01"),
        ({"changed": ["2:loss-out=0"]}, "1% or 0.01"),
        ({"changed": ["2:clock=3"]}, "3"),
        ({"changed": ["2:clock=-300s"]}, "240 is the most"),
        ({"changed": ["2:drift=1"]}, "1% or 500ppm"),
        ({"changed": ["2:files=-1ms"]}, "20ms"),
        ({"changed": ["2:memory=1MiB"]}, "64MiB"),
        ({"changed": ["2:cpus=0"]}, "cpus cannot be '0'"),
        ({"changed": ["2:cpus=9"]}, "this machine has 4"),
        ({"uplinks": ["1:uplink=1gbit"]}, "no leaf switches without --tree"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(options: dict[str, object], word: str) -> None:
    with pytest.raises(UsageError) as error:
        made(**{"nodes": 4, **options})
    assert word in str(error.value)


def test_nodes_share_the_cpus_of_the_machine() -> None:
    assert [node.cpus for node in made(2).nodes] == [(0, 1), (2, 3)]
    assert [node.cpus for node in made(8).nodes] == [(0,), (1,), (2,), (3,)] * 2
    assert [node.cpus for node in made(2, changed=["2:cpus=3"]).nodes] == [(0, 1), (0, 2, 3)]


def test_one_node_differs_as_asked() -> None:
    shape = made(4, "10gbit", changed=["2:link=5gbit,quota=80%,memory=4GiB", "n3:delay=1ms,loss=1%"])
    assert [node.link for node in shape.nodes] == [
        LinkShape(1.25e9), LinkShape(0.625e9), LinkShape(1.25e9, 1e-3), LinkShape(1.25e9),
    ]  # fmt: skip
    assert (shape.nodes[1].quota, shape.nodes[1].memory_B) == (0.8, 4 << 30)
    assert shape.nodes[0].quota is shape.nodes[0].memory_B is shape.nodes[0].loss is None
    assert shape.nodes[2].loss == 0.01
    assert [partner_of(shape, node).name for node in shape.nodes] == ["n4", "n4", "n4", "n1"], "no slower or lossy link"


def test_packets_are_lost_where_they_arrive_and_slurm_reaches_all_nodes() -> None:
    """A node's own filter does not lose what it sends: TCP keeps it in its queue."""
    shape = made(3, changed=["2:loss=1%,loss-out=5%", "3:loss-out=100%"])
    lost = [" ".join(words) for words in losses(shape.nodes[1], shape)]
    drop = "iptables -A INPUT -i eth0"
    assert lost == [
        f"{drop} ! -s {HEAD_ADDRESS} -m statistic --mode random --probability 0.010000000 -j DROP",
        f"{drop} -s 10.101.0.3 -j DROP",
    ]
    (first, _) = losses(shape.nodes[0], shape)
    assert "10.101.0.2" in first and "0.050000000" in first
    assert partner_of(shape, shape.nodes[1]).name == "n1", "links are measured with a node that loses nothing"


def test_a_node_has_another_clock_and_slow_files() -> None:
    node = made(2, changed=["2:clock=-1.5s,drift=-500ppm,files=20ms"]).nodes[1]
    assert (node.clock_s, node.drift, node.files_s) == (-1.5, -0.0005, 0.02) and has_planted(node)
    assert not has_planted(made(2, changed=["2:loss=1%"]).nodes[1])


def test_uplinks_have_the_rate_of_their_nodes_over_the_ratio() -> None:
    shape = made(None, "10gbit", tree="2x4,4:1", uplinks=["2:uplink=2gbit"])
    assert [(switch.name, switch.above) for switch in shape.switches] == [
        ("spine", None), ("leaf1", "spine"), ("leaf2", "spine"),
    ]  # fmt: skip
    assert [switch.uplink for switch in shape.switches] == [None, LinkShape(1.25e9), LinkShape(0.25e9)]
    assert [node.switch for node in shape.nodes] == ["leaf1"] * 4 + ["leaf2"] * 4


def test_slurm_knows_nodes_and_switches() -> None:
    shape = made(None, tree="2x2,4:1", changed=["2:memory=4GiB,cpus=2"])
    lines = configuration(shape, Path("/run/x"), 16 << 30).splitlines()
    assert "NodeName=n2 NodeAddr=10.101.0.2 CPUs=2 RealMemory=4096 State=UNKNOWN" in lines
    assert "NodeName=n3 NodeAddr=10.101.0.3 CPUs=1 RealMemory=16384 State=UNKNOWN" in lines
    assert topology(shape).splitlines() == [
        "SwitchName=spine Switches=leaf1,leaf2",
        "SwitchName=leaf1 Nodes=n1,n2",
        "SwitchName=leaf2 Nodes=n3,n4",
    ]


def test_both_ends_of_every_link_are_shaped() -> None:
    shape = made(None, tree="2x2,4:1")
    lines = list(head_lines(shape, {f"n{k}": 100 + k for k in range(1, 5)}))
    assert "link add name port3 type veth peer name eth0 netns 103" in lines
    assert "link set dev leaf2-down master spine up" in lines
    assert list(shaping("eth0", LinkShape(1.25e8, 50e-6))) == [
        "qdisc add dev eth0 root handle 1: tbf rate 1000000000bit burst 25000 limit 2531250",
        "qdisc add dev eth0 parent 1:1 handle 2: netem delay 50.000us limit 1000000",
    ]


def test_a_state_is_read_back(tmp_path: Path) -> None:
    shape = made(None, tree="2x2,4:1", changed=["1:quota=50%"])
    state = ClusterState("x", shape, {"n1": {"slurmd": 7}}, {"n1": Obtained(1.0, None, 2.0, ("n2",))})
    write_state(tmp_path, state)
    assert Home(tmp_path).read_state() == state


def test_nodes_that_have_a_cpu_in_common_are_known() -> None:
    shape = made(4, cpus=2)
    assert sharing_cpus(shape, {"n1", "n2", "n3", "n4"}) == (("n1", "n3"), ("n2", "n4"))
    assert sharing_cpus(shape, {"n1", "n2"}) == () == sharing_cpus(made(4, cpus=4), {"n1", "n2", "n3", "n4"})


def test_the_addresses_of_many_nodes_are_distinct() -> None:
    addresses = {node.address for node in made(512).nodes}
    assert len(addresses) == 512 and "10.101.2.0" in addresses
