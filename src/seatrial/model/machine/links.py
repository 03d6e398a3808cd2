"""Links between devices and the processor (the path of one device, and the bandwidth of the paths of several at once);
counters of network links (what each one means, and what happened between two readings); and whether what ranks sent to
other nodes has passed the links of these nodes.

Sources of the counters: InfiniBand Architecture Specification, Volume 1, "Performance management" (PortCounters);
Linux, Documentation/ABI/stable/sysfs-class-infiniband, Documentation/ABI/testing/sysfs-class-net-statistics and
Documentation/networking/snmp_counter.rst; NVIDIA, "Understanding mlx5 Linux counters and status parameters".

MPI libraries that take two nodes for one pass messages through memory; a run like that measures no network. The bytes
that an interface counts include headers and repeated packets, so they cannot be fewer than the payload.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from importlib import resources
from itertools import pairwise

import msgspec.toml

from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import Device, DeviceKind, Link, Machine
from seatrial.model.spelling import show, surrounding

PCIE = "pcie"
_AMD = "1002"
_DIRECT = frozenset({"c2c", "nvlink", "xgmi"})
_ADDRESS = re.compile(r"(?P<domain>[0-9a-f]{4,8}):(?P<rest>[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\Z")


def gpu_at(machine: Machine, address: str) -> Device | None:
    """The GPU at a PCI address as drivers write it (`0000:3B:00.0`, `00000000:3B:00.0`), or None."""
    wanted = pci_address(address)
    if wanted is None:
        return None
    gpus = machine.of_kind(DeviceKind.GPU)
    return next((gpu for gpu in gpus if gpu.pci is not None and pci_address(gpu.pci) == wanted), None)


def pci_address(text: str) -> str | None:
    """The address in lower case with a domain of at least four digits; None if it is not a PCI address."""
    match = _ADDRESS.match(text.strip().lower())
    return None if match is None else f"{int(match['domain'], 16):04x}:{match['rest']}"


def way_up(machine: Machine, device: Device) -> tuple[Link, ...]:
    """The known PCIe links on the path from a device to the processor, its own first."""
    above = _links_by_lower_end(machine)
    return tuple(above[part.id] for part in (device, *machine.ancestors(device)) if part.id in above)


def direct_links(machine: Machine, device: Device) -> tuple[Link, ...]:
    """The links other than PCIe (NVLink-C2C, NVLink of POWER, XGMI) from a device towards the processors."""
    found = []
    for link in machine.links:
        if link.kind.lower() in _DIRECT and device.id in (link.a, link.b):
            other = machine.device(link.b if link.a == device.id else link.a)
            if other is not None and other.kind not in (DeviceKind.GPU, DeviceKind.SWITCH):
                found.append(link)
    return tuple(found)


def carried_together(machine: Machine, devices: Sequence[Device]) -> float | None:
    """The largest total bandwidth of concurrent copies, in B/s per direction: each link on their paths carries at most
    its capable rate. None if the link of one of the devices is unknown."""
    rates = {end: link.capable_Bps for end, link in _links_by_lower_end(machine).items() if not _repeats(machine, end)}
    if any(not rates.get(device.id) for device in devices):
        return None
    below: dict[str, dict[str, None]] = {}
    roots: dict[str, None] = {}
    for device in devices:
        way = [device.id, *(above.id for above in machine.ancestors(device))]
        for lower, upper in pairwise(way):
            below.setdefault(upper, {})[lower] = None
        roots[way[-1]] = None
    return sum(_carried(root, rates, below) for root in roots)


def _repeats(machine: Machine, lower_end: str) -> bool:
    device = machine.device(lower_end)
    return device is not None and faces_down(machine, device)


def _carried(top: str, rates: Mapping[str, float | None], below: Mapping[str, Mapping[str, None]]) -> float:
    """The bandwidth at the upper end of a device's link; iterative, because trees in dumps may be deep."""
    order, stack = [], [top]
    while stack:
        at = stack.pop()
        order.append(at)
        stack += below.get(at, ())
    carried: dict[str, float] = {}
    for at in reversed(order):
        inflow = sum(carried[lower] for lower in below[at]) if at in below else float("inf")
        carried[at] = min(rates.get(at) or float("inf"), inflow)
    return carried[top]


