"""Rules about PCIe links that are slower than those of like devices, and uplinks slower than like ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.analysis.rules.case import Case
from seatrial.analysis.rules.devices import is_virtual, spans
from seatrial.analysis.rules.finding import Subject, finding, rule
from seatrial.analysis.rules.links import READ_AGAIN
from seatrial.analysis.rules.words import listed
from seatrial.analysis.siblings import Unlike, unlike_cards, unlike_uplinks
from seatrial.model.machine.finding import Finding, Severity
from seatrial.model.machine.limit import pcie_bandwidth
from seatrial.model.machine.machine import DeviceKind, Machine
from seatrial.model.spelling import count, show

_LANES_OF_A_GPU = 16
_IDLE_GTps = (2.5, 5.0)
"""The speeds to which idle GPUs lower their links."""
_NEAR = 0.005
_NAMES = {DeviceKind.GPU: "GPU", DeviceKind.NIC: "adapter", DeviceKind.NVME: "NVMe disk"}


@rule(Subject.SIBLINGS)
def link_unlike_siblings(case: Case) -> Iterator[Finding]:
    """Fires if the PCIe link of a GPU, adapter or disk is slower than those of the others of its model.

    Two devices that differ are only a note: slots of a workstation do by design. So is the rate of a GPU that may be
    idle, and of virtual machines, whose ports are emulated.
    """
    machine = case.machine
    for unlike in unlike_cards(machine):
        first = next(iter(unlike.rates))
        device = machine.device(first)
        kind = "device" if device is None else _NAMES[device.kind]
        idle = device is not None and device.kind is DeviceKind.GPU and _may_be_idle(unlike)
        is_note = unlike.is_pair or idle or is_virtual(machine)
        ratio = min(unlike.rates.values()) / unlike.usual
        yield finding(
            "link-unlike-siblings",
            severity=Severity.INFO if is_note else Severity.WARNING,
            devices=tuple(unlike.rates),
            observation=f"{_rates(unlike)}; {_others(unlike, kind)}.",
            diagnosis=_means(machine, unlike, idle=idle)
            + (" An adapter for storage or management may be in such a slot by design." if kind == "adapter" else ""),
            remedy=f"Compare the ports and cards with {READ_AGAIN}, under load; if it stays so, look up the slots in "
            "the board's manual and the firmware's division of lanes (bifurcation), then exchange the card with one of "
            "the others: a rate that stays with the slot is that of the slot or riser",
            evidence=listed(f"{link.a} - {link.b}: {show(unlike.rates[link.b], 'B/s')}" for link in unlike.links)
            + f" ({unlike.links[0].source})",
            loss=None if is_note else 1 - ratio,
        )


@rule(Subject.SIBLINGS)
def uplink_unlike_siblings(case: Case) -> Iterator[Finding]:
    """Fires if the uplink of a bridge or switch is slower than those of like ones; only a note for two of them."""
    machine = case.machine
    named = {link.b for unlike in unlike_cards(machine) for link in unlike.links}
    for unlike in unlike_uplinks(machine):
        below = {bridge: _below(machine, bridge) for bridge in unlike.rates}
        if all(len(ids) == 1 and ids[0] in named for ids in below.values()):  # the card's own link is named
            continue
        idle = _may_be_idle(unlike) and all(_has_only_gpus(machine, bridge) for bridge in unlike.rates)
        is_note = unlike.is_pair or idle or is_virtual(machine)
        affected = list(dict.fromkeys(device for ids in below.values() for device in ids))
        yield finding(
            "uplink-unlike-siblings",
            severity=Severity.INFO if is_note else Severity.WARNING,
            devices=tuple(unlike.rates),
            observation=f"{_rates(unlike, 'uplink')} (above {spans(affected)}); {_others(unlike, 'like bridge')}.",
            diagnosis=f"{_means(machine, unlike, idle=idle)} All traffic of {spans(affected)} with the host goes "
            "through it.",
            remedy=f"Compare both ends with those of the other bridges: {READ_AGAIN}, under load; then check the cable "
            "or riser of that switch and the firmware's division of lanes (bifurcation)",
            evidence=listed(f"{link.a} - {link.b}: {show(unlike.rates[link.b], 'B/s')}" for link in unlike.links)
            + f" ({unlike.links[0].source})",
            loss=None if is_note else 1 - min(unlike.rates.values()) / unlike.usual,
        )


def _rates(unlike: Unlike, what: str = "PCIe link") -> str:
    """Such as: "The PCIe link of gpu-3 has 3.94 GB/s"."""
    by_rate: dict[float, list[str]] = {}
    for device, rate in unlike.rates.items():
        by_rate.setdefault(rate, []).append(device)
    parts = [
        f"{spans(devices)} {'has' if len(devices) == 1 else 'have'} {show(rate, 'B/s')}"
        for rate, devices in by_rate.items()
    ]
    return f"The {what}{'s' if len(unlike.rates) > 1 else ''} of {listed(parts)}"


def _others(unlike: Unlike, kind: str) -> str:
    if unlike.is_pair:
        return f"that of {unlike.others[0]}, of the same model, has {show(unlike.usual, 'B/s')}"
    who = (
        count(len(unlike.others), kind)
        if kind.startswith("like")
        else f"{count(len(unlike.others), f'other {kind}')} of this model"
    )
    return f"{who} have {show(unlike.usual, 'B/s')} each"


def _means(machine: Machine, unlike: Unlike, *, idle: bool) -> str:
    if idle:
        text = (
            "Possibly only idle: GPUs lower the speed of their link when idle. Else the link has fewer lanes or a "
            "lower speed than the others; a rate alone does not show which."
        )
    elif unlike.is_capability:
        text = (
            "This is what both ends of the link support, not its present state, so idling does not explain it: the "
            "slot, riser or switch port has fewer lanes or an older generation, or the file states it wrongly."
        )
    else:
        text = (
            "It has fewer lanes than the others or a lower speed; a rate alone does not show which, nor why. Possible "
            "causes: a slot with fewer lanes, a riser or cable, a bad contact, lanes that the firmware assigned "
            "elsewhere."
        )
    if unlike.is_pair:
        text += " With only two devices, the slots may differ by design."
    else:
        text += " A program that uses all of them waits for the slowest."
    return text + (
        " In a virtual machine the port may be emulated: check it on the host." if is_virtual(machine) else ""
    )


def _may_be_idle(unlike: Unlike) -> bool:
    """Whether every rate is that of a GPU's 16 lanes at a speed of idle links."""
    rates = [pcie_bandwidth(speed, _LANES_OF_A_GPU).value or 0.0 for speed in _IDLE_GTps]
    return not unlike.is_capability and all(
        any(abs(own - rate) <= _NEAR * rate for rate in rates) for own in unlike.rates.values()
    )


def _below(machine: Machine, bridge: str) -> Sequence[str]:
    return [
        device.id
        for device in machine.devices
        if device.kind in _NAMES and any(above.id == bridge for above in machine.ancestors(device))
    ]


def _has_only_gpus(machine: Machine, bridge: str) -> bool:
    found = [machine.device(name) for name in _below(machine, bridge)]
    return all(device is not None and device.kind is DeviceKind.GPU for device in found)
