"""Rules about links trained below their capability. `slow_links` has the rules about measured rates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.analysis.grouped import grouped
from seatrial.analysis.rules.devices import dies_of_modules, spans
from seatrial.analysis.rules.finding import (
    Case,
    Subject,
    at_hardware,
    cite_best,
    finding,
    is_virtual,
    listed,
    note,
    rule,
)
from seatrial.analysis.rules.gpu_state import is_busy
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fact import Finding, Severity
from seatrial.model.machine.limit import pcie_bandwidth
from seatrial.model.machine.links import faces_down
from seatrial.model.machine.machine import Device, DeviceKind, Link, Machine
from seatrial.model.spelling import count, show, show_percent

_TRAINED_ENOUGH = 0.99
_FILLED = 0.6
"""A link that carries this share of its trained rate is full, including headers."""
_LONE = "the port above"
"""Placeholder for a port that no source reports."""

_CARDS = (DeviceKind.GPU, DeviceKind.NIC, DeviceKind.NVME)
READ_AGAIN = "`sudo lspci -vv | grep -E '^[0-9a-f]|LnkCap:|LnkSta:'`"
_SPELLED = {"pcie": "PCIe", "nvlink": "NVLink", "xgmi": "XGMI", "c2c": "C2C"}


class _Lowered(Frozen):
    """A link below its capability; `lanes` (trained, capable) if it is narrower, `GTps` (trained, capable) if it is
    also slower per lane. `is_port_known`: the capability is that of both ends, not of the device alone."""

    link: Link
    capable: float
    trained: float
    lanes: tuple[float, float] | None
    GTps: tuple[float, float] | None
    may_be_idle: bool
    is_port_known: bool

    @property
    def group(self) -> tuple[object, ...]:
        """Links with equal keys are reported in one finding."""
        link = self.link
        return (
            link.kind, self.capable, self.trained, self.lanes, self.GTps, self.may_be_idle, self.is_port_known,
            link.measured_Bps is not None,
        )  # fmt: skip


@rule(Subject.LINKS)
def link_below_capability(case: Case) -> Iterator[Finding]:
    """Fires if a link is trained below what both ends support; similar links are one finding.

    Idle GPUs lower the speed of their links, so this is only a note until a measurement shows that the speed stays low.
    Missing lanes are not caused by idling, nor is a low speed of other devices.
    """
    links = (*case.machine.links, *_links_of_lone_devices(case.machine))
    lowered = [one for link in links if (one := _lowered(case.machine, link)) is not None]
    groups = grouped((one.group, one) for one in lowered)
    for group in groups.values():
        yield _below_capability(case.machine, group)


def _links_of_lone_devices(machine: Machine) -> Iterator[Link]:
    """The links of devices whose port no source reports (`lspci -vv` of the GPUs only), from the device's facts."""
    known = {link.b for link in machine.links}
    for device in machine.devices:
        if device.kind not in _CARDS or device.id in known:
            continue
        own, facts = capability_of(device), device.facts
        lanes, speed = facts.integer("pcie_lanes"), facts.number("pcie_GTps")
        stated = facts.best("pcie_lanes")
        if own is None or not lanes or not speed or stated is None:
            continue
        capable, trained = pcie_bandwidth(own[1], own[0]).value, pcie_bandwidth(speed, lanes).value
        yield Link(_LONE, device.id, "pcie", capable, trained, stated.source)


def _lowered(machine: Machine, link: Link) -> _Lowered | None:
    capable, trained, measured = link.capable_Bps, link.trained_Bps, link.measured_Bps
    device, port = machine.device(link.b), machine.device(link.a)
    if not capable or not trained or trained >= _TRAINED_ENOUGH * capable:
        return None
    if measured is not None and measured > trained:  # proves that the link was idle when it was read
        return None
    if device is not None and faces_down(machine, device):  # its lower end is another link of the machine
        return None
    narrower, slower = _below(device, port, "lanes"), _below(device, port, "GTps")
    is_port_known = link.a != _LONE and (port is None or "pcie_max_lanes" in port.facts)
    is_idle = not _was_loaded(link, device) and _idles(machine, device)
    return _Lowered(link, capable, trained, narrower, slower, is_idle, is_port_known)


