"""Rules about the ports of adapters: InfiniBand width, rate beside like adapters, PCIe below the port's rate, and
counters of their links: those that grew while benchmarks ran, and those of saved outputs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from seatrial.analysis.grouped import grouped
from seatrial.analysis.rules.devices import fabric_adapters, spans
from seatrial.analysis.rules.finding import Case, Subject, cite, listed, note, rule, warning
from seatrial.machine.counters import counter_findings
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fact import Fact, Finding
from seatrial.model.machine.links import (
    LEAST_LOST,
    LINK_COUNTERS,
    PACKETS_RECEIVED,
    PACKETS_SENT,
    CounterKind,
    lost_segments,
    narrowest,
    way_up,
)
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.spelling import show, show_percent

_RATE = re.compile(r"(port\d+_)?rate\Z")
_FULL_WIDTH = 4
_SPLIT = frozenset({"HDR", "NDR", "XDR"})
"""Of these speeds, two lanes are a product (HDR100, NDR200), not a fault."""
_LESS = 0.99


class _Port(Frozen):
    """An active port; `number` is "" for the first."""

    adapter: Device
    number: str
    rate: float
    fact: Fact

    @property
    def name(self) -> str:
        """Such as mlx5_0, or mlx5_0 port 2."""
        return f"{self.adapter.id} port {self.number}" if self.number else self.adapter.id

    def said(self, fact: str) -> str | None:
        """The text of a fact about this port."""
        return self.adapter.facts.text(f"port{self.number}_{fact}" if self.number else fact)


@rule(Subject.PORTS)
def port_narrow(case: Case) -> Iterator[Finding]:
    """Fires if an active InfiniBand port runs on fewer lanes than its kind of link has."""
    narrow: dict[tuple[int, float], list[_Port]] = {}
    for port in _ports(case.machine):
        width = port.said("link_width")
        if (port.said("link_layer") or "").lower() != "infiniband" or width is None or not width.isdecimal():
            continue
        is_split = int(width) == 2 and (port.said("link_speed") or "") in _SPLIT
        if 0 < int(width) < _FULL_WIDTH and not is_split:
            narrow.setdefault((int(width), port.rate), []).append(port)
    for (lanes, rate), ports in narrow.items():
        yield warning(
            "fabric-port-narrow",
            devices=(port.adapter.id for port in ports),
            observation=f"The link of {spans(port.name for port in ports)} is {lanes}X wide: {show(rate, 'B/s')} "
            f"instead of {show(rate * _FULL_WIDTH / lanes, 'B/s')} with {_FULL_WIDTH}X.",
            diagnosis="InfiniBand links have four lanes; with a bad cable or contact, they train with fewer. The rate "
            "is lower by the same share, and errors on the remaining lanes are likely.",
            remedy="Look for errors with `perfquery` or `ibqueryerrors`, reseat or replace the cable at both ends, and "
            "check the width with `ibstat` and `iblinkinfo`",
            evidence=listed(cite(f"{port.name} rate", port.fact) for port in ports) + f", {lanes}X",
            loss=1 - lanes / _FULL_WIDTH,
        )


_STATE = re.compile(r"(?:port(\d+)_)?state\Z")
_WAITING = frozenset({"init", "initializing", "armed"})
"""A link is trained, but its subnet manager has not made it active (InfiniBand Architecture Specification, volume 1,
section 7.2.7)."""


@rule(Subject.PORTS)
def port_not_active(case: Case) -> Iterator[Finding]:
    """Fires if an InfiniBand port has no link, or has one that no subnet manager has activated."""
    found: dict[tuple[str, str, bool], list[tuple[str, Fact]]] = {}
    for adapter in case.machine.of_kind(DeviceKind.NIC):
        ports = {(match[1] or ""): name for name in adapter.facts if (match := _STATE.match(name))}
        states = {number: (adapter.facts.text(name) or "").lower() for number, name in ports.items()}
        has_active = "active" in states.values()
        for number, name in ports.items():
            physical = adapter.facts.text(f"port{number}_physical_state" if number else "physical_state")
            layer = adapter.facts.text(f"port{number}_link_layer" if number else "link_layer")
            fact = adapter.facts.best(name)
            if (
                physical is None
                or (layer or "InfiniBand") != "InfiniBand"
                or states[number] == "active"
                or fact is None
            ):
                continue
            named = f"{adapter.id} port {number}" if number else adapter.id
            found.setdefault((states[number], physical, has_active), []).append((named, fact))
    for (state, physical, has_active), cited in found.items():
        ports_named, is_one = spans(name for name, _ in cited), len(cited) == 1
        evidence = (*(cite(f"{name} state", fact) for name, fact in cited), f"physical state {physical}")
        if state in _WAITING:
            yield warning(
                "fabric-port-not-activated",
                devices=(name.partition(" ")[0] for name, _ in cited),
                observation=f"{ports_named} {'is' if is_one else 'are'} {state}: a link without messages.",
                diagnosis="The link is trained, but the subnet manager has not activated the port: none runs on this "
                "fabric, or it does not see or admit the port.",
                remedy="Ask for the subnet manager with `sminfo`, and look for the port in its log",
                evidence=listed(evidence),
            )
            continue
        # A second port of a card is often left unconnected.
        yield (note if has_active else warning)(
            "fabric-port-down",
            devices=(name.partition(" ")[0] for name, _ in cited),
            observation=f"{ports_named} {'has' if is_one else 'have'} no link ({state}, {physical}).",
            diagnosis="Polling means that the port looks for another end: no cable, a broken one, or the other end is "
            "off."
            if physical == "Polling"
            else "The port has no trained link; what ended it is unknown.",
            remedy="If the port is meant to be used, check cable and switch port, with `ibstat` and `iblinkinfo`",
            evidence=listed(evidence),
        )


@rule(Subject.PORTS)
def port_below_siblings(case: Case) -> Iterator[Finding]:
    """Fires if an active port is slower than that of another adapter of the same model, or of the same type where the
    model is unknown."""
    like = grouped(
        ((model, port.said("link_layer") or ""), port)
        for port in _ports(case.machine)
        if (model := port.adapter.facts.text("board_id") or port.adapter.facts.text("hca_type")) is not None
    )
    for (model, _), ports in like.items():
        best = max(port.rate for port in ports)
        slow = [port for port in ports if port.rate < _LESS * best]
        if not slow:
            continue
        worst = min(slow, key=lambda port: port.rate)
        fast = [port.name for port in ports if port not in slow]
        yield warning(
            "fabric-port-slower",
            devices=(port.adapter.id for port in slow),
            observation=f"{spans(port.name for port in slow)} {'runs' if len(slow) == 1 else 'run'} at "
            f"{show(worst.rate, 'B/s')}; adapters of the same model ({model}) at {show(best, 'B/s')}: {spans(fast)}.",
            diagnosis="Possible causes: a cable or switch port of an older generation, a split port, a setting, or a "
            "link that trained slower after errors. It may be planned, for example a port for storage.",
            remedy="Compare both ends with `iblinkinfo` or `ethtool INTERFACE`, and swap the cable with that of a fast "
            "port; if it is planned, keep it out of the list of adapters for messages",
            evidence=listed(cite(f"{port.name} rate", port.fact) for port in ports),
        )


@rule(Subject.PORTS, of_hardware=True)
def pcie_below_port(case: Case) -> Iterator[Finding]:
    """Fires if the PCIe link of an adapter carries less than one of its active ports."""
    machine = case.machine
    low = grouped(
        ((carried, port.rate), port)
        for port in _ports(machine)
        if (carried := _host_rate(machine, port.adapter)) is not None and carried < _LESS * port.rate
    )
    for (carried, rate), ports in low.items():
        facts = ports[0].adapter.facts
        lanes, speed = facts.integer("pcie_lanes"), facts.number("pcie_GTps")
        width = f" ({lanes} lanes at {speed:g} GT/s)" if lanes and speed else ""
        yield warning(
            "pcie-below-port",
            devices=(port.adapter.id for port in ports),
            observation=f"The port of {spans(port.name for port in ports)} runs at {show(rate, 'B/s')}, but PCIe "
            f"carries {show(carried, 'B/s')} per direction to it{width}.",
            diagnosis=f"Messages reach at most {show_percent(carried / rate)} of the port's rate, less the headers of "
            "PCIe, unless the card has a second PCIe link (Socket Direct).",
            remedy="If the card supports more lanes or a higher speed (see `sudo lspci -vv`, LnkCap), move it to a "
            "slot that has them; else plan with the rate of PCIe",
            evidence=listed(cite(f"{port.name} rate", port.fact) for port in ports)
            + f"; {_cited_links(machine, ports[0].adapter)}",
            loss=1 - carried / rate,
        )


def _ports(machine: Machine) -> Sequence[_Port]:
    """The ports with a known rate that are active: the rate of others is that of an untrained link."""
    found = []
    for adapter in fabric_adapters(machine):
        for name in adapter.facts:
            match = _RATE.match(name)
            fact = adapter.facts.best(name)
            if match is None or fact is None:
                continue
            number = (match[1] or "").removeprefix("port").removesuffix("_")
            rate = adapter.facts.number(name)
            port = _Port(adapter, number, rate or 0.0, fact)
            if rate and (port.said("state") or "").lower() in ("active", "up"):
                found.append(port)
    return found


def _host_rate(machine: Machine, adapter: Device) -> float | None:
    """B/s per direction between the adapter and the processor: the lowest trained rate of the links on the way, or
    capable rate if unknown; bridges may be idle, so their capability counts."""
    own, *above = way_up(machine, adapter) or (None,)
    if own is None:
        return None
    rate = own.trained_Bps or own.capable_Bps
    higher = narrowest([link for link in above if link is not None])
    rates = [value for value in (rate, higher.capable_Bps if higher is not None else None) if value]
    return min(rates) if rate else None


def _cited_links(machine: Machine, adapter: Device) -> str:
    return listed(
        f"{link.a} - {link.b}: {show(link.trained_Bps or link.capable_Bps, 'B/s')} ({link.source})"
        for link in way_up(machine, adapter)
        if link.trained_Bps or link.capable_Bps
    )


@rule(Subject.LINK_COUNTERS)
def counters_of_dumps(case: Case) -> Iterator[Finding]:
    """Fires if a saved output of counters (`ethtool -S`) has errors, discards or pauses, whenever they were counted."""
    wanted = {*LINK_COUNTERS, PACKETS_SENT, PACKETS_RECEIVED}
    readings: dict[str, dict[str, int]] = {}
    sources: dict[str, None] = {}
    for adapter in case.machine.of_kind(DeviceKind.NIC):
        counts = {name: number for name in wanted if (number := adapter.facts.integer(name)) is not None}
        if counts:
            readings[adapter.id] = counts
            sources |= {fact.source: None for name in counts if (fact := adapter.facts.best(name)) is not None}
    yield from counter_findings(readings, ", ".join(sources), "`ethtool -S INTERFACE`")


_ORDINARY = frozenset({"rx_dropped"})
"""Frames of protocols that the host does not use count as dropped, too."""
_OF_LOSSES = frozenset(
    name for name, one in LINK_COUNTERS.items() if name.startswith("Tcp") and one.kind is CounterKind.RETRY
)
"""They have their own rule: TCP sends a few segments again needlessly on every network."""
_OF_LINKS = frozenset(LINK_COUNTERS) - _ORDINARY - _OF_LOSSES
_EVIDENCE = "counters of sysfs before and after each repeat"


@rule(Subject.LINK_COUNTERS)
def links_had_errors(case: Case) -> Iterator[Finding]:
    """Fires if a link received damaged data, or went down, during a repeat."""
    if grown := _grown(case, {CounterKind.ERROR}):
        yield warning(
            "link-errors",
            devices=(port for port, _ in grown),
            observation=f"During the repeats the links counted errors: {_counted(grown)}",
            diagnosis="Data arrived damaged or the link failed, and was sent again or lost; which figures that changed "
            "is unknown.",
            remedy="Look at the counters of both ends (`perfquery`, `ethtool -S`); if they go on growing, exchange the "
            "cable, then measure again",
            evidence=_EVIDENCE,
        )


@rule(Subject.LINK_COUNTERS)
def links_were_congested(case: Case) -> Iterator[Finding]:
    """Fires if packets waited, were discarded or were sent again during a repeat: normal under full load."""
    if grown := _grown(case, set(CounterKind) - {CounterKind.ERROR}):
        yield note(
            "link-congestion",
            devices=(port for port, _ in grown),
            observation=f"During the repeats the links counted: {_counted(grown)}",
            diagnosis="Links that are in full use wait. Packets that were discarded or sent again cost time; other "
            "jobs on the same links can be the cause.",
            remedy="Compare with repeats on idle links before you compare figures of the network",
            evidence=_EVIDENCE,
        )


@rule(Subject.LINK_COUNTERS)
def packets_were_lost(case: Case) -> Iterator[Finding]:
    """Fires if TCP sent segments again that were lost on their way between nodes: more than a sound network loses."""
    counts: dict[str, dict[str, int]] = {}
    for (port, counter), by in _grown(case, {CounterKind.RETRY}, _OF_LOSSES).items():
        counts.setdefault(port, {})[counter] = by
    lost = {port: lost_segments(own) for port, own in counts.items()}
    if sum(lost.values()) < LEAST_LOST:
        return
    waits = sum(own.get("TcpExtTCPTimeouts", 0) for own in counts.values())
    gaps = {port: own.get("TcpExtTCPOFOQueue", 0) for port, own in counts.items()}
    arrived = f"; after a gap arrived {_by_port(gaps)}" if any(gaps.values()) else ""
    yield warning(
        "packets-lost",
        devices=(port for port, by in lost.items() if by),
        observation=f"During the repeats {sum(lost.values())} segments of TCP were lost and sent again: "
        f"{_by_port(lost)}{arrived}",
        diagnosis="A message waits until its lost segment was sent again: for 0.2 s or longer where TCP waited for its "
        f"timer, which it did {waits} times. Medians and best values hide this.",
        remedy="Find the node that loses packets (`seatrial screen` over these nodes), and where they "
        "are dropped (`ip -s link`, `ethtool -S`, `nstat`)",
        evidence="counters of TCP on each node before the first and after the last message",
    )


def _by_port(values: dict[str, int]) -> str:
    return listed(f"{port} {by}" for port, by in values.items() if by)


def _grown(
    case: Case, kinds: Iterable[CounterKind], counters: frozenset[str] = _OF_LINKS
) -> dict[tuple[str, str], int]:
    """(port, counter) -> how much it grew in all repeats together, of counters of these kinds."""
    wanted = {name for name in counters if LINK_COUNTERS[name].kind in kinds}
    grown: dict[tuple[str, str], int] = {}
    for entry in case.known.links:
        if entry["counter"] in wanted and entry["grew_by"]:
            port = f"{entry['port']} of {entry['host']}" if "host" in entry else entry["port"]
            place = (port, entry["counter"])
            grown[place] = grown.get(place, 0) + entry["grew_by"]
    return grown


def _counted(grown: dict[tuple[str, str], int]) -> str:
    return listed(f"{port} {name} +{by} ({LINK_COUNTERS[name].meaning})" for (port, name), by in grown.items())
