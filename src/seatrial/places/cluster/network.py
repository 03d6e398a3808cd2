"""Links and switches of a cluster, as commands for ip(8) and tc(8), and what the links give.

Switches are bridges in the namespaces of the head, so no interface of the machine itself is touched. A link is a pair
of virtual Ethernet interfaces; what each end sends is shaped by a token bucket (tc-tbf(8)), and delayed by tc-netem(8).

The nodes' links of a running cluster may have other rates for as long as something is measured; those that the cluster
was made with come back afterwards. While they are changed, a file in the cluster's folder says so: after a kill,
whoever changes them next, or asks, knows.

What links give is measured with `link_probe` (native/launch/link_probe.cpp): a link from its node to another node on
the same switch, whose own link is not slower where there is one; an uplink from all nodes of its leaf to as many nodes
of other leaves at once.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgspec.structs import replace

from seatrial.model.frozen import Frozen
from seatrial.places.cluster.namespaces import ClusterError, Tools, entering, find_tools, need_root, plain_environment
from seatrial.places.cluster.shape import (
    FOLDER,
    HEAD,
    HEAD_ADDRESS,
    PREFIX_BITS,
    ClusterShape,
    ClusterState,
    Home,
    LinkShape,
    NodeShape,
    Obtained,
    read_rate,
)
from seatrial.processes.start import Running

INTERFACE = "eth0"
"""The interface of each node."""
_BURST_S = 200e-6
_LEAST_BURST_B = 8192
_LARGEST_SEGMENT_B = 65536
_QUEUE_S = 20e-3
_MOST_QUEUE_B = 1 << 30
_DELAYED_PACKETS = 1_000_000


def make_network(tools: Tools, shape: ClusterShape, holders: Mapping[str, int]) -> None:
    """Make all links and switches. `holders`: node -> a process in its namespaces. Raises ClusterError."""
    head = entering(tools, holders[HEAD])
    if any(node.link.delay_s for node in shape.nodes):
        _need_delays(tools, head)
    tools.run([*head, "ip", "-batch", "-"], _text(head_lines(shape, holders)))
    for node in shape.nodes:
        inside = entering(tools, holders[node.name])
        tools.run([*inside, "ip", "-batch", "-"], _text(node_lines(node.address)))
        _shape(tools, inside, _text(shaping(INTERFACE, node.link)), node.link)
        _lose(tools, inside, node, shape)
    for end, link in head_ends(shape):
        _shape(tools, head, _text(shaping(end, link)), link)


def head_lines(shape: ClusterShape, holders: Mapping[str, int]) -> Iterator[str]:
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


def head_ends(shape: ClusterShape) -> Iterator[tuple[str, LinkShape]]:
    """Interface in the head's namespaces -> the link whose end it is."""
    for node in shape.nodes:
        yield f"port{node.number}", node.link
    for switch in shape.switches:
        if switch.uplink is not None:
            yield f"{switch.name}-up", switch.uplink
            yield f"{switch.name}-down", switch.uplink


def shaping(interface: str, link: LinkShape) -> Iterator[str]:
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


def reshape(tools: Tools, inside: list[str], interface: str, link: LinkShape) -> None:
    """Give an interface that is shaped already another rate; its delay stays. Raises ClusterError."""
    line = next(shaping(interface, link)).replace("qdisc add", "qdisc change", 1)
    _shape(tools, inside, f"{line}\n", link)


def burst(link: LinkShape) -> int:
    """The size of a link's token bucket in bytes."""
    return max(_LEAST_BURST_B, round(link.rate_Bps * _BURST_S))


