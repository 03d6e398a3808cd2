"""Rules about settings of PCI functions: access control (ACS), IOMMU translation, sizes of payloads and read requests,
relaxed ordering."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from itertools import pairwise

from seatrial.analysis.grouped import grouped
from seatrial.analysis.rules.devices import fast_adapters, gpus, spans
from seatrial.analysis.rules.finding import (
    Case,
    Subject,
    cite_best,
    finding,
    is_false,
    is_true,
    listed,
    note,
    rule,
    warning,
)
from seatrial.model.machine.fact import Aim, Finding, Severity
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.spelling import count, show_percent

_CARDS = (DeviceKind.GPU, DeviceKind.NIC, DeviceKind.NVME)
_HEADER_B = 24
"""Of one packet: 4 B of framing and sequence number, a header with a 64-bit address of 16 B, a checksum (LCRC) of 4 B
(PCI Express Base Specification 5.0, 2.2.1 and 3.6.2)."""
_SMALL_REQUEST_B = 512
"""Linux and most firmware leave adapters at 512 B or more."""
_LARGEST_REQUEST_B = 4096
_ORDERED_BY_DESIGN = ("Haswell", "Broadwell")
"""Linux turns relaxed ordering off below the root ports of these processors, which do not implement it well
(drivers/pci/quirks.c, quirk_relaxedordering_disable)."""


@rule(Subject.PCIE_SETTINGS, of_hardware=True)
def acs_redirects(case: Case) -> Iterator[Finding]:
    """Fires if access control services (ACS) of a switch redirect traffic between GPUs, or a GPU and an adapter below
    it, up to the processor.

    Only ports between two such devices and the bridge above both count: traffic that meets in the root complex goes
    there anyway.
    """
    machine = case.machine
    cards = gpus(machine)
    turning = _ports_below_switches(machine, [*cards, *fast_adapters(machine)], {gpu.id for gpu in cards})
    bridges = {bridge.id: bridge for bridge in turning if is_true(bridge.facts, "acs_redirects")}
    if not bridges:
        return
    reached = [gpu for gpu in cards if any(above.id in bridges for above in machine.ancestors(gpu))]
    addresses = [bridge.pci or bridge.id.removeprefix("pci-") for bridge in bridges.values()]
    yield warning(
        "acs-redirects",
        devices=bridges,
        observation=f"ACS redirects requests on {count(len(bridges), 'bridge')} "
        + (f"above {spans(gpu.id for gpu in reached)}." if reached else "beside the GPUs."),
        diagnosis="Copies between GPUs, and between a GPU and an adapter, then go up to the root complex instead of "
        "turning around in the switch. That is much slower, and hangs with some IOMMU settings. ACS is needed "
        "to pass single GPUs to virtual machines, but not on bare metal.",
        remedy=f"Turn ACS off on each of these bridges: `sudo setpci -s {addresses[0]} ECAP_ACS+6.w=0000` (until the "
        "next boot; permanently: turn off ACS or the IOMMU in the firmware)",
        evidence=listed(f"{bridge.id}: {cite_best(bridge.facts, 'acs_redirects')}" for bridge in bridges.values()),
        aims=tuple(Aim("acs_redirects", False, bridge) for bridge in bridges),
    )


def _ports_below_switches(machine: Machine, devices: Sequence[Device], wanted: Set[str]) -> list[Device]:
    """The bridges on the paths between two devices, one of them `wanted`, below the bridge where the paths meet. Host
    bridges do not count as meeting points."""
    ways: dict[str, list[Device]] = {}
    below: dict[str, dict[str, set[str]]] = {}
    for device in devices:
        bridges = (bridge for bridge in machine.ancestors(device) if bridge.kind is DeviceKind.BRIDGE)
        way = ways[device.id] = [bridge for bridge in bridges if not _is_host_bridge(bridge)]
        for lower, upper in pairwise([device, *way]):
            below.setdefault(upper.id, {}).setdefault(lower.id, set()).add(device.id)
    meeting = {
        bridge
        for bridge, branches in below.items()
        if len(branches) > 1 and any(not wanted.isdisjoint(ends) for ends in branches.values())
    }
    found: dict[str, Device] = {}
    for way in ways.values():
        last = max((place for place, bridge in enumerate(way) if bridge.id in meeting), default=0)
        found |= {bridge.id: bridge for bridge in way[:last]}
    return list(found.values())


@rule(Subject.PCIE_SETTINGS, of_hardware=True)
def iommu_translates(case: Case) -> Iterator[Finding]:
    """Fires if the IOMMU translates the accesses of GPUs or adapters: a warning with several GPUs, whose copies to each
    other it affects."""
    machine = case.machine
    devices = [*gpus(machine), *fast_adapters(machine)]
    translated = [d for d in devices if (d.facts.text("iommu_domain") or "").upper().startswith("DMA")]
    if not translated:
        return
    several = sum(device.kind is DeviceKind.GPU for device in translated) > 1
    words = _kernel_words(machine)
    passed = next((word for word in words if word in ("iommu=pt", "iommu.passthrough=1")), None)
    peers = (
        "Copies between GPUs over PCIe also take this path through the processor, and some drivers do not support them "
        "at all with translation on bare metal. "
        if several
        else ""
    )
    yield finding(
        "iommu-translates",
        severity=Severity.WARNING if several else Severity.INFO,
        devices=translated,
        observation=f"The IOMMU translates the addresses of {spans(device.id for device in translated)}.",
        diagnosis=f"{peers}Each access needs a translation, and misses of the IOMMU's cache cost latency and rate with "
        "many or large buffers. It protects memory from faulty devices; virtual machines with their own devices need "
        "it.",
        remedy=f"The kernel runs with `{passed}`, but not for these devices: see the reason with `sudo dmesg | grep -i "
        "iommu`"
        if passed
        else "If no virtual machine uses these devices, boot with `iommu=pt`, and measure before and after",
        evidence=listed(f"{d.id}: {cite_best(d.facts, 'iommu_domain')}" for d in translated)
        + (f"; {cite_best(machine.facts, 'kernel_parameters')}" if words else ""),
        aims=() if passed else tuple(Aim("iommu_domain", "identity", device.id) for device in translated),
    )


def _cards(machine: Machine) -> Sequence[Device]:
    return [device for device in machine.devices if device.kind in _CARDS]


def _is_host_bridge(bridge: Device) -> bool:
    return bridge.pci is None or bridge.pci.count(":") == 1


def _kernel_words(machine: Machine) -> Sequence[str]:
    return (machine.facts.text("kernel_parameters") or "").split()


def _address(device: Device) -> str:
    return device.pci or "ADDRESS"


@rule(Subject.PCIE_SETTINGS, of_hardware=True)
def payload_low(case: Case) -> Iterator[Finding]:
    """Fires if a card's payload size is below what it and all bridges above it support."""
    machine = case.machine
    sizes = (
        (device.facts.integer("pcie_payload"), _possible_payload(machine, device), device) for device in _cards(machine)
    )
    low = grouped(((now, able), device) for now, able, device in sizes if now and able and now < able)
    for (now, possible), devices in low.items():
        share = (now / (now + _HEADER_B)) / (possible / (possible + _HEADER_B))
        yield note(
            "pcie-payload-low",
            devices=devices,
            observation=f"The maximum payload of {spans(d.id for d in devices)} is set to {now} B; "
            f"{'it' if len(devices) == 1 else 'they'} and all bridges above support {possible} B.",
            diagnosis=f"Each packet has about {_HEADER_B} B of header, so large transfers reach at most "
            f"{show_percent(share)} of what {possible} B allow. The firmware or the kernel sets it.",
            remedy=_raise_payload(machine),
            evidence=listed(cite_best(device.facts, "pcie_payload") for device in devices)
            + f"; {cite_best(devices[0].facts, 'pcie_max_payload')}",
            aims=tuple(Aim("pcie_payload", possible, device.id) for device in devices),
        )


