"""Distance of GPUs and adapters in the PCI tree, in the classes of `nvidia-smi topo -m`.

PIX: below one PCIe switch (or two functions of one device); PXB: through several switches; PHB: through the host
bridge; NODE: through two host bridges of one NUMA node; SYS: between NUMA nodes (legend of nvidia-smi topo). NCCL has
no host bridges: its PHB stands for both PHB and NODE. If another source does not show the bridges above a device
(`lspci -s`), any class but SYS is possible: None. Two GPUs of one vendor may have direct links (NVLink, XGMI) that the
PCI tree does not show: their class is None too.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from itertools import combinations

from seatrial.model.machine import Device, DeviceKind, Path

_WITH_OWN_LINKS = frozenset({"10de", "1002"})  # NVIDIA, AMD


def pci_paths(
    devices: Sequence[Device],
    lone: Container[tuple[str, str]] = frozenset(),
    condensed: Container[str] = frozenset(),
    in_nccl: Container[str] = frozenset(),
) -> tuple[Path, ...]:
    """Each pair of GPUs and adapters once, in the order of `devices`; devices that are not on PCI are left out.

    `lone` has the pairs of GPUs that are known to have no direct links, `condensed` the bridges that represent a whole
    switch, `in_nccl` the addresses that NCCL lists.
    """
    by_id = {device.id: device for device in devices}
    ends = [device for device in devices if device.kind in (DeviceKind.GPU, DeviceKind.NIC) and device.pci is not None]

    def path_class(a: Device, b: Device) -> str | None:
        is_unknown = _may_have_direct_links(a, b) and (a.id, b.id) not in lone
        if is_unknown:
            return None
        return _class(a, b, by_id, condensed, is_nccl=a.pci in in_nccl and b.pci in in_nccl)

    return tuple(Path(a.id, b.id, path_class(a, b)) for a, b in combinations(ends, 2))


def _may_have_direct_links(a: Device, b: Device) -> bool:
    vendors = {device.facts.text("vendor_id") for device in (a, b)}
    is_one_vendor = len(vendors - {None}) < 2
    return a.kind is DeviceKind.GPU and b.kind is DeviceKind.GPU and is_one_vendor and bool(vendors & _WITH_OWN_LINKS)


def _class(
    a: Device, b: Device, by_id: Mapping[str, Device], condensed: Container[str], *, is_nccl: bool
) -> str | None:
    above_a, above_b = _bridges(a, by_id), _bridges(b, by_id)
    common = next((bridge for bridge in above_a if bridge in above_b), None)
    if common is None:
        if a.numa is None or b.numa is None:
            return None
        if a.numa != b.numa:
            return "SYS"
        if all(above and _is_host(above[-1]) for above in (above_a, above_b)):
            return "NODE"
        return "PHB" if is_nccl else None
    if common == above_a[-1] and _is_host(common):
        return "PHB"
    # A switch is one upstream port (the common bridge) and a downstream port in front of each device.
    between = max(above_a.index(common), above_b.index(common))
    return "PIX" if between <= (0 if common in condensed else 1) else "PXB"


def _is_host(bridge: str) -> bool:
    """A host bridge is "pci-0000:00", a port "pci-0000:00:01.0"."""
    return bridge.count(":") == 1


def _bridges(device: Device, by_id: Mapping[str, Device]) -> list[str]:
    """The ids of the bridges above a device, the host bridge last."""
    bridges: list[str] = []
    at = by_id.get(device.parent) if device.parent is not None else None
    while at is not None and at.kind is DeviceKind.BRIDGE and at.id not in bridges:
        bridges.append(at.id)
        at = by_id.get(at.parent) if at.parent is not None else None
    return bridges
