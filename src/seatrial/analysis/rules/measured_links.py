"""Rules about single links: measured rates compared with the trained rate and the capability."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.analysis.rules.case import Case
from seatrial.analysis.rules.finding import Subject, finding, rule, warning
from seatrial.analysis.rules.links import READ_AGAIN, capability_of
from seatrial.analysis.rules.words import listed
from seatrial.model.machine.finding import Finding, Severity
from seatrial.model.machine.limit import IMPOSSIBLE_ABOVE, PCIE_GTps, pcie_bandwidth
from seatrial.model.machine.links import PCIE, paths_are_known, way_up
from seatrial.model.machine.machine import DeviceKind, Link, Machine
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
    several devices, which only simultaneous copies measure (see `copies`)."""
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