def _raise_payload(machine: Machine) -> str:
    words = _kernel_words(machine)
    in_force = next((word for word in words if word.startswith("pci=") and "pcie_bus_" in word), None)
    if in_force is None:
        return (
            "Raise the maximum payload in the firmware, or boot with `pci=pcie_bus_safe`, which sets the largest one "
            "that all devices on a path support"
        )
    return f"Raise the maximum payload in the firmware: the kernel runs with `{in_force}`, and it is still lower"


def _possible_payload(machine: Machine, device: Device) -> int | None:
    """The largest size that the device and every bridge above it support; None if one of them is unknown."""
    above = [b for b in machine.ancestors(device) if b.kind is DeviceKind.BRIDGE and not _is_host_bridge(b)]
    sizes = [each.facts.integer("pcie_max_payload") for each in (device, *above)]
    known = [size for size in sizes if size]
    return min(known) if above and len(known) == len(sizes) else None


@rule(Subject.PCIE_SETTINGS, of_hardware=True)
def payload_above_port(case: Case) -> Iterator[Finding]:
    """Fires if a card may send larger packets than the port above accepts."""
    machine = case.machine
    wrong: list[tuple[Device, Device]] = []
    for device in _cards(machine):
        port = machine.device(device.parent or "")
        sizes = [each.facts.integer("pcie_payload") for each in (device, port) if each is not None]
        if port is not None and len(sizes) == 2 and sizes[0] and sizes[1] and sizes[0] > sizes[1]:
            wrong.append((device, port))
    if not wrong:
        return
    first, port = wrong[0]
    yield warning(
        "pcie-payload-mismatch",
        devices=(device.id for device, _ in wrong),
        observation=f"The maximum payload of {spans(d.id for d, _ in wrong)} is larger than that of the port above: "
        f"{first.facts.integer('pcie_payload')} B at {first.id}, {port.facts.integer('pcie_payload')} B at {port.id}.",
        diagnosis="A port rejects packets above its own size as malformed, which is a fatal error of the link. The "
        "sizes differ after hotplug, a reset of one end, or a driver that set its own.",
        remedy="Look for errors with `sudo dmesg | grep -i aer`; let the kernel set both ends: boot with "
        "`pci=pcie_bus_safe`",
        evidence=listed(
            f"{d.id}: {cite_best(d.facts, 'pcie_payload')}, {p.id}: {cite_best(p.facts, 'pcie_payload')}"
            for d, p in wrong
        ),
    )


