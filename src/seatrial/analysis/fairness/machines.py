"""Differences of machines: every fact of their documents that does not vary by itself; and of the circumstances of all
repeats of a side: host, load, CPU time of others, and time of day."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from seatrial.analysis.fairness.side import (
    Noticed,
    SideFacts,
    Topic,
    clearly_apart,
    clearly_unlike,
    contrast,
    counted,
    share_below,
)
from seatrial.analysis.grouped import grouped
from seatrial.diagnosis.cpu import cpus_words
from seatrial.diagnosis.disturbance.foreign import ForeignLoad, comes_and_goes, others_cpus
from seatrial.diagnosis.disturbance.signals import repeat_shares
from seatrial.errors import UsageError
from seatrial.model.machine.document import machine_from_document
from seatrial.model.machine.fact import Fact, FactKind
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.results.record import RepeatRecord
from seatrial.model.spelling import count, cpu_list, plain, show, show_fact, show_percent, show_transfers

Statements = dict[str, tuple[str, str]]
"""Name of a fact -> (value as text, source)."""

_NOT_OF_THE_MACHINE = frozenset({"privileges"})
"""Facts about the process that read the machine."""
_NAMED_KINDS = frozenset({DeviceKind.GPU, DeviceKind.NIC, DeviceKind.NVME, DeviceKind.BLOCK, DeviceKind.MEMORY})
"""Kinds whose device names are models; other devices are only counted."""
_SETTING = "the machine as it is now"
ALLOWED_CPUS = "allowed CPUs"


def machine_differences(baseline: SideFacts, candidate: SideFacts) -> Iterator[Noticed]:
    """All facts whose values differ, and those missing on one side although its sources could have reported them.

    Excluded are facts that vary by themselves (`volatile`), facts from tables, and facts that could not be read on one
    side.
    """
    first, second = _machines(baseline), _machines(candidate)
    if not first or not second:
        return
    names = [", ".join(dict.fromkeys(machine.name for machine in machines)) for machines in (first, second)]
    if names[0] != names[1]:
        yield contrast(Topic.HOST, "", *names)
    if first == second:
        return
    unknown = [not any(machine.devices or machine.facts for machine in machines) for machines in (first, second)]
    if unknown[0] != unknown[1]:
        yield contrast(Topic.FACT, "of the machine", *(None if nothing else "reported" for nothing in unknown))
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
        yield contrast(Topic.FACT, name, *values)


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
            ", ".join(dict.fromkeys(own[name][0] if name in own else "unknown" for own in each)),
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
    yield ALLOWED_CPUS, (cpu_list(machine.allowed_cpus), _SETTING)


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
    by_value = grouped((value, device) for device, value in by_device.items())
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


_LOAD_APART = 0.5
"""Running and waiting processes: half a process takes a quarter of two cores."""
_GAP_S = 600.0
"""With too few repeats to detect interleaving, a gap this long rules it out."""
_APART = 0.95
_MOST_VARYING = 20_000
"""Repeats of a side whose values are compared."""


def circumstance_differences(baseline: SideFacts, candidate: SideFacts) -> Iterator[Noticed]:
    """Hosts as reported by the programs, load before the repeats, CPU time taken by the hypervisor and by other
    processes, and the time of day.

    Load and CPU time always vary: they count as a difference from 6 repeats on each side, if the medians differ by half
    a process, one percent (hypervisor) or five percent (other processes) of CPU time, and 95 % of all pairs of repeats
    differ in the same direction. So do waiting for a CPU or for memory, time stopped by a quota, and blocked time, from
    five percent on. Limits on I/O and the file system are compared as they are. Load of other processes that comes and
    goes on one side only is a difference, too: no median shows it.
    """
    sides = [_Circumstances(side.all_records()) for side in (baseline, candidate)]
    hosts = [side.hosts for side in sides]
    if all(hosts) and set(hosts[0]) != set(hosts[1]):
        yield contrast(Topic.HOST, "", *(", ".join(sorted(names)) for names in hosts))
    found = []
    for kind, (least, spelled) in _VALUES.items():
        first, second = (side.values[kind] for side in sides)
        if clearly_apart(first, second, least):
            found.append(contrast(kind, "", *(_spread(own, spelled) for own in (first, second))))
    is_loaded = any(one.kind is Topic.OTHERS for one in found)  # the share says more than the number of CPUs
    yield from (one for one in found if one.kind is not Topic.OTHERS_CPUS or not is_loaded)
    if not any(one.kind in (Topic.OTHERS, Topic.OTHERS_CPUS) for one in found):
        yield from _foreign([side.foreign for side in sides])
    for kind in _WHERE:
        texts = [side.where[kind] for side in sides]
        if clearly_unlike(*texts):
            yield contrast(kind, "", *map(counted, texts))
    yield from _scheduling([side.scheduling for side in sides])
    yield from _times([sorted(side.times) for side in sides])


class _Circumstances:
    """What the repeats of a side recorded, by one pass over them: `where` and `scheduling` by what was observed, with
    the number of repeats. Of very many repeats the `values` are of a random part, always the same: medians and shares
    of pairs are equal within a percent."""

    def __init__(self, records: Sequence[RepeatRecord]) -> None:
        self.hosts: Counter[str] = Counter()
        self.values: dict[Topic, list[float]] = {kind: [] for kind in _VALUES}
        self.where: dict[Topic, Counter[str]] = {kind: Counter() for kind in _WHERE}
        self.scheduling: list[tuple[Mapping[str, Any], int]] = []
        self.times: list[float] = []
        n = len(records)
        some = set(random.Random(1).sample(range(n), _MOST_VARYING)) if n > _MOST_VARYING else None  # noqa: S311
        texts: dict[Topic, tuple[Any, str]] = {}
        timed: list[tuple[int, float, Mapping[str, Any]]] = []
        for place, record in enumerate(records):
            seen = record.seen
            self.times.append(record.t0)
            if host := seen.get("host"):
                self.hosts[str(host)] += 1
            if some is None or place in some:
                self._add_values(seen)
            for kind, (name, text) in _WHERE.items() if "used" in seen else ():
                value = seen.get(name)
                if kind not in texts or texts[kind][0] is not value:  # most repeats share it with the one before
                    texts[kind] = value, text(value)
                self.where[kind][texts[kind][1]] += 1
            if n <= _MOST_VARYING:
                timed.append((record.repeat, record.t0, seen))
            if isinstance(own := seen.get("scheduling"), Mapping):
                times = self.scheduling.pop()[1] if self.scheduling and self.scheduling[-1][0] is own else 0
                self.scheduling.append((own, times + 1))
        self.foreign = comes_and_goes(timed)

    def _add_values(self, seen: Mapping[str, Any]) -> None:
        shares = repeat_shares(seen)
        of_repeat = {
            **{kind: seen.get(name) for kind, name in _RECORDED.items()},
            Topic.OTHERS_CPUS: _others_cpus(seen),
            **({kind: getattr(shares, name) for kind, name in _OF_PROGRAM.items()} if shares else {}),
        }
        for kind, value in of_repeat.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                self.values[kind].append(float(value))


_SCHEDULING = {"nice": "nice", "policy": "class", "stack_B": "stack limit", "locked_B": "locked memory limit"}
"""Key of `seen["scheduling"]` (probes/system.py) -> its name."""


def _scheduling(sides: Sequence[Sequence[tuple[Mapping[str, Any], int]]]) -> Iterator[Noticed]:
    """What programs inherit from who started seatrial, where both sides recorded it."""
    for key, name in _SCHEDULING.items():
        texts: list[Counter[str]] = [Counter(), Counter()]
        for side, text in zip(sides, texts, strict=True):
            for own, times in side:
                if key in own:
                    text[_limit(key, own[key])] += times
        if clearly_unlike(*texts):
            yield contrast(Topic.SCHEDULING, name, *map(counted, texts))


def _limit(key: str, value: Any) -> str:
    if not key.endswith("_B"):
        return plain(value)
    return "unlimited" if value is None else show(float(value), "B", binary=True)


def _foreign(sides: Sequence[ForeignLoad | None]) -> Iterator[Noticed]:
    """Load on one side only; repeats are not named, as those of several experiments have the same numbers."""
    if (sides[0] is None) != (sides[1] is None):
        yield contrast(Topic.OTHERS_CPUS, "", *map(_foreign_text, sides))


def _foreign_text(one: ForeignLoad | None) -> str:
    if one is None:
        return "hardly any"
    used = cpus_words(float(f"{one.cpus:.2g}"))
    return f"{used} during {len(one.repeats)} of {one.of} repeats{one.how_often}"


def _others_cpus(seen: Mapping[str, Any]) -> float | None:
    """CPUs that other processes used: one is a small share of a large node, and yet a part of its memory bandwidth."""
    found = others_cpus(seen)
    return None if found is None else round(found[0], 2)


_RECORDED = {Topic.LOAD: "load_1m", Topic.STEAL: "steal_share", Topic.OTHERS: "others_share"}
_OF_PROGRAM = {
    Topic.DELAY: "delay",
    Topic.THROTTLED: "throttled",
    Topic.MEMORY: "short_of_memory",
    Topic.BLOCKED: "blocked",
}
_VALUES: Mapping[Topic, tuple[float, Callable[[float], str]]] = {
    Topic.LOAD: (_LOAD_APART, "{:.1f}".format),
    Topic.STEAL: (0.01, show_percent),
    **dict.fromkeys((Topic.OTHERS, *_OF_PROGRAM), (0.05, show_percent)),
    Topic.OTHERS_CPUS: (0.5, cpus_words),
}
"""What varies: by how much the medians are apart at least, and how it is shown."""


def _io_limits(found: Any) -> str:
    limits = [f"{limit['direction']} {limit['limit']:g} {limit['unit']} on {limit['device']}" for limit in found or ()]
    return ", ".join(limits) or "none"


def _file_system(place: Any) -> str:
    if not isinstance(place, Mapping):
        return "not known"
    return " ".join([f"{place['type']} at {place['mount_point']}", *place["options"]])


_WHERE: Mapping[Topic, tuple[str, Callable[[Any], str]]] = {
    Topic.IO_LIMIT: ("io_limits", _io_limits),
    Topic.FILE_SYSTEM: ("file_system", _file_system),
}
"""What is compared as text: the name that it is recorded under, and its text."""


def _spread(values: Sequence[float], format_value: Callable[[float], str]) -> str:
    return f"median {format_value(median(values))}, {format_value(min(values))} to {format_value(max(values))}"


def _times(times: Sequence[Sequence[float]]) -> Iterator[Noticed]:
    """Whether one side was measured after the other: the ratio then includes any drift of the machine in between."""
    if not all(times):
        return
    first, second = times
    gap_s = max(first[0], second[0]) - min(first[-1], second[-1])
    below = share_below(first, second)
    enough = min(len(first), len(second)) >= 3
    if (enough and not 1 - _APART < below < _APART) or gap_s > _GAP_S:
        yield contrast(Topic.TIME, "", *(_when(side) for side in times))


def _when(times: Sequence[float]) -> str:
    start, end = (time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at)) for at in (times[0], times[-1]))
    span = f"{start} to {end[11:] if end[:10] == start[:10] else end} UTC" if start != end else f"{start} UTC"
    return f"{span} ({count(len(times), 'repeat')})"
