"""Rules about memory: populated slots, speed, and reported sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.analysis.roles import Source, figures_with
from seatrial.analysis.rules.case import Case, cite_best
from seatrial.analysis.rules.devices import is_virtual
from seatrial.analysis.rules.late_memory import unmanaged
from seatrial.analysis.rules.words import listed
from seatrial.benchmarks import benchmark_of
from seatrial.machine.processors import highest_memory_MTps
from seatrial.model.fact import Fact
from seatrial.model.finding import Finding, Severity
from seatrial.model.machine import DeviceKind, Machine, Population, SocketMemory
from seatrial.model.role import Role
from seatrial.model.spelling import count, show, show_percent, show_transfers, surrounding

_ONE_MODULE = 0.9
"""A gap of this share of the smallest module is a missing module, not what the kernel reserves (about 3 %)."""


def modules_unbalanced(case: Case) -> Iterator[Finding]:
    """Fires if some memory channels are empty or differ; cites a measured triad."""
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
        beside = f" {result.experiment.benchmark} {figure.name} measured {show(figure.median, 'B/s')}."
    yield Finding(
        rule="memory-unbalanced",
        severity=Severity.WARNING,
        devices=(),
        observation=f"The memory is {memory.verdict.value}: {memory.why}.{beside}",
        diagnosis="All memory is one interleave set, but not the best one: "
        + ("the bandwidth of empty channels is lost." if loss else "some channels are busier than others.")
        if near
        else "Addresses are not spread evenly over all channels, so streaming reaches only part of the bandwidth "
        "of the memory controllers, and the part depends on the location of an array.",
        remedy="Fill every channel of every socket with equal modules; find empty slots with "
        "`sudo dmidecode -t memory`"
        + ("" if measured is not None else f". Measure it: `seatrial run {benchmark_of(Role.MEMORY_BANDWIDTH)}`"),
        evidence=_socket_list(memory.sockets) or memory.why,
        loss=loss,
    )


def sockets_differ(case: Case) -> Iterator[Finding]:
    """Fires if sockets have different memory, unless `modules_unbalanced` reports it."""
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
        diagnosis="Programs that use all sockets equally are limited by the socket with less memory"
        + (", and every access from a socket without memory crosses the link between sockets." if empty else "."),
        remedy="Populate the sockets equally; list their modules with `sudo dmidecode -t memory` and `numactl "
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


def _triad(case: Case) -> Source | None:
    """The highest memory bandwidth among the results, or None."""
    return max(figures_with(case.results, Role.MEMORY_BANDWIDTH), key=lambda source: source[1].median, default=None)


def modules_below_rating(case: Case) -> Iterator[Finding]:
    """Fires if modules run below their rated speed and below the highest speed of the processor. With two modules on
    each channel, it is only a note."""
    machine = case.machine
    highest = _highest_MTps(machine)
    slow = [entry for entry in _slow_modules(machine) if highest is None or entry[1] < 0.99 * highest]
    if not slow or is_virtual(machine):
        return
    _, configured, rated = min(slow, key=lambda entry: entry[1] / entry[2])
    allowed = rated if highest is None else min(rated, highest)
    full = [s for s in machine.memory.sockets if s.dimms]
    is_normal = bool(full) and all(s.populated_channels and s.dimms >= 2 * s.populated_channels for s in full)
    yield Finding(
        rule="memory-below-rating",
        severity=Severity.INFO if is_normal else Severity.WARNING,
        devices=tuple(dict.fromkeys(name for name, _, _ in slow if machine.device(name) is not None)),
        observation=f"Memory runs at {show_transfers(configured)} but is rated for {show_transfers(rated)}"
        + (f"; the processor supports up to {show_transfers(allowed)}." if allowed < rated else "."),
        diagnosis="Each channel has two modules, and most platforms then lower the memory speed: normal if the vendor "
        "lists this speed for two modules per channel. Bandwidth is lower by the same share."
        if is_normal
        else "Possible causes: the processor, a firmware setting, or two modules on a channel (most platforms then "
        "lower the speed). Bandwidth is lower by the same share.",
        remedy="Check the memory speed setting in the firmware, and the speed that the vendor lists for this processor "
        "and number of modules per channel; `sudo dmidecode -t memory` shows both speeds",
        evidence=listed(f"{name}: configured {show_transfers(c)}, rated {show_transfers(r)}" for name, c, r in slow),
        loss=None if is_normal else 1 - configured / allowed,
    )


def _highest_MTps(machine: Machine) -> float | None:
    """The highest memory speed that the processors support; None if it is unknown for any of them."""
    speeds = [highest_memory_MTps(package) for package in machine.of_kind(DeviceKind.PACKAGE)]
    known = [speed for speed in speeds if speed is not None]
    return max(known) if known and len(known) == len(speeds) else None


def _slow_modules(machine: Machine) -> Iterator[tuple[str, float, float]]:
    """(module or socket, configured, rated in MT/s) of those below their rating; sockets if all their speeds are
    known."""
    speeds = [(f"socket {n}", s.configured_MTps, s.rated_MTps) for n, s in enumerate(machine.memory.sockets) if s.dimms]
    if not speeds or any(configured is None or rated is None for _, configured, rated in speeds):
        speeds = [
            (device.id, device.facts.number("configured_MTps"), device.facts.number("rated_MTps"))
            for device in machine.of_kind(DeviceKind.MEMORY)
        ]
    for name, configured, rated in speeds:
        if configured and rated and configured < 0.99 * rated:
            yield name, configured, rated


def modules_unknown(case: Case) -> Iterator[Finding]:
    """Fires if the memory modules are unknown, and with them the limit of DRAM bandwidth."""
    machine = case.machine
    if machine.memory.verdict is not Population.UNKNOWN or machine.memory.sockets or machine.memory.peak.value:
        return
    if machine.facts.best("memory_total") is None:  # nothing is known about memory
        return
    hidden = surrounding(machine.facts, "hypervisor") is not None
    yield Finding(
        rule="memory-modules-unknown",
        severity=Severity.INFO,
        devices=(),
        observation=f"The memory modules are unknown: {machine.memory.why}.",
        diagnosis="Channels and transfer rate give the physical limit of DRAM bandwidth. Without them, bandwidth can "
        "only be compared with other measurements.",
        remedy="The hypervisor hides them; ask the host's administrator for the output of `dmidecode -t memory`"
        if hidden
        else "Firmware tables need root: `sudo dmidecode -t memory > FILE`, then `--from dmidecode=FILE`",
        evidence=listed(
            [machine.memory.why, *filter(None, [cite_best(machine.facts, "hypervisor") if hidden else ""])]
        ),
    )


def sizes_disagree(case: Case) -> Iterator[Finding]:
    """Fires if sources report memory sizes that differ by more than the kernel reserves (model/fact.py).

    If the modules are known and the kernel sees less by at least one module, a module is not in use: an error.
    """
    machine = case.machine
    if all(disagreement.name != "memory_total" for disagreement in machine.facts.disagreements()):
        return
    if unmanaged(machine.facts) is not None:  # that rule explains it
        return
    facts = [
        fact
        for fact in machine.facts.get("memory_total", ())
        if isinstance(fact.value, int | float) and not isinstance(fact.value, bool) and fact.value > 0
    ]
    sizes = [float(fact.value) for fact in facts]
    reported = [
        f"{show(size, 'B', binary=True)} by {' and by '.join(fact.source for fact in facts if fact.value == size)}"
        for size in dict.fromkeys(sizes)
    ]
    missing = _missing_modules(machine, facts)
    means = (
        f"The modules have {show(missing, 'B', binary=True)} more than any other source reports: one module or more "
        "is not in use. It failed its test at boot, or the firmware uses memory for mirroring or sparing."
        if missing is not None
        else f"The smallest is {show_percent(1 - min(sizes) / max(sizes))} below the largest. Possible causes: a limit "
        "of a container or batch system, memory reserved by the host, a wrong source. A program sized by the largest "
        "may be killed."
    )
    yield Finding(
        rule="memory-sizes-disagree",
        severity=Severity.WARNING if missing is None else Severity.ERROR,
        devices=(),
        observation=f"{len(facts)} sources disagree about the size of the memory: {'; '.join(reported)}.",
        diagnosis=means,
        remedy="Look for the slot in the firmware's event log (`sudo ipmitool sel list`) and in `sudo dmidecode -t "
        "memory`, and at the settings for mirroring and sparing"
        if missing is not None
        else "Size programs by the smallest until this is resolved; compare `free -b`, `lstopo --of console` and "
        "`cat /sys/fs/cgroup/memory.max`",
        evidence="; ".join(f"{fact.source}: {fact.value} B" for fact in facts),
    )


def _missing_modules(machine: Machine, facts: Sequence[Fact]) -> float | None:
    """Bytes of the modules beyond every other source if that is at least one module; else None."""
    modules = [size for device in machine.of_kind(DeviceKind.MEMORY) if (size := device.facts.number("size"))]
    of_modules = sum(modules)
    others = [float(fact.value) for fact in facts if abs(float(fact.value) - of_modules) > 0.01 * of_modules]
    if not modules or not others or len(others) == len(facts) or is_virtual(machine):
        return None
    gap = of_modules - max(others)
    return gap if gap >= _ONE_MODULE * min(modules) else None
