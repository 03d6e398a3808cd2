"""Ports -> links: each link once, after both of its ends have been compared."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from seatrial.fabric.parts import DevicePart, FabricDump, LinkRate, PartKind, PortPart
from seatrial.fabric.rates import rate_Bps
from seatrial.model.frozen import Frozen


class Cable(Frozen):
    """A link before its ends are ordered: two (device, port), its rate, and what both ends support if stated."""

    ends: tuple[tuple[str, int | None], tuple[str, int | None]]
    rate: LinkRate
    could: LinkRate | None
    port: PortPart


def join_devices(parts: Iterable[DevicePart]) -> dict[str, DevicePart]:
    """Id -> device. A record of its own goes before what peers say. Raises ParseError for two different records."""
    joined: dict[str, DevicePart] = {}
    for part in parts:
        known = joined.get(part.id)
        if known is None or (part.is_described and not known.is_described):
            joined[part.id] = part
        elif part.is_described and (part.kind, part.name, part.ports) != (known.kind, known.name, known.ports):
            where = f"line {known.source.line} of {known.source.file}"
            raise part.source.error(f"{part.id} differs from its record on {where}: are these two dumps?")
    return joined


def join_links(dump: FabricDump, devices: Mapping[str, DevicePart]) -> tuple[list[Cable], list[str]]:
    """The links, and what could not be settled, one sentence each. Raises ParseError for a contradiction, or if the
    dump is incomplete."""
    if dump.is_one_sided:
        return [Cable(_ends(port), port.rate, port.could, port) for port in dump.ports if port.peer], []
    ports = _ports_by_place(dump.ports)
    _check_switches(dump, devices)
    cables: list[Cable] = []
    taken: dict[tuple[str, int | None], PortPart] = {}
    undescribed: set[str] = set()
    unequal = 0
    for place, port in ports.items():
        if port.peer is None:
            continue
        if port.peer == place:
            raise port.source.error(f"port {port.port} of {port.device} is connected to itself")
        other = ports.get(port.peer)
        if other is None:
            _check_missing(port, devices[port.peer[0]], dump)
            undescribed.add(port.peer[0])
            if port.peer in taken:
                line = taken[port.peer].source.line
                raise port.source.error(f"port {port.peer[1]} of {port.peer[0]} is also the other end of line {line}")
            taken[port.peer] = port
            cables.append(Cable(_ends(port), port.rate, port.could, port))
            continue
        if other.peer != place:
            raise port.source.error(
                f"port {port.peer[1]} of {port.peer[0]} is connected to something else on line {other.source.line}"
            )
        if place < port.peer:
            continue  # the link is made at its other end
        unequal += None not in (rate_Bps(port.rate), rate_Bps(other.rate)) and port.rate != other.rate
        slower, could = _joined_rates(port, other)
        cables.append(Cable(_ends(port), slower, could, port))
    return cables, _notes(undescribed, unequal, devices)


def _ends(port: PortPart) -> tuple[tuple[str, int | None], tuple[str, int | None]]:
    return (port.device, port.port), port.peer or ("", None)


def _ports_by_place(parts: Iterable[PortPart]) -> dict[tuple[str, int | None], PortPart]:
    ports: dict[tuple[str, int | None], PortPart] = {}
    for port in parts:
        known = ports.setdefault((port.device, port.port), port)
        if (known.peer, known.rate, known.state) != (port.peer, port.rate, port.state):
            raise port.source.error(f"port {port.port} of {port.device} differs from line {known.source.line}")
    return ports


def _check_switches(dump: FabricDump, devices: Mapping[str, DevicePart]) -> None:
    """Raise ParseError for a switch without a link: no tool can have found it, so its record was cut off."""
    linked = {port.device for port in dump.ports}
    for part in devices.values():
        if part.kind is PartKind.SWITCH and part.is_described and part.id not in linked:
            raise part.source.error(f"no port of switch {part.id} in its record: the dump is incomplete")


def _check_missing(port: PortPart, peer: DevicePart, dump: FabricDump) -> None:
    """Raise ParseError if the other end of a port should have been in the dump."""
    if peer.is_described and not (dump.is_partial and peer.kind is not PartKind.SWITCH):
        raise port.source.error(
            f"port {port.peer[1] if port.peer else None} of {peer.id} is missing from its record on line "
            f"{peer.source.line}: the dump is incomplete or damaged"
        )
    if not dump.is_partial:
        raise port.source.error(
            f"{peer.kind} {peer.id} has no record: the dump is incomplete; if it is in several files, give all of them"
        )


def _joined_rates(one: PortPart, other: PortPart) -> tuple[LinkRate, LinkRate | None]:
    """The slower rate of the two ends (they are read one after the other, and a link may retrain in between), and the
    better of what they state to support."""
    slower = min((one.rate, other.rate), key=lambda rate: rate_Bps(rate) or math.inf)
    stated = [could for could in (one.could, other.could) if could is not None]
    return slower, max(stated, key=lambda rate: rate_Bps(rate) or 0.0, default=None)


def _notes(undescribed: set[str], unequal: int, devices: Mapping[str, DevicePart]) -> list[str]:
    adapters = sum(devices[device].kind is not PartKind.SWITCH for device in undescribed)
    switches = sorted(devices[device].name for device in undescribed if devices[device].kind is PartKind.SWITCH)
    notes: list[str] = []
    if switches:
        named = ", ".join(switches[:5])
        notes.append(f"{len(switches)} switches have no line of their own ({named}): their other links are unknown")
    if adapters:
        notes.append(f"{adapters} adapters are described only by the switch that they are on: is the dump complete?")
    if unequal:
        notes.append(f"{unequal} links have a different rate at each end; the slower one is shown")
    return notes