def _was_loaded(link: Link, device: Device | None) -> bool:
    """Whether a measurement shows that the link keeps its trained rate under load. Devices behind an uplink may be too
    slow to fill it."""
    if link.measured_Bps is None or not link.trained_Bps:
        return False
    is_uplink = device is not None and device.kind is DeviceKind.BRIDGE
    return not is_uplink or link.measured_Bps >= _FILLED * link.trained_Bps


def _below(device: Device | None, port: Device | None, what: str) -> tuple[float, float] | None:
    """(trained, what both ends support) of `lanes` or `GTps` of a link, if that is less; None if not, or unknown."""
    if device is None:
        return None
    trained, own = device.facts.number(f"pcie_{what}"), device.facts.number(f"pcie_max_{what}")
    above = None if port is None else port.facts.number(f"pcie_max_{what}")
    if not trained or not own:
        return None
    able = min(own, above) if above else own
    return (trained, able) if trained < able else None


def _idles(machine: Machine, device: Device | None) -> bool:
    """Whether idling may explain a low link speed of this device: a GPU, or a bridge with only GPUs behind it."""
    if device is None:
        return False
    if device.kind is not DeviceKind.BRIDGE:
        return device.kind is DeviceKind.GPU and not is_busy(device.facts)
    below = [d for d in machine.devices if d.kind is not DeviceKind.BRIDGE and device in machine.ancestors(d)]
    return bool(below) and all(d.kind is DeviceKind.GPU for d in below)


def _below_capability(machine: Machine, group: Sequence[_Lowered]) -> Finding:
    first = group[0]
    kind = _SPELLED.get(first.link.kind.lower(), first.link.kind)
    names = spans(entry.link.b for entry in group)
    rates = f"{show(first.trained, 'B/s')} of {show(first.capable, 'B/s')}"
    virtual = " The port above may be emulated: check the link on the host." if is_virtual(machine) else ""
    link_is = f"The {kind} link of {names} is" if len(group) == 1 else f"The {kind} links of {names} are"
    severity, loss = Severity.WARNING, 1 - first.trained / first.capable
    if first.lanes is not None:
        loss = _loss_of_narrow(first)
        ends = "both ends" if first.is_port_known else "the device" if len(group) == 1 else "the devices"
        observation = f"{link_is} {_seen_of_narrow(first, ends)} ({rates})."
        diagnosis = _means_of_narrow(first) + (
            "" if first.is_port_known else " The capability of the port above is unknown: it may have no more lanes."
        )
        remedy = f"Read it under load with {READ_AGAIN}; if it stays narrow, reseat the card and check the slot in the "
        remedy += "board's manual"
    elif first.may_be_idle:
        severity = Severity.INFO
        observation = f"{link_is} trained at {rates}."
        diagnosis = (
            "Possibly only idle: GPUs lower the speed of their link when idle, and raise it within milliseconds."
        )
        remedy = f"Read it while the device copies: {READ_AGAIN} in one shell, a bandwidth test in another"
    else:
        observation = f"{link_is} trained at {rates}."
        diagnosis = (
            f"{show_percent(loss)} of the link rate is missing. Possible causes: errors at full speed, a riser or "
            "cable of an older generation, a bad contact, or a speed limit in the firmware."
        )
        remedy = f"Read it under load with {READ_AGAIN}, look for errors with `sudo dmesg | grep -i aer`; if it stays "
        remedy += "slow, reseat the card and check the firmware setting of that slot"
    measured = [entry.link.measured_Bps for entry in group if entry.link.measured_Bps]
    if measured:
        observation = f"{observation[:-1]}; at most {show(max(measured), 'B/s')} was measured."
    hidden = bool(virtual) and severity is Severity.WARNING
    return finding(
        "link-below-capability",
        severity=Severity.INFO if hidden else severity,
        devices=(entry.link.b for entry in group),
        observation=observation,
        diagnosis=diagnosis + virtual,
        remedy=at_hardware(machine, remedy) if severity is Severity.WARNING else remedy,
        evidence=f"{listed(f'{entry.link.a} - {entry.link.b}' for entry in group)} ({first.link.source})"
        + _cited(machine, first.link),
        loss=loss if severity is Severity.WARNING and not hidden else None,
    )


