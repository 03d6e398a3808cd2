"""Rules about memory modules: how they populate the slots, which differ from the others, and their speed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from seatrial.analysis.roles import figures_with
from seatrial.analysis.rules.finding import Case, Subject, cite_best, finding, is_virtual, listed, note, rule, warning
from seatrial.benchmarks import benchmark_of
from seatrial.machine.processors import highest_memory_MTps
from seatrial.model.benchmark.benchmark import Role
from seatrial.model.machine.fact import Finding, Severity
from seatrial.model.machine.machine import DeviceKind, Machine, OddSlot, Population, SocketMemory
from seatrial.model.spelling import count, show, show_transfers, surrounding

ECC = "bits for ECC"
_EMPTY = "module"
_JUDGED = (Population.UNBALANCED, Population.NEAR_BALANCED)
_AS_FAST = 0.99


@rule(Subject.MEMORY_MODULES)
def modules_unbalanced(case: Case) -> Iterator[Finding]:
    """Fires if some memory channels are empty or differ; cites a measured triad."""
    memory = case.machine.memory
    if memory.verdict not in _JUDGED:
        return
    shares = [s.populated_channels / s.channels for s in memory.sockets if s.channels and s.populated_channels]
    loss = 1 - min(shares) if shares and min(shares) < 1 else None
    near = memory.verdict is Population.NEAR_BALANCED
    odd = odd_slots(case.machine)
    seen = f" {sentences(odd)}" if odd else ""
    measured = max(figures_with(case.results, Role.MEMORY_BANDWIDTH), key=lambda source: source[1].median, default=None)
    beside = ""
    if measured is not None:
        result, figure = measured
        beside = f" {result.experiment.benchmark} {figure.name} measured {show(figure.median, 'B/s')}."
    yield warning(
        "memory-unbalanced",
        devices=devices_of(odd),
        observation=f"The memory is {memory.verdict.value}: {memory.why}.{seen}{beside}",
        diagnosis=_of_population(near, has_empty=loss is not None),
        remedy=first_look(odd)
        + _repopulate(memory.sockets)
        + ("" if measured is not None else f". Measure it: `seatrial run {benchmark_of(Role.MEMORY_BANDWIDTH)}`"),
        evidence=[_socket_list(memory.sockets) or memory.why, evidence(odd)],
        loss=loss,
    )


def _of_population(near: bool, *, has_empty: bool) -> str:
    if near:
        lost = "the bandwidth of empty channels is lost" if has_empty else "some channels are busier than others"
        return f"All memory is one interleave set, but not the best one: {lost}."
    if has_empty:
        return (
            "The bandwidth of empty channels is lost. If the others form several interleave sets, bandwidth also "
            "depends on the location of an array."
        )
    return (
        "Addresses are not spread evenly over all channels and sockets, so streaming reaches only part of the "
        "bandwidth of the memory controllers, and the part depends on the location of an array."
    )


def _repopulate(sockets: Sequence[SocketMemory]) -> str:
    """What to change about the modules; it asks for nothing that is already so."""
    empty = [
        f"socket {number}: {s.channels - s.populated_channels} of {s.channels}"
        for number, s in enumerate(sockets)
        if s.channels and s.populated_channels is not None and s.populated_channels < s.channels
    ]
    if empty:
        return (
            f"Fill the empty channels ({listed(empty)}) with matching modules; find the slots with "
            "`sudo dmidecode -t memory`"
        )
    if sockets and all(s.channels and s.channels == s.populated_channels for s in sockets):
        return (
            "Give every channel the same modules: replace those that differ, or remove the second modules of channels "
            "that have more than the others; `sudo dmidecode -t memory` lists them"
        )
    return (
        "Give every channel of every socket the same modules, as the population rules in the server's manual state; "
        "`sudo dmidecode -t memory` lists the slots"
    )


@rule(Subject.MEMORY_MODULES, of_hardware=True)
def sockets_differ(case: Case) -> Iterator[Finding]:
    """Fires if sockets have different memory, unless `modules_unbalanced` reports it."""
    machine = case.machine
    sockets = machine.memory.sockets
    unlike = len({(s.dimms, s.capacity_bytes) for s in sockets}) > 1
    if not unlike or machine.memory.verdict is Population.UNBALANCED:
        return
    odd = odd_slots(machine)
    empty = [number for number, socket in enumerate(sockets) if not socket.dimms]
    sizes = listed(
        f"socket {number} has {count(s.dimms, 'module')} with {show(s.capacity_bytes, 'B', binary=True)}"
        for number, s in enumerate(sockets)
    )
    yield warning(
        "memory-sockets-differ",
        devices=devices_of(odd),
        observation=f"The sockets have different memory: {sizes}." + (f" {sentences(odd)}" if odd else ""),
        diagnosis="Programs that use all sockets equally are limited by the socket with less memory"
        + (", and every access from a socket without memory crosses the link between sockets." if empty else "."),
        remedy=first_look(odd)
        + "Populate the sockets equally; list their modules with `sudo dmidecode -t memory` and `numactl "
        "--hardware`",
        evidence=_socket_list(sockets),
    )


def _socket_list(sockets: Sequence[SocketMemory]) -> str:
    return listed(
        f"socket {number}: {count(socket.dimms, 'module')} on "
        f"{'?' if socket.populated_channels is None else socket.populated_channels} of "
        f"{'?' if socket.channels is None else socket.channels} channels"
        for number, socket in enumerate(sockets)
    )


@rule(Subject.MEMORY_MODULES)
def modules_differ(case: Case) -> Iterator[Finding]:
    """Fires if single slots have another module than most, or none, unless `memory-unbalanced` or
    `memory-sockets-differ` reports them."""
    machine = case.machine
    odd = odd_slots(machine)
    sockets = machine.memory.sockets
    if not odd or machine.memory.verdict in _JUDGED or len({(s.dimms, s.capacity_bytes) for s in sockets}) > 1:
        return
    yield warning(
        "memory-module-differs",
        devices=devices_of(odd),
        observation=sentences(odd),
        diagnosis="All modules of a server are usually of one kind. One that is smaller, slower or has other ranks "
        "limits how the processors interleave their channels; how much this costs here is unknown until it is "
        "measured.",
        remedy=first_look(odd) + "Give every channel the same module",
        evidence=evidence(odd),
    )


def evidence(odd: Sequence[OddSlot]) -> str:
    """The values of the odd slots."""
    return listed(f"{one.slot}: {one.property} {one.own} (usual: {one.usual})" for one in odd)


@rule(Subject.MEMORY_MODULES, of_hardware=True)
def modules_below_rating(case: Case) -> Iterator[Finding]:
    """Fires if modules run below their rated speed and below the highest speed of the processor.

    Only a note with two modules on each channel, or if the processor's highest speed is unknown: it may be the limit.
    """
    machine = case.machine
    highest = _highest_MTps(machine)
    known = [(name, now, rated) for name, now, rated in _speeds(machine) if now and rated and now < _AS_FAST * rated]
    slow = [entry for entry in known if highest is None or entry[1] < _AS_FAST * highest]
    odd = {one.device for one in odd_slots(machine) if one.property == "configured speed"}
    if not slow or all(name in odd for name, _, _ in slow):  # reported with its slot
        return
    _, configured, rated = min(slow, key=lambda entry: entry[1] / entry[2])
    allowed = rated if highest is None else min(rated, highest)
    is_normal = _has_two_on_each_channel(machine)
    is_loss = highest is not None and not is_normal
    supports = f"; the processor supports up to {show_transfers(allowed)}" if allowed < rated else ""
    yield finding(
        "memory-below-rating",
        severity=Severity.WARNING if is_loss else Severity.INFO,
        devices=(name for name, _, _ in slow if machine.device(name) is not None),
        observation=f"Memory runs at {show_transfers(configured)} but is rated for {show_transfers(rated)}{supports}.",
        diagnosis=_means(machine, is_normal, highest is None),
        remedy="Check the speed that the vendor lists for "
        + ("two modules per channel" if is_normal else "this processor and number of modules per channel")
        + "; if it is higher, raise the memory speed in the firmware, and read it again with "
        "`sudo dmidecode -t memory`",
        evidence=listed(f"{name}: configured {show_transfers(c)}, rated {show_transfers(r)}" for name, c, r in slow),
        loss=1 - configured / allowed if is_loss else None,
    )


def _means(machine: Machine, is_normal: bool, is_processor_unknown: bool) -> str:
    if is_normal:
        return (
            "Each channel has two modules, and most platforms then lower the memory speed: normal if the vendor lists "
            "this speed for two modules per channel."
        )
    if is_processor_unknown:
        return (
            "The highest memory speed of the processor is unknown: this may be it, and then nothing is wrong. Other "
            "possible causes: a firmware setting, or two modules on a channel."
        )
    alone = [s for s in machine.memory.sockets if s.dimms]
    is_one_each = bool(alone) and all(s.populated_channels == s.dimms for s in alone)
    return (
        "The modules and the processor support more. Possible causes: a firmware setting (such as a power saving mode)"
        + ("." if is_one_each else ", or two modules on a channel (most platforms then lower the speed).")
        + " Bandwidth is lower by the same share."
    )


def _has_two_on_each_channel(machine: Machine) -> bool:
    full = [s for s in machine.memory.sockets if s.dimms]
    return bool(full) and all(s.populated_channels and s.dimms >= 2 * s.populated_channels for s in full)


def _highest_MTps(machine: Machine) -> float | None:
    """The highest memory speed that the processors support: by their models, or because other modules of this machine
    run at it. None if it is unknown."""
    speeds = [highest_memory_MTps(package) for package in machine.of_kind(DeviceKind.PACKAGE)]
    known = [speed for speed in speeds if speed is not None]
    if known and len(known) == len(speeds):
        return max(known)
    running = {configured for _, configured, _ in _speeds(machine) if configured}
    return max(running) if len(running) > 1 else None


def _speeds(machine: Machine) -> list[tuple[str, float | None, float | None]]:
    """(name, configured, rated in MT/s) of the sockets if all their speeds are known, else of the modules."""
    speeds = [(f"socket {n}", s.configured_MTps, s.rated_MTps) for n, s in enumerate(machine.memory.sockets) if s.dimms]
    if speeds and all(configured is not None and rated is not None for _, configured, rated in speeds):
        return speeds
    return [
        (device.id, device.facts.number("configured_MTps"), device.facts.number("rated_MTps"))
        for device in machine.memory_modules()
    ]


@rule(Subject.MEMORY_MODULES)
def modules_unknown(case: Case) -> Iterator[Finding]:
    """Fires if the memory modules are unknown, and with them the limit of DRAM bandwidth."""
    machine = case.machine
    if machine.memory.verdict is not Population.UNKNOWN or machine.memory.sockets or machine.memory.peak.value:
        return
    if machine.facts.best("memory_total") is None:  # nothing is known about memory
        return
    hidden = surrounding(machine.facts, "hypervisor") is not None
    listed_modules = machine.memory_modules()
    if hidden:
        remedy = "The hypervisor hides them; ask the host's administrator for the output of `dmidecode -t memory`"
    elif listed_modules:
        remedy = (
            "Look up in the server's manual which slots belong to which processor and channel; compare measured "
            f"bandwidth with other nodes of this kind: `seatrial run {benchmark_of(Role.MEMORY_BANDWIDTH)}`"
        )
    else:
        remedy = "Firmware tables need root: `sudo dmidecode -t memory > FILE`, then `--from dmidecode=FILE`"
    yield note(
        "memory-modules-unknown",
        observation=f"Of {count(len(listed_modules), 'memory module')}, the channels are unknown: {machine.memory.why}."
        if listed_modules
        else f"The memory modules are unknown: {machine.memory.why}.",
        diagnosis="Channels and transfer rate give the physical limit of DRAM bandwidth. Without them, bandwidth can "
        "only be compared with other measurements.",
        remedy=remedy,
        evidence=listed(
            [machine.memory.why, *filter(None, [cite_best(machine.facts, "hypervisor") if hidden else ""])]
        ),
    )


def odd_slots(machine: Machine) -> tuple[OddSlot, ...]:
    """The slots whose module differs from most others, or is missing; none in a virtual machine."""
    return () if is_virtual(machine) else tuple(odd for odd in machine.memory.odd_slots if odd.property != ECC)


def devices_of(odd: Sequence[OddSlot]) -> tuple[str, ...]:
    """The modules in these slots; an empty slot has none."""
    return tuple(dict.fromkeys(one.device for one in odd if one.device is not None))


def sentences(odd: Sequence[OddSlot]) -> str:
    """Such as: Slot A3 (socket 1, channel 2) has 16 GiB; 15 other modules have 32 GiB."""
    parts = []
    by_property = sorted(odd, key=lambda one: (one.property != _EMPTY, one.property, one.own))
    for (name, own, usual, others), group in groupby(
        by_property, lambda one: (one.property, one.own, one.usual, one.others)
    ):
        slots = [place(one) for one in group]
        which = f"Slot{'s' if len(slots) > 1 else ''} {listed(slots)}"
        if name == _EMPTY:
            verb = "is" if len(slots) == 1 else "are"
            parts.append(f"{which} {verb} empty; the slots of the same position elsewhere have a module.")
        else:
            verb = "has" if len(slots) == 1 else "have"
            parts.append(
                f"{which} {verb} {_value(name, own)}; {count(others, 'other module')} have {_value(name, usual)}."
            )
    return " ".join(parts)


def _value(name: str, value: str) -> str:
    """Such as: "16 GiB", "1 rank", "2933 MT/s (configured speed)"."""
    if name == "size":
        return value
    if name == "ranks":
        return f"{value} rank" if value == "1" else f"{value} ranks"
    return f"{value} {name}" if name == ECC else f"{value} ({name})"


def place(odd: OddSlot) -> str:
    """Such as: "A3 (socket 1, channel 2)"."""
    channel = odd.channel
    named = channel if channel is None or "CHANNEL" in channel.upper() else f"channel {channel}"
    where = [part for part in (odd.socket if odd.socket != "the socket" else "", named) if part]
    return f"{odd.slot} ({', '.join(where)})" if where else odd.slot


def first_look(odd: Sequence[OddSlot]) -> str:
    """The start of a remedy: which slots to look at; "" if none is odd."""
    if not odd:
        return ""
    slots = list(dict.fromkeys(one.slot for one in odd))
    return (
        f"Look at slot{'s' if len(slots) > 1 else ''} {listed(slots)} first (`sudo dmidecode -t memory`, the "
        "firmware's event log: `sudo ipmitool sel list`). Possible causes: another kind of module, one that is not "
        "seated well, or one that failed at boot. "
    )
