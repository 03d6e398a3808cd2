"""The limit of copies between a host and its devices, and between devices: the rates of the links on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from seatrial.model.benchmark.benchmark import Attainable
from seatrial.model.benchmark.parameter import Params
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.links import (
    carried_together,
    direct_links,
    gpu_at,
    meeting_ways,
    narrowest,
    paths_are_known,
    way_up,
)
from seatrial.model.machine.machine import Device, Link, Machine
from seatrial.model.results.sample import Sample
from seatrial.model.units import Unit

_PAYLOAD_B, _HEADERS_B = 256, 24
PACKETS = Attainable(
    _PAYLOAD_B / (_PAYLOAD_B + _HEADERS_B), f"packets carry {_PAYLOAD_B} B of data and {_HEADERS_B} B of headers"
)
"""R. Neugebauer et al., "Understanding PCIe performance for end host networking", SIGCOMM 2018: 24 B around the data of
a packet; servers usually set its size to 256 B."""

_NVLINK_Bps = {60: 20e9, 70: 25e9, 80: 25e9, 90: 25e9, 100: 50e9}
"""CUDA capability -> B/s per direction of an NVLink (NVIDIA's whitepapers on the Tesla P100, V100, A100, H100 and the
Blackwell architecture: 160, 300, 600, 900 and 1800 GB/s in both directions over 4, 6, 12, 18 and 18 links)."""

LinkLimit = Callable[[Machine, Params, Sequence[Sample]], Limit]


def _one(params: Params) -> float:
    return 1.0


def link_limit(counted: Callable[[Params], float] = _one, unit: Unit = "B/s", how: str = "") -> LinkLimit:
    """What the links between the host and the devices of a sample carry per direction, x `counted`: how much of `unit`
    a program counts for each byte that its busier direction carries, which `how` says in words.

    Devices are found in the machine's graph by the PCI addresses in the samples. If devices copy at once, only their
    sum has a limit: how they divide shared links is unknown.
    """

    def limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
        found = _devices(machine, samples)
        if isinstance(found, str):
            return Limit.unknown(unit, found)
        if len(found) == 1 and _is_beside_others(params, samples):
            return Limit.unknown(unit, "other devices copy at the same time; only their sum has a limit")
        value, derivation = _to_host(machine, found)
        if value is None:
            return Limit.unknown(unit, derivation)
        factor = counted(params)
        derivation += f" x {factor:.4g} ({how})" if how else ""
        return Limit(value * factor, unit, derivation, Basis.PHYSICAL, paths_are_known(machine, found))

    return limit


def peer_limit(directions: int = 1) -> LinkLimit:
    """The rate of the links between the two devices of a sample: direct links if there are any, else PCIe, per
    direction x `directions`. A sample's facts name the addresses of source and target, in this order."""

    def limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
        found = _devices(machine, samples)
        if isinstance(found, str):
            return Limit.unknown("B/s", found)
        if len(found) != 2 or found[0].id == found[1].id:
            return Limit.unknown("B/s", "copies within one device use no link")
        value, derivation = _between(machine, found[0], found[1], _capability(samples))
        if value is None:
            return Limit.unknown("B/s", derivation)
        derivation += f" x {directions} directions" if directions > 1 else ""
        return Limit(value * directions, "B/s", derivation, Basis.PHYSICAL, paths_are_known(machine, found))

    return limit


def _is_beside_others(params: Params, samples: Sequence[Sample]) -> bool:
    is_copy = params.get("mode") == "EP" and params["devices"] != 1
    return is_copy or samples[0].series.endswith("_together")


def _devices(machine: Machine, samples: Sequence[Sample]) -> list[Device] | str:
    """The devices of a sample in the machine's graph, or why they are not found there."""
    facts = samples[0].extra.get("device")
    addresses = facts.get("pci") if isinstance(facts, dict) else None
    if isinstance(addresses, str):
        addresses = [addresses]
    if not isinstance(addresses, list) or not addresses or not all(addresses):
        return "the driver does not report the device's PCI address"
    found = [gpu_at(machine, str(address)) for address in addresses]
    known = [device for device in found if device is not None]
    if len(known) < len(found):
        return f"the device at {addresses[found.index(None)]} is not in the machine's description"
    return known


def _to_host(machine: Machine, devices: Sequence[Device]) -> tuple[float | None, str]:
    """(B/s per direction, derivation); (None, what is missing)."""
    direct = [direct_links(machine, device) for device in devices]
    if any(direct):
        rates = [_sum(links) for links in direct]
        if None in rates or len(devices) > 1:
            return None, "the rate of the direct links between the processor and these devices is unknown"
        return rates[0], f"{_rate_text(rates[0])}: the device's {direct[0][0].kind} links to the processor"
    if len(devices) > 1:
        together = carried_together(machine, devices)
        if together is None:
            return None, "the link rates of all these devices together are unknown"
        return together, f"{_rate_text(together)}: what the PCIe links to {len(devices)} devices carry at once"
    own = machine.named_limit(f"pcie.{devices[0].id}")
    if own is not None:
        return own.value, own.derivation
    link = narrowest(way_up(machine, devices[0]))
    if link is None or link.capable_Bps is None:
        return None, f"the capable rate of the PCIe link of {devices[0].id} is unknown"
    return link.capable_Bps, f"{_rate_text(link.capable_Bps)}: capable rate of the link from {link.a} to {link.b}"


def _between(machine: Machine, a: Device, b: Device, capability: int) -> tuple[float | None, str]:
    own = [link for link in machine.links if {link.a, link.b} == {a.id, b.id}]
    switched = [_to_switches(machine, device) for device in (a, b)]
    if own or all(switched):
        rates = [_sum(own)] if own else [_sum(links) for links in switched]
        known = [rate for rate in rates if rate is not None]
        if len(known) < len(rates):
            return None, f"the rate of the links between {a.id} and {b.id} is unknown"
        return min(known), f"{_rate_text(min(known))}: the direct links between {a.id} and {b.id}"
    path = next((path for path in machine.paths if {path.a, path.b} == {a.id, b.id}), None)
    if path is not None and path.path_class == "NV":
        each = _NVLINK_Bps.get(capability)
        if each is None or path.links is None:
            return None, f"the rate of the NVLinks between {a.id} and {b.id} is unknown"
        return path.links * each, f"{path.links} NVLinks x {each / 1e9:g} GB/s per direction"
    if path is None or path.path_class in (None, "C2C", "XGMI"):
        return None, f"it is unknown whether {a.id} and {b.id} have direct links"
    link = narrowest(meeting_ways(machine, a, b))
    if link is None or link.capable_Bps is None:
        return None, f"the PCIe links between {a.id} and {b.id} are unknown"
    return (
        link.capable_Bps,
        f"{_rate_text(link.capable_Bps)}: the link from {link.a} to {link.b}, the slowest between the two",
    )


def _to_switches(machine: Machine, device: Device) -> list[Link]:
    switches = {part.id for part in machine.devices if part.kind.value == "switch"}
    return [link for link in machine.links if device.id in (link.a, link.b) and {link.a, link.b} & switches]


def _sum(links: Sequence[Link]) -> float | None:
    rates = [link.capable_Bps for link in links if link.capable_Bps]
    return sum(rates) if links and len(rates) == len(links) else None


def _rate_text(value: float | None) -> str:
    return f"{(value or 0.0) / 1e9:.4g} GB/s per direction"


def _capability(samples: Sequence[Sample]) -> int:
    facts = samples[0].extra.get("device")
    capability = facts.get("capability") if isinstance(facts, dict) else None
    return capability if isinstance(capability, int) else 0