def links_above(machine: Machine) -> dict[str, Link]:
    """Device -> the link above it: each link between a port and what is behind it once, at its lower end.

    A port that faces down describes the same link again, with its own capability only; it counts where the device below
    does not describe it. A device whose parent is unknown has its link, too; links between peers (NVLink, XGMI) are
    none above.
    """
    found: dict[str, Link] = {}
    described = {link.a for link in machine.links}
    for link in machine.links:
        end = machine.device(link.b)
        if end is None or link.kind.lower() in _PEERS or (end.id in described and faces_down(machine, end)):
            continue
        if end.parent == link.a or (end.parent is None and machine.device(link.a) is None):
            found.setdefault(link.b, link)
    return found


_PEERS = frozenset({"nvlink", "xgmi", "c2c"})


def faces_down(machine: Machine, device: Device) -> bool:
    """Whether the link that a bridge describes is the one below it: root ports and downstream ports of switches.

    The device below has the same link, with the capability of both ends. If the port type is unknown, the order is host
    bridge, root port, upstream port, downstream port, ...; a tree that does not begin with a host bridge (NCCL's) has
    no downward ports.
    """
    if device.kind is not DeviceKind.BRIDGE:
        return False
    port_type = device.facts.text("pcie_type")
    if port_type is not None:
        return "Root Port" in port_type or "Downstream" in port_type
    above = [bridge for bridge in machine.ancestors(device) if bridge.kind is DeviceKind.BRIDGE]
    return bool(above) and _is_host_bridge(above[-1]) and len(above) % 2 == 1


def _is_host_bridge(bridge: Device) -> bool:
    return bridge.pci is not None and bridge.pci.count(":") == 1


def paths_are_known(machine: Machine, devices: Sequence[Device]) -> bool:
    """Whether the graph shows all paths of copies, and no links that a hypervisor emulates: processors of other
    architectures, and AMD's with AMD GPUs, have their own faster links."""
    is_plain = machine.facts.text("architecture") == "x86_64"
    is_amd = any(device.facts.text("vendor_id") == _AMD for device in devices)
    return is_plain and not is_amd and surrounding(machine.facts, "hypervisor") is None


def narrowest(links: Sequence[Link]) -> Link | None:
    """The link with the lowest capable rate, the first of equals; None if no rate is known."""
    known = [link for link in links if link.capable_Bps]
    return min(known, key=lambda link: link.capable_Bps or 0.0, default=None)


def meeting_ways(machine: Machine, a: Device, b: Device) -> tuple[Link, ...]:
    """The PCIe links on the path from one device to another: up to the first bridge above both, or, if there is none,
    up to the root from each."""
    above_b = {part.id for part in machine.ancestors(b)}
    meeting = next((part.id for part in machine.ancestors(a) if part.id in above_b), None)
    return (*_until(machine, a, meeting), *_until(machine, b, meeting))


def _until(machine: Machine, device: Device, meeting: str | None) -> list[Link]:
    links = _links_by_lower_end(machine)
    found = []
    for part in (device, *machine.ancestors(device)):
        if part.id == meeting:
            break
        if part.id in links:
            found.append(links[part.id])
    return found


def _links_by_lower_end(machine: Machine) -> dict[str, Link]:
    found: dict[str, Link] = {}
    for link in machine.links:
        if link.kind == PCIE:
            found.setdefault(link.b, link)
    return found


Readings = Mapping[str, Mapping[str, int]]
"""Port ("mlx5_0 port 1") -> counter -> value."""


class CounterKind(StrEnum):
    """What a counter that grows is a sign of."""

    ERROR = "error"  # data arrived damaged, or the link failed
    DISCARD = "discard"  # packets were thrown away
    CONGESTION = "congestion"  # packets had to wait
    RETRY = "retry"  # packets were sent again, or arrived out of order


