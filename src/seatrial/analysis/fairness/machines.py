"""Differences of machines: every fact of their documents that does not vary by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from seatrial.analysis.fairness.side import Kind, Noticed, SideFacts, contrast
from seatrial.errors import UsageError
from seatrial.model.machine.document import machine_from_document
from seatrial.model.machine.fact import Fact, FactKind
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.spelling import cpu_list, plain, show, show_fact, show_transfers

Statements = dict[str, tuple[str, str]]
"""Name of a fact -> (value as text, source)."""

_NOT_OF_THE_MACHINE = frozenset({"privileges"})
"""Facts about the process that read the machine."""
_NAMED_KINDS = frozenset({DeviceKind.GPU, DeviceKind.NIC, DeviceKind.NVME, DeviceKind.BLOCK, DeviceKind.MEMORY})
"""Kinds whose device names are models; other devices are only counted."""
_SETTING = "the machine as it is now"


def machine_differences(baseline: SideFacts, candidate: SideFacts) -> Iterator[Noticed]:
    """All facts whose values differ, and those missing on one side although its sources could have reported them.

    Excluded are facts that vary by themselves (`volatile`), facts from tables, and facts that could not be read on one
    side.
    """
    first, second = _machines(baseline), _machines(candidate)
    if not first or not second:
        return
    names = [_joined(Counter(machine.name for machine in machines)) for machines in (first, second)]
    if names[0] != names[1]:
        yield contrast(Kind.HOST, "", *names)
    if first == second:
        return
    unknown = [not any(machine.devices or machine.facts for machine in machines) for machines in (first, second)]
    if unknown[0] != unknown[1]:
        yield contrast(Kind.FACT, "of the machine", *(None if nothing else "reported" for nothing in unknown))
        return
    statements = (_all_statements(first), _all_statements(second))
    for name in dict.fromkeys((*statements[0], *statements[1])):
        values = [side[name][0] if name in side else None for side in statements]
        if values[0] == values[1]:
            continue
        if None in values:
            source = next(side[name][1] for side in statements if name in side)
            without, having = (first, second) if values[0] is None else (second, first)
            if not _could_report(source, without, having):
                continue
        yield contrast(Kind.FACT, name, *values)


def _machines(side: SideFacts) -> list[Machine]:
    """The machines of a side; invalid documents are skipped."""
    found = []
    for key in dict.fromkeys(experiment.machine for experiment in side.experiments.values()):
        try:
            found.append(machine_from_document(side.machines[key]))
        except (KeyError, UsageError):
            continue
    return found


def _all_statements(machines: list[Machine]) -> Statements:
    """The statements about the machines of a side; values of several machines are joined."""
    each = [dict(_statements(machine)) for machine in machines]
    names = dict.fromkeys(name for statements in each for name in statements)
    return {
        name: (
            _joined(Counter(statements[name][0] if name in statements else "unknown" for statements in each)),
            next(statements[name][1] for statements in each if name in statements),
        )
        for name in names
    }


def _statements(machine: Machine) -> Iterator[tuple[str, tuple[str, str]]]:
    for name, facts in machine.facts.items():
        if (fact := _lasting(name, facts)) is not None:
            yield name, (show_fact(name, fact), fact.source)
    for kind in DeviceKind:
        devices = machine.of_kind(kind)
        if devices:
            yield from _of_devices(kind, devices)
    yield from _memory(machine)
    for link in machine.links:
        for what, rate_Bps in (("capable of", link.capable_Bps), ("trained to", link.trained_Bps)):
            if rate_Bps is not None:
                yield f"link {link.a} to {link.b}, {what}", (show(rate_Bps, "B/s"), link.source)
    for path in machine.paths:
        if path.path_class is not None:
            yield f"path {path.a} to {path.b}", (path.path_class, _SETTING)
    for access in machine.p2p:
        yield f"peer access {access.a} to {access.b}", (f"read {access.read}, write {access.write}", _SETTING)
    yield "allowed CPUs", (cpu_list(machine.allowed_cpus), _SETTING)


def _of_devices(kind: DeviceKind, devices: Iterable[Device]) -> Iterator[tuple[str, tuple[str, str]]]:
    listed = list(devices)
    names = Counter(device.name for device in listed) if kind in _NAMED_KINDS else Counter({kind.value: len(listed)})
    yield f"devices ({kind})", (", ".join(f"{number} x {name}" for name, number in names.items()), "")
    values: dict[str, dict[str, tuple[str, str]]] = {}
    for device in listed:
        for name, facts in device.facts.items():
            if (fact := _lasting(name, facts)) is not None:
                values.setdefault(name, {})[device.id] = (show_fact(name, fact), fact.source)
    for name, by_device in values.items():
        _, source = next(iter(by_device.values()))
        yield f"{name} ({kind})", (_of_each({device: value for device, (value, _) in by_device.items()}), source)


def _of_each(by_device: Mapping[str, str]) -> str:
    """Values with their devices: "performance", or "performance: pu-0 pu-1; powersave: pu-2"."""
    by_value: dict[str, list[str]] = {}
    for device, value in by_device.items():
        by_value.setdefault(value, []).append(device)
    if len(by_value) == 1:
        return next(iter(by_value))
    return "; ".join(f"{value}: {' '.join(devices)}" for value, devices in by_value.items())


def _memory(machine: Machine) -> Iterator[tuple[str, tuple[str, str]]]:
    memory = machine.memory
    for number, socket in enumerate(memory.sockets):
        parts = (
            f"{plain(socket.populated_channels)} of {plain(socket.channels)} channels",
            f"{plain(socket.dimms)} modules",
            show(socket.capacity_bytes, "B", binary=True),
            f"{show_transfers(socket.configured_MTps)} of {show_transfers(socket.rated_MTps)}",
        )
        yield f"memory of socket {number}", (", ".join(parts), "firmware tables")
    if memory.peak.value is not None:
        yield "memory peak", (show(memory.peak.value, "B/s"), "firmware tables")


def _lasting(name: str, facts: Iterable[Fact]) -> Fact | None:
    """The most trusted fact read from this machine, unless it is volatile."""
    if name in _NOT_OF_THE_MACHINE:
        return None
    return next((fact for fact in facts if not fact.volatile and fact.kind is not FactKind.ASSERTED), None)


def _could_report(source: str, without: list[Machine], having: list[Machine]) -> bool:
    """Whether the side without a fact could have reported it: it has the same tool and the same privileges.

    Files of the kernel are readable everywhere; those of the firmware and PCI's configuration space only by root.
    """
    if source in ("", _SETTING):
        return True
    privileges = [{machine.facts.text("privileges") for machine in side} for side in (without, having)]
    if source.startswith(("/", "sysconf", "confstr", "uname")):
        is_of_root = source.startswith(("/sys/firmware", "/dev")) or source.endswith("/config")
        return privileges[0] == privileges[1] or not is_of_root
    tool = source.split()[0]
    return privileges[0] == privileges[1] and all(
        any(other.split()[:1] == [tool] for other in machine.sources) for machine in without
    )


def _joined(values: Counter[str]) -> str:
    return ", ".join(values)
