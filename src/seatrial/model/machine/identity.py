"""What identifies a machine: its settings, whether it is emulated, and what distinguishes two nodes of one allocation.

Results of unlike nodes are never put together. Nodes are alike if what identifies a machine is the same but for its
name, the numbers of its CPUs and the addresses of its devices.

Times measured on emulated processors are those of the emulator and say nothing of any hardware. Nothing else decides
this. What is measured on such a machine has no limits (`model.results.reading`) and, in
`analysis`, no figures that could be compared (`ExperimentResult.emulated`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from seatrial.model.benchmark.program import Hello
from seatrial.model.machine.fact import Facts, FactValue, discovered, installed_memory_B
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.spelling import show

IDENTIFYING: Mapping[DeviceKind | None, frozenset[str]] = {
    None: frozenset(
        {
            *("kernel", "kernel_parameters", "mitigations", "architecture", "page_size", "clocksource"),
            *("governor", "frequency_driver", "boost", "smt_active", "thp_enabled", "thp_defrag", "numa_balancing"),
            *("product", "bios_version", "hypervisor", "container", "cgroup_cpu_limit"),
        }
    ),
    DeviceKind.PACKAGE: frozenset(
        {"vendor", "model_name", "family", "model", "stepping", "implementer", "part", "microcode", "isa"}
    ),
    DeviceKind.CORE: frozenset({"implementer", "part"}),
    DeviceKind.PU: frozenset(
        {
            *("governor", "frequency_driver", "energy_preference"),
            *("max_frequency", "min_frequency", "base_frequency", "allowed_max_frequency"),
        }
    ),
    DeviceKind.CACHE: frozenset({"level", "type", "size"}),
    DeviceKind.NUMA: frozenset(),
    DeviceKind.GPU: frozenset({"vendor_id", "device_id", "subsystem_id"}),
    DeviceKind.SWITCH: frozenset({"vendor_id", "device_id", "subsystem_id"}),
    DeviceKind.NIC: frozenset({"vendor_id", "device_id", "subsystem_id"}),
}
"""Kind of device (None: the whole machine) -> the facts that are part of its identity; other kinds are not
part of it. A fact belongs here only if figures measured before and after a change of it are not comparable."""

_CPU_SIDE = (DeviceKind.PACKAGE, DeviceKind.NUMA, DeviceKind.CACHE, DeviceKind.CORE, DeviceKind.PU)
_PCI_SIDE = (DeviceKind.GPU, DeviceKind.SWITCH, DeviceKind.NIC)
_NETWORK_CLASS = "02"  # a network adapter on USB has the address of the USB controller (class 0c)


def machine_identity(machine: Machine) -> str:
    """SHA-256 (hex) of everything that makes measurements on this machine, with its settings, not comparable to others.

    Host name; the tree of packages, NUMA nodes, caches, cores and hardware threads; GPUs and network adapters on PCI
    with the capable rates of their links; the size of memory; the CPUs that this process may use; and the facts of
    `IDENTIFYING`, each from the most trusted source that discovered it. Nothing that varies without a change of the
    machine, that is asserted by a document, or that only root can read: docs/adr/0003-what-identifies-a-machine.md.
    """
    content = {
        "name": machine.name,
        "facts": _identifying(machine.facts, None),
        "memory": installed_memory_B(machine.facts),
        "cpus": [
            [device.id, device.kind, device.parent, device.numa, _identifying(device.facts, device.kind)]
            for device in machine.devices
            if device.kind in _CPU_SIDE
        ],
        "pci": sorted(_on_pci(machine)),
        "allowed_cpus": machine.allowed_cpus,
    }
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _identifying(facts: Facts, kind: DeviceKind | None) -> dict[str, FactValue]:
    chosen = ((name, discovered(facts, name)) for name in IDENTIFYING[kind])
    return {name: fact.value for name, fact in chosen if fact is not None}


def _on_pci(machine: Machine) -> Iterator[tuple[str, str]]:
    """(address, all that identifies it) of each GPU, NVSwitch and network adapter that is a PCI function.

    Includes the links above it, whose rate it shares, but no bridges that lead only to other devices.
    """
    above = {link.b: link for link in machine.links if link.capable_Bps is not None and link.kind.lower() == "pcie"}
    for device in machine.devices:
        if device.kind not in _PCI_SIDE or device.pci is None:
            continue
        if device.kind is DeviceKind.NIC and not (device.facts.text("class_id") or "").startswith(_NETWORK_CLASS):
            continue
        ids = _identifying(device.facts, device.kind)
        path = (device, *machine.ancestors(device))
        links = [above[part.id].capable_Bps for part in path if part.id in above]
        yield device.pci, json.dumps([device.kind, device.numa, ids, links], sort_keys=True, allow_nan=False)


_OF_ONE_NODE = re.compile(r"(root|rootflags|BOOT_IMAGE|BOOTIF|initrd|ip|resume|hostname|rd\.[\w.]+|nfsroot)\Z")
"""Parameters of the kernel that name a disk, an address or a file."""
_PARTS = {
    DeviceKind.PACKAGE: "processors",
    DeviceKind.NUMA: "NUMA nodes",
    DeviceKind.CACHE: "caches",
    DeviceKind.CORE: "cores",
    DeviceKind.PU: "hardware threads",
    DeviceKind.GPU: "GPUs",
    DeviceKind.SWITCH: "switches",
    DeviceKind.NIC: "network adapters",
}
_MOST_SHOWN = 60


def unlike(node: Machine, other: Machine) -> tuple[str, ...]:
    """What `node` has otherwise than `other`, a few words each ("1 CPU instead of 2"); empty if they are alike."""
    return tuple(_differences(node, other))


def _differences(node: Machine, other: Machine) -> Iterator[str]:
    for what, own, theirs in (
        ("usable CPUs", len(node.allowed_cpus), len(other.allowed_cpus)),
        ("usable cores", len(node.cpus_one_per_core), len(other.cpus_one_per_core)),
    ):
        if own != theirs:
            yield f"{own} {what} instead of {theirs}"
    for what, size, usual in (
        ("memory", installed_memory_B(node.facts), installed_memory_B(other.facts)),
        ("memory limit", _limit_B(node.facts), _limit_B(other.facts)),
    ):
        if size != usual:
            yield _instead(what, _bytes(size), _bytes(usual))
    for name in sorted(IDENTIFYING[None]):
        value, usually = _of_machine(node.facts, name), _of_machine(other.facts, name)
        if value != usually:
            yield _instead(name, _shown(value), _shown(usually))
    for kind, what in _PARTS.items():
        parts, usual_parts = _parts(node, kind), _parts(other, kind)
        if parts.total() != usual_parts.total():
            yield f"{parts.total()} {what} instead of {usual_parts.total()}"
        elif parts != usual_parts:
            yield f"other {what}: {_first(parts - usual_parts)} instead of {_first(usual_parts - parts)}"


def _instead(what: str, own: str | None, usual: str | None) -> str:
    """A difference in a few words; None: a node does not state it."""
    if usual is None:
        return f"{what} {own}, which the others do not state"
    return f"no {what}, where the others have {usual}" if own is None else f"{what} {own} instead of {usual}"


def _limit_B(facts: Facts) -> int | None:
    limit = facts.number("cgroup_memory_limit")
    return None if limit is None else round(limit)


def _bytes(size: int | None) -> str | None:
    return None if size is None else show(size, "B", binary=True)


def _of_machine(facts: Facts, name: str) -> FactValue | frozenset[str] | None:
    fact = discovered(facts, name)
    if fact is None or name != "kernel_parameters":
        return None if fact is None else fact.value
    words = str(fact.value).split()
    return frozenset(word for word in words if not _OF_ONE_NODE.match(word.partition("=")[0]))


def _shown(value: FactValue | frozenset[str] | None) -> str | None:
    if value is None:
        return None
    text = " ".join(sorted(value)) if isinstance(value, frozenset) else str(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _parts(machine: Machine, kind: DeviceKind) -> Counter[tuple[str, ...]]:
    """The parts of a kind: what identifies each, with its link; how many of each."""
    rates = {link.b: link.capable_Bps for link in machine.links if link.capable_Bps is not None}
    return Counter(
        _described(device, rates.get(device.id))
        for device in machine.of_kind(kind)
        if kind is not DeviceKind.NIC or device.pci is not None  # the kernel's own (bridges, ...) come and go
    )


def _described(device: Device, rate_Bps: float | None) -> tuple[str, ...]:
    found = ((name, discovered(device.facts, name)) for name in sorted(IDENTIFYING[device.kind]))
    words = [f"{name} {fact.value}" for name, fact in found if fact is not None]
    if rate_Bps is not None:
        words.append(f"a link of {show(rate_Bps, 'B/s')}")
    return tuple(words)


def _first(parts: Counter[tuple[str, ...]]) -> str:
    text = ", ".join(next(iter(parts), ()))
    return text if len(text) <= 2 * _MOST_SHOWN else f"{text[: 2 * _MOST_SHOWN]}..."


QEMU_TCG = "qemu (tcg)"
"""The fact `hypervisor` of a machine whose processors QEMU emulates (Tiny Code Generator)."""
TCG_MODEL = "QEMU TCG CPU"
"""What QEMU's CPU model `max` is called if it is emulated (target/i386/cpu.c)."""
TCG_SIGNATURE = "TCGTCGTCGTCG"
"""The signature of the hypervisor in CPUID leaf 0x40000000 if processors are emulated, whatever their model is."""
_WHAT = "the processors are emulated (QEMU TCG)"


