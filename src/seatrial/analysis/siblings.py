"""Devices of one model, and those whose PCIe link differs from the links of the others.

A rate says nothing by itself where only one state of the link is known (hwloc has the present rate, NCCL the capability
of both ends). Beside devices of the same model it does: they were built to be used alike.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from seatrial.model.frozen import Frozen
from seatrial.model.machine.links import faces_down, links_above
from seatrial.model.machine.machine import Device, DeviceKind, Link, Machine

_CARDS = (DeviceKind.GPU, DeviceKind.NIC, DeviceKind.NVME)
_SAME = 0.01
"""Rates that differ by less are one rate: x16 at 2.5 GT/s (4.00 GB/s) and x4 at 8 GT/s (3.94) are 1.6 % apart."""
_MOST_ODD = 0.34
"""Above this share of the devices, two kinds of slots are a design, not a fault."""

Model = tuple[str | None, ...]
_Each = TypeVar("_Each")


class Unlike(Frozen):
    """Links below the one that most of their siblings have. `rates` are those of the odd devices in B/s, `usual` that
    of the `others`. `is_capability`: what the link can do, not its present state."""

    rates: Mapping[str, float]
    usual: float
    others: tuple[str, ...]
    links: tuple[Link, ...]
    is_capability: bool

    @property
    def is_pair(self) -> bool:
        """Whether there are only two devices, so that neither is the usual one."""
        return len(self.others) == 1


def model_of(device: Device) -> Model:
    """What devices of one model have in common; values that no source states are None."""
    facts = device.facts
    if "device_id" in facts:
        return (device.kind, *map(facts.text, ("vendor_id", "device_id", "subsystem_id")))
    names = ("vendor_id", "model_name", "class_id", "compute_capability", "gpu_architecture", "compute_units", "rate")
    name = device.aliases[0] if device.aliases and device.name.upper().startswith("NIC") else device.name or device.id
    return (device.kind, *map(facts.text, names), re.split(r"[-_]?[0-9]", name, maxsplit=1)[0].lower())


def cards(devices: Iterable[Device]) -> list[Device]:
    """One device for each PCI device: its functions share one link."""
    found: dict[str, Device] = {}
    for device in devices:
        found.setdefault(device.id if device.pci is None else device.pci.rpartition(".")[0], device)
    return list(found.values())


def grouped(items: Iterable[_Each], key: Callable[[_Each], object]) -> list[list[_Each]]:
    """The items in groups of equal keys, in their order."""
    found: dict[object, list[_Each]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return list(found.values())


def unlike_cards(machine: Machine) -> Iterator[Unlike]:
    """GPUs, adapters and disks whose link is slower than those of the others of their model."""
    devices = cards(device for device in machine.devices if device.kind in _CARDS)
    yield from _unlike(machine, grouped(devices, model_of))


def unlike_uplinks(machine: Machine) -> Iterator[Unlike]:
    """Bridges above GPUs or adapters whose link towards the processor is slower than those of bridges like them: of one
    model and depth, above as many of the same devices."""
    below: dict[str, list[Device]] = {}
    for device in cards(d for d in machine.devices if d.kind in (DeviceKind.GPU, DeviceKind.NIC)):
        for above in machine.ancestors(device):
            below.setdefault(above.id, []).append(device)

    def place(bridge: Device) -> object:
        kinds = [device.kind for device in below[bridge.id]]
        gpus = kinds.count(DeviceKind.GPU)
        return (
            *map(bridge.facts.text, ("vendor_id", "device_id")),
            sum(1 for _ in machine.ancestors(bridge)),
            gpus,
            0 if gpus else kinds.count(DeviceKind.NIC),
        )

    bridges = [d for d in machine.of_kind(DeviceKind.BRIDGE) if d.id in below and not faces_down(machine, d)]
    yield from _unlike(machine, grouped(bridges, place))


def _unlike(machine: Machine, groups: Iterable[Sequence[Device]]) -> Iterator[Unlike]:
    above = links_above(machine)
    for group in groups:
        links = [above[device.id] for device in group if device.id in above]
        for is_capability in (True, False):
            # A trained rate below a known capability is judged by that capability (rules/links.py).
            known = [link for link in links if bool(link.capable_Bps) == is_capability and _rate(link)]
            found = _odd(known, is_capability) if len(known) > 1 else None
            if found is not None:
                yield found


def _rate(link: Link) -> float:
    return link.capable_Bps or link.trained_Bps or 0.0


def _odd(links: Sequence[Link], is_capability: bool) -> Unlike | None:
    rates = sorted(map(_rate, links))
    usual = max(set(rates), key=lambda rate: (_alike(rates, rate), rate))
    odd = [link for link in links if _rate(link) < (1 - _SAME) * usual]
    others = [link.b for link in links if abs(_rate(link) - usual) <= _SAME * usual]
    is_pair = len(links) == 2
    if not odd or (not is_pair and (len(others) < 2 or len(odd) > _MOST_ODD * len(links))):
        return None
    return Unlike({link.b: _rate(link) for link in odd}, usual, tuple(others), tuple(odd), is_capability)


def _alike(rates: Sequence[float], rate: float) -> int:
    """How many of these sorted rates are about this one."""
    return bisect_right(rates, (1 + _SAME) * rate) - bisect_left(rates, (1 - _SAME) * rate)
