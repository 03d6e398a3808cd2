"""Links and switches of a cluster, as commands for ip(8) and tc(8).

Switches are bridges in the namespaces of the head, so no interface of the machine itself is touched. A link is a pair
of virtual Ethernet interfaces; what each end sends is shaped by a token bucket (tc-tbf(8)), and delayed by tc-netem(8).

The nodes' links of a running cluster may have other rates for as long as something is measured; those that the cluster
was made with come back afterwards. While they are changed, a file in the cluster's folder says so: after a kill,
whoever changes them next, or asks, knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from seatrial.places.cluster.home import FOLDER, Home, State
from seatrial.places.cluster.namespaces import entering
from seatrial.places.cluster.shape import HEAD, HEAD_ADDRESS, PREFIX_BITS, Link, Shape
from seatrial.places.cluster.tools import ClusterError, Tools, find_tools, need_root
from seatrial.places.cluster.wanted import read_rate

INTERFACE = "eth0"
"""The interface of each node."""
_BURST_S = 200e-6
_LEAST_BURST_B = 8192
_LARGEST_SEGMENT_B = 65536
_QUEUE_S = 20e-3
_MOST_QUEUE_B = 1 << 30
_DELAYED_PACKETS = 1_000_000


def make_network(tools: Tools, shape: Shape, holders: Mapping[str, int]) -> None:
    """Make all links and switches. `holders`: node -> a process in its namespaces. Raises ClusterError."""
    head = entering(tools, holders[HEAD])
    if any(node.link.delay_s for node in shape.nodes):
        _need_delays(tools, head)
    tools.run([*head, "ip", "-batch", "-"], _text(head_lines(shape, holders)))
    for node in shape.nodes:
        inside = entering(tools, holders[node.name])
        tools.run([*inside, "ip", "-batch", "-"], _text(node_lines(node.address)))
        _shape(tools, inside, _text(shaping(INTERFACE, node.link)), node.link)
    for end, link in head_ends(shape):
        _shape(tools, head, _text(shaping(end, link)), link)


def head_lines(shape: Shape, holders: Mapping[str, int]) -> Iterator[str]:
    """The lines of ip(8) in the head's namespaces: bridges, uplinks, the nodes' links, and the head's address."""
    yield "link set dev lo up"
    for switch in shape.switches:
        yield f"link add name {switch.name} type bridge mcast_snooping 0"
        yield f"link set dev {switch.name} up"
    for switch in shape.switches:
        if switch.above is not None:
            up, down = f"{switch.name}-up", f"{switch.name}-down"
            yield f"link add name {up} type veth peer name {down}"
            yield f"link set dev {up} master {switch.name} up"
            yield f"link set dev {down} master {switch.above} up"
    for node in shape.nodes:
        yield f"link add name port{node.number} type veth peer name {INTERFACE} netns {holders[node.name]}"
        yield f"link set dev port{node.number} master {node.switch} up"
    yield f"addr add {HEAD_ADDRESS}/{PREFIX_BITS} dev {shape.switches[0].name}"


def node_lines(address: str) -> Iterator[str]:
    """The lines of ip(8) in a node's namespaces."""
    yield "link set dev lo up"
    yield f"addr add {address}/{PREFIX_BITS} broadcast + dev {INTERFACE}"
    yield f"link set dev {INTERFACE} up"


def head_ends(shape: Shape) -> Iterator[tuple[str, Link]]:
    """Interface in the head's namespaces -> the link whose end it is."""
    for node in shape.nodes:
        yield f"port{node.number}", node.link
    for switch in shape.switches:
        if switch.uplink is not None:
            yield f"{switch.name}-up", switch.uplink
            yield f"{switch.name}-down", switch.uplink