@rule(Subject.PCIE_SETTINGS, of_hardware=True)
def read_request_small(case: Case) -> Iterator[Finding]:
    """Fires if an adapter reads memory in requests below 512 B."""
    machine = case.machine
    sizes = ((adapter.facts.integer("pcie_read_request"), adapter) for adapter in fast_adapters(machine))
    small = grouped((size, adapter) for size, adapter in sizes if size and size < _SMALL_REQUEST_B)
    for size, adapters in small.items():
        performance = any("pcie_bus_perf" in word for word in _kernel_words(machine))
        why = " The kernel runs with `pci=pcie_bus_perf`, which limits requests to the payload size."
        why = why if performance else ""
        yield warning(
            "pcie-read-request-small",
            devices=adapters,
            observation=f"{spans(a.id for a in adapters)} {'reads' if len(adapters) == 1 else 'read'} memory in "
            f"requests of at most {size} B.",
            diagnosis="To send, an adapter reads host or GPU memory over PCIe. Small requests must be more numerous, "
            "and only so many may be in flight, so the send rate can stay below that of the port." + why,
            remedy=("Boot without `pci=pcie_bus_perf`, or set" if performance else "Set")
            + f" {_LARGEST_REQUEST_B} B until the next boot: `sudo setpci -s {_address(adapters[0])} "
            "CAP_EXP+8.w=5000:7000`, and measure the send rate before and after; permanently, see the adapter's tuning "
            "guide",
            evidence=listed(f"{a.id}: {cite_best(a.facts, 'pcie_read_request')}" for a in adapters),
            aims=tuple(Aim("pcie_read_request", _LARGEST_REQUEST_B, adapter.id) for adapter in adapters),
        )


@rule(Subject.PCIE_SETTINGS, of_hardware=True)
def relaxed_ordering_off(case: Case) -> Iterator[Finding]:
    """Fires if an adapter may not use relaxed ordering, unless the processor is one for which Linux turns it off."""
    machine = case.machine
    off = [adapter for adapter in fast_adapters(machine) if is_false(adapter.facts, "pcie_relaxed_ordering")]
    names = [p.facts.text("microarchitecture") or "" for p in machine.of_kind(DeviceKind.PACKAGE)]
    if not off or any(name.startswith(_ORDERED_BY_DESIGN) for name in names):
        return
    yield note(
        "pcie-relaxed-ordering-off",
        devices=off,
        observation=f"Relaxed ordering is off on {spans(adapter.id for adapter in off)}.",
        diagnosis="Writes of the adapter then wait for all earlier ones, which can limit the receive rate of fast "
        "ports, above all to GPUs or another NUMA node. The firmware turns it off, or the kernel below root ports that "
        "do not support it.",
        remedy="Allow it in the firmware (PCI relaxed ordering), or until the next boot: `sudo setpci -s "
        f"{_address(off[0])} CAP_EXP+8.w=0010:0010`; then measure the receive rate with "
        "`UCX_IB_PCI_RELAXED_ORDERING=on` or `NCCL_IB_PCI_RELAXED_ORDERING=1`",
        evidence=listed(f"{a.id}: {cite_best(a.facts, 'pcie_relaxed_ordering')}" for a in off),
        aims=tuple(Aim("pcie_relaxed_ordering", True, adapter.id) for adapter in off),
    )
