"""Rules about a device at the wrong switch or NUMA node, and a GPU that is missing from a regular board."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.analysis.device_places import Moved, Spread, gone, moved, short_of_a_board, spreads
from seatrial.analysis.direct_links import direct_links
from seatrial.analysis.rules.case import Case
from seatrial.analysis.rules.devices import coherent_gpus, fast_adapters, gpus, is_virtual, spans
from seatrial.analysis.rules.finding import Subject, finding, rule
from seatrial.analysis.rules.words import listed
from seatrial.analysis.siblings import cards
from seatrial.model.machine.finding import Finding, Severity
from seatrial.model.machine.links import links_above
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.spelling import count

_NAMES = {DeviceKind.GPU: "GPU", DeviceKind.NIC: "adapter"}
_MOST_PLACES = 8
_FAST_BPS = 3.9e9
"""A network function with such a PCIe link is not a management port."""


@rule(Subject.MISPLACED)
def gpu_missing(case: Case) -> Iterator[Finding]:
    """Fires if one switch or NUMA node has one GPU less than all others, or a board of linked GPUs lacks one."""
    machine = case.machine
    linked = direct_links(machine)
    found = next((one for spread in _spreads(machine) if (one := gone(spread)) is not None), short_of_a_board(linked))
    if found is None:
        return
    where = _place(found.spread, found.place) if found.spread is not None and found.place is not None else None
    counted = "" if found.spread is None else f" ({_counts(found.spread, ())})"
    yield finding(
        "gpu-missing",
        severity=Severity.INFO if is_virtual(machine) else Severity.WARNING,
        devices=() if found.spread is None or found.place is None else found.spread.places[found.place],
        observation=f"There are {found.present} GPUs"
        + (f", and {where} has one less than the others{counted}." if where else f" on a board for {found.expected}."),
        diagnosis=f"The {found.expected}th GPU is not in this data: it failed, is not seated or powered, is given to a "
        "virtual machine, or is hidden from the process that wrote it (a container, a batch system). "
        "The data does not show which.",
        remedy="Count them on the bare node: `lspci -d 10de: | grep -ci -e 3d -e vga` (AMD: `lspci -d 1002:`), "
        "and search the kernel's messages: `sudo dmesg | grep -i -e xid -e 'fallen off' -e pcieport`",
        evidence=listed(_listing(found.spread))
        if found.spread is not None
        else f"{count(len(linked.gpus), 'GPU')} with {linked.name}: {spans(linked.gpus)}",
    )


def _out_of_place(machine: Machine, found: Moved) -> Finding:
    spread = found.spread
    kind = _NAMES[spread.what]
    one = len(found.suspects) == 1
    crowded, short = (_place(spread, place, found.suspects) for place in (found.crowded, found.short))
    is_near_none = found.crowded not in spread.places
    where = "is near no GPU" if is_near_none else f"is {'an' if kind[0] in 'a' else 'a'} {kind} too many at {crowded}"
    other = "adapters" if spread.what is DeviceKind.GPU else "GPUs"
    even = f" Each has the same number of {other}." if spread.has_even_others else ""
    costs = (
        "Some GPUs then share an adapter or reach one over a longer path."
        if spread.what is DeviceKind.NIC
        else "A rank that is placed by the pattern runs far from it."
    )
    return finding(
        "device-out-of-place",
        severity=Severity.INFO if is_virtual(machine) else Severity.WARNING,
        devices=found.suspects,
        observation=f"{'' if one else 'One of '}{spans(found.suspects)} {where}, and {short} has one less than the "
        f"others: {_counts(spread, found.suspects)}.{even}",
        diagnosis=f"{'It' if one else 'One of them'} breaks the pattern of the others: it is in another slot than they "
        f"are, or this data attributes it to the wrong place. {costs}",
        remedy="Compare with a node of the same model (`lstopo`, `nvidia-smi topo -m`), and check the slot in the "
        "server's manual; if it is right, bind by what is there (see the bindings)",
        evidence=listed(_listing(spread)),
    )


def _spreads(machine: Machine) -> Iterator[Spread]:
    if coherent_gpus(machine):
        return
    yield from spreads(machine, cards(gpus(machine)), cards(_adapters(machine)))


def _adapters(machine: Machine) -> list[Device]:
    """The adapters that carry messages between nodes; of a list of PCI functions, those with a fast link."""
    named = {device.id for device in fast_adapters(machine)}
    above = links_above(machine)

    def has_fast_link(nic: Device) -> bool:
        if {"state", "rate"} & set(nic.facts):
            return False
        link = above.get(nic.id)
        return link is not None and (link.capable_Bps or link.trained_Bps or 0.0) >= _FAST_BPS

    return [nic for nic in machine.of_kind(DeviceKind.NIC) if nic.id in named or has_fast_link(nic)]


def _place(spread: Spread, place: str, without: Sequence[str] = ()) -> str:
    """Such as: "NUMA node 1", "the switch of GPU0, GPU1"; `without` are devices that may not belong there."""
    if spread.is_node:
        return place
    own, beside = spread.places.get(place, ()), spread.beside.get(place, ())
    first, second = (own, beside) if spread.what is DeviceKind.GPU else (beside, own)
    members = [name for name in first if name not in without] or [name for name in second if name not in without]
    return f"the switch of {spans(members or first or second)}"


def _counts(spread: Spread, suspects: Sequence[str]) -> str:
    """Such as: "3, 1, 2 and 2 adapters at NUMA nodes 0, 1, 2, 3"."""
    numbers = [str(number) for number in spread.counts]
    if all(name.startswith("NUMA node ") for name in spread.places):
        where = f"NUMA nodes {', '.join(name.removeprefix('NUMA node ') for name in spread.places)}"
    else:
        where = "; ".join(_place(spread, name, suspects) for name in list(spread.places)[:_MOST_PLACES])
        where += f" and {len(numbers) - _MOST_PLACES} more" if len(numbers) > _MOST_PLACES else ""
    return f"{', '.join(numbers[:-1])} and {numbers[-1]} {_NAMES[spread.what]}s at {where}"


def _listing(spread: Spread) -> Sequence[str]:
    return [f"{_place(spread, place)}: {spans(ids) or 'none'}" for place, ids in spread.places.items()]


@rule(Subject.MISPLACED)
def device_out_of_place(case: Case) -> Iterator[Finding]:
    """Fires if all switches or NUMA nodes have the same number of GPUs, or of adapters of a model, but for one with one
    more and one with one less."""
    for spread in _spreads(case.machine):
        found = moved(spread)
        if found is not None:
            yield _out_of_place(case.machine, found)
            return