class LinkCounter(Frozen):
    """One counter. `name` is that of sysfs; `other` are names that tools print. `largest` is the value at which the
    counter stops in its classic form (None: it does not stop). `usual` is what raises it without a fault, or ""."""

    name: str
    kind: CounterKind
    meaning: str
    other: tuple[str, ...] = ()
    largest: int | None = None
    usual: str = ""


_COUNTERS = msgspec.toml.decode(
    resources.files(__package__).joinpath("link_counters.toml").read_bytes(), type=dict[str, tuple[LinkCounter, ...]]
)["counter"]

LINK_COUNTERS: Mapping[str, LinkCounter] = {counter.name: counter for counter in _COUNTERS}
"""Name -> counter. Counters of traffic are not here: they mean nothing by themselves."""

LATE_BURSTS = "late_bursts"
"""The counter of what `mpi.pairs` itself saw, which needs no adapter that counts."""

LEAST_LOST = 10
"""A sound link loses so many segments now and then."""


def lost_segments(grew_by: Mapping[str, int]) -> int:
    """How many segments TCP sent again because they were lost, by what its counters grew by. Those that were sent again
    needlessly the receiver reported (D-SACK, RFC 2883)."""
    return max(0, grew_by.get("TcpRetransSegs", 0) - grew_by.get("TcpExtTCPDSACKRecvSegs", 0))


CANONICAL: Mapping[str, str] = {
    other: counter.name for counter in _COUNTERS for other in (counter.name, *counter.other)
}
"""Any name -> the name in LINK_COUNTERS."""


PACKETS_SENT, PACKETS_RECEIVED, WORDS_RECEIVED = "packets_sent", "packets_received", "words_received"
"""Traffic beside the counters of a tool, a scale for them; a word has 4 B."""


class CounterChange(Frozen):
    """What a counter did between two readings. `grew_by` is None if that is unknown (`why`)."""

    port: str
    counter: LinkCounter
    grew_by: int | None
    why: str = ""


def counters_between(before: Readings, after: Readings) -> tuple[CounterChange, ...]:
    """The counters that grew between two readings, or of which it is unknown; errors first.

    Counters that only one of the readings has, and names that are not in LINK_COUNTERS, are left out.
    """
    order = list(CounterKind)
    return tuple(sorted(_changes(before, after), key=lambda change: (order.index(change.counter.kind), change.port)))


def _changes(before: Readings, after: Readings) -> Iterator[CounterChange]:
    for port, counters in after.items():
        for name, value in counters.items():
            counter = LINK_COUNTERS.get(CANONICAL.get(name, ""))
            earlier = before.get(port, {}).get(name)
            if counter is None or earlier is None:
                continue
            if value < earlier:
                yield CounterChange(port, counter, None, "the counter was reset, or the link restarted, in between")
            elif value == earlier == counter.largest:
                yield CounterChange(port, counter, None, f"the counter stopped at its largest value, {value}")
            elif value > earlier:
                yield CounterChange(port, counter, value - earlier)


class NodeTraffic(Frozen):
    """Bytes that a node sends and receives: counted on its interfaces, or the payload that its ranks exchange with
    those on other nodes."""

    sent_B: int
    received_B: int


def too_little(least_B: Mapping[str, float], counted: Mapping[str, NodeTraffic]) -> str:
    """Why nodes cannot have exchanged that many bytes, sent and received together, over their links; "" if they can."""
    for node, asked_B in least_B.items():
        seen = counted[node]
        if seen.sent_B < 0 or seen.received_B < 0:
            return f"the interfaces of {node} count fewer bytes than before"
        if (found_B := seen.sent_B + seen.received_B) < asked_B:
            return (
                f"the ranks on {node} sent and received {show(asked_B, 'B')}, but its interfaces counted "
                f"{show(found_B, 'B')}: the rest did not pass the link. The MPI library takes the nodes for one "
                "(they share /dev/shm, System V IPC or the boot id), or uses adapters whose bytes are not counted"
            )
    return ""