def is_emulated(machine: Machine) -> bool:
    """Whether the processors of a machine are emulated, as far as is known."""
    return machine.facts.text("hypervisor") == QEMU_TCG


def is_stored_as_emulated(document: Mapping[str, Any]) -> bool:
    """The same of a machine as it is stored (`seatrial.machine/1`), without reading all of it."""
    facts = document.get("facts")
    stated = facts.get("hypervisor") if isinstance(facts, Mapping) else None
    first = stated[0] if isinstance(stated, list) and stated else None
    return isinstance(first, Mapping) and first.get("value") == QEMU_TCG


def why_not_comparable(machine: Machine) -> str:
    """Why figures of a machine are compared with nothing; "" if they can be."""
    if not is_emulated(machine):
        return ""
    fact = machine.facts.best("hypervisor")
    source = f", by {fact.source}" if fact is not None else ""
    return f"{_WHAT}{source}: its times are those of the emulator, so they are compared with nothing and have no limit"


def emulation_unnoticed(machine: Machine, hello: Hello) -> str:
    """What a program saw of emulation that is not known of its machine; "" if nothing."""
    if is_emulated(machine) or hello.hypervisor != TCG_SIGNATURE:
        return ""
    return f"{_WHAT}, by CPUID ({TCG_SIGNATURE}), which is not known of the machine: its times mean nothing"