def _shape(tools: Tools, inside: list[str], lines: str, link: LinkShape) -> None:
    """Run tc(8). Packets larger than half a bucket would have to be cut one by one."""
    segment_B = min(_LARGEST_SEGMENT_B, burst(link) // 2)
    interface = lines.split()[3]
    tools.run([*inside, "ip", "link", "set", "dev", interface, "gso_max_size", str(segment_B)])
    tools.run([*inside, "tc", "-batch", "-"], lines)


def losses(node: NodeShape, shape: ClusterShape) -> Iterator[list[str]]:
    """The arguments of iptables(8) on a node for what is lost on the way to it: by its own loss of what arrives, and by
    that of the others of what they send, which their own filter would not drop but keep. Slurm's controller reaches all
    nodes, as over a network for administration."""
    lost: list[tuple[tuple[str, ...], float | None]] = [(("!", "-s", HEAD_ADDRESS), node.loss)]
    lost += [(("-s", other.address), other.loss_out) for other in shape.nodes if other.number != node.number]
    for source, share in lost:
        if share:
            at_random = ("-m", "statistic", "--mode", "random", "--probability", f"{share:.9f}")
            yield [
                "iptables",
                "-A",
                "INPUT",
                "-i",
                INTERFACE,
                *source,
                *(at_random if share < 1.0 else ()),
                "-j",
                "DROP",
            ]


def _lose(tools: Tools, inside: list[str], node: NodeShape, shape: ClusterShape) -> None:
    """Drop shares of the packets that arrive. Raises ClusterError."""
    try:
        for words in losses(node, shape):
            tools.run([*inside, *words])
    except ClusterError as error:
        raise ClusterError(
            f"packets cannot be lost here: {error.message}",
            "it needs iptables(8), and a kernel with CONFIG_NETFILTER_XT_MATCH_STATISTIC",
        ) from error


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


def _set(state: ClusterState, rate_Bps: float | None) -> None:
    """Set both ends of each node's link, with its own delay."""
    tools = find_tools()
    head = entering(tools, state.processes[HEAD]["namespaces"])
    for node in state.shape.nodes:
        link: LinkShape = node.link if rate_Bps is None else replace(node.link, rate_Bps=rate_Bps)
        reshape(tools, entering(tools, state.processes[node.name]["namespaces"]), INTERFACE, link)
        reshape(tools, head, f"port{node.number}", link)


_PORT = 5201
_PINGS = 200
_MARGINS_S = (0.2, 0.5, 2.0)
"""The times that several streams have to begin together, one try after the other."""
_MOST_LATE = 0.05
"""Of the time that is sent."""
_WHOLE_S = 12.0
"""The time for all links together."""
_LONGEST_S, _SHORTEST_S = 0.15, 0.05
_UPLINK_TIMES = 3
"""Streams that share an uplink lose packets until each has found its rate."""
_LIMIT_S, _LOSSY_LIMIT_S = 60.0, 5.0
"""The time for one stream, and for one of a node that loses packets, which may never come to an end."""


class _Answer(Frozen):
    rate_Bps: float | None = None
    round_trip_s: float | None = None


def measure_links(tools: Tools, probe: Path, shape: ClusterShape, holders: Mapping[str, int]) -> dict[str, Obtained]:
    """Node or leaf switch -> what its link gives; {} for a single node. Raises ClusterError."""
    if len(shape.nodes) < 2:
        return {}
    for_s = min(_LONGEST_S, max(_SHORTEST_S, _WHOLE_S / (2 * len(shape.nodes))))
    bench = _Bench(tools, probe, holders, for_s)
    longer = replace(bench, for_s=_UPLINK_TIMES * for_s)
    with bench.serving(shape.nodes):
        found = {node.name: bench.link(node, partner_of(shape, node)) for node in shape.nodes}
        for switch in shape.switches:
            if switch.uplink is not None:
                found[switch.name] = longer.uplink(shape.below(switch.name), _elsewhere(shape, switch.name))
    return found


def partner_of(shape: ClusterShape, node: NodeShape) -> NodeShape:
    """The node at the other end: on the same switch where possible, with the fastest link, the next in order."""
    others = [other for other in shape.below(node.switch) if other != node]
    others = others or [other for other in shape.nodes if other != node]
    count = len(shape.nodes)
    return min(others, key=lambda other: (_loses(other), -other.link.rate_Bps, (other.number - node.number) % count))


def _loses(node: NodeShape) -> bool:
    return bool(node.loss or node.loss_out)


def _elsewhere(shape: ClusterShape, switch: str) -> tuple[NodeShape, ...]:
    """As many nodes on other leaf switches, taken from these in turn."""
    leaves = [shape.below(other.name) for other in shape.switches if other.uplink is not None and other.name != switch]
    each = len(shape.below(switch))
    return tuple([nodes[k] for k in range(each) for nodes in leaves][:each])


class _Bench(Frozen):
    tools: Tools
    probe: Path
    holders: Mapping[str, int]
    for_s: float

    @contextmanager
    def serving(self, nodes: Sequence[NodeShape]) -> Iterator[None]:
        """Context with a receiver on each node; it ends with this process."""
        with ExitStack() as owner, Path(os.devnull).open("r+b") as null:
            nothing = null.fileno()
            for node in nodes:
                words = [*entering(self.tools, self.holders[node.name]), str(self.probe), "--serve", str(_PORT)]
                server = Running(words, plain_environment(), [nothing] * 3)
                owner.callback(server.wait)
                owner.callback(server.kill)
            yield

    def link(self, node: NodeShape, partner: NodeShape) -> Obtained:
        """Both directions of a node's link, one after the other."""
        (away,), (back,) = self._together([(node, partner)]), self._together([(partner, node)])
        return Obtained(away.rate_Bps, back.rate_Bps, _shortest(away, back), (partner.name,))

    def uplink(self, inside: Sequence[NodeShape], outside: Sequence[NodeShape]) -> Obtained:
        """Both directions of an uplink, each with all streams at once."""
        away = self._together(list(zip(inside, outside, strict=True)))
        back = self._together(list(zip(outside, inside, strict=True)))
        return Obtained(_sum(away), _sum(back), _shortest(*away, *back), tuple(n.name for n in outside))

    def _together(self, streams: Sequence[tuple[NodeShape, NodeShape]]) -> list[_Answer]:
        """Send from the first to the second node of each pair, all at the same time. Streams of which one was late are
        sent again; after some tries they have no rate."""
        for margin_s in _MARGINS_S:
            answers, late_s = self._try(streams, margin_s)
            if late_s < _MOST_LATE * self.for_s:
                return answers
        return [replace(one, rate_Bps=None) for one in answers]

    def _try(self, streams: Sequence[tuple[NodeShape, NodeShape]], margin_s: float) -> tuple[list[_Answer], float]:
        """The answers, and how late the latest stream began."""
        at_s = time.monotonic() + self.for_s + margin_s if len(streams) > 1 else 0.0
        with ExitStack() as owner:
            null = owner.enter_context(Path(os.devnull).open("rb"))
            clients = []
            for source, target in streams:
                out = os.memfd_create("link_probe")
                owner.callback(os.close, out)
                client = Running(
                    [*self._command(source, target), "--at", f"{at_s:.6f}"],
                    plain_environment(),
                    [null.fileno(), out, out],
                )
                owner.callback(client.wait)
                owner.callback(client.kill)
                clients.append((client, out, source, target))
            found = [self._answer(*one) for one in clients]
        return [answer for answer, _ in found], max(late_s for _, late_s in found)

    @staticmethod
    def _answer(client: Running, out: int, source: NodeShape, target: NodeShape) -> tuple[_Answer, float]:
        is_lossy = _loses(source) or _loses(target)
        ending = client.wait(_LOSSY_LIMIT_S if is_lossy else _LIMIT_S)
        said = os.pread(out, os.fstat(out).st_size, 0).decode("utf-8", "replace").strip()
        if is_lossy and (ending is None or ending.returncode != 0):
            return _Answer(), 0.0
        if ending is None or ending.returncode != 0:
            what = f"{source.name} to {target.name}"
            raise ClusterError(f"the link from {what} cannot be measured: {said or 'no answer'}")
        answer = json.loads(said)
        rate_Bps = answer["bytes"] / answer["elapsed_s"] if answer["elapsed_s"] > 0 else None
        return _Answer(rate_Bps, answer["round_trip_s"]), answer["late_s"]

    def _command(self, source: NodeShape, target: NodeShape) -> list[str]:
        inside = entering(self.tools, self.holders[source.name])
        how = ["--to", target.address, "--port", str(_PORT), "--for", f"{self.for_s:g}", "--pings", str(_PINGS)]
        return [*inside, str(self.probe), *how]


def _shortest(*answers: _Answer) -> float | None:
    return min((one.round_trip_s for one in answers if one.round_trip_s is not None), default=None)


def _sum(answers: Sequence[_Answer]) -> float | None:
    rates = [one.rate_Bps for one in answers if one.rate_Bps is not None]
    return sum(rates) if len(rates) == len(answers) else None
