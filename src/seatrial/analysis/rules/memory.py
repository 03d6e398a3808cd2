"""Rules about memory: how the slots are filled, how fast they run, and who says how much there is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.analysis.roles import Source, figures_with
from seatrial.analysis.rules.case import Case, cite_best
from seatrial.analysis.rules.devices import is_virtual
from seatrial.analysis.rules.words import listed
from seatrial.benchmarks import benchmark_of
from seatrial.machine.processors import highest_memory_MTps
from seatrial.model.fact import Fact
from seatrial.model.finding import Finding, Severity
from seatrial.model.machine import DeviceKind, Machine, Population, SocketMemory
from seatrial.model.role import Role
from seatrial.model.spelling import count, show, show_percent, show_transfers, surrounding

_ONE_MODULE = 0.9
"""A gap of this share of the smallest module is a module and not what the kernel keeps for itself (about 3 %)."""


def modules_unbalanced(case: Case) -> Iterator[Finding]:
    """Fires where slots are filled so that some channels stay empty or differ; a measured triad stands beside it."""
    memory = case.machine.memory
    if memory.verdict not in (Population.UNBALANCED, Population.NEAR_BALANCED):
        return
    shares = [s.populated_channels / s.channels for s in memory.sockets if s.channels and s.populated_channels]
    loss = 1 - min(shares) if shares and min(shares) < 1 else None
    near = memory.verdict is Population.NEAR_BALANCED
    measured = _triad(case)
    beside = ""
    if measured is not None:
        result, figure = measured
        beside = f" {result.experiment.benchmark} {figure.name} measured {show(figure.median, 'B/s')} with it."
    yield Finding(
        rule="memory-unbalanced",
        severity=Severity.WARNING,
        devices=(),
        observation=f"The memory is {memory.verdict.value}: {memory.why}.{beside}",
        diagnosis="All memory is one interleaved set, but not the best one: "
        + ("empty channels are bandwidth that is never had." if loss else "some accesses find a busier channel.")
        if near
        else "Addresses are not spread over all channels alike, so streaming reaches only a part of what the "
        "processor's memory controllers can do, and which part depends on where an array lies.",
        remedy="Fill every channel of every socket with equal modules; see which slots are empty with "
        "`sudo dmidecode -t memory`"
        + ("" if measured is not None else f". Measure it: `seatrial run {benchmark_of(Role.MEMORY_BANDWIDTH)}`"),
        evidence=_sockets_told(memory.sockets) or memory.why,
        loss=loss,
    )


def sockets_differ(case: Case) -> Iterator[Finding]:
    """Fires where sockets have different memory and the verdict on their channels is open (else that one says it)."""
    machine = case.machine
    sockets = machine.memory.sockets
    unlike = len({(s.dimms, s.capacity_bytes) for s in sockets}) > 1
    if not unlike or machine.memory.verdict is Population.UNBALANCED or is_virtual(machine):
        return
    empty = [number for number, socket in enumerate(sockets) if not socket.dimms]
    sizes = listed(
        f"socket {number} has {count(s.dimms, 'module')} with {show(s.capacity_bytes, 'B', binary=True)}"
        for number, s in enumerate(sockets)
    )
    yield Finding(
        rule="memory-sockets-differ",
        severity=Severity.WARNING,
        devices=(),
        observation=f"The sockets have different memory: {sizes}.",
        diagnosis="Programs that spread over the sockets alike are held back by the one with less"
        + (", and every access from a socket without memory goes over the link to the other." if empty else "."),
        remedy="Fill the sockets alike; see what is where with `sudo dmidecode -t memory` and `numactl --hardware`",
        evidence=_sockets_told(sockets),
    )


def _sockets_told(sockets: Sequence[SocketMemory]) -> str:
    return listed(
        f"socket {number}: {count(socket.dimms, 'module')} on "
        f"{'?' if socket.populated_channels is None else socket.populated_channels} of "
        f"{'?' if socket.channels is None else socket.channels} channels"
        for number, socket in enumerate(sockets)
    )


def _triad(case: Case) -> Source | None:
    """The best bandwidth of memory among the results, or None."""
    return max(figures_with(case.results, Role.MEMORY_BANDWIDTH), key=lambda source: source[1].median, default=None)


def modules_below_rating(case: Case) -> Iterator[Finding]:
    """Fires where modules run slower than they are rated, and slower than the processor allows. Two modules on each
    channel lower the speed: that is only noted."""
    machine = case.machine
    highest = _highest_MTps(machine)
    slow = [entry for entry in _slow_modules(machine) if highest is None or entry[1] < 0.99 * highest]
    if not slow or is_virtual(machine):
        return
    _, configured, rated = min(slow, key=lambda entry: entry[1] / entry[2])
    allowed = rated if highest is None else min(rated, highest)
    full = [s for s in machine.memory.sockets if s.dimms]
    in_order = bool(full) and all(s.populated_channels and s.dimms >= 2 * s.populated_channels for s in full)
    yield Finding(
        rule="memory-below-rating",
        severity=Severity.INFO if in_order else Severity.WARNING,
        devices=tuple(dict.fromkeys(name for name, _, _ in slow if machine.device(name) is not None)),
        observation=f"Memory runs at {show_transfers(configured)} and is rated for {show_transfers(rated)}"
        + (f"; the processor allows {show_transfers(allowed)}." if allowed < rated else "."),
        diagnosis="Each channel carries two modules, and then most platforms lower the speed: in order, if the "
        "vendor's table says so for these modules. Bandwidth falls by the same share."
        if in_order
        else "A slower processor, a setting of the firmware or two modules on a channel (which lower the speed "
        "legitimately on most platforms) hold it back. Bandwidth falls by the same share.",
        remedy="Compare the firmware's memory setting, the processor's highest memory speed and the vendor's table for "
        "this number of modules per channel; `sudo dmidecode -t memory` shows both speeds",
        evidence=listed(f"{name}: configured {show_transfers(c)}, rated {show_transfers(r)}" for name, c, r in slow),
        loss=None if in_order else 1 - configured / allowed,
    )


def _highest_MTps(machine: Machine) -> float | None:
    """The highest speed of memory that the processors allow; None where it is not known of each of them."""
    speeds = [highest_memory_MTps(package) for package in machine.of_kind(DeviceKind.PACKAGE)]
    known = [speed for speed in speeds if speed is not None]
    return max(known) if known and len(known) == len(speeds) else None


def _slow_modules(machine: Machine) -> Iterator[tuple[str, float, float]]:
    """(module or socket, configured, rated in MT/s) of what runs below its rating; sockets where they tell it whole."""
    told = [(f"socket {n}", s.configured_MTps, s.rated_MTps) for n, s in enumerate(machine.memory.sockets) if s.dimms]
    if not told or any(configured is None or rated is None for _, configured, rated in told):
        told = [
            (device.id, device.facts.number("configured_MTps"), device.facts.number("rated_MTps"))
            for device in machine.of_kind(DeviceKind.MEMORY)
        ]
    for name, configured, rated in told:
        if configured and rated and configured < 0.99 * rated:
            yield name, configured, rated


def modules_unknown(case: Case) -> Iterator[Finding]:
    """Says why there is no limit for DRAM: without modules there is no limit to hold a bandwidth against."""
    machine = case.machine
    if machine.memory.verdict is not Population.UNKNOWN or machine.memory.sockets or machine.memory.peak.value:
        return
    if machine.facts.best("memory_total") is None:  # nothing at all is known about memory: nothing to explain
        return
    hidden = surrounding(machine.facts, "hypervisor") is not None
    yield Finding(
        rule="memory-modules-unknown",
        severity=Severity.INFO,
        devices=(),
        observation=f"The memory modules are unknown: {machine.memory.why}.",
        diagnosis="Channels and transfer rate give the physical limit of DRAM bandwidth. Without them bandwidth can "
        "only be held against other measurements.",
        remedy="The hypervisor does not pass them on; ask whoever runs the host for the output of `dmidecode -t memory`"
        if hidden
        else "Firmware tables need root: `sudo dmidecode -t memory > FILE`, then `--from dmidecode=FILE`",
        evidence=listed(
            [machine.memory.why, *filter(None, [cite_best(machine.facts, "hypervisor") if hidden else ""])]
        ),
    )


def sizes_disagree(case: Case) -> Iterator[Finding]:
    """Fires where sources give memory sizes further apart than what the kernel keeps for itself (model/fact.py).

    Where the modules are known and the kernel has less by a module or more, a module is not in use: an error.
    """
    machine = case.machine
    if all(disagreement.name != "memory_total" for disagreement in machine.facts.disagreements()):
        return
    facts = [
        fact
        for fact in machine.facts.get("memory_total", ())
        if isinstance(fact.value, int | float) and not isinstance(fact.value, bool) and fact.value > 0
    ]
    sizes = [float(fact.value) for fact in facts]
    said = [
        f"{show(size, 'B', binary=True)} by {' and by '.join(fact.source for fact in facts if fact.value == size)}"
        for size in dict.fromkeys(sizes)
    ]
    missing = _missing_modules(machine, facts)
    means = (
        f"The modules hold {show(missing, 'B', binary=True)} more than any other source sees: as much as a module or "
        "more. A module failed its test at boot, or the firmware mirrors or spares memory."
        if missing is not None
        else f"The least is {show_percent(1 - min(sizes) / max(sizes))} below the most. A limit of a container or "
        "a batch system, memory held back by the host, or a wrong source: a program sized by the most may be killed."
    )
    yield Finding(
        rule="memory-sizes-disagree",
        severity=Severity.WARNING if missing is None else Severity.ERROR,
        devices=(),
        observation=f"{len(facts)} sources disagree about the size of the memory: {'; '.join(said)}.",
        diagnosis=means,
        remedy="Look for the slot in the firmware's event log (`sudo ipmitool sel list`) and in `sudo dmidecode -t "
        "memory`, and at the settings for mirroring and sparing"
        if missing is not None
        else "Size programs by the smallest until it is clear; compare `free -b`, `lstopo --of console` and "
        "`cat /sys/fs/cgroup/memory.max`",
        evidence="; ".join(f"{fact.source}: {fact.value} B" for fact in facts),
    )


def _missing_modules(machine: Machine, facts: Sequence[Fact]) -> float | None:
    """Bytes that the modules hold beyond every other source, where that is a module's worth; else None."""
    modules = [size for device in machine.of_kind(DeviceKind.MEMORY) if (size := device.facts.number("size"))]
    of_modules = sum(modules)
    others = [float(fact.value) for fact in facts if abs(float(fact.value) - of_modules) > 0.01 * of_modules]
    if not modules or not others or len(others) == len(facts) or is_virtual(machine):
        return None
    gap = of_modules - max(others)
    return gap if gap >= _ONE_MODULE * min(modules) else None
