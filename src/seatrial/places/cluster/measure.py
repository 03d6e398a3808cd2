"""What the links of a cluster give, measured with `link_probe` (native/launch/link_probe.cpp).

A link is measured from its node to another node on the same switch, whose own link is not slower where there is one.
An uplink is measured from all nodes of its leaf to as many nodes of other leaves at once.
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
from seatrial.places.cluster.home import Obtained
from seatrial.places.cluster.namespaces import entering
from seatrial.places.cluster.shape import Node, Shape
from seatrial.places.cluster.tools import ClusterError, Tools, plain_environment
from seatrial.processes.start import Running

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
_LIMIT_S = 60.0


class _Answer(Frozen):
    rate_Bps: float | None
    round_trip_s: float


def measure_links(tools: Tools, probe: Path, shape: Shape, holders: Mapping[str, int]) -> dict[str, Obtained]:
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


def partner_of(shape: Shape, node: Node) -> Node:
    """The node at the other end: on the same switch where possible, with the fastest link, the next in order."""
    others = [other for other in shape.below(node.switch) if other != node]
    others = others or [other for other in shape.nodes if other != node]
    count = len(shape.nodes)
    return min(others, key=lambda other: (-other.link.rate_Bps, (other.number - node.number) % count))


def _elsewhere(shape: Shape, switch: str) -> tuple[Node, ...]:
    """As many nodes on other leaf switches, taken from these in turn."""
    leaves = [shape.below(other.name) for other in shape.switches if other.uplink is not None and other.name != switch]
    each = len(shape.below(switch))
    in_turn = [nodes[k] for k in range(each) for nodes in leaves]
    return tuple(in_turn[:each])


class _Bench(Frozen):
    tools: Tools
    probe: Path
    holders: Mapping[str, int]
    for_s: float

    @contextmanager
    def serving(self, nodes: Sequence[Node]) -> Iterator[None]:
        """Context with a receiver on each node; it ends with this process."""
        with ExitStack() as owner, Path(os.devnull).open("r+b") as null:
            nothing = null.fileno()
            for node in nodes:
                words = [*entering(self.tools, self.holders[node.name]), str(self.probe), "--serve", str(_PORT)]
                server = Running(words, plain_environment(), [nothing] * 3)
                owner.callback(server.wait)
                owner.callback(server.kill)
            yield

    def link(self, node: Node, partner: Node) -> Obtained:
        """Both directions of a node's link, one after the other."""
        (away,), (back,) = self._together([(node, partner)]), self._together([(partner, node)])
        return Obtained(away.rate_Bps, back.rate_Bps, min(away.round_trip_s, back.round_trip_s), (partner.name,))

    def uplink(self, inside: Sequence[Node], outside: Sequence[Node]) -> Obtained:
        """Both directions of an uplink, each with all streams at once."""
        away = self._together(list(zip(inside, outside, strict=True)))
        back = self._together(list(zip(outside, inside, strict=True)))
        return Obtained(
            _sum(away), _sum(back), min(one.round_trip_s for one in (*away, *back)), tuple(n.name for n in outside)
        )

    def _together(self, streams: Sequence[tuple[Node, Node]]) -> list[_Answer]:
        """Send from the first to the second node of each pair, all at the same time. Streams of which one was late are
        sent again; after some tries they have no rate."""
        for margin_s in _MARGINS_S:
            answers, late_s = self._try(streams, margin_s)
            if late_s < _MOST_LATE * self.for_s:
                return answers
        return [replace(one, rate_Bps=None) for one in answers]

    def _try(self, streams: Sequence[tuple[Node, Node]], margin_s: float) -> tuple[list[_Answer], float]:
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
                clients.append((client, out, f"{source.name} to {target.name}"))
            found = [self._answer(*one) for one in clients]
        return [answer for answer, _ in found], max(late_s for _, late_s in found)

    @staticmethod
    def _answer(client: Running, out: int, what: str) -> tuple[_Answer, float]:
        ending = client.wait(_LIMIT_S)
        said = os.pread(out, os.fstat(out).st_size, 0).decode("utf-8", "replace").strip()
        if ending is None or ending.returncode != 0:
            raise ClusterError(f"the link from {what} cannot be measured: {said or 'no answer'}")
        answer = json.loads(said)
        rate_Bps = answer["bytes"] / answer["elapsed_s"] if answer["elapsed_s"] > 0 else None
        return _Answer(rate_Bps, answer["round_trip_s"]), answer["late_s"]

    def _command(self, source: Node, target: Node) -> list[str]:
        inside = entering(self.tools, self.holders[source.name])
        how = ["--to", target.address, "--port", str(_PORT), "--for", f"{self.for_s:g}", "--pings", str(_PINGS)]
        return [*inside, str(self.probe), *how]


def _sum(answers: Sequence[_Answer]) -> float | None:
    rates = [one.rate_Bps for one in answers if one.rate_Bps is not None]
    return sum(rates) if len(rates) == len(answers) else None