def _seen_of_narrow(lowered: _Lowered, ends: str) -> str:
    """Such as: "8 lanes wide at 8 GT/s; both ends can do 16 lanes at 16 GT/s"."""
    trained, capable = lowered.lanes or (0, 0)
    if lowered.GTps is None:
        return f"{count(trained, 'lane')} wide; {ends} can do {capable:g}"
    speed, highest = lowered.GTps
    return f"{count(trained, 'lane')} wide at {speed:g} GT/s; {ends} can do {capable:g} lanes at {highest:g} GT/s"


def _loss_of_narrow(lowered: _Lowered) -> float:
    """The share of the rate that is missing; of a device that may be idle, only that of the lanes."""
    trained, capable = lowered.lanes or (1, 1)
    return 1 - trained / capable if lowered.may_be_idle else 1 - lowered.trained / lowered.capable


def _means_of_narrow(lowered: _Lowered) -> str:
    trained, capable = lowered.lanes or (1, 1)
    text = (
        f"{show_percent(1 - trained / capable)} of the lanes are missing. With few exceptions, idle links become "
        "slower, not narrower, so suspect the hardware: a slot with fewer lanes than its length, a riser or cable, a "
        "bad contact, or lanes that the firmware assigned to another slot."
    )
    if lowered.GTps is None:
        return text
    speed, highest = lowered.GTps
    text += f" Each remaining lane also runs at {speed:g} of {highest:g} GT/s"
    if lowered.may_be_idle:
        return text + ": possibly only because the GPU is idle."
    return text + (
        f"; together {show_percent(_loss_of_narrow(lowered))} of the rate is missing. Errors at full speed, a bad "
        "contact, or a riser or cable of an older generation can cause both."
    )


def _cited(machine: Machine, link: Link) -> str:
    device = machine.device(link.b)
    names = ("pcie_GTps", "pcie_lanes", "pcie_max_GTps", "pcie_max_lanes")
    cited = [cite_best(device.facts, name) for name in names if device is not None and name in device.facts]
    return f"; {'; '.join(cited)}" if cited else ""


@rule(Subject.LINKS, of_hardware=True)
def slot_below_card(case: Case) -> Iterator[Finding]:
    """Fires if a GPU, adapter or disk supports more than the port that it is plugged into."""
    machine, dies = case.machine, dies_of_modules(case.machine)
    groups: dict[tuple[int, float, int, float], list[Device]] = {}
    for device in machine.devices:
        port = machine.device(device.parent or "")
        if device.kind not in _CARDS or port is None:
            continue
        own, above = capability_of(device), capability_of(port)
        if own is not None and above is not None and (above[0] < own[0] or above[1] < own[1]):
            groups.setdefault((*own, *above), []).append(device)
    for (lanes, speed, port_lanes, port_speed), devices in groups.items():
        own_rate = pcie_bandwidth(speed, lanes).value
        both = pcie_bandwidth(min(speed, port_speed), min(lanes, port_lanes)).value
        if own_rate is None or both is None or both >= _TRAINED_ENOUGH * own_rate:
            continue
        port_facts = machine.device(devices[0].parent or "")
        yield note(
            "slot-below-card",
            devices=devices,
            observation=f"{spans(device.id for device in devices)} can do {count(lanes, 'lane')} at {speed:g} GT/s "
            f"({show(own_rate, 'B/s')}); the port above offers {count(port_lanes, 'lane')} at {port_speed:g} GT/s, "
            f"which leaves {show(both, 'B/s')}.",
            diagnosis="The platform or the slot is the limit. This is normal for a card that is newer than its board; "
            "it costs bandwidth if the board has a better slot.",
            remedy="Plan with this rate: the board fixes where a module is attached"
            if dies >= {device.id for device in devices}
            else "Check the slots in the board's manual, and move the card if there is a wider or faster one",
            evidence="; ".join(
                cite_best(d.facts, name)
                for d in (devices[0], port_facts)
                if d is not None
                for name in ("pcie_max_lanes", "pcie_max_GTps")
            ),
        )


def capability_of(device: Device) -> tuple[int, float] | None:
    """(lanes, GT/s) that a PCI function supports, or None if either is unknown."""
    lanes, speed = device.facts.integer("pcie_max_lanes"), device.facts.number("pcie_max_GTps")
    return (lanes, speed) if lanes and speed else None
