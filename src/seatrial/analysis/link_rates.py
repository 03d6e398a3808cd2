"""Measured rates of links, from copies over them.

A link carries a copy in one direction at a time, so only figures of one direction count, the better of the two:

* the link of a GPU: its best copy to or from the host, alone or not;
* an uplink of several GPUs: the sum of simultaneous copies, or the best of one GPU alone, whichever is higher (not for
  a single GPU, whose own link has the same rate);
* a direct link between two GPUs: the best copy from one to the other with peer access; for links from a GPU to
  switches, its best copy to any other GPU, divided in proportion to their capabilities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from seatrial.analysis.device_copies import WORDS, HostCopy, PeerRates, Seen, host_copies, peer_rates
from seatrial.model.benchmark.parameter import Value
from seatrial.model.benchmark.role import Direction, Role
from seatrial.model.machine.fact import Fact, FactKind
from seatrial.model.machine.links import PCIE, direct_links, faces_down
from seatrial.model.machine.machine import DeviceKind, Link, Machine
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.spelling import settings

_DIRECT = frozenset({"nvlink", "xgmi", "c2c"})
_THE_DEVICE = frozenset({"backend", "device", "devices", "mode", "optimised", "largest_B", "numa_node"})
"""Settings omitted from the source of a fact about one device."""
_ONE_WAY = (Direction.HOST_TO_DEVICE, Direction.DEVICE_TO_HOST)


def with_link_rates(machine: Machine, results: Sequence[ExperimentResult], seen: Seen) -> Machine:
    """A copy of the machine with measured rates on its links, or the machine itself if there are none."""
    copies = [copy for copy in host_copies(machine, results, seen) if copy.direction in _ONE_WAY]
    peers = [rates for rates in peer_rates(machine, results, seen) if rates.role is Role.PEER_COPY and rates.is_direct]
    if not copies and not peers:
        return machine
    alone = _best_of_each(copies)
    by_pair = _best_of_pairs(peers)
    sums = sums_at_once(copies)
    links = tuple(_with_rate(machine, link, alone, sums, by_pair) for link in machine.links)
    return replace(machine, links=links)


def copy_facts(machine: Machine, results: Sequence[ExperimentResult], seen: Seen) -> Mapping[str, Mapping[str, Fact]]:
    """GPU -> its best copies to and from the host, and both ways at once, as facts."""
    best: dict[tuple[str, str], HostCopy] = {}
    for copy in host_copies(machine, results, seen):
        if copy.device is not None and copy.device.id is not None and not copy.at_once:
            key = copy.device.id, copy.direction
            if key not in best or copy.figure.median > best[key].figure.median:
                best[key] = copy
    found: dict[str, dict[str, Fact]] = {}
    for direction in Direction:
        for (device, own), copy in best.items():
            if own == direction:
                name = f"{WORDS[direction].replace(' ', '_')}_measured"
                found.setdefault(device, {})[name] = measured_fact(copy.figure, copy.result, _THE_DEVICE)
    return found


def measured_fact(figure: FigureResult, result: ExperimentResult, without: frozenset[str] = frozenset()) -> Fact:
    """A figure as a fact, with the experiment behind it; `without` are settings to omit from its source."""
    parameters: Mapping[str, Value] = {**result.experiment.parameters, **figure.point}
    shown = settings({name: value for name, value in parameters.items() if name not in without}, ", ")
    source = f"{result.experiment.benchmark} {figure.name} ({shown}): median of {figure.n_repeats} repeats"
    return Fact(figure.median, source, FactKind.MEASURED, figure.unit, volatile=True)


def sums_at_once(copies: Sequence[HostCopy]) -> list[Mapping[str, float]]:
    """Device -> its rate, for each direction and setting at which several devices copied at once."""
    groups: dict[tuple[object, ...], dict[str, float]] = {}
    for copy in copies:
        if copy.at_once and copy.device is not None and copy.device.id is not None:
            groups.setdefault((copy.result.id, copy.direction, copy.settings), {})[copy.device.id] = copy.figure.median
    return [group for group in groups.values() if len(group) > 1]


def _best_of_each(copies: Sequence[HostCopy]) -> Mapping[str, float]:
    best: dict[str, float] = {}
    for copy in copies:
        if copy.device is not None and copy.device.id is not None:
            best[copy.device.id] = max(copy.figure.median, best.get(copy.device.id, 0.0))
    return best


def _best_of_pairs(peers: Sequence[PeerRates]) -> Mapping[frozenset[str], float]:
    best: dict[frozenset[str], float] = {}
    for rates in peers:
        for (a, b), figure in rates.values.items():
            ends = rates.devices[a].id, rates.devices[b].id
            if a != b and None not in ends:
                pair = frozenset(end for end in ends if end is not None)
                best[pair] = max(figure.median, best.get(pair, 0.0))
    return best


def _with_rate(
    machine: Machine,
    link: Link,
    alone: Mapping[str, float],
    sums: Sequence[Mapping[str, float]],
    by_pair: Mapping[frozenset[str], float],
) -> Link:
    rate = None
    if link.kind == PCIE:
        rate = _rate_to_host(machine, link, alone, sums)
    elif link.kind.lower() in _DIRECT:
        rate = _rate_of_direct(machine, link, alone, by_pair)
    return link if rate is None else replace(link, measured_Bps=rate)


def _rate_to_host(
    machine: Machine, link: Link, alone: Mapping[str, float], sums: Sequence[Mapping[str, float]]
) -> float | None:
    device = machine.device(link.b)
    if device is None:
        return None
    if device.kind is DeviceKind.GPU:
        # Copies of a device with direct links to the processor use those.
        return None if direct_links(machine, device) else alone.get(device.id)
    if faces_down(machine, device):  # the device below has the same link
        return None
    below = [gpu for gpu in alone if _is_below(machine, gpu, link.b)]
    if len(below) < 2:
        return None
    together = (sum(group.get(gpu, 0.0) for gpu in below) for group in sums)
    return max(max(together, default=0.0), *(alone[gpu] for gpu in below))


def _is_below(machine: Machine, device: str, bridge: str) -> bool:
    found = machine.device(device)
    return found is not None and any(above.id == bridge for above in machine.ancestors(found))


def _rate_of_direct(
    machine: Machine, link: Link, alone: Mapping[str, float], by_pair: Mapping[frozenset[str], float]
) -> float | None:
    ends = [machine.device(end) for end in (link.a, link.b)]
    gpus = [end.id for end in ends if end is not None and end.kind is DeviceKind.GPU]
    if len(gpus) == 2:
        return by_pair.get(frozenset(gpus))
    if len(gpus) != 1:
        return None
    (gpu,) = gpus
    is_to_switch = any(end is not None and end.kind is DeviceKind.SWITCH for end in ends)
    if not is_to_switch:
        return alone.get(gpu)
    best = max((rate for pair, rate in by_pair.items() if gpu in pair), default=None)
    share = _share_of_links(machine, link, gpu)
    return None if best is None or share is None else best * share


def _share_of_links(machine: Machine, link: Link, gpu: str) -> float | None:
    """The share of a GPU's links to switches that one link has."""
    switches = {device.id for device in machine.of_kind(DeviceKind.SWITCH)}
    own = [other for other in machine.links if gpu in (other.a, other.b) and {other.a, other.b} & switches]
    rates = [other.capable_Bps or other.trained_Bps or 0.0 for other in own]
    mine = link.capable_Bps or link.trained_Bps
    if mine and all(rates):
        return mine / sum(rates)
    return 1.0 if len(own) == 1 else None
