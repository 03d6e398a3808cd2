"""Ports -> links: each link once, after both of its ends have been compared.

What a link can do at most: as the tool states it, or inferred from other links of the same hardware.

`iblinkinfo` compares what both ends support. `ibnetdiscover` does not, so there it is inferred:

* The ports of a switch are alike: each end can do what the fastest link between switches at that switch does.
* Adapters of one model mostly are. A link of an adapter is compared with those of all adapters of its model; it counts
  as slow if only few are slower than the rest. One chip is sold with several speeds, so if more differ, nothing is
  inferred.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from seatrial.fabric.parts import DevicePart, FabricDump, LinkRate, PartKind, PortPart, rate_Bps
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fabric import CapableBasis


class Cable(Frozen):
    """A link before its ends are ordered: two (device, port), its rate, and what both ends support if stated."""

    ends: tuple[tuple[str, int | None], tuple[str, int | None]]
    rate: LinkRate
    could: LinkRate | None
    port: PortPart


def join_devices(parts: Iterable[DevicePart]) -> dict[str, DevicePart]:
    """Id -> device. Its own record goes before what peers say. Raises ParseError for two different records."""
    joined: dict[str, DevicePart] = {}
    for part in parts:
        known = joined.get(part.id)
        if known is None or (part.is_described and not known.is_described):
            joined[part.id] = part
        elif part.is_described and (part.kind, part.name, part.ports) != (known.kind, known.name, known.ports):
            where = f"line {known.source.line} of {known.source.file}"
            raise part.source.error(f"{part.id} differs from its record on {where}: are these two dumps?")
    return joined


_MOST_SHARED = 0.01
"""The largest share of adapters with the GUID of another one; if there are more, these are rather two dumps."""


def shared_guids(dump: FabricDump) -> dict[str, tuple[str, ...]]:
    """Ids that two adapters have -> all names under that id. An id is shared if it has two records with different
    names, or if one of its ports is the other end of several ports; which link belongs to which is then unknown."""
    if dump.is_one_sided:
        return {}
    names: dict[str, dict[str, None]] = {}
    records: dict[str, set[str]] = {}
    for part in dump.devices:
        if part.kind is PartKind.ADAPTER:
            names.setdefault(part.id, {})[part.name] = None
            if part.is_described:
                records.setdefault(part.id, set()).add(part.name)
    claims: dict[tuple[str, int | None], set[tuple[str, int | None]]] = {}
    for port in dump.ports:
        if port.peer is not None and port.peer[0] in names:
            claims.setdefault(port.peer, set()).add((port.device, port.port))
    shared = {device for device, own in records.items() if len(own) > 1}
    shared |= {device for (device, _), ends in claims.items() if len(ends) > 1}
    if len(shared) > max(1, _MOST_SHARED * len(names)):
        return {}
    return {device: tuple(names[device]) for device in sorted(shared)}


def without_links_of(dump: FabricDump, ids: Iterable[str]) -> FabricDump:
    """The dump without the ports and links of these devices, each of which is kept once."""
    left_out = frozenset(ids)
    if not left_out:
        return dump
    first = {part.id: part for part in reversed(dump.devices) if part.id in left_out and part.is_described}
    devices = [part for part in dump.devices if part.id not in left_out]
    ports = [port for port in dump.ports if port.device not in left_out and (port.peer or ("",))[0] not in left_out]
    kept = [replace(part, is_described=False) for part in first.values()]
    return replace(dump, devices=[*devices, *kept], ports=ports)


def join_links(dump: FabricDump, devices: Mapping[str, DevicePart]) -> tuple[list[Cable], list[str]]:
    """The links, and what could not be settled, one sentence each. Raises ParseError for a contradiction, or if the
    dump is incomplete."""
    if dump.is_one_sided:
        return [_cable(port) for port in dump.ports if port.peer], []
    ports: dict[tuple[str, int | None], PortPart] = {}
    for port in dump.ports:
        known = ports.setdefault((port.device, port.port), port)
        if (known.peer, known.rate, known.state) != (port.peer, port.rate, port.state):
            raise port.source.error(f"port {port.port} of {port.device} differs from line {known.source.line}")
    linked = {port.device for port in dump.ports}
    for part in devices.values():  # no tool can have found a switch without a link
        if part.kind is PartKind.SWITCH and part.is_described and part.id not in linked:
            raise part.source.error(f"no port of switch {part.id} in its record: the dump is incomplete")
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
            cables.append(_cable(port))
            continue
        if other.peer != place:
            raise port.source.error(
                f"port {port.peer[1]} of {port.peer[0]} is connected to something else on line {other.source.line}"
            )
        if place < port.peer:
            continue  # the link is made at its other end
        unequal += None not in (rate_Bps(port.rate), rate_Bps(other.rate)) and port.rate != other.rate
        # The slower one: the two ends are read one after the other, and a link may retrain in between.
        slower = min((port.rate, other.rate), key=lambda rate: rate_Bps(rate) or math.inf)
        stated = [could for could in (port.could, other.could) if could is not None]
        better = max(stated, key=lambda rate: rate_Bps(rate) or 0.0, default=None)
        cables.append(replace(_cable(port), rate=slower, could=better))
    return cables, _notes(undescribed, unequal, devices)


def _cable(port: PortPart) -> Cable:
    return Cable(((port.device, port.port), port.peer or ("", None)), port.rate, port.could, port)


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


def _notes(undescribed: set[str], unequal: int, devices: Mapping[str, DevicePart]) -> list[str]:
    adapters = sum(devices[device].kind is not PartKind.SWITCH for device in undescribed)
    switches = sorted(devices[device].name for device in undescribed if devices[device].kind is PartKind.SWITCH)
    notes: list[str] = []
    if switches:
        named = ", ".join(switches[:5])
        notes.append(f"{len(switches)} switches have no line in the file ({named}): their other links are unknown")
    if adapters:
        notes.append(f"{adapters} adapters are described only by the switch that they are on: is the dump complete?")
    if unequal:
        notes.append(f"{unequal} links have a different rate at each end; the slower one is shown")
    return notes


_FEWEST_OF_MODEL = 5
_MOST_SLOW = 0.05
"""The largest share of slow links of a model at which they are exceptions; a single one always is."""

Capability = tuple[float | None, CapableBasis | None]

_NOT_KNOWN: Capability = (None, None)


class Capabilities:
    """The capable rate of each link, in B/s."""

    def __init__(self, cables: Sequence[Cable], devices: Mapping[str, DevicePart]) -> None:
        self._devices = devices
        self._best_of_switch: dict[str, float] = {}
        of_model: dict[str, Counter[LinkRate]] = {}
        for cable in cables:
            rate = rate_Bps(cable.rate)
            if rate is None:
                continue
            parts = [devices[device] for device, _ in cable.ends]
            is_between_switches = all(part.kind is PartKind.SWITCH for part in parts)
            for part in parts:
                if is_between_switches:
                    self._best_of_switch[part.id] = max(self._best_of_switch.get(part.id, 0.0), rate)
                elif part.kind is PartKind.ADAPTER and part.model is not None:
                    of_model.setdefault(part.model, Counter())[cable.rate] += 1
        self._usual = {model: rate for model, found in of_model.items() if (rate := _usual(found)) is not None}

    def of(self, cable: Cable) -> Capability:
        """The capable rate of a link, and how it is known."""
        if cable.could is not None:
            stated = rate_Bps(cable.could)
            return _NOT_KNOWN if stated is None else (stated, CapableBasis.STATED)
        if rate_Bps(cable.rate) is None:
            return _NOT_KNOWN
        found: list[float] = []
        for device, _ in cable.ends:
            part = self._devices[device]
            if part.kind is PartKind.SWITCH:
                found += [self._best_of_switch[device]] if device in self._best_of_switch else []
            elif part.model in self._usual:
                found.append(self._usual[part.model])
            else:
                return _NOT_KNOWN
        return (min(found), CapableBasis.INFERRED) if found else _NOT_KNOWN


def _usual(found: Counter[LinkRate]) -> float | None:
    """The rate of all links of a model but a few exceptions, which are slower; None if there is no such rate."""
    total = found.total()
    if total < _FEWEST_OF_MODEL:
        return None
    rates = {rate: rate_Bps(rate) or 0.0 for rate in found}
    fastest = max(rates.values())
    slow = sum(number for rate, number in found.items() if rates[rate] < fastest)
    return fastest if slow <= max(1, _MOST_SLOW * total) else None
