"""PCIe links of the tree: capable and trained rate of each, and the narrowest one on the path to a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from seatrial.machine.survey import LinkRate, PciPart
from seatrial.model.host_links import faces_down
from seatrial.model.limit import Basis, Limit, pcie_bandwidth
from seatrial.model.machine import Device, DeviceKind, Link, Machine, NamedLimit

KIND = "pcie"
HOST = "host"
"""The upper end of a link if no source states it: somewhere towards the processor."""
_WITH_LIMIT = (DeviceKind.GPU, DeviceKind.NIC, DeviceKind.NVME)


def join_links(placed: Sequence[tuple[Device, PciPart]], pci: Mapping[str, PciPart]) -> tuple[Link, ...]:
    """A link from each device with a known link speed to the bridge above it. If the bridge is unknown (NCCL shows no
    ports of the processor) the link leads to the NUMA node or package, otherwise to `HOST`.

    A link is as fast as both of its ends, so `capable` is the lower speed and the smaller width of the function and
    the port above it (their facts list both: an x16 card in an x8 slot). `trained` is what the function reports.
    """
    links: list[Link] = []
    for device, part in placed:
        above = device.parent or HOST
        port = None if part.is_condensed else pci.get(above.removeprefix("pci-"))
        capable = _slower(part.capable, port.capable if port is not None else None)
        trained_Bps = _rate(part.trained) or part.trained_Bps
        if capable is not None or trained_Bps is not None:
            links.append(Link(above, device.id, KIND, _rate(capable), trained_Bps, part.source))
    return tuple(links)


def with_one_rate_per_link(machine: Machine) -> tuple[Link, ...]:
    """The links of a machine. A port that faces down describes the link below it once more, with its own capability
    only: its entry gets the rates of that link, which know both ends."""
    below: dict[str, list[Link]] = {}
    for link in machine.links:
        if link.kind == KIND:
            below.setdefault(link.a, []).append(link)

    def corrected(link: Link) -> Link:
        end = machine.device(link.b)
        own = below.get(link.b, ())
        if not own or link.kind != KIND or end is None or not faces_down(machine, end):
            return link
        trained = {one.trained_Bps for one in own}
        return replace(
            link,
            capable_Bps=min((one.capable_Bps for one in own if one.capable_Bps), default=link.capable_Bps),
            trained_Bps=own[0].trained_Bps if len(trained) == 1 else link.trained_Bps,
        )

    return tuple(map(corrected, machine.links))


def _slower(function: LinkRate | None, port: LinkRate | None) -> LinkRate | None:
    if function is None or port is None:
        return function  # a host bridge, or a port of unknown speed: the value of the function
    return LinkRate(min(function.GTps, port.GTps), min(function.lanes, port.lanes))


def _rate(link: LinkRate | None) -> float | None:
    return None if link is None else pcie_bandwidth(link.GTps, link.lanes).value


def pcie_limits(devices: Sequence[Device], links: Sequence[Link]) -> tuple[NamedLimit, ...]:
    """`pcie.<device>` for each GPU, adapter and NVMe disk: the narrowest capable link between it and the CPU.

    The trained rate is not a limit: devices lower it when idle and raise it under load.
    """
    above = {link.b: link for link in links if link.kind == KIND}
    parents = {device.id: device.parent for device in devices}
    limits: list[NamedLimit] = []
    for device in devices:
        if device.kind not in _WITH_LIMIT:
            continue
        chain: list[Link] = []
        at: str | None = device.id
        while at is not None and at in above and len(chain) < len(links):
            chain.append(above[at])
            at = parents.get(at)
        if chain:
            limits.append(NamedLimit(f"pcie.{device.id}", _narrowest(chain)))
    return tuple(limits)


def _narrowest(chain: Sequence[Link]) -> Limit:
    if chain[0].capable_Bps is None:
        return Limit.unknown("B/s", "only the trained link speed is known, which is lower while the device is idle")
    known = [(link.capable_Bps, link) for link in chain if link.capable_Bps is not None]
    value, link = min(known, key=lambda pair: pair[0])
    where = "its own link" if link is chain[0] else f"the link {link.a} to {link.b}, the narrowest on the path"
    derivation = f"{value / 1e9:.4g} GB/s per direction: capable rate of {where}, after encoding"
    return Limit(value, "B/s", derivation, Basis.PHYSICAL)