def shaping(interface: str, link: Link) -> Iterator[str]:
    """The lines of tc(8) that shape what an interface sends.

    The bucket holds 200 us of the rate: less costs a wake-up for every few packets, which a kernel does not keep up
    with at 10 Gbit/s; more would let a message of that size pass at once.
    """
    burst_B = burst(link)
    queue_B = min(_MOST_QUEUE_B, int(link.rate_Bps * (_QUEUE_S + link.delay_s)) + burst_B)
    yield (
        f"qdisc add dev {interface} root handle 1: tbf rate {round(link.rate_Bps * 8)}bit burst {burst_B} "
        f"limit {queue_B}"
    )
    if link.delay_s:
        delay = f"delay {link.delay_s * 1e6:.3f}us limit {_DELAYED_PACKETS}"
        yield f"qdisc add dev {interface} parent 1:1 handle 2: netem {delay}"


def reshape(tools: Tools, inside: list[str], interface: str, link: Link) -> None:
    """Give an interface that is shaped already another rate; its delay stays. Raises ClusterError."""
    line = next(shaping(interface, link)).replace("qdisc add", "qdisc change", 1)
    _shape(tools, inside, f"{line}\n", link)


def burst(link: Link) -> int:
    """The size of a link's token bucket in bytes."""
    return max(_LEAST_BURST_B, round(link.rate_Bps * _BURST_S))


def _shape(tools: Tools, inside: list[str], lines: str, link: Link) -> None:
    """Run tc(8). Packets larger than half a bucket would have to be cut one by one."""
    segment_B = min(_LARGEST_SEGMENT_B, burst(link) // 2)
    interface = lines.split()[3]
    tools.run([*inside, "ip", "link", "set", "dev", interface, "gso_max_size", str(segment_B)])
    tools.run([*inside, "tc", "-batch", "-"], lines)


def _need_delays(tools: Tools, inside: list[str]) -> None:
    """Raises ClusterError if the kernel cannot delay packets."""
    done = tools.try_([*inside, "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1us"])
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise ClusterError(
            f"a delay cannot be had: this kernel has no netem (tc: {said})",
            "leave the delay out, or use a kernel with CONFIG_NET_SCH_NETEM (modprobe sch_netem)",
        )
    tools.run([*inside, "tc", "qdisc", "del", "dev", "lo", "root"])


def _text(lines: Iterator[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


_CHANGED = "links-changed"


@contextmanager
def links_at(rate: str | None, variables: Mapping[str, str]) -> Iterator[None]:
    """The links of all nodes at this rate ("1gbit") within the block; None: as the cluster was made, also where a
    killed process had changed them.

    Raises ClusterError outside of `seatrial cluster exec` and its jobs, and where links cannot be changed; UsageError
    for an invalid rate.
    """
    folder = variables.get(FOLDER)
    mark = None if folder is None else Path(folder) / _CHANGED
    if rate is None and (mark is None or not mark.exists()):
        yield
        return
    state = None if folder is None else Home(Path(folder)).read_state()
    if mark is None or state is None:
        todo = "run inside: seatrial cluster exec -- salloc -N 2 seatrial run ..."
        raise ClusterError("cluster.link is set, but this process is on no node of a cluster", todo)
    need_root("changing the links of a cluster")
    if rate is None:
        _set(state, None)
        mark.unlink(missing_ok=True)
        yield
        return
    rate_Bps = read_rate(rate)
    mark.write_text(f"{rate}\n")
    try:
        _set(state, rate_Bps)
        yield
    finally:
        _set(state, None)
        mark.unlink(missing_ok=True)


def _set(state: State, rate_Bps: float | None) -> None:
    """Set both ends of each node's link, with its own delay."""
    tools = find_tools()
    head = entering(tools, state.processes[HEAD]["namespaces"])
    for node in state.shape.nodes:
        link: Link = node.link if rate_Bps is None else replace(node.link, rate_Bps=rate_Bps)
        inside = entering(tools, state.processes[node.name]["namespaces"])
        reshape(tools, inside, INTERFACE, link)
        reshape(tools, head, f"port{node.number}", link)
