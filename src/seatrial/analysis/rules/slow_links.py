"""Rules about links that are slower than they should be: single ones by measured rates, compared with the trained rate
and the capability, and PCIe links and uplinks that are slower than those of like devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.analysis.device_places import Unlike, unlike_cards, unlike_uplinks
from seatrial.analysis.grouped import grouped
from seatrial.analysis.rules.devices import dies_of_modules, spans
from seatrial.analysis.rules.finding import Case, Subject, at_hardware, finding, is_virtual, listed, rule, warning
from seatrial.analysis.rules.links import READ_AGAIN, capability_of
from seatrial.model.machine.fact import Finding, Severity
from seatrial.model.machine.limit import IMPOSSIBLE_ABOVE, PCIE_GTps, pcie_bandwidth
from seatrial.model.machine.links import PCIE, paths_are_known, way_up
from seatrial.model.machine.machine import Device, DeviceKind, Link, Machine
from seatrial.model.spelling import count, show, show_percent

_MEASURED_LOW = 0.6
"""Packet headers leave 80 to 95 % of the encoded rate of PCIe (128 to 512 B of payload each), and large copies of
healthy devices reach most of that. A rate below this share has another cause."""

_TYPICAL = 0.75, 0.97
"""The range of shares of the encoded rate that copies of a healthy device reach."""


@rule(Subject.MEASURED_LINKS)
def link_measured(case: Case) -> Iterator[Finding]:
    """Fires if a link was measured far below its rate, or above its capability."""
    low: list[tuple[float, Link, float]] = []
    impossible: list[Link] = []
    for link in case.machine.links:
        measured, capable = link.measured_Bps, link.capable_Bps
        if not measured:
            continue
        if capable and measured > IMPOSSIBLE_ABOVE * capable:
            impossible.append(link)
            continue
        rate = _expected(case.machine, link, measured)
        if rate and measured < _MEASURED_LOW * rate:
            low.append((measured / rate, link, rate))
    if impossible:
        yield _measured_above(case.machine, impossible)
    if low:
        yield _measured_low(case.machine, sorted(low, key=lambda entry: entry[0]))


def _expected(machine: Machine, link: Link, measured: float) -> float | None:
    """The most that a copy of one device can reach over its link and the links above it, in B/s. None for an uplink of
    several devices, which only simultaneous copies measure (see `uplinks`)."""
    device = machine.device(link.b)
    if device is not None and device.kind is DeviceKind.BRIDGE:
        return None
    further = way_up(machine, device)[1:] if device is not None and link.kind == PCIE else ()
    # A link that carried more than its trained rate was idle when that was read.
    rates = [
        each.trained_Bps if each.trained_Bps and measured <= each.trained_Bps else each.capable_Bps
        for each in (link, *further)
    ]
    return min(rate for rate in rates if rate) if rates[0] else None


def _measured_above(machine: Machine, links: Sequence[Link]) -> Finding:
    link = links[0]
    ends = [device for each in links for end in (each.a, each.b) if (device := machine.device(end)) is not None]
    may_go_elsewhere = any(end.kind is DeviceKind.GPU for end in ends) and not paths_are_known(machine, ends)
    return finding(
        "link-measured-above-capability",
        severity=Severity.INFO if may_go_elsewhere else Severity.ERROR,
        devices=(link.b for link in links),
        observation=f"{show(link.measured_Bps, 'B/s')} was measured on the link {link.a} - {link.b}, which can carry "
        f"{show(link.capable_Bps, 'B/s')} per direction.",
        diagnosis="One of the two is wrong. Possible causes: both directions were counted as one, data came from a "
        "cache, copies took another path (NVLink), or the reported capability belongs to another link.",
        remedy=f"Do not publish the figure; read the link with {READ_AGAIN} and measure each direction separately",
        evidence=listed(
            f"{link.a} - {link.b}: capable {show(link.capable_Bps, 'B/s')} ({link.source})" for link in links
        ),
    )


def _measured_low(machine: Machine, low: Sequence[tuple[float, Link, float]]) -> Finding:
    share, link, rate = low[0]
    others = (
        f" {count(len(low) - 1, 'other link')} {'is' if len(low) == 2 else 'are'} low as well." if len(low) > 1 else ""
    )
    diagnosis, remedy = _of_pcie(machine, link) if link.kind == PCIE else _of_direct(link)
    return warning(
        "link-measured-low",
        devices=(_lower_end(machine, link) for _, link, _ in low),
        observation=f"The link {link.a} - {link.b} carried {show(link.measured_Bps, 'B/s')}, {show_percent(share)} of "
        f"the {show(rate, 'B/s')} that {_how(link, rate)}.{others}",
        diagnosis=diagnosis,
        remedy=remedy,
        evidence=listed(
            f"{link.a} - {link.b}: {show_percent(share)} of {show(rate, 'B/s')}" for share, link, rate in low
        ),
        loss=1 - share,
    )


def _of_pcie(machine: Machine, link: Link) -> tuple[str, str]:
    """(diagnosis, remedy) of a PCIe link that was measured low."""
    like = _like(machine, link)
    diagnosis = (
        "After packet headers, 80 to 95 % should be left. Possible causes: unpinned memory, memory on the far socket, "
        "small transfers, IOMMU translation, another device on the same uplink"
    )
    diagnosis += (
        f", or a link that slows down under load (heat, errors, power): the rate suits {like}." if like else "."
    )
    remedy = "Bind the process next to the device (see the bindings), use pinned memory, and measure again with "
    remedy += "nothing else running"
    return diagnosis, remedy + (f"; read the link during copies with {READ_AGAIN}" if like else "")


def _of_direct(link: Link) -> tuple[str, str]:
    """(diagnosis, remedy) of a link between GPUs that was measured low."""
    name = "rocm-smi --showxgmierr" if link.kind.lower() == "xgmi" else "nvidia-smi nvlink -s"
    return (
        "Large copies over healthy links of this kind reach 80 to 95 %. Possible causes: some links are down or "
        "retransmit after errors, the copies take another path, or other copies used the links at the same time.",
        f"Check the state and errors of each link with `{name}`, and measure again with nothing else running",
    )


def _lower_end(machine: Machine, link: Link) -> str:
    """The device that a finding is about, not the switch above it."""
    lower = machine.device(link.b)
    return link.a if lower is not None and lower.kind is DeviceKind.SWITCH else link.b


def _how(link: Link, rate: float) -> str:
    if rate == link.trained_Bps:
        return "it is trained for"
    return "it is capable of" if rate == link.capable_Bps else "the links above it allow"


def _like(machine: Machine, link: Link) -> str:
    """Narrower or slower links of the device that match the measured rate: "8 lanes at 16 GT/s"; "" if none."""
    device = machine.device(link.b)
    own = None if device is None else capability_of(device)
    if own is None or link.kind != PCIE or not link.measured_Bps:
        return ""
    lanes, speed = own
    fewer = [(lanes >> halved, speed) for halved in range(1, 5) if lanes >> halved]
    slower = [(lanes, other) for other in reversed(PCIE_GTps) if other < speed]
    fitting = [
        f"{count(wide, 'lane')} at {GTps:g} GT/s"
        for wide, GTps in (*fewer, *slower)
        if (rate := pcie_bandwidth(GTps, wide).value) and _TYPICAL[0] <= link.measured_Bps / rate <= _TYPICAL[1]
    ]
    return " or ".join(fitting)


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
        device = machine.device(next(iter(unlike.rates)))
        kind = "device" if device is None else _NAMES[device.kind]
        idle = device is not None and device.kind is DeviceKind.GPU and _may_be_idle(unlike)
        is_note = unlike.is_pair or idle or is_virtual(machine)
        yield _finding(
            "link-unlike-siblings",
            unlike,
            is_note,
            observation=f"{_rates(unlike)}; {_others(unlike, kind)}.",
            diagnosis=_means(machine, unlike, idle=idle)
            + (" An adapter for storage or management may be in such a slot by design." if kind == "adapter" else ""),
            remedy=at_hardware(machine, _exchange(machine, unlike)),
        )


def _exchange(machine: Machine, unlike: Unlike) -> str:
    first = f"Compare the ports and cards with {READ_AGAIN}, under load; if it stays so, "
    if unlike.rates.keys() <= dies_of_modules(machine):
        return f"{first}report it to the vendor: the board fixes where a module is attached"
    return (
        f"{first}look up the slots in the board's manual and the firmware's division of lanes (bifurcation), then "
        "exchange the card with one of the others: a rate that stays with the slot is that of the slot or riser"
    )


@rule(Subject.SIBLINGS)
def uplink_unlike_siblings(case: Case) -> Iterator[Finding]:
    """Fires if the uplink of a bridge or switch is slower than those of like ones; only a note for two of them."""
    machine = case.machine
    named = {link.b for unlike in unlike_cards(machine) for link in unlike.links}
    for unlike in unlike_uplinks(machine):
        below = {bridge: _below(machine, bridge) for bridge in unlike.rates}
        if all(len(own) == 1 and own[0].id in named for own in below.values()):  # the card's own link is named
            continue
        idle = _may_be_idle(unlike) and all(device.kind is DeviceKind.GPU for own in below.values() for device in own)
        is_note = unlike.is_pair or idle or is_virtual(machine)
        affected = list(dict.fromkeys(device.id for own in below.values() for device in own))
        yield _finding(
            "uplink-unlike-siblings",
            unlike,
            is_note,
            observation=f"{_rates(unlike, 'uplink')} (above {spans(affected)}); {_others(unlike, 'like bridge')}.",
            diagnosis=f"{_means(machine, unlike, idle=idle)} All traffic of {spans(affected)} with the host goes "
            "through it.",
            remedy=at_hardware(
                machine,
                f"Compare both ends with those of the other bridges: {READ_AGAIN}, under load; then check the cable or "
                "riser of that switch and the firmware's division of lanes (bifurcation)",
            ),
        )


def _finding(name: str, unlike: Unlike, is_note: bool, *, observation: str, diagnosis: str, remedy: str) -> Finding:
    return finding(
        name,
        severity=Severity.INFO if is_note else Severity.WARNING,
        devices=unlike.rates,
        observation=observation,
        diagnosis=diagnosis,
        remedy=remedy,
        evidence=listed(f"{link.a} - {link.b}: {show(unlike.rates[link.b], 'B/s')}" for link in unlike.links)
        + f" ({unlike.links[0].source})",
        loss=None if is_note else 1 - min(unlike.rates.values()) / unlike.usual,
    )


def _rates(unlike: Unlike, what: str = "PCIe link") -> str:
    """Such as: "The PCIe link of gpu-3 has 3.94 GB/s"."""
    by_rate = grouped((rate, device) for device, rate in unlike.rates.items())
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


def _below(machine: Machine, bridge: str) -> list[Device]:
    devices = (device for device in machine.devices if device.kind in _NAMES)
    return [device for device in devices if any(above.id == bridge for above in machine.ancestors(device))]
