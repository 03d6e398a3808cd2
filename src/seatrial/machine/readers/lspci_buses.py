"""The bridge above each function of a listing, from the bus numbers of the bridges.

A bridge forwards transactions for the buses secondary to subordinate (PCI-to-PCI Bridge Architecture Specification 1.2,
3.2.5); a function on bus B is directly below the bridge whose secondary bus is B. Virtual functions have separate bus
numbers, below the same bridge as their physical function (SR-IOV 1.1, 2.1.2). A bus that no bridge leads to is a root
bus, below a host bridge, if the listing proves that; else its bridge is missing in the listing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from seatrial.machine.readers.dump import Line
from seatrial.model.frozen import Frozen

BRIDGE_CLASSES = frozenset({"0604", "0607"})
"""Classes (PCI and CardBus) of functions with buses behind them."""

_HOST_BRIDGE_CLASS = "0600"
_ON_ROOT_BUS = frozenset({"Root Port", "Root Complex Integrated Endpoint", "Root Complex Event Collector"})
_BELOW_A_PORT = frozenset({"Endpoint", "Legacy Endpoint", "Upstream Port", "Downstream Port"})
_MAX_PHYSICAL = 256


class BusRange(Frozen):
    """The buses behind a bridge, and the line that states them."""

    secondary: int
    subordinate: int
    line: Line


class VirtualFunctions(Frozen):
    """The routing ids of the virtual functions of a physical function, as distances (SR-IOV 1.1, 3.3)."""

    count: int
    offset: int
    stride: int


class Placed(Frozen):
    """The position of a function as its text states it; `port` is its kind of Express port or endpoint."""

    address: str
    class_id: str
    port: str | None = None
    buses: BusRange | None = None
    virtual: VirtualFunctions | None = None
    is_virtual: bool = False

    @property
    def bus(self) -> str:
        """Domain and bus: "0000:41"."""
        return self.address.rsplit(":", 1)[0]

    @property
    def domain(self) -> str:
        """The domain: "0000"."""
        return self.address.split(":", 1)[0]

    @property
    def bus_number(self) -> int:
        """65 of 0000:41:00.0."""
        return self.routing_id >> 8

    @property
    def routing_id(self) -> int:
        """Bus, device and function in 8, 5 and 3 bits."""
        _, bus, device, function = re.split("[:.]", self.address)
        return int(bus, 16) << 8 | int(device, 16) << 3 | int(function)


def find_parents(functions: Sequence[Placed], tool: str) -> dict[str, str | None]:
    """Address -> address of the bridge directly above, "domain:bus" of a root bus, or None if unknown.

    Raises ParseError if two bridges lead to one bus, or a bridge leads to its own bus.
    """
    bridges = [function for function in functions if function.buses is not None]
    below = _secondaries(bridges, tool)
    by_domain: dict[str, list[Placed]] = {}
    for bridge in bridges:
        by_domain.setdefault(bridge.domain, []).append(bridge)
    roots = _root_buses(functions, below, by_domain)
    parents = {
        function.address: below.get(function.bus, function.bus if function.bus in roots else None)
        for function in functions
    }
    physical = [function for function in functions if function.virtual is not None][:_MAX_PHYSICAL]
    for function in functions:
        if parents[function.address] is None:
            owner = next((one for one in physical if _owns(one, function)), None)
            if owner is not None:
                parents[function.address] = parents[owner.address]
            elif function.is_virtual:
                parents[function.address] = _innermost(function, by_domain)
    return parents


def _secondaries(bridges: Sequence[Placed], tool: str) -> dict[str, str]:
    """Bus -> the bridge that leads to it. Bridges that firmware has not set up (secondary 0) lead nowhere."""
    below: dict[str, str] = {}
    for bridge in bridges:
        buses = bridge.buses
        if buses is None or buses.secondary == 0:
            continue
        bus = f"{bridge.domain}:{buses.secondary:02x}"
        if buses.subordinate < buses.secondary:
            raise buses.line.error(tool, "the range of buses behind this bridge is reversed")
        if buses.secondary <= bridge.bus_number:
            raise buses.line.error(tool, f"this bridge is on bus {bridge.bus} and cannot lead to bus {bus}")
        if bus in below:
            raise buses.line.error(tool, f"two bridges lead to bus {bus}: this one and {below[bus]}")
        below[bus] = bridge.address
    return below


def _root_buses(
    functions: Sequence[Placed], below: Mapping[str, str], by_domain: Mapping[str, Sequence[Placed]]
) -> frozenset[str]:
    """Buses below a host bridge: bus 0; buses with functions that exist only there; and, in a complete listing, buses
    with more devices than the one that a link leads to.

    A listing is considered complete if it has a host bridge on a bus 0 (`lspci -d` and `-s` omit it) and the buses of
    all bridges.
    """
    is_whole = any(f.class_id == _HOST_BRIDGE_CLASS and f.bus_number == 0 for f in functions) and not any(
        f.class_id in BRIDGE_CLASSES and f.buses is None for f in functions
    )
    on_bus: dict[str, list[Placed]] = {}
    for function in functions:
        on_bus.setdefault(function.bus, []).append(function)
    roots: set[str] = set()
    for bus, here in on_bus.items():
        if bus in below:
            continue
        is_proven = any(f.class_id == _HOST_BRIDGE_CLASS or f.port in _ON_ROOT_BUS for f in here)
        is_left = is_whole and any(f.routing_id >> 3 & 0x1F and f.class_id not in BRIDGE_CLASSES for f in here)
        is_left = is_left and not any(f.port in _BELOW_A_PORT or f.is_virtual for f in here)
        is_behind = _innermost(here[0], by_domain) is not None
        if here[0].bus_number == 0 or ((is_proven or is_left) and not is_behind):
            roots.add(bus)
    return frozenset(roots)


def _innermost(function: Placed, by_domain: Mapping[str, Sequence[Placed]]) -> str | None:
    """The bridge with the narrowest bus range that contains the function's bus."""
    around = [
        (buses.subordinate - buses.secondary, bridge.address)
        for bridge in by_domain.get(function.domain, ())
        if (buses := bridge.buses) is not None and 0 < buses.secondary <= function.bus_number <= buses.subordinate
    ]
    return min(around, key=lambda bridge: bridge[0])[1] if around else None


def _owns(physical: Placed, function: Placed) -> bool:
    virtual = physical.virtual
    if virtual is None or physical.domain != function.domain:
        return False
    distance = function.routing_id - physical.routing_id - virtual.offset
    if virtual.stride == 0:
        return distance == 0 and virtual.count == 1
    return distance >= 0 and distance % virtual.stride == 0 and distance // virtual.stride < virtual.count
